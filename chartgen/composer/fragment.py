"""Fragments: one folder of small files, each named after the Kubernetes API field that it fills."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from chartgen.composer.definition import Field, read_definition
from chartgen.composer.library import BUILTIN
from chartgen.composer.privileges import read_privilege
from chartgen.composer.slots import SLOTS, SlotText, parse_slot
from chartgen.errors import ChartgenError, Problem, did_you_mean
from chartgen.helm import gotemplate
from chartgen.helm.yaml import Document, Keys, read_text

LINKS = ("IB", "RoCE")
CONTRACT_FIELDS = {
    "reports": Field(
        "array", "regular expressions, each of which must match a line of NCCL's log", required=True, of="string"
    ),
    "links": Field(
        "array", "`IB`, `RoCE` or both: the adapters of NCCL's own list that count, in every form of it", of="string"
    ),
    "device": Field(
        "string",
        "what finds adapters in the log of another plugin: regular expression of which each different text is one, or"
        " whose group `count` is their number; without links and device the log does not tell",
    ),
    "devices": Field(
        "string", "Helm text: the adapters that NCCL must find on a machine; 0 = promises none", required=True
    ),
    "why": Field("string", "regular expression of the lines that say why NCCL does not use it"),
    "refutedBy": Field(
        "string",
        "regular expression of the lines that prove that NCCL does not use it, although `reports` is met in part",
    ),
}
FIELDS = {
    "description": Field("string", "one sentence: what the fragment gives to a pod", required=True),
    "provides": Field("array", "capabilities that other fragments can require, such as `gpu` or `fabric`", of="string"),
    "requires": Field("array", "fragments or capabilities that must be listed too", of="string"),
    "conflicts": Field("array", "fragments or capabilities that must not be listed beside it", of="string"),
    "workloads": Field("array", "the workload kinds that it works with; absent = all", of="string"),
    "appliesTo": Field("string", "`gpu`: only in pods that use GPUs; `always`: in every pod", enum=("gpu", "always")),
    "transport": Field("string", "the NCCL transport that it promises, for people, such as TCPXO (FasTrak)"),
    "nccl": Field(
        "object", "what NCCL must report when it has that transport; checked before training", keys=CONTRACT_FIELDS
    ),
    "privileges": Field(
        "object",
        "each privilege that its containers hold, and the reason: `hostNetwork`, `privileged in CONTAINER`,"
        " `root in CONTAINER`, `CAPABILITY in CONTAINER`, `hostPath FOLDER in CONTAINER`;"
        " CONTAINER `program` is the program's own",
        of="string",
    ),
    "sources": Field("array", "the vendor documents that its values come from", required=True, of="string"),
}
_FILES = {"fragment.yaml", "values.yaml", "values.schema.json", *SLOTS}
_FOLDERS = ("manifests", "setup")


@dataclass(frozen=True)
class Contract:
    """What NCCL must report before a run of several machines trains.

    Args:
        reports: Regular expressions; each must match a line of NCCL's log.
        links: `IB` and `RoCE`: the adapters of NCCL's own list that count; empty = `device` finds them.
        device: Regular expression that finds adapters in it, or their number as the group `count`; empty = untold.
        devices: Helm text that gives the number of adapters of a machine; 0 = these values promise none.
        why: Regular expression of the lines that say why NCCL does not use the transport; empty = none do.
        refuted_by: Regular expression of the lines that prove that it does not; empty = none do.
    """

    reports: tuple[str, ...]
    links: tuple[str, ...]
    device: str
    devices: str
    why: str
    refuted_by: str


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
        contract: What NCCL must report when it has it; None = nothing is checked.
        privileges: Privilege -> reason.
        sources: Vendor documents.
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
    contract: Contract | None
    privileges: dict[str, str]
    sources: tuple[str, ...]

    @cached_property
    def slots(self) -> dict[str, SlotText]:
        """Slot file name -> its text."""
        return _read_slots(self.path, gpu_only=self.gpu_only)

    @cached_property
    def manifests(self) -> dict[str, str]:
        """File name -> template of the run chart."""
        return _read_folder(self.path / "manifests")

    @cached_property
    def setup(self) -> dict[str, str]:
        """File name -> template of the setup chart."""
        return _read_folder(self.path / "setup")


def load_fragment(path: Path) -> Fragment:
    """Read a fragment's folder.

    Raises:
        ChartgenError: All problems of all its files at once.
    """
    document, data = read_definition(path / "fragment.yaml", FIELDS)
    meta: dict[str, Any] = data
    fragment = Fragment(
        name=path.name,
        path=path,
        description=meta["description"],
        provides=frozenset([path.name, *meta.get("provides", [])]),
        requires=tuple(meta.get("requires", [])),
        conflicts=tuple(meta.get("conflicts", [])),
        workloads=tuple(meta.get("workloads", [])),
        gpu_only=meta.get("appliesTo") == "gpu",
        transport=meta.get("transport", ""),
        contract=_contract(document, meta),
        privileges=_privileges(document, meta),
        sources=tuple(meta["sources"]),
    )
    # Chartgen's own texts are checked by its tests, and read when a chart needs them: a check of values does not.
    if not path.is_relative_to(BUILTIN):
        _ = (fragment.slots, fragment.manifests, fragment.setup)
    return fragment


def check_combination(
    fragments: Sequence[Fragment], target: Document, workload: str, requires: Sequence[str] = ()
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
        target.problem(f"workload kind {workload!r} requires {need!r}", ("fragments",), hint)
        for need in requires
        if need not in provided
    ]
    for index, fragment in enumerate(fragments):
        place = ("fragments", index)
        offered = {name: other.name for other in fragments if other is not fragment for name in other.provides}
        where = f"fragment {fragment.name!r}"
        lacking = [need for need in fragment.requires if need not in offered]
        problems += [target.problem(f"{where} requires {need!r}", place, hint) for need in lacking]
        for rival in fragment.conflicts:
            if rival in offered:
                message = f"{where} conflicts with {offered[rival]!r}"
                problems.append(target.problem(message, place, "list only one of the two"))
        if fragment.workloads and workload not in fragment.workloads:
            supported = "it works with " + ", ".join(fragment.workloads)
            problems.append(target.problem(f"{where} does not work with workload kind {workload!r}", place, supported))
    promising = [index for index, fragment in enumerate(fragments) if fragment.contract]
    for index in promising[1:]:
        message = f"fragment {fragments[index].name!r} and {fragments[promising[0]].name!r} both promise a transport"
        problems.append(target.problem(message, ("fragments", index), "list only one of the two"))
    if problems:
        raise ChartgenError(problems)


def _contract(document: Document, meta: dict[str, Any]) -> Contract | None:
    if "nccl" not in meta:
        return None
    nccl = meta["nccl"]
    problems = [] if "transport" in meta else [document.problem("has no transport to promise", ("nccl",), "name it")]
    places: list[tuple[Keys, str]] = [(("nccl", "reports", i), text) for i, text in enumerate(nccl["reports"])]
    places += [(("nccl", key), nccl[key]) for key in ("device", "why", "refutedBy") if key in nccl]
    for place, text in places:
        try:
            re.compile(text)
        except re.error as error:
            problems.append(document.problem(f"is no regular expression: {error}", place))
    links: list[str] = nccl.get("links", [])
    for index, link in enumerate(links):
        if link not in LINKS:
            problems.append(
                document.problem(f"{link!r} is no link", ("nccl", "links", index), f"use {' or '.join(LINKS)}")
            )
    if links and "device" in nccl:
        message = "counts the adapters a second time"
        problems.append(
            document.problem(message, ("nccl", "device"), "take links for NCCL's own list, device for others")
        )
    if problems:
        raise ChartgenError(problems)
    found = [nccl.get(key, "") for key in ("device", "devices", "why", "refutedBy")]
    return Contract(tuple(nccl["reports"]), tuple(links), *found)


def _privileges(document: Document, meta: dict[str, Any]) -> dict[str, str]:
    stated: dict[str, str] = meta.get("privileges", {})
    problems = []
    for text in stated:
        try:
            read_privilege(text)
        except ValueError as error:
            hint = "write it as in `NET_ADMIN in program` or `hostPath /dev/infiniband in program`"
            problems.append(document.problem(str(error), ("privileges", text), hint))
    if problems:
        raise ChartgenError(problems)
    return stated


def _read_slots(path: Path, *, gpu_only: bool) -> dict[str, SlotText]:
    slots, problems = {}, []
    for file in sorted(path.iterdir()):
        if file.name.startswith("."):
            continue
        if file.name in SLOTS:
            try:
                slots[file.name] = parse_slot(file.name, path.name, file, read_text(file), gpu_only=gpu_only)
            except ChartgenError as error:
                problems += error.problems
        elif file.name in _FOLDERS:
            problems += [] if file.is_dir() else [Problem("must be a folder of templates", file)]
        elif file.name not in _FILES:
            hint = did_you_mean(file.name, [*_FILES, *_FOLDERS]) or "a slot file is named after a Kubernetes field"
            problems.append(Problem("is not a slot that fragments can fill", file, hint=hint))
        elif file.is_dir():
            problems.append(Problem("is a folder, not a file", file))
    if problems:
        raise ChartgenError(problems)
    return slots


def _read_folder(path: Path) -> dict[str, str]:
    files, problems = {}, []
    for file in sorted(path.iterdir()) if path.is_dir() else ():
        if file.suffix == ".yaml":
            files[file.name] = read_text(file)
            problems += gotemplate.check_blocks(files[file.name], file)
        elif not file.name.startswith("."):
            problems.append(
                Problem(
                    "is not a template", file, hint="a template's name ends in .yaml; shared ones go to helpers.tpl"
                )
            )
    if problems:
        raise ChartgenError(problems)
    return files
