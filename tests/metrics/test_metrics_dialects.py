"""Programs that write as known ones do, but not quite: each file of tests/data/logs is one form that was misread once.

The forms are those of genuine logs (tests/metrics/test_corpus.py). All are written by hand but automodel.log.
"""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest
import trainlogs as logs

from chartgen.metrics.read.log import read_logs
from chartgen.metrics.report_data import RunFigures, Wanted, read_out

LOGS = Path(__file__).parents[1] / "data" / "logs"


def figures(name: str, run: int | None = None, **facts: object) -> RunFigures:
    log = read_logs([str(LOGS / name)])
    return read_out(log, Wanted(window="all", facts=[("the options", facts)], run=run))


@pytest.mark.parametrize(
    ("name", "seconds", "losses"),
    [
        ("megatron-seconds.log", [20.6, 20.7, 20.8], [1.99, 1.98, 1.97]),
        ("megatron-deepspeed.log", [4.01, 4.02, 4.03], [10.9, 10.8, 10.7]),
        ("megatron-tgs.log", [32.001, 32.002, 32.003], [5.9, 5.8, 5.7]),
        ("nemo-2-speed.log", [16.0, 16.0, 16.0], [7.0, 6.875, 6.75]),
    ],
)
def test_steps_are_those_of_the_log(name: str, seconds: list[float], losses: list[float]) -> None:
    track = read_logs([str(LOGS / name)]).track
    assert [*track.columns["seconds"]] == pytest.approx(seconds)
    assert [*track.columns["loss"]] == pytest.approx(losses)


def test_the_own_count_of_a_fork() -> None:
    assert figures("megatron-seconds.log").speed.logged_tflops == pytest.approx(152.25, abs=0.01)
    found = figures("megatron-tgs.log")
    assert found.speed.tokens_per_gpu == pytest.approx(512, rel=1e-3)
    assert (found.facts.get("sequenceLength"), found.facts.get("gpus")) == (8192, 48)


def test_the_world_of_deepspeed_is_not_that_of_megatron_but_its_batch_is() -> None:
    found = figures("megatron-deepspeed.log")
    assert (found.facts.get("gpus"), found.facts.get("batch")) == (48, 96)
    assert found.facts.get("vocabularySize") == 50688
    assert found.speed.tokens_per_gpu == pytest.approx(96 * 2048 / 4.02 / 48)
    assert found.speed.tflops is not None
    assert [(each.step, each.value) for each in found.evaluations] == [(3, 9.25)]


def test_bars_with_numbers_in_short_and_nan_point_0() -> None:
    found = figures("nemo-bars.log")
    assert [*found.log.track.numbers] == [2000, 2001, 2002]
    assert found.odd == {"loss": (2001,)}
    assert [(each.step, each.value) for each in found.evaluations] == [(2000, 2.8), (2002, 2.75)]
    assert found.times is not None
    assert found.times.median == 1.875


def test_bars_without_times_tell_no_speed_and_that_is_said() -> None:
    found = figures("nemo-bars-without-times.log", batch=512, sequenceLength=4096, gpus=64)
    assert (len(found.log.track), found.times, found.speed.tokens) == (3, None, None)
    assert found.loss is not None
    assert found.loss.last == 12.25
    assert any("neither step times nor a speed" in notice.message for notice in found.notices)


def test_a_speed_that_is_logged_tells_the_gpus() -> None:
    found = figures("nemo-2-speed.log", sequenceLength=4096)
    assert found.speed.own_tokens == 4096
    assert found.facts.get("gpus") == 128 * 4096 / 16 / 4096
    assert found.log.track.when[1] - found.log.track.when[0] == 60


