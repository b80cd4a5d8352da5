"""The time of one training step: what each GPU calculates, moves through its memory, and sends to others.

docs/explanation/step-time.md explains the formulas; data/speed.yaml contains the constants and their meaning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from chartgen.data.models import Matrix
from chartgen.estimator.run import Run

GIGA, TERA = 1e9, 1e12
_BYTES = 2  # of a value in 16 bits
# Products of a weight matrix: forward, and backward for the gradients of its input and of its weights.
_PASSES = 3.0
# What a layer moves of an operand in 16 bits, beside narrow formats and their conversion: 6 bytes of a value, not 8.
_PLAIN = 0.75
# Attention of one forward pass, five products in place of two backward (arXiv:2205.14135, FlashAttention).
_ATTENTION_PASSES = 3.5
# The longer one of the GPU's work and of the CPU's launches decides; 1 would add them, infinity take the longer.
_SHARPNESS = 4
# Bytes that the optimizer reads and writes for one parameter: gradient, two moments and master weight in 32 bits.
_OPTIMIZER = 40
# A gradient in 32 bits is summed up, a weight in 16 bits is sent back.
_REDUCED = 6
# Months from 25.09 within which the trend of experts' software continues.
_OLDEST, _NEWEST = -6, 14
# Container 26.06 is the first in which recipes fuse experts.
_FUSED_SINCE = 9


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step, by their use."""

    compute: float  # matrix products, attention, and what else moves through the GPU's memory
    exposed_communication: float  # what no other work hides of transfers between GPUs
    bubble: float  # waiting of a pipeline's stages for the first and the last micro-batch
    other: float  # launches that the GPU waits for, the optimizer, and the rest

    @property
    def seconds(self) -> float:
        """Return the time of the whole step."""
        return self.compute + self.exposed_communication + self.bubble + self.other


def step_of(run: Run, constants: Mapping[str, float]) -> StepTime:
    """Return the time of a run's step."""
    return _Formulas(run, constants).step()


def floor_of(run: Run, constants: Mapping[str, float]) -> Callable[[int, int], float]:
    """Return the seconds that a run's step takes at least, by its pipeline stages and the chunks of each.

    The stages share everything but the transfers between them; that some have more layers than others is left out.
    """
    alone = _Formulas(replace(run, pipeline=1, virtual=1), constants)
    work, launches = alone.compute() + alone.tensor() + alone.context(), alone.launches()
    sent, travel = alone.sent(), alone.dispatch()
    micro_batches, hidden = alone.run.micro_batches, constants["overlapped"]
    (common, routed), experts = alone.parameters, run.expert * run.expert_tensor
    reduced, rest = alone.reduced(), alone.optimizer() + constants["fixed"]

    def seconds(stages: int, chunks: int) -> float:
        busy = (work + travel * (hidden if chunks > 1 else 1)) / stages + sent * chunks * (stages > 1)
        whole = (busy**_SHARPNESS + (launches / stages) ** _SHARPNESS) ** (1 / _SHARPNESS)
        copied = common * (run.gpus > run.tensor * stages) + routed * (run.gpus > experts * stages)
        return float(whole * (micro_batches * stages + (stages - 1) / chunks) + copied * reduced / stages + rest)

    return seconds


def parameters_of(run: Run) -> tuple[float, float]:
    """Return the parameters of a GPU: those of every copy of the model, and those of its experts."""
    routed = sum(each.parameters for each in run.model.routed)
    common = (run.model.parameters - routed) / run.tensor / run.pipeline
    return common, routed / run.expert / run.expert_tensor / run.pipeline


