"""Presets with their overlays, examples of site files, and which launchers the charts for presets and values have.

Presets are in chartgen's `values/`, then in the user's folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen.composer.extension import lineage
from chartgen.composer.library import BUILTIN, Library, refuse_links_out
from chartgen.errors import Problem, UsageError
from chartgen.helm.values import load_values
from chartgen.helm.yaml import dotted, load_file, require_map

if TYPE_CHECKING:
    from chartgen.composer.launcher import Launcher
    from chartgen.composer.target import Target

# A package carries the repository's `values/` inside; a working copy reads it in place.
_PACKAGED = BUILTIN.parent / "presets"
VALUES = _PACKAGED if _PACKAGED.is_dir() else BUILTIN.parents[1] / "values"
_SITE = "site."
# What each committed chart has besides: a program of the user's own, and what fills and tests a new cluster.
_ALWAYS = ("torchrun", "download", "nccl-test")


def presets(library: Library) -> dict[str, Path]:
    """Return the file of each preset by name, sorted; a user's preset replaces chartgen's of the same name."""
    found = {file.stem: file for folder in _folders(library) for file in folder.glob("*.yaml")}
    return {name: found[name] for name in sorted(found) if not name.startswith((_SITE, "."))}


def preset_layers(name: str, target: str, library: Library, launcher: str = "") -> list[Path]:
    """Return the values files of a preset on a target, lowest first: the preset, then its overlays, if any.

    A target's own overlay is above that of the target that it extends. All of them are of the preset's own program: the
    overlay of another one, `values/LAUNCHER/PRESET.yaml`, takes their place.

    Args:
        library: The folders to search besides chartgen's own.
        launcher: The program that trains the preset's model; empty for the preset's own.

    Raises:
        UsageError: No folder contains the preset; the hint lists similar names. Or the folder of its overlay has the
            misspelled name of the target. Or the preset does not describe its model to this program.
    """
    known = presets(library)
    if name not in known:
        raise UsageError(Problem(f"unknown preset {name!r}", hint=library.similar(name, known)))
    _refuse_misspelled(name, target, library)
    if launcher and (of_program := _overlay(launcher, name, library)):
        return [known[name], *of_program]
    if launcher:
        _refuse_unknown_sizes(name, launcher, library)
    lineage = reversed(_known_lineage(target, library))
    return [known[name], *(file for each in lineage for file in _overlay(each, name, library))]


def programs(name: str, library: Library) -> list[str]:
    """Return the launchers that train a preset's model: its own, then those that take its sizes or have an overlay."""
    data = load_values([presets(library)[name]]).data
    own = data.get("launcher")
    has_sizes = "layers" in _section(data, "model") and not _section(data, "checkpoint").get("from")
    fitting = [
        each
        for each in library.names("launcher")
        if each == own or _overlay(each, name, library) or (has_sizes and _takes_sizes(each, library))
    ]
    return sorted(fitting, key=lambda each: each != own)


def left_behind(name: str, launcher: str, library: Library) -> str:
    """Return the settings of a preset for its own program, which another one does not get; empty without any."""
    document, program = load_file(presets(library)[name]), _launcher(launcher, library)
    own = require_map(document, "values").get("launcher")
    if own == launcher or program is None or program.task != "train":
        return ""
    found = [dotted(keys[2:]) for keys, _, _ in document.leaves() if keys[:2] == ("launchers", own)]
    return f"the settings of {name} for {own} do not reach {launcher}: {', '.join(found)}" if found else ""


def _refuse_unknown_sizes(name: str, launcher: str, library: Library) -> None:
    """Refuse to let a program that takes a model's sizes train another model: that of the chart's defaults."""
    data = load_values([presets(library)[name]]).data
    model = _section(data, "model")
    if launcher != data.get("launcher") and model and "layers" not in model and _takes_sizes(launcher, library):
        message = f"preset {name} has no sizes of its model for {launcher}: a recipe of {data['launcher']} has them"
        hint = f"use {' or '.join(programs(name, library))}, or write a values file with the sizes"
        raise UsageError(Problem(message, hint=hint))


def _takes_sizes(launcher: str, library: Library) -> bool:
    """Report whether a program builds a model from the sizes in values."""
    found = _launcher(launcher, library)
    return found is not None and "model.hiddenSize" in found.owns


