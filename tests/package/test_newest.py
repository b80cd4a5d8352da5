"""What `make newest` compares; the lists of the clients themselves need the network."""

from __future__ import annotations

import newest
import pytest

from chartgen.rehearsal.engines import engine_table


def test_every_engine_and_the_options_are_among_what_is_compared() -> None:
    pinned = newest.latest([*newest.modules(), *newest.packages()])
    for engine in engine_table().values():
        assert pinned[engine.module] >= engine.version
    assert {"megatron-core", "megatron-bridge", "nemo-automodel", "torchtitan", "ruff", "click"} <= pinned.keys()


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("k8s.io/kubernetes v1.9.0 v1.37.2 v1.38.0-alpha.0", ("v1.37.2", "")),
        ("ruff (1.37.3)\nAvailable versions: 1.37.3, 1.36.0", ("1.37.3", "behind")),
        ("m v1.8.1", ("v1.8.1", "")),  # a list of a proxy that lacks the pinned version
        ("", ("not listed", "")),
    ],
)
def test_only_a_newer_release_is_behind(answer: str, expected: tuple[str, str]) -> None:
    assert newest.row("name", "v1.37.2", newest.releases(answer))[2:] == expected
