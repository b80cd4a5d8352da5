"""A configuration of NeMo 1 as its program receives it: references resolved, command-line overrides applied."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from chartgen.errors import ChartgenError, Problem
from chartgen.helm.yaml import Document, Plain, load, require_map
from chartgen.linter.recipes.document import Recipe

_REFERENCE = re.compile(r"\$\{([^${}]*)\}")
_OVERRIDE = re.compile(r"(?P<sign>\+{0,2}|~)(?P<path>[A-Za-z_][\w.]*)(?:=(?P<value>.*))?", re.DOTALL)
# Overrides of the recipes: src/launchers/nemo-10-launcher.sh takes the first two, nemo-training-v2 the third.
_ARGUMENTS = (("workload", "defaultArguments"), ("workload", "arguments"), ("workload", "nemoConfigOverrides"))
_PARTS = ("trainer", "exp_manager", "model", "model.data", "model.optim", "model.optim.sched", "model.tokenizer")


class NemoTree:
    """Options by their path, such as model.num_layers.

    Attributes:
        options: The options for the program; a reference that cannot be resolved is unchanged.
    """

    def __init__(self, document: Document, recipe: Recipe) -> None:
        self.document, self.recipe = document, recipe
        self.options: dict[str, Any] = dict(_leaves(require_map(document, "a NeMo configuration")))
        for keys in _ARGUMENTS:
            found = recipe.take(*keys)
            for index, text in enumerate(found if isinstance(found, list) else [] if found is None else [found]):
                self._override((*keys, index), str(text))
        for part in _PARTS:
            if part in self.options and self.options.pop(part) not in (None, {}):
                self.lack(part, "is not a map")
        for path, value in self.options.items():
            self.options[path] = self._filled(path, value)
        parts = self.options.get("defaults")
        if parts and parts != ["_self_"]:
            self.lack("defaults", "names further files, which are not given", "give one file that contains all of it")

    def problem(self, path: str, message: str, hint: str = "") -> Problem:
        """Return a Problem that names an option, with its place."""
        return self.document.problem(f"{path} {message}", tuple(path.split(".")), hint)

    def leave(self, path: str, message: str, hint: str = "") -> None:
        """Record an option that is not carried over."""
        self.recipe.left.append(self.problem(path, message, hint))

    def lack(self, path: str, message: str, hint: str = "") -> None:
        """Record a problem that stops the conversion."""
        self.recipe.missing.append(self.problem(path, message, hint))

    def is_open(self, path: str) -> bool:
        """Report whether an option refers to a value outside the file."""
        value = self.options.get(path)
        return isinstance(value, str) and "${" in value

    def _override(self, keys: tuple[str | int, ...], text: str) -> None:
        match = _OVERRIDE.fullmatch(text.strip())
        if not match or (match["value"] is None) != (match["sign"] == "~"):
            self.recipe.lack(keys, f"is {text!r}, not an override of a NeMo configuration", "write it as option=value")
            return
        path = match["path"]
        inner = [each for each in self.options if each == path or each.startswith(f"{path}.")]
        for each in inner:
            del self.options[each]
        if match["sign"] != "~":
            try:
                value = load(match["value"], "").data
            except ChartgenError:
                value = match["value"]
            self.options |= dict(_leaves(value, f"{path}.")) if isinstance(value, dict) else {path: value}

    def _filled(self, path: str, value: Plain) -> Plain:
        """Resolve references from the inside out; a text that consists of one reference becomes its target."""
        for _ in range(9):
            if not isinstance(value, str) or not (match := _REFERENCE.search(value)):
                break
            found = self._referred(path, match[1].strip())
            if found is None:
                break
            value = found if match[0] == value else value.replace(match[0], str(found))
        return value

    def _referred(self, path: str, text: str) -> Plain:
        name, colon, arguments = text.partition(":")
        if colon:
            numbers = [float(each) for each in arguments.split(",") if re.fullmatch(r"\s*-?[0-9.]+\s*", each)]
            if len(numbers) != len(arguments.split(",")) or name not in ("multiply", "sum"):
                return None
            made = math.prod(numbers) if name == "multiply" else math.fsum(numbers)
            return int(made) if made == int(made) else made
        dots = len(text) - len(text.lstrip("."))
        parent = path.split(".")[: -dots or None] if dots else []
        found: Plain = self.options.get(".".join([*parent, text.lstrip(".")]))
        return found


def _leaves(node: dict[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value
