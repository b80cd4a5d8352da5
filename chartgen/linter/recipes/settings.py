"""Convert the queue, network and pod settings of a recipe to values of a target."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from chartgen.checks.secrets import looks_secret
from chartgen.composer.target import Machine
from chartgen.helm.yaml import Keys
from chartgen.linter.recipes.document import Recipe

# Variables that the recipes' scripts read, and chartgen's launchers set (src/launchers, each recipe's launcher.sh).
_OWN_VARIABLES = {
    *("NEMO_CONFIG_PATH", "NEMO_CONFIG_NAME", "NEMO_LAUNCH_SCRIPT", "TOKENIZER_PATH", "GLOO_SOCKET_IFNAME"),
    *("EXPERIMENT_NAME", "EXPERIMENT_ROOT_DIR", "EXPLICIT_LOG_DIR", "CHECKPOINTS_ROOT_DIR"),
}
_RESULTS = {"ARTIFACT_DIR", "LOG_DIR"}
_TOPOLOGY = re.compile(r"kueue\.x-k8s\.io/podset-(?P<what>preferred|required|slice-required)-topology")
_UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
_SLICE = "kueue.x-k8s.io/podset-slice-size"
_NODE_LABELS = {"node.kubernetes.io/instance-type", "cloud.google.com/gke-accelerator"}
# Template of src/helm-charts/a3mega/nemo-training-v2, the only chart with this key.
_V2 = ("workload", "torchDistributedTarget")
_V2_VARIABLES = {"NVTE_FWD_LAYERNORM_SM_MARGIN": "8", "NVTE_BWD_LAYERNORM_SM_MARGIN": "8"}


def machines(recipe: Recipe, machine: Machine, default: str) -> dict[str, Any]:
    """Return the number of machines of a recipe; a fraction stops the conversion."""
    gpus = int(recipe.take("workload", "gpus"))
    made: dict[str, Any] = {} if machine.name == default else {"machineType": machine.name}
    if gpus <= machine.gpus:
        return made | {"nodes": 1} | ({"gpusPerNode": gpus} if gpus < machine.gpus else {})
    if gpus % machine.gpus:
        message = f"is {gpus}, not a multiple of the {machine.gpus} GPUs of {machine.name}"
        recipe.lack(("workload", "gpus"), message, "the recipe's chart would start fewer; correct it")
    return made | {"nodes": -(-gpus // machine.gpus)}


def network(recipe: Recipe) -> dict[str, Any]:
    """Return the network of a recipe's pods."""
    made: dict[str, Any] = {}
    for key in ("pluginVersion", "daemonVersion"):
        if image := recipe.take("network", key):
            path, _, made[key] = str(image).rpartition(":")
            made["repository"] = path.rpartition("/")[0]
    if build := recipe.take("network", "ncclBuildType"):
        made["ncclBuildType"] = str(build)
    named = recipe.take("network", "subnetworks")
    if recipe.take("network", "hostNetwork") is True or recipe.peek(*_V2):
        made["hostNetwork"] = True
    elif isinstance(named, list) and named:
        # the pod's own interface, eth0, precedes those of the GPUs
        made["subnetworks"] = [str(name) for name in (named[1:] if named[0] == "default" else named)]
    return {"network": made} if made else {}


def pods(recipe: Recipe, place: Callable[[str], str]) -> dict[str, Any]:
    """Return variables, node labels, account and restarts.

    Args:
        recipe: The recipe.
        place: Maps a path of the recipe to the converted run's pods; empty if no mount contains it.
    """
    made: dict[str, Any] = {}
    env, secrets = _variables(recipe, place)
    made |= {"env": env} if env else {}
    made |= {"secretEnv": secrets} if secrets else {}
    labels = recipe.map("nodeSelector") | recipe.map("workload", "nodeSelector")
    if rest := {key: str(value) for key, value in labels.items() if key not in _NODE_LABELS}:
        made["nodeSelector"] = rest
    if account := recipe.take("workload", "serviceAccountName"):
        made["serviceAccount"] = str(account)
    run: dict[str, Any] = {}
    if restarts := recipe.number("workload", "max_workload_restarts"):
        run["maxRestarts"] = restarts
    if grace := recipe.number("terminationGracePeriodSeconds"):
        run["gracePeriodSeconds"] = grace
    if limit := recipe.number("dwsSettings", "maxRunDurationSeconds"):
        run["deadlineSeconds"] = limit
        made["queue"] = {"flexStart": True}
    return made | ({"run": run} if run else {})


def topology(recipe: Recipe) -> dict[str, Any]:
    """Return how close to each other the machines must be."""
    made: dict[str, Any] = {}
    for key, value in recipe.map("tasSettings", "topologyRequest").items():
        match = _TOPOLOGY.fullmatch(key)
        if match and match["what"] == "slice-required":
            made["sliceLevel"] = str(value)
        elif match:
            made |= {"mode": match["what"], "level": str(value)}
        elif key == _SLICE and (size := recipe.number("tasSettings", "topologyRequest", key)):
            made["sliceSize"] = size
        elif key == _UNCONSTRAINED:
            made["mode"] = "unconstrained"
        else:
            recipe.leave(("tasSettings", "topologyRequest", key), f"is {value}, and no value corresponds to it")
    return {"topology": made} if made else {}


def queue(recipe: Recipe) -> dict[str, Any]:
    """Return the queue's name; if the recipe leaves it to its users, record that."""
    if name := recipe.take("queue"):
        return {"queue": {"name": str(name)}}
    recipe.leave(
        ("queue",), "is empty, by design", "set queue.name in your site file, or topology.mode '' for no queue"
    )
    return {}


def _variables(recipe: Recipe, place: Callable[[str], str]) -> tuple[dict[str, str], dict[str, Any]]:
    env: dict[str, str] = dict(_V2_VARIABLES) if recipe.peek(*_V2) else {}
    secrets: dict[str, Any] = {}
    for at, name, entry in recipe.variables():
        value, source = entry.get("value"), entry.get("valueFrom")
        source = source.get("secretKeyRef") if isinstance(source, dict) else None
        text = value if isinstance(value, str) else json.dumps(value)
        if name in _OWN_VARIABLES:
            continue
        if name in _RESULTS:
            recipe.leave(at, f"({name}) is where the recipe's script copies results", "they are in storage.outputs")
        elif isinstance(source, dict) and source.get("name") and source.get("key"):
            secrets[name] = {"secretName": str(source["name"]), "key": str(source["key"])}
        elif value is None:
            recipe.leave(at, f"({name}) has no value", "set it in env, or leave it out")
        elif looks_secret(name, text):
            recipe.leave(at, f"({name}) contains a secret", "put it into a Secret, and use secretEnv")
        else:
            env[name] = _placed(recipe, at, name, text, place)
    return env, secrets


def _placed(recipe: Recipe, at: Keys, name: str, text: str, place: Callable[[str], str]) -> str:
    moved = place(text) if text.startswith("/") else ""
    if moved and moved != text:
        recipe.leave(at, f"({name}) is {text} in the recipe", f"became {moved}, where the same volume is")
    return moved or text
