"""What tests on real GPUs share: Megatron-LM without Transformer Engine, and charts started on this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# A GPT of 1.3 billion parameters, small enough for one H100 and large enough to keep it busy.
MODEL = {
    "model": {"name": "gpt-1.3b", "layers": 24, "hiddenSize": 2048, "attentionHeads": 16, "vocabularySize": 32000},
    "sequenceLength": 2048,
    "recompute": "selective",
    "batch": {"micro": 4, "global": 32},
}
TINY = {
    "model": {"name": "tiny", "layers": 2, "hiddenSize": 256, "attentionHeads": 4, "vocabularySize": 32000},
    "sequenceLength": 256,
    "batch": {"micro": 1, "global": 8},
}
# What Megatron-LM needs where neither Transformer Engine nor Apex is installed.
PLAIN = {
    "transformer-impl": "local",
    "no-persist-layer-norm": True,
    "no-gradient-accumulation-fusion": True,
    "no-masked-softmax-fusion": True,
}
# NVLink multicast stays off on machines whose GPUs are shared with others.
SHARED = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
ITERATION = re.compile(r"iteration +(\d+)/ *\d+ .*lm loss: ([\d.E+-]+)")


def gpus() -> int:
    """Count the GPUs of this machine; 0 without torch."""
    try:
        import torch  # type: ignore[import-not-found]
    except ImportError:
        return 0
    return int(torch.cuda.device_count())


def megatron() -> Path:
    """Find pretrain_gpt.py of Megatron-LM: in the folder MEGATRON, else where NVIDIA's image has it."""
    return Path(os.environ.get("MEGATRON", "/opt/megatron-lm")) / "pretrain_gpt.py"


def needs(count: int, *, with_megatron: bool = True) -> None:
    """Skip a test that this machine cannot run, with the reason."""
    if gpus() < count:
        pytest.skip(f"needs {count} NVIDIA GPUs, this machine has {gpus()}")
    if with_megatron and not megatron().is_file():
        pytest.skip(f"needs Megatron-LM; set MEGATRON to the folder of pretrain_gpt.py, which is not at {megatron()}")


@dataclass
class Run:
    """A process that writes its output to a file."""

    process: subprocess.Popen[bytes]  # the process
    path: Path  # the file
    began: float  # when it was started, in seconds of the monotonic clock

    @property
    def log(self) -> str:
        return self.path.read_text(errors="replace")

    @property
    def losses(self) -> dict[int, float]:
        """Loss by iteration."""
        return {int(step): float(loss) for step, loss in ITERATION.findall(self.log)}

    def wait_for(self, condition: Callable[[], object], seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.log[-3000:]}"
            assert time.monotonic() < deadline, f"not within {seconds} s: {self.log[-3000:]}"
            time.sleep(0.05)

    def end(self, seconds: float = 180) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGKILL)
            raise AssertionError(f"not ended within {seconds} s: {self.log[-3000:]}") from None


def launch(argv: Iterable[str], path: Path, **env: str) -> Run:
    """Start a process."""
    folder = megatron().parent
    library = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH", ""))))
    variables = {**os.environ, **SHARED, "PYTHONPATH": library, **env}
    with path.open("wb") as file:
        process = subprocess.Popen([*argv], env=variables, stdout=file, stderr=subprocess.STDOUT)
    return Run(process, path, time.monotonic())


def show(*lines: str) -> None:
    """Write what was measured into the output of pytest, which `-s` shows."""
    sys.stdout.write("\n".join(["", *lines, ""]))


def values(folder: Path, *parts: dict[str, Any]) -> Path:
    """Write values for a run of Megatron-LM, later parts over earlier ones."""
    made: dict[str, Any] = {
        "storage": {"data": {"from": "pvc://data"}, "outputs": {"from": "pvc://outputs"}},
        "launchers": {"megatron-lm": {"program": str(megatron()), "config": PLAIN}},
    }
    for part in parts:
        made |= part
    path = folder / f"values-{len([*folder.glob('values-*')])}.json"
    path.write_text(json.dumps(made))
    return path


def execute(chart: str, file: Path, root: Path, log: Path, *options: str, **env: str) -> Run:
    """Start `chartgen exec`, SIGTERM included, as a user does."""
    root.joinpath("bin").mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-m", "chartgen", "exec", chart, "-f", str(file), "--root", str(root), *options]
    return launch(argv, log, **env)


def ranks(root: Path) -> list[int]:
    """List the processes of the program that runs below a root, by rank."""
    found: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            variables = path.joinpath("environ").read_bytes().split(b"\0")
            command = path.joinpath("cmdline").read_bytes()
        except OSError:
            continue
        rank = next((int(text[5:]) for text in variables if text.startswith(b"RANK=")), None)
        ours = any(text.startswith(f"CHARTGEN_CONTAINER={root}#".encode()) for text in variables)
        if rank is not None and ours and b"pretrain_gpt.py" in command and b"watch.py" not in command:
            found[rank] = min(found.get(rank, int(path.name)), int(path.name))  # it started its own workers
    return [found[rank] for rank in sorted(found)]
