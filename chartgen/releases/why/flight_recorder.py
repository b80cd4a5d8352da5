"""Dumps of PyTorch's Flight Recorder: which rank did not join which collective, as `torchfrtrace` reads them."""

from __future__ import annotations

import json
import pickletools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from chartgen.errors import ChartgenError, Problem
from chartgen.visible import cut

_MOST_BYTES = 1 << 24  # 2,000 entries with stacks have about 2 MB
_MOST_VALUES = 4_000_000
_LONGEST = 200  # characters of a name
_NAME = re.compile(r"trace.*?(\d+)(?:\.\w+)?$")  # TORCH_FR_DUMP_TEMP_FILE: nccl_trace_rank_, comm_lib_trace_rank_
_PICKLE = b"\x80"
# Opcodes of plain data, all that torch writes (torch/csrc/jit/serialization/pickler.cpp, pickle_str): a file is read
# as data, so that nothing in it can name, import or call anything.
_SCALARS = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"}
_VALUES: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": list,
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_IGNORED = {"PROTO", "FRAME"}
# What torch calls a message between two ranks of a group (ProcessGroupNCCL.cpp, torch 2.11).
_MESSAGE = re.compile(r"(?:send \d+->|recv \d+<-)(\d{1,7})$")
# Sizes are equal on all ranks for these alone.
_EVEN = re.compile(r"all_?reduce|broadcast|_all_gather_base|_reduce_scatter_base", re.IGNORECASE)


@dataclass(frozen=True)
class Stuck:
    """A collective that ranks did not end."""

    kind: str  # diverged, not-joined, deadlock, or collective-timeout when all ranks joined
    collective: str  # its operation, number and group
    ranks: tuple[int, ...]  # the ranks that differ: they did not join, or called another collective
    others: str = ""  # what the others called, if it differs
    place: str = ""  # the dump that shows it


@dataclass(frozen=True)
class _Call:
    operation: str
    sizes: tuple[Any, ...]
    done: bool

    @property
    def signature(self) -> tuple[Any, ...]:
        return (self.operation, self.sizes if _EVEN.search(self.operation) else ())


def rank_of_dump(path: Path) -> int | None:
    """Return the rank of a dump by its name; None for any other file."""
    match = _NAME.search(path.name)
    return int(match[1]) if match else None


def read_dump(path: Path) -> dict[str, Any] | None:
    """Read a dump, pickled or JSON, running nothing in it; None for another file. Raise ChartgenError if unreadable."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return None
        data = path.read_bytes()
    except OSError as error:
        raise ChartgenError(Problem(f"cannot be read: {error.strerror}", path)) from None
    try:
        found = _plain(data) if data.startswith(_PICKLE) else json.loads(data)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    known = isinstance(found, dict) and isinstance(found.get("entries"), list) and not _is_large(found)
    return found if known else None


def _is_large(data: Any) -> bool:
    """Report whether data have too many values: one list may be in many places of a pickle."""
    left, todo = _MOST_VALUES, [data]
    while todo and left > 0:
        item = todo.pop()
        children = item.values() if isinstance(item, dict) else _listed(item)
        left -= len(children)
        todo.extend(children)
    return left <= 0


def _plain(data: bytes) -> Any:
    """Return the data of a pickle that contains nothing else."""
    pickled = _PlainPickle()
    for opcode, argument, _ in islice(pickletools.genops(data), _MOST_VALUES):
        if opcode.name == "STOP":
            break
        pickled.take(opcode.name, argument)
    return pickled.stack.pop()


class _PlainPickle:
    """The stack of a pickle that is read as data."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[Any, Any] = {}

    def take(self, name: str, argument: Any) -> None:
        """Follow one opcode; raise ValueError for one that is more than data."""
        if name in _SCALARS:
            self.stack.append(argument)
        elif name in _VALUES:
            self.stack.append(_VALUES[name]())
        elif name.endswith("BINPUT") or name == "MEMOIZE":
            self._memo[len(self._memo) if argument is None else argument] = self.stack[-1]
        elif name.endswith("BINGET"):
            self.stack.append(self._memo[argument])
        elif name == "MARK":
            self._marks.append(len(self.stack))
        elif name not in _IGNORED:
            self._group(name)

    def _group(self, name: str) -> None:
        """Make a list of what lies on the stack, or move it into the list or dictionary below."""
        count = _TUPLES.get(name) or {"APPEND": 1, "SETITEM": 2}.get(name)
        at = len(self.stack) - count if count else self._marks.pop()
        items = self.stack[at:]
        del self.stack[at:]
        if name in _TUPLES or name == "TUPLE":
            self.stack.append(items)
        elif name in ("APPEND", "APPENDS"):
            self.stack[-1].extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            # a list may be in many places, and be of any length as text
            self.stack[-1].update(zip(map(_word, items[::2]), items[1::2], strict=True))
        else:
            raise ValueError(name)


