"""What is quoted of a failed program's log; the excerpts are of Megatron-LM 0.19.2 under torchrun 2.11 on an H200."""

from __future__ import annotations

import pytest

from chartgen.releases.status.failure import telling

TORCHRUN = """\
E1121 18:58:36.900000 2508 torch/distributed/elastic/multiprocessing/api.py:986] failed (exitcode: 1) local_rank: 0
Traceback (most recent call last):
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError: 
bash FAILED
Root Cause (first observed failure):
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 2548)
""".splitlines()  # noqa: W291  as torchrun prints it
WARNING = "[rank0]:[W1121 18:58:35.1 ProcessGroupNCCL.cpp:1575] Warning: destroy_process_group() was not called"
DATA = [
    "[rank0]:     assert os.path.exists(idx_path) and os.path.exists(bin_path), (",
    "[rank0]: AssertionError: One or both of the .idx and .bin files cannot be found at the path prefix /data/absent",
    "Exception ignored in: <function IndexedDataset.__del__ at 0x7fc36d565940>",
    "AttributeError: 'IndexedDataset' object has no attribute 'bin_reader'",
    WARNING,
]
MEMORY = [
    "[rank0]:     buf0 = empty_strided_cuda((2048, 4, 8192), (32768, 8192, 1), torch.bfloat16)",
    "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0 has a total capacity of",
    WARNING,
]
TOKENIZER = [
    "    raise ValueError(",
    "ValueError: Unable to instantiate HuggingFace AutoTokenizer for /data/absent. Exception: Repo id must be in",
]
TRANSPORT = [
    "transport: promised TCPXO (FasTrak), NCCL uses Socket on eth0: NET/Plugin not found: libnccl-net.so; see /o"
]


@pytest.mark.parametrize(
    ("log", "cause"), [(DATA, 1), (MEMORY, 1), (TOKENIZER, 1)], ids=["data", "memory", "tokenizer"]
)
def test_the_cause_is_quoted_last(log: list[str], cause: int) -> None:
    before = ["loading", "more"]
    assert telling([*before, *log, *TORCHRUN], 3) == ["more", *log[:cause], log[cause]][-3:]


def test_a_start_script_says_it_last() -> None:
    assert telling(["mounted", *TRANSPORT], 10) == ["mounted", *TRANSPORT]


KEPT = ["transport: TCPXO (FasTrak) as promised, 8 adapters", "a", "terminate called", "Aborted"]


@pytest.mark.parametrize("log", [[], ["a", "b", "c"], [f"step {number}" for number in range(20)], KEPT])
def test_without_a_known_cause_the_last_lines_are_quoted(log: list[str]) -> None:
    assert telling(log, 3) == log[-3:]


def test_what_the_launcher_says_counts_where_nothing_else_does() -> None:
    assert telling(["step 1", *TORCHRUN], 3) == TORCHRUN[-3:]
