"""What strangers do to files: bytes, lines, encodings, trees of YAML and JSON, names and links; as a seed says."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

# No input is larger: what is repeated a million times is cut there.
LARGEST = 24 << 20
_NODES = 500_000  # of a tree, each as often as it is reached
PAYLOAD = "stolen-content-4711"

WORDS = [
    *(b"../../outside/secret.yaml", b"/etc/passwd", b"/dev/zero", b"~/.ssh/id_rsa", b"file:///etc/passwd"),
    *(b"--post-renderer=./evil.sh", b"--set-file=x=/etc/passwd", b"-", b"--", b"--kubeconfig=/x"),
    *(b"\x1b[2J", b"\x1b]0;pwned\x07", b"\xc2\x9b31m", "\u202e".encode(), "\u2028".encode(), b"\r", b"\x00", b"\x0c"),
    *(b"\n::stop-commands::x\n", b"\n::set-env name=A::b\n", b"##[add-mask]x", b"\n##[group]\n"),
    *(b"{{", b"}}", b"{{ . }}", b"{{/*", b"<%", b"<%= common('/etc/passwd') %>", b"{%", b"{{ include", b"{{- end }}"),
    *(
        b"&a [*a, *a]",
        b"*a",
        b"<<: *a",
        b"!!python/object/apply:os.system [id]",
        b"!!binary x",
        b"!<x>",
        b"? ",
        b"---\n",
    ),
    *(
        b"\t",
        b"%YAML 9.9\n",
        b"|+9",
        b">-",
        b"'",
        b'"',
        b"# chartgen: ignore[no-host-access] x",
        b"...\n",
        b"\xed\xa0\x80",
    ),
    *(
        b"NaN",
        b"Infinity",
        b"-0",
        b"1e999",
        b"0x" + b"f" * 40,
        b"9" * 400,
        b"1_000",
        b"0o17",
        b"1:20:30",
        b"2026-99-99",
    ),
    *(b"lm loss: nan |", b":::MLLOG {", b"DLLL {", b"iteration 1/ 0 | elapsed time per iteration (ms): 0 |"),
    *(b"algbw   busbw\n", b"- arguments -----\n", b"GiB(", b"[global_step=", b"reduced_train_loss", b"heckpoint "),
]
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NUMBERS = [
    b"0",
    b"-1",
    b"9" * 18,
    b"9" * 400,
    b"1e308",
    b"1e-320",
    b"nan",
    b"inf",
    b"-inf",
    b"0x10",
    b"1e",
    b"",
    b"--1",
]


def _span(data: bytes, rng: Random, most: int = 4096) -> tuple[int, int]:
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + rng.randint(0, most))


def flip(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Change a few bytes."""
    changed = bytearray(data)
    for _each in range(rng.choice([1, 4, 64])):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def delete(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Leave a span out."""
    begin, end = _span(data, rng)
    return data[:begin] + data[end:]


def cut(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Cut the end off."""
    return data[: rng.randrange(len(data) + 1)]


def duplicate(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Repeat a span a few times."""
    begin, end = _span(data, rng)
    return data[:end] + data[begin:end] * rng.choice([1, 2, 50]) + data[end:]


def splice(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Put a span of another file in."""
    other = rng.choice(others)
    begin, end = _span(other, rng)
    at = rng.randrange(len(data) + 1)
    return data[:at] + other[begin:end] + data[at:]


def insert(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Put words in that mean something to a reader, a shell, a terminal or a runner."""
    for _each in range(rng.choice([1, 1, 5])):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.choice(WORDS) + data[at:]
    return data


def numbers(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Replace numbers by others that no computer likes."""
    share, new = rng.choice([0.01, 0.1, 1.0]), rng.choice(_NUMBERS)
    return _NUMBER.sub(lambda match: new if rng.random() < share else match[0], data)


def shuffle(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Put lines in another order."""
    lines = data.splitlines(keepends=True)
    for _each in range(rng.choice([1, 10, 1000])):
        if lines:
            lines.append(lines.pop(rng.randrange(len(lines))))
    return b"".join(lines)


def repeat_line(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Repeat one line, rarely a million times."""
    lines = data.splitlines(keepends=True) or [b"\n"]
    at = rng.randrange(len(lines))
    times = rng.choices([10, 1000, 20_000, 1_000_000], [40, 40, 18, 2])[0]
    lines[at] *= min(times, LARGEST // max(len(lines[at]), 1))
    return b"".join(lines)


def long_line(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Make one line long, by repeating a piece of it."""
    begin, end = _span(data, rng, 60)
    piece = data[begin:end].replace(b"\n", b" ") or b" "
    size = rng.choices([1000, 100_000, 2_000_000, 20_000_000], [40, 45, 13, 2])[0]
    return data[:begin] + piece * (size // len(piece)) + data[end:]


def nest(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Nest brackets, blocks or template actions deeply."""
    opened, closed = rng.choice(
        [
            (b"[", b"]"),
            (b"{a: ", b"}"),
            (b'{"a":', b"}"),
            (b"- ", b""),
            (b"{{", b""),
            (b"(", b")"),
            (b"{{ if . }}", b"{{ end }}"),
        ]
    )
    deep = rng.choice([50, 1000, 30_000])
    at = rng.choice([0, len(data), rng.randrange(len(data) + 1)])
    return data[:at] + opened * deep + closed * rng.choice([0, deep]) + data[at:]


def bomb(_: bytes, rng: Random, __: Sequence[bytes]) -> bytes:
    """Aliases that double, or that lead to themselves."""
    if rng.random() < 0.3:
        return b"a: &a [*a]\nb: &b {b: *b}\nc: *a\n"
    rows = [
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" if n else "a0: &a0 [x]" for n in range(rng.choice([5, 9, 30]))
    ]
    return "\n".join(rows).encode() + b"\n"


def encode(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Write it in another encoding."""
    way = rng.randrange(6)
    text = data.decode("utf-8", "replace")
    if way < 3:
        return text.encode(["utf-16", "utf-32", "utf-7"][way], "replace")
    if way == 3:
        return b"\xef\xbb\xbf" * rng.choice([1, 3]) + data
    if way == 4:
        return data.replace(b"\n", rng.choice([b"\r", b"\r\n", b"\x85", b"\xe2\x80\xa8", b"\x00"]))
    return bytes(rng.randrange(256) for _each in range(2000))


def pack(data: bytes, rng: Random, _: Sequence[bytes]) -> bytes:
    """Pack it, once or twice, whole or cut off; or only say that it is packed."""
    packed = gzip.compress(data, 1, mtime=0)
    way = rng.randrange(5)
    if way == 0:
        return b"\x1f\x8b" + data
    return [packed, gzip.compress(packed, 1, mtime=0), packed[: len(packed) // 2], packed + data[:500]][way - 1]


Mutator = Callable[[bytes, Random, Sequence[bytes]], bytes]
BYTES: tuple[Mutator, ...] = (
    *(flip, delete, cut, duplicate, splice, insert, numbers, shuffle, repeat_line, long_line, nest, encode),
)
LOG: tuple[Mutator, ...] = (*BYTES, numbers, insert, shuffle, pack)
TEXT: tuple[Mutator, ...] = (*BYTES, bomb)


def mutated(data: bytes, rng: Random, others: Sequence[bytes], ways: Sequence[Mutator]) -> tuple[bytes, list[str]]:
    """Change some bytes in one to four ways, and name them."""
    names = []
    for _each in range(rng.choices([1, 2, 3, 4], [5, 3, 1, 1])[0]):
        way = rng.choice(ways)
        data = way(data, rng, others)[:LARGEST]
        names.append(way.__name__)
    return data, names


_DEEP: Any = None
for _each in range(200):
    _DEEP = [_DEEP]
# What stands where a reader expects something else.
ODD: list[Any] = [
    *(None, True, False, 0, -1, 7, 1.5, 1e308, 10**30, "", " ", "x", "0", "null", "~", "\n", "é\u202e", "x" * 70_000),
    *(
        [],
        {},
        [[]],
        [None],
        [{}],
        {"": None},
        {"a": {"b": []}},
        [1, "a", None],
        {"name": 7},
        _DEEP,
        "{{ . }}",
        "../../x",
    ),
    *(
        "/",
        "/etc",
        "--flag",
        "\x1b[31m",
        "##[x]",
        "::x::",
        "a/b/c",
        "a: b",
        "a\u0000b",
        "$(id)",
        "9" * 40,
        [[1, 2]] * 20,
    ),
]
_PATTERNS = [
    "^(a+)+$",
    "(a|a)*b",
    "(",
    "[",
    "(?P<n>",
    r"\d{99999}",
    "(x+x+)+y",
    r"\p{L}",
    "(?<!a+)",
    "^(([a-z])+.)+[A-Z]$",
]
_TARGETS = [
    "http://127.0.0.1:9/x",
    "file:///etc/passwd",
    "file:///dev/zero",
    "#/none",
    "#",
    "/etc/passwd",
    "x.json",
    "//h/x",
    "\ud800",
]
# What a schema may hold that leads out of it, does not end, or is of no type that schemas have.
SCHEMA: list[Any] = [
    *({"$ref": each} for each in _TARGETS),
    *({"pattern": each, "type": "string"} for each in _PATTERNS),
    *({"patternProperties": {each: {}}} for each in _PATTERNS[:4]),
    *(
        {"$id": _TARGETS[0], "$ref": "y.json"},
        {"$schema": _TARGETS[0]},
        {"$dynamicRef": "#x"},
        {"allOf": [{"$ref": "#"}] * 2},
    ),
    *(
        {"type": "foo"},
        {"type": []},
        {"enum": 7},
        {"required": "x"},
        {"properties": []},
        {"items": 3},
        {"minimum": "x"},
    ),
    *(
        {"multipleOf": 0},
        {"maxLength": -1},
        {"format": "uri"},
        {"const": float("nan")},
        {"not": {}},
        {"if": True, "then": 5},
    ),
    *({"dependencies": 3}, {"additionalProperties": "x"}, {"definitions": 7}, {"contentEncoding": "x"}, {"$ref": 7}),
]


def twisted(tree: Any, rng: Random, odd: Sequence[Any]) -> Any:
    """Replace, remove, rename or repeat a few nodes of a tree of plain data; the tree itself stays."""
    tree = json.loads(json.dumps(tree))
    for _each in range(rng.choice([1, 1, 2, 5])):
        nodes = _nodes(tree)
        if not nodes:
            return deepcopy(rng.choice(odd))
        parent, key = rng.choice(nodes)
        way = rng.randrange(8)
        if way == 0:
            del parent[key]
        elif way == 1 and isinstance(parent, dict):
            parent[str(rng.choice(WORDS[:20]).decode("utf-8", "replace"))] = parent.pop(key)
        elif way == 2 and isinstance(parent, list):
            times = rng.choice([1, 500])
            parent += [parent[key]] * (times if len(nodes) * times <= _NODES else 1)
        elif way == 3:
            parent[key] = {"a": parent[key]} if rng.random() < 0.5 else [parent[key]]
        else:
            parent[key] = deepcopy(rng.choice(odd))  # which the next change may change
    return tree


def within(tree: Any) -> bool:
    """Report whether a tree of plain data is small enough to be written out, where aliases are written each time."""
    return len(_nodes(tree)) <= _NODES


def _nodes(tree: Any) -> list[tuple[Any, Any]]:
    """Return the places of a tree, or the first of them and one more than a tree may have."""
    found: list[tuple[Any, Any]] = []
    left = [tree]
    while left and len(found) <= _NODES:
        node = left.pop()
        pairs = (
            list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
        )
        found += [(node, key) for key, _ in pairs]
        left += [child for _, child in pairs]
    return found


@dataclass
class Files:
    """An input: files and links by their paths."""

    files: dict[str, bytes] = field(default_factory=dict)  # path in the input's folder -> its bytes
    links: dict[str, str] = field(default_factory=dict)  # path -> what it leads to
    pipes: list[str] = field(default_factory=list)  # paths of named pipes


_LEADS = [
    "/etc/passwd",
    "../../../../outside/secret.yaml",
    "/dev/zero",
    "/proc/self/environ",
    "..",
    ".",
    "nowhere",
    "/",
]
_NAMES = [
    *(
        "--post-renderer=x.yaml",
        "a\n::stop-commands::x.yaml",
        "\x1b[2J.yaml",
        "a b.yaml",
        "{{ . }}.yaml",
        "é\u202e.tpl",
    ),
    *("\udcff.yaml", "templates/\udcff\udcfe.yaml", "x" * 200 + ".yaml", "CON", "-", "templates/NOTES.txt", "*.yaml"),
    *("templates/tests/x.yaml", "charts/x/Chart.yaml", "crds/x.yaml", ".helmignore", "Chart.lock", "requirements.yaml"),
]
_ENTRIES = [
    "sub/Chart.yaml",
    "../../../outside/x",
    "/etc/x",
    "sub/values.schema.json",
    "sub/templates/x.yaml",
    "a/../../b",
    "",
]


def archive(data: bytes, rng: Random) -> bytes:
    """Pack a subchart, with names that lead out, links, sizes that are not true, or another archive in it."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for _each in range(rng.choice([1, 3, 40])):
            entry = tarfile.TarInfo(rng.choice(_ENTRIES) or f"sub/charts/{rng.randrange(9)}.tgz")
            entry.size = min(len(data), rng.choice([0, 100, 10**6]))
            if rng.random() < 0.2:
                entry.type, entry.linkname, entry.size = tarfile.SYMTYPE, rng.choice(_LEADS), 0
            elif rng.random() < 0.05:
                entry.type, entry.size = rng.choice([tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE]), 0
            tar.addfile(entry, io.BytesIO(data))
    text = packed.getvalue()
    return flip(text, rng, ()) if rng.random() < 0.3 else text


def moved(chart: Files, root: str, rng: Random) -> str:
    """Change the files of a chart's folder as such: names, links, pipes, archives; return what was done."""
    way = rng.choice(["link", "link", "name", "name", "pipe", "archive", "archive", "many", "drop", "folder"])
    data = rng.choice(list(chart.files.values()) or [b""])
    if way == "link":
        chart.links[f"{root}/{rng.choice(['x.yaml', 'templates/x.yaml', 'values.yaml', 'charts', 'Chart.yaml'])}"] = (
            rng.choice(_LEADS)
        )
    elif way == "name":
        chart.files[f"{root}/{rng.choice(_NAMES)}"] = data
    elif way == "pipe":
        chart.pipes.append(f"{root}/{rng.choice(['x.yaml', 'templates/x.yaml', 'values.yaml'])}")
    elif way == "archive":
        chart.files[f"{root}/charts/{rng.choice(['s-0.1.0', '--x', 's'])}.tgz"] = archive(data, rng)
    elif way == "many":
        chart.files |= {f"{root}/templates/f{number}.yaml": b"a: 1\n" for number in range(rng.choice([20, 300]))}
    elif way == "drop" and chart.files:
        del chart.files[rng.choice(list(chart.files))]
    elif way == "folder":
        chart.files[f"{root}/{rng.choice(['values.yaml', 'Chart.yaml', 'values.schema.json', 'README.md'])}/x"] = b"x"
    return way
