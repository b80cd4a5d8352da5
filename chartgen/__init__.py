"""chartgen composes, checks and runs Helm charts for NeMo and Megatron training on GPU machines of several clouds.

The names below are the public interface; each is imported when it is first used, so that `import chartgen` costs
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chartgen.chart import Chart
    from chartgen.checks import check, validate
    from chartgen.cluster import Cluster, connect
    from chartgen.composer import compose, compose_setup
    from chartgen.doctor import Diagnosis, examine
    from chartgen.errors import ChartgenError, MissingToolError, Problem, UsageError
    from chartgen.findings import Finding
    from chartgen.library import Library, open_library
    from chartgen.linter import lint
    from chartgen.manifests import render
    from chartgen.plan import Plan, plan_release
    from chartgen.rehearsal.rehearse import Rehearsal, rehearse
    from chartgen.release import Place, Release
    from chartgen.rollout import Rollout, execute, prepare, prepare_rollback, uninstall
    from chartgen.target import Target, load_target
    from chartgen.values import Values, load_values

__version__ = "0.1.0"

__all__ = [
    "Chart",
    "ChartgenError",
    "Cluster",
    "Diagnosis",
    "Finding",
    "Library",
    "MissingToolError",
    "Place",
    "Plan",
    "Problem",
    "Rehearsal",
    "Release",
    "Rollout",
    "Target",
    "UsageError",
    "Values",
    "check",
    "compose",
    "compose_setup",
    "connect",
    "examine",
    "execute",
    "lint",
    "load_target",
    "load_values",
    "open_library",
    "plan_release",
    "prepare",
    "prepare_rollback",
    "rehearse",
    "render",
    "uninstall",
    "validate",
]

# Where each name lives; modules are nouns and functions verbs, so that none hides the other.
_MODULES = {
    "chart": ["Chart"],
    "checks": ["check", "validate"],
    "cluster": ["Cluster", "connect"],
    "composer": ["compose", "compose_setup"],
    "doctor": ["Diagnosis", "examine"],
    "errors": ["ChartgenError", "MissingToolError", "Problem", "UsageError"],
    "library": ["Library", "open_library"],
    "findings": ["Finding"],
    "linter": ["lint"],
    "manifests": ["render"],
    "plan": ["Plan", "plan_release"],
    "rehearsal.rehearse": ["Rehearsal", "rehearse"],
    "release": ["Place", "Release"],
    "rollout": ["Rollout", "execute", "prepare", "prepare_rollback", "uninstall"],
    "target": ["Target", "load_target"],
    "values": ["Values", "load_values"],
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'chartgen' has no attribute {name!r}")
    return getattr(import_module(f"chartgen.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