def test_automodel_as_two_gpus_wrote_it() -> None:
    """The log of tests/gpu/test_gpu_automodel.py: AutoModel 0.7.0 on two H200, micro batch 16 of 2048 tokens."""
    found = figures("automodel.log", batch=32, sequenceLength=2048, gpus=2)
    assert [*found.log.track.numbers] == [*range(60)]
    assert found.loss is not None
    assert (found.loss.first, found.loss.last) == (10.7832, 6.9331)
    speeds = [float(each) for each in re.findall(r"\(([\d.]+)/gpu", (LOGS / "automodel.log").read_text())]
    assert found.speed.own_tokens == pytest.approx(statistics.harmonic_mean(speeds))
    assert found.memory == pytest.approx(64.69 * 1.073741824)


def test_torchtitan_in_colours() -> None:
    found = figures("torchtitan.log")
    assert [*found.log.track.numbers] == [1, 2, 3, 4, 5]
    assert [*found.log.track.columns["tokens"]] == [5100, 5200, 5300, 5400, 5500]
    assert found.derived is not None
    assert found.derived.seconds == pytest.approx(3)
    assert found.memory == pytest.approx(19.45 * 1.073741824)
    assert [(each.step, each.value) for each in found.evaluations] == [(5, 9.125)]
    assert found.speed.logged_tflops == pytest.approx(56.37)


def test_stages_of_a_pipeline_that_do_not_know_the_loss_do_not_count(tmp_path: Path) -> None:
    """All but the last stage log minus the number of their copies; from rank 0 the log begins with them."""
    line = (
        "[rank{}]:[titan] 2026-09-04 10:00:0{},000 - root - INFO - step:  {}  loss: {:8.5f}  grad_norm:  1.2000  "
        "memory: 40.00GiB(28.63%)  tps: 5,000  tflops: 290.00  mfu: 29.32%\n"
    )
    steps = ((rank, step, -4.0 if rank < 8 else 9.0 - step) for step in (1, 2, 3) for rank in (0, 1, 8))
    (tmp_path / "run.log").write_text("".join(line.format(rank, step, step, loss) for rank, step, loss in steps))
    track = read_logs([str(tmp_path / "run.log")]).track
    assert [*track.numbers] == [1, 2, 3]
    assert [*track.columns["loss"]] == [8, 7, 6]


def test_four_cells_of_a_notebook_are_four_runs() -> None:
    for run in (1, 2, 3, 4):
        found = figures("notebook.log", run=run)
        assert len(found.log.track) == 4
        assert found.times is not None
        assert found.times.shortest == run
        assert found.timeline.restarts == ()


def test_a_run_that_begins_when_all_steps_are_done_is_another_one(tmp_path: Path) -> None:
    whole = [logs.nemo2(logs.steps([float(run)] * 10, first=0), total=10) for run in (2, 3)]
    (tmp_path / "run.log").write_text("".join(whole))
    found = read_out(read_logs([str(tmp_path / "run.log")]), Wanted(window="all"))
    assert found.times is not None
    assert (found.times.mean, found.timeline.steps, found.timeline.restarts) == (3.0, 10, ())


def test_nccl_tests_with_errors_in_place_of_counts() -> None:
    rows = read_logs([str(LOGS / "nccl-old.log")]).bandwidths
    assert [(row.operation, row.test, row.busbw) for row in rows if row.place == "out"] == [
        ("all_reduce", 1, 2.5),
        ("all_reduce", 1, 2.75),
        ("all_reduce", 2, 4.5),
        ("all_reduce", 2, 4.25),
    ]
    assert [row.wrong for row in rows] == [0] * 7 + [3]


def nemo_rl(epoch: int, step: int, of: int, loss: float, *more: str) -> str:
    """The lines of a step as sft.py of NeMo RL prints them."""
    opened = f"\n{'=' * 25} Epoch {epoch}/2 {'=' * 25}\n" if step == 1 else ""
    return "\n".join(
        (
            f"{opened}\n{'=' * 25} Step {step}/{of} {'=' * 25}",
            "▶ Preparing batch...",
            "▶ Taking a training step...",
            *more,
            "\n📊 Training Results:",
            f"  • Loss: {loss:.4f}",
            "  • Training FLOPS: 3200.00 TFLOPS (400.00 TFLOPS per rank)",
            "\n⏱️  Timing:",
            "  • Total step time: 2.50s",
            "  • policy_training: 2.25s (90.0%)\n",
        )
    )


