"""Safe changes of releases: shown first, refused before anything is touched, recoverable at any point."""

from __future__ import annotations

from chartgen.rollout.change import Rollout, check_existence, execute, prepare, prepare_rollback
from chartgen.rollout.loss import Loss, losses
from chartgen.rollout.preview import Preview, preview
from chartgen.rollout.removal import Removal, check_installed, uninstall
from chartgen.rollout.state import State, run_of, survey

__all__ = [
    "Loss",
    "Preview",
    "Removal",
    "Rollout",
    "State",
    "check_existence",
    "check_installed",
    "execute",
    "losses",
    "prepare",
    "prepare_rollback",
    "preview",
    "run_of",
    "survey",
    "uninstall",
]
