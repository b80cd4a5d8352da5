"""Find presets with their overlays, and examples of site files: in chartgen's `values/`, then in the user's folders."""

from __future__ import annotations

from pathlib import Path

from chartgen.composer.extension import lineage
from chartgen.composer.library import BUILTIN, Library
from chartgen.errors import Problem, UsageError

# A package carries the repository's `values/` inside; a working copy reads it in place.
_PACKAGED = BUILTIN.parent / "presets"
VALUES = _PACKAGED if _PACKAGED.is_dir() else BUILTIN.parents[1] / "values"
_SITE = "site."


def presets(library: Library) -> dict[str, Path]:
    """Return the file of each preset by name, sorted; a user's preset replaces chartgen's of the same name."""
    found = {file.stem: file for folder in _folders(library) for file in folder.glob("*.yaml")}
    return {name: found[name] for name in sorted(found) if not name.startswith((_SITE, "."))}


def preset_layers(name: str, target: str, library: Library) -> list[Path]:
    """Return the values files of a preset on a target, lowest first: the preset, then its overlays, if any.

    A target's own overlay is above that of the target that it extends.

    Args:
        library: The folders to search besides chartgen's own.

    Raises:
        UsageError: No folder contains the preset; the hint lists similar names. Or the folder of its overlay has the
            misspelled name of the target.
    """
    known = presets(library)
    if name not in known:
        raise UsageError(Problem(f"unknown preset {name!r}", hint=library.similar(name, known)))
    _refuse_misspelled(name, target, library)
    layers = [known[name]]
    for each in reversed(_known_lineage(target, library)):
        overlays = [folder / each / f"{name}.yaml" for folder in _folders(library)]
        layers += [overlay for overlay in overlays if overlay.is_file()][-1:]
    return layers


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
    """Return the names of the targets for which a folder has an overlay of a preset, sorted."""
    return sorted({file.parent.name for folder in _folders(library) for file in folder.glob(f"*/{name}.yaml")})


def site_example(target: str, library: Library) -> Path | None:
    """Return the example of a target's site file, or of its parent, if a folder contains one."""
    names = [f"{_SITE}{name}.example.yaml" for name in _known_lineage(target, library)]
    examples = (folder / name for name in names for folder in reversed(_folders(library)))
    return next((example for example in examples if example.is_file()), None)


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
