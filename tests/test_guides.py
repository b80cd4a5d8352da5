"""The guides, followed word for word on a real control plane: every command of each runs and does what it says."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from chartgen.rehearsal import engines
from chartgen.tools import cache_dir

REPOSITORY = Path(__file__).parent.parent
GUIDES = sorted(path for path in (REPOSITORY / "docs" / "guides").glob("*.md") if path.name != "README.md")
GPUS = {
    "eks-megatron-gpt": 16,
    "gke-a3high-gpt3-5b": 16,
    "gke-a3mega-gpt3-175b": 256,
    "oke-llama2-70b": 128,
    "onprem-mlperf-llama2-lora": 8,
}
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TRAINS = re.compile(r"^chartgen (?:install|upgrade) \S+ (\S+) (?!.*launcher=)", re.MULTILINE)
# What a reader sees by looking: every pod of the run has started, on machines with the GPUs that it asks for.
_LOOK = """
import sys
from chartgen.cluster import connect
from chartgen.runs.verdict import describe, wait_for_verdict

verdict = wait_for_verdict(connect(), sys.argv[1], timeout=120)
print(f"seen: {sys.argv[1]}: {describe(verdict)}")
sys.exit(not verdict.ok)
"""

pytestmark = [pytest.mark.engines, pytest.mark.usefixtures("built_engines")]


def blocks(guide: Path) -> list[str]:
    """Give the shell blocks of a guide."""
    return _BLOCK.findall(guide.read_text())


def reader(folder: Path) -> dict[str, str]:
    """Prepare a clone for a reader, with a cache of their own, and give their environment."""
    for name in ("values", "charts"):
        (folder / name).symlink_to(REPOSITORY / name)
    cache = folder / "cache"
    cache.mkdir()
    (cache / "engines").symlink_to(cache_dir() / "engines")
    programs = [str(Path(sys.executable).parent), *(str(engines.require(name).parent) for name in ("helm", "kubectl"))]
    kept = {name: value for name, value in os.environ.items() if name not in {"CHARTGEN_PATH", "KUBECONFIG"}}
    path = os.pathsep.join([*programs, os.environ["PATH"]])
    return kept | {"PATH": path, "CHARTGEN_CACHE": str(cache), "HOME": str(folder)}


def follow(guide: Path, folder: Path) -> str:
    """Run a guide's blocks as one session; end its simulated cluster also when a command fails."""
    env = reader(folder)
    script = "\n".join(f"{block}{looks(block)}" for block in blocks(guide))
    argv = ["bash", "-eu", "-o", "pipefail", "-x", "-c", script]
    try:
        ran = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder, env=env, timeout=600)
    finally:
        left = chartgen(env, "sandbox", "list", "--output", "json").stdout
        for one in json.loads(left):
            chartgen(env, "sandbox", "down", one["name"])
    assert ran.returncode == 0, f"{guide.name}: exit {ran.returncode}\n{ran.stdout}\n{ran.stderr[-6000:]}"
    assert json.loads(left) == [], "the guide ends its own simulated cluster"
    return ran.stdout


def looks(block: str) -> str:
    """Add a look at each run that a block starts or replaces."""
    return "".join(f"{sys.executable} -c {shlex.quote(_LOOK)} {release}\n" for release in _TRAINS.findall(block))


def chartgen(env: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    """Run chartgen in a reader's environment."""
    return subprocess.run(["chartgen", *argv], capture_output=True, text=True, check=True, env=env)


def test_each_seed_has_its_guide_and_the_index_lists_it() -> None:
    index = (REPOSITORY / "docs" / "guides" / "README.md").read_text()
    assert [guide.stem for guide in GUIDES] == sorted(GPUS)
    assert sorted(re.findall(r"\]\(([\w.-]+\.md)\)", index)) == [guide.name for guide in GUIDES]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_a_guide_can_be_followed_to_its_end(guide: Path, tmp_path: Path) -> None:
    output = follow(guide, tmp_path)
    gpus = {int(number) for number in re.findall(r"^seen: .* (\d+) GPUs$", output, re.MULTILINE)}
    assert GPUS[guide.stem] in gpus
