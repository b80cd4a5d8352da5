"""Genuine logs of many programs and submitters give the figures that were worked out for them independently.

The logs are not part of the project (tests/support/corpus.py). Their README says where they are from.
"""

from __future__ import annotations

import gzip
import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest
from corpus import CORPUS

from chartgen.metrics.read.log import read_logs
from chartgen.metrics.read.readers.nccl import TableReader
from chartgen.metrics.report_data import RunFigures, Wanted, read_out

pytestmark = pytest.mark.skipif(CORPUS is None, reason="the corpus of genuine logs is not here: see CHARTGEN_CORPUS")
# Results that log each step log the mean of a block, too; the expected median counts both, chartgen only the steps.
_BLOCKS = 2e-3


def expected(folder: str) -> list[Any]:
    """Return a case for each log of a folder; one that is skipped where the corpus is absent."""
    cases = json.loads((CORPUS / folder / "expected.json").read_text()) if CORPUS else [{"file": ""}]
    return [pytest.param(case, id=case["file"]) for case in cases]


def path_of(folder: str, name: str) -> Path:
    assert CORPUS is not None
    return CORPUS / folder / name


def figures(path: Path, **facts: object) -> RunFigures:
    return read_out(read_logs([str(path)]), Wanted(window="all", facts=[("the options", facts)]))


@pytest.mark.parametrize("case", expected("mlperf"))
def test_results_of_mlperf(case: dict[str, Any]) -> None:
    found = figures(path_of("mlperf", f"{case['file']}.gz"))
    assert found.score is not None
    assert found.score[0] / 60 == pytest.approx(case["minutes"], abs=1e-4)
    assert found.score[1] == case["status"]
    assert found.evaluations[-1].value == pytest.approx(case["evalAccuracy"])
    assert [each.samples for each in found.evaluations] == sorted(each.samples for each in found.evaluations)
    if case["stepSecondsMedian"] is not None:
        assert found.times is not None
        assert found.times.median == pytest.approx(case["stepSecondsMedian"], rel=_BLOCKS)
    if case["trainLossLast"] is not None:
        assert found.loss is not None
        assert found.loss.last == pytest.approx(case["trainLossLast"])


@pytest.mark.parametrize("case", expected("mlperf"))
def test_steps_of_results_fill_their_time(case: dict[str, Any]) -> None:
    """Steps are counted in the submitter's unit: they and their times never amount to more than the time to train."""
    found = figures(path_of("mlperf", f"{case['file']}.gz"))
    if found.times is None:
        return
    assert found.score is not None
    trained = found.timeline.steps * found.times.median / found.score[0]
    assert 0.7 < trained < 1.02
    with gzip.open(path_of("mlperf", f"{case['file']}.gz"), "rt", errors="replace") as stream:
        told = re.findall(r'"run_stop".*"samples_count": (\d+)', stream.read())
    batch = found.facts.get("batch")
    if told and batch:
        assert found.timeline.steps == pytest.approx(int(told[-1]) / batch, rel=0.02)


@pytest.mark.parametrize("case", expected("megatron"))
def test_logs_of_megatron(case: dict[str, Any]) -> None:
    path = path_of("megatron", f"{case['file']}.gz")
    if not case["lines"]:
        with pytest.raises(Exception, match="no training steps"):
            read_logs([str(path)])
        return
    found = figures(path)
    assert len(found.log.track) == case["lines"]
    assert found.times is not None
    assert found.times.median == pytest.approx(case["stepMillisecondsMedian"] / 1000)
    assert [found.facts.get("gpus")] == case["worldSize"]
    # the vocabulary stands in a line of its own, so the configuration is all that TFLOPS need
    assert found.facts.get("vocabularySize") == 50688
    assert found.speed.tflops is not None
    assert 0 < max(found.speed.tflops.values()) < 312  # of fp16 on the A100, the fastest GPU of that time


