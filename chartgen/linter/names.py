"""What a template leaves empty or misprints: the API server accepts the object, but its pods never start, or fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chartgen.findings import PartProblem
from chartgen.kube.manifest_walk import Keys, Object, items, maps, metadata, pods, texts
from chartgen.kube.validation import spelled

_FILL = "give the value that the template fills in, or refuse an empty one there with `required`"
# Fields that must be set in each item of a list, or in a map (kubernetes.io, API reference, Pod: "Required value").
_REQUIRED = {
    "containers": ("name", "image"),
    "initContainers": ("name", "image"),
    "volumes": ("name",),
    "volumeMounts": ("name", "mountPath"),
    "volumeDevices": ("name", "devicePath"),
    "env": ("name",),
    "resourceClaims": ("name",),
    "persistentVolumeClaim": ("claimName",),
    "configMap": ("name",),
    "secret": ("secretName",),
    "secretKeyRef": ("name", "key"),
    "configMapKeyRef": ("name", "key"),
    "secretRef": ("name",),
    "configMapRef": ("name",),
    "hostPath": ("path",),
    "nfs": ("server", "path"),
    "csi": ("driver",),
    # cloud.google.com, Mount Cloud Storage buckets as CSI ephemeral volumes
    "volumeAttributes": ("bucketName",),
}

# What Go prints in place of a missing value, or of one with another type (pkg.go.dev/fmt, Format errors; pkg.go.dev/
# text/template, Option missingkey). Helm drops `<no value>`, but not where a template has made JSON of it.
_NIL = r"(?:<|\\u003c)(?:nil|no value)(?:>|\\u003e)"
_MISPRINT = re.compile(
    rf"%![A-Za-z]\((?:{_NIL}|MISSING|BADINDEX|[\w.*\[\]{{}} ]{{1,60}}=[^)\n]{{0,60}})\)?"
    rf"|%!\((?:EXTRA |NOVERB|BADWIDTH|BADPREC|BADINDEX)[^)\n]{{0,60}}\)?|{_NIL}"
)


def values_are_printed(thing: Object) -> Iterator[PartProblem]:
    """No key or text contains what Go prints for a missing value, such as `%!s(` or `no value` in angle brackets.

    A line that a file of the chart contains unchanged is the text of its author, such as one of a dashboard.
    """
    for at, text in texts(thing):
        if match := _MISPRINT.search(text):
            mark, number = match[0], text.count("\n", 0, match.start()) + 1
            field = spelled(at[-2:] if isinstance(at[-1], int) else at[-1:])
            line = text.split("\n")[number - 1].strip()
            yield PartProblem(
                f"{field} contains {mark}, which Go prints in place of a value that is missing or of another type",
                at=at,
                line=number if "\n" in text else 0,
                quote=line if line != mark else "",
            )


def names_are_set(thing: Object) -> Iterator[PartProblem]:
    """Every name or path that Kubernetes requires is set; a JobSet with `name: ""` is accepted but never creates pods.

    Null or missing fields are left to the schemas. Of several empty items the first is reported: they have one cause.
    OpenShift's triggers fill an empty image.
    """
    triggers = [each.get("type") for _, each in items(thing.get("spec") or {}, "triggers")]
    notes = metadata(thing).get("annotations") or {}
    filled = "image" if "ImageChange" in triggers or "image.openshift.io/triggers" in notes else None
    if _blank(metadata(thing).get("name")) and "generateName" not in metadata(thing):
        yield PartProblem("has an empty name", _FILL, ("metadata", "name"))
    for pod in pods(thing):
        reported: list[Keys] = []
        for at, node in maps(pod.spec, pod.at):
            for complaint in _empty_fields(at, node):
                if complaint.at[-1] != filled and not any(complaint.at[: len(item)] == item for item in reported):
                    reported.append(complaint.at[:-1])
                    yield complaint


def _empty_fields(at: Keys, node: Object) -> Iterator[PartProblem]:
    """Report the empty fields of each part of a map in one complaint."""
    for key, fields in _REQUIRED.items():
        inner = node.get(key)
        parts = [((*at, key), inner)] if isinstance(inner, dict) else []
        for place, part in (*parts, *(((*at, key, index), item) for index, item in items(node, key))):
            if empty := [field for field in fields if _blank(part.get(field))]:
                name = ".".join(str(each) for each in place[-2:])
                yield PartProblem(f"{name} has an empty {' and '.join(empty)}", _FILL, (*place, empty[0]))


def _blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()
