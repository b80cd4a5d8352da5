"""The transport contract: what each chart promises, and what a machine says and does when NCCL reports otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import profiles
import pytest
from nccllogs import EFA_OLD, GIB, HPCX, TCP, TCP_OLD, TCPX, TCPXO, efa, said, verbs
from rendered import Objects, container, job_spec, one, rendered, target
from userlib import composed, library

from chartgen.errors import ChartgenError
from chartgen.helm.yaml import load_file, require_map
from chartgen.releases.why.causes import cause_table

# one of each fabric
TARGETS = ("gke-a3mega", "gke-a3high", "gke-a3ultra", "eks-p5", "oke-h100", "onprem-p8000")
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


@lru_cache
def start_files(name: str, *sets: str) -> dict[str, str]:
    return files(objects(name, *sets))


def compare(folder: Path, name: str, log: str | None, *sets: str, code: int = 0) -> tuple[int, str]:
    """Run the comparison of a chart as its start script does; exit code, and what it prints less its own path."""
    texts = start_files(name, *sets)
    (folder / "transport.json").write_text(texts["transport.json"])
    program = folder / "transport.py"
    program.write_text(texts["transport.py"].replace("/etc/chartgen/", f"{folder}/"))
    path, kept = folder / "machine-0.log", folder / "transport"
    if log is not None:
        path.write_text(log)
    argv = [sys.executable, str(program), "compare", str(path), str(code), str(kept)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).replace(str(kept / path.name), "LOG" if log is not None else "KEPT")
    return done.returncode, said.replace(str(path), "LOG" if log is None else "NOT KEPT").rstrip("\n")


@pytest.mark.threat(19)
@pytest.mark.parametrize("there", ["link", "pipe", "folder", "link to a folder", "file"])
def test_what_another_tenant_left_replaces_no_log(tmp_path: Path, there: str) -> None:
    """NCCL's log is kept in the run's storage, and compared before that."""
    other, folder = tmp_path / "other", tmp_path / "transport"
    other.mkdir()
    (victim := other / "machine-0.log").write_text("theirs")
    kept = folder / victim.name
    if there == "link to a folder":
        folder.symlink_to(other)
    elif there == "file":
        folder.touch()
    else:
        folder.mkdir()
        if there == "link":
            kept.symlink_to(victim)
        elif there == "pipe":
            os.mkfifo(kept)
        else:
            kept.mkdir()
    code, said = compare(tmp_path, "gke-a3mega", TCP)
    assert (code, victim.read_text()) == (78, "theirs")
    assert said.endswith("see LOG" if there in {"link", "pipe"} else "see NOT KEPT")


@pytest.mark.parametrize(
    ("name", "sets", "promise", "devices"),
    [
        ("gke-a3mega", (), "TCPXO (FasTrak)", 1),
        ("gke-a3high", (), "TCPX (GPUDirectTCPX)", 1),
        ("gke-a3ultra", (), "gIB", 1),
        ("gke-a4", ("network.mode=claims",), "gIB", 1),
        ("gke-a4x", (), "gIB", 1),
        ("eks-p5", (), "EFA", 32),
        ("eks-p5", ("gpusPerNode=4",), "EFA", 16),
        ("eks-p5", ("machineType=p6-b200.48xlarge",), "EFA", 8),
        ("oke-h100", (), "RoCE", 16),
        ("oke-h100", ("machineType=BM.GPU.H200.8",), "RoCE", 8),
        ("oke-h100", ("network.mode=sriov", "gpusPerNode=4"), "RoCE", 8),
        ("onprem-p8000", (IB,), "InfiniBand", 8),
        ("onprem-p8000", (IB, "network.resource=rdma/shared", "network.resourceCount=1"), "InfiniBand", 1),
        ("aks-nd", (), "InfiniBand", 8),
        ("coreweave", (), "InfiniBand", 8),
        ("coreweave", ("machineType=gb200-4x",), "InfiniBand", 1),
        ("aks-nd", ("gpusPerNode=4",), "InfiniBand", 4),
        ("aks-nd", ("network.resource=rdma/shared_ib", "network.resourceCount=1"), "InfiniBand", 8),
        ("nebius", (), "InfiniBand", 8),
        ("crusoe", ("machineType=gb200-186gb-nvl-ib.4x",), "InfiniBand", 4),
        ("eks-p6e-gb200", (), "EFA", 4),
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


@pytest.mark.parametrize(
    ("name", "sets", "log", "line"),
    [
        ("gke-a3mega", (), TCPXO, "transport: TCPXO (FasTrak) as promised"),
        ("gke-a3high", (), TCPX, "transport: TCPX (GPUDirectTCPX) as promised"),
        ("gke-a3ultra", (), GIB, "transport: gIB as promised"),
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
            "transport: promised TCPXO (FasTrak), NCCL uses GPUDirectTCPX_v7: its log gives no reason; see LOG",
        ),
        ("gke-a3ultra", TCP, f"transport: promised gIB, {NO_PLUGIN}"),
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
    line = "transport: NCCL could not create a communicator over all ranks; the output above shows why; see LOG"
    assert compare(tmp_path, "gke-a3mega", log, code=3) == (3, line)


# -- every form in which NCCL has named its network and its adapters


FACTS: dict[str, Any] = require_map(load_file(Path(__file__).parents[1] / "data/nccl-lines.yaml"), "the facts")
FORMS = [pytest.param(form, id=form["name"]) for form in FACTS["forms"]]
LOGS = [pytest.param(log, id=log["name"]) for log in FACTS["logs"]]
PROVIDERS = [pytest.param(each, id=each["versions"][0]) for each in FACTS["efa"]]


def listed(form: dict[str, Any], link: str, count: int) -> str:
    """The line of adapters as the C source of a version prints it; where ports are merged, two to a group."""
    names = [f"mlx5_{number}" for number in range(count)]
    text = ""
    group = form.get("group")
    if group:
        for place in range(0, count, 2):
            pair = [group["entry"] % (index, names[index], 1, link) for index in (place, place + 1)]
            text += group["open"] % (place // 2) + group["between"].join(pair) + group["close"]
    else:
        text = "".join(form["entry"] % (index, name, 1, link) for index, name in enumerate(names))
    return str(FACTS["line"] % (text, "[RO]", "eth0", "192.0.2.9<0>"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "sets", "link", "count"), [("oke-h100", (), "RoCE", 16), ("onprem-p8000", (IB,), "IB", 8)]
)
def test_the_same_adapters_are_counted_in_every_form(
    tmp_path: Path, form: dict[str, Any], name: str, sets: tuple[str, ...], link: str, count: int
) -> None:
    for network in ("IB", "IBext", "IBext_v8", "IBext_v11"):
        found = compare(tmp_path, name, said(listed(form, link, count), f"Using network {network}"), *sets)
        assert found[0] == 0
        assert found[1].endswith(f" as promised, {count} adapters")
    code, line = compare(tmp_path, name, said(listed(form, link, count - 2), "Using network IB"), *sets)
    assert code == 78
    assert f"with {count} adapters, NCCL found {count - 2} of them" in line


def test_the_facts_are_of_six_versions_or_more() -> None:
    versions = [
        version for form in FACTS["forms"] if form["source"].startswith("NVIDIA/nccl,") for version in form["versions"]
    ]
    assert len({version.rpartition(".")[0] for version in versions}) >= 6


@pytest.mark.parametrize("log", LOGS)
def test_recorded_logs_are_counted(tmp_path: Path, log: dict[str, Any]) -> None:
    ((_, count),) = log["adapters"].items()
    sets = (IB, "network.resource=rdma/shared", f"network.resourceCount={count}")
    found = compare(tmp_path, "onprem-p8000", said(*log["lines"]), *sets)
    assert found == (0, f"transport: InfiniBand as promised, {count} adapters")


@pytest.mark.parametrize("facts", PROVIDERS)
def test_every_plugin_of_efa_is_understood(tmp_path: Path, facts: dict[str, Any]) -> None:
    network = f"Using network {facts['network']}"
    healthy = said(facts["line"] % ("efa", 32), network)
    assert compare(tmp_path, "eks-p5", healthy) == (0, "transport: EFA as promised, 32 adapters")
    assert compare(tmp_path, "eks-p5", said(facts["line"] % ("efa", 8), network))[0] == 78
    code, line = compare(tmp_path, "eks-p5", said(facts["line"] % ("tcp", 1), network))
    assert code == 78
    assert "rovider is tcp" in line


def test_an_adapter_that_is_listed_for_direct_memory_too_counts_once(tmp_path: Path) -> None:
    names = [f"mlx5_{number}{end}" for number in range(8) for end in ("", "_dma")]
    entries = "".join(PLAIN["entry"] % (index, name, 1, "RoCE") for index, name in enumerate(names))
    line = FACTS["line"] % (entries, "[RO]", "eth0", "192.0.2.9<0>")
    code, told = compare(tmp_path, "oke-h100", said(line, "Using network IB"))
    assert code == 78
    assert "with 16 adapters, NCCL found 8 of them" in told


def test_a_link_that_is_not_promised_is_told(tmp_path: Path) -> None:
    code, line = compare(tmp_path, "oke-h100", verbs("IB", 16))
    assert code == 78
    assert "with 16 adapters, NCCL found 0 of them" in line


# -- what is not known does not end a run


PLAIN = FACTS["forms"][0]
MANY = listed(PLAIN, "RoCE", 64)


@pytest.mark.parametrize(
    ("name", "sets", "log"),
    [
        # NCCL_DEBUG_FILE that the file system did not keep, or a build of NCCL that does not log
        ("gke-a3mega", (), ""),
        ("gke-a3mega", (), said("NCCL version 2.40.1+cuda15.0", "NET selected: FasTrak")),
        # a plugin that nobody here has heard of, such as one for the same adapters
        ("oke-h100", (), said(listed(PLAIN, "RoCE", 16), "Using network SPCX")),
        ("eks-p5", (), said("NET/OFI Chosen provider: efa, 32 NICs", "Using network Libfabric")),
        ("eks-p5", (), said("NET/OFI Selected provider is efa, fabric is efa-direct", "Using network Libfabric")),
        ("oke-h100", (), said("NET/IB : Using 0=mlx5_0@1(RoCE) 1=mlx5_1@1(RoCE); OOB eth0:0", "Using network IB")),
        ("oke-h100", (), said("Using network IB")),
        # only some entries have a form that is known
        ("oke-h100", (), said(listed(PLAIN, "RoCE", 8).replace(" [RO]", " [8]mlx5_8@1 [RO]"), "Using network IB")),
        # the list is longer than what NCCL writes of a line
        ("oke-h100", (), said(listed(PLAIN, "RoCE", 8)[:60], "Using network IB")),
    ],
    ids=["empty", "no network", "plugin", "provider", "no count", "list", "no list", "entry", "cut"],
)  # fmt: skip
def test_an_unknown_form_warns_and_the_run_goes_on(tmp_path: Path, name: str, sets: tuple[str, ...], log: str) -> None:
    code, line = compare(tmp_path, name, log, *sets)
    assert code == 0
    assert line.startswith("transport: warning: cannot determine whether NCCL uses ")
    assert line.endswith("; see LOG")
    assert "\n" not in line
    # a meeting that failed as well has its own exit code
    assert compare(tmp_path, name, log, *sets, code=3)[0] == 3


def test_enough_adapters_are_enough_also_in_a_list_that_is_cut(tmp_path: Path) -> None:
    cut = said(MANY[: 1024 - 30], "Using network IB")
    code, line = compare(tmp_path, "oke-h100", cut)
    assert (code, line.startswith("transport: RoCE as promised, ")) == (0, True)


@pytest.mark.parametrize(
    ("name", "sets", "log"),
    [
        *((name, (IB,) if name == "onprem-p8000" else (), TCP) for name in TARGETS),
        ("oke-h100", (), said(listed(PLAIN, "RoCE", 16), "Using network Socket")),
        # a chart for A3 Mega on machines whose plugin is gIB
        ("gke-a3mega", (), said(f"Using network {profiles.sets(profiles.GIB)['NCCL_NET']}")),
        ("oke-h100", (), said("NET/FastSocket : Using [0]eth0:192.0.2.9<0>", "Using network FastSocket")),
        ("eks-p5", (), said("NET/OFI No eligible providers were found", "Using network Socket")),
        ("onprem-p8000", (IB,), said("NET/IB : No device found.", "Error: network IB not found.")),
    ],
)
def test_a_proven_fallback_ends_the_run(tmp_path: Path, name: str, sets: tuple[str, ...], log: str) -> None:
    assert compare(tmp_path, name, log, *sets)[0] == 78


@pytest.mark.parametrize("log", [pytest.param(log, id=log["name"]) for log in FACTS["fallbacks"]])
@pytest.mark.parametrize("name", TARGETS)
def test_a_recorded_fallback_ends_the_run_of_every_fabric(tmp_path: Path, name: str, log: dict[str, Any]) -> None:
    sets = (IB,) if name == "onprem-p8000" else ()
    for code in (0, 1):
        assert compare(tmp_path, name, "".join(f"{line}\n" for line in log["lines"]), *sets, code=code)[0] == 78


# -- what Kubernetes makes of exit codes that are final

FINAL = [17, 78, 93]


def test_a_job_fails_at_once() -> None:
    rule = {"action": "FailJob", "onExitCodes": {"containerName": "workload", "operator": "In", "values": FINAL}}
    for found in (objects("gke-a3high"), objects("gke-a3mega")):
        assert job_spec(found)["podFailurePolicy"] == {"rules": [rule]}
        assert container(found)["name"] == "workload"


def test_a_jobset_does_not_restart() -> None:
    rules = [{"name": "final", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy", "DeadlineExceeded"]}]
    restarting = one("JobSet", objects("gke-a3mega", "run.maxRestarts=3"))["spec"]["failurePolicy"]
    assert restarting == {"maxRestarts": 3, "rules": rules}
    assert one("JobSet", objects("gke-a3mega"))["spec"]["failurePolicy"] == {"maxRestarts": 0}


def test_volcano_ends_the_job_instead_of_starting_it_again() -> None:
    *first, _ = one("Job", objects("oke-h100"))["spec"]["policies"]
    assert first == [{"exitCode": code, "action": "TerminateJob"} for code in FINAL]


def test_the_causes_of_final_exit_codes_end_a_run_too() -> None:
    assert [code for code, cause in cause_table().exits.items() if cause.restart == "none" and code < 128] == FINAL


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
        (
            "'Using network cxi'",
            "'(cxi'",
            "is not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        ("transport: Slingshot\n", "", "has no transport to promise; name it"),
        ("  reports: ['Using network cxi']\n", "", "nccl.reports is missing; add it"),
        ("devices:", "count:", 'unknown key "count" in nccl'),
        ("devices:", "links: [IB, ROCE]\n  devices:", 'not "ROCE"; did you mean RoCE?'),
        ("devices:", "links: [IB]\n  device: mlx5\n  devices:", "counts the adapters a second time"),
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
