"""A user's rules.yaml in a fragment, a launcher and a workload kind: plain check and the built chart judge alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from answers import findings
from chart_refusals import refused, rendered, told, values_with
from selection import HELMS
from userlib import chartgen, composed, library, write

from chartgen.composer.library import BUILTIN

JOB = BUILTIN / "workloads" / "job"
LAUNCHER = (
    "description: Our program\ntask: train\nprocesses: gpu\nprogram: /opt/train.py\nimage: example.com/ours:1\n"
    "precisions: [bf16]\nowns: {steps: steps}\nsources: [us]\n"
)


def rule(identity: str, **fields: object) -> str:
    """One rule as YAML, which JSON is."""
    every = {"id": identity, "meaning": identity, "source": "us", "key": "nodes", "message": "m", "hint": "h"}
    return f"- {json.dumps({**every, 'require': 'nodes < 3', **fields}, ensure_ascii=False)}\n"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A library with a rule of a fragment, of a launcher, and of a workload kind."""
    library(tmp_path, {"mine/rules.yaml": rule("of-fragment", message="{nodes} of {machine.name}")})
    target = (tmp_path / "targets/box.yaml").read_text()
    files = {f"workloads/our-job/{path.relative_to(JOB)}": path.read_text() for path in JOB.rglob("*.*")}
    files["workloads/our-job/rules.yaml"] += rule("of-kind", key="steps", require="steps % max(nodes, 1) == 0")
    files["launchers/ours/launcher.yaml"] = LAUNCHER
    files["launchers/ours/values.yaml"] = "# -- How fast\nspeed: 3\n"
    files["launchers/ours/values.schema.json"] = '{"speed": {"type": "integer", "minimum": 0}}'
    files["launchers/ours/rules.yaml"] = rule("of-launcher", key="launchers.ours.speed", require="own.speed <= world")
    files["targets/box.yaml"] = target.replace("[nemo-1]", "[ours]").replace("jobset", "our-job")
    write(tmp_path, files)
    return tmp_path


BREAKING = {
    "of-fragment": {"nodes": 3, "steps": 3},
    "of-kind": {"nodes": 2, "steps": 3},
    "of-launcher": {"launchers.ours.speed": 99},
}


@pytest.mark.parametrize("identity", BREAKING)
def test_plain_check_knows_them(own: Path, identity: str) -> None:
    sets = [part for key, value in BREAKING[identity].items() for part in ("--set-json", f"{key}={value}")]
    ran = chartgen("check", "box", "--path", own, *sets, "--output", "json")
    assert ran.exit_code == 1
    assert [each["rule"] for each in findings(ran.stdout) if each["severity"] == "error"] == [identity]


def test_plain_check_places_them_in_the_values_file(own: Path) -> None:
    site = own / "site.yaml"
    site.write_text("# our machines\nsteps: 3\nnodes: 3\n")
    ran = chartgen("check", "box", "--path", own, "-f", site)
    assert ran.exit_code == 1
    assert f"{site}:3:1: nodes: 3 of box-8" in ran.stdout
    assert "[of-fragment]" in ran.stdout


def test_a_value_that_a_file_does_not_set_is_at_the_default(own: Path) -> None:
    path = own / "fragments/mine/rules.yaml"
    path.write_text(rule("wrong", key="steps", require="steps > 1000000"))
    site, other = own / "site.yaml", own / "other.yaml"
    site.write_text("nodes: 2\n")
    other.write_text("steps: 9\n")
    expected = {site: ("values.yaml", True), other: (str(other), False)}
    for file, (place, is_unset) in expected.items():
        ran = chartgen("check", "box", "--path", own, "-f", file, "--output", "json")
        (found,) = (each for each in findings(ran.stdout) if each["rule"] == "wrong")
        assert (found["path"], str(site) in found["hint"]) == (place, is_unset)


