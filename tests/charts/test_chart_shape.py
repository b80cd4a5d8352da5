"""A chart can be read: short chains of includes, short lines, and no template that asks which launcher it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from chart_shape import include_depth, long_lines
from pairs import WIRINGS

from chartgen.composer.assembly import compose
from chartgen.composer.target import load_target

DEEPEST = 6
# Rules of a launcher ask which one it is.
RULES = "templates/_validate.tpl"
SHAPES = [(name, "") for name in WIRINGS]
SHAPES += [("gke-a3mega", kind) for kind in ("job", "mpijob", "pytorchjob", "trainjob")] + [("eks-p5", "rayjob")]


@pytest.mark.parametrize(("name", "kind"), SHAPES)
def test_a_chart_can_be_read(name: str, kind: str, tmp_path: Path) -> None:
    chart = compose(load_target(name), kind or None)
    chart.write(tmp_path / "chart")
    depth, chain = include_depth(tmp_path / "chart")
    assert depth <= DEEPEST, " -> ".join(chain)
    assert long_lines(tmp_path / "chart") == []
    asking = re.compile(r"\b(eq|ne) \.Values\.launcher \"")
    helpers = {path for path in chart.files if path.startswith("templates/") and path != RULES}
    assert {path for path in helpers if asking.search(chart.files[path])} <= {"templates/_storage.tpl"}


def test_a_chain_counts_what_printf_can_name(tmp_path: Path) -> None:
    templates = tmp_path / "templates"
    templates.mkdir()
    (templates / "job.yaml").write_text(
        '{{ include (printf "box.part.%s" .Values.name) . }}\n{{ template "box.name" . }}\n'
    )
    (templates / "_box.tpl").write_text(
        '{{- define "box.part.a" }}{{ include "box.name" . }}{{ end }}\n'
        '{{- define "box.part.b" }}{{ include "box.part.b" . }}{{ end }}\n'
        '{{- define "box.name" }}box{{ end }}\n' + "#" * 161
    )
    assert include_depth(tmp_path) == (2, ["templates/job.yaml", "box.part.a", "box.name"])
    assert long_lines(tmp_path) == [("templates/_box.tpl", 4, 161)]
