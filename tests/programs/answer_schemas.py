"""The JSON answers of all commands: name and version -> content. `schemas/output` has a JSON Schema for each."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Mapping
from datetime import datetime
from inspect import getsource
from pathlib import Path
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from chartgen.answers import answer_key, record_members

# The content of an answer: a type, an array as [shape], or an object as {key: shape}.
Shape: TypeAlias = Any

_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    Path: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},  # null for NaN and infinity, which JSON does not have
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {},
}
# A record's field, described by the lines of comment above it or at the end of its line, or in a public docstring.
_FIELD = re.compile(r"((?:^    # .*\n)*)^    (\w+): [^#\n]*?(?:  # (.*))?$", re.MULTILINE)
_ARGUMENT = re.compile(r"^ {8}(\w+): (.+(?:\n {12}.+)*)", re.MULTILINE)


def shapes() -> dict[str, Shape]:
    """Return the content of every answer; a changed meaning or a removed key needs a new version."""
    return {**_of_charts(), **_of_estimates(), **_of_releases(), **_of_machines()}


def answer_schemas() -> dict[str, str]:
    """Return the JSON Schemas, file name -> text."""
    return {
        f"{name.replace('/', '.')}.schema.json": json.dumps(answer_schema(name, shape), indent=2) + "\n"
        for name, shape in shapes().items()
    }


def _of_charts() -> dict[str, Shape]:
    from chartgen.composer.describe import FragmentFacts, LauncherFacts, PresetFacts, WorkloadFacts
    from chartgen.composer.library import ListRow
    from chartgen.findings import Level, Severity
    from chartgen.linter.selection import BASELINE
    from chartgen.reports import FINDINGS, FindingRow

    machine = {"name": str, "gpus": int, "gpu": str}
    return {
        FINDINGS: {"findings": [FindingRow]},
        BASELINE: {"findings": [{"rule": str, "path": str, "message": str, "count": int}]},
        "fragment/v1": FragmentFacts,
        "launcher/v1": LauncherFacts,
        "preset/v1": PresetFacts,
        "list/v1": {"kind": str, "items": [ListRow]},
        "rules/v1": {"rules": [{"rule": str, "level": Level, "severity": Severity, "meaning": str}]},
        "workload/v1": WorkloadFacts,
        "target/v1": {
            "name": str,
            "description": str,
            "workload": str,
            "extends": [str],
            "own": dict[str, list[str]],
            "machines": [machine],
            "launchers": [str],
            "slots": dict[str, list[str]],
        },
    }


def _of_estimates() -> dict[str, Shape]:
    from chartgen.checks.published import Figure
    from chartgen.checks.speed import Budget
    from chartgen.estimator import Range, StepTime

    layout = {
        "place": int,
        "parallelism.tensor": int,
        "parallelism.pipeline": int,
        "parallelism.virtualPipeline": int,
        "parallelism.context": int,
        "parallelism.expert": int,
        "parallelism.expertTensor": int,
        "parallelism.sequence": bool,
        "batch.micro": int,
        "recompute": str,
        "sharded": bool,
        "dataParallel": int,
        "microBatches": int,
        "memoryGigabytes": float,
        "memoryShare": float,
        "stepSeconds": float | None,
        "own": bool,
    }
    speed = {
        "target": str,
        "machineType": str,
        "gpu": str,
        "gpus": int,
        "tokensPerStep": int,
        "stepSeconds": Range | None,
        "tokensPerSecondPerGpu": Range | None,
        "tflopsPerGpu": Range | None,
        "mfu": Range | None,
        "made": StepTime | None,
        "unmeasured": [str],
        "reason": str,
        "published": Figure | None,
        "budget": Budget | None,
        "chosen": dict[str, Any],
        "why": str,
    }
    return {
        "estimate/v1": speed,
        "estimates/v1": {"estimates": [speed]},
        "layouts/v1": {"layouts": [layout], "found": int, "published": Figure | None},
    }


def _of_releases() -> dict[str, Shape]:
    from chartgen.releases.diff import Change
    from chartgen.releases.helm_release import Release
    from chartgen.releases.preflight.context import Diagnosis
    from chartgen.releases.preview import LostWork
    from chartgen.releases.status.overview import Glance
    from chartgen.releases.status.readout import Readout
    from chartgen.releases.status.stacks import StackGroup
    from chartgen.releases.survival import Survival
    from chartgen.releases.uninstall import Removal
    from chartgen.releases.why.explanation import Explanation

    effect = {"changes": [Change], "effect": str, "survival": Survival | None, "losses": [LostWork]}
    revision = {
        "revision": int,
        "updated": datetime,
        "status": str,
        "chart": str,
        "run": str,
        "description": str,
    }
    return {
        "diagnoses/v1": {"diagnoses": [Diagnosis]},
        "diff/v1": effect,
        "explanation/v1": Explanation,
        "history/v1": {"revisions": [revision]},
        "releases/v1": {"at": datetime, "releases": [Glance]},
        "removal/v1": Removal,
        "rollout/v1": {"action": str, "release": Release | None, "run": str, **effect},
        "stacks/v1": {"groups": [StackGroup]},
        "status/v1": Readout,
    }


def _of_machines() -> dict[str, Shape]:
    from chartgen.metrics.read.readers.nccl import Bandwidth
    from chartgen.metrics.show.compare import Comparison
    from chartgen.metrics.show.export import NAME, SHAPE
    from chartgen.rehearsal.engines import EngineStatus
    from chartgen.rehearsal.local_pod import Execution
    from chartgen.rehearsal.rehearse import Rehearsal
    from chartgen.rehearsal.sandbox import Sandbox

    return {
        "bandwidths/v1": {"best": [Bandwidth], "rows": [Bandwidth]},
        "engines/v1": {"engines": [EngineStatus]},
        "execution/v1": Execution,
        NAME: {**SHAPE, "baseline": Comparison | None},
        "rehearsal/v1": Rehearsal,
        "sandboxes/v1": {"sandboxes": [Sandbox]},
    }


def answer_schema(schema: str, shape: Shape) -> dict[str, Any]:
    """Return the JSON Schema of an answer: closed, and every key is always there."""
    found = _schema(shape)
    properties = {"schema": {"const": f"chartgen/{schema}"}, **found["properties"]}
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": f"chartgen {schema}"}
    return {**head, **found, "properties": properties, "required": [*properties]}


def _schema(shape: Shape) -> dict[str, Any]:
    if isinstance(shape, dict):
        return _object({key: _schema(each) for key, each in shape.items()})
    if isinstance(shape, list):
        return {"type": "array", "items": _schema(shape[0])}
    if shape in _SCALARS:
        return _SCALARS[shape]
    origin: Any = get_origin(shape)
    return _record(shape) if origin is None else _generic(origin, get_args(shape))


def _generic(origin: Any, inner: tuple[Any, ...]) -> dict[str, Any]:
    if origin is Literal:
        return {"enum": [*inner]}
    if origin in (Union, types.UnionType):
        return _or_null(_schema(inner[0]))  # of X | None, the only unions
    if issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(inner[1])}
    return _schema([inner[0]])  # of a list, a tuple or a frozenset


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(schema.get("type"), str) and schema["type"] in {"string", "integer", "boolean"}:
        return {**schema, "type": [schema["type"], "null"]}
    return schema if "null" in schema.get("type", ()) else {"anyOf": [schema, {"type": "null"}]}


def _record(record: type) -> dict[str, Any]:
    """Return the schema of a record; its comments or its docstring describe the keys."""
    descriptions: dict[str, str] = {}
    for each in (each for each in reversed(record.__mro__) if each.__module__.startswith("chartgen.")):
        found = [(name, at_end or above.replace("#", "")) for above, name, at_end in _FIELD.findall(getsource(each))]
        for name, text in (*found, *_ARGUMENT.findall(each.__doc__ or "")):
            if plain := " ".join(text.split()).replace("None", "null"):
                descriptions[name] = plain[0].upper() + plain[1:] + "." * (not plain.endswith("."))
    hints, properties = get_type_hints(record, localns={"Path": Path}), {}
    for name, default in record_members(record).items():
        schema = _schema(hints[name])
        described = {"description": descriptions[name]} if name in descriptions else {}
        properties[answer_key(name)] = {**described, **(_or_null(schema) if default == "" else schema)}
    return _object(properties)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
