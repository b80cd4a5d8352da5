"""A finding stands in the file that its author can mend: the user's own fragment, template, script or notes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from answers import findings as read
from userlib import chartgen, library

from chartgen.composer.assembly import compose, compose_setup, compose_sources
from chartgen.composer.library import BUILTIN
from chartgen.composer.origin import Composed
from chartgen.composer.target import load_target
from chartgen.rehearsal import engines

ENV = '- name: A\n  value: "1"\n'
# What is wrong in the user's library -> its files, the file and line that must be blamed; line 0 is no line.
CASES: dict[str, tuple[dict[str, str], str, int]] = {
    "missing template": (
        {"mine/podAnnotations.yaml": '# one\nexample.com/a: {{ include "box.nosuch" . }}\n'},
        "mine/podAnnotations.yaml",
        2,
    ),
    "missing value": (
        {"mine/env.yaml": f"{ENV}- name: B\n  value: {{{{ .Values.no.such | quote }}}}\n"},
        "mine/env.yaml",
        4,
    ),
    "own helper": (
        {
            "mine/helpers.tpl": '{{- define "box.mine" -}}\n{{ fromJson .Values.a.b.c }}\n{{- end }}\n',
            "mine/env.yaml": '- name: A\n  value: {{ include "box.mine" . | quote }}\n',
        },
        "mine/helpers.tpl",
        2,
    ),
    "chartgen's helper called in a wrong way": (
        {"mine/env.yaml": '- name: A\n  value: {{ include "box.gpusPerNode" "x" | quote }}\n'},
        "mine/env.yaml",
        2,
    ),
    "no such function": ({"mine/env.yaml": "- name: A\n  value: {{ nosuch 1 | quote }}\n"}, "mine/env.yaml", 2),
    "no YAML": (
        {"mine/manifests/a.yaml": 'kind: ConfigMap\ndata:\n  a: {{ "b: c: d" }}\n'},
        "mine/manifests/a.yaml",
        0,
    ),
    "an object": (
        {"mine/manifests/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: default\n"},
        "mine/manifests/a.yaml",
        5,
    ),
    "an object in a list": (
        {
            "mine/manifests/a.yaml": "apiVersion: v1\nkind: List\nitems:\n"
            "  - apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: a\n      namespace: default\n"
        },
        "mine/manifests/a.yaml",
        8,
    ),
    "unended if": ({"mine/beforeLaunch.sh": "echo one\n\nif [ -e /x ]; then\n  echo two\n"}, "mine/beforeLaunch.sh", 3),
    "unended quote": ({"mine/beforeLaunch.sh": 'echo one\necho "two\necho three\n'}, "mine/beforeLaunch.sh", 2),
    "unexpected word": ({"mine/beforeLaunch.sh": "echo one\nfi\n"}, "mine/beforeLaunch.sh", 2),
}
for slot, other in (("podLabels", "podAnnotations"), ("nodeSelector", "podLabels"), ("podAnnotations", "podLabels")):
    CASES[f"{slot} with a key that {other} has too"] = (
        {
            f"mine/{slot}.yaml": "# one\nexample.com/a: {{ .Values.steps }}\n",
            f"mine/{other}.yaml": "example.com/a: {{ .Values.steps | quote }}\n",
        },
        f"mine/{slot}.yaml",
        2,
    )
RULES = {"helm-template", "scripts-parse", "no-literal-namespace", "objects-fit-their-schema"}


def findings(*arguments: str | Path, helm: str = "helm") -> list[dict[str, Any]]:
    program = engines.find_engine(helm)
    assert program
    ran = chartgen("lint", "--no-cache", "--output", "json", *arguments, env={"CHARTGEN_HELM": str(program)})
    assert ran.exit_code == 1, ran.output
    return read(ran.stdout)


def blamed(found: list[dict[str, Any]]) -> set[tuple[str, int]]:
    """Return the places of what was found; never in chartgen's own files."""
    assert not any(Path(each["path"]).is_relative_to(BUILTIN) for each in found), found
    return {(str(each["path"]), each["line"] or 0) for each in found if each["rule"] in RULES}


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Away from the checkout: there chartgen's own files are the user's, too."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.helm
@pytest.mark.parametrize("case", CASES)
def test_fault_of_a_fragment_is_blamed_on_it(case: str, tmp_path: Path) -> None:
    files, path, line = CASES[case]
    ours = library(tmp_path / "ours", files)
    assert blamed(findings("box", "--path", ours)) == {(str(Path("ours", "fragments", path)), line)}


