"""The table of models: its sizes lead to the parameters that the models' owners publish."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from chartgen.data import models
from chartgen.data.models import all_architectures, find_architecture

ROWS = YAML(typ="safe").load(Path(models.__file__).with_suffix(".yaml"))["models"]


@pytest.mark.parametrize("name", all_architectures())
def test_sizes_lead_to_the_published_parameters(name: str) -> None:
    model, published = all_architectures()[name], ROWS[name]["parameters"]
    assert model.parameters / 1e9 == pytest.approx(published[0], rel=0.02)
    # gpt-oss counts one table of its vocabulary as active, GLM neither shared experts nor tables in full
    if len(published) > 1 and not name.startswith(("gpt-oss", "glm")):
        idle = sum(each.parameters * (1 - each.active / each.copies) for each in model.routed)
        assert (model.parameters - idle) / 1e9 == pytest.approx(published[1], rel=0.04)


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("DeepSeekV3 (w/o MTP)", "deepseek-v3"),
        ("GPT OSS 120B", "gpt-oss-120b"),
        ("LLAMA3.1_405B", "llama3.1-405b"),
        ("qwen3_30b_a3b_pretrain_config", "qwen3-30b-a3b"),
        ("deepseek_v4_flash_pretrain_config", "deepseek-v4-flash"),
        ("nemotron_3_super_pretrain_config", "nemotron-3-super"),
        ("nemotron_3_ultra_pretrain_config", "nemotron-3-ultra"),
    ],
)
def test_names_of_tables_and_recipes_find_their_model(name: str, model: str) -> None:
    found = find_architecture(name)
    assert found is not None
    assert found.name == model


@pytest.mark.parametrize("name", ["", "llama", "gpt", "qwen3_300b", "llama3_80b"])
def test_a_part_of_a_name_finds_no_model(name: str) -> None:
    assert find_architecture(name) is None


def test_training_takes_the_operations_that_nvidia_counts() -> None:
    # tokens/s and TFLOP/s of NVIDIA-NeMo/Megatron-Bridge 067f987, docs/performance-summary-archive.md
    llama, deepseek = all_architectures()["llama3-70b"], all_architectures()["deepseek-v3"]
    assert llama.operations(8192) / 1e9 == pytest.approx(2353e3 / 5243, rel=0.01)
    assert deepseek.operations(4096) / 1e9 == pytest.approx(1640e3 / 6304, rel=0.01)
