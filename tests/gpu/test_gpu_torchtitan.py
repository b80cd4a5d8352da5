"""torchtitan 0.2 under launcher torchtitan, on real GPUs: its speed, its stop by SIGTERM, its second start.

The machine needs PyTorch 2.9 or newer, pandas, pyarrow, tokenizers and huggingface-hub; these wheels bring the rest:

    pip download -d wheels --no-deps torchtitan==0.2.2 torchdata==0.11.0 datasets==5.2.0 dill==0.4.1 \
        multiprocess==0.70.19 tyro==1.0.17 docstring-parser==0.18.0 typeguard==4.6.0

Tokenizer and text are made here. On two H200 with PyTorch 2.11 (2026-11-23): 7277 tokens/s a GPU, plain torchrun 7303;
a second start after SIGTERM began at step 21, after the checkpoint of step 20.
"""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from real_gpus import Run, execute, launch, needs, show

CHART = "onprem-p8000"
OWN = {"version": "0.2", "image": "registry.example/titan:1", "datasetPath": "/data/text"}
STEP = re.compile(r"step: +(\d+) +loss: +([\d.]+) .* tps: ([\d,]+)")
WORDS = [f"w{number}" for number in range(1000)]


def prepare(folder: Path, gpus: int, flavor: str, **more: Any) -> Path:
    """Write values, a tokenizer of whole words, and enough text for all steps, which torchtitan reads over and over."""
    needs(gpus, with_megatron=False)
    if not importlib.util.find_spec("torchtitan"):
        pytest.skip("needs torchtitan 0.2, which is not installed")
    data = folder / "root" / "data"
    for name in ("text", "words"):
        (data / name).mkdir(parents=True)
    ends = {"bos_token": "<s>", "eos_token": "</s>"}
    model = {
        "type": "WordLevel",
        "vocab": {each: n for n, each in enumerate([*ends.values(), *WORDS])},
        "unk_token": "w0",
    }
    tokenizer = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model}
    (data / "words" / "tokenizer.json").write_text(json.dumps(tokenizer))
    (data / "words" / "tokenizer_config.json").write_text(json.dumps(ends))
    texts = (" ".join(WORDS[(line * 7 + n) % 1000] for n in range(900)) for line in range(2000))
    (data / "text" / "train.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    values = {
        "launcher": "torchtitan",
        "storage": {"data": {"from": "pvc://data"}, "outputs": {"from": "pvc://outputs"}},
        "nodes": 1,
        "gpusPerNode": gpus,
        "tokenizer": {"kind": "huggingface", "path": "/data/words"},
        "launchers": {"torchtitan": {**OWN, "recipe": flavor}},
        **more,
    }
    path = folder / "values.json"
    path.write_text(json.dumps(values))
    return path


def steps(run: Run) -> dict[int, int]:
    """Tokens a second of each step, on a GPU."""
    return {int(step): int(speed.replace(",", "")) for step, _, speed in STEP.findall(run.log)}


def pace(run: Run) -> float:
    return statistics.median(speed for step, speed in steps(run).items() if step > 15)


def output(*words: str | Path) -> Any:
    argv = [sys.executable, "-m", "chartgen", *map(str, words), "--output", "json"]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def test_chart_trains_as_fast_as_plain_torchrun(tmp_path: Path) -> None:
    file = prepare(tmp_path, 2, "8B", steps=60, sequenceLength=4096, recompute="selective")
    chart = execute(CHART, file, tmp_path / "root", tmp_path / "chart.log")
    assert chart.end(400) == 0, chart.log[-3000:]
    found = output("metrics", chart.path, "--target", CHART, "-f", file)
    assert found["steps"]["last"] == 60
    argv = output("exec", CHART, "-f", file, "--root", tmp_path / "root", "--dry-run")["argv"][2:]
    plain = launch(
        ["torchrun", "--standalone", "--nproc-per-node=2", *argv],
        tmp_path / "plain.log",
        PYTORCH_ALLOC_CONF="expandable_segments:True",
        HF_HUB_OFFLINE="1",
    )
    assert plain.end(400) == 0, plain.log[-3000:]
    ratio = pace(plain) / pace(chart)
    show(f"chart {pace(chart)} tokens/s/GPU, torchrun {pace(plain)}, ratio {ratio:.4f}")
    assert ratio == pytest.approx(1.0, abs=0.01)


def test_a_second_start_resumes_from_the_last_checkpoint(tmp_path: Path) -> None:
    """torchtitan does not save when it is stopped."""
    saves = {"enabled": True, "interval": 20}
    file = prepare(tmp_path, 2, "debugmodel", steps=100000, checkpoint=saves, batch={"micro": 8, "global": "8/gpu"})
    for began in (1, 21):
        run = execute(CHART, file, tmp_path / "root", tmp_path / f"from-{began}.log")
        run.wait_for(lambda run=run, began=began: max(steps(run), default=0) > began + 28)  # type: ignore[misc]
        run.process.send_signal(signal.SIGTERM)
        assert run.end(60) != 0, run.log[-3000:]  # torchrun ends with 1 where a rank ends first
        first = min(steps(run))
        assert first % 20 == 1
        assert (first > 1) == (began > 1)
        show(f"steps {first} to {max(steps(run))}")
