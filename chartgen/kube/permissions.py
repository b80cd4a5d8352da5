"""Permissions of the API server: which one a refused request lacks, and how to ask for it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from chartgen.errors import Problem

# The API server's message for a missing permission (k8s.io/apiserver,
# pkg/endpoints/handlers/responsewriters/errors.go); the rejection of an admission webhook has the same status code but
# another text.
_DENIED = re.compile(
    r'cannot (?P<verb>\w+) resource "(?P<resource>[\w./-]+)"'
    r'(?: in API group "(?P<group>[\w.-]*)")?(?: in the namespace "(?P<namespace>[\w-]+)")?'
)


@dataclass(frozen=True)
class Permission:
    """Permission for one resource."""

    verbs: tuple[str, ...]  # its verbs, such as list
    group: str  # API group of the resource; empty for the core group
    resource: str  # its plural, and a subresource after a slash
    namespace: str = ""  # where; empty = in the whole cluster

    def __str__(self) -> str:
        place = f" in namespace {self.namespace}" if self.namespace else ""
        return f"{', '.join(self.verbs)} {self.name}{place}"

    @property
    def name(self) -> str:
        """Return the resource as kubectl names it, with its group."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    @property
    def fix(self) -> str:
        """Return how to get the permission."""
        role = f"--namespace {self.namespace} create role" if self.namespace else "create clusterrole"
        role += f" chartgen-{self.resource.replace('/', '-')}"
        return f"ask for it: kubectl {role} --verb={','.join(self.verbs)} --resource={self.name}, and a binding to you"

    @property
    def missing(self) -> Problem:
        """Return the problem of a caller without the permission."""
        return Problem(f"no permission to {self}", hint=self.fix)


def denied_permission(message: str) -> Permission | None:
    """Return the permission that a refused request lacks; None for any other refusal."""
    match = _DENIED.search(message)
    if match is None:
        return None
    return Permission((match["verb"],), match["group"] or "", match["resource"], match["namespace"] or "")
