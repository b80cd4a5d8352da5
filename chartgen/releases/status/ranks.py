"""Choice of the log lines to show: pods by global rank or machine, and the rank that wrote a line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from chartgen.errors import Problem, UsageError, did_you_mean
from chartgen.releases.status.members import Member

# Rank marks of a line: torchrun --tee writes `[default3]:` with the local rank (pytorch, torch/distributed/elastic/
# multiprocessing/api.py), PyTorch itself `[rank3]:` with the global one (torch/distributed/distributed_c10d.py), mpirun
# --tag-output `[1,3]<stdout>:` (docs.open-mpi.org, mpirun), from Open MPI 5 on `[prterun-host-1@1,3]<stdout>:`.
_MARK = re.compile(
    r"(?:[\w.-]+/\d+ )?\[(?P<role>[A-Za-z_]+)(?P<number>\d+)\]:|\[(?:[^\]\s]*@)?\d+,(?P<mpi>\d+)\]<\w+>:"
)


@dataclass(frozen=True)
class Source:
    """A pod whose log is shown, and the global ranks whose lines are; None for all."""

    member: Member
    ranks: frozenset[int] | None

    def shows(self, line: str) -> bool:
        """Report whether a line is shown: lines of other ranks are not, lines without a rank mark are."""
        rank = self.rank_of(line)
        return self.ranks is None or rank is None or rank in self.ranks

    def rank_of(self, line: str) -> int | None:
        """Return the global rank that wrote a line; None without a rank mark."""
        match = _MARK.match(line)
        if match is None:
            return None
        if match["mpi"] or match["role"] == "rank":
            return int(match["mpi"] or match["number"])
        return int(match["number"]) + (self.member.ranks[0] if self.member.ranks else 0)

    def prefix(self, line: str) -> str:
        """Return the prefix of a line when several pods are shown."""
        rank, ranks = self.rank_of(line), self.member.ranks
        if self.member.drives:
            return "[master] " if rank is None else f"[rank {rank}] "
        if rank is None and not ranks:
            return f"[{self.member.name}] "
        if rank is None and len(ranks) > 1:
            return f"[ranks {ranks[0]}-{ranks[-1]}] "
        return f"[rank {ranks[0] if rank is None else rank}] "


def choose(members: Sequence[Member], *, rank: str = "", machine: str = "") -> list[Source]:
    """Return the pods of a run whose logs are shown.

    Args:
        rank: A global rank, "last" or "all"; empty for the first and the last, since Megatron prints the loss on the
            last. The pod that starts the processes of an MPI job or a Ray job prints their output and is always
            included; Ray's machines have no ranks, and are included with "all".
        machine: All pods of this machine instead.

    Raises:
        UsageError: The rank or machine does not exist.
    """
    if machine:
        found = [Source(member, None) for member in members if member.machine == machine]
        if not found:
            hint = did_you_mean(machine, {member.machine for member in members if member.machine})
            raise UsageError(Problem(f"no pod of the run is on machine {machine}", hint=hint))
        return found
    if not any(member.ranks for member in members) and any(member.gpus for member in members):
        return _without_ranks(members, rank)
    numbered = _numbered(members)
    count = max((member.ranks[-1] for member in numbered if member.ranks), default=-1) + 1
    if rank == "all":
        return [Source(each, None) for each in numbered]
    wanted = _wanted(rank, count)
    return [Source(member, wanted) for member in numbered if not member.ranks or wanted & set(member.ranks)]


def _without_ranks(members: Sequence[Member], rank: str) -> list[Source]:
    """Return the pods of a run whose pods with GPUs have no numbers, as those of Ray."""
    if rank.isdecimal():
        raise UsageError(Problem(f"no rank {rank}; Ray's machines have no ranks", hint="give --machine, or all"))
    if rank not in {"", "last", "all"}:
        raise UsageError(Problem(f"{rank!r} is not a rank", hint="give all, or --machine"))
    drivers = [member for member in members if member.drives]
    shown = members if rank == "all" or not drivers else drivers
    return [Source(each, None) for each in sorted(shown, key=lambda each: (not each.drives, each.gpus, each.name))]


def _numbered(members: Sequence[Member]) -> list[Member]:
    """Sort pods by rank; programs without GPUs count as one process for each pod."""
    if not any(member.ranks for member in members):
        members = [replace(each, ranks=range(number, number + 1)) for each in members for number in (each.index or 0,)]
    return sorted(members, key=lambda member: member.ranks[0] if member.ranks else -1)


def _wanted(rank: str, count: int) -> frozenset[int]:
    if rank in {"", "last"}:
        return frozenset({count - 1} if rank else {0, count - 1})
    if not rank.isdecimal():
        raise UsageError(Problem(f"{rank!r} is not a rank", hint="give a number, last or all"))
    if int(rank) >= count:
        raise UsageError(f"no rank {rank}; the run has ranks 0 to {count - 1}")
    return frozenset({int(rank)})
