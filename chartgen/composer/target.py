"""Targets: YAML files that name a cloud's machines, a workload kind, fragments, launchers and default values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chartgen.composer.definition import misfits, read_definition, record_of
from chartgen.composer.extension import extended, lineage, place_of
from chartgen.composer.fragment import Fragment, load_fragment
from chartgen.composer.launcher import Launcher, load_launcher
from chartgen.composer.library import Library, open_library
from chartgen.composer.policies import Policy, load_policies
from chartgen.composer.workload import Workload, load_workload
from chartgen.errors import ChartgenError, Problem, UsageError, did_you_mean, refuse
from chartgen.helm.yaml import Document

if TYPE_CHECKING:
    from chartgen.data.gpus import Gpu


@dataclass(frozen=True)
class Machine:
    """One machine type; its other fields are the keys of a target's file."""

    name: str
    gpus: int
    gpu: str
    capacity: dict[str, str]
    labels: dict[str, str] = field(default_factory=dict)
    taints: list[dict[str, str]] = field(default_factory=list)
    fabric: dict[str, Any] = field(default_factory=dict)
    described: Gpu | None = None  # the GPU by the target's own row; None for a model that chartgen knows

    @property
    def model(self) -> Gpu | None:
        """Return what is known of the GPU; data/gpus.yaml is read only for those who ask."""
        from chartgen.data.gpus import find_gpu

        return self.described or find_gpu(self.gpu)

    @property
    def peak(self) -> float:
        """Return the TFLOP/s of a GPU in BF16 by its data sheet; 0 for one that chartgen does not know."""
        return self.model.tflops.get("bf16", 0) if self.model else 0


_LINK = re.compile(r"(?P<link>https://[^\s,]+)|(?P<repository>[\w-]+/[\w.-]+) @ (?P<commit>[0-9a-f]{7,40})\b")
# The launchers of a target that names none.
LAUNCHERS = (
    *("megatron-lm", "megatron-bridge", "nemo-1", "automodel", "torchtitan", "torchrun", "mlperf-llama2-lora"),
    "nemo-rl",
    *("mlperf-preprocess", "download", "megatron-preprocess", "pile-dataprep", "nccl-test"),
)
# The first version in which init containers that keep running are on by default.
_NATIVE_SIDECARS = "1.29"


@dataclass(frozen=True)
class Target:
    """One target with its fragments and launchers, after reading and checks.

    Args:
        description: One sentence: which machines of which cloud.
        workload: The target's own workload kind.
        kind: The workload kind of the charts; `fragments` and `launchers` are those for it.
        machines: Machine types by name; the first is the default.
        every_fragment: The fragments that its file lists, those for other kinds too.
        every_launcher: The launchers that its file lists; all of chartgen's where it lists none.
        values: Default values that differ from the fragments' own.
        sources: Where its values come from.
        library: Where its definitions come from.
        parents: The target that it extends, then the parent of this one, and so on.
        kubernetes: The first version of Kubernetes that its charts install on.
        policies: What the library wants of all targets.
        chosen: The names of the launchers of its charts, the default first; empty for all.
    """

    name: str
    description: str
    platform: str
    workload: str
    kind: str
    machines: dict[str, Machine]
    every_fragment: tuple[Fragment, ...]
    every_launcher: tuple[Launcher, ...]
    values: dict[str, Any]
    sources: tuple[str, ...]
    document: Document
    library: Library
    kubernetes: str
    parents: tuple[str, ...] = ()
    policies: tuple[Policy, ...] = ()
    chosen: tuple[str, ...] = ()

    @cached_property
    def runs(self) -> Workload | None:
        """The workload kind of the charts; None for an unknown one, which is never composed."""
        with suppress(UsageError):
            return load_workload(self.library.find("workload", self.kind))
        return None

    @cached_property
    def fragments(self) -> tuple[Fragment, ...]:
        """The fragments for the workload kind.

        A fragment for other kinds is left out where another one provides the same: Kueue replaces Volcano's queue.
        """
        queues = self.runs.queues if self.runs else ()
        unfit = [each for each in self.every_fragment if not each.fits(self.kind, queues)]
        provided = {name for fragment in self.every_fragment if fragment not in unfit for name in fragment.provides}
        # only capabilities count: each fragment also provides its own name
        replaced = [fragment for fragment in unfit if set() < fragment.provides - {fragment.name} <= provided]
        return tuple(each for each in self.every_fragment if each not in replaced)

    @cached_property
    def launchers(self) -> tuple[Launcher, ...]:
        """The launchers of the charts: the chosen ones among those for the workload kind.

        One that uses the image of a launcher that the charts lack has this image itself.
        """
        fit = {launcher.name: launcher for launcher in self.fitting}
        kept = [fit[name] for name in self.chosen or fit if name in fit]
        own = self.values.get("launchers", {})
        left = [each for each in self.every_launcher if each not in kept]
        images = {launcher.name: own.get(launcher.name, {}).get("image") or launcher.image for launcher in left}
        return tuple(
            replace(each, same_as="", image=images[each.same_as]) if each.same_as in images else each for each in kept
        )

    @cached_property
    def fitting(self) -> tuple[Launcher, ...]:
        """The launchers of its list that are for the workload kind; those that prepare data are for every kind."""
        fit = [each for each in self.every_launcher if each.task == "data" or _is_for(each, self.runs)]
        names = {launcher.name for launcher in fit}
        return tuple(launcher for launcher in fit if not launcher.same_as or launcher.same_as in names)

    @cached_property
    def left_out(self) -> tuple[Launcher, ...]:
        """The launchers of its list that the charts lack."""
        names = [launcher.name for launcher in self.launchers]
        return tuple(launcher for launcher in self.every_launcher if launcher.name not in names)

    @cached_property
    def default_launcher(self) -> Launcher:
        """The chosen launcher that is named first, or the default of its file."""
        own = "" if self.chosen else self.values.get("launcher")
        return next((launcher for launcher in self.launchers if launcher.name == own), self.launchers[0])

    @property
    def path(self) -> Path:
        """Return the target's file."""
        return Path(self.document.path)

    @property
    def default_machine(self) -> Machine:
        """Return the first machine type of the file."""
        return next(iter(self.machines.values()))

    @property
    def links(self) -> list[str]:
        """Return the addresses in its sources: those written out, and the repositories of `owner/name @ commit`."""
        found = (_LINK.match(source) for source in self.sources)
        links = (
            each["link"] or f"https://github.com/{each['repository']}/tree/{each['commit']}" for each in found if each
        )
        return list(dict.fromkeys(links))


