"""Two builds or renders are equal: find what differs, and template parts that depend on time, chance or a cluster."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import TypeAlias

from chartgen.composer.composed import composed_chart
from chartgen.composer.origin import Composed, origin_of
from chartgen.errors import Problem
from chartgen.findings import Finding
from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart
from chartgen.helm.chart_folder import HELMIGNORE
from chartgen.helm.manifests import Manifest
from chartgen.helm.yaml import load
from chartgen.kube.manifest_walk import Keys, metadata, title
from chartgen.kube.validation import spelled
from chartgen.linter.source_lines import template_line

# Functions that make two renders differ, or a render in Argo CD or Flux differ from Helm's.
_BANNED = re.compile(
    r"\b(?:now|rand(?:Alpha|AlphaNum|Numeric|Ascii|Int|Bytes)|uuidv4|lookup|gen(?:CA|SignedCert|SelfSignedCert)(?:WithKey)?"
    r"|genPrivateKey|htpasswd|bcrypt|encryptAES|getHostByName|shuffle)\b|\.Release\.Revision\b"
)
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|`[^`]*`')


def banned_functions(chart: Chart) -> Iterator[Finding]:
    """Find template functions that make two renders differ."""
    for path, text in chart.files.items():
        # the notes are shown to people, and are not installed
        for line, name in banned_in(text) if "templates/" in path and not path.endswith("/NOTES.txt") else ():
            problem = Problem(f"{name} makes two renders differ", path, line, hint="take it from the values")
            yield Finding("no-banned-functions", problem)


def banned_in(template: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each call in a template whose result differs between renders."""
    for action in gotemplate.actions(template) if _BANNED.search(template) else ():
        code = "" if action.word == "comment" else _QUOTED.sub(lambda match: " " * len(match[0]), action.text)
        for match in _BANNED.finditer(code):
            yield action.line + code.count("\n", 0, match.start()), match[0]


def lookups(files: Mapping[str, str]) -> set[str]:
    """Return the templates of a chart, and of its subcharts, that may ask a cluster for objects."""
    texts = {path: text for path, text in files.items() if "templates/" in path and "lookup" in text}
    return {path for path, text in texts.items() if any(name == "lookup" for _, name in banned_in(text))}


def builds_differ(chart: Chart) -> Iterator[Finding]:
    """Compose a chart of a known target again and compare: the chart or its sources may have changed since."""
    origin = origin_of(chart)
    if not isinstance(origin, Composed):
        return
    target, kind = origin.target, origin.workload
    second = composed_chart("compose_setup", target, kind) if origin.setup else composed_chart("compose", target, kind)
    files = second.files if second else {}
    # an archive is unpacked without `.helmignore`, which Helm does not apply there
    for path in sorted((files.keys() - {HELMIGNORE}) | chart.files.keys()):
        was, now = chart.files.get(path), files.get(path)
        # `helm package` writes Chart.yaml again, without comments
        repacked = path == "Chart.yaml" and was and now and load(was, path).data == load(now, path).data
        if was != now and not repacked:
            message = "is missing" if was is None else "is left over" if now is None else "differs from what is built"
            pairs = zip_longest((was or "").splitlines(), (now or "").splitlines())
            line = next((number for number, (one, other) in enumerate(pairs, 1) if one != other), 1)
            problem = Problem(message, path, line, hint=f"run chartgen build {origin.name}")
            yield Finding("chart-is-as-built", problem, "warning")


_Key: TypeAlias = tuple[str, str, str]

RULE = "renders-are-identical"
EVERY_RENDER = "in every render"
UPGRADED = "between an install and an upgrade"
# Templates that distinguish install and upgrade.
_ASKS = re.compile(r"\bIs(?:Install|Upgrade)\b")
_MOST = 3  # fields of one object that a message names
_HOOK = "helm.sh/hook"
_POLICY = "helm.sh/resource-policy"  # Helm does not delete an object with `keep` that a later render lacks


def asks_for_upgrade(chart: Chart) -> bool:
    """Report whether a text of the chart, or of an unpacked subchart, distinguishes upgrades; `tpl` renders any."""
    return any(map(_ASKS.search, chart.files.values()))


def differences(
    chart: Chart, keeping: Collection[str], one: Sequence[Manifest], other: Sequence[Manifest], when: str
) -> Iterator[Finding]:
    """Report each object that differs between two renders of the same values.

    Hooks are always recreated, and a Job of the install alone has ended when an upgrade deletes it. An upgrade in a
    cluster may keep what a template finds with `lookup`: such templates, `keeping`, are left out.
    """
    shared = {*map(_key, one)} & {*map(_key, other)}
    ours, theirs = _keyed(one, shared), _keyed(other, shared)
    for key in dict.fromkeys((*ours, *theirs)):
        left, right = ours.get(key), theirs.get(key)
        found = left or right
        notes = [metadata(manifest.data).get("annotations") or {} for manifest in (left, right) if manifest]
        if found is None or any(_HOOK in note for note in notes):
            continue
        if not right and (notes[0].get(_POLICY) == "keep" or found.data.get("kind") == "Job"):
            continue
        sums = keeping and ".Template.BasePath" in chart.files.get(found.template, "")
        if found.template in keeping or sums or any(path.endswith(".tpl") for path in keeping):
            continue
        if left is None or right is None:
            yield _finding(chart, found, (), f"is there or not {when}")
        elif fields := list(islice(_fields(left.data, right.data), _MOST)):
            fields_text = ", ".join(spelled(at) for at in fields)
            yield _finding(chart, left, fields[0], f"{fields_text} {'differ' if fields[1:] else 'differs'} {when}")


def _keyed(manifests: Sequence[Manifest], shared: set[_Key]) -> dict[_Key, Manifest]:
    """Key objects by template, kind and name; by their number where only one render has the name."""
    keyed: dict[_Key, Manifest] = {}
    numbers = Counter[_Key]()
    for each in manifests:
        if (key := _key(each)) not in shared:
            key = (*key[:2], "")
            numbers[key] += 1
            key = (*key[:2], str(numbers[key]))
        keyed[key] = each
    return keyed


def _key(manifest: Manifest) -> _Key:
    meta = metadata(manifest.data)
    return manifest.source, str(manifest.data.get("kind")), f"{meta.get('namespace')}/{meta.get('name')}"


def _fields(one: object, other: object, at: Keys = ()) -> Iterator[Keys]:
    """Walk two values and yield the key paths that differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys((*one, *other)):
            yield from _fields(one.get(key), other.get(key), (*at, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, pair in enumerate(zip(one, other, strict=True)):
            yield from _fields(*pair, (*at, index))
    elif one != other:
        yield at


def _finding(chart: Chart, manifest: Manifest, at: Keys, message: str) -> Finding:
    line, _ = manifest.document.position(at)
    found = template_line(chart, manifest.template, manifest.text.split("\n"), line)
    called = dict.fromkeys(name for _, name in banned_in(chart.files.get(manifest.template, "")))
    what = f"what depends on time, chance or the cluster: {', '.join(called)}" if called else "what it depends on"
    hint = f"take from the values {what}"
    return Finding(RULE, Problem(f"{title(manifest.data)}: {message}", found.path, found.line, hint=hint))
