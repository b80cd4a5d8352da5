"""Every log that the frameworks write gives the figures that were written into it."""

from __future__ import annotations

import gzip
import math
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest
import trainlogs as logs

from chartgen.metrics.read.log import Log, read_logs
from chartgen.metrics.report_data import RunFigures, Wanted, read_out

SECONDS = [20.5, 8.25, 7.5, 7.25, 7.0, 7.25, 7.5, 7.25, 7.0, 7.25]
RUN = logs.steps(SECONDS)


def read(folder: Path, content: str | bytes, name: str = "run.log") -> Log:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_logs([str(path)])


def figures(log: Log, window: str = "all", **facts: object) -> RunFigures:
    return read_out(log, Wanted(window=window, facts=[("the options", facts)]))


# Name -> the log, and what it calls the first step.
FORMATS: dict[str, tuple[Callable[[], str | bytes], str, int]] = {
    "megatron": (lambda: logs.megatron(RUN), "megatron", 1),
    "nemo-1 bars": (lambda: logs.nemo_bars(RUN), "nemo", 1),
    "nemo-1 bars drawn again": (lambda: logs.nemo_bars(RUN, drawn=3), "nemo", 1),
    "nemo-1 list": (lambda: logs.nemo_list(SECONDS), "list", 1),
    "nemo-2": (lambda: logs.nemo2(logs.steps(SECONDS, first=0)), "nemo", 0),
    "dllogger": (lambda: logs.dllogger(logs.steps(SECONDS, first=0)), "dllogger", 0),
    "bridge": (lambda: logs.bridge(RUN), "bridge", 1),
    "bridge before 0.1": (lambda: logs.bridge(RUN, word=" TFLOP/s/GPU"), "bridge", 1),
    "bridge 0.1": (lambda: logs.bridge(RUN, word="TFLOP/s/GPU"), "bridge", 1),
    "mlperf": (lambda: logs.mlperf(RUN, each=1), "mlperf", 1),
}


@pytest.mark.parametrize("name", FORMATS)
def test_step_times_are_those_of_the_log(name: str, tmp_path: Path) -> None:
    write, family, first = FORMATS[name]
    found = figures(read(tmp_path, write()))
    assert found.log.track.family == family
    assert list(found.log.track.numbers) == list(range(first, first + len(SECONDS)))
    assert found.times is not None
    assert found.times.mean == pytest.approx(statistics.fmean(SECONDS), abs=1e-9)
    assert found.times.median == pytest.approx(statistics.median(SECONDS), abs=1e-9)
    assert (found.times.shortest, found.times.longest) == pytest.approx((7.0, 20.5))


WITHOUT_LOSS = ("nemo-1 list", "bridge", "bridge 0.1", "bridge before 0.1", "mlperf")


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in WITHOUT_LOSS])
def test_losses_are_those_of_the_log(name: str, tmp_path: Path) -> None:
    found = figures(read(tmp_path, FORMATS[name][0]()))
    assert found.loss is not None
    assert (found.loss.first, found.loss.last, found.loss.lowest) == (9.0, 8.1, 8.1)
    assert found.loss.slope == pytest.approx(-100)


def test_tensorboard_files_are_read_without_tensorboard(tmp_path: Path) -> None:
    log = read(tmp_path, logs.tensorboard(RUN), "events.out.tfevents.1770000000.host.1.0")
    found = figures(log)
    assert list(log.track.numbers) == list(range(1, 11))
    assert found.times
    assert found.times.mean == statistics.fmean(SECONDS)
    assert found.timeline.wall_seconds == pytest.approx(sum(SECONDS))
    assert found.timeline.first_step_seconds == pytest.approx(20.5)


def test_a_tensorboard_file_that_is_cut_off_gives_the_whole_records(tmp_path: Path) -> None:
    content = logs.tensorboard(RUN)[:-30]
    assert len(read(tmp_path, content, "events.tfevents.1").track) in (9, 10)


def test_tensors_of_one_number_count_as_scalars(tmp_path: Path) -> None:
    import struct

    value = struct.pack("<f", 7.5)
    for tensor in (logs.field(1, 0, b"\x01") + logs.field(4, 2, value), logs.field(5, 2, value)):
        summary = logs.field(1, 2, logs.field(1, 2, b"iteration-time") + logs.field(8, 2, tensor))
        message = logs.field(1, 1, struct.pack("<d", 5.0)) + logs.field(2, 0, b"\x03") + logs.field(5, 2, summary)
        log = read(tmp_path, logs.record(message), "x.tfevents.1")
        assert (list(log.track.numbers), log.track.columns["seconds"][0]) == ([3], 7.5)


