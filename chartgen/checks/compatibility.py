"""Combinations that do not work: plugins, settings, images and APIs by data/compat.yaml, formats and GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from chartgen.checks.job import RUNS, Job
from chartgen.checks.rules import Scope, value
from chartgen.composer.pod_files import slot_text
from chartgen.composer.slots import parse_slot
from chartgen.data.compatibility import lock, release_in, version, within
from chartgen.findings import KeyProblem, rule, rules_in

_VARIABLE = re.compile(r'^- name: (\w+)\n +value: "?([^"\n]*)"?$', re.MULTILINE)
_CHECKER = "NCCL_SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE"


@rule(
    "GoogleCloudPlatform/container-engine-accelerators, gpudirect-tcpxo/README.md",
    tasks=RUNS,
    remedy="`network.pluginVersion`: use one of …",
)
def plugin_and_daemon(job: Job) -> Iterator[KeyProblem]:
    """Each version of a GPUDirect plugin works with one version of its daemon; others hang or fall back to TCP."""
    rows = _pairs(job)
    plugin, daemon = (job.network.get(key, "") for key in ("pluginVersion", "daemonVersion"))
    own = next((row for row in rows if row["plugin"] == plugin), None)
    if rows and own is None:
        message = f"the daemon of version {plugin} is not known"
        known = ", ".join(row["plugin"] for row in rows)
        yield KeyProblem("network.pluginVersion", message, f"use one of {known}", ("network.daemonVersion",))
    if own and daemon not in own["daemons"]:
        partner = next((row["plugin"] for row in rows if daemon in row["daemons"]), "")
        hint = f"use {' or '.join(own['daemons'])}" + (f", or plugin {partner} for it" if partner else "")
        message = f"{daemon} is not compatible with plugin {plugin}"
        yield KeyProblem("network.daemonVersion", message, hint, ("network.pluginVersion",))


@rule(
    "google/nccl-plugin-gpudirect-tcpxo @ 04815d1, tcpxo_scripts/container_entry.sh",
    tasks=RUNS,
    remedy="`network.ncclBuildType`: leave it empty",
)
def build_of_nccl(job: Job) -> Iterator[KeyProblem]:
    """Installers of GPUDirect-TCPXO contain several builds of NCCL up to v1.0.11, and one from v1.0.12 on."""
    network = job.network
    own = next((row for row in _pairs(job) if row["plugin"] == network.get("pluginVersion")), {"build": ""})
    if network.get("ncclBuildType") and "build" not in own:
        message = f"plugin {own['plugin']} has one NCCL only"
        yield KeyProblem("network.ncclBuildType", message, "leave it empty", ("network.pluginVersion",))


@rule("NVIDIA/cluster-readiness-engine, docs/concepts/platform-detection.md", tasks=RUNS)
def plugin_and_cuda(job: Job) -> Iterator[KeyProblem]:
    """A plugin that links another CUDA runtime than the image's cannot be loaded, and NCCL falls back to TCP."""
    plugin = job.network.get("pluginVersion", "")
    own = next((row for row in _pairs(job) if row["plugin"] == plugin and "cuda" in row), None)
    release, cuda = _cuda(job)
    if not own or cuda in (0, own["cuda"]):
        return
    newest = [row for row in _pairs(job) if row["cuda"] == cuda][-1]
    message = f"{plugin} needs CUDA {own['cuda']}, and {release} has CUDA {cuda}"
    pair = f"{newest['plugin']} with network.daemonVersion {newest['daemons'][-1]}"
    hint = f"use {pair}, or an image with CUDA {own['cuda']}"
    yield KeyProblem("network.pluginVersion", message, hint, (job.key("image"),))


def _cuda(job: Job) -> tuple[str, int]:
    """Return the job's public image and release, and the major version of its CUDA; 0 if it is not known."""
    for row in reversed(lock()["cuda"]):
        release = release_in(job.image, row["image"])
        if release and version(release) >= version(row["from"]):
            return f"{row['image']}:{release}", row["cuda"]
    return "", 0


@rule(
    "GoogleCloudPlatform/container-engine-accelerators, gpudirect-tcpxo/README.md",
    tasks=RUNS,
    remedy='`env.…`: use env.…: "…", or another plugin',
)
def settings_of_the_plugin(job: Job) -> Iterator[KeyProblem]:
    """A plugin checks NCCL's settings at the start and ends the run if one differs from those tuned for its version."""
    env = job.values["env"]
    if _CHECKER in env:  # the user chose another set of settings
        return
    made = {**_fragment_variables(job), **env}
    plugin = job.network.get("pluginVersion", "")
    for row in lock()["settings"]:
        name, wanted = row["name"], row["value"]
        if row["fragment"] in job.fragments and within(row, plugin) and made.get(name, wanted) != wanted:
            also = ("network.pluginVersion",)
            message = f"{made[name]} is refused by plugin {plugin}, which wants {wanted}"
            yield KeyProblem(f"env.{name}", message, f'use env.{name}: "{wanted}", or another plugin', also)


