"""Slot files: their allowed content, the identity of their items, and how fragments share a slot.

A slot is a field of `pod.yaml`, `container.yaml` or `object.yaml`, or a file of its own name, as all were in the
earlier form of fragments. Its identity key is the field's `patchMergeKey` in the Kubernetes API (k8s.io/api core/v1
types), so that two fragments clash exactly where kubectl would merge. `chartgen/data/slots.json` is the table of slots.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from chartgen.data import DATA
from chartgen.errors import Problem, did_you_mean, refuse
from chartgen.helm import gotemplate
from chartgen.helm.yaml import Document, Plain, load, type_name


class SlotKind(NamedTuple):
    """One slot."""

    shape: str  # its content: `list`, `map`, `shell` or `template`
    meaning: str  # what it fills
    key: str = ""  # the key that identifies list items
    # The keys of an item; empty = all that Kubernetes knows, which lint checks where they are rendered
    keys: tuple[str, ...] = ()
    file: str = ""  # the file of a fragment that has it as a field; empty = the file of the slot's own name
    field: str = ""  # the field, its keys with dots between them

    @property
    def label(self) -> str:
        """Return its file and field as one word, such as pod.spec.volumes; empty where the file has its name."""
        return f"{self.file.removesuffix('.yaml')}.{self.field}" if self.file else ""


SLOTS = {name: SlotKind(**row) for name, row in json.loads((DATA / "slots.json").read_bytes()).items()}
SLOT_FILES = tuple(name for name, slot in SLOTS.items() if not slot.file)


def slot_example(slot: str) -> str:
    """Return a complete file of a slot."""
    return (DATA / "slots" / slot).read_text(encoding="utf-8")


class Segment(NamedTuple):
    """A part of a slot file that is kept or dropped as a whole: an item, or a Go block with all its items."""

    text: str  # its lines, ending in a newline
    line: int  # 1-based line of its start
    keys: tuple[tuple[str, int], ...]  # (identity, line) of each item whose identity is known before Helm runs
    always: bool  # whether it is an item outside of any Go block
    meaning: Plain  # its definition, equal for equal definitions: data, or the text if only Helm knows the data


class SlotText(NamedTuple):
    """One slot of one fragment, parsed."""

    slot: str
    fragment: str
    path: Path  # its file
    segments: tuple[Segment, ...]
    gpu_only: bool  # whether the fragment applies only to pods that use GPUs
    column: int = 0  # number of columns before its items in the file


@lru_cache(maxsize=1024)
def parse_slot(slot: str, fragment: str, path: Path, text: str, *, gpu_only: bool = False) -> SlotText:
    """Check one slot file and split it into segments.

    Args:
        slot: The slot, a key of `SLOTS`.
        gpu_only: Whether the fragment applies only to pods that use GPUs.

    Raises:
        ChartgenError: Unbalanced blocks, YAML that does not parse once masked, a wrong shape, an item without its
            identity key, two items of one identity, or an item that does not start in column 1.
    """
    text = text if text.endswith("\n") or not text else text + "\n"
    problems = gotemplate.check_blocks(text, path)
    refuse(problems)
    kind = SLOTS[slot]
    field = kind.field if path.name == kind.file else ""
    if kind.shape in ("shell", "template"):
        return SlotText(slot, fragment, path, (Segment(text, 1, (), always=False, meaning=text),), gpu_only)
    problems += _check_indents(text, path) + _check_markers(text, path)
    # the branches of a block, or two blocks that exclude each other, may repeat a key
    document = load(gotemplate.mask(text), path, allow_duplicates=bool(_openings(text)))
    problems += _check_shape(kind, field or slot, document, nested=bool(field))
    refuse(problems)
    column = column_of(text, document) if field else 0
    segments = tuple(_segments(kind, text, document, column))
    refuse(_repeats(kind, segments, path))
    return SlotText(slot, fragment, path, segments, gpu_only, column)


def column_of(text: str, document: Document | None = None) -> int:
    """Return the number of columns before the items of a field, or before its first line where Helm makes them all."""
    if document and document.root:
        return int(document.root.start_mark.column)
    first = re.search(r"^ *(?=-)", text, re.MULTILINE) or re.search(r"^ *(?=\S)", text, re.MULTILINE)
    return len(first[0]) if first else 0


def dedented(text: str, column: int) -> str:
    """Return the text of a field without the columns before its items."""
    return re.sub(rf"^ {{0,{column}}}", "", text, flags=re.MULTILINE)


def resolve(texts: Iterable[SlotText]) -> list[tuple[SlotText, list[Segment]]]:
    """Share one slot among fragments: equal definitions are merged into the first, different ones are an error.

    Raises:
        ChartgenError: Two fragments define one key differently; both places are named.
    """
    owners: dict[str, _Owner] = {}
    kept: list[tuple[SlotText, list[Segment]]] = []
    problems = []
    for text in texts:
        segments: list[Segment] = []
        kept.append((text, segments))
        for segment in text.segments:
            rivals = [owners[key] for key, _ in segment.keys if key in owners and owners[key].text is not text]
            if rivals and all(rival.segment.meaning == segment.meaning for rival in rivals):
                if text.gpu_only or not rivals[0].text.gpu_only:
                    continue
                # the first applies only with GPUs, this one always
                rivals[0].kept.remove(rivals[0].segment)
                owners |= {key: _Owner(text, segment, segments, line) for key, line in segment.keys}
            problems += [
                _clash(text, key, line, owners[key]) for key, line in segment.keys if owners.get(key) in rivals
            ]
            segments.append(segment)
            for key, line in segment.keys:
                owners.setdefault(key, _Owner(text, segment, segments, line))
    refuse(problems)
    return kept


class _Owner(NamedTuple):
    """The first definition of a key: its file, its segment, the list that contains the segment, its line."""

    text: SlotText
    segment: Segment
    kept: list[Segment]
    line: int


def _clash(text: SlotText, key: str, line: int, owner: _Owner) -> Problem:
    message = f"{key!r} is defined differently by fragment {owner.text.fragment} ({owner.text.path}:{owner.line})"
    return Problem(message, text.path, line, 1, "make both equal, rename one, or list only one of the fragments")


def _repeats(kind: SlotKind, segments: Iterable[Segment], path: Path) -> list[Problem]:
    first: dict[str, int] = {}
    problems = []
    for key, line in (pair for segment in segments if segment.always for pair in segment.keys):
        if key in first:
            what = repr(key) if kind.key or kind.shape == "map" else "this item"
            problems.append(Problem(f"{what} is already in line {first[key]}", path, line, 1, "keep one of the two"))
        first.setdefault(key, line)
    return problems


def _check_markers(text: str, path: Path) -> list[Problem]:
    hint = "remove it: a slot file is a part of a document"
    return [
        Problem(f"{line[:3]!r} begins or ends a document", path, number, 1, hint)
        for number, line in enumerate(text.split("\n"), 1)
        if re.match(r"(---|\.\.\.)(\s|$)|%", line)
    ]


def _check_indents(text: str, path: Path) -> list[Problem]:
    """Find actions that print several lines of YAML at another indentation than the composer's."""
    hint = "end it in '| nindent <%= indent + N %>', N being the column in this file"
    problems = []
    for action in gotemplate.actions(text):
        words = gotemplate.last_stage(action).split()
        if words[:1] in (["toYaml"], ["tpl"]):
            problems.append(Problem(f"{words[0]} without nindent", path, action.line, action.column, hint))
        elif words[:1] in (["nindent"], ["indent"]) and "<%=" not in action.text:
            problems.append(Problem(f"{words[0]} without <%= indent %>", path, action.line, action.column, hint))
    return problems


