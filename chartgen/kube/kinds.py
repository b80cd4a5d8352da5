"""The kinds of the Kubernetes API that chartgen reads and writes by name."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

Object: TypeAlias = dict[str, Any]

INSTANCE_LABEL = "app.kubernetes.io/instance"  # on every object of a release: the release's name
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"  # on a run: the Kueue queue that it requests


class Kind(NamedTuple):
    """One kind of the API."""

    api_version: str  # its API version, such as v1 or batch/v1
    name: str
    plural: str  # its name in paths, such as pods
    namespaced: bool = True  # whether its objects belong to namespaces

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of an object, or of a collection (in all namespaces when `namespace` is empty)."""
        root = "apis" if "/" in self.api_version else "api"
        scope = f"namespaces/{namespace}" if self.namespaced and namespace else ""
        return "/".join(filter(None, (root, self.api_version, scope, self.plural, name, subresource)))


POD = Kind("v1", "Pod", "pods")
EVENT = Kind("v1", "Event", "events")
SECRET = Kind("v1", "Secret", "secrets")
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps")
LEASE = Kind("coordination.k8s.io/v1", "Lease", "leases")
NODE = Kind("v1", "Node", "nodes", namespaced=False)
CLAIM = Kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
STORAGE_CLASS = Kind("storage.k8s.io/v1", "StorageClass", "storageclasses", namespaced=False)
CSI_DRIVER = Kind("storage.k8s.io/v1", "CSIDriver", "csidrivers", namespaced=False)
NAMESPACE = Kind("v1", "Namespace", "namespaces", namespaced=False)
JOB = Kind("batch/v1", "Job", "jobs")
PYTORCHJOB = Kind("kubeflow.org/v1", "PyTorchJob", "pytorchjobs")
MPIJOB = Kind("kubeflow.org/v2beta1", "MPIJob", "mpijobs")
VOLCANO_JOB = Kind("batch.volcano.sh/v1alpha1", "Job", "jobs")
POD_GROUP = Kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups")
VOLCANO_QUEUE = Kind("scheduling.volcano.sh/v1beta1", "Queue", "queues", namespaced=False)
JOBSET = Kind("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")
TRAINJOB = Kind("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs")
RAYJOB = Kind("ray.io/v1", "RayJob", "rayjobs")
TRAINING_RUNTIME = Kind("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", "trainingruntimes")
WORKLOAD = Kind("kueue.x-k8s.io/v1beta2", "Workload", "workloads")
CRD = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
WORKLOAD_V1BETA1 = Kind("kueue.x-k8s.io/v1beta1", "Workload", "workloads")  # of Kueue before 0.15
LOCAL_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "LocalQueue", "localqueues")
CLUSTER_QUEUE = Kind("kueue.x-k8s.io/v1beta2", "ClusterQueue", "clusterqueues", namespaced=False)
