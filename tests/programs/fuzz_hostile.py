"""Hostile input at random: charts, logs and answers of clusters: none may hang, crash, leave its folder or steer.

    make fuzz-hostile                               20,000 inputs, seed 1
    make fuzz-hostile FUZZ="--count 500 --seed 7"   fewer, as of seed 7
    make fuzz-hostile FUZZ="--only log:17 --seed 7" one of them again

The charts are this repository's and those of a folder (`--charts`, or CHARTGEN_CHARTS), such as fetched ones of others;
the logs are those of CHARTGEN_CORPUS and of tests/data. What goes through what is printed. An input that makes a fault
is kept, shrunk, with the command that tries it again. tests/support/caged.py says what a fault is.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from math import inf
from multiprocessing import get_context
from pathlib import Path

from caged import ROOT, Verdict
from hostileinputs import Input, Material, collect, invent
from hostilerange import Range, warm, write
from mutators import Files

# Kind of input -> what it goes through, and its share of all.
KINDS = {
    "log": ("chartgen metrics, every form of output", 0.325),
    "lint": ("chartgen lint of a chart, with Helm", 0.175),
    "chart": ("lint's readers of a chart's files and schemas, without Helm", 0.15),
    "objects": ("lint's rules for rendered objects, without Helm", 0.125),
    "values": ("chartgen lint and check of a values file, and lint's settings; without Helm", 0.1),
    "library": ("chartgen show, list and build of targets and fragments of --path; without Helm", 0.05),
    "cluster": (
        "commands that read a cluster whose answers a stranger has written, doctor and upgrade among them",
        0.075,
    ),
}
_TRACED = 10  # of so many charts that go through Helm one goes through strace, too
_BATCH = 25
_OWN_MEMORY = 6 << 30  # bytes of address space for making up an input; more than the child may take that tries it
_TRIES = 40  # to shrink an input


@dataclass
class Tally:
    """What became of the inputs of one kind."""

    codes: Counter[str] = field(default_factory=Counter)
    ran: Counter[str] = field(default_factory=Counter)
    faults: list[tuple[str, str, int]] = field(default_factory=list)
    resident: int = 0
    seconds: float = 0
    total: float = 0

    def take(self, kind: str, number: int, verdict: Verdict) -> None:
        """Count an input."""
        self.codes[f"exit {verdict.code}" if verdict.code >= 0 else "no exit"] += 1
        self.codes["stopped at a limit of lint"] += verdict.limited
        self.ran.update(verdict.ran)
        self.resident = max(self.resident, verdict.resident)
        self.seconds = max(self.seconds, verdict.seconds)
        self.total += verdict.seconds
        self.faults += [(fault, kind, number) for fault in verdict.faults]

    def add(self, other: Tally) -> None:
        """Count what another one has counted."""
        self.codes += other.codes
        self.ran += other.ran
        self.faults += other.faults
        self.resident, self.seconds = max(self.resident, other.resident), max(self.seconds, other.seconds)
        self.total += other.total


_MATERIAL: list[Material] = []
_RANGE: list[Range] = []


def try_some(kind: str, numbers: Sequence[int], seed: int) -> Tally:
    """Try inputs of a kind, in a process that tries many."""
    if not _RANGE:
        resource.setrlimit(resource.RLIMIT_AS, (_OWN_MEMORY, _OWN_MEMORY))
        _RANGE.append(Range(Path(tempfile.mkdtemp(prefix="fuzz-"))))
        warm()
        gc.collect()
        gc.freeze()  # what is there is not looked at again in each child, which would copy its pages
    tally = Tally()
    for number in numbers:
        try:
            made = invent(kind, number, seed, _MATERIAL[0])
            verdict = _RANGE[0].judge(made, kind, trace=number % _TRACED == 0)
        except MemoryError:
            verdict = Verdict(faults=[f"memory: the fuzzer itself takes more than {_OWN_MEMORY >> 30} GiB for it"])
        tally.take(kind, number, verdict)
    return tally


_PLACE = re.compile(r'File "([^"]+)", line \d+, in (\S+)')


def signature(fault: str) -> str:
    """Return what is the same of a fault in several inputs: its kind, and where an exception came from."""
    kind, _, rest = fault.partition(":")
    if kind == "steers":
        return f"{kind} {rest.rpartition(' ')[2]}"
    places = _PLACE.findall(rest)
    error = rest.strip().splitlines()[-1].partition(":")[0] if rest.strip() else ""
    return f"{kind}: {places[-1]} {error}" if places else f"{kind}: {re.sub(r'[0-9]+', 'N', rest)[:80]}"


def shrink(made: Input, fails: Callable[[Input], bool]) -> Input:
    """Leave out files, then lines, as long as an input still fails, with a few tries."""
    tries = _TRIES
    for path in [*sorted(made.made.files), *made.made.links, *made.made.pipes]:
        smaller = _without(made, path)
        tries -= 1
        if tries > _TRIES // 2 and fails(smaller):
            made = smaller
    for path in sorted(made.made.files):
        size = 2
        while tries > 0 and len(lines := made.made.files[path].splitlines(keepends=True)) >= size:
            parts = [lines[len(lines) * n // size : len(lines) * (n + 1) // size] for n in range(size)]
            for index in range(size):
                tries -= 1
                rest = b"".join(line for n, part in enumerate(parts) for line in part if n != index)
                smaller = _without(made, path)
                smaller.made.files[path] = rest
                if tries > 0 and fails(smaller):
                    made, size = smaller, 2
                    break
            else:
                size *= 2
    return made


def _without(made: Input, path: str) -> Input:
    files = Files(
        {name: data for name, data in made.made.files.items() if name != path},
        {name: target for name, target in made.made.links.items() if name != path},
        [name for name in made.made.pipes if name != path],
    )
    return Input(files, made.argv, made.ways)


def keep(
    faults: list[tuple[str, str, int]], seed: int, material: Material, folder: Path, *, whole: bool = False
) -> list[str]:
    """Keep one input of each sort of fault, shrunk, and say how it is tried again."""
    told = []
    sorts: dict[str, list[tuple[str, str, int]]] = {}
    for each in faults:
        sorts.setdefault(signature(each[0]), []).append(each)
    for sort, (first, *more) in sorts.items():
        fault, kind, number = first
        made = invent(kind, number, seed, material)

        def fails(smaller: Input, kind: str = kind, sort: str = sort) -> bool:
            found = _RANGE[0].judge(smaller, kind, trace=sort.startswith("outside: helm"))
            return any(signature(each) == sort for each in found.faults)

        if not whole and not sort.startswith("endless"):
            made = shrink(made, fails)
        place = folder / f"{kind}-{seed}-{number}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        write(made.made, place)
        again = f"make fuzz-hostile FUZZ='--seed {seed} --only {kind}:{number}'"
        told += [f"{len(more) + 1} times: {fault}", f"  made by {', '.join(made.ways)}; {made.argv}"]
        told += [f"  kept in {place}; again: {again}"]
    return told


def _shares(count: int) -> list[tuple[str, list[int]]]:
    """Return batches of all kinds, mixed, so that a run which is cut short has some of each."""
    found: list[tuple[float, str, list[int]]] = []
    for kind, (_, share) in KINDS.items():
        numbers = list(range(round(count * share)))
        found += [(at / len(numbers), kind, numbers[at : at + _BATCH]) for at in range(0, len(numbers), _BATCH)]
    return [(kind, numbers) for _, kind, numbers in sorted(found)]


def fuzz(
    count: int, seed: int, material: Material, processes: int, tell: Callable[[str], None], seconds: float = inf
) -> dict[str, Tally]:
    """Try so many inputs, or as many as there is time for, and count."""
    _MATERIAL[:] = [material]
    tallies = {kind: Tally() for kind in KINDS}
    seen: set[str] = set()
    end = time.monotonic() + seconds
    with ProcessPoolExecutor(processes, mp_context=get_context("fork")) as pool:
        tries = {pool.submit(try_some, kind, numbers, seed): kind for kind, numbers in _shares(count)}
        for done, each in enumerate(_until(end, tries), 1):
            tallies[tries[each]].add(each.result())
            for fault, kind, number in each.result().faults:
                if signature(fault) not in seen:
                    seen.add(signature(fault))
                    tell(f"{kind}:{number} {fault}")
            if done % 20 == 0:
                tell(f"{done * _BATCH:,} inputs, {len(seen)} sorts of faults")
    return tallies


def _until(end: float, tries: Iterable[Future[Tally]]) -> Iterator[Future[Tally]]:
    """Return what is done until a time, and then what has begun before it."""
    left = set(tries)
    for each in as_completed(left):
        left = left - {each}
        yield each
        if time.monotonic() > end:
            break
    yield from [each for each in left if not each.cancel()]


def figures(tallies: dict[str, Tally]) -> Iterator[str]:
    """Say how many inputs went through what, and what became of them."""
    for kind, tally in tallies.items():
        ends = ", ".join(f"{count:,} {name}" for name, count in sorted(tally.codes.items()) if count)
        total = sum(count for name, count in tally.codes.items() if "exit" in name)
        yield f"{kind:<8} {total:>6,} inputs through {KINDS[kind][0]}"
        yield f"         {ends}; {len(tally.faults)} faults"
        most = f"{tally.resident / 1e6:.0f} MB and {tally.seconds:.1f} s"
        yield f"         at most {most} of processor time for one, {tally.total:.0f} s for all"
        if tally.ran:
            ran = ", ".join(f"{count:,} {name}" for name, count in sorted(tally.ran.items()))
            yield f"         programs started: {ran}"


def main() -> None:
    """Try hostile inputs.

    Raises:
        SystemExit: With 1, when one made a fault.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000, help="inputs, of all kinds together")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other inputs")
    parser.add_argument("--only", metavar="KIND:NUMBER", help="one input again")
    parser.add_argument(
        "--charts", type=Path, default=os.environ.get("CHARTGEN_CHARTS"), help="folder of charts of others"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--minutes", type=float, default=inf, help="begin no more inputs after that")
    parser.add_argument(
        "--keep", type=Path, default=ROOT / "build" / "fuzz-hostile", help="folder for inputs with faults"
    )
    parser.add_argument("--whole", action="store_true", help="keep inputs with faults as they are, not shrunk")
    asked = parser.parse_args()
    corpus = next(filter(Path.is_dir, _corpora()), None)
    material = collect(Path(asked.charts) if asked.charts else None, corpus)
    say(f"{material.counts}; seed {asked.seed}")
    say(
        "strace looks at what Helm opens of every tenth chart"
        if shutil.which("strace")
        else "no strace: what Helm opens is not looked at"
    )
    begun = time.monotonic()
    if asked.only:
        kind, _, number = asked.only.partition(":")
        _MATERIAL[:] = [material]
        tallies = {kind: try_some(kind, [int(number)], asked.seed)}
    else:
        tallies = fuzz(asked.count, asked.seed, material, asked.processes, say, asked.minutes * 60)
        _RANGE.append(Range(Path(tempfile.mkdtemp(prefix="fuzz-"))))
    for line in figures(tallies):
        say(line)
    say(f"{time.monotonic() - begun:.0f} s with {asked.processes} processes")
    faults = [fault for tally in tallies.values() for fault in tally.faults]
    for line in keep(faults, asked.seed, material, asked.keep, whole=asked.whole):
        say(line)
    sys.exit(bool(faults))


def _corpora() -> Iterator[Path]:
    told = os.environ.get("CHARTGEN_CORPUS")
    yield from [Path(told)] if told else (parent / "shared" / "corpus" for parent in ROOT.parents)


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
