"""The one way out: what commands print passes a guard that makes it harmless; data for programs passes it by."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import click

from chartgen.visible import harmless

# What click writes for the colours and weights of chartgen's own words; whoever forges them can only colour.
_STYLE = re.compile(r"(\x1b\[(?:0|1|31|32|33|36)m)")


class Guard(io.TextIOBase):
    """A stream for people: nothing that is written to it steers a terminal or a CI runner.

    Args:
        stream: Where it goes.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """Encoding of the stream."""
        return self.stream.encoding or "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """How the stream treats what its encoding lacks."""
        return self.stream.errors or "strict"

    def write(self, text: str | bytes, /) -> int:
        """Write a text; click writes completions as bytes."""
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        parts = _STYLE.split(text)
        parts[0::2] = map(harmless, parts[0::2])
        self.stream.write("".join(parts))
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self.stream.flush()

    def isatty(self) -> bool:
        """Report whether it is a terminal."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """Return the stream's file descriptor."""
        return self.stream.fileno()

    def writable(self) -> bool:
        """Report that it can be written to."""
        return True


@contextmanager
def guarded() -> Iterator[None]:
    """Guard both standard streams."""
    kept = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (Guard(each) if each is not None else each for each in kept)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = kept


def emit(text: str, *, nl: bool = True) -> None:
    """Print what another program reads, byte for byte, to everything but a terminal."""
    if sys.stdout.isatty():
        click.echo(text, nl=nl)
    else:
        click.echo(text, nl=nl, file=_past_the_guard(), color=True)  # else click takes colours out


def steer(codes: str) -> None:
    """Print chartgen's own control sequences."""
    click.echo(codes, nl=False, file=_past_the_guard(), color=True)


def _past_the_guard() -> TextIO:
    return sys.stdout.stream if isinstance(sys.stdout, Guard) else sys.stdout
