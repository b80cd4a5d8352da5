"""Make data/options.yaml from copies of Megatron-LM, NeMo and Megatron-Bridge: the options of each image's programs.

    make options MEGATRON=... NEMO=... BRIDGE=...

All are git directories. Nothing of them is run: options are read from calls of add_argument, and from the dataclasses
that newer versions make arguments of, as megatron/training/argument_utils.py does.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from itertools import groupby

# Image release -> revision of Megatron-LM. NVIDIA-NeMo/Megatron-Bridge @ 067f987, docs/releases/software-versions.md
# (25.09 to 26.06), and v0.6.0, release notes and 3rdparty/Megatron-LM (26.08); docs.nvidia.com, NeMo Framework 24.09,
# software versions (to 24.09); NVIDIA/NeMo, Dockerfile.ci of v2.1.0 and requirements/manifest.json of v2.2.0, v2.3.0
# and v2.4.0 (between). 26.10 has Bridge 0.7.0 (its release notes), whose source was not at hand.
MEGATRON = {
    "24.05": "core_v0.7.0",
    "24.07": "core_v0.8.0",
    "24.09": "core_v0.9.0",
    "24.12": "core_r0.10.0",
    "25.02": "791b70e031dc6905f77e29c25f1e2ac5b8dd4870",
    "25.04": "3cdfd613e68e8b734a3b9e28de579daaf81f4503",
    "25.07": "03f7793114aa49af8ad7ac5eb70affe56f5f28ea",
    "25.09": "core_v0.14.0",
    "25.11": "core_v0.15.0",
    "26.02": "core_v0.16.0",
    "26.04": "core_v0.17.0",
    "26.06": "core_v0.18.0",
    "26.08": "core_v0.19.0",
}
# The last images that hold NeMo 1's program, by the same sources.
NEMO = {
    "24.05": "r2.0.0rc0",
    "24.07": "r2.0.0rc1",
    "24.09": "v2.0.0",
    "24.12": "v2.1.0",
    "25.02": "v2.2.0",
    "25.04": "v2.3.0",
    "25.07": "v2.4.0",
}
# Megatron-Bridge in these images, and the Megatron Core with it.
BRIDGE = {"26.02": "v0.3.0", "26.04": "v0.4.0", "26.06": "v0.5.0", "26.08": "v0.6.0"}
CORE = {"26.02": "core_v0.16.0", "26.04": "core_v0.17.0", "26.06": "core_v0.18.0", "26.08": "core_v0.19.0"}
ARGUMENTS = ("megatron/training/arguments.py", "megatron/post_training/arguments.py")
CLASSES = ("megatron/core", "megatron/training")
# What reads a NeMo 1 configuration.
READERS = (
    "nemo/collections/nlp/models/language_modeling/megatron*",
    "nemo/collections/nlp/models/nlp_model.py",
    "nemo/collections/nlp/modules/common/megatron",
    "nemo/collections/nlp/modules/common/tokenizer_utils.py",
    "nemo/collections/nlp/data/language_modeling/megatron",
    "nemo/collections/nlp/parts",
    "nemo/core/classes/modelPT.py",
    "nemo/core/optim",
    "nemo/utils/exp_manager.py",
    "nemo/utils/callbacks",
)
CONFIG = "examples/nlp/language_modeling/conf/megatron_gpt_config.yaml"
# `trainer.*` goes to pytorch_lightning.Trainer as it is (lightning 2.4, which NeMo v2.4.0 pins), and `model.optim.*` to
# apex's distributed optimizer (NVIDIA/apex, apex/contrib/optimizers/distributed_fused_adam.py).
ELSEWHERE = """
accelerator strategy devices num_nodes precision logger callbacks fast_dev_run max_epochs min_epochs max_steps
min_steps max_time limit_train_batches limit_val_batches limit_test_batches limit_predict_batches overfit_batches
val_check_interval check_val_every_n_epoch num_sanity_val_steps log_every_n_steps enable_checkpointing
enable_progress_bar enable_model_summary accumulate_grad_batches gradient_clip_val gradient_clip_algorithm
deterministic benchmark inference_mode use_distributed_sampler profiler detect_anomaly barebones plugins
sync_batchnorm reload_dataloaders_every_n_epochs default_root_dir bias_correction betas eps adam_w_mode weight_decay
amsgrad dtype grad_sync_dtype param_sync_dtype average_grad_sync overlap_grad_sync overlap_param_sync bucket_cap_mb
pipeline_size contiguous_param_buffer contiguous_grad_buffer store_params store_param_remainders with_scaled_states
nccl_ub
"""
_WORD = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)


def git(repository: str, *words: str) -> str:
    done = subprocess.run(["git", f"--git-dir={repository}", *words], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode in (0, 1) else ""


def files(repository: str, revision: str, *places: str) -> Iterator[tuple[str, ast.Module]]:
    """Python files below some places, parsed."""
    names = git(repository, "ls-tree", "-r", "--name-only", revision).splitlines()
    patterns = [re.compile(re.escape(place).replace(r"\*", ".*")) for place in places]
    for name in names:
        if name.endswith(".py") and any(pattern.match(name) for pattern in patterns):
            yield name, ast.parse(git(repository, "show", f"{revision}:{name}"))


@cache
def classes(repository: str, revision: str) -> dict[str, ast.ClassDef]:
    found: dict[str, ast.ClassDef] = {}
    for name, tree in files(repository, revision, *CLASSES):
        if "config" in name or name.endswith(("arguments.py", "training/models/gpt.py")):
            found |= {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    return found


def literal(node: ast.AST | None, scope: dict[str, list[str]]) -> list[str]:
    if isinstance(node, ast.Name):
        return scope.get(node.id, [])
    return [str(each.value) for each in ast.walk(node) if isinstance(each, ast.Constant)] if node else []


def of_field(field: ast.AnnAssign) -> list[str]:
    """The arguments that argument_utils.py makes of one field."""
    assert isinstance(field.target, ast.Name)
    call = field.value if isinstance(field.value, ast.Call) else None
    told = {word.arg: word.value for word in call.keywords} if call else {}
    if isinstance(told.get("init"), ast.Constant) and not told["init"].value:  # type: ignore[attr-defined]
        return []
    for node in ast.walk(told.get("metadata") or ast.Constant(0)):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "arg_names":
                    return [name.removeprefix("--") for name in literal(value, {})]
    plain = field.target.id.replace("_", "-")
    default = told.get("default") if call else field.value
    kind = ast.unparse(field.annotation)
    switch = kind in ("bool", "Optional[bool]", "bool | None")
    off = isinstance(default, ast.Constant) and default.value is False
    return [f"no-{plain}", f"disable-{plain}"] if switch and not off else [plain]


def of_class(name: str, known: dict[str, ast.ClassDef], exclude: list[str]) -> set[str]:
    node = known.get(name)
    if node is None:
        return set()
    found = set().union(*(of_class(base.id, known, exclude) for base in node.bases if isinstance(base, ast.Name)))
    for field in node.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id not in exclude:
            found |= set(of_field(field))
    return found


def megatron(repository: str, revision: str) -> set[str]:
    """The options of pretrain_gpt.py, without their dashes."""
    found: set[str] = set()
    for _, tree in files(repository, revision, *ARGUMENTS):
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            scope: dict[str, list[str]] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    scope[node.targets[0].id] = literal(node.value, {})
            for node in (each for each in ast.walk(function) if isinstance(each, ast.Call)):
                named = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if named == "add_argument":
                    told = [word.value for word in node.args if isinstance(word, ast.Constant)]
                    found |= {str(word)[2:] for word in told if str(word).startswith("--")}
                elif named == "ArgumentGroupFactory" and node.args:
                    exclude = next((word.value for word in node.keywords if word.arg == "exclude"), None)
                    source = ast.unparse(node.args[0])
                    found |= of_class(source, classes(repository, revision), literal(exclude, scope))
    return found


def fields(node: ast.ClassDef) -> set[str]:
    """The names of a dataclass's fields."""
    declared = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
    return {target.id for target in declared if isinstance(target, ast.Name)}


