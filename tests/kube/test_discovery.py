"""The kinds that a server knows: all groups in one request, and group by group where a server lists only these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from stranger_api import VERSION, answering

from chartgen.kube import JOB, JOBSET, MPIJOB, POD
from chartgen.kube.connection import connect

JOBSETS = {"resource": "jobsets", "responseKind": {"kind": "JobSet"}, "scope": "Namespaced"}
WHOLE = {
    "apis": {
        "items": [
            {
                "metadata": {"name": "batch"},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [{"resource": "jobs", "responseKind": {"kind": "Job"}, "scope": "Namespaced"}],
                    }
                ],
            },
            {
                "metadata": {"name": "jobset.x-k8s.io"},
                "versions": [{"version": "v1alpha2", "resources": [JOBSETS, {"resource": "x", "responseKind": None}]}],
            },
            {"metadata": {"name": "kubeflow.org"}, "versions": [{"version": "v2beta1", "freshness": "Stale"}]},
        ]
    }
}
ONE_BY_ONE = {
    "apis": {"groups": [{"name": "batch"}]},
    "apis/batch/v1": {"resources": [{"kind": "Job", "name": "jobs", "namespaced": True}]},
    "apis/jobset.x-k8s.io/v1alpha2": {"resources": [{"kind": "JobSet", "name": "jobsets", "namespaced": True}]},
}


@pytest.mark.parametrize(("answers", "requests"), [(WHOLE, 1), (ONE_BY_ONE, 4)])
def test_the_server_is_asked_for_all_groups_at_once(answers: dict[str, Any], requests: int, tmp_path: Path) -> None:
    texts = VERSION | {path: json.dumps(answer).encode() for path, answer in answers.items()}
    asked: list[str] = []

    def answer(path: str) -> bytes | None:
        asked.append(path)
        return texts.get(path)

    with answering(tmp_path, answer) as file, connect(kubeconfig=file) as cluster:
        for _ in range(2):
            assert [cluster.serves(kind) for kind in (POD, JOBSET, JOB, MPIJOB)] == [True, True, True, False]
        assert cluster.kind(JOBSET.api_version, "JobSet") == JOBSET
    assert asked[0] == "version"
    assert len(asked) == 1 + requests
