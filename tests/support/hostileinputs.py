"""Hostile inputs, made of real charts, logs, values files and libraries: always the same ones for a seed."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import hostileclusters
from caged import GIGA, ROOT
from mutators import LOG, ODD, SCHEMA, TEXT, Files, Mutator, moved, mutated, twisted, within
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from chartgen.composer.assembly import compose
from chartgen.composer.library import open_library
from chartgen.composer.target import load_target
from chartgen.helm.manifests import objects, render
from chartgen.helm.schema import SCHEMA_FILE

_LARGEST = 3 << 20  # bytes of a chart that is taken as material
_EXCERPT = 100_000  # bytes of a log that is taken, most times
_FORMS = ("text", "json", "sarif", "junit", "github")


@dataclass
class Material:
    """What is mutated."""

    charts: list[dict[str, bytes]]  # charts as path -> bytes, of this repository first
    logs: list[bytes]  # logs, unpacked
    values: list[bytes]  # values files
    libraries: list[dict[str, bytes]]  # folders of targets and fragments
    manifests: list[list[Any]]  # rendered objects of this repository's charts, a list for each
    counts: str  # how many of each, for people


def collect(charts: Path | None, corpus: Path | None) -> Material:
    """Read the material: this repository's, and what others have given."""
    own = [_folder(file.parent) for file in sorted(ROOT.glob("charts/*/Chart.yaml"))]
    own.append(_folder(ROOT / "tests" / "data" / "lint" / "sound"))
    foreign = [_folder(file.parent) for file in sorted(charts.rglob("Chart.yaml"))] if charts else []
    foreign = [each for each in foreign if sum(map(len, each.values())) <= _LARGEST]
    genuine = (
        [_log(path) for path in sorted(corpus.rglob("*")) if path.is_file() and path.suffix != ".json"]
        if corpus
        else []
    )
    logs = [path.read_bytes() for path in sorted((ROOT / "tests" / "data" / "logs").iterdir())]
    values = [
        path.read_bytes()
        for path in sorted([*ROOT.glob("values/**/*.yaml"), *ROOT.glob("tests/data/recipes/**/*.yaml")])
    ]
    libraries = [_folder(path) for path in sorted((ROOT / "tests" / "data" / "defects").iterdir())]
    manifests = [
        objects(render(compose(load_target(name)), "run", "ml", {})) for name in open_library().names("target")
    ]
    counts = (
        f"{len(own)} charts of this repository, {len(foreign)} of others; {len(logs)} logs of this repository, "
        f"{len(genuine)} of others; {len(values)} values files, {len(libraries)} libraries"
    )
    return Material([*own, *foreign], [*logs, *genuine], values, libraries, manifests, counts)


