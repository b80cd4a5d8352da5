"""MLPerf's lines: `:::MLLOG {"time_ms": 1745906900799, "key": "tracked_stats", "value": {...}, "metadata": {...}}`.

run_stop - run_start is the score, eval_accuracy an evaluation. Submitters log steps differently: see counted.py.
Source: mlcommons/logging, mlperf_logging/mllog/mllog.py and constants.py; the keys as in
mlcommons/training_results_v3.1 to v5.1, */results/*/result_*.txt.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from chartgen.metrics.read.events import NEVER, Event, Mark, Remark, Setting, Start, Step
from chartgen.metrics.read.prefix import Prefix
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.counted import Counter
from chartgen.metrics.read.readers.forms import (
    Columns,
    Form,
    Places,
    Times,
    places_in_object,
    read_object,
    steps_of,
)

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
# Names of a step time in the value of tracked_stats.
_SECONDS = ("train_step_time", "train_step_timing in s", "train_step_timing")
_EVALUATIONS = ("eval_accuracy", "eval_loss", "eval_error")
_COUNTS = ("samples_count", "step")
_VALUES = (*_SECONDS, "reduced_train_loss", "train_loss", "throughput", "max_memory_usage")
# Name of a value -> that of a column.
_KEPT = {"max_memory_usage": "memory", "train_loss": "loss", "reduced_train_loss": "loss", "lr": "rate"}
_WANTED: dict[tuple[str, ...], str] = {
    ("time_ms",): "time_ms",
    **{("value", name): name for name in _VALUES},
    **{("metadata", name): name for name in (*_COUNTS, "lr")},
}


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    reader = MlperfReader()
    return Reader(reader.read, Form(_places, reader.steps))


def _places(line: bytes, prefix: Prefix) -> Places:
    """Return the places of a speed, its time and its counts."""
    record = read_object(line, prefix)
    places = places_in_object(line, record, _WANTED) if record.get("key") == "tracked_stats" else {}
    usual = "time_ms" in places and places.keys() & {*_SECONDS, "throughput"} and places.keys() & {*_COUNTS}
    return places if usual else {}


class MlperfReader:
    """Keeps the counting rule of the submitter, and the position of each rank."""

    def __init__(self) -> None:
        self._counters: dict[bytes, Counter] = {}
        self._settings: dict[str, Any] = {}
        self._counter = Counter()
        self._metric: Any = None

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Return the events of a line."""
        self._counter = self._of(prefix.rank)
        record = read_object(line, prefix)
        if not record:
            return ()
        metadata, when = record.get("metadata") or {}, float(record["time_ms"]) / 1000
        return self._events(record.get("key"), record.get("value"), metadata, when, prefix.rank)

    def _events(self, key: Any, value: Any, metadata: Mapping[str, Any], when: float, rank: bytes) -> Sequence[Event]:
        if key in ("tracked_stats", "train_loss"):
            return self._stats(value if key == "tracked_stats" else {key: value}, metadata, when, rank)
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
            # of several metrics the first one counts
            self._metric = self._metric or metadata.get("metric")
            if metadata.get("metric") != self._metric:
                return ()
            value = next(iter(value.values())) if value and isinstance(value, dict) else value
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

    def _stats(
        self, value: Mapping[str, Any], metadata: Mapping[str, Any], when: float, rank: bytes
    ) -> Sequence[Event]:
        pairs = [(name, value[name]) for name in value if name in _VALUES]
        pairs += [(name, metadata[name]) for name in _COUNTS if name in metadata]
        pairs += [("lr", metadata["lr"])] if isinstance(metadata.get("lr"), int | float) else []
        return self.steps({name: [str(text).encode()] for name, text in pairs}, [when], rank)

    def steps(self, columns: Columns, when: Times, rank: bytes) -> Sequence[Event]:
        """Return the steps of some lines; of several, only when their counting rule is known from earlier lines."""
        counter = self._counter = self._of(rank)
        times = [float(time) / 1000 for time in columns["time_ms"]] if "time_ms" in columns else when or ()
        names = tuple(name for name in columns if name in _VALUES)
        values = {name: [*map(float, columns[name])] for name in (*names, "lr") if name in columns}
        counts = {name: _counts(columns[name]) for name in _COUNTS if name in columns}
        timed = next((values[name] for name in _SECONDS if name in values), None)
        speeds = values.get("throughput", [0.0])
        kept = {name: values[key] for key, name in _KEPT.items() if key in values}
        if not counts or (timed is None and not all(speeds)):
            return self._loss(counts, kept, times) if len(times) == 1 else ()
        if not counter.has_all(names):
            # a repeated report of steps that are known one by one: only its memory is new
            again = len(times) == 1 and "memory" in kept and counter.reached
            return (Step(counter.reached, NEVER, {"memory": kept["memory"][0]}),) if again else ()
        seconds = timed or [counter.batch / speed for speed in speeds]
        place = counter.place(counts, seconds, times, timed=timed is not None)
        if place is None:
            return (Remark(_UNKNOWN, against="seconds"),) if len(times) == 1 else ()
        numbers, spans = place
        # the loss and the speed of one step are in two lines
        logged = [NEVER] if numbers == [counter.lost] else times
        batches = {"samples": [number * counter.batch for number in numbers], "batch": [counter.batch] * len(numbers)}
        return steps_of(array("q", numbers), logged, {**batches, "seconds": seconds, "span": spans, **kept})

    def _loss(
        self, counts: Mapping[str, Sequence[int]], kept: Mapping[str, list[float]], when: Sequence[float]
    ) -> Sequence[Event]:
        if "loss" not in kept or not counts:
            return ()
        number = self._counter.lost = self._counter.whole({name: count[0] for name, count in counts.items()})
        values = {name: kept[name][0] for name in ("loss", "rate") if name in kept}
        return (Step(number, when[0], values),) if number >= 0 else ()


_UNKNOWN = "some speeds are left out: their unit, or what their steps count, does not agree with the clock"


def _counts(column: Sequence[bytes]) -> list[int]:
    try:
        return [*map(int, column)]
    except ValueError:
        if not all(float(text).is_integer() for text in column):
            raise
        return [int(float(text)) for text in column]
