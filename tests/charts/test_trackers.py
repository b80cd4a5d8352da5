"""`wandb` and `mlflow`: a run is logged under its own name, and what it logs in with comes from Secrets.

With `CHARTGEN_PROGRAMS`, a folder that `make parsers` fills, the wandb package itself reads the variables.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pod_runner import LORA, LORA_IMAGE, lab, run
from pod_runner import options as options_of
from rendered import arguments, container, env, one, overrides

from chartgen.checks import check
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load

PROGRAMS = Path(os.environ.get("CHARTGEN_PROGRAMS") or "/none")
KEY = "secretEnv.WANDB_API_KEY.secretName=wandb,secretEnv.WANDB_API_KEY.key=api-key"
WANDB = f"wandb.project=my gpt,wandb.entity=team,wandb.baseUrl=https://wandb.example.com,{KEY}"
MLFLOW = "mlflow.experiment=gpt,mlflow.uri=http://mlflow:5000"
SAVES = "checkpoint.enabled=true,storage.outputs.from=pvc://results"
OWN = "launchers.torchrun.image=r.example/own:1,launchers.torchrun.program=/opt/own.py"
# As wandb 0.31.0 resolves wandb.init(): its settings, those of the environment, and no file.
ASKED = """\
import json, os, sys
sys.path.insert(0, sys.argv[1])
import wandb
found = wandb.Settings()
found.update_from_env_vars(os.environ)
print(json.dumps({name: str(getattr(found, name)) for name in sys.argv[2:]}))
"""


def name_of(found: Any) -> str:
    name: str = one("ConfigMap", found)["metadata"]["name"]
    return name


def test_programs_log_the_run_under_its_name() -> None:
    found = run(WANDB, MLFLOW, "launcher=megatron-bridge")
    name, folder = name_of(found), env(found)["RUN_DIRECTORY"]
    options = overrides(found)
    assert {key: options[f"logger.wandb_{key}"] for key in ("project", "exp_name", "save_dir")} == {
        "project": "'my gpt'", "exp_name": f"'{name}'", "save_dir": f"'{folder}'",
    }  # fmt: skip
    assert (options["logger.mlflow_experiment"], options["logger.mlflow_run_name"]) == ("'gpt'", f"'{name}'")
    # 26.02 and 26.04 do not know the option
    older = overrides(run(MLFLOW, "launcher=megatron-bridge,launchers.megatron-bridge.image=nvcr.io/nvidia/nemo:26.04"))
    assert [each.get("logger.mlflow_log_artifacts") for each in (options, older)] == ["false", None]

    found = run(WANDB, "launcher=megatron-lm")
    words = options_of(arguments(found)[1:])
    assert {key: words[f"wandb-{key}"] for key in ("project", "exp-name", "save-dir")} == {
        "project": ["my gpt"], "exp-name": [name_of(found)], "save-dir": [env(found)["RUN_DIRECTORY"]],
    }  # fmt: skip

    found = run(WANDB, MLFLOW, "launcher=automodel,launchers.automodel.model=/data/m")
    settings = load(one("ConfigMap", found)["data"]["automodel.yaml"], "automodel.yaml").data
    assert isinstance(settings, dict)
    assert settings["wandb"] == {"project": "my gpt", "name": name_of(found)}
    assert settings["mlflow"] == {"experiment_name": "gpt", "run_name": name_of(found)}

    found = run(WANDB, "launcher=nemo-1")
    options = overrides(found)
    assert options["exp_manager.create_wandb_logger"] == "true"
    assert options["exp_manager.wandb_logger_kwargs.project"] == "'my gpt'"
    assert options["exp_manager.wandb_logger_kwargs.name"] == f"'{name_of(found)}'"


def test_variables_name_the_run_and_a_run_that_saves_continues_it() -> None:
    found = run(WANDB, MLFLOW, SAVES, OWN, "launcher=torchrun")
    name, variables = name_of(found), env(found)
    trackers = {key: text for key, text in variables.items() if key.startswith(("WANDB_", "MLFLOW_"))}
    assert trackers == {
        "WANDB_PROJECT": "my gpt",
        "WANDB_ENTITY": "team",
        "WANDB_BASE_URL": "https://wandb.example.com",
        "WANDB_NAME": name,
        "WANDB_RUN_GROUP": "ml/my-run",
        "WANDB_MODE": "online",
        "WANDB_DIR": variables["RUN_DIRECTORY"],
        "WANDB_RUN_ID": name,
        "WANDB_RESUME": "allow",
        "MLFLOW_EXPERIMENT_NAME": "gpt",
        "MLFLOW_TRACKING_URI": "http://mlflow:5000",
    }
    (key,) = (entry["valueFrom"] for entry in container(found)["env"] if entry["name"] == "WANDB_API_KEY")
    assert key == {"secretKeyRef": {"name": "wandb", "key": "api-key"}}
    # a run that begins again, or that W&B learns of later, is not the same run
    for sets in ((), (SAVES, "wandb.mode=offline")):
        variables = env(run(WANDB, OWN, "launcher=torchrun", *sets))
        assert {"WANDB_RUN_ID", "WANDB_RESUME"}.isdisjoint(variables)
        assert "WANDB_NAME" in variables
    # the user's variables win; nothing is set for other programs, and by default
    assert env(run(WANDB, OWN, "launcher=torchrun,env.WANDB_NAME=mine"))["WANDB_NAME"] == "mine"
    others: list[tuple[str, ...]] = [
        (MLFLOW, "launcher=nccl-test"),
        (WANDB, "launcher=download,data.source=hf://a/b"),
        (),
    ]
    for flags in others:
        assert not [key for key in env(run(*flags)) if key.startswith(("WANDB_", "MLFLOW_"))]


@pytest.mark.parametrize(
    ("sets", "files", "expected"),
    [
        ((MLFLOW, "launcher=megatron-lm"), (), ("settings-of-the-launcher", "mlflow.experiment")),
        ((MLFLOW, "launcher=nemo-1"), (), ("settings-of-the-launcher", "mlflow.experiment")),
        ((WANDB, LORA_IMAGE), LORA, ("settings-of-the-launcher", "wandb.project")),
        (
            ("launchers.megatron-lm.config.wandb-project=a",),
            (),
            ("options-are-set-once", "launchers.megatron-lm.config.wandb-project"),
        ),
        ((WANDB, "wandb.project=a/b"), (), ("values-schema", "")),
        # a key itself is no value
        (("wandb.apiKey=0123456789abcdef",), (), ("values-schema", "")),
        # a project that begins as a number does is text
        (("wandb.project=2025-runs",), (), ("wandb-has-a-key", "secretEnv")),
    ],
)
def test_what_is_refused(sets: tuple[str, ...], files: Any, expected: tuple[str, str]) -> None:
    found = check(lab(), load_values(files, set_values=sets))
    assert [(each.rule, each.key) for each in found if each.severity != "unchecked"] == [expected]


def test_wandb_itself_reads_what_was_meant() -> None:
    folder = PROGRAMS / "wandb"
    if not folder.is_dir():
        pytest.skip("CHARTGEN_PROGRAMS has no wandb; make parsers installs it")
    found = run(WANDB, SAVES, OWN, "launcher=torchrun")
    name, variables = name_of(found), env(found)
    expected = {
        "project": "my gpt",
        "entity": "team",
        "base_url": "https://wandb.example.com",
        "mode": "online",
        "run_id": name,
        "run_name": name,
        "run_group": "ml/my-run",
        "resume": "allow",
        "root_dir": variables["RUN_DIRECTORY"],
    }
    argv = [sys.executable, "-c", ASKED, str(folder), *expected]
    told = {key: text for key, text in variables.items() if key.startswith("WANDB_")}
    done = subprocess.run(argv, env={**os.environ, **told}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected
