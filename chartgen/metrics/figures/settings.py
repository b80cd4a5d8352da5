"""Facts of a run from the configuration that its program printed, with native names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

# Fact -> native names, the more precise first. Sources: NVIDIA/Megatron-LM @ d98e8a6, megatron/training/arguments.py;
# NVIDIA/NeMo @ 8cfedd7, examples/nlp/language_modeling/conf/megatron_gpt_config.yaml; EleutherAI/gpt-neox,
# megatron/neox_arguments/neox_args.py.
_NUMBERS = {
    "layers": ("num_layers",),
    "hiddenSize": ("hidden_size",),
    "ffnHiddenSize": ("ffn_hidden_size",),
    "attentionHeads": ("num_attention_heads",),
    "queryGroups": ("num_query_groups",),
    "headSize": ("kv_channels",),
    "vocabularySize": ("padded_vocab_size", "vocab_size"),
    "experts": ("num_moe_experts", "num_experts"),
    "expertsPerToken": ("moe_router_topk",),
    "sequenceLength": ("encoder_seq_length", "seq_length", "data/seq_length"),
    "batch": ("global_batch_size", "train_batch_size"),
    "gpus": ("world_size", "global_num_gpus"),
    "machines": ("num_nodes",),
}
_WHOLE = re.compile(r"[0-9]{1,18}")
# NeMo counts the vocabulary of GPT-2 as 51200 (nemo/collections/common/parts/perf_metrics_utils.py): it is padded, and
# the configuration contains only the tokenizer's name.
_GPT2 = ("GPT2BPETokenizer", 51200)
_TRUE = ("True", "true")
_PRECISIONS = {"bf16": "bf16", "16": "fp16", "fp16": "fp16", "32": "fp32", "fp32": "fp32"}


def facts_of(settings: Mapping[str, str]) -> dict[str, Any]:
    """Translate native settings into facts; omit unknown ones."""
    facts: dict[str, Any] = {}
    for fact, names in _NUMBERS.items():
        numbers = (settings[name] for name in names if _WHOLE.fullmatch(settings.get(name, "")))
        if number := next(numbers, ""):
            facts[fact] = int(number)
    if settings.get("group_query_attention") in ("False", "false"):
        facts.pop("queryGroups", None)  # Megatron prints 1, its default, which is not used in this case
    if "vocabularySize" not in facts and settings.get("tokenizer/type") == _GPT2[0]:
        facts["vocabularySize"] = _GPT2[1]
    if _WHOLE.fullmatch(settings.get("devices", "")) and "machines" in facts:
        facts["gpus"] = int(settings["devices"]) * facts["machines"]
    if "layers" in facts:
        facts["gated"] = _gated(settings)
    if settings.get("recompute_granularity") == "full" or settings.get("checkpoint_activations") in _TRUE:
        facts["recomputed"] = True
    return facts | _precision(settings) | _adapters(settings)


def _gated(settings: Mapping[str, str]) -> bool:
    flags = (settings.get("swiglu"), settings.get("gated_linear_unit"))
    return any(flag in _TRUE for flag in flags) or "swiglu" in settings.get("activation", "")


def _precision(settings: Mapping[str, str]) -> dict[str, str]:
    if settings.get("fp8", "None") not in ("None", "False", "false", "null"):
        return {"precision": "mxfp8" if settings.get("fp8_recipe") == "mxfp8" else "fp8"}
    for name in ("bf16", "fp16"):
        if settings.get(name) in _TRUE:
            return {"precision": name}
    known = _PRECISIONS.get(settings.get("precision", "").removesuffix("-mixed"))
    return {"precision": known} if known else {}


def _adapters(settings: Mapping[str, str]) -> dict[str, bool]:
    return {"lora": True} if settings.get("peft_scheme") == "lora" or "lora_rank" in settings else {}


# Targets of MLPerf's evaluations. Source: mlcommons/training_policies, training_rules.adoc (Benchmarks).
_TARGETS = {"gpt3": 2.69, "llama2_70b_lora": 0.925, "llama31_405b": 5.6, "llama31_8b": 3.3}


def target_of(settings: Mapping[str, str]) -> float | None:
    """Return the target of an evaluation, from the log or MLPerf's rules; None = unknown."""
    try:
        return float(settings["target_accuracy"])
    except (KeyError, ValueError):
        return _TARGETS.get(settings.get("submission_benchmark", ""))
