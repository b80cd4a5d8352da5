"""The transport contract: what each chart promises, and what a machine says and does when NCCL reports otherwise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from nccllogs import EFA_OLD, HPCX, TCP, TCP_OLD, TCPX, TCPXO, efa, said, verbs
from rendered import Objects, container, job_spec, one, rendered, target
from userlib import composed, library

from chartgen.errors import ChartgenError

TARGETS = ("gke-a3mega", "gke-a3high", "eks-p5", "oke-h100", "onprem-p8000")
TWO = "nodes=2"
IB = "network.interface=infiniband"
DOWNLOAD = ("launcher=download", "data.source=https://d.example/a", "storage.data.from=pvc://d")


def objects(name: str, *sets: str, workload: str | None = None) -> Objects:
    return rendered(TWO, *sets, name=name, files=(), workload=workload)


def files(found: Objects) -> dict[str, str]:
    """The files of the start script."""
    (data,) = (item["data"] for item in found if item["kind"] == "ConfigMap" and "start.sh" in item["data"])
    return dict(data)


def contract(name: str, *sets: str) -> dict[str, Any] | None:
    text = files(objects(name, *sets)).get("transport.json")
    return None if text is None else dict(json.loads(text))


def compare(folder: Path, name: str, log: str | None, *sets: str, code: int = 0) -> tuple[int, str]:
    """Run the comparison of a chart as its start script does; exit code, and what it prints less its own path."""
    texts = files(objects(name, *sets))
    (folder / "transport.json").write_text(texts["transport.json"])
    program = folder / "transport.py"
    program.write_text(texts["transport.py"].replace("/etc/chartgen/", f"{folder}/"))
    path = folder / "machine-0.log"
    if log is not None:
        path.write_text(log)
    argv = [sys.executable, str(program), "compare", str(path), str(code)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.returncode, (done.stdout + done.stderr).replace(str(path), "LOG").rstrip("\n")


@pytest.mark.parametrize(
    ("name", "sets", "promise", "devices"),
    [
        ("gke-a3mega", (), "TCPXO (FasTrak)", 1),
        ("gke-a3high", (), "TCPX (GPUDirectTCPX)", 1),
        ("eks-p5", (), "EFA", 32),
        ("eks-p5", ("gpusPerNode=4",), "EFA", 16),
        ("eks-p5", ("machineType=p6-b200.48xlarge",), "EFA", 8),
        ("oke-h100", (), "RoCE", 16),
        ("oke-h100", ("machineType=BM.GPU.H200.8",), "RoCE", 8),
        ("oke-h100", ("network.mode=sriov", "gpusPerNode=4"), "RoCE", 8),
        ("onprem-p8000", (IB,), "InfiniBand", 8),
        ("onprem-p8000", (IB, "network.resource=rdma/shared", "network.resourceCount=1"), "InfiniBand", 1),
    ],
)
def test_charts_promise_their_fabric(name: str, sets: tuple[str, ...], promise: str, devices: int) -> None:
    found = contract(name, *sets)
    assert found is not None
    assert (found["promise"], found["devices"], found["check"]) == (promise, devices, "fail")


@pytest.mark.parametrize(
    ("name", "sets"),
    [
        ("eks-p5", ("network.interface=tcp",)),
        ("onprem-p8000", ("network.interface=tcp",)),
        *((name, ("network.transportCheck=off", IB) if name == "onprem-p8000" else ("network.transportCheck=off",))
          for name in TARGETS),
        *((name, ("nodes=1",)) for name in TARGETS),
        *((name, DOWNLOAD) for name in TARGETS),
    ],
)  # fmt: skip
def test_nothing_is_promised_or_checked(name: str, sets: tuple[str, ...]) -> None:
    found = objects(name, *sets)
    assert not {"transport.json", "transport.py", "transport.sh"} & set(files(found))
    assert "transport" not in files(found)["start.sh"]
    assert "podFailurePolicy" not in json.dumps(found)
    assert "exitCode" not in json.dumps(found)


@pytest.mark.parametrize(
    ("name", "sets", "log", "line"),
    [
        ("gke-a3mega", (), TCPXO, "transport: TCPXO (FasTrak) as promised"),
        ("gke-a3high", (), TCPX, "transport: TCPX (GPUDirectTCPX) as promised"),
        ("eks-p5", (), efa(32), "transport: EFA as promised, 32 adapters"),
        ("eks-p5", ("machineType=p4d.24xlarge",), EFA_OLD, "transport: EFA as promised, 4 adapters"),
        ("oke-h100", (), verbs("RoCE", 16), "transport: RoCE as promised, 16 adapters"),
        ("onprem-p8000", (IB,), verbs("IB", 8), "transport: InfiniBand as promised, 8 adapters"),
        ("onprem-p8000", (IB,), HPCX, "transport: InfiniBand as promised, 8 adapters"),
    ],
    ids=lambda value: value if isinstance(value, str) and "\n" not in value else "",
)
def test_a_kept_promise_is_one_line(tmp_path: Path, name: str, sets: tuple[str, ...], log: str, line: str) -> None:
    assert compare(tmp_path, name, log, *sets) == (0, line)


EFA_OVER_TCP = "NET/OFI Selected provider is tcp, fabric is tcp (found 1 nics)"
NO_PLUGIN = "NCCL uses Socket on eth0: NET/Plugin not found: libnccl-net.so; see LOG"
NO_DEVICE = "NCCL uses Socket on eth0: NET/IB : No device found.; see LOG"


@pytest.mark.parametrize(
    ("name", "log", "line"),
    [
        ("gke-a3mega", TCP, f"transport: promised TCPXO (FasTrak), {NO_PLUGIN}"),
        ("gke-a3mega", TCP_OLD, f"transport: promised TCPXO (FasTrak), {NO_PLUGIN}"),
        ("gke-a3high", TCP, f"transport: promised TCPX (GPUDirectTCPX), {NO_PLUGIN}"),
        # a chart for A3 Mega on machines of A3 High
        (
            "gke-a3mega",
            TCPX,
            "transport: promised TCPXO (FasTrak), NCCL uses GPUDirectTCPX_v7: it does not say why; see LOG",
        ),
        ("eks-p5", TCP, f"transport: promised EFA, {NO_PLUGIN}"),
        (
            "eks-p5",
            efa(1, "tcp"),
            f"transport: promised EFA, NCCL uses Libfabric: {EFA_OVER_TCP}; see LOG",
        ),
        ("eks-p5", efa(1), "transport: promised EFA with 32 adapters, NCCL found 1 of them; see LOG"),
        ("oke-h100", TCP, f"transport: promised RoCE, {NO_DEVICE}"),
        (
            "oke-h100",
            verbs("RoCE", 15),
            "transport: promised RoCE with 16 adapters, NCCL found 15 of them; see LOG",
        ),
        ("onprem-p8000", TCP, f"transport: promised InfiniBand, {NO_DEVICE}"),
        # told the network, as this chart does, NCCL makes none
        (
            "onprem-p8000",
            said("NET/IB : No device found.", "Failed to initialize any NET plugin"),
            "transport: promised InfiniBand, NCCL uses no network: NET/IB : No device found.; see LOG",
        ),
    ],
)
def test_a_broken_promise_stops_the_run_with_one_line(tmp_path: Path, name: str, log: str, line: str) -> None:
    sets = (IB,) if name == "onprem-p8000" else ()
    assert compare(tmp_path, name, log, *sets) == (78, line)
    # whether the communicator was made does not matter then
    assert compare(tmp_path, name, log, *sets, code=1) == (78, line)


def test_warn_marks_the_log_and_goes_on(tmp_path: Path) -> None:
    found = compare(tmp_path, "gke-a3mega", TCP, "network.transportCheck=warn")
    assert found == (0, f"transport: warning: promised TCPXO (FasTrak), {NO_PLUGIN}")


@pytest.mark.parametrize("log", [None, "", TCPXO])
def test_a_meeting_that_failed_for_another_reason_may_be_tried_again(tmp_path: Path, log: str | None) -> None:
    line = "transport: no communicator over all ranks was made; what is printed above says why; see LOG"
    assert compare(tmp_path, "gke-a3mega", log, code=3) == (3, line)


def test_without_a_word_of_nccl_nothing_is_taken_for_granted(tmp_path: Path) -> None:
    line = "transport: promised TCPXO (FasTrak), NCCL uses no network: it does not say why; see LOG"
    assert compare(tmp_path, "gke-a3mega", "") == (78, line)


# -- what Kubernetes makes of exit code 78


def test_a_job_fails_at_once() -> None:
    rule = {"action": "FailJob", "onExitCodes": {"containerName": "workload", "operator": "In", "values": [78]}}
    for found in (objects("gke-a3high"), objects("gke-a3mega")):
        assert job_spec(found)["podFailurePolicy"] == {"rules": [rule]}
        assert container(found)["name"] == "workload"
    warned = objects("gke-a3mega", "network.transportCheck=warn")
    assert "podFailurePolicy" not in job_spec(warned)


def test_a_jobset_does_not_restart() -> None:
    rules = [{"name": "transport", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}]
    restarting = one("JobSet", objects("gke-a3mega", "run.maxRestarts=3"))["spec"]["failurePolicy"]
    assert restarting == {"maxRestarts": 3, "rules": rules}
    assert one("JobSet", objects("gke-a3mega"))["spec"]["failurePolicy"] == {"maxRestarts": 0}


def test_volcano_ends_the_job_instead_of_starting_it_again() -> None:
    first, *_ = one("Job", objects("oke-h100"))["spec"]["policies"]
    assert first == {"exitCode": 78, "action": "TerminateJob"}


def test_torchrun_does_not_try_again_where_it_restarts_processes() -> None:
    script = files(objects("eks-p5", "run.maxRestarts=3"))["start.sh"]
    (check,) = (line for line in script.splitlines() if "transport.py meet" in line)
    assert '"${launch[@]}" --max-restarts=0 ' in check


# -- fragments of users


CONTRACT = """\
description: A fabric of a test
appliesTo: gpu
transport: Slingshot
nccl:
  reports: ['Using network cxi']
  devices: '{{ include "<%= chart %>.gpusPerNode" . }}'
