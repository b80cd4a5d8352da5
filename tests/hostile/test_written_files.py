"""Files and records of others: what is written stays in its folder, what is read ends in a message and not a crash."""

from __future__ import annotations

import base64
import gzip
import json
import resource
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from userlib import chartgen, write

from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import written_chart
from chartgen.helm.yaml import load
from chartgen.linter.handwritten import lint_values
from chartgen.metrics.read.log import read_logs
from chartgen.releases.history import read_record, restore_chart

MEGA = 1 << 20
HEAD = {"apiVersion": "v2", "name": "good", "version": "0.1.0"}


def record(packed: bytes) -> dict[str, Any]:
    """Return an object of Helm's store."""
    content = base64.b64encode(base64.b64encode(packed)).decode()
    place = {"name": "sh.helm.release.v1.x.v1", "namespace": "y", "labels": {"name": "x", "version": "1"}}
    return {"metadata": place, "data": {"release": content}}


def stored(name: str, file: str) -> dict[str, Any]:
    """Return the record of a revision, as whoever may write Secrets can have changed it."""
    chart = {"metadata": {**HEAD, "name": name}, "files": [{"name": file, "data": base64.b64encode(b"x").decode()}]}
    info = {"status": "deployed", "last_deployed": "2026-01-01T00:00:00Z"}
    kept = {"name": "x", "namespace": "y", "version": 1, "info": info, "chart": chart}
    return record(gzip.compress(json.dumps(kept).encode()))


