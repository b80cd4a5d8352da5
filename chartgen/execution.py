"""A rendered pod's program run on this machine, as the kubelet runs it: its variables, files, mounts, signals.

The machine stands for the image. Mounts become folders below a root, and their paths are replaced in variables,
arguments and the chart's own files; what programs themselves name, and all of /dev, stays the machine's.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chartgen.errors import ChartgenError, Problem, UsageError
from chartgen.plan import Workers, find_workers, program

_REFERENCE = re.compile(r"\$(?:\$|\(([A-Za-z_][A-Za-z0-9_.-]*)\))")
_LABEL = re.compile(r"metadata\.labels\['(.+)'\]")
# By this variable the processes of a container are told from all others, as by its control group.
_MARK = "CHARTGEN_CONTAINER"


@dataclass(frozen=True)
class Execution:
    """What runs, and what it finds.

    Args:
        argv: The container's command and arguments.
        environment: The variables of the pod, without those of the image.
        secrets: Those of them that come from a Secret; their values are left out of `environment`.
        folders: The folders of the mounts.
        files: The files of the chart's ConfigMaps.
        grace: Seconds between SIGTERM and SIGKILL.
        root: The folder of all this; programs in its `bin` win over the machine's.
    """

    argv: tuple[str, ...]
    environment: dict[str, str]
    secrets: tuple[str, ...]
    folders: tuple[Path, ...]
    files: dict[Path, str]
    grace: float
    root: Path


def plan_execution(
    objects: Iterable[dict[str, Any]],
    root: Path,
    *,
    rank: int = 0,
    overrides: Mapping[str, str] | None = None,
    places: Mapping[str, Path] | None = None,
) -> Execution:
    """Say what the kubelet would run for a pod of a run.

    Args:
        objects: The rendered objects of a chart.
        root: The folder that the mounts are below; it need not exist.
        rank: The pod's number.
        overrides: Variables that win over the pod's. Without one, MASTER_ADDR is this machine.
        places: Folders that stand for more of the container's paths.

    Raises:
        UsageError: There is no such pod, or another one starts its processes.
    """
    found = list(objects)
    workers = _workers(found, rank)
    container = program(workers.pod)
    volumes = {volume["name"]: volume for volume in workers.pod["spec"].get("volumes", ())}
    mounts = [mount for mount in container.get("volumeMounts", ()) if not mount["mountPath"].startswith("/dev/")]
    here = {mount["mountPath"]: root / mount["mountPath"].lstrip("/") for mount in mounts} | dict(places or {})
    move = _mover(here)
    texts = {item["metadata"]["name"]: item["data"] for item in found if item["kind"] == "ConfigMap"}
    files: dict[Path, str] = {}
    folders = []
    for mount in mounts:
        place, config = here[mount["mountPath"]], volumes[mount["name"]].get("configMap")
        if config is None:
            folders.append(place)
        elif "subPath" in mount:
            files[place] = move(texts[config["name"]][mount["subPath"]])
        else:
            files |= {place / name: move(text) for name, text in texts[config["name"]].items()}
    environment, secrets = _environment(container, workers, rank)
    moved = {name: move(value) for name, value in environment.items()}
    if "MASTER_ADDR" in moved:
        moved["MASTER_ADDR"] = "127.0.0.1"
    argv = [move(_expanded(text, environment)) for text in (*container["command"], *container.get("args", ()))]
    return Execution(
        argv=tuple(argv),
        environment={**moved, _MARK: f"{root}#{rank}", **(overrides or {})},
        secrets=tuple(secrets),
        folders=tuple(folders),
        files=files,
        grace=float(workers.pod["spec"].get("terminationGracePeriodSeconds", 30)),
        root=root,
    )


def prepare(execution: Execution) -> None:
    """Make the folders and write the files; whatever else is there already stays."""
    for folder in (execution.root, *execution.folders):
        folder.mkdir(parents=True, exist_ok=True)
    for path, text in execution.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another pod of the run may share the root, and its bash reads its script while it runs.
        part = path.with_name(f".{path.name}.{os.getpid()}")
        part.write_text(text)
        part.replace(path)


def start(execution: Execution, image: Mapping[str, str], **streams: Any) -> subprocess.Popen[str]:
    """Start the container's first process, prepared before.

    Args:
        execution: What to start.
        image: The variables of the image, and the values of secrets by the same names.
        streams: Arguments of `subprocess.Popen` for its streams.

    Raises:
        ChartgenError: The value of a secret is missing.
    """
    if missing := [name for name in execution.secrets if name not in {**image, **execution.environment}]:
        hint = "set it in the environment of this command"
        raise ChartgenError(
            [Problem(f"{name} comes from a Secret, which this machine lacks", hint=hint) for name in missing]
        )
    path = f"{execution.root / 'bin'}{os.pathsep}{image.get('PATH', os.defpath)}"
    return subprocess.Popen(
        execution.argv,
        env={**image, "PATH": path, **execution.environment},
        cwd=execution.root,
        text=True,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        **streams,
    )


def run(execution: Execution, image: Mapping[str, str]) -> int:
    """Run the container to its end, with the output of this process, which must be in its main thread.

    SIGTERM and Ctrl-C send it SIGTERM. What is left after the grace period is killed, and so is whatever outlives its
    first process.

    Returns:
        Its exit code; 128 and the number of the signal that ended it.

    Raises:
        ChartgenError: The value of a secret is missing.
    """
    timers: list[threading.Timer] = []

    def stop(_number: int, _frame: object) -> None:
        process.terminate()
        timers.append(threading.Timer(execution.grace, kill, (execution,)))
        timers[-1].daemon = True
        timers[-1].start()

    with start(execution, image) as process:
        before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            code = process.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            for timer in timers:
                timer.cancel()
            kill(execution)
    return code if code >= 0 else 128 - code


def kill(execution: Execution) -> None:
    """Kill all processes of the container, also those whose parents are gone."""
    for pid in _processes(execution.environment[_MARK]):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _processes(mark: str) -> Iterator[int]:
    wanted = f"{_MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # ended, or another user's
            if wanted in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)


def _workers(objects: list[dict[str, Any]], rank: int) -> Workers:
    workers = find_workers(objects)
    if workers is None:
        raise UsageError("these objects start no program; render the chart of a target, not its setup chart")
    if workers.kind == "Volcano Job":
        raise UsageError(
            "mpirun starts the processes of a Volcano Job from another pod, by ssh; only other kinds run here"
        )
    if not 0 <= rank < workers.count:
        raise UsageError(f"there is no rank {rank}; the run has {workers.count} pods, counted from 0")
    return workers


def _mover(places: Mapping[str, Path]) -> Callable[[str], str]:
    """Make a function that replaces the container's paths, and what is below them, in a text."""
    names = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w./-])({names})(?![\w.-])")
    return lambda text: pattern.sub(lambda match: str(places[match[1]]), text)


def _environment(container: dict[str, Any], workers: Workers, rank: int) -> tuple[dict[str, str], list[str]]:
    """Give the container's variables, and the names of those that come from a Secret."""
    variables: dict[str, str] = {}
    secrets = []
    for entry in container.get("env", ()):
        name, source = entry["name"], entry.get("valueFrom", {})
        if "secretKeyRef" in source:
            secrets.append(name)
        elif "fieldRef" in source:
            variables[name] = _field(source["fieldRef"]["fieldPath"], workers, rank)
        else:
            variables[name] = _expanded(entry.get("value", ""), variables)
    return variables, secrets


def _field(path: str, workers: Workers, rank: int) -> str:
    """Give a field of the pod as it would be; a label that the chart does not set is the pod's number."""
    label = _LABEL.fullmatch(path)
    if label:
        return str(workers.pod["metadata"]["labels"].get(label[1], rank))
    return {"metadata.name": f"{workers.name}-{rank}", "spec.nodeName": os.uname().nodename}.get(path, "127.0.0.1")


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by a variable and `$$` by `$`; an unknown name stays."""
    return _REFERENCE.sub(lambda match: variables.get(match[1], match[0]) if match[1] else "$", text)
