"""What submitters of MLPerf log differs; the figures of a result are right whatever they count.

Each case is a form that a result of mlcommons/training_results_v3.1 to v5.1 has.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import trainlogs as logs

from chartgen.metrics.read.log import Log, read_logs
from chartgen.metrics.report_data import RunFigures, Wanted, read_out

BATCH, SEQUENCE, SECONDS, EACH = 8, 2048, 2.5, 48
# Seconds that the program takes to start, and that an evaluation takes.
START, PAUSE = 90.0, 10.0


class Result:
    """A result that is written piece by piece; the clock goes on by what happens."""

    def __init__(self, begin: float = logs.BEGIN, **settings: object) -> None:
        self.when = begin
        self.lines = [logs.mllog("init_start", begin), logs.mllog("global_batch_size", begin, BATCH)]
        self.lines += [logs.mllog(key, begin, value) for key, value in settings.items()]
        self.when += START
        self.log("run_start")

    def log(self, key: str, value: object = None, **metadata: object) -> None:
        self.lines.append(logs.mllog(key, self.when, value, **metadata))

    def train(self, steps: int = EACH) -> None:
        self.when += steps * SECONDS

    def evaluate(self, value: float, **metadata: object) -> None:
        self.when += PAUSE
        self.log("eval_accuracy", value, **metadata)
        self.log("block_start")

    def stop(self, status: str = "success") -> str:
        self.log("run_stop", None, status=status)
        return logs.text(self.lines)


def read(folder: Path, *contents: str) -> Log:
    for at, content in enumerate(contents):
        (folder / f"result_{at}.txt").write_text(content)
    return read_logs([str(folder)])


def figures(folder: Path, *contents: str, run: int | None = None) -> RunFigures:
    return read_out(read(folder, *contents), Wanted(window="all", run=run))


def of_steps(step: int, **values: float) -> str:
    """Lines of single steps; `step` is what a step counts."""
    result = Result(max_sequence_length=SEQUENCE)
    for number in range(1, 21):
        result.train(1)
        result.log("tracked_stats", {"train_step_timing in s": SECONDS, **values}, step=number * step)
    return result.stop()


def of_blocks(count: str, value: dict[str, float]) -> str:
    """Lines of blocks; `count` is what their count means."""
    result = Result(max_sequence_length=SEQUENCE, target_accuracy=0.925)
    samples = 0
    for block in (4 * EACH, EACH, EACH):
        result.train(block)
        before, samples = samples, samples + block * BATCH
        told = {"end": samples, "start": before, "size": block * BATCH, "steps": samples // BATCH}[count]
        result.log("tracked_stats", value, step=told)
        result.evaluate(0.94, samples_count=samples)
    return result.stop()


@pytest.mark.parametrize("step", [1, BATCH, BATCH * SEQUENCE], ids=["steps", "samples", "tokens"])
def test_steps_are_numbered_whatever_the_submitter_counts(step: int, tmp_path: Path) -> None:
    found = figures(tmp_path, of_steps(step))
    assert [*found.log.track.numbers] == [*range(1, 21)]
    assert found.times is not None
    assert (found.times.median, found.timeline.steps) == (SECONDS, 20)


@pytest.mark.parametrize("count", ["end", "start", "size", "steps"])
@pytest.mark.parametrize(
    "value",
    [{"throughput": BATCH / SECONDS}, {"train_step_time": SECONDS}],
    ids=["samples", "seconds"],
)
def test_blocks_stand_for_their_steps(count: str, value: dict[str, float], tmp_path: Path) -> None:
    found = figures(tmp_path, of_blocks(count, value))
    if count == "start" and "throughput" in value:  # nothing tells how long a step took
        assert found.times is None
        assert any("unit" in notice.message for notice in found.notices)
        return
    assert [*found.log.track.numbers] == [4 * EACH, 5 * EACH, 6 * EACH]
    assert found.times is not None
    assert found.times.mean == pytest.approx(SECONDS)
    assert found.timeline.steps == 6 * EACH
    assert found.timeline.goodput == pytest.approx(6 * EACH * SECONDS / (START + 6 * EACH * SECONDS + 3 * PAUSE))
    assert found.timeline.first_step_seconds == pytest.approx(START + SECONDS)


def test_a_speed_that_does_not_agree_with_the_clock_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    found = figures(tmp_path, of_blocks("end", {"throughput": 12345.6}))
    assert (found.times, found.speed.samples) == (None, None)
    assert any("unit" in notice.message for notice in found.notices)
    assert found.score is not None


def test_the_mean_of_a_block_is_no_step_where_steps_are_told(tmp_path: Path) -> None:
    result = Result()
    for number in range(1, 11):
        result.train(1)
        result.log("tracked_stats", {"train_step_time": SECONDS, "reduced_train_loss": 9 - number}, step=number * BATCH)
    result.log("tracked_stats", {"throughput": 3.0, "train_step_time": 2.6, "max_memory_usage": 82.5}, step=0)
    found = figures(tmp_path, result.stop())
    assert len(found.log.track) == 10
    assert found.times is not None
    assert (found.times.longest, found.memory) == (SECONDS, 82.5)
    assert found.loss is not None
    assert found.loss.last == -1


def test_a_result_of_nothing_but_evaluations(tmp_path: Path) -> None:
    result = Result(max_sequence_length=SEQUENCE, submission_benchmark="gpt3")
    for number in (1, 2, 3):
        result.train()
        tokens = number * EACH * BATCH * SEQUENCE
        result.evaluate(2.8 - number / 20, epoch_num=tokens)
    found = figures(tmp_path, result.stop("aborted"))
    assert [each.samples for each in found.evaluations] == [number * EACH * BATCH for number in (1, 2, 3)]
    assert [each.step for each in found.evaluations] == [EACH, 2 * EACH, 3 * EACH]
    assert (found.times, found.timeline.first_step_seconds) == (None, None)
    assert found.target == 2.69
    assert found.evaluations[-1].value == pytest.approx(2.65)
    assert found.score is not None
    assert found.score[0] == pytest.approx(3 * (EACH * SECONDS + PAUSE))
    assert found.score[1] == "aborted"


def test_trials_are_runs_not_restarts(tmp_path: Path) -> None:
    trials = []
    for at in range(4):
        result = Result(logs.BEGIN + 1e5 * at)
        result.train()
        result.log("tracked_stats", {"throughput": BATCH / SECONDS}, step=EACH * BATCH)
        result.evaluate(0.9 + at / 100, samples_count=EACH * BATCH)
        trials.append(result.stop())
    whole = figures(tmp_path, *trials)
    assert (whole.timeline.restarts, whole.timeline.steps) == ((), EACH)
    assert [figures(tmp_path, run=run).evaluations[0].value for run in (1, 2, 3, 4)] == [0.9, 0.91, 0.92, 0.93]
    assert {figures(tmp_path, run=run).timeline.goodput for run in (1, 2, 3, 4)} == {whole.timeline.goodput}
    one = tmp_path / "one"
    one.mkdir()
    together = figures(one, "".join(trials), run=2)
    assert (together.evaluations[0].value, together.timeline.goodput) == (0.91, whole.timeline.goodput)


def test_one_line_that_fits_by_chance_is_not_believed(tmp_path: Path) -> None:
    result = Result(max_sequence_length=SEQUENCE)
    for number in range(1, 8):
        result.train()
        result.log("tracked_stats", {"throughput": 77.7 if number != 4 else BATCH / SECONDS}, step=EACH)
        result.evaluate(0.94, samples_count=number * EACH * BATCH)
    assert figures(tmp_path, result.stop()).times is None
