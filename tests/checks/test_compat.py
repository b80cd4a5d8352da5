"""The compatibility lock, and the checks that read it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from check_helpers import job, judge, published
from pairs import TARGETS
from rendered import chart, setup_chart, target
from userlib import composed, library

from chartgen.checks import check
from chartgen.checks.compatibility import COMPAT, outdated_cluster
from chartgen.data.compatibility import lock, version, within
from chartgen.data.gpus import find_gpu
from chartgen.helm.chart import Chart
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load

NEWEST = ["network.pluginVersion=v1.0.17", "network.daemonVersion=v1.0.23"]

# target, --set flags, id, key, a part of the message
BRIDGE = "launchers.megatron-bridge"
WRONG = [
    # plugins and daemons
    *(
        (name, sets, "plugin-and-daemon", f"network.{key}", part)
        for name, sets, key, part in (
            ("gke-a3mega", ["network.pluginVersion=v1.0.7"], "daemonVersion", "v1.0.22 is not compatible"),
            ("gke-a3mega", ["network.daemonVersion=v1.0.8"], "daemonVersion", "with plugin v1.0.16"),
            ("gke-a3mega", ["network.daemonVersion=v9.0.0"], "daemonVersion", "v9.0.0"),
            ("gke-a3mega", ["network.pluginVersion=v1.0.12"], "daemonVersion", "plugin v1.0.12"),
            ("gke-a3mega", ["network.pluginVersion=v1.0.10"], "pluginVersion", "is not known"),
            ("gke-a3mega", ["network.pluginVersion=v3.1.9"], "pluginVersion", "is not known"),
            ("gke-a3high", ["network.daemonVersion=v2.0.12"], "daemonVersion", "v3.1.12"),
            ("gke-a3high", ["network.pluginVersion=v3.1.9"], "daemonVersion", "v2.0.15"),
            ("gke-a3high", ["network.pluginVersion=v1.0.3"], "pluginVersion", "v1.0.3"),
        )
    ),
    # plugins and images
    *(
        (
            "gke-a3mega",
            ["launcher=megatron-lm", f"launchers.megatron-lm.image=nvcr.io/nvidia/{image}", *sets],
            "plugin-and-cuda",
            "network.pluginVersion",
            part,
        )
        for image, sets, part in (
            ("nemo:25.07", NEWEST, "needs CUDA 13, and nvidia/nemo:25.07 has CUDA 12"),
            ("nemo:25.11", [], "needs CUDA 12, and nvidia/nemo:25.11 has CUDA 13"),
            ("nemo:26.06.00", [], "has CUDA 13"),
            ("pytorch:25.08-py3", [], "has CUDA 13"),
            ("pytorch:25.06-py3", NEWEST, "has CUDA 12"),
        )
    ),
    # settings
    (
        "gke-a3mega",
        ["env.NCCL_PROTO=LL128"],
        "settings-of-the-plugin",
        "env.NCCL_PROTO",
        "LL128 is refused by plugin v1.0.16",
    ),
    (
        "gke-a3mega",
        ["network.pluginVersion=v1.0.11", "network.daemonVersion=v1.0.17", "env.NCCL_PROTO=Simple"],
        "settings-of-the-plugin",
        "env.NCCL_PROTO",
        "wants Simple,LL128",
    ),
    (
        "gke-a3mega",
        ["network.pluginVersion=v1.0.12", "network.daemonVersion=v1.0.18", "env.NCCL_NVLSTREE_MAX_CHUNKSIZE=65536"],
        "settings-of-the-plugin",
        "env.NCCL_NVLSTREE_MAX_CHUNKSIZE",
        "wants 131072",
    ),
    # images
    *(
        (
            "gke-a3mega",
            ["launcher=nemo-1", f"launchers.nemo-1.image={image}"],
            "program-of-the-image",
            "launchers.nemo-1.image",
            f"{image} does not contain /opt/NeMo/",
        )
        for image in (
            "nvcr.io/nvidia/nemo:25.09",
            "nvcr.io/nvidia/nemo:25.11.01",
            "nvcr.io/nvidia/nemo:26.04",
            "nvcr.io/nvidia/nemo:26.02.nemotron_3_super",
            "mirror.example.com:5000/nvidia/nemo:26.06.00",
        )
    ),
    # precisions
    ("eks-p5", ["machineType=p4d.24xlarge", "precision=fp8"], "precision-of-the-gpu", "precision", "a100-40gb"),
    ("eks-p5", ["machineType=p4de.24xlarge", "precision=fp8"], "precision-of-the-gpu", "precision", "a100-80gb"),
    ("oke-h100", ["machineType=BM.GPU.B4.8", "precision=fp8"], "precision-of-the-gpu", "precision", "BM.GPU.B4.8"),
    (
        "oke-h100",
        ["machineType=BM.GPU.RTXPRO.8", "precision=mxfp8"],
        "precision-of-the-gpu",
        "precision",
        "rtxpro6000",
    ),
    ("gke-a3mega", ["precision=mxfp8"], "precision-of-the-gpu", "precision", "mxfp8 is not a format of h100-80gb"),
    (
        "eks-p5",
        ["launcher=megatron-bridge", f"{BRIDGE}.recipe=nemotron_3_super_pretrain_config"],
        "precision-of-the-gpu",
        f"{BRIDGE}.recipe",
        "nvfp4, which is not a format of h100-80gb",
    ),
]

RIGHT = [
    # the plugin's own profile sets what differs from version to version
    ("gke-a3mega", ["network.pluginVersion=v1.0.11", "network.daemonVersion=v1.0.17"]),
    ("gke-a3mega", []),
    ("gke-a3mega", ["network.pluginVersion=v1.0.7", "network.daemonVersion=v1.0.13_1"]),
    ("gke-a3mega", ["network.pluginVersion=v1.0.8-1", "network.daemonVersion=v1.0.14"]),
    (
        "gke-a3mega",
        ["network.pluginVersion=v1.0.11", "network.daemonVersion=v1.0.17", "env.NCCL_PROTO=Simple\\,LL128"],
    ),
    ("gke-a3mega", ["env.NCCL_PROTO=LL128", "env.NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE=/own.textproto"]),
    ("gke-a3mega", ["env.NCCL_ALGO=Ring"]),
    ("gke-a3mega", ["launcher=megatron-lm", "launchers.megatron-lm.image=nvcr.io/nvidia/nemo:26.02", *NEWEST]),
    ("gke-a3mega", ["launcher=megatron-lm", "launchers.megatron-lm.image=registry.example.com/own:26.02", *NEWEST]),
    ("gke-a3high", ["launcher=megatron-lm", "launchers.megatron-lm.image=nvcr.io/nvidia/nemo:26.02"]),
    ("gke-a3high", ["network.pluginVersion=v3.1.9", "network.daemonVersion=v2.0.12"]),
    ("gke-a3high", ["env.NCCL_PROTO=LL128"]),
    ("gke-a3mega", ["launcher=download", "data.source=hf://org/set", "network.pluginVersion=v0"]),
    ("gke-a3mega", ["launcher=nemo-1", "launchers.nemo-1.image=nvcr.io/nvidia/nemo:25.07.00"]),
    ("gke-a3mega", ["launcher=nemo-1", "launchers.nemo-1.image=nvcr.io/nvidia/nemo:24.01.framework"]),
    ("gke-a3mega", ["launcher=nemo-1", "launchers.nemo-1.image=registry.example.com/my/nemo:26.04"]),
    (
        "gke-a3mega",
        [
            "launcher=nemo-1",
            "launchers.nemo-1.image=nvcr.io/nvidia/nemo:26.04",
            "launchers.nemo-1.program=/own.py",
            *NEWEST,
        ],
    ),
    ("gke-a3mega", ["launchers.megatron-lm.image=nvcr.io/nvidia/nemo:26.04", *NEWEST]),
    ("gke-a3mega", ["precision=fp8"]),
    (
        "gke-a3high",
        [
            "launcher=megatron-bridge",
            f"{BRIDGE}.recipe=nemotron_3_super_pretrain_config",
            f"{BRIDGE}.config.mixed_precision=bf16_mixed",
        ],
    ),
    ("eks-p5", ["machineType=p4d.24xlarge", "precision=fp16"]),
    ("eks-p5", ["machineType=p6-b300.48xlarge", "precision=fp8"]),
    ("oke-h100", ["machineType=BM.GPU.GB300.4", "precision=fp8"]),
]


@pytest.mark.parametrize(("name", "sets", "rule", "key", "part"), WRONG)
def test_what_does_not_go_together_is_found(name: str, sets: list[str], rule: str, key: str, part: str) -> None:
    found = [said for said in judge(COMPAT, job(name, *sets)) if (said.id, said.key) == (rule, key)]
    assert len(found) == 1, judge(COMPAT, job(name, *sets))
    assert part in found[0].message
    assert found[0].hint
    assert found[0].severity == "error"


def test_a_build_of_nccl_is_refused_where_there_is_one_only() -> None:
    build = ('network.ncclBuildType="223"',)
    (said,) = judge(COMPAT, job("gke-a3mega", json=build))
    assert (said.id, said.key) == ("build-of-nccl", "network.ncclBuildType")
    older = ("network.pluginVersion=v1.0.11", "network.daemonVersion=v1.0.17")
    assert judge(COMPAT, job("gke-a3mega", *older, json=build)) == []


@pytest.mark.parametrize(("name", "sets"), RIGHT)
def test_what_goes_together_is_left_alone(name: str, sets: list[str]) -> None:
    assert judge(COMPAT, job(name, *sets)) == []


def test_no_published_configuration_is_refused() -> None:
    # the benchmark trains in fp8, which its preset sets
    assert [(name, preset, said) for name, preset, one in published() for said in judge(COMPAT, one)] == []


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (["network.pluginVersion=v1.0.7"], "use v1.0.13 or v1.0.13_1, or plugin v1.0.16 for it"),
        (["network.daemonVersion=v1.0.18"], "use v1.0.22, or plugin v1.0.12 for it"),
        (NEWEST, "use v1.0.16 with network.daemonVersion v1.0.22, or an image with CUDA 13"),
    ],
)
def test_the_hint_names_a_pair_that_works(given: list[str], hint: str) -> None:
    (said,) = judge(COMPAT, job("gke-a3mega", *given))
    assert said.hint == hint


def test_each_row_names_its_public_source() -> None:
    tables = {name: rows for name, rows in lock().items() if not name.startswith("x-")}
    plugins = tables.pop("plugins")
    rows = [row for table in (*tables.values(), *plugins.values()) for row in table]
    assert len(rows) > 20
    for row in rows:
        # a repository at a commit or version, or a site's document
        assert re.match(
            r"[\w-]+/[\w.-]+( @ [0-9a-f]{7,8}| v[0-9.]+)?, \w|kubernetes\.io, \w|docs\.[\w.]+ of \d{4}-\d\d-\d\d, \w",
            row["source"],
        ), row


@pytest.mark.parametrize("name", ["gke-a3mega", "gke-a3high"])
def test_charts_and_lock_know_the_same_pairs(name: str) -> None:
    fragment = {"gke-a3mega": "gpudirect-tcpxo", "gke-a3high": "gpudirect-tcpx"}[name]
    text = chart(name=name).files["templates/_gpudirect.tpl"]
    define = text.partition('.gpudirectVersions" -}}')[2].partition("{{- end }}")[0]
    in_chart = load(define, "versions").data
    said = ("daemons", "settings", "daemonFlags", "build", "probe")
    rows = lock()["plugins"][fragment]
    assert in_chart == {row["plugin"]: {key: row[key] for key in said if key in row} for row in rows}


def test_the_lock_knows_each_release_of_the_vendor() -> None:
    # v1.0.12 to v1.0.17 are tags of google/nccl-plugin-gpudirect-tcpxo; no release notes name daemons of v1.0.10 and
    # v1.0.13
    known = [row["plugin"] for row in lock()["plugins"]["gpudirect-tcpxo"]]
    assert known[-6:] == ["v1.0.11", "v1.0.12", "v1.0.14", "v1.0.15", "v1.0.16", "v1.0.17"]
    assert [row["daemons"][-1] for row in lock()["plugins"]["gpudirect-tcpxo"]][-2:] == ["v1.0.22", "v1.0.23"]


@pytest.mark.parametrize("name", TARGETS)
def test_the_formats_of_every_machine_are_known(name: str) -> None:
    for machine in target(name).machines.values():
        gpu = find_gpu(machine.gpu)
        assert gpu, machine.gpu
        assert set(gpu.precisions) >= {"bf16", "fp16", "fp32"}
        assert ("fp8" in gpu.precisions) == (not machine.gpu.startswith("a100"))


@pytest.mark.parametrize(
    ("name", "sets", "refused"),
    [
        ("gke-a4x", [], True),
        ("coreweave", ["machineType=gb200-4x"], True),
        ("aks-nd", ["machineType=Standard_ND128isr_GB300_v6"], True),
        ("oke-h100", ["machineType=BM.GPU.GB300.4"], True),
        ("coreweave", [], False),
        ("gke-a4x", ["launchers.megatron-lm.image=registry.example.com/own:1"], False),
    ],
)
def test_arm_machines_start_no_image_for_x86(name: str, sets: list[str], refused: bool) -> None:
    old = [] if any("image" in each for each in sets) else ["launchers.megatron-lm.image=nvcr.io/nvidia/nemo:25.02"]
    found = [each.id for each in judge(COMPAT, job(name, *sets, *old))]
    assert ("image-of-the-processor" in found) is refused


@pytest.mark.parametrize(
    ("name", "machine", "image", "refused"),
    [
        ("coreweave", "b200-8x", "nvcr.io/nvidia/nemo:24.12", True),
        ("coreweave", "b200-8x", "nvcr.io/nvidia/pytorch:24.12-py3", True),
        ("coreweave", "b200-8x", "nvcr.io/nvidia/nemo:25.07", False),
        ("coreweave", "b200-8x", "registry.example.com/own:24.12", False),
        ("coreweave", "gd-8xh200ib-i128", "nvcr.io/nvidia/nemo:24.07", False),
    ],
)
def test_blackwell_runs_no_image_that_is_older_than_it(name: str, machine: str, image: str, refused: bool) -> None:
    found = judge(COMPAT, job(name, f"machineType={machine}", f"launchers.megatron-lm.image={image}"))
    assert ("image-of-the-gpu" in [each.id for each in found]) is refused


def test_charts_ask_for_the_kubernetes_that_they_need() -> None:
    floors = {row["fragment"]: row["from"] for row in lock()["kubernetes"]}
    asked = re.search(r'kubeVersion: ">=([0-9.]+)-0"', chart().files["Chart.yaml"])
    assert asked
    assert version(asked[1]) >= version(floors["gpudirect"])


@pytest.mark.parametrize(
    ("first", "second"),
    [("v1.0.9-1", "v1.0.11"), ("v1.0.13", "v1.0.13_1"), ("v3.1.9", "v3.1.12"), ("1.9", "1.29"), ("25.07", "25.07.00")],
)
def test_versions_compare_as_numbers(first: str, second: str) -> None:
    assert version(first) < version(second)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("v1.0.2", True), ("v1.0.8-1", True), ("v1.0.9", False), ("v1.0.9-1", False), ("v1.0.1", False)],
)
def test_a_range_holds_its_first_version_and_not_its_end(given: str, expected: bool) -> None:
    assert within({"from": "v1.0.2", "below": "v1.0.9"}, given) is expected


@pytest.mark.parametrize(
    ("name", "sets", "kubernetes", "kueue", "key", "part"),
    [
        ("gke-a3mega", [], "v1.28.15-gke.1", "", "machineType", "native sidecars"),
        ("oke-h100", ["machineType=BM.GPU.GB200.4"], "v1.31.1", "", "machineType", "dynamic resource allocation"),
        ("gke-a3mega", ["setup.kueueVersion=v1beta1"], "v1.34.0", "v0.20.0", "setup.kueueVersion", "v1beta1"),
        ("gke-a3mega", [], "v1.34.0", "v0.14.2", "setup.kueueVersion", "v1beta2"),
    ],
)
def test_a_cluster_that_is_too_old_or_too_new_is_told(
    name: str, sets: list[str], kubernetes: str, kueue: str, key: str, part: str
) -> None:
    (claim,) = outdated_cluster(job(name, *sets), kubernetes, kueue)
    assert claim.key == key
    assert part in claim.message
    assert claim.hint.startswith("use ")


@pytest.mark.parametrize(
    ("name", "sets", "kubernetes", "kueue"),
    [
        ("gke-a3mega", [], "v1.29.0-gke.1", "v0.19.2"),
        ("gke-a3mega", ["setup.kueueVersion=v1beta1"], "v1.36.3", "v0.19.2"),
        ("gke-a3mega", ["launcher=download"], "v1.28.0", ""),
        ("oke-h100", [], "v1.29.1", ""),
        ("oke-h100", ["machineType=BM.GPU.GB200.4"], "v1.32.0", ""),
        ("eks-p5", [], "v1.28.1", ""),
    ],
)
def test_a_cluster_that_has_all_is_left_alone(name: str, sets: list[str], kubernetes: str, kueue: str) -> None:
    assert list(outdated_cluster(job(name, *sets), kubernetes, kueue)) == []


# -- what Kueue's own configuration must say


CHANNEL = """\
- name: nic
  resourceClaimTemplateName: nics
