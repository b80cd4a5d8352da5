"""The A3 High chart holds what the vendor and the guide ask for, and its scripts do what they say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import profiles
import pytest
from image_recorder import Image, ended, patient
from nccllogs import TCPX
from rendered import (
    VALUES,
    Objects,
    arguments,
    container,
    env,
    init,
    job_spec,
    mounts,
    one,
    overrides,
    pod,
    security,
    volumes,
)
from rendered import rendered as rendered_target

from chartgen.data.compatibility import lock
from chartgen.errors import ChartgenError
from chartgen.helm.yaml import load

TARGET = "gke-a3high"
GPT3 = (VALUES / "gpt3-5b.yaml", VALUES / TARGET / "gpt3-5b.yaml", VALUES / f"site.{TARGET}.example.yaml")
PLUGIN = "/usr/local/tcpx/lib64"


def rendered(*sets: str, files: tuple[Path, ...] = GPT3, workload: str | None = None) -> Objects:
    return rendered_target(*sets, files=files, workload=workload, name=TARGET)


@pytest.fixture(scope="module")
def run() -> Objects:
    return rendered()


@pytest.fixture(scope="module")
def host_network() -> Objects:
    """The profile in the machine's own network."""
    return rendered("network.hostNetwork=true")


@pytest.fixture
def image(tmp_path: Path) -> Image:
    found = Image(tmp_path, nccl=TCPX)
    for name in ("torchrun", "ldconfig"):
        found.program(name)
    (tmp_path / "plugin").mkdir()
    (tmp_path / "plugin" / "libnccl-net-tcpx.so").touch()
    for name in ("data", "scratch"):
        (tmp_path / name).mkdir()
    return found


def prepared(image: Image, found: Objects) -> tuple[list[str], dict[str, str]]:
    """The machine's command and environment, with folders of the test in place of the mounts."""
    command, variables = image.command(found)
    script = image.folder / "start.sh"
    moved = script.read_text().replace(PLUGIN, str(image.folder / "plugin"))
    moved = moved.replace("/scratch$1", "${1/$ROOT/$ROOT/scratch}").replace("/scratch/", "$ROOT/scratch/")
    script.write_text(moved)
    staged = variables.get("STAGED_DATA", "").replace("/data/", f"{image.folder}/data/")
    return command, variables | {"ROOT": str(image.folder), "STAGED_DATA": staged}


def start(image: Image, found: Objects) -> subprocess.CompletedProcess[str]:
    command, variables = prepared(image, found)
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=180)


# -- the pod


def test_two_machines_are_sixteen_gpus_in_an_indexed_job(run: Objects) -> None:
    job = one("Job", run)
    assert job["spec"]["completionMode"] == "Indexed"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "a3-queue"
    assert job_spec(run)["completions"] * int(container(run)["resources"]["limits"]["nvidia.com/gpu"]) == 16
    assert container(run)["image"] == "nvcr.io/nvidia/nemo:25.02"
    assert pod(run)["spec"]["nodeSelector"] == {"node.kubernetes.io/instance-type": "a3-highgpu-8g"}
    assert pod(run)["spec"]["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "cloud.google.com/impending-node-termination", "operator": "Exists"},
    ]
    assert volumes(run)["shared-memory"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "200Gi"}


def test_jobset_holds_the_same_pod(run: Objects) -> None:
    found = rendered(workload="jobset")
    assert one("JobSet", found)["spec"]["replicatedJobs"][0]["template"]["spec"]["completions"] == 2
    for field in ("volumes", "initContainers", "tolerations", "nodeSelector"):
        assert len(pod(found)["spec"][field]) == len(pod(run)["spec"][field])


def test_every_mount_has_a_volume_and_every_volume_a_mount(run: Objects, host_network: Objects) -> None:
    for found in (run, host_network):
        spec = pod(found)["spec"]
        used = [
            mount["name"] for item in (*spec["containers"], *spec["initContainers"]) for mount in item["volumeMounts"]
        ]
        assert set(used) == set(volumes(found))


