"""Lines of any program: expressions of the values, which never backtrack, read what the built-in readers read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median

import pytest
from answers import findings
from userlib import chartgen

from chartgen.checks.line_patterns import compile_lines
from chartgen.metrics.read.log import read_logs
from chartgen.metrics.show.live import live_progress

FSDP = Path(__file__).parents[1] / "data" / "logs" / "fsdp.log"
LOG = Path(__file__).parents[1] / "data" / "logs" / "torchtitan.log"
TITAN = [
    r"step:\s+(?P<step>\d+)\s+loss:\s+(?P<loss>[-\d.]+)",
    r"tps:\s+(?P<tokens>[\d,]+)\s+tflops:\s+(?P<tflops>[\d,.]+)",
]


def test_expressions_read_the_same_as_the_built_in_reader(tmp_path: Path) -> None:
    theirs, ours = read_logs([str(LOG)]).track, read_logs([str(LOG)], compile_lines(TITAN)).track
    assert (ours.family, theirs.family) == ("own", "torchtitan")
    assert [*ours.numbers] == [*theirs.numbers]
    for name in ("loss", "tokens", "tflops"):
        assert [*ours.columns[name]] == pytest.approx([*theirs.columns[name]], nan_ok=True)
    values = {"launcher": "torchrun", "launchers": {"torchrun": {"metrics": TITAN}}}
    file = tmp_path / "own.json"
    file.write_text(json.dumps(values))
    done = chartgen("metrics", str(LOG), "-f", file, "--window", "all", "--output", "json", "--gpus", "8")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["steps"]["logged"] == len(ours)


def test_the_guides_expression_reads_the_log_of_its_program() -> None:
    """Of values/fsdp.yaml on 2 H200 with torch 2.11, 30 steps."""
    done = chartgen(
        "metrics", str(FSDP), "-f", FSDP.parents[3] / "values" / "fsdp.yaml", "--window", "11:30", "--output", "json"
    )
    found = json.loads(done.stdout)
    assert (found["steps"]["logged"], found["loss"]["last"]) == (30, 0.06694)
    seconds = [float(text) for text in re.findall(r"seconds: ([\d.]+)", FSDP.read_text())]
    assert found["stepSeconds"]["median"] == pytest.approx(median(seconds[10:]))


def test_milliseconds_become_seconds_and_colours_are_left_out() -> None:
    own = compile_lines([r"iter (?P<step>\d+), (?P<milliseconds>[\d.]+)ms"])
    lines = [f"\x1b[32miter {step}, 250.0ms\x1b[0m\n" for step in (1, 2, 3)]
    assert live_progress(lines, 10, own=own).text == "step 3 of 10, 0.25 s a step, 1.75 s left"
    assert live_progress(["iter 3, nothing\n"], 10, own=own).text == ""


@pytest.mark.parametrize(
    ("texts", "about"),
    [
        (["step ("], "step ("),
        ([r"step (?P<step>\d+).*loss"], "repetition"),
        ([r"step (?P<step>(\d+)+)x"], "group is repeated"),
        ([r"step (?P<step>(?:\d\d)*)x"], "repeated"),
        ([r"step (?P<step>\d+)(?=x)"], "assert"),
        ([r"step (?P<step>\d)\1"], "groupref"),
        ([r"(?:\d|1x) step (?P<step>\d+)"], "alternatives"),
        ([r"(?i)step (?P<step>\d+)"], "flags"),
        ([r"step (?P<number>\d+)"], "number"),
        ([r"loss (?P<loss>\d+)"], "step"),
        ([r"(?P<step>\d+)"], "text of the line"),
        ([r"step a?a?a?a?a?aaaaa(?P<step>\d+)"], "repetition"),
        ([r"[[a]step (?P<step>\d+)"], "not a regular expression"),
    ],
)
def test_what_could_backtrack_or_says_nothing_is_refused(texts: list[str], about: str) -> None:
    with pytest.raises(ValueError, match=re.escape(about)):
        compile_lines(texts)


def test_check_reports_an_expression_where_it_is(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    own = "{image: 'a:1', program: /a.py, metrics: ['step (?P<step>.*)x']}"
    file.write_text(f"launcher: torchrun\nqueue: {{name: lab}}\nlaunchers:\n  torchrun: {own}\n")
    done = chartgen("check", "onprem-p8000", "-f", file, "--output", "json")
    (found,) = (each for each in findings(done.stdout) if each["severity"] == "error")
    assert (found["rule"], found["line"], found["path"]) == ("expressions-for-the-log", 4, str(file))
