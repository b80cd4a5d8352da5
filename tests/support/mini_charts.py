"""Charts of a few lines for tests, and the real Helm's answers about them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from chartgen.helm.program import find_helm

# What JSON can say.
Json: TypeAlias = Any

CHART_YAML = "apiVersion: v2\nname: tiny\nversion: 0.1.0\n"
ECHO = {"Chart.yaml": CHART_YAML, "values.yaml": "", "templates/echo.yaml": "values: {{ .Values | toJson | quote }}\n"}


@dataclass(frozen=True)
class TinyChart:
    """What the code under test asks of a chart: a name, and a way to write it."""

    name: str
    files: dict[str, str]

    def write(self, directory: Path) -> None:
        for name, text in self.files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def echo(folder: Path, defaults: str, arguments: list[str], stdin: str | None = None) -> Json:
    """Return the values that a template sees when the real Helm is given these arguments."""
    TinyChart("tiny", {**ECHO, "values.yaml": defaults}).write(folder)
    text = find_helm().run(["template", "release", str(folder), *arguments], stdin)
    return json.loads(json.loads(text.partition("values: ")[2]))