class _Formulas:
    """The formulas for one run. A method returns seconds of one micro-batch, unless it names others."""

    def __init__(self, run: Run, constants: Mapping[str, float]) -> None:
        self.run, self.model, self.hardware = run, run.model, run.hardware
        self.of = constants
        chunks = run.pipeline * run.virtual
        # the stage with the most layers decides; 1.25 where a recipe shares them better than in whole chunks
        uneven = min(math.ceil(self.model.layers / chunks) * chunks / self.model.layers, 1.25)
        self.share = self.model.repeated * uneven / run.pipeline
        self.passes = _PASSES - run.adapters + run.recomputed
        # forward transfers are as many as those backward
        self.transfers = 1 + run.recomputed / 2

    def step(self) -> StepTime:
        """Return the time of the step."""
        run, compute = self.run, self.compute()
        communication = self.tensor() + self.context() + self.dispatch() + self.stages() + self.gathering()
        busy = compute + communication
        whole = (busy**_SHARPNESS + self.launches() ** _SHARPNESS) ** (1 / _SHARPNESS)
        return StepTime(
            compute=compute * run.micro_batches,
            exposed_communication=communication * run.micro_batches + self.copied() * self.reduced(),
            bubble=whole * (run.pipeline - 1) / run.virtual,
            other=(whole - busy) * run.micro_batches + self.optimizer() + self.of["fixed"],
        )

    def compute(self) -> float:
        """What the GPU calculates."""
        return self.dense() + self.attention() + self.experts() + self.vectors() + self.head()

    @cached_property
    def sustained(self) -> float:
        """Return the factor of what the GPU's family keeps of its peaks."""
        return self.of[self.hardware.family] if self.hardware.family else 1.0

    def rate(self, precision: str, number_format: str) -> float:
        """Return the FLOP/s of large matrix products."""
        hardware = self.hardware
        peak = hardware.tflops[number_format] * TERA * hardware.sustained * hardware.measured.get(number_format, 1.0)
        return peak * self.sustained * self.of[f"rate_{precision}"]

    @cached_property
    def own_rate(self) -> float:
        """Return the FLOP/s of products in the run's precision."""
        precision = "bf16" if self.run.precision == "fp16" else self.run.precision
        return self.rate(precision, self.run.speed_format)

    @cached_property
    def plain_rate(self) -> float:
        """Return the FLOP/s of products in 16 bits."""
        return self.rate("bf16", "bf16")

    @cached_property
    def recipe(self) -> Collection[str]:
        """Return what the recipe of the model fuses, and calculates in MXFP8; nothing before container 26.06."""
        run = self.run
        recent = run.software >= _FUSED_SINCE and run.precision == "mxfp8"
        return self.model.fused if recent and self.hardware.fused else ()

    @cached_property
    def fused(self) -> float:
        """Return the factor of what fusing of experts saves."""
        return self.of["fused"] if self.recipe else 1.0

    @cached_property
    def aged(self) -> float:
        """Return the factor of the work around experts by the age of the software."""
        months = min(max(self.run.software, _OLDEST), _NEWEST)
        return math.exp(-self.of["age"] * months) * self.fused

    def memory(self, moved: float) -> float:
        """Return the seconds that bytes take through the GPU's memory."""
        return moved / (self.hardware.memory * GIGA * self.sustained)

    def products(self, matrices: Iterable[Matrix], tokens: float, rate: float, width: float, copies: float) -> float:
        """Return the time of matrix products, forward: the FLOPs at a rate, and the operands through memory.

        Args:
            matrices: The matrices.
            tokens: Rows of the other operand.
            rate: FLOP/s.
            width: GPUs that share the columns.
            copies: Such matrices of a layer that a GPU works with.
        """
        flops = moved = 0.0
        for rows, columns, layers, _, _ in matrices:
            own = columns / width
            flops += layers * 2 * tokens * rows * own
            moved += layers * _BYTES * (tokens * (rows + own) + copies * rows * own)
        share = _PLAIN if self.run.speed_format == "bf16" else 1.0
        return flops / rate + self.memory(moved) * self.of["operands"] * share

    def dense(self) -> float:
        """Matrices that every token passes through."""
        run = self.run
        return self.products(self.model.common, run.tokens, self.own_rate, run.tensor, 1) * self.passes * self.share

    def attention(self) -> float:
        """Scores and values of attention, and scans of state spaces."""
        run, model = self.run, self.model
        tokens = run.tokens / run.tensor
        # latent attention is in MXFP8 on Blackwell Ultra alone
        narrow = "attention" in self.recipe and (self.hardware.family == "ultra" or not model.latent)
        rate = self.of["attention"] * (self.own_rate if narrow else self.plain_rate)
        attended = model.attention_operations(run.sequence) * (_ATTENTION_PASSES + run.recomputed) / rate
        scanned = model.scan_operations() / self.of["scan"] * (_PASSES + run.recomputed) / self.plain_rate
        states = self.memory(model.state_values() * 4 * 2 * self.passes)
        return (attended + scanned + states) * tokens * self.share

    def experts(self) -> float:
        """Products of routed tokens, and the passes that sort them, weigh them and add them up."""
        run, sizes = self.run, self.model.experts
        if not sizes:
            return 0.0
        routed = run.tokens / run.tensor * run.expert_tensor * sizes["active"]
        rate, own = self.own_rate * self.of["grouped"], sizes["count"] / run.expert
        seconds = self.products(self.model.routed, routed, rate, run.expert_tensor, own)
        values = routed * self.model.expert_hidden * sizes["layers"]
        seconds += self.memory(values * _BYTES) * self.of["permute"] * self.aged
        if self.model.biased:
            seconds += self.memory(routed * sizes["ffn"] * sizes["layers"]) * self.of["unfused"] * self.fused
        return seconds * self.passes * self.share

    def vectors(self) -> float:
        """Norms, activations, residuals: each passes the values of all tokens through memory."""
        run, model = self.run, self.model
        width: float = model.hidden * model.layers + sum(each.columns * each.layers for each in model.common)
        # one kernel rotates a part of latent attention's queries, and copies keys and values once
        plain, value = model.latent.get("plain", 0), model.latent.get("value", 0)
        width -= model.heads * (plain + (plain + value) / 2) * model.attention_layers
        moved = _BYTES * run.tokens / run.tensor * width * self.of["vectors"] * self.passes / _PASSES
        return self.memory(moved) * self.share

    def head(self) -> float:
        """The output layer, and the loss in 16 bits."""
        run, model = self.run, self.model
        logits = run.tokens * model.vocabulary / run.tensor
        rate = self.own_rate if "head" in self.recipe else self.plain_rate
        seconds = 2 * logits * model.hidden * _PASSES / rate
        return (seconds + self.memory(logits * _BYTES) * self.of["logits"]) * (1 + model.extra) / run.pipeline

    def link(self, gpus: float) -> float:
        """Return the bytes/s of one GPU in a group of neighbours."""
        return (self.hardware.nvlink if gpus <= self.hardware.domain else self.hardware.network) * GIGA

    def tensor(self) -> float:
        """Gathering and scattering of the sequence around each block."""
        run, model = self.run, self.model
        blocks = model.attention_layers + model.dense_layers + model.mamba_layers
        blocks += model.expert_layers if model.experts.get("shared") else 0
        moved = blocks * 4 * run.tokens * model.hidden * _BYTES * (run.tensor - 1) / run.tensor
        return moved / self.link(run.tensor) * self.of["tensor"] * self.share * self.transfers

    def context(self) -> float:
        """Keys and values of the other parts of a sequence."""
        run, model = self.run, self.model
        width = 2 * (model.groups or model.heads) * model.head_dimension / run.tensor
        moved = model.attention_layers * run.tokens * width * _BYTES * (run.context - 1) * _PASSES
        return moved / self.link(run.tensor * run.context) * self.of["context"] * self.share

    def dispatch(self) -> float:
        """Tokens travel to their experts and back, forward and backward; each other NVLink domain gets one copy."""
        run, sizes = self.run, self.model.experts
        if run.expert == 1 or not sizes:
            return 0.0
        near = min(self.hardware.domain, run.expert)
        domains = run.expert / near
        # experts of one group are on the same machines
        choices = sizes.get("groups", sizes["active"])
        copies = (domains - 1) * (1 - (1 - 1 / domains) ** choices)
        within = min(sizes["active"], near) * (near - 1) / near / (self.hardware.nvlink * GIGA) * self.of["dispatch"]
        beyond = copies / (self.hardware.network * GIGA) * self.of["beyond"]
        moved = 4 * run.tokens / run.tensor * self.model.expert_hidden * _BYTES * sizes["layers"]
        overlaps = run.virtual > 1 or (self.recipe and run.pipeline == 1)
        hidden = self.of["overlapped"] if overlaps else 1.0
        return moved * (within + beyond) * hidden * self.aged * self.share * self.transfers

    def stages(self) -> float:
        """Transfers from stage to stage, forward and backward."""
        return self.sent() * self.run.virtual * (self.run.pipeline > 1)

    def sent(self) -> float:
        """Those of one chunk."""
        run = self.run
        moved = 2 * run.tokens / run.tensor * self.model.hidden * _BYTES
        return moved / self.link(run.gpus) * self.of["stages"]

    @cached_property
    def parameters(self) -> tuple[float, float]:
        """Return the parameters of a GPU."""
        return parameters_of(self.run)

    def copied(self) -> float:
        """Return those of them that other GPUs have, too."""
        run, (common, routed) = self.run, self.parameters
        return common * (run.data * run.context > 1) + routed * (run.expert_data > 1)

    def gathering(self) -> float:
        """FSDP gathers the parameters forward and backward, and scatters their gradients."""
        run = self.run
        return self.copied() * run.sharded * _BYTES * 3 / self.link(run.data * run.context) * self.of["gathering"]

    def reduced(self) -> float:
        """Return the seconds of a step for the gradient and the weight of a parameter that others have, too."""
        run = self.run
        return 0.0 if run.sharded or run.adapters else _REDUCED / self.link(run.gpus) * self.of["reduction"]

    def optimizer(self) -> float:
        """Return the seconds of a step for the optimizer, each GPU with its shard."""
        run = self.run
        common, routed = self.parameters
        shard = common / (run.data * run.context) + routed / max(run.expert_data, 1)
        return 0.0 if run.adapters else self.memory(shard * _OPTIMIZER)

    def launches(self) -> float:
        """Return the seconds in which the CPU launches the kernels of a micro-batch; none in a graph of the step."""
        run, model, of = self.run, self.model, self.of
        if self.recipe:
            return 0.0
        blocks = model.attention_layers + model.dense_layers + model.mamba_layers
        experts = of["launch_experts"] * self.aged * (of["dropped"] if run.drops else 1.0)
        host = (of["separate"] if self.hardware.separate else 1.0) / self.hardware.measured.get("launches", 1.0)
        return (blocks * of["launch"] + model.expert_layers * experts) * host * self.share * self.transfers