def find_stuck(dumps: Mapping[int, dict[str, Any]], places: Mapping[int, str]) -> Stuck | None:
    """Return the collective for which the ranks wait, and the rank that differs; None when all ended.

    Args:
        dumps: Rank -> its dump.
        places: Rank -> the name of its dump.
    """
    groups = _groups(dumps)
    names = {name: _described(dumps, name) for name in groups}
    found = {
        name: stuck
        for name, calls in groups.items()
        if (stuck := _of_group(calls, {*_members(dumps, name)}, set(dumps), names[name]))
    }
    waiting = {
        name: {rank for rank, each in calls.items() if any(not call.done for call in each.values())}
        for name, calls in groups.items()
    }
    ordered = sorted(found.items(), key=lambda item: _order(item[0], item[1], waiting))
    messages = dict(_messages(dumps))
    if ordered:
        name, stuck = ordered[0]
        if stuck.kind == "not-joined" and _waits_elsewhere(name, stuck, waiting):
            stuck = replace(stuck, kind="deadlock")
        late = tuple(rank for rank in stuck.ranks if rank not in messages)
        stuck = replace(stuck, ranks=late or stuck.ranks)
        witnesses = (*stuck.ranks, *sorted(waiting[name]))
    elif messages:
        awaited = {peer for peer, _ in messages.values()}
        kind, ranks = ("not-joined", awaited - set(messages)) if awaited - set(messages) else ("deadlock", awaited)
        stuck = Stuck(kind, min(text for peer, text in messages.values() if peer in ranks), tuple(sorted(ranks)))
        witnesses = (*stuck.ranks, *sorted(messages))
    else:
        return None
    return replace(stuck, place=next((places[rank] for rank in witnesses if rank in places), ""))


def _messages(dumps: Mapping[int, dict[str, Any]]) -> Iterator[tuple[int, tuple[int, str]]]:
    """Yield each rank whose newest call is a message that did not end in time, with the rank it waits for and the call.

    NCCL's are marked as completed when the watchdog gives up (torch 2.11).
    """
    members = cache(lambda name: _members(dumps, name))
    for rank, dump in dumps.items():
        entry = dump["entries"][-1] if dump["entries"] else None
        if not isinstance(entry, dict) or not entry.get("is_p2p"):
            continue
        text, name = _word(entry.get("profiling_name")).partition(":")[2], _group_of(entry)
        began, ended, limit = (
            found if isinstance(found := entry.get(key), int) else 0
            for key in ("time_created_ns", "time_discovered_completed_ns", "timeout_ms")
        )
        match = _MESSAGE.match(text)
        if match and int(match[1]) < len(members(name)) and (not ended or ended - began >= limit * 1_000_000):
            yield rank, (members(name)[int(match[1])], f"{text} of group {_described(dumps, name)}")


def _order(name: str, stuck: Stuck, waiting: Mapping[str, set[int]]) -> tuple[int, str]:
    """Sort what explains the rest first: a divergence, then a rank that waits nowhere itself."""
    if stuck.kind == "diverged":
        return 0, name
    return (3 if stuck.kind == "collective-timeout" else 2 if _waits_elsewhere(name, stuck, waiting) else 1), name


def _waits_elsewhere(name: str, stuck: Stuck, waiting: Mapping[str, set[int]]) -> bool:
    others = set().union(*(ranks for group, ranks in waiting.items() if group != name))
    return set(stuck.ranks) <= others


