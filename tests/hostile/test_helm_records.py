"""Records of Helm that a tenant has written: small, said, and skipped where they are of another release."""

from __future__ import annotations

import base64
import gc
import gzip
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from answers import answer
from facts import has
from releases import RELEASE, rolling, site_of, small
from rendered import chart
from stranger_api import VERSION, answering
from trainlogs import megatron, steps
from userlib import chartgen

from chartgen.composer.presets import VALUES
from chartgen.errors import ChartgenError
from chartgen.helm.values import Values, load_values, merge_values
from chartgen.helm.yaml import load
from chartgen.kube import NAMESPACE, POD, SECRET, Kind, Object, wait_for
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.releases.history import RevisionRecord, parse_time, read_record
from chartgen.releases.plan import keep_files
from chartgen.releases.state import run_of
from chartgen.releases.status.training_log import progress_of

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
    "a manifest for Helm alone": json.dumps(content(MANIFEST="kind: Namespace")).encode(),
    "UTF-16, where no line ends": json.dumps(content(manifest="a:\n" + "- \n" * 500_000)).encode("utf-16-le"),
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


def test_a_time_before_the_first_year_is_none() -> None:
    with pytest.raises(ValueError, match="first year"):
        parse_time("0001-01-01T00:00:00+23:59")


@pytest.mark.threat(16)
def test_a_false_record_is_one_line() -> None:
    for name, text in FALSE.items():
        with pytest.raises(ChartgenError) as caught:
            read_record(secret(text))
        assert "sh.helm.release.v1.a.v1 of namespace theirs" in str(caught.value), name


@pytest.mark.threat(16)
def test_of_a_false_record_nothing_stays_in_memory() -> None:
    """500 of a tenant, of 20 KB each, took 5 GB of `status -A`: each error held its text, and itself."""
    item = secret(b" " * 10_000_001)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(3):
            with pytest.raises(ChartgenError):
                read_record(item)
        assert tracemalloc.get_traced_memory()[0] < 5_000_000
    finally:
        tracemalloc.stop()
        gc.enable()


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


ODD: list[dict[str, Any]] = [
    {"estimate": {"a3-megagpu-8g": {"bf16": "x"}}},
    {"estimate": {"a3-megagpu-8g": {"bf16": 0}}},
    {"estimate": [1]},
    {"profile": None},
    {"model": {"layers": 0}},
    {"steps": "x"},
    {"precision": [1]},
    {"nodes": 0},
    {"launchers": [1]},
    {"launcher": ["torchrun"]},
    {"launcher": "torchrun", "launchers": {"torchrun": {"metrics": [1]}}},
]


@pytest.mark.threat(12)
def test_a_description_is_one_masked_line(tmp_path: Path) -> None:
    """Helm writes what an API server refused there."""
    item = secret(json.dumps(content(info={**INFO, "description": "hf_" + "aB3d" * 8 + "\n2  forged"})).encode())
    page = json.dumps({"metadata": {}, "items": [item]}).encode()
    answers = {**VERSION, "api/v1/namespaces/theirs/secrets": page}
    with answering(tmp_path, lambda path: answers.get(path.partition("?")[0])) as file:
        printed = chartgen("history", "a", "--namespace", "theirs", env={"KUBECONFIG": str(file)}).stdout
    assert "hf_" not in printed
    assert "\\n2  forged" in printed


@pytest.mark.threat(16)
@pytest.mark.parametrize("target", ["gke-a3mega", "unknown"])
def test_the_schema_of_a_record_is_not_applied(target: str) -> None:
    """One may need forever, by a pattern or by alternatives in alternatives; this one refuses all."""
    metadata: Any = load(chart().files["Chart.yaml"], "Chart").data
    metadata["annotations"]["chartgen/target"] = target
    refusal = base64.b64encode(b'{"maxProperties": 0}').decode()
    whole = {"metadata": metadata, "values": load(chart().files["values.yaml"], "values").data, "schema": refusal}
    values = load_values([VALUES / "gpt3-5b.yaml", VALUES / "gke-a3mega/gpt3-5b.yaml"]).data
    head = ("a", "theirs", 1, "deployed", "", datetime.now(timezone.utc), "gke-a3mega", "1.0.0", target)
    found = progress_of(megatron(steps([2.0] * 25)).splitlines(), RevisionRecord(*head, values=values, content=whole))
    assert "tokens/s" in found.text


@pytest.mark.threat(16)
@pytest.mark.parametrize("odd", ODD, ids=str)
def test_values_of_any_form_leave_the_progress_of_the_log(odd: dict[str, Any]) -> None:
    """The schema of a record is its author's: this one permits everything."""
    files = {name: text for name, text in chart().files.items() if not name.endswith((".yaml", ".schema.json"))}
    texts = {name: load(chart().files[f"{name}.yaml"], name).data for name in ("Chart", "values")}
    kept = [{"name": name, "data": base64.b64encode(text.encode()).decode()} for name, text in files.items()]
    whole = {"metadata": texts["Chart"], "values": texts["values"], "files": kept}
    values = merge_values(load_values([VALUES / "gpt3-5b.yaml", VALUES / "gke-a3mega/gpt3-5b.yaml"]).data, odd)
    head = ("a", "theirs", 1, "deployed", "", datetime.now(timezone.utc), "gke-a3mega", "1.0.0", "gke-a3mega")
    lines = megatron(steps([2000.0] * 25)).splitlines()
    found = progress_of(lines, RevisionRecord(*head, values=values, content=whole))
    assert keep_files(Values({}), values)[1] == []
    assert found.text.startswith("step 25 of ")


