"""Labels of a target's simulated machines: the number of each, and of the group that it belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest
import userlib

from chartgen.composer.library import open_library
from chartgen.composer.node_pools import node_pool
from chartgen.composer.target import Target, load_target
from chartgen.errors import ChartgenError


def labelled(folder: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> Target:
    text = userlib.TARGET.replace("fragments:", f"    labels:\n      example.com/rack: {value!r}\nfragments:")
    monkeypatch.setattr(userlib, "TARGET", text)
    return load_target("box", open_library([userlib.library(folder, {})]))


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        ("rack", ["rack"] * 5),
        ("r{index}", ["r0", "r1", "r2", "r3", "r4"]),
        ("r{index//2}", ["r0", "r0", "r1", "r1", "r2"]),
        ("r{index//4}-{index}", ["r0-0", "r0-1", "r0-2", "r0-3", "r1-4"]),
    ],
)
def test_a_label_counts_machines_or_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, labels: list[str]
) -> None:
    pool = node_pool(labelled(tmp_path, value, monkeypatch).default_machine, 5)
    assert [node["metadata"]["labels"]["example.com/rack"] for node in pool.nodes()] == labels


@pytest.mark.parametrize("value", ["{idx}", "r{index // 4}", "r{index//0}", "{index//}", "{index", "}", "{index}{n}"])
def test_other_braces_are_rejected_with_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    with pytest.raises(ChartgenError, match=r"box\.yaml:10:7: .*\{index//N\}"):
        labelled(tmp_path, value, monkeypatch)
