"""A run's NetworkPolicy on a real API server: it comes and goes with the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from releases import Site, site_of
from rendered import chart, rendered

from chartgen.kube import Kind
from chartgen.rehearsal.controlplane import ControlPlane

pytestmark = pytest.mark.engines
POLICY = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")


@pytest.fixture
def here(request: pytest.FixtureRequest, plane: ControlPlane) -> Iterator[Site]:
    with site_of(request, plane, "policy") as found:
        yield found


def policies(here: Site) -> list[str]:
    return [item["metadata"]["name"] for item in here.cluster.list(POLICY, namespace=here.namespace)]


@pytest.mark.threat(18)
def test_a_policy_comes_and_goes_with_its_run(here: Site) -> None:
    made = chart("job", "gke-a3high")
    here.roll("install", made, {"steps": 10})
    assert policies(here) == here.runs() != []
    first = here.runs()
    here.roll("upgrade", made, {"steps": 20})
    assert policies(here) == here.runs() != first
    second = here.runs()
    here.roll("upgrade", made, {"steps": 20, "run": {"networkPolicy": False}})
    assert (policies(here), here.runs()) == ([], second), "the run goes on"
    here.roll("upgrade", made, {"steps": 20})
    here.uninstall()
    assert policies(here) == []


def test_the_api_server_takes_that_of_ray(here: Site) -> None:
    for sets in ((), ("ray.operatorNamespace=ray-system",)):
        found = rendered("launchers.nemo-rl.model=/data/llama", *sets, files=(), workload="rayjob", name="eks-p5")
        (policy,) = (item for item in found if item["kind"] == "NetworkPolicy")
        here.cluster.apply([policy], namespace=here.namespace, dry_run=True)
