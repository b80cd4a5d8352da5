"""The comparison of recipes with what they became sees each kind of difference; over a real copy, nothing differs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from convert_report import COMPARED, Rendered, command_of, differences, report
from userlib import write

COPY = os.environ.get("CHARTGEN_RECIPES", "")
FACTS = {"image": "nemo:24.07", "machines": 2, "GPUs": 8, "data sets": [1.0, "bucket/a"], "variables": {"A": "1"}}
OPTIONS = {
    "model.num_layers": 24,
    "model.num_attention_heads": 32,
    "model.num_query_groups": None,
    "model.optim.name": "mcore_distributed_optim",
    "model.optim.lr": 1.0,
    "trainer.limit_val_batches": 0.0,
    "trainer.val_check_interval": None,
    "exp_manager.create_checkpoint_callback": False,
    "exp_manager.explicit_log_dir": None,
    "model.seed": 1234,
}
SIDE = Rendered(FACTS, OPTIONS)


def test_what_means_the_same_is_no_difference() -> None:
    more = {
        "model.num_query_groups": 32,
        "model.optim.lr": 1,
        "model.context_parallel_size": 1,
        "model.rotary_base": 10000,
    }
    idle = {"trainer.val_check_interval": 1000, "exp_manager.checkpoint_callback_params.save_top_k": 2}
    given = {**more, **idle, "exp_manager.explicit_log_dir": "/outputs/it"}
    assert differences(SIDE, Rendered(FACTS, OPTIONS | given, frozenset(given))) == []


@pytest.mark.parametrize("fact", FACTS)
def test_each_fact_is_compared(fact: str) -> None:
    (found,) = differences(SIDE, replace(SIDE, facts={**FACTS, fact: None}))
    assert found.startswith(f"{fact}: ")


@pytest.mark.parametrize("path", sorted({*COMPARED, "model.seed"}))
def test_each_option_is_compared(path: str) -> None:
    saving = {"exp_manager.create_checkpoint_callback": True}
    here = replace(SIDE, options={**OPTIONS, **saving})
    found = differences(here, replace(here, options={**here.options, path: "another"}))
    assert path in [line.partition(": ")[0] for line in found]


def test_an_option_that_only_we_give_is_compared() -> None:
    ours = Rendered(FACTS, {**OPTIONS, "model.hidden_dropout": 0.5}, frozenset({"model.hidden_dropout"}))
    (found,) = differences(SIDE, ours)
    assert found.startswith("model.hidden_dropout: ")


def test_a_readme_says_what_helm_is_given(tmp_path: Path) -> None:
    readme = """
helm install -f $REPO_ROOT/src/storage/values.yaml --set a=b storage $REPO_ROOT/src/storage
  helm install -f values.yaml \\
    --set-file workload_config=$REPO_ROOT/src/model.yaml \\
    --set "workload.image=${ARTIFACT_REGISTRY}/nemo:24.07" \\
    $USER-run $REPO_ROOT/src/chart
"""
    files = {
        "training/a/values.yaml": "",
        "training/a/README.md": readme,
        "src/model.yaml": "",
        "src/chart/Chart.yaml": "",
    }
    write(tmp_path, files)
    found = command_of(tmp_path / "training" / "a" / "values.yaml", tmp_path)
    assert found.sets == ["workload.image=artifact-registry/nemo:24.07"]
    assert found.config == tmp_path / "src" / "model.yaml"
    assert found.chart == tmp_path / "src" / "chart"


@pytest.mark.skipif(not COPY, reason="CHARTGEN_RECIPES does not name a copy of AI-Hypercomputer/gpu-recipes")
def test_every_recipe_of_a_copy_is_refused_or_the_same() -> None:
    copy = Path(COPY).resolve()
    rows = [report(path, copy, None) for path in sorted((copy / "training" / "a3mega").rglob("values*.yaml"))]
    assert [row for row in rows if row.differences or not row.result.startswith(("equivalent", "refused"))] == []
    assert [row.recipe for row in rows if row.result == "equivalent"]
