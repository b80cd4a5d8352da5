"""The guides, followed word for word on a real control plane: every command of each runs and does what it says."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from doc_runner import REPOSITORY, blocks, follow, reader
from selection import cases

GUIDES = sorted(path for path in (REPOSITORY / "docs" / "guides").glob("*.md") if path.name != "README.md")
GPUS = {
    "aks-llama3": 16,
    "aks-mixtral": 64,
    "coreweave-llama3": 16,
    "eks-megatron-gpt": 16,
    "eks-torchrun-fsdp": 16,
    "gke-a3high-gpt3-5b": 16,
    "gke-a3mega-gpt3-175b": 256,
    "gke-a3ultra-llama3": 16,
    "gke-a4-gpt-oss": 64,
    "gke-a4x-llama3": 64,
    "llama3-8b-pretrain": 16,
    "oke-llama2-70b": 128,
    "onprem-mlperf-llama2-lora": 8,
}

pytestmark = [pytest.mark.engines, pytest.mark.usefixtures("built_engines")]


def test_each_seed_has_its_guide_and_the_index_lists_it() -> None:
    index = (REPOSITORY / "docs" / "guides" / "README.md").read_text()
    assert [guide.stem for guide in GUIDES] == sorted(GPUS)
    assert sorted(re.findall(r"\]\(([\w.-]+\.md)\)", index)) == [guide.name for guide in GUIDES]


@pytest.mark.parametrize("guide", cases(GUIDES, GUIDES[6:7]), ids=lambda path: path.stem)
def test_a_guide_can_be_followed_to_its_end(guide: Path, tmp_path: Path) -> None:
    followed = follow(guide, tmp_path, look=True)
    gpus = {int(number) for number in re.findall(r"^seen: .* (\d+) GPUs$", followed.output, re.MULTILINE)}
    assert GPUS[guide.stem] in gpus
    assert "has no training steps" in followed.messages  # of a simulated machine: `chartgen metrics` has read its log
    assert re.findall(r"^left: (.*)$", followed.output, re.MULTILINE) == ["namespace/default"]
    assert {path.name for path in tmp_path.iterdir() if path.name[0] != "."} == {
        "cache",
        "chartgen.yaml",
        "charts",
        "site.yaml",
        "values",
    }


@pytest.mark.full
def test_the_tabs_of_other_clouds_can_be_checked(tmp_path: Path) -> None:
    env = reader(tmp_path)
    for tab in blocks(REPOSITORY / "docs" / "guides" / "llama3-8b-pretrain.md", "bash"):
        script = tab.replace("helm install", "helm template")  # a cluster of each cloud is more than this is worth
        subprocess.run(["bash", "-euc", f"{script}rm site.yaml chartgen.yaml"], cwd=tmp_path, env=env, check=True)
