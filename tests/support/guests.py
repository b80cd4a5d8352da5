"""A user with few permissions on a real API server: a service account, its Role and its token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chartgen.rehearsal.controlplane import ControlPlane

Rule = dict[str, list[str]]


def rule(group: str, *resources: str, verbs: str = "list") -> Rule:
    """One rule of a Role; several verbs are separated by commas."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": verbs.split(",")}


def allow(plane: ControlPlane, namespace: str, name: str, rules: list[Rule]) -> None:
    """Replace what a user may do in a namespace."""
    place = {"namespace": namespace, "name": name}
    subject = {"kind": "ServiceAccount", **place}
    rbac = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": place}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    binding = {**rbac, "kind": "RoleBinding", "roleRef": role, "subjects": [subject]}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place}
    plane.cluster.apply([account, {**rbac, "kind": "Role", "rules": rules}, binding])


def log_in(plane: ControlPlane, namespace: str, name: str, path: Path) -> Path:
    """Write a kubeconfig of a user whom `allow` has made."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    address = f"api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
    config: Any = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"]["token"] = plane.cluster._send("POST", address, None, request)["status"]["token"]
    path.write_text(json.dumps(config))
    return path
