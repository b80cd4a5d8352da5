"""One module per family of logs, and the marks of each family's lines.

Each module has `open_reader()`. A module is imported when a log contains one of its marks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from chartgen.metrics.read.events import Event
from chartgen.metrics.read.prefix import Prefix

if TYPE_CHECKING:
    from chartgen.metrics.read.readers.forms import Form


class Reader(NamedTuple):
    """The reader of a family's lines."""

    # Returns the events of a line, given its bytes without the line end, and its prefix
    read: Callable[[bytes, Prefix], Sequence[Event]]
    form: Form | None = None  # reads many lines at once; None = `read` takes them one by one


# Family -> its usual name. When several processes or loggers report the same steps, the first family counts, because it
# is more precise.
FAMILIES = {
    "own": "the expressions in the values",
    "dllogger": "DLLogger",
    "megatron": "Megatron-LM",
    "nemo": "NeMo",
    "tensorboard": "TensorBoard",
    "automodel": "Automodel",
    "torchtitan": "torchtitan",
    "nemo_rl": "NeMo RL",
    "mlperf": "MLPerf",
    "bridge": "Megatron-Bridge",
    "hugging_face": "Hugging Face Trainer",
    "list": "NeMo's list of step times",
}
# Mark -> family; every line of a family contains one of its marks. The more precise families come first, since a line
# may contain the marks of two.
MARKERS = {
    b"DLLL {": "dllogger",
    b":::MLLOG": "mlperf",
    b"elapsed time per iteration (": "megatron",
    b" memory (MB) | allocated": "megatron",
    b"lm loss value: ": "megatron",
    b"Step Time :": "bridge",
    b"train_step_timing in s": "nemo",
    b"reduced_train_loss": "nemo",
    b" GiB | tps ": "automodel",
    b'[val] name "': "automodel",
    b"GiB(": "torchtitan",
    b"=== Step ": "nemo_rl",
    b"=== Epoch ": "nemo_rl",
    "• Loss: ".encode(): "nemo_rl",
    "• Total step time: ".encode(): "nemo_rl",
    "• Training FLOPS: ".encode(): "nemo_rl",
    "• Validation loss: ".encode(): "nemo_rl",
    b"heckpoint ": "checkpoints",
    b"%|": "hugging_face",
    b"learning_rate": "hugging_face",
    b"eval_loss": "hugging_face",
    b"current_steps": "hugging_face",
    b"Total train batch size (": "hugging_face",
}
# First lines of a configuration: Megatron-LM's and NeMo 1's; the cell of a notebook, which is a separate program.
STARTS = {
    b"- arguments -----": "config",
    b"* Experiment configuration *": "config",
    b'"cell_type": "code"': "config",
}
# Families with lines that may open a configuration: the lines before and after it belong to different starts.
SEQUENTIAL = frozenset(("config", "dllogger", "mlperf"))
# Part of the head of every table of nccl-tests; see nccl.py.
TABLE = b"algbw   busbw"
# Lines of a configuration. Each name in config.py contains one of these; a search for a few bytes is much faster than
# for any of 25 names.
SETTINGS = dict.fromkeys(
    (
        *(b" ..........", b"num_layers: ", b"hidden_size: ", b"num_attention_heads: ", b"num_query_groups: "),
        *(b"seq_length: ", b"vocab_size: ", b"batch_size: ", b"devices: ", b"num_nodes: ", b"precision: ", b"fp8: "),
        *(b"activation: ", b"router_topk: ", b"experts: ", b"peft_scheme: "),
        *(b"using world size: ", b" padded vocab (size: "),
    ),
    "config",
)


def open_reader(family: str) -> Reader:
    """Return a new reader of a family, which may keep a state between the lines of one log."""
    reader: Reader = import_module(f"chartgen.metrics.read.readers.{family}").open_reader()
    return reader
