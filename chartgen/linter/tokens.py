"""Keys and passwords that a chart takes as values and writes into its manifests, where all readers of pods see them.

Reads templates and values, not rendered objects: in a chart's own values the token is mostly still empty.
Messages never contain a value, only its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chartgen.errors import Problem
from chartgen.findings import Finding, Rule
from chartgen.helm.chart import Chart
from chartgen.helm.yaml import Document
from chartgen.kube.manifest_walk import maps
from chartgen.linter.documents import values_of

TOKENS = Rule(
    "tokens-by-reference",
    "A template writes a value that is called after a secret into a manifest, or values.yaml asks for one as text.",
    "keep it in a Secret, name that Secret in the values, and use valueFrom.secretKeyRef",
    "kubernetes.io, Good practices for Kubernetes Secrets",
)
# Words that only names of secrets end with. SECRET is left out: such a variable mostly contains the name of a Secret.
# The cluster token of etcd is an identifier (etcd.io, --initial-cluster-token), TOKEN_SECRET_KEY a key in a Secret.
_NAMED = re.compile(
    r"(?![A-Z0-9_]*(?:CLUSTER_TOKEN|(?:KEY|TOKEN|PASSWORD)_SECRET_KEY)$)(?:[A-Z0-9_]*_)?(?:TOKEN|PASSWORD|PASSWD|PASSPHRASE"
    r"|(?:API|ACCESS|SECRET|PRIVATE|ENCRYPTION|SIGNING|WANDB|NGC)_KEY)"
)
# At most one line, and bounded, so that the time is linear in the length of a line.
_EXPRESSION = r"\{\{(?P<expression>[^{}\n]{0,300})\}\}"
_ASSIGNED = re.compile(rf"(?<![\w.$-])(?P<name>[A-Z0-9_]{{3,60}})=[\"']?{_EXPRESSION}")
_FLAG = re.compile(rf"(?<![\w-])--(?P<name>[a-z0-9-]{{3,60}})(?:[= ]|[\"'], *)[\"']?{_EXPRESSION}")
_NAME = re.compile(
    r"(?P<indent>\s*(?:-\s+)?(?:\{\s*)?)name:\s*[\"']?(?P<name>[A-Z0-9_]{3,60})[\"']?\s*(?:,(?P<flow>.*))?"
)
_REFERENCE = re.compile(r"name:[ \t]*[\"']?([A-Z0-9_]{3,60})[\"']?[ \t]*\n[ \t]*valueFrom:")
_VALUE = re.compile(rf"(?:.*[\s{{])?value:\s*[\"']?{_EXPRESSION}")
_FROM_VALUES = re.compile(r"(?:\$\w*|(?<![\w.]))\.Values((?:\.\w+)+)")
# The value itself has the name of a secret: `hfToken`, `password.value`.
_SECRET_KEY = re.compile(r"(?i)(?:token|pass|key|secret|credential)[^.]*(?:\.value)?$")
# Tests a value, and does not write it.
_ASKS = re.compile(r"\b(?:ternary|not|empty|hasKey|kindIs)\b")
# The name of a secret, its place, a number or a switch is not a secret.
_HARMLESS = re.compile(
    r"(?i:(?:name|path|file|dir|ref|url|size|count|limit|ttl|enabled?|expir\w*)$)|\.(?:disable|enable|allow|require)[A-Z]\w*$"
)
_SWITCH = ("true", "false")  # as text, in environments
_SECRET_KIND = re.compile(r"^kind:\s*[\"']?\w*Secret\b", re.MULTILINE)
_VARIABLES = re.compile(r"(?i)(?:extra_?)?(?:env|envs|env_?vars?|environment|variables)")
# People do not write longer lines; a longer one would take time quadratic in its length.
LONGEST_LINE = 4000
_HINT = "keep it in a Secret, and use valueFrom.secretKeyRef"


def names_token(name: str) -> bool:
    """Report whether a variable of this name contains a secret."""
    return bool(_NAMED.fullmatch(name))


def rendered_tokens(chart: Chart) -> Iterator[Finding]:
    """Find variables and flags with the name of a secret whose text comes from a value or is in values.yaml."""
    values = values_of(chart)
    for path, text in chart.files.items():
        if path.startswith("templates/") and path.endswith((".yaml", ".yml", ".tpl", ".sh")):
            for name, expression, line in _tokens(text):
                for key in _keys(expression, values):
                    message = f"{name} is rendered into the manifest from the value {key}"
                    yield Finding(TOKENS.id, Problem(message, path, line, hint=_HINT))
    yield from _in_values(values) if values else ()


def _tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield name, expression and line of the tokens of a template; a document that creates a Secret may contain any.

    A variable that the template can also take from a Secret leaves the choice to the user.
    """
    line, chosen = 1, set(_REFERENCE.findall(text))
    for part in re.split(r"(?m)^(?=---)", text):
        if not _SECRET_KIND.search(part):
            lines = part.split("\n")
            found = ((*each, line + at) for at, row in enumerate(lines) for each in _of_line(lines, at, row))
            yield from (token for token in found if token[0] not in chosen)
        line += part.count("\n")


