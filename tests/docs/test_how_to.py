"""The how-to pages, followed word for word on a real control plane; what they show is what their reader sees."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from doc_runner import REPOSITORY, Followed, blocks, follow, unseen

from chartgen.helm import yaml

FOLDER = REPOSITORY / "docs" / "how-to"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
ALONE = [
    FOLDER / f"{name}.md"
    for name in (
        "adapt-a-chart",
        "add-a-cloud",
        "add-a-rule",
        "automodel",
        "nemo-rl",
        "policies",
        "torchtitan",
        "track-a-run",
        "watch-in-grafana",
    )
]
TUTORIAL = REPOSITORY / "docs" / "tutorial.md"
ON_A_CLUSTER = [page for page in PAGES if "chartgen sandbox up" in page.read_text()]


def test_the_index_lists_every_page() -> None:
    index = (FOLDER / "README.md").read_text()
    assert sorted(re.findall(r"\]\(([\w-]+\.md)\)", index)) == [page.name for page in PAGES]


def test_the_manifests_for_flux_and_argo_cd_name_files_that_exist() -> None:
    pages = (FOLDER / "gitops.md", FOLDER / "argocd-health.md")
    texts = [text for page in pages for block in blocks(page, "yaml") for text in block.split("---\n")]
    items: list[Any] = [yaml.load(text, "a page").data for text in texts]
    found = {item["kind"]: item for item in items}
    assert list(found) == ["GitRepository", "HelmRelease", "Application", "ConfigMap"]
    flux = found["HelmRelease"]["spec"]["chart"]["spec"]
    argo = found["Application"]["spec"]["source"]
    assert flux["chart"] == argo["path"] == "charts/gke-a3mega"
    # Flux reads paths from the root of the repository and leaves out the chart's own values, Argo CD does neither.
    assert flux["valuesFiles"][0] == f"{flux['chart']}/values.yaml"
    assert argo["helm"]["valueFiles"] == [f"../../{name}" for name in flux["valuesFiles"][1:]]
    assert flux["valuesFiles"][-1] == "site.yaml"
    assert [name for name in flux["valuesFiles"][:-1] if not (REPOSITORY / name).is_file()] == []


def test_the_readme_shows_a_verdict_of_the_tutorial() -> None:
    shown = re.findall(r"^Verdict:.*\n(?:  .*\n)+", (REPOSITORY / "README.md").read_text(), re.MULTILINE)
    assert len(shown) == 1
    assert shown[0] in blocks(TUTORIAL, "text")


def test_an_output_that_mixes_up_two_runs_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```text\nold a-11111111\nnew a-22222222\nold a-22222222\n```\n")
    seen = Followed("old a-aaaaaaaa\nnew a-bbbbbbbb\n", "")
    assert unseen(page, seen) == ["old a-22222222"]
    assert unseen(page, Followed(f"{seen.output}old a-bbbbbbbb\n", "")) == []


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
@pytest.mark.parametrize("page", [*ALONE, *ON_A_CLUSTER, TUTORIAL], ids=lambda path: path.stem)
def test_a_page_can_be_followed_and_shows_what_its_reader_sees(page: Path, tmp_path: Path) -> None:
    assert unseen(page, follow(page, tmp_path)) == []
