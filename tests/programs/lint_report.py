"""Lint every chart below a folder, and print the tables of docs/explanation/lint-public-charts.md.

The folder holds one folder for each repository, named OWNER+NAME@COMMIT, as tests/data/public-charts.txt lists them.
Results are kept in a file, one line for each chart, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chartgen.errors import Problem
from chartgen.findings import Finding, exit_code


@dataclass(frozen=True)
class Linted:
    """What the lint of one chart gave."""

    chart: str  # the chart's folder below the one that is linted
    seconds: float  # how long the command took
    rows: list[dict[str, Any]]  # its findings of both levels, as `--output json` has them

    @property
    def repository(self) -> str:
        return self.chart.partition("/")[0].replace("+", "/", 1)

    def exit_code(self) -> int:
        """Return the exit code of `chartgen lint` at its default level."""
        rows = (row for row in self.rows if row["level"] == "breaks")
        return exit_code(Finding(row["rule"], Problem(row["message"]), row["severity"]) for row in rows)


def charts(root: Path) -> Iterator[Path]:
    """Find the charts below a folder, without those inside another chart."""
    for file in sorted(root.rglob("Chart.yaml")):
        above = [folder for folder in file.parent.parents if folder.is_relative_to(root)]
        if not any((folder / "Chart.yaml").is_file() for folder in above):
            yield file.parent


def lint(chart: Path, root: Path) -> Linted:
    argv = [
        sys.executable,
        "-m",
        "chartgen",
        "lint",
        str(chart),
        "--level",
        "style",
        "--no-cache",
        "--limit",
        "600",
        "--output",
        "json",
    ]
    start = time.perf_counter()
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    return Linted(chart.relative_to(root).as_posix(), time.perf_counter() - start, json.loads(ran.stdout)["findings"])


def lint_all(root: Path, kept: Path) -> list[Linted]:
    """Lint what the file of results does not have yet."""
    known = [Linted(**json.loads(line)) for line in kept.read_text().splitlines()] if kept.is_file() else []
    done = {each.chart for each in known}
    for chart in charts(root):
        if chart.relative_to(root).as_posix() not in done:
            known.append(lint(chart, root))
            with kept.open("a") as file:
                file.write(json.dumps(asdict(known[-1])) + "\n")
    return known


def table(found: Sequence[Linted]) -> Iterator[str]:
    seconds = sorted(each.seconds for each in found)
    codes = Counter(each.exit_code() for each in found)
    told = ", ".join(f"{code}: {number}" for code, number in sorted(codes.items()))
    yield f"{len(found)} charts of {len({each.repository for each in found})} repositories; exit codes {told}."
    nine = seconds[len(seconds) * 9 // 10]
    yield f"Seconds a chart: median {statistics.median(seconds):.1f}, 90 % {nine:.1f}, most {seconds[-1]:.1f}."
    yield "\n| rule | level | severity | findings | charts |\n|---|---|---|---|---|"
    keys = Counter((row["level"], row["rule"], row["severity"]) for each in found for row in each.rows)
    for (level, rule, severity), number in sorted(keys.items()):
        having = sum(any(row["rule"] == rule and row["severity"] == severity for row in each.rows) for each in found)
        yield f"| `{rule}` | {level} | {severity} | {number} | {having} |"
    yield "\n| repository @ commit | charts | exit codes | findings that break |\n|---|---|---|---|"
    for repository in sorted({each.repository for each in found}):
        mine = [each for each in found if each.repository == repository]
        breaks = sum(row["level"] == "breaks" for each in mine for row in each.rows)
        yield f"| {repository} | {len(mine)} | {' '.join(str(each.exit_code()) for each in mine)} | {breaks} |"


def main() -> None:
    """Lint, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--results", type=Path, default=Path("build/lint-report.jsonl"))
    options = parser.parse_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    print("\n".join(table(lint_all(options.folder, options.results))))


if __name__ == "__main__":
    main()
