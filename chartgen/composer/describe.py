"""What a fragment, launcher, workload kind or preset consists of, for those who want to use it or to copy its idea."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.composer.fragment import load_fragment
from chartgen.composer.launcher import load_launcher
from chartgen.composer.library import Library
from chartgen.composer.presets import overlays, preset_layers, preset_summary, presets
from chartgen.composer.rules import FILE, read_rules
from chartgen.composer.values import value_rows
from chartgen.composer.workload import load_workload
from chartgen.helm import gotemplate
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load, read_text
from chartgen.kube.run_kinds import run_kind

# In the order in which a name is looked up.
KINDS = ("target", "fragment", "launcher", "workload", "preset")


@dataclass(frozen=True)
class ValueFacts:
    """One value.

    Args:
        key: Its dotted key.
        default: Its default as JSON.
        meaning: Its description.
    """

    key: str
    default: str
    meaning: str


@dataclass(frozen=True)
class FragmentFacts:
    """A fragment: what `fragment.yaml` states, its files, and its values and rules.

    Args:
        name: Its name.
        description: Its description.
        applies_to: `gpu` or `always`.
        workloads: The workload kinds that it works with; empty for all.
        provides: Capabilities that it provides, beside its own name.
        requires: Fragments or capabilities that it requires.
        conflicts: Fragments or capabilities that must not be listed beside it.
        files: Its slots, and its objects in `manifests/` and `setup/`.
        values: Its values.
        rules: Ids of its rules.
    """

    name: str
    description: str
    applies_to: str
    workloads: list[str]
    provides: list[str]
    requires: list[str]
    conflicts: list[str]
    files: list[str]
    values: list[ValueFacts]
    rules: list[str]


@dataclass(frozen=True)
class LauncherFacts:
    """A launcher: what `launcher.yaml` states, and its values and rules.

    Args:
        name: Its name.
        description: Its description.
        task: train, data or test.
        processes: gpu (one for each), workers or one.
        image: Its default image.
        program: Path of its program in the image.
        precisions: The values of `precision` that it can train in.
        values: Its values below `launchers.NAME`, beyond those that all launchers have.
        rules: Ids of its rules.
    """

    name: str
    description: str
    task: str
    processes: str
    image: str
    program: str
    precisions: list[str]
    values: list[ValueFacts]
    rules: list[str]


@dataclass(frozen=True)
class WorkloadFacts:
    """A workload kind: what `workload.yaml` states, and its files.

    Args:
        name: Its name.
        description: Its description.
        api: API version of its object.
        kind: Kind of its object.
        extends: The folder that it starts from; empty for none.
        queues: Fragments of queues that it names; others list it.
        controller: Its controller; empty where no command follows its runs.
        pods: Paths to its pod templates, or to objects that have them.
        finished: What its status has at a good end.
        failed: What its status has after a failure.
        suspend: Path to the field that suspends it.
        files: Its files.
    """

    name: str
    description: str
    api: str
    kind: str
    extends: str
    queues: list[str]
    controller: str
    pods: list[str]
    finished: list[str]
    failed: list[str]
    suspend: str
    files: list[str]


@dataclass(frozen=True)
class PresetFacts:
    """A preset.

    Args:
        name: Its name.
        description: The first sentence of its comments.
        values: Its values; with a target those of the overlay above them.
        overlays: The targets and launchers for which a folder has an overlay.
    """

    name: str
    description: str
    values: dict[str, Any]
    overlays: list[str]


def kinds_of(name: str, library: Library) -> list[str]:
    """Return the kinds of definitions that have a name, in the order in which it is looked up."""
    known = {kind: library.names(kind) for kind in KINDS if kind != "preset"} | {"preset": [*presets(library)]}
    return [kind for kind in KINDS if name in known[kind]]


def every_name(library: Library) -> list[str]:
    """Return the names of all definitions."""
    named = [name for kind in KINDS if kind != "preset" for name in library.names(kind)]
    return sorted({*named, *presets(library)})


def describe_fragment(name: str, library: Library) -> FragmentFacts:
    """Return the facts of a fragment; raise ChartgenError for problems of its files."""
    fragment = load_fragment(library.find("fragment", name))
    files = [
        *sorted({slot.path.name for slot in fragment.slots.values()}),
        *(f"manifests/{manifest}" for manifest in fragment.manifests),
        *(f"setup/{each}" for each in fragment.setup),
    ]
    return FragmentFacts(
        name=name,
        description=fragment.description,
        applies_to="gpu" if fragment.gpu_only else "always",
        workloads=[*fragment.workloads],
        provides=sorted(fragment.provides - {name}),
        requires=[*fragment.requires],
        conflicts=[*fragment.conflicts],
        files=files,
        values=_values(fragment.path),
        rules=_rules(fragment.path),
    )


def describe_launcher(name: str, library: Library) -> LauncherFacts:
    """Return the facts of a launcher; raise ChartgenError for problems of its files."""
    launcher = load_launcher(library.find("launcher", name))
    return LauncherFacts(
        name=name,
        description=launcher.description,
        task=launcher.task,
        processes=launcher.processes,
        image=launcher.default_image,
        program=launcher.program,
        precisions=[*launcher.precisions],
        values=_values(launcher.path, f"launchers.{name}."),
        rules=_rules(launcher.path),
    )


def describe_workload(name: str, library: Library) -> WorkloadFacts:
    """Return the facts of a workload kind; raise ChartgenError for problems of its files."""
    found = load_workload(library.find("workload", name))
    run = run_kind({"apiVersion": found.api, "kind": found.kind})
    rows = run.pods if run else ()
    return WorkloadFacts(
        name=name,
        description=found.description,
        api=found.api,
        kind=found.kind,
        extends=found.extends,
        queues=[*found.queues],
        controller=run.controller.name if run else "",
        pods=[
            ".".join(filter(None, (row.get("each"), row.get("object") or row.get("template", "template"))))
            for row in rows
        ],
        finished=[*run.status.finished] if run else [],
        failed=[*run.status.failed] if run else [],
        suspend=run.suspend if run else "",
        files=sorted(str(path.relative_to(found.path)) for path in found.path.rglob("*.*") if path.is_file()),
    )


def describe_preset(name: str, library: Library, target: str = "") -> PresetFacts:
    """Return the facts of a preset, with a target those of its overlay; raise ChartgenError for a file not in YAML."""
    files = preset_layers(name, target, library)
    return PresetFacts(name, preset_summary(files[0]), load_values(files).data, overlays(name, library))


def _values(folder: Path, before: str = "") -> list[ValueFacts]:
    file = folder / "values.yaml"
    if not file.is_file():
        return []
    text = read_text(file)
    table = value_rows(text, load(gotemplate.mask(text) if "<%" in text else text, file))
    return [ValueFacts(f"{before}{row.key}", row.default, row.meaning) for row in table]


def _rules(folder: Path) -> list[str]:
    return list(dict.fromkeys(rule.id for rule in read_rules(folder / FILE)))
