"""What a pod prints in place of its stacks: it ends in bounded memory, with one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import hostileclusters
import pytest
from click.testing import CliRunner
from stranger_api import answering

from chartgen.cli import main
from chartgen.errors import ChartgenError
from chartgen.kube import POD
from chartgen.kube.connection import connect
from chartgen.releases.helm_release import Place
from chartgen.releases.status.pod_exec import find_pod
from chartgen.releases.status.stacks import StackGroup, read_stacks

FRAME = {"name": "f", "short_filename": "a.py", "filename": "/a.py", "line": 7}
SOUND: Any = {"missing": False, "ranks": [{"rank": 8, "threads": [{"thread_name": "MainThread", "frames": [FRAME]}]}]}
ODD: list[Any] = [None, 7, [7], "x", {}]


@contextmanager
def placed(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Iterator[Path]:
    """Serve a run whose pod answers as a program does that stands on PATH for kubectl."""
    program = folder / "kubectl"
    program.write_text(f"#!{sys.executable}\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    answers = {
        path: json.dumps(each).encode() for path, each in hostileclusters._paths(hostileclusters._cluster()).items()
    }
    with answering(folder, lambda path: answers.get(path.partition("?")[0])) as file:
        yield file


def stacks(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> list[StackGroup]:
    with placed(folder, monkeypatch, body) as file, connect(kubeconfig=file) as cluster:
        return read_stacks(cluster, hostileclusters.RELEASE, Place(hostileclusters.SPACE))


@pytest.mark.threat(16)
def test_two_running_pods_of_one_rank_are_not_chosen_from(tmp_path: Path) -> None:
    """Whoever may create pods may give one the labels of the run, and would get the commands of its users."""
    objects = deepcopy(hostileclusters._cluster())
    forged = deepcopy(objects[POD.path()][1])
    forged["metadata"].update(name="forged", uid="forged")
    answers = hostileclusters._paths({**objects, POD.path(): [forged, *objects[POD.path()]]})
    texts = {path: json.dumps(each).encode() for path, each in answers.items()}
    with (
        answering(tmp_path, lambda path: texts.get(path.partition("?")[0])) as file,
        connect(kubeconfig=file) as cluster,
        pytest.raises(ChartgenError, match="forged and my-run-workers-1 both"),
    ):
        find_pod(cluster, hostileclusters.RELEASE, hostileclusters.SPACE, rank=8)


def changed(item: Any, value: Any) -> list[Any]:
    """Return data as often as it has parts, each time with another one replaced."""
    if isinstance(item, dict):
        rest = [{**item, key: each} for key, old in item.items() for each in changed(old, value)]
        return [value, *rest, *({k: v for k, v in item.items() if k != key} for key in item)]
    return [value, *([each] for each in changed(item[0], value))] if isinstance(item, list) else [value]


@pytest.mark.threat(9)
def test_stacks_of_another_form_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sound,) = stacks(tmp_path, monkeypatch, f"print({json.dumps(json.dumps(SOUND))})")
    assert sound == StackGroup((8,), ("f (a.py:7)",), "", ("node-1",))
    texts = {json.dumps(each) for value in ODD for each in changed(SOUND, value)}
    for text in sorted({*texts, "[" * 100_000, ""}):
        with suppress(ChartgenError):
            stacks(tmp_path, monkeypatch, f"print({text!a})")


@pytest.mark.threat(12)
def test_stacks_and_errors_of_a_pod_are_one_masked_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "f token=hf_" + "aB3d" * 8 + "\n2 ranks"
    forged = {"rank": 0, "threads": [{"thread_name": "MainThread", "frames": [{**FRAME, "name": text}]}]}
    body = json.dumps(json.dumps({"missing": False, "ranks": [forged, {"rank": 8, "error": text}]}))
    with placed(tmp_path, monkeypatch, f"print({body})") as file:
        printed = CliRunner().invoke(main, ["stacks", hostileclusters.RELEASE], env={"KUBECONFIG": str(file)}).output
    assert "hf_" not in printed
    assert printed.count("\\n2 ranks") == 2


@pytest.mark.threat(9)
def test_a_pod_that_prints_without_end_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chartgen.releases.status.pod_exec._LARGEST", 1 << 20)
    for stream in ("stdout", "stderr"):
        with pytest.raises(ChartgenError, match="prints more than 1 MiB"):
            stacks(tmp_path, monkeypatch, f"import sys\nwhile True:\n    sys.{stream}.write('x' * 65536)")
