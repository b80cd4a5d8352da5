"""A configuration of NeMo 1 as portable values: what chartgen has a key for, and the rest as it is."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

from chartgen.errors import Problem
from chartgen.launcher import load_launcher
from chartgen.library import open_library
from chartgen.yamltext import Document, Plain, require_map

LAUNCHER = "nemo-1"
_TOKENIZERS = {"GPT2BPETokenizer": "gpt2", "sentencepiece": "sentencepiece", "huggingface": "huggingface"}
# Native options that chartgen owns for reasons of its own, whatever a configuration says.
_OWN_OPTIONS = re.compile(
    r"run\b.*|trainer\.(devices|num_nodes|logger|enable_checkpointing)|model\.(tokenizer|data)\b.*|restore_from_path"
    r"|exp_manager\.(explicit_log_dir|exp_dir|name|resume_.*|create_.*|wandb_.*|dllogger_.*|checkpoint_callback_params)\b.*"
    r"|model\.(max_position_embeddings|activations_checkpoint_.*|nsys_profile\b.*|fp8|fp8_hybrid)"
)
# Portable keys that the recipe's values or the team decide, not its configuration.
_OWN_KEYS = ("nodes", "gpusPerNode", "run", "profile", "data")


def portable(config: Document, preset: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """Lay a configuration over a preset.

    Args:
        config: The configuration.
        preset: Values that are known already, such as the path of the tokenizer.

    Returns:
        The preset, and what could not be carried over.
    """
    made = _Configuration(config, copy.deepcopy(preset))
    made.convert()
    return made.preset, made.left


class _Configuration:
    """The recipe's NeMo configuration: portable keys, and the rest as it is."""

    def __init__(self, document: Document, preset: dict[str, Any]) -> None:
        self.document, self.preset = document, preset
        self.left: list[Problem] = []
        self.options = dict(_leaves(require_map(document, "a NeMo configuration")))
        owns = load_launcher(open_library().find("launcher", LAUNCHER)).owns
        self.portable = {native: key for key, natives in owns.items() for native in natives}

    def convert(self) -> None:
        preset = self.preset
        for native, value in self.options.items():
            key = self.portable.get(native, "")
            if isinstance(value, str) and "${" in value:
                if key and native != "model.ffn_hidden_size":
                    self._leave(native, f"{native} refers to another option")
            elif value is None or (not key and _OWN_OPTIONS.fullmatch(native)):
                continue
            elif key:
                if (made := self._value(key, value)) is not None:
                    _put(preset, key.split("."), made)
            else:
                _put(preset, ["launchers", LAUNCHER, "config", *native.split(".")], value)
        self._family(preset)
        self._tokenizer(preset)

    def _leave(self, native: str, message: str) -> None:
        keys = tuple(native.split("."))
        self.left.append(self.document.problem(message, keys, "set it yourself"))

    def _value(self, key: str, value: Plain) -> Plain:
        """Give the portable value of a native one; None where chartgen decides."""
        if key == "precision":
            return "fp8" if self.options.get("model.fp8") else {"16": "fp16", "32": "fp32"}.get(str(value), "bf16")
        if key == "recompute":
            return self._recompute()
        if key == "optimizer.decay":
            return "cosine" if value == "CosineAnnealing" else None
        if key == "parallelism.distributedOptimizer":
            return value == "distributed_fused_adam"
        if key.partition(".")[0] in _OWN_KEYS or key == "checkpoint.from":
            return None
        return value

    def _recompute(self) -> Plain:
        """Return what is computed again: a word where that says all."""
        names = ("granularity", "method", "num_layers")
        granularity, method, layers = (self.options.get(f"model.activations_checkpoint_{name}") for name in names)
        if granularity != "full" or (method, layers) in (("uniform", 1), (None, None)):
            return str(granularity) if granularity else None
        return {"granularity": granularity, "method": method or "uniform", "layers": layers or 1}

    def _family(self, preset: dict[str, Any]) -> None:
        experts = self.options.get("model.num_moe_experts")
        rms = self.options.get("model.normalization") == "rmsnorm"
        _put(preset, ["model", "family"], "mixtral" if experts else "llama" if rms else "gpt")
        if name := self.options.get("run.name"):
            _put(preset, ["model", "name"], str(name).replace("_", "-"))

    def _tokenizer(self, preset: dict[str, Any]) -> None:
        named = [str(self.options.get(f"model.tokenizer.{key}")) for key in ("type", "library")]
        kind = next((_TOKENIZERS[name] for name in named if name in _TOKENIZERS), "")
        if kind and preset.get("tokenizer"):
            preset["tokenizer"] = {"kind": kind, **preset["tokenizer"]}
        elif preset.pop("tokenizer", None) or kind:
            self._leave("model.tokenizer", "the tokenizer was not carried over")


def _leaves(node: dict[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


def _put(data: dict[str, Any], keys: list[str], value: Plain) -> None:
    for key in keys[:-1]:
        data = data.setdefault(key, {})
    data[keys[-1]] = value
