"""A job as its values describe it, in the numbers that checks calculate with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from chartgen.checks.values import effective_values
from chartgen.composer.launcher import Launcher
from chartgen.composer.origin import Composed, origin_of
from chartgen.composer.target import Machine, Target
from chartgen.composer.workload import Workload, load_workload
from chartgen.data.compatibility import lock, release_in, version
from chartgen.helm.chart import Chart
from chartgen.helm.values import Values

_DIGITS = frozenset("0123456789.")
T = TypeVar("T")
# The tasks of launchers whose programs use GPUs, and of all.
RUNS, TASKS = ("train", "test"), ("train", "data", "test")


class Recompute(NamedTuple):
    """What is computed again in the backward pass."""

    granularity: str  # none, selective (the attention's scores) or full (layers)
    # With full: uniform, units of `layers` layers; or block, `layers` layers of each chunk, the others never
    method: str = "uniform"
    layers: int = 1


@dataclass(frozen=True)
class Job:
    """One run of a program on a target's machines."""

    values: dict[str, Any]  # the effective values: the chart's defaults with the user's over them; they fit the schema
    target: Target
    workload: str = ""  # the workload kind of its chart; empty = the target's own
    # What functions with `once` have returned for it
    known: dict[Callable[[Job], Any], Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    # The same of functions with `once_for_layouts`; the cached properties, too, are alike in all layouts of a job
    fixed: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def machine(self) -> Machine:
        """The machine type."""
        return self.target.machines[self.values["machineType"]]

    @cached_property
    def launcher(self) -> Launcher:
        """The program's launcher."""
        return next(launcher for launcher in self.target.launchers if launcher.name == self.values["launcher"])

    @property
    def kind(self) -> str:
        """The workload kind, such as job or jobset."""
        return self.workload or self.target.workload

    @property
    def workload_kind(self) -> Workload:
        """The definition of its kind."""
        return _workload(self.target.library.find("workload", self.kind))

    @cached_property
    def own(self) -> dict[str, Any]:
        """The values of the program alone: `launchers.<name>`."""
        found: dict[str, Any] = self.values["launchers"][self.launcher.name]
        return found

    def key(self, name: str) -> str:
        """Return the dotted key of one of these values."""
        return f"launchers.{self.launcher.name}.{name}"

    @property
    def trains(self) -> bool:
        """Whether a model is trained, so that its sizes count."""
        return self.launcher.task == "train"

    @cached_property
    def describes_model(self) -> bool:
        """Whether the values of `model` describe the model; a program or recipe of the user's brings its own."""
        return not (self.launcher.own_model and self.own.get(self.launcher.own_model))

    @cached_property
    def image(self) -> str:
        """The program's image; empty when neither the values nor the launcher set it."""
        own = self.values["launchers"]
        name = self.launcher.name
        partner = next((launcher for launcher in self.target.launchers if launcher.name == self.launcher.same_as), None)
        borrowed = (own[partner.name].get("image") or partner.image) if partner else ""
        return str(own[name].get("image") or self.launcher.image or borrowed)

    def release(self, image: str) -> str:
        """Return the release of the image; empty for another image, or with the user's own program.

        Args:
            image: The image's name without its registry, such as nvidia/nemo.
        """
        return "" if self.own.get("program") else release_in(self.image, image)

    def can(self, feature: str) -> bool | None:
        """Report whether the image's Megatron is new enough for a feature of the lock; None if that is unknown."""
        (row,) = (row for row in lock()["features"] if row["feature"] == feature)
        release = self.release(row["image"])
        return version(release) >= version(row["from"]) if release else None

    @cached_property
    def fragments(self) -> set[str]:
        """The names of the fragments of its chart."""
        return {fragment.name for fragment in self.target.fragments}

    @property
    def network(self) -> dict[str, Any]:
        """The values of the network; empty for a target without them."""
        found: dict[str, Any] = self.values.get("network", {})
        return found

    def resources(self, kind: str) -> dict[str, str]:
        """Return the `requests` or `limits` of the program."""
        return (self.own.get("resources") or {}).get(kind) or {}

    @property
    def requested(self) -> dict[str, str]:
        """What the program requests: a limit counts as a request if no request is set."""
        return {**self.resources("limits"), **self.resources("requests")}

    @cached_property
    def options(self) -> dict[str, Any]:
        """The program's own options by their last name, with underscores: from `config`, then from `args`.

        An option without a value counts as True, and a part of a tree too when anything is in it.
        """
        found = dict(_leaves(self.own.get("config") or {}))
        for text, following in pairwise([*map(str, self.own.get("args") or ()), "--"]):
            name, given, value = text.lstrip("-+").partition("=")
            apart = text.startswith("--") and not following.startswith("-")
            found[_plain(name)] = value if given else following if apart else True
        return found

    @property
    def nodes(self) -> int:
        """Machines."""
        return int(self.values["nodes"])

    @cached_property
    def gpus_per_node(self) -> int:
        """GPUs that the run uses of each machine."""
        return int(self.values.get("gpusPerNode") or self.machine.gpus)

    @cached_property
    def world(self) -> int:
        """GPUs of the run: Megatron's world size."""
        return self.nodes * self.gpus_per_node

    def parallel(self, name: str) -> int:
        """Return one of the parallel sizes: tensor, pipeline, virtualPipeline, context, expert, expertTensor."""
        sizes = self.values["parallelism"]
        # only expertTensor may be left out: Megatron then takes tensor
        return int(sizes["tensor"] if sizes.get(name) is None else sizes[name])

    def model(self, name: str) -> int:
        """Return one of the model's numbers; what is left out follows from the others, as in the charts."""
        model = self.values["model"]
        default = {"ffnHiddenSize": 4 * int(model["hiddenSize"]), "queryGroups": int(model["attentionHeads"])}
        return int(model.get(name) or default.get(name, 0))

    @cached_property
    def pipeline_layers(self) -> int:
        """Layers that pipeline stages share: the model's, and embedding and loss where the program counts them too."""
        config = self.own.get("config", {})
        nested = config.get("model", {})
        names = [f"account-for-{part}-in-pipeline-split" for part in ("embedding", "loss")]
        given = (
            config.get(name) or (isinstance(nested, dict) and nested.get(name.replace("-", "_"))) for name in names
        )
        return self.model("layers") + sum(map(bool, given))

    def given(self, key: str) -> Any:
        """Return the value of a dotted key of two parts; None where it is null.

        Numbers with a point are text where `--set` gave them.
        """
        found = value_at(self.values, key)
        return float(found) if isinstance(found, str) and found[:1] in _DIGITS else found

    def setting(self, key: str) -> Any:
        """Return such a value, or what null means with the launcher; None where neither sets it."""
        found = self.given(key)
        return self.launcher.defaults.get(key) if found is None else found

    @property
    def ties_embeddings(self) -> bool:
        """Whether embedding and output layer share their weights."""
        tied = self.given("model.tiedEmbeddings")
        return bool(self.values["model"]["family"] == "gpt" if tied is None else tied)

    @property
    def recompute(self) -> Recompute:
        """What is computed again; a word alone is the granularity."""
        given = self.values["recompute"]
        return Recompute(**given) if isinstance(given, dict) else Recompute(given)

    @property
    def model_parallel(self) -> int:
        """GPUs that share one copy of the model for one part of a batch: TP x PP x CP."""
        return model_parallel(self.values)

    @property
    def expert_parallel(self) -> int:
        """GPUs that share one copy of all experts: expert tensor x expert x pipeline."""
        return self.parallel("expertTensor") * self.parallel("expert") * self.parallel("pipeline")

    @property
    def data_parallel(self) -> int:
        """Copies of the model that train side by side; cut to a whole number, at least 1."""
        return data_parallel(self.values, self.world)

    @property
    def micro_batch(self) -> int:
        """Samples that one GPU handles at a time."""
        return int(self.values["batch"]["micro"])

    @property
    def global_batch(self) -> int:
        """Samples of one step; `N/gpu` grows with the run."""
        return global_batch(self.values, self.world)

    @property
    def micro_batches(self) -> int:
        """Micro-batches that a pipeline handles in one step."""
        return micro_batches(self.values, self.world)


def job_of(chart: Chart, values: Values) -> Job | None:
    """Return the job that values which fit the schema describe; None for setup charts, and where it is not known."""
    origin = origin_of(chart)
    if not isinstance(origin, Composed) or origin.setup:
        return None
    return Job(effective_values(chart, values), origin.target, origin.workload)


def model_parallel(values: dict[str, Any]) -> int:
    """Return how many GPUs share one copy of the model for one part of a batch: TP x PP x CP."""
    return prod(int(values["parallelism"][name]) for name in ("tensor", "pipeline", "context"))


def data_parallel(values: dict[str, Any], world: int) -> int:
    """Return how many copies of the model train side by side; cut to a whole number, at least 1."""
    return max(world // model_parallel(values), 1)


def global_batch(values: dict[str, Any], world: int) -> int:
    """Return the samples of one step; `N/gpu` grows with the run."""
    given = values["batch"]["global"]
    return int(given.removesuffix("/gpu")) * world if isinstance(given, str) else int(given)


def micro_batches(values: dict[str, Any], world: int) -> int:
    """Return how many micro-batches a pipeline handles in one step."""
    return global_batch(values, world) // (int(values["batch"]["micro"]) * data_parallel(values, world))


def value_at(values: Mapping[str, Any], key: str) -> Any:
    """Return the value of a dotted key of one or two parts; None if the values lack it."""
    head, _, name = key.partition(".")
    found = values.get(head)
    return found.get(name) if name and isinstance(found, Mapping) else None if name else found


def once(function: Callable[[Job], T], memory: str = "known") -> Callable[[Job], T]:
    """Compute what a function returns for a job only once, since a job never changes."""

    @wraps(function)
    def remembered(job: Job) -> T:
        known = getattr(job, memory)
        if function not in known:
            known[function] = function(job)
        found: T = known[function]
        return found

    return remembered


def once_for_layouts(function: Callable[[Job], T]) -> Callable[[Job], T]:
    """Compute only once what a function returns for all layouts of a job, whose sizes it does not read."""
    return once(function, "fixed")


@lru_cache(maxsize=64)
def _workload(path: Path) -> Workload:
    return load_workload(path)


def _leaves(tree: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield _plain(name), True
            yield from _leaves(value)
        else:
            yield _plain(name), value


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    return name.rpartition(".")[2].replace("-", "_").lower()
