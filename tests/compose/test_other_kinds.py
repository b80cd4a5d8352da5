"""A target with another workload kind than its own: the fragments that are for it, and its setup chart."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from userlib import library

from chartgen.checks import check_values
from chartgen.composer.assembly import compose, compose_setup
from chartgen.composer.library import open_library
from chartgen.composer.origin import Composed, origin_of
from chartgen.composer.target import load_target
from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.values import load_values

SITES = Path(__file__).parents[2] / "values"


def queues(chart: Chart | None) -> set[str]:
    """The fragments for a queue that fill a chart."""
    assert chart is not None
    assert isinstance(chart.origin, Composed)
    return {each.name for each in chart.origin.target.fragments if "queue" in each.provides}


def test_the_queue_of_a_kind_takes_the_place_of_that_of_another(tmp_path: Path) -> None:
    target = load_target("oke-h100")
    assert queues(compose(target)) == queues(compose_setup(target)) == {"volcano-queue"}
    made, setup = compose(target, "mpijob"), compose_setup(target, "mpijob")
    assert queues(made) == queues(setup) == {"kueue"}
    assert setup is not None
    assert (made.name, setup.name) == ("oke-h100-mpijob", "oke-h100-mpijob-setup")
    assert "templates/clusterqueue.yaml" in setup.files
    made.write(tmp_path)
    found = origin_of(Chart.read(tmp_path))
    assert isinstance(found, Composed)
    assert {"kueue"} == {each.name for each in found.target.fragments if "queue" in each.provides}


def test_kinds_with_the_same_fragments_share_the_setup_chart() -> None:
    setup = compose_setup(load_target("eks-p5"), "mpijob")
    assert setup is not None
    assert setup.name == "eks-p5-setup"


def test_a_fragment_that_nothing_replaces_is_an_error_at_its_place_in_the_list(tmp_path: Path) -> None:
    folder = library(tmp_path, {"mine/volumes.yaml": "- name: a\n  emptyDir: {}\n"})
    (folder / "fragments/mine/fragment.yaml").write_text("description: d\nworkloads: [jobset]\nsources: [s]\n")
    target = load_target("box", open_library([folder]))
    with pytest.raises(
        ChartgenError, match=r"box.yaml:\d+:\d+: fragment 'mine' does not work with workload kind 'job'"
    ):
        compose(target, "job")


def test_the_setup_chart_takes_the_values_of_all_kinds_and_launchers() -> None:
    setup = compose_setup(load_target("eks-p5"), "rayjob")
    assert setup is not None
    assert setup.name == "eks-p5-setup"
    for launcher in ("nemo-rl", "megatron-lm"):
        assert (
            check_values(
                setup, load_values(set_values=[f"launcher={launcher}", "nodes=2", f"launchers.{launcher}.image=r/a:1"])
            )
            == []
        )


# of oke-h100, a fragment is for other kinds
TARGETS = [name for name in open_library(()).names("target") if name != "oke-h100"]


@pytest.mark.parametrize("name", TARGETS)
def test_one_site_file_is_for_the_charts_of_all_kinds(name: str) -> None:
    target = load_target(name)
    for kind, launcher in (("rayjob", "nemo-rl"), (None, "")):
        chart, sets = compose(target, kind), [f"launcher={launcher}"] if launcher else []
        others = json.dumps({"megatron-lm": {"image": "r/a:1"}, "nemo-rl": {"image": "r/b:1"}})
        values = load_values([SITES / f"site.{name}.example.yaml"], set_values=sets, set_json=[f"launchers={others}"])
        assert check_values(chart, values) == []
        (problem,) = check_values(chart, load_values(set_values=[*sets, "launchers.megatron-ml.image=a"]))
        assert "megatron-ml" in problem.message


def test_a_kind_without_a_program_of_the_target_names_those_that_it_starts(tmp_path: Path) -> None:
    with pytest.raises(ChartgenError, match=r"box.yaml:10:1: .* rayjob; list nemo-rl, or"):
        compose(load_target("box", open_library([library(tmp_path, {})])), "rayjob")