"""


def told(made: Chart, *given: str) -> list[tuple[str, str, str]]:
    found = check(made, load_values((), set_values=given))
    return [(each.rule, each.severity, each.key) for each in found if each.rule.startswith("kueue-")]


def test_check_says_that_kueue_leaves_pytorchjobs_alone() -> None:
    assert told(chart(name="eks-p5"), "queue.name=team") == [("kueue-integration", "warning", "queue.name")]
    assert told(chart(name="eks-p5")) == []
    assert told(chart("jobset", "eks-p5"), "queue.name=team") == []
    assert told(chart(name="gke-a3mega"), "queue.name=team") == []
    assert told(chart("pytorchjob", "gke-a3mega"), "queue.name=team") == [
        ("kueue-integration", "warning", "queue.name")
    ]


@pytest.mark.parametrize(
    ("given", "queue", "expected"),
    [
        ((), "{}", 0),
        (("setup.preemption.withinClusterQueue=LowerOrNewerEqualPriority",), "{}", 1),
        ((), '{"team": {"nodes": 1, "cohort": "gpus"}}', 1),
        ((), '{"team": {"nodes": 1, "cohort": "gpus", "borrowing": 0}}', 0),
        ((), '{"team": {"nodes": 1, "cohort": "gpus", "preemption": {"reclaimWithinCohort": "Never"}}}', 0),
        ((), '{"other": {"nodes": 1, "cohort": "gpus"}}', 0),
        (("checkpoint.enabled=true",), '{"team": {"nodes": 1, "cohort": "gpus"}}', 0),
        (("launcher=nccl-test",), '{"team": {"nodes": 1, "cohort": "gpus"}}', 0),
    ],
)
def test_check_says_where_a_run_that_saves_nothing_can_be_evicted(
    given: tuple[str, ...], queue: str, expected: int
) -> None:
    sets = ("queue.name=team", "checkpoint.enabled=false", *given)
    found = check(chart(name="gke-a3mega"), load_values((), set_values=sets, set_json=(f"setup.queues={queue}",)))
    rows = [(each.severity, each.key) for each in found if each.rule == "evicted-runs-save"]
    assert rows == [("warning", "checkpoint.enabled")] * expected


@pytest.mark.parametrize(("queues", "expected"), [("{}", 0), ('{"team": {"nodes": 1}}', 0), ('{"b": {"nodes": 1}}', 1)])
def test_check_warns_of_a_queue_that_the_setup_does_not_list(queues: str, expected: int) -> None:
    values = load_values((), set_values=["queue.name=team"], set_json=[f"setup.queues={queues}"])
    rows = [each.key for each in check(chart(name="gke-a3mega"), values) if each.rule == "queue-of-the-setup"]
    assert rows == ["queue.name"] * expected


def test_the_chart_says_it_too() -> None:
    for made in (chart(name="eks-p5"), setup_chart("eks-p5")):
        notes = made.files["templates/NOTES.txt"]
        assert all("kubeflow.org/pytorchjob" in text for text in (made.files["README.md"], notes))
    assert "kubeflow.org/pytorchjob" not in chart("jobset", "eks-p5").files["README.md"]


def test_check_and_chart_say_what_kueue_wants_of_device_claims(tmp_path: Path) -> None:
    folder = library(tmp_path, {"mine/resourceClaims.yaml": CHANNEL})
    box = folder / "targets/box.yaml"
    box.write_text(box.read_text().replace("mine]", "mine, kueue]"))
    made = composed(folder)
    assert "deviceClassMappings" in made.files["README.md"]
    assert ("kueue-device-classes", "warning", "queue.name") in told(made, "queue.name=team")
    for machine, count in (("box-8", 0), ("box-4", 1)):
        found = told(made, "queue.name=team", f"setup.quota.resources.{machine}.channels=1k")
        assert [each[0] for each in found].count("kueue-device-classes") == count
    assert told(made) == []
