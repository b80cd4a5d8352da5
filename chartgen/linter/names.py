"""What a template leaves empty or misprints: the API server accepts the object, but its pods never start, or fail."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chartgen.findings import PartProblem
from chartgen.kube.manifest_walk import Keys, Object, items, maps, metadata, pods, texts
from chartgen.kube.validation import spelled

_FILL = "give the value that the template fills in, or refuse an empty one there with `required`"
# Fields that must be set in each item of a list, and in each map (kubernetes.io, API reference, Pod: "Required value").
_LISTS = {
    "containers": ("name", "image"),
    "initContainers": ("name", "image"),
    "volumes": ("name",),
    "volumeMounts": ("name", "mountPath"),
    "volumeDevices": ("name", "devicePath"),
    "env": ("name",),
    "resourceClaims": ("name",),
}
_MAPS = {
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
        lines = text.split("\n")
        found = next(
            ((number, match[0]) for number, line in enumerate(lines, 1) if (match := _MISPRINT.search(line))), None
        )
        if found:
            number, mark = found
            field = spelled(at[-2:] if isinstance(at[-1], int) else at[-1:])
            line = lines[number - 1].strip()
            yield PartProblem(
                f"{field} contains {mark}, which Go prints in place of a value that is missing or of another type",
                at=at,
                line=number if lines[1:] else 0,
                quote=line if line != mark else "",
            )


def names_are_set(thing: Object) -> Iterator[PartProblem]:
    """Every name or path that Kubernetes requires is set; a JobSet with `name: ""` is accepted but never creates pods.

    Null or missing fields are left to the schemas. Of several empty items the first is reported: they have one cause.
    """
    if _blank(metadata(thing).get("name")) and "generateName" not in metadata(thing):
        yield PartProblem("has an empty name", _FILL, ("metadata", "name"))
    for pod in pods(thing):
        reported: list[Keys] = []
        for at, node in maps(pod.spec, pod.at):
            for complaint in (*_in_lists(at, node), *_in_maps(at, node)):
                if not any(complaint.at[: len(item)] == item for item in reported):
                    reported.append(complaint.at[:-1])
                    yield complaint


def _in_lists(at: Keys, node: Object) -> Iterator[PartProblem]:
    for key, fields in _LISTS.items():
        for index, item in items(node, key):
            yield from _empty((*at, key, index), item, fields)


def _in_maps(at: Keys, node: Object) -> Iterator[PartProblem]:
    for key, fields in _MAPS.items():
        if isinstance(inner := node.get(key), dict):
            yield from _empty((*at, key), inner, fields)


def _empty(at: Keys, item: Object, fields: tuple[str, ...]) -> Iterator[PartProblem]:
    """Report the empty fields of one item in one complaint."""
    if empty := [field for field in fields if _blank(item.get(field))]:
        place = ".".join(str(key) for key in at[-2:])
        yield PartProblem(f"{place} has an empty {' and '.join(empty)}", _FILL, (*at, empty[0]))


def _blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()
