"""What is generated for editors: JSON Schemas of definition files and of every chart's values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from chartgen import fragment, launcher, target, workload
from chartgen.chart import Chart
from chartgen.definition import json_schema
from chartgen.yamltext import read_text

_DEFINITIONS = {
    "target": target.FIELDS,
    "fragment": fragment.FIELDS,
    "launcher": launcher.FIELDS,
    "workload": workload.FIELDS,
}


def schemas(charts: Iterable[Chart]) -> dict[str, str]:
    """Give the published schemas, file name -> text: one per kind of definition file, one per chart's values."""
    files = {
        f"{name}.schema.json": json.dumps(json_schema(f"chartgen {name}", fields), indent=2) + "\n"
        for name, fields in _DEFINITIONS.items()
    }
    return files | {f"{chart.name}.values.schema.json": chart.files["values.schema.json"] for chart in charts}


def stale(files: dict[str, str], folder: Path) -> list[Path]:
    """Name the files of a folder that differ from what they should hold, or that should not be there."""
    there = set(folder.glob("*.json"))
    wrong = {path for name, text in files.items() if not (path := folder / name).is_file() or read_text(path) != text}
    return sorted(wrong | (there - {folder / name for name in files}))


def write(files: dict[str, str], folder: Path) -> None:
    """Write files into a folder, and remove the schemas in it that are no longer published."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in stale(files, folder):
        if path.name in files:
            path.write_text(files[path.name], encoding="utf-8", newline="\n")
        else:
            path.unlink()
