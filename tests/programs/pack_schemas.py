"""Packs the Kubernetes and CRD schemas of chartgen/data/schemas.yaml, which lint uses, and SARIF's: `make schemas`.

Go fetches the modules and checks their sums; git fetches the commits of what is no module.
Descriptions and what only tools read are left out.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import chartgen
from chartgen.helm.yaml import load_file

DATA = Path(chartgen.__file__).parent / "data"
# What lint's SARIF is tested with; the standard's first errata, which mend the schema alone.
SARIF = Path(__file__).parents[1] / "data" / "sarif-2.1.0.json.gz"
SARIF_SOURCE = {"repository": "github.com/oasis-tcs/sarif-spec", "commit": "e0583813964ec43cea53b6b531b402866095ed1f"}
SARIF_SCHEMA = "sarif-2.1/schema/sarif-schema-2.1.0.json"
DROPPED = ("description", "title", "example", "externalDocs", "default", "format")
TYPES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": ["string", "number"]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": ["string", "integer"]},
}


def module(name: str, version: str) -> Path:
    """Fetch a Go module and give its folder."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "go.mod").write_text("module pack\n")
        argv = ["go", "mod", "download", "-json", f"{name}@{version}"]
        ran = subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True)
    return Path(json.loads(ran.stdout)["Dir"])


@contextmanager
def sources(entry: dict[str, Any]) -> Iterator[Path]:
    """Return the folder with an entry's sources, for the time of a `with` block."""
    if "module" in entry:
        yield module(entry["module"], entry["version"])
        return
    with tempfile.TemporaryDirectory() as folder:
        for argv in (
            ["init", "--quiet"],
            ["fetch", "--quiet", "--depth=1", f"https://{entry['repository']}", entry["commit"]],
            ["checkout", "--quiet", "FETCH_HEAD"],
        ):
            subprocess.run(["git", *argv], cwd=folder, check=True, capture_output=True)
        yield Path(folder)


def lean(schema: Any, *, names: bool = False) -> Any:
    """Drop what validates nothing, and point references at bare names.

    Args:
        schema: A schema, or a map of schemas.
        names: It is a map of schemas, whose keys are names.
    """
    if isinstance(schema, list):
        return [lean(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if not names and schema.get("x-kubernetes-int-or-string"):
        return {"type": ["string", "integer"]}
    kept = {}
    for key, value in schema.items():
        if key == "$ref" and not names:
            kept[key] = value.rpartition("/")[2]  # the definitions stand beside the kinds
        elif key == "enum" and not names:
            kept[key] = value
        elif names or (key not in DROPPED and (not key.startswith("x-") or key == KEEP)):
            kept[key] = lean(value, names=not names and key in MAPS)
    return kept


MAPS = ("properties", "patternProperties", "definitions")
KEEP = "x-kubernetes-preserve-unknown-fields"
_EVERY = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}


def kubernetes(folder: Path) -> dict[str, Any]:
    """Pack the schemas of Kubernetes' own kinds."""
    swagger = json.loads((folder / "api/openapi-spec/swagger.json").read_text())["definitions"]
    kinds = {}
    for name, schema in swagger.items():
        for each in schema.get("x-kubernetes-group-version-kind", []):
            version = f"{each['group']}/{each['version']}".lstrip("/")
            if not each["kind"].endswith(("List", "Options", "Event")):
                kinds[f"{version}/{each['kind']}"] = {"$ref": name}
    definitions = {name: TYPES.get(name) or lean(schema) for name, schema in swagger.items()}
    return {"kinds": kinds, "definitions": reachable(definitions, kinds)}


def reachable(definitions: dict[str, Any], kinds: dict[str, Any]) -> dict[str, Any]:
    """Keep the definitions that kinds refer to."""
    kept: dict[str, Any] = {}
    todo = [each["$ref"] for each in kinds.values()]
    while todo:
        name = todo.pop()
        if name not in kept:
            kept[name] = definitions[name]
            text = json.dumps(definitions[name])
            todo += [part.split('"')[0] for part in text.split('"$ref": "')[1:]]
    return dict(sorted(kept.items()))


def definitions(folder: Path, patterns: list[str]) -> dict[str, Any]:
    """Pack the schemas of custom resources."""
    kinds = {}
    for file in sorted({file for pattern in patterns for file in folder.glob(pattern)}):
        crd: Any = load_file(file).data
        for version in crd["spec"]["versions"]:
            name = f"{crd['spec']['group']}/{version['name']}/{crd['spec']['names']['kind']}"
            kinds[name] = lean(version["schema"]["openAPIV3Schema"])
            # known without being named (apiextensions.k8s.io, structural schemas)
            kinds[name]["properties"] = _EVERY | kinds[name].get("properties", {})
    return {"kinds": kinds}


def main() -> None:
    """Write chartgen/data/schemas/*.json.gz."""
    table: Any = load_file(DATA / "schemas.yaml").data
    for entry in table["schemas"]:
        with sources(entry) as folder:
            packed = definitions(folder, entry["crds"]) if "crds" in entry else kubernetes(folder)
        write(DATA / "schemas" / f"{entry['name']}.json.gz", packed)
    with sources(SARIF_SOURCE) as folder:
        write(SARIF, lean(json.loads((folder / SARIF_SCHEMA).read_text())))


def write(path: Path, packed: dict[str, Any]) -> None:
    """Write data so that equal data give equal bytes."""
    data = json.dumps(packed, separators=(",", ":"), sort_keys=True).encode()
    path.write_bytes(gzip.compress(data, 9, mtime=0))
    sys.stdout.write(f"{path.name}: {len(packed.get('kinds', ()))} kinds, {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