def test_flex_start_asks_for_machines_for_the_runs_deadline() -> None:
    job = one("Job", rendered("queue.flexStart=true", "run.deadlineSeconds=86400"))
    assert job["metadata"]["annotations"]["provreq.kueue.x-k8s.io/maxRunDurationSeconds"] == "86400"
    assert job["spec"]["activeDeadlineSeconds"] == 86400


def test_values_of_a_bucket_and_local_disks() -> None:
    found = rendered("storage.data.from=gs://nemo-megatron-demo/training-data", "storage.data.readOnly=true")
    mounted = mounts(container(found))
    assert volumes(found)[mounted["/data"]["name"]]["csi"]["driver"] == "gcsfuse.csi.storage.gke.io"
    assert (
        volumes(found)[mounted["/scratch"]["name"]]["hostPath"]["path"] == "/mnt/stateful_partition/kube-ephemeral-ssd"
    )
    assert mounted["/outputs"]["subPath"] == "outputs"


# -- GPUDirect-TCPX


def test_plugin_and_daemon_are_the_guides_pair(run: Objects) -> None:
    repository = "us-docker.pkg.dev/gce-ai-infra/gpudirect-tcpx/"
    installer, daemon = init(run, "nccl-plugin-installer"), init(run, "tcpx-daemon")
    assert installer["image"] == repository + "nccl-plugin-gpudirecttcpx-dev:v3.1.6_2023_10_06"
    assert daemon["image"] == repository + "tcpgpudmarxd-dev:v2.0.9"
    assert mounts(installer)["/var/lib/tcpx"]["name"] == mounts(container(run))["/usr/local/tcpx"]["name"]


@pytest.mark.parametrize(
    ("plugin", "daemon", "fits"),
    [
        ("v3.1.7", "v2.0.9", True),
        ("v3.1.9", "v2.0.12", True),
        ("v3.1.12", "v2.0.15", True),
        ("v3.1.12", "v2.0.9", False),
        ("v1.0.3", "v2.0.9", False),
    ],
)
def test_only_published_pairs_are_accepted(plugin: str, daemon: str, *, fits: bool) -> None:
    sets = (f"network.pluginVersion={plugin}", f"network.daemonVersion={daemon}")
    if fits:
        rendered(*sets)
        return
    with pytest.raises(ChartgenError, match=r"network\.(plugin|daemon)Version: .*; use "):
        rendered(*sets)


def test_daemon_is_a_native_sidecar_with_a_socket_of_its_pod(run: Objects) -> None:
    daemon = init(run, "tcpx-daemon")
    assert daemon["restartPolicy"] == "Always"
    assert daemon["args"] == [
        "/tcpgpudmarxd/build/app/tcpgpudmarxd",
        *("--gpu_nic_preset", "a3vm", "--gpu_shmem_type", "fd", "--uds_path", "/run/tcpx"),
        *("--setup_param", "--verbose 128 2 0"),
    ]
    assert daemon["securityContext"]["capabilities"]["add"] == ["NET_ADMIN"]
    socket = mounts(daemon)["/run/tcpx"]["name"]
    assert mounts(container(run))["/run/tcpx"]["name"] == socket
    assert volumes(run)[socket] == {"name": socket, "emptyDir": {}}
    assert env(run)["NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX"] == "/run/tcpx"
    assert (
        volumes(run)[mounts(daemon)["/usr/local/nvidia"]["name"]]["hostPath"]["path"] == "/home/kubernetes/bin/nvidia"
    )


def test_the_newest_pair_is_the_default() -> None:
    found = rendered(files=())
    newest = lock()["plugins"]["gpudirect-tcpx"][-1]
    assert init(found, "nccl-plugin-installer")["image"].endswith(f":{newest['plugin']}")
    assert init(found, "tcpx-daemon")["image"].endswith(f":{newest['daemons'][-1]}")
    assert "hostNetwork" not in pod(found)["spec"]