def load_target(name: str, library: Library | None = None) -> Target:
    """Read a target and all definitions that it names.

    Args:
        library: Where to find them; chartgen's own definitions and CHARTGEN_PATH when None.

    Raises:
        UsageError: Unknown target, fragment, launcher.
        ChartgenError: Problems of their files.
    """
    library = library or open_library()
    _, *parents = names = lineage(name, library)
    document, meta = _whole([library.find("target", each) for each in names])
    offered = meta["launchers"]
    if not offered:
        raise ChartgenError(document.problem("launchers must not be empty", ("launchers",)))
    launchers = tuple(map(load_launcher, _find_all(document, library, "launcher", offered)))
    _check_same_as(document, launchers)
    own = "gpus" in meta or not library.is_builtin(
        Path(document.path)
    )  # models of chartgen's targets are checked by its tests
    gpus = _own_gpus(document, meta) if own else {}
    return Target(
        name=name,
        description=meta["description"],
        platform=meta["platform"],
        workload=meta["workload"],
        kind=meta["workload"],
        machines={
            each: record_of(Machine, facts, name=each, gpus=int(facts["gpus"]), described=gpus.get(facts["gpu"]))
            for each, facts in meta["machines"].items()
        },
        every_fragment=tuple(map(load_fragment, _find_all(document, library, "fragment", meta["fragments"]))),
        every_launcher=launchers,
        values=meta.get("values", {}),
        sources=tuple(meta["sources"]),
        document=document,
        library=library,
        kubernetes=meta.get("kubernetes", _NATIVE_SIDECARS),
        parents=tuple(parents),
        policies=load_policies(library),
    )


def _whole(paths: Sequence[Path]) -> tuple[Document, dict[str, Any]]:
    """Return a target's file, and its content with that of the files that it extends."""
    *extending, last = paths
    document, found = read_definition(last, "target")
    meta: dict[str, Any] = {"launchers": LAUNCHERS, **found}
    for path in reversed(extending):
        document, own = read_definition(path, "target")
        meta = extended(meta, own, document)
        whole = {key: value for key, value in meta.items() if key not in ("extends", "launchers")}
        refuse(misfits(document, whole, "target"))
    return document, meta


