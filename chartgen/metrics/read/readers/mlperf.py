"""MLPerf's lines: `:::MLLOG {"time_ms": 1745906900799, "key": "tracked_stats", "value": {...}, "metadata": {...}}`.

run_stop - run_start is the score, eval_accuracy an evaluation. Submitters log steps differently: see counted.py.
Source: mlcommons/logging, mlperf_logging/mllog/mllog.py and constants.py; the keys as in
mlcommons/training_results_v3.1 to v5.1, */results/*/result_*.txt.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from chartgen.metrics.read.events import NEVER, Event, Mark, Remark, Setting, Start, Step
from chartgen.metrics.read.prefix import Lines, Prefix
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.columns import Layout, Layouts, steps_of
from chartgen.metrics.read.readers.counted import Counter
from chartgen.metrics.read.readers.objects import INTEGER, NUMBER, learn

# Key of MLPerf -> equivalent setting of other programs.
_SETTINGS = {
    "global_batch_size": "global_batch_size",
    "max_sequence_length": "seq_length",
    "sequence_length": "seq_length",
    "train_samples": "train_samples",
    "lora_rank": "lora_rank",
    "target_accuracy": "target_accuracy",
    "submission_benchmark": "submission_benchmark",
}
# Names of a step time, and of a loss, in the value of tracked_stats.
_SECONDS = ("train_step_time", "train_step_timing in s", "train_step_timing")
_LOSSES = ("reduced_train_loss", "train_loss")
_EVALUATIONS = ("eval_accuracy", "eval_loss", "eval_error")
_COUNTS = ("samples_count", "step")
_VALUES = (*_SECONDS, *_LOSSES, "throughput", "max_memory_usage")
# Values of lines with counts; only these are read many lines at once.
_WANTED: dict[tuple[str, ...], bytes] = {
    ("time_ms",): NUMBER,
    ("key",): b'("tracked_stats")',
    **{("value", name): NUMBER for name in _VALUES},
    **{("metadata", name): INTEGER for name in _COUNTS},
}
_decode = json.JSONDecoder().raw_decode


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    reader = MlperfReader()
    return Reader(reader.read, reader.read_many)


class MlperfReader:
    """Keeps the counting rule of the submitter, and the position of each rank."""

    def __init__(self) -> None:
        self._counters: dict[bytes, Counter] = {}
        self._settings: dict[str, Any] = {}
        self._counter = Counter()
        self._layouts = Layouts(_learn)

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Return the events of a line; nothing for a truncated line."""
        self._counter = self._of(prefix.rank)
        text = line.decode(errors="replace")
        try:
            record, _ = _decode(text, text.index("{", prefix.size))
        except json.JSONDecodeError:
            return ()
        metadata = record.get("metadata") or {}
        return self._events(record.get("key"), record.get("value"), metadata, float(record["time_ms"]) / 1000)

    def _events(self, key: str, value: Any, metadata: Mapping[str, Any], when: float) -> Sequence[Event]:
        if key in ("tracked_stats", "train_loss"):
            return self._stats(value if key == "tracked_stats" else {key: value}, metadata, when)
        if key in _SETTINGS:
            self._settings[key] = value
            for counter in self._counters.values():
                counter.learn(key, value)
            return (Setting(_SETTINGS[key], str(value)),)
        if key == "init_start":
            return (Start(when),)
        return self._marked(key, value, metadata, when)

    def _marked(self, key: str, value: Any, metadata: Mapping[str, Any], when: float) -> Sequence[Event]:
        if key in ("block_start", "eval_stop", *_EVALUATIONS):
            self._counter.pause(when)
        if key in _EVALUATIONS:
            samples, epoch = self._counter.samples(metadata), self._counter.epoch_of(metadata)
            step = self._counter.step_of(samples, epoch)
            return (Mark("eval", when, str(float(value)), step=step, samples=samples, epoch=epoch),)
        if key == "run_start":
            self._counter.start(when)
        if key == "epoch_stop":
            self._counter.ended = float(metadata.get("epoch_num", NEVER))
        status = str(metadata.get("status", ""))
        return (Mark(key, when, status),) if key in ("run_start", "run_stop") else ()

    def _of(self, rank: bytes) -> Counter:
        if rank not in self._counters:
            counter = self._counters[rank] = Counter()
            for key, value in self._settings.items():
                counter.learn(key, value)
        return self._counters[rank]

    def _stats(self, value: Mapping[str, Any], metadata: Mapping[str, Any], when: float) -> Sequence[Event]:
        seconds = next((float(value[name]) for name in _SECONDS if name in value), None)
        speed, loss = value.get("throughput"), next((float(value[name]) for name in _LOSSES if name in value), None)
        counts = {name: _count(metadata[name]) for name in _COUNTS if name in metadata}
        memory = {"memory": float(value["max_memory_usage"])} if "max_memory_usage" in value else {}
        extra = {} if loss is None else {"loss": loss}
        if isinstance(metadata.get("lr"), int | float):
            extra["rate"] = float(metadata["lr"])
        if not counts or (seconds is None and not speed):
            return self._loss(counts, extra, when) if loss is not None and counts else ()
        if not self._counter.has_all(tuple(name for name in value if name in _VALUES)):
            # a repeated report of steps that are known one by one: only its memory is new
            return (Step(self._counter.reached, NEVER, memory),) if memory and self._counter.reached else ()
        place = self._counter.place(counts, seconds, speed and float(speed), when)
        if place is None:
            return (Remark(_UNKNOWN, against="seconds"),)
        # the loss and the speed of one step are in two lines
        when = NEVER if place.number == self._counter.lost else when
        batch_counts = {"samples": float(place.number * self._counter.batch), "batch": float(self._counter.batch)}
        return (
            Step(place.number, when, {**batch_counts, "seconds": place.seconds, "span": place.span, **memory, **extra}),
        )

    def _loss(self, counts: Mapping[str, int], extra: dict[str, float], when: float) -> Sequence[Event]:
        number = self._counter.lost = self._counter.whole(counts)
        return (Step(number, when, extra),) if number >= 0 else ()

    def read_many(self, lines: Lines) -> Sequence[Event]:
        """Return the steps of many lines whose counting rule is known from earlier lines."""
        self._counter = self._of(lines.rank)
        columns = self._layouts.columns(lines)
        names = tuple(name for name in columns if name not in ("time_ms", "key", *_COUNTS))
        counts = {name: [*map(int, columns[name])] for name in _COUNTS if name in columns}
        when = [float(time) / 1000 for time in columns.get("time_ms", ())]
        timed = next((columns[name] for name in _SECONDS if name in columns), None)
        speeds = [*map(float, columns.get("throughput", ()))] if timed is None else []
        if not names or (timed is None and not (speeds and all(0 < speed < inf for speed in speeds))):
            return ()
        first = {name: count[0] for name, count in counts.items()}
        self._counter.expect(names, first, float(timed[0]) if timed else None, speeds[0] if speeds else None, when[0])
        amount, batch = self._counter.amount, self._counter.batch
        seconds = [*map(float, timed)] if timed else [amount / speed for speed in speeds]
        known = self._counter.many(names, counts, seconds, when)
        if known is None:
            return ()
        numbers, spans = known
        values: dict[str, Sequence[bytes | float]] = {"samples": [number * batch for number in numbers]}
        values["batch"] = [batch] * len(numbers)
        values["seconds"] = seconds
        values["span"] = spans
        if "max_memory_usage" in columns:
            values["memory"] = columns["max_memory_usage"]
        if losses := next((columns[name] for name in _LOSSES if name in columns), None):
            values["loss"] = losses
        steps = steps_of(array("q", numbers), when, [*values], [*values.values()])
        if steps is None:
            return ()
        self._counter.advance(numbers[-1], when[-1])
        return (steps,)


_UNKNOWN = "some speeds are left out: their unit, or what their steps count, does not agree with the clock"


def _count(value: Any) -> int:
    number = float(value)
    if not number.is_integer():
        raise ValueError(value)
    return int(number)


def _learn(line: bytes) -> Layout | None:
    layout = learn(line, b":::MLLOG ", lambda place, _: _WANTED.get(place))
    names = {*layout[1]} if layout else set[str]()
    speeds = names & {*_SECONDS, "throughput"}
    return layout if {"time_ms", "key"} <= names and speeds and names & {*_COUNTS} else None
