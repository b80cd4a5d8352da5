"""The lines that docs/explanation/transport.md shows are those that the check prints, for the log on the page."""

from __future__ import annotations

import re
from typing import Any

import pytest
from doc_runner import REPOSITORY

from chartgen.helm.yaml import load_file
from chartgen.library.workloads.common.files import transport

PAGE = (REPOSITORY / "docs" / "explanation" / "transport.md").read_text()
SHOWN = re.findall(r"^transport: (?:warning: )?(.*); see ", PAGE, re.MULTILINE)
LOG = [re.sub(r"^.*?NCCL INFO ", "", line) for line in PAGE.splitlines() if "NCCL INFO" in line]
EFA = ["Using network Libfabric", "NET/OFI Selected provider is efa (found 8 nics)"]
ROCE = ["NET/IB : Using " + " ".join(f"[{n}]mlx5_{n}:1/RoCE" for n in range(8)), "Using network IB"]


def contract(fragment: str, devices: int, links: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the contract of a fragment, for a number of adapters."""
    data: Any = load_file(REPOSITORY / "chartgen/library/fragments" / fragment / "fragment.yaml").data
    stated = {"device": "", "refutedBy": "", "why": "", **data["nccl"]}
    return stated | {"promise": data["transport"], "devices": devices, "links": list(links)}


@pytest.mark.parametrize(
    ("fragment", "devices", "links", "log", "proves"),
    [
        ("gpudirect-tcpxo", 1, (), LOG, True),
        ("efa", 32, (), EFA, True),
        ("roce-oke", 16, ("RoCE",), ROCE, False),
    ],
)
def test_a_fault_on_the_page_is_what_the_check_prints(
    fragment: str, devices: int, links: tuple[str, ...], log: list[str], proves: bool
) -> None:
    line, proven = transport.fault(contract(fragment, devices, links), log)
    assert line in SHOWN
    assert proven is proves


def test_every_line_of_the_page_is_one_of_these() -> None:
    assert len(LOG) == 7
    assert len(set(SHOWN)) == 3
