"""What else stands in a log, who wrote its lines and how it arrives does not change its figures."""

from __future__ import annotations

import json
import re
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable

import pytest
import trainlogs as logs
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chartgen.metrics.read.events import Checkpoint, Steps
from chartgen.metrics.read.lines import split_blocks
from chartgen.metrics.read.log import Collector, Log, read_streams
from chartgen.metrics.read.prefix import read_prefix
from chartgen.metrics.read.readers.megatron import open_reader
from chartgen.metrics.read.scan import Scanner
from chartgen.metrics.report_data import RunFigures, Wanted, read_out
from chartgen.metrics.show.export import as_dict

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
    found: RunFigures = read_out(log, Wanted(window="all"))
    return {key: value for key, value in as_dict(found).items() if key not in ("timeline", "notices")}


PLAIN = {name: shown(read([content.encode()])) for name, content in LOGS.items()}
names = st.sampled_from(sorted(LOGS))


SAVED = "[2026-02-02 02:49:00.0] saving checkpoint at iteration      70 to /outputs/c"
# Families of which half a million steps take less than the budget only when many lines are read at once.
FAMILIES = {"bridge": "bridge", "dllogger": "dllogger"}
FAMILIES |= {"megatron": "megatron", "megatron old": "megatron", "mlperf": "mlperf", "mlperf new": "mlperf"}
MANY = logs.steps([7 + at % 97 / 100 for at in range(150)])
LONG = {
    "megatron": logs.megatron(MANY),
    "megatron old": "".join(line[29:] for line in logs.megatron(MANY).splitlines(keepends=True)),
    "dllogger": logs.dllogger(MANY),
    "bridge": logs.bridge(MANY),
    "mlperf": logs.text(line for line in logs.mlperf(MANY).splitlines() if "tracked_stats" in line),
    "mlperf new": logs.text(
        logs.mllog(
            "tracked_stats",
            logs.BEGIN + 7 * 8 * number,
            {"throughput": 1.5, "train_step_time": seconds},
            samples_count=number * 8,
        )
        for number, seconds, _ in MANY
    ),
}
BATCH = logs.text([logs.mllog("global_batch_size", logs.BEGIN, 8)])
# What stands before the lines of one process: the same, but for a time.
CONSTANT = (
    "",
    "0: ",
    "[default0]:",
    "[1,0]<stdout>:",
    "retraining/0 [default0]:",
    "[pod/my-run-workload-0-0-x7k2p/train] ",
)
TIMED = ("{time}Z ", "[pod/my-run-workload-0-0-x7k2p/train] {time}123Z ", "{time}Z 3: ")
# What stands in a log in place of a number, or between two of them.
PARTS = (
    *(
        "nan",
        "-nan",
        "NaN",
        "inf",
        "-inf",
        "Infinity",
        "-Infinity",
        "1e3",
        "-2.5E-1",
        "1.",
        ".5",
        "01",
        "+1",
        "1_0",
        "0",
        "-0",
    ),
    *("", " ", "null", "true", '"7.5"', '"a\\"b"', "[1, 2]", '{"x": 1}', "9" * 25, "9" * 400, "1e999", "x", ", ", "}"),
    *("|", "2026-99-99 02:40", "DLLL {", "heckpoint ", "\u00e4", "\x00", ": ", "=", "]", "[default3]:"),
)


def told(content: bytes, family: str, *, at_once: bool) -> list[object]:
    """All that a log tells: read as a whole, and line by line. json reads -0 as 0."""
    scanner = Scanner()
    if not at_once:
        scanner._readers[family] = scanner._reader(family)._replace(form=None)
    collector = Collector("log")
    for events in scanner.scan([BATCH.encode(), *split_blocks([content])]):
        collector.take(events)
    log = collector.finish(scanner)
    track = log.track
    starts = [*track.attempts()] if len(track) else []
    known = ((name, track.column(name)) for name in sorted(track.columns))
    columns = {name: [repr(value + 0) for value in column or ()] for name, column in known}
    told = [track.family, [*track.numbers], [*map(repr, track.when)], columns, track.odd, track.planned, starts]
    return [*told, scanner.broken, log.sections]


