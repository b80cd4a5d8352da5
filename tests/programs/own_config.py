"""Let AutoModel's own loader and classes read the settings that a chart writes, and print what they became as JSON.

    python tests/programs/own_config.py FOLDER SETTINGS.yaml

FOLDER contains nemo-automodel and PyYAML, as `make parsers` installs them. Packages that need a GPU, or gigabytes, are
stubs, and so is what a `_target_` names: its code is read, not imported. `unread` lists what the release does not ask
for: sections, and arguments that such a class lacks.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from own_parser import ABSENT, Finder, absent, plain

ABSENT |= {"flashoptim", "huggingface_hub", "megatron_fsdp", "mistral_common", "mlflow", "packaging", "psutil", "quack"}
# Settings of sections that no class describes.
LOOSE = ("clip_grad_norm.max_norm", "dist_env.timeout_minutes", "step_scheduler.local_batch_size")
# Sections with a class that needs the stubs' packages, and those whose `_target_` is of another package.
CLASSES = {
    "checkpoint": "nemo_automodel.components.checkpoint.config.CheckpointingConfig",
    "optimizer": "nemo_automodel.components.optim.optimizer.AdamWConfig",
}


def unread_sections(settings: dict[str, Any], package: Path) -> Iterator[str]:
    """Report the sections that the code of the recipe and of the command does not name."""
    recipes = package / "recipes"
    files = [*recipes.glob("_*.py"), recipes / "llm" / "train_ft.py", package / "cli" / "app.py"]
    code = "\n".join(file.read_text() for file in files)
    for name in (*settings, *(each for each in LOOSE if each.partition(".")[0] in settings)):
        section, _, key = name.partition(".")
        forms = (rf"cfg\.{section}\b(?!\.get)", rf'"{re.escape(name)}"', rf'\("{section}", {{}}\)\.get\("{key}"')
        if not any(re.search(form, code) for form in (forms[:2] if not key else forms[1:])):
            yield name


def unread_arguments(name: str, section: dict[str, Any], package: Path) -> Iterator[str]:
    """Report the arguments of a section that what its `_target_` names does not take."""
    target = CLASSES.get(name) or section["_target_"]
    taken = set(_taken(target, package))
    yield from (f"{name}.{key} of {target}" for key in section if key != "_target_" and key not in taken)


def _taken(target: str, package: Path) -> Iterator[str]:
    """Return the parameters of a class, or of a function of a class, wherever the package has it."""
    *_, owner, name = target.split(".")
    defined = re.compile(rf"^class {owner if name[0].islower() else name}\b", re.MULTILINE)
    for file in package.rglob("*.py"):
        if defined.search(text := file.read_text()):
            yield from _parameters(ast.parse(text), name)


def _parameters(tree: ast.Module, name: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield from (each.arg for each in (*node.args.args, *node.args.kwonlyargs))
        elif isinstance(node, ast.ClassDef) and node.name == name:
            yield from (ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign))
            yield from _parameters(ast.Module(node.body, []), "__init__")


if __name__ == "__main__":
    folder, file = sys.argv[1:]
    sys.meta_path.insert(0, Finder())
    sys.path.insert(0, folder)
    import yaml  # type: ignore[import-untyped]
    from nemo_automodel.components.config import loader  # type: ignore[import-not-found]

    loader._resolve_target = lambda path: absent(path) if isinstance(path, str) else path
    from nemo_automodel.components.config._arg_parser import (  # type: ignore[import-not-found]
        parse_args_and_load_config,
    )
    from nemo_automodel.recipes._dist_utils import parse_distributed_section  # type: ignore[import-not-found]
    from nemo_automodel.recipes._typed_config import RecipeConfig  # type: ignore[import-not-found]

    raw = yaml.safe_load(Path(file).read_text())
    package = Path(folder, "nemo_automodel")
    unread = [*unread_sections(raw, package)]
    for name in ("model", "dataset", "validation_dataset", "loss_fn", "peft", *CLASSES):
        if name in raw:
            unread += unread_arguments(name, raw[name], package)
    settings = parse_args_and_load_config(file, [])
    config = RecipeConfig(settings)
    shared = parse_distributed_section(settings.distributed.to_dict())
    read = {
        "step_scheduler": config.step_scheduler,
        "lr_scheduler": config.lr_scheduler,
        "wandb": config.wandb,
        "mlflow": config.mlflow,
        "optimizer": settings.optimizer.to_dict(),
        "distributed": {
            "strategy": shared["strategy_config"],
            "pipeline": shared["pipeline_config"],
            "sizes": shared["parallelism_sizes"],
            "activation_checkpointing": shared["activation_checkpointing"],
        },
        "unread": unread,
    }
    print(json.dumps(plain(read)))  # noqa: T201
