"""What an upgrade changes, in objects and in words."""

from __future__ import annotations

import copy
from typing import Any

import manifests
import pytest

from chartgen.diff import Change, Field, compare, describe, effect

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
    return list(describe(compare(old, new)))


def test_equal_renders_have_no_changes() -> None:
    assert compare([run(), files()], [files(), run()]) == []


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
    assert compare([files()], [new]) == [
        Change(
            "changed",
            "ConfigMap",
            "my-run-aaaaaaaa",
            "my-run-aaaaaaaa",
            (Field("metadata.labels", None, {"a": "b"}), Field("data.more", None, "x")),
        )
    ]
    assert lines([new], [files()])[1:] == ['    metadata.labels: - {"a": "b"}', '    data.more: - "x"']


def test_removed_objects_come_last() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "board"}, "spec": {}}
    assert [change.action for change in compare([service, files()], [files(), run()])] == ["added", "removed"]


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


SAVES = {"CHECKPOINT_DIRECTORY": "/outputs/a/checkpoints"}


def on(storage: dict[str, Any], name: str) -> dict[str, Any]:
    """A run whose checkpoints are on a storage."""
    found = run(name, **SAVES)
    pod = found["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "outputs", **storage}]
    pod["containers"][0]["volumeMounts"] = [{"name": "outputs", "mountPath": "/outputs"}]
    return found


def test_another_storage_has_no_checkpoint() -> None:
    old, new = on({"emptyDir": {}}, "a"), on({"nfs": {"server": "s", "path": "/"}}, "b")
    assert effect([old], [new]) == (
        "JobSet a is replaced by b: 2 pods stop; training starts from the beginning in /outputs/a/checkpoints, and "
        "/outputs/a/checkpoints of the old storage stays as it is"
    )
    assert "training resumes" in effect([old], [on({"emptyDir": {}}, "b")])


@pytest.mark.parametrize(
    ("old", "new", "outcome", "words"),
    [
        ([], [files()], "", ""),
        ([], [run()], "", "JobSet my-run-aaaaaaaa starts with 2 pods"),
        ([run()], [], "", "JobSet my-run-aaaaaaaa is removed: 2 pods stop"),
        ([run()], [run()], "", "JobSet my-run-aaaaaaaa goes on: nothing in it changes"),
        ([run()], [run()], "finished", "JobSet my-run-aaaaaaaa has finished and is not started again"),
        (
            [run(**SAVES)],
            [run("my-run-b", **SAVES)],
            "",
            (
                "JobSet my-run-aaaaaaaa is replaced by my-run-b: 2 pods stop; training resumes from the newest "
                "checkpoint in /outputs/a/checkpoints"
            ),
        ),
        (
            [run(**SAVES)],
            [run("my-run-b", CHECKPOINT_DIRECTORY="/outputs/b/checkpoints")],
            "failed",
            (
                "JobSet my-run-aaaaaaaa is replaced by my-run-b: it has failed and is removed; training starts from "
                "the beginning in /outputs/b/checkpoints, and /outputs/a/checkpoints stays as it is"
            ),
        ),
    ],
)
def test_effect_in_words(old: Objects, new: Objects, outcome: str, words: str) -> None:
    assert effect(old, new, outcome) == words
