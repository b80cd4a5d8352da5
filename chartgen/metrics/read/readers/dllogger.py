"""NVIDIA DLLogger's lines: `DLLL {"timestamp": "1727486904.618568", "step": 0, "data": {...}}`.

The line with the step PARAMETER contains the flattened configuration: `cfg/num_layers`. A step may be the list of an
epoch and a step: `[0, 177]`; a shorter list is a summary. Source: NVIDIA/dllogger, dllogger/logger.py
(JSONStreamBackend); NVIDIA/NeMo @ 8cfedd7, nemo/utils/loggers/dllogger.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isnan
from typing import Any

from chartgen.metrics.read.events import NEVER, Event, Setting, Start, Step
from chartgen.metrics.read.prefix import Lines, Prefix
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.columns import Layout, Layouts
from chartgen.metrics.read.readers.objects import INTEGER, NUMBER, learn
from chartgen.metrics.read.readers.pairs import NAMES, Epochs, steps_of_pairs, translate_values

_CONFIG = "PARAMETER"
# Text after the object, such as another rank's line, is ignored.
_decode = json.JSONDecoder().raw_decode


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    layouts, epochs = Layouts(_learn), Epochs()

    def read_many(lines: Lines) -> Sequence[Event]:
        columns = layouts.columns(lines)
        if not columns:
            return ()
        numbers, own = columns.pop("step"), columns.pop("timestamp", None)
        when = [*map(float, own)] if own and lines.when is None else lines.when
        steps = steps_of_pairs(numbers, when, columns)
        return (steps,) if steps else ()

    return Reader(lambda line, prefix: read_dllogger(line, prefix, epochs), read_many)


def read_dllogger(line: bytes, prefix: Prefix, epochs: Epochs) -> Sequence[Event]:
    """Return the step or the configuration of a line; nothing for a truncated line."""
    text = line.decode(errors="replace")
    try:
        record, _ = _decode(text, text.index("{", prefix.size))
    except json.JSONDecodeError:
        return ()
    step, data = record.get("step"), record.get("data") or {}
    when = float(record.get("timestamp", NEVER)) if isnan(prefix.when) else prefix.when
    if step == _CONFIG:
        return (Start(when), *(Setting(name.removeprefix("cfg/"), _text(value)) for name, value in data.items()))
    if isinstance(step, list):
        step = epochs.number(*map(int, step)) if len(step) == 2 else None
    values = translate_values(data.items()) if isinstance(step, int) else {}
    return (Step(step, when, values),) if values else ()


def _text(value: Any) -> str:
    return "None" if value is None else str(value)


def _learn(line: bytes) -> Layout | None:
    layout = learn(line, b"DLLL ", _wanted)
    names = [NAMES.get(name, name) for name in layout[1]] if layout else []
    usual = "step" in names and {*names} - {"step", "timestamp"} and len({*names}) == len(names)
    return layout if usual else None


def _wanted(place: tuple[str, ...], value: bytes) -> bytes | None:
    if place == ("step",):
        return INTEGER
    if place == ("timestamp",):
        return b'"%s"' % NUMBER if value.startswith(b'"') else NUMBER
    return NUMBER if place[0] == "data" and place[-1] in NAMES else None
