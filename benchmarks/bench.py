"""Speed, memory and size of chartgen against its budgets: `make bench`, with the size `make bench BENCH=--install`.

Times are ratios of medians within one run, and the commands take turns, so that a slow or busy machine slows both
sides of a ratio. Exit code 1 when a budget is exceeded.
"""

from __future__ import annotations

import argparse
import compileall
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = "gke-a3mega"
CHARTGEN = str(Path(sys.executable).with_name("chartgen"))
IMPORTS = "import click, jinja2, ruamel.yaml, jsonschema"
CHECK_IMPORTS = "import click, jsonschema, ruamel.yaml"
PRESET = [
    ROOT / "values" / name for name in ("gpt3-175b.yaml", f"{TARGET}/gpt3-175b.yaml", f"site.{TARGET}.example.yaml")
]
# os.wait4 counts memory in KiB on Linux and in bytes on macOS (getrusage(2) of each).
MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024
# What a new virtual environment or the build holds before anything of chartgen is in it.
NOT_OURS = ("pip", "setuptools", "wheel")


@dataclass(frozen=True)
class Figure:
    """One line of the table.

    Args:
        name: What was measured.
        measured: The value, in `unit`.
        budget: The most it may be; None for a figure that is only shown.
        unit: Written behind both numbers.
    """

    name: str
    measured: float
    budget: float | None
    unit: str

    @property
    def over(self) -> bool:
        """Whether the budget is exceeded."""
        return self.budget is not None and self.measured > self.budget

    def row(self) -> str:
        """Write the line."""
        budget = "" if self.budget is None else f"{self.budget:g} {self.unit}"
        verdict = "" if self.budget is None else "over" if self.over else "ok"
        return f"{self.name:<58} {f'{self.measured:.4g} {self.unit}':>12} {budget:>12}  {verdict}".rstrip()


@dataclass(frozen=True)
class Run:
    """What one process took: wall time in seconds, peak resident memory in MB (10^6 bytes)."""

    seconds: float
    megabytes: float


# Starts a command and prints its seconds, peak memory and exit status. A process begins with the peak of the one that
# starts it (Linux, fs/exec.c: begin_new_exec), and a benchmark with a control plane is larger than chartgen.
_STARTER = """
import os, sys, time
nothing = os.open(os.devnull, os.O_RDWR)
streams = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, nothing, 1)]
start = time.perf_counter()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=streams)
_, status, usage = os.wait4(child, 0)
print(time.perf_counter() - start, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""


def run_once(argv: Sequence[str]) -> Run:
    """Run a command to its end, its output dropped.

    Raises:
        SystemExit: The command failed, so its time means nothing; what it said is shown.
    """
    ran = subprocess.run([sys.executable, "-S", "-c", _STARTER, *argv], capture_output=True, text=True, check=False)
    seconds, peak, code = ran.stdout.split() if not ran.returncode else (0, 0, ran.returncode)
    if int(code):
        print(ran.stderr, file=sys.stderr)
        raise SystemExit(f"bench: exit {code} from: {' '.join(argv)}")
    return Run(float(seconds), int(peak) * MEMORY_UNIT / 1e6)


def interleave(commands: dict[str, list[str]], rounds: int) -> dict[str, list[Run]]:
    """Run each command once to warm the page cache, then all in turn, `rounds` times."""
    for argv in commands.values():
        run_once(argv)
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, argv in commands.items():
            runs[name].append(run_once(argv))
    return runs


def measure_commands(rounds: int) -> list[Figure]:
    """Time whole processes: the build, `--help`, and what they are compared with."""
    from chartgen.programs import find_tool

    python = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        commands = {
            "build": [CHARTGEN, "build", TARGET, "--destination", folder],
            "imports": [python, "-c", IMPORTS],
            "check": [CHARTGEN, "check", TARGET, *(word for file in PRESET for word in ("-f", str(file)))],
            "check imports": [python, "-c", CHECK_IMPORTS],
            "help": [CHARTGEN, "--help"],
            "click": [python, "-c", "import click"],
        }
        helm = find_tool("helm")
        if helm:
            run_once(commands["build"])
            commands["helm"] = [str(helm), "template", "bench", str(next(Path(folder).rglob("Chart.yaml")).parent)]
        runs = interleave(commands, rounds)
    return compare(runs)


def compare(runs: dict[str, list[Run]]) -> list[Figure]:
    """Turn the runs of `measure_commands` into figures."""
    seconds = {name: statistics.median(run.seconds for run in taken) for name, taken in runs.items()}
    build = f"chartgen build {TARGET}"
    figures = [
        Figure(f"{build} / python -c '{IMPORTS[:20]}...'", seconds["build"] / seconds["imports"], 1.3, "x"),
        Figure(f"chartgen check / python -c '{CHECK_IMPORTS}'", seconds["check"] / seconds["check imports"], 1.3, "x"),
        Figure("chartgen --help / python -c 'import click'", seconds["help"] / seconds["click"], 1.4, "x"),
        Figure(f"peak memory of {build}", max(run.megabytes for run in runs["build"]), 60, "MB"),
    ]
    if "helm" in seconds:
        figures.append(Figure(f"{build} / helm template", seconds["build"] / seconds["helm"], None, "x"))
    names = {"build": build, "imports": IMPORTS, "help": "chartgen --help", "click": "import click"}
    names |= {"check": f"chartgen check {TARGET}", "check imports": CHECK_IMPORTS}
    for name, median in seconds.items():
        figures.append(Figure(f"  median: {names.get(name, 'helm template')}", median * 1e3, None, "ms"))
    return figures


def measure_compose(rounds: int) -> list[Figure]:
    """Time composing one chart in a process that has composed before, reading its target's files, and a check."""
    from chartgen import check, compose, load_target, load_values
    from chartgen.composer.composed import composed_chart

    target, values = load_target(TARGET), load_values(PRESET)
    chart = compose(target)
    check(chart, values)
    checking = statistics.median(clock(lambda: check(chart, values), rounds * 4)) * 1e3
    composing = statistics.median(clock(lambda: compose(target), rounds * 4)) * 1e3
    composed_chart("compose", target)
    remembering = statistics.median(clock(lambda: composed_chart("compose", target), rounds * 4)) * 1e3
    reading = statistics.median(clock(lambda: load_target(TARGET), rounds * 4)) * 1e3
    return [
        Figure("compose one chart in process", composing, 8, "ms"),
        Figure("  the same from the cache", remembering, 3, "ms"),
        Figure("  reading its target, fragments and launchers", reading, None, "ms"),
        Figure("check one preset in process", checking, 4, "ms"),
    ]


