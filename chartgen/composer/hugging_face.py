"""Describe a model of the Hugging Face hub by portable values: the `model` block of its config.json.

The keys are those of huggingface/transformers v4.57.1, src/transformers/models (llama, mistral, mixtral, gpt2, qwen3,
qwen3_moe, deepseek_v3, gpt_oss: configuration_*.py); version 5 keeps `rope_theta` in `rope_parameters`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chartgen.errors import ChartgenError, Problem, UsageError, refuse
from chartgen.files import home_expanded
from chartgen.helm.yaml import Document, Plain, load, read_text, require_map
from chartgen.masking import masked_value
from chartgen.visible import one_line

# Portable key -> names of the hub, the first that is there; 0 and "" count as not there.
_KEYS = {
    "layers": ("num_hidden_layers", "n_layer"),
    "hiddenSize": ("hidden_size", "n_embd"),
    "ffnHiddenSize": ("moe_intermediate_size", "intermediate_size", "n_inner"),
    "attentionHeads": ("num_attention_heads", "n_head"),
    "queryGroups": ("num_key_value_heads",),
    "vocabularySize": ("vocab_size",),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "expertsPerToken": ("num_experts_per_tok",),
    "rotaryBase": ("rope_theta",),
}
_REQUIRED = ("layers", "hiddenSize", "attentionHeads", "vocabularySize")
# Families whose layers are those of a portable one; of others, each layer may compute something else.
_FAMILIES = {"gpt2": "gpt", "llama": "llama", "mistral": "llama", "mixtral": "mixtral"}
# Keys that describe no layer: weights, tokens, how the hub's own code runs, and how often a router's loss counts.
_IDLE = frozenset(
    (
        *("architectures", "auto_map", "model_type", "torch_dtype", "dtype", "transformers_version", "use_cache"),
        *("_name_or_path", "pretraining_tp", "bos_token_id", "eos_token_id", "pad_token_id", "quantization_config"),
        *("output_router_logits", "tie_word_embeddings", "initializer_range", "max_position_embeddings", "n_positions"),
        *("n_ctx", "task_specific_params", "intermediate_size", "rope_theta", "rope_parameters"),
    )
)
# Values that mean what Megatron computes anyway, by key.
_USUAL: dict[str, tuple[Plain, ...]] = {
    "hidden_act": ("silu",),
    "activation_function": ("gelu_new", "gelu"),
    "rms_norm_eps": (1e-5,),
    "layer_norm_epsilon": (1e-5,),
    "decoder_sparse_step": (1,),
    "moe_layer_freq": (1,),
}
# Options of Megatron-Bridge that state what the values cannot (v0.5.1, src/megatron/bridge/models/*/*_bridge.py).
_OPTIONS = {
    "head_dim": "model.kv_channels",
    "rms_norm_eps": "model.layernorm_epsilon",
    "layer_norm_epsilon": "model.layernorm_epsilon",
    "rope_scaling": "model.rope_scaling and model.rope_scaling_factor, for rope_type llama3,",
    "attention_bias": "model.add_qkv_bias",
    "first_k_dense_replace": "model.moe_layer_freq",
    "n_shared_experts": "model.moe_shared_expert_intermediate_size",
    "num_nextn_predict_layers": "model.mtp_num_layers",
    "router_aux_loss_coef": "model.moe_aux_loss_coeff",
    "kv_lora_rank": "model.kv_lora_rank, with model.multi_latent_attention",
    "q_lora_rank": "model.q_lora_rank, with model.multi_latent_attention",
}
# Encoders alone or before a decoder, by family and by head (transformers v4.57.1, models/auto/modeling_auto.py).
_ENCODERS = re.compile(
    r"(?!.*decoder)(?:.*(?:bert|bart|(?<!gp)t5|xlm|electra|pegasus|marian|clip|siglip|vit|swin|dino|[bd]eit|2vec|wavlm)"
    r"|(?:big_bird|canine|convnext|ernie(?:_m)?|esm|fnet|funnel|layoutlm|led|longformer|luke|m2m_100|mpnet|mvp"
    r"|nystromformer|prophetnet|resnet|roformer|segformer|speech_to_text|switch_transformers|tapas|whisper)(?:v\d)?$)"
)
_HEADS = re.compile(r"For(?:Masked|PreTraining|NextSentence|CTC|Image|Audio|Video|Speech|Object|Semantic)")
# What layers of a family have although config.json does not state it: modeling_*.py of transformers v4.57.1.
_IMPLIED = (
    (re.compile(r"qwen2(?!_audio)"), "biases of query, key and value", "model.add_qkv_bias"),
    (re.compile(r"qwen3|gemma3|olmo2"), "norms of query and key", "model.qk_layernorm"),
)
_RECIPE = "train it by its recipe of Megatron-Bridge (launchers.megatron-bridge.recipe)"
# The language model of one that also reads pictures or sound, and what the file states beside it.
_TEXT = ("text_config", "llm_config", "language_config")
_TOKEN = ("_token_id", "_token_index")
_SHARED = ("tie_word_embeddings",)
_SIZES = frozenset(name for names in _KEYS.values() for name in names)
# transformers v4.57.1, configuration_utils.py, ALLOWED_LAYER_TYPES
_ATTENTION = frozenset(("full_attention", "sliding_attention", "chunked_attention"))
# State spaces and linear attention (nemotron_h, jamba, bamba, falcon_h1, zamba2, qwen3_next), and blocks of a search.
_HYBRID = re.compile(
    r"(?:mamba|ssm|linear_num|linear_conv)_|(?:block_configs|hybrid_override_pattern|layers_block_type|attn_layer_period)$"
)
# Longer values are left out of messages.
_SHORT = 40


@dataclass(frozen=True)
class Described:
    """A model of the hub: its `model` block, and what that does not state."""

    model: dict[str, Plain]
    left: list[Problem]


def config_of(place: str) -> tuple[Path, str]:
    """Return the config.json of a model and the model's name; nothing is downloaded.

    Args:
        place: The file, its folder, or the name of a repository that is in the cache of the hub on this machine
            (huggingface_hub v0.36, constants.py: HF_HUB_CACHE, HF_HOME).

    Raises:
        UsageError: Neither a file nor a repository of the cache has this name.
    """
    path = Path(place)
    if not path.exists() and re.fullmatch(r"[\w.-]+/[\w.-]+", place):
        home = os.environ.get("HF_HOME") or home_expanded("~/.cache/huggingface")
        folder = Path(os.environ.get("HF_HUB_CACHE") or Path(home, "hub")) / f"models--{place.replace('/', '--')}"
        if not folder.is_dir():
            hint = f"correct the path, or fetch the model's: hf download {place} config.json"
            raise UsageError(Problem(f"no file {place}, and no such model in the cache of the hub", hint=hint))
        path = folder
    if snapshots := sorted(path.glob("snapshots/*/config.json"), key=lambda file: file.lstat().st_mtime):
        return snapshots[-1], path.name.rpartition("--")[2]
    file = path / "config.json" if path.is_dir() else path
    return file, file.absolute().parent.name


def describe_model(path: Path, name: str) -> Described:
    """Return the values of `model` that a config.json describes, and every setting without a portable key.

    Raises:
        ChartgenError: The file is not a map, or lacks a size that every model has.
    """
    text = read_text(path)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise ChartgenError(Problem(f"is not valid JSON: {error.msg}", path, error.lineno, error.colno)) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of levels
        raise ChartgenError(Problem(f"cannot be read: {one_line(str(error))[:60]}", path, 1, 1)) from None
    # Some files are indented with tabs, which only JSON permits; no text contains one.
    whole = load(text.replace("\t", " "), path)
    around = require_map(whole, path.name)
    inner = tuple([key for key in _TEXT if isinstance(around.get(key), dict)][:1])
    document = whole.part(inner)
    given = {**{key: around[key] for key in _SHARED if key in around}, **require_map(document, path.name)}
    if _has_encoder(given):
        message = f"model_type {given.get('model_type', 'unknown')} has an encoder, and portable families are decoders"
        hint = "train it with its own program (launcher torchrun)"
        raise ChartgenError(document.problem(message, tuple({"model_type"} & given.keys()), hint))
    refuse([document.problem(message, (key,), _RECIPE) for key, message in _mixed(given)])
    sizes = {key: value for key in _KEYS if (value := _first(given, key)[1]) is not None}
    problems = [
        document.problem(f"{key!r} is missing or not a whole number above 0", hint=f"add {' or '.join(_KEYS[key])}")
        for key in _REQUIRED
        if key not in sizes
    ]
    refuse(problems)
    if "experts" not in sizes:
        sizes.pop("expertsPerToken", None)
    model: dict[str, Plain] = {"name": name, "family": _family(given, sizes), **sizes}
    if _number(given.get("initializer_range")):
        model["initStandardDeviation"] = _number(given["initializer_range"])
    if isinstance(given.get("tie_word_embeddings"), bool):
        model["tiedEmbeddings"] = given["tie_word_embeddings"]
    left = _left(document, given, sizes, str(model["family"]))
    others = [key for key in around if inner and key not in {*inner, *given, *_IDLE} and not key.endswith(_TOKEN)]
    left += [whole.problem(f"{_shown(key, around[key])} has no portable key", (key,)) for key in others if around[key]]
    return Described(model, left)


def _has_encoder(given: dict[str, Plain]) -> bool:
    """Report whether a model is an encoder, or has one before its decoder."""
    stated = given.get("is_encoder_decoder") is True or "type_vocab_size" in given
    family, heads = str(given.get("model_type")), map(str, _listed(given.get("architectures")))
    return stated or bool(_ENCODERS.match(family)) or any(map(_HEADS.search, heads))


def _mixed(given: dict[str, Plain]) -> Iterator[tuple[str, str]]:
    """Yield each setting that makes layers differ in kind or size, and why."""
    for key, value in given.items():
        kinds = {*map(str, value)} - _ATTENTION if key == "layer_types" and isinstance(value, list) else value
        if key in _SIZES and isinstance(value, list):
            yield key, f"{key} has a size for each layer, and a portable model has one for all"
        elif kinds and (_HYBRID.match(key) or key == "layer_types"):
            yield (
                key,
                f"{key}: not every layer is attention and a feed-forward block of one size, as in portable families",
            )


def _listed(value: Plain) -> list[Plain]:
    return value if isinstance(value, list) else []


def _first(given: dict[str, Plain], key: str) -> tuple[str, int | None]:
    """Return the hub's key of a size and its value, if the file has it."""
    rope = given.get("rope_parameters")
    every = {**(rope if isinstance(rope, dict) else {}), **given}
    for name in _KEYS[key]:
        value = _number(every.get(name))
        if value and value > 0 and value == int(value):
            return name, int(value)
    return "", None


