"""YAML text to a tree of nodes with their places, by the rules of Helm's reader and in bounded time."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from chartgen.errors import ChartgenError, Problem

# A node of ruamel.yaml, whose type hints omit half of a node's attributes.
Node: TypeAlias = Any

# Far beyond any values file, far below Python's recursion limit.
MAX_DEPTH = 100
# The message of only the C parser for `{from: gs://bucket}`, which it rejects because it is older than that syntax.
_OLD_RULE = "found unexpected ':'"
# Text that may be nested too deeply for the C parser's recursion: brackets, or one line of indentation and dashes.
_DEEP_LINE = re.compile(r"^[ \t?:-]{1000}", re.MULTILINE)


def compose_nodes(text: str, path: Path | str) -> Node | None:
    """Parse the one YAML document in a text.

    Args:
        text: YAML.
        path: Its file, for messages.

    Returns:
        The root node; None for an empty document.

    Raises:
        ChartgenError: Syntax error, several documents, or deeper nesting than `MAX_DEPTH`.
    """
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        if text.count("[") + text.count("{") > 1000 or _DEEP_LINE.search(text):
            _refuse_depth(text, path)
        return _tree(text)
    except RecursionError:
        raise ChartgenError(Problem(f"is nested deeper than {MAX_DEPTH} levels", path)) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise ChartgenError(Problem(_syntax(error, text), path, *place)) from None
    except YAMLError as error:
        raise ChartgenError(Problem(" ".join(str(error).split()), path)) from None


def _tree(text: str) -> Node | None:
    from ruamel.yaml.error import MarkedYAMLError

    try:
        return _parser()(text)
    except MarkedYAMLError as error:
        if error.problem != _OLD_RULE:
            raise
        return _compose_slowly(text)


def _syntax(error: Any, text: str) -> str:
    """Describe a syntax error; its context is the start of the damaged part."""
    mark, begin = error.problem_mark, error.context_mark
    if "expected a single document" in str(error.context):
        return "contains more than one YAML document"
    if mark and text[mark.index : mark.index + 1] == "\t":
        return "a tab cannot indent YAML; use spaces"
    since = f" that begins in line {begin.line + 1}" if mark and begin and begin.line != mark.line else ""
    return "invalid YAML: " + " ".join(part for part in (error.problem, error.context) if part) + since


def _compose_slowly(text: str) -> Node | None:
    """Parse in Python, by the rules of YAML 1.1, as go-yaml does."""
    import warnings

    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.version = (1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an anchor may be defined again
        return yaml.compose(text)


@lru_cache(maxsize=1)
def _parser() -> Callable[[str], Node | None]:
    """Return the C parser without ruamel.yaml's additions: plug-ins and unused tags."""
    try:
        from _ruamel_yaml import CParser  # type: ignore[import-not-found]
    except ImportError:  # no wheel of the C parser on this machine
        return _compose_slowly

    class Parser(CParser):  # type: ignore[misc]
        def resolve(self, _kind: object, _value: object, _implicit: object) -> None:
            """Return no tag for a node without its own tag."""

        def descend_resolver(self, _parent: object, _index: object) -> None:
            """Keep no path."""

        def ascend_resolver(self) -> None:
            """Keep no path."""

    return lambda text: Parser(text).get_single_node()


def _refuse_depth(text: str, path: Path | str) -> None:
    """Raise an error for too deep nesting, by the parser's events: composing a too deep tree ends the process."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError

    depth = 0
    with suppress(MarkedYAMLError):  # composing finds the error too, and reports it better
        for event in YAML(typ="safe").parse(text):
            kind = type(event).__name__
            depth += kind in ("SequenceStartEvent", "MappingStartEvent")
            depth -= kind in ("SequenceEndEvent", "MappingEndEvent")
            if depth > MAX_DEPTH:
                raise too_deep(event, path)


def too_deep(place: Any, path: Path | str) -> ChartgenError:
    """Return the error for a node or event that is nested too deeply."""
    mark = place.start_mark
    return ChartgenError(Problem(f"is nested deeper than {MAX_DEPTH} levels", path, mark.line + 1, mark.column + 1))
