"""Logs of strangers that were misread once; each excerpt is written by hand in the form of a genuine log."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest
import trainlogs as logs

from chartgen.errors import ChartgenError
from chartgen.metrics.read.lines import BLOCK
from chartgen.metrics.read.log import read_logs
from chartgen.metrics.report_data import RunFigures, Wanted, read_out
from chartgen.metrics.show.text import figure_rows

TITAN = (
    "[titan] 2026-09-04 {hour:02}:00:{second:02},000 - root - INFO - step: {step:2}  loss: {loss:8.5f}  "
    "grad_norm:  1.2000  memory: 40.00GiB(28.63%)  tps: 5,000  tflops: 290.00  mfu: 29.32%"
)


def titan(steps: int, hour: int = 10, loss: float = 9.0) -> list[str]:
    return [TITAN.format(hour=hour, second=step, step=step, loss=loss) for step in range(1, steps + 1)]


def figures(folder: Path, content: str | bytes, name: str = "run.log", run: int | None = None) -> RunFigures:
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_out(read_logs([str(folder / name)]), Wanted(window="all", run=run))


def shown(found: RunFigures) -> dict[str, str]:
    return dict(figure_rows(found))


def nemo(epoch: int, iteration: int, step: int, total: int = 1000) -> str:
    return (
        f"Training epoch {epoch}, iteration {iteration}/{total - 1} | lr: 1e-05 | global_step: {step} | "
        "reduced_train_loss: 9 | train_step_timing in s: 2.0 | consumed_samples: 64"
    )


def test_nemo_2_counts_its_steps_over_the_epochs(tmp_path: Path) -> None:
    lines = [nemo(0, 9, 9), nemo(0, 10, 10), nemo(1, 6, 17), nemo(1, 10, 21), nemo(2, 5, 27)]
    found = figures(tmp_path, logs.text(lines))
    assert [*found.log.track.numbers] == [9, 10, 17, 21, 27]
    assert (found.timeline.restarts, found.planned) == ((), 1000)
    assert found.left == 2.0 * (1000 - 27)
    # a total that is passed is that of an epoch, and the end of the run is unknown
    found = figures(tmp_path, logs.text([nemo(0, 9, 9, 10), nemo(1, 9, 19, 10)]))
    assert (found.planned, found.left) == (0, None)
    # old versions print no global_step
    old = [line.replace("global_step: ", "step_of: ") for line in (nemo(0, 9, 9, 10), nemo(1, 0, 0, 10))]
    assert [*figures(tmp_path, logs.text(old)).log.track.numbers] == [9, 10]


def test_checkpoints_of_a_machine_with_a_time_zone(tmp_path: Path) -> None:
    """2026-02-02 08:15 of India is 1770000300; NeMo saves with the step before, and reports the end twice."""
    head, save = "[NeMo I 2026-02-02 08:", "Global Checkpoint Save : Rank: 0 : Iteration: 24"
    lines = [
        f"{head}15:05 x:1] {save} : Start time: 1770000300.000s : Save duration: 5.500s",
        f"{head}15:11 x:1] Successfully saved checkpoint from iteration      24 to /ckpt/step=24.ckpt",
        f"{head}15:11 x:1] Async checkpoint save for step 25 (/ckpt/step=24.ckpt) finalized successfully.",
    ]
    for each in (lines, [f"2026-02-02T02:45:{line[25:27]}Z {line}" for line in lines]):
        found = figures(tmp_path, logs.megatron(logs.steps([7.0] * 30)) + logs.text(each)).timeline.checkpoints
        assert (found.saved, found.unfinished, found.save_seconds, found.blocking_seconds) == (1, 0, 11, 5.5)
    # without a time of its own, a line does not reveal the zone
    bare = [lines[0][lines[0].index("Global") :], *lines[1:]]
    found = figures(tmp_path, logs.megatron(logs.steps([7.0] * 30)) + logs.text(bare)).timeline.checkpoints
    assert (found.saved, found.unfinished, found.save_seconds) == (1, 0, None)


def test_forks_of_megatron_save_at_an_iteration(tmp_path: Path) -> None:
    lines = [
        "saving checkpoint at iteration      20 to /c",
        "  successfully saved checkpoint at iteration      20 to /c",
    ]
    found = figures(tmp_path, logs.megatron(logs.steps([7.0] * 20)) + logs.text(lines)).timeline.checkpoints
    assert (found.saved, found.unfinished) == (1, 0)


def mllog(seconds: float, key: str, value: object = None, **metadata: object) -> str:
    return logs.mllog(key, logs.BEGIN + seconds, value, **metadata)


def mlperf(benchmark: str, batch: int, samples: int, *lines: str, end: float = 99) -> str:
    head = [mllog(0, "init_start"), mllog(0, "submission_benchmark", benchmark), mllog(1, "run_start")]
    head += [mllog(1, "train_samples", samples), mllog(1, "global_batch_size", batch)]
    return logs.text([*head, *lines, mllog(end, "run_stop", status="success")])


def test_megatron_of_2019_has_no_colons(tmp_path: Path) -> None:
    lines = [
        f" iteration {step:8d}/   20000 | elapsed time per iteration (ms): 320.0 | learning rate 1.010E-06 | "
        f"lm loss 9.500000E+00 | loss scale 1.0 |\nafter {step} iterations memory (MB) | allocated: 5.0 | "
        "max allocated: 1000.0 | cached: 9.0 | max cached: 9.0"
        for step in (100, 200)
    ]
    found = figures(tmp_path, logs.text(lines))
    assert found.loss is not None
    assert found.loss.last == 9.5
    assert found.memory == pytest.approx(1000 * 1024 * 1024 / 1e9)
    assert [*found.window.values("rate")] == [1.01e-6] * 2


def test_epochs_of_mlperf_are_not_samples(tmp_path: Path) -> None:
    """They are shares, fewer than a batch, or more than there are samples; bert calls its samples so."""
    results = {("dlrm_dcnv2", 1000, 100_000): (0.25, 0.5, 0.75), ("unet3d", 56, 168): (1000, 1020, 1040)}
    for result, epochs in results.items():
        told = [mllog(20 * at, "eval_accuracy", 0.7, epoch_num=epoch) for at, epoch in enumerate(epochs, 1)]
        found = figures(tmp_path, mlperf(*result, *told))
        assert [each.epoch for each in found.evaluations] == [*epochs]
        assert not any(each.samples > 0 or each.step >= 0 for each in found.evaluations)
        assert f"epoch {epochs[-1]}" in shown(found)["evaluation"]
        assert ([*found.log.track.numbers], found.odd) == ([1, 2, 3], {})
    told = [mllog(20 * at, "eval_accuracy", 0.7, epoch_num=150_000 * at) for at in (1, 2)]
    found = figures(tmp_path, mlperf("bert", 1000, 300_000, *told))
    assert [(each.samples, each.step) for each in found.evaluations] == [(150_000, 150), (300_000, 300)]


def test_evaluations_of_several_metrics_are_those_of_the_first(tmp_path: Path) -> None:
    """Stable diffusion has a line for each, Mask R-CNN one with both."""
    pairs = [(at, metric, value) for at in (1, 2) for metric, value in (("FID", 90.0 - at), ("CLIP", 0.1 * at))]
    lines = [mllog(20 * at, "eval_accuracy", value, samples_count=1000 * at, metric=name) for at, name, value in pairs]
    found = figures(tmp_path, mlperf("stable_diffusion", 100, 10_000, *lines))
    assert [(each.value, each.step) for each in found.evaluations] == [(89, 10), (88, 20)]
    lines = [mllog(20 * at, "eval_accuracy", {"BBOX": 0.1 * at, "SEGM": 0.0}, epoch_num=at) for at in (1, 2)]
    found = figures(tmp_path, mlperf("maskrcnn", 48, 10_000, *lines))
    assert ([each.value for each in found.evaluations], found.log.broken) == ([0.1, 0.2], 0)


def test_an_evaluation_alone_is_no_step_and_without_a_batch_no_sample(tmp_path: Path) -> None:
    lines = [mllog(20 * at, "eval_accuracy", 0.1 * at, epoch_num=at) for at in (1, 2)]
    for log in (mlperf("bert", 48, 10_000, *lines), logs.text([mllog(0, "init_start"), *lines])):
        found = figures(tmp_path, log)
        assert found.timeline.first_step_seconds is None
        assert not any(each.samples > 0 for each in found.evaluations)


SSD = (
    ("epoch_stop", None, "epoch_num"),
    ("tracked_stats", {"throughput": 130.0}, "step"),
    ("eval_accuracy", 0.3, "epoch_num"),
)


def test_steps_of_mlperf_that_count_epochs(tmp_path: Path) -> None:
    # resnet counts epochs from 0, and logs each at its end: 100 steps of 0.04 s
    lines = [mllog(1 + 4 * (at + 1), "tracked_stats", {"throughput": 25_000.0}, step=at) for at in range(8)]
    lines += [mllog(33, "eval_accuracy", 0.75, epoch_num=7)]
    found = figures(tmp_path, mlperf("resnet", 1000, 100_000, *lines, end=33))
    assert (found.log.track.numbers[-1], found.timeline.steps) == (800, 800)
    assert found.times is not None
    assert (found.times.median, found.evaluations[-1].step, found.evaluations[-1].epoch) == (0.04, 800, 7)
    # ssd logs the speed of one GPU and its number of batches, so that an epoch seems to be one step
    lines = [mllog(1 + 8 * at, key, value, **{name: at}) for at in (1, 2, 3, 4) for key, value, name in SSD]
    found = figures(tmp_path, mlperf("ssd", 1024, 1143, *lines, end=33))
    assert ([*found.log.track.numbers], found.times) == ([1, 2, 3, 4], None)
    # unet3d logs blocks of 20 epochs with their first one, and calls 0 1: 6 steps an epoch
    speed = 168 * 20 / 0.36
    lines = [mllog(1, "block_start"), mllog(2.09, "tracked_stats", {"throughput": 168 * 20 / 1.09}, step=1)]
    for at in range(1, 11):
        when = 2.09 + 0.36 * at
        lines += [mllog(when - 0.36, "block_start"), mllog(when, "tracked_stats", {"throughput": speed}, step=20 * at)]
    found = figures(tmp_path, mlperf("unet3d", 28, 168, *lines, end=5.69))
    assert found.timeline.steps == pytest.approx(220 * 6, rel=0.01)
    # other submitters of it call the samples of an evaluation an epoch
    lines += [mllog(5.7, "eval_accuracy", 0.9, epoch_num=220 * 168)]
    (evaluation,) = figures(tmp_path, mlperf("unet3d", 28, 168, *lines, end=5.8)).evaluations
    assert (evaluation.samples, evaluation.step, math.isnan(evaluation.epoch)) == (220 * 168, 220 * 6, True)


def test_launches_of_torchtitan_are_runs(tmp_path: Path) -> None:
    evaluation = "[titan] 2026-09-04 10:00:30,000 - root - INFO - validate step: 20  loss:  8.5  memory: 40.00GiB(1%)"
    log = logs.text([*titan(20), evaluation, *titan(10, hour=15, loss=2.0)])
    for run, steps, loss in ((None, 10, 2.0), (1, 20, 9.0), (2, 10, 2.0)):
        found = figures(tmp_path, log, run=run)
        assert (len(found.log.track), found.timeline.restarts) == (steps, ())
        assert [each.value for each in found.evaluations] == ([8.5] if run == 1 else [])
        assert found.loss is not None
        assert found.loss.last == loss
        assert any("2 runs" in notice.message for notice in found.notices) is (run is None)
    # one that goes on with a checkpoint is a restart
    assert len(figures(tmp_path, logs.text([*titan(20), *titan(30, hour=15)[14:]])).timeline.restarts) == 1


def test_stages_of_torchtitan_tell_the_speed(tmp_path: Path) -> None:
    found = figures(tmp_path, logs.text(titan(30, loss=-1.0)))
    assert (len(found.log.track), found.speed.own_tokens, found.loss) == (30, 5000, None)
    ranks = [f"[rank{rank}]:{line}" for loss, rank in ((-1.0, 0), (7.0, 8)) for line in titan(30, loss=loss)]
    found = figures(tmp_path, logs.text(ranks))
    assert found.loss is not None
    assert (len(found.log.track), found.loss.last) == (30, 7.0)


def test_full_recomputation_is_a_convention_of_programs(tmp_path: Path) -> None:
    settings = {"num_layers": 24, "hidden_size": 2048, "num_attention_heads": 16, "padded_vocab_size": 50304}
    settings |= {"seq_length": 2048, "global_batch_size": 256, "world_size": 16}
    tflops = figures(tmp_path, logs.megatron_arguments(**settings) + logs.megatron(logs.steps([8.0] * 20))).speed.tflops
    assert tflops is not None
    own = f" throughput per GPU (TFLOP/s/GPU): {max(tflops.values()) * 4 / 3:.1f} |"
    for recomputed in ({}, {"recompute_granularity": "selective"}, {"recompute_granularity": "full"}):
        head = logs.megatron_arguments(**settings, **recomputed)
        found = figures(tmp_path, head + logs.megatron(logs.steps([8.0] * 20), extra=own))
        doubted = any("no convention" in notice.message for notice in found.notices)
        assert doubted is (recomputed.get("recompute_granularity") != "full")


def test_a_run_after_one_that_planned_fewer_steps_is_another(tmp_path: Path) -> None:
    """A job may first try two steps."""
    head, run = logs.megatron_arguments(num_layers=24), logs.megatron(logs.steps([7.0] * 9), begin=logs.BEGIN + 99)
    for planned, steps, restarts in ((2, 9, 0), (100, 11, 1)):
        found = figures(tmp_path, head + logs.megatron(logs.steps([7.0] * 2), planned=planned) + head + run)
        assert (len(found.log.track), len(found.timeline.restarts)) == (steps, restarts)


def test_the_decimals_of_a_tiny_model_are_no_doubt(tmp_path: Path) -> None:
    settings = {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "padded_vocab_size": 1024}
    head = logs.megatron_arguments(**settings, seq_length=2048, global_batch_size=2, world_size=1)
    for logged, doubted in ((0.1, False), (0.3, True)):
        own = f" throughput per GPU (TFLOP/s/GPU): {logged} |"
        found = figures(tmp_path, head + logs.megatron(logs.steps([0.4] * 20), batch=2, extra=own))
        assert any("no convention" in notice.message for notice in found.notices) is doubted


def test_the_settings_of_a_later_run_may_be_in_a_block_of_the_earlier_one(tmp_path: Path) -> None:
    """A file of several runs: the last steps of one, and the first settings of the next, are read at once."""
    settings = {"num_layers": 24, "hidden_size": 2048, "num_attention_heads": 16}
    one = logs.megatron_arguments(**settings, seq_length=2048) + logs.megatron(logs.steps([8.0] * 20))
    two = logs.megatron_arguments(**settings, seq_length=4096) + " building\n" * (BLOCK // 10)
    two += " > padded vocab (size: 151643) with 421 dummy tokens (new size: 152064)\n"
    found = figures(tmp_path, one + two + logs.megatron(logs.steps([9.0] * 20)))
    assert (found.facts.get("vocabularySize"), found.facts.get("sequenceLength")) == (152064, 4096)


def test_tensorboard_of_torchtitan(tmp_path: Path) -> None:
    content = logs.record(logs.field(1, 1, struct.pack("<d", logs.BEGIN)))
    values = {"loss_metrics/global_avg_loss": 7.0, "throughput(tps)": 5000.0, "tflops": 290.0, "mfu(%)": 29.0}
    values["memory/max_reserved(GiB)"] = 40.0
    for step in (1, 10, 20):
        for tag, value in values.items():
            content += logs.record(logs.event(step, logs.BEGIN + step, tag, value))
    found = figures(tmp_path, content, "events.out.tfevents.1.host.1.0")
    assert found.loss is not None
    assert (found.loss.last, found.speed.logged_tflops) == (7.0, 290)
    assert found.speed.own_tokens == pytest.approx(5000)
    assert found.logged_mfu == pytest.approx(0.29)
    assert "MFU 29.0 %" in dict(figure_rows(found))["logged"]
    assert found.memory == pytest.approx(40 * 1024**3 / 1e9)


def test_tensorboard_of_megatron_deepspeed(tmp_path: Path) -> None:
    """Its tags are in groups, and the ones by samples and tokens repeat them."""
    content = logs.record(logs.field(1, 1, struct.pack("<d", logs.BEGIN)))
    for step, seconds in ((1, 5.0), (2, 2.0), (3, 2.0)):
        values = {"lm-loss-training/lm loss": 7.0, "iteration-time/iteration-time": seconds}
        values |= {"learning-rate/learning-rate": 1e-5, "lm-loss-validation/lm loss validation": 8.0}
        for tag, value in values.items():
            content += logs.record(logs.event(step, logs.BEGIN + step, tag, value))
            content += logs.record(logs.event(step * 32, logs.BEGIN + step, f"{tag} vs samples", value))
    found = figures(tmp_path, content, "events.out.tfevents.1.host.1.0")
    assert found.loss is not None
    assert found.times is not None
    assert ([*found.log.track.numbers], found.times.median, found.loss.last) == ([1, 2, 3], 2, 7)


def neox(step: int, seconds: float) -> str:
    return (
        f" samples/sec: {32 / seconds:.3f} | iteration {step:8d}/     500 | elapsed time per iteration (ms): "
        f"{seconds * 1000:.1f} | learning rate: 6.000E-05 | approx flops per GPU: 55.2TFLOPS | lm_loss: 9.5E+00 | "
        "loss scale: 4096.0 | number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def test_gpt_neox(tmp_path: Path) -> None:
    """It marks each setting as updated or default. Half of its steps are slower, which makes none an outlier."""
    told = {"seq_length": "2048", "train_batch_size": "32", "global_num_gpus": "8", "hidden_dropout": "0.0"}
    head = ["-------------------- arguments --------------------"]
    head += [f"  {name} {'.' * (32 - len(name))} {value.ljust(27, '.')}updated" for name, value in told.items()]
    slow = (300, 700)
    lines = [neox(step, 2.0 + 0.01 * (step % 3) + (1.0 if step % 5 < 2 else 0)) for step in range(1, 345)]
    lines[300] = neox(301, 60.0)
    found = figures(tmp_path, logs.text([*head, "", *lines]))
    assert (found.facts.get("sequenceLength"), found.facts.get("batch"), found.facts.get("gpus")) == (2048, 32, 8)
    assert found.speed.logged_tflops == pytest.approx(55.2)
    assert found.speed.tokens_per_gpu is not None
    assert found.times is not None
    assert found.times.outlying < len(slow) * 20
    # the log ends before the run does
    assert found.left is not None
    assert ("344" in shown(found)["left"], "500" in shown(found)["left"]) == (True, True)


def test_dlloggers_steps_of_an_epoch(tmp_path: Path) -> None:
    def line(step: object, **data: object) -> str:
        return f'DLLL {{"timestamp": "{logs.BEGIN}", "type": "LOG", "step": {step}, "data": {data}}}'.replace("'", '"')

    # BERT counts over its epochs, others anew in each; a list of one is a summary
    for steps in ([[0, 9], [0, 10], [1, 11], [1, 12]], [[0, 9], [0, 10], [1, 1], [1, 2]]):
        lines = [line(step, average_loss=7.5, learning_rate=1e-5) for step in steps]
        found = figures(tmp_path, logs.text([*lines, line([1], average_loss=1.0), line([], e2e_train_time=5.0)]))
        assert [*found.log.track.numbers] == [9, 10, 11, 12]
        assert found.loss is not None
        assert (found.loss.last, found.timeline.restarts) == (7.5, ())


def test_dlloggers_steps_that_the_loss_scale_skips_are_no_restarts(tmp_path: Path) -> None:
    """BERT logs a skipped step again with its number, and a checkpoint as a parameter."""
    steps = [("[0, 0]", 0), ("[0, 0]", 2), ("[0, 1]", 4), ("[0, 1]", 6), ("[0, 2]", 8)]
    lines = [
        f'DLLL {{"timestamp": "{logs.BEGIN + at}", "type": "LOG", "step": {step}, "data": {{"step_loss": 7.5}}}}'
        for step, at in steps
    ]
    config = f'DLLL {{"timestamp": "{logs.BEGIN}", "type": "LOG", "step": "PARAMETER", "data": {{"Config": ["x"]}}}}'
    saved = config.replace('"Config": ["x"]', '"checkpoint_step": 1')
    scale = config.replace('"Config": ["x"]', '"loss_scale": 65536.0')
    found = figures(tmp_path, logs.text([config, scale, lines[0], scale, *lines[1:4], saved, *lines[4:]]))
    assert ([*found.log.track.numbers], found.timeline.restarts) == ([0, 1, 2], ())
    assert found.timeline.checkpoints.saved == 1
    again = figures(tmp_path, logs.text([config, *lines, config, *lines[2:]]))
    assert [(each.step, each.lost) for each in again.timeline.restarts] == [(1, 2)]


def test_tokens_that_layers_drop_are_no_flops(tmp_path: Path) -> None:
    """Megatron-DeepSpeed with random-LTD prints how many tokens its middle layers keep."""
    settings = {"num_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "padded_vocab_size": 50304}
    head = logs.megatron_arguments(**settings, seq_length=2048, global_batch_size=256, world_size=8)
    for kept, known in (("320", False), ("2048", True)):
        found = figures(tmp_path, head + logs.megatron(logs.steps([0.5] * 20), extra=f"reserve_length: {kept:>5} |"))
        assert (found.speed.tflops is not None, "drop tokens" in str(found.notices)) == (known, not known)
        assert found.speed.tokens == 256 * 2048 / 0.5


def test_a_log_without_a_step_has_none(tmp_path: Path) -> None:
    line = "[Rank 0] (after 1 iterations) memory (MB) | allocated: 100.0 | max allocated: 200.0 | reserved: 300.0"
    with pytest.raises(ChartgenError, match="no training steps"):
        figures(tmp_path, logs.text([line]))


def swift(step: int, elapsed: str, mark: str = "'") -> str:
    return (
        f"{{'loss': 0.5, 'grad_norm': 0.75, 'learning_rate': 8.6e-07, 'memory(GiB)': 63.16, 'train_speed(iter/s)': 1,"
        f" 'epoch': 0.64, 'global_step/max_steps': '{step}/176', 'percentage': '31.82%', 'elapsed_time': '{elapsed}'}}"
    ).replace("'", mark)


# the last line of ms-swift's logging.jsonl, in full precision
STATE = (
    '{"global_step": 176, "log_history": [{"loss": 0.50000001, "epoch": 0.6, "step": 160}, '
    '{"loss": 0.50000001, "learning_rate": 8.6e-07, "epoch": 0.64, "step": 170}]}'
)


def factory(step: int, elapsed: str, loss: str = "0.5") -> str:
    return (
        f'{{"current_steps": {step}, "total_steps": 176, "loss": {loss}, "eval_loss": null, "learning_rate": 1e-06, '
        f'"epoch": 0.52, "percentage": 52.44, "elapsed_time": "{elapsed}", "remaining_time": "0:25:19"}}'
    )


def trainer(step: int, elapsed: str, mark: str = "") -> str:
    """The bar, a step late until it is drawn again, and the values, which newer versions quote."""
    late, bar = (f"\r {at // 2}%|##7       | {at}/176 [{elapsed}<12:19,  1.50s/it]" for at in (step - 1, step))
    values = {"loss": "0.5", "grad_norm": "0.75", "learning_rate": "8e-07", "epoch": "0.64"}
    pairs = ", ".join(f"'{name}': {mark}{value}{mark}" for name, value in values.items())
    return f"{late}\r                       \r{{{pairs}}}\n{bar}"


def printed(step: int, elapsed: str) -> str:
    """LLaMA-Factory logs behind the bar what Trainer prints again."""
    values = f"{{'loss': 0.5, 'learning_rate': 8e-07, 'epoch': 0.{step}}}\n"
    return (
        f"  2%|##   | {step}/176 [{elapsed}<25:00,  5.09s/it][INFO|2025-04-30 22:55:57] callbacks:1 >> {values}{values}"
    )


def test_hugging_face_trainer_and_what_is_made_of_it(tmp_path: Path) -> None:
    swifts = [swift(at, f"1h {20 + at}m 30s") for at in (1, 2, 3)]
    texts = {
        "ms-swift": logs.text(swifts),
        "ms-swift 2": logs.text([line.replace("/max_steps': '", "': '").replace("/176", "") for line in swifts]),
        "jsonl": logs.text([line.replace("'", '"') for line in swifts]),
        "LLaMA-Factory": logs.text([factory(at, f"5:{20 + at}:30") for at in (1, 2, 3)]),
        "a day": logs.text([factory(at, f"1 day, 0:0{at}:30") for at in (1, 2, 3)]),
        "Trainer": "".join(trainer(at, f"0{at}:30") for at in (1, 2, 3)),
        "printed": "".join(printed(at, f"0{at}:30") for at in (1, 2, 3)),
        "quoted": "".join(trainer(at, f"1:0{at}:30", "'") for at in (1, 2, 3)),
    }
    for name, content in texts.items():
        found = figures(tmp_path, f"  Total train batch size (w. parallel, distributed & accumulation) = 64\n{content}")
        assert [*found.log.track.numbers] == [1, 2, 3], name
        assert found.loss is not None
        assert found.times is not None
        assert (found.loss.last, found.times.mean, found.planned) == (0.5, 60, 0 if name == "ms-swift 2" else 176), name
        assert found.facts.get("batch") == 64
    # the last line of LLaMA-Factory has no loss, and evaluations have bars of their own
    end = factory(176, "5:40:30", "null")
    assert [*figures(tmp_path, texts["LLaMA-Factory"] + end).log.track.numbers] == [1, 2, 3]
    bar = "\r 25%|##5       | 5/20 [00:05<00:15,  1.00it/s]\n{'eval_loss': 0.25, 'eval_runtime': 9.5, 'epoch': 0.64}\n"
    found = figures(tmp_path, texts["Trainer"] + bar)
    assert [(each.step, each.value) for each in found.evaluations] == [(3, 0.25)]
    # without any count of steps there are none
    with pytest.raises(ChartgenError, match="no training steps"):
        figures(tmp_path, logs.text(["{'loss': 0.5, 'learning_rate': 8e-07, 'epoch': 0.64}"] * 3))


def test_bars_that_are_not_of_training(tmp_path: Path) -> None:
    """Data sets draw bars without a name before it; another launch may plan other steps."""
    data = "\r  0%|          | 0/1 [00:00<?, ?it/s]\r100%|####| 1/1 [00:00<00:00, 363.74it/s]\n"
    first = data + "".join(trainer(at, f"0{at}:30") for at in (1, 2, 3))
    found = figures(tmp_path, first)
    assert ([*found.log.track.numbers], found.planned) == ([1, 2, 3], 176)
    evaluation = "\r 25%|##5       | 5/20 [00:05<00:15,  1.00it/s]\n{'eval_loss': 0.25, 'epoch': 0.64}\n"
    again = "".join(trainer(at, f"0{at}:10") for at in (2, 3, 4)).replace("/176", "/180").replace(": 0.5", ": 0.4")
    found = figures(tmp_path, first + evaluation + data + again)
    assert ([*found.log.track.numbers], found.planned) == ([1, 2, 3, 2, 3, 4], 180)
    assert [each.step for each in found.evaluations] == [3]


def test_two_runs_that_write_at_once_are_no_restarts(tmp_path: Path) -> None:
    mixed = [line for pair in zip(titan(40)[20:], titan(20, loss=5.0), strict=True) for line in pair]
    found = figures(tmp_path, logs.text(mixed))
    assert found.timeline.restarts == ()
    assert any("several runs" in notice.message for notice in found.notices)
    # a run that fails again and again trains for a while each time
    again = [line for start in range(12) for line in titan(start + 6, loss=20.0 - start)[start:]]
    assert len(figures(tmp_path, logs.text(again)).timeline.restarts) == 11


def test_the_bar_of_a_wide_terminal(tmp_path: Path) -> None:
    content = "".join(trainer(at, f"0{at}:30").replace("##7       ", "\u2588" * 250) for at in (1, 2, 3))
    assert [*figures(tmp_path, content).log.track.numbers] == [1, 2, 3]


def test_values_that_are_printed_late_have_no_step(tmp_path: Path) -> None:
    """Standard output in a file is written in blocks, the bar on standard error at once."""
    bars = "".join(f"\r {at // 2}%|##7       | {at}/176 [0{at}:30<12:19,  1.50s/it]" for at in range(1, 6))
    late = "".join(f"{{'loss': 0.{at}, 'learning_rate': 8e-07, 'epoch': 0.0{at}}}\n" for at in (1, 2, 3))
    found = figures(tmp_path, bars + late + "\r  4%|##7       | 6/176 [06:30<12:19,  1.50s/it]\n")
    assert (found.loss, len(found.log.track)) == (None, 1)
    assert any("PYTHONUNBUFFERED" in notice.message for notice in found.notices)
    # nor has an evaluation, whose own bar was drawn long before it
    judged = "{'eval_loss': 0.25, 'epoch': 0.04}\n"
    evaluation = "\r 25%|##5       | 5/20 [00:05<00:15,  1.00it/s]\n"
    found = figures(tmp_path, trainer(1, "01:30") + evaluation + bars + judged + bars + judged)
    assert found.evaluations == ()
    assert [each.step for each in figures(tmp_path, trainer(1, "01:30") + evaluation + judged).evaluations] == [1]
    # where no value has a step, that is the reason
    with pytest.raises(ChartgenError, match="PYTHONUNBUFFERED"):
        figures(tmp_path, f"{bars}\n{late}")


def test_values_without_any_bar_are_said(tmp_path: Path) -> None:
    """LLaMA-Factory's running_log.txt; and a run that is ended is ended where its bar is."""
    values = ["{'loss': 0.5, 'learning_rate': 8e-07, 'epoch': 0.64}"] * 3
    with pytest.raises(ChartgenError, match="no bar"):
        figures(tmp_path, logs.text(values))
    found = figures(tmp_path, trainer(2, "01:30") + "\r  4%|##7       | 7/176 [06:30<12:19,  1.50s/it]\n")
    assert "the log ends at step 7" in shown(found)["left"]


