"""Slot files: what may stand in each, how its items are told apart, and how several fragments share one slot.

A slot file is named after the Kubernetes API field that it fills. Its identity key is the field's `patchMergeKey` in
the Kubernetes API (k8s.io/api core/v1 types), so that two fragments clash exactly where kubectl would merge.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from chartgen import gotemplate
from chartgen.errors import ChartgenError, Problem
from chartgen.yamltext import Document, Plain, load, type_name


@dataclass(frozen=True)
class SlotKind:
    """What a slot file holds: shape `list`, `map`, `shell` or `template`, and the key that tells list items apart."""

    shape: str
    key: str = ""


SLOTS: dict[str, SlotKind] = {
    "volumes.yaml": SlotKind("list", "name"),
    "initContainers.yaml": SlotKind("list", "name"),
    "containers.yaml": SlotKind("list", "name"),
    "resourceClaims.yaml": SlotKind("list", "name"),
    "tolerations.yaml": SlotKind("list"),
    "affinity.yaml": SlotKind("map"),
    "nodeSelector.yaml": SlotKind("map"),
    "podAnnotations.yaml": SlotKind("map"),
    "podLabels.yaml": SlotKind("map"),
    "podSpec.yaml": SlotKind("map"),
    "env.yaml": SlotKind("list", "name"),
    "volumeMounts.yaml": SlotKind("list", "mountPath"),
    "resourceLimits.yaml": SlotKind("map"),
    "securityContext.yaml": SlotKind("map"),
    "beforeLaunch.sh": SlotKind("shell"),
    "labels.yaml": SlotKind("map"),
    "annotations.yaml": SlotKind("map"),
    "workloadSpec.yaml": SlotKind("map"),
    "validate.tpl": SlotKind("template"),
    "helpers.tpl": SlotKind("template"),
}


@dataclass(frozen=True)
class Segment:
    """A stretch of a slot file that stands or falls as a whole: an item, or a Go block with all items in it.

    Args:
        text: Its lines, ending in a newline.
        line: 1-based line where it begins.
        keys: (identity, line) of each item whose identity is known before Helm runs.
        always: Whether it is an item outside of any Go block.
    """

    text: str
    line: int
    keys: tuple[tuple[str, int], ...]
    always: bool = False


@dataclass(frozen=True)
class SlotText:
    """One slot file of one fragment, parsed."""

    slot: str
    fragment: str
    path: Path
    segments: tuple[Segment, ...]


def parse_slot(slot: str, fragment: str, path: Path, text: str) -> SlotText:
    """Check one slot file and cut it into segments.

    Raises:
        ChartgenError: Unbalanced blocks, YAML that does not parse once masked, a wrong shape, an item without its
            identity key, two items of one identity, or an item that does not start in column 1.
    """
    text = text if text.endswith("\n") or not text else text + "\n"
    problems = gotemplate.check_blocks(text, path)
    if problems:
        raise ChartgenError(problems)
    kind = SLOTS[slot]
    if kind.shape in ("shell", "template"):
        return SlotText(slot, fragment, path, (Segment(text, 1, ()),))
    problems += _check_indents(text, path)
    repeats = "{{- else" in text or "{{ else" in text
    document = load(gotemplate.mask(text), path, allow_duplicates=repeats)
    problems += _check_shape(kind, slot, document)
    if problems:
        raise ChartgenError(problems)
    segments = tuple(_segments(kind, text, document))
    if repeated := _repeats(segments, path):
        raise ChartgenError(repeated)
    return SlotText(slot, fragment, path, segments)


def resolve(texts: Iterable[SlotText]) -> list[tuple[SlotText, list[Segment]]]:
    """Share one slot among fragments: equal definitions collapse into the first, different ones are an error.

    Raises:
        ChartgenError: Two fragments define one key differently; both places are named.
    """
    owners: dict[str, tuple[SlotText, Segment, int]] = {}
    kept: list[tuple[SlotText, list[Segment]]] = []
    problems = []
    for text in texts:
        segments = []
        for segment in text.segments:
            rivals = [owners[key] for key, _ in segment.keys if key in owners and owners[key][0] is not text]
            if rivals and all(rival[1].text == segment.text for rival in rivals):
                continue
            problems += [_clash(text, key, line, owners) for key, line in segment.keys if key in owners and rivals]
            segments.append(segment)
            for key, line in segment.keys:
                owners.setdefault(key, (text, segment, line))
        kept.append((text, segments))
    if problems:
        raise ChartgenError(problems)
    return kept


def _clash(text: SlotText, key: str, line: int, owners: dict[str, tuple[SlotText, Segment, int]]) -> Problem:
    first, _, first_line = owners[key]
    message = f"{key!r} is defined differently by fragment {first.fragment} ({first.path}:{first_line})"
    return Problem(message, text.path, line, 1, "make both equal, rename one, or list only one of the fragments")


def _repeats(segments: Iterable[Segment], path: Path) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for key, line in (pair for segment in segments if segment.always for pair in segment.keys):
        if key in first:
            problems.append(Problem(f"{key!r} is already in line {first[key]}", path, line, 1, "keep one of the two"))
        first.setdefault(key, line)
    return problems


def _check_indents(text: str, path: Path) -> list[Problem]:
    """Find actions that print several lines of YAML into a column that is not the composer's."""
    hint = "end it in '| nindent <%= indent + N %>', N being the column in this file"
    problems = []
    for action in gotemplate.actions(text):
        words = gotemplate.last_stage(action).split()
        if words[:1] in (["toYaml"], ["tpl"]):
            problems.append(Problem(f"{words[0]} without nindent", path, action.line, action.column, hint))
        elif words[:1] in (["nindent"], ["indent"]) and "<%=" not in action.text:
            problems.append(Problem(f"{words[0]} without <%= indent %>", path, action.line, action.column, hint))
    return problems


