"""A vendor's file below /opt: a pod may read it for a stated reason, through a read-only mount, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from userlib import FRAGMENT, composed, library

from chartgen.checks import check
from chartgen.composer.privileges import is_forbidden, only_read, read_privilege
from chartgen.errors import ChartgenError
from chartgen.helm.values import load_values
from chartgen.linter import Subject, lint, run_steps

TOPOLOGY = "/opt/cloud/topo.xml"
STATED = f"privileges:\n  hostPath {TOPOLOGY} in program: NCCL reads it\n"
VOLUME = f"- name: topology\n  hostPath:\n    path: {TOPOLOGY}\n    type: File\n"
MOUNT = "- name: topology\n  mountPath: /etc/topo.xml\n  readOnly: true\n"
RULES = ("no-host-access", "no-system-folders", "system-folders-of-volumes")


def files(volume: str = VOLUME, mount: str = MOUNT, stated: str = STATED) -> dict[str, str]:
    return {"mine/fragment.yaml": FRAGMENT + stated, "mine/volumes.yaml": volume, "mine/volumeMounts.yaml": mount}


@pytest.mark.parametrize("path", ["/opt/cloud/topo.xml", "/opt/cloud", "/etc/crusoe/nccl_topo"])
def test_folders_that_pods_may_only_read(path: str) -> None:
    assert only_read(path)
    assert not is_forbidden(path)
    assert read_privilege(f"hostPath {path} in program").path == path


@pytest.mark.parametrize(
    "path", ["/opt", "/opt/../etc", "/opt/x.sock", "/etc/crusoe", "/etc/topo.xml", "/var/run", "/"]
)
def test_folders_that_pods_may_not_even_read(path: str) -> None:
    assert not only_read(path)
    assert is_forbidden(path)


@pytest.mark.threat(11)
@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"volume": VOLUME.replace(TOPOLOGY, "/etc/topo.xml")}, 3),
        ({"volume": VOLUME.replace(TOPOLOGY, "/var/run/{{ .Values.steps }}")}, 3),
        ({"volume": VOLUME.replace("    type: File\n", "")}, 3),
        ({"volume": VOLUME.replace("File", "FileOrCreate")}, 3),
        ({"mount": MOUNT.replace("  readOnly: true\n", "")}, 3),
        ({"stated": ""}, 3),
        ({"stated": STATED.replace("topo.xml", "other.xml")}, 3),
    ],
)
def test_build_refuses_the_rest(tmp_path: Path, changed: dict[str, str], line: int) -> None:
    folder = library(tmp_path, files(**changed))
    with pytest.raises(ChartgenError) as raised:
        composed(folder)
    found = [(str(each.path), each.line, bool(each.hint)) for each in raised.value.problems]
    assert found == [(str(folder / "fragments/mine/volumes.yaml"), line, True)]


@pytest.mark.helm
def test_a_stated_file_is_allowed_and_a_written_one_is_not(tmp_path: Path) -> None:
    """A chart that was changed after its build has no stated reasons at all."""
    chart = composed(library(tmp_path, files()))
    assert [each for each in lint(chart) if each.rule in RULES] == []
    text = chart.files["templates/_volumes.tpl"]
    pod = chart.files["templates/_pod.tpl"] + text
    assert "readOnly: true" in pod
    writes = {path: each.replace("readOnly: true", "readOnly: false") for path, each in chart.files.items()}
    found = {each.rule for each in lint(type(chart)(chart.name, writes, chart.origin)) if each.rule in RULES}
    assert found == {"no-host-access", "no-system-folders"}


@pytest.mark.threat(11)
@pytest.mark.parametrize(
    ("host_path", "read_only", "wrong"),
    [
        ({"path": TOPOLOGY, "type": "File"}, True, False),
        ({"path": TOPOLOGY, "type": "File"}, False, True),
        ({"path": TOPOLOGY}, True, True),
        ({"path": "/etc/topo.xml", "type": "File"}, True, True),
        ({"path": "/mnt/settings"}, False, False),
    ],
)
def test_volumes_of_values_are_judged_alike(
    tmp_path: Path, host_path: dict[str, Any], read_only: bool, wrong: bool
) -> None:
    chart = composed(library(tmp_path, {}))
    volumes = {
        "extraVolumes": [{"name": "topology", "hostPath": host_path}],
        "extraVolumeMounts": [{"name": "topology", "mountPath": "/topo", "readOnly": read_only}],
    }
    values = load_values((), set_json=tuple(f"{key}={json.dumps(value)}" for key, value in volumes.items()))
    found = [each.problem.message for each in check(chart, values) if each.rule in RULES]
    assert [message.startswith("extraVolumes[0].hostPath") for message in found] == [True] * wrong


@pytest.mark.helm
def test_volumes_of_values_still_need_a_reason(tmp_path: Path) -> None:
    chart = composed(library(tmp_path, {}))
    given = load_values(
        (),
        set_json=(
            f'extraVolumes=[{{"name": "t", "hostPath": {{"path": "{TOPOLOGY}", "type": "File"}}}}]',
            'extraVolumeMounts=[{"name": "t", "mountPath": "/t", "readOnly": true}]',
        ),
    )
    found = run_steps(Subject(chart, presets={"given": given}, bare=False)).findings
    assert {each.rule for each in found if each.rule in RULES} == {"no-host-access"}
