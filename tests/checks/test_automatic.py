"""`auto`, and presets on other machines: a layout that passes every check is chosen, or the machines are too few."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from pairs import TARGETS
from rendered import chart, target
from userlib import chartgen

from chartgen.checks import check, effective_values, job_of
from chartgen.checks.automatic import Decision, decide, fitting_layouts
from chartgen.checks.job import Job
from chartgen.checks.layouts import CHOICES, first_of, layout_values, layouts_of, works
from chartgen.checks.memory_fit import nested_values
from chartgen.checks.speed import budget_of, run_of_job, speed_of
from chartgen.composer.library import open_library
from chartgen.composer.presets import preset_layers, presets
from chartgen.errors import ChartgenError
from chartgen.estimator import Run, least_seconds, seconds_of
from chartgen.helm.values import Values, load_values

SITE = Path(__file__).parents[2] / "values" / "site.gke-a4.example.yaml"
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


def test_auto_never_turns_fsdp_on() -> None:
    words = ("launcher=megatron-bridge", "parallelism=auto", "batch.micro=auto", "recompute=auto")
    found = decided("llama3-70b", "gke-a4x", *words)
    every = fitting_layouts(target("gke-a4x"), given("llama3-70b", "gke-a4x", "launcher=megatron-bridge"))
    assert any(layout.sharded for layout in every)
    assert found.change == next(layout.values for layout in every if not layout.sharded)


def test_what_is_not_auto_stays() -> None:
    found = decided("llama3-70b", "gke-a4", "batch.micro=auto,parallelism.tensor=8")
    assert set(found.change) == {"batch.micro"}
    assert found.values.data["parallelism"]["tensor"] == 8  # type: ignore[call-overload, index]


def test_values_with_auto_pass_check() -> None:
    values = given("llama3-70b", "gke-a4", "parallelism=auto,nodes=3,batch.global=96", "storage.data.from=pvc://a")
    assert not {found.rule for found in check(chart(name="gke-a4"), values)} & {"values-schema", "world-size"}


def estimated(name: str, found: Decision) -> float:
    """Return the seconds of a step of values that were decided."""
    job = job_of(chart(name=name), found.values)
    assert job
    estimate = speed_of(job).estimate
    assert estimate
    return estimate.step_seconds.middle


@pytest.mark.parametrize(
    ("preset", "name"), [("llama3-70b", "gke-a4"), ("gpt3-175b", "gke-a3mega"), ("gpt-oss-120b", "gke-a4")]
)
def test_a_preset_takes_a_layout_that_is_far_faster_and_names_its_own(preset: str, name: str) -> None:
    found = decided(preset, name)
    own = decide(chart(name=name), replace(given(preset, name), presets=0))
    first = next(each for each in fitting_layouts(target(name), given(preset, name)) if not each.sharded)
    assert found.change == first.values
    assert estimated(name, found) * 1.1 < estimated(name, own)
    job = job_of(chart(name=name), own.values)
    assert job
    keep = f"parallelism.tensor={job.parallel('tensor')}"
    assert f"{estimated(name, own):.3g} s a step; --set {keep} keeps it)" in str(found)
    assert decided(preset, name, keep).change == {}
    # what was chosen is not chosen again
    assert decide(chart(name=name), found.values).change == {}


@pytest.mark.parametrize(
    ("preset", "name"), [("gpt3-5b", "gke-a3mega"), ("qwen3-235b", "gke-a4"), ("llama3-8b", "coreweave")]
)
def test_a_preset_keeps_its_layout_where_none_is_far_faster(preset: str, name: str) -> None:
    assert decided(preset, name).change == {}
    own = next(each for each in fitting_layouts(target(name), given(preset, name)) if each.own)
    first = fitting_layouts(target(name), given(preset, name))[0]
    assert (own.step_seconds or 0) <= 1.1 * (first.step_seconds or 0)


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


def test_a_run_that_saves_keeps_its_layout_on_other_machines() -> None:
    first = decided("llama3-70b", "gke-a4", *SAVES)
    assert first.change
    for nodes in (4, 16):
        kept = decided("llama3-70b", "gke-a4", *SAVES, f"nodes={nodes}", before=first)
        assert kept.change == first.change
    assert decided("llama3-70b", "gke-a4", *SAVES, "nodes=1", before=first).change != first.change


def test_a_release_with_the_layout_of_its_preset_keeps_that() -> None:
    own = decided("llama3-70b", "gke-a4", "parallelism.tensor=4")
    assert decided("llama3-70b", "gke-a4").change
    assert decided("llama3-70b", "gke-a4", before=own).change == {}


SAVES = ("checkpoint.enabled=true", "storage.outputs.from=pvc://results", "steps=100000")
INTERVAL, GRACE = "checkpoint.interval", "run.gracePeriodSeconds"


def saving(name: str, *sets: str, preset: str = "llama3-70b", before: Decision | None = None) -> dict[str, object]:
    """Return what is chosen of how a run saves."""
    return dict(decided(preset, name, *SAVES, *sets, before=before).saving)


def test_a_run_that_saves_gets_an_interval_that_loses_an_hour_at_most() -> None:
    for nodes in (8, 64, 512):
        values = decided("llama3-70b", "gke-a4", *SAVES, f"nodes={nodes}", "batch.global=4096").values
        job = job_of(chart(name="gke-a4"), values)
        assert job
        estimate = speed_of(job).estimate
        assert estimate
        assert int(job.values["checkpoint"]["interval"]) * estimate.step_seconds.high <= 3600
        assert "interval-within-an-hour" not in {each.rule for each in check(chart(name="gke-a4"), values)}


def test_more_machines_save_more_often() -> None:
    def seconds(nodes: int) -> float:
        job = job_of(chart(name="gke-a4"), decided("llama3-8b", "gke-a4", *SAVES, f"nodes={nodes}").values)
        assert job
        estimate = speed_of(job).estimate
        assert estimate
        return int(job.values["checkpoint"]["interval"]) * estimate.step_seconds.middle

    assert seconds(1024) < seconds(256) < seconds(8)


def test_what_the_user_sets_or_no_estimate_covers_stays() -> None:
    assert saving("gke-a4", "checkpoint.interval=7") == {}
    assert saving("gke-a4", "steps=50", "nodes=8") == {INTERVAL: 50}
    assert decided("llama3-70b", "gke-a4", "nodes=8").saving == {}
    own = ("launcher=torchrun", "launchers.torchrun.program=/opt/train.py", "launchers.torchrun.image=example.com/a:1")
    assert saving("gke-a4", *own) == {}


def test_the_interval_follows_from_the_time_of_a_save_once_it_is_measured() -> None:
    """Young's formula: four times the time of a save, twice the interval."""
    more = (*SAVES, "nodes=512", "batch.global=4096")
    found = [decided("llama3-70b", "gke-a4", *more, f"checkpoint.saveSeconds={each}").saving for each in (2, 8)]
    assert 1.9 < int(str(found[1][INTERVAL])) / int(str(found[0][INTERVAL])) < 2.1


