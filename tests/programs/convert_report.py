"""Convert every recipe of a fetched copy of AI-Hypercomputer/gpu-recipes, and compare what Helm renders of both.

    make convert-report COPY=... [NEMO=...]

COPY is a folder with training/ and src/. Each values file is converted by the command line, with what its README gives
Helm. What converts is rendered twice, the recipe by its own chart, chartgen's by its own, and compared without any of
the conversion's code: OmegaConf reads the recipe's configuration, Hydra's parser reads chartgen's arguments. With
NEMO_GIT, a git directory of NVIDIA/NeMo, options that one side leaves open count as the program's own configuration
has them. Nothing of the copy is run.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf
from userlib import chartgen

from chartgen.helm.manifests import objects
from chartgen.helm.program import find_program

CHARTGEN = (sys.executable, "-m", "chartgen")
# What READMEs leave to their readers becomes its own name, in small letters.
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
# Options that differ on purpose, and why; all others must be the same.
ON_PURPOSE = {
    r"run\..*|name|defaults": "not an option of the program",
    r"trainer\.(logger|enable_checkpointing|num_nodes)": "the program's experiment manager and the pods decide",
    r"exp_manager\.(name|version|exp_dir|explicit_log_dir)": "results are named after the run",
    r"exp_manager\.create_(tensorboard|dllogger)_logger|exp_manager\.dllogger_logger_kwargs\..*": "logs, not training",
    r"exp_manager\.\w+_logger_kwargs\..*": "read by a logger that is off",
    r"exp_manager\.checkpoint_callback_params\.(dirpath|model_parallel_size)": "where checkpoints are",
    r"model\.tokenizer\.(vocab_file|merge_file|model)": "compared as the folder of the tokenizer",
    r"model\.data\.(data_prefix|index_mapping_dir|data_cache_(gcs|local)_dir)": "compared as the data sets",
    r"model\.mcore_customization_config\..*": "no NeMo 1 program reads it for GPT",
    r"model\.fsdp_.*": "read by FSDP, which is off",
}
# What the program takes where its configuration says nothing (NVIDIA/NeMo r2.0.0rc1, megatron_gpt_model.py).
SILENT = {
    "model.context_parallel_size": 1,
    "model.expert_model_parallel_size": 1,
    "model.sequence_parallel": False,
    "model.num_moe_experts": None,
    "model.activation": "gelu",
    "model.bias": True,
    "model.normalization": "layernorm",
    "model.position_embedding_type": "learned_absolute",
    "model.share_embeddings_and_output_weights": True,
    # nemo/utils/exp_manager.py, ExpManagerConfig
    "exp_manager.create_wandb_logger": False,
    # Lightning: without a limit where max_steps has one
    "trainer.max_epochs": -1,
    "model.rotary_base": 10000,
    "model.fp8": False,
    "model.optim.sched.constant_steps": 0,
}
COMPARED = (
    *("model.num_layers", "model.hidden_size", "model.ffn_hidden_size", "model.num_attention_heads"),
    "model.num_query_groups",
    *("model.encoder_seq_length", "model.data.seq_length", "model.max_position_embeddings", "model.rotary_base"),
    *("model.num_moe_experts", "model.moe_router_topk", "model.make_vocab_size_divisible_by", "model.tokenizer.type"),
    *("model.tensor_model_parallel_size", "model.pipeline_model_parallel_size", "model.context_parallel_size"),
    *("model.expert_model_parallel_size", "model.virtual_pipeline_model_parallel_size", "model.sequence_parallel"),
    *("model.micro_batch_size", "model.global_batch_size", "trainer.max_steps", "trainer.precision", "model.fp8"),
    *("model.fp8_hybrid", "model.optim.name", "model.optim.lr", "model.optim.weight_decay", "model.optim.betas"),
    *("model.optim.sched.name", "model.optim.sched.warmup_steps", "model.optim.sched.min_lr"),
    *("model.optim.sched.constant_steps", "trainer.gradient_clip_val", "trainer.limit_val_batches"),
    *("model.data.data_impl", "model.data.splits_string", "exp_manager.create_checkpoint_callback"),
    *("exp_manager.resume_if_exists", "exp_manager.checkpoint_callback_params.every_n_train_steps"),
    *("exp_manager.checkpoint_callback_params.async_save", "restore_from_path"),
)


@dataclass
class Rendered:
    """What one side would run.

    Args:
        facts: Machines, GPUs, image, network, variables, data sets and tokenizer.
        options: The program's options by path.
        given: Paths of the options that the command line gives; the program's own configuration has the others.
    """

    facts: dict[str, Any]
    options: dict[str, Any]
    given: frozenset[str] = frozenset()


@dataclass
class Row:
    """One values file: what it is, and what became of it."""

    recipe: str
    machine: str
    program: str
    result: str
    differences: list[str] = field(default_factory=list)


def differences(theirs: Rendered, ours: Rendered) -> list[str]:
    """Return what is not the same, one line each."""
    found = [
        f"{key}: {value!r}, became {ours.facts.get(key)!r}"
        for key, value in theirs.facts.items()
        if value != ours.facts.get(key)
    ]
    for path in sorted({*COMPARED, *theirs.options, *ours.given}):
        if any(re.fullmatch(pattern, path) for pattern in ON_PURPOSE):
            continue
        here, there = (_option(side.options, path) for side in (theirs, ours))
        if here != there and not _is_idle(path, theirs.options):
            found.append(f"{path}: {here!r}, became {there!r}")
    return found


def _option(options: dict[str, Any], path: str) -> Any:
    """Return an option as a number or text that compares; false and off, 0 and 0.0 are the same."""
    value = options.get(path)
    if value is None:
        value = options.get("model.num_attention_heads") if path == "model.num_query_groups" else SILENT.get(path)
    if isinstance(value, float) and value == int(value):
        return int(value)
    return value


def _is_idle(path: str, options: dict[str, Any]) -> bool:
    """Report whether nothing reads an option: validation, checkpoints, profiles that are off."""
    name = path.rpartition(".")[2]
    validation = not options.get("trainer.limit_val_batches") and name == "val_check_interval"
    saves = options.get("exp_manager.create_checkpoint_callback")
    checkpoint = not saves and ("checkpoint_callback_params" in path or name == "resume_ignore_no_checkpoint")
    profile = ".nsys_profile." in path and not options.get("model.nsys_profile.enabled")
    return validation or checkpoint or profile


def leaves(node: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Walk a configuration: path -> value."""
    for key, value in node.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


