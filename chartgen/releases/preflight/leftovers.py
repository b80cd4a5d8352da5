"""Leftovers of earlier commands: runs without a record, and records of commands that never ended."""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.kube import Object
from chartgen.kube.workloads import outcome
from chartgen.releases.history import OWNER_ANNOTATION, UNFINISHED, RevisionRecord
from chartgen.releases.preflight.context import Diagnosis, PreflightContext, warned


def orphans(context: PreflightContext) -> Iterator[Diagnosis]:
    """Every run that Helm made belongs to the last revision; an uninstall by Helm ignores all others."""
    # runs of Argo CD and Flux may lack it
    made = [run for run in context.runs if OWNER_ANNOTATION in run["metadata"].get("annotations", {})]
    for run in made:
        record = _record_of(context, run)
        if record is None or record is not context.records[-1]:
            yield _orphan(context, run, record)


def stuck_release(context: PreflightContext) -> Iterator[Diagnosis]:
    """The last command on the release was completed."""
    for record in context.records[-1:]:
        if record.status in UNFINISHED:
            text = f"revision {record.revision} is {record.status} since {record.updated:%Y-%m-%d %H:%M} UTC"
            hint = "the next chartgen command recovers it, unless another one is still at work"
            yield warned(f"{text}: a command was cut off", hint)


def _record_of(context: PreflightContext, run: Object) -> RevisionRecord | None:
    """Return the newest record that contains a run."""
    key = (run["kind"], run["metadata"]["name"])
    for record in reversed(context.records):
        if key in {(item["kind"], item["metadata"]["name"]) for item in record.objects}:
            return record
    return None


def _orphan(context: PreflightContext, run: Object, record: RevisionRecord | None) -> Diagnosis:
    kind, name = run["kind"], run["metadata"]["name"]
    ended = outcome(run)
    state = f"has {ended}" if ended else "still occupies its machines"
    if record:
        text = f"{kind} {name} is left from revision {record.revision} and {state}"
        return warned(text, f"chartgen upgrade replaces it, chartgen uninstall {context.release} removes it")
    group = run["apiVersion"].rpartition("/")[0]
    command = f"delete {context.cluster.kind(run['apiVersion'], kind).plural}.{group} {name} --cascade=foreground"
    return warned(
        f"{kind} {name} is in no record of Helm and {state}", f"kubectl --namespace {context.namespace} {command}"
    )
