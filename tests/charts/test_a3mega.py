"""The A3 Mega chart holds what the vendor and the guide ask for, as meaning: read from what Helm renders."""

from __future__ import annotations

import json
import re
from typing import Any

import profiles
import pytest
from rendered import (
    GPT3,
    Objects,
    arguments,
    chart,
    container,
    env,
    init,
    job_spec,
    mounts,
    one,
    overrides,
    pod,
    rendered,
    security,
    volumes,
)

from chartgen.data.compatibility import lock
from chartgen.errors import ChartgenError
from chartgen.helm.manifests import render
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load


@pytest.fixture(scope="module")
def run() -> Objects:
    return rendered()


@pytest.fixture(scope="module")
def host_network() -> Objects:
    """The profile in the machine's own network."""
    return rendered("network.hostNetwork=true")


def test_machines_times_gpus_is_the_world(run: Objects) -> None:
    nodes, gpus = job_spec(run)["completions"], int(container(run)["resources"]["limits"]["nvidia.com/gpu"])
    assert nodes * gpus == 256
    assert job_spec(run)["parallelism"] == nodes
    assert (env(run)["NNODES"], env(run)["GPUS_PER_NODE"]) == (str(nodes), str(gpus))
    native = overrides(run)
    assert (native["trainer.num_nodes"], native["trainer.devices"]) == (str(nodes), str(gpus))
    assert container(run)["resources"]["requests"] == container(run)["resources"]["limits"]


def test_every_mount_has_a_volume_and_every_volume_a_mount(run: Objects, host_network: Objects) -> None:
    for found in (run, host_network):
        spec = pod(found)["spec"]
        used = [
            mount["name"] for item in (*spec["containers"], *spec["initContainers"]) for mount in item["volumeMounts"]
        ]
        assert set(used) == set(volumes(found))


def test_a_rank_that_fails_fails_the_run_once(run: Objects) -> None:
    assert job_spec(run)["backoffLimit"] == 0
    assert job_spec(run)["completionMode"] == "Indexed"
    assert pod(run)["spec"]["restartPolicy"] == "Never"
    assert one("JobSet", run)["spec"]["failurePolicy"] == {"maxRestarts": 0}


def test_plugin_and_daemon_are_the_guides_pair(run: Objects) -> None:
    repository = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpxo/"
    assert init(run, "nccl-plugin-installer")["image"] == repository + "nccl-plugin-gpudirecttcpx-dev:v1.0.3"
    assert init(run, "tcpxo-daemon")["image"] == repository + "tcpgpudmarxd-dev:v1.0.9"


@pytest.mark.parametrize(
    ("plugin", "daemon", "fits"),
    [
        ("v1.0.1", "v1.0.8", True),
        ("v1.0.3", "v1.0.9", True),
        ("v1.0.7", "v1.0.13", True),
        ("v1.0.7", "v1.0.13_1", True),
        ("v1.0.8-1", "v1.0.14", True),
        ("v1.0.11", "v1.0.17", True),
        ("v1.0.3", "v1.0.13", False),
        ("v1.0.12", "v1.0.18", True),
        ("v1.0.16", "v1.0.22", True),
        ("v1.0.17", "v1.0.23", True),
        ("v1.0.17", "v1.0.22", False),
        ("v1.0.10", "v1.0.16", False),
    ],
)
def test_only_published_pairs_are_accepted(plugin: str, daemon: str, *, fits: bool) -> None:
    sets = (f"network.pluginVersion={plugin}", f"network.daemonVersion={daemon}")
    if fits:
        rendered(*sets)
        return
    with pytest.raises(ChartgenError, match=r"network\.(plugin|daemon)Version: .*; use v1"):
        rendered(*sets)


def rendered_values() -> Any:
    """The chart's own defaults."""
    return load(chart().files["values.yaml"], "values.yaml").data


def of_version(plugin: str, *json: str) -> Objects:
    """The chart's own defaults with a version of the plugin, and its newest daemon."""
    (row,) = (row for row in lock()["plugins"]["gpudirect-tcpxo"] if row["plugin"] == plugin)
    versions = (f"network.pluginVersion={plugin}", f"network.daemonVersion={row['daemons'][-1]}")
    return rendered(*versions, files=(), json=json)


