"""Ends in a hang of NCCL, with the dumps of tests/data/flight-recorder/nccl-CASE; four GPUs.

torchrun --nproc-per-node 4 tests/gpu/flight_recorder.py CASE FOLDER
"""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import torch  # type: ignore[import-not-found]
import torch.distributed as dist  # type: ignore[import-not-found]

CASE, FOLDER, RANK = *sys.argv[1:], int(os.environ["RANK"])
DUMPS = {"TORCH_NCCL_DUMP_ON_TIMEOUT": "1", "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000"}
os.environ |= DUMPS | {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{FOLDER}/nccl_trace_rank_"}
torch.cuda.set_device(RANK)
dist.init_process_group("nccl", timeout=timedelta(seconds=15), device_id=torch.device("cuda", RANK))
PAIR = [dist.new_group([0, 1]), dist.new_group([2, 3])][RANK // 2]


def numbers(count: int = 4) -> torch.Tensor:
    return torch.ones(count, device="cuda")


def late() -> None:
    time.sleep(3600)


for _ in range(5):
    dist.all_reduce(numbers())
    dist.all_reduce(numbers(), group=PAIR)
    torch.cuda.synchronize()
match CASE, RANK:
    case ("not-joined", 2) | ("subgroup", 3) | ("p2p", 1):
        late()
    case "diverged", 1:
        dist.broadcast(numbers(), 0)
    case "other-size", 3:
        dist.all_reduce(numbers(1 << 20))
    case ("subgroup", _) | ("deadlock", 1):
        dist.all_reduce(numbers(), group=PAIR)
    case "killed", 1:
        os.kill(os.getpid(), signal.SIGKILL)
    case "p2p", 0:
        dist.recv(numbers(), 1)
    case _:
        pass
dist.all_reduce(numbers())
torch.cuda.synchronize()
late()
