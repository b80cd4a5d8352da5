"""Write a log as Megatron-LM would of Llama 2 70B on 128 GPUs, with what happens in a long run.

The pictures in docs/ are of such logs.

Usage: python benchmarks/example_log.py STEPS > run.log. The same number of steps gives the same log.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Iterator

BEGIN = 1_770_000_000.0
SECONDS = 7.14
SETTINGS = {
    "bf16": True,
    "ffn_hidden_size": 28672,
    "global_batch_size": 256,
    "group_query_attention": True,
    "hidden_size": 8192,
    "num_attention_heads": 64,
    "num_layers": 80,
    "num_query_groups": 8,
    "padded_vocab_size": 32000,
    "seq_length": 4096,
    "swiglu": True,
    "world_size": 128,
}
FOLDER = "/outputs/run/checkpoints"


class Run:
    """A run of some steps; one of a thousand or more is interrupted twice and has one loss that is no number."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.chance = random.Random(steps)  # noqa: S311 - nothing is secret here
        self.clock = BEGIN
        self.every = max(steps // 10, 10)
        self.crashes = [int(steps * 0.37), int(steps * 0.71)] if steps >= 1000 else []

    def lines(self) -> Iterator[str]:
        """Return all lines."""
        yield f"[after megatron is initialized] datetime: {self.stamp()[:19]} "
        yield from self.arguments()
        self.clock += 95
        number = 1
        while number <= self.steps:
            yield self.step(number)
            if number % self.every == 0:
                yield from self.save(number)
            if number in self.crashes:
                self.crashes.remove(number)
                number = number // self.every * self.every
                self.clock += 420
                yield from self.arguments()
                yield f"  successfully loaded checkpoint from {FOLDER} [ t 1/4, p 1/4 ] at iteration {number}"
            number += 1

    def step(self, number: int) -> str:
        """Return the line of one step, which takes its time."""
        seconds = SECONDS * (1 + self.chance.gauss(0, 0.006))
        seconds *= 1 + 6 / number**1.6 if number < 6 else 1
        seconds *= 1.15 + 0.6 * self.chance.random() if self.chance.random() < 0.004 else 1
        self.clock += seconds
        loss = self.loss(number)
        return (
            f" [{self.stamp()}] iteration {number:8d}/{self.steps:8d} | consumed samples: {number * 256:12d} |"
            f" elapsed time per iteration (ms): {seconds * 1000:.1f} |"
            f" throughput per GPU (TFLOP/s/GPU): {490.2 * SECONDS / seconds:.1f} | learning rate: 1.500000E-04 |"
            f" global batch size:   256 | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: 1.271 |"
            f" number of skipped iterations:   0 | number of nan iterations: {math.isnan(loss):3d} |"
        )

    def loss(self, number: int) -> float:
        """Return the loss of a step: it falls, and jumps once, where it is no number for a moment."""
        jump = int(self.steps * 0.55)
        if self.steps >= 1000 and number == jump:
            return math.nan
        far = abs(number - jump) / max(self.steps / 800, 1)
        spike = 1.8 * math.exp(-far) if self.steps >= 1000 else 0.0
        falls: float = 2.1 + 9 * (number + 3) ** -0.28
        return falls + spike + self.chance.gauss(0, 0.03)

    def save(self, number: int) -> Iterator[str]:
        """Return the lines of a checkpoint."""
        yield f"[{self.stamp()}] saving checkpoint at iteration {number:7d} to {FOLDER} in torch_dist format"
        self.clock += 28
        yield f"  [{self.stamp()}] successfully saved checkpoint from iteration {number:7d} to {FOLDER} [ t 1/4 ]"

    def arguments(self) -> Iterator[str]:
        """Return the configuration."""
        yield "------------------------ arguments ------------------------"
        yield from (f"  {name} {'.' * (48 - len(name))} {value}" for name, value in SETTINGS.items())
        yield "-------------------- end of arguments ---------------------"

    def stamp(self) -> str:
        """Write the time."""
        return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(self.clock))}.{int(self.clock % 1 * 1e6):06d}"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in Run(int(sys.argv[1])).lines())
