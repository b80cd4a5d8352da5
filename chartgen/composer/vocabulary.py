"""The vocabulary of fragments, for authors: slots, template helpers, and the facts of rules, each from its source."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from chartgen.composer.definition import Field
from chartgen.composer.library import BUILTIN, Library
from chartgen.composer.rule_facts import FACTS, INTERNAL
from chartgen.composer.slot_kinds import SLOTS
from chartgen.helm.yaml import read_text

# The helpers for authors; chartgen's own files alone include its others, which may change with any version.
PUBLIC = (
    *("fullname", "labels", "run", "runDirectory", "home", "machine", "gpu", "nodes", "gpusPerNode", "worldSize"),
    *("globalBatch", "setting", "dataPrefixes", "merge", "storeName", "storePath", "storeVolume"),
)
_DEFINED = re.compile(
    r'\{\{-?\s*/\*(?P<meaning>(?:(?!\*/).)*)\*/\s*-?\}\}\n\{\{-?\s*define\s+"<%= chart %>\.(?P<name>[^"]+)"', re.DOTALL
)


@dataclass(frozen=True)
class Word:
    """One slot, helper, fact or key.

    Args:
        meaning: One sentence or two.
        kind: Shape of a slot, type of a fact or key; empty for a helper.
        fragment: The fragment that must be listed for the helper to exist; empty for every chart.
        example: A complete slot file.
        required: Whether a definition must have the key.
    """

    name: str
    meaning: str
    kind: str = ""
    fragment: str = ""
    example: str = ""
    required: bool = False


def slots(_library: Library) -> Iterator[Word]:
    """Yield every slot of a fragment."""
    for name, slot in SLOTS.items():
        kind = f"{slot.shape} by {slot.key}" if slot.key else slot.shape
        yield Word(name, slot.meaning, kind, example=slot.example)


def helpers(library: Library) -> Iterator[Word]:
    """Yield the template helpers for authors: those of every chart, then those of fragments."""
    for path in sorted((BUILTIN / "workloads" / "common" / "templates").glob("_*.tpl")):
        yield from (word for word in _defined(path) if word.name in PUBLIC)
    for fragment in library.names("fragment"):
        path = library.find("fragment", fragment) / "helpers.tpl"
        if path.is_file():
            own = not library.is_builtin(path)
            yield from (word for word in _defined(path, fragment) if own or word.name in PUBLIC)


def facts(_library: Library) -> Iterator[Word]:
    """Yield the facts for rules of authors, which name them beside values."""
    for name in (each for each in FACTS if each not in INTERNAL):
        yield Word(name, FACTS[name].meaning, FACTS[name].schema["type"])


VOCABULARY: dict[str, Callable[[Library], Iterator[Word]]] = {"slots": slots, "helpers": helpers, "facts": facts}


def keys(fields: dict[str, Field], prefix: str = "") -> Iterator[Word]:
    """Yield the keys of a definition file, nested ones with dots."""
    for name, field in fields.items():
        path = f"{prefix}{name}"
        words = f"{field.description}: {', '.join(field.enum)}" if field.enum else field.description
        yield Word(path, words, field.type, required=field.required)
        if field.items:
            yield from keys(dict(field.items), f"{path}[]." if field.type == "array" else f"{path}.NAME.")
        if field.keys:
            yield from keys(dict(field.keys), f"{path}.")


def _defined(path: Path, fragment: str = "") -> Iterator[Word]:
    for found in _DEFINED.finditer(read_text(path)):
        if not found["name"].startswith("slot."):
            meaning = re.sub(r"<%.*?%>", "", found["meaning"])
            yield Word(found["name"], " ".join(meaning.split()), fragment=fragment)
