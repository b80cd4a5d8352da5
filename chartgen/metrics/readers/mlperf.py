"""MLPerf's lines: `:::MLLOG {"time_ms": 1745906900799, "key": "tracked_stats", "value": {...}, "metadata": {...}}`.

tracked_stats counts samples and gives samples per second since the last one; run_stop - run_start is the score. Source:
mlcommons/logging, mlperf_logging/mllog/mllog.py and constants.py; the keys as in
mlcommons/training_results_v5.0, llama2_70b_lora/result_*.txt.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from typing import Any

from chartgen.metrics.events import Event, Mark, Setting, Start, Step
from chartgen.metrics.prefix import Lines, Prefix
from chartgen.metrics.readers import Reader
from chartgen.metrics.readers.columns import Layout, Layouts, steps_of
from chartgen.metrics.readers.objects import INTEGER, NUMBER, learn

# Key of MLPerf -> setting that means the same elsewhere.
_SETTINGS = {"global_batch_size": "global_batch_size", "max_sequence_length": "seq_length", "lora_rank": "lora_rank"}
# What is read of lines that count samples; nothing else is read many lines at once.
_WANTED = {
    ("time_ms",): NUMBER,
    ("key",): b'("tracked_stats")',
    ("value", "throughput"): NUMBER,
    ("value", "train_step_time"): NUMBER,
    ("value", "max_memory_usage"): NUMBER,
    ("metadata", "step"): INTEGER,
    ("metadata", "samples_count"): INTEGER,
}
_decode = json.JSONDecoder().raw_decode


def open_reader() -> Reader:
    """Give the reader of a log's lines."""
    reader = MlperfReader()
    return Reader(reader.read, reader.read_many)


class MlperfReader:
    """Remembers the batch, which turns samples into steps."""

    def __init__(self) -> None:
        self._batch = 1
        self._layouts = Layouts(_learn)

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Give the events of a line; a line that was cut off gives none."""
        text = line.decode(errors="replace")
        try:
            record, _ = _decode(text, text.index("{", prefix.size))
        except json.JSONDecodeError:
            return ()
        key, value, when = record.get("key"), record.get("value"), float(record["time_ms"]) / 1000
        metadata = record.get("metadata") or {}
        if key in _SETTINGS:
            self._batch = int(value) if key == "global_batch_size" else self._batch
            return (Setting(_SETTINGS[key], str(value)),)
        if key == "tracked_stats":
            return self._stats(value, metadata, when)
        if key == "init_start":
            return (Start(when),)
        if key in ("run_start", "run_stop"):
            return (Mark(key, when, str(metadata.get("status", ""))),)
        return (Mark("eval", when, str(value)),) if key == "eval_accuracy" else ()

    def _stats(self, value: dict[str, Any], metadata: dict[str, Any], when: float) -> Sequence[Event]:
        speed, count = value.get("throughput"), metadata.get("step", metadata.get("samples_count"))
        if not speed or count is None:
            return ()
        values = {"samples": float(count), "batch": float(self._batch)}
        values["seconds"] = float(value.get("train_step_time", self._batch / speed))
        if "max_memory_usage" in value:
            values["memory"] = float(value["max_memory_usage"])
        return (Step(int(count) // self._batch, when, values),)

    def read_many(self, lines: Lines) -> Sequence[Event]:
        """Give the steps of many lines that count samples."""
        columns = self._layouts.columns(lines)
        speeds = [*map(float, columns.get("throughput", ()))]
        if not speeds or not all(speeds):
            return ()
        counts = columns.get("step") or columns["samples_count"]
        values: dict[str, Sequence[bytes | float]] = {"samples": counts, "batch": [self._batch] * len(counts)}
        values["seconds"] = columns.get("train_step_time") or [self._batch / speed for speed in speeds]
        if "max_memory_usage" in columns:
            values["memory"] = columns["max_memory_usage"]
        numbers = array("q", [int(count) // self._batch for count in counts])
        when = [float(time) / 1000 for time in columns["time_ms"]]
        steps = steps_of(numbers, when, [*values], [*values.values()])
        return (steps,) if steps else ()


def _learn(line: bytes) -> Layout | None:
    layout = learn(line, b":::MLLOG ", lambda place, _: _WANTED.get(place))
    names = {*layout[1]} if layout else set[str]()
    return layout if {"time_ms", "key", "throughput"} <= names and names & {"step", "samples_count"} else None