@dataclass
class Command:
    """What a README gives Helm for a values file.

    Args:
        chart: The recipe's chart; None where the README names none that is there.
        sets: Arguments of `--set`.
        files: Arguments of `--set-file`, by their key.
    """

    chart: Path | None = None
    sets: list[str] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)

    @property
    def config(self) -> Path | None:
        """The NeMo configuration; the programs of NeMo 2 are no YAML."""
        found = self.files.get("workload_config") or self.files.get("nemo_config")
        return found if found and found.suffix == ".yaml" and found.is_file() else None

    @property
    def script(self) -> Path | None:
        """The script that starts the program."""
        found = self.files.get("workload_launcher")
        return found if found and found.is_file() else None


def command_of(values: Path, copy: Path) -> Command:
    """Read the first `helm install` of a recipe's README that takes its values file."""
    made = Command(values.parent if (values.parent / "Chart.yaml").is_file() else None)
    readme = next(
        (each / "README.md" for each in (values.parent, values.parent.parent) if (each / "README.md").is_file()), None
    )
    text = re.sub(r"\\\s*\n", " ", readme.read_text()) if readme else ""
    for line in re.findall(r"^\s*helm install .*$", text, re.MULTILINE):
        try:
            words = shlex.split(_named(line, copy, values.parent))
        except ValueError:
            continue
        if values not in [(values.parent / word).resolve() for word in words]:
            continue
        pairs = list(pairwise(words))
        made.sets = [value for flag, value in pairs if flag == "--set"]
        named = dict(value.split("=", 1) for flag, value in pairs if flag == "--set-file" and "=" in value)
        made.files = {key: values.parent / path for key, path in named.items()}
        chart = values.parent / words[-1]
        made.chart = chart if (chart / "Chart.yaml").is_file() else made.chart
        return made
    return made


def _named(text: str, copy: Path, folder: Path) -> str:
    places = {"REPO_ROOT": str(copy.resolve()), "RECIPE_ROOT": str(folder.resolve())}
    return _VARIABLE.sub(lambda match: places.get(match[1], match[1].lower().replace("_", "-")), text)


