"""Safe changes of releases: shown first, refused before anything is touched, recoverable at any point."""

from __future__ import annotations

from chartgen.rollout.change import Rollout, execute, prepare, prepare_rollback
from chartgen.rollout.removal import Removal, uninstall
from chartgen.rollout.state import State, run_of, survey

__all__ = ["Removal", "Rollout", "State", "execute", "prepare", "prepare_rollback", "run_of", "survey", "uninstall"]
