"""The grammar of Helm's `--set` flags: text to assignments, and assignments to plain data.

The rules are those of Helm's strvals package (pkg/strvals/parser.go at v4.3.1; tests run v3.22.0 and v4.3.1 against
it). The result always equals Helm's. Helm silently drops an unfinished flag such as `a[0` or `.a=1`; this parser
rejects it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, cast

from chartgen.errors import Problem, UsageError
from chartgen.helm.yaml import Keys, Plain, dotted, type_name
from chartgen.masking import masked

Flag = Literal["--set", "--set-string", "--set-json", "--set-file"]

# strvals.MaxIndex and strvals.MaxNestedNameLevel
_MAX_INDEX = 65536
_MAX_DEPTH = 30
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_INT64 = range(-(2**63), 2**63)
_WORDS: dict[str, Plain] = {"true": True, "false": False, "null": None, "0": 0}


class MalformedError(ValueError):
    """A flag's argument breaks the grammar, or its keys pass through a value that is not a map or list."""


class Assignment(NamedTuple):
    """One `key=value` of a flag."""

    keys: Keys  # where the value goes; numbers are list indexes
    value: Plain  # the value, with the type that the flag gives it
    dangling: bool = False  # the flag ended at its `=`. Helm stores such an empty text, but not in a new list item.


def parse_flag(flag: Flag, text: str, read_file: Callable[[str], str]) -> list[Assignment]:
    """Read the argument of one flag.

    Args:
        flag: Its name, which determines the type of values.
        text: Its argument, `a.b=c,d[0]=e`.
        read_file: Returns the text of a file that `--set-file` names.

    Raises:
        UsageError: The argument is malformed or unfinished; the problem's path is the flag itself.
    """
    convert: Callable[[str], Plain] = {"--set": typed, "--set-file": read_file}.get(flag, str)
    parser = _Parser(text, convert, is_json=flag == "--set-json")
    try:
        text.encode()
        return list(parser.assignments())
    except UnicodeEncodeError:
        raise UsageError(Problem("is not UTF-8 text", label(flag, text).encode(errors="replace").decode())) from None
    except MalformedError as error:
        raise UsageError(Problem(str(error), label(flag, text))) from None


def label(flag: Flag, text: str) -> str:
    """Return a flag's name for messages, shortened to one readable line, without secrets."""
    line = masked(" ".join(text.split()))
    return f"{flag} {line if len(line) <= 60 else line[:57] + '...'}"


def typed(text: str) -> Plain:
    """Return the value of a text in `--set`: true, false, null, a 64-bit integer, or the text itself."""
    word = text.casefold()
    if word in _WORDS:
        return _WORDS[word]
    if not text.startswith("0") and _INTEGER.fullmatch(text) and int(text) in _INT64:
        return int(text)
    return text