@pytest.mark.threat(5)
@pytest.mark.parametrize("file", ["../../planted", "{folder}/planted", "a/../../../planted", "a\0b", ""])
def test_a_revision_writes_nothing_outside(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    chart = restore_chart(read_record(stored("good", file.format(folder=tmp_path))))
    with pytest.raises(ChartgenError), written_chart(chart):
        pass
    assert not [*tmp_path.rglob("planted")]


@pytest.mark.threat(5)
@pytest.mark.parametrize("name", ["../planted", "{folder}/planted", "..", "", "a\0b"])
def test_a_charts_name_in_a_revision_is_no_path(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    chart = restore_chart(read_record(stored(name.format(folder=tmp_path), "a")))
    with pytest.raises(ChartgenError), written_chart(chart):
        pass
    assert not [*tmp_path.iterdir()]


@pytest.mark.threat(5)
def test_a_chart_in_memory_is_written_into_its_folder_only(tmp_path: Path) -> None:
    with pytest.raises(ChartgenError):
        Chart("good", {"Chart.yaml": "", "../planted": "x"}).write(tmp_path / "good")
    assert not [*tmp_path.iterdir()]


@pytest.mark.threat(5)
@pytest.mark.parametrize("linked", ["good/Chart.yaml", "good/more", "good", "good/templates", "good/nothing"])
def test_the_diff_of_a_build_reads_nothing_outside(linked: str, tmp_path: Path) -> None:
    """A link in place of the chart's folder is refused; one in it differs, whatever it leads to: Helm follows it."""
    home = tmp_path / "home"
    write(home, {"Chart.yaml": "private\n"})
    write(tmp_path / "charts", {"good/values.yaml": "", "x": ""})
    targets = {"good": home, "good/templates": home, "good/nothing": home / "nothing"}
    link, target = tmp_path / "charts" / linked, targets.get(linked, home / "Chart.yaml")
    if link.is_dir():
        shutil.rmtree(link)
    link.symlink_to(target)
    chart = Chart("good", {"Chart.yaml": "name: good\n", "values.yaml": ""})
    try:
        shown = chart.diff(tmp_path / "charts/good")
        assert f"-a link to {target}\n" in shown
        if link.name not in chart.files:
            with pytest.raises(ChartgenError, match=link.name):
                chart.write(tmp_path / "charts/good")
    except ChartgenError as error:
        shown = str(error)
        assert linked == "good"
    assert "private" not in shown


@pytest.mark.threat(16)
def test_a_deep_revision_is_no_record() -> None:
    with pytest.raises(ChartgenError):
        read_record(record(gzip.compress(b"[" * MEGA)))


MEMORY = """
import resource, sys
from chartgen.errors import ChartgenError
from chartgen.releases.history import read_record
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
try:
    read_record({"metadata": {"name": "x"}, "data": {"release": sys.stdin.read()}})
except ChartgenError:
    sys.exit(7)
"""


@pytest.mark.threat(16)
def test_a_revision_that_unpacks_to_gigabytes_is_no_record() -> None:
    packed = gzip.compress(bytes(64 * MEGA)) * 64
    content = base64.b64encode(base64.b64encode(packed))
    assert len(content) < 8 * MEGA
    ran = subprocess.run([sys.executable, "-c", MEMORY], input=content, capture_output=True, check=False)
    assert ran.returncode == 7, ran.stderr


@pytest.mark.parametrize(
    "text",
    ["1" * 5000, "-" + "9" * 400, "0x" + "f" * 400, "0o" + "7" * 5000, "0b" + "1" * 5000, "0" * 5000 + "17", "1e9999"],
)
def test_numbers_of_any_length_are_read(text: str) -> None:
    document = load(f"a: {text}\nversion: {text}\n", "values.yaml")
    assert {each.problem.line for each in lint_values(document)} <= {1, 2}


def events(folder: Path, message: bytes) -> Path:
    """Return a TensorBoard file of one message."""
    file = folder / "events.out.tfevents.1"
    file.write_bytes(struct.pack("<QI", len(message), 0) + message + bytes(4))
    return file


EVENTS = "import sys; from chartgen.metrics.read.log import read_logs; read_logs(sys.argv[1:])"


def test_a_number_in_an_event_file_has_an_end(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))

    with pytest.raises(ChartgenError):
        read_logs([str(events(tmp_path, b"\x10" + b"\xff" * 99))])
    file = events(tmp_path, b"\x10" + b"\xff" * 32 * MEGA)
    argv = [sys.executable, "-c", EVENTS, str(file)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, preexec_fn=limit)
    assert "is not a TensorBoard event" in ran.stderr


LOG = (Path(__file__).parents[1] / "data" / "logs" / "nemo-bars.log").read_text()
RECIPE = Path(__file__).parents[1] / "data" / "recipes" / "a3mega"
# What writes a file whose name a checkout of others can have taken: the name, and the command.
WRITERS = {
    "site.yaml": "init gke-a3mega --no-ask --to site.yaml",
    "report.html": "metrics run.log --report report.html",
    "picture.svg": "metrics run.log --plot picture.svg",
    "found.sarif": "lint values.yaml --output sarif --output-file found.sarif",
    "found.xml": "lint values.yaml --output junit --output-file found.xml",
    "known.json": "lint values.yaml --write-baseline known.json",
    "charts/gke-a3mega": "build gke-a3mega",
    "library/targets/mine.yaml": "new target mine",
}


def entries(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.threat(5)
def test_no_link_of_a_checkout_leads_a_file_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the file itself, as a link to nothing yet, nor its folder: refused, and nothing outside changes."""
    home = tmp_path / "home"
    write(home, {"bin/program": "#!/bin/sh\n"})
    before = entries(home)
    for number, (name, command) in enumerate(WRITERS.items()):
        for linked in {name, name.partition("/")[0]}:
            checkout = tmp_path / f"{number}-{linked == name}"
            link = checkout / linked
            write(checkout, {"values.yaml": (RECIPE / "values.yaml").read_text(), "run.log": LOG, f"{linked}x": ""})
            link.symlink_to(home / ("new" if linked == name else "bin"))
            monkeypatch.chdir(checkout)
            result = chartgen(*command.split())
            assert result.exit_code in (1, 2), (command, linked, result.output)
            assert entries(home) == before, (command, linked)
