"""A persistent control plane to try helm, kubectl and chartgen by hand."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from chartgen.errors import Problem, UsageError, did_you_mean
from chartgen.files import replace_file
from chartgen.kube.node_pool import NodePool
from chartgen.programs import Progress, cache_dir
from chartgen.rehearsal import engines
from chartgen.rehearsal.controllers import populated_plane
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.folders import cache_lock, is_alive
from chartgen.rehearsal.processes import end_detached
from chartgen.rehearsal.simulated_nodes import count_machines

# A kubeconfig without a cluster; a missing file would lead to the cluster of the surrounding pod.
NOWHERE = Path(__file__).parent.parent / "data" / "no-sandbox.yaml"
_PROGRAMS = ("helm", "kubectl")  # programs for users of a sandbox, beside chartgen
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


@dataclass(frozen=True)
class Sandbox:
    """A running sandbox."""

    name: str  # its name
    kubeconfig: Path  # the file for KUBECONFIG or --kubeconfig
    server: str  # address of its API server
    folder: Path  # its files and logs; removed by `down`
    pid: int  # its supervisor's process id
    controllers: tuple[str, ...]  # its controllers
    machines: int  # number of simulated machines that count; see `NodePool`
    started: str  # start time


def up(
    name: str,
    *,
    machines: Iterable[NodePool] = (),
    controllers: Iterable[str] = (),
    device_classes: tuple[str, ...] = (),
    setup: Callable[[ControlPlane], None] | None = None,
    progress: Progress | None = None,
) -> Sandbox:
    """Start a sandbox that runs until `down`; remove it completely when a step fails.

    Args:
        name: Lower-case letters, digits and dashes.
        machines: Simulated machines.
        controllers: Names for `start_controllers`.
        device_classes: Device classes that Kueue counts, besides the usual ones.
        setup: Called last, to create queues and similar objects.

    Raises:
        UsageError: The name is not valid, or taken by a running sandbox.
        MissingToolError: An engine is missing or does not start.
        ClusterError: A setup object is rejected.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(Problem(f"invalid sandbox name {name!r}", hint="use lower-case letters, digits and dashes"))
    wanted, pools = tuple(controllers), list(machines)
    with cache_lock(_folder(), name):
        if _read(_state(name)):
            hint = f"use it, or end it with `chartgen sandbox down {name}`"
            raise UsageError(Problem(f"sandbox {name!r} is already running", hint=hint))
        with populated_plane(pools, wanted, device_classes, progress) as plane:
            if setup:
                setup(plane)
            sandbox = Sandbox(
                name=name,
                kubeconfig=plane.kubeconfig,
                server=plane.server,
                folder=plane.folder,
                pid=plane.processes.pid,
                controllers=wanted,
                machines=count_machines(pools),
                started=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            )
            replace_file(_state(name), json.dumps(asdict(sandbox), default=str, indent=1))
            plane.detach()
    return sandbox


def down(name: str) -> Sandbox:
    """End a sandbox and remove its files; raise UsageError if none of that name runs."""
    with cache_lock(_folder(), name):
        sandbox = find_sandbox(name)
        end_detached(sandbox.folder, sandbox.pid)
        _state(name).unlink(missing_ok=True)
    return sandbox


def find_sandbox(name: str) -> Sandbox:
    """Return a running sandbox; raise UsageError if none of that name runs."""
    sandbox = _read(_state(name))
    if sandbox is None:
        hint = did_you_mean(name, [sandbox.name for sandbox in list_sandboxes()])
        raise UsageError(Problem(f"no sandbox named {name!r} is running", hint=hint))
    return sandbox


def environment(name: str) -> dict[str, str]:
    """Return a sandbox's variables: KUBECONFIG, and PATH when it lacks a program; raise UsageError if none runs."""
    variables = {"KUBECONFIG": str(find_sandbox(name).kubeconfig)}
    found = [path for program in _PROGRAMS if (path := engines.find_engine(program))]
    folders = [str(path.parent) for path in found if shutil.which(path.name) != str(path)]
    if folders:
        variables["PATH"] = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    return variables


def missing_programs() -> list[str]:
    """Return the programs among helm and kubectl that are neither on PATH nor built."""
    return [program for program in _PROGRAMS if engines.find_engine(program) is None]


def list_sandboxes() -> list[Sandbox]:
    """Return the running sandboxes, by name."""
    found = (_read(path) for path in sorted(_folder().glob("*.json")))
    return [sandbox for sandbox in found if sandbox is not None]


def _folder() -> Path:
    return cache_dir() / "sandboxes"


def _state(name: str) -> Path:
    return _folder() / f"{name}.json"


def _read(path: Path) -> Sandbox | None:
    """Read a state file; remove it if its sandbox has ended."""
    try:
        data: dict[str, Any] = json.loads(path.read_text("utf-8"))
        data.update(kubeconfig=Path(data["kubeconfig"]), folder=Path(data["folder"]))
        sandbox = Sandbox(**{**data, "controllers": tuple(data["controllers"])})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        path.unlink(missing_ok=True)  # from another version of chartgen, or truncated
        return None
    if is_alive(sandbox.folder):
        return sandbox
    path.unlink(missing_ok=True)
    return None
