"""Measures NCCL between the GPUs of a run, in the columns of nccl-tests, or finds the machine whose pairs are slow.

Needs PyTorch, and a launcher such as torchrun that sets each rank.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from calibration import calibrate, values_of
from collectives import COLLECTIVES, EXACT, Bench, RankGroup, UnsupportedError
from pairwise import Pair, levels, report, rounds
from table import HEADER, BandwidthRow, bytes_of, format_rows, size_of

# Two buffers, and a tenth for what NCCL and the comparison need.
SHARE_OF_MEMORY = 0.45
# What Kubernetes keeps of a container that failed, and `chartgen status` quotes.
LAST_WORDS = Path("/dev/termination-log")
PREFIX = "chartgen: nccl-test: "


class Floor(NamedTuple):
    """Bus bandwidth in GB/s that a collective must reach with messages of so many bytes or more, and its source."""

    operation: str
    busbw: float
    bytes: int
    source: str


def log(text: str) -> None:
    """Write a line to the pod's log."""
    print(text, flush=True)  # noqa: T201  the log is what the program prints


def arguments() -> argparse.Namespace:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=("sweep", "pairs", "calibrate"), default="sweep")
    parser.add_argument("--machine", default="machine")
    parser.add_argument("--operations", nargs="+", choices=COLLECTIVES, default=list(COLLECTIVES))
    parser.add_argument("--sizes", nargs=2, type=bytes_of, metavar=("FROM", "TO"), default=[8, 16 << 30])
    parser.add_argument("--factor", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=20)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument("--type", choices=EXACT, default="float")
    parser.add_argument(
        "--floor", nargs=4, action="append", metavar=("COLLECTIVE", "GB/S", "FROM", "SOURCE"), default=[]
    )
    parser.add_argument("--slow-below", type=int, default=80)
    parser.add_argument("--backend", choices=("nccl", "gloo"), default="nccl")
    given = parser.parse_args()
    given.floor = [Floor(name, float(busbw), bytes_of(least), source) for name, busbw, least, source in given.floor]
    return given


def sizes(given: argparse.Namespace) -> Iterator[int]:
    """Return the sizes from the smallest to the largest."""
    size, largest = given.sizes
    while size <= largest:
        yield size
        size *= given.factor


