"""What else stands in a log, who wrote its lines and how it arrives does not change its figures."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable

import trainlogs as logs
from hypothesis import given, settings
from hypothesis import strategies as st

from chartgen.metrics.lines import split_blocks
from chartgen.metrics.log import Log, read_streams
from chartgen.metrics.readout import Readout, Wanted, read_out
from chartgen.metrics.shapes import as_dict

SECONDS = [20.5, 8.25, 7.5, 7.25, 7.0, 7.25, 7.5, 7.25, 7.0, 7.25, 7.75, 7.25]
RUN = logs.steps(SECONDS)
CONFIG = logs.megatron_arguments(num_layers=80, hidden_size=8192, global_batch_size=256, seq_length=4096)
LOGS = {
    "megatron": CONFIG + logs.megatron(RUN),
    "dllogger": logs.dllogger(RUN, config={"global_batch_size": 256, "num_layers": 80}),
    "nemo2": logs.nemo2(RUN),
    "bars": logs.nemo_bars(RUN, drawn=2),
    "automodel": logs.automodel(RUN, tokens=1e6, gpus=8),
    "mlperf": logs.mlperf(RUN),
    "bridge": logs.bridge(RUN),
}
PREFIXES = (
    *("", "[default0]:", "0: ", "[1,0]<stdout>:", "retraining/0 [default0]:", "2026-02-02T02:41:00.123456789Z "),
    "[pod/my-run-workload-0-0-x7k2p/train] ",
)
# Texts that programs print between the lines that matter, some of which look like them.
NOISE = (
    "NCCL INFO Channel 00/08 : 0 1 2 3",
    "[NeMo W 2026-02-02 02:40:00 nemo_logging:349] step timing in seconds",
    " iteration of the loader | elapsed",
    "Training epoch",
    "DLLL not json",
    "DLLL {broken",
    ":::MLLOG",
    "checkpoint is a word here ",
    "\u00e4\u00f6\u00fc \x1b[31mred\x1b[0m",
    "",
)


def read(pieces: Iterable[bytes]) -> Log:
    return read_streams([("run.log", pieces)])


def shown(log: Log) -> dict[str, object]:
    """All figures but those of time, which prefixes add."""
    found: Readout = read_out(log, Wanted(window="all"))
    return {key: value for key, value in as_dict(found).items() if key not in ("timeline", "notices")}


PLAIN = {name: shown(read([content.encode()])) for name, content in LOGS.items()}
names = st.sampled_from(sorted(LOGS))


@given(names, st.lists(st.integers(0, 5000), max_size=30))
@settings(deadline=None, max_examples=60)
def test_pieces_of_any_size(name: str, cuts: list[int]) -> None:
    content = LOGS[name].encode()
    ends = [*sorted(cut % len(content) for cut in cuts), len(content)]
    pieces = [content[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    assert shown(read(pieces)) == PLAIN[name]


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=10))
def test_blocks_end_where_lines_end_and_lose_nothing(content: bytes, cuts: list[int]) -> None:
    ends = [*sorted(cut % (len(content) + 1) for cut in cuts), len(content)]
    blocks = [*split_blocks(content[start:end] for start, end in zip([0, *ends], ends, strict=False))]
    assert all(block.endswith(b"\n") for block in blocks)
    whole = content.replace(b"\r", b"\n")
    assert b"".join(blocks) == whole + (b"" if not whole or whole.endswith(b"\n") else b"\n")


@given(names, st.sampled_from(PREFIXES))
@settings(deadline=None)
def test_prefixes(name: str, prefix: str) -> None:
    lines = LOGS[name].replace("\r", "\n").splitlines()
    assert shown(read([logs.text(prefix + line for line in lines).encode()])) == PLAIN[name]


@given(names, st.sampled_from(PREFIXES), st.sampled_from(PREFIXES))
@settings(deadline=None)
def test_prefixes_of_two_tools(name: str, first: str, second: str) -> None:
    lines = LOGS[name].replace("\r", "\n").splitlines()
    assert shown(read([logs.text(first + second + line for line in lines).encode()])) == PLAIN[name]


@given(names, st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(NOISE)), max_size=30))
@settings(deadline=None, max_examples=60)
def test_other_text_in_between(name: str, noise: list[tuple[int, str]]) -> None:
    lines = LOGS[name].replace("\r", "\n").splitlines()
    for at, line in noise:
        lines.insert(at % (len(lines) + 1), line)
    assert shown(read([logs.text(lines).encode()])) == PLAIN[name]


@given(names, st.data())
@settings(deadline=None, max_examples=60)
def test_ranks_whose_lines_are_mixed(name: str, data: st.DataObject) -> None:
    """Other ranks tell of fewer steps, or of the same ones with their own times."""
    own = [f"[default0]:{line}" for line in LOGS[name].replace("\r", "\n").splitlines()]
    slower = logs.megatron(logs.steps([second + 1 for second in SECONDS[:6]]))
    other = [f"[default3]:{line}" for line in slower.splitlines()]
    order = data.draw(st.permutations([0] * len(own) + [1] * len(other)))
    queues = (iter(own), iter(other))
    mixed = [next(queues[which]) for which in order]
    found = shown(read([logs.text(mixed).encode()]))
    assert found == PLAIN[name]


@given(names, st.integers(1, 3))
@settings(deadline=None)
def test_carriage_returns_end_lines(name: str, count: int) -> None:
    content = LOGS[name].replace("\n", "\r" * count + "\n")
    assert shown(read([content.encode()])) == PLAIN[name]


@given(names, st.integers(1, 200))
@settings(deadline=None)
def test_a_log_that_is_cut_off_gives_steps_of_the_whole_one(name: str, missing: int) -> None:
    content = LOGS[name].encode()
    whole, cut = read([content]).track, read([content[:-missing]]).track
    assert len(cut) >= len(whole) - 5  # the lines of one format are so short
    assert list(cut.numbers) == list(whole.numbers[: len(cut)])
    assert (
        list(cut.columns.get("seconds", []))[: len(cut) - 1] == list(whole.columns.get("seconds", []))[: len(cut) - 1]
    )


def test_memory_does_not_grow_with_what_is_no_step() -> None:
    """60 MB of other text take no more than 6 MB: blocks come and go."""
    line = b"[default3]:host-7:4711:4711 [3] NCCL INFO Channel 00/08 : 0 1 2 3 4 5 6 7 via P2P/CUMEM\n"

    def peak(blocks: int) -> int:
        tracemalloc.start()
        read([*[line * 3000] * blocks, LOGS["megatron"].encode()])
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(240) < peak(24) * 1.2


def test_memory_of_a_step_is_that_of_its_numbers() -> None:
    track = read([logs.megatron(logs.steps([7.0] * 2000)).encode()]).track
    assert {column.itemsize for column in track.columns.values()} == {8}
    assert {len(column) for column in track.columns.values()} == {2000}
    assert len(track.columns) == 7
