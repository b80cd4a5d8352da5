"""NeMo AutoModel 0.7 under launcher automodel, on real GPUs: its speed, its stop by SIGTERM, its second start.

The machine needs PyTorch 2.11, a C++ compiler, ninja, pandas, pyarrow, tokenizers and huggingface-hub; these wheels
bring the rest, 21 MB:

    pip download -d wheels --no-deps nemo-automodel==0.7.0 transformers==5.18.0 torchao==0.18.0 torchdata==0.11.0 \
        megatron-fsdp==0.5.0 datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19 xxhash==4.1.0

Model, tokenizer and Megatron's indexed data are made here. On two H200 with PyTorch 2.11 (2026-11-23), a Llama of 1.2
billion parameters: 60656 tokens/s a GPU, plain torchrun 60629; SIGTERM saved step 33, and a second start began with 34.
"""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import statistics
import struct
import subprocess
import sys
from array import array
from pathlib import Path
from typing import Any

import pytest
from real_gpus import Run, execute, launch, needs, show

CHART = "onprem-p8000"
STEP = re.compile(r"step (\d+) \| epoch \d+ \| loss ([\d.]+) .* tps [\d.]+\(([\d.]+)/gpu\)")
WORDS = [f"w{number}" for number in range(1000)]
MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_key_value_heads": 8,
    "max_position_embeddings": 4096,
    "vocab_size": 32000,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
LARGE = {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 16}
TINY = {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 2, "num_attention_heads": 8}


def prepare(folder: Path, sizes: dict[str, int], **more: Any) -> Path:
    """Write values, a model's configuration, a tokenizer of whole words, and Megatron's data."""
    needs(2, with_megatron=False)
    if not importlib.util.find_spec("nemo_automodel"):
        pytest.skip("needs nemo-automodel 0.7, which is not installed")
    data = folder / "root" / "data"
    model = data / "model"
    model.mkdir(parents=True)
    (model / "config.json").write_text(json.dumps({**MODEL, **sizes}))
    ends = {"bos_token": "<s>", "eos_token": "</s>"}
    words = {
        "type": "WordLevel",
        "vocab": {each: n for n, each in enumerate([*ends.values(), *WORDS])},
        "unk_token": "w0",
    }
    tokenizer = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": words}
    (model / "tokenizer.json").write_text(json.dumps(tokenizer))
    (model / "tokenizer_config.json").write_text(json.dumps({**ends, "tokenizer_class": "PreTrainedTokenizerFast"}))
    write_indexed(data / "text")
    values = {
        "launcher": "automodel",
        "storage": {"data": {"from": "pvc://data"}, "outputs": {"from": "pvc://outputs"}},
        "nodes": 1,
        "gpusPerNode": 2,
        "tokenizer": {"kind": "huggingface", "path": "/data/model"},
        "launchers": {"automodel": {"model": "/data/model"}},
        **more,
    }
    path = folder / "values.json"
    path.write_text(json.dumps(values))
    return path


def write_indexed(prefix: Path, documents: int = 2000, length: int = 900) -> None:
    """Write documents of 16-bit tokens as Megatron Core's indexed_dataset.py reads them."""
    tokens = array("H", (2 + (line * 7 + n) % 1000 for line in range(documents) for n in range(length)))
    prefix.with_suffix(".bin").write_bytes(tokens.tobytes())
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 8, documents, documents + 1)
    places = array("q", (line * length * 2 for line in range(documents)))
    parts = (array("i", [length] * documents), places, array("q", range(documents + 1)))
    prefix.with_suffix(".idx").write_bytes(head + b"".join(part.tobytes() for part in parts))


def steps(run: Run) -> dict[int, float]:
    """Tokens a second of each step, on a GPU."""
    return {int(step): float(speed) for step, _, speed in STEP.findall(run.log)}


def pace(run: Run) -> float:
    return statistics.median(speed for step, speed in steps(run).items() if step > 15)


def output(*words: str | Path) -> Any:
    argv = [sys.executable, "-m", "chartgen", *map(str, words), "--output", "json"]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


