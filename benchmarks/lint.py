"""Speed of lint: one chart with one preset against Helm's own lint and template, and all charts of the repository.

Run by `make bench`. Exit code 1 when a budget is exceeded.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile

from bench import CHARTGEN, PRESET, ROOT, TARGET, Figure, interleave, run_once

from chartgen.programs import find_tool

# All steps of lint, for two Kubernetes versions, against one lint and one template.
RATIO = 2.0
# Seconds on 2 cores, for every chart with every preset.
REPOSITORY = 60.0


def measure(rounds: int) -> list[Figure]:
    """Time `chartgen lint` beside Helm, in turn."""
    helm = find_tool("helm")
    if helm is None:
        return []
    chart, files = str(ROOT / "charts" / TARGET), [word for file in PRESET for word in ("-f", str(file))]
    with tempfile.TemporaryDirectory() as cache:
        os.environ |= {"CHARTGEN_HELM": str(helm), "CHARTGEN_CACHE": cache}
        commands = {
            "lint": [CHARTGEN, "lint", chart, *files, "--no-cache"],
            "unchanged": [CHARTGEN, "lint", chart, *files],
            "helm lint": [str(helm), "lint", "--strict", chart, *files],
            "helm template": [str(helm), "template", "bench", chart, *files],
        }
        seconds = {
            name: statistics.median(run.seconds for run in runs) for name, runs in interleave(commands, rounds).items()
        }
        whole = run_once([CHARTGEN, "lint", str(ROOT / "charts"), "--presets", str(ROOT / "values"), "--no-cache"])
    both = seconds["helm lint"] + seconds["helm template"]
    return [
        Figure("lint of a chart with a preset / helm lint + template", seconds["lint"] / both, RATIO, "x"),
        Figure("the same, unchanged since the last time", seconds["unchanged"] / both, None, "x"),
        Figure("lint of all charts with all presets", whole.seconds, REPOSITORY, "s"),
    ]


def main() -> None:
    """Print the table."""
    figures = measure(int(sys.argv[1]) if sys.argv[1:] else 5)
    print("\n".join(figure.row() for figure in figures))
    if any(figure.over for figure in figures):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
