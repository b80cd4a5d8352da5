"""What storage, queues and workload kinds ask of a job: the rules of the fragments and skeletons of its chart."""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.checks.claim import Check, Claim
from chartgen.checks.compatibility import fragments
from chartgen.checks.divisors import divisors
from chartgen.checks.job import Job

_UNMOUNTED = ("pvc://", "nfs://", "disk://", "memory://")
# Programs that write to /data; all others only read there.
_WRITERS = ("download", "megatron-preprocess", "mlperf-preprocess", "pile-dataprep")
# Kinds whose object is all that tells Helm that a run is over; a JobSet stays when its Jobs are gone.
_LAST_WITNESS = ("job", "pytorchjob", "volcano-job")
_TAKEN_PORTS = {22: "the machine's own ssh server", 6002: "the rendezvous of the ranks"}


def mount_options_of_the_storage(job: Job) -> Iterator[Claim]:
    """Of a pod's own volumes only buckets take mount options; those of a claim stand in its PersistentVolume."""
    for role, store in job.values["storage"].items():
        if store["mountOptions"] and store["from"].startswith(_UNMOUNTED):
            message = f"{store['mountOptions']}, and {store['from']} takes none"
            yield Claim(f"storage.{role}.mountOptions", message, "remove it", (f"storage.{role}.from",))


def written_storage_is_writable(job: Job) -> Iterator[Claim]:
    """Every run writes its logs and checkpoints, and programs that prepare data also write the data."""
    storage = job.values["storage"]
    if storage["outputs"]["readOnly"]:
        yield Claim("storage.outputs.readOnly", "true, and runs write there", "use false")
    if storage["data"]["readOnly"] and job.launcher.name in _WRITERS:
        message = f"true, and {job.launcher.name} writes there"
        yield Claim("storage.data.readOnly", message, "use false for this release", ("launcher",))


def topology_needs_a_queue(job: Job) -> Iterator[Claim]:
    """Kueue places the pods of a topology request, and sees only jobs that name a queue."""
    mode = job.values.get("topology", {}).get("mode")
    if "kueue" in fragments(job) and mode and not job.values["queue"]["name"]:
        message = f"{mode}, and no queue that places the pods"
        yield Claim("topology.mode", message, 'give queue.name, or use ""', ("queue.name",))


def flex_start_needs_a_deadline(job: Job) -> Iterator[Claim]:
    """Flex Start asks for machines through a queue, and for a time that it must know beforehand."""
    if "kueue" not in fragments(job) or not job.values["queue"]["flexStart"]:
        return
    given = {"queue.name": job.values["queue"]["name"], "run.deadlineSeconds": job.values["run"].get("deadlineSeconds")}
    lacks = " and ".join(key for key, value in given.items() if not value)
    if lacks:
        yield Claim("queue.flexStart", f"true without {lacks}", f"give {lacks}, or use false", tuple(given))


def slices_of_the_machines(job: Job) -> Iterator[Claim]:
    """Kueue places a run in slices of equal size."""
    size = job.values.get("topology", {}).get("sliceSize")
    if "kueue" in fragments(job) and size and job.nodes % size:
        near = divisors(job.nodes, size)[-1]
        yield Claim("topology.sliceSize", f"{size} does not divide {job.nodes} machines", f"use {near}", ("nodes",))


def restarts_of_the_kind(job: Job) -> Iterator[Claim]:
    """A Job starts pods again one by one; ranks that lost one of them need all to start again, as a JobSet does."""
    restarts = job.values["run"]["maxRestarts"]
    if job.kind == "job" and restarts:
        message = f"{restarts}, and a Job cannot restart as a whole"
        yield Claim("run.maxRestarts", message, "use 0, or a chart of workload kind jobset")


def finished_runs_stay(job: Job) -> Iterator[Claim]:
    """A finished Job that was removed looks like one that was never made: the next upgrade would start it again."""
    seconds = job.values["run"].get("ttlSecondsAfterFinished")
    if job.kind in _LAST_WITNESS and seconds:
        message = f"{seconds} s after its end the run is gone, and the next upgrade starts it again"
        yield Claim("run.ttlSecondsAfterFinished", message, "use null")


def processes_of_mpirun(job: Job) -> Iterator[Claim]:
    """Volcano's kind starts programs with mpirun, one process for each GPU."""
    if job.kind == "volcano-job" and job.launcher.processes != "gpu":
        message = f"{job.launcher.name} does not start one process for each GPU, as mpirun does"
        yield Claim("launcher", message, "use another launcher, or a chart of another workload kind")


def port_of_the_ssh_servers(job: Job) -> Iterator[Claim]:
    """Under the host network, the ssh servers of a run share a machine's ports with all that it runs already."""
    port = int(job.values["mpi"]["sshPort"]) if job.kind == "volcano-job" else 0
    if port in _TAKEN_PORTS:
        yield Claim("mpi.sshPort", f"{port} is taken by {_TAKEN_PORTS[port]}", "use another one, such as 2222")


_RUNS, _ALL = ("train", "test"), ("train", "data", "test")
_KUEUE = "kueue.sigs.k8s.io, Topology Aware Scheduling"
PLATFORM = (
    Check(mount_options_of_the_storage, "kubernetes.io, Persistent Volumes, mount options", tasks=_ALL),
    Check(written_storage_is_writable, "chartgen's start script, which makes the run's directories", tasks=_ALL),
    Check(topology_needs_a_queue, _KUEUE, tasks=_RUNS),
    Check(flex_start_needs_a_deadline, "cloud.google.com, GKE, flex-start with Kueue", tasks=_RUNS),
    Check(slices_of_the_machines, _KUEUE, tasks=_RUNS),
    Check(restarts_of_the_kind, "kubernetes.io, Jobs; jobset.sigs.k8s.io, failure policies", tasks=_ALL),
    Check(finished_runs_stay, "kubernetes.io, Automatic Cleanup for Finished Jobs", tasks=_ALL),
    Check(processes_of_mpirun, "volcano.sh, plugins for distributed training, mpi", tasks=_RUNS),
    Check(port_of_the_ssh_servers, "chartgen/library/workloads/volcano-job, its start script", tasks=_ALL),
)
