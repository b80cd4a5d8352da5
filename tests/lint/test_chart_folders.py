"""A chart's folder with what people put into theirs: packaged dependencies, pictures, files of Windows."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from lint_seeds import SOUND
from userlib import chartgen

from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import written_chart
from chartgen.helm.program import find_helm

pytestmark = pytest.mark.helm

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
    with written_chart(Chart.read(chart)) as copy:
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


def test_a_chart_is_read_as_helm_reads_it(chart: Path, tmp_path: Path) -> None:
    (chart / ".helmignore").write_text("ci/\n")
    (chart / "ci").mkdir()
    (chart / "ci" / "large.bin").write_bytes(b"\xff" * 6_000_000)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "shared.yaml").write_text(MAP.replace("of-the-dependency", "behind-a-link"))
    (chart / "templates" / "linked").symlink_to(tmp_path / "shared")
    read = Chart.read(chart)
    assert "ci/large.bin" not in read.files
    assert read.files["templates/linked/shared.yaml"] == (tmp_path / "shared" / "shared.yaml").read_text()
    assert read.name == "sound"  # as Chart.yaml has it, whatever the folder is called
    assert "behind-a-link" in chartgen("render", chart).stdout


def test_a_chart_that_excludes_its_own_head_is_none(chart: Path) -> None:
    (chart / ".helmignore").write_text("!templates/a.yaml\n")  # Helm's way to exclude all else
    with pytest.raises(ChartgenError, match="is excluded by"):
        Chart.read(chart)


def test_what_helm_cannot_read_is_refused_with_its_place(chart: Path) -> None:
    (chart / "templates" / "gone.yaml").symlink_to("nowhere")
    (chart / "files.bin").write_bytes(b"\xff" * 6_000_000)
    with pytest.raises(ChartgenError) as caught:
        Chart.read(chart)
    assert [each.path for each in caught.value.problems] == [chart / "files.bin", chart / "templates" / "gone.yaml"]