def test_evaluations_alone_are_of_the_program_that_made_them(tmp_path: Path) -> None:
    validated = [line.replace("step:", "validate step:") for line in titan(2)]
    assert shown(figures(tmp_path, logs.text(validated)))["log"].endswith("torchtitan, 2 evaluations, 1 to 2")


def test_a_trainer_that_ends_between_two_logged_steps_has_none_left(tmp_path: Path) -> None:
    swifts = [swift(at, f"{at}m 30s", '"') for at in (160, 170)]
    factories = [factory(at, f"0:{at}:30") for at in (10, 20)]
    ends = {
        "evaluated": [*swifts, swift(176, "180m 30s", '"').replace('"loss": 0.5', '"eval_loss": 0.25')],
        "LLaMA-Factory": [*factories, factory(176, "5:40:30", "null")],
        "a step less": [*factories, factory(175, "5:40:30", "null")],
        "ms-swift": [*swifts, swift(176, "180m 30s", '"').replace('"loss": 0.5', '"train_loss": 0.5'), STATE],
        "drawn": [trainer(at, f"{at}:30") for at in (160, 170)] + ["\r100%|###| 176/176 [180:30<00:00,  1.50s/it]"],
    }
    for name, lines in ends.items():
        found = figures(tmp_path, logs.text(lines))
        assert (len(found.log.track), found.steps_left <= 1, found.left) == (2, True, None), name


