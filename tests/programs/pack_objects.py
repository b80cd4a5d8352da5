"""Writes chartgen/data/objects: the objects of the engines' modules, such as CRDs, which a rehearsal applies.

Downloaded engines have no source beside them. Descriptions are left out: they are two thirds of the bytes, and only for
readers.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from chartgen.helm.yaml import load, read_text
from chartgen.rehearsal import engine_build, engines


def bare(data: Any, names: bool = False) -> Any:
    """Return the data without descriptions; `names` when its keys are names of fields."""
    if isinstance(data, dict):
        kept = {
            key: value for key, value in data.items() if names or key != "description" or not isinstance(value, str)
        }
        return {key: bare(value, names=key == "properties" and not names) for key, value in kept.items()}
    return [bare(each) for each in data] if isinstance(data, list) else data


def objects(source: Path, patterns: list[str]) -> list[Any]:
    """Return the YAML documents of a module's files."""
    found: list[Any] = []
    for path in (path for pattern in patterns for path in sorted(source.glob(pattern))):
        texts = re.split(r"^---\s*$", read_text(path), flags=re.MULTILINE)
        found += [bare(data) for text in texts if (data := load(text, path).data) is not None]
    return found


def pack(go: str, wanted: engines.Engine) -> None:
    """Write the file of one engine."""
    with tempfile.TemporaryDirectory() as folder:
        source = engine_build.write_module(go, wanted, Path(folder, "work"), engine_build.sums())
    packed = {name: objects(source, patterns) for name, patterns in wanted.data.items()}
    text = json.dumps({"source": f"{wanted.module} {wanted.version}", **packed}, separators=(",", ":"))
    target = engines.objects_dir() / f"{wanted.name}.json.gz"
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    command = engine_build.find_go()
    shutil.rmtree(engines.objects_dir(), ignore_errors=True)
    engines.objects_dir().mkdir()
    for engine in engines.engine_table().values():
        if engine.data:
            pack(command, engine)