@pytest.mark.parametrize(
    ("plugin", "daemon", "name"),
    [("v3.1.9", "v2.0.12", profiles.TCPX_BEFORE), ("v3.1.12", "v2.0.15", profiles.TCPX)],
)
def test_settings_are_those_of_the_vendors_release_notes(plugin: str, daemon: str, name: str) -> None:
    ours = env(rendered(f"network.pluginVersion={plugin}", f"network.daemonVersion={daemon}", files=()))
    assert profiles.sets(name).items() <= ours.items()
    only_ours = {key for key in ours if key.startswith("NCCL_")} - profiles.sets(name).keys()
    # where the pod's own socket is, which plugin, and how much NCCL says
    assert only_ours == {"NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX", "NCCL_NET_PLUGIN", "NCCL_DEBUG"}


def test_every_nccl_finds_the_plugin_by_its_name() -> None:
    found = rendered(files=())
    assert env(found)["NCCL_NET_PLUGIN"] == "tcpx"
    script = init(found, "nccl-plugin-installer")["command"][2]
    # as NCCL makes a file of the name, from 2.18 to 2.30
    assert "ln -sf libnccl-net.so /var/lib/tcpx/lib64/libnccl-net-tcpx.so" in script


def test_nccl_settings_are_the_guides(run: Objects) -> None:
    wanted = {
        "GLOO_SOCKET_IFNAME": "eth0",
        "NCCL_SOCKET_IFNAME": "eth0",
        "NCCL_DEBUG": "WARN",
        "NCCL_CHECK_POINTERS": "0",
        "NCCL_DYNAMIC_CHUNK_SIZE": "524288",
        "NCCL_P2P_NET_CHUNKSIZE": "524288",
        "NCCL_P2P_PCI_CHUNKSIZE": "524288",
        "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
        "NCCL_CROSS_NIC": "0",
        "NCCL_ALGO": "Ring",
        "NCCL_PROTO": "Simple",
        "NCCL_NET_GDR_LEVEL": "PIX",
        "NCCL_P2P_PXN_LEVEL": "0",
        "NCCL_MIN_NCHANNELS": "8",
        "NCCL_MAX_NCHANNELS": "8",
        "NCCL_SOCKET_NTHREADS": "1",
        "NCCL_NSOCKS_PERTHREAD": "4",
        "NCCL_GPUDIRECTTCPX_CTRL_DEV": "eth0",
        "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME": "eth1,eth2,eth3,eth4",
        "NCCL_GPUDIRECTTCPX_TX_BINDINGS": ("eth1:8-21,112-125;eth2:8-21,112-125;eth3:60-73,164-177;eth4:60-73,164-177"),
        "NCCL_GPUDIRECTTCPX_RX_BINDINGS": (
            "eth1:22-35,126-139;eth2:22-35,126-139;eth3:74-87,178-191;eth4:74-87,178-191"
        ),
        "NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS": "1000000",
        "NCCL_GPUDIRECTTCPX_FORCE_ACK": "0",
        "NCCL_GPUDIRECTTCPX_TX_COMPLETION_NANOSLEEP": "1000",
        "OMP_NUM_THREADS": "12",
    }
    assert wanted.items() <= env(run).items()


def test_bindings_share_no_processor(run: Objects) -> None:
    send, receive = (processors(env(run)[f"NCCL_GPUDIRECTTCPX_{way}_BINDINGS"]) for way in ("TX", "RX"))
    assert send.keys() == receive.keys() == {"eth1", "eth2", "eth3", "eth4"}
    for name in send:
        assert not send[name] & receive[name]
        assert max(send[name] | receive[name]) < 208


def processors(bindings: str) -> dict[str, set[int]]:
    """Read `eth1:8-21,112-125;...` as interface -> processors."""
    found = {}
    for part in bindings.split(";"):
        name, _, ranges = part.partition(":")
        ends = [tuple(map(int, text.split("-"))) for text in ranges.split(",")]
        found[name] = {cpu for first, last in ends for cpu in range(first, last + 1)}
    return found


