"""Prints which pinned versions are behind: `make newest`.

The ordinary clients are asked: `go list -m -versions` for the modules of engines and of schemas, `pip index versions`
for the Python programs that launchers, option lists and tests cite, and for chartgen's own requirements. Images are
not among them: no client lists their tags without an account.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from chartgen.data.compatibility import version
from chartgen.helm.yaml import load_file

ROOT = Path(__file__).parents[2]
DATA = ROOT / "chartgen" / "data"
# What data/options.yaml was read from -> the package of the same releases.
PACKAGES = {"megatron-lm": "megatron-core", "megatron-bridge": "megatron-bridge"}
_PINNED = re.compile(r"\b([a-z][a-z0-9.-]*)==(\d[0-9.]*)")
_CITED = re.compile(r"\b([a-z][a-z0-9-]*) ((?:\d[0-9.]*(?:, | and )?)+) \(PyPI\)")
_RELEASE = re.compile(r"v?\d+(\.\d+)+")  # nothing before a release


def modules() -> Iterator[tuple[str, str]]:
    """Return the Go modules, each with its pinned version; the older schemas of Kubernetes stay as they are."""
    engines: Any = load_file(DATA / "engines.yaml").data
    schemas: Any = load_file(DATA / "schemas.yaml").data
    for each in (*engines["engines"].values(), *schemas["schemas"]):
        if "module" in each:
            yield each["module"], each["version"]


def packages() -> Iterator[tuple[str, str]]:
    """Return the Python packages, each with a pinned or cited version."""
    options: Any = load_file(DATA / "options.yaml").data
    for program, package in PACKAGES.items():
        for revision in options[program]["releases"].values():
            if found := re.search(r"v(\d+\.\d+\.\d+)$", str(revision)):
                yield package, found[1]
    for path in (DATA.parent / "library" / "launchers").glob("*/launcher.yaml"):
        for package, cited in _CITED.findall(path.read_text("utf-8")):
            yield from ((package, each) for each in re.findall(r"\d[0-9.]*\d", cited))
    yield from _PINNED.findall((ROOT / "Makefile").read_text("utf-8"))
    pins = dict(_PINNED.findall("".join(path.read_text("utf-8") for path in (ROOT / "requirements").glob("*.txt"))))
    wanted = [ROOT / "pyproject.toml", *(ROOT / "requirements").glob("*.in")]
    names = {
        name for path in wanted for name in re.findall(r'(?:^|")([a-z][a-z0-9.-]*)', path.read_text("utf-8"), re.M)
    }
    yield from ((name, pins[name]) for name in names & pins.keys())


def latest(pinned: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the newest of several versions of each name."""
    found: dict[str, str] = {}
    for name, each in pinned:
        found[name] = max(each, found.get(name, each), key=version)
    return found


def releases(answer: str) -> list[str]:
    """Return the releases in the answer of a client, without versions before a release."""
    return [word for word in re.split(r"[\s,()]+", answer) if _RELEASE.fullmatch(word)]


def listed(argv: list[str]) -> list[str]:
    """Return the releases that a client lists; none if it lists none."""
    with tempfile.TemporaryDirectory() as folder:
        return releases(subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False).stdout)


def of_module(name: str) -> list[str]:
    return listed(["go", "list", "-m", "-versions", name])


def of_package(name: str) -> list[str]:
    return listed([sys.executable, "-m", "pip", "index", "versions", "--ignore-requires-python", name])


def row(name: str, pinned: str, found: list[str]) -> tuple[str, str, str, str]:
    newest = max(found, key=version, default="not listed")
    behind = bool(found) and version(newest) > version(pinned)
    return name, pinned, newest, "behind" if behind else ""


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Return one row for each module and package, in the order of their names."""
    sources: list[tuple[dict[str, str], Callable[[str], list[str]]]]
    sources = [(latest(modules()), of_module), (latest(packages()), of_package)]
    with ThreadPoolExecutor(4) as pool:
        for pinned, ask in sources:
            names = sorted(pinned)
            for name, found in zip(names, pool.map(ask, names), strict=True):
                yield row(name, pinned[name], found)


if __name__ == "__main__":
    table = [("name", "pinned", "newest", ""), *rows()]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for line in table:
        sys.stdout.write("  ".join(map(str.ljust, line, widths)).rstrip() + "\n")
