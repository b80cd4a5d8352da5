"""Logs that are written against their reader: it ends, in little memory, and prints no figure that cannot be.

Each runs as a process with a limit of processor time and of memory: what is not linear in the length of a line runs
into the first, what allocates as a number says into the second.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import resource
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from chartgen.errors import ChartgenError
from chartgen.metrics.figures.facts import join_facts
from chartgen.metrics.read.log import read_logs

MEGA = 1 << 20
# Seconds of processor time, and bytes of address space: reading the longest of these takes about a second.
_TIME, _MEMORY = 60, 2 << 30
STEP = (
    b" iteration        1/     100 | consumed samples:          256 | elapsed time per iteration (ms): 7000.0 |"
    b" lm loss: 9.000000E+00 |\n"
)


def metrics(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (_TIME, _TIME))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))

    command = [sys.executable, "-m", "chartgen", "metrics", str(path), *options]
    return subprocess.run(command, check=False, capture_output=True, text=True, preexec_fn=limit)


# What a pattern that goes back and forth needs n * n steps for.
LINES = {
    "checkpoints that are loaded": b"successfully loaded checkpoint " * (4 * MEGA // 31),
    "checkpoints that are saved": b"checkpoint save for step 1 ( " * (4 * MEGA // 29),
    "checkpoints of NeMo": b"Global Checkpoint Save : Rank: 1 : Start time: 1" * (4 * MEGA // 48),
    "memory of Megatron": b"(after 1 iterations) memory (MB) | allocated: " * (4 * MEGA // 46),
    "iterations": b"iteration 1/ 2 | elapsed time per iteration (ms): " * (4 * MEGA // 50),
    "one iteration of many fields": b"iteration 1/ 2 | elapsed time per iteration (ms): 5 |"
    + b" a: 1 |" * (4 * MEGA // 7),
    "evaluations": b"validation loss at iteration 1 | lm loss value: " * (4 * MEGA // 48),
    "bars": b"[global_step=" * (4 * MEGA // 13) + b"reduced_train_loss",
    "steps of NeMo 2": b"Training epoch 0, iteration 0/9 | train_step_timing in s: " * (4 * MEGA // 58),
    "steps of Automodel": b"step 1 | epoch 0 | loss 1 | /gpu) | num_label_tokens " * (4 * MEGA // 53),
    "steps of torchtitan": b"step: 1 GiB( loss: " * (4 * MEGA // 19),
    "steps of Bridge": b"Step Time : " + b" " * 4 * MEGA,
    "settings": b"- arguments -----\n" + b"num_layers: " * (4 * MEGA // 12),
    "a setting of blanks": b"- arguments -----\nnum_layers: " + b" " * 4 * MEGA + b"x y",
    "objects of DLLogger": b'DLLL {"data": ' * (4 * MEGA // 14),
    "results of MLPerf": b':::MLLOG {"key": "tracked_stats", ' * (4 * MEGA // 35),
    "a table of nccl-tests": b"algbw   busbw\n" + b"# all_reduce " * (4 * MEGA // 13),
    "a prefix": b"a/" * 2 * MEGA + b" memory (MB) | allocated",
}


@pytest.mark.threat(9)
@pytest.mark.parametrize("name", LINES)
def test_a_long_line_takes_time_as_its_length(name: str, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(LINES[name] + b"\n" + STEP)
    found = metrics(log, "--output", "json")
    assert found.returncode in (0, 1), found.stderr[-500:]
    assert "Traceback" not in found.stderr


HUGE = "9" * 18
COUNTS = {
    "a step": STEP.replace(b"        1/", HUGE.encode() + b"/"),
    "steps planned": STEP.replace(b"     100 ", HUGE.encode() + b" ") * 2,
    "a gap": STEP + STEP.replace(b"        1/", HUGE.encode() + b"/"),
    "a batch": STEP.replace(b" lm loss", b" global batch size: " + HUGE.encode() + b" | lm loss"),
    "a size of a message": b"algbw   busbw\n"
    + b" ".join([HUGE.encode()] * 2 + [b"float sum -1 1 1 1 0 1 1 1 0"])
    + b"\n",
    "digits without end": b"algbw   busbw\n" + b" ".join([b"9" * 1900] * 2 + [b"float sum -1 1 1 1 0 1 1 1 0"]) + b"\n",
    "samples": b':::MLLOG {"time_ms": 1, "key": "run_start", "value": null}\n'
    b':::MLLOG {"time_ms": 9000, "key": "tracked_stats", "value": {"train_step_time": 1e-300}, "metadata": {"step": '
    + HUGE.encode()
    + b"}}\n",
    "a batch of MLPerf": b':::MLLOG {"time_ms": 1, "key": "global_batch_size", "value": 1e308}\n' + STEP,
    "an evaluation": b':::MLLOG {"time_ms": 1, "key": "run_start", "value": null}\n'
    + b':::MLLOG {"time_ms": 9000, "key": "eval_accuracy", "value": 0.9, "metadata": {"samples_count": %d}}\n' % 10**30
    + b':::MLLOG {"time_ms": 9999, "key": "run_stop", "value": null}\n',
    "losses": b"".join(
        STEP.replace(b"    1/", b"%5d/" % n).replace(b"9.000000E+00", b"-1E+308" if n % 2 else b"1E+308")
        for n in range(40)
    ),
    "a time": b':::MLLOG {"time_ms": 1e308, "key": "run_start", "value": null}\n' + STEP,
}


@pytest.mark.threat(9)
@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("form", ["text", "json", "report"])
def test_a_number_allocates_nothing(name: str, form: str, tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_bytes(COUNTS[name])
    options = ["--report", str(tmp_path / "run.html")] if form == "report" else ["--output", form]
    found = metrics(log, *options)
    assert found.returncode in (0, 1, 2), found.stderr[-500:]
    assert "Traceback" not in found.stderr


def test_no_figure_is_below_zero_or_above_what_a_gpu_can_do(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    line = STEP.replace(b" lm loss", b" throughput per GPU (TFLOP/s/GPU): 1742220.0 | lm loss").replace(
        b"7000.0", b"0.001"
    )
    log.write_bytes(b"".join(line.replace(b"    1/", b"%5d/" % number) for number in range(1, 40)))
    model = ["--model", "llama2-70b", "--sequence", "4096", "--gpus", "1", "--batch", "256"]
    found = metrics(log, *model, "--output", "json")
    assert found.returncode == 1
    told = json.loads(found.stdout)
    assert (told["tflopsPerGpu"], told["loggedTflopsPerGpu"], told["tokensPerSecondPerGpu"], told["mfu"]) == (None,) * 4


def test_sizes_that_no_run_has_are_not_facts(tmp_path: Path) -> None:
    """Neither more digits than a float has room for, nor what Python takes for a digit and not for a number."""
    log = tmp_path / "run.log"
    sizes = {"seq_length": "1" + "0" * 400, "global_batch_size": "1" + "0" * 17, "world_size": "²"}
    settings = "".join(f"  {name} ............ {value}\n" for name, value in sizes.items()).encode()
    steps = b"".join(STEP.replace(b"        1/", b"        %d/" % number) for number in range(1, 9))
    log.write_bytes(b"---- arguments ----\n" + settings + b"---- end of arguments ----\n" + steps)
    found = metrics(log, "--output", "json")
    assert found.returncode == 0, found.stderr[-500:]
    assert not {"gpus", "sequenceLength"} & json.loads(found.stdout)["facts"].keys()


def test_window_of_figures_that_are_no_numbers(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_bytes(STEP)
    found = metrics(tmp_path / "run.log", "--window", "²:3")
    assert (found.returncode, found.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    "known", [{"steps": "x"}, {"batch": [1]}, {"gpu": [1]}, {"precision": 8}, {"vocabularySize": {}}]
)
def test_a_fact_of_another_type_is_none(known: dict[str, object]) -> None:
    """Values of a release have any form: its schema is its author's."""
    assert join_facts([("the values", known), ("the log", {"vocabularySize": 100})]).known == {"vocabularySize": 100}


