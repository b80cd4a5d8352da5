"""Engines: where they are found, how they are built, and what is said when that cannot be."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chartgen.errors import MissingToolError, UsageError
from chartgen.helm.program import find_helm, parse_version
from chartgen.rehearsal import engine_build, engines

BUILD = """
import sys
from chartgen.rehearsal.engine_build import build_engines
build_engines(sys.argv[1:], progress=lambda line: print(line, flush=True))
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CHARTGEN_CACHE", str(tmp_path / "cache"))
    for name in engines.engine_table():
        monkeypatch.delenv("CHARTGEN_" + name.upper().replace("-", "_"), raising=False)
    return tmp_path / "cache"


def program(folder: Path, name: str, output: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)
    return path


def test_every_engine_is_pinned_to_one_version() -> None:
    for engine in engines.engine_table().values():
        assert engine.version.startswith("v")
        assert parse_version(engine.version) is not None
        assert engine.folder.name.startswith(f"{engine.name}-{engine.version}-")


def test_a_controller_of_several_programs_needs_all_of_them() -> None:
    volcano = ["volcano-webhook-manager", "volcano-controller-manager", "volcano-scheduler"]
    assert engines.needed_engines(["jobset", "volcano"]) == [*engines.CONTROL_PLANE, "jobset", *volcano]


def test_an_unknown_engine_is_a_usage_error_with_a_hint() -> None:
    with pytest.raises(UsageError, match="unknown engine 'kuee'; did you mean kueue"):
        engines.find_engine("kuee")


@pytest.mark.parametrize(
    ("name", "binary", "output", "accepted"),
    [
        ("helm", "helm", "v3.17.9+g1", False),
        ("helm", "helm", "v3.18.0+g1", True),
        ("kubectl", "kubectl", "Client Version: v1.33.2", True),
        ("kube-apiserver", "kube-apiserver", "Kubernetes v1.37.9", False),
        ("kueue", "kueue", "v0.19.2", False),
    ],
)
@pytest.mark.usefixtures("cache")
def test_path_counts_for_what_users_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, binary: str, output: str, accepted: bool
) -> None:
    found = program(tmp_path / "bin", binary, output)
    monkeypatch.setenv("PATH", str(found.parent))
    assert engines.find_engine(name) == (found if accepted else None)
    assert engines.engine_places([name])[0].source == ("yours" if accepted else "")


