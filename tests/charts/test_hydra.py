"""What nemo-1 passes to the trainer, read by the real Hydra."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from rendered import Objects, arguments, overrides, rendered

NASTY = [
    "plain",
    "two words",
    "it's",
    'say "no"',
    "back\\slash",
    "ends in \\",
    "ends in two \\\\",
    "quote after \\' backslash",
    "a=b,c:[d]{e}",
    "null",
    "true",
    "12",
    "1e5",
    "",
    " leading and trailing ",
    "25:23:00:00",
    "$(whoami) $HOME",
    "tab\tand ünïcode",
]


def parsed(found: Objects) -> dict[str, Any]:
    """Path -> value, as Hydra's own parser reads the arguments."""
    read = OverridesParser.create().parse_overrides(arguments(found)[1:])
    return {override.key_or_group: override.value() for override in read}


def test_every_argument_is_an_override_that_adds_or_sets() -> None:
    found = rendered()
    read = OverridesParser.create().parse_overrides(arguments(found)[1:])
    assert all(override.is_force_add() for override in read)
    assert len({override.key_or_group for override in read}) == len(read)


def test_preset_arrives_as_the_tree_that_the_guide_has() -> None:
    tree: dict[str, Any] = {}
    for path, value in parsed(rendered()).items():
        OmegaConf.update(config := OmegaConf.create(tree), path, value, force_add=True)
        tree = OmegaConf.to_container(config)  # type: ignore[assignment]
    assert tree["model"]["optim"]["sched"] == {
        "name": "CosineAnnealing",
        "warmup_steps": 115,
        "constant_steps": 12500,
        "min_lr": 9.0e-06,
    }
    assert tree["model"]["optim"]["betas"] == [0.9, 0.95]
    assert tree["model"]["nsys_profile"] == {"enabled": False, "start_step": 41, "end_step": 43, "ranks": [0]}
    assert tree["model"]["virtual_pipeline_model_parallel_size"] == 2
    assert tree["model"]["num_moe_experts"] is None
    assert tree["trainer"]["max_time"] == "25:23:00:00"
    assert tree["exp_manager"]["step_timing_kwargs"] == {"sync_cuda": True, "buffer_size": 5}


@pytest.mark.parametrize("text", NASTY)
def test_text_arrives_unchanged(text: str) -> None:
    assert through_helm({"text": text, "inside": [text, {"map": text}]})["text"] == text


@settings(max_examples=15)
@given(
    st.lists(
        st.text(st.characters(min_codepoint=32, max_codepoint=0x24F, exclude_categories=["Cc"]), max_size=30),
        min_size=20,
    )
)
def test_any_text_arrives_unchanged(texts: list[str]) -> None:
    tree = {f"k{i}": text for i, text in enumerate(texts)}
    assert through_helm(tree) == tree


@pytest.mark.parametrize(
    "value",
    [0, 1, -1, 1000000, 146484375, 0.006, 9.0e-05, 1e-10, True, False, None, [], [1, "a", None], [[1, 2], [3]], {}],
)
def test_values_keep_their_type(value: Any) -> None:
    assert through_helm({"value": value})["value"] == value


def test_users_configuration_wins_over_the_launchers_also_with_false_and_zero() -> None:
    native = overrides(
        rendered("launchers.nemo-1.config.model.mcore_gpt=false", "launchers.nemo-1.config.trainer.log_every_n_steps=0")
    )
    assert (native["model.mcore_gpt"], native["trainer.log_every_n_steps"]) == ("false", "0")


def through_helm(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration as `config.mine` and read it back from the arguments."""
    read = parsed(rendered(json=(f"launchers.nemo-1.config.mine={json.dumps(tree)}",)))
    return {path.removeprefix("mine."): value for path, value in read.items() if path.startswith("mine.")}


@pytest.mark.parametrize(
    ("shared", "name"), [("true", "mcore_distributed_optim"), ("false", "fused_adam")], ids=["shared", "not shared"]
)
def test_the_optimizer_of_megatron_core_is_one_that_shares_its_state(shared: str, name: str) -> None:
    sets = (
        "launchers.nemo-1.distributedOptimizer=mcore_distributed_optim",
        f"parallelism.distributedOptimizer={shared}",
    )
    assert parsed(rendered(*sets))["model.optim.name"] == name
