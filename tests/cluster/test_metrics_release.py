"""`chartgen metrics RELEASE` on a real API server: values of the record and logs of the pods come together."""

from __future__ import annotations

from collections.abc import Iterator

import manifests
import pytest
import trainlogs as logs
from click.testing import CliRunner, Result
from kubelet import Kubelet, kubelet_of
from releases import RELEASE, Site, site, small
from trainlogs import NCCL_TESTS

from chartgen.checks.published import find_model
from chartgen.cli import main
from chartgen.kube import POD
from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines

pytestmark = pytest.mark.engines

RUN = logs.steps([20.0, 12.0, *[7.125, 7.25] * 14])
_, LLAMA = find_model("llama2-70b")
VALUES = {
    "nodes": 16,
    "gpusPerNode": 8,
    "model": {
        **{name: value for name, value in LLAMA.items() if name not in ("gated", "sequenceLength")},
        "family": "llama",
    },
    "sequenceLength": 4096,
    "batch": {"global": "2/gpu"},
    "precision": "bf16",
    "steps": 100,
}


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    names = create_machines(plane.cluster, [manifests.pool("roll", 2)])
    yield plane
    delete_machines(plane.cluster, names)


@pytest.fixture
def here(machines: ControlPlane, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Site]:
    monkeypatch.setenv("KUBECONFIG", str(machines.kubeconfig))
    namespace = request.node.name.replace("_", "-")[:60].rstrip("-")
    with site(machines.cluster, machines.kubeconfig, engines.require("helm"), namespace) as found:
        yield found


@pytest.fixture
def kubelet(machines: ControlPlane) -> Iterator[Kubelet]:
    with kubelet_of(machines, ["roll-0", "roll-1"]) as found:
        yield found


def metrics(here: Site, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["metrics", RELEASE, "-n", here.namespace, *arguments])


def test_a_release_is_read_in_the_cluster(here: Site, kubelet: Kubelet) -> None:
    here.roll("install", small(), VALUES)
    here.running()
    pods = sorted(pod["metadata"]["name"] for pod in here.pods())
    kubelet.write(pods[0], "[default0]:NCCL INFO nothing to see")
    kubelet.write(pods[1], *(f"[default7]:{line}" for line in logs.megatron(RUN).splitlines()))
    result = metrics(here, "--gpu", "h100")
    assert result.stderr == ""
    assert "speed       145,889 tokens/s, 1,139.8 tokens/s/GPU" in result.stdout
    assert "MFU         51.2 % of 989 TFLOPS, bf16 peak of h100-80gb, full attention" in result.stdout
    assert f'{{release="{RELEASE}"}} 30.0' in metrics(here, "--prometheus").stdout


def restart(here: Site, kubelet: Kubelet, pod: str, count: int) -> None:
    """What the kubelet does when it starts a container again in its pod."""
    kubelet.restart(pod)
    (status,) = (here.cluster.get(POD, pod, namespace=here.namespace) or {})["status"]["containerStatuses"]
    change = {"status": {"containerStatuses": [{**status, "restartCount": count}]}}
    here.cluster.patch(POD, pod, change, namespace=here.namespace, subresource="status")


def test_what_a_container_logged_before_it_was_restarted_counts_too(here: Site, kubelet: Kubelet) -> None:
    here.roll("install", small(), VALUES)
    here.running()
    pod = max(pod["metadata"]["name"] for pod in here.pods())
    kubelet.write(pod, "starting")
    for number in range(1, 31):
        kubelet.write(pod, logs.nemo2([(number, 8.0, 5.0)]).rstrip(), second=8.0 * number)
    kubelet.write(pod, "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", second=250)
    restart(here, kubelet, pod, 1)
    for number in range(21, 61):
        kubelet.write(pod, logs.nemo2([(number, 8.0, 5.0)]).rstrip(), second=340 + 8.0 * (number - 20))
    result = metrics(here, "--window", "all")
    assert "goodput     72.7 %: 60 steps that count, in 11 min" in result.stdout
    assert "\n            21       10          1 min 48 s  10 s       1 min 38 s  gpu-memory\n" in result.stdout
    assert "was restarted" not in result.stderr
    restart(here, kubelet, pod, 2)
    kubelet.write(pod, logs.nemo2([(61, 8.0, 5.0)]).rstrip(), second=760)
    again = metrics(here, "--window", "all")
    assert f"> {pod} was restarted 2 times: of the earlier starts, only the last has a log" in again.stderr
    assert "41 steps, 21 to 61 of 100" in again.stdout


def test_a_part_of_a_log_gives_no_figures(here: Site, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch) -> None:
    here.roll("install", small(), VALUES)
    here.running()
    first, last = sorted(pod["metadata"]["name"] for pod in here.pods())
    kubelet.write(last, *["much" * 250] * 200)  # so that the API server passes on what it has
    kubelet.write(last, *(f"[default7]:{line}" for line in logs.megatron(RUN).splitlines()))
    kubelet.stall(first, monkeypatch)
    other = metrics(here, "--gpu", "h100")
    assert "speed       145,889 tokens/s" in other.stdout
    assert f"> the log of pod {first} cannot be read: " in other.stderr
    kubelet.stall(last, monkeypatch)
    cut = metrics(here, "--gpu", "h100")
    assert (cut.exit_code, cut.stdout) == (3, "")


def test_a_release_that_tests_the_network(here: Site, kubelet: Kubelet) -> None:
    here.roll("install", small(), VALUES)
    here.running()
    pods = sorted(pod["metadata"]["name"] for pod in here.pods())
    kubelet.write(pods[0], *NCCL_TESTS.splitlines())
    kubelet.write(pods[1], "NCCL INFO nothing to see")
    result = metrics(here)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "collective     437.89 GB/s busbw at 2 GiB in place, 9,195 us\n"


def test_a_release_that_has_not_logged_a_step(here: Site, kubelet: Kubelet) -> None:
    here.roll("install", small(), VALUES)
    here.running()
    for pod in here.pods():
        kubelet.write(pod["metadata"]["name"], "starting")
    result = metrics(here)
    assert result.exit_code == 1
    assert "has no training steps in" in result.stderr


def test_a_release_that_does_not_exist(here: Site) -> None:
    result = metrics(here)
    problem = f"neither a file nor a release {RELEASE} in namespace {here.namespace}"
    assert result.stderr == f"error: {problem}; name a log, or another namespace with -n\n"
    assert result.exit_code == 1
