"""Slot files: what each may hold, how items are told apart, and how fragments share a slot."""

from __future__ import annotations

from pathlib import Path

import pytest

from chartgen.composer.slots import SLOTS, SlotText, parse_slot, resolve
from chartgen.errors import ChartgenError

DISK = "- name: disk\n  hostPath:\n    path: /mnt/disk\n"


def parsed(text: str, slot: str = "volumes.yaml", fragment: str = "mine", *, gpu_only: bool = False) -> SlotText:
    return parse_slot(slot, fragment, Path(fragment, slot), text, gpu_only=gpu_only)


def problems(text: str, slot: str = "volumes.yaml") -> list[str]:
    with pytest.raises(ChartgenError) as caught:
        parsed(text, slot)
    return [str(problem).removeprefix(f"mine/{slot}:") for problem in caught.value.problems]


def joined(*texts: SlotText) -> dict[str, str]:
    return {text.fragment: "".join(part.text for part in parts) for text, parts in resolve(texts)}


def test_segments_hold_the_whole_text_and_each_item_with_its_comments() -> None:
    text = (
        "# Both disks.\n\n"
        "# The first.\n- name: a\n  emptyDir: {}\n\n"
        "{{- $size := .Values.size }}\n- name: b\n  emptyDir:\n    sizeLimit: {{ $size }}\n"
        "{{- if .Values.more }}\n- name: c\n  emptyDir: {}\n- name: d\n  emptyDir: {}\n{{- end }}\n"
        "# The end."
    )
    segments = parsed(text).segments
    assert "".join(segment.text for segment in segments) == text + "\n"
    assert [segment.keys for segment in segments] == [(), (("a", 4),), (("b", 8),), (("c", 12), ("d", 14))]
    assert [segment.line for segment in segments] == [1, 3, 7, 11]
    assert [segment.always for segment in segments] == [False, True, True, False]


@pytest.mark.parametrize("text", ["", "\n", "# Nothing yet.\n", "{{/* Nothing yet. */}}\n"])
def test_a_slot_may_be_empty(text: str) -> None:
    assert [segment.keys for segment in parsed(text).segments] in ([()], [])


@pytest.mark.parametrize("text", ["-\n  name: a\n  emptyDir: {}\n", "-   name: a\n    emptyDir: {}\n"])
def test_a_dash_may_stand_apart_from_its_item(text: str) -> None:
    assert parsed(text).segments[0].keys == (("a", 1),)


def test_every_slot_takes_its_shape_and_no_other() -> None:
    for slot, kind in SLOTS.items():
        item = {"list": f"- {kind.key or 'key'}: a\n", "map": "a: b\n"}.get(kind.shape, "echo\n")
        parsed(item, slot)
        if kind.shape in ("list", "map"):
            other = "a: b\n" if kind.shape == "list" else "- a\n"
            assert len(problems(other, slot)) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "  - name: a\n",
            "1:3: items must start in column 1; remove the indentation; the composer indents the whole file",
        ),
        ("- name: a\n-  emptyDir: {}\n", "2:4: the item has no 'name'; add 'name', which distinguishes items"),
        ("- name: a\n- b\n", "2:3: the item has no 'name'; add 'name', which distinguishes items"),
        ('- name: ""\n', "1:3: name must be text, not empty"),
        ("- name: 4\n", "1:3: name must be text, not a number"),
        (DISK + DISK, "4:1: 'disk' is already in line 1; keep one of the two"),
        ("- name: a\n...\n", "2:1: '...' begins or ends a document; remove it: a slot file is a part of a document"),
        ("- name: a\n\temptyDir: {}\n", "2:1: a tab cannot indent YAML; use spaces"),
    ],
)
def test_wrong_items(text: str, problem: str) -> None:
    assert problems(text) == [problem]


def test_equal_keys_are_found_in_maps_and_keyless_lists_too() -> None:
    assert problems("a: b\na: c\n", "nodeSelector.yaml") == ["2:1: duplicate key 'a'; keep one of the two"]
    repeated = "- key: a\n  operator: Exists\n- operator: Exists\n  key: a\n"
    assert problems(repeated, "tolerations.yaml") == ["3:1: this item is already in line 1; keep one of the two"]


def test_branches_may_repeat_a_key() -> None:
    parsed(
        "{{- if .Values.a }}\n- name: a\n  emptyDir: {}\n{{- else }}\n- name: a\n  hostPath: {path: /a}\n{{- end }}\n"
    )
    parsed("{{- if .Values.a }}\na: b\n{{- end }}\n{{- if not .Values.a }}\na: c\n{{- end }}\n", "podLabels.yaml")


