"""References in a chart's JSON Schemas that lead out of them: Helm and Python would fetch what they name.

A `$ref` may name any URL or file. Whoever renders the chart sends the request or reads the file, a server that never
answers stops the render, and a device has no end. Nothing is fetched here: such a schema is a finding, and is not used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urldefrag, urljoin

from chartgen.errors import Problem
from chartgen.findings import Finding

RULE = "schema-refers-to-itself"
NAME = "values.schema.json"

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# The dialects that Helm's validator carries (santhosh-tekuri/jsonschema @ 89d3b9e, draft.go, draftFromURL);
# without a draft it is the newest. Others it fetches.
_DIALECT = re.compile(r"https?://json-schema\.org/(?:draft-0[467]/|draft/20(?:19-09|20-12)/)?schema#?")
_HINT = "copy what it needs into `definitions` of this file, and refer to it with `#/definitions/...`"


def foreign_references(schemas: Mapping[str, str]) -> Iterator[Finding]:
    """Find references that lead out of a schema, and schemas that cannot be read to tell.

    Args:
        schemas: Path -> text of each schema file of a chart and of its subcharts.
    """
    for path, text in schemas.items():
        try:
            schema = json.loads(text)
            found = sorted(set(_foreign(schema, "", _own(schema))))
        except (ValueError, RecursionError) as error:
            problem = Problem(f"cannot be read as JSON: {error}"[:200], path, 1, hint="mend the file")
            yield Finding(RULE, problem)
            continue
        for reference in found:
            line = text.count("\n", 0, max(text.find(json.dumps(reference)), 0)) + 1
            message = (
                f"refers to {reference[:200]}, which whoever renders the chart would fetch; the schema is not used"
            )
            yield Finding(RULE, Problem(message, path, line, hint=_HINT))


def _own(schema: Any) -> set[str]:
    """Return the names under which the file itself can be referred to."""
    return {"", *(urldefrag(each)[0] for each in _ids(schema, ""))}


def _ids(node: Any, base: str) -> Iterator[str]:
    if isinstance(node, dict):
        base = _base(node, base)
        yield base
    for child in _children(node):
        yield from _ids(child, base)


def _foreign(node: Any, base: str, own: set[str]) -> Iterator[str]:
    """Walk all of a schema: a reference may lead to any part of it, whatever keyword that part stands under."""
    if isinstance(node, dict):
        base = _base(node, base)
        for keyword in _REFERENCES:
            target = node.get(keyword)
            if isinstance(target, str) and urldefrag(urljoin(base, target))[0] not in own:
                yield target
        dialect = node.get("$schema")
        if isinstance(dialect, str) and not _DIALECT.fullmatch(dialect):
            yield dialect
    for child in _children(node):
        yield from _foreign(child, base, own)


def _base(node: dict[str, Any], base: str) -> str:
    named = node.get("$id", node.get("id"))
    return urljoin(base, named) if isinstance(named, str) else base


def _children(node: Any) -> Iterator[Any]:
    return iter(node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
