"""Packaged charts: an archive, or a chart in a registry, is linted as its folder would be, by both Helms."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from answers import findings
from lint_seeds import JOB, SOUND
from ociregistry import LOGIN, registry
from selection import HELMS
from userlib import chartgen

from chartgen.linter.chart_files import read_archives
from chartgen.rehearsal import engines

FAULT = "metadata:\n  namespace: default\n  name"


def helm(*arguments: str | Path, program: str = "helm") -> None:
    found = engines.find_engine(program)
    assert found
    subprocess.run([str(found), *map(str, arguments)], check=True, capture_output=True, stdin=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sound chart with one fault, packaged by Helm."""
    folder = tmp_path_factory.mktemp("packaged")
    shutil.copytree(SOUND, folder / "sound")
    job = folder / "sound" / JOB
    job.write_text(job.read_text().replace("metadata:\n  name", FAULT, 1))
    helm("package", folder / "sound", "--destination", folder)
    return folder / "sound-0.1.0.tgz"


@pytest.fixture(autouse=True)
def _away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def lint(*arguments: str | Path, code: int = 1, program: str = "helm") -> list[dict[str, Any]]:
    ran = chartgen("lint", "--output", "json", *arguments, env={"CHARTGEN_HELM": str(engines.find_engine(program))})
    assert ran.exit_code == code, ran.output
    found: list[dict[str, Any]] = findings(ran.stdout) if code != 3 else []
    return found


def places(found: list[dict[str, Any]]) -> list[tuple[str, str, int | None]]:
    return [(each["rule"], each["path"], each["line"]) for each in found]


def line_of_fault() -> int:
    return (SOUND / JOB).read_text().split("metadata:\n  name")[0].count("\n") + 2


@pytest.mark.helm
def test_findings_of_an_archive_name_the_file_in_it(archive: Path, tmp_path: Path) -> None:
    shutil.copy(archive, tmp_path)
    found = lint("sound-0.1.0.tgz")
    assert places(found) == [("no-literal-namespace", f"sound-0.1.0.tgz:{JOB}", line_of_fault())]
    assert found == lint("sound-0.1.0.tgz")
    assert not list(tmp_path.glob("chartgen-*"))


@pytest.mark.helm
def test_values_are_tried_on_an_archive(archive: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("step: 3\n")
    assert ("values-schema", "wrong.yaml", 1) in places(lint(archive, "-f", "wrong.yaml"))


@pytest.mark.helm
@pytest.mark.parametrize("program", HELMS)
def test_chart_of_a_registry_is_fetched_and_linted(archive: Path, program: str, tmp_path: Path) -> None:
    with registry(tmp_path) as address:
        helm("push", archive, f"oci://{address}/charts", "--plain-http")
        name = f"oci://{address}/charts/sound:0.1.0"
        found = lint(name, "--plain-http", program=program)
        assert places(found) == [("no-literal-namespace", f"{name}:{JOB}", line_of_fault())]
        newest = lint(f"oci://{address}/charts/sound", "--plain-http", program=program)
        assert [each["line"] for each in newest] == [line_of_fault()]
        (missing,) = lint(f"oci://{address}/charts/sound:9.9.9", "--plain-http", program=program)
        assert missing["rule"] == "chart-files"
    assert not list(tmp_path.glob("chartgen-*"))


@pytest.mark.helm
def test_registry_is_asked_with_the_users_own_login(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELM_REGISTRY_CONFIG", str(tmp_path / "login.json"))
    with registry(tmp_path, login=True) as address:
        name = f"oci://{address}/charts/sound:0.1.0"
        (refused,) = lint(name, "--plain-http")
        assert refused["rule"] == "chart-files"
        user, password = LOGIN
        helm("registry", "login", address, "--username", user, "--password", password, "--plain-http")
        helm("push", archive, f"oci://{address}/charts", "--plain-http")
        assert [each["rule"] for each in lint(name, "--plain-http")] == ["no-literal-namespace"]


@pytest.mark.helm
def test_registry_that_is_out_of_reach_is_one_line() -> None:
    ran = chartgen(
        "lint", "oci://127.0.0.1:9/charts/sound:0.1.0", env={"CHARTGEN_HELM": str(engines.find_engine("helm"))}
    )
    assert ran.exit_code == 3
    (line,) = ran.stderr.strip().splitlines()
    assert "oci://127.0.0.1:9/charts/sound" in line


@pytest.mark.parametrize(
    "name",
    [
        "oci://x",
        "oci://x/Y",
        "oci://u:p@x/y",
        "oci://x/y --untar",
        "http://x/y.tgz",
        "https://u:p@x/y.tgz",
        "https://x/y",
    ],
)
def test_what_is_no_address_of_a_chart_is_refused(name: str) -> None:
    ran = chartgen("lint", name)
    assert ran.exit_code == 2
    assert ":p@" not in ran.output


@pytest.mark.parametrize("key", ["charts", "presets", "baseline"])
def test_settings_of_a_repository_name_nothing_in_the_network(key: str, tmp_path: Path) -> None:
    value = '["oci://127.0.0.1:9/charts/sound:0.1.0"]' if key == "charts" else '"https://127.0.0.1:9/sound.tgz"'
    (tmp_path / "chartgen.toml").write_text(f"[lint]\n{key} = {value}\n")
    assert chartgen("lint").exit_code == 2


@pytest.mark.helm
def test_subchart_that_helm_packaged_is_read(archive: Path, tmp_path: Path) -> None:
    """Helm writes a gzip header that Python's streaming reader of archives takes for broken data."""
    (tmp_path / "charts").mkdir()
    shutil.copy(archive, tmp_path / "charts")
    read = read_archives(tmp_path)
    assert read.findings == []
    assert list(read.schemas) == ["charts/sound-0.1.0.tgz/sound/values.schema.json"]
