"""Answer `lookup` from an earlier render, as a cluster does in an upgrade: a chart may keep there what it drew."""

from __future__ import annotations

import base64
import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chartgen.helm import gotemplate
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import Manifest
from chartgen.kube.manifest_walk import LINT_NAMESPACE, Object, metadata
from chartgen.linter.render import NAMES

_NAME = "chartgen.lookup"
# helm.sh/helm/v4 v4.3.1, pkg/action/validate.go
_OWNED = {
    "annotations": {"meta.helm.sh/release-name": NAMES[0], "meta.helm.sh/release-namespace": NAMES[1]},
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
}
_LARGE = "CustomResourceDefinition"
# The word, outside texts.
_WORD = re.compile(r"""(?P<text>"(?:\\.|[^"\\])*"|`[^`]*`)|(?<![\w.$])lookup\b""")
# What ends the arguments of a call on its own level: a pipe, a closing parenthesis, or the end of the action.
_PART = re.compile(r"""[^"`()|{}-]+|"(?:\\.|[^"\\])*"|`[^`]*`|-(?!\}\})|[(]|.""", re.DOTALL)


def looks_up(chart: Chart) -> bool:
    """Report whether a template of the chart, or of an unpacked subchart, may call `lookup`."""
    return any("lookup" in text and _replaced(text) != text for _, text in _templates(chart))


@contextmanager
def answered(chart: Chart, folder: Path, objects: Sequence[Manifest]) -> Iterator[Path]:
    """Copy a chart's folder, with `lookup` answered from objects, for the duration of a `with` block."""
    with tempfile.TemporaryDirectory(prefix="chartgen-") as scratch:
        path = Path(scratch, "chart")
        shutil.copytree(folder, path, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        texts = {name: _replaced(text) for name, text in _templates(chart) if "lookup" in text}
        for name, text in {**texts, "templates/_lookup_of_chartgen.tpl": _definition(objects)}.items():
            file = path / name
            if file.resolve().is_relative_to(path.resolve()):  # a link may lead out of the copy
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")
        yield path


def _templates(chart: Chart) -> Iterator[tuple[str, str]]:
    return ((path, text) for path, text in chart.files.items() if "templates/" in path)


def _replaced(text: str) -> str:
    """Return a template that calls the definition instead of `lookup`."""
    for action in reversed(list(gotemplate.actions(text))):
        if action.word != "comment":
            text = text[: action.start] + _in_action(action.text) + text[action.start + len(action.text) :]
    return text


def _in_action(code: str) -> str:
    for found in reversed(list(_WORD.finditer(code))):
        if not found["text"]:
            end = found.end() + _arguments(code[found.end() :])
            call = f'(include "{_NAME}" (list{code[found.end() : end].rstrip()}) | fromJson) '
            code = code[: found.start()] + call + code[end:]
    return code


def _arguments(code: str) -> int:
    """Return the length of the arguments at the start of a text."""
    depth = 0
    for part in _PART.finditer(code):
        depth += (part[0] == "(") - (part[0] == ")")
        if depth < 0 or (not depth and part[0] in ("|", "}", "-")):
            return part.start()
    return len(code)


def _definition(objects: Sequence[Manifest]) -> str:
    """Return a definition that prints one of the objects as JSON, or an empty map."""
    known = {_key(manifest.data): _stored(manifest.data) for manifest in objects if manifest.data.get("kind") != _LARGE}
    cases = (
        f"{{{{- else if eq $key {_quoted(key)} }}}}{{{{ {_quoted(_quoted(each))} }}}}" for key, each in known.items()
    )
    begin = f'{{{{- define "{_NAME}" }}}}{{{{- $key := join "/" . }}}}{{{{- if not $key }}}}'
    return f"{begin}{''.join(cases)}{{{{- else }}}}{{}}{{{{- end }}}}{{{{- end }}}}"


def _quoted(data: object) -> str:
    """Return data as JSON; that of a text is a text of Go too."""
    return json.dumps(data, ensure_ascii=False)


def _key(thing: Object) -> str:
    meta = metadata(thing)
    return f"{thing.get('apiVersion')}/{thing.get('kind')}/{meta.get('namespace') or LINT_NAMESPACE}/{meta.get('name')}"


def _stored(thing: Object) -> dict[str, Any]:
    """Return an object of a release as the API server has it: with Helm's marks, and a Secret's texts as data."""
    meta = metadata(thing)
    marks = {mark: {**_map(meta.get(mark)), **added} for mark, added in _OWNED.items()}
    plain = _map(thing.get("stringData")) if thing.get("kind") == "Secret" else {}
    coded = {key: base64.b64encode(str(text).encode()).decode() for key, text in plain.items()}
    data = {"data": {**_map(thing.get("data")), **coded}} if coded else {}
    return {**thing, "metadata": {**meta, **marks}, **data}


def _map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
