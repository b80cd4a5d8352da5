"""A readout as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone

from chartgen.releases.status.readout import Readout
from chartgen.visible import counted, one_line

_WIDTH = 12


def describe_readout(readout: Readout, *, now: datetime | None = None) -> str:
    """Return a readout as lines."""
    now = now or datetime.now(timezone.utc)
    return "\n".join([f"{readout.release}: {_headline(readout, now)}", *_details(readout)])


def summarize(readout: Readout, *, progress: bool = True) -> str:
    """Return a readout as one line that changes only with the state."""
    parts: list[str] = [readout.phase]
    if readout.pods_expected and not readout.ended:
        parts.append(f"{readout.ready} of {readout.pods_expected} pods ready")
    if readout.restarts:
        parts.append("started again " + ("once" if readout.restarts == 1 else f"{readout.restarts} times"))
    parts += [readout.progress if progress else "", *(cause.message for cause in readout.causes)]
    parts += [readout.failure.what] if readout.failure else []
    return one_line("; ".join(filter(None, parts)))


def since(then: datetime, now: datetime) -> str:
    """Return the time since a moment, in two units."""
    seconds = max(0, int((now - then).total_seconds()))
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min {seconds % 60} s" if minutes else f"{seconds} s"


def _headline(readout: Readout, now: datetime) -> str:
    if readout.since is None:
        return readout.phase
    ago = since(readout.since, now)
    return f"{readout.phase} {ago} ago" if readout.ended else f"{readout.phase} for {ago}"


def _details(readout: Readout) -> Iterator[str]:
    if revision := readout.revision:
        when = f"{revision.updated:%Y-%m-%d %H:%M} UTC"
        yield _row("release", f"revision {revision.number} of {revision.chart}, {revision.status} {when}")
    for run in readout.runs:
        yield _row("run", run)
    if readout.phase != "absent" and not readout.ended:
        yield _row("pods", _pods(readout))
    if readout.restarts or readout.container_restarts:
        text = f"of the whole run {readout.restarts}, of single containers {readout.container_restarts}"
        yield _row("restarts", text)
    if readout.spares:
        yield _row("spares", str(readout.spares))
    if readout.progress:
        yield _row("progress", readout.progress)
    if readout.first_event:
        yield _row("first event", readout.first_event)
    for cause in readout.causes:
        yield _row("why" if not readout.ended else "note", cause.message)
        yield from _hint(cause.hint)
    if readout.failure:
        yield _row("failure" if readout.ended else "lost", readout.failure.what)
        yield from _hint(readout.failure.hint)
        yield from (_row("", f"| {line}") for line in readout.failure.lines)
        yield from (_row("then", text) for text in readout.failure.then)


def _pods(readout: Readout) -> str:
    machines = f", on {counted(readout.machines, 'machine')}" if readout.machines else ""
    gpus = f", {counted(readout.gpus, 'GPU')}" if readout.gpus else ""
    return f"{readout.ready} of {readout.pods_expected} ready{machines}{gpus}"


def _hint(hint: str) -> Iterator[str]:
    if hint:
        yield _row("", f"what to do: {hint}")


def _row(label: str, text: str) -> str:
    return f"  {label:<{_WIDTH}}{one_line(text)}"