def test_the_newest_pair_that_the_default_image_can_load_is_the_default() -> None:
    network, image = rendered_values()["network"], container(rendered(files=()))["image"]
    (release,) = re.findall(r"nvidia/nemo:(\d\d\.\d\d)$", image)
    cuda = next(
        row["cuda"] for row in reversed(lock()["cuda"]) if row["image"] == "nvidia/nemo" and release >= row["from"]
    )
    newest = [row for row in lock()["plugins"]["gpudirect-tcpxo"] if row["cuda"] == cuda][-1]
    assert (network["pluginVersion"], network["daemonVersion"]) == (newest["plugin"], newest["daemons"][-1])
    assert network["hostNetwork"] is False


@pytest.mark.parametrize(
    ("plugin", "build"),
    [
        ("v1.0.3", "221"),
        ("v1.0.7", "222"),
        ("v1.0.8-1", "223"),
        ("v1.0.11", "223"),
        ("v1.0.12", None),
        ("v1.0.17", None),
    ],
)
def test_installer_copies_the_plugin_to_where_the_program_looks(plugin: str, build: str | None) -> None:
    run = of_version(plugin)
    installer = init(run, "nccl-plugin-installer")
    shared = mounts(installer)["/usr/local/nccl-plugin"]["name"]
    assert volumes(run)[shared] == {"name": shared, "emptyDir": {}}
    assert mounts(container(run))["/usr/local/nccl-plugin"]["name"] == shared
    assert installer["args"] == ["install", "--install-nccl", *([f"--nccl-buildtype={build}"] if build else [])]


def test_a_build_of_nccl_is_the_users_choice_where_there_are_several() -> None:
    found = of_version("v1.0.11", 'network.ncclBuildType="221"')
    assert init(found, "nccl-plugin-installer")["args"][-1] == "--nccl-buildtype=221"


@pytest.mark.parametrize(
    ("plugin", "flags"),
    [
        ("v1.0.11", ["--num_hops=2", "--num_nics=8", "--uid=", "--alsologtostderr"]),
        ("v1.0.12", ["--num_hops=2", "--num_nics=8"]),
        ("v1.0.17", ["--num_hops=2"]),
    ],
)
def test_the_daemon_gets_the_flags_of_its_version(plugin: str, flags: list[str]) -> None:
    args = init(of_version(plugin), "tcpxo-daemon")["args"]
    assert args == ["bash", "/fts/entrypoint_rxdm_container.sh", *flags]


def test_the_program_starts_when_the_daemon_is_ready() -> None:
    daemon = init(of_version("v1.0.16"), "tcpxo-daemon")
    (file,) = (entry["value"] for entry in daemon["env"] if entry["name"] == "HEALTH_CHECK_LOG_FILE")
    assert "_" not in file, "the daemon takes no such name"
    probe = daemon["startupProbe"]
    assert probe["exec"]["command"] == ["cat", file]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 60, "the start takes about 30 s"
    # which writes no such file
    assert "startupProbe" not in init(of_version("v1.0.4"), "tcpxo-daemon")


@pytest.mark.parametrize(("plugin", "name"), [("v1.0.3", profiles.TCPXO_BEFORE), ("v1.0.17", profiles.TCPXO)])
def test_settings_are_those_of_the_vendors_profile(plugin: str, name: str) -> None:
    theirs, ours = profiles.sets(name), env(of_version(plugin))
    theirs = {key: value.replace("${NCCL_LIB_DIR}", ours["NCCL_LIB_DIR"]) for key, value in theirs.items()}
    both = theirs.keys() & ours.keys() - {"NCCL_DEBUG"}
    assert len(both) > 15
    assert {key: ours[key] for key in both} == {key: theirs[key] for key in both}


