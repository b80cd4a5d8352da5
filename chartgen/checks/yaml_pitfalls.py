"""Silent changes by YAML in a values file: keys and values that Helm reads differently from their spelling.

This affects only plain (unquoted) scalars, read by go-yaml v2 (see yamltext); numbers reach templates as 64-bit
floats, which Go prints in its own way. Dates and times of day stay text in Helm, so they are not a pitfall.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from chartgen.errors import Problem
from chartgen.findings import Finding, PartProblem, rule, rules_in
from chartgen.helm.yaml import Document, Keys, Plain, dotted
from chartgen.helm.yaml_nodes import Node, resolve_scalar
from chartgen.masking import HIDDEN, masked_value

# Maps of a values file whose values are texts in the charts' schemas and the Kubernetes API.
_TEXT_MAPS = frozenset(
    ("env", "labels", "annotations", "podLabels", "podAnnotations", "nodeSelector", "matchLabels", "requests", "limits")
)
# The value of a key with this name is text, in every program.
_VERSION = re.compile(r"(?:^|[_-])(?i:version|tag|image)$|[a-z](?:Version|Tag|Image)$")
# File permissions are octal by convention, also in Kubernetes (defaultMode).
_PERMISSIONS = re.compile(r"(?:mode|umask)$", re.IGNORECASE)
_WHOLE = re.compile(r"[-+]?[0-9_]+")
_OCTAL = re.compile(r"[-+]?0[0-9_]+")
_WORDS = frozenset(("true", "false"))
# Most scalars: every reader and printer agrees on them.
_HARMLESS = re.compile(r"true|false|0|[1-9][0-9]{0,5}")


class Scalar(NamedTuple):
    """An unquoted key or value that does not stay text."""

    keys: Keys  # its key path; for a key, the last part is its spelling
    text: str
    value: bool | int | float | None
    is_key: bool = False  # whether it is a key of a map

    @property
    def in_text(self) -> bool:
        """Report whether text is expected: variables, labels, quantities, arguments; not a program's options."""
        if len(self.keys) < 2 or "config" in self.keys:
            return False
        above = self.keys[-2]
        return above in _TEXT_MAPS or (above == "args" and isinstance(self.keys[-1], int))

    @property
    def name(self) -> str:
        """Return the last key of its path; empty for an item of a list."""
        return str(self.keys[-1]) if self.keys and isinstance(self.keys[-1], str) else ""

    @property
    def quoted(self) -> str:
        """Return the hint to quote it."""
        return f'put it in quotes: "{self.text}"'

    @property
    def is_number(self) -> bool:
        """Report whether Helm reads a number."""
        return isinstance(self.value, (int, float)) and not isinstance(self.value, bool)


@rule(remedy='put it in quotes: "…"')
def yaml_key(scalar: Scalar) -> Iterator[PartProblem]:
    """A key such as y, on, 012 or 1.10 without quotes is read as another word, so its value gets that name."""
    if scalar.is_key and (read := _key(scalar.value)) != scalar.text:
        yield PartProblem(f"this key without quotes is read as {read}", scalar.quoted)


@rule(remedy='put it in quotes: "…"')
def yaml_word(scalar: Scalar) -> Iterator[PartProblem]:
    """Where text is expected, yes, no, on, off, y and n without quotes become the words true and false."""
    if _is_word(scalar) and scalar.in_text:
        yield PartProblem(f"{scalar.text} without quotes is read as {_printed(scalar.value)}", scalar.quoted)


@rule(severity="warning", remedy='write …, or "…" in quotes')
def yaml_letter(scalar: Scalar) -> Iterator[PartProblem]:
    """Helm reads the letters y and n as true and false; editors and the programs' own readers keep them as text."""
    if _is_word(scalar) and not scalar.in_text and len(scalar.text) == 1:
        read = _printed(scalar.value)
        hint = f'write {read}, or "{scalar.text}" in quotes'
        yield PartProblem(f"{scalar.text} without quotes is read as {read}", hint)


@rule(remedy='put it in quotes: "…"')
def yaml_number(scalar: Scalar) -> Iterator[PartProblem]:
    """Where text is expected, a bare number loses its form: 25.10 becomes 25.1, and 8388608 becomes 8.388608e+06."""
    if scalar.is_number and scalar.in_text and not scalar.is_key and _printed(scalar.value) != scalar.text:
        message = f"{scalar.text} without quotes is a number, which Helm prints as {_printed(scalar.value)}"
        yield PartProblem(message, scalar.quoted)


@rule(severity="warning", remedy='put it in quotes: "…"')
def yaml_version(scalar: Scalar) -> Iterator[PartProblem]:
    """A version, tag or image is text: as a number, 25.10 equals 25.1, and a commit such as 1e10 is a power of ten."""
    is_float = isinstance(scalar.value, float) and not scalar.is_key and not scalar.in_text
    if is_float and _VERSION.search(scalar.name) and _printed(scalar.value) != scalar.text:
        message = f"{scalar.text} without quotes is a number, the same as {_printed(scalar.value)}"
        yield PartProblem(message, scalar.quoted)


