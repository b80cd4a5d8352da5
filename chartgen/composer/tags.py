"""Fill in the composer's own tags, `<% %>`, `<%= %>` and `<%# %>`, with jinja2; Go templates are unchanged.

Tags know facts as plain data: from a library of a stranger, no tag reaches a file or an object of Python. Marks at the
ends of lines lead from a composed chart back to its sources.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from chartgen.composer.fragment import Fragment
from chartgen.composer.target import Target
from chartgen.composer.workload import Workload
from chartgen.errors import ChartgenError, Problem
from chartgen.helm.yaml_nodes import text_scalar

if TYPE_CHECKING:
    from jinja2 import Environment, Template

_MACHINE = "name gpus gpu peak capacity labels taints fabric"
_CONTRACT = "reports links device devices why refuted_by"
_FRAGMENT = "name description requires conflicts workloads gpu_only when transport privileges sub_paths sources"
# not `parts`, which reads files: it is a function of its own
_LAUNCHER = (
    "name description task processes program own_program image default_image same_as precisions owns defaults settings"
    " own_model step_line sources"
)
_KIND = "name container api kind starts rank_label port requires extends client_side privileges"
_TARGET = "name description platform kubernetes chosen sources links"
_json = json.JSONEncoder().encode  # as json.dumps, which looks for options at each call
# A character that is not in any source: YAML and Go templates reject it. Only the composer sees it.
_MARK = re.compile("\x01([0-9]+)\x01")


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
    try:
        return _template(text, trusted=trusted).render(context).encode().decode()
    except ChartgenError:
        raise
    except Exception as error:  # noqa: BLE001  an expression can raise any Python error
        from jinja2 import TemplateSyntaxError

        line = error.lineno if isinstance(error, TemplateSyntaxError) else _line(error)
        raise ChartgenError(Problem(_sentence(error), path, line)) from None


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
    if trusted:  # facts are maps, where jinja2 looks for an attribute first: a tenth of a chart's time
        usual = environment.getattr
        environment.getattr = lambda obj, attribute: (  # type: ignore[method-assign]
            obj[attribute] if type(obj) is dict and attribute in obj else usual(obj, attribute)
        )
    environment.filters["quoted"] = _json
    environment.filters["scalar"] = text_scalar
    environment.filters["item"] = _item
    environment.filters["flow"] = _flow_map
    environment.filters["cell"] = lambda text: str(text).replace("|", "\\|")
    return environment


@lru_cache(maxsize=256)
def _template(text: str, *, trusted: bool) -> Template:
    template = _environment(trusted=trusted).from_string(text)
    template.globals = dict(template.globals)  # each rendering copies them, and a chain of maps is slow to copy
    return template


def _flow_map(table: Mapping[str, object], indent: int = 0) -> str:
    """Return a map as YAML in braces below a key at this indent, in lines of at most 150 characters where keys fit."""
    return _flow_text(_json(table), indent)


@lru_cache(maxsize=1024)
def _flow_text(table: str, indent: int) -> str:
    lines = [""]
    for key, value in json.loads(table).items():
        item = f"{text_scalar(key)}: {_json(value)}"
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


def target_facts(target: Target) -> dict[str, Any]:
    """Return what tags may know of a target, its machines, fragments and launchers."""
    machines = {name: _named(machine, _MACHINE) for name, machine in target.machines.items()}
    launchers = [_named(launcher, _LAUNCHER) for launcher in target.launchers]
    return {
        **_named(target, _TARGET),
        "machines": machines,
        "default_machine": machines[target.default_machine.name],
        "fragments": list(map(_fragment_facts, target.fragments)),
        "launchers": launchers,
        "default_launcher": launchers[0],
    }


def kind_facts(kind: Workload) -> dict[str, Any]:
    """Return what tags may know of a workload kind."""
    return _named(kind, _KIND)


def _fragment_facts(fragment: Fragment) -> dict[str, Any]:
    contract = fragment.contract and _named(fragment.contract, _CONTRACT)
    return {**_named(fragment, _FRAGMENT), "provides": sorted(fragment.provides), "contract": contract}


def _named(value: object, names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names.split()}


class FragmentLine(NamedTuple):
    """A line of a fragment, workload kind or launcher."""

    path: Path
    line: int


class LineMarks:
    """Marks at the ends of source lines that survive the composer's joining, indenting and filling in."""

    def __init__(self) -> None:
        self._sources: list[FragmentLine] = []

    def marked(self, text: str, path: Path, first: int = 1) -> str:
        """Mark the lines of a text.

        Args:
            text: The text; lines of the composer's own blocks are not marked, since text after them is cut off.
            first: 1-based line of the text's start in the file.
        """
        lines, inside = text.split("\n"), False
        for index, line in enumerate(lines):
            bare = re.sub(r"<%=[^%\n]*%>", "", line)
            if line.strip() and not inside and "<%" not in bare and "\x01" not in line:
                lines[index] = f"{line}\x01{len(self._sources)}\x01"
                self._sources.append(FragmentLine(path, first + index))
            inside = bare.rfind("<%") > bare.rfind("%>") if "<%" in bare else inside and "%>" not in bare
        return "\n".join(lines)

    def read(self, text: str) -> list[tuple[str, FragmentLine | None]]:
        """Return the lines of a composed text, each with its source; None for lines that the composer wrote."""
        return [(_MARK.sub("", line), self._source(line)) for line in text.split("\n")]

    def _source(self, line: str) -> FragmentLine | None:
        found = _MARK.search(line)
        return self._sources[int(found[1])] if found else None
