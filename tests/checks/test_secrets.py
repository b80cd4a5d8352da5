"""Keys and passwords in plain text among the values. Those here are made up."""

from __future__ import annotations

import json as jsonlib
from typing import Any

import pytest
from check_helpers import Said, job, judge, published

from chartgen.checks.secrets import SECRETS

HF = "hf_" + "aB3dE5gH7jK9" * 3
AWS = "AKIA" + "ABCDEFGH23456789"
NGC = "nvapi-" + "x1Y2z3-_" * 5
GITHUB = "ghp_" + "a1B2c3D4e5" * 3
HEX = "0123456789abcdef0123456789abcdef01234567"
RANDOM = "s3cr3tS3cr3ts3cr3t"
ADDRESS = "https://ann:hunter2@example.com/data.bin"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIE"
ARGS = "launchers.megatron-lm.args"

# --set-json flag's value as key -> data, the secret, key of the finding, what it is called
WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    ({"env": {"HF_TOKEN": HF}}, HF, "env.HF_TOKEN", "a Hugging Face token"),
    ({"env": {"MY_VARIABLE": f"token={HF}"}}, HF, "env.MY_VARIABLE", "a Hugging Face token"),
    ({"env": {"AWS_ACCESS_KEY_ID": AWS}}, AWS, "env.AWS_ACCESS_KEY_ID", "an AWS access key"),
    ({"env": {"AWS_SECRET_ACCESS_KEY": RANDOM}}, RANDOM, "env.AWS_SECRET_ACCESS_KEY", "a secret"),
    ({"env": {"NGC_API_KEY": NGC}}, NGC, "env.NGC_API_KEY", "an NGC key"),
    ({"env": {"WANDB_API_KEY": HEX}}, HEX, "env.WANDB_API_KEY", "a Weights & Biases key"),
    ({"env": {"GIT": GITHUB}}, GITHUB, "env.GIT", "a GitHub token"),
    ({"env": {"SSH": KEY}}, KEY, "env.SSH", "a private key"),
    (
        {"env": {"HTTPS_PROXY": "http://ann:hunter2@proxy:3128"}},
        "hunter2",
        "env.HTTPS_PROXY",
        "a password in an address",
    ),
    ({"launchers": {"megatron-lm": {"args": ["--wandb-key", HEX]}}}, HEX, ARGS, "a Weights & Biases key"),
    ({"launchers": {"megatron-lm": {"args": [f"--hf-token={HF}"]}}}, HF, ARGS, "a Hugging Face token"),
    ({"launchers": {"megatron-lm": {"args": [f"HF_TOKEN={RANDOM}"]}}}, RANDOM, ARGS, "a secret"),
    (
        {"launchers": {"nemo-1": {"config": {"exp_manager": {"wandb_logger_kwargs": {"key": HEX}}}}}},
        HEX,
        "launchers.nemo-1.config.exp_manager.wandb_logger_kwargs.key",
        "a Weights & Biases key",
    ),
    (
        {"launchers": {"mlperf-llama2-lora": {"config": {"HF_TOKEN": RANDOM}}}},
        RANDOM,
        "launchers.mlperf-llama2-lora.config.HF_TOKEN",
        "a secret",
    ),
    ({"podAnnotations": {"example.com/token": HF}}, HF, "podAnnotations", "a Hugging Face token"),
    ({"podLabels": {"owner": AWS}}, AWS, "podLabels.owner", "an AWS access key"),
    ({"data": {"source": ADDRESS}}, "hunter2", "data.source", "a password in an address"),
    (
        {"extraVolumes": [{"name": "a", "csi": {"attributes": {"key": AWS}}}]},
        AWS,
        "extraVolumes.csi.attributes.key",
        "an AWS",
    ),
]

RIGHT: list[dict[str, Any]] = [
    {},
    {"secretEnv": {"HF_TOKEN": {"secretName": "huggingface", "key": "token"}}},
    {"env": {"HF_TOKEN_PATH": "/var/run/secrets/hf/token", "HF_HOME": "/data/hf", "HF_HUB_ENABLE_HF_TRANSFER": "1"}},
    {"env": {"HF_TOKEN": "/var/run/secrets/huggingface/token1"}},
    {"env": {"TOKENIZERS_PARALLELISM": "false", "MAX_TOKEN": "1000000000000000000", "PAD_TOKEN": "<pad>"}},
    {"env": {"HTTPS_PROXY": "http://proxy.example.com:3128", "URL": "https://$(USER):$(PASSWORD)@example.com/"}},
    {"env": {"GIT_COMMIT": HEX}},
    {"launchers": {"nemo-1": {"config": {"model": {"tokenizer": {"bos_token": "beginning_of_text_1"}}}}}},
    {"launchers": {"megatron-lm": {"args": ["--wandb-notes", "gpt3-175b", "--commit", HEX]}}},
    {"launchers": {"megatron-lm": {"image": f"registry.example.com:5000/own@sha256:{HEX}{HEX[:24]}"}}},
    {"data": {"source": f"hf://datasets/someone/something@{HEX}"}},
    {"podAnnotations": {"example.com/owner": "ann@example.com", "key": "hf_transfer_is_a_library"}},
]


def said(name: str, data: dict[str, Any], *sets: str) -> list[Said]:
    return judge(SECRETS, job(name, *sets, json=[jsonlib.dumps(data)]))


@pytest.mark.parametrize(("data", "secret", "key", "what"), WRONG)
def test_a_secret_is_found_and_not_repeated(data: dict[str, Any], secret: str, key: str, what: str) -> None:
    (found,) = said("gke-a3mega", data)
    assert (found.id, found.severity) == ("no-secrets-in-values", "error")
    assert found.key == key
    assert found.message.startswith(f"contains {what}")
    assert "secretEnv" in found.hint
    assert secret not in "".join(found)


@pytest.mark.parametrize("data", RIGHT)
def test_what_only_looks_like_one_is_left_alone(data: dict[str, Any]) -> None:
    assert said("gke-a3mega", data) == []


def test_data_programs_are_checked_too() -> None:
    (found,) = said("eks-p5", {"env": {"HF_TOKEN": HF}}, "launcher=download", "data.source=hf://org/set")
    assert "HF_TOKEN: {secretName" in found.hint


def test_no_published_configuration_is_refused() -> None:
    assert [(name, preset, each) for name, preset, one in published() for each in judge(SECRETS, one)] == []
