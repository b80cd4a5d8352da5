"""Hand-written manifests for tests: a machine type, a queue with topology, a JobSet and a Job that ask for GPUs."""

from __future__ import annotations

from typing import Any

from chartgen.rehearsal.machines import NodePool

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
    """A JobSet of workers with 8 GPUs each; the rest is what `_job` takes."""
    queue_name = pod.pop("queue", "")
    labels = {
        "app.kubernetes.io/instance": release,
        **({"kueue.x-k8s.io/queue-name": queue_name} if queue_name else {}),
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": release, "namespace": namespace, "labels": labels},
        "spec": {
            "replicatedJobs": [{"name": "workers", "replicas": 1, "template": {"spec": _job(release, workers, **pod)}}],
            "failurePolicy": {"maxRestarts": 0},
        },
    }


def job(release: str, workers: int, *, namespace: str = "default", **pod: Any) -> dict[str, Any]:
    """A plain Indexed Job of workers."""
    queue_name = pod.pop("queue", "")
    labels = {
        "app.kubernetes.io/instance": release,
        **({"kueue.x-k8s.io/queue-name": queue_name} if queue_name else {}),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": release, "namespace": namespace, "labels": labels},
        "spec": _job(release, workers, **pod),
    }


def _job(
    release: str, workers: int, *, gpus: int = 8, pool: str = "", mounts: bool = False, topology: bool = False
) -> dict[str, Any]:
    resources = {"cpu": "8", "memory": "64Gi", **({GPU: str(gpus)} if gpus else {})}
    container: dict[str, Any] = {
        "name": "train",
        "image": "registry.invalid/train:1",
        "env": [
            {"name": "HEAD", "value": f"{release}-workers-0-0"},
            {"name": "MASTER_ADDR", "value": f"$(HEAD).{release}"},
            {"name": "MASTER_PORT", "value": "29500"},
        ],
        "resources": {"requests": resources, "limits": resources},
    }
    if mounts:
        container["volumeMounts"] = [{"name": "nowhere", "mountPath": "/data"}]
    spec: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    spec["tolerations"] = [{"key": GPU, "operator": "Equal", "value": "present", "effect": "NoSchedule"}]
    if pool:
        spec["nodeSelector"] = {"pool": pool}
    metadata: dict[str, Any] = {"labels": {"app.kubernetes.io/instance": release}}
    if topology:
        metadata["annotations"] = {"kueue.x-k8s.io/podset-unconstrained-topology": "true"}
    return {
        "completionMode": "Indexed",
        "completions": workers,
        "parallelism": workers,
        "backoffLimit": 0,
        "template": {"metadata": metadata, "spec": spec},
    }


def _kueue(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}, "spec": spec}