def _check_shape(kind: SlotKind, slot: str, document: Document, *, nested: bool) -> list[Problem]:
    data, root = document.data, document.root
    if root is None:
        return []
    wanted: type = list if kind.shape == "list" else dict
    if not isinstance(data, wanted):
        name = "a list of items" if wanted is list else "a map of keys"
        return [document.problem(f"{slot} must be {name}, not {type_name(data)}")]
    if root.flow_style:
        return [
            document.problem(
                "must not be in brackets", hint="give each item a line of its own, so that more can follow"
            )
        ]
    if root.start_mark.column and not nested:
        hint = "remove the indentation; the composer indents the whole file"
        return [document.problem("items must start in column 1", hint=hint)]
    if isinstance(data, dict):
        return _other_slots(document, data) if slot == "podSpec.yaml" else []
    items = enumerate(data) if kind.key and isinstance(data, list) else ()
    return [problem for index, item in items for problem in _check_item(kind, document, index, item)]


def _other_slots(document: Document, fields: Iterable[str]) -> list[Problem]:
    """Find fields of a pod's spec that the chart has already, because they have a slot."""
    return [
        document.problem(f"{field} has a slot of its own", (field,), f"write it into spec.{field} of pod.yaml")
        for field in fields
        if f"{field}.yaml" in SLOTS
    ]


