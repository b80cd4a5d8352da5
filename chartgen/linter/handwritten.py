"""Third-party values files: keys that no chart reads, and known defects of such charts.

The defects are known from Google's recipes, AI-Hypercomputer/gpu-recipes @ 2e1fd5e: 131 charts that are copies of
each other and that teams have copied again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.checks.secrets import looks_secret
from chartgen.checks.yaml_pitfalls import pitfalls
from chartgen.data.compatibility import lock
from chartgen.errors import Problem, did_you_mean
from chartgen.findings import Finding, PartProblem, Rule, in_order
from chartgen.helm.yaml import Document, require_map
from chartgen.kube.manifest_walk import items, maps, repeated

_RECIPES = "AI-Hypercomputer/gpu-recipes @ 2e1fd5e"
# What the recipes' training charts (src/helm-charts/{a3mega,a3ultra,a4,a4x}) read: key -> the keys below it.
KNOWN_KEYS: dict[str, frozenset[str]] = {
    "queue": frozenset(),
    "targetNodes": frozenset(),
    "avoidNodes": frozenset(),
    "targetPlatform": frozenset(),
    "clusterName": frozenset(),
    "dwsSettings": frozenset(("maxRunDurationSeconds",)),
    "tasSettings": frozenset(("topologyRequest", "useLegacyTAS")),
    "volumes": frozenset(
        ("gcsVolumes", "gcsMounts", "psVolumes", "psMounts", "pvcMounts", "ssdMountPath", "mtcMountPath", "useGcs")
    ),
    "workload": frozenset(
        (
            *("gpus", "image", "envs", "arguments", "defaultArguments", "configFile", "configPath", "framework"),
            *("gcsSidecarImage", "psSidecarImage", "torchDistributedTarget", "tokenizerPath", "experimentName"),
            *("experimentRootDir", "checkpointsRootDir", "nemoConfigOverrides", "enableNemoDebug", "annotations"),
            *("max_workload_restarts", "local_ckpt_dir", "serviceAccountName", "privileged"),
        )
    ),
    "network": frozenset(
        (
            *("hostNetwork", "hostIPC", "subnetworks", "ncclSettings", "pluginVersion", "daemonVersion"),
            *("ncclBuildType", "gibVersion", "stackType"),
        )
    ),
    "gpuPlatformSettings": frozenset(("useHostPlugin", "rxdmImage", "ncclPluginImage", "ncclBuildType")),
}
_TELLING = ("workload", "network", "volumes", "tasSettings", "dwsSettings")
_GPUS = 8
_UNREAD = "remove it"


def is_recipe(data: dict[str, Any]) -> bool:
    """Report whether values belong to one of Google's training recipes."""
    workload = data.get("workload")
    return isinstance(workload, dict) and "gpus" in workload and sum(key in data for key in _TELLING) >= 3