@pytest.mark.parametrize(
    ("plugin", "wanted"),
    [
        ("v1.0.11", {"NCCL_ALGO": "Ring,Tree", "NCCL_NVLS_ENABLE": "0", "NCCL_DYNAMIC_CHUNK_SIZE": "524288"}),
        ("v1.0.12", {"NCCL_NVLSTREE_MAX_CHUNKSIZE": "131072", "NCCL_DYNAMIC_CHUNK_SIZE": "524288"}),
        ("v1.0.15", {"NCCL_NVLSTREE_MAX_CHUNKSIZE": "131072", "NCCL_NVLS_ENABLE": "1"}),
        (
            "v1.0.17",
            {"NCCL_NVLSTREE_MAX_CHUNKSIZE": "131072", "NCCL_NVLS_ENABLE": "1", "NCCL_NET_PLUGIN_TELEMETRY_MODE": "0"},
        ),
    ],
)
def test_each_version_gets_its_own_settings(plugin: str, wanted: dict[str, str]) -> None:
    names = {name for row in lock()["plugins"]["gpudirect-tcpxo"] for name in row["settings"]}
    assert {name: value for name, value in env(of_version(plugin)).items() if name in names} == wanted


def test_daemon_is_a_native_sidecar_that_ends_with_the_program(run: Objects) -> None:
    daemon = init(run, "tcpxo-daemon")
    assert daemon["restartPolicy"] == "Always"
    assert daemon["securityContext"]["capabilities"]["add"] == ["NET_ADMIN", "NET_BIND_SERVICE"]
    assert {"name": "LD_LIBRARY_PATH", "value": "/usr/local/nvidia/lib64"} in daemon["env"]
    hosts = {path: volumes(run)[mount["name"]]["hostPath"]["path"] for path, mount in mounts(daemon).items()}
    assert hosts == {
        "/usr/local/nvidia": "/home/kubernetes/bin/nvidia",
        "/hostsysfs": "/sys",
        "/hostprocsysfs": "/proc/sys",
    }


def test_program_sees_the_aperture_devices_and_shared_memory(run: Objects) -> None:
    found = mounts(container(run))
    assert volumes(run)[found["/dev/aperture_devices"]["name"]]["hostPath"]["path"] == "/dev/aperture_devices"
    assert env(run)["NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY"] == "/dev/aperture_devices"
    assert volumes(run)[found["/dev/shm"]["name"]]["emptyDir"] == {"medium": "Memory", "sizeLimit": "250Gi"}


def test_nccl_settings_are_the_guides(run: Objects) -> None:
    variables = env(run)
    wanted = {
        "NCCL_DEBUG": "WARN",
        "NCCL_ALGO": "Ring,Tree",
        "NCCL_MIN_NCHANNELS": "4",
        "NCCL_BUFFSIZE": "8388608",
        "NCCL_SOCKET_IFNAME": "eth0",
        "GLOO_SOCKET_IFNAME": "eth0",
        "NCCL_DYNAMIC_CHUNK_SIZE": "524288",
        "NCCL_P2P_NET_CHUNKSIZE": "524288",
        "NCCL_P2P_PCI_CHUNKSIZE": "524288",
        "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
        "NCCL_CROSS_NIC": "0",
        "NCCL_NET_GDR_LEVEL": "PIX",
        "NCCL_NVLS_ENABLE": "0",
        "NCCL_TUNER_PLUGIN": "libnccl-tuner.so",
        "NCCL_TUNER_CONFIG_PATH": "/usr/local/nccl-plugin/lib64/a3plus_tuner_config.textproto",
        "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE": "/usr/local/nccl-plugin/lib64/a3plus_guest_config.textproto",
        "NCCL_FASTRAK_CTRL_DEV": "eth0",
        "NCCL_FASTRAK_NUM_FLOWS": "2",
        "NCCL_FASTRAK_ENABLE_CONTROL_CHANNEL": "0",
        "NCCL_FASTRAK_ENABLE_HOTPATH_LOGGING": "0",
        "NCCL_FASTRAK_USE_SNAP": "1",
        "NCCL_FASTRAK_USE_LLCM": "1",
        "NVTE_FWD_LAYERNORM_SM_MARGIN": "8",
        "NVTE_BWD_LAYERNORM_SM_MARGIN": "8",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "OMP_NUM_THREADS": "12",
    }
    assert wanted.items() <= variables.items()
    assert variables["NCCL_FASTRAK_IFNAME"].split(",") == [f"eth{i}" for i in range(1, 9)]


