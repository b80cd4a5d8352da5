"""Measure how fast a plain GPT of PyTorch trains, as a row that tests/programs/judge_speed.py reads.

    python3 tests/gpu/gpt_speed.py ROWS.json > measured.json

trains each row's model with random weights and tokens: BF16, PyTorch's attention, kernels that it compiles, one copy of
the model on each GPU (torchrun). It takes the sizes from `sizes` of the row, and needs nothing of chartgen.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

STEPS = 6  # and two before them that do not count
torch: Any = import_module("torch")
nn, functional = torch.nn, torch.nn.functional


class Block(nn.Module):  # type: ignore[misc,name-defined]
    """A layer with grouped attention and a gated feed-forward block, as Llama and Qwen have it."""

    def __init__(self, hidden: int, heads: int, groups: int, head: int, ffn: int) -> None:
        super().__init__()
        self.heads, self.groups, self.head = heads, groups, head
        self.norms = nn.ModuleList([nn.RMSNorm(hidden), nn.RMSNorm(hidden)])
        self.qkv = nn.Linear(hidden, (heads + 2 * groups) * head, bias=False)
        self.out = nn.Linear(heads * head, hidden, bias=False)
        self.up, self.down = nn.Linear(hidden, 2 * ffn, bias=False), nn.Linear(ffn, hidden, bias=False)

    def forward(self, tokens: Any, turns: Any) -> Any:
        batch, length, _ = tokens.shape
        parts = self.qkv(self.norms[0](tokens)).view(batch, length, -1, self.head).transpose(1, 2)
        query, key, value = parts.split([self.heads, self.groups, self.groups], dim=1)
        query, key = turned(query, turns), turned(key, turns)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        tokens = tokens + self.out(seen.transpose(1, 2).reshape(batch, length, -1))
        gate, up = self.up(self.norms[1](tokens)).chunk(2, dim=-1)
        return tokens + self.down(functional.silu(gate) * up)


def turned(parts: Any, turns: Any) -> Any:
    """Rotary positions."""
    one, other = parts.chunk(2, dim=-1)
    cosine, sine = turns
    return torch.cat((one * cosine - other * sine, other * cosine + one * sine), dim=-1)


class Gpt(nn.Module):  # type: ignore[misc,name-defined]
    """A model whose output layer is its table of tokens."""

    def __init__(self, layers: int, hidden: int, vocabulary: int, length: int, **sizes: int) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, hidden)
        self.blocks = nn.ModuleList([Block(hidden, **sizes) for _ in range(layers)])
        self.norm = nn.RMSNorm(hidden)
        angles = torch.outer(torch.arange(length), 500000.0 ** -(torch.arange(0, sizes["head"], 2) / sizes["head"]))
        self.register_buffer("turns", torch.stack((angles.cos(), angles.sin())))

    def forward(self, tokens: Any) -> Any:
        hidden = self.table(tokens)
        for block in self.blocks:
            hidden = block(hidden, self.turns)
        return self.loss(hidden, tokens)

    @torch.compile  # type: ignore[untyped-decorator]
    def loss(self, hidden: Any, tokens: Any) -> Any:
        logits = functional.linear(self.norm(hidden), self.table.weight)
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), tokens[:, 1:].flatten())


def measured(row: dict[str, Any], ranks: int) -> float:
    """Return the tokens of a second and GPU."""
    length, micro = row["sequenceLength"], row["microBatch"]
    torch.manual_seed(0)
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = Gpt(length=length, **row["sizes"])
    torch.set_default_dtype(torch.float32)
    for block in model.blocks:
        block.compile()
    if ranks > 1:
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    accumulated = row["globalBatch"] // (micro * ranks)
    times = []
    for _ in range(STEPS + 2):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for at in range(accumulated):
            tokens = torch.randint(row["sizes"]["vocabulary"], (micro, length), device="cuda")
            if ranks > 1:
                model.require_backward_grad_sync = at + 1 == accumulated
            (model(tokens) / accumulated).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return float(row["globalBatch"] * length / (sum(times[2:]) / STEPS) / ranks)


def main() -> None:
    rank, ranks = int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    torch.cuda.set_device(rank)
    if ranks > 1:
        torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    rows = json.loads(Path(sys.argv[1]).read_text())
    found = []
    for row in (row for row in rows if row["gpus"] == ranks):
        found.append({**row, "tokensPerSecondPerGpu": round(measured(row, ranks), 1)})
        torch._dynamo.reset()
        torch.cuda.empty_cache()
    if rank == 0:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    if ranks > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
