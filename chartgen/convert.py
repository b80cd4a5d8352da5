"""Values of others as chartgen's: a portable preset, an overlay for one target, and what the team's cluster is called.

The recipes are AI-Hypercomputer/gpu-recipes @ 2e1fd5e: values.yaml of training/a3mega and the NeMo 1 configurations of
src/frameworks/a3mega/nemo-configs, which `helm install --set-file workload_config=` takes beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chartgen.checks.secrets import looks_secret
from chartgen.errors import ChartgenError, Problem
from chartgen.nemoconfig import LAUNCHER, portable
from chartgen.yamltext import Document, require_map

_GPUS = 8
# Keys that Helm would read as another type.
_WORDS = ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
# Where the recipes' launcher finds what chartgen mounts itself (src/launchers/nemo-10-launcher.sh).
_OWN_VARIABLES = {
    *("NEMO_CONFIG_PATH", "NEMO_CONFIG_NAME", "EXPERIMENT_NAME", "EXPERIMENT_ROOT_DIR", "TOKENIZER_PATH"),
    *("NEMO_LAUNCH_SCRIPT", "GLOO_SOCKET_IFNAME"),
}
_TOPOLOGY = re.compile(r"kueue\.x-k8s\.io/podset-(?P<mode>preferred|required)-topology")


@dataclass
class Converted:
    """What became of a recipe.

    Args:
        preset: Values of the model and program, portable.
        overlay: Values for the target.
        site: What the team's cluster is called.
        left: What could not be carried over, each with its place and what to do instead.
    """

    preset: dict[str, Any] = field(default_factory=dict)
    overlay: dict[str, Any] = field(default_factory=dict)
    site: dict[str, Any] = field(default_factory=dict)
    left: list[Problem] = field(default_factory=list)


def convert_recipe(values: Document, config: Document | None = None) -> Converted:
    """Convert the values of one of Google's NeMo 1 training recipes.

    Args:
        values: Its values.yaml.
        config: Its NeMo configuration; without one the preset holds only the launcher.

    Raises:
        ChartgenError: The values are not those of such a recipe.
    """
    data = require_map(values, "values of a recipe")
    workload = data.get("workload")
    gpus = workload.get("gpus") if isinstance(workload, dict) else None
    if not isinstance(gpus, int) or gpus < 1:
        hint = "give the values.yaml of a training recipe"
        raise ChartgenError(values.problem("has no number at workload.gpus", ("workload",), hint))
    made = Converted(preset={"launcher": LAUNCHER})
    _Recipe(values, dict(data), made).convert(gpus)
    if config is not None:
        preset, left = portable(config, made.preset)
        made.preset, made.left = preset, [*made.left, *left]
    else:
        hint = "give it with --config"
        made.left.append(Problem("the model is in the recipe's NeMo configuration", values.path, hint=hint))
    return made


def yaml_text(data: dict[str, Any], indent: int = 0) -> str:
    """Write values as YAML that Helm reads back unchanged: texts are quoted, lists stand in one line."""
    lines = []
    for key, value in data.items():
        name = key if re.fullmatch(r"[A-Za-z_][\w.-]*", key) and key.lower() not in _WORDS else json.dumps(key)
        if isinstance(value, dict) and value:
            lines.append(f"{' ' * indent}{name}:\n{yaml_text(value, indent + 2)}")
        else:
            lines.append(f"{' ' * indent}{name}: {json.dumps(value)}\n")
    return "".join(lines)


class _Recipe:
    """The recipe's values.yaml: machines, network, volumes, variables."""

    def __init__(self, document: Document, data: dict[str, Any], made: Converted) -> None:
        self.document, self.data, self.made = document, data, made

    def convert(self, gpus: int) -> None:
        self._machines(gpus)
        self._network(self._map("network"))
        self._volumes(self._map("volumes"))
        self._program(self._map("workload"))
        self._queue()

    def _map(self, key: str) -> dict[str, Any]:
        found = self.data.get(key)
        return found if isinstance(found, dict) else {}

    def _left(self, keys: tuple[str | int, ...], message: str, hint: str = "") -> None:
        self.made.left.append(self.document.problem(message, keys, hint))

    def _machines(self, gpus: int) -> None:
        if gpus <= _GPUS:
            self.made.overlay |= {"nodes": 1} | ({"gpusPerNode": gpus} if gpus < _GPUS else {})
            return
        self.made.overlay["nodes"] = -(-gpus // _GPUS)
        if gpus % _GPUS:
            message = f"workload.gpus: {gpus} is no multiple of {_GPUS}"
            self._left(("workload", "gpus"), message, f"became {-(-gpus // _GPUS)} whole machines")

    def _network(self, network: dict[str, Any]) -> None:
        made: dict[str, Any] = {}
        for key, name in (("pluginVersion", "pluginVersion"), ("daemonVersion", "daemonVersion")):
            if network.get(key):
                repository, _, made[name] = str(network[key]).rpartition(":")
                made["repository"] = repository.rpartition("/")[0]
        if "ncclBuildType" in network:
            made["ncclBuildType"] = str(network["ncclBuildType"])
        if network.get("hostNetwork") is True:
            made["hostNetwork"] = True
        else:
            named = network.get("subnetworks")
            if isinstance(named, list) and named:
                made["subnetworks"] = [str(name) for name in named[-_GPUS:]]
        self.made.overlay |= {"network": made} if made else {}
        for key in network.keys() & {"gibVersion", "hostIPC", "stackType"}:
            self._left(("network", key), f"network.{key} has no counterpart on this target")

    def _volumes(self, volumes: dict[str, Any]) -> None:
        storage: dict[str, Any] = {}
        for key, kind, name in (("gcsMounts", "gs", "bucketName"), ("pvcMounts", "pvc", "claimName")):
            for index, mount in enumerate(volumes.get(key) or ()):
                at = ("volumes", key, index)
                role = "outputs" if "log" in str(mount.get("mountPath")) else "data"
                if not mount.get(name):
                    self._left(at, f"volumes.{key}[{index}] has no {name}", f"set storage.{role}.from")
                elif role in storage:
                    self._left(at, f"volumes.{key}[{index}]: storage.{role} is taken", "put it in the same place")
                else:
                    options = {"mountOptions": mount["mountOptions"]} if mount.get("mountOptions") else {}
                    storage[role] = {"from": f"{kind}://{mount[name]}", **options}
        if volumes.get("ssdMountPath"):
            storage["scratch"] = {"from": "disk://"}
        self.made.site |= {"storage": storage} if storage else {}

    def _program(self, workload: dict[str, Any]) -> None:
        own = {"gpus", "image", "envs", "configFile", "configPath", "gcsSidecarImage", "framework"}
        if workload.get("image"):
            self.made.overlay["launchers"] = {LAUNCHER: {"image": str(workload["image"])}}
        if variables := dict(self._variables(workload)):
            self.made.overlay["env"] = variables
        for key in workload.keys() - own:
            if workload[key] not in (None, "", []):
                hint = "use steps, batch and the like, or launchers.nemo-1.config"
                self._left(("workload", key), f"workload.{key} was not carried over", hint)

    def _variables(self, workload: dict[str, Any]) -> Iterator[tuple[str, str]]:
        for section, key, entries in (
            ("workload", "envs", workload.get("envs")),
            ("network", "ncclSettings", self._map("network").get("ncclSettings")),
        ):
            for index, entry in enumerate(entries or ()):
                name, value = str(entry.get("name")), entry.get("value")
                if name == "TOKENIZER_PATH":
                    self._tokenizer(str(value))
                elif looks_secret(name, str(value)):
                    at = (section, key, index)
                    self._left(at, f"{name} holds a secret", "put it into a Secret, and use secretEnv")
                elif name not in _OWN_VARIABLES and value is not None:
                    yield name, value if isinstance(value, str) else json.dumps(value)
                elif value is None:
                    self._left((section, key, index), f"{name} has no value", "set it in env, or leave it out")

    def _tokenizer(self, path: str) -> None:
        """Recipes mount the bucket of artifacts whole; /data is where the charts mount it."""
        mounts = [str(mount.get("mountPath")) for mount in self._map("volumes").get("gcsMounts") or ()]
        base = next((mount for mount in mounts if path.startswith(f"{mount}/")), None)
        self.made.preset["tokenizer"] = {"path": f"/data{path.removeprefix(base)}" if base else path}

    def _queue(self) -> None:
        if self.data.get("queue"):
            self.made.site["queue"] = {"name": str(self.data["queue"])}
        else:
            self._left(("queue",), "queue is empty", "set queue.name, or leave it out for no queue")
        request = self._map("tasSettings").get("topologyRequest") or {}
        for key in request:
            if match := _TOPOLOGY.fullmatch(key):
                self.made.overlay["topology"] = {"mode": match["mode"]}
            else:
                self._left(("tasSettings", "topologyRequest", key), f"{key} was not carried over", "see topology.*")
        if self._map("dwsSettings").get("maxRunDurationSeconds"):
            self._left(
                ("dwsSettings",), "dwsSettings was not carried over", "see queue.flexStart and run.deadlineSeconds"
            )


def paths(folder: Path, target: str, name: str) -> tuple[Path, Path, Path]:
    """Give where preset, overlay and site of a workload belong."""
    return folder / f"{name}.yaml", folder / target / f"{name}.yaml", folder / f"site.{target}.{name}.yaml"
