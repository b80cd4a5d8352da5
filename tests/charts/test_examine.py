"""The examination of a machine: what nvidia-smi reports counts, and a machine that is not fit does not start.

`tests/data/nvidia-smi` has the report of an H100 (driver 580.159.04), without what nothing reads.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest
from pod_runner import Machine, run
from rendered import container, one

from chartgen.library.workloads.common.files import examine
from chartgen.library.workloads.common.files.examine import (
    DOUBTS,
    FAULTS,
    UNFIT,
    find_busy,
    find_down_ports,
    find_lost_links,
    find_marks,
    find_slow,
)
from chartgen.releases.why.explanation import explain_files

SOUND = (Path(__file__).parents[1] / "data/nvidia-smi/h100.xml").read_text()
TWO = (
    "launcher=torchrun",
    "launchers.torchrun.image=example.com/own:1",
    "launchers.torchrun.program=/own.py",
    "nodes=2",
)


def gpus(text: str, number: int = 1) -> list[ET.Element]:
    """The report of so many GPUs."""
    return ET.fromstring(text).findall("gpu") * number  # noqa: S314 - of this repository


def changed(**values: str) -> str:
    """The report of a GPU of which some values differ."""
    text = SOUND
    for name, value in values.items():
        text, number = re.subn(rf"(?<=<{name}>)[^<]*", value, text)
        assert number, name
    return text


@pytest.mark.parametrize("marks", [FAULTS, DOUBTS], ids=["faults", "doubts"])
def test_a_sound_gpu_has_no_marks(marks: tuple[tuple[str, str, str], ...]) -> None:
    assert [*find_marks(gpus(SOUND, 8), marks), *find_busy(gpus(SOUND, 8))] == []


@pytest.mark.parametrize(
    ("name", "value", "marks"),
    [
        ("gpu_recovery_action", "Reset", FAULTS),
        ("remapped_row_pending", "Yes", FAULTS),
        ("remapped_row_failure", "Yes", FAULTS),
        ("clocks_event_reason_hw_thermal_slowdown", "Active", DOUBTS),
        ("clocks_event_reason_hw_power_brake_slowdown", "Active", DOUBTS),
        ("sram_threshold_exceeded", "Yes", DOUBTS),
    ],
)
def test_a_mark_names_the_gpu_and_the_value(name: str, value: str, marks: tuple[tuple[str, str, str], ...]) -> None:
    (line,) = find_marks([*gpus(SOUND), *gpus(changed(**{name: value}))], marks)
    assert line.startswith("GPU 1 ")
    assert f"{name} {value}" in line


def test_corrected_errors_of_memory_are_no_doubt() -> None:
    found = gpus(changed(dram_correctable="7"))
    assert [*find_marks(found, DOUBTS)] == []


def test_uncorrected_errors_of_memory_are_a_doubt() -> None:
    assert all("dram_uncorrectable 7" in line for line in find_marks(gpus(changed(dram_uncorrectable="7")), DOUBTS))


def test_another_program_on_the_gpu_is_seen() -> None:
    assert len([*find_busy(gpus(changed(used="40000 MiB")))]) == 1


def test_a_gpu_with_fewer_links_than_its_siblings_is_named() -> None:
    links = [
        f"GPU {gpu}: NVIDIA H100 (UUID: x)\n" + "\t Link 0: 26.562 GB/s\n" * (17 if gpu == 2 else 18)
        for gpu in range(4)
    ]
    assert [*find_lost_links("".join(links))] == ["GPU 2 has 17 of 18 links of NVLink"]


def test_a_port_without_a_link_is_named(tmp_path: Path) -> None:
    for name, state in (("mlx5_0", "4: ACTIVE"), ("mlx5_1", "1: DOWN")):
        (tmp_path / name / "ports/1").mkdir(parents=True)
        (tmp_path / name / "ports/1/state").write_text(state)
    assert [*find_down_ports(tmp_path)] == ["port 1 of adapter mlx5_1 is DOWN"]


FIT: dict[str, object] = {"tflops": [700.0] * 8, "written": 900.0, "summed": 340.0}
FOUND = {number: {"pod": f"pod-{number}", **FIT} for number in range(4)}
SLOW = {**FOUND, 2: {**FOUND[2], "tflops": [700.0] * 7 + [600.0]}}


@pytest.mark.parametrize(("found", "own", "lines"), [(FOUND, 3, 0), (SLOW, 3, 1), (SLOW, 2, 1)])
def test_the_last_machine_names_the_slow_gpus_of_all(found: dict[int, dict[str, object]], own: int, lines: int) -> None:
    named = [*find_slow(found, own, 4)]
    assert len(named) == lines
    assert all(line.startswith("GPU 7 of machine 2 (pod-2)") for line in named)


def test_a_machine_names_its_own_slow_gpus_alone_while_others_are_missing() -> None:
    assert not [*find_slow(SLOW, 3, 5)]
    assert len([*find_slow(SLOW, 2, 5)]) == 1


@pytest.mark.parametrize(
    ("figure", "line"),
    [
        ({"written": 90.0}, "writes checkpoints at 90 MB/s, the others at 900"),
        ({"summed": 170.0}, "adds up between its GPUs at 170 GB/s, the others at 340"),
    ],
)
def test_a_slow_storage_and_slow_links_are_warnings(figure: dict[str, float], line: str) -> None:
    found = {**FOUND, 1: {**FOUND[1], "tflops": [], **figure}}
    assert [*find_slow(found, 0, 4)] == [f"machine 1 (pod-1) {line}"]


def machine(folder: Path, report: str, code: int = 0) -> Machine:
    """A machine whose nvidia-smi prints this report of eight GPUs, and whose Python has no PyTorch."""
    head, gpu, tail = re.split(r"(<gpu id=.*</gpu>)", report, flags=re.DOTALL)
    found = Machine(folder)
    (folder / "report.xml").write_text(head + gpu * 8 + tail)
    found.program(
        "nvidia-smi",
        f"if 'nvlink' not in sys.argv: print(open({str(folder / 'report.xml')!r}).read())\nsys.exit({code})",
    )
    found.program("torchrun")
    return found


@pytest.mark.helm
@pytest.mark.parametrize(("check", "expected"), [("fail", UNFIT), ("warn", 0), ("off", 0)])
def test_a_machine_that_is_not_fit_does_not_start(tmp_path: Path, check: str, expected: int) -> None:
    unfit = machine(tmp_path, changed(gpu_recovery_action="Reboot"))
    found = run(*TWO, f"run.examine={check}", "run.hangMinutes=5")
    code, log = unfit.finish(found, {"NODE_RANK": "1"}, rank=1)
    assert code == expected
    assert (tmp_path / "torchrun.calls").exists() == (expected == 0)
    assert ("machine 1" in log and "gpu_recovery_action Reboot" in log) == (check != "off")
    boxes = [*tmp_path.rglob("blackbox/machine-1.log")]
    assert [explain_files([box]).cause for box in boxes] == ["unfit-machine"] * (expected > 0)


@pytest.mark.helm
def test_a_driver_that_fails_makes_a_machine_unfit(tmp_path: Path) -> None:
    assert machine(tmp_path, SOUND, code=15).finish(run(*TWO))[0] == UNFIT


@pytest.mark.helm
def test_a_fit_machine_leaves_its_figures_and_starts(tmp_path: Path) -> None:
    code, log = machine(tmp_path, SOUND).finish(run(*TWO, "checkpoint.enabled=true", "storage.outputs.from=pvc://out"))
    assert code == 0, log
    (figures,) = tmp_path.rglob("machines/*.json")
    assert json.loads(figures.read_text())["written"] > 0
    assert not [*tmp_path.rglob(".examine-*")]


def test_gpus_that_fail_and_that_do_not_answer_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    end, asked = threading.Event(), []

    def multiply(_torch: object, number: int) -> float:
        if number == 1:
            end.wait(180)
        if number == 2:
            raise RuntimeError("an illegal instruction\nand its stack")
        return 700.0

    monkeypatch.setattr(examine, "INSIDE", {})
    for name, value in (("_multiply", multiply), ("_add_up", multiply), ("SECONDS", 0.0), ("PATIENCE", 0.5)):
        monkeypatch.setattr(examine, name, value)
    with pytest.raises(RuntimeError) as failed:
        examine.multiply(None, 3, lambda: asked.append("nvidia-smi"))
    with pytest.raises(RuntimeError, match="NCCL: an illegal instruction"):
        examine.add_up(None, 2)
    end.set()
    assert str(failed.value) == "GPU 1 did not multiply matrices within 0.5 s; GPU 2: an illegal instruction"
    assert asked == ["nvidia-smi"]
    assert examine.multiply(None, 1, lambda: None) == [700.0]
    assert examine.add_up(None, 1) == 0.0


def test_fewer_gpus_than_the_run_needs_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = SimpleNamespace(version=SimpleNamespace(cuda="13.0"), cuda=SimpleNamespace(device_count=lambda: 4))
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as it sets it itself
    with pytest.raises(RuntimeError, match="CUDA finds 4 of 8 GPUs"):
        examine.find_torch(8)
    assert examine.find_torch(4) is torch
    torch.version.cuda = None
    assert examine.find_torch(8) is None


@pytest.mark.helm
def test_a_machine_without_nvidia_smi_starts(tmp_path: Path) -> None:
    lone = Machine(tmp_path)
    lone.program("torchrun")
    assert lone.finish(run(*TWO))[0] == 0


@pytest.mark.helm
def test_what_nvidia_smi_prints_need_not_be_utf_8(tmp_path: Path) -> None:
    odd = machine(tmp_path, SOUND)
    odd.program("nvidia-smi", "sys.stdout.buffer.write(b'caf\\xe9')\nsys.exit(15)")
    code, log = odd.finish(run(*TWO), {"NODE_RANK": "1"}, rank=1)
    assert (code, "nvidia-smi failed with 15: caf\ufffd" in log) == (UNFIT, True), log


@pytest.mark.helm
@pytest.mark.parametrize("sets", [("nodes=1",), ("run.examine=off",)])
def test_nothing_is_examined(sets: tuple[str, ...]) -> None:
    assert "examine" not in str(one("ConfigMap", run(*TWO, *sets)))


@pytest.mark.helm
def test_an_examination_asks_for_no_privilege() -> None:
    pods = [container(run(*TWO, f"run.examine={check}")) for check in ("fail", "off")]
    assert pods[0]["securityContext"] == pods[1]["securityContext"]


@pytest.mark.helm
def test_a_storage_that_cannot_be_written_ends_the_run(tmp_path: Path) -> None:
    found = run(*TWO, "checkpoint.enabled=true", "storage.outputs.from=pvc://out")
    fit = machine(tmp_path, SOUND)
    report = f"print(open({str(tmp_path / 'report.xml')!r}).read() if '-q' in sys.argv else '')"
    fit.program("nvidia-smi", f"{report}\nshutil.rmtree(os.environ['CHECKPOINT_DIRECTORY'], ignore_errors=True)")
    code, log = fit.finish(found)
    assert code == 1
    assert "examine: the run's storage: " in log