def _number(value: Plain) -> float | None:
    """Return a number, also one that YAML reads as text, such as 1e-05."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if abs(found) < 1e12 else None


def _family(given: dict[str, Plain], sizes: dict[str, int]) -> str:
    known = _FAMILIES.get(str(given.get("model_type")))
    return known or ("mixtral" if "experts" in sizes else "llama" if _first(given, "rotaryBase")[0] else "gpt")


def _has_dense(given: dict[str, Plain]) -> bool:
    """Report whether a model of experts may have layers without any."""
    every = given.get("decoder_sparse_step") == 1 and not given.get("mlp_only_layers")
    return not every and given.get("first_k_dense_replace") != 0


def _left(document: Document, given: dict[str, Plain], sizes: dict[str, int], family: str) -> list[Problem]:
    """Return one problem for each setting that the model block does not state."""
    taken = {_first(given, key)[0] for key in _KEYS}
    kind = str(given.get("model_type"))
    found = []
    if kind not in _FAMILIES:
        hint, differs = f"{_RECIPE}, or check every layer", "may differ"
        for other, what, own in _IMPLIED:
            if other.match(kind):
                hint, differs = f"Megatron-Bridge has {own} in launchers.megatron-bridge.config", f"lack its {what}"
        message = f"model_type {kind} is not a portable family; {family} is the nearest, and its layers {differs}"
        found.append(document.problem(message, ("model_type",) if "model_type" in given else (), hint))
    if "intermediate_size" not in taken and "moe_intermediate_size" in taken and _has_dense(given):
        shown = _shown("intermediate_size", given.get("intermediate_size"))
        message = f"{shown}, of layers without experts, has no portable key"
        found.append(document.problem(message, ("intermediate_size",), _RECIPE))
    for key, value in given.items():
        if key not in taken and key not in _IDLE and not _is_usual(key, value, sizes):
            option = _OPTIONS.get(key)
            hint = f"Megatron-Bridge has {option} in launchers.megatron-bridge.config" if option else ""
            found.append(document.problem(f"{_shown(key, value)} has no portable key", (key,), hint))
    return found


def _shown(key: str, value: Plain) -> str:
    text = json.dumps(masked_value(value, (key,)))
    return f"{key} {text}" if len(text) < _SHORT else key


def _is_usual(key: str, value: Plain, sizes: dict[str, int]) -> bool:
    """Report whether a setting is off, or what Megatron computes without it."""
    if value in (None, False, 0, "", [], {}) or (key.endswith(("dropout", "pdrop")) and _number(value) == 0):
        return True
    if key == "head_dim":
        return _number(value) == sizes["hiddenSize"] / sizes["attentionHeads"]
    usual = _USUAL.get(key, ())
    return value in usual or _number(value) in [each for each in usual if isinstance(each, int | float)]
