"""Safe changes of releases: previewed, rejected before anything changes, recoverable at any point."""

from __future__ import annotations

from chartgen.releases.preview import LostWork, Preview, lost_work, preview
from chartgen.releases.rollout import Rollout, check_existence, execute, prepare, prepare_rollback
from chartgen.releases.state import State, run_of, survey_release
from chartgen.releases.uninstall import Removal, check_installed, uninstall

__all__ = [
    "LostWork",
    "Preview",
    "Removal",
    "Rollout",
    "State",
    "check_existence",
    "check_installed",
    "execute",
    "lost_work",
    "prepare",
    "prepare_rollback",
    "preview",
    "run_of",
    "survey_release",
    "uninstall",
]
