"""Where each rank of a run is: the stacks of all ranks, grouped by equal ones."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.kube import Cluster, side_by_side
from chartgen.releases.status.logs import find_sources
from chartgen.releases.status.pod_exec import run_in_pod

if TYPE_CHECKING:
    from chartgen.releases.helm_release import Place
    from chartgen.releases.status.members import Member

_AT_ONCE = 16  # connections; each asks one pod
_SECONDS = 300.0  # for the ranks of a pod, each of which may take 30
_MAIN = "MainThread"


@dataclass(frozen=True)
class StackGroup:
    """Ranks at the same place."""

    ranks: tuple[int, ...]  # the ranks
    frames: tuple[str, ...] = ()  # the stack of their main threads, innermost call first; empty with an error
    error: str = ""  # why their stacks are unknown
    machines: tuple[str, ...] = ()  # machines of the ranks


def read_stacks(cluster: Cluster, release: str, place: Place) -> list[StackGroup]:
    """Return the stacks of all ranks of a release's running pods, the most frequent first.

    Raises:
        MissingToolError: kubectl is missing, or each image lacks py-spy.
        ChartgenError: No pod runs, none answers, or Ray started the processes.
    """
    sources = find_sources(cluster, release, place.namespace, rank="all")
    if not any(source.member.ranks for source in sources) and any(source.member.gpus for source in sources):
        hint = "see the stacks in Ray's dashboard, port 8265 of the head"
        raise ChartgenError(Problem(f"the processes of release {release} have no ranks: Ray started them", hint=hint))
    members = [source.member for source in sources if source.member.phase == "Running" and source.member.ranks]
    if not members:
        hint = f"`chartgen status {release}` shows why"
        raise ChartgenError(Problem(f"no pod of release {release} runs", hint=hint))
    script = Path(__file__).with_name("pod_stacks.py").read_text("utf-8")

    def dump(member: Member) -> dict[str, Any] | ChartgenError:
        try:
            found: dict[str, Any] = json.loads(run_in_pod(place, member, ["python3", "-c", script], seconds=_SECONDS))
            group({member: found})
        except MissingToolError:
            raise
        except ChartgenError as error:
            return error
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):  # a pod may print anything
            return ChartgenError(f"pod {member.name}: its python3 did not print stacks")
        return found

    dumps = side_by_side((partial(dump, member) for member in members), _AT_ONCE)
    answers = dict(zip(members, dumps, strict=True))
    failures = [answer for answer in answers.values() if isinstance(answer, ChartgenError)]
    if len(failures) == len(answers):
        raise failures[0]
    if all(isinstance(answer, ChartgenError) or answer["missing"] for answer in answers.values()):
        hint = "add it (pip install py-spy); run.hangMinutes prints the stacks of a run that hangs without it"
        raise MissingToolError(Problem("the image of the run has no py-spy", hint=hint))
    return group(answers)


def group(answers: Mapping[Member, dict[str, Any] | ChartgenError]) -> list[StackGroup]:
    """Return the ranks by equal stacks or errors, the most frequent first."""
    found: dict[tuple[tuple[str, ...], str], dict[int, str]] = {}
    for member, answer in answers.items():
        if isinstance(answer, ChartgenError) or answer["missing"]:
            error = str(answer) if isinstance(answer, ChartgenError) else "its image has no py-spy"
            found.setdefault(((), error), {}).update(dict.fromkeys(member.ranks, member.machine))
            continue
        for rank in answer["ranks"]:
            key = ((), str(rank["error"])) if "error" in rank else (_frames(rank["threads"]), "")
            found.setdefault(key, {})[int(rank["rank"])] = member.machine
    groups = [
        StackGroup(tuple(sorted(ranks)), frames, error, tuple(dict.fromkeys(ranks[rank] for rank in sorted(ranks))))
        for (frames, error), ranks in found.items()
    ]
    return sorted(groups, key=lambda each: (-len(each.ranks), each.ranks))


def odd(groups: Sequence[StackGroup]) -> StackGroup | None:
    """Return the smallest group, where the others hang because of it; None without a difference."""
    known = [each for each in groups if not each.error]
    if len(known) < 2 or len(known[-1].ranks) == len(known[0].ranks):
        return None
    return known[-1]


def span(numbers: Iterable[int]) -> str:
    """Return numbers as text, such as 0-6, 8."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and parts[-1][-1] == number - 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)


def _frames(threads: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return the main thread's stack; without one, the first thread's."""
    main = next((each for each in threads if each["thread_name"] == _MAIN), threads[0] if threads else {"frames": []})
    return tuple(
        f"{frame['name']} ({frame['short_filename'] or frame['filename']}:{frame['line']})" for frame in main["frames"]
    )