def of_kind(target: Target, kind: str) -> Target:
    """Return a target with what its lists have for a workload kind; raise ChartgenError without a launcher for it."""
    found = target if kind == target.kind else replace(target, kind=kind)
    wanted = [launcher for launcher in target.every_launcher if launcher.name in target.chosen or not target.chosen]
    if found.launchers and _has_program(found.launchers) == _has_program(wanted):
        return found
    message = f"target {target.name} lists no launcher for workload kind {kind}"
    known = (load_launcher(target.library.find("launcher", name)) for name in target.library.names("launcher"))
    fit = [launcher.name for launcher in known if _is_for(launcher, found.runs)]
    hint = f"list {' or '.join(fit)}, or take another kind" if fit else "take another kind"
    raise ChartgenError(target.document.problem(message, ("launchers",), hint))


def _has_program(launchers: Sequence[Launcher]) -> bool:
    """Report whether one of them does more than prepare data."""
    return any(launcher.task != "data" for launcher in launchers)


def _is_for(launcher: Launcher, kind: Workload | None) -> bool:
    """Report whether a workload kind starts the GPU program of a launcher."""
    return launcher.task != "data" and (launcher.processes == "ray") == (kind is not None and kind.starts == "ray")


def with_launchers(target: Target, names: Sequence[str]) -> Target:
    """Return a target whose charts have only some of its launchers, the first of them as default.

    Args:
        names: The launchers; none for all.

    Raises:
        UsageError: A launcher is not in the target.
    """
    known = [launcher.name for launcher in target.every_launcher]
    problems = [
        Problem(f"target {target.name} has no launcher {name!r}", hint=f"it lists {', '.join(known)}")
        for name in dict.fromkeys(names)
        if name not in known
    ]
    if problems:
        raise UsageError(problems)
    return replace(target, chosen=tuple(dict.fromkeys(names)))


def with_fragments(target: Target, names: Sequence[str]) -> Target:
    """Return a target with more fragments of its library, behind its own.

    Raises:
        UsageError: A fragment is in no folder.
        ChartgenError: Problems of its files.
    """
    more = (load_fragment(target.library.find("fragment", name)) for name in names)
    return replace(target, every_fragment=(*target.every_fragment, *more))


def _find_all(document: Document, library: Library, kind: str, names: list[str]) -> list[Path]:
    paths = []
    for index, name in enumerate(names):
        place = (f"{kind}s", index) if document.span((f"{kind}s", index)) else place_of(document, f"{kind}s", name)
        if name in names[:index]:
            raise ChartgenError(document.problem(f"{kind} {name!r} is listed twice", place, "remove one of the two"))
        try:
            paths.append(library.find(kind, name))
        except ChartgenError as error:
            problem = error.problems[0]
            message = f"{problem.message} ({problem.path})" if problem.path else problem.message
            raise type(error)(document.problem(message, place, problem.hint)) from None
    return paths


def _check_same_as(document: Document, launchers: tuple[Launcher, ...]) -> None:
    names = [launcher.name for launcher in launchers]
    for index, launcher in enumerate(launchers):
        if launcher.same_as and launcher.same_as not in names:
            message = f"launcher {launcher.name!r} uses the image of {launcher.same_as!r}, which is not listed"
            raise ChartgenError(document.problem(message, ("launchers", index), f"list {launcher.same_as!r} too"))


def _own_gpus(document: Document, meta: dict[str, Any]) -> dict[str, Gpu]:
    """Return a target's own GPU models by name; raise ChartgenError for another one, or one that is there twice."""
    from chartgen.data.gpus import all_gpus, gpu_of

    own = {model: gpu_of(model, row) for model, row in meta.get("gpus", {}).items()}
    known = {**all_gpus(), **own}
    problems = [
        document.problem(f"chartgen already knows the GPU model {model!r}", ("gpus", model), "give yours another name")
        for model in own
        if model in all_gpus()
    ]
    for key in ("tflops", "precisions"):
        words = dict.fromkeys(word for gpu in all_gpus().values() for word in getattr(gpu, key))
        problems += [
            document.problem(f"unknown format {word!r}", ("gpus", model, key), did_you_mean(str(word), words))
            for model, row in meta.get("gpus", {}).items()
            for word in row[key]
            if word not in words
        ]
    problems += [
        document.problem(
            f"unknown GPU model {machine['gpu']!r} of {name}",
            ("machines", name, "gpu"),
            f"describe it in gpus, or name one of {', '.join(sorted(known))}",
        )
        for name, machine in meta["machines"].items()
        if machine["gpu"] not in known
    ]
    refuse(problems)
    return own
