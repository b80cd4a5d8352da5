"""Which launchers a chart has: those that values name, or those that the presets of its target use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from chartgen.composer.launcher import Launcher
from chartgen.composer.presets import overlays, preset_layers, presets
from chartgen.composer.target import Target, of_kind, with_launchers
from chartgen.helm.values import load_values

# What each committed chart has besides: a program of the user's own, and what fills and tests a new cluster.
_ALWAYS = ("torchrun", "download", "nccl-test")


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
