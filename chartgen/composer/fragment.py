"""Fragments: folders of small files, each with the name of the Kubernetes API field that it fills."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from chartgen.composer.definition import is_builtin, read_definition, record_of, source_text
from chartgen.composer.expressions import ExpressionError, parse_expression
from chartgen.composer.extension import place_of
from chartgen.composer.pod_files import FIELDS, slot_texts
from chartgen.composer.privileges import faults_of_volumes, read_privileges
from chartgen.composer.slots import SLOT_FILES, SLOTS, SlotText, parse_slot
from chartgen.errors import ChartgenError, Problem, did_you_mean, refuse
from chartgen.helm import gotemplate
from chartgen.helm.schema import SCHEMA_FILE
from chartgen.helm.yaml import Document, Keys

_FILES = {
    "fragment.yaml",
    "rules.yaml",
    "values.yaml",
    SCHEMA_FILE,
    *FIELDS,
    *SLOT_FILES,
}
_FOLDERS = ("manifests", "setup")


@dataclass(frozen=True)
class Contract:
    """Reports that NCCL must give before a run of several machines trains; empty = any, none or unknown."""

    reports: tuple[str, ...]
    devices: str
    links: tuple[str, ...] = ()
    device: str = ""
    why: str = ""
    refuted_by: str = ""


@dataclass(frozen=True)
class Fragment:
    """One fragment after reading and checks; its other fields are the keys of fragment.yaml."""

    name: str
    path: Path
    description: str
    sources: tuple[str, ...]
    provides: frozenset[str] = frozenset()  # its own name too
    requires: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    gpu_only: bool = False
    when: str = ""
    transport: str = ""
    contract: Contract | None = None  # None = no check
    privileges: dict[str, str] = field(default_factory=dict)
    sub_paths: tuple[str, ...] = ()

    @cached_property
    def slots(self) -> dict[str, SlotText]:
        """Return the text of each slot file, by file name."""
        return _read_slots(self.path, gpu_only=self.gpu_only)

    def fits(self, workload: str, queues: Sequence[str]) -> bool:
        """Report whether it works with a workload kind, which may name it as its queue."""
        return not self.workloads or workload in self.workloads or self.name in queues

    @cached_property
    def manifests(self) -> dict[str, str]:
        """Return the templates of the run chart, by file name."""
        return _read_folder(self.path / "manifests")

    @cached_property
    def setup(self) -> dict[str, str]:
        """Return the templates of the setup chart, by file name."""
        return _read_folder(self.path / "setup")


def load_fragment(path: Path) -> Fragment:
    """Read a fragment's folder; raise ChartgenError with all problems of all its files."""
    document, data = read_definition(path / "fragment.yaml", "fragment")
    fragment = record_of(
        Fragment,
        data,
        name=path.name,
        path=path,
        provides=frozenset([path.name, *data.get("provides", [])]),
        gpu_only=data.get("appliesTo") == "gpu",
        when=_condition(document, data),
        contract=_contract(document, data),
        privileges=read_privileges(document, data),
    )
    # chartgen's tests check its own texts, which are read when a chart uses them: a check of values does not.
    if not is_builtin(path):
        _ = (fragment.slots, fragment.manifests, fragment.setup)
        refuse(faults_of_volumes(path, fragment.privileges))
    return fragment


