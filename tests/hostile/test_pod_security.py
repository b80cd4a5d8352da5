"""Every container of every chart is restricted, or each exception is stated for that container, with a reason.

`restricted` is Kubernetes' own level of the Pod Security Standards; programs without GPUs cannot write to their root
file system either. At commit 0e430a8 no pod of a run stated a seccomp profile or dropped a capability, and what fetches
data ran as root.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from pairs import DATA_WIRINGS, LARGE, PRESETS, TARGETS, chart_of, run_of, runs_of, tries_all
from rendered import VALUES

from chartgen.composer.assembly import compose, compose_setup
from chartgen.composer.privileges import DEFAULTS
from chartgen.composer.target import Target, load_target
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values, load_values
from chartgen.kube import POD, ClusterError, Object, wait_for
from chartgen.kube.manifest_walk import all_containers, containers, pods
from chartgen.linter.policy import Reasons, reason_key
from chartgen.rehearsal.controlplane import ControlPlane

pytestmark = pytest.mark.helm

SITE = {name: VALUES / f"site.{name}.example.yaml" for name in TARGETS}
PREPARED = (
    "data.source=https://example.com/a.jsonl,data.name=a,data.directory=/data/a",
    "tokenizer.kind=gpt2,tokenizer.path=/data/gpt2,tokenizer.source=hf://openai-community/gpt2",
    "launchers.mlperf-llama2-lora.image=registry.example.com/own:1,storage.data.readOnly=false,storage.data.mountOptions=",
)
# Values with which a program without a preset renders, and further ones of programs that need them.
ALONE = ("nodes=2", "steps=10", "tokenizer.kind=none", "launchers.torchrun.program=/a.py")
WANTED = {
    "automodel": ("launchers.automodel.model=/data/llama",),
    "torchtitan": (
        "tokenizer.kind=huggingface,tokenizer.path=/data/llama",
        "launchers.torchtitan.recipe=llama3_8b,launchers.torchtitan.datasetPath=/data/c4,launchers.torchtitan.image=r.example/titan:1",
    ),
    "pile-dataprep": ("data.source=https://example.com/pile/", "data.shards=2"),
    "nccl-test": ("nodes=2",),
}
PLACES = {"pvc": "pvc://claim/sub", "nfs": "nfs://10.0.0.1/export", "gcs": "gs://bucket/path", "memory": "memory://"}
# What changes a pod's privileges, by target; and the storage that data programs write to.
NETWORKS = {
    "gke-a3mega": ("network.hostNetwork=true",),
    "gke-a3high": ("network.hostNetwork=true",),
    "gke-a3ultra": ("network.mode=claims",),
    "aks-nd": ("nodes=2", "machineType=Standard_ND128isr_GB300_v6"),
    "crusoe": ("nodes=2",),
    "gke-a4x": ("machineType=a4x-maxgpu-4g-metal,launchers.megatron-lm.image=example.com/nemo-gib:26.06",),
    "nebius": ("nodes=2",),
    "oke-h100": ("network.mode=sriov", "network.mode=host"),
    "onprem-p8000": ("network.interface=infiniband,nodes=2",),
}
LEVEL = "pod-security.kubernetes.io/enforce"
LEVELS = ("restricted", "baseline", "privileged")


def exceptions(thing: Object) -> Iterator[str]:
    """Report what keeps the pods of an object from being restricted, each as lint names it."""
    for pod in pods(thing):
        yield from (name for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name))
        whole = pod.spec.get("securityContext") or {}
        paths = {each["name"]: each["hostPath"]["path"] for each in pod.spec.get("volumes", ()) if "hostPath" in each}
        for container in containers(pod):
            own = {**whole, **(container.spec.get("securityContext") or {})}
            yield from (reason_key(name, container.name) for name in _of(own))
            mounted = {each["name"] for each in container.spec.get("volumeMounts", ())}
            yield from (reason_key("hostPath", path, container.name) for name, path in paths.items() if name in mounted)


def _of(context: dict[str, Any]) -> Iterator[str]:
    capabilities = context.get("capabilities", {})
    yield from capabilities.get("add", ())
    if context.get("runAsNonRoot") is not True or context.get("runAsUser") == 0:
        yield "root"
    if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "seccompProfile"
    if context.get("privileged"):
        yield "privileged"
        return
    if context.get("allowPrivilegeEscalation") is not False:
        yield "allowPrivilegeEscalation"
    if "ALL" not in capabilities.get("drop", ()):
        yield DEFAULTS
        yield from [] if "NET_RAW" in capabilities.get("drop", ()) else ["NET_RAW"]


def releases(name: str) -> Iterator[tuple[str, Chart, Values]]:
    """Render what users may: a preset of each program, what takes none on each storage, each network and kind."""
    target, chart = load_target(name), chart_of(name)
    presets = {run.values.data["launcher"]: run for run in runs_of(target)}
    for run in presets.values():
        yield run.release, chart, run.values
    for launcher in target.launchers:
        if launcher.task == "train" and launcher.name not in presets:
            yield launcher.name, chart, trained(target, launcher.name)
    stores = [fragment.name.removeprefix("storage-") for fragment in target.fragments if "store" in fragment.provides]
    for store in stores if name in DATA_WIRINGS else stores[:1]:
        for launcher in target.launchers:
            if launcher.task == "data" or (launcher.task == "test" and store == stores[0]):
                yield f"{launcher.name} on {store}", chart, prepared(name, launcher.name, store)
    for network in NETWORKS.get(name, ()):
        yield network, chart, load_values([SITE[name]], set_values=[network])
    if name == "eks-p5":
        for kind in ("job", "jobset"):
            yield kind, compose(target, kind), load_values([SITE[name]], set_values=["nodes=2"])
        yield "etcd", chart, load_values([SITE[name]], set_values=["nodes=2,rendezvous.backend=etcd"])


def trained(target: Target, launcher: str) -> Values:
    """Return values with which a program that trains renders: a preset's of another target, or few of its own."""
    small = (each for each in PRESETS if each not in LARGE)
    taken = (each for each in small if load_values([VALUES / f"{each}.yaml"]).data["launcher"] == launcher)
    if preset := next(taken, ""):
        return run_of(target, preset).values
    own = (f"launcher={launcher}", *ALONE, *WANTED.get(launcher, ()))
    return load_values([SITE[target.name]], set_values=own)