def test_automodel_gives_a_step_time_once_the_batch_is_known(tmp_path: Path) -> None:
    log = read(tmp_path, logs.automodel(RUN, tokens=64 * 4096, gpus=8))
    assert figures(log).times is None
    found = figures(log, batch=64, sequenceLength=4096)
    speeds = [round(64 * 4096 / 8 / seconds, 2) for seconds in SECONDS]
    assert found.speed.tokens_per_gpu == pytest.approx(statistics.harmonic_mean(speeds))
    assert found.facts.get("gpus") == 8
    assert found.memory == pytest.approx(33.95 * 1024**3 / 1e9)


def test_automodels_evaluations(tmp_path: Path) -> None:
    lines = (
        f'2026-02-02 02:40:00 | INFO | root | [val] name "{name}" | step {step} | epoch 0 | loss {loss:.4f} '
        "| lr 1.00e-05 | num_label_tokens 64"
        for name, step, loss in (("default", 4, 2.5), ("default", 9, 2.25))
    )
    log = read(tmp_path, logs.automodel(RUN, tokens=1e6, gpus=8) + logs.text(lines))
    assert [(each.step, each.value) for each in figures(log).evaluations] == [(4, 2.5), (9, 2.25)]
    assert len(log.track) == len(RUN)


@pytest.mark.parametrize("speed", ["nan", "inf", "0.0"])
def test_a_speed_that_is_no_number_does_not_hide_its_step(speed: str, tmp_path: Path) -> None:
    content = logs.automodel(RUN, tokens=1e6, gpus=8)
    (told,) = [line for line in content.splitlines() if "| step 3 |" in line]
    wild = f"{told[: told.index('tps ')]}tps {speed}({speed}/gpu) | num_label_tokens 4040"
    log = read(tmp_path, content.replace(told, wild))
    assert (list(log.track.numbers), log.broken) == ([*range(1, 11)], 0)
    assert figures(log).facts.get("gpus") == 8


def test_the_megatron_lines_of_the_eks_guide(tmp_path: Path) -> None:
    """Old lines: no time, no loss while the loss scale is still too high."""
    rest = "| learning rate: 0.000E+00 | global batch size:   288 | loss scale: 4294967296.0 "
    lines = [
        f" iteration {number:8d}/  508626 | consumed samples: {number * 288:12d} "
        f"| elapsed time per iteration (ms): {time} {rest}"
        "| number of skipped iterations:   1 | number of nan iterations:   0 |"
        for number, time in ((1, "255940.5"), (2, "243438.3"), (3, "243344.4"))
    ]
    found = figures(read(tmp_path, logs.text(lines)))
    assert list(found.log.track.columns["seconds"]) == [255.9405, 243.4383, 243.3444]
    assert found.totals == {"skipped": 3, "nans": 0}
    assert (found.facts.get("batch"), found.planned, found.loss) == (288, 508626, None)
    assert (found.timeline.wall_seconds, found.timeline.goodput) == (None, None)


def test_throughput_energy_and_memory_of_megatron(tmp_path: Path) -> None:
    extra = (
        " throughput per GPU (TFLOP/s/GPU): 478.0 | energy per GPU (J/iter/GPU): 1992.5 | power per GPU (W/GPU): 7 |"
    )
    memory = "[Rank 0] (after 2 iterations) memory (MB) | allocated: 1.5 | max allocated: 67551.33 | reserved: 7 |"
    run = logs.megatron(RUN[:2], extra=extra) + memory + "\n" + logs.megatron(RUN[2:], extra=extra)
    found = figures(read(tmp_path, run))
    assert len(found.log.track) == 10
    assert (found.speed.logged_tflops, found.joules) == (478.0, 1992.5)
    assert found.memory == pytest.approx(67551.33 * 1024**2 / 1e9)


def test_a_fork_that_prints_its_own_mean_behind_a_slash(tmp_path: Path) -> None:
    line = logs.megatron(RUN[:1]).replace("20500.0 |", "20500.0/19999.9 |")
    assert read(tmp_path, line).track.columns["seconds"][0] == 20.5