def test_chart_trains_as_fast_as_plain_torchrun(tmp_path: Path) -> None:
    shape = {"sequenceLength": 2048, "batch": {"micro": 16, "global": "16/gpu"}}
    file = prepare(tmp_path, LARGE, steps=60, **shape)
    chart = execute(CHART, file, tmp_path / "root", tmp_path / "chart.log")
    assert chart.end(400) == 0, chart.log[-3000:]
    found = output("metrics", chart.path, "--target", CHART, "-f", file)
    assert found["steps"]["last"] == 59  # AutoModel counts from 0
    argv = output("exec", CHART, "-f", file, "--root", tmp_path / "root", "--dry-run")["argv"][2:]
    plain = launch(
        ["torchrun", "--standalone", "--nproc-per-node=2", *argv],
        tmp_path / "plain.log",
        PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
        HF_HUB_OFFLINE="1",
        TQDM_DISABLE="1",
    )
    assert plain.end(400) == 0, plain.log[-3000:]
    ratio = pace(plain) / pace(chart)
    show(f"chart {pace(chart)} tokens/s/GPU, torchrun {pace(plain)}, ratio {ratio:.4f}")
    assert ratio == pytest.approx(1.0, abs=0.01)


def test_a_second_start_resumes_where_sigterm_stopped_the_first(tmp_path: Path) -> None:
    """AutoModel saves when it is stopped; a directory that an interrupted save left is moved away."""
    shape = {"sequenceLength": 256, "batch": {"micro": 4, "global": "4/gpu"}, "data": {"prefixes": ["text"]}}
    saves = {"enabled": True, "interval": 1000}
    file = prepare(tmp_path, TINY, steps=20000, checkpoint=saves, **shape)
    begins = 0
    for attempt in range(2):
        run = execute(CHART, file, tmp_path / "root", tmp_path / f"attempt-{attempt}.log")
        run.wait_for(lambda run=run, begins=begins: max(steps(run), default=0) > begins + 30)  # type: ignore[misc]
        run.process.send_signal(signal.SIGTERM)
        assert run.end(120) != 0, run.log[-3000:]
        show(f"steps {min(steps(run))} to {max(steps(run))}")
        assert min(steps(run)) == begins
        begins = max(steps(run)) + 1
        (checkpoints,) = (tmp_path / "root" / "outputs").rglob("checkpoints")
        assert (checkpoints / f"epoch_0_step_{begins - 1}" / "config.yaml").is_file()
        (checkpoints / f"epoch_0_step_{begins + 4}").mkdir()
        assert len([*checkpoints.glob("unfinished/*")]) == attempt


@pytest.mark.parametrize("way", ["lora", "pipeline", "tensor", "recompute"])
def test_a_start_from_weights(tmp_path: Path, way: str) -> None:
    """Each way learns; LoRA keeps the model's own weights and saves an adapter."""
    ways: dict[str, dict[str, Any]] = {
        "lora": {"launchers": {"automodel": {"model": "/data/model", "loraRank": 8}}},
        "pipeline": {"parallelism": {"pipeline": 2}, "batch": {"micro": 4, "global": 16}},
        "tensor": {"parallelism": {"tensor": 2}},
        "recompute": {"recompute": "full"},
    }
    shape = {"sequenceLength": 256, "batch": {"micro": 4, "global": "4/gpu"}, "data": {"prefixes": ["text"]}}
    saves = {"enabled": True, "interval": 1000, "from": "/data/model"}
    steep = {"learningRate": 1.0e-3, "warmupSteps": 2}
    file = prepare(tmp_path, TINY, steps=40, checkpoint=saves, optimizer=steep, **(shape | ways[way]))
    save_weights(tmp_path / "root" / "data" / "model")
    run = execute(CHART, file, tmp_path / "root", tmp_path / f"{way}.log")
    assert run.end(200) == 0, run.log[-4000:]
    losses = [float(loss) for _, loss, _ in STEP.findall(run.log)]
    show(f"{way}: {len(losses)} steps, loss {losses[0]} to {losses[-1]}")
    assert losses[-1] < losses[0] - 0.5
    saved = {path.name for path in (tmp_path / "root" / "outputs").rglob("*.safetensors")}
    assert ("adapter_model.safetensors" in saved) == (way == "lora"), saved


def save_weights(model: Path) -> None:
    """Write random weights of the model as Hugging Face does."""
    program = (
        "import sys, transformers as t; c = t.AutoConfig.from_pretrained(sys.argv[1]); "
        "t.AutoModelForCausalLM.from_config(c).save_pretrained(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", program, model], check=True, capture_output=True)