def nemo(repository: str, revision: str, cores: tuple[str, str]) -> set[str]:
    """Names that NeMo 1 reads from a configuration, wherever in it; and fields of Megatron's own configuration."""
    config = git(repository, "show", f"{revision}:{CONFIG}")
    found = {*ELSEWHERE.split(), *re.findall(r"^\s*#?\s*([a-z_][a-zA-Z0-9_]*):", config, re.MULTILINE)}
    for _, tree in files(repository, revision, *READERS):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("get", "pop", "has"):
                found |= {str(each.value) for each in node.args[:1] if isinstance(each, ast.Constant)}
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                found.add(str(node.slice.value))
            elif isinstance(node, ast.Attribute) and "cfg" in ast.unparse(node.value).lower():
                found.add(node.attr)
            elif isinstance(node, ast.ClassDef):
                found |= fields(node)
            elif isinstance(node, ast.FunctionDef) and node.name == "__init__":
                found |= {each.arg for each in (*node.args.args, *node.args.kwonlyargs)}
    known = classes(*cores)
    for name in ("TransformerConfig", "ModelParallelConfig", "DistributedDataParallelConfig", "OptimizerConfig"):
        found |= fields(known[name]) if name in known else set()
    return {name for name in found if _WORD.fullmatch(name) and len(name) > 1}