def rendered_theirs(values: Path, command: Command) -> Rendered:
    """Return what the recipe's own chart and configuration would run; its scripts are read, not run."""
    arguments = ["template", "recipe", str(command.chart), "--values", str(values)]
    arguments += [word for text in command.sets for word in ("--set", text)]
    arguments += [word for key, path in command.files.items() for word in ("--set-file", f"{key}={path}")]
    found = objects(_run([str(find_program()), *arguments]))
    spec = _job(found)
    pod, container = spec["template"]["spec"], _program(spec)
    env = _env(container)
    config = next(
        text for each in found if each["kind"] == "ConfigMap" for key, text in each["data"].items() if key in _CONFIGS
    )
    OmegaConf.register_new_resolver("multiply", lambda *numbers: _product(numbers), replace=True)
    tree: Any = OmegaConf.create(config)
    shell = re.sub(r"\\\s*\n", " ", container["command"][-1])
    launched = re.search(r"launch-workload\.sh(.*)", shell)
    for word in (*(launched[1].split() if launched else ()), *env.get("NEMO_CONFIG_OVERRIDES", "").split()):
        if "=" in word:
            path, _, value = word.lstrip("+").partition("=")
            OmegaConf.update(tree, path, OmegaConf.create(f"it: {value}").it, force_add=True)
    options = dict(leaves(OmegaConf.to_container(tree, resolve=True)))
    prefixes = options.get("model.data.data_prefix") or []
    download = {container["name"]: _env(container) for container in pod.get("initContainers") or ()}.get(
        "training-data-downloader", {}
    )
    volumes = _Volumes(pod, container, {download["GCS_DATA_TARGET"]: download["GCS_DATA_SOURCE"]} if download else {})
    return Rendered(
        {
            **_pod_facts(spec, container),
            "program": env.get("NEMO_LAUNCH_SCRIPT") or env.get("TORCH_DISTRIBUTED_TARGET"),
            "data sets": _data_sets(prefixes, volumes),
            "tokenizer": volumes.source(env.get("TOKENIZER_PATH", "")),
            "checkpoints": volumes.source(env["CHECKPOINTS_ROOT_DIR"]).partition("/")[0]
            if env.get("CHECKPOINTS_ROOT_DIR") and options.get("exp_manager.create_checkpoint_callback")
            else None,
            "variables": {
                name: value
                for name, value in env.items()
                if name.startswith(("NCCL_DEBUG", "NCCL_ALGO", "NCCL_MIN", "NVTE_"))
            },
        },
        options,
    )


def rendered_ours(files: list[Path], target: str, base: dict[str, Any]) -> Rendered:
    """Return what chartgen's chart would run; `base` is what the program's own configuration says."""
    arguments = [word for path in files for word in ("-f", str(path))]
    found = objects(_run([*CHARTGEN, "render", target, "recipe", *arguments]))
    spec = _job(found)
    pod, container = spec["template"]["spec"], _program(spec)
    program, *words = [text.replace("$$", "$") for text in container["args"]]
    read = OverridesParser.create().parse_overrides([word for word in words if word.startswith("++")])
    given = {each.key_or_group: each.value() for each in read}
    options = base | given
    volumes, env = _Volumes(pod, container, {}), _env(container)
    saves = options.get("exp_manager.create_checkpoint_callback")
    files_of = str(options.get("model.tokenizer.vocab_file") or options.get("model.tokenizer.model") or "")
    facts = {
        **_pod_facts(spec, container),
        "program": program,
        "data sets": _data_sets(options.get("model.data.data_prefix") or [], volumes),
        "tokenizer": volumes.source(files_of.rpartition("/")[0]),
        "checkpoints": volumes.source("/outputs").partition("/")[0] if saves else None,
        "variables": env,
    }
    return Rendered(facts, options, frozenset(given))


_CONFIGS = ("workload-configuration", "nemo-configuration.yaml")


class _Volumes:
    """Where paths of a pod really are: bucket or claim, and the path below it."""

    def __init__(self, pod: dict[str, Any], container: dict[str, Any], copied: dict[str, str]) -> None:
        named = {each["name"]: each for each in pod.get("volumes", ())}
        self.mounts = {each["mountPath"]: _store(named[each["name"]]) for each in container["volumeMounts"]}
        self.copied = copied

    def source(self, path: str) -> str:
        for target, source in self.copied.items():
            if path.startswith(target):
                return _tidy(source + "/" + path[len(target) :])
        # copied to the machine's own disks first, from the same path of the storage
        path = path.removeprefix("/scratch") if path.startswith("/scratch/data/") else path
        holding = [mount for mount in self.mounts if path == mount or path.startswith(f"{mount}/")]
        mount = max(holding, key=len, default="")
        return _tidy(f"{self.mounts[mount]}/{path[len(mount) :]}") if mount else path


def _tidy(path: str) -> str:
    return re.sub(r"(?<!:)/+", "/", path).removeprefix("gs://").rstrip("/")


def _store(volume: dict[str, Any]) -> str:
    if "csi" in volume:
        attributes = volume["csi"].get("volumeAttributes", {})
        folder = re.search(r"only-dir=([^,]+)", attributes.get("mountOptions", ""))
        return str(attributes.get("bucketName")) + (f"/{folder[1]}" if folder else "")
    return str(volume.get("persistentVolumeClaim", {}).get("claimName") or volume["name"])