def _check_shape(kind: SlotKind, slot: str, document: Document) -> list[Problem]:
    data = document.data
    wanted: type = list if kind.shape == "list" else dict
    if data is None:
        return []
    if not isinstance(data, wanted):
        name = "a list of items" if wanted is list else "a map of keys"
        return [document.problem(f"{slot} must hold {name}, not {type_name(data)}")]
    items: Iterable[str | int] = range(len(data)) if wanted is list else data
    problems = []
    for item in items:
        # a list item's own mark stands after its dash, so column 3 is a dash in column 1
        if document.position((item,))[1] != (3 if wanted is list else 1):
            hint = "remove the indentation; the composer indents the whole file"
            problems.append(document.problem("an item must start in column 1", (item,), hint))
    if kind.shape == "list" and kind.key and isinstance(data, list):
        problems += [_missing_key(kind, document, i) for i, item in enumerate(data) if not _identity(kind, item)]
    return problems


def _missing_key(kind: SlotKind, document: Document, index: int) -> Problem:
    return document.problem(f"the item has no {kind.key!r}", (index,), f"{kind.key!r} tells items apart: add it")


def _identity(kind: SlotKind, item: Plain) -> str:
    if not kind.key:
        return str(item)
    value = item.get(kind.key) if isinstance(item, dict) else None
    return value if isinstance(value, str) else ""


def _segments(kind: SlotKind, text: str, document: Document) -> Iterable[Segment]:
    keys: list[tuple[str, int]] = []
    if isinstance(document.data, list):
        keys = [(_identity(kind, item), document.position((i,))[0]) for i, item in enumerate(document.data)]
    elif isinstance(document.data, dict):
        keys = [(key, document.position((key,))[0]) for key in document.data]
    starts = _starts(text, {line for _, line in keys})
    lines = text.splitlines(keepends=True)
    for start, end in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        inside = tuple((k, n) for k, n in keys if start <= n < end and not gotemplate.is_placeholder(k))
        yield Segment("".join(lines[start - 1 : end - 1]), start, inside)


def _starts(text: str, item_lines: set[int]) -> list[int]:
    """Give the lines where a segment begins: an item, or the opening of a block, outside of any block."""
    depths = gotemplate.depths(text)
    openings = {action.line for action in gotemplate.actions(text) if action.word in ("if", "range", "with")}
    starts = [1]
    for line in range(2, len(text.splitlines()) + 1):
        if depths[line - 1] == 0 and (line in item_lines or line in openings):
            previous = text.splitlines()[line - 2].strip()
            # a comment, or an assignment that the item uses, belongs to the item below it
            while previous.startswith(("#", "{{/*", "{{- /*", "{{- $")) and line > starts[-1]:
                line -= 1
                previous = text.splitlines()[line - 2].strip() if line > 1 else ""
            if line > starts[-1]:
                starts.append(line)
    return starts
