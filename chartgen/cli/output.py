"""Output of all commands: a guard makes text for people harmless; data for programs bypasses it.

`show_answer` prints every JSON answer.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import click

from chartgen.visible import harmless, one_line

if TYPE_CHECKING:
    from chartgen.findings import Finding, Rule

# Codes that click writes for chartgen's own colours and weights; forged ones can only colour text.
_STYLE = re.compile(r"(\x1b\[(?:0|1|31|32|33|36)m)")
_PASSED_ON = ("closed", "encoding", "errors", "fileno", "flush", "isatty", "writable")


class Guard:
    """A text stream for people: neutralizes text that would control a terminal or a CI runner.

    Args:
        stream: The underlying stream.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str | bytes, /) -> int:
        """Write a text; click writes completions as bytes."""
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        parts = _STYLE.split(text)
        parts[0::2] = map(harmless, parts[0::2])
        self.stream.write("".join(parts))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        if name not in _PASSED_ON:  # all else, such as `buffer` and `writelines`, writes past the guard
            raise AttributeError(name)
        return getattr(self.stream, name)


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
    """Print data for programs, unchanged unless stdout is a terminal."""
    if sys.stdout.isatty():
        click.echo(text, nl=nl)
    else:
        click.echo(text, nl=nl, file=_past_the_guard(), color=True)  # else click removes colours


def show_answer(schema: str, facts: Any, *, stream: bool = False, secrets: bool = False) -> None:
    """Print a JSON answer.

    Args:
        schema: Name and version of its form, such as `status/v1`; see `tests/programs/answer_schemas.py`.
        facts: A record or a dictionary.
        stream: Whether it is one of several, each on a line of its own.
        secrets: Whether it keeps its secrets, because a program runs with them.
    """
    import json

    from chartgen.answers import answer
    from chartgen.masking import masked_value

    data = answer(schema, facts)
    text = json.dumps(data if secrets else masked_value(data), indent=None if stream else 2, allow_nan=False)
    emit(harmless(text))  # the same data: escapes are written as JSON escapes


def note(line: str) -> None:
    """Print a line of progress to stderr, without the secrets that a cluster's texts may have."""
    from chartgen.masking import masked

    click.echo(f"{click.style('>', fg='cyan')} {one_line(masked(line))}", err=True)


def remark(word: str, text: object, colour: str = "yellow") -> None:
    """Print a line to stderr that begins with a coloured word, such as `warning`."""
    click.echo(f"{click.style(word, fg=colour)}: {one_line(str(text))}", err=True)


def show_warnings(findings: Iterable[Finding]) -> None:
    """Print warnings and failed checks among findings to stderr."""
    for finding in findings:
        if finding.severity != "error":
            remark(finding.severity, finding)


def show_plan(lines: Iterable[tuple[str, str]]) -> None:
    """Print the lines of a plan, label and text, to stderr."""
    click.echo("Plan", err=True)
    for label, text in lines:
        click.echo(f"  {label:<11} {one_line(text)}", err=True)


def show_table(rows: list[tuple[str, str]]) -> None:
    """Print rows of name and text, wrapped to the terminal but not at hyphens of names, so that they can be copied."""
    import textwrap

    width = 80  # in a file, lines that every terminal shows
    if sys.stdout.isatty():
        import shutil

        width = shutil.get_terminal_size().columns
    first = min(max((len(name) for name, _ in rows), default=0), 30) + 2
    for name, text in rows:
        lines = textwrap.wrap(text, max(width - first, 20), break_on_hyphens=False, break_long_words=False)
        start = f"{name:<{first}}" if len(name) < first else f"{name}\n{'':{first}}"
        click.echo((start + f"\n{'':{first}}".join(lines)).rstrip())


def known_rules() -> list[Rule]:
    """Return all rules, which SARIF describes; nothing else loads the linter for a command of the core."""
    from chartgen.linter import catalogue

    return catalogue.known_rules()


def steer(codes: str) -> None:
    """Print chartgen's own control sequences."""
    click.echo(codes, nl=False, file=_past_the_guard(), color=True)


def _past_the_guard() -> TextIO:
    return sys.stdout.stream if isinstance(sys.stdout, Guard) else sys.stdout
