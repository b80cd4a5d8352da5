"""Facts of a run besides its steps: model, batch, machines. Sources must agree; nothing is guessed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from chartgen.metrics.figures.flops import Shape

# Fact -> its usual name. The keys are the names of the values.
NAMES = {
    "layers": "layers",
    "hiddenSize": "hidden size",
    "ffnHiddenSize": "feed-forward size",
    "attentionHeads": "attention heads",
    "queryGroups": "query groups",
    "headSize": "head size",
    "vocabularySize": "vocabulary",
    "experts": "experts",
    "expertsPerToken": "experts per token",
    "gated": "gated feed-forward",
    "sequenceLength": "sequence length",
    "batch": "global batch",
    "gpus": "GPUs",
    "machines": "machines",
    "gpu": "GPU",
    "precision": "precision",
    "lora": "LoRA",
    "recomputed": "full recomputation",
    "dropped": "dropped tokens",
    "steps": "steps",
    "flops": "FLOPs per sample",
}
# Far beyond any size, count or rate of a run, except the FLOPs of a sample.
_LARGEST = 1e30
_TEXTS = ("gpu", "precision")
_FAMILIES_WITH_GATE = ("llama", "mixtral")


class FigureNote(NamedTuple):
    """A note for the reader of a figure."""

    message: str  # one sentence without a final stop
    hint: str = ""  # the fix; empty when none is needed
    severity: Literal["error", "warning"] = "warning"  # an error makes the command fail: sources contradict each other

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class Facts(NamedTuple):
    """The facts on which all sources agree."""

    known: Mapping[str, Any] = {}  # fact -> value, by the names of NAMES
    notices: Sequence[FigureNote] = ()  # contradictions; the facts in question are not in `known`

    def get(self, name: str) -> Any:
        """Return a fact; None when it is unknown."""
        return self.known.get(name)

    @property
    def shape(self) -> Shape | None:
        """Return the model's sizes; None when one is missing and does not follow from the others."""
        known = self.known
        if missing_sizes(known):
            return None
        from chartgen.metrics.figures.flops import Shape

        heads = known["attentionHeads"]
        return Shape(
            layers=known["layers"],
            hidden=known["hiddenSize"],
            feed_forward=known.get("ffnHiddenSize") or 4 * known["hiddenSize"],
            heads=heads,
            groups=known.get("queryGroups") or heads,
            head=known.get("headSize") or known["hiddenSize"] // heads,
            vocabulary=known["vocabularySize"],
            gated=bool(known.get("gated")),
            routed=known.get("expertsPerToken") or 2 if known.get("experts") else 1,
        )


def missing_sizes(known: Mapping[str, Any]) -> list[str]:
    """Return the missing sizes that counting a model's operations requires."""
    return [NAMES[name] for name in ("layers", "hiddenSize", "attentionHeads", "vocabularySize") if not known.get(name)]


def join_facts(sources: Sequence[tuple[str, Mapping[str, Any]]]) -> Facts:
    """Join facts of several sources.

    Args:
        sources: Name of each source, such as "the log", and its facts.

    Returns:
        The facts on which they agree, and a notice for each contradiction.
    """
    known: dict[str, Any] = {}
    notices = []
    for name, words in NAMES.items():
        claims = [(source, facts[name]) for source, facts in sources if _can_be(name, facts.get(name))]
        if not claims:
            continue
        if all(same(name, value, claims[0][1]) for _, value in claims):
            known[name] = claims[0][1]
        else:
            shown = ", ".join(f"{_write(value)} by {source}" for source, value in claims)
            notices.append(
                FigureNote(f"{words} is {shown}", "name the right one; figures that need it are left out", "error")
            )
    return Facts(known, notices)


def _can_be(name: str, value: Any) -> bool:
    """Report whether a value is usable, not missing, of another type, or a number outside the valid range."""
    if name in _TEXTS:
        return isinstance(value, str) and value != ""
    return isinstance(value, int | float) and value != 0 and abs(value) < _LARGEST


def same(name: str, one: Any, other: Any) -> bool:
    """Report whether two sources agree on a fact."""
    # padding makes vocabularies divisible among GPUs and adds up to a few thousand tokens
    return abs(one - other) <= 0.02 * other if name == "vocabularySize" else bool(one == other)


def _write(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def facts_of_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Translate the given values of a release; values that a chart adds need its target."""
    model = values.get("model") or {}
    facts = {name: model[name] for name in NAMES if name in model}
    if "family" in model:
        facts["gated"] = model["family"] in _FAMILIES_WITH_GATE
    facts |= {name: values[name] for name in ("sequenceLength", "precision", "steps") if values.get(name)}
    machines, each = values.get("nodes"), values.get("gpusPerNode")
    if machines:
        facts["machines"] = machines
    if machines and each:
        facts["gpus"] = machines * each
    batch = (values.get("batch") or {}).get("global")
    if isinstance(batch, int):
        facts["batch"] = batch
    elif isinstance(batch, str) and "gpus" in facts:
        facts["batch"] = int(batch.removesuffix("/gpu")) * facts["gpus"]
    if "lora" in str(values.get("launcher", "")):
        facts["lora"] = True
    return facts


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