sources: [the test]
"""


def test_a_users_fragment_makes_a_promise_too(tmp_path: Path) -> None:
    write = {"mine/env.yaml": "- name: A\n  value: b\n"}
    folder = library(tmp_path, write)
    (folder / "fragments/mine/fragment.yaml").write_text(CONTRACT)
    chart = composed(folder)
    assert "Slingshot" in chart.files["templates/_transport.tpl"]
    assert 'include "box.gpusPerNode"' in chart.files["templates/_transport.tpl"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("'Using network cxi'", "'(cxi'", "is no regular expression: missing ), unterminated subpattern at position 0"),
        ("transport: Slingshot\n", "", "has no transport to promise; name it"),
        ("  reports: ['Using network cxi']\n", "", "the key 'reports' is missing"),
        ("devices:", "count:", "unknown key 'count'"),
    ],
)
def test_a_wrong_contract_is_refused_with_its_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    folder = library(tmp_path, {})
    path = folder / "fragments/mine/fragment.yaml"
    path.write_text(CONTRACT.replace(old, new))
    with pytest.raises(ChartgenError) as caught:
        composed(folder)
    assert any(message in str(problem) and str(problem).startswith(f"{path}:") for problem in caught.value.problems)


def test_two_fragments_cannot_both_promise(tmp_path: Path) -> None:
    folder = library(tmp_path, {}, "mine", "yours")
    for name in ("mine", "yours"):
        (folder / f"fragments/{name}/fragment.yaml").write_text(CONTRACT)
    with pytest.raises(ChartgenError, match="fragment 'yours' and 'mine' both promise a transport"):
        composed(folder)


def test_every_fabric_of_the_catalogue_has_a_contract() -> None:
    for name in TARGETS:
        promising = [fragment.name for fragment in target(name).fragments if fragment.contract]
        assert len(promising) == 1, name
