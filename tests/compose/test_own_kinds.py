"""Workload kinds of a user's folder: their charts, pods and ends, without Python."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest
from own_kinds import own_kinds
from rendered import NAMESPACE, RELEASE
from userlib import chartgen, composed

from chartgen.errors import ChartgenError
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values
from chartgen.helm.yaml import values_text
from chartgen.kube.run_kinds import queue_of, run_kind
from chartgen.kube.workloads import expected_pods, find_workers, is_suspended, outcome, why_no_run
from chartgen.linter import lint
from chartgen.releases.history import RevisionRecord
from chartgen.releases.plan import plan_release
from chartgen.releases.status.readout import why_absent

SETS = ("nodes=3", "launcher=nemo-1", "launchers.nemo-1.image=example.com/nemo:1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return own_kinds(tmp_path)


@pytest.mark.helm
def test_an_appwrapper_has_the_pods_and_the_queue_of_its_job(folder: Path) -> None:
    values = load_values(set_values=[*SETS, "queue.name=team"])
    found = objects(render(composed(folder, workload="appwrapper"), RELEASE, NAMESPACE, values.data))
    (run,) = (item for item in found if item["kind"] == "AppWrapper")
    assert (expected_pods(run), queue_of(run), outcome(run)) == (3, "team", "")
    workers = find_workers(found)
    assert workers is not None
    assert (workers.kind, workers.count) == ("AppWrapper", 3)
    assert is_suspended({**run, "spec": {**run["spec"], "suspend": True}})
    ends = [outcome({**run, "status": {"phase": phase}}) for phase in ("Running", "Succeeded", "Failed")]
    assert ends == ["", "finished", "failed"]
    kind = run_kind(run)
    assert kind is not None
    assert kind.status.count_restarts({**run, "status": {"resettingCount": 2}}) == 2


@pytest.mark.helm
@pytest.mark.parametrize("kind", ["appwrapper", "leader-worker-set"])
def test_a_kind_is_linted_and_planned(folder: Path, kind: str) -> None:
    chart, values = composed(folder, workload=kind), load_values(set_values=[*SETS, "queue.name=team"])
    assert [each for each in lint(chart, {}) if each.severity == "error"] == []
    plan = plan_release(chart, values, RELEASE, NAMESPACE)
    assert (plan.nodes, plan.gpus, plan.queue) == (3, 24, "team")


@pytest.mark.helm
def test_a_plan_names_the_kind_of_a_run_that_nothing_here_describes(folder: Path) -> None:
    chart, values = composed(folder, workload="appwrapper"), load_values(set_values=SETS)
    found = objects(render(chart, RELEASE, NAMESPACE, values.data))
    strange = [{**each, "kind": "Other"} if each["kind"] == "AppWrapper" else each for each in found]
    assert "Other (workload.codeflare.dev/v1beta2)" in why_no_run("the chart", strange).message
    manifest = "---\n".join(map(values_text, strange))
    record = RevisionRecord("a", "b", 1, "deployed", "", datetime.now(timezone.utc), "box", "1", manifest=manifest)
    assert "Other (workload.codeflare.dev/v1beta2)" in why_absent("a", "b", record).message
    others = [each for each in strange if each["kind"] != "Other"]
    assert "unchecked" not in why_no_run("the chart", others).message


def test_a_kind_that_names_no_queue_is_refused_by_its_fragment(folder: Path) -> None:
    file = folder / "workloads" / "appwrapper" / "workload.yaml"
    file.write_text(file.read_text().replace("queues: [kueue]\n", ""))
    with pytest.raises(ChartgenError, match=r"box.yaml:\d+:\d+: fragment 'kueue' does not work with.*'appwrapper'"):
        composed(folder, workload="appwrapper")


def test_a_wrong_key_of_a_run_has_its_place(folder: Path) -> None:
    file = folder / "workloads" / "appwrapper" / "workload.yaml"
    file.write_text(file.read_text().replace("plural:", "plurall:"))
    result = chartgen("build", "box", "--workload", "appwrapper", "--path", folder)
    assert result.exit_code == 1
    assert "workload.yaml:9:" in result.output