def prepared(name: str, launcher: str, store: str) -> Values:
    """Return values with which a program that prepares data, or measures, renders."""
    place = f"storage.data.from={PLACES[store]}" if store in PLACES else "storage.scratch.from=disk://"
    return load_values([SITE[name]], set_values=[f"launcher={launcher}", place, *PREPARED, *WANTED.get(launcher, ())])


@pytest.mark.threat(6)
@pytest.mark.parametrize("name", TARGETS)
def test_each_container_is_restricted_or_its_exceptions_are_stated(name: str) -> None:
    launched: set[str] = set()
    for title, chart, values in releases(name):
        found = objects(render(chart, "run", "default", values.data))
        kept = {each for thing in found for each in exceptions(thing)}
        assert kept <= Reasons(chart, as_built=True).allowed(values.data), title
        launched.add(str(values.data.get("launcher")))
    if tries_all(name):
        assert {launcher.name for launcher in load_target(name).launchers} <= launched


@pytest.mark.parametrize("name", TARGETS)
def test_setup_charts_are_restricted(name: str) -> None:
    made = compose_setup(load_target(name))
    assert made
    values = load_values([SITE[name]], set_values=["setup.tensorboard.enabled=true"])
    found = objects(render(made, "setup", "default", values.data))
    assert [each.name for thing in found for each in all_containers(thing)] == ["tensorboard"]
    assert [each for thing in found for each in exceptions(thing)] == []


