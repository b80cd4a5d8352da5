"""Lines of any program, read by the expressions in `launchers.torchrun.metrics` of the values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from chartgen.errors import ChartgenError, Problem
from chartgen.metrics.read.events import Event, Step
from chartgen.metrics.read.prefix import Prefix, line_time
from chartgen.metrics.read.readers import Reader

if TYPE_CHECKING:
    from chartgen.checks.line_patterns import LinePatterns

_COLOUR = re.compile(rb"\x1b\[[\d;]{0,20}m")
# An expression looks at each character once from each place, so that a long line of noise takes milliseconds.
_LONGEST = 2000


def patterns_of(values: Mapping[str, Any]) -> LinePatterns | None:
    """Return the expressions of a run's values; None without any. Raise ChartgenError if one is not accepted."""
    name = values.get("launcher", "")
    try:
        texts = ((values.get("launchers") or {}).get(name) or {}).get("metrics")
        if not texts:
            return None
        from chartgen.checks.line_patterns import compile_lines  # with all checks, a third of the modules of `status`

        return compile_lines(texts)
    except (AttributeError, TypeError, ValueError) as error:  # values of a release have any form
        raise ChartgenError(Problem(f"launchers.{name}.metrics: {error}")) from error


def open_own(patterns: LinePatterns) -> Reader:
    """Return the reader of the lines that some expressions describe."""

    def read(line: bytes, prefix: Prefix) -> Sequence[Event]:
        plain = _COLOUR.sub(b"", line[:_LONGEST])
        text = plain.decode(errors="replace")
        texts: dict[str, str] = {}
        for expression in patterns.expressions:
            match = expression.search(text)
            if match is None:
                return ()
            texts |= {name: value for name, value in match.groupdict().items() if value}
        numbers = {name: float(value.replace(",", "")) for name, value in texts.items()}
        step = int(numbers.pop("step"))
        if "milliseconds" in numbers:
            numbers["seconds"] = numbers.pop("milliseconds") / 1000
        return (Step(step, line_time(prefix, plain), numbers),)

    return Reader(read)
