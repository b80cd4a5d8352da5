"""The vocabulary of fragments, for authors: slots, template helpers, and the facts of rules, each from its source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from chartgen.composer.library import BUILTIN, Library, ListRow
from chartgen.composer.pod_files import FIELDS
from chartgen.composer.rule_facts import FACTS, INTERNAL
from chartgen.composer.slots import SLOT_FILES, SLOTS, slot_example
from chartgen.helm.yaml import read_text

# The helpers for authors; chartgen's own files alone include its others, which may change with any version.
PUBLIC = (
    *("fullname", "labels", "run", "runDirectory", "home", "machine", "gpu", "nodes", "gpusPerNode", "worldSize"),
    *("globalBatch", "setting", "dataPrefixes", "merge", "storeName", "storePath", "storeVolume"),
)
_DEFINED = re.compile(
    r'\{\{-?\s*/\*(?P<meaning>(?:(?!\*/).)*)\*/\s*-?\}\}\n\{\{-?\s*define\s+"<%= chart %>\.(?P<name>[^"]+)"', re.DOTALL
)


_OBJECTS = {
    "pod.yaml": "the template of the pods",
    "container.yaml": "the program's container",
    "object.yaml": "the run's object, such as a JobSet",
}


def slots(_library: Library) -> Iterator[ListRow]:
    """Yield every slot file of a fragment."""
    for name, fields in FIELDS.items():
        known = ", ".join(".".join(keys) for keys in fields)
        yield ListRow(name, f"part of {_OBJECTS[name]}: {known}", "fields", example=slot_example(name))
    for name in SLOT_FILES:
        yield ListRow(name, SLOTS[name].meaning, SLOTS[name].shape, example=slot_example(name))


def helpers(library: Library) -> Iterator[ListRow]:
    """Yield the template helpers for authors: those of every chart, then those of fragments."""
    for path in sorted((BUILTIN / "workloads" / "common" / "templates").glob("_*.tpl")):
        yield from (row for row in _defined(path) if row.name in PUBLIC)
    for fragment in library.names("fragment"):
        path = library.find("fragment", fragment) / "helpers.tpl"
        if path.is_file():
            own = not library.is_builtin(path)
            yield from (row for row in _defined(path, fragment) if own or row.name in PUBLIC)


def facts(_library: Library) -> Iterator[ListRow]:
    """Yield the facts for rules of authors, which name them beside values."""
    for name in (each for each in FACTS if each not in INTERNAL):
        yield ListRow(name, FACTS[name].meaning, FACTS[name].schema["type"])


VOCABULARY: dict[str, Callable[[Library], Iterator[ListRow]]] = {"slots": slots, "helpers": helpers, "facts": facts}


def _defined(path: Path, fragment: str = "") -> Iterator[ListRow]:
    for found in _DEFINED.finditer(read_text(path)):
        if not found["name"].startswith("slot."):
            meaning = re.sub(r"<%.*?%>", "", found["meaning"])
            yield ListRow(found["name"], " ".join(meaning.split()), fragment=fragment)
