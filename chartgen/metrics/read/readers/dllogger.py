"""NVIDIA DLLogger's lines: `DLLL {"timestamp": "1727486904.618568", "step": 0, "data": {...}}`.

The line with the step PARAMETER contains the flattened configuration: `cfg/num_layers`. A step may be the list of an
epoch and a step: `[0, 177]`; a shorter list is a summary. BERT repeats a step that its loss scale skips.
Source: NVIDIA/dllogger, dllogger/logger.py (JSONStreamBackend); NVIDIA/NeMo @ 8cfedd7, nemo/utils/loggers/dllogger.py;
NVIDIA/DeepLearningExamples, PyTorch/LanguageModeling/BERT/run_pretraining.py.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from math import isnan
from typing import Any

from chartgen.metrics.read.events import NEVER, Checkpoint, Event, Setting, Start, Step
from chartgen.metrics.read.prefix import Prefix
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.forms import Columns, Form, Places, Times, places_in_object, read_object, steps_of
from chartgen.metrics.read.readers.pairs import NAMES, Epochs, in_units, translate_values

_CONFIG = "PARAMETER"
_DURING = {"checkpoint_step", "loss_scale"}  # what BERT prints so while it trains
_WANTED: dict[tuple[str, ...], str] = {("step",): "step", ("timestamp",): "timestamp"}
_WANTED |= {("data", name): name for name in NAMES}


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    epochs, latest = Epochs(), dict[str, Any]()

    def read(line: bytes, prefix: Prefix) -> Sequence[Event]:
        record = read_object(line, prefix)
        step, data = record.get("step"), record.get("data") or {}
        when = float(record.get("timestamp", NEVER)) if isnan(prefix.when) else prefix.when
        if step == _CONFIG and data.keys() & _DURING:
            return [Checkpoint("end", int(data[name]), when) for name in data if name == "checkpoint_step"]
        if step == _CONFIG:
            latest.clear()
            return (Start(when), *(Setting(name.removeprefix("cfg/"), str(value)) for name, value in data.items()))
        if isinstance(step, list):
            is_again, latest["step"] = latest.get("step") == [step, *data], [step, *data]
            step = epochs.number(*map(int, step)) if len(step) == 2 and not is_again else None
        if not isinstance(step, int):
            return ()
        values = translate_values(data.items())
        return (Step(step, when, values),) if values else ()

    return Reader(read, Form(_places, _steps))


def _places(line: bytes, prefix: Prefix) -> Places:
    places = places_in_object(line, read_object(line, prefix), _WANTED)
    names = [NAMES.get(name, name) for name in places]
    usual = "step" in names and {*names} - {"step", "timestamp"} and len({*names}) == len(names)
    return places if usual else {}


def _steps(columns: Columns, when: Times, _rank: bytes) -> Sequence[Event]:
    numbers, own = array("q", map(int, columns.pop("step"))), columns.pop("timestamp", ())
    steps = steps_of(numbers, when or [*map(float, own)], columns)
    return [each._replace(columns=in_units(each.columns)) for each in steps]
