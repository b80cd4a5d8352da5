"""Keys of a machine type's `fabric` that templates of a user's fragments read, and that no machine type has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chartgen.composer.origin import Composed
from chartgen.errors import Problem, did_you_mean
from chartgen.findings import Finding, Rule
from chartgen.helm import gotemplate
from chartgen.helm.yaml import read_text
from chartgen.linter.sources import fragment_texts, is_users

FABRIC = Rule(
    "fabric-is-known",
    "A template of a user's fragment reads a key of `fabric` that no machine type of the target has: it prints "
    "nothing there, and Helm reports nothing.",
    "correct the key, or add it to the machine types that need it",
)
# A comment and a text in quotes contain no key; what has a default may be absent on purpose, in a fragment for several
# targets.
_KEY = re.compile(r"/\*.*|\"[^\"]*\"|`[^`]*`|\.fabric\.(?P<key>\w+)(?P<default>[\s)]*\|\s*default\b)?", re.DOTALL)


def unknown_keys(origin: Composed) -> Iterator[Finding]:
    """Yield each unknown key of `fabric` where a template of a user's fragment reads it."""
    known = {key for machine in origin.target.machines.values() for key in machine.fabric}
    for file in fragment_texts(fragment.path for fragment in origin.target.fragments if is_users(fragment.path)):
        for action in gotemplate.actions(read_text(file)):
            for found in _KEY.finditer(action.text):
                key = found["key"]
                if not key or key in known or found["default"]:
                    continue
                hint = did_you_mean(key, known)
                # `if` and `with` may ask for a key that only machine types of another target have
                if action.word not in ("if", "with", "else") or hint.startswith("did"):
                    problem = Problem(f"no machine type has 'fabric.{key}'", file, action.line, action.column, hint)
                    yield Finding(FABRIC.id, problem, key=key)
