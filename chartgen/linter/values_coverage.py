"""README and schema match the values: each value of a chart is documented, described and used."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chartgen.composer.origin import Composed, Foreign, origin_of
from chartgen.composer.values import value_rows
from chartgen.findings import Finding
from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart
from chartgen.helm.yaml import Document, Keys, load, read_text
from chartgen.linter.dependencies import dependency_keys, subchart_keys
from chartgen.linter.documents import head_of, schema_of, values_of
from chartgen.linter.machines import unknown_keys
from chartgen.linter.rules import UNIQUE
from chartgen.linter.sources import fragment_texts, is_users

_INCLUDED = re.compile(r"\b(?:include|template)\s+[\"`]([^\"`]+)[\"`]")
_DEFINED = re.compile(r"\bdefine\s+[\"`]([^\"`]+)[\"`]")
# For every chart; a parent's condition for a chart; CRDs that many projects add to a released chart only.
_FREE = ("global", "enabled", "installCRDs")
# All values at once, as in `toYaml .Values`: then any key may be used.
_ALL_VALUES = re.compile(r"\.Values(?![\w.])|\.AsMap|index\s+\.Values")


def documents(chart: Chart) -> Iterator[Finding]:
    """Check the keys of values.yaml: no duplicates; templates use the top-level keys, README and schema name them.

    README and schema of a target's chart are generated: there the user's own fragments are checked, their values and
    the keys of `fabric` that their templates read.
    """
    origin = origin_of(chart)
    if not isinstance(origin, Foreign):
        yield from _own_values(chart, origin) if isinstance(origin, Composed) and not origin.setup else ()
        return
    values = values_of(chart)
    if values is None:
        return
    yield from (Finding(UNIQUE, problem) for problem in values.overwritten)
    if not isinstance(values.data, dict):
        return
    templates = "\n".join(text for path, text in chart.files.items() if "templates/" in path)
    # values.yaml and other files may contain templates, for `tpl`
    others = "\n".join(text for path, text in chart.files.items() if not path.endswith(".md"))
    free = {*_FREE, *subchart_keys(chart), *dependency_keys(chart)}
    described = schema_of(chart).get("properties")
    # a definition of a packed or missing subchart sees the chart's values, as templates of library charts do
    includes_others = not set(_INCLUDED.findall(templates)) <= set(_DEFINED.findall(templates))
    # a chart of values alone is a patch of another chart
    is_patch = not templates and free == {*_FREE}
    all_used = is_patch or includes_others or bool(_ALL_VALUES.search(templates))
    # the chart around this one has its defaults in .Values.NAME, where this one's definitions may read them
    name = re.escape(str(head_of(chart).get("name")))
    paths = {*re.findall(r"\.Values\.(\w+)", others), *re.findall(rf"\.Values\.{name}\.(\w+)", templates)}
    for key in values.data.keys() - free:
        used = all_used or key in paths or f'"{key}"' in templates
        if not used and not _is_repeated(key, chart.files["values.yaml"]):
            yield _about("values-are-used", values, key, "no template uses it", "remove it")
        if "README.md" in chart.files and not re.search(rf"\b{re.escape(key)}\b", chart.files["README.md"]):
            yield _about("readme-names-values", values, key, "the README does not name it", "describe it there")
        if isinstance(described, dict) and key not in described:
            yield _about("schema-describes-values", values, key, "the schema does not describe it", "add it there")


def _is_repeated(key: str, text: str) -> bool:
    """Report whether other values of the file repeat the value of a top-level key, or a part of it, by an alias."""
    part = re.search(rf"(?ms)^{re.escape(key)}:.*?(?=^\w|\Z)", text)
    anchors = re.findall(r"\s&([\w-]+)", part[0]) if part else []
    return bool(anchors) and not {*anchors}.isdisjoint(re.findall(r"\s\*([\w-]+)", text))


def _own_values(chart: Chart, origin: Composed) -> Iterator[Finding]:
    """Check the values of the user's fragments: a comment describes each, and a template or a rule reads it."""
    yield from unknown_keys(origin)
    listed = fragment_texts(fragment.path for fragment in origin.target.every_fragment)
    files = [path for path in listed if path.name == "values.yaml" and is_users(path)]
    if not files:
        return
    own = [load(gotemplate.mask(read_text(path)), path) for path in files]
    texts = [text for path, text in chart.files.items() if "templates/" in path]
    # what only other workload kinds or the setup chart read
    read = "\n".join(texts + [read_text(path) for path in listed if path.name != "values.yaml"])
    values = load(chart.files["values.yaml"], "values.yaml")
    for row in value_rows(chart.files["values.yaml"], values):
        for file in [document for document in own if document.span(row.keys)]:
            if not row.meaning:
                hint = "write the line '# -- PURPOSE' above it"
                yield _about("readme-names-values", file, row.key, "has no description", hint, row.keys)
            if not _is_read(row.keys, read):
                yield _about("values-are-used", file, row.key, "no template uses it", "remove it", row.keys)


def _is_read(keys: Keys, text: str) -> bool:
    """Report whether a text names the last of the keys, or reads a map that contains it as a whole."""
    names = [re.escape(str(key)) for key in keys]
    maps = (r"\.".join(names[:depth]) for depth in range(1, len(names)))
    return bool(re.search(rf"[.\"'`]{names[-1]}\b", text)) or any(
        re.search(rf"\.Values\.{each}(?![\w.])", text) for each in maps
    )


def _about(rule: str, values: Document, key: str, message: str, hint: str, at: Keys = ()) -> Finding:
    return Finding(rule, values.problem(f"{key}: {message}", at or (key,), hint), "warning", key)
