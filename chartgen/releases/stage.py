"""Progress of a command, reported with the next step when it is interrupted or fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.kube import Cluster
from chartgen.programs import Progress
from chartgen.releases.state import survey_release

UNTOUCHED = "nothing was changed"


@dataclass
class CommandStage:
    """An install, upgrade, rollback or uninstall, and what of it is done."""

    action: str
    release: str
    namespace: str
    done: str = UNTOUCHED

    @property
    def is_begun(self) -> bool:
        """Report whether the command has changed something."""
        return self.done != UNTOUCHED


@contextmanager
def reported(stage: CommandStage, cluster: Cluster, progress: Progress) -> Iterator[CommandStage]:
    """Report completed steps and the next command when a block is interrupted or fails after its first change.

    Raises:
        ChartgenError: The error of the block, with one additional problem.
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


def _next(stage: CommandStage, cluster: Cluster) -> str:
    """Return the command that continues; an interrupted Helm may have installed the release."""
    action, base = stage.action, None
    if not stage.is_begun:
        return f"`chartgen {action}` starts from the beginning"
    with suppress(ChartgenError):  # the cluster may be the reason for the interruption
        base = survey_release(cluster, stage.release, stage.namespace).base
    if action == "install" and base is not None:
        action = "upgrade"
    return f"`chartgen {action}` of {stage.release} continues from there"
