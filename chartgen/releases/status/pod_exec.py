"""Commands inside the pods of a run, through kubectl."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.kube import Cluster
from chartgen.programs import find_tool
from chartgen.releases.status.logs import find_sources
from chartgen.releases.status.members import Member

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chartgen.releases.helm_release import Place

_LARGEST = 32 << 20  # bytes of a command's output, like an answer of the API server
_PAUSE = 0.05  # seconds between two looks at it


def find_pod(cluster: Cluster, release: str, namespace: str, *, rank: int = 0, machine: str = "") -> Member:
    """Return the running pod of a rank, or the one on a machine.

    Raises:
        UsageError: The rank or machine does not exist.
        ChartgenError: The release has no pods, this one does not run, or two bear the labels of this rank.
    """
    sources = find_sources(cluster, release, namespace, rank="" if machine else str(rank), machine=machine)
    found = [source.member for source in sources if source.member.ranks] or [sources[0].member]
    running = [each for each in found if each.phase == "Running"]
    if len(running) > 1 and running[1].gpus and not machine:  # one may be another tenant's, with the run's labels
        names = " and ".join(each.name for each in running)
        raise ChartgenError(Problem(f"{names} both bear the labels of rank {rank}", hint="give --machine instead"))
    member = (running or found)[0]
    if member.phase != "Running":
        hint = f"`chartgen status {release}` shows why, `chartgen logs {release} --rank {rank}` what it printed"
        raise ChartgenError(Problem(f"pod {member.name} does not run: its phase is {member.phase}", hint=hint))
    return member


def exec_argv(place: Place, member: Member, command: Sequence[str], *, streams: str = "") -> list[str]:
    """Return the command line that runs a command in the program's container of a pod.

    Args:
        streams: Flags of kubectl for the streams, such as -i or -it.

    Raises:
        MissingToolError: kubectl is missing.
    """
    options = ["--namespace", place.namespace]
    if place.context:
        options += ["--context", place.context]
    flags = [streams] if streams else []
    return [str(_kubectl()), *options, "exec", *flags, member.name, "--container", member.container, "--", *command]


def run_in_pod(place: Place, member: Member, command: Sequence[str], *, seconds: float) -> str:
    """Return a command's output in a pod; MissingToolError: no kubectl. ChartgenError: it fails, or has no end."""
    argv, deadline = exec_argv(place, member, command), time.monotonic() + seconds
    with (
        TemporaryFile() as out,
        TemporaryFile() as errors,
        subprocess.Popen(argv, stdout=out, stderr=errors) as kubectl,
    ):
        while kubectl.poll() is None:
            too_much = max(os.fstat(each.fileno()).st_size for each in (out, errors)) > _LARGEST
            if too_much or time.monotonic() > deadline:
                kubectl.kill()
                why = f"prints more than {_LARGEST >> 20} MiB" if too_much else f"has not answered for {seconds:.0f} s"
                raise ChartgenError(f"pod {member.name} {why}")
            time.sleep(_PAUSE)
        text, told = (os.pread(each.fileno(), _LARGEST, 0).decode("utf-8", "replace") for each in (out, errors))
    if kubectl.returncode:
        raise ChartgenError(f"pod {member.name}: {' '.join(told.split())[-500:] or 'the command failed'}")
    return text


def _kubectl() -> Path:
    tool = find_tool("kubectl")
    if tool is None:
        hint = "install it, or get it with `chartgen engines get kubectl`"
        raise MissingToolError(Problem("kubectl is missing", hint=hint))
    return tool
