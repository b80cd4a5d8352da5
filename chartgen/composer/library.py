"""Find targets, fragments, workload kinds and launchers: in chartgen's own folder, then in the user's."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from chartgen.composer.definition import OWN_FOLDER, is_builtin
from chartgen.composer.folder_settings import folder_settings
from chartgen.errors import ChartgenError, Problem, UsageError, did_you_mean, refuse
from chartgen.helm.yaml import load_file, require_map

BUILTIN = OWN_FOLDER
KINDS = {
    "target": "targets",
    "fragment": "fragments",
    "workload": "workloads",
    "launcher": "launchers",
    "policy": "policies",
}
_ONE_FILE = ("target", "policy")  # the others are folders
ENTRY_POINT_GROUP = "chartgen.library"
# Names become parts of file names, template names and Kubernetes names.
NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?")


class ListRow(NamedTuple):
    """One row of a list."""

    name: str  # its name
    description: str  # its description
    type: str = ""  # shape of a slot, type of a fact
    fragment: str = ""  # of a helper, the fragment that defines it
    example: str = ""  # of a slot, a complete file


@dataclass(frozen=True)
class MachineType:
    """A machine type of a target."""

    name: str  # its name, as `machineType` takes it
    gpu: str  # model of its GPUs, such as h100-80gb
    count: str  # how many GPUs it has
    target: str
    platform: str  # the target's platform, such as gke

    def answers_to(self, word: str) -> bool:
        """Report whether a word names the machine, its GPU (h100 is an h100-80gb) or its platform."""
        names = (self.name, self.gpu, self.gpu.partition("-")[0], self.platform, self.target.partition("-")[0])
        return word.casefold() in map(str.casefold, names)


@dataclass(frozen=True)
class Library:
    """An ordered set of folders with any of the sub-folders of `KINDS`.

    Args:
        roots: The folders; chartgen's own comes first. Of two definitions with one name, the later folder's counts.
    """

    roots: tuple[Path, ...]

    def find(self, kind: str, name: str) -> Path:
        """Find one definition by name.

        Args:
            kind: A key of `KINDS`.
            name: Its name: the file name of a target or policy without `.yaml`, the folder name of the others.

        Raises:
            UsageError: The folders do not contain it; the hint lists similar names.
            ChartgenError: Its name is invalid, its own file is missing, or it has links out of its folder.
        """
        found = self.search(kind, name) or _installed(self.roots).search(kind, name)
        if not found:
            raise self._unknown(kind, name)
        if not NAME.fullmatch(name):
            hint = "use at most 53 lower-case letters, digits and '-'"
            raise ChartgenError(Problem(f"{name!r} cannot be the name of a {kind}", found[-1], hint=hint))
        if not self.is_builtin(found[-1]):
            refuse_links_out(found[-1], found[-1].parent.parent)
        return found[-1]

    def replacements(self) -> list[tuple[str, str, Path, Path]]:
        """Return each definition that replaces one of an earlier folder: kind, name, its path, the other's path."""
        found = ((kind, name, self.search(kind, name)) for kind in KINDS for name in self.own_names(kind))
        return [(kind, name, paths[-1], paths[-2]) for kind, name, paths in found if len(paths) > 1]

    def similar(self, name: str, known: Collection[str]) -> str:
        """Return a hint for an unknown name: similar ones, and the flag for a folder where none was given."""
        from difflib import get_close_matches

        near = did_you_mean(name, known)
        if self.roots[1:] or get_close_matches(name, known, n=1, cutoff=0.8):
            return near
        own = "one of your own folder needs --path FOLDER, or CHARTGEN_PATH"
        return f"{near} {own}" if near.endswith("?") else "; ".join(filter(None, (near, own)))

    def similar_targets(self, name: str, known: Collection[str]) -> str:
        """Return a hint for an unknown target: those with the machine, GPU or cloud of that name, else similar ones."""
        found = sorted({each.target for each in self.machine_types() if each.answers_to(name)})
        return f"targets with it: {', '.join(found)}" if found else self.similar(name, known)

    def machine_types(self) -> Iterator[MachineType]:
        """Yield the machine types of all targets, by target; what is wrong in a target's file is for its own user."""
        for target in self.names("target"):
            with suppress(ChartgenError, AttributeError, TypeError):
                machines, platform = self._machines_of(target)
                for name, facts in machines.items():
                    yield MachineType(name, str(facts.get("gpu")), str(facts.get("gpus")), target, platform)

    def _machines_of(self, target: str, below: tuple[str, ...] = ()) -> tuple[dict[str, Any], str]:
        """Return the machines of a target with those of the targets that it extends, and its platform."""
        content: dict[str, Any] = require_map(load_file(self.find("target", target)), "a target")
        machines, parent, platform = {**content.get("machines", {})}, content.get("extends"), content.get("platform")
        if parent in self.names("target") and parent not in (*below, target):
            theirs, of_parent = self._machines_of(parent, (*below, target))
            machines |= {name: {**facts, **machines.get(name, {})} for name, facts in theirs.items()}
            platform = platform or of_parent
        left_out = content.get("leaveOut", ())
        return {name: facts for name, facts in machines.items() if name not in left_out}, str(platform)

    def names(self, kind: str) -> list[str]:
        """List the names of all definitions of a kind, sorted."""
        return _names(_installed(self.roots).roots, kind)

    def own_names(self, kind: str) -> list[str]:
        """List the names of a kind in the folders beside chartgen's own, excluding installed packages."""
        return _names(self.roots[1:], kind)

    def folders(self) -> tuple[Path, ...]:
        """Return every folder with definitions other than chartgen's own, including installed packages."""
        return tuple(root for root in _installed(self.roots).roots if root != BUILTIN)

    def is_builtin(self, path: Path) -> bool:
        """Report whether a file is chartgen's own; all other files are rendered in a sandbox."""
        return is_builtin(path)

    def search(self, kind: str, name: str) -> list[Path]:
        """List every definition of a name in the folders, excluding installed packages."""
        if "/" in name or "\0" in name or name.startswith(".") or not name:
            return []
        paths = [root / KINDS[kind] / (f"{name}.yaml" if kind in _ONE_FILE else name) for root in self.roots]
        return [path for path in paths if (path if kind in _ONE_FILE else path / f"{kind}.yaml").is_file()]

    def _unknown(self, kind: str, name: str) -> ChartgenError:
        if "/" in name.strip("/.") and kind == "target":
            message = f"unknown target {name!r}, and the folder contains no chart"
            return UsageError(Problem(message, hint="build the chart first"))
        for folder in (root / KINDS[kind] / name for root in self.roots[1:] if re.fullmatch(r"[^./\0][^/\0]*", name)):
            if folder.is_dir() and kind not in _ONE_FILE:
                return ChartgenError(Problem(f"{kind} {name!r} has no {kind}.yaml", folder, hint="add that file"))
            if (file := folder.with_name(f"{name}.yml")).is_file():
                return ChartgenError(Problem("is not read", file, hint=f"rename it to {name}.yaml"))
        similar = self.similar_targets if kind == "target" else did_you_mean
        hint = similar(name, self.names(kind)) or f"`chartgen list {kind}s` lists them, yours from {KINDS[kind]}/"
        return UsageError(Problem(f"unknown {kind} {name!r}", hint=hint))


