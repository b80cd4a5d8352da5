"""The program of a recipe, and chartgen's launcher of the same program."""

from __future__ import annotations

import re
from pathlib import Path

from chartgen.composer.launcher import Launcher, load_launcher
from chartgen.composer.library import open_library
from chartgen.composer.target import Target
from chartgen.helm.yaml import read_text
from chartgen.linter.recipes.document import Recipe

# Values that name the program: src/helm-charts/a3mega/nemo-training-v2 reads the first, scripts the variables.
_KEY = ("workload", "torchDistributedTarget")
_VARIABLES = ("NEMO_LAUNCH_SCRIPT", "PYTHON_MAIN")
_MAXTEXT = "MAXTEXT_CONFIG_PATH"
_STARTS = re.compile(r"\b(?:python3?|torchrun|mpirun)\s[^\n]*")
_PROGRAM = re.compile(r"(?:/?(?:[\w.-]+/)*)[\w.-]+\.py\b|/\S+_perf\b")
# The last part of a path -> the owner of the program, for messages.
_KNOWN = {
    "run_script.py": "Megatron-Bridge",
    "custom_setup_experiment.py": "Megatron-Bridge",
    "launcher.py": "Google's resiliency library, NeMo 2",
    "pretrain_wan.py": "Megatron-Bridge, Wan",
}


def script_of(recipe: Recipe, given: Path | None) -> Path | None:
    """Return the script that starts the recipe's program: the given one, or launcher.sh beside its values."""
    beside = recipe.path.parent / "launcher.sh"
    return given or (beside if beside.is_file() else None)


def program_of(recipe: Recipe, script: Path | None) -> str:
    """Return the path of the recipe's program; if it is not stated, record the problem and return an empty text."""
    named = str(recipe.take(*_KEY) or "") or next(filter(None, map(recipe.variable, _VARIABLES)), "")
    if named:
        return named
    if recipe.variable(_MAXTEXT):
        return "MaxText"
    if script is None:
        hint = "give it with --launcher FILE: the recipe's launcher.sh, or that of src/launchers which its README names"
        recipe.lack(("workload",), "does not name the program, which is in the recipe's launcher", hint)
        return ""
    text = re.sub(r"\\\n", " ", read_text(script))
    for line in _STARTS.findall(text):
        if found := _PROGRAM.search(line):
            return found[0]
    recipe.lack(("workload",), f"does not name the program, and chartgen does not recognize any in {script.name}")
    return ""


def launcher_of(recipe: Recipe, program: str, target: Target | None) -> Launcher | None:
    """Return the launcher of a program with a readable configuration; without one, record why and return None."""
    known = load_launcher(open_library().find("launcher", "nemo-1"))
    if program == known.program:
        if target and known.name not in [each.name for each in target.launchers]:
            message = f"runs {program}, and target {target.name} has no launcher {known.name}"
            recipe.lack(("workload",), message, "list it in the target's launchers")
        return known
    whose = _KNOWN.get(program.rpartition("/")[2], "")
    whose = whose or (
        "a Python program of the recipe's own, which contains its model" if "/configs/" in program else ""
    )
    message = f"runs {program}{f' ({whose})' if whose else ''}, and convert has no launcher for it"
    hint = f"it converts {known.name}: {known.program}"
    if whose == "Megatron-Bridge":
        hint += "; launcher megatron-bridge starts Bridge's own recipes, by name in launchers.megatron-bridge.recipe"
    recipe.lack(("workload",), message, hint)
    return None
