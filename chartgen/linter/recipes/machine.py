"""The machines of a recipe, and the target that has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chartgen.composer.definition import read_definition
from chartgen.composer.library import Library
from chartgen.composer.target import FIELDS, Target, load_target
from chartgen.helm.set_flags import dotted
from chartgen.helm.yaml import Keys
from chartgen.linter.recipes.document import Recipe

_TYPE, _ACCELERATOR = "node.kubernetes.io/instance-type", "cloud.google.com/gke-accelerator"
# Folders of training/ in the recipes, and the machines of their clusters (docs.cloud.google.com, GPU machine types).
_FOLDERS = {
    "a3high": "a3-highgpu-8g",
    "a3mega": "a3-megagpu-8g",
    "a3ultra": "a3-ultragpu-8g",
    "a4": "a4-highgpu-8g",
    "a4x": "a4x-highgpu-4g",
    "a4x-max": "a4x-maxgpu-4g-metal",
    "g4": "g4-standard-384",
}
_LABELS = {
    "nvidia-h100-80gb": "a3-highgpu-8g",
    "nvidia-h100-mega-80gb": "a3-megagpu-8g",
    "nvidia-h200-141gb": "a3-ultragpu-8g",
    "nvidia-b200": "a4-highgpu-8g",
    "nvidia-gb200": "a4x-highgpu-4g",
    "nvidia-gb300": "a4x-maxgpu-4g-metal",
}
# Part of an image's path or tag -> its machines; the first matching part counts.
_IMAGES: dict[str, tuple[str, ...]] = {
    "gpudirect-tcpxo/": ("a3-megagpu-8g",),
    "gpudirect-tcpx/": ("a3-highgpu-8g",),
    "a4x-max": ("a4x-maxgpu-4g-metal",),
    "gib-arm64": ("a4x-highgpu-4g", "a4x-maxgpu-4g-metal"),
    "diagnostic-arm64": ("a4x-highgpu-4g", "a4x-maxgpu-4g-metal"),
    "gpudirect-gib/": ("a3-ultragpu-8g", "a4-highgpu-8g"),
    "-A3U": ("a3-ultragpu-8g",),
}


@dataclass(frozen=True)
class Evidence:
    """What one place indicates about the machines.

    Args:
        where: The place, as shown to people.
        keys: The key path; empty for the folder.
        machines: The machine types that it allows.
    """

    where: str
    keys: Keys
    machines: tuple[str, ...]


def machine_of(recipe: Recipe, given: str) -> str:
    """Return the machine type of a recipe; empty, with the reason, if it is not stated or two places contradict."""
    found = [*_values(recipe), *([] if given else _folder(recipe))]
    if given:
        found.append(Evidence("--machine", (), (given,)))
    if not found:
        recipe.lack(("workload",), "does not name its machine type", "give it with --machine TYPE")
        return ""
    fitting = [name for name in found[0].machines if all(name in each.machines for each in found)]
    said = ", ".join(f"{each.where}: {' or '.join(each.machines)}" for each in found)
    if len(fitting) != 1:
        message = "fits several machines" if fitting else "names machines that contradict"
        recipe.lack(found[0].keys or ("workload",), f"{message} ({said})", "give one with --machine TYPE")
        return ""
    return fitting[0]


def target_of(recipe: Recipe, machine: str, given: str, library: Library) -> Target | None:
    """Return the target of a recipe: the given one if it has the machine, else the only one that has it."""
    targets = {name: _definition(name, library) for name in ([given] if given else library.names("target"))}
    fitting = [name for name, data in targets.items() if machine in data["machines"]]
    if len(fitting) == 1:
        return load_target(fitting[0], library)
    if fitting:
        message = f"is for {machine}, which several targets have"
        recipe.lack(("workload",), message, f"give --target {' or '.join(fitting)}")
    elif given:
        hint = f"{given} has {', '.join(targets[given]['machines'])}"
        recipe.lack(("workload",), f"is for {machine}, which target {given} does not have", hint)
    else:
        near = {name: data["machines"] for name, data in targets.items() if data["platform"] == "gke"}
        offers = ", ".join(f"{name} ({', '.join(each)})" for name, each in near.items())
        hint = f"on GKE there are {offers}; a target of your own goes with --path FOLDER"
        recipe.lack(("workload",), f"is for {machine}, and no target has that machine", hint)
    return None


def _definition(name: str, library: Library) -> dict[str, Any]:
    """Return the definition of a target without its fragments."""
    data: dict[str, Any] = read_definition(library.find("target", name), FIELDS)[1]
    return data


def _values(recipe: Recipe) -> Iterator[Evidence]:
    for keys in (("nodeSelector",), ("workload", "nodeSelector")):
        labels = recipe.peek(*keys)
        for label, value in labels.items() if isinstance(labels, dict) else ():
            at = (*keys, label)
            if label == _TYPE:
                yield Evidence(dotted(at), at, (str(value),))
            elif label == _ACCELERATOR and value in _LABELS:
                yield Evidence(dotted(at), at, (_LABELS[value],))
    for keys in (
        *(("network", name) for name in ("daemonVersion", "pluginVersion", "gibVersion")),
        ("workload", "image"),
    ):
        image = str(recipe.peek(*keys) or "")
        if machines := next((each for part, each in _IMAGES.items() if part in image), None):
            yield Evidence(dotted(keys), keys, machines)


def _folder(recipe: Recipe) -> Iterator[Evidence]:
    for part in reversed(recipe.path.resolve().parts[:-1]):
        if part in _FOLDERS:
            yield Evidence(f"folder {part}", (), (_FOLDERS[part],))
            return
