"""A Go module that somebody changed on its way becomes no engine, also where the checksum database is switched off."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from chartgen.errors import MissingToolError
from chartgen.rehearsal import engine_build, engine_download, engines

OFFICIAL = engines.Download("v1.0.0", "https://files.example/tool", "", "sha256:00")
TOOL = engines.Engine("tool", "example.com/tool", "v1.0.0", binary="tool", download=OFFICIAL)
MAIN = 'package main\n\nfunc main() { println("built") }\n'

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="Go builds the engines")


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module proxy in a folder, for a user without the checksum database and with empty caches."""
    folder = tmp_path / "proxy"
    settings = {"GOPROXY": folder.as_uri(), "GOSUMDB": "off", "GOTOOLCHAIN": "local"}
    # -modcacherw: pytest removes what the test leaves
    settings |= {"GOFLAGS": "-modcacherw", "GOMODCACHE": str(tmp_path / "modules"), "GONOSUMDB": "", "GOPRIVATE": ""}
    for name, value in {**settings, "CHARTGEN_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    return folder


def publish(proxy: Path, engine: engines.Engine) -> None:
    """Offer a program of ours under the name and version of an engine's module."""
    folder = proxy / engine.module / "@v"
    folder.mkdir(parents=True)
    mod = f"module {engine.module}\n\ngo 1.21\n"
    (folder / f"{engine.version}.info").write_text(json.dumps({"Version": engine.version}))
    (folder / f"{engine.version}.mod").write_text(mod)
    with zipfile.ZipFile(folder / f"{engine.version}.zip", "w") as file:
        below = f"{engine.module}@{engine.version}"
        file.writestr(f"{below}/go.mod", mod)
        file.writestr("/".join(filter(None, (below, engine.package, "main.go"))), MAIN)


def offer(monkeypatch: pytest.MonkeyPatch, proxy: Path, known: str) -> None:
    """Offer a tool that is an engine, with these checksums in chartgen."""
    publish(proxy, TOOL)
    monkeypatch.setattr(engines, "engine_table", lambda: {"tool": TOOL})
    monkeypatch.setattr(engine_build, "sums", lambda: known)


@pytest.mark.threat(14)
def test_a_changed_module_is_refused(proxy: Path) -> None:
    engine = engines.engine("kubeconform")
    publish(proxy, engine)
    with pytest.raises(MissingToolError) as caught:
        engine_build.build_engines(["kubeconform"])
    assert "checksum" in caught.value.problems[0].message
    assert not engine.program.exists()


@pytest.mark.threat(14)
def test_a_module_without_a_known_checksum_is_refused(proxy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, proxy, "")
    with pytest.raises(MissingToolError) as caught:
        engine_build.build_engines(["tool"])
    assert "example.com/tool v1.0.0 has no known checksum" in caught.value.problems[0].message
    assert not TOOL.program.exists()


def test_a_module_with_its_checksum_is_built_where_no_download_is(
    proxy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(proxy, TOOL)
    (tmp_path / "go.mod").write_text("module any\n")
    argv = ["go", "mod", "download", "-json", f"{TOOL.module}@{TOOL.version}"]
    facts = json.loads(subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    shutil.rmtree(proxy)
    name = f"{TOOL.module} {TOOL.version}"
    offer(monkeypatch, proxy, f"{name} {facts['Sum']}\n{name}/go.mod {facts['GoModSum']}\n")
    monkeypatch.setenv("CHARTGEN_ENGINES_MIRROR", "http://127.0.0.1:1")  # where nothing listens
    lines: list[str] = []
    program = engine_download.get(["tool"], progress=lines.append)["tool"]
    assert subprocess.run([program], capture_output=True, text=True, check=True).stderr == "built\n"
    assert [("127.0.0.1:1" in line, "building" in line) for line in lines[1:3]] == [(True, False), (False, True)]


@pytest.mark.parametrize("engine", engines.engine_table().values(), ids=lambda engine: engine.name)
def test_the_source_of_every_engine_has_a_known_checksum(engine: engines.Engine) -> None:
    names = {line.rpartition(" ")[0] for line in engine_build.sums().splitlines()}
    assert {f"{engine.module} {engine.version}", f"{engine.module} {engine.version}/go.mod"} <= names