class MeasurementFile:
    """What rank 0 keeps: the rows, in memory and as lines of JSON in the run's directory."""

    def __init__(self) -> None:
        self.rows: list[BandwidthRow] = []
        self._path = Path(os.environ["RUN_DIRECTORY"]) / "nccl-test.jsonl"
        self._path.unlink(missing_ok=True)  # a link or a pipe of another user
        self._path.write_text("", encoding="utf-8")

    def note(self, facts: dict[str, Any]) -> None:
        """Write a line of JSON."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(facts) + "\n")

    def add(self, rows: Iterable[BandwidthRow]) -> None:
        """Keep rows."""
        for row in rows:
            self.rows.append(row)
            self.note(asdict(row))

    def judged(self, floor: Floor) -> list[BandwidthRow]:
        """Return the rows that a floor is for."""
        return [row for row in self.rows if row.operation == floor.operation and row.bytes >= floor.bytes]

    def problems(self, floors: list[Floor]) -> Iterator[str]:
        """Yield wrong results, and the floors that were missed with the difference."""
        for operation in dict.fromkeys(row.operation for row in self.rows):
            bad = [row for row in self.rows if row.operation == operation and row.wrong]
            if bad:
                count = f"{bad[0].wrong} elements" if bad[0].wrong > 1 else "an element"
                yield f"{operation} gives wrong results: {count} of a message of {size_of(bad[0].bytes)}"
        for floor in floors:
            best = max(self.judged(floor), key=lambda row: row.busbw, default=None)
            if best and best.busbw < floor.busbw:
                reached = f"{floor.operation} reaches {best.busbw:.2f} GB/s at {size_of(best.bytes)}"
                missing = f"{1 - best.busbw / floor.busbw:.1%} below the floor of {floor.busbw:g} GB/s"
                yield f"{reached}, {missing} ({floor.source})"


def verdict(record: MeasurementFile, floors: list[Floor]) -> list[str]:
    """Return all problems; a floor for larger messages than were measured is only mentioned."""
    for floor in floors:
        if not record.judged(floor):
            limits = f"the floor of {floor.busbw:g} GB/s is for messages of {size_of(floor.bytes)} and more"
            log(f"# {floor.operation}: {limits}, which were not measured")
    return [f"{PREFIX}{problem}" for problem in record.problems(floors)]


def sweep(bench: Bench, given: argparse.Namespace, world: RankGroup, record: MeasurementFile | None) -> list[str]:
    """Measure all sizes of all collectives on all GPUs; give what rank 0 has to complain about."""
    missing = []
    for operation in given.operations:
        if record:
            log(f"# {operation}\n{HEADER}")
        try:
            for size in sizes(given):
                rows = bench.measure(operation, size, world)
                if record and rows:
                    log(format_rows(rows))
                    record.add(rows)
        except UnsupportedError as error:
            missing.append(f"{PREFIX}{error}")
    return missing + verdict(record, given.floor) if record else []


def pairs(bench: Bench, given: argparse.Namespace, world: RankGroup, record: MeasurementFile | None) -> list[str]:
    """Measure each pair of machines, as many at a time as there are; give the machines that are slow."""
    local = int(os.environ["LOCAL_WORLD_SIZE"])
    machines, own = world.size // local, world.rank // local
    names: list[Any] = [None] * world.size
    bench.dist.all_gather_object(names, os.environ["NODE_NAME"])
    reached: dict[Pair, float] = {}
    for meeting in rounds(machines):
        mine = next((pair for pair in meeting if own in pair), None)
        figures = dict.fromkeys(meeting, 0.0)
        if mine:
            ranks = [machine * local + each for machine in mine for each in range(local)]
            # only the two machines make it, so that rounds of many pairs do not wait for each other
            handle = bench.dist.new_group(ranks, use_local_synchronization=True)
            group = RankGroup(len(ranks), ranks.index(world.rank), handle)
            row = bench.measure(given.operations[0], given.sizes[1], group)[0]
            bench.dist.destroy_process_group(handle)
            # all its ranks tell the same; what arrives wrong has reached nothing
            figures[mine] = 0 if row.wrong else row.busbw / group.size
        reached |= zip(meeting, bench.total(list(figures.values()), world), strict=True)
    if not record:
        return []
    found = levels(reached, machines)
    for (one, other), busbw in reached.items():
        record.note({"pair": [names[one * local], names[other * local]], "busbw": busbw})
    table, slow = report(names[::local], found, given.slow_below)
    log("\n".join(table))
    return slow


def alone(bench: Bench, given: argparse.Namespace, _world: RankGroup, record: MeasurementFile | None) -> list[str]:
    """Measure each GPU by itself, and write what the slowest one reaches; no figure of it is a problem."""
    found = calibrate(bench)
    if record:
        record.note({"machine": given.machine, **found})
        log("\n".join(values_of(given.machine, found)))
    return []


MODES = {"sweep": sweep, "pairs": pairs, "calibrate": alone}


def measured(given: argparse.Namespace, rank: int) -> list[str]:
    """Measure with PyTorch."""
    torch: Any = import_module("torch")
    dist, device = torch.distributed, torch.device("cpu")
    # Before the machines connect: an end without goodbye aborts the other ranks of an old PyTorch.
    if given.mode == "pairs" and "use_local_synchronization" not in signature(dist.new_group).parameters:
        raise UnsupportedError(f"mode pairs needs PyTorch 2.1 or newer, the image has {torch.__version__}")
    if given.backend == "nccl":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group(given.backend)
    world, bench = RankGroup(dist.get_world_size(), rank), Bench(torch, given, device)
    record = None if rank else MeasurementFile()
    bench.total([0], world)  # makes the communicator, which takes memory too
    if given.backend == "nccl":
        afford(bench, given)
    if record:
        record.note(world_facts := run_facts(torch, given, world))
        log("# " + ", ".join(f"{name} {value}" for name, value in world_facts.items()))
    bench.allocate(given.sizes[1])
    problems = MODES[given.mode](bench, given, world, record)
    dist.destroy_process_group()
    return problems


def afford(bench: Bench, given: argparse.Namespace) -> None:
    """Lower the largest size until two messages fit into the memory of each GPU."""
    free = bench.torch.tensor(bench.torch.cuda.mem_get_info()[0], device=bench.device)
    bench.dist.all_reduce(free, bench.dist.ReduceOp.MIN)
    most = SHARE_OF_MEMORY * int(free)
    if given.sizes[1] > most:
        given.sizes[1] = max(size for size in sizes(given) if size <= most)


def run_facts(torch: Any, given: argparse.Namespace, world: RankGroup) -> dict[str, Any]:
    """Return the facts that the measurements depend on."""
    found: dict[str, Any] = {"ranks": world.size, "machines": world.size // int(os.environ["LOCAL_WORLD_SIZE"])}
    found |= {"backend": given.backend, "torch": torch.__version__}
    if given.backend == "nccl":
        found |= {"nccl": ".".join(map(str, torch.cuda.nccl.version())), "gpu": torch.cuda.get_device_name()}
    return {**found, "largest": size_of(given.sizes[1])}


def conclude(problems: list[str]) -> None:
    """Print what is slow or wrong as the last lines, and end; the rank that prints it ends with exit code 1."""
    if problems:
        log("\n".join(problems))
    if problems and LAST_WORDS.exists():
        LAST_WORDS.write_text("\n".join(problems), encoding="utf-8")
    sys.exit(bool(problems))


def main() -> None:
    """Measure and conclude."""
    given, rank = arguments(), int(os.environ["RANK"])
    try:
        problems = measured(given, rank)
    except UnsupportedError as error:
        problems = [f"{PREFIX}{error}"]
    conclude(problems)


if __name__ == "__main__":
    main()
