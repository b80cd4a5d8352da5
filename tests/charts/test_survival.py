"""What of a run outlives its pods, for every preset on every target and every kind of volume, and how it is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import manifests
import pytest
from pairs import TARGETS
from rendered import GPT3, VALUES, chart, fit_schema, rendered

from chartgen.checks import effective_values
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values
from chartgen.kube.workloads import find_workers
from chartgen.releases.preview import OldRun, Side, effect, side
from chartgen.releases.survival import Survival, survival

KNOWN = {"launcher": "megatron-lm", "checkpoint": {"enabled": True, "interval": 500}}
OFF = {"launcher": "megatron-lm", "checkpoint": {"enabled": False, "interval": 500}}
PRESETS = sorted(path.relative_to(VALUES) for path in VALUES.glob("*/*.yaml") if path.parent.name in TARGETS)
CLAIM = {"persistentVolumeClaim": {"claimName": "train"}}
SAVES = {"CHECKPOINT_DIRECTORY": "/outputs/a/checkpoints"}


def run(
    name: str = "my-run-aaaaaaaa", volume: dict[str, Any] | None = None, kind: str = "jobset", **env: str
) -> dict[str, Any]:
    """A run of two pods whose program has these variables; its outputs are on a volume."""
    found: dict[str, Any] = getattr(manifests, kind)(name, 2)
    job = found["spec"]["replicatedJobs"][0]["template"]["spec"] if kind == "jobset" else found["spec"]
    pod = job["template"]["spec"]
    pod["containers"][0]["env"] = [{"name": key, "value": value} for key, value in env.items()]
    if volume is not None:
        pod["volumes"] = [{"name": "outputs", **volume}]
        pod["containers"][0]["volumeMounts"] = [{"name": "outputs", "mountPath": "/outputs"}]
    return found


def outlives(item: dict[str, Any], values: dict[str, Any]) -> Survival:
    workers = find_workers([item])
    assert workers
    return survival(workers, values)


@pytest.mark.parametrize("preset", PRESETS, ids=str)
def test_every_preset(preset: Path) -> None:
    """Whether a run saves is read from its values; the files that its program reads say the same."""
    target = str(preset.parent)
    files = [VALUES / preset.name, VALUES / preset, VALUES / f"site.{target}.example.yaml"]
    made, values = chart(None, target), load_values([path for path in files if path.is_file()])
    fit_schema(made, values)
    found = objects(render(made, "my-run", "ml", values.data))
    after = side(found, effective_values(made, values))
    assert after.survival
    text = json.dumps(found)
    saves = "save-interval" in text or "create_checkpoint_callback=true" in text
    if after.survival.trains:
        assert after.survival.saves == ("yes" if saves else "no")
        assert after.survival.is_safe is (saves and after.survival.checkpoints.where != "the machine's memory")
        assert bool(after.survival.risk) is not after.survival.is_safe


# Charts refuse to save into memory.
KEPT = [("disk://", "machine"), ("pvc://train/a", "yes"), ("gs://bucket-1/a", "yes")]


@pytest.mark.parametrize(
    ("outputs", "stays", "enabled"),
    [*((*each, enabled) for each in KEPT for enabled in (True, False)), ("memory://", "no", False)],
)
def test_every_storage_of_a_chart(outputs: str, stays: str, enabled: bool) -> None:
    sets = (f"storage.outputs.from={outputs}", f"checkpoint.enabled={str(enabled).lower()}")
    values = load_values(GPT3, set_values=sets)
    found = side(rendered(*sets), effective_values(chart(), values)).survival
    assert found
    assert (found.saves, found.checkpoints.stays, found.logs.stays) == ("yes" if enabled else "no", stays, stays)
    assert found.is_safe is (enabled and stays == "yes")


@pytest.mark.parametrize(
    ("volume", "stays"),
    [
        (None, "no"),
        ({"emptyDir": {}}, "no"),
        ({"emptyDir": {"medium": "Memory"}}, "no"),
        ({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, "no"),
        ({"configMap": {"name": "x"}}, "no"),
        ({"hostPath": {"path": "/mnt/disk"}}, "machine"),
        (CLAIM, "yes"),
        ({"nfs": {"server": "s", "path": "/"}}, "yes"),
        ({"iscsi": {"targetPortal": "p"}}, "yes"),
        ({"csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": {"bucketName": "b"}}}, "yes"),
        ({"csi": {"driver": "inline.example.com"}}, "unknown"),
    ],
)
def test_every_volume(volume: dict[str, Any] | None, stays: str) -> None:
    found = outlives(run(volume=volume, **SAVES), KNOWN)
    assert found.checkpoints.stays == stays
    assert found.is_safe is (stays in ("yes", "unknown"))
    assert bool(found.risk) is (stays != "yes"), "what is not known is said too"
    assert not outlives(run(volume=volume, **SAVES), OFF).is_safe


@pytest.mark.parametrize("values", [{}, {"launcher": "x"}, {"checkpoint": {"enabled": True}}])
def test_chart_of_others_is_not_known(values: dict[str, Any]) -> None:
    kept = outlives(run(volume=CLAIM, **SAVES), values)
    assert (kept.saves, kept.is_safe) == ("unknown", True)
    assert kept.risk, "said"
    assert not outlives(run(volume={"emptyDir": {}}, **SAVES), values).is_safe
    assert outlives(run(), values).risk


def test_program_that_does_not_train_loses_no_steps() -> None:
    item = run(volume={"emptyDir": {}})
    pod = item["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pod["metadata"].setdefault("labels", {})["app.kubernetes.io/component"] = "data"
    found = outlives(item, OFF)
    assert (found.is_safe, found.risk) == (True, "")


def words(old: dict[str, Any], new: dict[str, Any], was: dict[str, Any], will: dict[str, Any]) -> str:
    return effect(side([old], was), side([new], will), OldRun("", 2))


@pytest.mark.parametrize(
    ("was", "will", "volume", "resumes"),
    [
        (KNOWN, KNOWN, CLAIM, True),
        (KNOWN, OFF, CLAIM, False),  # the new run does not load what is there
        (OFF, OFF, CLAIM, False),
        (KNOWN, KNOWN, {"emptyDir": {}}, False),
        (KNOWN, KNOWN, None, False),
        ({}, {}, {"emptyDir": {}}, False),
    ],
)
def test_training_resumes_only_where_a_checkpoint_stays(
    was: dict[str, Any], will: dict[str, Any], volume: dict[str, Any] | None, resumes: bool
) -> None:
    said = words(run("a", volume, **SAVES), run("b", volume, **SAVES), was, will)
    assert ("resumes" in said) is resumes
    assert ("from the beginning" in said) is not resumes


@pytest.mark.parametrize(("was", "volume"), [(OFF, CLAIM), ({}, CLAIM), (KNOWN, {"hostPath": {"path": "/mnt/disk"}})])
def test_what_is_not_sure_is_not_promised(was: dict[str, Any], volume: dict[str, Any]) -> None:
    sure = words(run("a", CLAIM, **SAVES), run("b", CLAIM, **SAVES), KNOWN, KNOWN)
    said = words(run("a", volume, **SAVES), run("b", volume, **SAVES), was, KNOWN)
    start = sure.partition(", saved every")[0]
    assert said.startswith(start)
    assert len(said) > len(start), "a condition"


def test_another_storage_or_directory_has_no_checkpoint() -> None:
    moved = words(run("a", CLAIM, **SAVES), run("b", {"nfs": {"server": "s", "path": "/"}}, **SAVES), KNOWN, KNOWN)
    assert "from the beginning" in moved
    assert "of the old storage stays" in moved
    off = words(run("a", CLAIM, **SAVES), run("b", CLAIM, **SAVES), KNOWN, OFF)
    assert "/outputs/a/checkpoints stays" in off, "where it is"
    renamed = words(run("a", CLAIM, **SAVES), run("b", CLAIM, CHECKPOINT_DIRECTORY="/outputs/b"), KNOWN, KNOWN)
    assert "from the beginning in /outputs/b" in renamed
    assert "/outputs/a/checkpoints stays" in renamed
    gone = words(run("a", {"emptyDir": {}}, **SAVES), run("b", CLAIM, **SAVES), KNOWN, KNOWN)
    assert "stays" not in gone


def test_pods_are_those_that_are_there() -> None:
    """A run that is gone stops no pods, whatever its manifest asks for."""
    old, new = side([run("a", CLAIM, **SAVES)], KNOWN), side([run("b", CLAIM, **SAVES)], KNOWN)
    assert "17 pods stop" in effect(old, new, OldRun("", 17))
    assert "1 pod stop" in effect(old, Side(), OldRun("", 1))
    assert "stop" not in effect(old, new, OldRun())
    assert "stop" not in effect(old, Side(), OldRun())


@pytest.mark.parametrize("outcome", ["finished", "failed"])
def test_run_that_has_ended_is_not_started_again_and_that_says_how(outcome: str) -> None:
    one = side([run()], KNOWN)
    said = effect(one, one, OldRun(outcome))
    assert outcome in said
    assert "run.again" in said
    assert "run.again" not in effect(one, one, OldRun("", 2))
    assert "stop" not in effect(one, side([run("b")], KNOWN), OldRun(outcome))


def test_release_that_runs_nothing() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    assert effect(side([], {}), side([config], {}), OldRun()) == ""
    assert "starts with 2 pods" in effect(side([], {}), side([run()], {}), OldRun())
