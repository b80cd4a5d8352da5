"""`auto`, and presets on other machines: a layout that passes every check is chosen, or the machines are too few."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pairs import TARGETS
from rendered import chart, target
from userlib import chartgen

from chartgen.checks import check, job_of
from chartgen.checks.automatic import Decision, decide, fitting_layouts
from chartgen.checks.layouts import layout_values, works
from chartgen.composer.library import open_library
from chartgen.composer.presets import preset_layers, presets
from chartgen.errors import ChartgenError
from chartgen.helm.values import Values, load_values

LAYOUT = ("parallelism.tensor", "parallelism.pipeline", "batch.micro")


def given(preset: str, name: str, *sets: str) -> Values:
    files = preset_layers(preset, name, open_library(()))
    return replace(load_values(files, set_values=sets), presets=len(files))


def decided(preset: str, name: str, *sets: str, before: Decision | None = None) -> Decision:
    return decide(chart(name=name), given(preset, name, *sets), before.values.data if before else None)


def test_auto_becomes_the_first_layout_of_fit() -> None:
    found = decided("llama3-70b", "gke-a4", "parallelism=auto,batch.micro=auto,recompute=auto")
    first = fitting_layouts(target("gke-a4"), given("llama3-70b", "gke-a4"))[0]
    assert found.change == first.values
    assert found.step_seconds == first.step_seconds


def test_what_is_not_auto_stays() -> None:
    found = decided("llama3-70b", "gke-a4", "batch.micro=auto,parallelism.tensor=8")
    assert set(found.change) == {"batch.micro"}
    assert found.values.data["parallelism"]["tensor"] == 8  # type: ignore[call-overload, index]


def test_values_with_auto_pass_check() -> None:
    values = given("llama3-70b", "gke-a4", "parallelism=auto,nodes=3,batch.global=96", "storage.data.from=pvc://a")
    assert not {found.rule for found in check(chart(name="gke-a4"), values)} & {"values-schema", "world-size"}


def test_a_preset_keeps_its_layout_where_that_passes() -> None:
    assert decided("llama3-70b", "gke-a4", "nodes=16").change == {}


def test_a_preset_takes_another_layout_on_machines_that_its_own_does_not_divide() -> None:
    found = decided("llama3-70b", "gke-a4", "nodes=1")
    job = job_of(chart(name="gke-a4"), found.values)
    assert found.change
    assert job
    assert works(job)


def test_sizes_of_the_user_are_never_replaced() -> None:
    assert decided("llama3-70b", "gke-a4", "nodes=1", "parallelism.tensor=2").change == {}


def test_a_values_file_of_the_user_is_no_preset() -> None:
    values = replace(given("llama3-70b", "gke-a4", "nodes=1"), presets=0)
    assert decide(chart(name="gke-a4"), values).change == {}


def test_a_run_that_is_too_small_names_the_machines_it_needs() -> None:
    with pytest.raises(ChartgenError, match=r"use at least 8 machines$"):
        decided("llama3.1-405b", "gke-a4", "nodes=1")


def test_an_upgrade_keeps_the_layout_of_the_release() -> None:
    first = decided("llama3-8b", "gke-a4", "parallelism=auto")
    other = replace(
        first,
        values=load_values(set_json=['parallelism={"tensor":8,"sequence":true}'], set_values=["batch.global=16/gpu"]),
    )
    own = replace(other, values=replace(other.values, data={**first.values.data, **other.values.data}))
    assert decided("llama3-8b", "gke-a4", "parallelism=auto", "steps=7", before=own).change["parallelism.tensor"] == 8
    assert (
        decided("llama3-8b", "gke-a4", "parallelism=auto", "nodes=4", before=own).change
        == decided("llama3-8b", "gke-a4", "parallelism=auto", "nodes=4").change
    )


def test_fit_writes_the_values_that_plain_helm_needs(tmp_path: Path) -> None:
    argv = ("gke-a4", "--preset", "llama3-70b", "--set", "nodes=4")
    layout = tmp_path / "layout.yaml"
    layout.write_text(chartgen("fit", *argv, "--output", "values").stdout)
    values = replace(load_values([layout]), presets=0)
    first = fitting_layouts(target("gke-a4"), given("llama3-70b", "gke-a4", "nodes=4"))[0]
    job = job_of(chart(name="gke-a4"), values)
    assert job
    assert {key: layout_values(job)[key] for key in LAYOUT} == {key: first.values[key] for key in LAYOUT}


def test_render_prints_what_was_chosen() -> None:
    sets = "nodes=2,parallelism=auto,storage.data.from=pvc://a,topology.mode=,checkpoint.enabled=false"
    ran = chartgen("check", "gke-a4", "--preset", "llama3-8b", "--set", sets)
    assert ran.exit_code == 0
    assert "parallelism: auto -> tensor" in ran.stderr


@pytest.mark.full
@pytest.mark.parametrize("preset", presets(open_library(())))
def test_every_preset_has_a_layout_on_every_target_or_is_too_small(preset: str) -> None:
    for name in TARGETS:
        for nodes in (1, 4, 16, 64):
            job, hints = None, []
            try:
                job = job_of(chart(name=name), decided(preset, name, f"nodes={nodes}").values)
            except ChartgenError as error:
                hints = [problem.hint for problem in error.problems]
            if hints:
                assert [hint.startswith("use ") for hint in hints] == [True]
                continue
            assert job
            # no formula covers adapters: the checks of their own layout report what does not divide
            assert preset == "llama2-70b-lora" or not job.trains or works(job)