@pytest.mark.parametrize("output", ["v3.17.9+g1", "v3.18.0+g1", "v5.0.0", "no version here", ""])
def test_all_commands_use_one_helm(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    """An old one on PATH is passed over for the built one, and by all commands."""
    built = program(cache / f"engines/{engines.engine('helm').folder.name}/bin", "helm", "v4.3.1")
    folders = ["/usr/bin", "/bin"]
    if output:
        folders.insert(0, str(program(tmp_path / "bin", "helm", output).parent))
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    wanted = tmp_path / "bin" / "helm" if output == "v3.18.0+g1" else built
    assert (
        engines.find_engine("helm") == find_helm().executable == engine_build.build_engines(["helm"])["helm"] == wanted
    )


@pytest.mark.usefixtures("cache")
def test_a_variable_chooses_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = program(tmp_path / "own", "my-helm", "v4.0.0")
    monkeypatch.setenv("CHARTGEN_HELM", str(own))
    assert engines.find_engine("helm") == own
    monkeypatch.setenv("CHARTGEN_HELM", str(tmp_path / "absent"))
    with pytest.raises(MissingToolError, match="is not an executable file"):
        engines.find_engine("helm")


@pytest.mark.usefixtures("cache")
def test_a_variable_chooses_a_controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But not one whose source chartgen edits, since as published it listens on every interface."""
    own = program(tmp_path / "own", "manager", "")
    for name in ("KUEUE", "MPI_OPERATOR"):
        monkeypatch.setenv(f"CHARTGEN_{name}", str(own))
    assert (engines.find_engine("kueue"), engines.find_engine("mpi-operator")) == (own, None)


@pytest.mark.parametrize(
    "engine", [each for each in engines.engine_table().values() if each.data], ids=lambda each: each.name
)
def test_the_packed_objects_are_those_of_the_pinned_version(engine: engines.Engine) -> None:
    assert engines.packed(engine.name)["source"] == f"{engine.module} {engine.version}"
    for file in engine.data:
        assert all(
            each["apiVersion"] and each["metadata"]["name"] for each in engines.engine_objects(engine.name, file)
        )


@pytest.mark.usefixtures("cache")
def test_a_missing_engine_says_how_to_get_it() -> None:
    with pytest.raises(MissingToolError, match=r"kueue v0.19.2 is missing; get it once with"):
        engines.require("kueue")


@pytest.mark.usefixtures("cache")
def test_without_go_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        MissingToolError, match=r"cannot build the engines: Go is not installed; install Go 1.26 or newer"
    ):
        engine_build.build_engines(["kwok"])


@pytest.mark.usefixtures("cache")
def test_an_old_go_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "bin", "go", "go1.22.1\nlocal").parent))
    with pytest.raises(MissingToolError, match=r"go is too old \(1\.22\.1\); install Go 1.26 or newer"):
        engine_build.build_engines(["kwok"])


def test_a_module_that_cannot_be_fetched_leaves_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    with pytest.raises(MissingToolError, match=r"a Go module cannot be fetched; check the network and `go env GOPROXY"):
        engine_build.build_engines(["kwok"])
    assert [path.name for path in (cache / "engines").iterdir()] == [".lock-kwok"]


def test_a_cache_that_cannot_be_written_is_named(cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(MissingToolError, match=r"the cache cannot be written: .*; set CHARTGEN_CACHE"):
        engine_build.build_engines(["kwok"])


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
def test_two_processes_build_one_engine_once(cache: Path) -> None:
    both = [
        subprocess.Popen([sys.executable, "-c", BUILD, "kwok"], stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    output = "".join(process.communicate(timeout=300)[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert output.count("built in") == 1
    assert "waiting for another chartgen" in output
    assert engines.find_engine("kwok") == engines.engine("kwok").program
    assert {stage["kind"] for stage in engines.engine_objects("kwok", "stages.json")} == {"Stage"}
    assert sorted(path.name for path in (cache / "engines").iterdir())[0] == ".lock-kwok"
    assert len(list((cache / "engines").iterdir())) == 2


def group_of(leader: int) -> list[str]:
    """The commands that run in a process group."""
    found = subprocess.run(["ps", "-A", "-o", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in found.splitlines()]
    return [row[2] for row in rows if row[0] == str(leader) and not row[1].startswith("Z")]


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_signal_leaves_no_half_built_engine_and_no_go(cache: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BUILD, "kueue"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 180
    while not list(cache.glob("engines/.kueue-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)
    send = os.killpg if number == signal.SIGINT else os.kill  # a terminal's signal is for all, a manager's for one
    send(process.pid, number)
    process.communicate(timeout=180)
    assert not group_of(process.pid)
    assert process.returncode != 0
    assert [path.name for path in (cache / "engines").iterdir()] == [".lock-kueue"]


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
@pytest.mark.parametrize(
    ("name", "argv", "version"),
    [
        ("helm", ["version", "--short"], "v4.3.1"),
        ("helm3", ["version", "--short"], "v3.22.0"),
        ("kube-apiserver", ["--version"], "Kubernetes v1.37.2"),
        ("volcano-scheduler", ["--version"], "API Version: v1alpha1\nVersion: v1.15.1\n"),
    ],
)
def test_built_programs_report_their_version(name: str, argv: list[str], version: str) -> None:
    built = engines.engine(name).folder / "bin" / engines.engine(name).binary
    if not built.is_file():
        pytest.skip(f"{name} comes from PATH here")
    assert subprocess.run([built, *argv], capture_output=True, text=True, check=True).stdout.startswith(version)


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
def test_helm_3_knows_a_current_kubernetes(tmp_path: Path) -> None:
    """Built without its linker flags it assumes Kubernetes 1.20 and refuses charts that ask for more."""
    chart = tmp_path / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: chart\nversion: 1.0.0\nkubeVersion: '>=1.30.0-0'\n")
    (chart / "templates" / "x.yaml").write_text("a: {{ .Capabilities.KubeVersion }}\n")
    shown = subprocess.run([engines.require("helm3"), "template", chart], capture_output=True, text=True, check=True)
    assert "a: v1.37" in shown.stdout


def test_go_is_not_needed_when_nothing_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(tmp_path / "bin", "helm", "v4.1.0")
    monkeypatch.delenv("CHARTGEN_HELM", raising=False)
    monkeypatch.setenv("PATH", str(found.parent))
    assert shutil.which("go") is None
    assert engine_build.build_engines(["helm"]) == {"helm": found}