@pytest.mark.parametrize(
    ("action", "what"),
    [
        ("{{- toYaml .Values.a }}", "toYaml without nindent"),
        ("{{- .Values.a | toYaml }}", "toYaml without nindent"),
        ("{{- (toYaml .Values.a) }}", ""),
        ("{{- tpl .Values.a $ }}", "tpl without nindent"),
        ("{{- toYaml .Values.a | nindent 4 }}", "nindent without <%= indent %>"),
        ("{{- toYaml .Values.a | indent 4 }}", "indent without <%= indent %>"),
        ("{{- toYaml .Values.a | nindent <%= indent + 4 %> }}", ""),
        ("{{- if eq (toYaml .Values.a) `x` }}{{ end }}", ""),
        ("{{- with toYaml .Values.a }}{{ end }}", ""),
        ("{{- $a := toYaml .Values.a }}", ""),
        ("{{ toYaml .Values.a | sha256sum }}", ""),
        ("{{ toYaml .Values.a | quote }}", ""),
        ('{{ include "a" (dict "b" (toYaml .Values.a)) }}', ""),
        ('{{ printf "toYaml | nindent" }}', ""),
        ("{{/* toYaml .Values.a */}}", ""),
        ("# toYaml .Values.a", ""),
    ],
)
def test_yaml_of_several_lines_goes_to_the_composers_column(action: str, what: str) -> None:
    text = f"- name: a\n  emptyDir:\n    {action}\n"
    if not what:
        parsed(text)
        return
    hint = "end it in '| nindent <%= indent + N %>', N being the column in this file"
    assert problems(text) == [f"3:5: {what}; {hint}"]


@pytest.mark.parametrize(
    "other",
    [
        DISK,
        "# Of another author.\n" + DISK,
        "- name: disk\n  hostPath: {path: /mnt/disk}\n",
        '- hostPath:\n    path: "/mnt/disk"\n  name: disk\n',
    ],
)
def test_equal_definitions_collapse_into_the_first(other: str) -> None:
    more = "- name: more\n  emptyDir: {}\n"
    assert joined(parsed(DISK), parsed(other + more, fragment="other")) == {"mine": DISK, "other": more}


def test_templated_definitions_are_equal_by_their_text() -> None:
    text = "- name: disk\n  hostPath:\n    path: {{ .Values.disk }}\n"
    assert joined(parsed(text), parsed("# Mine.\n" + text, fragment="other"))["other"] == ""
    with pytest.raises(ChartgenError, match="defined differently"):
        joined(parsed(text), parsed(DISK, fragment="other"))


def test_different_definitions_are_named_with_both_places() -> None:
    other = "{{- if .Values.a }}\n- name: disk\n  emptyDir: {}\n{{- end }}\n"
    with pytest.raises(ChartgenError) as caught:
        joined(parsed("\n" + DISK), parsed(other, fragment="other"))
    assert str(caught.value) == (
        "other/volumes.yaml:2:1: 'disk' is defined differently by fragment mine (mine/volumes.yaml:2); "
        "make both equal, rename one, or list only one of the fragments"
    )


def test_all_clashes_are_named_at_once() -> None:
    mine, other = parsed("a: b\nc: d\n", "podLabels.yaml"), parsed("a: x\nc: y\n", "podLabels.yaml", "other")
    with pytest.raises(ChartgenError) as caught:
        joined(mine, other)
    assert [problem.line for problem in caught.value.problems] == [1, 2]


def test_keys_that_only_helm_knows_never_clash() -> None:
    text = "{{- range .Values.disks }}\n- name: {{ .name }}\n  emptyDir: {}\n{{- end }}\n"
    other = text.replace("emptyDir: {}", "hostPath: {path: /a}")
    assert joined(parsed(text), parsed(other, fragment="other")) == {"mine": text, "other": other}


def test_what_is_always_there_wins_over_its_equal_that_needs_gpus() -> None:
    gpu, always = parsed(DISK, fragment="gpu", gpu_only=True), parsed(DISK, fragment="always")
    assert joined(gpu, always) == {"gpu": "", "always": DISK}
    assert joined(always, gpu) == {"always": DISK, "gpu": ""}


def test_large_slots_are_read_quickly() -> None:
    text = "".join(f"- name: disk-{n}\n  emptyDir: {{}}\n" for n in range(3000))
    assert len(parsed(text).segments) == 3000
