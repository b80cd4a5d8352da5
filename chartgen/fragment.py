"""Fragments: one folder of small files, each named after the Kubernetes API field that it fills."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.definition import Field, read_definition
from chartgen.errors import ChartgenError, Problem, did_you_mean
from chartgen.slots import SLOTS, SlotText, parse_slot
from chartgen.yamltext import read_text

FIELDS = {
    "description": Field("string", "one sentence: what the fragment gives to a pod", required=True),
    "provides": Field("array", "capabilities that other fragments can require, such as `gpu` or `fabric`"),
    "requires": Field("array", "fragments or capabilities that must be listed too"),
    "conflicts": Field("array", "fragments or capabilities that must not be listed beside it"),
    "workloads": Field("array", "the workload kinds that it works with; absent = all"),
    "appliesTo": Field("string", "`gpu`: only in pods that use GPUs; `always`: in every pod", enum=("gpu", "always")),
    "transport": Field("string", "the NCCL transport that it promises, such as GPUDirect-TCPXO"),
    "privileges": Field("object", "each privilege that its containers hold: name, and the reason"),
    "sources": Field("array", "the vendor documents that its values come from", required=True),
}
_FILES = {"fragment.yaml", "values.yaml", "values.schema.json", *SLOTS}
_FOLDERS = ("manifests", "setup")


@dataclass(frozen=True)
class Fragment:
    """One fragment, read and checked.

    Args:
        name: Its folder's name.
        path: Its folder.
        description: One sentence.
        provides: Capabilities, its own name included.
        requires: Names or capabilities that it needs.
        conflicts: Names or capabilities that it excludes.
        workloads: Workload kinds that it works with; empty = all.
        gpu_only: Whether it applies only to pods that use GPUs.
        transport: The NCCL transport that it promises; empty = none.
        privileges: Privilege -> reason.
        sources: Vendor documents.
        slots: Slot file name -> its text.
        manifests: File name -> template of the run chart.
        setup: File name -> template of the setup chart.
    """

    name: str
    path: Path
    description: str
    provides: frozenset[str]
    requires: tuple[str, ...]
    conflicts: tuple[str, ...]
    workloads: tuple[str, ...]
    gpu_only: bool
    transport: str
    privileges: dict[str, str]
    sources: tuple[str, ...]
    slots: dict[str, SlotText]
    manifests: dict[str, str]
    setup: dict[str, str]


def load_fragment(path: Path) -> Fragment:
    """Read a fragment's folder.

    Raises:
        ChartgenError: All problems of all its files at once.
    """
    _, data = read_definition(path / "fragment.yaml", FIELDS)
    meta: dict[str, Any] = data
    return Fragment(
        name=path.name,
        path=path,
        description=meta["description"],
        provides=frozenset([path.name, *meta.get("provides", [])]),
        requires=tuple(meta.get("requires", [])),
        conflicts=tuple(meta.get("conflicts", [])),
        workloads=tuple(meta.get("workloads", [])),
        gpu_only=meta.get("appliesTo") == "gpu",
        transport=meta.get("transport", ""),
        privileges=meta.get("privileges", {}),
        sources=tuple(meta["sources"]),
        slots=_read_slots(path),
        manifests=_read_folder(path / "manifests"),
        setup=_read_folder(path / "setup"),
    )


def check_combination(
    fragments: Sequence[Fragment], target: Path, workload: str, requires: Sequence[str] = ()
) -> None:
    """Check that the fragments of a target can stand together.

    Args:
        fragments: The target's fragments.
        target: The target's file, for messages.
        workload: The workload kind.
        requires: What the workload kind itself needs.

    Raises:
        ChartgenError: A missing requirement, a conflict, or a workload kind that a fragment does not support.
    """
    provided = {name for fragment in fragments for name in fragment.provides}
    hint = "add a fragment that provides it"
    problems = [
        Problem(f"workload kind {workload!r} requires {need!r}", target, hint=hint) for need in requires if need not in provided
    ]
    for fragment in fragments:
        others = [other for other in fragments if other is not fragment]
        offered = {name: other.name for other in others for name in other.provides}
        where = f"fragment {fragment.name!r}"
        for need in fragment.requires:
            if need not in offered:
                problems.append(Problem(f"{where} requires {need!r}", target, hint=hint))
        for rival in fragment.conflicts:
            if rival in offered:
                message = f"{where} conflicts with {offered[rival]!r}"
                problems.append(Problem(message, target, hint="list only one of the two"))
        if fragment.workloads and workload not in fragment.workloads:
            supported = ", ".join(fragment.workloads)
            problems.append(Problem(f"{where} does not work with workload kind {workload!r}", target, hint=supported))
    if problems:
        raise ChartgenError(problems)


def _read_slots(path: Path) -> dict[str, SlotText]:
    slots, problems = {}, []
    for file in sorted(path.iterdir()):
        if file.name.startswith(".") or (file.is_dir() and file.name in _FOLDERS):
            continue
        if file.name in SLOTS:
            try:
                slots[file.name] = parse_slot(file.name, path.name, file, read_text(file))
            except ChartgenError as error:
                problems += error.problems
        elif file.name not in _FILES:
            hint = did_you_mean(file.name, [*_FILES, *_FOLDERS]) or "a slot file is named after a Kubernetes field"
            problems.append(Problem("is not a slot that fragments can fill", file, hint=hint))
    if problems:
        raise ChartgenError(problems)
    return slots


def _read_folder(path: Path) -> dict[str, str]:
    if not path.is_dir():
        return {}
    return {file.name: read_text(file) for file in sorted(path.iterdir()) if file.suffix in (".yaml", ".tpl")}
