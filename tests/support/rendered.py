"""Charts rendered by the real Helm: the A3 Mega one with the GPT3-175B values, if nothing else is asked for."""

from __future__ import annotations

import os
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from chartgen.checks import check_values
from chartgen.composer.assembly import compose, compose_setup
from chartgen.composer.target import Target, load_target
from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values, load_values

VALUES = Path(__file__).parents[2] / "values"
GPT3 = (VALUES / "gpt3-175b.yaml", VALUES / "gke-a3mega" / "gpt3-175b.yaml", VALUES / "site.gke-a3mega.example.yaml")
RELEASE, NAMESPACE = "my-run", "ml"

Objects: TypeAlias = list[dict[str, Any]]


@lru_cache
def target(name: str = "gke-a3mega") -> Target:
    return load_target(name)


@lru_cache
def chart(workload: str | None = None, name: str = "gke-a3mega") -> Chart:
    return compose(target(name), workload)


@lru_cache
def setup_chart(name: str = "gke-a3mega") -> Chart:
    made = compose_setup(target(name))
    assert made
    return made


def rendered(
    *sets: str,
    files: tuple[Path, ...] = GPT3,
    workload: str | None = None,
    json: tuple[str, ...] = (),
    name: str = "gke-a3mega",
) -> Objects:
    """The objects of a target's chart with these values files and `--set` (and `--set-json`) flags."""
    return deepcopy(_rendered(name, workload, files, _state_of(files), sets, json))


def rendered_setup(
    *sets: str, files: tuple[Path, ...] = GPT3, json: tuple[str, ...] = (), name: str = "gke-a3mega"
) -> Objects:
    """The objects of a target's setup chart."""
    return _objects(setup_chart(name), files, sets, json)


@lru_cache(maxsize=256)
def _rendered(
    name: str,
    workload: str | None,
    files: tuple[Path, ...],
    _state: object,
    sets: tuple[str, ...],
    json: tuple[str, ...],
) -> Objects:
    """Render once what several tests of a process ask for; `_state` is what else decides on the outcome."""
    return _objects(chart(workload, name), files, sets, json)


def _state_of(files: tuple[Path, ...]) -> object:
    stats = [path.stat() for path in files]
    return os.environ.get("CHARTGEN_HELM"), tuple((found.st_mtime_ns, found.st_size) for found in stats)


def _objects(made: Chart, files: tuple[Path, ...], sets: tuple[str, ...], json: tuple[str, ...]) -> Objects:
    values = load_values(files, set_values=sets, set_json=json)
    fit_schema(made, values)
    return objects(render(made, RELEASE, NAMESPACE, values.data))


def fit_schema(made: Chart, values: Values) -> None:
    """Refuse what the schema refuses. All else is the chart's to refuse here, as for people who only use Helm."""
    if problems := check_values(made, values):
        raise ChartgenError(problems)


def one(kind: str, found: Objects) -> dict[str, Any]:
    """The only object of a kind."""
    (item,) = (item for item in found if item["kind"] == kind)
    return item


def job_spec(found: Objects) -> dict[str, Any]:
    """The Indexed Job's spec, in a JobSet or by itself."""
    jobsets = [item for item in found if item["kind"] == "JobSet"]
    if jobsets:
        spec: dict[str, Any] = jobsets[0]["spec"]["replicatedJobs"][0]["template"]["spec"]
        return spec
    job: dict[str, Any] = one("Job", found)["spec"]
    return job


def pod(found: Objects) -> dict[str, Any]:
    """The pod template: metadata and spec."""
    template: dict[str, Any] = job_spec(found)["template"]
    return template


def init(found: Objects, name: str) -> dict[str, Any]:
    """An init container."""
    (only,) = (item for item in pod(found)["spec"]["initContainers"] if item["name"] == name)
    return dict(only)


def mounts(item: dict[str, Any]) -> dict[str, Any]:
    """A container's mounts by path."""
    return {mount["mountPath"]: mount for mount in item.get("volumeMounts", ())}


def volumes(found: Objects) -> dict[str, Any]:
    """The pod's volumes by name."""
    return {volume["name"]: volume for volume in pod(found)["spec"]["volumes"]}


def container(found: Objects) -> dict[str, Any]:
    """The program's container."""
    (only,) = pod(found)["spec"]["containers"]
    return dict(only)


def security(*capabilities: str) -> dict[str, Any]:
    """The security context of a program with GPUs that adds these capabilities to those that every one keeps."""
    kept = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID", *capabilities)
    return {"allowPrivilegeEscalation": False, "capabilities": {"add": sorted(kept), "drop": ["ALL"]}}


def env(found: Objects) -> dict[str, str]:
    """The program's variables as a process sees them."""
    return {entry["name"]: unescaped(entry["value"]) for entry in container(found)["env"] if "value" in entry}


def arguments(found: Objects) -> list[str]:
    """The program and its arguments as a process sees them."""
    return [unescaped(text) for text in container(found)["args"]]


def overrides(found: Objects) -> dict[str, str]:
    """The Hydra overrides among the arguments: path -> literal."""
    pairs = (text.removeprefix("++").partition("=") for text in arguments(found)[1:])
    return {path: literal for path, _, literal in pairs}


def unescaped(text: str) -> str:
    """What Kubernetes makes of an argument or variable in which every $ is doubled, so that no $(NAME) is left."""
    assert "$(" not in text.replace("$$", ""), text
    return text.replace("$$", "$")
