"""Configurations that programs print before training: Megatron's list of arguments, and YAML.

`  num_layers ...................................... 80` (NVIDIA/Megatron-LM @ d98e8a6, megatron/training/arguments.py,
_print_args) and `  num_layers: 80` (NVIDIA/NeMo @ 8cfedd7, examples/nlp/language_modeling/megatron_gpt_pretraining.py;
Automodel and Megatron-Bridge print YAML too). The search for such lines ends with the first step of a start.
Megatron-DeepSpeed pads the vocabulary after it has printed its arguments (bigscience-workshop/Megatron-DeepSpeed,
megatron/tokenizer/tokenizer.py), and DeepSpeed prints its own configuration, whose world size is data parallel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from chartgen.metrics.read.events import Event, Setting, Start
from chartgen.metrics.read.prefix import Prefix, line_time
from chartgen.metrics.read.readers import STARTS, Reader

# Native names of facts; chartgen/metrics/figures/facts.py maps them.
NAMES = (
    *("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "num_experts"),
    *("num_moe_experts", "moe_router_topk", "seq_length", "encoder_seq_length", "padded_vocab_size", "vocab_size"),
    *("global_batch_size", "micro_batch_size", "world_size", "devices", "num_nodes", "precision", "bf16", "fp16"),
    *(
        "recompute_granularity",
        "checkpoint_activations",
        "fp8",
        "fp8_recipe",
        "swiglu",
        "activation",
        "gated_linear_unit",
        "group_query_attention",
        "peft_scheme",
    ),
)
_SETTING = rb"(?:^|[\s:])(%s)(?: \.+ |: +)(\S+)\s*$"
_LINE = re.compile(_SETTING % "|".join(NAMES).encode())
# GPT-NeoX: `  seq_length ............ 2048...........updated`. In other programs the two more names are of a process.
_NEOX = re.compile(_SETTING % "|".join((*NAMES, "train_batch_size", "global_num_gpus")).encode())
_ORIGIN = re.compile(rb"\.+(?:updated|default)\s*$")
_VOCABULARY = re.compile(rb" padded vocab \(size: \d{1,12}\) with \d{1,12} dummy tokens \(new size: (\d{1,12})\)")
_WORLD = re.compile(rb"using world size: (\d{1,9})\b")
# deepspeed/runtime/config.py, print: `[2021-05-27 19:49:22,949] [INFO] [config.py:904:print]   world_size .... 1`.
_DEEPSPEED = b"] [config.py:"
_BATCH = re.compile(rb" train_batch_size \.{2,60} (\d{1,12})\s*$")
_CELL = b'"cell_type"'


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    return Reader(read_setting)


def read_setting(line: bytes, prefix: Prefix) -> Sequence[Event]:
    """Return the setting of a line."""
    if _DEEPSPEED in line:
        match = _BATCH.search(line)
        return (Setting("train_batch_size", match[1].decode()),) if match else ()
    if match := _VOCABULARY.search(line):
        return (Setting("padded_vocab_size", match[1].decode()),)
    if match := _WORLD.search(line):
        return (Setting("world_size", match[1].decode()),)
    text, marked = _ORIGIN.subn(b"", line)
    if match := (_NEOX if marked else _LINE).search(text, prefix.size):
        return (Setting(match[1].decode(), match[2].decode(errors="replace").strip("'\"")),)
    if any(start in line for start in STARTS):
        return (Start(line_time(prefix, line), fresh=_CELL in line),)
    return ()