def test_host_network_profile(host_network: Objects) -> None:
    run = host_network
    assert (pod(run)["spec"]["hostNetwork"], pod(run)["spec"]["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert container(run)["securityContext"]["privileged"] is True
    assert not [key for key in pod(run)["metadata"]["annotations"] if key.startswith(("networking.gke", "devices.gke"))]


def test_pod_network_attaches_five_networks_and_is_not_privileged(run: Objects) -> None:
    spec, annotations = pod(run)["spec"], pod(run)["metadata"]["annotations"]
    assert "hostNetwork" not in spec
    interfaces = json.loads(annotations["networking.gke.io/interfaces"])
    names = [("eth0", "default"), *((f"eth{i}", f"vpc{i}") for i in range(1, 5))]
    assert [(interface["interfaceName"], interface["network"]) for interface in interfaces] == names
    devices = load(annotations["devices.gke.io/container.tcpx-daemon"], "annotation").data
    assert devices == [
        {"path": f"/dev/{name}"} for name in (*(f"nvidia{i}" for i in range(8)), "nvidiactl", "nvidia-uvm")
    ]
    for item in (*spec["containers"], *spec["initContainers"]):
        assert item["securityContext"]["allowPrivilegeEscalation"] is False
        assert "privileged" not in item["securityContext"]
    assert container(run)["securityContext"] == security("IPC_LOCK")


@pytest.mark.parametrize("sets", ["network.stack=tcp", "network.subnetworks={a,b,c}", "gpusPerNode=4"])
def test_what_does_not_fit_the_fabric_is_refused(sets: str) -> None:
    with pytest.raises(ChartgenError, match=r"network\.stack|subnetworks|drives all"):
        rendered(sets)


# -- the scripts, run for real


@pytest.mark.parametrize(
    ("tag", "value", "first"),
    [
        ("23.06", "", "plugin"),
        ("24.07", "", "/usr/local/cuda/lib64"),
        ("25.02", "", "/usr/local/cuda/lib64"),
        ("25.02", "plugin", "plugin"),
        ("23.06", "image", "/usr/local/cuda/lib64"),
    ],
)
def test_newer_nccl_of_image_and_plugin_comes_first(image: Image, tag: str, value: str, first: str) -> None:
    found = rendered(f"launchers.nemo-1.image=nvcr.io/nvidia/nemo:{tag}", f"network.nccl={value}", "data.stage=false")
    assert start(image, found).returncode == 0
    folders = image.record()["env"]["LD_LIBRARY_PATH"].split(":")
    plugin = str(image.folder / "plugin")
    assert folders[0] == (plugin if first == "plugin" else first)
    assert plugin in folders
    installs_nccl = "--install-nccl" in init(found, "nccl-plugin-installer")["args"]
    assert installs_nccl is (first == "plugin")


def test_without_the_plugin_the_run_stops_instead_of_using_tcp(image: Image) -> None:
    (image.folder / "plugin" / "libnccl-net-tcpx.so").unlink()
    done = start(image, rendered("data.stage=false"))
    assert done.returncode == 78
    assert "the plugin was not installed" in done.stderr
    assert not (image.folder / "torchrun").exists()


def data_set(image: Image, content: str = "tokens") -> tuple[Path, Path]:
    """Write the guide's data set; where it is, and where its copy goes."""
    source = image.folder / "data" / "wikipedia" / "wikipedia-tokenized-for-gpt2"
    source.parent.mkdir(exist_ok=True)
    for suffix in (".bin", ".idx"):
        source.with_name(source.name + suffix).write_text(content + suffix)
    return source, image.folder / "scratch" / source.relative_to(image.folder)


def contents(prefix: Path) -> list[str]:
    return [prefix.with_name(prefix.name + suffix).read_text() for suffix in (".bin", ".idx")]


def test_each_machine_reads_its_copy_of_the_data(image: Image) -> None:
    found = rendered()
    _, copy = data_set(image)
    assert start(image, found).returncode == 0
    assert contents(copy) == ["tokens.bin", "tokens.idx"]
    assert sorted(path.name for path in copy.parent.iterdir()) == [f"{copy.name}.bin", f"{copy.name}.idx"]
    prefix = "/scratch/data/wikipedia/wikipedia-tokenized-for-gpt2"
    assert overrides(found)["model.data.data_prefix"] == f"[1,'{prefix}']"
    assert env(found)["STAGED_DATA"] == prefix.removeprefix("/scratch")


def test_only_changed_or_broken_copies_are_made_again(image: Image) -> None:
    found = rendered()
    source, copy = data_set(image)
    start(image, found)
    assert "copying" not in start(image, found).stdout
    data_set(image, "other tokens")
    copy.with_name(copy.name + ".bin.part").write_text("half of a cop")
    assert start(image, found).stdout.count("copying") == 2
    assert contents(copy) == contents(source)


@pytest.mark.threat(19)
def test_a_file_that_another_tenant_left_is_no_copy(image: Image) -> None:
    """The disk outlives its tenants: a file of the same size and time may hold anything, and be anyone's."""
    source, copy = data_set(image)
    planted = copy.with_name(copy.name + ".bin")
    planted.parent.mkdir(parents=True)
    me = os.geteuid()
    for owner, mode, content in ((me, 0o644, "poison.bin"), (65534, 0o644, "tokens.bin"), (me, 0o666, "tokens.bin")):
        planted.write_text(content)
        shutil.copystat(source.with_name(source.name + ".bin"), planted)
        planted.chmod(mode)
        if me == 0:
            os.chown(planted, owner, owner)
        elif owner != me:
            continue
        assert f"copying {source}.bin" in start(image, rendered()).stdout, (owner, mode)
        assert contents(copy) == contents(source)
        assert (planted.stat().st_uid, planted.stat().st_mode & 0o777) == (me, 0o644)


@pytest.mark.threat(19)
def test_links_that_another_tenant_left_write_to_nothing(image: Image) -> None:
    source, copy = data_set(image)
    victim = image.folder / "victim"
    for link in (f".staging-{os.getuid()}", f"{copy.relative_to(image.folder / 'scratch')}.bin.part"):
        place = image.folder / "scratch" / link
        place.parent.mkdir(parents=True, exist_ok=True)
        victim.write_text("checkpoint")
        place.symlink_to(victim)
        done = start(image, rendered())
        assert victim.read_text() == "checkpoint", link
        assert done.returncode == 1 or contents(copy) == contents(source), done.stderr
        place.unlink(missing_ok=True)
    others = image.folder / "others"
    others.mkdir()
    for suffix in ("bin", "idx"):
        part = copy.with_name(f"{copy.name}.{suffix}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        copy.with_name(f"{copy.name}.{suffix}").unlink(missing_ok=True)
        part.symlink_to(others)
    start(image, rendered())
    assert list(others.iterdir()) == []
    shutil.rmtree(image.folder / "scratch/data")
    (image.folder / "outside/wikipedia").mkdir(parents=True)
    (image.folder / "scratch/data").symlink_to(image.folder / "outside")
    assert start(image, rendered()).returncode == 1
    assert list((image.folder / "outside/wikipedia").iterdir()) == []


@pytest.mark.threat(19)
def test_a_lock_of_another_tenant_keeps_no_run(image: Image) -> None:
    data_set(image)
    lock = image.folder / "scratch" / f".staging-{os.getuid()}"
    lock.parent.mkdir(exist_ok=True)
    os.mkfifo(lock)
    done = start(image, rendered())
    assert done.returncode == 1
    assert f"{lock} is not a file of this user" in done.stderr
    lock.unlink()
    assert start(image, rendered()).returncode == 0
    assert lock.stat().st_mode & 0o077 == 0, "nobody else can open it, and so lock it"
    lock.chmod(0o644)  # as a hard link of another file of this user
    assert start(image, rendered()).returncode == 1


@pytest.mark.parametrize("broken", ["missing", "empty"])
def test_data_that_is_not_there_stops_the_run(image: Image, broken: str) -> None:
    source, _ = data_set(image)
    index = source.with_name(source.name + ".idx")
    index.unlink() if broken == "missing" else index.write_text("")
    done = start(image, rendered())
    assert done.returncode == 1
    assert f"{index} is missing or empty" in done.stderr
    assert not (image.folder / "torchrun").exists()


def test_a_full_disk_stops_the_run(image: Image) -> None:
    data_set(image)
    image.program("cp", "sys.exit('cp: No space left on device')")
    done = start(image, rendered())
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert not (image.folder / "torchrun").exists()


def test_pods_on_one_machine_copy_one_after_the_other(image: Image) -> None:
    _, copy = data_set(image)
    slow = (
        f"import subprocess, time; time.sleep(0.5); sys.exit(subprocess.call([{shutil.which('cp')!r}, *sys.argv[1:]]))"
    )
    image.program("cp", slow)
    command, variables = prepared(image, rendered())
    pods = [subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = [one_pod.communicate(timeout=180)[0] for one_pod in pods]
    assert [one_pod.returncode for one_pod in pods] == [0, 0]
    assert "".join(printed).count("copying") == 2
    assert contents(copy) == ["tokens.bin", "tokens.idx"]


def test_staging_needs_a_data_set() -> None:
    with pytest.raises(ChartgenError, match=r"data\.stage: (?:there is )?no data set to copy"):
        rendered("data.stage=true", files=())


@pytest.mark.parametrize("obeys", [True, False])
def test_daemon_ends_with_its_container_in_time(tmp_path: Path, *, obeys: bool) -> None:
    program = tmp_path / "tcpgpudmarxd"
    handler = f"trap 'echo stopped > {tmp_path}/stopped; exit 3' TERM" if obeys else "trap '' TERM"
    program.write_text(
        f'#!/bin/bash\n{handler}\nprintf "%s\\n" "$@" > {tmp_path}/arguments\ntouch {tmp_path}/ready\n'
        "while :; do /bin/sleep 0.05; done\n"
    )
    program.chmod(0o755)
    assert ended(daemon(tmp_path), tmp_path / "ready", patient(tmp_path) if obeys else None) == 0
    assert (tmp_path / "stopped").exists() is obeys
    assert "--verbose 128 2 0" in (tmp_path / "arguments").read_text().splitlines()


def test_a_daemon_that_fails_fails_its_container(tmp_path: Path) -> None:
    (tmp_path / "tcpgpudmarxd").write_text("#!/bin/bash\nexit 9\n")
    (tmp_path / "tcpgpudmarxd").chmod(0o755)
    assert subprocess.run(daemon(tmp_path), check=False, timeout=120).returncode == 9


def daemon(folder: Path) -> list[str]:
    """The daemon's container as it is started, with a program of the test in place of the image's."""
    found = init(rendered(), "tcpx-daemon")
    return [part.replace("/tcpgpudmarxd/build/app/", f"{folder}/") for part in (*found["command"], *found["args"])]


@pytest.mark.parametrize("sets", [(), ("data.stage=false",), ("launchers.nemo-1.image=nvcr.io/nvidia/nemo:23.06",)])
def test_scripts_are_clean_for_bash_and_shellcheck(tmp_path: Path, sets: tuple[str, ...]) -> None:
    found = rendered(*sets)
    files = {**one("ConfigMap", found)["data"], "daemon.sh": init(found, "tcpx-daemon")["command"][2]}
    scripts = {name: text for name, text in files.items() if name.endswith(".sh")}
    shellcheck = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert shellcheck, "shellcheck is in requirements/dev.txt"
    for name, text in scripts.items():
        (tmp_path / name).write_text(text)
        subprocess.run(["bash", "-n", str(tmp_path / name)], check=True)
        done = subprocess.run(
            [shellcheck, "--shell=bash", str(tmp_path / name)], capture_output=True, text=True, check=False
        )
        assert done.stdout == ""


def test_model_is_the_guides(run: Objects) -> None:
    native = overrides(run)
    wanted = {
        "model.num_layers": "24",
        "model.hidden_size": "4096",
        "model.num_attention_heads": "32",
        "model.encoder_seq_length": "2048",
        "model.micro_batch_size": "4",
        "model.global_batch_size": "2048",
        "model.fp8": "false",
        "trainer.max_steps": "50",
        "model.data.splits_string": "'99990,8,2'",
    }
    assert wanted.items() <= native.items()
    assert arguments(run)[0] == "/opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py"
