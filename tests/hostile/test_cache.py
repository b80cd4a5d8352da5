"""A checkout of others is no cache: no program of it runs, and no name of a file in it becomes a command."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click
import pytest
from userlib import library

from chartgen.cli import completion
from chartgen.errors import MissingToolError, UsageError
from chartgen.programs import cache_dir, find_tool
from chartgen.rehearsal.folders import cache_lock, draft_program


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with a Helm of its own where a cache would have it; the user has none."""
    folder = tmp_path / "clone"
    program = folder / ".cache" / "chartgen" / "engines" / "helm-v99.0.0-linux-amd64-0" / "bin" / "helm"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder)
    for name in ("CHARTGEN_CACHE", "CHARTGEN_HELM", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


@pytest.mark.threat(22)
def test_no_program_of_a_checkout_runs(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", ".cache")
    assert cache_dir() == checkout.parent / "home" / ".cache" / "chartgen"
    assert find_tool("helm") is None
    with monkeypatch.context() as context:
        context.setenv("HOME", ".")
        with pytest.raises(UsageError, match="HOME"):
            find_tool("helm")
        context.setenv("HOME", str(checkout))  # as jobs of some CI systems have it
        with pytest.raises(UsageError, match="HOME"):
            find_tool("helm")
    shutil.copy(checkout / ".cache/chartgen/engines/helm-v99.0.0-linux-amd64-0/bin/helm", checkout)
    with monkeypatch.context() as context:
        for path in ("", ":/nowhere", "/nowhere:", ".:/nowhere"):  # no entry is the working directory too
            context.setenv("PATH", path)
            assert find_tool("helm") is None
    (checkout / "deeper").mkdir()
    monkeypatch.chdir(checkout / "deeper")
    for name, folder in (
        ("XDG_CACHE_HOME", str(checkout / ".cache")),
        ("CHARTGEN_CACHE", str(checkout / ".cache" / "chartgen")),
        ("CHARTGEN_CACHE", "../.cache/chartgen"),
    ):
        monkeypatch.setenv(name, folder)
        with pytest.raises(UsageError, match=name):
            find_tool("helm")


@pytest.mark.threat(22)
def test_no_program_that_others_can_write_runs(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout.parent)
    monkeypatch.setenv("CHARTGEN_CACHE", str(checkout / ".cache" / "chartgen"))
    program = find_tool("helm")
    assert program
    for path in (program, *program.parents[:4]):
        path.chmod(0o777)
        with pytest.raises(MissingToolError):
            find_tool("helm")
        path.chmod(0o755)
    assert find_tool("helm") == program
    if os.getuid() == 0:  # nobody else may give a file to a group
        program.chmod(0o775)
        assert find_tool("helm") == program, "a group of the user's own"
        os.chown(program, 0, 1234)
        with pytest.raises(MissingToolError):
            find_tool("helm")


def test_a_cache_is_not_writable_by_the_group_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        folder = tmp_path / "cache" / "engines"
        with cache_lock(folder, "helm"), draft_program(folder / "helm-1" / "bin" / "helm", "helm") as (draft, _):
            draft.touch(0o755)
    finally:
        os.umask(before)
    assert not [path for path in (tmp_path / "cache").rglob("bin/..") if path.resolve().stat().st_mode & 0o020]
    assert not [path for path in (folder, *folder.parents[:1]) if path.stat().st_mode & 0o020]


@pytest.mark.threat(22)
def test_no_completion_is_a_command(tmp_path: Path) -> None:
    folder = library(tmp_path / "lib", {})
    for place in ("targets/{}.yaml", "fragments/{}/fragment.yaml", "workloads/{}/workload.yaml", "values/{}.yaml"):
        file = folder / place.format("$(touch marker)")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((folder / "targets" / "box.yaml").read_text())
    context = click.Context(click.Command("check"))
    context.params = {"path": (folder,)}
    offered = 0
    for name in ("target", "definition", "preset", "workload", "sandbox", "gpu", "model"):
        names = getattr(completion, f"complete_{name}")(context, click.Argument(["x"]), "")
        assert not [each for each in names if set(each) & set("$`();&| '\"\n")], name
        offered += len(names)
    assert offered > 50
    assert "box" in completion.complete_target(context, click.Argument(["x"]), "b")
