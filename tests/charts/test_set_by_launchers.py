"""What a launcher sets besides the values is what `sets` of its launcher.yaml lists, in the rendered runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import dropwhile
from typing import Any

import pytest
from pod_runner import LORA, LORA_IMAGE, options, run
from rendered import arguments, env, one, overrides

from chartgen.composer.launcher import Launcher, load_launcher
from chartgen.composer.library import open_library
from chartgen.helm.yaml import load

SAVES = "checkpoint.enabled=true,storage.outputs.from=pvc://results,storage.data.from=pvc://data"
FULL = (
    f"nodes=2,parallelism.tensor=2,parallelism.sequence=true,parallelism.expert=2,{SAVES},optimizer.warmupSteps=20,"
    "model.hiddenSize=1024,model.attentionHeads=16,model.family=mixtral,model.experts=8,data.prefixes={a,b},"
    "tokenizer.kind=huggingface,tokenizer.path=/data/t,recompute=full"
)
TITAN = "launchers.torchtitan"
TITANS = (
    f"{TITAN}.image=r.example/titan:1,{TITAN}.recipe=llama3_8b,{TITAN}.datasetPath=/data/c4,{TITAN}.files.a\\.py=a",
    f"tokenizer.kind=huggingface,tokenizer.path=/data/t,{SAVES},nodes=2,parallelism.pipeline=2,batch.global=16",
    "evaluation.batches=1",
)
AUTO = "launchers.automodel"
AUTOS = (f"{AUTO}.model=/data/m,evaluation.batches=1",)
# the defaults on mock data, and all that adds options
RUNS = dict.fromkeys(("megatron-lm", "nemo-1"), ((), (FULL,))) | {
    "megatron-bridge": ((), (FULL, "mlflow.experiment=gpt,mlflow.uri=http://mlflow:5000")),
    "torchtitan": (TITANS, (*TITANS, f"{TITAN}.version=0.2,{TITAN}.recipe=8B")),
    "automodel": (
        (*AUTOS, "precision=fp32"),
        (
            *AUTOS,
            SAVES,
            "data.prefixes={a,b},tokenizer.kind=huggingface,tokenizer.path=/data/t,optimizer.warmupSteps=20",
        ),
        (*AUTOS, f"checkpoint.from=/data/m,{AUTO}.loraRank=8"),
    ),
}
PLACES = {
    r"/outputs/ml/my-run/checkpoints": "<release directory>/checkpoints",
    r"/outputs/ml/my-run/[0-9a-f]{8}": "<run directory>",
}


def launcher(name: str) -> Launcher:
    return load_launcher(open_library().find("launcher", name))


def listed(name: str) -> dict[str, str]:
    """Every option and variable that a launcher lists, with its text."""
    return dict(pair.split("=", 1) for pairs in launcher(name).settings.values() for pair in pairs)


def given(name: str, sets: Iterable[str]) -> dict[str, str]:
    """The options of a run as text, with its places by their names."""
    found = run(f"launcher={name}", *sets)
    if name == "automodel":
        texts = dict(leaves(load(one("ConfigMap", found)["data"]["automodel.yaml"], name).data))
    elif name in ("megatron-lm", "torchtitan"):
        words = dropwhile(lambda word: not word.startswith("--"), arguments(found))
        texts = {key: " ".join(text) or "true" for key, text in options(list(words)).items()}
        # torchtitan's switches
        off = {key: re.sub(r"\bno_(\w+)$", r"\1", key) for key in texts}
        texts = {off[key]: "false" if off[key] != key else text for key, text in texts.items()}
    else:
        texts = {key: text.strip("'") for key, text in overrides(found).items() if text}
    for place, called in PLACES.items():
        texts = {key: re.sub(place, called, text) for key, text in texts.items()}
    return texts


def leaves(tree: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The options of nested settings, with their text."""
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def differing(wanted: dict[str, str], found: dict[str, str]) -> dict[str, str]:
    """What has another text than listed; a listed text with a space describes values that differ between runs."""
    described = {key for key, text in wanted.items() if " " in text and not text.startswith("<")}
    return {key: text for key, text in found.items() if key not in described and wanted.get(key) != text}


@pytest.mark.parametrize("name", RUNS)
def test_options_that_no_value_owns_are_listed(name: str) -> None:
    # torchtitan's --module and --config are values of the launcher
    owned = (*(native for natives in launcher(name).owns.values() for native in natives), "module", "config")
    wanted = {key: text for key, text in listed(name).items() if not key.isupper()}
    seen: set[str] = set()
    for sets in RUNS[name]:
        found = given(name, sets)
        beyond = {
            key: text for key, text in found.items() if not f"{key}.".startswith(tuple(f"{each}." for each in owned))
        }
        assert differing(wanted, beyond) == {}
        seen |= set(found)
    assert set(wanted) - seen == set()


@pytest.mark.parametrize(
    ("name", "usual"), [("megatron-bridge", ""), ("torchtitan", ""), ("automodel", ""), ("nemo-1", "2")]
)
def test_the_number_of_kept_checkpoints_reaches_each_program_that_has_one(name: str, usual: str) -> None:
    image = (f"{AUTO}.image=example.com/automodel:0.6",) if name == "automodel" else ()
    (native,) = launcher(name).owns["checkpoint.keep"]
    sets = (*RUNS[name][0], SAVES, *image)
    assert given(name, sets).get(native, "") == usual
    assert given(name, (*sets, "checkpoint.keep=3"))[native] == "3"


@pytest.mark.parametrize("name", RUNS)
def test_variables_are_listed(name: str) -> None:
    wanted = {key: text for key, text in listed(name).items() if key.isupper()}
    own = re.findall(r"^- \{?name: (\w+)", launcher(name).parts["env.yaml"], re.MULTILINE)
    found = env(run(f"launcher={name}", *RUNS[name][1]))
    assert set(own) == set(wanted)
    assert differing(wanted, {key: found[key] for key in own}) == {}


def test_variables_of_the_benchmark_are_listed() -> None:
    name = "mlperf-llama2-lora"
    keys = re.findall(r"^(\w+):", launcher(name).parts["config.yaml"], re.MULTILINE)
    owned = {native for natives in launcher(name).owns.values() for native in natives}
    found = env(run(LORA_IMAGE, files=LORA))
    assert differing(listed(name), {key: found[key] for key in keys if key in found and key not in owned}) == {}
    assert set(listed(name)) <= set(keys)


@pytest.mark.parametrize(
    ("name", "of_values"), [("megatron-preprocess", {"input", "workers"}), ("pile-dataprep", set())]
)
def test_options_of_data_programs_are_listed(name: str, of_values: set[str]) -> None:
    source = "https://example.com/" if name == "pile-dataprep" else "https://example.com/a.jsonl"
    shards = int(name == "pile-dataprep")
    data = f"tokenizer.kind=huggingface,tokenizer.path=/data/t,data.name=a,data.shards={shards},data.source={source}"
    found = run(f"launcher={name}", SAVES, data)
    words = options(list(dropwhile(lambda word: not word.startswith("--"), arguments(found))))
    texts = {key: " ".join(text) or "true" for key, text in words.items()}
    beyond = {key: text for key, text in texts.items() if key not in of_values and not key.startswith("tokenizer-")}
    beyond |= {key: env(found)[key] for key in listed(name) if key.isupper()}
    assert beyond == listed(name)
