"""Scripts that print every variable of a container with secrets: all readers of the logs see them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from chartgen.errors import Problem
from chartgen.findings import Finding, PartProblem
from chartgen.helm.chart import Chart
from chartgen.kube.manifest_walk import Container, Object, all_containers, containers, items, metadata, pods
from chartgen.linter.references import Wired
from chartgen.linter.scripts import scripts
from chartgen.linter.tokens import LONGEST_LINE, names_token

# A command that prints all variables, at the start of a command; the rest ends it or takes its output.
_DUMP = re.compile(
    r"(?:^|[;&|({`!]|\b(?:then|do|else)\b)\s*"
    r"(?P<command>env|printenv|set|export(?: -p)?|declare -x?p?x?|typeset -x|cat /proc/(?:self|1|\$\$)/environ)"
    r"\s*(?P<rest>$|[|;&>)}`].*|[12]>.*)"
)
# Filters that pass only a part: chosen lines, names without values, a count.
_FILTER = re.compile(r"\|\s*(?:e?grep(?! +-[a-zA-Z]*v)|rg|awk|cut|wc|sed -n|compgen)\b|>\s*/dev/null")
# A file that disappears with the pod, or of the program's own user.
_KEPT = re.compile(r""">\s*["']?(?:/(?:dev/shm|run|tmp)|~|\$HOME|\$\{HOME\})/""")
_QUOTED = re.compile(r"'[^'\n]*'|\"(?:\\.|[^\"\\\n])*\"")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_EXPORT = re.compile(r"\bexport\s+([A-Z0-9_]{3,60})=")
_GIVEN = re.compile(r"\bsecret(?:Key)?Ref:|\b[A-Z0-9_]{0,60}_(?:TOKEN|PASSWORD|API_KEY)\b")
_HINT = "print the variables that are needed by name, as in `env | grep ^NCCL_`"


def environment_is_not_printed(things: Sequence[Object]) -> Iterator[Wired]:
    """No script of a container with secrets prints all variables: the output remains in logs and files."""
    for number, thing in enumerate(things):
        own = {container.at: container for container in all_containers(thing)}
        for script in scripts(thing):
            container = next((each for at, each in own.items() if script.at[: len(at)] == at), None)
            users = [container] if container else list(_users(things, str(metadata(thing).get("name"))))
            if not any(map(_has_secrets, users)) and not any(map(names_token, _EXPORT.findall(script.text))):
                continue
            for line, command in dumps(script.text):
                fault = f"`{command}` prints every variable, and the container is given secrets"
                message = f"line {line} of {script.name}: {fault}"
                yield Wired(number, PartProblem(message, _HINT, script.at, line=line))


def printing_files(chart: Chart) -> Iterator[Finding]:
    """Find such commands in scripts beside the templates, for `--set-file`, of a chart whose containers get secrets."""
    texts = [text for path, text in chart.files.items() if path.startswith("templates/") or path == "values.yaml"]
    if any(".Files." in text for text in texts) or not any(_GIVEN.search(text) for text in texts):
        return
    for path, text in chart.files.items():
        if path.endswith(".sh") and path.split("/")[0] not in ("templates", "charts", "ci"):
            for line, command in dumps(text):
                message = f"`{command}` prints every variable, and the chart gives its containers secrets"
                yield Finding("environment-is-not-printed", Problem(message, path, line, hint=_HINT), "warning")


def dumps(text: str) -> Iterator[tuple[int, str]]:
    """Yield the commands of a script that print all variables: 1-based line, and the command."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > LONGEST_LINE:
            continue
        bare = _COMMENT.sub("", _QUOTED.sub(lambda quoted: "_" * len(quoted[0]), line))
        for found in _DUMP.finditer(bare):
            passed_on = re.split(r";|&&|\|\|", found["rest"])[0]
            if not _FILTER.search(passed_on) and not _KEPT.search(line, found.start("rest")):
                yield number, found["command"]


def _users(things: Sequence[Object], configmap: str) -> Iterator[Container]:
    """Yield the containers that mount a ConfigMap."""
    for thing in things:
        for pod in pods(thing):
            volumes = {volume.get("name") for _, volume in items(pod.spec, "volumes") if configmap in _sources(volume)}
            for container in containers(pod):
                if any(mount.get("name") in volumes for _, mount in items(container.spec, "volumeMounts")):
                    yield container


def _sources(volume: Object) -> list[object]:
    """Return the ConfigMaps in a volume."""
    projected = [source for _, source in items(volume.get("projected") or {}, "sources")]
    return [(each.get("configMap") or {}).get("name") for each in (volume, *projected)]


def _has_secrets(container: Container) -> bool:
    """Report whether a container gets a secret: by reference, or in a variable with the name of a secret."""
    taken = [entry for _, entry in items(container.spec, "env")]
    by_reference = any("secretKeyRef" in (entry.get("valueFrom") or {}) for entry in taken)
    whole = any("secretRef" in entry for _, entry in items(container.spec, "envFrom"))
    return by_reference or whole or any(names_token(str(entry.get("name"))) for entry in taken)
