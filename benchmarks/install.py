"""`chartgen install` against `helm install` of a chart, on a control plane of its own: `python benchmarks/install.py`.

Both install the A3 Mega chart of GPT-3 5B for two machines, with Kueue and JobSet and their webhooks, and take turns.
chartgen's side holds the checks, the preflight and the trial of every object. Exit code 1 when the budget is exceeded.
"""

from __future__ import annotations

import compileall
import os
import statistics
import sys
import tempfile
from itertools import chain
from pathlib import Path

from bench import CHARTGEN, ROOT, TARGET, Figure, run_once

from chartgen import compose, load_target, load_values
from chartgen.programs import find_tool
from chartgen.rehearsal.controllers import start_controllers
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.rehearse import install_setup, prepare_stage
from chartgen.rehearsal.simulated_nodes import create_machines
from chartgen.releases.plan import plan_release

ROUNDS = 9
FILES = [ROOT / "values" / name for name in ("gpt3-5b.yaml", f"{TARGET}/gpt3-5b.yaml", f"site.{TARGET}.example.yaml")]


def prepare(plane: ControlPlane) -> None:
    """Start the controllers and the machines; install what a cluster has, and the setup chart."""
    target, values = load_target(TARGET), load_values(FILES)
    chart = compose(target)
    planned = plan_release(chart, values, "bench", "default")
    stage = prepare_stage(chart, target, values, planned, planned.nodes)
    start_controllers(plane, stage.controllers)
    create_machines(plane.cluster, stage.pools)
    plane.cluster.apply(chain.from_iterable(stage.substitutes.values()))
    install_setup(stage, plane.kubeconfig)


def measure(chart: Path, rounds: int = ROUNDS) -> list[Figure]:
    """Install and uninstall in turn."""
    values = [word for file in FILES for word in ("--values", str(file))]
    helm = str(find_tool("helm"))
    commands = {
        "helm install": [helm, "install", "bench", str(chart), *values],
        "chartgen install": [CHARTGEN, "install", str(chart), "bench", *values],
        "chartgen install --force": [CHARTGEN, "install", str(chart), "bench", *values, "--force"],
        "helm template": [helm, "template", "bench", str(chart), *values],
        "python, click": [sys.executable, "-c", "import click"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            seconds[name].append(run_once(command).seconds)
            if "install" in name:
                run_once([CHARTGEN, "uninstall", "bench"])
    medians = {name: statistics.median(taken) for name, taken in seconds.items()}
    plain = medians["helm install"]
    # what no tool in Python that looks at a chart's objects before it installs them can be faster than
    floor = medians["python, click"] + medians["helm template"] + plain
    return [
        Figure("chartgen install / helm install", medians["chartgen install"] / plain, 1.8, "x"),
        Figure("chartgen install", medians["chartgen install"], 1.2, "s"),
        Figure("  without the preflight (--force)", medians["chartgen install --force"] / plain, None, "x"),
        Figure("  floor: import click, helm template, helm install", floor / plain, None, "x"),
        *(Figure(f"  median: {name}", median, None, "s") for name, median in medians.items()),
    ]


def measure_on(plane: ControlPlane, folder: Path, rounds: int = ROUNDS) -> list[Figure]:
    """Install on a control plane that is empty."""
    prepare(plane)
    os.environ["KUBECONFIG"] = str(plane.kubeconfig)
    compose(load_target(TARGET)).write(folder / TARGET)
    return measure(folder / TARGET, rounds)


def main() -> int:
    """Measure, print the table, and say by the exit code whether the budget holds."""
    compileall.compile_dir(ROOT / "chartgen", quiet=1)  # as pip does
    with ControlPlane() as plane, tempfile.TemporaryDirectory() as folder:
        figures = measure_on(plane, Path(folder))
    print("\n".join(figure.row() for figure in figures))
    return 1 if any(figure.over for figure in figures) else 0


if __name__ == "__main__":
    sys.exit(main())