@rule(remedy="leave out the leading 0: …, or write …")
def yaml_octal(scalar: Scalar) -> Iterator[PartProblem]:
    """Helm reads a whole number with a leading 0 as octal, so 0100 is 64; only permissions are meant that way."""
    is_value = not scalar.is_key and not scalar.in_text and not _PERMISSIONS.search(scalar.name)
    if is_value and isinstance(scalar.value, int) and _OCTAL.fullmatch(scalar.text) and scalar.value:
        hint = f"leave out the leading 0: {_decimal(scalar.text)}, or write {scalar.value}"
        yield PartProblem(f"{scalar.text} is octal, which is {scalar.value}", hint)


@rule(remedy="use at most 9007199254740992, or quotes where text is allowed")
def yaml_large_number(scalar: Scalar) -> Iterator[PartProblem]:
    """Helm stores numbers as 64-bit floats: beyond 9007199254740992 they are rounded, beyond 64 bits they overflow."""
    if scalar.is_key or scalar.in_text or not scalar.is_number or not _WHOLE.fullmatch(scalar.text):
        return
    exact = _decimal(scalar.text) if isinstance(scalar.value, float) else int(scalar.value or 0)
    if abs(exact) >= 2**63 or int(float(exact)) != exact:
        message = f"{scalar.text} is more than Helm can keep exactly"
        yield PartProblem(message, "use at most 9007199254740992, or quotes where text is allowed")


def _decimal(text: str) -> int:
    """Read the digits of a number; Python reads at most 4,300 of them, leading zeros included."""
    sign = text.startswith("-")
    return int(text.replace("_", "").lstrip("+-0") or "0") * (-1 if sign else 1)


@rule(remedy='use a finite number, or "…" in quotes')
def yaml_infinity(scalar: Scalar) -> Iterator[PartProblem]:
    """Helm converts values to JSON, which has neither infinity nor not-a-number, and rejects them without a place."""
    if not scalar.is_key and isinstance(scalar.value, float) and not math.isfinite(scalar.value):
        hint = f'use a finite number, or "{scalar.text}" in quotes'
        yield PartProblem(f"{scalar.text} is not a number in Helm", hint)


PITFALLS = rules_in(globals())


def pitfalls(document: Document) -> list[Finding]:
    """Find values that YAML silently changes in a values file.

    Args:
        document: The file, as `yamltext.load_file` or `values.load_values` read it.

    Returns:
        A finding for each key or value, in the order of the file; an alias is reported once, at its anchor.
    """
    return [
        Finding(pitfall.id, _problem(document, scalar, complaint, mark), pitfall.severity, dotted(scalar.keys))
        for scalar, mark in _scalars(document.root, document.data, (), None, set())
        if not _HARMLESS.fullmatch(scalar.text)
        for pitfall in PITFALLS
        for complaint in pitfall.function(scalar)
    ]


def _problem(document: Document, scalar: Scalar, complaint: PartProblem, mark: Node) -> Problem:
    words = complaint.message, complaint.hint
    if masked_value(scalar.text, scalar.keys) == HIDDEN:
        # the number that YAML made of it would reveal as much
        words = "is not text without quotes", "put it in quotes"
    return Problem(f"{dotted(scalar.keys)}: {words[0]}", document.path, mark.line + 1, mark.column + 1, words[1])


def _scalars(node: Node | None, data: Plain, at: Keys, mark: Node, seen: set[int]) -> Iterator[tuple[Scalar, Node]]:
    """Walk nodes and data together: the data show which values stay text because of an explicit tag."""
    if node is None or id(node) in seen:
        return
    if node.id == "scalar":
        if at and isinstance(data, (bool, int, float)):
            yield Scalar(at, node.value, data), mark
        return
    seen.add(id(node))
    if node.id == "sequence":
        items = data if isinstance(data, list) else []
        for index, (item, value) in enumerate(zip(node.value, items, strict=False)):
            yield from _scalars(item, value, (*at, index), item.start_mark, seen)
        return
    for name, value in node.value:
        yield from _entry(name, value, data if isinstance(data, dict) else {}, at, seen)


def _entry(name: Node, value: Node, data: dict[str, Plain], at: Keys, seen: set[int]) -> Iterator[tuple[Scalar, Node]]:
    read = name.value if name.style else resolve_scalar(name.value)
    key = _printed(read) if isinstance(read, bool) else "null" if read is None else name.value
    if not name.style and not isinstance(read, str):
        yield Scalar((*at, name.value), name.value, read, is_key=True), name.start_mark
    yield from _scalars(value, data.get(key), (*at, key), name.start_mark, seen)


def _is_word(scalar: Scalar) -> bool:
    return not scalar.is_key and isinstance(scalar.value, bool) and scalar.text not in _WORDS


def _key(value: Plain) -> str:
    """Return the name that Helm makes of a key (sigs.k8s.io/yaml, convertToJSONableObject)."""
    if value is None:
        return "null, which Helm refuses"
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else _printed(value)


def _printed(value: Plain) -> str:
    """Return a value as a Go template prints it; numbers are floats by then (strconv.FormatFloat with 'g' and -1)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    number = float(value) if isinstance(value, (int, float)) else math.nan
    if not math.isfinite(number):
        return str(number)
    from decimal import Decimal

    shortest = Decimal(repr(number)).normalize()
    exponent = shortest.adjusted() if number else 0
    if -4 <= exponent < 6:
        return f"{shortest:f}"
    return f"{shortest.scaleb(-exponent):f}e{'-' if exponent < 0 else '+'}{abs(exponent):02}"
