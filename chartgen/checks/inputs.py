"""Names in values that a run uses at runtime: paths in its pods, data sets, variables, topology levels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

from chartgen.checks.job import RUNS, TASKS, Job
from chartgen.composer.library import BUILTIN
from chartgen.errors import did_you_mean
from chartgen.findings import KeyProblem, rule, rules_in
from chartgen.helm.yaml import dotted, read_text

_COMMON = BUILTIN / "workloads" / "common"
_ENDINGS = re.compile(r"(_text_document)?(\.bin|\.idx)?")
# The pod's own variables, in _env.yaml, and variables that scripts set for each process: all in
# capitals, and not derived from their own value, as PATH is.
_OWN_ENV = re.compile(r'define "<%= chart %>\.slot\.env".*?<%= slot', re.DOTALL)
_ENTRY = re.compile(r"^- \{?name: ([A-Z_]+)", re.MULTILINE)
_SET = re.compile(r"(?:^|[ \t])([A-Z][A-Z_]+)=(?!\S*\$\{?\1\b)", re.MULTILINE)


_POD = "chartgen/library/workloads/common/templates/_pod.yaml, its volumeMounts"


@rule(_POD, "warning")
def paths_are_mounted(job: Job) -> Iterator[KeyProblem]:
    """A run reads its input from its storage; outside every mount, pods contain only the files of the image."""
    if job.launcher.task == "train":
        yield from _unmounted(job, "so only a file of the image can be there")


@rule(_POD, tasks=("data",))
def written_paths_are_mounted(job: Job) -> Iterator[KeyProblem]:
    """Files that a program fetches or prepares outside every mount are lost with its pod."""
    if job.launcher.task == "data":
        yield from _unmounted(job, "so what is written there is lost with the pod")


def _unmounted(job: Job, why: str) -> Iterator[KeyProblem]:
    own = {mount["mountPath"] for mount in job.values["extraVolumeMounts"]}
    mounts = sorted({f"/{role}" for role in job.values["storage"]} | own)
    for key, path in _paths(job).items():
        if not any(PurePosixPath(path).is_relative_to(mount) for mount in mounts):
            message = f"{path} is in no mount of the pod ({', '.join(mounts)}), {why}"
            yield KeyProblem(key, message, "use a path below /data, or mount a volume there with extraVolumeMounts")


def _paths(job: Job) -> dict[str, str]:
    """Return the paths that this program uses, by key: those of data and files that the values name or fetch."""
    data, tokenizer, checkpoint = (job.values[name] for name in ("data", "tokenizer", "checkpoint"))
    prepares, fetches = job.launcher.task == "data", job.launcher.name == "download"
    used = {
        "data.directory": bool(data["source"] if fetches else data["name"] or data["prefixes"]),
        "tokenizer.path": bool(tokenizer["source"]) if fetches else not prepares and tokenizer["kind"] != "none",
        "checkpoint.from": bool(checkpoint["source"]) if fetches else not prepares,
        "launchers.download.cache": fetches and bool(job.own["models"]),
    }
    paths = {"data.directory": data["directory"], "tokenizer.path": tokenizer["path"]}
    paths |= {"checkpoint.from": checkpoint["from"], "launchers.download.cache": job.own.get("cache", "")}
    return {key: path for key, path in paths.items() if used[key] and path}


@rule(
    "NVIDIA/Megatron-LM core_v0.19.0, tools/preprocess_data.py",
    tasks=("train", "data"),
    remedy="`data.name`: use … or give its name alone",
)
def names_of_data_sets(job: Job) -> Iterator[KeyProblem]:
    """A data set is named without its file endings: programs add _text_document and .bin or .idx to the name."""
    name = job.values["data"]["name"]
    ends = next((match for index in range(len(name)) if (match := _ENDINGS.fullmatch(name, index)) and match[0]), None)
    if ends:
        message = f"{name} ends in {ends[0]}, which programs add to the name by themselves"
        yield KeyProblem("data.name", message, f"use {name[: ends.start()]}" if ends.start() else "give its name alone")


@rule("chartgen/library/workloads, the variables that templates set", tasks=TASKS, remedy="remove it")
def variables_of_the_start(job: Job) -> Iterator[KeyProblem]:
    """The chart sets the variables that number pods and ranks and connect them; another value splits the run."""
    given = [(key, name) for key in ("env", "secretEnv") for name in job.values[key]]
    own = reserved(job.target.library.find("workload", job.kind)) if given else frozenset()
    for key, name in given:
        if name in own:
            yield KeyProblem(f"{key}.{name}", "is set by the chart for each pod and process")


@lru_cache(maxsize=8)
def reserved(kind: Path) -> frozenset[str]:
    """Return the variables that the templates of a workload kind, and those shared by all kinds, set themselves."""
    own = _OWN_ENV.search(read_text(_COMMON / "templates" / "_env.yaml"))
    names = {*_ENTRY.findall(own[0] if own else "")}
    scripts = [_COMMON / "files" / name for name in ("start.sh", "stage.sh", "workers.sh")]
    for script in (*scripts, *sorted(kind.glob("files/*.sh")), *sorted(kind.glob("templates/_*"))):
        names.update(_SET.findall(read_text(script)))
    return frozenset(names) | _TORCHRUN


# torchrun sets these for each process; values must not (docs.pytorch.org, torchrun, environment variables).
_TORCHRUN = frozenset(
    ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE")
)


@rule("kueue.sigs.k8s.io, topology aware scheduling", "warning", tasks=RUNS)
def levels_of_the_topology(job: Job) -> Iterator[KeyProblem]:
    """Kueue places a run by the levels of the queue's topology from the setup chart; with another level it waits."""
    if "kueue" not in job.fragments:
        return
    topology, known = job.values["topology"], job.values["setup"]["topologyLevels"]
    placed = topology["mode"] in ("required", "preferred")
    for name, used in (("level", placed), ("sliceLevel", bool(topology.get("sliceSize")))):
        if used and topology[name] not in known:
            message = f"{topology[name]} is not a level of setup.topologyLevels ({', '.join(known)})"
            hint = did_you_mean(topology[name], known)
            yield KeyProblem(f"topology.{name}", message, hint or "use one of them", ("setup.topologyLevels",))


@rule("chartgen/library/workloads/common/templates/_settings.tpl, quota", "warning", tasks=RUNS)
def machine_types_of_the_quota(job: Job) -> Iterator[KeyProblem]:
    """A map of `setup.quota.resources` is for the machine type of its name; the queue has nothing of an unknown one."""
    if "kueue" not in job.fragments:
        return
    known = job.target.machines
    for name, value in (job.values["setup"]["quota"]["resources"] or {}).items():
        if isinstance(value, dict) and name not in known:
            hint = did_you_mean(name, known) or f"use one of {', '.join(known)}"
            at = ("setup", "quota", "resources", name)
            yield KeyProblem(dotted(at), "is not a machine type of the target", hint, at=at)


INPUTS = rules_in(globals())
