"""How heavy chartgen is, beside the limits that it has agreed to: `make size`, a part of `make lint`.

Each figure is counted, not timed, so that a change that makes the house larger is seen when it happens. A limit in
tests/data/size.yaml is raised only in the commit that says what the weight buys.
"""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from chart_shape import include_depth
from ruamel.yaml import YAML
from work import measure

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "gke-a3mega"
LIMITS = ROOT / "tests" / "data" / "size.yaml"
# Parts of names for "something is wrong"; Problem and Finding are to be the only ones.
WRONG = re.compile(r"(Problem|Finding|Complaint|Claim|Fault|Diagnosis|Notice|Refusal|Failure)s?$")


def files(folder: Path) -> list[Path]:
    """Return the files below a folder."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def lines(folder: Path) -> int:
    """Return the number of lines of text below a folder."""
    return sum(path.read_text().count("\n") for path in files(folder))


def longest(folder: Path) -> int:
    """Return the number of characters of the longest line below a folder of templates."""
    return max(len(line) for path in files(folder) for line in path.read_text().splitlines())


def distinct(folder: Path) -> int:
    """Return the number of lines of the files that differ when the chart's name is left out of them."""
    contents = {}
    for path in files(folder):
        text = path.read_text().replace(path.relative_to(folder).parts[0], "")
        contents[hashlib.sha256(text.encode()).digest()] = text.count("\n")
    return sum(contents.values())


def classes() -> Iterator[str]:
    """Yield the name of each class of the package, private ones left out."""
    for path in (ROOT / "chartgen").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name


def figures() -> dict[str, int]:
    """Return each figure by its name."""
    names = Counter(classes())
    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder, "gke-a3mega")
        built = ["build", "gke-a3mega", "--launchers", "megatron-lm", "-d", folder]
        subprocess.run([sys.executable, "-m", "chartgen", *built], cwd=ROOT, capture_output=True, check=True)
        program = lines(one)
    python = [path for path in files(ROOT / "chartgen") if path.suffix == ".py"]
    return {
        "lines of charts/gke-a3mega": lines(CHART),
        "lines of that chart for one program": program,
        "longest include chain of its templates": include_depth(CHART)[0],
        "longest line of its templates, in characters": longest(CHART / "templates"),
        "lines of charts/": lines(ROOT / "charts"),
        "distinct lines of charts/": distinct(ROOT / "charts"),
        "lines of Python in chartgen/": sum(path.read_text().count("\n") for path in python),
        "lines of Python in tests/": sum(path.read_text().count("\n") for path in (ROOT / "tests").rglob("*.py")),
        "classes that mean something is wrong": len({name for name in names if WRONG.search(name)}),
        "names that several classes have": sum(number > 1 for number in names.values()),
        "modules of chartgen that build loads": measure("build gke-a3mega -d FOLDER")["modules"],
        "modules of chartgen that check loads": measure("check gke-a3mega --preset gpt3-175b")["modules"],
    }


def main() -> int:
    """Print each figure with its limit; 1 if one is above it."""
    limits = YAML(typ="safe").load(LIMITS)
    over = 0
    for name, figure in figures().items():
        verdict = "over" if figure > limits[name] else ""
        over += bool(verdict)
        print(f"{name:<58} {figure:>8} {limits[name]:>8}  {verdict}".rstrip())
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
