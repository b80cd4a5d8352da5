"""Convert third-party values to chartgen's: a portable preset, an overlay for one target, and the site's names.

The recipes are AI-Hypercomputer/gpu-recipes @ 2e1fd5e: values.yaml of a training recipe, the script that starts its
program, and the NeMo 1 configuration that `helm install --set-file workload_config=` adds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen.composer.library import Library, open_library
from chartgen.errors import ChartgenError, Problem
from chartgen.helm.set_flags import dotted
from chartgen.helm.yaml import load, load_file, require_map
from chartgen.linter.recipes import settings
from chartgen.linter.recipes.document import Recipe
from chartgen.linter.recipes.machine import machine_of, target_of
from chartgen.linter.recipes.nemo import LAUNCHER, Configuration, read_configuration
from chartgen.linter.recipes.nemo_tree import NemoTree
from chartgen.linter.recipes.program import launcher_of, program_of, script_of
from chartgen.linter.recipes.storage import Storage

if TYPE_CHECKING:
    from chartgen.composer.launcher import Launcher
    from chartgen.composer.target import Target
    from chartgen.helm.values import Values

# Values that the recipes' charts read for themselves; chartgen's charts have replacements.
_TAKEN = (
    *(("workload", name) for name in ("image", "envs", "configFile", "configPath", "framework", "tokenizerPath")),
    *(("workload", name) for name in ("experimentName", "experimentRootDir")),
    ("volumes", "gcsVolumes"),
)
# Values of a recipe that chartgen's charts cannot express, and why.
_WHY = {
    "network.gibVersion": "the target's own fragment installs the NCCL plugin, in a version of its own",
    "network.hostIPC": "no target shares the machine's memory segments with its pods",
    "workload.gcsSidecarImage": "GKE adds its own sidecar of the Cloud Storage driver",
    "workload.privileged": "a target's fragments define the privileges of its pods",
}


@dataclass
class Converted:
    """Result of the conversion of a recipe.

    Args:
        target: The target of the overlay, which has the recipe's machines.
        preset: Values of the model and program, portable.
        overlay: Values for the target.
        site: The names of the team's cluster.
        left: Values that are not carried over, each with its place and the reason; the run is the same without them.
        stand_ins: Flags with placeholders for the names that the site must state, for a check without them.
    """

    target: Target
    preset: dict[str, Any] = field(default_factory=dict)
    overlay: dict[str, Any] = field(default_factory=dict)
    site: dict[str, Any] = field(default_factory=dict)
    left: list[Problem] = field(default_factory=list)
    stand_ins: list[str] = field(default_factory=list)


def convert_recipe(
    values: Values,
    config: Path | None = None,
    *,
    script: Path | None = None,
    target: str = "",
    machine: str = "",
    library: Library | None = None,
) -> Converted:
    """Convert one of Google's training recipes.

    Args:
        values: Its values.yaml, and the Helm flags from its README.
        config: Its NeMo configuration.
        script: The script that starts its program; launcher.sh beside the values when None.
        target: The target to convert to; when empty, the only target with the recipe's machines.
        machine: The machine type, for recipes that do not state it.
        library: Where to find targets; chartgen's own and CHARTGEN_PATH when None.

    Raises:
        ChartgenError: The values are not those of a training recipe, or do not define the run: a launcher, the model,
            the image or a target is missing; all problems at once.
    """
    recipe = Recipe(values)
    gpus = recipe.peek("workload", "gpus")
    if not isinstance(gpus, int) or isinstance(gpus, bool) or gpus < 1:
        hint = "give the values.yaml of a training recipe"
        raise ChartgenError(recipe.problem(("workload", "gpus"), "is not a number of GPUs", hint))
    program = program_of(recipe, script_of(recipe, script))
    name = machine_of(recipe, machine)
    goes_to = target_of(recipe, name, target, library or open_library()) if name else None
    launcher = launcher_of(recipe, program, goes_to) if program else None
    if launcher and not recipe.take("workload", "image"):
        hint = "give your own image, as the recipe's README does: --set workload.image=IMAGE"
        recipe.lack(("workload", "image"), "is empty", hint)
    if launcher and config is None:
        hint = "give it with --config FILE: what the recipe's README gives as workload_config or nemo_config"
        recipe.lack(("workload",), "does not contain the model, which is in the recipe's NeMo configuration", hint)
    made = None
    if goes_to and launcher and config is not None:
        made = _Conversion(recipe, goes_to, name).convert(NemoTree(load_file(config), recipe), launcher)
    if recipe.missing or made is None:
        raise ChartgenError(recipe.missing)
    return made


def paths(folder: Path, target: str, name: str) -> tuple[Path, Path, Path]:
    """Return the paths of preset, overlay and site of a workload."""
    return folder / f"{name}.yaml", folder / target / f"{name}.yaml", folder / f"site.{target}.{name}.yaml"


class _Conversion:
    """A recipe with a known program, machine and model."""

    def __init__(self, recipe: Recipe, target: Target, machine: str) -> None:
        self.recipe, self.target, self.machine = recipe, target, target.machines[machine]
        self.storage = Storage(recipe)

    def convert(self, tree: NemoTree, launcher: Launcher) -> Converted:
        recipe, storage = self.recipe, self.storage
        read = read_configuration(tree, launcher, storage.is_own)
        tokenizer = str(recipe.take("workload", "tokenizerPath") or recipe.variable("TOKENIZER_PATH"))
        storage.assign((path for _, path in read.prefixes), tokenizer, checkpoints=read.checkpoints)
        self._paths(tree, read, tokenizer)
        overlay = self._overlay(tree, read)
        site = storage.site() | settings.queue(recipe)
        stand_ins = [*storage.stand_ins(), *([] if "queue" in site else ["queue.name=queue"])]
        for keys in _TAKEN:
            recipe.take(*keys)
        overlay = self._known(overlay)
        for at, text in recipe.rest():
            recipe.leave(at, f"is {text}, and was not carried over", _WHY.get(dotted(at), "no value corresponds to it"))
        return Converted(self.target, read.preset, overlay, site, recipe.left, stand_ins)

    def _paths(self, tree: NemoTree, read: Configuration, tokenizer: str) -> None:
        """Map paths in the recipe's pods to the converted run's; a path outside the volumes stops the conversion."""
        prefixes = []
        for weight, path in read.prefixes:
            prefixes.append({"path": self._place(tree, "model.data.data_prefix", path), "weight": weight})
        if prefixes:
            read.preset.setdefault("data", {})["prefixes"] = prefixes
        if tokenizer:
            place = self.storage.place(tokenizer)
            if not place:
                hint = "mount it with volumes.gcsMounts or volumes.pvcMounts"
                self.recipe.lack(("volumes",), f"do not mount {tokenizer}, the folder of the tokenizer", hint)
            read.preset.setdefault("tokenizer", {})["path"] = place
        elif "tokenizer" in read.preset:
            hint = "set TOKENIZER_PATH in workload.envs"
            self.recipe.lack(("workload", "envs"), "do not name the folder of the tokenizer's files", hint)
        if read.initial:
            read.preset["checkpoint"]["from"] = self._place(tree, "restore_from_path", read.initial)

    def _place(self, tree: NemoTree, option: str, path: str) -> str:
        place = self.storage.place(path)
        if not place:
            tree.lack(option, f"is {path}, which is in no volume of the recipe", "mount it, or correct the path")
        return place

    def _overlay(self, tree: NemoTree, read: Configuration) -> dict[str, Any]:
        recipe = self.recipe
        made = settings.machines(recipe, self.machine, self.target.default_machine.name)
        per_machine = made.get("gpusPerNode", self.machine.gpus)
        if read.devices is not None and read.devices != per_machine:
            message = f"is {read.devices}, and the recipe's machines have {per_machine}"
            tree.lack("trainer.devices", message, "correct it, or workload.gpus")
        made |= settings.network(recipe)
        made["launchers"] = {LAUNCHER: {"image": str(recipe.take("workload", "image"))}}
        made |= settings.pods(recipe, self.storage.place) | settings.topology(recipe)
        if self.storage.staged:
            made["data"] = {"stage": True}
        if annotations := self.storage.annotations:
            made["podAnnotations"] = annotations
        return made

    def _known(self, overlay: dict[str, Any]) -> dict[str, Any]:
        """Return the values that the target's chart has; leave the rest."""
        from chartgen.composer.assembly import compose_interface

        defaults = require_map(load(compose_interface(self.target).files["values.yaml"], "values.yaml"), "values")
        for name in ("network", "topology", "queue"):
            has: Any = defaults.get(name) or {}
            for key in [key for key in overlay.get(name, {}) if key not in has]:
                value = overlay[name].pop(key)
                self.recipe.leave((name, key), f"is {json.dumps(value)}, which target {self.target.name} does not have")
            if name in overlay and not overlay[name]:
                del overlay[name]
        return overlay
