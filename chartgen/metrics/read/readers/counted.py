"""The meaning of counts in an MLPerf result, which differs between submitters.

`step` counts samples, tokens, steps or epochs, `samples_count` samples: from the start of the run, in the block that
ends (its size), or up to the block's start. The clock decides: only one interpretation of the first lines matches the
elapsed time. Each rule is needed by results of mlcommons/training_results_v3.1 to v5.1. A throughput is one of samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import filterfalse
from math import inf, isnan, log
from operator import mul, sub, truediv
from typing import Any, NamedTuple

from chartgen.metrics.read.events import NEVER

# Beyond a factor of 1.5 an interpretation contradicts the clock; the time also includes start-up and evaluations.
_FAR = log(1.5)
# A count with a known end is preferred to one that is estimated from the time.
_GUESS = 0.02
# Far more than the rounding of a quotient of whole numbers.
_ROUNDED = 1e-6
# For a known rule: limits of the elapsed time as a multiple of the steps' time; pauses make it longer.
_SHORTEST, _LONGEST = 0.5, 100.0


class CountRule(NamedTuple):
    """A rule that converts a count to a step."""

    name: str  # name of the count
    divisor: float  # amount of the count per step
    offset: int  # number added to the count: 1 where it begins with 0
    kind: str  # end (of the run so far), size (of a block) or start (of the block)

    def steps(self, count: int) -> int:
        """Return the step of a count."""
        return int((count + self.offset) / self.divisor + _ROUNDED)


class Counter:
    """Follows the lines of a run."""

    def __init__(self) -> None:
        #: Samples per step; tokens per sample, and samples per epoch, 0 = unknown.
        self.batch, self.sequence, self.epoch = 1, 0, 0
        #: The last logged step; the last epoch that ended.
        self.reached, self.ended = 0, NEVER
        #: The step of the last logged loss.
        self.lost = -1
        # Time at which training last continued, and time of the last line.
        self._since = self._last = NEVER
        self._names: tuple[str, ...] = ()
        self._rule: CountRule | None = None

    def learn(self, key: str, value: Any) -> None:
        """Store a setting of the run."""
        if key == "global_batch_size":
            self.batch = int(value)
        elif key.endswith("sequence_length"):
            self.sequence = int(value)
        elif key == "train_samples":
            self.epoch = int(value)

    def start(self, when: float) -> None:
        """Begin a run."""
        self.reached, self._names, self._rule = 0, (), None
        self._since = self._last = when

    def pause(self, when: float) -> None:
        """Record that training did not continue before a time."""
        self._since = when

    def has_all(self, names: tuple[str, ...]) -> bool:
        """Report whether lines with these values report the steps: only lines like the first of the run do."""
        self._names = self._names or names
        return names == self._names

    def place(
        self, counts: Mapping[str, Sequence[int]], seconds: Sequence[float], when: Sequence[float], *, timed: bool
    ) -> tuple[list[int], list[float]] | None:
        """Return the steps of some lines, and how many each covers; None when no rule agrees with the clock.

        The first line teaches the rule. Only a rule by the end of the steps reads several lines at once.

        Args:
            counts: The counts of the lines.
            seconds: Time of a step of each.
            when: Time of each.
            timed: Whether the program logs the time of a step, which otherwise follows from its speed.
        """
        if not self.batch:
            raise ZeroDivisionError
        first = {name: count[0] for name, count in counts.items()}
        elapsed = when[0] - self._since
        if len(when) > 1:
            if self._rule is None:
                self._recognized(first, seconds[0], elapsed, timed=timed)
            found = self._many(counts, seconds, when)
        else:
            span = self._known(first, seconds[0], when[0]) or self._recognized(first, seconds[0], elapsed, timed=timed)
            found = ([self.reached + span], [float(span)]) if span else None
        if found:
            self.reached, self._since, self._last = found[0][-1], when[-1], when[-1]
        return found

    def _known(self, counts: Mapping[str, int], seconds: float, when: float) -> int:
        if self._rule is None or self._rule.name not in counts:
            return 0
        span = self._span(self._rule, counts, (when - self._since) / seconds if seconds > 0 else 0)
        return span if span > 0 and _fits(when - self._last, span * seconds) else 0

    def _recognized(self, counts: Mapping[str, int], seconds: float, elapsed: float, *, timed: bool) -> int:
        best, chosen = _FAR, 0
        for rule in self._rules(counts, timed=timed) if 0 < seconds < inf else ():
            # a line at the end of an epoch with its number counts epochs
            if counts.get("step") in (self.ended, self.ended + 1) and (rule.divisor >= 1 or rule.kind == "start"):
                continue
            span = self._span(rule, counts, elapsed / seconds)
            if span <= 0:
                continue
            # without a clock the first rule wins
            far = 0.0 if isnan(elapsed) else abs(log(elapsed / seconds / span)) if elapsed > 0 else inf
            far += _GUESS * (rule.kind == "start")
            if far < best - 1e-3:
                best, self._rule, chosen = far, rule, span
        return chosen

    def _rules(self, counts: Mapping[str, int], *, timed: bool) -> Iterator[CountRule]:
        for name in counts:
            # some submitters log the number of batches as that of samples
            if self.epoch >= 2 * self.batch and name == "step":
                epoch = self.batch / self.epoch
                yield from (CountRule(name, epoch, offset, "end") for offset in (1, 0))
                yield CountRule(name, epoch, 0, "start")
            yield CountRule(name, self.batch, 0, "end")
            if self.sequence:
                yield CountRule(name, self.batch * self.sequence, 0, "end")
            yield CountRule(name, 1, 0, "end")
            yield CountRule(name, self.batch, 0, "size")
            if timed:  # a block with a start only needs an estimate of its size
                yield CountRule(name, self.batch, 0, "start")

    def _span(self, rule: CountRule, counts: Mapping[str, int], estimate: float) -> int:
        """Return the number of steps that a line covers by a rule; 0 when the rule does not match."""
        count = rule.steps(counts[rule.name])
        if rule.kind == "start":
            # the start of a block also checks the estimate of the previous block; the first one may be 0 or 1
            near = abs(count - self.reached) <= max(1, 1 / rule.divisor) + 0.02 * self.reached
            return max(count + round(estimate) - self.reached, 0) if near and 0 < estimate < 1e12 else 0
        return count if rule.kind == "size" else count - self.reached

    def _many(
        self, counts: Mapping[str, Sequence[int]], times: Sequence[float], when: Sequence[float]
    ) -> tuple[list[int], list[float]] | None:
        rule = self._rule
        if rule is None or rule.kind != "end" or rule.name not in counts:
            return None
        offset, divisor = rule.offset, rule.divisor
        numbers = [int((count + offset) / divisor + _ROUNDED) for count in counts[rule.name]]
        spans = [*map(float, map(sub, numbers, [self.reached, *numbers[:-1]]))]
        passed = map(sub, when, [self._last, *when[:-1]])
        ratios = [*filterfalse(isnan, map(truediv, passed, map(mul, spans, times)))]
        fit = not ratios or (min(ratios) >= _SHORTEST and max(ratios) <= _LONGEST)
        return (numbers, spans) if min(spans) > 0 and fit else None

    def whole(self, counts: Mapping[str, int]) -> int:
        """Return the step of a line without a speed, such as that of a loss; -1 = unknown."""
        if self._rule and self._rule.kind == "end" and self._rule.name in counts:
            return self._rule.steps(counts[self._rule.name])
        if "samples_count" in counts and self.batch:
            return counts["samples_count"] // self.batch
        return counts.get("step", -1)

    def samples(self, metadata: Mapping[str, Any]) -> float:
        """Return the number of samples before an evaluation; nan = its count has no known unit.

        gpt3 counts tokens and calls them epochs: the count is a multiple of a step's tokens. Without a batch
        samples and epochs are the same to the reader.
        """
        if isinstance(count := metadata.get("samples_count"), int | float):
            return float(count)
        count = metadata.get("epoch_num", metadata.get("step"))
        if not isinstance(count, int | float) or self.batch <= 1 or not isnan(self.epoch_of(metadata)):
            return NEVER
        if self.sequence and count % (self.batch * self.sequence) == 0:
            return count / self.sequence
        return float(count) if "epoch_num" in metadata else count * float(self.batch)

    def epoch_of(self, metadata: Mapping[str, Any]) -> float:
        """Return the epoch of an evaluation; nan where its count is one of samples or tokens.

        Benchmarks of language models call these epochs: at least a batch, and no more than there are, unless that many
        samples are what the steps so far have read.
        """
        count = metadata.get("epoch_num")
        if not isinstance(count, int | float) or "samples_count" in metadata or count <= 0:
            return NEVER
        is_reached = self.reached > 0 and abs(count / self.batch - self.reached) <= 0.1 * self.reached
        beyond = not self.sequence and 0 < self.epoch < count and not is_reached
        return float(count) if count < self.batch or beyond else NEVER

    def step_of(self, samples: float, epoch: float) -> int:
        """Return the step after some samples, or that reached when lines report epochs; -1 = unknown."""
        if self._rule and self._rule.divisor < 1 and self._rule.kind == "end" and not isnan(epoch):
            return self.reached
        return -1 if isnan(samples) or not self.batch else int(samples // self.batch)


def _fits(elapsed: float, steps: float) -> bool:
    return isnan(elapsed) or _SHORTEST * steps <= elapsed <= _LONGEST * steps
