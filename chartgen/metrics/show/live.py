"""One line on an active run, from the last lines of its log. Imports little, because `status` calls it often."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from chartgen.metrics.figures.facts import Facts
from chartgen.metrics.figures.summary import quantile, speed_of
from chartgen.metrics.figures.window import Window
from chartgen.metrics.read.log import Collector
from chartgen.metrics.read.scan import Scanner
from chartgen.metrics.show.text import duration

if TYPE_CHECKING:
    from chartgen.checks.line_patterns import LinePatterns

# The current speed is that of the last steps, enough of them that one slow step does not matter.
_RECENT = 20


class LiveProgress(NamedTuple):
    """The progress of a run."""

    text: str  # one line; empty before the first step
    # Median time of the last steps; None where they are too few to judge by, or do not show one
    seconds: float | None = None


def live_progress(
    lines: Iterable[str | bytes],
    steps_planned: int,
    facts: Facts | None = None,
    peak: float | None = None,
    own: LinePatterns | None = None,
) -> LiveProgress:
    """Return the progress of a run: step k of N, time of a step, speed, and the remaining time.

    Args:
        lines: The end of its log, with or without line ends.
        steps_planned: Steps of the whole run; 0 = from the log, or unknown.
        facts: Model, batch and GPUs, for tokens/s and TFLOPS; None = unknown.
        peak: TFLOPS of one GPU, for the MFU; None = unknown.

    Returns:
        A line such as `step 480 of 1,000, 7.13 s a step, 146,894 tokens/s, 62 min left`, and the time of a step.
    """
    collector, scanner = Collector("log"), Scanner(own)
    for events in scanner.scan([b"".join(map(_bytes, lines))]):
        collector.take(events)
    track = collector.finish(scanner).track
    if not len(track):
        return LiveProgress("")
    number, planned = track.numbers[-1], steps_planned or track.planned
    parts = [f"step {number:,} of {planned:,}" if planned else f"step {number:,}"]
    last = [attempt.begin for attempt in track.attempts()][-1]
    window = Window(track, (range(max(last, len(track) - _RECENT), len(track)),))
    times = sorted(window.values("seconds"))
    median = quantile(times, 0.5) if times else None
    parts += [f"{median:.3g} s a step"] if median else []
    parts += _speed(median, window, facts or Facts(), peak)
    parts += [f"{duration((planned - number) * median)} left"] if median and planned > number else []
    return LiveProgress(", ".join(parts), median if len(times) >= _RECENT else None)


def _speed(median: float | None, window: Window, facts: Facts, peak: float | None) -> list[str]:
    speed = speed_of(median, window, facts)
    parts = [f"{speed.tokens:,.0f} tokens/s"] if speed.tokens else []
    if speed.tokens_per_gpu and not parts:
        parts.append(f"{speed.tokens_per_gpu:,.0f} tokens/s/GPU")
    tflops = next(iter((speed.tflops or {}).items()), None)
    if tflops and peak:
        parts.append(f"MFU {tflops[1] / peak * 100:.1f} % ({tflops[0]} attention)")
    elif speed.logged_tflops:
        parts.append(f"{speed.logged_tflops:,.1f} TFLOPS/GPU logged")
    return parts


def _bytes(line: str | bytes) -> bytes:
    raw = line.encode() if isinstance(line, str) else line
    return raw.replace(b"\r", b"\n").rstrip(b"\n") + b"\n"
