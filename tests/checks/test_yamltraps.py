"""What YAML silently changes in a values file is told, what it leaves alone is not; bad files get one clear line."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from mini_charts import CHART_YAML, TinyChart
from rendered import VALUES

from chartgen.checks.yaml_pitfalls import PITFALLS, pitfalls
from chartgen.errors import ChartgenError
from chartgen.helm.program import find_helm
from chartgen.helm.values import load_values
from chartgen.helm.yaml import load, load_file

REPOSITORY = VALUES.parent

# Values file -> what is told of it, in full.
TRAPPED = {
    "env: {DEBUG: no}": ['1:7: env.DEBUG: no without quotes is read as false; put it in quotes: "no" [yaml-word]'],
    "podLabels:\n  a: True": [
        '2:3: podLabels.a: True without quotes is read as true; put it in quotes: "True" [yaml-word]'
    ],
    "launchers: {x: {args: [--on, on]}}": [
        '1:30: launchers.x.args[1]: on without quotes is read as true; put it in quotes: "on" [yaml-word]'
    ],
    "env:\n  NCCL_BUFFSIZE: 8388608": [
        (
            "2:3: env.NCCL_BUFFSIZE: 8388608 without quotes is a number, which Helm prints as 8.388608e+06; "
            'put it in quotes: "8388608" [yaml-number]'
        )
    ],
    "env: {CUDA: 12.10}": [
        (
            "1:7: env.CUDA: 12.10 without quotes is a number, which Helm prints as 12.1; "
            'put it in quotes: "12.10" [yaml-number]'
        )
    ],
    "nodeSelector: {rack: 0123}": [
        (
            "1:16: nodeSelector.rack: 0123 without quotes is a number, which Helm prints as 83; "
            'put it in quotes: "0123" [yaml-number]'
        )
    ],
    "launchers: {x: {image: 25.10}}": [
        (
            '1:17: launchers.x.image: 25.10 without quotes is a number, the same as 25.1; put it in quotes: "25.10" '
            "[yaml-version]"
        )
    ],
    "launchers: {x: {config: {te_version: 1.0, imageTag: 12e4}}}": [
        (
            "1:26: launchers.x.config.te_version: 1.0 without quotes is a number, the same as 1; "
            'put it in quotes: "1.0" [yaml-version]'
        ),
        (
            "1:43: launchers.x.config.imageTag: 12e4 without quotes is a number, the same as 120000; "
            'put it in quotes: "12e4" [yaml-version]'
        ),
    ],
    "config: {axes: [x, y]}": [
        '1:20: config.axes[1]: y without quotes is read as true; write true, or "y" in quotes [yaml-letter]'
    ],
    "checkpoint: {enabled: n}": [
        '1:14: checkpoint.enabled: n without quotes is read as false; write false, or "n" in quotes [yaml-letter]'
    ],
    "steps: 0100": ["1:1: steps: 0100 is octal, which is 64; leave out the leading 0: 100, or write 64 [yaml-octal]"],
    "seed: 9007199254740993": [
        (
            "1:1: seed: 9007199254740993 is more than Helm can keep exactly; use at most 9007199254740992, "
            "or quotes where text is allowed [yaml-large-number]"
        )
    ],
    "seed: 9223372036854775808": [
        (
            "1:1: seed: 9223372036854775808 is more than Helm can keep exactly; use at most 9007199254740992, "
            "or quotes where text is allowed [yaml-large-number]"
        )
    ],
    "steps: -99999999999999999999": [
        (
            "1:1: steps: -99999999999999999999 is more than Helm can keep exactly; use at most 9007199254740992, "
            "or quotes where text is allowed [yaml-large-number]"
        )
    ],
    "a: {b: .inf, c: 1e999}": [  # the second is text for Helm, as for Go's ParseFloat
        '1:5: a.b: .inf is not a number in Helm; use a finite number, or ".inf" in quotes [yaml-infinity]',
    ],
    "on: 1": ['1:1: on: this key without quotes is read as true; put it in quotes: "on" [yaml-key]'],
    "config:\n- {y: 1}": [
        '2:4: config[0].y: this key without quotes is read as true; put it in quotes: "y" [yaml-key]'
    ],
    "a: {012: 1, 1.10: 2, ~: 3}": [
        '1:5: a.012: this key without quotes is read as 10; put it in quotes: "012" [yaml-key]',
        r'1:13: a.1\.10: this key without quotes is read as 1.1; put it in quotes: "1.10" [yaml-key]',
        '1:22: a.~: this key without quotes is read as null, which Helm refuses; put it in quotes: "~" [yaml-key]',
    ],
    # An alias stands for what is told at its anchor; a merge brings no keys of its own.
    "a: &a {b: 010}\nc: *a\nd: {<<: *a}": [
        "1:8: a.b: 010 is octal, which is 8; leave out the leading 0: 10, or write 8 [yaml-octal]"
    ],
    # The slow parser, which only such a file needs, tags its scalars.
    "a: {from: gs://x/y, b: 010}": [
        "1:21: a.b: 010 is octal, which is 8; leave out the leading 0: 10, or write 8 [yaml-octal]"
    ],
}

HARMLESS = [
    "",
    "nodes: 4\nprecision: bf16\nsequenceLength: 2097152",
    "checkpoint: {enabled: yes, x: Off, y1: true, z: False}",
    "env: {A: 'no', B: \"25.10\", C: !!str 8388608, D: 5, E: 1.5, F: true, G: 999999, H: v25.10, I: 2026-01-01}",
    "env:\n  A: 12:30:45\n  B: 1.2.3\n  C: nope\n  D: 0x\n  E: |-\n    no\n  F: >-\n    25.10\n",
    "podAnnotations: {}\nenv: null",
    "run: {date: 2026-01-01, again: 12:30}",
    "launchers: {x: {config: {lr: 1.0e-4, eps: 1e-5, mode: 0644, conversion: 1.0, on_image: no, big: 16777216}}}",
    "launchers: {x: {config: {env: {A: no}, limits: {B: 25.10}}}}",
    "extraVolumes: [{name: a, secret: {secretName: b, defaultMode: 0400}}]",
    "a: 1152921504606846976\nb: 0x1F\nc: 0o17\nd: 08\ne: 0\nf: -0\ng: 00",
    "1: a\n-5: b\n1.5: c\n'y': d\n\"012\": e\ntrue: f\n2026-01-01: g",
    "a: &a {b: *a}",
]


@pytest.mark.parametrize("text", TRAPPED)
def test_trap(text: str) -> None:
    assert [str(found) for found in pitfalls(load(text, "x.yaml"))] == [f"x.yaml:{line}" for line in TRAPPED[text]]


@pytest.mark.parametrize("text", HARMLESS)
def test_no_trap(text: str) -> None:
    assert pitfalls(load(text, "x.yaml")) == []


def test_every_trap_is_tried() -> None:
    tried = {re.findall(r"\[([a-z-]+)\]$", line)[0] for lines in TRAPPED.values() for line in lines}
    assert tried == {pitfall.id for pitfall in PITFALLS}


def test_only_what_may_be_meant_is_a_warning() -> None:
    assert {pitfall.id for pitfall in PITFALLS if pitfall.severity == "warning"} == {"yaml-letter", "yaml-version"}
    (found,) = pitfalls(load("a: {b: y}", "x.yaml"))
    assert (found.severity, found.key) == ("warning", "a.b")


def test_the_repository_has_none() -> None:
    files = [*sorted(VALUES.rglob("*.yaml")), *sorted(REPOSITORY.glob("charts/*/values.yaml"))]
    assert len(files) > 100
    assert [found for path in files for found in pitfalls(load_file(path))] == []


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
def test_helm_prints_what_is_told(tmp_path: Path) -> None:
    """Ask Helm for each kind of scalar; what it prints otherwise than written has to be told, with the very words."""
    written = [
        "no",
        "Y",
        "True",
        "true",
        "25.10",
        "1.0",
        "0123",
        "1_000",
        "8388608",
        "999999",
        "1000000",
        "1e5",
        "1e-5",
    ]
    written += [
        "0.0001",
        "1234567.5",
        "12345678901234567",
        "1e21",
        "5",
        "-3",
        "-2500000",
        "2026-01-01",
        "12:30",
        "0x1F",
    ]
    template = "{{ range $name, $value := .Values.env }}{{ $name }}: {{ $value | quote }}\n{{ end }}"
    TinyChart("tiny", {"Chart.yaml": CHART_YAML, "templates/a.yaml": template}).write(tmp_path)
    text = "env:\n" + "".join(f"  V{number}: {scalar}\n" for number, scalar in enumerate(written))
    rendered = find_helm().run(["template", "release", str(tmp_path), "--values", "-"], text)
    printed = dict(re.findall(r'^(V\d+): "(.*)"$', rendered, re.MULTILINE))
    told = {
        found.key.removeprefix("env."): found.problem.message.rpartition(" as ")[2]
        for found in pitfalls(load(text, "x.yaml"))
    }
    changed = {name: value for name, value in printed.items() if value != written[int(name[1:])]}
    assert len(printed) == len(written)
    assert told == changed


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a:\n\tb: c\n", ":2:1: a tab cannot indent YAML; use spaces"),
        (b"a: b\na: c\n", ":2:1: duplicate key 'a'; keep one of the two"),
        (b"a: \xe9\n", ": is not UTF-8 text (byte 3); save it as UTF-8"),
        ("a: b\n".encode("utf-16"), ": is not UTF-8 text (byte 0); save it as UTF-8"),
        (b"a: \0\n", ":1: is not text: it contains a NUL character"),
        (b"- a\n", ":1:1: a values file must be a map of keys, not a list"),
        (b"a: b\n---\nc: d\n", ":2:1: contains more than one YAML document"),
        (
            b"a: &a {x: 1}\n" + b"".join(b"b%d: &b%d {l: *%s, r: *%s}\n" % (n, n, p, p) for n, p in
            ((n, b"b%d" % (n - 1) if n else b"a") for n in range(20))),
            ": its aliases expand to too much data",
        ),
    ],
    ids=["tab", "duplicate", "latin-1", "utf-16", "nul", "list", "two documents", "bomb"],
)  # fmt: skip
def test_file_that_is_refused(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_bytes(content)
    with pytest.raises(ChartgenError) as caught:
        load_values([path])
    assert str(caught.value) == f"{path}{problem}"


def test_paths_that_are_no_readable_file(tmp_path: Path) -> None:
    loop, inside = tmp_path / "loop", tmp_path / "file" / "x"
    loop.symlink_to(loop)
    inside.parent.write_text("a: b\n")
    missing = tmp_path / "missing"
    with pytest.raises(ChartgenError) as caught:
        load_values([tmp_path, missing, loop, inside])
    assert [str(problem) for problem in caught.value.problems] == [
        f"{tmp_path}: is a folder, not a file",
        f"{inside}: cannot be read: Not a directory",
        f"{loop}: cannot be read: Too many levels of symbolic links",
        f"{missing}: no such file; check the path",
    ]


def test_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text("a: b\n")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:  # root may read anything; nobody may not
        os.seteuid(65534)
    try:
        with pytest.raises(ChartgenError) as caught:
            load_values([path])
    finally:
        os.seteuid(user)
    assert str(caught.value) == f"{path}: cannot be read: Permission denied"


def test_line_ends_and_byte_order_mark_are_no_trap(tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_bytes(b"\xef\xbb\xbfenv:\r\n  A: 'no'\r\n  B: no\r\n")
    (layer,) = load_values([path]).layers
    assert layer.document is not None
    assert [(found.rule, found.problem.line) for found in pitfalls(layer.document)] == [("yaml-word", 3)]
