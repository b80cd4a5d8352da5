"""chartgen composes, checks and runs Helm charts for NeMo and Megatron training on GPU machines of several clouds.

The names below are the public interface; each is imported when it is first used, so that `import chartgen` costs
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chartgen.chart import Chart
    from chartgen.check import require_valid as validate
    from chartgen.compose import compose, compose_setup
    from chartgen.errors import ChartgenError, MissingToolError, Problem, UsageError
    from chartgen.library import Library, open_library
    from chartgen.lint import lint
    from chartgen.plan import Plan, plan
    from chartgen.rehearsal.rehearse import Rehearsal, rehearse
    from chartgen.release import Place, Release, install, status, uninstall, upgrade
    from chartgen.render import render
    from chartgen.target import Target, load_target
    from chartgen.values import Values, load_values

__version__ = "0.1.0"

_HOMES = {
    "chart": ("Chart",),
    "check": ("validate",),
    "compose": ("compose", "compose_setup"),
    "errors": ("ChartgenError", "MissingToolError", "Problem", "UsageError"),
    "library": ("Library", "open_library"),
    "lint": ("lint",),
    "plan": ("Plan", "plan"),
    "rehearse.rehearsal": ("Rehearsal", "rehearse"),
    "release": ("Place", "Release", "install", "status", "uninstall", "upgrade"),
    "render": ("render",),
    "target": ("Target", "load_target"),
    "values": ("Values", "load_values"),
}
