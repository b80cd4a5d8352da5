"""Count what an author of targets, fragments, launchers, kinds and policies may have to know: `python concepts.py`."""

from __future__ import annotations

import sys

from extending_page import DEFINITIONS, extending_pages, keys

from chartgen.composer.definition import definition_schema
from chartgen.composer.launcher import FILES
from chartgen.composer.library import open_library
from chartgen.composer.vocabulary import VOCABULARY


def concepts() -> dict[str, int]:
    """Return the number of each sort of concept, and the words of their reference."""
    library = open_library(settings=False)
    counted = {f"keys of {name}": len([*keys(definition_schema(kind))]) for name, (_, kind) in DEFINITIONS.items()}
    counted |= {name: len([*words(library)]) for name, words in VOCABULARY.items()}
    return {
        **counted,
        "files of a launcher": len(FILES),
        "keys of a rule": len(definition_schema("rule")["properties"]),
        "words": len(" ".join(extending_pages().values()).split()),
    }


if __name__ == "__main__":
    sys.stdout.writelines(f"{number:6}  {name}\n" for name, number in concepts().items())
