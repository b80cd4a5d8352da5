"""`avoidNodes` and `--avoid-node`: no pod of the run on these nodes, whatever affinity the values have."""

from __future__ import annotations

import json

from rendered import pod, rendered
from userlib import chartgen

AVOID = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["bad-1", "bad-2"]}
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}
# No kubeconfig, and no pod around this process.
NOWHERE = {"KUBECONFIG": "/none", "KUBERNETES_SERVICE_HOST": None}
NAMED = {"key": "metadata.name", "operator": "In", "values": ["good"]}


def test_each_alternative_of_the_affinity_avoids_the_nodes() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = [{"weight": 1, "preference": {"matchExpressions": [ZONE]}}]
    own = {
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
        required: {"nodeSelectorTerms": [{"matchExpressions": [ZONE]}, {"matchFields": [NAMED]}]},
    }
    for affinity, terms in (
        ({}, [{"matchExpressions": [AVOID]}]),
        (
            {"nodeAffinity": own},
            [{"matchExpressions": [ZONE, AVOID]}, {"matchExpressions": [AVOID], "matchFields": [NAMED]}],
        ),
    ):
        spec = pod(rendered("avoidNodes={bad-1,bad-2}", json=(f"affinity={json.dumps(affinity)}",)))["spec"]
        found = spec["affinity"]["nodeAffinity"]
        assert found[required] == {"nodeSelectorTerms": terms}
        assert found.get("preferredDuringSchedulingIgnoredDuringExecution") == (preferred if affinity else None)
        assert spec["affinity"]["podAntiAffinity"], "the chart's own rule stays"


def test_the_option_adds_to_the_values_and_is_checked_like_them() -> None:
    """Before anything asks the cluster, which is not there."""
    options = ("--set", "avoidNodes={bad-1}", "--avoid-node", "bad-2", "--avoid-node", "Bad_3")
    done = chartgen("install", "onprem-p8000", "my-run", *options, env=NOWHERE)
    assert done.exit_code == 1
    assert "avoidNodes[2]" in done.stderr
    assert "avoidNodes[1]" not in done.stderr
