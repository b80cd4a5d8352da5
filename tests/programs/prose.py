"""Report wordy or unidiomatic phrases in the documentation, in every string of the package, and in the charts' sources.

`prose.yaml` lists the phrases with a better wording. Skipped are code blocks and code spans, which quote programs, and
the names of arguments and keys at the beginning of a line.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chartgen.helm.yaml import load_file

TEXTS = ("*.md", "docs/**/*.md", "chartgen/library/**/*.*", "chartgen/data/*.yaml", "values/**/*.yaml")
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`|^ +\w+(?=: )", re.MULTILINE | re.DOTALL)


def findings(root: Path) -> list[str]:
    """Return one line for each listed phrase in the texts and modules below a folder."""
    phrases: Any = load_file(Path(__file__).with_suffix(".yaml")).data
    found: list[tuple[Path, int, str, str]] = []
    for path in {path for glob in TEXTS for path in root.glob(glob)}:
        if path.suffix not in (".py", ".pyc"):
            found += _found(phrases, path, 1, path.read_text())
    for path in root.glob("chartgen/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found += _found(phrases, path, node.lineno, node.value)
    return [
        f"{path.relative_to(root)}:{line}: {phrase!r}; better: {better}" for path, line, phrase, better in sorted(found)
    ]


def _found(phrases: dict[str, str], path: Path, first: int, text: str) -> Iterator[tuple[Path, int, str, str]]:
    prose = _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    for pattern, better in phrases.items():
        for match in re.finditer(rf"(?<![\w-])({pattern})(?![\w-])".replace(" ", r"\s+"), prose, re.IGNORECASE):
            yield path, first + prose.count("\n", 0, match.start()), " ".join(match[0].split()), better


if __name__ == "__main__":
    sys.exit("\n".join(findings(Path.cwd())) or 0)