def test_processes_that_write_to_one_file_are_no_restarts(tmp_path: Path) -> None:
    """Both write each step, one of them later and later; a run that starts again counts its time again."""
    both = [(at, 100 * at + late) for at in range(1, 9) for late in (0, 1 + 33 * at)]
    lines = [factory(at, f"0:00:{seconds}") for at, seconds in sorted(both, key=lambda each: each[1])]
    found = figures(tmp_path, logs.text(lines))
    assert found.times is not None
    assert ([*found.log.track.numbers], found.times.median, found.timeline.restarts) == ([*range(1, 9)], 100, ())
    again = figures(tmp_path, logs.text([*lines, *(factory(at, f"0:00:{10 * at}", "0.4") for at in (6, 7))]))
    assert [(each.step, each.lost) for each in again.timeline.restarts] == [(6, 3)]


def test_a_launch_that_counts_its_time_anew_is_a_restart(tmp_path: Path) -> None:
    """LLaMA-Factory appends to trainer_log.jsonl, here with other planned steps."""
    again = [factory(at, f"0:00:{at - 3}0").replace("176", "222") for at in (4, 5, 6)]
    found = figures(tmp_path, logs.text([*(factory(at, f"0:0{at}:30") for at in (1, 2, 3)), *again]))
    assert ([*found.log.track.numbers], found.planned) == ([*range(1, 7)], 222)
    assert [(each.step, each.lost) for each in found.timeline.restarts] == [(4, 0)]


def test_a_zone_does_not_lengthen_a_run_whose_times_are_of_an_epoch(tmp_path: Path) -> None:
    run = logs.dllogger(logs.steps([7.0] * 30), config={})
    end = "[NeMo I 2026-02-02 08:15:00 x:1] Async checkpoint save for step 25 (/c/a.ckpt) finalized successfully."
    assert figures(tmp_path, run + logs.text([end])).timeline.wall_seconds == 30 * 7


def test_a_speed_without_a_step_is_not_said_to_be_absent(tmp_path: Path) -> None:
    """As of NVIDIA's RNN-T: an epoch's speed names neither a step nor its unit."""
    line = ':::MLLOG {{"time_ms": {}, "key": "{}", "value": {}, "metadata": {{"epoch_num": {}}}}}'
    values = [("run_start", "null", 0), ("throughput", 3690.5, 1), ("eval_accuracy", 0.9, 1), ("eval_accuracy", 0.5, 2)]
    lines = [line.format(1000 * at, *each) for at, each in enumerate(values)]
    found = figures(tmp_path, logs.text(lines))
    assert (found.speed.tokens, len(found.evaluations)) == (None, 2)
    assert [each.message.endswith("nor a speed that is read") for each in found.notices] == [True]
