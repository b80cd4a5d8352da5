"""Policies: what a company wants in every pod and object of all targets, one YAML file each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any

from chartgen.composer.definition import read_definition
from chartgen.composer.library import KINDS, Library
from chartgen.composer.slots import SLOTS
from chartgen.errors import ChartgenError, Problem, refuse
from chartgen.helm.schema import check_sound
from chartgen.helm.yaml import Document, Keys, Plain, dotted, require_map, values_text
from chartgen.visible import counted

# The fields of `pod` and `container`, and their places below `pods` in the earlier form.
_EARLIER: list[tuple[tuple[str, ...], tuple[str, str]]] = sorted(
    (tuple(slot.label.split(".")), ("pods", name.removesuffix(".yaml"))) for name, slot in SLOTS.items() if slot.file
)
_ANY = {"name": "any", "image": "any"}
# What selects pods, or belongs to a controller: another value would break the run.
_RESERVED = re.compile(r"(app\.kubernetes\.io|helm\.sh|kueue\.x-k8s\.io|([\w.-]*\.)?(kubernetes|k8s)\.io)/|run$")
_ONCE = ("job", "mpijob", "pytorchjob")  # kinds whose deadline counts from the first start, in which they restart
_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)


@dataclass(frozen=True, eq=False)
class Policy:
    """One policy after reading and checks: its file's name without `.yaml`, and its content by its keys."""

    name: str
    document: Document
    data: dict[str, Any]

    @property
    def path(self) -> Path:
        """Return its file."""
        from pathlib import Path

        return Path(self.document.path)

    def problem(self, message: str, at: Keys, hint: str) -> Problem:
        """Return a problem at a place of its data, with the place in the file."""
        pairs = reversed(_EARLIER) if "pods" in require_map(self.document, self.name) else ()
        place = next((to + at[len(keys) :] for keys, to in pairs if at[: len(keys)] == keys), at)
        return self.document.problem(message, place, hint)


def load_policies(library: Library) -> tuple[Policy, ...]:
    """Read all policies of a library; raise ChartgenError with their problems, or if two contradict each other."""
    _refuse_unread(library)
    policies = tuple(_load(library.find("policy", name)) for name in library.own_names("policy"))
    wanted(policies)
    return policies


def _load(path: Path) -> Policy:
    document, data = read_definition(path, "policy")
    if "pods" in data and {"pod", "container"} & data.keys():
        raise ChartgenError(document.problem("is the earlier form of pod and container", ("pods",), "move it to these"))
    policy = Policy(path.stem, document, _converted(data))
    problems = [
        document.problem(f"{key!r} belongs to Kubernetes, Helm or the chart", (field, key), "choose another name")
        for field in ("labels", "annotations")
        for key in policy.data.get(field, ())
        if _RESERVED.match(key)
    ]
    problems += [
        policy.problem("an expression has no end", at, "close it with }}")
        for field in ("labels", "annotations", "variables", "pod", "container")
        for at in _unclosed(policy.data.get(field), (field,))
    ]
    refuse(problems or [*_refused_parts(policy), *_unsound_schemas(policy)])
    return policy


