"""Values at random, by each chart's own schema: nothing crashes, and what passes `check` is refused by nobody.

`make fuzz` tries 2,000 sets for each target on a real API server; tests/checks/test_fuzz.py a few of them without one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning
from hypothesis.strategies import SearchStrategy
from strategies import LISTS, PARTS, by_schema

from chartgen.checks import check
from chartgen.composer.assembly import compose
from chartgen.composer.library import open_library
from chartgen.composer.target import load_target
from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values, load_values
from chartgen.kube import Cluster, connect
from chartgen.linter.api_schemas import objects_fit_their_schema
from chartgen.rehearsal import engine_build, engines
from chartgen.rehearsal.controllers import start_controllers
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.releases.dry_run import dry_run_refusals
from chartgen.releases.state import State

TARGETS = list(open_library().names("target"))
NAMESPACE, RELEASE = "fuzz", "my-run"
# What subcharts would take, and what Helm passes on to them.
_FOR_SUBCHARTS = ("global",)
# How much oftener than a single key a part of the pod is drawn: they are trees of their own.
_WEIGHT = 8


@cache
def chart_of(target: str) -> Chart:
    """Compose a target's chart once."""
    return compose(load_target(target))


@cache
def leaves(target: str) -> list[tuple[str, SearchStrategy[Any]]]:
    """Return the keys that a chart takes, each with values that its schema may allow."""
    schema = json.loads(chart_of(target).files["values.schema.json"])
    return list(_leaves(schema, schema, ""))


@cache
def values(target: str) -> SearchStrategy[Values]:
    """Draw sets of values that stray from the defaults in a few keys."""
    pairs = st.sampled_from(leaves(target)).flatmap(lambda leaf: st.tuples(st.just(leaf[0]), leaf[1]))
    return st.lists(pairs, max_size=6).map(
        lambda drawn: load_values(set_json=[f"{key}={json.dumps(value)}" for key, value in dict(drawn).items()])
    )


def passes(target: str, drawn: Values) -> list[dict[str, Any]]:
    """Return the objects that values make; none when they are refused, each refusal being a line with a place.

    Raises:
        AssertionError: A refusal without a message, or an object that does not fit its schema.
        ChartgenError: The chart refuses what the checks let pass.
    """
    findings = check(chart_of(target), drawn)
    assert all(found.problem.message and "\n" not in str(found) for found in findings), drawn.data
    if any(found.severity == "error" for found in findings):
        return []
    made = objects(render(chart_of(target), RELEASE, NAMESPACE, drawn.data))
    faults = [str(complaint) for thing in made for complaint in objects_fit_their_schema(thing, "1.37")]
    assert faults == [], drawn.data
    return made


def _leaves(node: dict[str, Any], root: dict[str, Any], at: str) -> Iterator[tuple[str, SearchStrategy[Any]]]:
    for key, below in node.get("properties", {}).items():
        place = f"{at}.{key}".lstrip(".")
        below = root["definitions"][below["$ref"].rpartition("/")[2]] if "$ref" in below else below  # noqa: PLW2901
        if key in PARTS or key in LISTS:
            yield from [(place, by_schema(below, root, key))] * _WEIGHT
        elif below.get("properties"):
            yield from _leaves(below, root, place)
        elif key not in _FOR_SUBCHARTS:
            yield place, by_schema(below, root, key)


def provide(cluster: Cluster, data: dict[str, Any]) -> None:
    """Make the account and the queue that values name, which a platform team would have made before."""
    account, queue = data.get("serviceAccount"), (data.get("queue") or {}).get("name")
    needed = [
        ("v1", "ServiceAccount", account, {}),
        ("scheduling.volcano.sh/v1beta1", "Queue", queue, {"spec": {"weight": 1}}),
    ]
    for version, kind, name, rest in needed:
        if name and (kind, name) not in _PROVIDED:
            item = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **rest}
            cluster.apply([item], namespace=NAMESPACE)
            _PROVIDED.add((kind, name))


_PROVIDED: set[tuple[str, str]] = set()


@dataclass
class Tally:
    """What became of the sets of one target, and the sets that went wrong."""

    figures: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def judge(self, target: str, drawn: Values, cluster: Cluster) -> None:
        """Try one set on the checks, on Helm, and on the API server with its webhooks."""
        self.figures["drawn"] += 1
        told = json.dumps(drawn.data, ensure_ascii=False)
        try:
            made = passes(target, drawn)
            provide(cluster, drawn.data if made else {})
            refused = dry_run_refusals(cluster, made, State(RELEASE, NAMESPACE, (), ()))
        except ChartgenError as error:
            self.figures["refused by the chart"] += 1
            self.wrong.append(f"{target}: {told}: refused by the chart: {error}")
        except Exception:  # noqa: BLE001 whatever it is, it is what is looked for
            self.figures["crashed"] += 1
            self.wrong.append(f"{target}: {told}: {traceback.format_exc(limit=-3)}")
        else:
            self.figures["passed" if made else "refused by the checks"] += 1
            if refused:
                self.figures["refused by the API server"] += 1
                self.wrong.append(f"{target}: {told}: refused by the API server: {'; '.join(map(str, refused))}")


def try_some(target: str, count: int, number: int, kubeconfig: Path) -> Tally:
    """Try sets of values of one target, always the same ones for a number."""
    tally = Tally()
    # that the strategies are too large to be printed
    warnings.simplefilter("ignore", HypothesisWarning)
    with connect(kubeconfig=kubeconfig, timeout=60) as cluster:

        @seed(number)
        @settings(
            max_examples=count,
            deadline=None,
            phases=[Phase.generate],
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(values(target))
        def attempt(drawn: Values) -> None:
            tally.judge(target, drawn, cluster)

        attempt()
    return tally


_FIGURES = ("drawn", "passed", "refused by the checks", "refused by the chart", "refused by the API server", "crashed")


def main() -> None:
    """Try values on a real API server with the controllers' kinds.

    Raises:
        SystemExit: With 1, when a set crashed or was refused although it had passed the checks.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=TARGETS)
    parser.add_argument("--count", type=int, default=2000, help="sets of values for each target")
    parser.add_argument("--seed", type=int, default=0, help="another one draws other sets")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    engine_build.build_engines(engines.engine_table())
    wrong: list[str] = []
    with ControlPlane() as plane, ProcessPoolExecutor(asked.processes) as pool:
        start_controllers(plane, ("cloud-kinds", "jobset", "kueue", "volcano", "training-operator"))
        plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        for target in asked.targets:
            begun = time.monotonic()
            shares = [len(range(number, asked.count, asked.processes)) for number in range(asked.processes)]
            tries = [
                pool.submit(try_some, target, share, asked.seed * asked.processes + number, plane.kubeconfig)
                for number, share in enumerate(shares)
                if share
            ]
            tallies = [each.result() for each in tries]
            total = sum((each.figures for each in tallies), Counter[str]())
            figures = ", ".join(f"{total[name]} {name}" for name in _FIGURES)
            print(f"{target}: {figures}; {time.monotonic() - begun:.0f} s, seed {asked.seed}", flush=True)  # noqa: T201
            wrong += [each for tally in tallies for each in tally.wrong]
    print("\n".join(wrong))  # noqa: T201
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
