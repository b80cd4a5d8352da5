"""Hugging Face Trainer's values, and those of ms-swift and LLaMA-Factory, which are based on it.

- Trainer prints `{'loss': 0.5, 'grad_norm': 0.7, 'learning_rate': 8e-07, 'epoch': 0.64}`, in version 5 with each number
  in quotes. The step is only in the bar before it in the same line, or else in the bar drawn again after it:
  ` 31%|###  | 56/176 [02:30<12:19,  1.50s/it]`. An evaluation is `{'eval_loss': 0.25, ...}`, with a bar of its own.
- ms-swift adds `'global_step/max_steps': '56/176'` (version 2 `'global_step': 56`, with Megatron `'iteration'`) and
  `'elapsed_time': '1h 22m 38s'`; its logging.jsonl is the same in JSON, and ends with a line that repeats all values.
- LLaMA-Factory's trainer_log.jsonl has `"current_steps": 56, "total_steps": 176`, and `"elapsed_time": "0:27:55"`.

The time passed, to a second, is the only one: step times are means between two lines. The processes of several machines
may write to one trainer_log.jsonl.
Source: transformers 4.57 and 5.0 (PyPI), transformers/trainer_callback.py and trainer.py; ms-swift 3.9 (PyPI),
swift/trainers/callback.py; hiyouga/LLaMA-Factory v0.9.3, src/llamafactory/train/callbacks.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from chartgen.metrics.read.events import Event, Mark, Remark, Setting, Start, Step
from chartgen.metrics.read.prefix import Prefix
from chartgen.metrics.read.readers import Reader

_BATCH = re.compile(rb"Total train batch size \([^)]{0,100}\) = (\d{1,12})\b")
_STATE = b'"log_history": ['
_BAR = re.compile(rb"^(?:Train: )? {0,20}\d{1,3}%\|[^|]{0,1000}\| (\d{1,18})/(\d{1,18}) \[([\d:]{1,20})<")
_PAIR = re.compile(r"""(['"])([\w/() ]{1,60})\1: (?:(['"])([^'"]{1,60})\3|([^'",}\s]{1,60}))""")
_STEPS = dict.fromkeys(("global_step/max_steps", "global_step", "iteration", "current_steps", "step"))
_PART = re.compile(r"(\d+) ?([dhms:]?)")
_SIZES = {"d": 86400, "h": 3600, "m": 60, "s": 1}
_NAMES = {"loss": "loss", "grad_norm": "gradient", "learning_rate": "rate", "lr": "rate", "memory(GiB)": "memory"}
_GIB = 1024**3 / 1e9
_BUFFERED = "values with no bar before them that numbers their steps are left out: set PYTHONUNBUFFERED=1"
_SAME = 0.8  # of the time passed on another machine at least; one may be steps behind


def open_reader() -> Reader:
    """Return the reader of a log's lines."""
    return Reader(TrainerReader().read)


class TrainerReader:
    """Keeps the bar of training, which is drawn before its values, values that wait for it, and the last step."""

    def __init__(self) -> None:
        self._bar: dict[str, str] = {}
        self._waiting: dict[str, str] = {}
        self._beside, self._apart = "", False
        self._drawn: tuple[str, dict[str, str]] = ("", {})
        self._total, self._bar_is_its = "", False
        self._step, self._passed = -1, 0
        self._latest = (-1, 0)
        self._end = -1

    def read(self, line: bytes, prefix: Prefix) -> Sequence[Event]:
        """Return the step, the evaluation or the batch of a line."""
        if _STATE in line:
            return ()
        if batch := _BATCH.search(line):
            return (Setting("global_batch_size", batch[1].decode()),)
        pairs = {match[2]: match[4] or match[5] for match in _PAIR.finditer(line.decode(errors="replace"))}
        drawn = self._draws(line[prefix.size :], pairs)
        loss = pairs.get("loss", "").rstrip("0")
        if drawn and not pairs:
            pairs, self._waiting, self._apart = self._waiting, {}, False
        elif drawn:
            self._beside, self._apart = loss, True
        elif "loss" in pairs and not pairs.keys() & _STEPS:
            if loss == self._beside:
                return ()  # LLaMA-Factory prints them twice
            late, self._apart = self._apart, True
            self._waiting = {} if late else pairs
            return [Remark(_BUFFERED, name) for name in ("loss", "gradient", "rate")] if late else ()
        if "eval_loss" in pairs and not self._bar_is_its:
            return self._values(pairs, prefix.when)  # printed late too
        return self._values({**self._bar, **pairs}, prefix.when)

    def _draws(self, line: bytes, pairs: Mapping[str, str]) -> bool:
        """Report whether a line draws the bar of training, which is the one before its values."""
        if bar := _BAR.search(line):
            number, total, passed = (group.decode() for group in bar.groups())
            self._drawn = total, {"step": f"{number}/{total}", "elapsed_time": passed}
        if "loss" in pairs and self._drawn[0]:
            self._total = self._drawn[0]
        elif "eval_loss" in pairs:
            self._bar_is_its = self._drawn[0] not in ("", self._total)
            self._drawn = ("", {})  # an evaluation has a bar of its own, as have data sets
        is_training = self._drawn[0] == self._total
        if is_training:
            self._bar = self._drawn[1]
        return is_training and bar is not None

    def _values(self, pairs: Mapping[str, str], when: float) -> Sequence[Event]:
        progress = next((pairs[name] for name in _STEPS if name in pairs), "")
        number, _, total = progress.partition("/")
        if not number.isdecimal():
            return ()
        step, passed = int(number), _seconds(pairs.get("elapsed_time", ""))
        end, self._end = (Mark("end", when, step=step),) * (step > self._end), step  # it may have no loss
        is_known = "epoch" in pairs or "iteration" in pairs
        if is_known and pairs.get("eval_loss", "null") != "null":
            return (Mark("eval", when, str(float(pairs["eval_loss"])), step=step), *end)
        if not is_known or pairs.get("loss", "null") == "null":
            return end
        if step <= self._latest[0] and passed > _SAME * self._latest[1]:
            return ()  # of another process: after a restart the time begins again
        is_anew = "current_steps" in pairs and passed < _SAME * self._latest[1] and step > self._latest[0]
        self._latest = step, passed
        values = {_NAMES[name]: float(pairs[name]) for name in pairs.keys() & _NAMES.keys() if pairs[name] != "null"}
        if "memory" in values:
            values["memory"] *= _GIB
        logged = Step(step, when, values | self._timed(step, passed), int(total or pairs.get("total_steps") or 0))
        return (*(Start(when),) * is_anew, *end, logged)

    def _timed(self, step: int, passed: int) -> dict[str, float]:
        """Return the mean time of the steps since the last line with another time."""
        span, seconds = step - self._step, passed - self._passed
        known = self._step >= 0 and span > 0 and seconds > 0
        if known or seconds < 0 or span < 0 or self._step < 0:
            self._step, self._passed = step, passed
        return {"seconds": seconds / span, "span": span} if known else {}


def _seconds(text: str) -> int:
    """Convert 1h 22m 38s, 2:30 or 1 day, 0:27:55."""
    total = clock = 0
    for number, unit in _PART.findall(text):
        if unit in _SIZES:
            total += int(number) * _SIZES[unit]
        else:
            clock = clock * 60 + int(number)
    return total + clock