def test_nemo_rl_counts_steps_over_its_epochs(tmp_path: Path) -> None:
    evaluation = ("\n📊 Validation Results:", "    • Validation loss: 2.2500")
    steps = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    lines = [nemo_rl(epoch, step, 3, 4.0 - step / 10 - epoch, *evaluation * (step == 2)) for epoch, step in steps]
    (tmp_path / "run.log").write_text("".join(lines), "utf-8")
    found = figures(str(tmp_path / "run.log"), sequenceLength=1024, batch=32, gpus=8)
    assert [*found.log.track.numbers] == [1, 2, 3, 4, 5]
    assert [*found.log.track.columns["loss"]] == pytest.approx([2.9, 2.8, 2.7, 1.9, 1.8])
    assert found.times is not None
    assert found.times.median == 2.5
    assert found.speed.logged_tflops == pytest.approx(400)
    assert [(each.step, each.value) for each in found.evaluations] == [(2, 2.25), (5, 2.25)]
    # the first lines of a tail belong to a step without a number
    (tmp_path / "run.log").write_text(f"  • Loss: 5.0000\n  • Total step time: 9.00s\n{lines[2]}", "utf-8")
    assert [*figures(str(tmp_path / "run.log"), batch=32).log.track.numbers] == [3]


def test_nemo_rls_grpo_has_its_flops_behind_the_time(tmp_path: Path) -> None:
    text = "".join(
        f"{'=' * 25} Step {step}/9 {'=' * 25}\n▶ Generating responses for batch of size 512...\n  • Loss: 0.0{step}00\n"
        "  • Generation KL Error: 0.0010\n  • Avg Reward: 0.5312\n  • Total step time: 134.05s\n"
        "  • Training FLOPS: 800.00 TFLOPS (100.00 TFLOPS per rank)\n"
        for step in (1, 2, 3)
    )
    (tmp_path / "run.log").write_text(text, "utf-8")
    found = figures(str(tmp_path / "run.log"), sequenceLength=512, batch=512, gpus=8)
    assert [*found.log.track.numbers] == [1, 2, 3]
    assert found.times is not None
    assert found.times.median == 134.05
    assert found.loss is not None
    assert found.loss.last == 0.03


def test_recipes_of_automodel_differ_in_their_fields(tmp_path: Path) -> None:
    lines = (
        "INFO:root:step {} | epoch 0 | loss 1.5 | grad_norm 102.0 | mem: 11.66 GiB | tps 6924.50",
        "| root | step {} | epoch 0 | loss 1.5 | accuracy 0.9 | lr 6e-05 | mem 11.66 GiB | tps 4.0(2.0/gpu)",
        "| root | step {} | epoch 0 | loss 1.5 | kd_loss 0.9 | lr 6e-05 | mem 11.66 GiB | tps 132.5 | kd_ratio 1.00",
    )
    for line in lines:
        (tmp_path / "run.log").write_text("".join(line.format(step) + "\n" for step in range(5)))
        log = read_logs([str(tmp_path / "run.log")])
        assert ([*log.track.numbers], log.track.columns["loss"][0]) == ([0, 1, 2, 3, 4], 1.5)
        assert [*log.track.columns.get("tokens", ())][:1] == ([2.0] if "/gpu" in line else [])


def test_a_fork_of_torchtitan_writes_the_planned_steps(tmp_path: Path) -> None:
    line = "root - INFO - step: {}/644 = 99.3%  loss:  6.2116  memory: 87.04GiB(93.48%)  tps: 52,142  mfu: 3.09%\n"
    (tmp_path / "run.log").write_text("".join(line.format(step) for step in range(640, 645)))
    track = read_logs([str(tmp_path / "run.log")]).track
    assert (track.numbers[-1], track.planned, track.columns["tokens"][0]) == (644, 644, 52142)