def test_what_only_helm_knows_is_named(own: Path) -> None:
    assert "validate.tpl" not in chartgen("check", "box", "--path", own).stderr
    own_text = own / "fragments" / "mine" / "validate.tpl"
    own_text.write_text("{{- /* nothing yet */}}\n")
    ran = chartgen("check", "box", "--path", own)
    assert (ran.exit_code, str(own_text) in ran.stderr, "--render" in ran.stderr) == (0, True, True)


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
@pytest.mark.parametrize("helm", HELMS)
def test_the_chart_refuses_the_same_in_the_same_words(own: Path, helm: str) -> None:
    chart, sets = composed(own), [values_with({}), *map(values_with, BREAKING.values())]
    lines = [lines for lines, _ in rendered(chart, sets, helm)]
    assert lines == [told(chart, each) for each in sets]
    assert list(map(len, lines)) == [0, 1, 1, 1]


def with_project(folder: Path) -> Path:
    text = rule("own-project", key="mine.project", require="mine.project != ''", message="is empty", hint="set it")
    schema = {"properties": {"mine": {"type": "object", "properties": {"project": {"type": "string"}}}}}
    files = {"values.yaml": "mine:\n  # -- P\n  project: ''\n", "values.schema.json": json.dumps(schema)}
    return library(folder, {"mine/rules.yaml": text, **{f"mine/{name}": each for name, each in files.items()}})


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
@pytest.mark.parametrize("helm", HELMS)
def test_a_text_that_null_deletes_is_empty(tmp_path: Path, helm: str) -> None:
    chart = composed(with_project(tmp_path))
    sets: list[dict[str, Any]] = [{"mine.project": None}, {"mine.project": ""}, {"mine.project": "a"}]
    lines = [lines for lines, _ in rendered(chart, [values_with(each) for each in sets], helm)]
    assert lines == [["mine.project: is empty; set it"], ["mine.project: is empty; set it"], []]


def test_a_value_that_null_deletes_is_one_finding(tmp_path: Path) -> None:
    own = with_project(tmp_path)
    schema = own / "fragments/mine/values.schema.json"
    for required in ("", '"required": ["mine"], '):
        schema.write_text(
            schema.read_text().replace('{"properties": {"mine"', f'{{{required}"properties": {{"mine"', 1)
        )
        ran = chartgen("check", "box", "--path", own, "--set", "mine=null", "--output", "json")
        assert [each["rule"] for each in findings(ran.stdout) if each["severity"] == "error"] == ["values-schema"]


@pytest.mark.parametrize("where", ["fragments/mine", "launchers/ours", "workloads/our-job"])
def test_a_defect_is_one_line_with_its_place(own: Path, where: str) -> None:
    path = own / where / "rules.yaml"
    path.write_text(rule("wrong", require="wrold > 1"))
    column = path.read_text().index("wrold") + 1
    for arguments in (("check", "box"), ("build", "box", "-d", own / "charts")):
        ran = chartgen(*arguments, "--path", own)
        assert ran.exit_code == 1
        assert ran.output.count("\n") == 1
        assert f"{path}:1:{column}: require of rule wrong: unknown name wrold" in ran.output


def test_a_misspelled_name_has_the_whole_path_of_the_one_that_is_meant(own: Path) -> None:
    (own / "fragments/mine/rules.yaml").write_text(rule("wrong", require="checkpoint.intervall > 0"))
    assert "did you mean checkpoint.interval?" in chartgen("build", "box", "--path", own).output


@pytest.mark.parametrize(
    ("require", "hint"),
    [
        ("precision == 4", "write whole(precision), or bytes(precision)"),
        ("nodes < machine.fabric['rails']", "write whole(machine.fabric['rails'])"),
        ("nodes * machine.capacity['cpu'] > 4", "write whole(machine.capacity['cpu'])"),
        ("nodes == '4'", "write 4"),
        ("nodes == 'four'", ""),
        ("storage < 4", ""),
    ],
)
def test_a_text_compared_with_a_number_has_a_hint(tmp_path: Path, require: str, hint: str) -> None:
    ours = library(tmp_path, {"mine/rules.yaml": rule("wrong", require=require)})
    ran = chartgen("check", "box", "--path", ours)
    assert ran.exit_code == 1
    assert ("; write " in ran.output) is bool(hint)
    assert hint in ran.output


