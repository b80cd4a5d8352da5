"""Pages of the documentation, followed word for word: their shell blocks run as one session of a reader."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from chartgen.programs import cache_dir
from chartgen.rehearsal import engines

REPOSITORY = Path(__file__).parent.parent
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TRAINS = re.compile(r"^chartgen (?:install|upgrade) \S+ (\S+) (?!.*launcher=)", re.MULTILINE)
# What a reader sees by looking: every pod of the run has started, on machines with the GPUs that it asks for.
_LOOK = """
import sys
from chartgen.kube import connect
from chartgen.releases.status.verdict import describe, wait_for_verdict

verdict = wait_for_verdict(connect(), sys.argv[1], timeout=120)
print(f"seen: {sys.argv[1]}: {describe(verdict)}")
sys.exit(not verdict.ok)
"""
# What differs from one time to the next: digests of runs, the ends of pods' names, dates, times and spans of time.
_PASSING = (
    (re.compile(r"-[0-9a-f]{8}\b"), "-<run>"),
    (re.compile(r"/[0-9a-f]{8}\b"), "/<run>"),
    (re.compile(r"(-<run>[a-z0-9-]*)-[a-z0-9]{5}\b"), r"\1-<pod>"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?(\+00:00)?"), "<time>"),
    (re.compile(r"\b(\d+ (s|min|h|d) ?)+\b"), "<span>"),
    (re.compile(r" +"), " "),
)


@dataclass(frozen=True)
class Followed:
    """What a reader has seen.

    Args:
        output: What the commands have printed.
        messages: What they have said beside it.
    """

    output: str
    messages: str


def blocks(page: Path, language: str = "sh") -> list[str]:
    """Return the blocks of a page in a language."""
    return [text for found, text in _BLOCK.findall(page.read_text()) if found == language]


def follow(page: Path, folder: Path, *, look: bool = False) -> Followed:
    """Run a page's blocks as one session; end its simulated clusters also when a command fails.

    Args:
        page: The page.
        folder: Where the reader works.
        look: See after each block whether the runs that it starts or replaces have started.
    """
    env = reader(folder)
    script = "\n".join(f"{block}{looks(block) if look else ''}" for block in blocks(page))
    argv = ["bash", "-eu", "-o", "pipefail", "-x", "-c", script]
    try:
        ran = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=folder, env=env, timeout=600)
    finally:
        left = chartgen(env, "sandbox", "list", "--output", "json").stdout
        for one in json.loads(left):
            chartgen(env, "sandbox", "down", one["name"])
    assert ran.returncode == 0, f"{page.name}: exit {ran.returncode}\n{ran.stdout}\n{ran.stderr[-6000:]}"
    assert json.loads(left) == [], "the page ends its own simulated clusters"
    return Followed(ran.stdout, ran.stderr)


def unseen(page: Path, followed: Followed) -> list[str]:
    """Return the lines of the outputs that a page shows which its reader has not seen, whatever passes left aside."""
    seen = {_lasting(line) for line in f"{followed.output}\n{followed.messages}".splitlines()}
    shown = [line for text in blocks(page, "text") for line in text.splitlines()]
    return [line for line in shown if _lasting(line) not in seen]


def reader(folder: Path) -> dict[str, str]:
    """Prepare a clone for a reader, with a cache of their own, and give their environment."""
    for name in ("values", "charts"):
        (folder / name).symlink_to(REPOSITORY / name)
    cache = folder / "cache"
    cache.mkdir()
    (cache / "engines").symlink_to(cache_dir() / "engines")
    kept = {name: value for name, value in os.environ.items() if name not in {"CHARTGEN_PATH", "KUBECONFIG"}}
    for program in ("helm", "kubectl"):  # which `sandbox env` puts on PATH where they are not
        engines.require(program)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return kept | {"PATH": path, "CHARTGEN_CACHE": str(cache), "HOME": str(folder)}


def looks(block: str) -> str:
    """Add a look at each run that a block starts or replaces."""
    return "".join(f"{sys.executable} -c {shlex.quote(_LOOK)} {release}\n" for release in _TRAINS.findall(block))


def chartgen(env: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    """Run chartgen in a reader's environment."""
    return subprocess.run(["chartgen", *argv], capture_output=True, text=True, check=True, env=env)


def _lasting(line: str) -> str:
    for passing, name in _PASSING:
        line = passing.sub(name, line)
    return line.strip()
