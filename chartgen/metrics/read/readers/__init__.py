"""One module for each family of logs, and what marks the lines of each.

A module has `open_reader()`. Modules are imported when a log has one of their marks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple, TypeAlias

from chartgen.metrics.read.events import Event
from chartgen.metrics.read.prefix import Lines, Prefix

Read: TypeAlias = Callable[[bytes, Prefix], Sequence[Event]]
ReadMany: TypeAlias = Callable[[Lines], Sequence[Event]]


class Reader(NamedTuple):
    """How the lines of a family are read.

    Args:
        read: Reads a line: its bytes without the end, and what stands before it.
        read_many: Reads many lines at once; gives nothing, or raises ValueError, when some need a closer look.
    """

    read: Read
    read_many: ReadMany | None = None


# Family -> how people call it. When several processes or loggers tell of the same steps, the first of these counts: it
# is the more precise one.
FAMILIES = {
    "dllogger": "DLLogger",
    "megatron": "Megatron-LM",
    "nemo": "NeMo",
    "tensorboard": "TensorBoard",
    "automodel": "Automodel",
    "torchtitan": "torchtitan",
    "mlperf": "MLPerf",
    "bridge": "Megatron-Bridge",
    "list": "NeMo's list of step times",
}
# Bytes of which one stands in every line that a family writes -> the family; the more telling families first, as a
# line may have marks of two.
MARKERS = {
    b"DLLL {": "dllogger",
    b":::MLLOG": "mlperf",
    b"elapsed time per iteration (": "megatron",
    b" memory (MB) | allocated": "megatron",
    b"lm loss value: ": "megatron",
    b"Step Time :": "bridge",
    b"train_step_timing in s": "nemo",
    b"reduced_train_loss": "nemo",
    b"/gpu) | num_label_tokens": "automodel",
    b"GiB(": "torchtitan",
    b"heckpoint ": "checkpoints",
}
# First lines of a configuration: Megatron-LM's and NeMo 1's; the cell of a notebook, which is a program of its own.
STARTS = {
    b"- arguments -----": "config",
    b"* Experiment configuration *": "config",
    b'"cell_type": "code"': "config",
}
# Families of which a line may open a configuration: what stands before and behind it is not of one start.
SEQUENTIAL = frozenset(("config", "dllogger", "mlperf"))
# Stands in the head of every table of nccl-tests; see nccl.py.
TABLE = b"algbw   busbw"
# Lines of a configuration. Each name in config.py contains one of these; to search for a few bytes is much faster than
# to search for any of 25 names.
SETTINGS = dict.fromkeys(
    (
        *(b" ..........", b"num_layers: ", b"hidden_size: ", b"num_attention_heads: ", b"num_query_groups: "),
        *(b"seq_length: ", b"vocab_size: ", b"batch_size: ", b"devices: ", b"num_nodes: ", b"precision: ", b"fp8: "),
        *(b"activation: ", b"router_topk: ", b"experts: ", b"peft_scheme: "),
        *(b"using world size: ", b" padded vocab (size: "),
    ),
    "config",
)


class Readers:
    """The readers of one log; some remember the lines before."""

    def __init__(self) -> None:
        self._open: dict[str, Reader] = {}

    def find(self, family: str) -> Reader:
        """Return the reader of a family."""
        if family not in self._open:
            self._open[family] = import_module(f"chartgen.metrics.read.readers.{family}").open_reader()
        return self._open[family]
