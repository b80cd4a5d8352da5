"""NVIDIA DLLogger's lines: `DLLL {"timestamp": "1727486904.618568", "step": 0, "data": {...}}`.

The line with the step PARAMETER contains the flattened configuration: `cfg/num_layers`. A step may be the list of an
epoch and a step: `[0, 177]`; a shorter list is a summary. Source: NVIDIA/dllogger, dllogger/logger.py
(JSONStreamBackend); NVIDIA/NeMo @ 8cfedd7, nemo/utils/loggers/dllogger.py.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from math import isnan

from chartgen.metrics.read.events import NEVER, Event, Setting, Start, Step
from chartgen.metrics.read.prefix import Prefix, Prefixes
from chartgen.metrics.read.readers import Reader
from chartgen.metrics.read.readers.columns import ColumnReader, Columns, LineTable, steps_of, table_of_json
from chartgen.metrics.read.readers.pairs import NAMES, Epochs, in_units, translate_values

_CONFIG = "PARAMETER"
_WANTED: dict[tuple[str, ...], str] = {("step",): "step", ("timestamp",): "timestamp"}
_WANTED |= {("data", name): name for name in NAMES}
# Text after the object, such as another rank's line, is ignored.
_decode = json.JSONDecoder().raw_decode


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    return DlloggerReader().reader


class DlloggerReader(ColumnReader):
    """Numbers the steps over the epochs."""

    def __init__(self) -> None:
        super().__init__()
        self._epochs = Epochs()

    def learn(self, line: bytes) -> LineTable | None:
        """Return the form of a line."""
        table = table_of_json(line, _WANTED)
        names = [NAMES.get(field.name, field.name) for field in table.fields if field.name] if table else []
        usual = "step" in names and {*names} - {"step", "timestamp"} and len({*names}) == len(names)
        return table if usual else None

    def steps(self, columns: Columns, prefixes: Prefixes) -> Sequence[Event]:
        """Return the steps of some lines."""
        numbers, own = columns.pop("step"), columns.pop("timestamp", None)
        when = [*map(float, own)] if own and prefixes.when is None else prefixes.when
        steps = steps_of(array("q", map(int, numbers)), when, columns)
        return (steps._replace(columns=in_units(steps.columns)),) if steps else ()

    def other(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Return the step or the configuration of a line; nothing for a truncated line."""
        text = line.decode(errors="replace")
        try:
            record, _ = _decode(text, text.index("{", prefix.size))
        except json.JSONDecodeError:
            return ()
        step, data = record.get("step"), record.get("data") or {}
        when = float(record.get("timestamp", NEVER)) if isnan(prefix.when) else prefix.when
        if step == _CONFIG:
            return (Start(when), *(Setting(name.removeprefix("cfg/"), str(value)) for name, value in data.items()))
        if isinstance(step, list):
            step = self._epochs.number(*map(int, step)) if len(step) == 2 else None
        values = translate_values(data.items()) if isinstance(step, int) else {}
        return (Step(step, when, values),) if values else ()
