"""Sandboxes: they stay after the command that started them, and leave nothing when they go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import manifests
import pytest
from procs import gone

from chartgen.cluster import NODE, ClusterError, connect
from chartgen.errors import UsageError
from chartgen.rehearsal import sandbox
from chartgen.tools import cache_dir

UP = """
from chartgen.rehearsal import machines, sandbox
sandbox.up("try", machines=[machines.NodePool("m", 2, {"cpu": "8", "pods": "110"})])
"""

pytestmark = [pytest.mark.engines, pytest.mark.usefixtures("built_engines")]


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built_engines: None) -> Path:  # noqa: ARG001
    """A cache of its own for the state files, with the engines of the real one."""
    real = cache_dir() / "engines"
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "engines").symlink_to(real)
    monkeypatch.setenv("CHARTGEN_CACHE", str(cache))
    return cache


def planes() -> set[str]:
    import tempfile

    return {path.name for path in Path(tempfile.gettempdir()).glob("chartgen-plane-*")}


@pytest.mark.usefixtures("own_state")
def test_it_outlives_its_command_until_it_is_taken_down() -> None:
    subprocess.run([sys.executable, "-c", UP], check=True, capture_output=True, timeout=120)
    [running] = sandbox.list_sandboxes()
    try:
        assert (running.name, running.machines, running.controllers) == ("try", 2, ())
        with connect(kubeconfig=running.kubeconfig) as cluster:
            assert {node["metadata"]["name"] for node in cluster.list(NODE)} == {"m-0", "m-1"}
        with pytest.raises(UsageError, match="sandbox 'try' runs already; use it, or end it with"):
            sandbox.up("try")
        with pytest.raises(UsageError, match="no sandbox 'tri' runs; did you mean try"):
            sandbox.down("tri")
    finally:
        ended = sandbox.down("try")
    assert not ended.folder.exists()
    assert sandbox.list_sandboxes() == []
    assert gone([ended.pid])


def test_a_sandbox_that_cannot_be_set_up_leaves_nothing(own_state: Path) -> None:
    before = planes()
    with pytest.raises(ClusterError, match="has no Topology"):
        sandbox.up("broken", setup=lambda plane: plane.cluster.apply(manifests.queue("q", 8)))
    assert planes() <= before
    assert not (own_state / "sandboxes" / "broken.json").exists()


@pytest.mark.usefixtures("own_state")
@pytest.mark.parametrize("name", ["", "Upper", "../up", "a b", "a" * 41])
def test_a_name_is_checked(name: str) -> None:
    with pytest.raises(UsageError, match="is no sandbox name"):
        sandbox.up(name)


def test_a_state_file_without_its_sandbox_is_forgotten(own_state: Path) -> None:
    folder = own_state / "sandboxes"
    folder.mkdir()
    (folder / "old.json").write_text("{}")
    assert sandbox.list_sandboxes() == []
    assert not (folder / "old.json").exists()
