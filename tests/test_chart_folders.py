"""A chart's folder with what people put into theirs: packaged dependencies, pictures, files of Windows."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from seeded import SOUND
from userlib import chartgen

from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import written
from chartgen.helm.program import find_helm

PICTURE = b"\x89PNG\r\n\x1a\n\0\xff\xfe"
DEPENDENCY = {"apiVersion": "v2", "name": "dep", "version": "0.1.0"}
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: of-the-dependency\n"


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart with a dependency as `helm dependency update` leaves it, packaged by Helm itself."""
    source = tmp_path / "dep"
    (source / "templates").mkdir(parents=True)
    (source / "Chart.yaml").write_text(json.dumps(DEPENDENCY))
    (source / "templates" / "map.yaml").write_text(MAP)
    folder = tmp_path / "chart"
    shutil.copytree(SOUND, folder)
    (folder / "values.schema.json").unlink()  # it is closed, also for the values of subcharts
    (folder / "charts").mkdir(exist_ok=True)
    package = [str(find_helm().executable), "package", str(source), "--destination", str(folder / "charts")]
    subprocess.run(package, check=True, capture_output=True)
    head = (folder / "Chart.yaml").read_text()
    (folder / "Chart.yaml").write_text(f"{head}\ndependencies:\n- {{name: dep, version: 0.1.0, repository: ''}}\n")
    (folder / "icon.png").write_bytes(PICTURE)
    (folder / "notes.txt").write_bytes(b"one\r\ntwo\r\n")
    return folder


def test_a_packaged_dependency_is_read_and_written_byte_for_byte(chart: Path) -> None:
    with written(Chart.read(chart)) as copy:
        there = {path.relative_to(copy): path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert there == {path.relative_to(chart): path.read_bytes() for path in chart.rglob("*") if path.is_file()}
    assert gzip.decompress(there[Path("charts/dep-0.1.0.tgz")])


def test_a_packaged_dependency_is_rendered(chart: Path) -> None:
    result = chartgen("render", chart)
    assert result.exit_code == 0, result.output
    assert "of-the-dependency" in result.stdout
    assert chartgen("check", chart).exit_code in {0, 1, 3}


@pytest.mark.parametrize("name", ["Chart.yaml", "values.yaml", "templates/more.yaml"])
def test_what_must_be_text_is_said(name: str, chart: Path) -> None:
    (chart / name).write_bytes(PICTURE)
    with pytest.raises(ChartgenError, match=f"{name}.* is not"):
        Chart.read(chart)
