"""Hand-written manifests for tests: a machine type, a queue with topology, and runs of each kind that ask for GPUs."""

from __future__ import annotations

from typing import Any

from chartgen.kube.node_pool import NodePool

GPU = "nvidia.com/gpu"


def pool(name: str, count: int) -> NodePool:
    """Machines with 8 GPUs each, of one type that no other test uses."""
    capacity = {GPU: "8", "cpu": "208", "memory": "1872Gi", "ephemeral-storage": "6Ti", "pods": "110"}
    taint = {"key": GPU, "value": "present", "effect": "NoSchedule"}
    return NodePool(name, count, capacity, labels={"pool": name}, taints=[taint])


def queue(name: str, gpus: int, namespace: str = "default", *, topology: bool = True) -> list[dict[str, Any]]:
    """ResourceFlavor, Topology, ClusterQueue and LocalQueue for a pool's machines."""
    toleration = {"key": GPU, "operator": "Equal", "value": "present", "effect": "NoSchedule"}
    flavor: dict[str, Any] = {"nodeLabels": {"pool": name}, "tolerations": [toleration]}
    quota = [("cpu", "100000"), ("memory", "1000Ti"), (GPU, str(gpus))]
    group = {
        "coveredResources": [resource for resource, _ in quota],
        "flavors": [{"name": name, "resources": [{"name": r, "nominalQuota": q} for r, q in quota]}],
    }
    objects = [
        _kueue("ResourceFlavor", name, flavor),
        _kueue("ClusterQueue", name, {"namespaceSelector": {}, "resourceGroups": [group]}),
        {**_kueue("LocalQueue", name, {"clusterQueue": name}), "metadata": {"name": name, "namespace": namespace}},
    ]
    if topology:
        flavor["topologyName"] = name
        objects.insert(0, _kueue("Topology", name, {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}))
    return objects


def jobset(release: str, workers: int, *, namespace: str = "default", **pod: Any) -> dict[str, Any]:
    """A JobSet of workers with 8 GPUs each; the rest is what `_pod` takes."""
    metadata = _metadata(release, namespace, pod.pop("queue", ""))
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {
            "replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": _job(release, workers, **pod)}}],
            "failurePolicy": {"maxRestarts": 0},
        },
    }


def job(release: str, workers: int, *, namespace: str = "default", **pod: Any) -> dict[str, Any]:
    """A plain Indexed Job of workers."""
    metadata = _metadata(release, namespace, pod.pop("queue", ""))
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": _job(release, workers, **pod)}


def pytorchjob(release: str, workers: int, *, namespace: str = "default", **pod: Any) -> dict[str, Any]:
    """A PyTorchJob of workers only."""
    metadata = _metadata(release, namespace, pod.pop("queue", ""))
    worker = {"replicas": workers, "restartPolicy": "Never", "template": _pod(release, container="pytorch", **pod)}
    spec = {"runPolicy": {"backoffLimit": 0, "cleanPodPolicy": "Running"}, "pytorchReplicaSpecs": {"Worker": worker}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": metadata, "spec": spec}


def mpijob(release: str, workers: int, *, namespace: str = "default", **pod: Any) -> dict[str, Any]:
    """An MPIJob: a master without GPUs, made when the workers are ready, and workers."""
    metadata = _metadata(release, namespace, pod.pop("queue", ""))
    templates = {"Launcher": _pod(release, gpus=0), "Worker": _pod(release, **pod)}
    for each in templates.values():
        del each["spec"]["restartPolicy"]  # of which the operator warns
    counts = {"Launcher": 1, "Worker": workers}
    spec = {
        "slotsPerWorker": 8,
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": 0},
        "mpiReplicaSpecs": {
            name: {"replicas": counts[name], "restartPolicy": "Never", "template": template}
            for name, template in templates.items()
        },
    }
    return {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": metadata, "spec": spec}


def training_runtime(release: str, workers: int, *, namespace: str = "default", **pod: Any) -> dict[str, Any]:
    """What a TrainJob of the same name runs: a JobSet."""
    made = jobset(release, workers, namespace=namespace, **pod)
    template = {"metadata": {"labels": made["metadata"]["labels"]}, "spec": made["spec"]}
    spec = {"template": template}
    return {**_trainer("TrainingRuntime", spec), "metadata": made["metadata"]}


def trainjob(release: str, *, namespace: str = "default", queue: str = "") -> dict[str, Any]:
    """A TrainJob, of which its runtime says everything else."""
    reference = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": release}
    return {**_trainer("TrainJob", {"runtimeRef": reference}), "metadata": _metadata(release, namespace, queue)}


def _trainer(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": kind, "spec": spec}


def volcano_job(
    release: str, workers: int, *, queue: str = "default", restarts: int = 0, namespace: str = "default", **pod: Any
) -> dict[str, Any]:
    """A Volcano Job: a master without GPUs that ends the job, and workers; a failed pod restarts or fails all of it."""
    ends = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    tasks = [
        {"name": "master", "replicas": 1, "policies": ends, "template": _pod(release, gpus=0)},
        {"name": "worker", "replicas": workers, "template": _pod(release, **pod)},
    ]
    spec = {
        "schedulerName": "volcano",
        "queue": queue,
        "minAvailable": workers + 1,
        "maxRetry": restarts + 1,
        "plugins": {"ssh": [], "svc": []},
        "policies": [{"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"}],
        # What the webhook would write into them; a list of tasks is applied as a whole.
        "tasks": [{**task, "minAvailable": task["replicas"], "maxRetry": 1} for task in tasks],
    }
    metadata = _metadata(release, namespace, "")
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def volcano_queue(name: str, gpus: int) -> dict[str, Any]:
    """A Volcano Queue."""
    spec = {"weight": 1, "reclaimable": False, "capability": {GPU: str(gpus)}}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": spec,
    }


def _metadata(release: str, namespace: str, queue_name: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/instance": release}
    if queue_name:
        labels["kueue.x-k8s.io/queue-name"] = queue_name
    return {"name": release, "namespace": namespace, "labels": labels}


def _job(release: str, workers: int, **pod: Any) -> dict[str, Any]:
    return {
        "completionMode": "Indexed",
        "completions": workers,
        "parallelism": workers,
        "backoffLimit": 0,
        "template": _pod(release, **pod),
    }


def _pod(
    release: str,
    *,
    container: str = "train",
    gpus: int = 8,
    pool: str = "",
    mounts: bool = False,
    topology: bool = False,
    account: str = "",
) -> dict[str, Any]:
    resources = {"cpu": "8", "memory": "64Gi", **({GPU: str(gpus)} if gpus else {})}
    program: dict[str, Any] = {
        "name": container,
        "image": "registry.invalid/train:1",
        "env": [
            {"name": "HEAD", "value": f"{release}-workers-0-0"},
            {"name": "MASTER_ADDR", "value": f"$(HEAD).{release}"},
            {"name": "MASTER_PORT", "value": "29500"},
        ],
        "resources": {"requests": resources, "limits": resources},
    }
    if mounts:
        program["volumeMounts"] = [{"name": "nowhere", "mountPath": "/data"}]
    spec: dict[str, Any] = {"restartPolicy": "Never", "containers": [program]}
    spec["tolerations"] = [{"key": GPU, "operator": "Equal", "value": "present", "effect": "NoSchedule"}]
    if pool:
        spec["nodeSelector"] = {"pool": pool}
    if account:
        spec["serviceAccountName"] = account
    metadata: dict[str, Any] = {"labels": {"app.kubernetes.io/instance": release}}
    if topology:
        metadata["annotations"] = {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}
    return {"metadata": metadata, "spec": spec}


def _kueue(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}