def tar_of(name: str, content: bytes, kind: bytes = tarfile.REGTYPE, **fields: str | int) -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, len(content)
    for field, value in fields.items():
        setattr(member, field, value)
    return member.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % 512)


def zip_of(members: Iterable[tuple[str | zipfile.ZipInfo, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    with io.BytesIO() as out:
        with zipfile.ZipFile(out, "w", method) as archive:
            for name, content in members:
                archive.writestr(name, content, method)
        return out.getvalue()


GOOD, END = tar_of("run.log", STEP * 2), bytes(1024)
LINK = zipfile.ZipInfo("link.log")
LINK.external_attr = 0o120777 << 16
# name of the archive -> content, and whether its log is read
ARCHIVES = {
    "outside.tar": (tar_of("../../outside.log", STEP * 2) + END, True),
    "absolute.tar": (tar_of("/outside.log", STEP * 2) + END, True),
    "link.tar": (tar_of("a.log", b"", tarfile.SYMTYPE, linkname="OUTSIDE") + END, False),
    "hard.tar": (tar_of("a.log", b"", tarfile.LNKTYPE, linkname="OUTSIDE", size=9) + GOOD + END, True),
    "device.tar": (tar_of("a.log", b"", tarfile.CHRTYPE, devmajor=1, devminor=5) + GOOD + END, True),
    "sparse.tar": (tar_of("a.log", b"", tarfile.GNUTYPE_SPARSE, size=1 << 40) + END, False),
    "negative.tar": (tar_of("a.log", b"", size=-512) + GOOD + END, False),
    "truncated.tar": (GOOD[:-512], False),
    "damaged.tar": (GOOD + b"x" * 512 + GOOD + END, False),
    "header.tgz": (gzip.compress(tar_of("a", bytes(1 << 28), b"x") + END, 1), False),
    "many.tar": (tar_of("a.log", b"") * 10_001 + END, False),
    "empty.tar": (END, False),
    "none.zip": (zip_of([]), False),
    "text.zip": (STEP, False),
    "link.zip": (zip_of([(LINK, b"OUTSIDE")]), False),
    "outside.zip": (zip_of([("../../outside.log", STEP * 2)]), True),
    "many.zip": (zip_of((f"{number}.log", b"") for number in range(10_001)), False),
    "method.zip": (zip_of([("a.log", STEP)], zipfile.ZIP_LZMA), False),
    "secret.zip": (
        zip_of([("a.log", STEP * 2)]).replace(b"PK\x01\x02\x14\x03\x14\0\0", b"PK\x01\x02\x14\x03\x14\0\1"),
        False,
    ),
}


def test_the_name_of_a_member_forges_no_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    path.write_bytes(tar_of("a\nspeed  9 samples.log", STEP * 2) + END)
    assert r"a\nspeed" in metrics(path).stdout.splitlines()[0]


@pytest.mark.threat(9)
@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_is_bounded_and_nothing_is_written_or_followed(name: str, tmp_path: Path) -> None:
    folder, outside = tmp_path / "one" / "two", tmp_path / "outside.log"
    folder.mkdir(parents=True)
    content, read = ARCHIVES[name]
    outside.write_bytes(STEP * 50)
    (folder / name).write_bytes(content.replace(b"OUTSIDE", bytes(outside)) if name == "link.zip" else content)
    found = metrics(folder / name, "--output", "json")
    assert "Traceback" not in found.stderr
    assert (found.returncode == 0) is read, found.stderr
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {name, outside.name}
    if read:
        assert json.loads(found.stdout)["steps"]["logged"] == 1  # of two lines of one step, not of the file outside
    else:
        assert name in found.stderr
        assert len(found.stderr) < 500


@pytest.mark.threat(14)
@pytest.mark.parametrize("name", ["events.out.tfevents.1", "b.gz", "b.tar", "b.zip"])
def test_a_damaged_file_of_a_folder_leaves_the_others(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(STEP * 2)
    (tmp_path / name).write_bytes(b"\x1f\x8b" + b"x" * 600)
    found = metrics(tmp_path, "--output", "json")
    assert found.returncode == 0
    assert json.loads(found.stdout)["steps"]["logged"] == 1
    assert re.search(rf"{name}: .*; its steps are left out\n", found.stderr)
    assert metrics(tmp_path / name).returncode == 1


@pytest.mark.threat(9)
@pytest.mark.parametrize("name", ["bomb.tgz", "bomb.zip", "nested.zip"])
def test_the_unpacked_bytes_of_an_archive_are_counted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chartgen.metrics.read.archives.LARGEST", 4 * MEGA)
    text = b"\n" * (3 * MEGA)
    if name == "bomb.tgz":
        content = gzip.compress(tar_of("a.log", text) + tar_of("b.log", text) + END)
    else:
        member = gzip.compress(text) if name == "nested.zip" else text
        content = zip_of([("a.log", member), ("b.log", member), ("c.log", member)])
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ChartgenError, match="more than"):
        read_logs([str(tmp_path / name)])
