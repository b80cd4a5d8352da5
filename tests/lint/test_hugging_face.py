"""`chartgen preset --from-hf`: published config.json files become model blocks, and each other setting is listed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from facts import missing
from userlib import chartgen

from chartgen.checks import check_values
from chartgen.composer.assembly import compose
from chartgen.composer.target import load_target
from chartgen.helm.values import Values
from chartgen.helm.yaml import load, load_file, require_map

DATA: Any = require_map(load_file(Path(__file__).parents[1] / "data" / "hf-configs.yaml"), "configurations")


def listed(text: str) -> list[str]:
    """The setting of each warning; every one has its place in the file."""
    return sorted(re.findall(r"config\.json:\d+:\d+: (\w+)", text))


@pytest.mark.parametrize("name", DATA)
def test_a_published_model_is_described(name: str, tmp_path: Path) -> None:
    wanted = DATA[name]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(wanted["config"], indent="\t"))
    ran = chartgen("preset", "--from-hf", file, "--name", name)
    assert ran.exit_code == 0
    made: Any = load(ran.stdout, "made").data
    assert made == {"model": {"name": name, **wanted["model"]}}
    assert listed(ran.stderr) == wanted["left"]
    assert check_values(compose(load_target("gke-a4")), Values(made)) == []


def test_other_names_of_the_same_settings(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    gpt = {"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "vocab_size": 50257, "resid_pdrop": 0.1}
    file.write_text(json.dumps(gpt))
    ran = chartgen("preset", "--from-hf", file)
    made: Any = load(ran.stdout, "made").data
    sizes = {"layers": 12, "hiddenSize": 768, "attentionHeads": 12, "vocabularySize": 50257}
    assert made["model"] == {"name": tmp_path.name, "family": "gpt", **sizes}
    assert listed(ran.stderr) == ["resid_pdrop"]
    # version 5 of transformers
    newer = {**DATA["llama3.1-70b"]["config"], "rope_parameters": {"rope_theta": 7, "rope_type": "default"}}
    del newer["rope_theta"]
    file.write_text(json.dumps(newer))
    assert "rotaryBase: 7" in chartgen("preset", "--from-hf", file).stdout


def test_only_models_with_layers_without_experts_lose_their_size(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    experts = {**DATA["deepseek-v3"]["config"]}
    assert "intermediate_size" in DATA["deepseek-v3"]["left"]
    for none in ({"first_k_dense_replace": 0}, {"first_k_dense_replace": None, "decoder_sparse_step": 1}):
        file.write_text(json.dumps(experts | none))
        assert "intermediate_size" not in listed(chartgen("preset", "--from-hf", file).stderr)


def test_the_language_model_of_one_that_reads_pictures_is_described(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    text = DATA["llama3.1-70b"]["config"] | {"model_type": "llama"}
    file.write_text(json.dumps({"model_type": "mllama", "text_config": text, "vision_config": {"depth": 4}}, indent=1))
    ran = chartgen("preset", "--from-hf", file, "--name", "sees")
    made: Any = load(ran.stdout, "made").data
    assert made["model"] == {"name": "sees", **DATA["llama3.1-70b"]["model"]}
    assert listed(ran.stderr) == ["rope_scaling", "vision_config"]


def test_models_whose_layers_differ_are_refused(tmp_path: Path) -> None:
    # keys and values: configuration_*.py of transformers v4.57.1 and of nvidia/Llama-3_3-Nemotron-Super-49B-v1
    mixed: dict[str, Any] = {
        "block_configs": [{"attention": {"no_op": True}}],
        "hybrid_override_pattern": "M-M-M*-",
        "mamba_d_state": 128,
        "linear_num_value_heads": 32,
        "layer_types": ["linear_attention", "full_attention"],
        "intermediate_size": [8192, 4096],
    }
    file = tmp_path / "config.json"
    for key, value in mixed.items():
        file.write_text(json.dumps(DATA["llama3.1-70b"]["config"] | {key: value}, indent=1))
        ran = chartgen("preset", "--from-hf", file)
        assert (ran.exit_code, ran.stdout) == (1, ""), key
        assert re.search(rf"config\.json:\d+:\d+: {key}", ran.stderr), key
    file.write_text(json.dumps(DATA["llama3.1-70b"]["config"] | {"layer_types": ["full_attention"]}))
    assert chartgen("preset", "--from-hf", file).exit_code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"num_hidden_layers": 0, "hidden_size": 8, "num_attention_heads": 1, "vocab_size": 9}',
            "layers num_hidden_layers",
        ),
        ('{"num_hidden_layers": true, "n_head": ".inf", "n_embd": 4, "vocab_size": 9}', "layers attentionHeads"),
        ("[1]", "map list"),
        ("{", ""),
    ],
)
def test_a_file_without_a_model_is_refused(text: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(text)
    ran = chartgen("preset", "--from-hf", file)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert missing(expected, ran.stderr) == []
    assert str(file) in ran.stderr


def test_a_folder_or_a_repository_of_the_cache_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "hub" / "models--meta--Llama-x" / "snapshots" / "0a1b"
    kept.mkdir(parents=True)
    (kept / "config.json").write_text(json.dumps(DATA["llama3.1-70b"]["config"]))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    assert 'name: "Llama-x"' in chartgen("preset", "--from-hf", "meta/Llama-x").stdout
    assert 'name: "0a1b"' in chartgen("preset", "--from-hf", kept).stdout
    refused = chartgen("preset", "--from-hf", "meta/none")
    assert (refused.exit_code, missing("meta/none hf download", refused.stderr)) == (2, [])


# model_type of decoders, without an encoder: transformers v4.57.1, models/auto/modeling_auto.py, models of a causal LM
DECODERS = """
    apertus arcee bitnet bloom code_llama codegen cohere2 dbrx deepseek_v3 ernie4_5 ernie4_5_moe exaone4 falcon
    gemma3_text glm4_moe gpt2 gpt_bigcode gpt_neox gpt_oss gptj granite llama llama4_text mistral mixtral
    modernbert-decoder mpt nemotron olmo2 opt phi3 qwen2_moe qwen3_moe seed_oss smollm3 stablelm starcoder2 xglm
