"""The gallery has each model on each target and names the other presets, and its cells are what is planned today."""

from __future__ import annotations

import gallery_page
import pytest

PAGE = "\n\n".join(path.read_text() for path in sorted(gallery_page.PAGES.glob("*.md")))


def cells() -> dict[tuple[str, str], str]:
    """Read the page back: what it has for each preset and target."""
    found: dict[tuple[str, str], str] = {}
    for table in PAGE.split("\n\n"):
        if table.startswith("| preset"):
            targets, _, *rows = (line.strip("| ").split(" | ") for line in table.splitlines())
            for preset, *texts in rows:
                pairs = zip(targets[1:], texts, strict=True)
                found |= {(preset.strip("`"), target.split("`")[1]): text for target, text in pairs}
    return found


def test_every_model_has_a_cell_for_every_target_and_the_others_are_named() -> None:
    targets = gallery_page.LIBRARY.names("target")
    assert set(cells()) == {(preset, target) for preset in gallery_page.MODELS for target in targets}
    assert {name for name in gallery_page.PRESETS if f"`{name}`" not in PAGE} == set()
    assert all(f">{name}</text>" in gallery_page.PICTURE.read_text() for name in gallery_page.MODELS)


@pytest.mark.full
def test_cells_are_what_the_planner_plans() -> None:
    some = sorted(cells())[::29]
    assert {pair: gallery_page.cell(*pair) for pair in some} == {pair: cells()[pair] for pair in some}
