"""Published configurations of Megatron-Bridge: our values state them flag by flag; each difference has a reason."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pairs import PRESETS, layers
from rendered import VALUES, rendered, unescaped

from chartgen.helm.values import load_values
from chartgen.helm.yaml import load_file, require_map
from chartgen.kube.workloads import find_workers, gpus, program_of

FILE = VALUES.parent / "tests" / "data" / "bridge-configurations.yaml"
DATA: Any = require_map(load_file(FILE), "configurations")
ROWS: list[dict[str, Any]] = DATA["configurations"]
MIRRORS = os.environ.get("CHARTGEN_UPSTREAM", "")
# NVIDIA-NeMo/Megatron-Bridge v0.3.1, scripts/performance/utils/overrides.py, set_user_overrides
KEYS = {
    **{f"{name}_parallel_size": f"model.{name}_parallel_size" for name in ("context", "expert_model", "expert_tensor")},
    **{f"{name}_parallel_size": f"model.{name}_parallel_size" for name in ("tensor_model", "pipeline_model")},
    "virtual_pipeline_model_parallel_size": "model.virtual_pipeline_model_parallel_size",
    "global_batch_size": "train.global_batch_size",
    "micro_batch_size": "train.micro_batch_size",
    "max_steps": "train.train_iters",
    "seq_length": "dataset.sequence_length",
    "compute_dtype": "mixed_precision",
    "cuda_graph_impl": "model.cuda_graph_impl",
    "cuda_graph_scope": "model.cuda_graph_scope",
    "recompute_modules": "model.recompute_modules",
    # where Bridge's own section comm_overlap, which a recipe lacks, would write it (v0.5.1, training/comm_overlap.py)
    "moe_a2a_overlap": "model.overlap_moe_expert_parallel_comm",
    "use_megatron_fsdp": "ddp.use_megatron_fsdp",
}
PRECISIONS = {"bf16": "bf16_mixed", "fp8_cs": "bf16_with_fp8_current_scaling_mixed", "fp8_mx": "bf16_with_mxfp8_mixed"}
# What a recipe has where the command line says nothing: v0.5.1, src/megatron/bridge/recipes/common.py, and the same in
# each recipe used here and in vanilla_gpt.py.
OF_THE_RECIPE = {"seq_length": "4096", "compute_dtype": "bf16_mixed", "cuda_graph_impl": "none"} | {
    "moe_a2a_overlap": "false",
    "use_megatron_fsdp": "false",
}


def git_show(repository: str, path: str) -> str:
    git = ["git", f"--git-dir={Path(MIRRORS) / repository.replace('/', '+') / 'repo'}", "show"]
    commit = DATA["repositories"][repository]
    return subprocess.run([*git, f"{commit}:{path}"], capture_output=True, text=True, check=True).stdout


def name_of(row: dict[str, Any]) -> str:
    return str(row["file"]).split(":", 1)[1].removesuffix("/recipe/launcher.sh")


def wanted(flag: str, text: str) -> str:
    """The override that a flag becomes."""
    if flag == "compute_dtype":
        return PRECISIONS[text]
    if flag in ("cuda_graph_scope", "recompute_modules"):
        return f"[{text}]"
    return "null" if text == "None" else text.lower() if text in ("True", "False") else text


def ours(row: dict[str, Any]) -> tuple[int, str, dict[str, str]]:
    """The GPUs and the recipe of a row's values, and their overrides without quotes."""
    told = row["values"]
    found = rendered(*told["set"], files=tuple(layers(told["target"], told["preset"])), name=told["target"])
    workers = find_workers(found)
    assert workers
    program = program_of(workers.pod)
    words = [unescaped(word) for word in program["args"]]
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    return (
        workers.count * gpus(workers.pod),
        words[words.index("--recipe") + 1],
        {key: text.replace("'", "") for key, text in pairs.items()},
    )


def compared(row: dict[str, Any]) -> tuple[int, set[str]]:
    """How many flags are equal, and which differ."""
    world, recipe, found = ours(row)
    flags = dict(row["flags"])
    model = flags.pop("model_recipe_name")
    told = {"num_gpus": str(world), **{flag: found.get(key, OF_THE_RECIPE.get(flag)) for flag, key in KEYS.items()}}
    different = {flag for flag, text in flags.items() if told[flag] != wanted(flag, text)}
    if recipe != "vanilla_gpt_pretrain_config" and not recipe.startswith(f"{model}_pretrain_config"):
        different.add("model_recipe_name")
    return len(row["flags"]) - len(different), different


def test_a_preset_downloads_what_its_recipe_reads_without_the_hub() -> None:
    for preset in PRESETS:
        launchers: Any = load_values([VALUES / f"{preset}.yaml"]).data.get("launchers", {})
        if recipe := launchers.get("megatron-bridge", {}).get("recipe"):
            assert sorted(launchers["download"]["models"]) == DATA["recipes"][recipe]["reads"], preset


@pytest.mark.skipif(not MIRRORS, reason="CHARTGEN_UPSTREAM does not name a folder with the vendors' repositories")
def test_a_recipe_reads_what_its_source_names() -> None:
    for recipe, row in DATA["recipes"].items():
        text = git_show("NVIDIA-NeMo/Megatron-Bridge", f"src/megatron/bridge/recipes/{row['file']}")
        own = re.split(r"^(?=def )", text[text.index(f"def {recipe}()") :], maxsplit=2, flags=re.MULTILINE)[1]
        constants = dict(re.findall(r'^([A-Z_0-9]+) = "(\S+)"$', text, re.MULTILINE))
        named = re.findall(r"(?:from_hf_pretrained\(|tokenizer_model = )([^)\s]+)", own)
        assert sorted({constants.get(each, each.strip('"')) for each in named} - {"None"}) == row["reads"], recipe


@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_values_state_a_published_configuration(row: dict[str, Any]) -> None:
    equal, different = compared(row)
    print(f"| {name_of(row)} | {equal} | {', '.join(sorted(different)) or 'none'} |")  # noqa: T201
    assert different == set(row.get("differs", {}))
    assert equal >= 10


@pytest.mark.skipif(not MIRRORS, reason="CHARTGEN_UPSTREAM does not name a folder with the vendors' repositories")
@pytest.mark.parametrize("row", [row for row in ROWS if row["file"].endswith("launcher.sh")], ids=name_of)
def test_the_flags_are_the_vendors(row: dict[str, Any]) -> None:
    repository, path = row["file"].split(":", 1)
    text = git_show(repository, path)
    theirs = dict(re.findall(r"--([a-z0-9_]+) (\S+)", text[text.index("scripts/performance") :]))
    assert {flag: theirs.get(flag) for flag in row["flags"]} == row["flags"]
    assert set(theirs) & set(KEYS) <= set(row["flags"])
