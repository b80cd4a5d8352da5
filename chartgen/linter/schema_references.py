"""References in a chart's JSON Schemas that lead out of them: Helm and Python would fetch their targets.

A `$ref` can name any URL or file. Whoever renders the chart sends the request or reads the file; a server that never
answers blocks the render, and a device never ends. Nothing is fetched here: such a schema is reported and not used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from chartgen.errors import Problem
from chartgen.findings import Finding, Rule

FOREIGN = Rule(
    "schema-refers-to-itself",
    "A JSON Schema of the chart or of a subchart refers to a URL or a file, which rendering the chart would fetch.",
    "copy what it refers to into the schema's definitions; until then the schema is not used",
    "santhosh-tekuri/jsonschema v6, the validator of Helm",
)

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
# The dialects that Helm's validator bundles (santhosh-tekuri/jsonschema @ 89d3b9e, draft.go, draftFromURL);
# without a draft it uses the newest, and it fetches all others.
_DIALECT = re.compile(r"https?://json-schema\.org/(?:draft-0[467]/|draft/20(?:19-09|20-12)/)?schema#?")
_ABSOLUTE = re.compile(r"[a-z]+:[!-~]+")
_HINT = "copy the target into `definitions` of this file, and refer to it with `#/definitions/...`"


def foreign_references(schemas: Mapping[str, str]) -> Iterator[Finding]:
    """Find references that lead out of a schema, and schemas that cannot be read."""
    for path, text in schemas.items():
        try:
            schema = json.loads(text)
            found = sorted(set(_foreign(schema, _own(schema))))
        except (ValueError, RecursionError) as error:
            problem = Problem(f"cannot be read as JSON: {error}"[:200], path, 1, hint="correct the file")
            yield Finding(FOREIGN.id, problem)
            continue
        for _, (reference, *more) in groupby(found, lambda each: each.partition("#")[0]):
            line = text.count("\n", 0, max(text.find(json.dumps(reference)), 0)) + 1
            name = f"{reference[:200]}{f' and {len(more)} other parts' if more else ''}"
            message = f"refers to {name}, which whoever renders the chart may fetch; the schema is not used"
            yield Finding(FOREIGN.id, Problem(message, path, line, hint=_HINT))


def _own(schema: Any) -> set[str]:
    """Return the names, spelled exactly so, by which Helm's validator knows parts of the file.

    Those are the identifiers of the schema and of its definitions. It knows no other: not by a keyword of another
    draft, beside a `$ref` of an old one, or under `enum` (santhosh-tekuri/jsonschema v6, draft.go and roots.go).
    """
    if not isinstance(schema, dict):
        return {""}
    dialect = str(schema.get("$schema", ""))
    named, old = ("id" if "draft-04" in dialect else "$id"), "json-schema.org/draft-0" in dialect
    tables = [schema.get("definitions"), None if old else schema.get("$defs")]
    parts = [part for table in tables if isinstance(table, dict) for part in table.values()]
    # a definition with a dialect of its own is read by that
    parts = [part for part in parts if isinstance(part, dict) and "$schema" not in part]
    known = [part.get(named) for part in (schema, *parts) if not (old and "$ref" in part)]
    names = {name.partition("#")[0] for name in known if isinstance(name, str)}
    whole = {name for name in names if _ABSOLUTE.fullmatch(name)}
    return {
        "",
        *whole,
        *(name.rpartition("/")[2] for name in whole if name == str(schema.get(named)).partition("#")[0]),
    }


def _foreign(node: Any, own: set[str]) -> Iterator[str]:
    """Walk the whole schema, because a reference may point to any part of it, below any keyword."""
    if isinstance(node, dict):
        for keyword in _REFERENCES:
            target = node.get(keyword)
            if isinstance(target, str) and target.partition("#")[0] not in own:
                yield target
        dialect = node.get("$schema")
        if isinstance(dialect, str) and not _DIALECT.fullmatch(dialect):
            yield dialect
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        # Below another identifier, a relative name is resolved differently.
        moved = isinstance(child, dict) and not {"id", "$id"}.isdisjoint(child)
        yield from _foreign(child, {name for name in own if not name or ":" in name} if moved else own)