def prefixed(name: str, prefix: str) -> list[str]:
    """Return the lines of a log, written a little more than a second after each other."""
    lines = enumerate(LONG[name].splitlines())
    times = (time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(logs.BEGIN + at)) + f".{at:06d}" for at in range(500))
    return [prefix.format(time=when) + line for (_, line), when in zip(lines, times, strict=False)]


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("prefix", [*CONSTANT, *TIMED])
def test_usual_lines_are_read_at_once(name: str, prefix: str) -> None:
    content = logs.text(prefixed(name, prefix)).encode()
    assert told(content, FAMILIES[name], at_once=True) == told(content, FAMILIES[name], at_once=False)
    ((_, rank, event), *_), *_ = Scanner().scan(split_blocks([content]))
    assert rank == read_prefix(content).rank
    assert isinstance(event, Steps)
    assert len(event.numbers) == 150


TIMES = b"2026-02-02T02:41:00Z 2026-02-02T02:41:01Z "


LINE = logs.megatron(MANY[:1]).encode()


@pytest.mark.parametrize("other", [b"", b"1: ", TIMES[:21], TIMES[:20] + b"+01:00 "])
def test_lines_with_different_prefixes_are_not_of_one_process(other: bytes) -> None:
    form = open_reader().form
    assert form
    assert form.learn(b"0: " + LINE.rstrip())
    assert [len(form.match(start + LINE)[0]) for start in (b"0: ", other)] == [1, 0]


def test_of_two_times_in_a_prefix_the_last_counts() -> None:
    form = open_reader().form
    assert form
    assert not form.learn(TIMES + LINE.rstrip())
    assert read_prefix(TIMES).when == read_prefix(TIMES[21:]).when


def test_the_lines_of_a_rank_are_counted_on() -> None:
    block = logs.text(prefixed("bridge", "[default0]:")).encode()
    steps = [event for events in Scanner().scan([block, block]) for _, _, event in events]
    assert [each.numbers[0] for each in steps if isinstance(each, Steps)] == [1, 151]


def test_of_two_objects_with_one_name_the_last_counts() -> None:
    content = LONG["dllogger"].replace('"data": {', '"data": {"TFLOPS_per_GPU": 1.5}, "data": {').encode()
    assert told(content, "dllogger", at_once=True) == told(content, "dllogger", at_once=False)


def test_a_rank_has_one_name_with_and_without_a_space() -> None:
    assert read_prefix(b"[default0]:x").rank == read_prefix(b"[default0]: x").rank


PAIRS = logs.text(
    line
    for pair in zip(LONG["bridge"].splitlines(), LONG["megatron"].splitlines(), strict=True)
    for line in (*pair, *([SAVED] if " 70/" in pair[1] else []))
)


def test_two_families_that_take_turns_are_read_at_once_too() -> None:
    scanner = Scanner()
    (events,) = scanner.scan(split_blocks([PAIRS.encode()]))
    assert [type(event) for _, _, event in events] == [Steps, Checkpoint, Steps]
    tagged = PAIRS.replace("\n", "\n[default0]:").removesuffix("[default0]:")
    assert [*map(type, events)] == [*map(type, *Scanner().scan([f"[default0]:{tagged}".encode()]))]
    log = read([PAIRS.encode()])
    assert (len(log.track), log.track.family, log.track.columns["tflops"][149]) == (150, "megatron", 663.5)
    assert [(each.step, each.section) for each in log.checkpoints] == [(70, 0)]
    again = read([(CONFIG + PAIRS + CONFIG + PAIRS.replace("02:4", "04:4")).encode()])
    assert [(attempt.begin, attempt.section) for attempt in again.track.attempts()] == [(0, 0), (150, 1)]


PIECE = re.compile(r"[-+\d.]+(?:[eE][-+]\d+)?|[:|,=\"{}\[\]] ?")
# Which piece of a line of MLPerf is the speed: a step may be told without one.
AT_SPEED = [found[0] for found in PIECE.finditer(LONG["mlperf new"])].index("1.5")
PLACES = st.sampled_from([range(150), range(1), range(149, 150), range(40, 43)])