def open_library(paths: Sequence[Path] = (), *, settings: bool = True) -> Library:
    """Open chartgen's own definitions, those that `chartgen.yaml` here names, of `CHARTGEN_PATH`, and in given folders.

    Args:
        paths: The given folders.
        settings: Whether `chartgen.yaml` counts; not where the working directory is a stranger's.

    Raises:
        UsageError: A folder does not exist or has none of the sub-folders.
    """
    from_environment = [Path(part) for part in os.environ.get("CHARTGEN_PATH", "").split(os.pathsep) if part]
    roots = [*(folder_settings().path if settings else ()), *from_environment, *paths]
    problems = []
    for root in roots:
        if not root.is_dir():
            problems.append(Problem("no such folder", root, hint="--path, CHARTGEN_PATH, chartgen.yaml name folders"))
        elif not any((root / folder).is_dir() for folder in KINDS.values()):
            hint = "it must contain one of " + ", ".join(KINDS.values())
            problems.append(Problem("is not a chartgen library", root, hint=hint))
    if problems:
        raise UsageError(problems)
    last = dict.fromkeys(root.resolve() for root in reversed(roots))  # of a folder that is named twice
    own = [root for root in reversed(last) if root != BUILTIN]
    if own:
        from chartgen.kube.run_kinds import know_kinds

        know_kinds(own)
    return Library((BUILTIN, *own))


def _names(roots: Sequence[Path], kind: str) -> list[str]:
    marker = "*.yaml" if kind in _ONE_FILE else f"*/{kind}.yaml"
    paths = [path for root in roots for path in (root / KINDS[kind]).glob(marker) if path.is_file()]
    names = {path.stem if kind in _ONE_FILE else path.parent.name for path in paths}
    return sorted(name for name in names if not name.startswith("."))


def refuse_links_out(path: Path, root: Path) -> None:
    """Reject links that lead out of a folder of definitions: their targets would be copied into a chart."""
    real = Path(os.path.realpath(root))
    inner = [Path(folder, name) for folder, folders, names in os.walk(path) for name in (*folders, *names)]
    hint = "replace the link by a copy"
    problems = [
        Problem(f"is a link out of {root}", each, hint=hint)
        for each in (path, *inner)
        if not Path(os.path.realpath(each)).is_relative_to(real)
    ]
    refuse(problems)


def _installed(roots: tuple[Path, ...]) -> Library:
    """Add the folders of installed packages; only after a failed lookup, since it takes 20 ms."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec

    folders: list[Path] = []
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            spec = find_spec(point.value)
        except (ImportError, ValueError):
            spec = None
        if spec is None or not spec.submodule_search_locations:
            message = f"entry point {point.name!r} of group {ENTRY_POINT_GROUP}: {point.value!r} is not a package"
            raise ChartgenError(Problem(message, hint="correct what declares it, or uninstall it"))
        folders += map(Path, spec.submodule_search_locations)
    return Library((*roots, *(folder for folder in folders if folder not in roots)))
