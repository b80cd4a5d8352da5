"""README and schema in step with the values: what a chart takes is documented, described and used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from chartgen.errors import ChartgenError
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.helm.yaml import Document, load
from chartgen.linter.dependencies import dependencies
from chartgen.linter.rules import UNIQUE

_INCLUDED = re.compile(r"\b(?:include|template)\s+[\"`]([^\"`]+)[\"`]")
_DEFINED = re.compile(r"\bdefine\s+[\"`]([^\"`]+)[\"`]")
# All values at once, as in `toYaml .Values`: then any key may be used.
_ALL_VALUES = re.compile(r"\.Values(?![\w.])|\.AsMap|index\s+\.Values")


def documents(chart: Chart) -> Iterator[Finding]:
    """Look at the keys of values.yaml: none twice; a template uses the top ones, README and schema name them."""
    try:
        values = load(chart.files.get("values.yaml", ""), "values.yaml", allow_duplicates=True)
    except ChartgenError:
        return  # Helm tells of it
    yield from (Finding(UNIQUE, problem) for problem in values.overwritten)
    if not isinstance(values.data, dict):
        return
    templates = "\n".join(text for path, text in chart.files.items() if "templates/" in path)
    free = {"global", *_dependencies(chart)}
    all_used = bool(_ALL_VALUES.search(templates)) or _includes_others(templates)
    for key in values.data.keys() - free:
        used = all_used or re.search(rf"\.Values\.{re.escape(key)}\b|\"{re.escape(key)}\"", templates)
        if not used:
            yield _about("values-are-used", values, key, "no template uses it", "remove it")
        if "README.md" in chart.files and not re.search(rf"\b{re.escape(key)}\b", chart.files["README.md"]):
            yield _about("readme-names-values", values, key, "the README does not name it", "describe it there")
        if key not in _described(chart, key):
            yield _about("schema-describes-values", values, key, "the schema does not describe it", "add it there")


def _includes_others(templates: str) -> bool:
    """Report whether a template is included that is defined nowhere here: in a subchart that is packed, or missing.

    It sees the chart's values, as templates of library charts do.
    """
    return bool(set(_INCLUDED.findall(templates)) - set(_DEFINED.findall(templates)))


def _described(chart: Chart, key: str) -> set[str]:
    """Return the keys that the schema describes; the key itself where there is no schema, or one of another shape."""
    try:
        schema = json.loads(chart.files.get("values.schema.json", "null"))
    except ValueError:
        return {key}  # Helm tells of it
    found = schema.get("properties") if isinstance(schema, dict) else None
    return set(found) if isinstance(found, dict) else {key}


def _dependencies(chart: Chart) -> set[str]:
    """Return the names under which the values of subcharts stand."""
    named = [each for each in dependencies(chart) if isinstance(each, dict)]
    folders = {path.split("/")[1] for path in chart.files if path.startswith("charts/")}
    return folders | {str(each.get("alias") or each.get("name")) for each in named}


def _about(rule: str, values: Document, key: str, message: str, hint: str) -> Finding:
    return Finding(rule, values.problem(f"{key}: {message}", (key,), hint), "warning", key)
