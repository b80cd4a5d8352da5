"""Run a rendered pod's program on this machine like the kubelet: with its variables, files, mounts, signals.

The machine replaces the image. Mounts become folders below a root, and their paths are replaced in variables,
arguments and the chart's own files; paths inside programs, all of /dev, and /tmp stay the machine's.
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
from chartgen.files import replace_file
from chartgen.kube.pod_inputs import config_map_texts, expand, find_volume, read_files, read_variables
from chartgen.kube.run_kinds import run_kinds
from chartgen.kube.workloads import Workers, find_workers, program_of, why_no_run
from chartgen.visible import counted

# This variable identifies the processes of a container, like its control group.
_MARK = "CHARTGEN_CONTAINER"
# Mounts that stay the machine's: devices, and /tmp, because values often name files of the machine below it.
_OF_THE_MACHINE = re.compile(r"/dev/|/tmp$")


@dataclass(frozen=True)
class Execution:
    """A container's program and its surroundings."""

    argv: tuple[str, ...]  # the container's command and arguments
    environment: dict[str, str]  # the variables of the pod, without those of the image
    outside: dict[str, str]  # variables from objects outside the chart -> that object, such as a Secret
    folders: tuple[Path, ...]  # the folders of the mounts
    files: dict[Path, str]  # the files of the chart's ConfigMaps
    lacking: dict[Path, str]  # mounts from objects outside the chart -> that object, such as `ConfigMap site`
    grace_period_seconds: float  # time between SIGTERM and SIGKILL
    root: Path  # the folder with all of these; programs in its `bin` override the machine's


def plan_execution(
    objects: Iterable[dict[str, Any]],
    root: Path,
    *,
    rank: int = 0,
    overrides: Mapping[str, str] | None = None,
    places: Mapping[str, Path] | None = None,
) -> Execution:
    """Return the program that the kubelet would run for a pod of a run.

    Args:
        root: The parent folder of the mounts; it need not exist.
        overrides: Variables that override the pod's. By default MASTER_ADDR is this machine.
        places: Folders that replace further paths of the container.

    Raises:
        UsageError: The pod does not exist, another pod starts its processes, or its program is unknown.
    """
    found = list(objects)
    workers = _workers(found, rank)
    container = program_of(workers.pod)
    if "command" not in container:
        raise UsageError(f"container {container['name']} has no command, and the image's own is not known here")
    mounts = [mount for mount in container.get("volumeMounts", ()) if not _OF_THE_MACHINE.match(mount["mountPath"])]
    here = {mount["mountPath"]: root / mount["mountPath"].lstrip("/") for mount in mounts} | dict(places or {})
    move = _mover(here)
    maps = config_map_texts(found)
    files: dict[Path, str] = {}
    lacking: dict[Path, str] = {}
    folders = []
    for mount in mounts:
        place, read = here[mount["mountPath"]], read_files(find_volume(workers.pod, mount["name"]), mount, maps)
        if read is None:
            folders.append(place)
        elif read.outside:
            lacking[place] = read.outside
        else:
            files |= {place / name: move(text) for name, text in read.texts.items()}
    variables = read_variables(container, workers, rank, maps)
    moved = {name: move(value) for name, value in variables.known.items()}
    if "MASTER_ADDR" in moved:
        moved["MASTER_ADDR"] = "127.0.0.1"
    argv = [move(expand(text, variables.known)) for text in (*container["command"], *container.get("args", ()))]
    return Execution(
        argv=tuple(argv),
        environment={**moved, _MARK: f"{root}#{rank}", **(overrides or {})},
        outside=variables.outside,
        folders=tuple(folders),
        files=files,
        lacking=lacking,
        grace_period_seconds=float(workers.pod["spec"].get("terminationGracePeriodSeconds", 30)),
        root=root,
    )


