"""`chartgen new`: skeletons that build and lint clean, and never overwrite."""

from __future__ import annotations

from pathlib import Path

import pytest
from userlib import chartgen

FILES = {
    "target": {"targets/lab.yaml"},
    "fragment": {
        *("fragments/lab/fragment.yaml", "fragments/lab/container.yaml", "fragments/lab/rules.yaml"),
        *("fragments/lab/values.yaml", "fragments/lab/values.schema.json"),
    },
    "launcher": {"launchers/lab/launcher.yaml", "launchers/lab/container.yaml"},
    "workload": {"workloads/lab/workload.yaml", "workloads/lab/templates/_workload.tpl"},
}


@pytest.mark.parametrize("kind", FILES)
def test_a_skeleton_is_written_once(tmp_path: Path, kind: str) -> None:
    ours = tmp_path / "library"
    assert chartgen("new", kind, "lab", "--path", ours).exit_code == 0
    assert {str(path.relative_to(ours)) for path in ours.rglob("*.*")} == FILES[kind]
    for path in ours.rglob("*.*"):
        path.write_text("mine\n")
    again = chartgen("new", kind, "lab", "--path", ours)
    assert again.exit_code == 2
    assert f"there is already a {kind} 'lab'" in again.stderr
    assert {path.read_text() for path in ours.rglob("*.*")} == {"mine\n"}


@pytest.mark.parametrize(
    ("kind", "name"), [("target", "gke-a3mega"), ("fragment", "kueue"), ("launcher", "nemo-1"), ("workload", "job")]
)
def test_a_name_of_chartgens_own_is_taken(tmp_path: Path, kind: str, name: str) -> None:
    assert chartgen("new", kind, name, "--path", tmp_path / "library").exit_code == 2
    assert not (tmp_path / "library").exists()


@pytest.mark.parametrize("name", ["../lab", "/tmp/lab", "Lab", "a" * 60, "-x"])
def test_a_wrong_name_writes_nothing(tmp_path: Path, name: str) -> None:
    ran = chartgen("new", "fragment", "--path", tmp_path / "library", "--", name)
    assert ran.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_one_file_that_exists_keeps_the_others_away(tmp_path: Path) -> None:
    (tmp_path / "fragments" / "lab").mkdir(parents=True)
    (tmp_path / "fragments" / "lab" / "container.yaml").write_text("mine\n")
    assert chartgen("new", "fragment", "lab", "--path", tmp_path).exit_code == 2
    assert [path.name for path in (tmp_path / "fragments" / "lab").iterdir()] == ["container.yaml"]


@pytest.mark.helm
def test_all_together_build_and_lint_clean(tmp_path: Path) -> None:
    ours = tmp_path / "library"
    for kind, name in (("target", "lab"), ("fragment", "8-rails"), ("launcher", "our-train"), ("workload", "our-job")):
        assert chartgen("new", kind, name, "--path", ours).exit_code == 0
    target = ours / "targets" / "lab.yaml"
    text = target.read_text().replace("  - infiniband", "  - 8-rails\n  - infiniband", 1)
    target.write_text(text.replace("nccl-test]", "nccl-test, our-train]"))
    assert chartgen("build", "lab", "--path", ours, "-d", tmp_path / "charts").exit_code == 0
    run = ("--set", "launcher=our-train,nodes=2,own8Rails.example=x")
    ignored = ("--ignore", "memory-is-not-estimated,kinds-are-known")
    for values in ((), run, ("--workload", "our-job", *run)):
        ran = chartgen("lint", "lab", "--path", ours, "--no-cache", *ignored, *values)
        assert (ran.exit_code, ran.stdout) == (0, "no findings\n")
    ran = chartgen("check", "lab", "--path", ours, "--set", "own8Rails.example=x")
    assert "[example-of-8-rails]" in ran.stdout