def test_the_speed_that_bridge_prints_joins_the_steps_of_megatron(tmp_path: Path) -> None:
    pairs = zip(logs.bridge(RUN).splitlines(), logs.megatron(RUN).splitlines(), strict=True)
    found = figures(read(tmp_path, logs.text(line for pair in pairs for line in pair)))
    assert found.log.track.family == "megatron"
    assert found.speed.logged_tflops == 663.5


def test_lines_that_stand_for_several_steps_weigh_as_much(tmp_path: Path) -> None:
    run = [(100, 8.0, 9.0), (200, 7.0, 8.0), (300, 7.0, 7.0), (350, 6.0, 6.5)]
    found = figures(read(tmp_path, logs.megatron(run)))
    assert found.times
    assert found.window.interval == 100
    assert found.times.mean == pytest.approx((800 + 700 + 700 + 300) / 350)


def test_mlperf_gives_the_time_to_train(tmp_path: Path) -> None:
    found = figures(read(tmp_path, logs.mlperf(RUN, each=48)))
    assert found.score
    assert found.score[0] == pytest.approx(sum(SECONDS) * 48)
    assert found.score[1] == "success"
    assert found.facts.get("lora") is True
    assert found.facts.get("batch") == 8
    assert list(found.log.track.numbers) == [48 * number for number in range(1, 11)]


def test_a_batch_of_nothing_makes_no_steps_of_samples(tmp_path: Path) -> None:
    content = logs.mlperf(RUN).replace('"value": 8,', '"value": 0,') + logs.mlperf(RUN)
    log = read(tmp_path, content)
    assert (len(log.track), log.broken) == (10, 10)


def test_numbers_that_are_none_are_told_not_dropped(tmp_path: Path) -> None:
    content = logs.megatron(RUN).replace("lm loss: 8.900000E+00", "lm loss: nan").replace("8.800000E+00", "inf")
    found = figures(read(tmp_path, content))
    assert found.odd == {"loss": (2, 3)}
    assert found.loss
    assert math.isfinite(found.loss.slope)
    assert found.times
    assert found.times.mean == pytest.approx(statistics.fmean(SECONDS))


def test_a_step_time_that_is_no_number_does_not_hide_the_others(tmp_path: Path) -> None:
    content = logs.megatron(RUN).replace("(ms): 20500.0", "(ms): nan")
    found = figures(read(tmp_path, content))
    assert found.times
    assert found.times.mean == pytest.approx(statistics.fmean(SECONDS[1:]))
    assert found.odd == {"seconds": (1,)}


@pytest.mark.parametrize("family", ["megatron", "dllogger", "nemo2"])
def test_a_last_line_that_is_cut_off_leaves_the_others(family: str, tmp_path: Path) -> None:
    content = str(getattr(logs, family)(RUN))
    log = read(tmp_path, content[: len(content) - 150])
    assert len(log.track) in (9, 10)
    assert list(log.track.columns["seconds"][:9]) == SECONDS[:9]


def test_gzip_and_folders_of_ranks(tmp_path: Path) -> None:
    for rank in range(4):
        lines = logs.megatron(RUN) if rank == 3 else "NCCL INFO nothing to see\n"
        (tmp_path / f"rank-{rank}.log.gz").write_bytes(gzip.compress(lines.encode()))
    log = read_logs([str(tmp_path)])
    assert list(log.track.columns["seconds"]) == SECONDS
    assert log.places == (str(tmp_path / "rank-3.log.gz"),)


def test_copies_of_one_log_count_once(tmp_path: Path) -> None:
    for rank in range(3):
        (tmp_path / f"{rank}.log").write_text(logs.megatron(RUN))
    assert len(read_logs([str(tmp_path)]).track) == 10


def test_the_list_of_all_step_times_counts_when_nothing_else_does(tmp_path: Path) -> None:
    content = logs.nemo_list([1.0, 2.0]) + logs.nemo_list(SECONDS)
    assert list(read(tmp_path, content).track.columns["seconds"]) == SECONDS
    bars = logs.nemo_bars(RUN) + logs.nemo_list(SECONDS)
    assert read(tmp_path, bars).track.family == "nemo"
