"""Findings arrive unchanged in every form: each is read back by the rules of those who read it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import pytest
from answers import findings as read

from chartgen import __version__
from chartgen.errors import Problem
from chartgen.findings import Finding
from chartgen.linter.catalogue import known_rules
from chartgen.reports import FORMS, format_findings

NASTY = '50% of "it\'s" <a&b>, c:d; é \U0001f600\r\nsecond\tline ]]> --> ::error::x'
BATCH = Finding(
    "global-batch",
    Problem("batch.global: 100 is not divisible by 16", Path("values/site.yaml"), 3, 10, "nearest: 96 or 112"),
    key="batch.global",
)
LETTER = Finding("yaml-letter", Problem("a: y", "my site, é:1.yaml", 1), "warning", "a")
FLAG = Finding("world-size", Problem(NASTY, "--set nodes=3", hint="use 4"), key="nodes")
NOWHERE = Finding("ours-alone", Problem("no place\x1b[31m\x00"), "warning")
ALL = [BATCH, LETTER, FLAG, NOWHERE]


def test_text() -> None:
    assert format_findings(ALL, "text", checked="oke-h100") == (
        "values/site.yaml:3:10: batch.global: 100 is not divisible by 16; nearest: 96 or 112 [global-batch]\n"
        "my site, é:1.yaml:1: warning: a: y [yaml-letter]\n"
        '--set nodes=3: 50% of "it\'s" <a&b>, c:d; é \U0001f600'
        "\\r\\nsecond\\tline ]]> --> ::error::x; use 4 [world-size]\n"
        "warning: no place\\x1b[31m\\x00 [ours-alone]\n"
        "oke-h100: 2 errors, 2 warnings\n"
    )


@pytest.mark.parametrize(
    ("findings", "counts"),
    [([], "no findings"), ([BATCH], "1 error"), ([LETTER], "1 warning"), ([BATCH, LETTER], "1 error, 1 warning")],
)
def test_counts(findings: list[Finding], counts: str) -> None:
    assert format_findings(findings, "text", checked="x").splitlines()[-1] == f"x: {counts}"


def test_json() -> None:
    rows = read(format_findings(ALL, "json", checked="oke-h100"))
    assert rows[0] == {
        "rule": "global-batch",
        "severity": "error",
        "level": "breaks",
        "path": "values/site.yaml",
        "line": 3,
        "column": 10,
        "message": "batch.global: 100 is not divisible by 16",
        "hint": "nearest: 96 or 112",
        "key": "batch.global",
    }
    assert [row["message"] for row in rows] == [each.problem.message for each in ALL]
    assert [row["path"] for row in rows] == ["values/site.yaml", "my site, é:1.yaml", "--set nodes=3", None]


def test_sarif() -> None:
    log = json.loads(format_findings(ALL, "sarif", checked="oke-h100", rules=known_rules))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("/sarif-schema-2.1.0.json")
    (run,) = log["runs"]
    assert run["automationDetails"] == {"id": "chartgen/oke-h100/"}
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["semanticVersion"]) == ("chartgen", __version__)
    known = {each.id: each for each in known_rules()}
    assert driver["rules"][0] == {
        "id": "global-batch",
        "shortDescription": {"text": known["global-batch"].meaning},
        "help": {"text": f"{known['global-batch'].meaning}\n\n{known['global-batch'].remedy}"},
        "defaultConfiguration": {"level": "error"},
        "properties": {"level": "breaks"},
    }
    assert [rule["id"] for rule in driver["rules"]] == ["global-batch", "ours-alone", "world-size", "yaml-letter"]
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in driver["rules"])
    assert run["results"][0] == {
        "ruleId": "global-batch",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "batch.global: 100 is not divisible by 16; nearest: 96 or 112"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "values/site.yaml"},
                    "region": {"startLine": 3, "startColumn": 10},
                },
                "logicalLocations": [{"fullyQualifiedName": "batch.global"}],
            }
        ],
    }
    assert [driver["rules"][each["ruleIndex"]]["id"] for each in run["results"]] == [each.rule for each in ALL]


def test_sarif_places() -> None:
    results = json.loads(format_findings(ALL, "sarif", checked="x"))["runs"][0]["results"]
    place = results[1]["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "my%20site%2C%20%C3%A9%3A1.yaml"},
        "region": {"startLine": 1},
    }
    assert unquote(place["artifactLocation"]["uri"]) == LETTER.problem.path
    assert results[2]["locations"] == [{"logicalLocations": [{"fullyQualifiedName": "nodes"}]}]
    assert results[2]["message"]["text"] == f"--set nodes=3: {NASTY}; use 4"
    assert "locations" not in results[3]


def test_sarif_without_findings() -> None:
    (run,) = json.loads(format_findings([], "sarif", checked="x"))["runs"]
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


def test_junit() -> None:
    text = format_findings([*ALL, BATCH], "junit", checked='a "target" & <more>')
    (suite,) = ET.fromstring(text.encode())  # noqa: S314
    assert suite.attrib == {"name": 'a "target" & <more>', "tests": "4", "failures": "2"}
    assert [(case.get("classname"), case.get("name")) for case in suite] == [
        ("values/site.yaml", "global-batch"),
        ("my site, é:1.yaml", "yaml-letter"),
        ("--set nodes=3", "world-size"),
        ('a "target" & <more>', "ours-alone"),
    ]
    (failure,), (warning,), (nasty,), (control,) = suite
    said = "batch.global: 100 is not divisible by 16; nearest: 96 or 112"
    assert failure.attrib == {"message": said, "type": "global-batch"}
    assert failure.text == f"values/site.yaml:3:10: {said}\nvalues/site.yaml:3:10: {said}"
    assert (warning.tag, warning.text) == ("system-out", "my site, é:1.yaml:1: a: y")
    assert (nasty.tag, nasty.get("message")) == ("failure", f"{NASTY}; use 4")
    assert nasty.text == f"--set nodes=3: {NASTY}; use 4"
    assert control.text == "no place\\x1b[31m\\x00"


def test_junit_without_findings_is_one_test_that_passed() -> None:
    (suite,) = ET.fromstring(format_findings([], "junit", checked="oke-h100"))  # noqa: S314
    (case,) = suite
    assert suite.attrib == {"name": "oke-h100", "tests": "1", "failures": "0"}
    assert (case.attrib, list(case)) == ({"classname": "oke-h100", "name": "check"}, [])


def read_command(line: str) -> tuple[str, dict[str, str], str]:
    """Read a workflow command as the runner does (actions/runner, src/Runner.Common/ActionCommand.cs)."""
    match = re.fullmatch(r"::(\w+) (.*?)::(.*)", line)
    assert match, line
    undo = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}

    def told(text: str) -> str:
        return re.sub("%(?:0D|0A|3A|2C|25)", lambda found: undo[found[0]], text)

    pairs = (pair.partition("=") for pair in match[2].split(","))
    return match[1], {name: told(value) for name, _, value in pairs}, told(match[3])


def test_github() -> None:
    text = format_findings(ALL, "github", checked="oke-h100")
    assert text.startswith(
        "::error file=values/site.yaml,line=3,col=10,title=global-batch::"
        "batch.global: 100 is not divisible by 16; nearest: 96 or 112\n"
    )
    assert text.endswith("\n")
    assert [read_command(line) for line in text[:-1].split("\n")][1:] == [
        ("warning", {"file": "my site, é:1.yaml", "line": "1", "title": "yaml-letter"}, "a: y"),
        ("error", {"title": "world-size"}, f"--set nodes=3: {NASTY}; use 4"),
        ("warning", {"title": "ours-alone"}, r"no place\x1b[31m\x00"),
    ]
    assert format_findings([], "github", checked="oke-h100") == ""


def test_paths_below_the_working_directory_are_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, outside = tmp_path / "work" / "a b.yaml", tmp_path / "other.yaml"
    inside.parent.mkdir()
    monkeypatch.chdir(inside.parent)
    findings = [Finding("x", Problem("m", path, 1)) for path in (inside, outside, Path("../other.yaml"))]
    shown = ["a b.yaml", str(outside), "../other.yaml"]
    assert [row["path"] for row in read(format_findings(findings, "json", checked="x"))] == shown
    assert format_findings(findings, "text", checked="x").splitlines()[:3] == [f"{path}:1: m [x]" for path in shown]
    results = json.loads(format_findings(findings, "sarif", checked="x"))["runs"][0]["results"]
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results]
    assert uris == ["a%20b.yaml", outside.as_uri(), "../other.yaml"]


@pytest.mark.parametrize("form", FORMS)
def test_bytes_of_the_command_line_that_are_no_text(form: str) -> None:
    """A shell can pass any bytes; Python keeps them as halves of surrogate pairs, which no terminal takes."""
    found = Finding("x", Problem("a\udce9b", "--set a=\udce9"), key="a\udce9")
    assert format_findings([found], form, checked="x\udce9").encode()