def clock(action: Callable[[], object], rounds: int) -> list[float]:
    """Time a call several times, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return times


def measure_install(extra: str) -> list[Figure]:
    """Install chartgen into an empty environment; count its packages and the bytes of their files.

    The budget holds for the plain installation; with an extra the figures are only shown.
    """
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        before = site_packages(Path(folder))
        pip = [str(Path(folder, "bin", "python")), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, f"{ROOT}{extra}"], check=True)
        after = site_packages(Path(folder))
    new = {path: size for path, size in after.items() if path not in before}
    packages = {path.parts[0] for path in new if path.parts[0].endswith(".dist-info")}
    packages = {name for name in packages if not name.startswith(tuple(f"{known}-" for known in NOT_OURS))}
    name = f"pip install .{extra}"
    return [
        Figure(f"{name}: packages", len(packages), None if extra else 30, "pkg"),
        Figure(f"{name}: size", sum(new.values()) / 1e6, None if extra else 60, "MB"),
    ]


def site_packages(environment: Path) -> dict[Path, int]:
    """List the files of an environment's site-packages with their sizes in bytes."""
    (site,) = environment.glob("lib/python3*/site-packages")
    return {path.relative_to(site): path.stat().st_size for path in site.rglob("*") if path.is_file()}


def main() -> int:
    """Measure, print the table, and say by the exit code whether every budget holds."""
    parser = argparse.ArgumentParser(description="Measure chartgen against its budgets.")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each command (default 15)")
    parser.add_argument("--install", action="store_true", help="also measure an installation (a minute, network)")
    options = parser.parse_args()
    # pip compiles what it installs; a checkout that never may write bytecode would be compiled anew by every run
    compileall.compile_dir(ROOT / "chartgen", quiet=1)
    figures = [*measure_commands(options.rounds), *measure_compose(options.rounds)]
    if options.install:
        figures += [*measure_install(""), *measure_install("[cluster]")]
    print(f"{'figure':<58} {'measured':>12} {'budget':>12}")
    print("\n".join(figure.row() for figure in figures))
    return 1 if any(figure.over for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