def _converted(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a policy with `pod` and `container` in place of `pods`, as the earlier form has it."""
    given = data.pop("pods", {})
    for (*above, last), (_, name) in _EARLIER:
        if name in given:
            reduce(lambda below, key: below.setdefault(key, {}), above, data)[last] = given[name]
    return data


def _unclosed(value: Any, at: Keys) -> Iterator[Keys]:
    """Yield the place of each text whose expression has no end."""
    if isinstance(value, (dict, list)):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _unclosed(child, (*at, key))
    elif isinstance(value, str) and "{{" in _ACTION.sub("", value):
        yield at


def _refused_parts(policy: Policy) -> Iterator[Problem]:
    """Find what the API server would refuse; only Helm knows what a text with an expression becomes."""
    from chartgen.kube.pod_rules import type_faults  # this imports Kubernetes' types

    for at, part, name in _parts_of_pods(policy.data):
        for fault in type_faults(part, name):
            if "{{" not in str(reduce(_child, fault.at, part)):
                place = (*at, *fault.at)
                yield policy.problem(f"{dotted(place)} {fault.message}", place, fault.hint)
    if "resourceClaims" in policy.data.get("pod", {}).get("spec", {}):
        yield policy.problem("no policy claims devices", ("pod", "spec", "resourceClaims"), "use a fragment")


def _parts_of_pods(data: dict[str, Any]) -> Iterator[tuple[Keys, Any, str]]:
    """Yield each part that a policy adds: its place, the part, and its type in core/v1."""
    pod = data.get("pod", {})
    yield (), {key: data.get(key) for key in ("labels", "annotations")}, "ObjectMeta"
    yield ("pod", "metadata"), pod.get("metadata", {}), "ObjectMeta"
    yield ("pod", "spec"), {"containers": [_ANY]} | pod.get("spec", {}), "PodSpec"
    yield ("container",), _ANY | data.get("container", {}), "Container"
    for key, value in data.get("variables", {}).items():
        if isinstance(value, dict):
            yield ("variables", key), value, "EnvVarSource"


def _child(part: Any, key: Any) -> Any:
    return part.get(key) if isinstance(part, dict) else part[key] if isinstance(part, list) else None


def _unsound_schemas(policy: Policy) -> Iterator[Problem]:
    for key, schema in policy.data.get("values", {}).items():
        for fault in check_sound(schema):
            yield policy.document.problem(f"is not a sound JSON Schema: {fault}", ("values", key))


def _refuse_unread(library: Library) -> None:
    """Refuse files of a folder of policies that nothing reads: their author believes that they apply."""
    folders = [root / KINDS["policy"] for root in library.roots[1:]]
    found = (file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir()))
    unread = [file for file in found if file.suffix in (".yml", ".json") or not file.is_file()]
    if unread:
        raise ChartgenError(Problem("is not read", file, hint="a policy is a file NAME.yaml") for file in unread)


def wanted(policies: Sequence[Policy]) -> dict[str, Any]:
    """Return what policies want together, by the keys of their files; lists of items by name become maps.

    Raises:
        ChartgenError: Two policies want one thing differently; both places are named.
    """
    fields = ("labels", "annotations", "variables", "images", "registries", "pod", "container")
    merged: dict[str, Any] = {}
    owners: dict[Keys, Policy] = {}
    problems: list[Problem] = []
    for policy in policies:
        for key in fields:
            if key in policy.data:
                problems += _add(merged, policy.data[key], (key,), policy, owners)
    refuse(problems)
    return merged


def _add(into: Any, value: Plain, at: Keys, policy: Policy, owners: dict[Keys, Policy]) -> Iterator[Problem]:
    """Add a value to what others want: keys to maps, other items to lists."""
    key = at[-1]
    if isinstance(value, dict):
        below = into.setdefault(key, {})
        for name, child in value.items():
            yield from _add(below, child, (*at, name), policy, owners)
    elif isinstance(value, list):
        known = into.setdefault(key, [])
        for index, item in enumerate(value):
            place = (*at, name := _name(item))
            if name and any(_name(other) == name and other != item for other in known):
                yield _clash(policy, (*at, index), owners[place])
            elif item not in known:
                known.append(item)
                owners[place] = policy
    elif into.setdefault(key, value) != value:
        yield _clash(policy, at, owners[at])
    owners.setdefault(at, policy)


def _name(item: Any) -> str:
    return str(item.get("name", "")) if isinstance(item, dict) else ""


def _clash(policy: Policy, at: Keys, owner: Policy) -> Problem:
    return policy.problem(f"policy {owner.name} wants it differently ({owner.path})", at, "make both equal")


def policy_text(policies: Sequence[Policy]) -> str:
    """Return what policies want as Helm text that renders to YAML; texts may contain `{{ expressions }}`."""
    found = wanted(policies)
    mirrors = [{"from": key.rstrip("/"), "to": to.rstrip("/")} for key, to in found.get("images", {}).items()]
    variables = [
        {"name": name, **({"valueFrom": value} if isinstance(value, dict) else {"value": str(value)})}
        for name, value in found.get("variables", {}).items()
    ]
    facts = {
        **{key: found.get(key, {}) for key in ("labels", "annotations", "pod", "container")},
        "variables": variables,
        # the longest beginning is the most exact one
        "images": sorted(mirrors, key=lambda mirror: -len(mirror["from"])),
        "registries": [each.rstrip("/") for each in found.get("registries", ())],
    }
    expressions: list[str] = []
    text = values_text(_without_actions(facts, expressions))
    return re.sub(r'"helm-expression-(\d+)"', lambda mark: expressions[int(mark[1])], text)


def _without_actions(value: Any, expressions: list[str]) -> Any:
    """Return data with a mark in place of each text with actions of Helm, whose expressions are collected."""
    if isinstance(value, dict):
        return {key: _without_actions(child, expressions) for key, child in value.items()}
    if isinstance(value, list):
        return [_without_actions(child, expressions) for child in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    parts = _ACTION.split(value)  # texts and expressions in turn
    words = (f"({part})" if index % 2 else _go_text(part) for index, part in enumerate(parts) if part)
    expressions.append(f"{{{{ print {' '.join(words)} | toJson }}}}")
    return f"helm-expression-{len(expressions) - 1}"


def _go_text(text: str) -> str:
    return "`" + text.replace("`", '` "`" `') + "`"


def values_of(policy: Policy) -> tuple[str, dict[str, Any]]:
    """Return the values of a policy as the text of a values file, and their schema."""
    tree: dict[str, Any] = {}
    schema: dict[str, Any] = {}
    for key, described in policy.data.get("values", {}).items():
        *above, last = key.split(".")
        branch, node = tree, schema
        for name in above:
            branch = branch.setdefault(name, {})
            node = node.setdefault("properties", {}).setdefault(name, {"type": "object"})
        branch[last] = described.get("default", "")
        own = {name: value for name, value in described.items() if name not in ("default", "description")}
        node.setdefault("properties", {})[last] = own
    return _described(tree, policy.data.get("values", {})), schema


def _described(tree: dict[str, Any], values: dict[str, Any], at: str = "", indent: int = 0) -> str:
    lines = []
    for key, value in tree.items():
        dotted, pad = f"{at}{key}", " " * indent
        if dotted in values:
            meaning = " ".join(str(values[dotted].get("description", "")).split())
            lines.append(f"{pad}# -- {meaning}\n{values_text({key: value}, indent)}")
        else:
            lines.append(f"{pad}{key}:\n{_described(value, values, f'{dotted}.', indent + 2)}")
    return "".join(lines)


def rule_rows(policy: Policy) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """Yield the rules of a policy with their places: its own, and those that follow from its other keys."""
    for index, row in enumerate(policy.data.get("rules", ())):
        yield ("rules", index), row
    shared = {"id": f"policy-{policy.name}", "meaning": policy.data["description"]}
    for index, key in enumerate(policy.data.get("required", ())):
        lacking = {"key": key, "require": key, "message": "must be set", "hint": "set it"}
        yield ("required", index), shared | lacking
    limits = policy.data.get("limits", {})
    if most := limits.get("machines"):
        found = {
            "key": "nodes",
            "also": ["run.spares"],
            "require": f"pods <= {most}",
            "message": f"{{pods}} is more than {counted(most, 'machine')}",
            "hint": f"use {most} or fewer, run.spares or the nodes of a data program included",
        }
        yield ("limits", "machines"), shared | found
    if hours := limits.get("hours"):
        most, key, restarts = int(hours * 3600), "run.deadlineSeconds", "run.maxRestarts"
        # Most controllers count it again at each start; without a number, a run that saves may have any number of them.
        once = f"workload in {list(_ONCE)}"
        ends = f"{restarts} is not None or not checkpoint.enabled"
        found = {
            "key": key,
            "also": [restarts, "checkpoint.enabled"],
            "require": f"{key} is not None and {key} * (1 if {once} else 1 + {restarts}) <= {most}"
            f" and ({once} or {ends})",
            "message": f"a run must end after {hours} hours, and each restart begins to count again",
            "hint": f"use {most} divided by the starts: 1 + {restarts}, which a run that saves must set",
        }
        yield ("limits", "hours"), shared | found


@lru_cache(maxsize=256)
def mirrored(image: str, mirrors: tuple[tuple[str, str], ...]) -> str:
    """Return where an image comes from, by pairs of a beginning and its replacement; by default from Docker Hub."""
    full = full_name(image)
    for beginning, to in sorted(mirrors, key=lambda pair: -len(pair[0])):
        if begins(full, beginning):
            return to.rstrip("/") + full[len(beginning.rstrip("/")) :]
    return image


def full_name(image: str) -> str:
    """Return an image's name with its registry (distribution/reference v0.6.0, normalize.go)."""
    if re.match(r"([^/]*[.:][^/]*|localhost)/", image):
        return image
    return f"docker.io/{'' if '/' in image else 'library/'}{image}"


def begins(image: str, beginning: str) -> bool:
    """Report whether a full name begins with a registry, which another port is not, a folder of it, or a whole name."""
    return re.match(rf"{re.escape(beginning.rstrip('/'))}(/|[:@][^/]*$|$)", image) is not None
