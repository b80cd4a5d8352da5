"""Pages of the documentation, followed word for word: their shell blocks run as one session of a reader."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from answers import answer

from chartgen.programs import cache_dir
from chartgen.rehearsal import engines

REPOSITORY = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A simulated machine runs no program, so the log of its run has no steps.
_METRICS = re.compile(r"^(chartgen metrics .*)$", re.MULTILINE)
_TRAINS = re.compile(r"^chartgen (?:install|upgrade) \S+ (\S+) (?!.*launcher=)", re.MULTILINE)
# What a reader sees by looking: every pod of the run has started, on machines with the GPUs that it asks for.
_LOOK = """
import sys
from chartgen.kube import connect
from chartgen.rehearsal.verdict import wait_for_verdict

verdict = wait_for_verdict(connect(), sys.argv[1], timeout=120)
print(f"seen: {sys.argv[1]}: {verdict}")
sys.exit(not verdict.ok)
"""
# What a guide can leave in a cluster; the namespace proves that the look worked. Volumes of a storage class follow its
# reclaim policy, and nothing here deletes them.
_LEFT = """
for kind in secrets persistentvolumeclaims persistentvolumes clusterqueues.kueue.x-k8s.io namespace/default; do
  kubectl get "$kind" --output name 2>/dev/null | grep -v /pvc- | sed 's/^/left: /' || true
done
helm list --short | sed 's/^/left: release /'
"""
_DIGEST = re.compile(r"(?<=[-/])[0-9a-f]{8}\b")
# What differs from one time to the next: digests of runs, the ends of pods' names, dates, times and spans of time.
_PASSING = (
    (_DIGEST, "<run>"),
    (re.compile(r"(-<run>[a-z0-9-]*)-[a-z0-9]{5}\b"), r"\1-<pod>"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\+00:00)?"), "<time>"),
    (re.compile(r"\b(\d+(\.\d+)? (s|min|h|d) ?)+\b"), "<span>"),
    (re.compile(r" +"), " "),
)


@dataclass(frozen=True)
class Followed:
    """What a reader has seen."""

    output: str  # what the commands have printed
    messages: str  # what they have said beside it


def blocks(page: Path, language: str = "sh") -> list[str]:
    """Return the blocks of a page in a language."""
    return [text for found, text in _BLOCK.findall(page.read_text()) if found == language]


def follow(page: Path, folder: Path, *, look: bool = False) -> Followed:
    """Run a page's blocks as one session; end its simulated clusters also when a command fails.

    Args:
        page: The page.
        folder: Where the reader works.
        look: See after each block whether the runs that it starts or replaces have started, and what is left.
    """
    env = reader(folder)
    script = "\n".join(looks(block) if look else block for block in blocks(page))
    argv = ["bash", "-eu", "-o", "pipefail", "-x", "-c", script]
    try:
        ran = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder, env=env, timeout=600)
    finally:
        left = chartgen(env, "sandbox", "list", "--output", "json").stdout
        for one in answer(left)["sandboxes"]:
            chartgen(env, "sandbox", "down", one["name"])
    assert ran.returncode == 0, f"{page.name}: exit {ran.returncode}\n{ran.stdout}\n{ran.stderr[-6000:]}"
    assert answer(left)["sandboxes"] == [], "the page ends its own simulated clusters"
    return Followed(ran.stdout, ran.stderr)


def unseen(page: Path, followed: Followed) -> list[str]:
    """Return the lines of a page's outputs that its reader has not seen, apart from what differs from time to time.

    Digests of runs may differ from those of the page, but what the page shows as one run must be one run.
    """
    seen: dict[str, list[list[str]]] = {}
    for line in f"{followed.output}\n{followed.messages}".splitlines():
        seen.setdefault(_lasting(line), []).append(_DIGEST.findall(line))
    runs: dict[str, str] = {}

    def is_seen(line: str) -> bool:
        for digests in seen.get(_lasting(line), []):
            same = runs | dict(zip(_DIGEST.findall(line), digests, strict=True))
            if same.items() >= runs.items() and len(set(same.values())) == len(same):
                runs.update(same)
                return True
        return False

    return [line for text in blocks(page, "text") for line in text.splitlines() if not is_seen(line)]


def reader(folder: Path) -> dict[str, str]:
    """Prepare a clone for a reader, with a cache of their own, and give their environment."""
    for name in ("values", "charts"):
        shutil.copytree(REPOSITORY / name, folder / name)
    cache = folder / "cache"
    cache.mkdir()
    (cache / "engines").symlink_to(cache_dir() / "engines")
    kept = {name: value for name, value in os.environ.items() if name not in {"CHARTGEN_PATH", "KUBECONFIG"}}
    for program in ("helm", "kubectl"):  # which `sandbox env` puts on PATH where they are not
        engines.require(program)
    path = os.pathsep.join([str(Path(sys.executable).parent), str(engines.require("helm").parent), os.environ["PATH"]])
    return kept | {"PATH": path, "CHARTGEN_CACHE": str(cache), "HOME": str(folder)}


def looks(block: str) -> str:
    """Add a look at each run that a block starts or replaces, and at what is left before the cluster ends."""
    seen = "".join(f"{sys.executable} -c {shlex.quote(_LOOK)} {release}\n" for release in _TRAINS.findall(block))
    before = _LEFT if block.startswith("chartgen sandbox down") else ""
    return before + _METRICS.sub(r"\1 || test $? -eq 1", block) + seen


def chartgen(env: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    """Run chartgen in a reader's environment."""
    return subprocess.run(["chartgen", *argv], capture_output=True, text=True, check=True, env=env)


def _lasting(line: str) -> str:
    for passing, name in _PASSING:
        line = passing.sub(name, line)
    return line.strip()