@pytest.mark.threat(16)
def test_a_run_of_a_false_record_is_read_within_bounds() -> None:
    for name, manifest in RUNS.items():
        record = read_record(secret(json.dumps(content(manifest=manifest)).encode()))
        if name in ("a number",):
            assert record.run_objects == [], name
        elif not name.startswith(("a job", "containers")):
            with pytest.raises(ChartgenError):
                assert record.run_objects, name


def test_a_run_is_found_in_each_form_of_its_manifest() -> None:
    """Helm keeps the text of templates, which may be JSON, or quote."""
    run = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {}}
    other = "kind: ConfigMap\nmetadata: {name: b}"
    for text in (json.dumps(run), json.dumps(run, indent=1), "kind: 'Job'\nspec: {}", "{kind: Job}", "kind: Job # x"):
        record = read_record(secret(json.dumps(content(manifest=f"---\n{other}\n---\n{text}\n")).encode()))
        assert [item["kind"] for item in record.run_objects] == ["Job"], text


DENSE = {
    "lists": b'"a":[' + b"[]," * 9_000_000 + b"0]",
    "within the bounds": b'"a":[' + b'{"b":0},' * 190_000 + b"0]",
    "a run": b'"manifest":"kind: Job\\na:\\n' + b"- {a: b}\\n" * 45_000 + b'"',
}


@pytest.mark.threat(16)
def test_dense_secrets_take_less_than_128_megabytes(tmp_path: Path) -> None:
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
    assert int(used) < 128 << 10  # KiB; 75 to 100 MB, as the allocator happens to grow


def manifest(spec: str, api: str = "batch/v1", kind: str = "Job") -> str:
    return f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {spec}"


# Forms that ended `doctor` and `install` of everybody.
OF_TENANTS = {
    **{name: RUNS[name] for name in ("broken YAML", "nested", "aliases", "a job that is a number")},
    "containers": manifest("{template: {spec: {containers: 7}}}"),
    "jobs": manifest("{replicatedJobs: 7}", "jobset.x-k8s.io/v1alpha2", "JobSet"),
    "a list": "7",
}
DEEP = '{"f:a":' * 1500 + "{}" + "}" * 1500


@pytest.fixture(scope="module")
def tenant(plane: ControlPlane) -> Iterator[str]:
    """Four machines, and a namespace with the objects of a hostile tenant."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "theirs"}}
    with rolling(plane):
        plane.cluster.apply([space])
        for number, text in enumerate(OF_TENANTS.values()):
            record = content(name=f"r{number}", manifest=text)
            plane.cluster.create(SECRET, secret(json.dumps(record).encode(), f"r{number}"))
        account = Kind("v1", "ServiceAccount", "serviceaccounts")
        wait_for(lambda: plane.cluster.get(account, "default", "theirs"), what="its account", timeout=180)
        fields = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": 0}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "deep", "managedFields": [fields]},
            "spec": {"nodeName": "roll-0", "containers": [{"name": "c", "image": "x"}]},
        }
        body = json.dumps(pod).replace('"fieldsV1": 0', f'"fieldsV1": {DEEP}')
        path, head = POD.path("theirs"), {"Content-Type": "application/json"}
        plane.cluster._client.post(path, content=body, headers=head).raise_for_status()
        assert DEEP in plane.cluster._client.get(f"{path}/deep").text, "the server takes and keeps it"
        yield "theirs"
        plane.cluster.delete_object(space)
        wait_for(lambda: plane.cluster.get(NAMESPACE, "theirs") is None, what="that it is gone", timeout=180)


def test_a_tenants_objects_do_not_end_the_commands_of_others(
    request: pytest.FixtureRequest, plane: ControlPlane, tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outputs are on NFS, so that the releases of all namespaces are compared."""
    monkeypatch.setenv("KUBECONFIG", str(plane.kubeconfig))
    small().write(tmp_path / "tiny")
    with site_of(request, plane, "beside") as here:
        arguments = (tmp_path / "tiny", RELEASE, "--namespace", here.namespace)
        asked = chartgen("doctor", *arguments, "--output", "json")
        made = chartgen("install", *arguments)
        chartgen("uninstall", RELEASE, "--namespace", here.namespace)
    checks = {each["name"]: (each["status"], each["text"]) for each in answer(asked.stdout)["diagnoses"]}
    assert asked.exit_code == made.exit_code == 0, made.stderr
    said = f"6 Secrets of namespace {tenant}"
    assert checks["outputs-of-others"] == ("warn", has(said))
    assert said in made.stderr
    assert {checks[name][0] for name in ("permissions", "machines", "machines-free", "admission")} == {"pass"}


@pytest.mark.threat(16)
@pytest.mark.parametrize(
    "text", [manifest("null"), manifest("7"), manifest("{template: {}}").partition("spec")[0], "kind: Job"]
)
def test_a_run_without_its_parts_ends_a_command_with_one_line(text: str) -> None:
    record = read_record(secret(json.dumps(content(manifest=text)).encode()))
    with pytest.raises(ChartgenError, match=r"^an object of the release is of another form than its kind; restore"):
        run_of(record)
