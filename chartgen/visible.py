"""Text to show: that of logs, files and clusters cannot steer a terminal, the reader or a CI runner."""

from __future__ import annotations

import re

# Controls of ISO 6429 (C0, DEL, C1), line and paragraph separators, and characters that reorder or hide text
# (Unicode TR 36 section 2.5, TR 9: marks, embeddings, overrides and isolates; TR 36 section 3: invisible characters).
_CONTROLS = "\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
_LINES = f"(?![\n\t])[{_CONTROLS}\ud800-\udfff\U000e0000-\U000e007f]"
_ONE_LINE = f"[{_CONTROLS}\ud800-\udfff\U000e0000-\U000e007f]"
# Lines that GitHub's runner obeys in any output (actions/runner, src/Runner.Common/ActionCommand.cs): `::`
# at the beginning of a line, `##[` anywhere. Azure Pipelines obeys `##vso[`, TeamCity `##teamcity[`.
_COMMAND = r"(?m)^(?P<blank>[^\S\n]*):(?=:)|##(?=(?i:vso|teamcity)?\[)"


def visible(text: str) -> str:
    r"""Return text with control characters written as escapes, such as \x1b; line breaks and tabs stay."""
    return text if text.replace("\n", "").isprintable() else re.sub(_LINES, _escaped, text)


def one_line(text: str) -> str:
    r"""Return text as one line: line breaks are written as \n too."""
    return text if text.isprintable() else re.sub(_ONE_LINE, _escaped, text)


def harmless(text: str) -> str:
    """Return visible text that no CI runner treats as a command."""
    return re.sub(_COMMAND, _disarmed, visible(text))


def cut(text: str, limit: int) -> str:
    """Return the start of a text, in whole words: no form of a secret is that of its half."""
    if len(text) <= limit:
        return text
    *words, _ = re.split(r"\s(?=\S*\Z)", text[:limit])
    return words[0] if words else ""


def shortened(text: str, limit: int) -> str:
    """Return text of at most about so many characters: its start, and its end, which often has the cause."""
    return text if len(text) <= limit else f"{cut(text, limit // 2)} ... {cut(text[::-1], limit // 2)[::-1]}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, such as `1 pod` or `2 pods`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _disarmed(match: re.Match[str]) -> str:
    # the first is for JSON, whose readers restore it
    return r"#\u0023" if match["blank"] is None else rf"{match['blank']}\x3a"