def _of_line(lines: Sequence[str], index: int, row: str) -> Iterator[tuple[str, str]]:
    if len(row) > LONGEST_LINE:
        return
    if "{{" in row:
        yield from ((each["name"], each["expression"]) for each in _ASSIGNED.finditer(row) if names_token(each["name"]))
        flags = ((each["name"], each["expression"]) for each in _FLAG.finditer(row))
        yield from ((f"--{name}", text) for name, text in flags if names_token(name.upper().replace("-", "_")))
    if (named := _NAME.match(row)) and names_token(named["name"]):
        yield from ((named["name"], text) for text in _value_of(lines, index, named))


def _value_of(lines: Sequence[str], index: int, named: re.Match[str]) -> list[str]:
    """Return the texts that fill the `value` of a variable, on its own line or up to the next item.

    A template that can also take it from a Secret leaves the choice to the user.
    """
    texts = [found["expression"]] if named["flow"] and (found := _VALUE.match(named["flow"])) else []
    depth = len(named["indent"])
    for row in lines[index + 1 : index + 12]:
        indent = len(row) - len(row.lstrip())
        if row.strip() and not row.lstrip().startswith("{{") and (indent < depth or row.lstrip().startswith("- ")):
            break
        if "secretKeyRef" in row:
            return []
        if found := _VALUE.match(row):
            texts.append(found["expression"])
    return texts


def _keys(expression: str, values: Document | None) -> Iterator[str]:
    """Yield the values in an expression whose names indicate a secret; `allowEmptyPassword: true` does not."""
    for found in [] if _ASKS.search(expression) else _FROM_VALUES.findall(expression):
        keys = found.removeprefix(".").split(".")
        node: object = values.data if values else None
        around: object = None
        for key in keys:
            around, node = node, node.get(key) if isinstance(node, dict) else None
        refers = keys[-1] == "key" and isinstance(around, dict) and "name" in around
        harmless = refers or _HARMLESS.search(found) or isinstance(node, bool | int | float) or node in _SWITCH
        if _SECRET_KEY.search(found) and not harmless:
            yield ".".join(keys)


def _in_values(values: Document) -> Iterator[Finding]:
    """Find variables that values.yaml requests as plain text: items `{name, value}`, and maps of variables."""
    for at, node in maps(values.data):
        given = [("name", node.get("name"), node["value"])] if "value" in node else []
        if at and isinstance(at[-1], str) and _VARIABLES.fullmatch(at[-1]):
            given += [(key, key, value) for key, value in node.items()]
        for key, name, value in given:
            if isinstance(name, str) and names_token(name) and _plain(value):
                message = f"{name} is a plain value, which ends in the manifest and in the release"
                place = (*at, key)
                yield Finding(TOKENS.id, values.problem(message, place, _HINT), key=".".join(map(str, place)))


def _plain(value: object) -> bool:
    """Report whether a value is the secret itself or a placeholder, no switch; `$(NAME)` refers to a variable."""
    return value is None or (isinstance(value, str) and not value.startswith("$(") and value not in _SWITCH)
