"""The controllers of runs and queues: their API groups, their namespaces, and the commands that inspect them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Controller:
    """A controller as its installer sets it up."""

    name: str  # its usual name, which is also part of the names of its webhook configurations
    title: str
    groups: tuple[str, ...]  # API groups that it serves, with the version of a group that it shares
    namespace: str  # the namespace that its installer uses
    images: tuple[str, ...] = ()  # names of the images of its Deployments, without registry and tag
    install: str = ""  # address of its installation guide; empty for a part of Kubernetes
    through: Controller | None = None  # the controller whose objects it makes of its own; None = it makes pods or Jobs
    since: str = ""  # its first version that runs the charts; empty = any that serves its groups

    def serves(self, api_version: str) -> bool:
        """Report whether it serves an API version, such as kubeflow.org/v2beta1."""
        return api_version in self.groups or group_of(api_version) in self.groups

    @property
    def command(self) -> str:
        """Return the command that shows whether it runs."""
        return f"kubectl get pods --namespace {self.namespace}"


def group_of(api_version: str) -> str:
    """Return the API group of an API version; empty for the core group."""
    return api_version.rpartition("/")[0]


JOB_CONTROLLER = Controller("Job", "kube-controller-manager", ("batch",), "kube-system")
KUEUE = Controller(
    "Kueue", "Kueue", ("kueue.x-k8s.io",), "kueue-system", ("kueue",), "https://kueue.sigs.k8s.io/docs/installation/"
)
JOBSET_CONTROLLER = Controller(
    "JobSet",
    "the JobSet controller",
    ("jobset.x-k8s.io",),
    "jobset-system",
    ("jobset",),
    "https://jobset.sigs.k8s.io/docs/installation/",
)
VOLCANO = Controller(
    "Volcano",
    "Volcano's controller",
    ("batch.volcano.sh", "scheduling.volcano.sh"),
    "volcano-system",
    ("vc-controller-manager", "vc-scheduler", "vc-webhook-manager"),
    "https://volcano.sh/en/docs/installation/",
)
TRAINING_OPERATOR = Controller(
    "training-operator",
    "the training operator",
    ("kubeflow.org/v1",),
    "kubeflow",
    ("training-operator",),
    "https://github.com/kubeflow/trainer/tree/release-1.9#installation",
)
MPI_OPERATOR = Controller(
    "mpi-operator",
    "the MPI operator",
    ("kubeflow.org/v2beta1",),
    "mpi-operator",
    ("mpi-operator",),
    "https://github.com/kubeflow/mpi-operator#installation",
)
TRAINER = Controller(
    "trainer",
    "Kubeflow Trainer",
    ("trainer.kubeflow.org",),
    "kubeflow-system",
    ("trainer-controller-manager",),
    "https://trainer.kubeflow.org/en/latest/operator-guides/installation.html",
    JOBSET_CONTROLLER,
    "2.2",  # kubeflow/trainer v2.2.1, runtimePatches, where Kueue 0.19 writes
)
KUBERAY = Controller(
    "kuberay",
    "KubeRay's operator",
    ("ray.io",),
    "default",
    ("operator",),
    "https://docs.ray.io/en/latest/cluster/kubernetes/getting-started/kuberay-operator-installation.html",
    since="1.4",  # ray-project/kuberay ray-operator v1.4.2, apis/ray/v1; older ones were not read
)
# Controllers that a team installs; the Job controller is part of Kubernetes.
INSTALLED = (JOBSET_CONTROLLER, KUEUE, VOLCANO, TRAINING_OPERATOR, MPI_OPERATOR, TRAINER, KUBERAY)
