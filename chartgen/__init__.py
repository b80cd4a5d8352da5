"""chartgen composes, checks and runs Helm charts for NeMo and Megatron training on GPU machines of several clouds.

These names are the public interface. Each is imported on first use, so `import chartgen` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chartgen.checks import check, validate
    from chartgen.checks.automatic import estimate
    from chartgen.composer.assembly import compose, compose_setup
    from chartgen.composer.library import Library, open_library
    from chartgen.composer.target import Target, load_target
    from chartgen.errors import ChartgenError, MissingToolError, Problem, UsageError
    from chartgen.estimator import Estimate
    from chartgen.findings import Finding
    from chartgen.helm.chart import Chart
    from chartgen.helm.manifests import render
    from chartgen.helm.values import Values, load_values
    from chartgen.kube import Cluster, connect
    from chartgen.linter import lint
    from chartgen.rehearsal.rehearse import Rehearsal, rehearse
    from chartgen.releases.helm_release import Place, Release
    from chartgen.releases.plan import Plan, plan_release
    from chartgen.releases.preflight import Diagnosis, examine
    from chartgen.releases.rollout import Rollout, execute, prepare, prepare_rollback
    from chartgen.releases.uninstall import uninstall

__version__ = "0.1.0"

__all__ = [
    "Chart",
    "ChartgenError",
    "Cluster",
    "Diagnosis",
    "Estimate",
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
    "estimate",
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

# Module of each name. Modules are nouns and functions verbs, so neither shadows the other.
_MODULES = {
    "checks": ["check", "validate"],
    "checks.automatic": ["estimate"],
    "composer.assembly": ["compose", "compose_setup"],
    "composer.library": ["Library", "open_library"],
    "composer.target": ["Target", "load_target"],
    "errors": ["ChartgenError", "MissingToolError", "Problem", "UsageError"],
    "estimator": ["Estimate"],
    "findings": ["Finding"],
    "helm.chart": ["Chart"],
    "helm.manifests": ["render"],
    "helm.values": ["Values", "load_values"],
    "kube": ["Cluster", "connect"],
    "linter": ["lint"],
    "rehearsal.rehearse": ["Rehearsal", "rehearse"],
    "releases.helm_release": ["Place", "Release"],
    "releases.plan": ["Plan", "plan_release"],
    "releases.preflight": ["Diagnosis", "examine"],
    "releases.rollout": ["Rollout", "execute", "prepare", "prepare_rollback"],
    "releases.uninstall": ["uninstall"],
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'chartgen' has no attribute {name!r}")
    return getattr(import_module(f"chartgen.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
