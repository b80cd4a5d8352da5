"""What a test of the network needs: GPUs that talk to each other, sizes that grow, a program that fits the start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from chartgen.checks.claim import Check, Claim
from chartgen.checks.job import Job

_OWN = "launchers.nccl-test"
_UNITS = {"": 0, "Ki": 10, "Mi": 20, "Gi": 30}
# Bytes of the largest number format.
_NUMBER = 4
# The fewest machines of which two pairs without a third one can differ.
_MACHINES = 3


def machines_to_measure(job: Job) -> Iterator[Claim]:
    """One GPU talks to nobody, and of two machines nobody can tell which one is slow."""
    if job.world == 1:
        yield Claim("nodes", "one GPU has no other to talk to", "use more GPUs, or more machines", ("gpusPerNode",))
    elif job.own["mode"] == "pairs" and job.nodes < _MACHINES:
        message = f"{job.nodes} machines make no two pairs to compare"
        yield Claim("nodes", message, f"use {_MACHINES} or more, or {_OWN}.mode sweep", (f"{_OWN}.mode",))


def sizes_of_messages(job: Job) -> Iterator[Claim]:
    """Sizes grow from the smallest to the largest, in which each GPU has a number of its own."""
    least, most = (_bytes(job.own[key]) for key in ("minBytes", "maxBytes"))
    if most < least:
        message = f"{job.own['maxBytes']} is less than minBytes {job.own['minBytes']}"
        yield Claim(f"{_OWN}.maxBytes", message, "swap them", (f"{_OWN}.minBytes",))
    if most < _NUMBER * job.world:
        message = f"{job.own['maxBytes']} has no number for each of {job.world} GPUs"
        yield Claim(f"{_OWN}.maxBytes", message, f"use {_NUMBER * job.world} or more", ("nodes",))


def floors_are_measured(job: Job) -> Iterator[Claim]:
    """A floor under a collective that nobody measures would say that all is well."""
    measured = [] if job.own["mode"] == "pairs" else job.own["operations"]
    for operation in sorted(set(job.own["minBusbw"]) - set(measured)):
        message = f"{operation} is not measured in a sweep of this run"
        yield Claim(f"{_OWN}.minBusbw.{operation}", message, "remove it, or change mode or operations")


def program_of_nccl_tests(job: Job) -> Iterator[Claim]:
    """A program of nccl-tests is made for MPI, and each measures one collective between all GPUs."""
    binary = job.own["binary"]
    if not binary:
        return
    if job.kind != "volcano-job":
        message = f"{binary} needs mpirun, which does not start the runs of this chart"
        yield Claim(f"{_OWN}.binary", message, "leave it empty, as PyTorch measures the same")
    if job.own["mode"] == "pairs":
        hint = "leave it empty for mode pairs"
        yield Claim(f"{_OWN}.binary", f"{binary} measures all GPUs together", hint, (f"{_OWN}.mode",))
    measures = PurePosixPath(binary).name.partition("_perf")[0]
    if job.own["operations"] != [measures]:
        message = f"{binary} measures nothing else than {measures}"
        yield Claim(f"{_OWN}.operations", message, f"use [{measures}]", (f"{_OWN}.binary",))


def _bytes(text: Any) -> int:
    number = str(text).rstrip("KMGi")
    return int(number) << _UNITS[str(text).removeprefix(number)]


_TEST = ("test",)
_NCCL_TESTS = "NVIDIA/nccl-tests v2.17.9, README.md"
MEASURING = (
    Check(machines_to_measure, "chartgen/library/launchers/nccl-test", tasks=_TEST),
    Check(sizes_of_messages, f"{_NCCL_TESTS}, Sizes to scan", tasks=_TEST),
    Check(floors_are_measured, "chartgen/library/launchers/nccl-test", tasks=_TEST),
    Check(program_of_nccl_tests, f"{_NCCL_TESTS}, MPI", tasks=_TEST),
)