""".split()  # noqa: SIM905
ENCODERS = """
    albert bart beit bert big_bird camembert clip_text_model convnextv2 deberta-v2 deit dinov2 distilbert electra
    ernie esm hubert layoutlmv3 longformer marian mbart modernbert mpnet mt5 nomic_bert pegasus roberta siglip
    swinv2 t5 umt5 vit wav2vec2 whisper xlm-roberta
""".split()  # noqa: SIM905


@pytest.mark.parametrize(
    "changed",
    [
        *({"model_type": family} for family in ENCODERS),
        {"model_type": "new", "type_vocab_size": 2},
        {"model_type": "new", "architectures": ["NewForMaskedLM"]},
        {"model_type": "new", "is_encoder_decoder": True},
    ],
    ids=str,
)
def test_a_model_with_an_encoder_is_refused_in_one_line(changed: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(DATA["llama3.1-70b"]["config"] | changed))
    ran = chartgen("preset", "--from-hf", tmp_path)
    assert (ran.exit_code, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
    assert changed["model_type"] in ran.stderr


@pytest.mark.parametrize("family", DECODERS)
def test_a_decoder_is_not_taken_for_an_encoder(family: str, tmp_path: Path) -> None:
    changed = {"model_type": family, "architectures": ["XForCausalLM"]}
    (tmp_path / "config.json").write_text(json.dumps(DATA["llama3.1-70b"]["config"] | changed))
    assert chartgen("preset", "--from-hf", tmp_path).exit_code == 0


@pytest.mark.parametrize(
    ("family", "option"),
    [("qwen2", "model.add_qkv_bias"), ("qwen3", "model.qk_layernorm"), ("gemma3_text", "model.qk_layernorm")],
)
def test_what_a_family_has_besides_is_named_with_its_option(family: str, option: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(DATA["llama3.1-70b"]["config"] | {"model_type": family}))
    assert option in chartgen("preset", "--from-hf", tmp_path).stderr


def test_an_error_of_json_is_one_of_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"a": 1,\n "b" 2}')
    ran = chartgen("preset", "--from-hf", tmp_path)
    assert "config.json:2:6: " in ran.stderr
    assert "JSON" in ran.stderr
