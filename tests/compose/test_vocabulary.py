"""`chartgen list slots|helpers|facts` and the reference page: complete, and true of real charts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from answers import answer
from chart_refusals import refused, values_with
from userlib import FRAGMENT, chartgen, composed, library

from chartgen.composer.fragment import load_fragment
from chartgen.composer.pod_files import FIELDS
from chartgen.composer.rule_facts import FACTS, INTERNAL
from chartgen.composer.slots import SLOTS, slot_example
from chartgen.composer.vocabulary import PUBLIC

PAGES = Path(__file__).parents[2] / "docs" / "reference" / "extending"


def listed(kind: str, *more: str | Path) -> dict[str, dict[str, str]]:
    return {row["name"]: row for row in answer(chartgen("list", kind, "--output", "json", *more).stdout)["items"]}


def test_slots_and_facts_are_those_of_the_code() -> None:
    assert list(listed("slots")) == [*FIELDS, *(name for name, slot in SLOTS.items() if not slot.file)]
    assert list(listed("facts")) == [name for name in FACTS if name not in INTERNAL]


def test_the_examples_of_slots_fill_all(tmp_path: Path) -> None:
    examples = {f"mine/{name}": slot_example(name) for name in listed("slots")}
    reason = {"mine/fragment.yaml": f"{FRAGMENT}privileges: {{hostPath /opt/fabric/topology.xml in program: a}}\n"}
    found = load_fragment(library(tmp_path, {**examples, **reason}) / "fragments" / "mine").slots
    assert found.keys() == SLOTS.keys()
    assert found["tolerations.yaml"].segments[0].text.startswith("- key: example.com/gpu\n  operator: Exists\n")


def test_the_helpers_for_authors_and_those_of_own_fragments_are_listed(tmp_path: Path) -> None:
    own = '{{/* Ports of a machine. */}}\n{{- define "<%= chart %>.ports" -}}8{{- end }}\n'
    found = listed("helpers", "--path", library(tmp_path, {"mine/helpers.tpl": own}))
    assert (found["ports"]["description"], found["ports"]["fragment"]) == ("Ports of a machine.", "mine")
    assert found.keys() == {*PUBLIC, "ports"}
    assert "<%" not in "".join(row["description"] for row in found.values())


def test_the_pages_name_every_key_slot_and_helper() -> None:
    page = "".join(path.read_text() for path in PAGES.glob("*.md"))
    names = [*listed("slots"), *listed("helpers"), "machines.NAME.fabric", "nccl.devices", "owns", "rankLabel"]
    assert [name for name in names if f"| `{name}` |" not in page] == []
    fields = [f"| `{slot.field}` in `{slot.file}` |" for slot in SLOTS.values() if slot.file]
    assert [field for field in fields if field not in page] == []


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
def test_the_variables_of_validate_are_there(tmp_path: Path) -> None:
    names = re.findall(r"^\| `(\$\w+)` \|", (PAGES / "templates.md").read_text(), re.MULTILINE)
    assert names == ["$machine", "$launcher", "$gpus", "$fact"]
    text = '{{- $said := printf "%v %v %v %v" $machine.capacity.cpu $launcher.task $gpus $fact.world }}\n'
    text += '{{- $_ := set $check "problems" (append $check.problems $said) }}\n'
    chart = composed(library(tmp_path, {"mine/validate.tpl": text}))
    assert refused(chart, [values_with({"nodes": 2})]) == [["96 train 8 16"]]
