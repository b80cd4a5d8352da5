"""Objects of all kinds: lint's schemas and tables refuse what a real API server refuses, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from lint_seeds import WEB_SEEDS, plant_web

from chartgen.data.api_schemas import kind_schema, kubernetes_versions
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.program import HelmError
from chartgen.helm.yaml import load_file
from chartgen.kube import NAMESPACE, Cluster, ClusterError
from chartgen.kube.validation import full_name, limited_types, limits_table
from chartgen.linter.api_schemas import objects_fit_their_schema
from chartgen.rehearsal.controlplane import ControlPlane

CASES: Any = load_file(Path(__file__).parents[1] / "data" / "lint" / "objects.yaml").data
NEWEST = kubernetes_versions()[-1]
TYPES = limited_types(NEWEST)
LIMITS = {full_name(name): fields for name, fields in limits_table()["types"].items()}
# Of a change: whether lint, and whether the API server refuses it.
EXPECTED = {"refused": (True, True), "accepted": (False, False), "narrower": (True, False), "left": (False, True)}
_WRAPPED: dict[str, Callable[[Any], Any]] = {
    "items": lambda value: [value],
    "propertyNames": lambda value: {value: "a"},
    "additionalProperties": lambda value: {"a": value},
}


def changed(thing: Any, change: dict[str, Any]) -> Any:
    """Return a copy of an object with other values at some paths; None removes."""
    copy = deepcopy(thing)
    for path, value in change.items():
        *above, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        node = copy
        for key in above:
            node = node[key]
        if isinstance(node, dict) and value is None:
            node.pop(last, None)
        else:
            node[last] = value
    return copy


def refused(cluster: Cluster, thing: dict[str, Any]) -> str:
    """Return why the API server refuses an object; applying finds unknown fields, creating finds repeated items."""
    try:
        kind = cluster.kind(thing["apiVersion"], thing["kind"])
        if kind.namespaced:
            thing = {**thing, "metadata": {**thing["metadata"], "namespace": "refused"}}
        cluster.create(kind, thing, dry_run=True)
        cluster.apply([thing], dry_run=True)
    except ClusterError as error:
        return str(error)
    return ""


def limited(node: Any, schema: dict[str, Any], path: str, met: set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the schema of each limited field of an object, also of fields that it lacks."""
    while "$ref" in schema:
        name, schema = schema["$ref"], TYPES[schema["$ref"]]
        for field in LIMITS.get(name, ()) if name not in met else ():
            yield (path, schema) if field == "*" else (f"{path}.{field}", schema["properties"].get(field, {}))
        met.add(name)
    for key, value in node.items() if isinstance(node, dict) else ():
        below = schema.get("properties", {}).get(key) or schema.get("additionalProperties") or {}
        yield from limited(value, below, f"{path}.{key}", met)
    for index, item in enumerate(node if isinstance(node, list) else ()):
        yield from limited(item, schema["items"], f"{path}.{index}", met)


def values(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield values within a limit and beyond."""
    yield from (*schema["enum"], "Other") if "enum" in schema else ()
    yield from (schema["minimum"], schema["minimum"] - 1) if "minimum" in schema else ()
    yield from (schema["maximum"], schema["maximum"] + 1) if "maximum" in schema else ()
    yield from ("", "-a /b:=") if "pattern" in schema else ()
    yield from ([],) if "minItems" in schema else ()
    for key, wrap in _WRAPPED.items():
        if isinstance(schema.get(key), dict):
            yield from map(wrap, values(schema[key]))


def cases() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Yield what is expected of an object with a change, the object and the change."""
    met: set[str] = set()
    for case in CASES:
        thing = case["object"]
        stated = {key: [_under(case, each) for each in case.get(key, ())] for key in EXPECTED}
        yield from ((key, thing, change) for key in EXPECTED for change in stated[key])
        known = [change for key in ("narrower", "left") for change in stated[key]]
        schema = kind_schema(f"{thing['apiVersion']}/{thing['kind']}", NEWEST)[0]
        assert schema
        yield "accepted", thing, {}
        for path, limit in limited(thing, schema, "", met):
            changes = ({path.lstrip("."): value} for value in values(limit))
            yield from (("", thing, change) for change in changes if change not in known)
    assert not LIMITS.keys() - met


def _under(case: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    return {f"{case['under']}.{path}": value for path, value in change.items()} if "under" in case else change


@pytest.fixture
def cluster(plane: ControlPlane) -> Cluster:
    plane.cluster.apply([{"apiVersion": "v1", "kind": NAMESPACE.name, "metadata": {"name": "refused"}}])
    return plane.cluster


@pytest.mark.engines
def test_the_api_server_refuses_the_seeds_that_are_marked_so(cluster: Cluster, tmp_path: Path) -> None:
    found = {}
    for seed in WEB_SEEDS:
        plant_web(seed, tmp_path / seed["id"])
        with suppress(HelmError):  # one is not YAML
            made = objects(render(Chart.read(tmp_path / seed["id"]), "lint", "refused", {}))
            found[seed["id"]] = next(filter(None, (refused(cluster, thing) for thing in made)), "")
    print(f"compared {len(found)} charts")  # noqa: T201 how many it really compared
    assert [key for key, why in found.items() if why] == [seed["id"] for seed in WEB_SEEDS if seed.get("refused")], (
        found
    )


@pytest.mark.engines
def test_lint_and_the_api_server_refuse_the_same_objects(cluster: Cluster) -> None:
    wrong, count = [], 0
    for expected, thing, change in cases():
        made = changed(thing, change)
        lint = [f"{each.message}; {each.hint}" for each in objects_fit_their_schema(made, NEWEST)]
        server = refused(cluster, made)
        count += 1
        both = bool(lint), bool(server)
        if both != EXPECTED[expected] if expected else both[0] != both[1]:
            wrong.append(f"{thing['kind']} {change} {expected}\n  lint: {lint}\n  server: {server}")
    print(f"compared {count} objects")  # noqa: T201
    assert not wrong, "\n".join(wrong)
