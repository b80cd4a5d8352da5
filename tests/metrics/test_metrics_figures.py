"""Formulas against what vendors have published, the guides' own results, windows, time lines, costs and facts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trainlogs as logs

from chartgen.checks.published import find_figure, find_model, published_data
from chartgen.errors import ChartgenError, UsageError
from chartgen.helm.values import load_values
from chartgen.metrics.figures.facts import Facts, facts_of_values, join_facts
from chartgen.metrics.figures.flops import Attention, Shape, sample_flops
from chartgen.metrics.figures.guard import MOST_TFLOPS
from chartgen.metrics.figures.peak import find_peak
from chartgen.metrics.figures.peak import gpu_name as find_gpu
from chartgen.metrics.read.log import Log, read_streams
from chartgen.metrics.read.pauses import name_causes
from chartgen.metrics.report_data import RunFigures, Wanted, read_out
from chartgen.metrics.show.text import duration, lines
from chartgen.releases.why.explanation import explain_lines

VALUES = Path(__file__).resolve().parents[2] / "values"
RUN = logs.steps([20.0, 12.0, *[8.0] * 48], first=0)
# What the guide of OKE prints: 30 step times of Llama 2 70B.
OKE = [7.13, 7.12, 7.12, 7.13, 7.13, 7.13, 7.12, 7.13, 7.14, 7.13, 7.14, 7.26, 7.13, 7.13, 7.13, 7.13, 7.15, 7.14]
OKE += [7.14, 7.13, 7.14, 7.14, 7.14, 7.14, 7.13, 7.14, 7.14, 7.14, 7.14, 7.14]
# Steps 10 to 30 of the example log of Google's training_metrics (AI-Hypercomputer/gpu-recipes @ 2e1fd5e).
A3MEGA = [25.636751174926758, 25.579267501831055, 25.343032836914062, 25.46991729736328, 25.52934455871582]
A3MEGA += [25.60711669921875, 25.637285232543945, 25.68196678161621, 25.384899139404297, 25.30147361755371]
A3MEGA += [25.22845458984375, 25.06499481201172, 25.09807777404785, 25.201101303100586, 25.2277889251709]
A3MEGA += [25.2721004486084, 25.44161033630371, 25.43352699279785, 25.470687866210938, 25.455108642578125]
A3MEGA += [25.28065299987793]
GPT3: dict[str, object] = {
    "micro_batch_size": 1,
    "global_batch_size": 2048,
    "encoder_seq_length": 2048,
    "num_layers": 96,
}
GPT3 |= {"hidden_size": 12288, "ffn_hidden_size": 49152, "num_attention_heads": 96, "num_query_groups": None}
GPT3 |= {"tokenizer/type": "GPT2BPETokenizer", "fp8": True, "precision": "bf16-mixed"}


def read(content: str) -> Log:
    return read_streams([("run.log", [content.encode()])])


def figures(
    content: str | Log, *, window: str = "all", price: float | None = None, peak: str = "", **facts: Any
) -> RunFigures:
    log = read(content) if isinstance(content, str) else content
    return read_out(log, Wanted(window=window, peak=peak, price=price, facts=[("the options", facts)]))


def shape(model: str, **other: Any) -> Shape:
    found = Facts(known=find_model(model)[1]).shape
    assert found
    return found._replace(**other)


# Google's constants for one sample (AI-Hypercomputer/gpu-recipes @ 2e1fd5e, src/utils/training_metrics/src/
# data_defs.py); two of the Llama 3.1 models have the vocabulary of GPT-2 there, one 16 groups.
CONSTANTS = [
    ("gpt3-5b", 2048, {}, 6.69e13),
    ("gpt3-175b", 2048, {}, 2.2e15),
    ("llama2-7b", 4096, {}, 1.89e14),
    ("llama2-70b", 4096, {}, 1.82e15),
    ("llama3-70b", 8192, {}, 3.94e15),
    ("llama3.1-8b", 8192, {}, 4.74e14),
    ("llama3.1-70b", 8192, {"vocabulary": 51200}, 3.9129e15),
    ("llama3.1-405b", 8192, {"vocabulary": 51200, "groups": 16}, 2.16533e16),
    ("llama3.1-405b", 8192, {}, 2.150748e16),
    ("mixtral-8x7b", 4096, {}, 3.4e14),
    ("mixtral-7b", 4096, {}, 3.4e14),
]


@pytest.mark.parametrize(("model", "sequence", "other", "flops"), CONSTANTS)
def test_constants_of_google(model: str, sequence: int, other: dict[str, int], flops: float) -> None:
    assert sample_flops(shape(model, **other), sequence, "full") == pytest.approx(flops, rel=0.0025)


# Published tokens/s/GPU and TFLOPS/GPU, with the convention that joins them.
PUBLISHED: list[tuple[str, float, Attention, float]] = [
    ("llama3-8b", 12273, "full", 711),
    ("llama3-8b", 12273, "causal", 632),
    ("mixtral-8x7b", 19275, "full", 1598),
    ("llama3-8b", 14079, "causal", 725),
    ("llama3-8b", 14079, "full", 815),
    ("llama3-70b", 1639, "causal", 736),
    ("llama3.1-405b", 326, "causal", 822),
]


@pytest.mark.parametrize(("model", "tokens", "attention", "tflops"), PUBLISHED)
def test_speeds_of_nvidia_in_both_conventions(model: str, tokens: float, attention: Attention, tflops: float) -> None:
    sequence = find_model(model)[1]["sequenceLength"]
    assert sample_flops(shape(model), sequence, attention) * tokens / sequence / 1e12 == pytest.approx(
        tflops, rel=0.002
    )


@pytest.mark.parametrize(
    "row", [row for row in published_data()["figures"] if "tflops" in row and row["model"] != "deepseek-v3"]
)
def test_every_published_row_agrees_with_its_convention(row: dict[str, Any]) -> None:
    flops = sample_flops(shape(row["model"]), row["sequenceLength"], row["attention"])
    assert flops * row["tokens"] / row["sequenceLength"] / 1e12 == pytest.approx(row["tflops"], rel=0.003)
    other: Attention = "causal" if row["attention"] == "full" else "full"
    flops = sample_flops(shape(row["model"]), row["sequenceLength"], other)
    assert abs(flops * row["tokens"] / row["sequenceLength"] / 1e12 / row["tflops"] - 1) > 0.01


def test_every_published_row_has_a_source_and_a_model() -> None:
    for row in published_data()["figures"]:
        assert row["source"] in published_data()["sources"]
        assert find_model(row["model"])[0] == row["model"]


def test_lora_leaves_out_the_gradients_of_frozen_matrices() -> None:
    llama = shape("llama2-70b")
    scores = 3 * 80 * 4 * 8192 * 8192 * 8192
    full = sample_flops(llama, 8192, "full")
    assert sample_flops(llama, 8192, "full", lora=True) == pytest.approx((full - scores) * 2 / 3 + scores)


def test_presets_and_published_models_have_the_same_sizes() -> None:
    for model in ("gpt3-175b", "gpt3-5b", "llama2-7b", "llama2-70b", "llama3-8b", "llama3-70b"):
        preset = facts_of_values(load_values([VALUES / f"{model}.yaml"]).data)
        assert join_facts([("preset", preset), ("table", find_model(model)[1])]).notices == []


def test_the_result_of_the_oke_guide() -> None:
    """seed 000: 7.1383 s; with Llama 2 70B on 16 machines at 256 samples a step 1,147.6 tokens/s/GPU and 510 TFLOPS."""
    values = facts_of_values(load_values([VALUES / "llama2-70b.yaml"], set_values=["nodes=16", "gpusPerNode=8"]).data)
    found = read_out(read(logs.nemo_list(OKE)), Wanted("all", facts=[("the values", values)]))
    assert found.times
    assert round(found.times.mean, 4) == 7.1383
    assert found.times.median == pytest.approx(7.135)
    # 7.26 s at step 12 is far off the others, but nothing that anybody would look into
    assert found.times.outliers == ()
    assert round(found.speed.tokens or 0) == 146_894
    assert round(found.speed.tokens_per_gpu or 0, 1) == 1147.6
    assert found.speed.tflops
    assert round(found.speed.tflops["full"]) == 510


@pytest.mark.parametrize(("steps", "planned"), [(10, 0), (30, 30), (100, 100)])
def test_values_of_a_shorter_run_do_not_tell_how_long_this_one_is(steps: int, planned: int) -> None:
    assert figures(logs.nemo_list(OKE), steps=steps).planned == planned


@pytest.mark.parametrize(("peak", "mfu"), [("bf16", 0.70069), ("", 0.35035), ("fp8", 0.35035), ("1978", 0.35035)])
def test_the_result_of_the_a3_mega_guide(peak: str, mfu: float) -> None:
    """seed 003: its command names no precision, so its MFU is of the BF16 peak: twice that of a run in FP8."""
    run = logs.steps([107.4, *[25.0] * 9, *A3MEGA, *[32.8] * 19], first=0)
    content = logs.dllogger(run, batch=2048, config=GPT3)
    found = figures(content, window="10:30", peak=peak, gpus=256, gpu="h100-80gb", flops=2.2e15)
    assert found.times
    assert found.times.mean == pytest.approx(25.39738855, abs=1e-8)
    assert found.speed.tflops
    assert found.speed.tflops["given"] == pytest.approx(692.98463368)
    assert found.mfu == pytest.approx(mfu, rel=6e-4)
    own = figures(content, window="10:30", gpus=256, gpu="h100-80gb")
    assert own.notices == []
    assert own.speed.tflops
    assert own.speed.tflops["full"] == pytest.approx(692.98, rel=0.003)


@pytest.mark.parametrize(
    ("window", "first", "last", "count", "warm_up"),
    [
        ("", 10, 49, 40, 10),
        ("all", 0, 49, 50, 0),
        ("10:30", 10, 30, 21, 0),
        ("30:30", 30, 30, 1, 0),
        (":4", 0, 4, 5, 0),
        ("45:", 45, 49, 5, 0),
    ],
)
def test_windows_include_both_ends(window: str, first: int, last: int, count: int, warm_up: int) -> None:
    found = figures(logs.dllogger(RUN), window=window).window
    assert (found.first, found.last, len(found), found.skipped) == (first, last, count, warm_up)


@pytest.mark.parametrize(("count", "skipped"), [(1, 0), (4, 0), (5, 1), (30, 6), (50, 10), (500, 10)])
def test_warm_up_is_ten_steps_or_a_fifth(count: int, skipped: int) -> None:
    assert figures(logs.dllogger(logs.steps([7.0] * count)), window="").window.skipped == skipped


@pytest.mark.parametrize("window", ["x", "1-5", "5", "a:b", "-1:5"])
def test_what_is_no_window(window: str) -> None:
    with pytest.raises(UsageError, match="is not a window of steps; write FIRST:LAST in steps, both included, or all"):
        figures(logs.dllogger(RUN), window=window)


def test_a_window_without_steps() -> None:
    with pytest.raises(ChartgenError) as caught:
        figures(logs.dllogger(RUN), window="100:200")
    assert str(caught.value) == "no steps between 100 and 200: the log has 0 to 49; give another --window"


def test_percentiles_are_linear_between_two_steps() -> None:
    found = figures(logs.dllogger(logs.steps([float(value) for value in range(1, 12)]))).times
    assert found
    assert (found.p5, found.median, found.p95, found.p99) == pytest.approx((1.5, 6.0, 10.5, 10.9))


# A run of 8 s a step that was saved at steps 20 and 40, ended at 50 and began again at 41, 100 s later.
FIRST = logs.steps([8.0] * 50)
AGAIN = [(number, 8.0, 5.0) for number in range(41, 81)]
RESTARTED = (
    "[after megatron is initialized] datetime: 2026-02-02 02:39:00\n"
    + logs.megatron_arguments(num_layers=80)
    + logs.megatron(FIRST)
    + logs.megatron_arguments(num_layers=80)
    + logs.megatron(AGAIN, begin=logs.BEGIN + 500)
)


def test_goodput_counts_steps_once() -> None:
    found = figures(RESTARTED)
    line = found.timeline
    assert line.wall_seconds == pytest.approx(60 + 500 + 320)
    assert line.steps == 80
    assert line.goodput == pytest.approx(80 * 8 / 880)
    assert line.first_step_seconds == pytest.approx(68)
    (restart,) = line.restarts
    assert (restart.step, restart.lost) == (41, 10)
    assert restart.pause_seconds == pytest.approx(108)
    assert len(found.window) == 80


@pytest.mark.parametrize(("numbers", "count"), [((1, 10, 20), 20), ((10, 20), 20), ((0, 4, 8), 9), ((410, 420), 20)])
def test_the_first_line_covers_no_steps_before_the_run(numbers: tuple[int, ...], count: int) -> None:
    found = figures(logs.dllogger([(number, 8.0, 5.0) for number in numbers]))
    assert found.timeline.steps == count


def test_a_restart_has_its_cause_and_the_time_until_it_was_seen() -> None:
    memory = f" [{logs.stamp(logs.BEGIN + 412)}] [rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried\n"
    third = logs.megatron(logs.steps([8.0] * 10, first=81), begin=logs.BEGIN + 900)
    text = logs.megatron(FIRST) + memory + logs.megatron(AGAIN, begin=logs.BEGIN + 500) + third
    log = read(text)
    name_causes(log, [("run.log", [text.encode()])], explain_lines)
    found = figures(log).timeline
    (each,) = found.restarts
    assert (each.cause, each.detection_seconds, each.restart_seconds) == ("gpu-memory", 12, 96)
    assert found.lost == {"gpu-memory": pytest.approx((108 + 9 * 8) / 980)}
    rows = [*lines(figures(log), drawn=False)]
    at = next(at for at, row in enumerate(rows) if row.startswith("restarts"))
    assert rows[at + 1].split() == ["41", "10", "1", "min", "48", "s", "12", "s", "1", "min", "36", "s", "gpu-memory"]
    assert rows[at + 2].startswith("lost        gpu-memory 18.4 %")


def test_the_end_of_a_log_may_be_a_file_of_its_own() -> None:
    half = logs.megatron(AGAIN, begin=logs.BEGIN + 500).encode()
    log = read_streams([("b", [half]), ("a", [logs.megatron(FIRST).encode()])])
    assert [restart.lost for restart in figures(log).timeline.restarts] == [10]
    untimed = [logs.nemo2(FIRST).encode(), logs.nemo2(AGAIN).encode()]
    log = read_streams([("1", [untimed[1]]), ("0", [untimed[0]])])
    assert [restart.lost for restart in figures(log).timeline.restarts] == [10]


def test_a_run_that_begins_from_scratch_loses_all() -> None:
    found = figures(logs.megatron(FIRST) + logs.megatron(FIRST, begin=logs.BEGIN + 1000))
    assert [restart.lost for restart in found.timeline.restarts] == [50]
    assert found.timeline.steps == 50


def test_steps_between_the_lines_are_lost_too() -> None:
    """Of a log with every tenth step: the first line after a restart covers the nine before its own."""
    every = [(number, 8.0, 9.0) for number in range(10, 101, 10)]
    for again, lost in ((0, 100), (5, 50), (9, 10)):
        rest = logs.megatron([*every[again:], (110, 8.0, 9.0)], planned=200, begin=logs.BEGIN + 2000)
        found = figures(logs.megatron(every, planned=200) + rest).timeline
        assert ([restart.lost for restart in found.restarts], found.steps) == ([lost], 110)


def test_times_of_kubectl_count_before_the_programs_own() -> None:
    run = logs.steps([8.0] * 10)
    stamped = [
        f"{logs.stamp(when).replace(' ', 'T')}000Z {line}"
        for line, when in zip(logs.nemo2(run).splitlines(), logs.ends(run), strict=True)
    ]
    found = figures("2026-02-02T02:40:00.000000000Z starting\n" + logs.text(stamped))
    assert found.timeline.wall_seconds == pytest.approx(80)
    assert found.timeline.goodput == pytest.approx(1)


_SAVE = "[NeMo I 2026-02-02 02:45:00 x:1] Global Checkpoint Save : Rank: "
_END = "[NeMo I 2026-02-02 02:45:40 x:606] Async checkpoint save for step 20 (/c/a.ckpt) finalized successfully"
CHECKPOINTS = {
    "megatron": (
        [
            "[2026-02-02 02:45:00.000000] saving checkpoint at iteration      20 to /outputs/c in torch_dist format",
            "  [2026-02-02 02:45:30.500000] successfully saved checkpoint from iteration      20 to /outputs/c",
            "[2026-02-02 02:46:00.000000] saving checkpoint at iteration      40 to /outputs/c in torch_dist format",
            "  successfully loaded checkpoint from /outputs/c [ t 1/4, p 1/4 ] at iteration 40",
        ],
        (2, 1, 30.5, None, 1, None),
    ),
    "nemo 1": (
        [
            "[NeMo I 2026-02-02 02:45:00 x:573] Checkpoint save for step 20 started at 1770000300.0.",
            "[NeMo I 2026-02-02 02:45:00 x:573] Checkpoint save for step 20 started at 1770000301.0.",
            f"{_END} at 1770000340.5.",
        ],
        (1, 0, 40.5, None, 0, None),
    ),
    "nemo 2": (
        [
            f"{_SAVE}0 : Iteration: 19 : Start time: 1770000300.000s : Save duration: 1.250s",
            f"{_SAVE}1 : Iteration: 19 : Start time: 1770000299.000s : Save duration: 2.250s",
            f"{_END}.",
            "Global Checkpoint Load : Rank : 0 : Start time : 1770000290.000s : Time spent in load_checkpoint: 4.500s",
        ],
        (1, 0, 41.0, 2.25, 1, 4.5),
    ),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_checkpoints(name: str) -> None:
    told, expected = CHECKPOINTS[name]
    found = figures(logs.megatron(FIRST) + logs.text(told)).timeline.checkpoints
    assert (found.saved, found.unfinished, found.save_seconds) == expected[:3]
    assert (found.blocking_seconds, found.loads, found.load_seconds) == expected[3:]


def test_cost_is_of_machines_and_wall_time() -> None:
    found = figures(RESTARTED, price=90.0, machines=16, gpus=128, batch=256, sequenceLength=4096)
    assert found.cost
    assert found.cost.total == pytest.approx(90 * 16 * 880 / 3600)
    assert found.cost.per_billion_tokens == pytest.approx(90 * 16 / 3600 / (256 * 4096 / 8) * 1e9)


def test_the_configuration_of_megatron() -> None:
    settings = {"num_layers": 80, "hidden_size": 8192, "ffn_hidden_size": 28672, "num_attention_heads": 64}
    settings |= {"num_query_groups": 8, "padded_vocab_size": 32000, "seq_length": 4096, "global_batch_size": 256}
    content = logs.megatron_arguments(
        **settings, group_query_attention=True, swiglu=True, world_size=128, bf16=True, fp8=None
    )
    found = figures(content + logs.megatron(logs.steps(OKE)), gpu="h100-80gb")
    assert found.speed.tflops
    assert round(found.speed.tflops["full"]) == 510
    assert (found.facts.get("gpus"), found.facts.get("precision"), found.notices) == (128, "bf16", [])
    assert found.mfu == pytest.approx(0.516, abs=0.001)


def test_the_configuration_of_nemo_1_in_yaml() -> None:
    content = (
        "[NeMo I 2025-03-10 16:20:00 megatron_gpt_pretraining:37] \n\n************** Experiment configuration ***\n"
        "    trainer:\n      devices: 8\n      num_nodes: 16\n      precision: bf16-mixed\n"
        "    model:\n      global_batch_size: 256\n      encoder_seq_length: 4096\n      activation: fast-swiglu\n"
        "      num_layers: 80\n      hidden_size: 8192\n      ffn_hidden_size: 28672\n      num_attention_heads: 64\n"
        "      num_query_groups: 8\n"
    )
    found = figures(content + logs.nemo_list(OKE), vocabularySize=32000)
    assert round(found.speed.tokens_per_gpu or 0, 1) == 1147.6
    assert found.speed.tflops
    assert round(found.speed.tflops["full"]) == 510


def test_options_in_a_megatron_log_that_differ_are_a_finding_not_a_guess() -> None:
    found = figures(logs.megatron_arguments(global_batch_size=256) + logs.megatron(FIRST), batch=512, sequenceLength=8)
    (error,) = [each for each in found.notices if each.severity == "error"]
    told = "512 by the options, 256 by the log, 256 by the steps of the log"
    assert str(error) == f"global batch is {told}; name the right one; figures that need it are left out"
    assert found.speed.tokens is None


def test_a_batch_that_grows_counts_with_its_mean() -> None:
    content = logs.megatron(FIRST[:10], batch=128) + logs.megatron(FIRST[10:20], batch=256, begin=logs.BEGIN + 80)
    found = figures(content, sequenceLength=4096, gpus=8)
    assert found.speed.tokens == pytest.approx(192 * 4096 / 8)
    assert found.notices[0].message.startswith("the batch changes within the window")


_SAVED = (
    "[2026-02-02 02:43:00.0] saving checkpoint at iteration      20 to /outputs/c\n"
    "[2026-02-02 02:43:30.0] successfully saved checkpoint from iteration      20 to /outputs/c\n"
)
FIRST_RUN = (
    logs.megatron_arguments(num_layers=80)
    + logs.megatron(logs.steps([9.0] * 20)).replace("loss: 8.9", "loss: nan |x: 8.9")
    + _SAVED
    + logs.megatron_arguments(num_layers=80)
    + logs.megatron(logs.steps([9.0] * 5, first=21), begin=logs.BEGIN + 300)
)
SECOND_RUN = logs.megatron_arguments(num_layers=32) + logs.megatron(logs.steps([2.0] * 20), begin=logs.BEGIN + 500)
TWO_RUNS = FIRST_RUN + SECOND_RUN


def test_two_runs_in_one_file() -> None:
    found = figures(TWO_RUNS)
    assert found.times
    assert (found.times.mean, found.facts.get("layers"), found.timeline.steps) == (2.0, 32, 20)
    assert (found.timeline.checkpoints.saved, found.timeline.wall_seconds, found.odd) == (0, 40, {})
    assert str(found.notices[0]) == "the log contains 2 runs; this is the last; --run N chooses, 1 to 2"


def test_the_first_of_two_runs_is_as_if_it_were_alone() -> None:
    found = read_out(read(TWO_RUNS), Wanted(window="all", run=1))
    alone = figures(FIRST_RUN)
    assert (found.times, found.timeline, found.odd, found.loss) == (
        alone.times,
        alone.timeline,
        alone.odd,
        alone.loss,
    )
    assert (found.facts.get("layers"), found.timeline.steps, found.timeline.wall_seconds) == (80, 25, 345)
    assert (found.timeline.checkpoints.saved, [restart.lost for restart in found.timeline.restarts]) == (1, [0])
    assert read_out(read(TWO_RUNS), Wanted(run=2)).notices == figures(TWO_RUNS, window="").notices[1:]


@pytest.mark.parametrize(("content", "run", "held"), [(TWO_RUNS, 3, "2 runs"), (RESTARTED, 2, "1 run")])
def test_a_run_that_the_log_does_not_hold(content: str, run: int, held: str) -> None:
    with pytest.raises(UsageError, match=f"no run {run}: the log contains {held}; a new run has"):
        read_out(read(content), Wanted(run=run))


def test_a_clock_that_goes_back() -> None:
    content = logs.megatron(FIRST[:10]) + logs.megatron(FIRST[10:], begin=logs.BEGIN - 500)
    found = figures(content)
    assert (found.timeline.wall_seconds, found.timeline.goodput) == (None, None)
    (notice,) = [each for each in found.notices if "clock" in each.message]
    assert notice.message == "the clock goes back by 572 s at step 11"


def test_more_than_the_peak_is_not_possible() -> None:
    values = find_model("llama3-8b")[1]
    found = figures(logs.megatron(FIRST), gpu="h100-80gb", precision="bf16", gpus=1, **values)
    (notice,) = [each for each in found.notices if each.severity == "error"]
    assert "above the bf16 peak of h100-80gb, 989" in notice.message
    assert (found.speed.tflops, found.speed.tokens, found.speed.tokens_per_gpu, found.mfu) == (None, None, None, None)
    assert found.times is not None


def test_more_than_the_peak_of_every_gpu_is_not_possible_on_an_unknown_one() -> None:
    content = logs.megatron(FIRST, extra=" throughput per GPU (TFLOP/s/GPU): 1742220.0 |")
    found = figures(content, gpus=1, flops=1e18)
    errors = [each.message for each in found.notices if each.severity == "error"]
    assert len(errors) == 2
    assert (found.speed.tflops, found.speed.logged_tflops) == (None, None)
    from chartgen.data.gpus import all_gpus

    assert max(value for gpu in all_gpus().values() for value in gpu.tflops.values()) < MOST_TFLOPS


def test_what_is_below_zero_is_left_out_and_that_is_said() -> None:
    content = logs.megatron(logs.steps([7.0, -7.0, 7.0, 0.0, 7.0]), extra=" throughput per GPU (TFLOP/s/GPU): -1 |")
    found = figures(content)
    assert found.times is not None
    assert (found.times.shortest, found.times.mean, found.speed.logged_tflops) == (7.0, 7.0, None)
    assert [notice.message.split()[:4] for notice in found.notices[:2]] == [
        ["2", "of", "the", "step"],
        ["5", "of", "the", "TFLOPS"],
    ]


def test_a_speed_of_the_program_that_the_values_contradict() -> None:
    line = " tokens per gpu per second (tgs): 4096.0 |"
    right = figures(logs.megatron(FIRST, extra=line), sequenceLength=2048, gpus=16)
    assert right.speed.tokens_per_gpu == pytest.approx(256 * 2048 / 8 / 16)
    assert figures(logs.megatron(FIRST, extra=line), sequenceLength=2048).facts.get("gpus") == 16
    wrong = figures(logs.megatron(FIRST, extra=line), sequenceLength=2048, gpus=128)
    assert (wrong.speed.tokens, wrong.speed.tokens_per_gpu) == (None, None)
    (error,) = [each.message for each in wrong.notices if each.severity == "error"]
    assert "512.0" in error
    assert "4,096.0" in error


def test_a_count_of_the_program_that_no_convention_gives() -> None:
    content = logs.megatron(FIRST, extra=" throughput per GPU (TFLOP/s/GPU): 100.0 |")
    found = figures(content, gpus=64, **find_model("llama3-8b")[1])
    assert any("the program counts 100.0 TFLOPS/GPU" in each.message for each in found.notices)


@pytest.mark.parametrize(
    ("facts", "notice"),
    [
        ({}, "tokens/s and TFLOPS are not known; give --sequence and --gpus, or values with -f"),
        (
            {"sequenceLength": 8, "gpus": 8, "layers": 2},
            "TFLOPS are not known without hidden size, attention heads, vocabulary; give --model, or values with -f",
        ),
    ],
)
def test_missing_facts_are_named(facts: dict[str, Any], notice: str) -> None:
    assert [str(each) for each in figures(logs.megatron(FIRST), **facts).notices] == [notice]


@pytest.mark.parametrize(
    ("facts", "wanted", "expected"),
    [
        ({"gpu": "h100-80gb", "precision": "fp8"}, "", (1979, "fp8 peak of h100-80gb")),
        ({"gpu": "h100-80gb", "precision": "fp8"}, "bf16", (989, "bf16 peak of h100-80gb")),
        ({"gpu": "b200-180gb", "precision": "mxfp8"}, "", (4500, "fp8 peak of b200-180gb")),
        ({"gpu": "gb200-192gb", "precision": "nvfp4"}, "", (10000, "fp4 peak of gb200-192gb")),
        ({}, "1978", (1978, "the given peak")),
    ],
)
def test_peaks(facts: dict[str, Any], wanted: str, expected: tuple[float, str]) -> None:
    found = find_peak(wanted, Facts(known=facts))
    assert (getattr(found, "tflops", None), getattr(found, "name", None)) == expected


@pytest.mark.parametrize(
    ("facts", "notice"),
    [
        ({}, "MFU is not known without the GPU; give --gpu, or --peak in TFLOPS"),
        ({"gpu": "h100-80gb"}, "MFU is not known without the precision; give --precision, or --peak"),
        (
            {"gpu": "a100-80gb", "precision": "fp8"},
            "MFU is not known: no fp8 peak of a100-80gb is known; give --peak in TFLOPS",
        ),
    ],
)
def test_peaks_that_are_not_known(facts: dict[str, Any], notice: str) -> None:
    assert str(find_peak("", Facts(known=facts))) == notice


def test_names_of_gpus() -> None:
    assert [find_gpu(name) for name in ("h100", "a100", "b200-180gb")] == ["h100-80gb", "a100-40gb", "b200-180gb"]
    with pytest.raises(UsageError, match="the peak of the GPU 'tpu-v5e' is not known; known: a100-40gb"):
        find_gpu("tpu-v5e")


def test_the_nearest_published_figure() -> None:
    run = {"gpu": "h100-80gb", "precision": "bf16", "gpus": 16}
    assert find_figure("llama3-8b", run).container == "24.09"
    assert find_figure("llama3.1-8b", {**run, "precision": "fp8"}).container == "25.11"
    assert find_figure("gpt3-175b", {"gpu": "h100-80gb", "precision": "fp8", "gpus": 100}).gpus == 128
    with pytest.raises(UsageError, match="no speed of gpt3-5b is known"):
        find_figure("gpt3-5b", {})
    with pytest.raises(UsageError, match="the model 'llama3-7b' is not known; did you mean"):
        find_model("llama3-7b")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.5, "0.5 s"), (47.3, "47.3 s"), (750, "12 min 30 s"), (12000, "3 h 20 min"), (3600, "1 h"), (439200, "5 d 2 h")],
)
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_the_figures_in_words() -> None:
    found = figures(RESTARTED, gpus=64, price=2.0, machines=8, gpu="h100", **find_model("llama2-70b")[1])
    words = list(lines(found))
    assert "window      steps 1 to 80" in words
    assert "goodput     72.7 %: 80 steps that count, in 14 min 40 s" in words
    assert "first step  done after 1 min 8 s" in words
    assert "            41       10          1 min 48 s  -          -        unknown" in words
