"""What a pod holds, item by item: of our render and of a vendor's reference manifest, in the same words.

An item is `section: name: text`, such as `program env: NCCL_BUFFSIZE: "8388608"`. Sections are pod, and for each
container its part (program, daemon, installer) alone, and with env and mounts. What may do harm stands there also
when it is not asked for: hostNetwork, hostIPC, hostPID, privileged, capabilities.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, TypeAlias

Items: TypeAlias = dict[str, dict[str, str]]

# what mpirun hands to every rank
_EXPORTED = re.compile(r"-x\s+(?:- )?(\w+)=(\"[^\"]*\"|\S+)")
# what a script sets for all that it starts
_SET = re.compile(r"(\w+)=(\"[^\"\n]*\"|\$\(\([^)]*\)\)|\S*)")
_POD_FIELDS = ("dnsPolicy", "restartPolicy", "schedulerName", "subdomain", "hostname", "terminationGracePeriodSeconds")
_POD_SWITCHES = ("automountServiceAccountToken", "enableServiceLinks")
_POD_ACCESS = ("hostNetwork", "hostIPC", "hostPID")


def items_of(pod: dict[str, Any], parts: dict[str, str]) -> Items:
    """Return the items of a pod or pod template.

    Args:
        pod: The pod, with metadata and spec.
        parts: Name of a container -> the part that it plays.
    """
    spec = pod["spec"]
    found: Items = {"pod": _pod(pod)}
    sources = {volume["name"]: _source(volume) for volume in spec.get("volumes", ())}
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        part = parts[container["name"]]
        found[part] = _container(container, program=part == "program")
        found[f"{part} env"] = {entry["name"]: _value(entry) for entry in container.get("env", ())}
        found[f"{part} mounts"] = {
            mount["mountPath"]: _mount(mount, sources) for mount in container.get("volumeMounts", ())
        }
    return {section: rows for section, rows in found.items() if rows}


def exported(texts: Iterable[str]) -> dict[str, str]:
    """Return the variables that scripts hand to the ranks with `mpirun -x NAME=VALUE`."""
    said = [re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE) for text in texts]
    pairs = [pair for text in said for pair in _EXPORTED.findall(text.replace("\\\n", " "))]
    return {name: value.strip('"') for name, value in pairs}


def exported_by(scripts: Iterable[str]) -> dict[str, str]:
    """Return the variables that scripts set with `export NAME=VALUE ...`, but for those of a branch with tabs."""
    lines = [
        line for text in scripts for line in re.findall(r"^ *export (.*)$", text.replace("\\\n", " "), re.MULTILINE)
    ]
    return {name: value.strip('"') for line in lines for name, value in _SET.findall(line)}


def _pod(pod: dict[str, Any]) -> dict[str, str]:
    spec = pod["spec"]
    rows = {name: _text(spec.get(name, False)) for name in _POD_ACCESS}
    rows |= {name: _text(spec[name]) for name in (*_POD_FIELDS, *_POD_SWITCHES) if name in spec}
    rows |= {f"nodeSelector {name}": value for name, value in spec.get("nodeSelector", {}).items()}
    for toleration in spec.get("tolerations", ()):
        rows[f"toleration {toleration.get('key', '')}"] = _words(toleration, "operator", "value", "effect")
    for kind, rules in spec.get("affinity", {}).items():
        terms = rules["requiredDuringSchedulingIgnoredDuringExecution"]
        if kind == "nodeAffinity":
            keys = [each["key"] for term in terms["nodeSelectorTerms"] for each in term["matchExpressions"]]
        else:
            keys = [term["topologyKey"] for term in terms]
        rows[f"affinity {kind}"] = _text(keys)
    rows |= {f"security {name}": _text(value) for name, value in spec.get("securityContext", {}).items()}
    annotations = pod.get("metadata", {}).get("annotations", {})
    return rows | {f"annotation {name}": _annotation(value) for name, value in annotations.items()}


def _container(container: dict[str, Any], *, program: bool) -> dict[str, str]:
    security = dict(container.get("securityContext", {}))
    rows = {"image": container["image"], "imagePullPolicy": container.get("imagePullPolicy", "")}
    # what a program trains is the user's, and ours to start
    if not program:
        rows["command"] = " ".join(_command((*container.get("command", ()), *container.get("args", ()))))
    rows["privileged"] = _text(security.pop("privileged", False))
    capabilities = security.pop("capabilities", {})
    rows["capabilities"] = _text(capabilities.get("add", []))
    rows |= {"capabilities dropped": _text(capabilities["drop"])} if capabilities.get("drop") else {}
    rows |= {name: _text(value) for name, value in security.items()}
    resources = dict(container.get("resources", {}))
    rows["claims"] = " ".join(each["name"] for each in resources.pop("claims", ()))
    for kind, amounts in resources.items():
        rows |= {f"{kind} {name}": str(amount) for name, amount in amounts.items()}
    rows |= {name: _text(container[name]) for name in ("restartPolicy", "startupProbe") if name in container}
    return {name: value for name, value in rows.items() if value}


def _command(words: Iterable[str]) -> Iterable[str]:
    """Return a command's words; of a script only programs with a path, and options."""
    for word in words:
        if "\n" in word:
            yield from re.findall(r"(?<![\w$}/])(?:--[\w-]+(?:=\S*)?|/(?!dev/null)\w+/[\w./-]+)", word)
        else:
            yield word.strip('\\" ')


def _value(entry: dict[str, Any]) -> str:
    return str(entry["value"]) if "value" in entry else str(entry["valueFrom"]["fieldRef"]["fieldPath"])


def _source(volume: dict[str, Any]) -> str:
    ((kind, spec),) = ((kind, spec) for kind, spec in volume.items() if kind != "name")
    match kind:
        case "hostPath":
            return f"hostPath {spec['path']}"
        case "emptyDir":
            return " ".join(["emptyDir", *(str(value) for value in (spec or {}).values())])
        case "csi":
            return f"csi {spec['driver']}"
        case _:
            return str(kind)


def _mount(mount: dict[str, Any], sources: dict[str, str]) -> str:
    return sources[mount["name"]] + (" readOnly" if mount.get("readOnly") else "")


def _annotation(text: str) -> str:
    """Return an annotation in one line; those of JSON and of YAML lists as their words."""
    return " ".join(re.findall(r"[^\s\[\]{},\"':]+", text)) if "\n" in text or text[:1] in "[{" else text


def _words(row: dict[str, Any], *names: str) -> str:
    return " ".join(str(row[name]) for name in names if name in row)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(value) or "none"
    return value if isinstance(value, str) else json.dumps(value)