def check_combination(
    fragments: Sequence[Fragment],
    target: Document,
    workload: str,
    requires: Sequence[str] = (),
    queues: Sequence[str] = (),
) -> None:
    """Check that the fragments of a target can be combined.

    Args:
        requires: Requirements of the workload kind itself.
        queues: Fragments of queues that it names itself.

    Raises:
        ChartgenError: A missing requirement, a conflict, or a workload kind that a fragment does not support.
    """
    provided = {name for fragment in fragments for name in fragment.provides}
    hint = "add a fragment that provides it"
    problems = [
        target.problem(f"workload kind {workload!r} requires {need!r}", ("fragments",), hint)
        for need in requires
        if need not in provided
    ]
    for fragment in fragments:
        place = place_of(target, "fragments", fragment.name)
        wanted = {*fragment.requires, *fragment.conflicts}
        offered = {name: other.name for other in fragments if other is not fragment for name in wanted & other.provides}
        where = f"fragment {fragment.name!r}"
        lacking = [need for need in fragment.requires if need not in offered]
        problems += [target.problem(f"{where} requires {need!r}", place, hint) for need in lacking]
        for rival in fragment.conflicts:
            if rival in offered:
                message = f"{where} conflicts with {offered[rival]!r}"
                problems.append(target.problem(message, place, "list only one of the two"))
        if not fragment.fits(workload, queues):
            supported = "it works with " + ", ".join(fragment.workloads)
            problems.append(target.problem(f"{where} does not work with workload kind {workload!r}", place, supported))
    promising = [index for index, fragment in enumerate(fragments) if fragment.contract]
    for index in promising[1:]:
        message = f"fragment {fragments[index].name!r} and {fragments[promising[0]].name!r} both promise a transport"
        place = place_of(target, "fragments", fragments[index].name)
        problems.append(target.problem(message, place, "list only one of the two"))
    refuse(problems)


def _contract(document: Document, data: dict[str, Any]) -> Contract | None:
    if "nccl" not in data:
        return None
    nccl = data["nccl"]
    problems = [] if "transport" in data else [document.problem("has no transport to promise", ("nccl",), "name it")]
    places: list[tuple[Keys, str]] = [(("nccl", "reports", i), text) for i, text in enumerate(nccl["reports"])]
    places += [(("nccl", key), nccl[key]) for key in ("device", "why", "refutedBy") if key in nccl]
    for place, text in places:
        try:
            re.compile(text)
        except re.error as error:
            problems.append(document.problem(f"is not a regular expression: {error}", place))
    if nccl.get("links") and "device" in nccl:
        message = "counts the adapters a second time"
        problems.append(
            document.problem(message, ("nccl", "device"), "use links for NCCL's own list, device for another plugin's")
        )
    refuse(problems)
    return record_of(Contract, nccl)


def _condition(document: Document, data: dict[str, Any]) -> str:
    text: str = data.get("when", "")
    try:
        if text:
            parse_expression(text)
    except ExpressionError as error:
        raise ChartgenError(document.problem(error.message, ("when",), error.hint)) from None
    return text


def _read_slots(path: Path, *, gpu_only: bool) -> dict[str, SlotText]:
    slots: dict[str, SlotText] = {}
    problems: list[Problem] = []
    for file in sorted(path.iterdir()):
        if file.name.startswith("."):
            continue
        if file.name in SLOTS or file.name in FIELDS:
            try:
                text = source_text(file)
                for slot, part in (slot_texts(file, text) if file.name in FIELDS else {file.name: text}).items():
                    if slot in slots:
                        problems.append(
                            Problem(f"{slots[slot].path.name} fills it too", file, hint="keep one of the two")
                        )
                    slots[slot] = parse_slot(slot, path.name, file, part, gpu_only=gpu_only)
            except ChartgenError as error:
                problems += error.problems
        elif file.name in _FOLDERS:
            problems += [] if file.is_dir() else [Problem("must be a folder of templates", file)]
        elif file.name not in _FILES:
            hint = did_you_mean(file.name, [*_FILES, *_FOLDERS]) or "`chartgen list slots` lists the slots"
            problems.append(Problem("is not a file that fragments can have", file, hint=hint))
        elif file.is_dir():
            problems.append(Problem("is a folder, not a file", file))
    refuse(problems)
    return slots


def _read_folder(path: Path) -> dict[str, str]:
    files, problems = {}, []
    for file in sorted(path.iterdir()) if path.is_dir() else ():
        if file.suffix == ".yaml":
            files[file.name] = source_text(file)
            problems += gotemplate.check_blocks(files[file.name], file)
        elif not file.name.startswith("."):
            problems.append(
                Problem(
                    "is not a template", file, hint="a template's name ends in .yaml; shared ones go to helpers.tpl"
                )
            )
    refuse(problems)
    return files