def _launcher(name: str, library: Library) -> Launcher | None:
    from chartgen.composer.launcher import load_launcher

    places = library.search("launcher", name)
    return load_launcher(places[-1]) if places else None


def _section(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name)
    return found if isinstance(found, dict) else {}


def _overlay(folder: str, name: str, library: Library) -> list[Path]:
    """Return the last overlay of a preset in the folders of a target or launcher; none without one."""
    files = [each / folder / f"{name}.yaml" for each in _folders(library)]
    return [file for file in files if file.is_file()][-1:]


def _refuse_misspelled(name: str, target: str, library: Library) -> None:
    from difflib import get_close_matches

    files = [file for folder in _folders(library)[1:] for file in folder.glob(f"*/{name}.yaml")]
    for file in files:
        folder = file.parent.name
        near = folder != target and get_close_matches(folder, [target], cutoff=0.8)
        if near and folder not in library.names("target"):
            message = f"is the overlay of {folder!r}, and no target has this name"
            raise UsageError(Problem(message, file, hint=f"rename the folder to {target}"))


def overlays(name: str, library: Library) -> list[str]:
    """Return the names of the targets and launchers for which a folder has an overlay of a preset, sorted."""
    return sorted({file.parent.name for folder in _folders(library) for file in folder.glob(f"*/{name}.yaml")})


def site_example(target: str, library: Library) -> Path | None:
    """Return the example of a target's site file, or of its parent, if a folder contains one; refuse a link out."""
    names = [f"{_SITE}{name}.example.yaml" for name in _known_lineage(target, library)]
    examples = (folder / name for name in names for folder in reversed(_folders(library)))
    example = next((each for each in examples if each.is_file()), None)
    if example:
        refuse_links_out(example, example.parent)
    return example


def preset_summary(preset: Path) -> str:
    """Return the first sentence of a preset's comments."""
    lines = preset.read_text(encoding="utf-8").splitlines()
    comments = (line[1:].strip() for line in lines if line.startswith("#"))
    first = next((comment for comment in comments if not comment.startswith("yaml-language-server:")), "")
    return first.partition(". ")[0].rstrip(".:,")


def _known_lineage(target: str, library: Library) -> list[str]:
    """Return a target and its parents; of one that no folder contains any more, its own name."""
    return lineage(target, library) if library.search("target", target) else [target]


def _folders(library: Library) -> list[Path]:
    return [VALUES, *(root / "values" for root in library.roots if root != BUILTIN)]


def for_values(
    target: Target, values: Mapping[str, Any], workload: str | None = None, *, companions: bool = False
) -> Target:
    """Return a target whose charts have the launchers that values name, the one of the run as default.

    Args:
        workload: Another workload kind than the target's own.
        companions: Whether to add what tests the network and prepares data for these launchers.

    Raises:
        UsageError: With `companions`, an unknown launcher; without, all launchers stay, and the schema reports it.
    """
    from chartgen.composer.target import of_kind, with_launchers

    found = of_kind(target, workload or target.workload)
    known = {launcher.name: launcher for launcher in found.fitting}
    own = values.get("launchers")
    named = [values.get("launcher") or found.default_launcher.name, *(own if isinstance(own, dict) else ())]
    if named[0] not in known and not companions:
        return found
    more = [launcher.name for launcher in known.values() if companions and _accompanies(launcher, named)]
    return with_launchers(found, [named[0], *(name for name in [*named[1:], *more] if name in known)])


def for_presets(target: Target, workload: str | None = None) -> Target:
    """Return a target whose charts have the default launcher, those of the presets with an overlay for it, and a few.

    A target whose file lists launchers keeps them all.
    """
    from chartgen.composer.target import of_kind, with_launchers

    found = of_kind(target, workload or target.workload)
    if target.document.span(("launchers",)):
        return found
    own = {target.name, *target.parents}
    names = [name for name in presets(target.library) if own & {*overlays(name, target.library)}]
    files = [preset_layers(name, target.name, target.library) for name in names]
    used = {*_ALWAYS, *(load_values(layers).data.get("launcher") for layers in files)}
    wanted = [launcher.name for launcher in found.fitting if launcher.name in used]
    return with_launchers(found, [found.default_launcher.name, *wanted])


def _accompanies(launcher: Launcher, names: Iterable[str]) -> bool:
    """Report whether a program tests the network, or prepares data with an image of its own or of these launchers."""
    return launcher.task == "test" or (launcher.task == "data" and launcher.same_as in ("", *names))
