"""What each launcher passes to its program, seen by running the rendered start scripts with recorders on PATH."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from facts import missing
from pod_runner import LAUNCHERS, LORA, LORA_IMAGE, Machine, lab, megatron, options, run
from rendered import VALUES, arguments, container, env, job_spec, one

from chartgen.composer.library import BUILTIN
from chartgen.errors import ChartgenError
from chartgen.helm.yaml import load, require_map

# Options of Megatron-LM that its versions core_v0.12.1 and core_v0.19.2 both have.
OPTIONS = set((Path(__file__).parents[1] / "data" / "megatron-options.txt").read_text().split())
NASTY = ["two words", 'it\'s "so"', "$(whoami) `id` $HOME $$", "line\nbreak\n", "*", "", "\\", "ünïcode"]
NEMO = "nvcr.io/nvidia/nemo"
DATA = "data.directory=/data/set,data.name=mine,tokenizer.kind=gpt2,tokenizer.path=/data/gpt2"
MEGATRON = sorted(path.stem for path in VALUES.glob("megatron-gpt-*.yaml"))
# Preset -> machines with 8 GPUs of its own scale, or the fewest that hold one copy of the model.
SCALE = {
    "deepseek-v3": 128,
    "gpt-oss-120b": 8,
    "gpt3-5b": 2,
    "gpt3-175b": 32,
    "llama2-7b": 2,
    "llama2-70b": 16,
    "llama3-8b": 4,
    "llama3-70b": 8,
    "llama2-70b-lora": 1,
    "llama3.1-405b": 8,
    "megatron-gpt-39.1b": 2,
    "megatron-gpt-76.1b": 4,
    "megatron-gpt-145.6b": 8,
    "megatron-gpt-310.1b": 16,
    "mixtral-8x7b": 4,
    "qwen3-235b": 16,
}
PRESETS = sorted({path.stem for path in VALUES.glob("*.yaml") if not path.name.startswith("site.")} - {"benchmark"})
# Presets that save do so on storage that outlives the pods, as sites have it.
SHARED = "storage.outputs.from=pvc://results,launchers.torchrun.image=r.example/own:1"


def refused(*sets: str, files: tuple[Path, ...] = (), json: tuple[str, ...] = ()) -> list[str]:
    """The lines that the chart refuses values with."""
    with pytest.raises(ChartgenError) as caught:
        run(*sets, files=files, json=json)
    return str(caught.value).removeprefix("\n").splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def calls(record: Path) -> list[tuple[list[str], dict[str, str]]]:
    """How a recorder was called: argv and environment of each call."""
    return [tuple(json.loads(line)) for line in record.read_text().splitlines()] if record.exists() else []


# -- megatron-lm


def test_default_is_a_small_run_on_mock_data() -> None:
    found = megatron()
    assert found["mock-data"] == []
    assert found["tokenizer-type"] == ["NullTokenizer"]
    assert found["vocab-size"] == ["51200"]
    assert (found["train-iters"], found["eval-iters"], found["eval-interval"]) == (["10"], ["0"], ["1000"])
    assert found["split"] == ["100,0,0"]
    assert "data-path" not in found
    assert not {"save", "load"} & {*found}, "its outputs lie in memory"
    assert env(run())["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"


def test_guide_gets_the_options_of_its_manifest() -> None:
    found = megatron(f"nodes=2,{SHARED}", files=(VALUES / "megatron-gpt-7.5b.yaml",))
    expected = {
        "tensor-model-parallel-size": "8",
        "pipeline-model-parallel-size": "1",
        "num-layers": "36",
        "hidden-size": "4096",
        "num-attention-heads": "32",
        "seq-length": "2048",
        "max-position-embeddings": "2048",
        "micro-batch-size": "1",
        "global-batch-size": "288",
        "train-iters": "508626",
        "lr": "0.00006",
        "min-lr": "0.000006",
        "lr-decay-style": "cosine",
        "log-interval": "1",
        "eval-iters": "40",
        "eval-interval": "1000",
        "data-path": "/data/gpt2/my-gpt2_text_document",
        "vocab-file": "/data/gpt2/gpt2-vocab.json",
        "merge-file": "/data/gpt2/gpt2-merges.txt",
        "split": "98,2,0",
        "clip-grad": "1",
        "weight-decay": "0.1",
        "adam-beta1": "0.9",
        "adam-beta2": "0.95",
        "init-method-std": "0.006",
        "tokenizer-type": "GPT2BPETokenizer",
        "recompute-granularity": "selective",
        "save": "/outputs/ml/my-run/checkpoints",
        "load": "/outputs/ml/my-run/checkpoints",
        "save-interval": "100",
    }
    assert {name: found[name] for name in expected} == {name: [value] for name, value in expected.items()}
    assert found["fp16"] == []
    assert "bf16" not in found


def test_benchmark_mode_trains_only() -> None:
    found = megatron(SHARED, files=(VALUES / "megatron-gpt-7.5b.yaml", VALUES / "benchmark.yaml"))
    assert (found["eval-iters"], found["split"], found["eval-interval"]) == (["0"], ["100,0,0"], ["1000"])
    assert (found["train-iters"], found["lr-decay-iters"], found["lr-warmup-iters"]) == (["50"], ["45"], ["2"])
    assert {"save", "load", "save-interval"}.isdisjoint(found)


def test_samples_instead_of_steps() -> None:
    counts = {"train-samples": 146484375, "lr-decay-samples": 126953125, "lr-warmup-samples": 183105}
    found = megatron("steps=0", json=(f"launchers.megatron-lm.config={json.dumps(counts)}",))
    assert {name: found[name] for name in counts} == {name: [str(count)] for name, count in counts.items()}
    assert "train-iters" not in found


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("gpt", {"normalization": ["LayerNorm"], "position-embedding-type": ["learned_absolute"]}),
        (
            "llama",
            {
                "normalization": ["RMSNorm"],
                "position-embedding-type": ["rope"],
                "swiglu": [],
                "disable-bias-linear": [],
                "untie-embeddings-and-output-weights": [],
                "num-query-groups": ["4"],
                "group-query-attention": [],
                "attention-dropout": ["0"],
            },
        ),
        (
            "mixtral",
            {
                "num-experts": ["8"],
                "moe-router-topk": ["2"],
                "expert-model-parallel-size": ["8"],
                "moe-grouped-gemm": [],
            },
        ),
    ],
)
def test_family_decides_the_architecture(family: str, expected: dict[str, list[str]]) -> None:
    more = {"gpt": (), "llama": ("model.queryGroups=4",), "mixtral": ("model.experts=8,parallelism.expert=8",)}[family]
    found = megatron(f"model.family={family}", *more)
    assert expected.items() <= found.items()
    assert ("swiglu" in found) is (family != "gpt")


@pytest.mark.parametrize(
    ("sets", "expected", "absent"),
    [
        ("precision=bf16", {"bf16": []}, "fp16"),
        ("precision=fp16", {"fp16": []}, "bf16"),
        ("precision=fp32", {}, "bf16"),
        ("precision=fp8", {"bf16": [], "fp8-format": ["hybrid"]}, "fp16"),
        ("recompute=full", {"recompute-granularity": ["full"], "recompute-method": ["uniform"]}, "recompute-modules"),
        ("parallelism.distributedOptimizer=false", {}, "use-distributed-optimizer"),
        (
            "parallelism.tensor=2,parallelism.pipeline=2,parallelism.virtualPipeline=3,parallelism.sequence=true,batch.global=16",
            {"num-layers-per-virtual-pipeline-stage": ["2"], "sequence-parallel": []},
            "num-virtual-stages-per-pipeline-rank",
        ),
        (
            (
                "model.layers=14,parallelism.pipeline=4,parallelism.virtualPipeline=2,batch.global=16,"
                "launchers.megatron-lm.config.account-for-embedding-in-pipeline-split=true,"
                "launchers.megatron-lm.config.account-for-loss-in-pipeline-split=true"
            ),
            {"num-layers-per-virtual-pipeline-stage": ["2"]},
            "num-virtual-stages-per-pipeline-rank",
        ),
        (
            (
                "model.layers=14,parallelism.pipeline=4,parallelism.virtualPipeline=2,batch.global=16,"
                "launchers.megatron-lm.config.decoder-last-pipeline-num-layers=2"
            ),
            {"num-virtual-stages-per-pipeline-rank": ["2"]},
            "num-layers-per-virtual-pipeline-stage",
        ),
        ("parallelism.context=2", {"context-parallel-size": ["2"]}, "sequence-parallel"),
        ("model.family=mixtral,model.experts=8", {"num-experts": ["8"]}, "expert-tensor-parallel-size"),
        (
            (
                "model.family=mixtral,model.experts=8,parallelism.tensor=4,parallelism.sequence=true,"
                "parallelism.expert=4,parallelism.expertTensor=1"
            ),
            {"expert-model-parallel-size": ["4"], "expert-tensor-parallel-size": ["1"]},
            "moe-extended-tp",
        ),
        ("tokenizer.kind=huggingface,tokenizer.path=/data/t", {"tokenizer-model": ["/data/t"]}, "vocab-file"),
        (
            "tokenizer.kind=sentencepiece,tokenizer.path=/data/t",
            {"tokenizer-type": ["GPTSentencePieceTokenizer"], "tokenizer-model": ["/data/t/tokenizer.model"]},
            "vocab-size",
        ),
        (
            "checkpoint.from=/data/weights",
            {"pretrained-checkpoint": ["/data/weights"]},
            "load",
        ),
        (
            "profile.enabled=true,steps=100,profile.ranks={0,3}",
            {"profile": [], "profile-step-start": ["41"], "profile-step-end": ["44"], "profile-ranks": ["0", "3"]},
            "use-pytorch-profiler",
        ),
        (
            "data.name=a,data.shards=2",
            {
                "data-path": ["1", "/data/a_00_text_document", "1", "/data/a_01_text_document"],
                "data-cache-path": ["/outputs/ml/my-run/data-cache"],
            },
            "mock-data",
        ),
        ("data.name=a,data.stage=true", {"data-path": ["/scratch/data/a_text_document"]}, "mock-data"),
    ],
)
def test_portable_values_become_options(sets: str, expected: dict[str, list[str]], absent: str) -> None:
    found = megatron(sets)
    assert expected.items() <= found.items()
    assert absent not in found


@pytest.mark.parametrize("preset", [None, *MEGATRON])
def test_every_option_is_one_that_megatron_has(preset: str | None) -> None:
    files = (VALUES / f"{preset}.yaml",) if preset else ()
    sets = f"nodes={SCALE.get(str(preset), 1)},checkpoint.from=/data/w,checkpoint.enabled=true,profile.enabled=true"
    sets += ",profile.startStep=4,profile.endStep=7,wandb.project=gpt"
    found = megatron(sets, SHARED, files=files)
    assert {f"--{name}" for name in found} <= OPTIONS
    assert {f"--{name}" for name in megatron("model.family=mixtral,model.experts=8,precision=fp8")} <= OPTIONS


def test_owned_options_are_ones_that_megatron_has() -> None:
    owns = require_map(load((BUILTIN / "launchers/megatron-lm/launcher.yaml").read_text(), "launcher.yaml"), "it")[
        "owns"
    ]
    assert isinstance(owns, dict)
    natives = {each for native in owns.values() for each in (native if isinstance(native, list) else [native])}
    newer = {"--pipeline-model-parallel-layout", "--fp4-format", "--wandb-entity"}  # not in core_v0.12.1
    assert {f"--{native}" for native in natives} <= OPTIONS | newer


def test_configuration_reaches_the_program_unchanged(machine: Machine) -> None:
    record = machine.program("torchrun")
    config: dict[str, Any] = {f"nasty-{i}": text for i, text in enumerate(NASTY)}
    config |= {"big": 146484375, "small": 6.0e-5, "tiny": 1e-10, "half": 0.5, "zero": 0, "minus": -1}
    config |= {"flag": True, "off": False, "gone": None, "several": ["a b", 2, 0.25], "adam-eps": 1, "text": "true"}
    flags = (f"launchers.megatron-lm.config={json.dumps(config)}", f"launchers.megatron-lm.args={json.dumps(NASTY)}")
    found = run(json=flags)
    code, log = machine.finish(found)
    assert code == 0, log
    [(argv, variables)] = calls(record)
    assert argv[1:6] == [
        "--nnodes=1",
        "--nproc-per-node=8",
        "--node-rank=0",
        f"--master-addr={env(found)['MASTER_ADDR']}",
        "--master-port=6002",
    ]
    assert argv[6:9] == ["--no-python", "bash", f"{machine.folder}/etc/chartgen/rank.sh"]
    assert argv[-len(NASTY) :] == NASTY
    seen = options(argv[10 : -len(NASTY)])
    assert [seen[f"nasty-{i}"] for i in range(len(NASTY))] == [[text] for text in NASTY]
    assert [float(seen[name][0]) for name in ("big", "small", "tiny", "half", "zero", "minus", "adam-eps")] == [
        146484375, 6.0e-5, 1e-10, 0.5, 0, -1, 1,
    ]  # fmt: skip
    assert "e" not in seen["big"][0]
    assert (seen["flag"], seen["several"], seen["text"]) == ([], ["a b", "2", "0.25"], ["true"])
    assert {"off", "gone"}.isdisjoint(seen)
    assert variables["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"


def test_every_machine_builds_the_index_helpers(machine: Machine) -> None:
    machine.program("torchrun")
    record = machine.program("make")
    assert machine.finish(run())[0] == 0
    assert calls(record) == []
    helpers = machine.folder / "image/opt/megatron-lm/megatron/core/datasets"
    helpers.mkdir(parents=True)
    (helpers / "Makefile").touch()
    assert machine.finish(run("nodes=2"), rank=1)[0] == 0
    assert [argv[1:] for argv, _ in calls(record)] == [["-C", str(helpers)]]


def owned(option: str, portable: str) -> str:
    return f"launchers.megatron-lm.config.{option} {option} {portable}"


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ("launchers.megatron-lm.config.num-layers=2", owned("num-layers", "model.layers")),
        ("launchers.megatron-lm.config.swiglu=false", owned("swiglu", "model.family")),
        ("launchers.megatron-lm.config.load=/x", owned("load", "checkpoint.enabled")),
        ("launchers.megatron-lm.config.mock-data=true", owned("mock-data", "data.name")),
        ("launchers.megatron-lm.config.fp16=true", owned("fp16", "precision")),
        ("launchers.megatron-lm.config.train-iters=5", owned("train-iters", "steps")),
        # argparse takes the beginning of a name as well
        ("launchers.megatron-lm.config.num-lay=2", "launchers.megatron-lm.config.num-lay num-layers model.layers"),
        (
            "launchers.megatron-lm.args={--num-layers=2}",
            "launchers.megatron-lm.args num-layers model.layers",
        ),
        (
            "launchers.megatron-lm.args={--mock-da}",
            "launchers.megatron-lm.args mock-data data.name",
        ),
        (
            "launchers.megatron-lm.config.train-samples=100",
            "launchers.megatron-lm.config.train-samples 10 0",
        ),
        (
            "steps=0",
            "steps 0 launchers.megatron-lm.config.train-samples",
        ),
        (
            "steps=0,launchers.megatron-lm.config.train-samples=100,launchers.megatron-lm.config.lr-decay-iters=2",
            "launchers.megatron-lm.config.lr-decay-iters -samples",
        ),
        (
            "evaluation.batches=4,data.split=100\\,0\\,0",
            "data.split 100,0,0 evaluation.batches 0",
        ),
        ("tokenizer.kind=gpt2", "tokenizer.path gpt2"),
        (
            "precision=nvfp4",
            ("launchers.megatron-lm.image nvcr.io/nvidia/nemo:25.07 nvfp4 nvcr.io/nvidia/nemo:25.11"),
        ),
        (
            "precision=mxfp8,launchers.megatron-lm.image=nvcr.io/nvidia/nemo:25.02",
            ("launchers.megatron-lm.image nvcr.io/nvidia/nemo:25.02 mxfp8 nvcr.io/nvidia/nemo:25.04"),
        ),
        (
            "precision=mxfp8,launcher=nemo-1",
            "precision mxfp8 nemo-1 bf16 fp16 fp32 fp8",
        ),
        (
            "launchers.megatron-lm.config.lr=1",
            "launchers.megatron-lm.config.lr lr optimizer.learningRate",
        ),
        (
            "optimizer.learningRate=1e-6",
            "optimizer.minLearningRate 6e-06 learningRate 1e-06",
        ),
        (
            "optimizer.decay=linear,launcher=nemo-1",
            "optimizer.decay nemo-1 linear cosine",
        ),
        (
            "optimizer.warmupSteps=5,launchers.megatron-lm.config.lr-decay-iters=5",
            "optimizer.warmupSteps 5 lr-decay-iters 5",
        ),
        (
            "optimizer.warmupSteps=5,steps=0,launchers.megatron-lm.config.train-samples=9",
            ("optimizer.warmupSteps null launchers.megatron-lm.config.lr-warmup-samples"),
        ),
        ("model.rotaryBase=10000", "model.rotaryBase gpt null"),
        (
            "recompute.granularity=full,recompute.layers=5",
            "recompute.layers 5 12 4 block",
        ),
    ],
)
def test_what_cannot_run_is_refused(sets: str, expected: str) -> None:
    (line,) = refused(sets)
    assert missing(expected, line) == []


@pytest.mark.parametrize("config", [{"--lr": 1}, {"lr": {"a": 1}}, {"betas": [[1]]}])
def test_configuration_has_the_shape_of_options(config: dict[str, Any]) -> None:
    (line,) = refused(json=(f"launchers.megatron-lm.config={json.dumps(config)}",))
    assert "launchers.megatron-lm.config" in line


def test_the_guides_48_heads_with_hidden_size_8192_are_refused() -> None:
    sets = ("model.layers=64,model.hiddenSize=8192,model.attentionHeads=48", SHARED)
    files = (VALUES / "megatron-gpt-7.5b.yaml",)
    (line,) = refused(*sets, files=files)
    assert missing("model.hiddenSize 8192 48", line) == []


# -- nemo-1


@pytest.mark.parametrize("tag", ["24.01.framework", "24.07", "25.04.01", "25.07", "25.07.00", "25.07.nemotron-nano-v2"])
def test_nemo_images_with_the_program_are_taken(tag: str) -> None:
    assert container(run(f"launcher=nemo-1,launchers.nemo-1.image=nvcr.io/nvidia/nemo:{tag}"))["image"].endswith(tag)


@pytest.mark.parametrize("tag", ["25.09", "25.11.01", "26.02", "26.08.rc3"])
def test_nemo_images_without_the_program_are_refused(tag: str) -> None:
    image = f"{NEMO}:{tag}"
    (line,) = refused("launcher=nemo-1", f"launchers.nemo-1.image={image}")
    assert missing(f"launchers.nemo-1.image {image} {NEMO}:25.07", line) == []


def test_own_images_and_programs_are_the_users_business() -> None:
    own = "launchers.nemo-1.image=registry.example/nemo:26.02"
    assert run("launcher=nemo-1", own)
    assert run("launcher=nemo-1", "launchers.nemo-1.image=nvcr.io/nvidia/nemo:26.02", "launchers.nemo-1.program=/my.py")


def test_staged_data_is_read_from_the_machine_and_indexed_for_all() -> None:
    words = arguments(run("launcher=nemo-1,data.name=a,data.stage=true"))
    assert "++model.data.data_prefix=[1,'/scratch/data/a_text_document']" in words
    assert "++model.data.index_mapping_dir='/outputs/ml/my-run/data-cache'" in words


# -- mlperf-llama2-lora


def test_benchmark_gets_its_configuration_as_variables() -> None:
    found = env(run(LORA_IMAGE, files=LORA))
    expected = {
        "TP": "4", "PP": "1", "CP": "1", "SP": "1", "MBS": "1", "MINIBS": "4", "MAX_STEPS": "800", "LR": "0.0004",
        "DGXNNODES": "1", "DGXNGPU": "8", "GPU_ARCH": "h", "DGXSYSTEM": "box-8_1x8x4xtp4pp1cp1", "FP8": "True",
        "MAX_SEQLEN": "8192", "VAL_CHECK_INTERVAL": "384", "HF_HUB_OFFLINE": "1", "NCCL_NVLS_ENABLE": "1",
    }  # fmt: skip
    assert expected.items() <= found.items()
    assert "SLURM_NTASKS" not in found


P8000 = (
    "parallelism.tensor=8,parallelism.sequence=false,batch.global=1,steps=6400,launchers.mlperf-llama2-lora.system=P8000",
    "optimizer.learningRate=0.00055",
    "launchers.mlperf-llama2-lora.config.NCCL_NVLS_ENABLE=0",
)


def test_the_users_configuration_wins_over_the_common_one() -> None:
    found = env(run(LORA_IMAGE, *P8000, files=LORA))
    expected = {"LR": "0.00055", "NCCL_NVLS_ENABLE": "0", "MINIBS": "1", "MAX_STEPS": "6400", "SP": "0"}
    assert expected.items() <= found.items()
    assert found["DGXSYSTEM"] == "P8000_1x8x1xtp8pp1cp1"


def test_mounts_are_where_the_benchmark_looks() -> None:
    found = run(LORA_IMAGE, "storage.data.from=pvc://mlperf,storage.outputs.from=pvc://mlperf", files=LORA)
    mounts = {mount["mountPath"]: mount for mount in container(found)["volumeMounts"]}
    assert (mounts["/data"]["subPath"], mounts["/data"]["readOnly"]) == ("gov_report", True)
    assert (mounts["/ckpt"]["subPath"], mounts["/ckpt"]["readOnly"]) == ("model", True)
    assert f"/outputs/{mounts['/results']['subPath']}" == env(found)["RUN_DIRECTORY"]
    assert "readOnly" not in mounts["/results"]


def lora(machine: Machine, body: str = "", *sets: str) -> Any:
    """Start the benchmark with a torchrun that runs one rank of it."""
    rank = "import subprocess\nrank = dict(os.environ, LOCAL_RANK='3', RANK='11', WORLD_SIZE='16', GROUP_RANK='1')\n"
    go = "sys.exit(subprocess.call(sys.argv[sys.argv.index('--no-python') + 1:], env=rank))\n"
    machine.program("torchrun", rank + go)
    # stands for the program and for the compliance checker
    record = machine.program("python3", body)
    return run(
        LORA_IMAGE, "launchers.mlperf-llama2-lora.trials=3,launchers.mlperf-llama2-lora.seed=7", *sets, files=LORA
    ), record


WORLD = "nodes 8 1 8 tensor 8 pipeline 1 context 8 64 8"
PRINTS = "if '/workspace/ft-llm/train.py' in sys.argv: print(':::MLLOG', os.environ['SEED'])\n"


def test_trials_have_seeds_and_slurm_variables(machine: Machine) -> None:
    found, record = lora(machine, PRINTS)
    code, log = machine.finish(found, {"SLURM_NTASKS": "16"})
    assert code == 0, log
    outputs = Path(f"{machine.folder}{env(found)['RUN_DIRECTORY']}")
    seen = calls(record)
    trials = [variables for argv, variables in seen if argv[1] == "-u"]
    assert [argv[1:] for argv, _ in seen if argv[1] == "-u"] == [["-u", "/workspace/ft-llm/train.py"]] * 3
    assert [(trial["SEED"], trial["MASTER_PORT"]) for trial in trials] == [("7", "6002"), ("8", "6003"), ("9", "6004")]
    assert {(trial["SLURM_LOCALID"], trial["SLURM_PROCID"], trial["SLURM_NODEID"]) for trial in trials} == {
        ("3", "11", "0")
    }
    assert not any("SLURM_NTASKS" in trial for trial in trials)
    assert [(outputs / f"result_{n}.txt").read_text() for n in range(3)] == [f":::MLLOG {seed}\n" for seed in (7, 8, 9)]
    assert ":::MLLOG 9" in log
    assert all((outputs / "data_index" / name).is_dir() for name in ("train", "val"))
    checks = [argv[1:] for argv, _ in seen if argv[1] == "-m"]
    assert checks[2] == [
        "-m", "mlperf_logging.compliance_checker", "--usage", "training", "--ruleset", "5.0.0",
        "--log_output", f"{outputs}/compliance_2.out", f"{outputs}/result_2.txt",
    ]  # fmt: skip


@pytest.mark.threat(19)
def test_a_trial_writes_through_nothing_that_another_tenant_left(machine: Machine) -> None:
    found, _ = lora(machine, PRINTS)
    outputs, victim = Path(f"{machine.folder}{env(found)['RUN_DIRECTORY']}"), machine.folder / "victim"
    outputs.mkdir(parents=True)
    victim.write_text("theirs")
    os.mkfifo(outputs / "result_0.txt")
    (outputs / "result_1.txt").symlink_to(victim)
    (outputs / "compliance_0.out").symlink_to(victim)
    code, log = machine.finish(found)
    assert code == 0, log
    assert victim.read_text() == "theirs"
    assert not (outputs / "compliance_0.out").is_symlink()


def test_the_first_trial_that_fails_ends_the_run(machine: Machine) -> None:
    found, record = lora(machine, PRINTS + "if os.environ.get('SEED') == '8': sys.exit(5)\n")
    code, log = machine.finish(found)
    assert code == 5
    assert "chartgen: trial 2 of 3 failed with exit code 5" in log
    assert [variables["SEED"] for argv, variables in calls(record) if argv[1] == "-u"] == ["7", "8"]


def test_a_trial_that_does_not_comply_fails_the_run_after_all_trials(machine: Machine) -> None:
    found, record = lora(machine, "if 'result_1' in sys.argv[-1]: sys.exit(1)\n")
    code, log = machine.finish(found)
    assert code == 1
    assert "chartgen: 1 of 3 trials do not comply; see " in log
    assert len(calls(record)) == 6


def test_compliance_is_checked_by_rank_0_if_wanted(machine: Machine) -> None:
    found, record = lora(machine, "")
    assert machine.finish(found, {"NODE_RANK": "1"})[0] == 0
    off, _ = lora(machine, "", "launchers.mlperf-llama2-lora.compliance=false")
    assert machine.finish(off)[0] == 0
    assert not [argv for argv, _ in calls(record) if argv[1] == "-m"]


def test_sigterm_reaches_the_trial(machine: Machine) -> None:
    ready = machine.folder / "ready"
    body = "import signal, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(41))\n"
    found, _ = lora(machine)
    machine.program("torchrun", f"{body}open({str(ready)!r}, 'w').close()\ntime.sleep(20)\n")
    with machine.start(found) as process:
        while not ready.exists():
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        log, _ = process.communicate(timeout=180)
        assert process.returncode == 41, log
    assert "trial 1 of 3 failed with exit code 41" in log


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ("image=", "launchers.mlperf-llama2-lora.image"),
        # 8 GPUs / tensor 8 / context 8 x 1 sample would be cut to a batch of 0
        (
            "parallelism.context=8,parallelism.tensor=8",
            WORLD,
        ),
        (
            "batch.global=1,steps=2000",
            "batch.global 1 1 2 = 2 2",
        ),
        (
            "parallelism.tensor=8,batch.global=1",
            "steps 800 1152 1",
        ),
        (
            "launchers.mlperf-llama2-lora.config.MAX_STEPS=5",
            "launchers.mlperf-llama2-lora.config.MAX_STEPS steps",
        ),
        ("checkpoint.from=", "checkpoint.from"),
        ("recompute=full", "recompute mlperf-llama2-lora"),
        (
            "model.hiddenSize=4096",
            "model.hiddenSize 2 70B llama2-70b-lora.yaml",
        ),
    ],
)
def test_what_the_benchmark_cannot_run_is_refused(sets: str, expected: str) -> None:
    first = () if sets == "image=" else (LORA_IMAGE, sets)
    (line,) = refused(*first, files=LORA)
    assert missing(expected, line) == []


# -- data programs


def data(launcher: str, *sets: str) -> Any:
    return run(f"launcher={launcher}", DATA, "launchers.mlperf-llama2-lora.image=r.example/lora:1", *sets)


@pytest.mark.parametrize(
    ("launcher", "sets"),
    [
        ("download", "data.source=https://example.com/a.jsonl.xz"),
        ("megatron-preprocess", "data.source=https://example.com/a.jsonl.xz"),
        ("pile-dataprep", "data.shards=2"),
        ("mlperf-preprocess", "nodes=1"),
    ],
)
def test_data_programs_ask_for_no_gpu(launcher: str, sets: str) -> None:
    found = data(launcher, sets)
    assert one("Job", found)["spec"]["backoffLimit"] == 0
    assert "nvidia.com/gpu" not in json.dumps(found)


def test_data_programs_use_the_image_of_the_training_that_reads_them() -> None:
    image = "launchers.megatron-lm.image=registry.example/megatron:1"
    found = data("megatron-preprocess", "data.source=https://example.com/a.jsonl.xz", image)
    assert container(found)["image"] == "registry.example/megatron:1"


def test_tokenizer_of_the_data_is_the_trainings() -> None:
    sets = ("data.source=https://example.com/raw.jsonl.xz?x=1", "tokenizer.kind=huggingface")
    words = arguments(data("megatron-preprocess", *sets))
    found = options(words[3:])
    assert words[1:3] == ["/data/set/mine", "/opt/megatron-lm/tools/preprocess_data.py"]
    assert found["input"] == ["/data/set/raw.jsonl"]
    trained = megatron(DATA, *sets)
    assert [found[name] for name in ("tokenizer-type", "tokenizer-model")] == [
        trained[name] for name in ("tokenizer-type", "tokenizer-model")
    ]
    assert trained["data-path"] == [f"{words[1]}_text_document"]


def test_one_number_is_the_writers_files_and_the_readers_list() -> None:
    for shards in (1, 3):
        written = env(data("pile-dataprep", f"data.shards={shards}"))["DATA_NAMES"].split("\n")
        read = megatron(DATA, f"data.shards={shards}")["data-path"]
        assert len(written) == shards
        assert [f"{name}_text_document" for name in written] == [word for word in read if word != "1"]


def test_pile_dataprep_has_pods_and_workers() -> None:
    found = data("pile-dataprep", "data.shards=9,launchers.pile-dataprep.nodes=2,launchers.pile-dataprep.workers=3")
    assert (job_spec(found)["completions"], env(found)["WORKERS"], env(found)["NNODES"]) == (2, "3", "2")


def test_no_token_is_in_what_is_rendered() -> None:
    found = data("download", "data.source=hf://o/n/f", "secretEnv.HF_TOKEN.secretName=hf,secretEnv.HF_TOKEN.key=token")
    (token,) = (entry for entry in container(found)["env"] if entry["name"] == "HF_TOKEN")
    assert token["valueFrom"]["secretKeyRef"] == {"name": "hf", "key": "token"}


@pytest.mark.parametrize(
    ("launcher", "sets", "expected"),
    [
        (
            "download",
            "nodes=1",
            "data.source tokenizer.source checkpoint.source",
        ),
        (
            "download",
            "data.source=https://example.com/folder/",
            "data.source https:// hf:// gs://",
        ),
        (
            "download",
            "tokenizer.source=hf://o/n,tokenizer.kind=none",
            "tokenizer.source tokenizer.kind tokenizer.path",
        ),
        (
            "download",
            "checkpoint.source=hf://o/n",
            "checkpoint.source checkpoint.from",
        ),
        (
            "megatron-preprocess",
            "data.source=",
            "data.source megatron-preprocess",
        ),
        (
            "megatron-preprocess",
            "data.source=https://example.com/a,data.shards=2",
            "data.shards megatron-preprocess 0 pile-dataprep",
        ),
        (
            "pile-dataprep",
            "data.shards=0",
            "data.shards pile-dataprep 1 30",
        ),
        ("pile-dataprep", "data.shards=31", "data.shards 30 31"),
        (
            "pile-dataprep",
            "data.shards=1,data.source=hf://o/n",
            "data.source https:// 00.jsonl.zst /",
        ),
        (
            "pile-dataprep",
            "data.shards=1,tokenizer.kind=none",
            "tokenizer.kind pile-dataprep tokenizer.path",
        ),
        (
            "mlperf-preprocess",
            "storage.data.readOnly=true",
            "storage.data.readOnly mlperf-preprocess",
        ),
    ],
)
def test_impossible_data_is_refused(launcher: str, sets: str, expected: str) -> None:
    with pytest.raises(ChartgenError) as caught:
        data(launcher, sets)
    (line,) = str(caught.value).removeprefix("\n").splitlines()
    assert missing(expected, line) == []


# -- all launchers, all presets


def test_every_preset_has_a_scale_and_every_preset_file_exists() -> None:
    assert set(SCALE) <= set(PRESETS)


@pytest.mark.parametrize("preset", PRESETS)
def test_preset_divides_at_its_own_scale_and_the_batch_follows(preset: str) -> None:
    for factor in (1, 2):
        nodes = f"nodes={factor * SCALE.get(preset, 1)}"
        found = run(LORA_IMAGE, nodes, SHARED, files=(VALUES / f"{preset}.yaml",))
        assert container(found)["command"][0] == "bash"


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_portable(preset: str) -> None:
    text = (VALUES / f"{preset}.yaml").read_text()
    values = require_map(load(text, preset), "a preset")
    assert "image:" not in text
    assert {"storage", "queue", "machineType", "network", "nodeSelector"}.isdisjoint(values)
    assert text.startswith("# yaml-language-server: $schema=../schemas/")
    assert "# Source" in text


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_scripts_are_clean_for_bash_and_shellcheck(launcher: str, tmp_path: Path) -> None:
    own, titan = "launchers.torchrun", "launchers.torchtitan"
    sets = {
        "pile-dataprep": "data.shards=2",
        "mlperf-llama2-lora": "checkpoint.from=/data/w",
        "torchrun": f"{own}.image=r.example/own:1,{own}.program=/opt/own.py,{own}.starter=accelerate",
        "automodel": "launchers.automodel.model=/data/llama,checkpoint.enabled=true,storage.outputs.from=pvc://o",
        "torchtitan": f"{titan}.image=r.example/own:1,{titan}.recipe=llama3_8b,{titan}.datasetPath=/data/c4,"
        f"{titan}.files.a\\.py=pass",
    }
    source = "data.source=" if launcher == "pile-dataprep" else "data.source=https://example.com/a.jsonl.xz"
    more = LORA if launcher == "mlperf-llama2-lora" else ()
    names = {
        "mlperf-llama2-lora": "nodes=1",
        "automodel": "tokenizer.kind=huggingface,tokenizer.path=/data/llama",
        "torchtitan": "tokenizer.kind=huggingface,tokenizer.path=/data/llama",
        "torchrun": "nodes=1",
    }.get(launcher, DATA)
    found = run(f"launcher={launcher}", names, source, LORA_IMAGE, sets.get(launcher, "nodes=1"), files=more)
    shellcheck = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert shellcheck, "shellcheck is in requirements/dev.txt"
    for name, text in one("ConfigMap", found)["data"].items():
        (tmp_path / name).write_text(text)
        if name.endswith(".sh"):
            subprocess.run(["bash", "-n", str(tmp_path / name)], check=True)
            done = subprocess.run([shellcheck, str(tmp_path / name)], capture_output=True, text=True, check=False)
            assert done.stdout == ""
        elif name.endswith(".py"):
            compile(text, name, "exec")


def test_own_programs_are_in_the_chart_as_they_are_in_the_library() -> None:
    text = (BUILTIN / "launchers" / "download" / "program.py").read_text()
    found = data("download", "data.source=https://example.com/a")
    assert one("ConfigMap", found)["data"]["program.py"].strip() == text.strip()
    assert "download" in lab().files["values.yaml"]


@pytest.mark.parametrize(("image", "asynchronous"), [("25.02", False), ("25.04", True), ("26.08", True)])
def test_checkpoints_are_written_beside_the_training_where_the_release_can(image: str, *, asynchronous: bool) -> None:
    sets = (f"launchers.megatron-lm.image=nvcr.io/nvidia/nemo:{image}", "storage.outputs.from=pvc://r")
    names = {"async-save", "use-persistent-ckpt-worker"}
    assert names & megatron("checkpoint.enabled=true", *sets).keys() == (names if asynchronous else set())
    assert not names & megatron(*sets).keys(), "nothing is saved"