def _folder(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def _log(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


@dataclass
class Input:
    """One input."""

    made: Files = field(default_factory=Files)  # its files
    argv: list[str] = field(default_factory=list)  # the arguments of chartgen, or of this module's own readers
    ways: list[str] = field(default_factory=list)  # how it was made


def invent(kind: str, number: int, seed: int, material: Material) -> Input:
    """Make an input, always the same one for a kind, number, seed and material."""
    rng = Random(f"{seed}/{kind}/{number}")
    made = Input()
    _INVENT[kind](made, rng, material)
    return made


def _take(made: Input, path: str, data: bytes, rng: Random, others: Sequence[bytes], ways: Sequence[Mutator]) -> None:
    made.made.files[path], names = mutated(data, rng, others, ways)
    made.ways += [f"{name} {path}" for name in names]


_LOGS = [
    "run.log",
    "run.log",
    "run.log.gz",
    "-run.log",
    "a\x1b[2J\n::set-env name=x::.log",
    "events.out.tfevents.1.x",
    "é\u202e",
]
_MODEL = ["--model", "llama2-70b", "--sequence", "4096", "--gpus", "64", "--gpu", "h100", "--batch", "256"]
_OF_METRICS = [
    *(
        [],
        [],
        ["--output", "json"],
        ["--output", "csv"],
        ["--prometheus"],
        ["--window", "all"],
        ["--report", "{out}/r.html"],
    ),
    *(
        [*_MODEL],
        [*_MODEL, "--output", "json"],
        ["--run", "2"],
        ["--window", "5:9"],
        ["--baseline", "{log}", "--fail-below", "5"],
    ),
    *(
        [*_MODEL, "--machines", "8", "--price", "90", "--report", "{out}/r.html"],
        ["--window", "all", "--output", "csv"],
    ),
]


def _invent_log(made: Input, rng: Random, material: Material) -> None:
    names = [rng.choice(_LOGS)]
    if rng.random() < 0.1:
        names = [f"logs/{name}" for name in ("0.log", "1.log", rng.choice(_LOGS))]
        made.made.links["logs/link"] = rng.choice(["/dev/zero", "../../../outside/secret.yaml", ".", "nowhere"])
        made.made.pipes += ["logs/pipe"] if rng.random() < 0.3 else []
    for name in names:
        data = rng.choice(material.logs)
        if rng.random() < 0.9 and len(data) > _EXCERPT:
            begin = rng.choice([0, rng.randrange(len(data) - _EXCERPT)])
            data = data[begin : begin + _EXCERPT]
        _take(made, name, data, rng, material.logs, LOG)
    place = names[0] if len(names) == 1 else "logs"
    options = [word.replace("{log}", place) for word in rng.choice(_OF_METRICS)]
    made.argv = ["metrics", *options, "--", place]


def _invent_chart(made: Input, rng: Random, material: Material) -> None:
    own = 11
    many = material.charts[own:] or material.charts[own - 1 : own]
    bases = [material.charts[own - 1], rng.choice(many), rng.choice(material.charts[:own])]
    chart = dict(rng.choices(bases, [5, 4, 1])[0])
    root = rng.choice(
        ["charts/x", "charts/x", "charts/--post-renderer=x", "charts/a\n::stop-commands::x", "charts/é \x1b[2J"]
    )
    made.made.files = {f"{root}/{path}": data for path, data in chart.items()}
    for _each in range(rng.choice([1, 1, 2])):
        _change(made, root, rng, material)
    if rng.random() < 0.2:
        _settings(made, rng)
    made.argv = [
        "lint",
        "--no-cache",
        "--limit",
        "20",
        "--kubernetes",
        "1.37",
        "--output",
        rng.choice(_FORMS),
        "--",
        "charts",
    ]


def _change(made: Input, root: str, rng: Random, material: Material) -> None:
    files = made.made.files
    inner = {path: data for path, data in files.items() if path.startswith(f"{root}/")}
    way = rng.choice(["bytes", "bytes", "tree", "tree", "schema", "objects", "objects", "moved", "name", "preset"])
    made.ways.append(way)
    if way == "bytes" and inner:
        path = rng.choice(sorted(inner))
        _take(made, path, inner[path], rng, list(inner.values()), TEXT)
    elif way == "tree":
        path = f"{root}/{rng.choice(['values.yaml', 'Chart.yaml', 'values.schema.json'])}"
        files[path] = _json(twisted(_plain(files.get(path, b"")), rng, SCHEMA if path.endswith("json") else ODD))
    elif way == "schema":
        schema = _plain(files.get(f"{root}/{SCHEMA_FILE}", b"")) or {"properties": {"a": {"type": "string"}}}
        values = _plain(files.get(f"{root}/values.yaml", b""))
        files[f"{root}/{SCHEMA_FILE}"] = _json(twisted(schema, rng, SCHEMA))
        files[f"{root}/values.yaml"] = _json({**(values if isinstance(values, dict) else {}), "a": "a" * 40 + "!"})
    elif way == "objects":
        things = twisted(rng.choice(material.manifests), rng, ODD)
        kept = {
            path: data for path, data in files.items() if "/templates/" not in path and not path.endswith(SCHEMA_FILE)
        }
        made.made.files = {
            **kept,
            f"{root}/templates/all.yaml": _documents(things).replace("{{", "{ {").encode("utf-8", "replace"),
        }
    elif way == "moved":
        made.ways.append(moved(made.made, root, rng))
    elif way == "name":
        head = _plain(files.get(f"{root}/Chart.yaml", b""))
        head = head if isinstance(head, dict) else {}
        files[f"{root}/Chart.yaml"] = _json(
            {**head, rng.choice(["name", "version", "type", "dependencies"]): rng.choice(ODD)}
        )
    elif way == "preset":
        name = (_plain(files.get(f"{root}/Chart.yaml", b"")) or {}).get("name")
        _take(
            made,
            f"values/{name}/p.yaml" if _safe(name) else "values/p.yaml",
            rng.choice(material.values),
            rng,
            material.values,
            TEXT,
        )


def _safe(name: object) -> bool:
    return isinstance(name, str) and bool(re.fullmatch(r"[a-z0-9-]+", name))


_TABLES = [
    *(
        '[lint]\ncharts = ["--post-renderer=./x"]\n',
        '[lint]\ncharts = ["../outside"]\n',
        "[lint]\nselect = [7]\n",
        "[lint",
    ),
    *(
        '[lint]\npresets = "/etc"\n',
        '[lint]\nbaseline = "known.json"\n',
        '[lint]\nignore = ["no-system-folders"]\n',
        "[lint]\nx=1\n",
    ),
    *(
        '[lint]\nstrict = "yes"\n',
        "lint = 7\n",
        '[lint]\nbaseline = "/dev/zero"\n',
        '[lint]\nkubernetes = ["9.9"]\n',
        "a=" + "[" * 5000,
    ),
]


def _settings(made: Input, rng: Random) -> None:
    table = rng.choice(_TABLES).encode()
    file = rng.choice(["chartgen.toml", "pyproject.toml"])
    _take(made, file, table.replace(b"[lint]", b"[tool.chartgen.lint]") if "py" in file else table, rng, [table], TEXT)
    known = {"findings": [{"rule": "x", "path": "y", "message": "z", "count": 1}]}
    made.made.files["known.json"] = _json(twisted(known, rng, ODD))


def _invent_objects(made: Input, rng: Random, material: Material) -> None:
    text = _documents(twisted(rng.choice(material.manifests), rng, ODD)).encode("utf-8", "replace")
    made.made.files["rendered.yaml"] = text
    if rng.random() < 0.2:
        _take(made, "rendered.yaml", text, rng, [text, *material.values], TEXT)
    made.argv = [rng.choice(_FORMS)]


def _invent_values(made: Input, rng: Random, material: Material) -> None:
    data = rng.choice(material.values)
    if rng.random() < 0.5:
        made.made.files["v.yaml"] = _json(twisted(_plain(data), rng, ODD))
    else:
        _take(made, "v.yaml", data, rng, material.values, TEXT)
    target = rng.choice(list(open_library().names("target")))
    form = rng.choice(_FORMS)
    made.argv = rng.choice(
        [
            ["lint", "--no-cache", "--limit", "20", "--output", form, "v.yaml"],
            ["check", target, "-f", "v.yaml", "--output", form],
            [
                "check",
                "gke-a3mega",
                "--set",
                f"x={made.made.files['v.yaml'][:200].decode('utf-8', 'replace')}".replace("\0", ""),
            ],
        ]
    )
    if made.argv[0] == "lint" and rng.random() < 0.3:
        _settings(made, rng)


def _invent_library(made: Input, rng: Random, material: Material) -> None:
    files = dict(rng.choice(material.libraries))
    made.made.files = {f"lib/{path}": data for path, data in files.items()}
    for path in rng.sample(sorted(made.made.files), min(2, len(files))):
        _take(made, path, made.made.files[path], rng, list(files.values()), TEXT)
    if rng.random() < 0.3:
        folder = rng.choice(sorted({os.path.dirname(path) for path in made.made.files}))  # noqa: PTH120 a name, no file
        made.made.links[f"{folder}/{rng.choice(['beforeLaunch.sh', 'env.yaml', 'x'])}"] = (
            "../../../../outside/secret.yaml"
        )
    targets = [path.rpartition("/")[2].removesuffix(".yaml") for path in files if path.startswith("targets/")] or ["x"]
    made.argv = rng.choice(
        [
            *(["show", targets[0], "--path", "lib"], ["build", targets[0], "--path", "lib", "-d", "{out}"]),
            ["list", rng.choice(["targets", "fragments", "launchers"]), "--path", "lib"],
        ]
    )


def _invent_cluster(made: Input, rng: Random, _: Material) -> None:
    made.argv, made.ways = hostileclusters.invent(made.made, rng)


_INVENT: dict[str, Callable[[Input, Random, Material], None]] = {
    "log": _invent_log,
    "lint": _invent_chart,
    "chart": _invent_chart,
    "objects": _invent_objects,
    "values": _invent_values,
    "library": _invent_library,
    "cluster": _invent_cluster,
}


@cache
def _plain_of(data: bytes) -> str:
    try:
        tree = YAML(typ="safe", pure=False).load(data)
        return json.dumps(tree, default=str) if within(tree) else "null"  # aliases may double it beyond all memory
    except (YAMLError, ValueError, TypeError, RecursionError, UnicodeError):
        return "null"


def _plain(data: bytes) -> Any:
    return json.loads(_plain_of(data)) if len(data) < GIGA >> 10 else None


def _json(tree: Any) -> bytes:
    return json.dumps(tree).encode()


def _documents(things: Any) -> str:
    many = things if isinstance(things, list) else [things]
    return "".join(f"---\n# Source: x/templates/all.yaml\n{json.dumps(each, indent=1)}\n" for each in many)