@rule("NVIDIA-NeMo/Megatron-Bridge, docs/releases/software-versions.md")
def program_of_the_image(job: Job) -> Iterator[KeyProblem]:
    """NVIDIA's images no longer contain a launcher's program from a certain release on."""
    for row in lock()["images"]:
        release = job.release(row["image"])
        if row["launcher"] == job.launcher.name and release and version(release) > version(row["newest"]):
            key = job.key("image")
            message = f"{job.image} does not contain {job.launcher.program}"
            hint = f"use nvcr.io/{row['image']}:{row['newest']} or older, or launcher megatron-lm"
            yield KeyProblem(key, message, hint, ("launcher",))


@rule("nvidia.github.io/TransformerEngine, Datatype and hardware support matrix")
def precision_of_the_gpu(job: Job) -> Iterator[KeyProblem]:
    """GPUs compute in the number formats of their generation only: FP8 came with Hopper, NVFP4 with Blackwell."""
    gpu, wanted = job.machine.model, job.values["precision"]
    if gpu and not job.describes_model and (own := _precision_of_the_recipe(job)) not in (*gpu.precisions, ""):
        message = f"computes in {own}, which is not a format of {gpu.model}, the GPU of {job.machine.name}"
        hint = f"use another machineType, or {job.key('config.mixed_precision')} bf16_mixed"
        yield KeyProblem(job.key(job.launcher.own_model), message, hint, ("machineType",))
    elif gpu and wanted not in gpu.precisions:
        both = [precision for precision in job.launcher.precisions if precision in gpu.precisions]
        message = f"{wanted} is not a format of {gpu.model}, the GPU of {job.machine.name}"
        hint = f"use {' or '.join(both)}" if both else "use another machineType"
        yield KeyProblem("precision", message, hint, ("machineType",))


def _precision_of_the_recipe(job: Job) -> str:
    from chartgen.checks.speed import decided_sizes

    return str(decided_sizes(job).get("precision", ""))


@rule("AI-Hypercomputer/gpu-recipes @ 2e1fd5e, training/a4x", tasks=RUNS)
def image_of_the_processor(job: Job) -> Iterator[KeyProblem]:
    """Machines with Arm processors do not start images that are built for x86 alone."""
    for row in lock()["arm64"] if job.machine.labels.get("kubernetes.io/arch") == "arm64" else ():
        release = release_in(job.image, row["image"])
        if release and version(release) < version(row["from"]):
            message = f"{job.image} is not known to run on the Arm processors of {job.machine.name}"
            hint = f"use nvcr.io/{row['image']}:{row['from']} or newer"
            yield KeyProblem(job.key("image"), message, hint, ("machineType",))


@rule("NVIDIA, Blackwell Compatibility Guide 12.9", tasks=RUNS)
def image_of_the_gpu(job: Job) -> Iterator[KeyProblem]:
    """Blackwell GPUs do not run images with CUDA 12.7 or older."""
    gpu = job.machine.model
    for row in lock()["gpus"]:
        release = release_in(job.image, row["image"])
        if not gpu or not release or version(gpu.compute_capability) < version(row["capability"]):
            continue
        if version(release) < version(row["from"]):
            message = f"{job.image} is older than CUDA {row['cuda']}, the first with code for {gpu.model}"
            hint = f"use nvcr.io/{row['image']}:{row['from']} or newer"
            yield KeyProblem(job.key("image"), message, hint, ("machineType",))


@rule("chartgen/data/compat.yaml, gpus", "unchecked", tasks=RUNS)
def gpu_of_an_unknown_image(job: Job) -> Iterator[KeyProblem]:
    """The CUDA of an image that the lock does not know may have no code for Blackwell GPUs."""
    gpu = job.machine.model
    rows = [row for row in lock()["gpus"] if gpu and version(gpu.compute_capability) >= version(row["capability"])]
    if gpu and rows and job.image and not any(release_in(job.image, row["image"]) for row in rows):
        message = f"not checked whether {job.image} has code for {gpu.model}: its CUDA is not known"
        hint = f"it needs CUDA {rows[0]['cuda']} or newer; run it on one machine first"
        yield KeyProblem(job.key("image"), message, hint, ("machineType",))


@rule("chartgen/data/compat.yaml, arm64", "unchecked", tasks=RUNS)
def processor_of_an_unknown_image(job: Job) -> Iterator[KeyProblem]:
    """An image that the lock does not know may be built for x86 alone, and does not start on Arm processors."""
    rows = lock()["arm64"] if job.machine.labels.get("kubernetes.io/arch") == "arm64" and job.image else ()
    if rows and not any(release_in(job.image, row["image"]) for row in rows):
        message = f"not checked whether {job.image} runs on the Arm processors of {job.machine.name}"
        hint = "compare the architectures that its registry lists"
        yield KeyProblem(job.key("image"), message, hint, ("machineType",))