def bridge(repository: str, revision: str, cores: tuple[str, str]) -> set[str]:
    """Names of Megatron-Bridge's configuration, wherever in it: the fields of its classes and of Megatron Core's."""
    trees = [tree for _, tree in files(repository, revision, "src/megatron/bridge/")]
    trees += [tree for _, tree in files(*cores, *CLASSES)]
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {name for node in nodes for name in fields(node) if _WORD.fullmatch(name) and name[0].islower()}


def spans(releases: dict[str, set[str]]) -> Iterator[tuple[str, str, list[str]]]:
    """First release with an option, first without it again, and all options that live as long."""
    order = sorted(releases)
    lives = []
    for name in set().union(*releases.values()):
        since = ""
        for release in [*order, ""]:
            there = bool(release) and name in releases[release]
            if there and not since:
                since = release
            elif since and not there:
                lives.append((since, release, name))
                since = ""
    for (since, below), group in groupby(sorted(lives), key=lambda life: life[:2]):
        yield since, below, [name for *_, name in group]


def told(program: str, revisions: dict[str, str], releases: dict[str, set[str]]) -> Iterator[str]:
    """The part of the file about one program."""
    yield f"{program}:\n  releases:"
    yield from (f'    "{release}": {revision[:12]}' for release, revision in revisions.items())
    yield "  options:"
    for since, below, names in spans(releases):
        yield f'    - from: "{since}"'
        if below:
            yield f'      below: "{below}"'
        yield "      names: >-"
        indent = " " * 8
        yield textwrap.fill(
            " ".join(names), 118, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        )


HEAD = """# The options that programs take, by the release of nvidia/nemo with them; `make options` makes this.
#
# releases  release of the image -> revision of the program's repository that was read; others are not known
# options   names, from one release on and below another
sources:
  - NVIDIA/Megatron-LM, megatron/training/arguments.py, megatron/post_training/arguments.py, and the dataclasses that
    megatron/training/argument_utils.py makes options of
  - NVIDIA/NeMo, examples/nlp/language_modeling/conf/megatron_gpt_config.yaml and what reads it in nemo/; NVIDIA/apex,
    apex/contrib/optimizers/distributed_fused_adam.py
  - NVIDIA-NeMo/Megatron-Bridge @ 067f987, docs/releases/software-versions.md; NVIDIA/NeMo v2.1.0, Dockerfile.ci, and
    v2.2.0, v2.3.0 and v2.4.0, requirements/manifest.json (the content of each release)
  - NVIDIA-NeMo/Megatron-Bridge, the dataclasses below src/megatron/bridge, and those of the Megatron Core with it
"""

if __name__ == "__main__":
    one, other, third = sys.argv[1:]
    lm = {release: megatron(one, revision) for release, revision in MEGATRON.items()}
    hydra = {release: nemo(other, revision, (one, MEGATRON[release])) for release, revision in NEMO.items()}
    trees = {release: bridge(third, revision, (one, CORE[release])) for release, revision in BRIDGE.items()}
    parts = (*told("megatron-lm", MEGATRON, lm), *told("nemo-1", NEMO, hydra), *told("megatron-bridge", BRIDGE, trees))
    print(HEAD, *parts, sep="\n")  # noqa: T201
