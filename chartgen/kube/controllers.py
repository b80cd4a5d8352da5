"""The controllers of runs and queues: what each serves, where its installer puts it, and how to look at it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Controller:
    """A controller as its installer leaves it.

    Args:
        name: What people call it; its webhook configurations have it in their names.
        title: What it is called in a sentence.
        groups: API groups that it serves.
        namespace: Where its installer puts it.
        images: Names of the images of its Deployments, without registry and tag.
        install: Where its installation is described; empty for a part of Kubernetes.
    """

    name: str
    title: str
    groups: tuple[str, ...]
    namespace: str
    images: tuple[str, ...] = ()
    install: str = ""

    @property
    def command(self) -> str:
        """The command that shows whether it runs."""
        return f"kubectl get pods --namespace {self.namespace}"


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
    ("kubeflow.org",),
    "kubeflow",
    ("training-operator",),
    "https://github.com/kubeflow/trainer/tree/release-1.9#installation",
)
# Those that a team installs; the one of Jobs is Kubernetes' own.
INSTALLED = (JOBSET_CONTROLLER, KUEUE, VOLCANO, TRAINING_OPERATOR)