def _check_item(kind: SlotKind, document: Document, index: int, item: Plain) -> Iterator[Problem]:
    key = kind.key
    if isinstance(item, dict) and kind.keys:
        yield from (
            document.problem(f"unknown key {each!r}", (index, each), did_you_mean(str(each), kind.keys))
            for each in item
            if each not in kind.keys and not gotemplate.is_placeholder(str(each))
        )
    if not isinstance(item, dict) or key not in item:
        yield document.problem(f"the item has no {key!r}", (index,), f"add {key!r}, which distinguishes items")
    elif not isinstance(value := item[key], str) or not value:
        found = "empty" if value == "" else type_name(value)
        yield document.problem(f"{key} must be text, not {found}", (index, key))


def _identity(kind: SlotKind, item: Plain) -> str:
    return str(item[kind.key]) if kind.key and isinstance(item, dict) else json.dumps(item, sort_keys=True)


def _segments(kind: SlotKind, text: str, document: Document, column: int) -> Iterator[Segment]:
    lines = text.split("\n")
    # the lines above a field are blank
    first = next((number for number, line in enumerate(lines, 1) if line.strip()), 1)
    depths = gotemplate.depths(text)
    items = list(_items(kind, lines, document))
    starts = _starts(lines, depths, {line for _, line, _ in items} | _openings(text), first)
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        part_items = [item for item in items if start <= item[1] < end]
        keys = tuple((key, line) for key, line, _ in part_items if not gotemplate.is_placeholder(key))
        part = "".join(line + "\n" for line in lines[start - 1 : end - 1])
        part = dedented(part, column) if column else part
        always = bool(part_items) and all(depths[line - 1] == 0 for _, line, _ in part_items)
        yield Segment(part, start, keys, always, _meaning(part, [data for _, _, data in part_items]))


def _items(kind: SlotKind, lines: list[str], document: Document) -> Iterator[tuple[str, int, Plain]]:
    """Yield identity, line and data of each item; a list item's line is that of its dash."""
    if isinstance(document.data, dict):
        yield from ((key, document.position((key,))[0], value) for key, value in document.data.items())
        return
    for index, item in enumerate(document.data if isinstance(document.data, list) else ()):
        line = document.position((index,))[0]
        while not lines[line - 1].lstrip(" ").startswith("-"):
            line -= 1
        yield _identity(kind, item), line, item


def _meaning(part: str, data: list[Plain]) -> Plain:
    if "{{" not in part and "<%" not in part:
        return data
    return re.sub(r"^#.*\n", "", part, flags=re.MULTILINE).strip("\n")


def _openings(text: str) -> set[int]:
    return {action.line for action in gotemplate.actions(text) if action.word in ("if", "range", "with")}


def _starts(lines: list[str], depths: list[int], candidates: set[int], first: int) -> list[int]:
    """Return the start lines of segments: an item, or the opening of a block, outside of any block."""
    starts = [first]
    for line in range(first + 1, len(lines)):
        if depths[line - 1] or line not in candidates:
            continue
        # a comment, or an assignment that the item uses, belongs to the item below it
        while line > starts[-1] and lines[line - 2].strip().startswith(("#", "{{/*", "{{- /*", "{{- $")):
            line -= 1  # noqa: PLW2901  search upwards from here
        if line > starts[-1]:
            starts.append(line)
    return starts
