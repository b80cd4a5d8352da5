"""A stranger's rules.yaml: each defect is one line with its place, and no text of a rule becomes code of a template."""

from __future__ import annotations

from pathlib import Path

import pytest

from chartgen.composer.expressions import ExpressionError
from chartgen.composer.rule_template import Translator
from chartgen.composer.rules import read_rules
from chartgen.errors import ChartgenError

RULE = '- id: x\n  meaning: m\n  source: s\n  key: nodes\n  message: m\n  hint: h\n  require: "{}"\n'
SOUND = RULE.format("nodes")
SCHEMA = {"properties": {"nodes": {"type": "integer", "minimum": 0}, "name": {"type": "string"}}}


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x')",
        "().__class__",
        "nodes ** 9 ** 9",
        "'a' 'b'.join(name)",
        "[x for x in nodes]",
        "lambda: 1",
        "f'{nodes}'",
        "not " * 60 + "nodes",
        "(" * 240 + "1" + ")" * 240,
        "9" * 400,
        "nodes" + " + nodes" * 90,
        "nodes\\\\x",
        "storage.from == 1",
        "nodes := 1",
        "0or 1",
        "nodes if (x := 1) else 2",
        "{x for x in nodes}",
        "{x: x for x in nodes}",
        "(x for x in nodes)",
        "{1: 2}",
        "nodes.__class__()",
        "len.__call__(name)",
        "min(*nodes)",
        "min(nodes, key=len)",
        "print(nodes)",
        "open('x')",
        "keys(nodes)(1)",
        "'a'.format(nodes)",
        "f'{nodes!r:>{nodes}}'",
        "rf'{nodes}'",
        "b'x' == name",
        "nodes << 70",
        "nodes @ nodes",
        "~nodes",
        "-nodes < 1",
        "1e999 > nodes",
        "1j == nodes",
        "... == nodes",
        "1 < nodes < 3",
        "await nodes",
        "yield nodes",
        "nodes[1:2] == 3",
        "nodes; nodes",
        "",
    ],
)
def test_what_is_no_expression_is_told_at_its_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(RULE.format(text))
    with pytest.raises(ChartgenError) as caught:
        read_rules(tmp_path)
    (problem,) = caught.value.problems
    assert (problem.path, problem.line) == (path, 7)
    assert problem.column >= 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "text",
        "- 1",
        "a: 1",
        "- {id: x",
        "[" * 5000 + "]" * 5000,
        "- {a: " * 5000 + "}" * 5000,
        "- &a [x,x,x,x,x,x,x,x]\n"
        + "".join(f"- &a{n} [{','.join([f'*a{n - 1}' if n else '*a'] * 9)}]\n" for n in range(9)),
        "- !!python/object/apply:os.system [x]",
        "- {id: a, <<: {id: b}, id: c}",
        SOUND.replace("id: x", "id: Two Words"),
        SOUND.replace("id: x", "id: 5"),
        SOUND.replace("message: m", "message: '{nodes'"),
        SOUND.replace("message: m", "message: '{nodes!r}'"),
        SOUND.replace("message: m", "message: '{nodes.__class__()}'"),
        SOUND.replace("hint: h", "hint: h\n  also: ['{']"),
        SOUND.replace("hint: h", "hint: h\n  tasks: [fly]"),
        SOUND.replace("hint: h", "hint: h\n  also: 5"),
        SOUND.replace("hint: h", "hint: h\n  more: 5"),
    ],
)
def test_what_is_no_list_of_rules_is_told_in_short_lines(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(ChartgenError) as caught:
        read_rules(tmp_path)
    assert {problem.path for problem in caught.value.problems} == {path}
    assert all(len(str(problem)) < 500 and "\n" not in str(problem) for problem in caught.value.problems)


def test_large_files_are_read_rule_by_rule(tmp_path: Path) -> None:
    path, count = tmp_path / "rules.yaml", 5000
    path.write_text("".join(SOUND.replace("id: x", f"id: x-{each}") for each in range(count)))
    assert len(read_rules(tmp_path)) == count
    path.write_text(RULE.format("nodes or " * 250_000 + "nodes"))
    with pytest.raises(ChartgenError) as caught:
        read_rules(tmp_path)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("text", ["nodse", "launchers.nemo.image"])
def test_keys_are_checked_by_the_schema(text: str) -> None:
    with pytest.raises(ExpressionError):
        Translator("c", SCHEMA, "").check_key(text)


@pytest.mark.parametrize(
    "text", ["wrold > 1", "nodes > 'a'", "nodes % 0", "8 % nodes", "name * 2", "name < 'b'", "nodes.x"]
)
def test_names_and_types_are_checked_by_the_schema(text: str) -> None:
    with pytest.raises(ExpressionError):
        Translator("c", SCHEMA, "").condition(text)


def test_a_message_stays_text() -> None:
    told = Translator("c", SCHEMA, "").message('{{ .Values }}" }}}} %d \x01 {nodes}')
    assert told == '{{ "{" }} .Values }" }} %d {{ "\\u0001" }} {{ int64 $v.nodes }}'
