"""Records of Helm that a tenant has written: small, said, and skipped where they are of another release."""

from __future__ import annotations

import base64
import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from stranger_api import VERSION, answering

from chartgen.errors import ChartgenError
from chartgen.kube import Object
from chartgen.releases.history import read_record

INFO = {"status": "deployed", "last_deployed": "2026-11-24T06:00:00Z"}
HEAD = {"name": "lab", "version": "1.0.0"}
PADDED = " " * 100


def content(**parts: Any) -> dict[str, Any]:
    whole = {"name": "a", "namespace": "theirs", "version": 1, "info": INFO, "chart": {"metadata": HEAD}}
    return {**whole, **parts}


def secret(text: bytes, name: str = "a", namespace: str = "theirs", revision: int = 1) -> Object:
    """Return a Secret of Helm with this JSON."""
    labels = {"owner": "helm", "name": name, "status": "deployed", "version": str(revision)}
    packed = base64.b64encode(base64.b64encode(gzip.compress(text))).decode()
    metadata = {"name": f"sh.helm.release.v1.{name}.v{revision}", "namespace": namespace, "labels": labels, "uid": name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"release": packed}}


FALSE: dict[str, bytes] = {
    "too large": json.dumps(content(a="x" * 10_000_000)).encode(),
    "too many lists": json.dumps(content()).encode()[:-1] + b',"a":[' + b"[]," * 300_000 + b"0]}",
    "too many lines": json.dumps(content(manifest="a:\n" + "- \n" * 500_000)).encode(),
    "nested": b'{"a":' + b"[" * 100_000,
    "of another release": json.dumps(content(name="b")).encode(),
    "of another namespace": json.dumps(content(namespace="ml")).encode(),
    "a manifest that is a number": json.dumps(content(manifest=7)).encode(),
    "values that are a list": json.dumps(content(config=[1])).encode(),
    "a file without a name": json.dumps(content(chart={"metadata": HEAD, "files": [{"data": ""}]})).encode(),
    "templates that are numbers": json.dumps(content(chart={"metadata": HEAD, "templates": [1]})).encode(),
    "a revision that is infinite": json.dumps(content(version=float("inf"))).encode(),
    "a description that is a map": json.dumps(content(info={**INFO, "description": {}})).encode(),
}


def test_a_false_record_is_one_line() -> None:
    for name, text in FALSE.items():
        with pytest.raises(ChartgenError) as caught:
            read_record(secret(text))
        assert "sh.helm.release.v1.a.v1 of namespace theirs" in str(caught.value), name


RUNS = {
    "broken YAML": "kind: Job\n: [",
    "nested": "kind: Job\na: " + "[" * 3000 + "]" * 3000,
    "aliases": "kind: Job\na0: &a0 [x]\n"
    + "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)),
    "a number": "7",
    "too many lines": "kind: Job\na:\n" + "- \n" * 110_000,
    "a job that is a number": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: 7",
    "containers that are a number": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: 7}}",
}


def test_a_run_of_a_false_record_is_read_within_bounds() -> None:
    for name, manifest in RUNS.items():
        record = read_record(secret(json.dumps(content(manifest=manifest)).encode()))
        if name in ("a number",):
            assert record.run_objects == [], name
        elif not name.startswith(("a job", "containers")):
            with pytest.raises(ChartgenError):
                assert record.run_objects, name


DENSE = {
    "lists": b'"a":[' + b"[]," * 9_000_000 + b"0]",
    "within the bounds": b'"a":[' + b'{"b":0},' * 190_000 + b"0]",
    "a run": b'"manifest":"kind: Job\\na:\\n' + b"- {a: b}\\n" * 45_000 + b'"',
}


def test_dense_secrets_take_less_than_100_megabytes(tmp_path: Path) -> None:
    """Three of 47 KB took 2 GB: each of them unpacks to 27 MB of empty lists."""
    secrets = [
        secret(json.dumps(content(version=at)).encode()[:-1] + b"," + text + b"}", revision=at)
        for at, text in enumerate([*DENSE.values(), b'"a":0'], 1)
    ]
    answer = json.dumps({"metadata": {}, "items": secrets}).encode()
    program = (
        "import sys; from chartgen.kube.connection import connect; from chartgen.releases.history import *\n"
        "cluster = connect(kubeconfig=sys.argv[1])\n"
        "import re; most = lambda: int(re.search(r'VmHWM:\\s+([0-9]+)', open('/proc/self/status').read())[1])\n"
        "before = most()\n"
        "found = [record for _, record in cluster.judged(each_deployed(cluster, ''), read_record)]\n"
        "runs = [*cluster.judged([{'kind': 'x', 'metadata': {'name': 'x'}}] , lambda _: found[1].run_objects)]\n"
        "print([record.revision for record in found], len(cluster.gaps), len(runs), most() - before)\n"
    )
    with answering(tmp_path, lambda path: answer if path.startswith("api/v1/secrets") else VERSION.get(path)) as file:
        ran = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=True)
    revisions, _, used = ran.stdout.strip().rpartition(" ")
    assert revisions == "[2, 3, 4] 1 1"
    assert int(used) < 100_000  # KiB
