"""What a step's time depends on: the model, the GPUs, and how the model and its batch are shared among them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from chartgen.data.models import Architecture


@dataclass(frozen=True)
class Hardware:
    """The GPUs of a run and what joins them."""

    gpu: str  # the GPU model, such as h100-80gb
    tflops: Mapping[str, float]  # peak of matrix products by number format: bf16, fp8, fp4
    domain: int  # GPUs that NVLink joins
    memory: float  # GB/s of a GPU's memory
    nvlink: float  # GB/s of NVLink, one GPU and direction
    network: float  # GB/s between NVLink domains, one GPU and direction
    sustained: float = 1.0  # what the GPU keeps of its peak, beside others of its family
    family: str = ""  # the constant that its speed depends on; empty for none
    separate: int = 0  # whether an x86 host launches its kernels
    fused: int = 0  # whether recipes fuse experts on it
    # Speed of matrix products by number format, beside the usual one, and of launches, where measured
    measured: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One training run; parallel sizes as in Megatron's options."""

    model: Architecture
    hardware: Hardware
    gpus: int  # number of GPUs
    precision: str  # number format of matrix products: bf16, fp8, mxfp8, nvfp4
    sequence: int  # tokens of a sample
    global_batch: int  # samples of a step
    micro_batch: int = 1  # samples that a GPU handles at a time
    tensor: int = 1  # tensor parallel size
    pipeline: int = 1  # pipeline parallel size
    virtual: int = 1  # chunks of layers of each stage
    context: int = 1  # context parallel size
    expert: int = 1  # expert parallel size
    expert_tensor: int = 1  # GPUs that share one expert
    sharded: bool = False  # whether the parameters are sharded and gathered for use (FSDP)
    recomputed: float = 0.0  # share of the layers that the backward pass computes again
    modules: Collection[str] = ()  # modules of each layer that it computes again beside them, by Megatron's names
    software: float = 0.0  # months since NeMo's container 25.09
    drops: bool = False  # whether experts take a fixed number of tokens and drop the rest
    adapters: bool = False  # whether adapters train and the model does not (LoRA)
    light: bool = False  # whether gradients and the optimizer's moments have 16 bits

    @property
    def data(self) -> float:
        """Return the copies of the model that train side by side."""
        return self.gpus / (self.tensor * self.pipeline * self.context)

    @property
    def expert_data(self) -> float:
        """Return the copies of each expert."""
        return self.gpus / (self.expert_tensor * self.expert * self.pipeline)

    @property
    def micro_batches(self) -> float:
        """Return the micro-batches that a pipeline handles in a step."""
        return self.global_batch / (self.micro_batch * self.data)

    @property
    def tokens(self) -> float:
        """Return the tokens of a micro-batch that a group of tensor parallel GPUs handles."""
        return self.micro_batch * self.sequence / self.context

    @property
    def speed_format(self) -> str:
        """Return the number format whose peak its matrix products have."""
        return {"bf16": "bf16", "fp16": "bf16", "fp8": "fp8", "mxfp8": "fp8", "nvfp4": "fp4"}.get(self.precision, "")


def under_way(stages: int, chunks: int, micro_batches: float) -> tuple[float, float]:
    """Return how many whole models' activations the first and the last pipeline stage keep at the same time.

    The first stage starts 2 (p - 1) + (v - 1) p + 1 of its v chunks before the first backward pass, the last one
    (v - 1) p + 1; without interleaving it is a micro-batch for each stage behind, as far as there are so many
    (NVIDIA/Megatron-LM core_v0.19.0, megatron/core/pipeline_parallel/schedules.py).
    """
    more = (stages - 1) / (stages * chunks)
    if chunks > 1:
        return 1 + more, 1 - more
    return min(1.0, max(micro_batches, 1) / stages), 1 - more
