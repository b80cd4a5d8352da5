"""Every field that a command reads of a cluster's answers, in each state of a run, replaced in turn by another type.

Which fields are read is recorded, with the line that reads them: a field that two lines read is replaced for each.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import hostileclusters
import pytest
import run_states
from click.testing import CliRunner
from hostileclusters import RELEASE
from stranger_api import answering

from chartgen.cli import main
from chartgen.kube import answers
from chartgen.kube.kinds import Kind, Object

Path_ = tuple[Any, ...]  # of a field: path of its kind, namespace, name, then keys and indices
# A connection that a command leaves open ends with its process, which here is that of the tests.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

COMMANDS = (["status", RELEASE], ["why", RELEASE], ["status", "-A", "--output", "json"], ["logs", RELEASE])
# Of these, only what no other reads: `wait`, `top`, `metrics`, `history`, `stacks` and `rollback` read nothing else.
OTHERS = (
    ["doctor", "gke-a3mega", RELEASE, "-f", "values.yaml"],
    ["uninstall", RELEASE],
    ["diff", RELEASE, "-f", "values.yaml"],
    ["init", "gke-a3mega", "--from-cluster", "--no-ask"],
)
STATES = dict(run_states.states())
SHARE = 40  # one of so many fields in the usual tests
PACKAGE = str(Path(answers.__file__).parents[1])


class Case(NamedTuple):
    """A field, and a command that reads it in a state of the run."""

    state: str
    command: list[str]
    field: Path_


class Seen(dict[str, Any]):
    """An object that records which of its fields are asked for, present or not, and where."""

    def __init__(self, data: Object, place: Path_, found: dict[Path_, set[str]]) -> None:
        super().__init__({key: recorded(value, (*place, key), found) for key, value in data.items()})
        self._place, self._found = place, found

    def _note(self, key: str) -> None:
        caller = sys._getframe(2)
        if caller.f_code.co_filename.startswith(PACKAGE):
            self._found.setdefault((*self._place, key), set()).add(f"{caller.f_code.co_filename}:{caller.f_lineno}")

    def __getitem__(self, key: str) -> Any:
        self._note(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._note(key)
        return super().get(key, default)


def recorded(data: Any, place: Path_, found: dict[Path_, set[str]]) -> Any:
    if isinstance(data, dict):
        return Seen(data, place, found)
    if isinstance(data, list):
        return [recorded(each, (*place, index), found) for index, each in enumerate(data)]
    return data


def run(folder: Path, command: list[str], objects: run_states.Objects) -> tuple[int, BaseException | None, str]:
    texts = run_states.answers(objects)
    with (
        answering(folder, lambda path: texts.get(path.partition("?")[0])) as file,
        TemporaryDirectory(dir=folder) as here,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.chdir(here)
        Path("values.yaml").write_bytes(hostileclusters._values())
        patch.setattr("chartgen.releases.lock._LONGEST", 0.1)  # a lease is held for 15 s
        patch.setattr("chartgen.releases.cleanup._GRACE_BEYOND", 0.0)
        patch.setattr("chartgen.releases.cleanup._MOST_GRACE", 0)
        done = CliRunner().invoke(main, command, env={"KUBECONFIG": str(file)})
    return done.exit_code, done.exception, done.output


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Return each field that a command reads, once for each line that reads it."""
    folder, known, cases = tmp_path_factory.mktemp("read"), set[Any](), list[Case]()
    named = answers._named
    for state, objects in STATES.items():
        for command in (*COMMANDS, *OTHERS) if state == "running" else COMMANDS[:2]:
            found: dict[Path_, set[str]] = {}

            def read(item: Any, kind: Kind, found: dict[Path_, set[str]] = found) -> Object:
                whole = named(item, kind)
                place = whole["metadata"].get("namespace", ""), whole["metadata"]["name"]
                return Seen(whole, (kind.path(), *place), found)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(answers, "_named", read)
                run(folder, command, objects)
            for field, lines in found.items():
                shape = tuple(key for key in field[3:] if isinstance(key, str))
                name = "" if command in OTHERS else command[0]
                new = {(name, field[0], shape, line) for line in lines} - known
                known |= new | {("", *each[1:]) for each in new}
                cases += [Case(state, command, field)] if new and field[-2:] != ("metadata", "name") else []
    return cases


def changed(case: Case) -> Iterator[tuple[Any, run_states.Objects]]:
    """Yield the objects of a state with other values of a field."""
    for value in (None, [7], "x", 10**19, {"a": 1}, "9999-12-31T23:59:59-14:00"):
        objects = deepcopy(STATES[case.state])
        path, space, name, *keys, last = case.field
        item: Any = next(
            each
            for each in objects[path]
            if (each["metadata"].get("namespace", space), each["metadata"]["name"]) == (space, name)
        )
        for key in keys:
            item = item[key]
        item[last] = value
        yield value, objects


def check(cases: list[Case], folder: Path, values: int) -> None:
    broken = []
    for number, case in enumerate(cases):
        others = [*changed(case)]
        for at in range(values):  # each value at some of the fields
            value, objects = others[(number + at) % len(others)]
            code, error, output = run(folder, case.command, objects)
            if code not in (0, 1, 2, 3) or not (error is None or isinstance(error, SystemExit)):
                broken.append(f"{case.command} of {case.state}: {case.field} = {value!r}: {error!r}")
            assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", output), case
    gc.collect()
    assert broken == []


@pytest.mark.threat(17)
def test_no_field_of_another_type_ends_a_command_with_a_traceback(cases: list[Case], tmp_path: Path) -> None:
    assert len(cases) > 700
    check(cases[::SHARE], tmp_path, 2)


@pytest.mark.threat(17)
@pytest.mark.full
@pytest.mark.slow
def test_many_fields_of_another_type_do_not(cases: list[Case], tmp_path: Path) -> None:
    check(cases[1::4], tmp_path, 1)