@rule("NVIDIA-NeMo/Megatron-Bridge, docs/releases/software-versions.md")
def precision_of_the_image(job: Job) -> Iterator[KeyProblem]:
    """The Megatron of NVIDIA's images supports MXFP8 and NVFP4 from certain releases on."""
    for row in _formats(job):
        if job.can(row["feature"]) is False:
            hint = f"use nvcr.io/{row['image']}:{row['from']} or newer"
            yield KeyProblem(job.key("image"), f"{job.image} has no {row['feature']}", hint, ("precision",))


@rule("chartgen/data/compat.yaml, features", "unchecked")
def precision_of_an_unknown_image(job: Job) -> Iterator[KeyProblem]:
    """The number formats of an image that is not NVIDIA's are unknown until it runs."""
    for row in _formats(job):
        if job.can(row["feature"]) is None:
            message = f"not checked whether {job.image} has {row['feature']}: its release is not known"
            hint = f"it needs the Megatron of nvcr.io/{row['image']}:{row['from']} or newer"
            yield KeyProblem("precision", message, hint, (job.key("image"),))


@rule("NVIDIA-NeMo/Megatron-Bridge, docs/releases/software-versions.md")
def launcher_of_spares(job: Job) -> Iterator[KeyProblem]:
    """Hot spares need ft_launcher of nvidia-resiliency-ext 0.6, which NVIDIA's images contain from a release on."""
    if job.values["run"]["spares"] and job.can("ft_launcher") is False:
        hint = "use nvcr.io/nvidia/nemo:26.06 or newer, or run.spares 0"
        also = (job.key("image"),)
        yield KeyProblem("run.spares", f"{job.image} does not contain ft_launcher", hint, also)


@rule("chartgen/data/compat.yaml, features", "unchecked")
def spares_of_an_unknown_image(job: Job) -> Iterator[KeyProblem]:
    """Whether an image that is not NVIDIA's contains ft_launcher is unknown until it runs."""
    if job.values["run"]["spares"] and job.can("ft_launcher") is None:
        hint = "it needs nvidia-resiliency-ext 0.6 or newer"
        also = (job.key("image"),)
        yield KeyProblem("run.spares", f"not checked whether {job.image} contains ft_launcher", hint, also)


def _formats(job: Job) -> list[dict[str, Any]]:
    """Return the rows of the lock about the job's number format, if its launcher has it."""
    wanted = job.values["precision"]
    return [row for row in lock()["features"] if row["feature"] == wanted and wanted in job.launcher.precisions]


def outdated_cluster(job: Job, kubernetes: str, kueue: str = "") -> Iterator[KeyProblem]:
    """Compare a job with the versions of a cluster; only preflight and rehearsal know them.

    Args:
        kubernetes: Version of the API server, such as v1.32.4-gke.1767000.
        kueue: Version of Kueue; empty = unknown, or not installed.
    """
    for row in lock()["kubernetes"]:
        if uses(job, row["fragment"]) and version(kubernetes)[:2] < version(row["from"]):
            message = f"{job.machine.name} needs {row['feature']}, which Kubernetes {kubernetes} does not have"
            yield KeyProblem("machineType", message, f"use a cluster of version {row['from']} or newer")
    dialect = job.values.get("setup", {}).get("kueueVersion")
    served = {row["api"].rpartition("/")[2]: within(row, kueue) for row in lock()["apis"] if row["of"] == "Kueue"}
    if kueue and dialect in served and not served[dialect]:
        message = f"Kueue {kueue} does not serve kueue.x-k8s.io/{dialect}"
        hint = " or ".join(name for name, is_served in served.items() if is_served)
        yield KeyProblem("setup.kueueVersion", message, f"use {hint}")


def uses(job: Job, fragment: str) -> bool:
    """Report whether a fragment adds anything to this job."""
    found = next((each for each in job.target.fragments if each.name == fragment), None)
    return found is not None and job.launcher.task != "data" and bool(not found.when or value(found.when)(Scope(job)))


def _pairs(job: Job) -> list[dict[str, Any]]:
    return next((rows for name, rows in lock()["plugins"].items() if name in job.fragments), [])


def _fragment_variables(job: Job) -> dict[str, str]:
    """Return the variables that fragments set to plain text; values that only Helm knows are left out."""
    # read separately: reading all slots of all fragments would take longer than all other checks
    slots = [
        parse_slot("env.yaml", fragment.name, *slot_text(fragment.path, "env.yaml"), gpu_only=fragment.gpu_only)
        for fragment in job.target.fragments
    ]
    texts = ["".join(segment.text for segment in slot.segments if segment.always) for slot in slots]
    return {name: value for text in texts for name, value in _VARIABLE.findall(text) if "{{" not in value}


COMPAT = rules_in(globals())
