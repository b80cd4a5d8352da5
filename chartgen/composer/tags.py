"""Fill in the composer's own tags, `<% %>`, `<%= %>` and `<%# %>`, with jinja2; Go templates are unchanged."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from chartgen.errors import ChartgenError, Problem
from chartgen.helm.yaml_nodes import text_scalar

if TYPE_CHECKING:
    from jinja2 import Environment, Template


@lru_cache(maxsize=1024)
def _item(text: str) -> str:
    """Return a text as an item of a list, with lines of a readable length."""
    lines = textwrap.wrap(text, 148, break_long_words=False, break_on_hyphens=False)
    return "- " + "\n  ".join(lines)


def fill(text: str, path: Path, context: Mapping[str, object], *, trusted: bool) -> str:
    """Fill in the tags of a text.

    Args:
        context: The names available to tags.
        trusted: Whether the text is chartgen's own; all other texts are filled in inside a sandbox.

    Raises:
        ChartgenError: A tag is malformed, fails, or accesses something outside the sandbox.
    """
    if "<%" not in text:
        return text
    from jinja2 import TemplateSyntaxError

    try:
        return _template(text, trusted=trusted).render(context)
    except ChartgenError:
        raise
    except TemplateSyntaxError as error:
        raise ChartgenError(Problem(_sentence(error), path, error.lineno)) from None
    except Exception as error:  # noqa: BLE001  an expression can raise any Python error
        raise ChartgenError(Problem(_sentence(error), path, _line(error))) from None


@lru_cache(maxsize=2)
def _environment(*, trusted: bool) -> Environment:
    from jinja2 import Environment, StrictUndefined

    make: type[Environment] = Environment
    if not trusted:
        from chartgen.composer.sandbox import TagSandbox

        make = TagSandbox
    environment = make(
        block_start_string="<%",
        block_end_string="%>",
        variable_start_string="<%=",
        variable_end_string="%>",
        comment_start_string="<%#",
        comment_end_string="%>",
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # the output is Helm text, not HTML
    )
    environment.filters["quoted"] = json.dumps
    environment.filters["scalar"] = text_scalar
    environment.filters["item"] = _item
    environment.filters["flow"] = _flow_map
    environment.filters["cell"] = lambda text: str(text).replace("|", "\\|")
    return environment


@lru_cache(maxsize=256)
def _template(text: str, *, trusted: bool) -> Template:
    return _environment(trusted=trusted).from_string(text)


def _flow_map(table: Mapping[str, object], indent: int = 0) -> str:
    """Return a map as YAML in braces below a key at this indent, in lines of at most 150 characters where keys fit."""
    lines = [""]
    for key, value in table.items():
        item = f"{text_scalar(key)}: {json.dumps(value)}"
        if lines[-1] and indent + len(lines[-1]) + len(item) > 140:
            lines.append("")
        lines[-1] += f", {item}" if lines[-1] else item
    pad = ",\n" + " " * (indent + 2)
    return f"{{{pad.join(lines)}}}"


def _sentence(error: Exception) -> str:
    """Return the cause of a failed tag in one line, without a final stop."""
    words = " ".join(str(error).split()).rstrip(".")
    return f"<% %>: {words or type(error).__name__}"


def _line(error: Exception) -> int:
    """Return the line of the text with an error; jinja2 adds it to the traceback like a line of Python."""
    line, frame = 0, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == "<template>":
            line = frame.tb_lineno
        frame = frame.tb_next
    return line