def _section(data: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a section of a recipe's values; empty if it is not a map, or the values are not a recipe's."""
    found = data.get(name) if is_recipe(data) else None
    return found if isinstance(found, dict) else {}


def dead_key_of_brackets(data: dict[str, Any]) -> Iterator[PartProblem]:
    """A key that ends in `[]` is literal: templates range over the name without the brackets, and find nothing."""
    for at, node in maps(data):
        for key in node:
            if key.endswith("[]"):
                message = f"{key} is read by no template"
                yield PartProblem(message, f"write {key[:-2]} and a list below it", (*at, key))


def dead_key_of_recipe(data: dict[str, Any]) -> Iterator[PartProblem]:
    """A key that no training chart of the recipes reads changes nothing."""
    for key, value in data.items() if is_recipe(data) else ():
        below = KNOWN_KEYS.get(key)
        if below is None:
            message = f"{key} is read by no chart of the recipes"
            yield PartProblem(message, did_you_mean(key, KNOWN_KEYS) or _UNREAD, (key,))
            continue
        for name in value if below and isinstance(value, dict) else ():
            if name not in below and not name.endswith("[]"):
                message = f"{key}.{name} is read by no chart of the recipes"
                yield PartProblem(message, did_you_mean(name, below) or _UNREAD, (key, name))


def gpus_fill_machines(data: dict[str, Any]) -> Iterator[PartProblem]:
    """The recipes divide the GPUs by 8 and drop the remainder: 12 become one machine of 8 that waits for 12."""
    gpus = _section(data, "workload").get("gpus")
    if isinstance(gpus, int) and gpus > _GPUS and gpus % _GPUS:
        message = f"workload.gpus: {gpus} is not a multiple of {_GPUS}"
        yield PartProblem(message, f"use {gpus // _GPUS * _GPUS} or {-(-gpus // _GPUS) * _GPUS}", ("workload", "gpus"))


def buckets_have_names(data: dict[str, Any]) -> Iterator[PartProblem]:
    """A bucket without a name renders a volume that pods cannot mount; the recipes leave the name to `--set`."""
    for index, mount in items(_section(data, "volumes"), "gcsMounts"):
        if not mount.get("bucketName"):
            at = ("volumes", "gcsMounts", index)
            yield PartProblem(f"volumes.gcsMounts[{index}] has no bucketName", at=at)


def buckets_have_a_sidecar(data: dict[str, Any]) -> Iterator[PartProblem]:
    """The volumes use gcsMounts, the sidecar's annotation uses gcsVolumes: with only one of them, pods wait forever."""
    volumes = _section(data, "volumes")
    if volumes.get("gcsMounts") and volumes.get("gcsVolumes") is not True:
        yield PartProblem("volumes.gcsMounts without gcsVolumes: true", at=("volumes", "gcsMounts"))


def networks_are_named(data: dict[str, Any]) -> Iterator[PartProblem]:
    """On other networks than the machine's own, each GPU network needs a name; without one the pod uses TCP."""
    network = _section(data, "network")
    if network and network.get("hostNetwork") is not True and not network.get("subnetworks"):
        message = "network.subnetworks is empty, and hostNetwork is not true"
        yield PartProblem(message, at=("network",))


def plugin_and_daemon_fit(data: dict[str, Any]) -> Iterator[PartProblem]:
    """The NCCL plugin and the receive daemon are released in pairs; another pair aborts, or uses TCP."""
    network = _section(data, "network")
    plugin, daemon = (str(network.get(key) or "").rpartition(":")[2] for key in ("pluginVersion", "daemonVersion"))
    rows = [row for rows in lock()["plugins"].values() for row in rows if row["plugin"] == plugin]
    if plugin and daemon and rows and all(daemon not in row["daemons"] for row in rows):
        message = f"network.daemonVersion: {daemon} is not compatible with plugin {plugin}"
        yield PartProblem(message, f"use {' or '.join(rows[0]['daemons'])}", ("network", "daemonVersion"))


def variables_stand_once(data: dict[str, Any]) -> Iterator[PartProblem]:
    """If a variable is listed twice, the last one counts in the pod, and server-side apply rejects the object."""
    for section, key in (("workload", "envs"), ("network", "ncclSettings")):
        found = items(data[section], key) if isinstance(data.get(section), dict) else ()
        named = (((section, key, index), str(entry["name"])) for index, entry in found if "name" in entry)
        for at, name in repeated(named):
            yield PartProblem(f"{section}.{key} sets {name} twice", at=at)


def no_secrets_in_handwritten_values(data: dict[str, Any]) -> Iterator[PartProblem]:
    """Keys, tokens and passwords belong in a Secret: values are stored in the release, and many tools show them."""
    for at, node in maps(data):
        for key, value in node.items():
            name = str(node.get("name", key)) if key == "value" else key
            if isinstance(value, str) and (looks_secret(name, value) or looks_secret(name.upper(), value)):
                yield PartProblem(f"{name} contains a secret", at=(*at, key))


HANDWRITTEN = (
    Rule.of(
        dead_key_of_brackets, f"{_RECIPES}, 129 values files with `subnetworks[]`", remedy="write … and a list below it"
    ),
    Rule.of(dead_key_of_recipe, f"{_RECIPES}, src/helm-charts", "warning"),
    Rule.of(gpus_fill_machines, f"{_RECIPES}, src/helm-charts/*/jobset", remedy="use … or …"),
    Rule.of(buckets_have_names, f"{_RECIPES}, src/helm-charts/a3mega/jobset", remedy="name the bucket"),
    # later charts of the recipes have other defaults, and values files do not name their chart
    Rule.of(
        buckets_have_a_sidecar, f"{_RECIPES}, src/helm-charts/a3mega/jobset", "warning", remedy="set gcsVolumes: true"
    ),
    Rule.of(
        networks_are_named,
        f"{_RECIPES}, src/helm-charts/a3mega/jobset",
        "warning",
        remedy="name the networks of the GPU interfaces, or set hostNetwork: true",
    ),
    Rule.of(
        plugin_and_daemon_fit,
        "GoogleCloudPlatform/container-engine-accelerators, gpudirect-tcpxo/README.md",
        remedy="use …",
    ),
    Rule.of(variables_stand_once, "helm/helm issue 31529", remedy="keep one of the two"),
    Rule.of(
        no_secrets_in_handwritten_values,
        "kubernetes.io, Good practices for Kubernetes Secrets",
        remedy="put it into a Secret, and refer to it",
    ),
)


def lint_values(document: Document) -> list[Finding]:
    """Check a values file without its chart.

    Args:
        document: The file.

    Raises:
        ChartgenError: It does not contain a map.
    """
    data: dict[str, Any] = dict(require_map(document, "a values file"))
    found = pitfalls(document)
    for rule in HANDWRITTEN:
        for complaint in rule.function(data):
            place = document.position(complaint.at)
            problem = Problem(
                complaint.message, document.path, *place, f"{complaint.hint or rule.hint} ({rule.source})"
            )
            key = ".".join(map(str, complaint.at))
            found.append(Finding(rule.id, problem, rule.severity, key))
    return in_order(found)
