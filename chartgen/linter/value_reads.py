"""The values that the templates of a chart read by a plain path: `.Values.a.b`, `$x.b`, or `.b` inside of `with`.

Only what is certain counts: the result of a function, the items of `range`, and parameters of definitions are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart

# Keys from the root context, such as ("Values", "a"); None if unknown.
Path: TypeAlias = "tuple[str, ...] | None"

_ROUNDS = 30
_NEW: Path = ("",)  # a map that a template makes: what is set in it changes no value
_GUARD = re.compile(r"\b(?:default|hasKey|dig|coalesce|ternary|empty|not|and|or|kindIs|required)\b")
_BEGIN = re.compile(r"\{\{-?\s*(?P<word>(?:else\s+)?(?:if|with|range|define|block)\b|else\b|end\b)?")
_TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|`[^`]*`')
_PATH = re.compile(r"(?<![\w.$)])(\$\w*|)((?:\.[A-Za-z_]\w*)+|\.(?!\w))")
_GROUP = re.compile(r"(?<!\w)\(\s*([$.][\w.]*)\s*\)(?=\.)")
_KEYED = re.compile(r'\(?\b(?:index|get)\s+([$.][\w.]*)((?:\s+"[A-Za-z_]\w*")+)(?=\s*(?:\)|\||-?\}\}))\)?')
_ASSIGNED = re.compile(r"(\$\w+)\s*(:?=)(.*)\}\}", re.DOTALL)
_MADE = re.compile(r"\(*(?:dict|list|tuple|deepCopy|mustDeepCopy|omit|pick|from(?:Yaml|Json|Toml)|include|[\"`\d])")
_SET = re.compile(r'\b(set|(?:must)?[mM]erge(?:Overwrite)?)\s+(\(?[^\s()]+)(?:\s+"([^"]+)")?')
_MERGED = re.compile(r"(?:must)?[mM]erge(?:Overwrite)?\s+")
_CALL = re.compile(r'\b(?:include|template|block)\s+(?:"([^"]+)"|(\S+))\s*([^\s)}|]*)')
_NAME = re.compile(r'"([^"]+)"')


class Read(NamedTuple):
    """A value that a template reads.

    Args:
        keys: The path of keys below `.Values`.
        path: The template, relative to the chart.
        line: 1-based line of the action.
        guarded: Whether the action only asks for the value, or replaces a missing one.
    """

    keys: tuple[str, ...]
    path: str
    line: int
    guarded: bool


@dataclass
class _Reads:
    """What the templates read, set or merge into, and the definitions by whether each call passes the root context."""

    found: set[Read] = field(default_factory=set)
    changed: set[tuple[str, ...]] = field(default_factory=set)
    loose: set[str] = field(default_factory=set)
    calls: dict[str, bool] = field(default_factory=dict)
    complete: bool = True


def value_reads(chart: Chart, *, is_foreign: bool) -> list[Read]:
    """Return, in order, the reads of values that no template of the chart changes; none if any value may change.

    A definition counts if all its calls pass the root context, and no subchart calls it. In a chart of chartgen each
    context is a copy of the root, with the values.

    Args:
        is_foreign: Whether chartgen did not compose it.
    """
    texts = {path: text for path, text in chart.files.items() if "templates/" in path}
    own = {path: list(gotemplate.actions(text)) for path, text in texts.items() if path.startswith("templates/")}
    others = "".join(text for path, text in texts.items() if path not in own)
    lent = {name for name, _, _ in _CALL.findall(others)}
    defined = {name for text in texts.values() for name in re.findall(r'\{\{-?\s*(?:define|block)\s+"([^"]+)"', text)}
    rooted = defined - lent
    for _ in range(_ROUNDS):  # a call inside of a definition passes the root context if the definition itself gets it
        reads = _Reads()
        for path, actions in own.items():
            _Walk(path, reads, rooted).run(actions)
        kept = {name for name in rooted if reads.calls.get(name)}
        if not is_foreign:
            return sorted(reads.found)
        if kept == rooted:
            # a definition of another chart may change any value
            certain = reads.complete and defined.issuperset(name for name, is_root in reads.calls.items() if is_root)
            return [read for read in sorted(reads.found) if certain and _is_certain(read.keys, reads)]
        rooted = kept
    return []


def _is_certain(keys: tuple[str, ...], reads: _Reads) -> bool:
    begun = (keys[:depth] for depth in range(len(keys) + 1))
    return not reads.changed.intersection(begun) and not reads.loose.intersection(keys)


class _Walk:
    """One pass over a file, with the root, the dot and the variables of each open block."""

    def __init__(self, path: str, reads: _Reads, rooted: set[str]) -> None:
        self.path, self.reads, self.rooted = path, reads, rooted
        self.root: Path = ()
        self.dot: Path = ()
        self.scopes: list[dict[str, Path]] = [{}]  # of variables, the innermost last
        self.opened: list[tuple[Path, Path, list[dict[str, Path]]]] = []

    def run(self, actions: Iterable[gotemplate.Action]) -> None:
        """Note what the file reads, changes and calls."""
        listed = [action for action in actions if action.word != "comment" and not action.text.startswith("<%")]
        again = {name for action in listed for name, sign, _ in _ASSIGNED.findall(action.text) if sign == "="}
        for action, after in zip(listed, (*listed[1:], None), strict=False):
            # `if OLD` before `fail` refuses a value that has been removed
            refuses = after is not None and re.match(r"\{\{-?\s*fail\b", after.text) is not None
            self._action(_plain(action.text), action.line, again, refuses=refuses)

    def _action(self, code: str, line: int, again: set[str], *, refuses: bool) -> None:
        word = " ".join((_BEGIN.match(code) or [""])[0].lstrip("{- ").split())
        self._block(word, code)
        if word in ("define", "block", "else", "end"):
            return
        self._changes(code)
        self._calls(code)
        guarded = word.endswith(("if", "with")) or _GUARD.search(code) is not None
        bare = _TEXT.sub('""', code)
        for keys in [self._path(*found) for found in _PATH.findall(bare)] if not refuses else ():
            if keys and keys[0] == "Values" and keys[1:]:
                self.reads.found.add(Read(keys[1:], self.path, line, guarded))
        assigned = _ASSIGNED.search(code)
        value = self._value((assigned[3] if assigned else bare[2:-2].lstrip("- ").removeprefix(word)).strip(" \n-"))
        if assigned:
            names = re.findall(r"\$\w+", code[: assigned.end(1)])  # `range $key, $item :=` has two
            certain = word != "range" and (assigned[1] not in again or value == _NEW)
            self.scopes[-1] |= dict.fromkeys(names, value if certain else None)
        if word.endswith(("with", "range")):
            self.dot = value if word.endswith("with") else None

    def _block(self, word: str, code: str) -> None:
        """Open or close a block; a definition has no variables of its file."""
        if word.startswith(("end", "else")) and self.opened:
            self.root, self.dot, self.scopes = self.opened.pop()
            self.scopes.pop()
        if not word or word == "end":
            return
        self.scopes.append({})
        self.opened.append((self.root, self.dot, self.scopes))
        if word in ("define", "block"):
            self.root = self.dot = () if (_NAME.findall(code) or [""])[0] in self.rooted else None
            self.scopes = [{}]

    def _changes(self, code: str) -> None:
        for function, target, key in _SET.findall(code):
            keys = self._value(target)
            if keys is None and function == "set":
                self.reads.loose.update([key] if key else [])
            elif keys is None:
                self.reads.complete = False
            elif keys[:1] in ((), ("Values",)):
                self.reads.changed.add((*keys, key)[1:] if key and function == "set" else keys[1:])

    def _calls(self, code: str) -> None:
        for name, _, context in _CALL.findall(code):
            is_root = self._value(context) == ()
            if name:
                self.reads.calls[name] = self.reads.calls.get(name, True) and is_root

    def _value(self, code: str) -> Path:
        """Return what an expression is, if it is a plain path or a new map."""
        code = code[merged.end() :].partition(" ")[0] if (merged := _MERGED.match(code)) else code
        found = _PATH.fullmatch(code) or re.fullmatch(r"(\$\w*)()", code)
        return self._path(found[1], found[2]) if found else _NEW if _MADE.match(code) else None

    def _path(self, variable: str, fields: str) -> Path:
        begin = self.dot if not variable else self.root if variable == "$" else self._variable(variable)
        return None if begin is None else (*begin, *filter(None, fields.split(".")))

    def _variable(self, name: str) -> Path:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)


def _plain(code: str) -> str:
    """Write `(.a).b`, `index .a "b"` and `get .a "b"` as the path that each is."""
    code = _KEYED.sub(lambda found: ".".join([found[1].rstrip("."), *_NAME.findall(found[2])]), code)
    return _GROUP.sub(r"\1", code)