@pytest.mark.threat(6)
@pytest.mark.parametrize("name", DATA_WIRINGS)
def test_programs_without_gpus_run_as_a_user_and_write_to_nothing_but_storage(name: str) -> None:
    for launcher in load_target(name).launchers:
        if launcher.task == "data":
            found = objects(render(chart_of(name), "run", "default", prepared(name, launcher.name, "memory").data))
            (pod,) = (pod for thing in found for pod in pods(thing))
            (container,) = containers(pod)
            assert [each for thing in found for each in exceptions(thing)] == []
            assert container.spec["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            }
            variables = {each["name"]: each.get("value") for each in container.spec["env"]}
            assert variables["HOME"] == "/tmp"
            assert {"name": "data-tmp", "emptyDir": {}} in pod.spec["volumes"]


def test_nobody_becomes_root_by_leaving_out_the_user() -> None:
    deleted = ["data.podSecurityContext.runAsUser=null", "data.podSecurityContext.runAsGroup=null"]
    values = load_values([SITE["gke-a3mega"]], set_values=[*PREPARED, "launcher=download", *deleted])
    found = objects(render(chart_of("gke-a3mega"), "run", "default", values.data))
    (spec,) = (pod.spec for thing in found for pod in pods(thing))
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


@pytest.mark.parametrize(
    ("sets", "options"),
    [
        (("launcher=download",), "uid=65534,gid=65534"),
        (("launcher=download", "data.podSecurityContext.runAsUser=1000"), "uid=1000,gid=65534"),
        # the driver says the group that a pod's fsGroup asks for
        (("launcher=download", "data.podSecurityContext.fsGroup=7"), "uid=65534"),
        (("launcher=download", r"storage.data.mountOptions=implicit-dirs\,uid=5"), "implicit-dirs,uid=5"),
        ((), None),
    ],
)
def test_buckets_belong_to_whom_the_pod_runs_as(sets: tuple[str, ...], options: str | None) -> None:
    values = load_values([SITE["gke-a3mega"]], set_values=[*PREPARED, "storage.data.from=gs://bucket", *sets])
    found = objects(render(chart_of("gke-a3mega"), "run", "default", values.data))
    (spec,) = (pod.spec for thing in found for pod in pods(thing))
    (volume,) = (each for each in spec["volumes"] if each["name"] == "data")
    assert volume["csi"]["volumeAttributes"].get("mountOptions") == options


@pytest.fixture(scope="module")
def server(built_engines: None) -> Iterator[ControlPlane]:  # noqa: ARG001
    """A control plane without the controllers of runs, in which a namespace for each level."""
    with ControlPlane() as running:
        spaces = [{"metadata": {"name": f"level-{each}", "labels": {LEVEL: each}}} for each in LEVELS]
        running.cluster.apply([{"apiVersion": "v1", "kind": "Namespace", **space} for space in spaces])
        accounts = running.cluster.kind("v1", "ServiceAccount")
        for each in LEVELS:
            what = f"the account of level-{each}"
            wait_for(
                partial(running.cluster.get, accounts, "default", namespace=f"level-{each}"), what=what, timeout=60
            )
        yield running


@pytest.mark.engines
@pytest.mark.parametrize(
    ("name", "sets", "level"),
    [
        ("onprem-p8000", ("launcher=download", "storage.data.from=memory://"), "restricted"),
        ("onprem-p8000", ("launcher=download",), "baseline"),
        ("onprem-p8000", ("launcher=download", "data.podSecurityContext.fsGroup=100"), "restricted"),
        ("onprem-p8000", ("launcher=download", "data.podSecurityContext.runAsUser=0"), "baseline"),
        ("gke-a3mega", ("launcher=pile-dataprep",), "restricted"),
        ("onprem-p8000", ("network.interface=none",), "baseline"),
        ("onprem-p8000", ("network.interface=infiniband", "nodes=2"), "privileged"),
        ("eks-p5", ("nodes=2", "storage.scratch.from=memory://"), "baseline"),
        ("eks-p5", ("nodes=2", "storage.scratch.from=disk://"), "privileged"),
        ("gke-a3high", ("nodes=2",), "privileged"),
        ("oke-h100", ("nodes=2", "network.mode=sriov"), "privileged"),
    ],
)
def test_the_level_that_a_namespace_needs(server: ControlPlane, name: str, sets: tuple[str, ...], level: str) -> None:
    """By the API server's own admission."""
    wanted = WANTED.get(sets[0].removeprefix("launcher="), ())
    values = load_values([SITE[name]], set_values=[*PREPARED, *wanted, *sets])
    found = objects(render(chart_of(name), "run", "default", values.data))
    specs = [pod.spec for thing in found for pod in pods(thing)]
    taken = [each for each in LEVELS if all(admitted(server, each, spec) for spec in specs)]
    assert taken == list(LEVELS[LEVELS.index(level) :])


def admitted(server: ControlPlane, level: str, spec: Object) -> bool:
    """Return whether a namespace that enforces this level takes the pod. Nothing is kept."""
    metadata = {"name": "trial", "namespace": f"level-{level}"}
    item = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"restartPolicy": "Never", **spec}}
    try:
        server.cluster.create(POD, item, dry_run=True)
    except ClusterError as error:
        if "violates PodSecurity" not in str(error):
            raise
        return False
    return True
