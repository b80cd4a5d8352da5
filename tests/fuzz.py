"""Values at random, by each chart's own schema: nothing crashes, and what passes `check` is refused by nobody.

`make fuzz` tries 2,000 sets for each target on a real API server; tests/test_fuzz.py a few of them without one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from chartgen.chart import Chart
from chartgen.checks import check
from chartgen.cluster import Cluster
from chartgen.composer import compose
from chartgen.library import open_library
from chartgen.linter.kubernetes_schemas import objects_fit_their_schema
from chartgen.manifests import objects, render
from chartgen.rehearsal import build, engines
from chartgen.rehearsal.controllers import start_controllers
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.target import load_target
from chartgen.values import Values, load_values

TARGETS = list(open_library().names("target"))
NAMESPACE = "fuzz"
# Parts of a pod that the charts pass on as they are, and what subcharts would take: their schemas say nothing of them.
_PASSED_ON = ("global", "affinity", "tolerations", "extraVolumes", "extraVolumeMounts")
_WORDS = ("", "a", "no", "1e3", "x y", "ümlaut", '"', "a\nb", "{{ .Values }}", "../x", "$(whoami)", "a" * 70)


@cache
def chart_of(target: str) -> Chart:
    """Compose a target's chart once."""
    return compose(load_target(target))


@cache
def leaves(target: str) -> list[tuple[str, SearchStrategy[Any]]]:
    """Give the keys that a chart takes, each with values that its schema may allow."""
    schema = json.loads(chart_of(target).files["values.schema.json"])
    return list(_leaves(schema, schema, ""))


def values(target: str) -> SearchStrategy[Values]:
    """Draw sets of values that stray from the defaults in a few keys."""
    pairs = st.sampled_from(leaves(target)).flatmap(lambda leaf: st.tuples(st.just(leaf[0]), leaf[1]))
    return st.lists(pairs, max_size=6).map(
        lambda drawn: load_values(set_json=[f"{key}={json.dumps(value)}" for key, value in dict(drawn).items()])
    )


def passes(target: str, drawn: Values) -> list[dict[str, Any]]:
    """Give the objects that values make; none when they are refused, each refusal being a line with a place.

    Raises:
        AssertionError: A refusal without a message, or an object that does not fit its schema.
    """
    findings = check(chart_of(target), drawn)
    assert all(found.problem.message and "\n" not in str(found) for found in findings), drawn.data
    if any(found.severity == "error" for found in findings):
        return []
    made = objects(render(chart_of(target), "my-run", NAMESPACE, drawn.data))
    faults = [str(complaint) for thing in made for complaint in objects_fit_their_schema(thing, "1.36")]
    assert faults == [], drawn.data
    return made


def _leaves(node: dict[str, Any], root: dict[str, Any], at: str) -> Iterator[tuple[str, SearchStrategy[Any]]]:
    node = root["definitions"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
    for key, below in node.get("properties", {}).items():
        if key not in _PASSED_ON and "." not in key:
            yield from _leaves(below, root, f"{at}.{key}".lstrip("."))
    if at and not node.get("properties"):
        yield at, _value(node)


def _value(schema: dict[str, Any]) -> SearchStrategy[Any]:
    """Draw what a schema allows, and sometimes what it does not."""
    kinds = schema.get("type", "string")
    found: list[SearchStrategy[Any]] = [st.sampled_from(schema["enum"])] if "enum" in schema else []
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        found += [_KINDS.get(kind, st.none())]
    if "pattern" in schema and not schema["pattern"].startswith("^$"):
        found.append(st.from_regex(schema["pattern"], fullmatch=True).filter(str.isprintable))
    return st.one_of(*found)


_KINDS: dict[str, SearchStrategy[Any]] = {
    "integer": st.one_of(st.integers(0, 16), st.sampled_from([-1, 64, 1024, 10**6, 2**31, 2**53 + 1])),
    "number": st.floats(0, 100, allow_nan=False),
    "boolean": st.booleans(),
    "string": st.sampled_from(_WORDS),
    "array": st.lists(st.sampled_from(_WORDS[:5]), max_size=2),
    "object": st.dictionaries(st.sampled_from(["a", "b-c", "nvidia.com/gpu"]), st.sampled_from(_WORDS[:5]), max_size=2),
}


def _try_all(target: str, count: int, cluster: Cluster) -> int:
    passed = 0

    @settings(
        max_examples=count,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(values(target))
    def attempt(drawn: Values) -> None:
        nonlocal passed
        if made := passes(target, drawn):
            cluster.apply(made, namespace=NAMESPACE, dry_run=True)
            passed += 1

    attempt()
    return passed


def main() -> None:
    """Try values on a real API server with the controllers' kinds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=TARGETS)
    parser.add_argument("--count", type=int, default=2000)
    asked = parser.parse_args()
    build.build(engines.engines())
    with ControlPlane() as plane:
        start_controllers(plane, ("cloud-kinds", "jobset", "kueue", "volcano", "training-operator"))
        plane.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
        for target in asked.targets:
            passed = _try_all(target, asked.count, plane.cluster)
            sys.stdout.write(f"{target}: {asked.count} sets of values, {passed} passed the checks and the API server\n")


if __name__ == "__main__":
    main()
