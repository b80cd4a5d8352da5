"""What no text for people may hold: what steers a terminal, the eye of a reader, or a CI runner."""

from __future__ import annotations

import re

FORBIDDEN = re.compile(
    "(?!\n)[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
_OWN = re.compile(r"\x1b\[(?:0|1|31|32|33|36)m")


def faults(text: str) -> list[str]:
    """Return the lines with what no text for people may hold; chartgen's own colours do not count."""
    plain = _OWN.sub("", text).replace("\r\n", "\n")
    lines = plain.split("\n")
    return [line for line in lines if FORBIDDEN.search(line) or line.strip().startswith("::") or "##[" in line]