# Text that would be code in a template, in a tag of chartgen's, in a printf or in YAML.
HOSTILE = [
    '{{{{ fail "x" }}}}',
    '{{{{- end }}}}{{{{ define "x" }}}}',
    "}}}} {{{{/* */}}}} {{{{",
    '" }}}}{{{{ .Values.nodes }}}}{{{{ "',
    "`{nodes}` %d %s %!v(MISSING) %%",
    '\\" \\n \\u0041 \\',
    "a\nb: c\n- d\r\n\te",
    "<% rules() %> <%= target.name %> <# x #>",
    "é 漢字 \U0001f600 \u2028 \u0085",
    "'single' $problems $v.nodes ${{HOME}} $(id)",
    "<%",
    "NCCL: #no comment",
]


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
@pytest.mark.parametrize("helm", HELMS)
def test_text_of_a_rule_stays_text(tmp_path: Path, helm: str) -> None:
    texts = [rule(f"r-{number}", message=text, hint=f"{text} {{nodes}}") for number, text in enumerate(HOSTILE)]
    chart = composed(library(tmp_path, {"mine/rules.yaml": "".join(texts)}))
    ((lines, _),) = rendered(chart, [values_with({"nodes": 4})], helm)
    assert lines == told(chart, values_with({"nodes": 4}))
    assert len(lines) == len(HOSTILE)
    shown = [" ".join(text.replace("{{", "{").replace("}}", "}").split()) for text in HOSTILE if "{nodes}" not in text]
    assert [text for text in shown if not any(text in line for line in lines)] == []


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
def test_each_item_of_a_long_list_is_judged(tmp_path: Path) -> None:
    text = rule("ranks", key="profile.ranks", each="profile.ranks", require="each % 2 == 0", message="{each}")
    chart, values = (
        composed(library(tmp_path, {"mine/rules.yaml": text})),
        values_with({"profile.ranks": [*range(3000)]}),
    )
    (lines,) = refused(chart, [values])
    assert lines == told(chart, values)
    assert len(lines) == 1500


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
def test_what_is_below_zero_is_divided_alike(tmp_path: Path) -> None:
    text = rule("below", require="nodes > 9", message="{(nodes - 9) // 2} {(nodes - 9) % 4} {0 - nodes}")
    chart, sets = (
        composed(library(tmp_path, {"mine/rules.yaml": text})),
        [values_with({"nodes": n}) for n in range(1, 9)],
    )
    assert refused(chart, sets) == [told(chart, each) for each in sets]


@pytest.mark.parametrize("identity", ["world-size", "values-schema", "memory-of-a-gpu"])
def test_an_id_has_one_meaning(tmp_path: Path, identity: str) -> None:
    own = library(tmp_path, {"mine/rules.yaml": rule(identity)})
    ran = chartgen("check", "box", "--path", own)
    assert ran.exit_code == 1
    assert f"{own}/fragments/mine/rules.yaml:1:4: " in ran.output
    assert identity in ran.output


def test_ids_of_two_fragments_clash_and_copies_do_not(tmp_path: Path) -> None:
    texts = {"a/rules.yaml": rule("one"), "b/rules.yaml": rule("one", meaning="another")}
    ran = chartgen("build", "box", "-d", tmp_path / "c", "--path", library(tmp_path, texts, "a", "b"))
    assert ran.exit_code == 1
    assert f"{tmp_path}/fragments/b/rules.yaml:1:4: there is already a rule one" in ran.output
    (tmp_path / "fragments/b/rules.yaml").write_text(rule("one"))
    assert chartgen("check", "box", "--path", tmp_path).exit_code == 0