@pytest.mark.slow
@given(
    st.sampled_from(sorted(LONG)),
    st.sampled_from(["", *CONSTANT, *TIMED]),
    st.integers(0, 80),
    st.sampled_from(PARTS),
    PLACES,
)
@example("dllogger", "", 38, "01", range(150))
@example("dllogger", "", 38, "9" * 400, range(150))
@example("megatron", "{time}Z 3: ", 5, "99", range(150))
@example("megatron old", "[default0]:", 5, "0", range(149, 150))
@example("mlperf new", "", AT_SPEED, "0", range(40, 43))
@example("bridge", "", 1, "-nan", range(40, 43))
@settings(max_examples=400)
def test_lines_read_at_once_tell_what_they_tell_one_by_one(
    name: str, prefix: str, which: int, part: str, chosen: range
) -> None:
    """In some lines, or in all, a number or a sign between two of them is another text."""
    lines = prefixed(name, prefix)
    for at in chosen:
        found = [*PIECE.finditer(lines[at])]
        start, end = found[which % len(found)].span()
        lines[at] = lines[at][:start] + part + lines[at][end:]
    content = logs.text(lines).encode()
    assert told(content, FAMILIES[name], at_once=True) == told(content, FAMILIES[name], at_once=False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
# How a line begins -> where its values are, their names, and a record of a step.
JSON_LINES: dict[str, tuple[str, str, list[str], Callable[[int], dict[str, object]]]] = {
    "dllogger": (
        "DLLL ",
        "data",
        ["reduced_train_loss", "train_step_timing in s", "grad_norm", "grad-norm", "lr", "step", "\u00e4", 'a"b'],
        lambda step: {"timestamp": str(logs.BEGIN + step), "type": "LOG", "step": step},
    ),
    "mlperf": (
        ":::MLLOG ",
        "value",
        ["throughput", "train_step_time", "max_memory_usage", "key", "\u00e4", 'a"b'],
        lambda step: {"time_ms": 1000 * step, "key": "tracked_stats", "metadata": {"step": 16 * step, "line": 7}},
    ),
}


@given(st.sampled_from(sorted(JSON_LINES)), st.lists(st.floats() | JSON, max_size=3), st.booleans(), st.data())
@settings(max_examples=300)
def test_json_at_once_agrees_with_json(family: str, others: list[object], escaped: bool, data: st.DataObject) -> None:
    head, place, known, record_of = JSON_LINES[family]
    values = data.draw(st.dictionaries(st.sampled_from(known), st.floats(0.5, 9) | JSON, min_size=1))
    order = data.draw(st.permutations([*record_of(0), place]))
    lines = []
    for step in range(150):
        own = dict[str, object](values)
        if step in (0, 70) and others:
            own[next(iter(own))] = others[0]
        record = {**record_of(step), place: own}
        lines.append(f"{head}{json.dumps({name: record[name] for name in order}, ensure_ascii=escaped)}")
    content = logs.text(lines).encode(errors="replace")
    assert told(content, family, at_once=True) == told(content, family, at_once=False)


@given(names, st.lists(st.integers(0, 5000), max_size=30))
@settings(max_examples=60)
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
def test_prefixes(name: str, prefix: str) -> None:
    lines = LOGS[name].replace("\r", "\n").splitlines()
    assert shown(read([logs.text(prefix + line for line in lines).encode()])) == PLAIN[name]


@given(names, st.sampled_from(PREFIXES), st.sampled_from(PREFIXES))
def test_prefixes_of_two_tools(name: str, first: str, second: str) -> None:
    lines = LOGS[name].replace("\r", "\n").splitlines()
    assert shown(read([logs.text(first + second + line for line in lines).encode()])) == PLAIN[name]


@given(names, st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(NOISE)), max_size=30))
@settings(max_examples=60)
def test_other_text_in_between(name: str, noise: list[tuple[int, str]]) -> None:
    lines = LOGS[name].replace("\r", "\n").splitlines()
    for at, line in noise:
        lines.insert(at % (len(lines) + 1), line)
    assert shown(read([logs.text(lines).encode()])) == PLAIN[name]


@given(names, st.data())
@settings(max_examples=60)
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
def test_carriage_returns_end_lines(name: str, count: int) -> None:
    content = LOGS[name].replace("\n", "\r" * count + "\n")
    assert shown(read([content.encode()])) == PLAIN[name]


@given(names, st.integers(1, 200))
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
    assert {column[:].itemsize for column in track.columns.values()} == {8}
    assert {len(column) for column in track.columns.values()} == {2000}
    assert len(track.columns) == 8
    kept = {name: sys.getsizeof(column._values) for name, column in track.columns.items()}
    assert {name for name, size in kept.items() if size > 1000} == {"samples", "loss"}  # the others never change
