"""Let a program's own parser read the arguments that a chart passes to it, and print what it made of them as JSON.

    python tests/programs/own_parser.py FOLDER ARGUMENT...

FOLDER contains torchtitan and tyro, as `make parsers` installs them. Packages that would need a GPU, or gigabytes, are
stubs: whatever the program asks of them is a class of that name.
"""

from __future__ import annotations

import abc
import importlib.abc
import importlib.machinery
import json
import sys
import types
from dataclasses import fields, is_dataclass
from typing import Any

ABSENT = {
    *("torch", "torchao", "torchdata", "torchft", "torch_checkpointing", "torch_remat", "torchvision", "triton"),
    *("av", "datasets", "einops", "fsspec", "grain", "jinja2", "numpy", "PIL", "safetensors", "spmd_types"),
    *("tokenizers", "transformers", "wandb"),
}


class Absent(abc.ABCMeta):
    """A class of an absent package: its attributes are such classes, and so is what a call of it returns."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__
    __hash__ = type.__hash__

    def __getattr__(cls, name: str) -> Any:
        return _ask(cls, name)

    def __call__(cls, *words: Any, **more: Any) -> Any:
        if not cls.__dict__.get("absent"):
            return super().__call__(*words, **more)
        # a decorator of a class; decorated functions may be asked for attributes
        return words[0] if len(words) == 1 and not more and isinstance(words[0], type) else absent(f"{cls}()")

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return Any

    __ror__ = __or__

    def __iter__(cls) -> Any:
        return iter(())

    def __lt__(cls, other: Any) -> bool:
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __eq__(cls, other: object) -> bool:
        return cls is other

    def __bool__(cls) -> bool:
        return False


def absent(name: str) -> Any:
    return Absent(name.rpartition(".")[2], (), {"absent": True, "__module__": "absent", "__qualname__": name})


def _ask(owner: Any, name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    made = absent(f"{owner.__name__}.{name}")
    setattr(owner, name, made)
    return made


class _Module(types.ModuleType):
    __path__: list[str] = []  # noqa: RUF012, what makes a module a package

    def __getattr__(self, name: str) -> Any:
        return _ask(self, name)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, *_: Any) -> Any:
        found = name.partition(".")[0] in ABSENT
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if found else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave a module empty."""


def plain(value: Any) -> Any:
    """Return a configuration as JSON has it; what a model is made of is no setting."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.name != "model_spec"}
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if isinstance(value, str | int | float | None) else str(type(value))


if __name__ == "__main__":
    folder, *arguments = sys.argv[1:]
    sys.meta_path.insert(0, Finder())
    sys.path.insert(0, folder)
    from torchtitan.config import ConfigManager  # type: ignore[import-not-found]

    # Which of several kinds the activation checkpoints are of is in the name of their class alone.
    config = ConfigManager().parse_args(arguments)
    kind = type(getattr(config, "activation_checkpoint", None)).__qualname__
    print(json.dumps(plain(config) | {"activation_checkpoint_type": kind}))  # noqa: T201
