"""Sandboxes: they stay after the command that started them, and leave nothing when they go."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import manifests
import pytest
from process_helpers import gone

from chartgen.errors import UsageError
from chartgen.kube import NODE, ClusterError, connect
from chartgen.rehearsal import sandbox
from chartgen.rehearsal.processes import Processes

UP = """
from chartgen.kube.node_pool import NodePool
from chartgen.rehearsal import sandbox
sandbox.up("try", machines=[NodePool("m", 2, {"cpu": "8", "pods": "110"})])
"""

pytestmark = [pytest.mark.engines, pytest.mark.usefixtures("built_engines")]


def planes() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("chartgen-plane-*")}


def test_no_control_plane_of_another_worker_is_seen(own_folders: Path) -> None:
    assert planes() <= {path.name for path in own_folders.iterdir()}
    with Processes() as processes:
        assert processes.folder.parent == own_folders.resolve()
        assert processes.folder.name in planes()


@pytest.mark.usefixtures("own_cache")
def test_it_outlives_its_command_until_it_is_taken_down() -> None:
    subprocess.run([sys.executable, "-c", UP], check=True, capture_output=True, timeout=120)
    [running] = sandbox.list_sandboxes()
    try:
        assert (running.name, running.machines, running.controllers) == ("try", 2, ())
        with connect(kubeconfig=running.kubeconfig) as cluster:
            assert {node["metadata"]["name"] for node in cluster.list(NODE)} == {"m-0", "m-1"}
        with pytest.raises(UsageError, match="sandbox 'try' is already running; use it, or end it with"):
            sandbox.up("try")
        with pytest.raises(UsageError, match="no sandbox named 'tri' is running; did you mean try"):
            sandbox.down("tri")
    finally:
        ended = sandbox.down("try")
    assert not ended.folder.exists()
    assert sandbox.list_sandboxes() == []
    assert gone([ended.pid])


def test_a_sandbox_that_cannot_be_set_up_leaves_nothing(own_cache: Path) -> None:
    before = planes()
    with pytest.raises(ClusterError, match="has no Topology"):
        sandbox.up("broken", setup=lambda plane: plane.cluster.apply(manifests.queue("q", 8)))
    assert planes() <= before
    assert not (own_cache / "sandboxes" / "broken.json").exists()


@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("name", ["", "Upper", "../up", "a b", "a" * 41])
def test_a_name_is_checked(name: str) -> None:
    with pytest.raises(UsageError, match="invalid sandbox name"):
        sandbox.up(name)


def test_a_state_file_without_its_sandbox_is_forgotten(own_cache: Path) -> None:
    folder = own_cache / "sandboxes"
    folder.mkdir()
    (folder / "old.json").write_text("{}")
    assert sandbox.list_sandboxes() == []
    assert not (folder / "old.json").exists()