def decode_json(text: str, start: int = 0) -> tuple[Plain, int]:
    """Decode the JSON value at an offset as Go does, without NaN and infinities; return it and the offset after it."""
    import json

    try:
        numbers: dict[str, Any] = {"parse_constant": _refuse, "parse_float": _finite, "parse_int": _whole}
        value, end = json.JSONDecoder(**numbers).raw_decode(text, start)
        json.dumps(value, ensure_ascii=False).encode()  # half of a pair of \\u is an error
    except UnicodeEncodeError:
        raise MalformedError("is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise MalformedError(f"is not valid JSON: {error.msg.lower()} at character {error.pos + 1}") from None
    except RecursionError:
        raise MalformedError("is nested too deeply") from None
    return value, end


def assign(data: dict[str, Plain], assignment: Assignment) -> dict[str, Plain]:
    """Return a copy of the data with one assignment made; unchanged parts are shared.

    Raises:
        MalformedError: The keys pass through a value that is not a map or list, or the flag is unfinished.
    """
    if assignment.dangling and _makes_item(data, assignment.keys):
        raise MalformedError("ends without a value, and Helm would drop it; end it with a comma to set an empty text")
    return cast("dict[str, Plain]", _put(data, assignment.keys, assignment.value, ()))


class _Parser:
    """Reads one flag from left to right; every fault raises a MalformedError."""

    def __init__(self, text: str, convert: Callable[[str], Plain], *, is_json: bool) -> None:
        self._text, self._at = text, 0
        self._convert, self._is_json = convert, is_json

    def assignments(self) -> Iterator[Assignment]:
        while self._at < len(self._text):
            keys = self._keys()
            dangling = self._at >= len(self._text) and not self._is_json
            yield Assignment(keys, "" if dangling else self._value(), dangling)

    def _keys(self) -> Keys:
        keys: list[str | int] = []
        while True:
            name, stop = self._until("=[,.")
            self._check_name(name, stop, keys)
            keys.append(name)
            while stop == "[":
                keys.append(self._index())
                rest, stop = self._until("[.=")
                if rest or not stop:
                    raise MalformedError(f"expected '=', '.' or '[' after the index of {dotted(keys)}")
            if stop == "=":
                return tuple(keys)
            if sum(isinstance(key, str) for key in keys) > _MAX_DEPTH:
                raise MalformedError(f"goes deeper than the {_MAX_DEPTH} levels that Helm allows")

    def _check_name(self, name: str, stop: str, keys: list[str | int]) -> None:
        if stop in ("", ",") and name:
            raise MalformedError(f"key {dotted([*keys, name])!r} has no value; write {dotted([*keys, name])}=VALUE")
        if not name:
            raise MalformedError("has an empty key" + (f" after {dotted(keys)!r}" if keys else ""))

    def _index(self) -> int:
        text, stop = self._until("]")
        if not stop or not _INTEGER.fullmatch(text):
            raise MalformedError(f"a list index must be a whole number in brackets, not {text!r}")
        if not 0 <= int(text) <= _MAX_INDEX:
            raise MalformedError(f"a list index must be between 0 and {_MAX_INDEX}, not {text}")
        return int(text)

    def _value(self) -> Plain:
        if self._is_json:
            return self._json_value()
        if self._text[self._at] == "{":
            self._at += 1
            return list(self._items())
        return self._convert(self._until(",")[0])

    def _items(self) -> Iterator[Plain]:
        stop = ","
        while stop == ",":
            item, stop = self._until(",}")
            if not stop:
                raise MalformedError("a list must end with '}'")
            yield self._convert(item)
        if self._text[self._at : self._at + 1] == ",":
            self._at += 1

    def _json_value(self) -> Plain:
        if self._skip_gap():
            return None
        value, self._at = decode_json(self._text, self._at)
        self._skip_gap()
        return value

    def _skip_gap(self) -> bool:
        """Skip blanks and one comma; report whether nothing else preceded the comma or the end."""
        while self._at < len(self._text):
            character = self._text[self._at]
            if character != "," and not character.isspace():
                return False
            self._at += 1
            if character == ",":
                return True
        return True

    def _until(self, stops: str) -> tuple[str, str]:
        """Read to a stop character, removing backslashes; the stop is empty at the end of the text."""
        found = re.compile(rf"((?:\\.?|[^\\{re.escape(stops)}])*)(.?)", re.DOTALL).match(self._text, self._at)
        assert found  # noqa: S101 - it matches any text
        self._at = found.end()
        return re.sub(r"\\(.?)", r"\1", found[1], flags=re.DOTALL), found[2]


def _put(node: Plain, keys: Keys, value: Plain, at: Keys) -> Plain:
    """Return a copy of a node with a value at a key path below it; Helm rejects a null or scalar on the way."""
    if not keys:
        return value
    key, rest, here = keys[0], keys[1:], (*at, keys[0])
    is_in_map = bool(rest) and isinstance(rest[0], str)
    absent: Plain = {} if is_in_map else []
    if isinstance(key, str):
        if not isinstance(node, dict):
            raise _misfit(node, "a map", at)
        return {**node, key: _put(node.get(key, absent), rest, value, here)}
    if not isinstance(node, list):
        raise _misfit(node, "a list", at)
    items = [*node, *[None] * (key + 1 - len(node))]
    # Helm replaces an item that is not a map, but not one that is not a list.
    is_kept = isinstance(items[key], dict) if is_in_map else items[key] is not None
    items[key] = _put(items[key] if is_kept else absent, rest, value, here)
    return items


def _misfit(node: Plain, wanted: str, at: Keys) -> MalformedError:
    return MalformedError(f"{dotted(at)} is {type_name(node)}, not {wanted}; set {dotted(at)} as a whole")


def _makes_item(data: Plain, keys: Keys) -> bool:
    if isinstance(keys[-1], int):
        return False
    node = data
    for key in keys[:-1]:
        if isinstance(key, str):
            node = node.get(key) if isinstance(node, dict) else None
        elif isinstance(node, list) and key < len(node):
            node = node[key]
        else:
            return True
    return False


def _refuse(word: str) -> Plain:
    raise MalformedError(f"is not valid JSON: {word} is not a JSON number")


def _whole(text: str) -> float:
    return int(text) if len(text) < 20 else _finite(text)  # thousands of digits are too many for Python


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        _refuse(text)
    return number