def test_the_interval_of_a_preset_is_shortened_where_more_machines_fail_more_often() -> None:
    def found(nodes: int, *sets: str) -> object:
        more = (*SAVES, f"nodes={nodes}", "batch.global=8/gpu", "parallelism=auto", *sets)
        return decided("megatron-gpt-310.1b", "gke-a4", *more).saving.get(INTERVAL)

    assert found(16) is None
    assert 1 <= int(str(found(1024))) < 50
    assert found(1024, "checkpoint.interval=100") is None
    first = decided("gpt3-5b", "gke-a3mega")
    assert INTERVAL not in decided("gpt3-5b", "gke-a3mega", before=first).saving


def test_a_large_state_gets_the_time_to_be_saved() -> None:
    found = decided("megatron-gpt-145.6b", "gke-a4", "nodes=8", "storage.outputs.from=pvc://results", "run.again=a")
    assert set(found.saving) == {GRACE}
    assert int(str(found.saving[GRACE])) > 120
    assert "grace-for-a-checkpoint" not in {each.rule for each in check(chart(name="gke-a4"), found.values)}
    assert GRACE not in decided("megatron-gpt-145.6b", "gke-a4", "nodes=8", "run.gracePeriodSeconds=121").saving


LARGE = (*SAVES, "nodes=16", "batch.global=2048")


