"""Places of the package where a text becomes code, a program, or bytes: each is of a kind that is known to be sound."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import chartgen

PACKAGE = Path(chartgen.__file__).parent
# Programs of the pods, which run in a container of their own.
IN_PODS = ("library",)
CODE = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "pickle.load", "pickle.loads", "yaml.load"}


def calls() -> Iterator[tuple[Path, ast.Call, str]]:
    """Yield each call of the package: its file, itself, and what is called, as it is written."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                yield path.relative_to(PACKAGE), node, ast.unparse(node.func)


def given(call: ast.Call) -> dict[str | None, str]:
    return {each.arg: ast.unparse(each.value) for each in call.keywords}


CALLS = [*calls()]
PROGRAMS = [
    pytest.param(path, call, id=f"{path}:{call.lineno}")
    for path, call, name in CALLS
    if name in ("subprocess.run", "subprocess.Popen") and path.parts[0] not in IN_PODS
]


def test_no_text_becomes_code() -> None:
    assert len(CALLS) > 5000
    assert [(path, call.lineno) for path, call, name in CALLS if name in CODE] == []


@pytest.mark.parametrize(("path", "call"), PROGRAMS)
def test_programs_run_without_a_shell_and_in_utf8(path: Path, call: ast.Call) -> None:
    options = given(call)
    assert "shell" not in options
    assert "text" not in options, "names no encoding"
    if path.parts[0] == "linter":
        assert {"env", "timeout"} <= {*options}


def opens_text(call: ast.Call, name: str) -> bool:
    """Report whether a call opens a file as text; a `read_text` with a path is chartgen's own, which is UTF-8."""
    method, words = name.rpartition(".")[2], [ast.unparse(each) for each in call.args]
    modes = {"'w'", "'a'", "'r'", "'w+'"}.intersection(words)
    return (
        method == "write_text"
        or (method == "read_text" and not words)
        or (method in ("open", "fdopen") and modes != set())
    )


def test_texts_are_utf8_wherever_they_are_read() -> None:
    texts = [each for each in CALLS if each[0].parts[0] not in IN_PODS and opens_text(each[1], each[2])]
    assert texts
    named = [call for _, call, _ in texts if "encoding" in given(call) or "'utf-8'" in map(ast.unparse, call.args)]
    assert [(path, call.lineno) for path, call, _ in texts if call not in named] == []