def _pod_facts(spec: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
    gpus = int(container["resources"]["limits"]["nvidia.com/gpu"])
    network = bool(spec["template"]["spec"].get("hostNetwork"))
    return {"image": container["image"], "machines": spec["parallelism"], "GPUs": gpus, "host network": network}


def _data_sets(prefixes: list[Any], volumes: _Volumes) -> list[Any]:
    return [volumes.source(each) if isinstance(each, str) else float(each) for each in prefixes]


def _job(found: list[dict[str, Any]]) -> dict[str, Any]:
    for each in found:
        if each["kind"] == "JobSet":
            return dict(each["spec"]["replicatedJobs"][0]["template"]["spec"])
    return next(dict(each["spec"]) for each in found if each["kind"] == "Job")


def _program(spec: dict[str, Any]) -> dict[str, Any]:
    return next(
        dict(each) for each in spec["template"]["spec"]["containers"] if each.get("resources", {}).get("limits")
    )


def _env(container: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: str(each["value"]) for each in container.get("env", ()) if "value" in each}


def _product(numbers: tuple[Any, ...]) -> Any:
    made = 1
    for number in numbers:
        made *= number
    return made


def _run(command: list[str]) -> str:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise RuntimeError(ran.stderr.strip())
    return ran.stdout


def own_configuration(nemo: Path | None, image: str) -> dict[str, Any]:
    """Return the configuration that an image's program has by itself; nothing without a copy of NeMo."""
    from make_options import NEMO

    tag = re.search(r"(\d\d\.\d\d)[^/]*$", image)
    revision = NEMO.get(tag[1]) if tag else None
    if not nemo or not revision:
        return {}
    path = f"refs/tags/{revision}:examples/nlp/language_modeling/conf/megatron_gpt_config.yaml"
    try:
        text = _run(["git", f"--git-dir={nemo}", "show", path])
    except RuntimeError:
        text = _run(["git", f"--git-dir={nemo}", "show", path.removeprefix("refs/tags/")])
    return dict(leaves(OmegaConf.to_container(OmegaConf.create(text))))


def report(values: Path, copy: Path, nemo: Path | None) -> Row:
    """Convert one values file, and compare what converts."""
    command = command_of(values, copy)
    name = str(values.relative_to(copy))
    machine = values.relative_to(copy).parts[1]
    with tempfile.TemporaryDirectory() as folder:
        words = ["convert", str(values), "--from", "gpu-recipes", "-d", folder, "--name", "it"]
        words += [word for text in command.sets for word in ("--set", text)]
        words += ["--config", str(command.config)] if command.config else []
        words += ["--launcher", str(command.script)] if command.script else []
        ran = chartgen(*words)
        files = [Path(line) for line in ran.stdout.splitlines()]
        errors = [line.removeprefix("error: ") for line in ran.stderr.splitlines() if line.startswith("error: ")]
        program = next((match[1] for line in errors if (match := re.search(r" runs ([^\s,]+( \([^)]*\))?)", line))), "")
        if not files:
            return Row(name, machine, program or "not told", f"refused: {' | '.join(map(_short, errors))}")
        target = files[1].parent.name
        if errors:
            return Row(name, machine, "nemo-1", f"converted, check refuses: {' | '.join(map(_short, errors))}")
        try:
            theirs = rendered_theirs(values, command)
        except RuntimeError as error:
            return Row(name, machine, "nemo-1", f"not compared, its own chart fails: {str(error).splitlines()[-1]}")
        base = own_configuration(nemo, str(theirs.facts["image"]))
        ours = rendered_ours([*files, *_site(Path(folder), files)], target, base)
    ours.facts["variables"] = {key: ours.facts["variables"].get(key) for key in theirs.facts["variables"]}
    found = differences(theirs, ours)
    return Row(name, machine, "nemo-1", "equivalent" if not found else "NOT equivalent", found)


def _site(folder: Path, files: list[Path]) -> list[Path]:
    """Write what a site has to name: the queue, where a recipe's README sets none."""
    path = folder / "queue.yaml"
    named = any("queue:" in file.read_text().splitlines() for file in files)
    path.write_text("{}\n" if named else "queue: {name: of-the-site}\n")
    return [path]


def _short(text: str) -> str:
    """Return what is wrong, without its place and hint."""
    return re.sub(r"^\S+: ", "", text).split("; ")[0]


def main(copy: Path, nemo: Path | None) -> int:
    """Print the table; return 1 when something converted is not what the recipe is."""
    paths = sorted(path for part in ("training", "RL") for path in (copy / part).rglob("values*.yaml"))
    rows = [report(path, copy.resolve(), nemo) for path in (each.resolve() for each in paths)]
    lines = ["| recipe | machine | program | result |", "|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row.recipe} | {row.machine} | {row.program} | {row.result.replace('|', ';')} |")
        lines += [f"| | | | {line} |" for line in row.differences]
    counts = Counter((row.machine, row.result.partition(":")[0]) for row in rows)
    lines += ["", *(f"{machine:10} {result:28} {count}" for (machine, result), count in sorted(counts.items()))]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(any(row.differences or row.result.startswith("converted") for row in rows))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 and sys.argv[2] else None))