@pytest.mark.parametrize(
    ("name", "sets", "expected"),
    [
        ("gke-a4", (), 1),
        ("gke-a4", ("nodes=8",), None),
        ("gke-a4", ("checkpoint.enabled=false",), None),
        ("gke-a4", ("run.spares=0",), None),
        ("gke-a4", ("run.spares=2",), None),
        ("gke-a4", ("launchers.megatron-bridge.image=nvcr.io/nvidia/nemo:26.04",), None),
        ("gke-a4", ("queue.name=a,topology.sliceSize=16",), None),
        ("gke-a4x", (), None),
        ("aks-nd", ("machineType=Standard_ND128isr_NDR_GB200_v6",), 1),
        ("aks-nd", ("machineType=Standard_ND128isr_NDR_GB200_v6,nodes=18,batch.global=2304",), None),
    ],
    ids=["large", "small", "benchmark", "none", "own", "image", "slices", "unknown racks", "room", "full rack"],
)
def test_a_large_run_that_saves_gets_a_spare_where_it_can(
    name: str, sets: tuple[str, ...], expected: int | None
) -> None:
    found = decide(chart("jobset", name), given("qwen3-235b", name, *LARGE, *sets))
    assert found.saving.get("run.spares") == expected
    job = job_of(chart("jobset", name), found.values)
    assert job
    assert "spares" not in " ".join(each.rule for each in check(chart("jobset", name), found.values))
    budget = budget_of(speed_of(job), 1e12)
    assert budget
    machines = budget.gpu_hours.middle / (budget.days.middle * 24 * job.gpus_per_node)
    assert machines == pytest.approx(job.nodes + int(job.values["run"]["spares"]))


@pytest.mark.parametrize("workload", ["pytorchjob", "trainjob"])
def test_kinds_without_spares_get_none(workload: str) -> None:
    assert "run.spares" not in decide(chart(workload, "gke-a4"), given("qwen3-235b", "gke-a4", *LARGE)).saving


def test_an_upgrade_keeps_the_interval_of_the_release_and_chooses_none_for_one_without() -> None:
    first = decided("llama3-70b", "gke-a4", *SAVES, "nodes=8")
    other = replace(first, values=replace(first.values, data={**first.values.data, "checkpoint": {"enabled": True}}))
    kept = replace(first, values=replace(first.values, data=nested_values({INTERVAL: 123}, first.values.data)))
    assert saving("gke-a4", "nodes=8", before=kept) == {INTERVAL: 123}
    assert saving("gke-a4", "nodes=8", before=other) == {}
    assert saving("gke-a4", "nodes=16", before=kept) == saving("gke-a4", "nodes=16")


def test_fit_writes_the_values_that_plain_helm_needs(tmp_path: Path) -> None:
    argv = ("gke-a4", "--preset", "llama3-70b", "--set", "nodes=4")
    layout = tmp_path / "layout.yaml"
    layout.write_text(chartgen("fit", *argv, "--output", "values").stdout)
    values = replace(load_values([layout]), presets=0)
    first = fitting_layouts(target("gke-a4"), given("llama3-70b", "gke-a4", "nodes=4"))[0]
    job = job_of(chart(name="gke-a4"), values)
    assert job
    assert {key: layout_values(job)[key] for key in LAYOUT} == {key: first.values[key] for key in LAYOUT}


