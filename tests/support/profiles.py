"""The vendors' environment scripts, written from the facts in tests/data/upstream/profiles.yaml.

Each stands for the vendor's own script: it ends its shell when a variable is missing that the vendor's requires, and
exports the same names and values. What else the vendor's does, such as looking for interfaces, is not in it.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from chartgen.helm.yaml import load_file, require_map

UPSTREAM = Path(__file__).parents[1] / "data" / "upstream"
TCPXO, TCPXO_BEFORE = "nccl-env-profile.sh v1.0.17", "nccl-env-profile.sh v1.0.3"
TCPX, TCPX_BEFORE = "gpudirect-tcpx v3.1.12", "gpudirect-tcpx v3.1.9"
GIB = "set_nccl_env.sh"


@lru_cache(maxsize=1)
def profiles() -> dict[str, Any]:
    """Return all profiles by name."""
    return dict(require_map(load_file(UPSTREAM / "profiles.yaml"), "the table of profiles"))


def sets(name: str) -> dict[str, str]:
    """Return the variables that a profile sets, as shell text."""
    return dict(profiles()[name]["sets"])


def script(name: str = TCPXO) -> str:
    """Return a profile as a shell script."""
    required = [f': "${{{variable}:?Must set {variable}}}"' for variable in profiles()[name]["requires"]]
    exported = [f'export {variable}="{value}"' for variable, value in sets(name).items()]
    return "\n".join((*required, *exported, ""))
