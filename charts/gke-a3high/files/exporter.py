"""Serves the last step of this machine's processes to Prometheus, in its text format at /metrics.

    exporter.py SOCKET

The processes send the lines of their steps to SOCKET, each after its rank (watch.py). exporter.json, beside this file,
contains the port; the expressions `find`, all of which match a step's line, and `also`, which may match; and of the
number of GPUs, the batch and the sequence length what reaches the program, for tokens per second. It ends with the
script that started it.

The names are those of `chartgen metrics --output prometheus`, and each value is what it reads from the same line.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import socket
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

MOST_RANKS = 64  # of one machine that print steps
MOST_READERS = 16
REQUEST = 8192  # bytes
SECONDS = 5  # that a request may take
COLOUR = re.compile(r"\x1b\[[\d;]{0,20}m")
# Metric -> its type and meaning.
METRICS = {
    "chartgen_step": ("gauge", "The last step."),
    "chartgen_last_step_seconds": ("gauge", "Time of the last step."),
    "chartgen_last_step_timestamp_seconds": ("gauge", "When the line of the last step was read, in Unix time."),
    "chartgen_step_seconds": ("summary", "Times of all steps since the pod started."),
    "chartgen_tokens_per_second": ("gauge", "Tokens a second in the last step, all GPUs."),
    "chartgen_tokens_per_second_per_gpu": ("gauge", "Tokens a second and GPU in the last step."),
    "chartgen_loss": ("gauge", "The last loss."),
    "chartgen_steps_planned": ("gauge", "Steps of the whole run."),
}


class LastSteps:
    """The last step of each rank, read as exporter.json describes."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._find, self._also = ([re.compile(each, re.ASCII) for each in settings[key]] for key in ("find", "also"))
        self._gpus, self._batch, self._sequence = settings["gpus"], settings.get("batch"), settings.get("sequence")
        self._planned = settings.get("steps")
        self._ranks: dict[str, dict[str, float]] = {}

    def take(self, rank: str, line: str, now: float) -> None:
        """Read the line of a step, if it is one."""
        text = COLOUR.sub("", line)
        found = [each.search(text) for each in self._find]
        if not all(found):
            return
        found += [each.search(text) for each in self._also]
        texts = {name: value for match in found if match for name, value in match.groupdict().items() if value}
        numbers = {name: float(value.replace(",", "")) for name, value in texts.items()}
        if rank in self._ranks or len(self._ranks) < MOST_RANKS:
            self._keep(self._ranks.setdefault(rank, {}), numbers, now)

    def _keep(self, kept: dict[str, float], numbers: dict[str, float], now: float) -> None:
        is_repeated = kept.get("chartgen_step") == numbers["step"]  # a bar is drawn more than once
        kept["chartgen_step"] = numbers["step"]
        kept["chartgen_last_step_timestamp_seconds"] = now
        if "loss" in numbers:
            kept["chartgen_loss"] = numbers["loss"]
        seconds, speed = self._speeds(numbers)
        if seconds is not None:
            if not is_repeated and math.isfinite(seconds):
                kept["chartgen_step_seconds_sum"] = kept.get("chartgen_step_seconds_sum", 0.0) + seconds
                kept["chartgen_step_seconds_count"] = kept.get("chartgen_step_seconds_count", 0.0) + 1
            kept["chartgen_last_step_seconds"] = seconds
        if speed is not None:
            kept["chartgen_tokens_per_second"] = speed
            kept["chartgen_tokens_per_second_per_gpu"] = speed / self._gpus

    def _speeds(self, numbers: dict[str, float]) -> tuple[float | None, float | None]:
        """Return the seconds of a step and the tokens per second of all GPUs; None where the line lacks a figure."""
        batch = numbers.get("batch", self._batch)
        tokens = batch * self._sequence if batch and self._sequence else None
        seconds = numbers["milliseconds"] / 1000 if "milliseconds" in numbers else numbers.get("seconds")
        speed = numbers["tokens"] * self._gpus if "tokens" in numbers else None
        if seconds is None and tokens and speed:
            seconds = tokens / speed
        elif tokens and seconds:
            speed = tokens / seconds
        return seconds, speed

    def exposition(self) -> str:
        """Return all figures in Prometheus' text format."""
        lines = []
        for name, (kind, text) in METRICS.items():
            parts = (f"{name}_sum", f"{name}_count") if kind == "summary" else (name,)
            rows = [
                f'{part}{{rank="{rank}"}} {_number(kept[part])}'
                for rank, kept in self._ranks.items()
                for part in parts
                if part in kept
            ]
            if name == "chartgen_steps_planned" and self._planned:
                rows = [f"{name} {self._planned}"]
            if rows:
                lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}", *rows]
        return "".join(f"{line}\n" for line in lines)


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(value).replace("inf", "Inf")


class Inbox(asyncio.DatagramProtocol):
    """Takes the lines of the processes."""

    def __init__(self, steps: LastSteps) -> None:
        self._steps = steps

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002 - asyncio's signature
        """Take a rank and a line."""
        rank, _, line = data.decode(errors="replace").partition(" ")
        with suppress(ValueError, LookupError):  # no number where one was expected
            self._steps.take(str(int(rank)), line, time.time())


class MetricsServer:
    """Answers GET /metrics, and nothing else."""

    def __init__(self, steps: LastSteps) -> None:
        self._steps = steps
        self._readers: dict[asyncio.StreamWriter, str] = {}  # with their addresses, the oldest first

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close the connection."""
        self._make_room()
        self._readers[writer] = (writer.get_extra_info("peername") or "?")[0]
        try:
            await asyncio.wait_for(self._answer(reader, writer), SECONDS)
            writer.close()
        except (OSError, EOFError, asyncio.TimeoutError, asyncio.LimitOverrunError):
            writer.transport.abort()  # of a reader that is slow, sends too much or has gone
        finally:
            self._readers.pop(writer, None)

    def _make_room(self) -> None:
        """Drop the oldest reader of the address with the most: one that opens many does not keep the others out."""
        if len(self._readers) >= MOST_READERS:
            ((address, _),) = Counter(self._readers.values()).most_common(1)
            oldest = next(writer for writer, reader in self._readers.items() if reader == address)
            del self._readers[oldest]
            oldest.transport.abort()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        method, _, rest = request.partition(b" ")
        known = method == b"GET" and rest.partition(b" ")[0].partition(b"?")[0] == b"/metrics"
        status, body = ("200 OK", self._steps.exposition().encode()) if known else ("404 Not Found", b"see /metrics\n")
        head = (
            f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + body)
        await writer.drain()


async def serve(address: str) -> None:
    """Serve until the script that started this one has ended; raise OSError if the port or socket is taken."""
    parent = os.getppid()
    settings = json.loads(Path(__file__).with_name("exporter.json").read_text("utf-8"))
    steps = LastSteps(settings)
    inbox = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    inbox.bind(address)
    inbox.setblocking(False)  # noqa: FBT003 - its only form
    await asyncio.get_running_loop().create_datagram_endpoint(lambda: Inbox(steps), sock=inbox)
    async with await asyncio.start_server(MetricsServer(steps).answer, port=settings["port"], limit=REQUEST):
        while os.getppid() == parent:
            await asyncio.sleep(1)


if __name__ == "__main__":
    try:
        asyncio.run(serve(sys.argv[1]))
    except (OSError, ValueError, LookupError, re.error) as error:
        sys.stderr.write(f"chartgen: no metrics of this machine: {error!r}; the run continues\n")