@pytest.mark.helm
@pytest.mark.parametrize("case", ["missing value", "chartgen's helper called in a wrong way", "no YAML"])
def test_helm_3_blames_the_same(case: str, tmp_path: Path) -> None:
    files, path, line = CASES[case]
    ours = library(tmp_path / "ours", files)
    assert blamed(findings("box", "--path", ours, helm="helm3")) == {(str(Path("ours", "fragments", path)), line)}


@pytest.mark.helm
def test_notes_of_an_own_workload_kind_are_blamed(tmp_path: Path) -> None:
    ours = library(tmp_path / "ours", {"mine/env.yaml": ENV})
    shutil.copytree(BUILTIN / "workloads" / "jobset", ours / "workloads" / "ours")
    (ours / "workloads" / "ours" / "templates" / "NOTES.txt").write_text("Thanks\n\n{{ .Values.no.such.note }}\n")
    target = ours / "targets" / "box.yaml"
    target.write_text(target.read_text().replace("workload: jobset", "workload: ours"))
    assert blamed(findings("box", "--path", ours)) == {("ours/workloads/ours/templates/NOTES.txt", 3)}


@pytest.mark.helm
def test_built_chart_is_blamed_only_for_what_was_written_into_it(tmp_path: Path) -> None:
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: default\n"
    ours = library(tmp_path / "ours", {"mine/manifests/a.yaml": manifest})
    assert chartgen("build", "box", "--path", ours).exit_code == 0
    assert blamed(findings("charts/box", "--path", ours)) == {("ours/fragments/mine/manifests/a.yaml", 5)}
    built = tmp_path / "charts" / "box" / "templates" / "a.yaml"
    built.write_text(
        built.read_text().replace(
            "metadata:\n  name: a\n  namespace: default", "metadata:\n  name: a\n  namespace: other"
        )
    )
    assert blamed(findings("charts/box", "--path", ours)) == {("charts/box/templates/a.yaml", 6)}


@pytest.mark.parametrize("name", ["gke-a3mega", "oke-h100"])
@pytest.mark.parametrize("setup", [False, True])
def test_every_line_of_a_chart_is_traced_to_the_line_that_made_it(name: str, setup: bool) -> None:
    """Nothing is guessed: a line of which nothing but a tag changes is the line of its source.

    The lines of a rule are written from its parts: all are told by the line where the rule begins.
    """
    target = load_target(name)
    chart = compose_setup(target) if setup else compose(target)
    assert chart
    compared = 0
    for path, lines in compose_sources(Composed(target, target.workload, setup)).items():
        assert [text for text, _ in lines] == chart.files[path].split("\n")
        for text, source in lines:
            written = source.path.read_text().split("\n")[source.line - 1] if source else "<%"
            if source and source.path.name == "rules.yaml":
                assert written.startswith("- id: "), "what a rule's lines become is told by the start of the rule"
            elif "<%" not in written:
                compared += 1
                assert text.strip() == written.strip(), source
    assert compared > 300


@pytest.mark.helm
def test_render_names_the_users_file_too(tmp_path: Path) -> None:
    ours = library(tmp_path, {"mine/env.yaml": f"{ENV}- name: B\n  value: {{{{ .Values.no.such | quote }}}}\n"})
    ran = chartgen("render", "box", "--path", ours)
    assert (ran.exit_code, ran.output.count("\n")) == (1, 1)
    assert f"{ours}/fragments/mine/env.yaml:4" in ran.output
