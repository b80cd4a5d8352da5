"""Values and keys of `fabric` that the templates of a user's fragments read, and that the chart does not have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from chartgen.composer.origin import Composed
from chartgen.errors import Problem, did_you_mean
from chartgen.findings import Finding
from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.yaml import read_text
from chartgen.linter.sources import is_users

RULE = "values-exist"
_TEMPLATES = (".yaml", ".tpl", ".sh")
# A comment and a text in quotes contain no path; what has a default may be absent on purpose, in a fragment for several
# targets.
_PATH = re.compile(
    r"/\*.*|\"[^\"]*\"|`[^`]*`"
    r"|\.(?P<root>Values|fabric)(?P<keys>(?:\.\w+)+)(?P<default>[\s)]*\|\s*default\b)?",
    re.DOTALL,
)


def unknown_names(chart: Chart, origin: Composed) -> Iterator[Finding]:
    """Yield each misspelled value, and each misspelled key of `fabric`, where a template of a user's fragment reads it.

    Args:
        chart: A run chart.
        origin: Its target.
    """
    schema = json.loads(chart.files[SCHEMA_FILE])
    fabric = {key for machine in origin.target.machines.values() for key in machine.fabric}
    folders = [each.path for each in origin.target.fragments if is_users(each.path)]
    for file in [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in _TEMPLATES]:
        for action in gotemplate.actions(read_text(file)):
            for found in _PATH.finditer(action.text):
                keys = (found["keys"] or "").split(".")[1:]
                if not keys or found["default"]:
                    continue
                if found["root"] == "Values":
                    name, known = _unknown(keys, schema)
                    hint = did_you_mean(keys[name.count(".")], known) or "declare it in values.yaml of the fragment"
                    message = f"the chart has no value {name!r}"
                else:
                    name = "" if keys[0] in fabric else f"fabric.{keys[0]}"
                    hint = did_you_mean(keys[0], fabric)
                    # `if` and `with` may ask for a key that only machine types of another target have
                    if action.word in ("if", "with", "else") and not hint.startswith("did"):
                        continue
                    message = f"no machine type has {name!r}"
                if name:
                    yield Finding(RULE, Problem(message, file, action.line, action.column, hint), key=name)


def _unknown(keys: Sequence[str], schema: Mapping[str, Any]) -> tuple[str, set[str]]:
    """Return the path up to the first key that a closed schema does not have, and what it has there; else empty."""
    for depth, key in enumerate(keys, 1):
        known = schema.get("properties", {})
        if key not in known:
            return (".".join(keys[:depth]), set(known)) if schema.get("additionalProperties") is False else ("", set())
        schema = known[key]
    return "", set()
