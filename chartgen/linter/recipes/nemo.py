"""Convert a configuration of NeMo 1 to portable values: options with a portable key, and the rest unchanged.

An option that affects the training and cannot be expressed in values stops the conversion; it gets no default.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chartgen.composer.launcher import Launcher
from chartgen.data.program_options import options_of
from chartgen.helm.yaml import Plain
from chartgen.linter.recipes import nemo_options as table
from chartgen.linter.recipes.nemo_tree import NemoTree

LAUNCHER = "nemo-1"


@dataclass
class Configuration:
    """A configuration after reading.

    Args:
        preset: Portable values, without paths.
        prefixes: Data sets with their weights, by the recipe's paths; empty = mock data.
        checkpoints: Whether the run saves checkpoints.
        initial: The recipe's path of initial weights; empty = none.
        devices: GPUs of each machine, if stated.
    """

    preset: dict[str, Any]
    prefixes: list[tuple[float, str]] = field(default_factory=list)
    checkpoints: bool = False
    initial: str = ""
    devices: Plain = None


def read_configuration(tree: NemoTree, launcher: Launcher, is_own: Callable[[str], bool]) -> Configuration:
    """Read a configuration; record problems that stop the conversion, and options that are left, in the recipe.

    Args:
        tree: The configuration.
        launcher: chartgen's launcher of the program.
        is_own: Whether a text is a path in one of the recipe's own volumes.
    """
    reader = _Reader(tree, launcher, is_own)
    reader.read()
    return reader.made


class _Reader:
    def __init__(self, tree: NemoTree, launcher: Launcher, is_own: Callable[[str], bool]) -> None:
        self.tree, self.is_own = tree, is_own
        self.options = {**table.SILENT, **tree.options}
        self.owner = {native: key for key, natives in launcher.owns.items() for native in natives}
        self.made = Configuration({"launcher": LAUNCHER})
        self.preset = self.made.preset

    def read(self) -> None:
        for path in table.NEEDED:
            if self.options.get(path) in (None, "", [], {}):
                self.tree.lack(path, "is not in the configuration", "add it: chartgen has no default for it")
        self.made.devices = self.options.get("trainer.devices")
        self._numbers()
        self._family()
        self._optimizer()
        self._evaluation()
        self._checkpoints()
        self._data()
        self._tokenizer()
        self._profile()
        self._trackers()
        self._rest()

    def _put(self, key: str, value: Plain) -> None:
        *keys, last = key.split(".")
        data = self.preset
        for step in keys:
            data = data.setdefault(step, {})
        data[last] = value

    def _config(self, path: str, value: Plain) -> None:
        data = self.preset.setdefault("launchers", {}).setdefault(LAUNCHER, {}).setdefault("config", {})
        *keys, last = path.split(".")
        for step in keys:
            data = data.setdefault(step, {})
        data[last] = value

    def _numbers(self) -> None:
        """Set portable keys that take the option's value unchanged."""
        options = self.options
        precision, fp8 = table.PRECISIONS.get(str(options.get("trainer.precision"))), bool(options.get("model.fp8"))
        if precision is None and options.get("trainer.precision") is not None:
            self.tree.lack("trainer.precision", f"is {options['trainer.precision']}, which nemo-1 does not have")
        elif precision:
            self._put("precision", "fp8" if fp8 else precision)
        if (steps := options.get("trainer.max_steps")) is not None and (not isinstance(steps, int) or steps < 1):
            self.tree.lack(
                "trainer.max_steps",
                f"is {steps}",
                "give a number of steps, such as --set workload.arguments[0]=trainer.max_steps=50",
            )
        clip = options.get("trainer.gradient_clip_val")
        self._put("optimizer.clipGradient", 0 if clip is None else clip)
        for path, key in self.owner.items():
            value = options.get(path)
            part = key.partition(".")[0]
            if key in table.HANDLED or part in table.PARTS or value is None:
                continue
            if self.tree.is_open(path):
                self.tree.lack(path, f"refers to a key that is not in the file: {value}", "give it a value")
            else:
                self._put(key, int(value) if isinstance(value, float) and value == int(value) >= 1 else value)
        self._recompute()

    def _recompute(self) -> None:
        names = ("granularity", "method", "num_layers")
        granularity, method, layers = (self.options.get(f"model.activations_checkpoint_{name}") for name in names)
        if not granularity:
            return
        if granularity != "full" or (method, layers) in (("uniform", 1), (None, None)):
            self._put("recompute", str(granularity))
        else:
            self._put("recompute", {"granularity": granularity, "method": method or "uniform", "layers": layers or 1})

    def _family(self) -> None:
        rms, experts = self.options["model.normalization"] == "rmsnorm", self.options.get("model.num_moe_experts")
        family = "mixtral" if experts else "llama" if rms else "gpt"
        self._put("model.family", family)
        if family != "gpt":
            base = self.options.get("model.rotary_base") or table.ROTARY_BASE
            self._put("model.rotaryBase", int(base))
        if name := self.options.get("run.name") or self.options.get("exp_manager.name"):
            self._put("model.name", re.sub("[^a-z0-9.]+", "-", str(name).lower()))

    def _optimizer(self) -> None:
        name, decay = (str(self.options.get(f"model.optim.{key}") or "") for key in ("name", "sched.name"))
        if name in table.OPTIMIZERS:
            self._put("parallelism.distributedOptimizer", table.OPTIMIZERS[name])
            if name == "mcore_distributed_optim":
                self._put(f"launchers.{LAUNCHER}.distributedOptimizer", name)
        elif name:
            self.tree.lack("model.optim.name", f"is {name}", f"nemo-1 has {', '.join(table.OPTIMIZERS)}")
        if decay == "CosineAnnealing":
            self._put("optimizer.decay", "cosine")
        elif decay:
            self.tree.lack("model.optim.sched.name", f"is {decay}", "nemo-1 has CosineAnnealing")

    def _evaluation(self) -> None:
        batches, interval = (
            self.options.get(f"trainer.{name}") for name in ("limit_val_batches", "val_check_interval")
        )
        counts = isinstance(batches, int) or batches == 0
        self._put("evaluation.batches", int(batches) if counts and batches is not None else 0)
        if not counts and batches is not None:
            self.tree.lack("trainer.limit_val_batches", f"is {batches}, a share", "give a number of batches")
        elif batches and not isinstance(interval, int):
            self.tree.lack("trainer.val_check_interval", f"is {interval}", "give a number of steps")
        elif isinstance(interval, int):
            self._put("evaluation.interval", interval)

    def _checkpoints(self) -> None:
        enabled = bool(self.options.get("exp_manager.create_checkpoint_callback"))
        self.made.checkpoints = enabled
        self._put("checkpoint.enabled", enabled)
        every = self.options.get(f"{table.CALLBACK}.every_n_train_steps")
        if enabled and isinstance(every, int):
            self._put("checkpoint.interval", every)
        elif enabled:
            path = f"{table.CALLBACK}.every_n_train_steps"
            self.tree.lack(path, "is not in the configuration, which saves", "give a number of steps")
        self.made.initial = str(self.options.get("restore_from_path") or "")

    def _data(self) -> None:
        prefixes, kind = self.options.get("model.data.data_prefix"), self.options.get("model.data.data_impl")
        if split := self.options.get("model.data.splits_string"):
            self._put("data.split", str(split))
        if index := self.options.get("model.data.index_mapping_dir"):
            self.tree.leave("model.data.index_mapping_dir", f"is {index}", "chartgen keeps indexes beside its results")
        if any(path.startswith("model.data.data_prefix.") for path in self.options):
            self.tree.lack(
                "model.data.data_prefix", "has data sets for each split", "nemo-1 takes one list and a split"
            )
        elif kind == "mock":
            return
        elif kind not in ("mmap", None):
            self.tree.lack("model.data.data_impl", f"is {kind}", "nemo-1 has mmap and mock")
        elif not isinstance(prefixes, list) or not prefixes or "???" in prefixes:
            self.tree.lack("model.data.data_prefix", "names no data set", "give the paths, or data_impl mock")
        elif all(isinstance(each, str) for each in prefixes):
            self.made.prefixes = [(1.0, each) for each in prefixes]
        elif len(prefixes) % 2 or not all(isinstance(each, (int, float)) for each in prefixes[::2]):
            self.tree.lack("model.data.data_prefix", "is not a list of alternating weights and paths", "correct it")
        else:
            pairs = zip(prefixes[::2], prefixes[1::2], strict=True)
            self.made.prefixes = [(float(weight), str(path)) for weight, path in pairs]

    def _tokenizer(self) -> None:
        named = [str(self.options.get(f"model.tokenizer.{key}")) for key in ("type", "library")]
        kind = next((table.TOKENIZERS[name] for name in named if name in table.TOKENIZERS), "")
        if not kind:
            self.tree.lack("model.tokenizer", f"is {' of '.join(named)}", "nemo-1 has " + ", ".join(table.TOKENIZERS))
            return
        self._put("tokenizer.kind", kind)
        for name, standard in table.FILES.items():
            file = self.options.get(f"model.tokenizer.{name}")
            if file and str(file).rpartition("/")[2] != standard and kind != "huggingface":
                self.tree.lack(f"model.tokenizer.{name}", f"is {file}", f"nemo-1 reads {standard}")
        if kind == "gpt2":
            self._put("model.vocabularySize", table.GPT2_VOCABULARY)
        else:
            self.tree.leave(
                "model.tokenizer", "does not contain the size of the vocabulary", "set model.vocabularySize"
            )

    def _profile(self) -> None:
        at = "model.nsys_profile."
        if self.options.get(f"{at}enabled"):
            for name, key in {"start_step": "startStep", "end_step": "endStep", "ranks": "ranks"}.items():
                if (value := self.options.get(at + name)) is not None:
                    self._put(f"profile.{key}", value)
            self._put("profile.enabled", self.options[f"{at}enabled"])

    def _trackers(self) -> None:
        if not self.options.get("exp_manager.create_wandb_logger"):
            return
        at = "exp_manager.wandb_logger_kwargs."
        # Lightning's own name for a project without one.
        self._put("wandb.project", str(self.options.get(f"{at}project") or "lightning_logs"))
        if entity := self.options.get(f"{at}entity"):
            self._put("wandb.entity", str(entity))
        if name := self.options.get(f"{at}name"):
            self.tree.leave(f"{at}name", f"is {name}", "W&B gets the name of chartgen's run")

    def _rest(self) -> None:
        """Pass all other options to the program unchanged."""
        known = options_of(LAUNCHER)
        for path, value in self.options.items():
            if value is None or path in self.owner or table.OWN_OPTIONS.fullmatch(path) or self._unused(path):
                continue
            if path in table.IMPLIED and table.IMPLIED[path](self.preset) == value:
                continue
            if self.tree.is_open(path):
                self.tree.lack(path, f"refers to a key that is not in the file: {value}", "give it a value")
            elif isinstance(value, str) and self.is_own(value):
                self.tree.leave(path, f"is {value}, a path of the recipe's pods", "see storage.*")
            elif known and path.rpartition(".")[2] not in known.ever:
                self.tree.leave(path, f"is {value}, which no NeMo 1 program has", "nothing reads it")
            else:
                self._config(path, value)

    def _unused(self, path: str) -> bool:
        """Report whether an option is unused with the other options: disabled loggers, checkpoints and FSDP."""
        if path.startswith("model.fsdp_"):
            return not self.options.get("model.fsdp")
        logger = table.LOGGERS.fullmatch(path)
        if logger:
            return not self.options.get(f"exp_manager.create_{logger['logger']}_logger")
        own = path.startswith(f"{table.CALLBACK}.")
        return own and (not self.made.checkpoints or path.endswith((".dirpath", ".model_parallel_size")))
