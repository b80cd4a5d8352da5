"""The values of a chart with their schema: what users set, joined from the common ones, fragments and launchers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import chain
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from chartgen.composer.chart_tags import COMMON, Tags, indented
from chartgen.composer.definition import file_in, has_file, is_builtin, source_text
from chartgen.composer.launcher import Launcher
from chartgen.composer.policies import values_of
from chartgen.composer.schema import ENCODE, LAUNCHERS, OF_RUNS, ChartSchema, chart_schema, schema_text, setup_schema
from chartgen.composer.target import Target
from chartgen.composer.values import (
    Part,
    ValueRow,
    beside,
    check_parts,
    default_place,
    join_parts,
    top_level_blocks,
    with_defaults,
)
from chartgen.errors import ChartgenError, Problem
from chartgen.helm.schema import SCHEMA_FILE, validate_schema
from chartgen.helm.yaml import load, require_map
from chartgen.helm.yaml_nodes import text_scalar

# What a template reads of the values, as .Values.key, .Values.key.below or index .Values "key".
_READ = re.compile(r'\.Values(?:\.| +")(\w+)(?:\.(\w+))?')
_MODELINE = "# yaml-language-server: $schema=values.schema.json\n"


def interface_of(tags: Tags) -> tuple[dict[str, str], list[ValueRow]]:
    """Compose the values of a chart of runs and their schema.

    Returns:
        Files of the chart, name -> text, and a row for each value.

    Raises:
        ChartgenError: Values without a schema, defaults that break it, text that does not render.
    """
    text, table, schema, _ = _joined(tags)
    return _files(text, schema.text), table


def setup_interface_of(tags: Tags, templates: Iterable[str]) -> dict[str, str]:
    """Compose the values of a setup chart and their schema: it accepts those of its runs, and has what it reads.

    Args:
        tags: Fills in the tags of the values.
        templates: The templates of the chart.

    Returns:
        Files of the chart, name -> text.
    """
    text, _, schema, parts = _joined(tags)
    target = tags.target
    # a user's templates may read theirs in any way
    own = {part.path for part in target.fragments if part.setup and not is_builtin(part.path)}
    read: dict[str, set[str]] = {}
    for key, below in chain.from_iterable(map(_READ.findall, templates)):
        read.setdefault(key, set()).add(below)
    for part in (each for each in parts if each.path.parent in own):
        read |= {str(key): {""} for key in require_map(part.document, "values")}
    read.pop("launchers", None)
    text = "".join(_what_is_read(block, read[key]) for key, block in top_level_blocks(text) if key in read)
    launchers = target.values.get("launchers", {})
    resources = {name: {"resources": own["resources"]} for name, own in launchers.items() if "resources" in own}
    text += f"\n# -- {OF_RUNS}\nlaunchers: {ENCODE(resources)}\n"
    own_schema = setup_schema(schema.data, read, [launcher.name for launcher in target.every_launcher])
    return _files(text, schema_text(own_schema))


def _what_is_read(block: str, below: Collection[str]) -> str:
    """Return the text of a top-level value with those keys below it alone; an empty key is all of them."""
    head, line, rest = re.match(r"((?:#[^\n]*\n|\n)*)([^\n]*\n)(.*)", block, re.DOTALL).groups()  # type: ignore[union-attr]
    if "" in below or not line.endswith(":\n"):
        return block
    kept = "".join(text for key, text in top_level_blocks(dedent(rest)) if key in below)
    return head + line + indent(kept, "  ")


def _joined(tags: Tags) -> tuple[str, list[ValueRow], ChartSchema, list[Part]]:
    """Join the values of a chart of runs: their text, a row for each value, their schema, and the parts."""
    target = tags.target
    folders = [COMMON, *tags.workload.folders, *(fragment.path for fragment in target.fragments)]
    parts = [_part(tags, file_in(folder, "values.yaml")) for folder in folders if has_file(folder, "values.yaml")]
    parts += [
        Part(policy.path, text, text, schema) for policy in target.policies for text, schema in [values_of(policy)]
    ]
    check_parts(parts)
    text = join_parts(parts) + "\nlaunchers:\n"
    for launcher in target.launchers:
        text += f"  {text_scalar(launcher.name)}:\n" + indented(_launcher_values(tags, launcher), 4)
    text, table = with_defaults(text, target.document, _fitting(target))
    schema = chart_schema(target, folders)
    if not is_builtin(target.path):  # chartgen's own are checked by its tests
        _check_defaults(target, text, schema.data, parts)
    return text, table, schema, parts


def _files(text: str, schema: str) -> dict[str, str]:
    return {"values.yaml": _MODELINE + beside(text), SCHEMA_FILE: schema + "\n"}


def _fitting(target: Target) -> dict[str, Any]:
    """Return a target's default values without those of launchers that the chart lacks."""
    left_out = {launcher.name for launcher in target.left_out}
    known = {launcher.name for launcher in target.every_launcher}  # the composer has written the default
    values = {key: value for key, value in target.values.items() if key != "launcher" or value not in known}
    if "launchers" in values:
        values["launchers"] = {name: own for name, own in values["launchers"].items() if name not in left_out}
    return values


def _part(tags: Tags, path: Path) -> Part:
    source = source_text(path)
    return Part(path, source, tags.render(source, path))


def _launcher_values(tags: Tags, launcher: Launcher) -> str:
    paths = [file_in(folder, "values.yaml") for folder in (LAUNCHERS, launcher.path) if has_file(folder, "values.yaml")]
    return "".join(tags.render(source_text(path), path, launcher=launcher) for path in paths)


def _check_defaults(target: Target, text: str, schema: dict[str, Any], parts: list[Part]) -> None:
    from chartgen.helm.values import coalesce

    data = coalesce(require_map(load(text, "values.yaml"), "values.yaml"), {})
    problems = validate_schema(data, schema, lambda keys: default_place(tuple(keys), parts, target.document))
    if problems:
        raise ChartgenError(map(_undescribed, problems))


def _undescribed(problem: Problem) -> Problem:
    """Report an unknown key in a fragment's values with the schema beside it, which may describe it."""
    unknown = problem.message.startswith("unknown key") and Path(problem.path or "").name == "values.yaml"
    if not unknown or problem.hint.endswith("?"):
        return problem
    return problem._replace(hint=f"describe it in {SCHEMA_FILE} beside this file")
