"""What an upgrade changes, object by object."""

from __future__ import annotations

import copy
from typing import Any

import manifests
import pytest

from chartgen.releases.diff import Change, ChangedField, compare_renders, describe_changes

Objects = list[dict[str, Any]]


def run(name: str = "my-run-aaaaaaaa", kind: str = "jobset", **env: str) -> dict[str, Any]:
    """A run of two pods whose program has these variables."""
    found: dict[str, Any] = getattr(manifests, kind)(name, 2)
    template = found["spec"]["replicatedJobs"][0]["template"]["spec"] if kind == "jobset" else found["spec"]
    container = template["template"]["spec"]["containers"][0]
    container["env"] = [{"name": name, "value": value} for name, value in env.items()]
    container["args"] = ["train.py", f"--out=/outputs/{name}", "--steps=1"]
    return found


def files(name: str = "my-run-aaaaaaaa", script: str = "one\ntwo\nthree\n") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"start.sh": script}}


def lines(old: Objects, new: Objects) -> list[str]:
    return list(describe_changes(compare_renders(old, new)))


def test_equal_renders_have_no_changes() -> None:
    assert compare_renders([run(), files()], [files(), run()]) == []


def test_first_install_adds_all() -> None:
    assert lines([], [run(), files()]) == [
        "+ JobSet my-run-aaaaaaaa (added)",
        "+ ConfigMap my-run-aaaaaaaa (added)",
    ]


def test_objects_of_a_replaced_run_are_compared_with_their_successors() -> None:
    new = run("my-run-bbbbbbbb")
    new["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["args"][-1] = "--steps=2"
    args = "spec.replicatedJobs[workers].template.spec.template.spec.containers[train].args"
    assert lines([run(), files()], [new, files("my-run-bbbbbbbb", "one\n2\nthree\n")]) == [
        "~ JobSet my-run-aaaaaaaa -> my-run-bbbbbbbb (replaced)",
        f"    {args}:",
        '      - "--steps=1"',
        '      + "--steps=2"',
        "~ ConfigMap my-run-aaaaaaaa -> my-run-bbbbbbbb (replaced)",
        "    data.start.sh:",
        "      - two",
        "      + 2",
    ]


def test_another_kind_takes_the_place_of_the_run() -> None:
    (first, *_) = lines([run()], [run("my-run-b", kind="job")])
    assert first == "~ JobSet my-run-aaaaaaaa -> Job my-run-b (replaced)"


def test_fields_are_named_by_what_holds_them() -> None:
    new = files()
    new["data"] = {"start.sh": "one\ntwo\nthree\n", "more": "x"}
    new["metadata"]["labels"] = {"a": "b"}
    assert compare_renders([files()], [new]) == [
        Change(
            "changed",
            "ConfigMap",
            "my-run-aaaaaaaa",
            "my-run-aaaaaaaa",
            (ChangedField("metadata.labels", None, {"a": "b"}), ChangedField("data.more", None, "x")),
        )
    ]
    assert lines([new], [files()])[1:] == ['    metadata.labels: - {"a": "b"}', '    data.more: - "x"']


def test_removed_objects_come_last() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "board"}, "spec": {}}
    assert [change.action for change in compare_renders([service, files()], [files(), run()])] == ["added", "removed"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("HF_TOKEN", "hf_" + "a" * 30, "hf_" + "b" * 30),
        ("WANDB_API_KEY", "0123456789abcdef0123", "abcdef01234567890123"),
        ("URL", "https://me:passw0rd@host/", "https://me:0ther@host/"),
    ],
)
def test_what_looks_secret_is_hidden(name: str, old: str, new: str) -> None:
    shown = "\n".join(lines([run(**{name: old})], [run(**{name: new})]))
    assert f"env[{name}].value: " in shown
    assert shown.count("(hidden)") == 2
    for secret in (old, new, "passw0rd", "0ther"):
        assert secret not in shown
    added = "\n".join(lines([run()], [run(**{name: new})]))
    assert new not in added
    assert name in added


def test_secrets_are_hidden() -> None:
    old = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
    new = copy.deepcopy(old) | {"stringData": {"a": "c"}}
    assert lines([old], [new]) == ["~ Secret s (changed)", '    stringData.a: "(hidden)" -> "(hidden)"']


def test_long_values_are_cut() -> None:
    (_, line) = lines([files()], [files() | {"extra": "x" * 1000}])
    assert line == f'    extra: + "{"x" * 199}...'
