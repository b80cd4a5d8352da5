"""What a fragment, launcher, workload kind or preset consists of, for those who want to use it or to copy its idea."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.composer.fragment import load_fragment
from chartgen.composer.launcher import load_launcher
from chartgen.composer.library import Library
from chartgen.composer.presets import overlays, preset_layers, preset_summary, presets
from chartgen.composer.rules import read_rules
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
    """One value."""

    key: str  # its dotted key
    default: str  # its default as JSON
    meaning: str  # its description


@dataclass(frozen=True)
class FragmentFacts:
    """A fragment: what `fragment.yaml` states, its files, and its values and rules."""

    name: str  # its name
    description: str  # its description
    applies_to: str  # `gpu` or `always`
    workloads: list[str]  # the workload kinds that it works with; empty for all
    provides: list[str]  # capabilities that it provides, beside its own name
    requires: list[str]  # fragments or capabilities that it requires
    conflicts: list[str]  # fragments or capabilities that must not be listed beside it
    files: list[str]  # its slots, and its objects in `manifests/` and `setup/`
    values: list[ValueFacts]  # its values
    rules: list[str]  # ids of its rules


@dataclass(frozen=True)
class LauncherFacts:
    """A launcher: what `launcher.yaml` states, and its values and rules."""

    name: str  # its name
    description: str  # its description
    task: str  # `train`, `data` or `test`
    processes: str  # `gpu` (one for each), `workers` or `one`
    image: str  # its default image
    program: str  # path of its program in the image
    precisions: list[str]  # the values of `precision` that it can train in
    values: list[ValueFacts]  # its values below `launchers.NAME`, beyond those that all launchers have
    rules: list[str]  # ids of its rules


@dataclass(frozen=True)
class WorkloadFacts:
    """A workload kind: what `workload.yaml` states, and its files."""

    name: str  # its name
    description: str  # its description
    api: str  # API version of its object
    kind: str  # kind of its object
    extends: str  # the folder that it starts from; empty for none
    queues: list[str]  # fragments of queues that it names; others list it
    controller: str  # its controller; empty where no command follows its runs
    pods: list[str]  # paths to its pod templates, or to objects that have them
    finished: list[str]  # what its status has at a good end
    failed: list[str]  # what its status has after a failure
    suspend: str  # path to the field that suspends it
    files: list[str]  # its files


@dataclass(frozen=True)
class PresetFacts:
    """A preset."""

    name: str  # its name
    description: str  # the first sentence of its comments
    values: dict[str, Any]  # its values; with a target those of the overlay above them
    overlays: list[str]  # the targets and launchers for which a folder has an overlay


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
    return list(dict.fromkeys(rule.id for rule in read_rules(folder)))