def prepare_pod(execution: Execution) -> None:
    """Make the folders and write the files; keep other existing files."""
    for folder in (execution.root, *execution.folders):
        folder.mkdir(parents=True, exist_ok=True)
    for path, text in execution.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        # Another pod of the run may share the root, and its running bash reads its script.
        replace_file(path, text)


def start_process(execution: Execution, image: Mapping[str, str], **streams: Any) -> subprocess.Popen[str]:
    """Start the first process of a prepared container.

    Args:
        image: The variables of the image, and those from objects outside the chart, by the same names.
        streams: Arguments of `subprocess.Popen` for its streams.

    Raises:
        ChartgenError: A variable or a mount from an object outside the chart is missing.
    """
    if missing := [*_missing(execution, image)]:
        raise ChartgenError(missing)
    path = f"{execution.root / 'bin'}{os.pathsep}{image.get('PATH', os.defpath)}"
    return subprocess.Popen(
        execution.argv,
        env={**image, "PATH": path, **execution.environment},
        cwd=execution.root,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        **streams,
    )


def _missing(execution: Execution, image: Mapping[str, str]) -> Iterator[Problem]:
    for name, source in execution.outside.items():
        if name not in image and name not in execution.environment:
            hint = "set it in the environment of this command"
            yield Problem(f"{name} comes from {source}, which this machine lacks", hint=hint)
    for place, source in execution.lacking.items():
        if not place.exists():
            yield Problem(f"comes from {source}, which the chart does not create", place, hint="put its files there")


def run(execution: Execution, image: Mapping[str, str]) -> int:
    """Run the container to its end, with the output of this process; call it from the main thread.

    SIGTERM, Ctrl-C and the end of the terminal send it SIGTERM; the last not under `nohup`. Processes that remain after
    the grace period, or that outlive the first process, are killed.

    Returns:
        Its exit code; 128 plus the number of the signal that ended it.

    Raises:
        ChartgenError: A variable or a mount is missing; see `start`.
    """
    timers: list[threading.Timer] = []

    def stop(_number: int, _frame: object) -> None:
        process.terminate()
        timers.append(threading.Timer(execution.grace_period_seconds, kill, (execution, process.pid)))
        timers[-1].daemon = True
        timers[-1].start()

    with start_process(execution, image) as process:
        numbers = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup ignores it
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            code = process.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            for timer in timers:
                timer.cancel()
            kill(execution, process.pid)
    return code if code >= 0 else 128 - code


def kill(execution: Execution, group: int = 0) -> None:
    """Kill all of a container, orphans too; without /proc, as on macOS, the group of its first process."""
    if group:
        with suppress(ProcessLookupError, PermissionError):  # macOS: not permitted when only zombies are left
            os.killpg(group, signal.SIGKILL)
    for pid in _processes(execution.environment[_MARK]):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _processes(mark: str) -> Iterator[int]:
    wanted = f"{_MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # ended, or owned by another user
            if wanted in path.read_bytes().split(b"\0"):
                yield int(path.parent.name)


def _workers(objects: list[dict[str, Any]], rank: int) -> Workers:
    workers = find_workers(objects)
    if workers is None:
        raise UsageError(why_no_run("the chart", objects))
    if starter := next((each.started_by for each in run_kinds() if each.name == workers.kind), ""):
        raise UsageError(
            f"{starter} starts the processes of a {workers.kind} from another pod; only other kinds run here"
        )
    if not 0 <= rank < workers.count:
        raise UsageError(f"no rank {rank}; the run has {counted(workers.count, 'pod')}, counted from 0")
    return workers


def _mover(places: Mapping[str, Path]) -> Callable[[str], str]:
    """Return a function that replaces the container's paths, and paths below them, in a text."""
    if not places:
        return str
    names = "|".join(map(re.escape, sorted(places, key=len, reverse=True)))
    pattern = re.compile(rf"(?<![\w./-])({names})(?![\w.-])")
    return lambda text: pattern.sub(lambda match: str(places[match[1]]), text)