def other(name: str) -> RunFigures:
    return figures(path_of("other", name))


def raw(name: str, pattern: str) -> list[float]:
    """Read numbers from the text, by a pattern of the test's own."""
    return [float(number) for number in re.findall(pattern, path_of("other", name).read_text(errors="replace"))]


@pytest.mark.parametrize(
    ("name", "pattern", "unit"),
    [
        ("abci-megatron-fork.log", r"iteration time: ([\d.]+) s", 1),
        ("bloom-s.log", r"iteration \(s\): ([\d.]+)", 1),
        ("leonardo-megatron.log", r"iteration \(ms\): ([\d.]+)", 1000),
        ("megds-tflops.log", r"iteration \(ms\): ([\d.]+)", 1000),
        ("nemo1-bars-sci.log", r"timing in s=([\d.]+)", 1),
        ("nemo2-dit.log", r"timing in s: ([\d.]+)", 1),
        ("nemo2-tz.log", r"timing in s: ([\d.]+)", 1),
    ],
)
def test_step_times_of_other_programs(name: str, pattern: str, unit: float) -> None:
    log = read_logs([str(path_of("other", name))])
    track = log.track
    assert [*track.columns["seconds"]] == pytest.approx([value / unit for value in raw(name, pattern)], rel=1e-3)


def test_a_count_of_the_program_is_its_own() -> None:
    assert other("bloom-s.log").speed.logged_tflops == pytest.approx(162.284, abs=1e-2)
    found = other("megds-tflops.log")
    assert found.speed.tokens_per_gpu == pytest.approx(
        statistics.harmonic_mean(raw("megds-tflops.log", r"tgs\): (\S+)")), rel=1e-4
    )
    assert found.speed.logged_tflops == pytest.approx(
        statistics.harmonic_mean(raw("megds-tflops.log", r"TFLOPs: (\S+)"))
    )
    # 53.7 samples a second of 4,096 tokens, 1,145.6 for each GPU: 192
    assert found.facts.get("gpus") == 192
    assert other("nemo2-tz.log").speed.tokens_per_gpu == pytest.approx(10735, rel=1e-3)


def test_automodel_without_step_times() -> None:
    found = other("automodel-gpt2.log")
    speeds = raw("automodel-gpt2.log", r"\(([\d.]+)/gpu\)")
    assert found.speed.tokens_per_gpu == pytest.approx(statistics.harmonic_mean(speeds))
    assert found.facts.get("gpus") == 2


def test_torchtitan() -> None:
    found = other("torchtitan-aurora.log")
    assert [*found.log.track.numbers] == [*range(2, 2 + len(found.log.track))]
    text = path_of("other", "torchtitan-aurora.log").read_text()
    speeds = [float(number.replace(",", "")) for number in re.findall(r"tps: (\S+)", text)]
    assert found.speed.tokens_per_gpu == pytest.approx(statistics.harmonic_mean(speeds))
    assert found.loss is not None
    assert found.loss.last == raw("torchtitan-aurora.log", r"loss: +(\S+)")[-1]


def test_a_loss_that_is_written_nan_point_0_is_none() -> None:
    log = read_logs([str(path_of("other", "nemo1-bars-sci.log"))])
    assert [*log.track.numbers] == [2000, 9000]
    assert [*log.track.odd["loss"]] == [1]


def test_bars_without_a_time_still_tell_the_loss() -> None:
    found = other("nxdt-llama3-70b-bars.log")
    assert [*found.log.track.numbers] == [1, 3]
    assert found.loss is not None
    assert found.loss.last == 13.4


def test_nccl_tests_of_2018() -> None:
    rows = TableReader().read(path_of("other", "nccl-old-k80.log").read_bytes())
    assert max(row.busbw for row in rows) == 2.56
    assert len(rows) == 2 * len(raw("nccl-old-k80.log", r"(?m)^ +(\d+) +\d+ +float"))
    assert {row.wrong for row in rows} == {0}
