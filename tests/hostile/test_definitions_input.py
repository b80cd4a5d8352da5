"""Policies, workload kinds and figures with values that no user means: a message with its place, and no request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML
from userlib import chartgen, write

from chartgen.composer.library import open_library
from chartgen.composer.policies import load_policies
from chartgen.errors import ChartgenError
from chartgen.kube.run_kinds import kind_of, run_kinds
from chartgen.releases.status.members import member

RUN: dict[str, Any] = {
    "plural": "wrappers",
    "pods": [{"each": "components", "count": ["replicas"]}],
    "ends": {"phase": ["phase"], "failed": ["Failed"], "restarts": "count", "most": "most"},
}


def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: dict[str, Any], **changes: Any) -> None:
    """Name a folder with one workload kind."""
    data = {"api": "x.example.com/v1", "kind": "Wrapper", **kind, "run": {**RUN, **changes}}
    write(tmp_path, {"workloads/own/workload.yaml": ""})
    with (tmp_path / "workloads/own/workload.yaml").open("w") as file:
        YAML(typ="safe").dump(data, file)
    monkeypatch.setenv("CHARTGEN_PATH", str(tmp_path))


@pytest.mark.threat(14)
@pytest.mark.parametrize("hours", [".inf", ".nan", "1.0e308", "0"])
def test_a_policy_with_endless_hours_is_refused_with_its_place(hours: str, tmp_path: Path) -> None:
    write(tmp_path, {"policies/acme.yaml": f"description: d\nlimits:\n  hours: {hours}\n"})
    with pytest.raises(ChartgenError) as caught:
        load_policies(open_library([tmp_path]))
    assert [problem.line for problem in caught.value.problems] == [3]


@pytest.mark.threat(5)
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ({}, {"plural": "../../../api/v1/namespaces/a/secrets"}),
        ({"api": "../api/v1"}, {}),
        ({"kind": "a/b"}, {}),
        ({}, {"ends": {"finished": 5}}),
        ({}, {"ends": {"phase": [1]}}),
        ({}, {"ends": {"restarts": {}}}),
        ({}, {"ends": {"__init__": "x"}}),
        ({}, {"pods": [{"each": 5}]}),
        ({}, {"pods": [{"count": [5]}]}),
        ({}, {"pods": ["x"]}),
        ({}, {"podOwner": [1]}),
    ],
)
def test_a_kind_whose_names_are_no_names_is_refused(
    kind: dict[str, Any], changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named(tmp_path, monkeypatch, kind, **changes)
    with pytest.raises(ChartgenError, match=r"own/workload\.yaml"):
        run_kinds()


@pytest.mark.threat(16)
@pytest.mark.parametrize("value", ["abc", "1.5", {}, [], None, 1e300])
def test_a_count_of_another_type_ends_no_command(value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named(tmp_path, monkeypatch, {})
    status = {"phase": "Failed", "count": value}
    run = {"apiVersion": "x.example.com/v1", "kind": "Wrapper", "spec": {"most": value}, "status": status}
    end = kind_of(run).status
    assert (end.count_restarts(run), end.most_restarts(run), end.failure(run)) == (0, 0, "Failed")


@pytest.mark.threat(16)
@pytest.mark.parametrize("count", ["x", "-1", "1" + "0" * 18, "9" * 4000])
def test_a_pod_of_another_tenant_has_no_ranks_without_end(count: str) -> None:
    """Its label is the run's; the ranks of `logs --rank` are looked for in each pod."""
    container = {"name": "a", "env": [{"name": "GPUS_PER_NODE", "value": count}], "resources": {"limits": {"x/gpu": 8}}}
    labels = {"batch.kubernetes.io/job-completion-index": "0"}
    with pytest.raises(ValueError, match=r"pod|int"):
        member({"metadata": {"name": "a", "uid": "a", "labels": labels}, "spec": {"containers": [container]}})


@pytest.mark.parametrize("options", [["--price", "nan"], ["--price", "inf"], ["--tokens", "9" * 400]])
def test_a_figure_that_json_cannot_express_is_refused(options: list[str]) -> None:
    assert chartgen("estimate", "gke-a4", "--preset", "llama3-70b", "--tokens", "1T", *options).exit_code == 2


def test_a_programs_name_is_one_path(tmp_path: Path) -> None:
    """A comma would name another key with a file of its own, a backslash another file."""
    for name in ("a,nodes=b.py", "a\\b.py"):
        (tmp_path / name).write_text("print()")
        ran = chartgen("check", "gke-a4", "--program-file", tmp_path / name)
        assert ran.exit_code == 1, name  # such a name is no key of a ConfigMap
