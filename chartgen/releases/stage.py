"""How far a command has come, for whoever has to go on when it is interrupted or fails on its way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.releases.state import survey

if TYPE_CHECKING:
    from chartgen.kube import Cluster
    from chartgen.programs import Progress

UNTOUCHED = "nothing was changed"


@dataclass
class Stage:
    """How far a command has come.

    Args:
        action: install, upgrade, rollback or uninstall.
        release: The release's name.
        namespace: Its namespace.
        done: What it has done so far, in words.
    """

    action: str
    release: str
    namespace: str
    done: str = UNTOUCHED

    @property
    def is_begun(self) -> bool:
        """Whether something was changed."""
        return self.done != UNTOUCHED


@contextmanager
def reported(stage: Stage, cluster: Cluster, progress: Progress) -> Iterator[Stage]:
    """Say what was done, and which command goes on, when a block is interrupted or fails after it has begun.

    Raises:
        ChartgenError: The block's own, with one problem more.
    """
    try:
        yield stage
    except KeyboardInterrupt:
        progress(f"interrupted: {stage.done}; {_next(stage, cluster)}")
        raise
    except ChartgenError as error:
        if not stage.is_begun:
            raise
        kind = MissingToolError if isinstance(error, MissingToolError) else ChartgenError
        hint = "correct the cause and run the same command again"
        raise kind([*error.problems, Problem(stage.done, hint=hint)]) from None


def _next(stage: Stage, cluster: Cluster) -> str:
    """Name the command that goes on; a Helm that was interrupted may have installed a release all the same."""
    action, base = stage.action, None
    if not stage.is_begun:
        return f"`chartgen {action}` starts anew"
    with suppress(ChartgenError):  # the cluster may be the reason why somebody interrupts
        base = survey(cluster, stage.release, stage.namespace).base
    if action == "install" and base is not None:
        action = "upgrade"
    return f"`chartgen {action}` of {stage.release} goes on from there"
