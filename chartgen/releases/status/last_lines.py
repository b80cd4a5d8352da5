"""Which lines of a failed program's log matter: what it died of, not what its launcher says afterwards."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chartgen.releases.status.messages import LONGEST

# torchrun's first words after a process has failed (torch/distributed/elastic/multiprocessing/api.py); its own
# traceback and summary follow.
_LAUNCHER = re.compile(r"torch/distributed/elastic/.*failed \(exitcode: |^torch\.distributed\.elastic\..*Error:")
# The last line of a Python traceback, and what a start script says. PyTorch puts the rank before what ended a rank;
# without it stands what is raised while Python tidies up.
_CAUSE = re.compile(
    r"^(?P<rank>\[rank\d+\]: ?)?([A-Za-z_][\w.]*(Error|Exception|Interrupt)(: |$)|transport: |chartgen: )"
)


def telling(log: Sequence[str], count: int) -> list[str]:
    """Return the lines that say why a program failed.

    Args:
        log: The end of its log.
        count: How many lines to give at most.

    Returns:
        Lines that follow one another and end in the cause; the last ones where no cause is known.
    """
    end = next((index for index, line in enumerate(log) if _LAUNCHER.search(line, 0, LONGEST)), len(log))
    causes = {index: match["rank"] for index in range(end) if (match := _CAUSE.match(log[index]))}
    last = max((index for index in causes if causes[index]), default=max(causes, default=len(log) - 1)) + 1
    return [*log[max(0, last - count) : last]]
