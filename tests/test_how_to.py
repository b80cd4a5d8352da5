"""The how-to pages, followed word for word on a real control plane; what they show is what their reader sees."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from followed import REPOSITORY, blocks, follow, unseen

from chartgen.helm import yaml

FOLDER = REPOSITORY / "docs" / "how-to"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
ON_A_CLUSTER = [page for page in PAGES if "chartgen sandbox up" in page.read_text()]


def test_the_index_lists_every_page() -> None:
    index = (FOLDER / "README.md").read_text()
    assert sorted(re.findall(r"\]\(([\w-]+\.md)\)", index)) == [page.name for page in PAGES]


def test_the_manifests_for_flux_and_argo_cd_name_files_that_exist() -> None:
    texts = [text for block in blocks(FOLDER / "gitops.md", "yaml") for text in block.split("---\n")]
    items: list[Any] = [yaml.load(text, "gitops.md").data for text in texts]
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


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
@pytest.mark.parametrize("page", ON_A_CLUSTER, ids=lambda path: path.stem)
def test_a_page_can_be_followed_and_shows_what_its_reader_sees(page: Path, tmp_path: Path) -> None:
    assert unseen(page, follow(page, tmp_path)) == []