@pytest.mark.helm
def test_plan_writes_all_values_so_that_helm_alone_renders_the_same(tmp_path: Path) -> None:
    words = ("--preset", "llama3-70b", "-f", str(SITE), "--set", "nodes=4,parallelism=auto,batch.micro=auto")
    planned = chartgen("plan", "gke-a4", *words)
    (tmp_path / "run.yaml").write_text(planned.stdout)
    assert " estimate " in planned.stderr
    assert ": auto -> tensor" in planned.stderr
    # a release of plain Helm has no preset, and nothing is chosen
    alone = chartgen("render", "gke-a4", "run", "-f", str(tmp_path / "run.yaml"))
    assert (alone.exit_code, "auto" in alone.stderr) == (0, False)
    assert alone.stdout == chartgen("render", "gke-a4", "run", *words).stdout


def test_render_prints_what_was_chosen() -> None:
    sets = "nodes=2,parallelism=auto,storage.data.from=pvc://a,topology.mode=,checkpoint.enabled=false"
    ran = chartgen("check", "gke-a4", "--preset", "llama3-8b", "--set", sets)
    assert ran.exit_code == 0
    assert "parallelism: auto -> tensor" in ran.stderr


def layouts(preset: str, name: str, nodes: int) -> tuple[Job, Job]:
    """Return a preset's job on a number of machines twice, so that neither knows what the other has found."""
    values = effective_values(chart(name=name), given(preset, name, f"nodes={nodes}"))
    return Job(values, target(name)), Job(values, target(name))


# GPT with and without room, experts, recipes of experts and state spaces, a recipe with sizes that do not divide.
@pytest.mark.parametrize(
    ("preset", "name", "nodes"),
    [
        *product(("gpt3-175b", "llama3-70b", "mixtral-8x7b", "megatron-gpt-76.1b"), ("gke-a3mega", "gke-a4x"), (4, 16)),
        *product(("deepseek-v3", "qwen3-235b", "nemotron-3-super", "llama3.1-405b"), ("gke-a4",), (16, 64)),
    ],
)
@pytest.mark.parametrize("choices", [CHOICES, ("batch.micro",), ("parallelism", "recompute")], ids=len)
def test_the_first_layout_is_found_without_judging_all(
    preset: str, name: str, nodes: int, choices: tuple[str, ...]
) -> None:
    job, other = layouts(preset, name, nodes)
    every, first = layouts_of(job, choices), first_of(other, choices)
    if not every or not every[0].fits:
        assert first is None
        return
    assert first
    assert (first.values, first.step_seconds, first.own) == (every[0].values, every[0].step_seconds, every[0].own)


def test_no_step_takes_less_than_the_least() -> None:
    job, _ = layouts("mixtral-8x7b", "gke-a4", 32)
    runs = [run_of_job(layout.job) for layout in layouts_of(job)]
    runs += [run_of_job(layout.job) for layout in layouts_of(layouts("deepseek-v3", "gke-a4", 32)[0])]
    assert len(runs) > 1000
    for run in runs:
        assert isinstance(run, Run)
        least, seconds = least_seconds(run), seconds_of(run)
        assert least
        assert seconds
        assert least(run.pipeline, run.virtual) <= seconds * (1 + 1e-9)


@pytest.mark.parametrize("given", ["nodes=100000", "model.layers=720720", "model.layers=1000000"])
def test_what_is_larger_than_any_cluster_or_model_is_not_searched(given: str) -> None:
    with pytest.raises(ChartgenError, match="131,072 GPUs and 4,096 layers"):
        decided("gpt3-175b", "gke-a3mega", "parallelism=auto", given)
    assert decided("gpt3-175b", "gke-a3mega", given).change == {}


def test_fit_ends_however_many_gpus_it_is_asked_for() -> None:
    ran = chartgen("fit", "gke-a3mega", "--preset", "gpt3-175b", "--gpus", f"{10**30}")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr.count("at most 131,072 GPUs") == 1


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