def _groups(dumps: Mapping[int, dict[str, Any]]) -> dict[str, dict[int, dict[int, _Call]]]:
    """Return group -> rank -> number -> call, without messages between two ranks."""
    groups: dict[str, dict[int, dict[int, _Call]]] = {}
    for rank, dump in dumps.items():
        for entry in dump["entries"]:
            if not isinstance(entry, dict) or entry.get("is_p2p"):
                continue
            name = _group_of(entry)
            number = found if isinstance(found := entry.get("collective_seq_id"), int) else 0
            sizes = tuple(_sizes(entry.get(key)) for key in ("input_sizes", "output_sizes"))
            operation = _word(entry.get("profiling_name")).partition(":")[2]
            call = _Call(operation, sizes, entry.get("state") == "completed")
            groups.setdefault(name, {}).setdefault(rank, {})[number] = call
    return {name: _with_states(calls) for name, calls in groups.items()}


def _group_of(entry: Mapping[str, Any]) -> str:
    return _word((_listed(entry.get("process_group")) or [entry.get("pg_id")])[0])


def _with_states(calls: dict[int, dict[int, _Call]]) -> dict[int, dict[int, _Call]]:
    """Return the calls of a group; gloo records no completion (torch 2.11), so all before the newest have ended."""
    if any(call.done for each in calls.values() for call in each.values()):
        return calls
    last = max(number for each in calls.values() for number in each)
    return {
        rank: {number: replace(call, done=number < last) for number, call in each.items()}
        for rank, each in calls.items()
    }


def _members(dumps: Mapping[int, dict[str, Any]], name: str) -> list[int]:
    """Return the ranks of a group, in its order."""
    texts = (_word(config.get("ranks"), 1_000_000) for config in _configs(dumps, name))
    return [*dict.fromkeys(int(number) for text in texts for number in re.findall(r"\b\d{1,7}\b", text))]


def _described(dumps: Mapping[int, dict[str, Any]], name: str) -> str:
    """Return the name of a group with its description."""
    found = next((config["desc"] for config in _configs(dumps, name) if config.get("desc")), None)
    return f"{name} ({_word(found)})" if found else name


def _configs(dumps: Mapping[int, dict[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    """Yield what dumps contain about a group."""
    for dump in dumps.values():
        config = dump.get("pg_config")
        group = config.get(name) if isinstance(config, dict) else None
        if isinstance(group, dict):
            yield group


def _of_group(calls: Mapping[int, Mapping[int, _Call]], members: set[int], dumped: set[int], name: str) -> Stuck | None:
    ranks = members & dumped | set(calls)
    first = max((min(each) for each in calls.values()), default=0)  # the recorder is a ring: older ones are lost
    for number in sorted({number for each in calls.values() for number in each if number >= first}):
        made = {rank: each[number] for rank, each in calls.items() if number in each}
        kinds: dict[tuple[Any, ...], list[int]] = {}
        for rank, call in made.items():
            kinds.setdefault(call.signature, []).append(rank)
        common = made[max(kinds.values(), key=len)[0]]
        what = f"{common.operation} {number} of group {name}"
        if len(kinds) > 1:
            odd = min(kinds.values(), key=lambda each: (len(each), -each[0]))
            other = made[odd[0]].operation
            others = (
                f"it with other sizes than rank {kinds[common.signature][0]}" if other == common.operation else other
            )
            return Stuck("diverged", what, tuple(sorted(odd)), others)
        if all(call.done for call in made.values()):
            continue
        if missing := ranks - set(made):
            return Stuck("not-joined", what, tuple(sorted(missing)))
        # a rank that could not write a dump may be the one that failed (pytorch/pytorch#196968)
        absent = members - dumped
        few = tuple(sorted(absent)) if len(absent) * 2 < len(members) else ()
        return Stuck("not-joined" if few else "collective-timeout", what, few)
    return None


def _sizes(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(size for size in _listed(each) if isinstance(size, int)) for each in _listed(value))


def _word(value: Any, longest: int = _LONGEST) -> str:
    return cut(str(value), longest) if isinstance(value, (str, int)) else ""


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