def test_host_network_profile(host_network: Objects) -> None:
    run = host_network
    spec = pod(run)["spec"]
    assert (spec["hostNetwork"], spec["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert container(run)["securityContext"]["privileged"] is True
    assert init(run, "tcpxo-daemon")["securityContext"]["privileged"] is True
    assert not [key for key in pod(run)["metadata"]["annotations"] if key.startswith(("networking.gke", "devices.gke"))]


def test_pod_network_attaches_nine_networks_and_is_not_privileged(run: Objects) -> None:
    spec, annotations = pod(run)["spec"], pod(run)["metadata"]["annotations"]
    assert "hostNetwork" not in spec
    interfaces = json.loads(annotations["networking.gke.io/interfaces"])
    assert interfaces[0] == {"interfaceName": "eth0", "network": "default"}
    assert interfaces[1:] == [{"interfaceName": f"eth{i}", "network": f"vpc{i}"} for i in range(1, 9)]
    assert annotations["networking.gke.io/default-interface"] == "eth0"
    devices = load(annotations["devices.gke.io/container.tcpxo-daemon"], "annotation").data
    names = [f"nvidia{i}" for i in range(8)] + ["nvidiactl", "nvidia-uvm", "dmabuf_import_helper"]
    assert devices == [{"path": f"/dev/{name}"} for name in names]
    for item in (*spec["containers"], *spec["initContainers"]):
        assert item["securityContext"]["allowPrivilegeEscalation"] is False
        assert "privileged" not in item["securityContext"]
    assert container(run)["securityContext"] == security("IPC_LOCK")


def test_other_networks_can_be_named_but_must_be_eight() -> None:
    names = [f"gpu-net-{i}" for i in range(8)]
    found = rendered(f"network.subnetworks={{{','.join(names)}}}")
    interfaces = json.loads(pod(found)["metadata"]["annotations"]["networking.gke.io/interfaces"])
    assert [interface["network"] for interface in interfaces[1:]] == names
    with pytest.raises(ChartgenError, match="subnetworks"):
        rendered("network.subnetworks={one,two}")


def test_runs_only_on_tainted_gpu_machines_of_its_type(run: Objects) -> None:
    spec = pod(run)["spec"]
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": "a3-megagpu-8g"}
    assert spec["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "cloud.google.com/impending-node-termination", "operator": "Exists"},
    ]


def test_queue_topology_and_no_suspend(run: Objects) -> None:
    jobset = one("JobSet", run)
    assert jobset["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "a3-mega"
    assert pod(run)["metadata"]["annotations"]["kueue.x-k8s.io/podset-preferred-topology"] == "kubernetes.io/hostname"
    assert "suspend" not in jobset["spec"]
    assert "ttlSecondsAfterFinished" not in jobset["spec"]


def test_flex_start_asks_for_machines_for_the_runs_deadline() -> None:
    found = rendered("queue.flexStart=true", "run.deadlineSeconds=86400")
    jobset = one("JobSet", found)
    assert jobset["metadata"]["annotations"]["provreq.kueue.x-k8s.io/maxRunDurationSeconds"] == "86400"
    assert jobset["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] == "86400"
    assert job_spec(found)["activeDeadlineSeconds"] == 86400
    with pytest.raises(ChartgenError, match=r"queue\.flexStart: .* run\.deadlineSeconds"):
        rendered("queue.flexStart=true")


def test_nothing_of_a_queue_is_left_without_one() -> None:
    found = rendered("queue.name=", "topology.mode=")
    assert "kueue" not in json.dumps(found)


def test_storage_roles_on_buckets_and_disks(run: Objects) -> None:
    found, mounted = volumes(run), mounts(container(run))
    data = found[mounted["/data"]["name"]]["csi"]
    assert (data["driver"], data["readOnly"]) == ("gcsfuse.csi.storage.gke.io", True)
    assert data["volumeAttributes"] == {
        "bucketName": "cloud-samples-data",
        "mountOptions": "implicit-dirs,only-dir=third-party",
    }
    assert found[mounted["/outputs"]["name"]]["csi"]["volumeAttributes"] == {"bucketName": "my-logs"}
    assert found[mounted["/scratch"]["name"]]["hostPath"]["path"] == "/mnt/stateful_partition/kube-ephemeral-ssd"
    assert pod(run)["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"


def test_two_roles_on_one_claim_are_one_volume() -> None:
    found = rendered(
        "storage.data.from=pvc://train/corpus",
        "storage.data.mountOptions=",
        "storage.outputs.from=pvc://train/runs/gpt3",
        "storage.scratch.from=memory://",
    )
    mounted = mounts(container(found))
    assert mounted["/data"]["name"] == mounted["/outputs"]["name"]
    assert (mounted["/data"]["subPath"], mounted["/outputs"]["subPath"]) == ("corpus", "runs/gpt3")
    claims = [volume for volume in volumes(found).values() if "persistentVolumeClaim" in volume]
    assert [claim["persistentVolumeClaim"] for claim in claims] == [{"claimName": "train"}]
    assert not [key for key in pod(found)["metadata"]["annotations"] if key.startswith("gke-gcsfuse")]


def test_logs_are_the_runs_own_and_checkpoints_the_releases(run: Objects) -> None:
    name = one("JobSet", run)["metadata"]["name"]
    digest = name.rpartition("-")[2]
    assert env(run)["RUN_DIRECTORY"] == f"/outputs/ml/my-run/{digest}"
    native = overrides(run)
    assert native["exp_manager.explicit_log_dir"] == f"'/outputs/ml/my-run/{digest}'"
    assert native["exp_manager.checkpoint_callback_params.dirpath"] == "'/outputs/ml/my-run/checkpoints'"
    other = rendered("steps=60")
    assert (
        overrides(other)["exp_manager.checkpoint_callback_params.dirpath"]
        == native["exp_manager.checkpoint_callback_params.dirpath"]
    )
    assert env(other)["RUN_DIRECTORY"] != env(run)["RUN_DIRECTORY"]


def test_model_is_the_guides(run: Objects) -> None:
    native = overrides(run)
    wanted = {
        "model.num_layers": "96",
        "model.hidden_size": "12288",
        "model.ffn_hidden_size": "49152",
        "model.num_attention_heads": "96",
        "model.encoder_seq_length": "2048",
        "model.tensor_model_parallel_size": "4",
        "model.pipeline_model_parallel_size": "8",
        "model.virtual_pipeline_model_parallel_size": "2",
        "model.sequence_parallel": "true",
        "model.micro_batch_size": "1",
        "model.global_batch_size": "2048",
        "model.fp8": "true",
        "model.fp8_hybrid": "true",
        "trainer.precision": "'bf16'",
        "trainer.max_steps": "50",
        "trainer.val_check_interval": "100",
        "trainer.limit_val_batches": "20",
        "model.data.data_impl": "'mock'",
        "model.data.data_prefix": "[]",
        "model.data.splits_string": "'90,8,2'",
        "model.tokenizer.vocab_file": "'/data/tokenizers/gpt2/gpt2-vocab.json'",
        "model.tokenizer.merge_file": "'/data/tokenizers/gpt2/gpt2-merges.txt'",
        "model.optim.name": "'distributed_fused_adam'",
        "model.optim.bucket_cap_mb": "220",
        "model.optim.sched.warmup_steps": "115",
        "trainer.max_time": "'25:23:00:00'",
    }
    assert wanted.items() <= native.items()
    assert float(native["model.optim.lr"]) == 9.0e-05
    assert arguments(run)[0].endswith("/megatron_gpt_pretraining.py")


def test_job_kind_has_the_same_pod_and_a_service_for_the_rendezvous(run: Objects) -> None:
    found = rendered(workload="job")
    name = one("Job", found)["metadata"]["name"]
    assert env(found)["MASTER_ADDR"] == f"{name}-0.{name}"
    service = one("Service", found)
    assert service["metadata"]["name"] == pod(found)["spec"]["subdomain"] == name
    assert service["spec"]["selector"].items() <= pod(found)["metadata"]["labels"].items()
    for field in ("volumes", "initContainers", "tolerations", "nodeSelector"):
        assert len(pod(found)["spec"][field]) == len(pod(run)["spec"][field])


def test_no_two_runs_of_a_release_at_once(run: Objects) -> None:
    (term,) = pod(run)["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    rules = {(rule["key"], rule["operator"]): rule.get("values") for rule in term["labelSelector"]["matchExpressions"]}
    name = one("JobSet", run)["metadata"]["name"]
    assert rules == {
        ("app.kubernetes.io/instance", "In"): ["my-run"],
        ("run", "Exists"): None,
        ("run", "NotIn"): [name],
    }
    assert pod(run)["metadata"]["labels"]["run"] == name


@pytest.mark.parametrize(
    ("change", "new_run"),
    [
        ("steps=51", True),
        ("run.again=once-more", True),
        ("queue.name=other", True),
        ("queue.priorityClass=high", True),
        ("podLabels.team=a", True),
        ("setup.quota.nodes=64", False),
        ("steps=50", False),
    ],
)
def test_the_runs_name_follows_what_runs(run: Objects, change: str, *, new_run: bool) -> None:
    name = one("JobSet", run)["metadata"]["name"]
    assert (one("JobSet", rendered(change))["metadata"]["name"] != name) is new_run


def test_another_priority_class_keeps_the_run() -> None:
    high, low = rendered("queue.priorityClass=high"), rendered("queue.priorityClass=low")
    assert one("JobSet", high)["metadata"]["name"] == one("JobSet", low)["metadata"]["name"]


def test_no_values_describe_a_small_mock_run() -> None:
    found = rendered(files=())
    assert job_spec(found)["completions"] == 1
    assert "--mock-data" in arguments(found)
    assert overrides(rendered("launcher=nemo-1", files=()))["model.data.data_impl"] == "'mock'"


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (
            ("nodes=31",),
            r"nodes: 248 GPUs \(31 machines x 8\) cannot be divided by tensor 4 x pipeline 8 x context 1 = 32",
        ),
        (
            ("batch.global=100",),
            r"batch\.global: 100 is not divisible by micro batch 1 x data parallel 8 = 8; nearest: 96 or 104",
        ),
        (("batch.global=40",), r"batch\.global: 40 .* 5 micro-batches, .* pipeline 8"),
        (("model.layers=90",), r"parallelism\.pipeline: 90 layers .* pipeline 8 x virtual 2"),
        (("precision=nvfp4",), r"precision: nvfp4 cannot be trained with launcher nemo-1; use bf16, fp16, fp32, fp8"),
        (("gpusPerNode=16",), r"gpusPerNode: 16 is more than the 8 GPUs of a3-megagpu-8g"),
        (("queue.name=",), r"topology\.mode: .*queue\.name"),
        (("launchers.nemo-1.config.model.num_layers=96",), r"model\.num_layers is set by model\.layers"),
        (("launchers.nemo-1.args={++trainer.max_steps=9}",), r"trainer\.max_steps is set by steps"),
        (("launchers.nemo-1.args={model.tokenizer.type=x}",), r"model\.tokenizer is set by tokenizer\.path"),
        (("parallelism.tensor=1",), r"parallelism\.sequence: needs tensor above 1"),
        (("storage.outputs.readOnly=true",), r"storage\.outputs\.readOnly: true"),
    ],
)
def test_what_cannot_run_is_refused_with_numbers(sets: tuple[str, ...], message: str) -> None:
    """By the chart itself, for people who never use chartgen."""
    with pytest.raises(ChartgenError, match=message):
        render(chart(), "my-run", "ml", load_values(GPT3, set_values=sets).data)
