"""Requests that a real API server refuses: validating admission policies, as a platform team sets them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chartgen.kube import Cluster, ClusterError, wait_for


@contextmanager
def denied(
    cluster: Cluster, group: str, resource: str, operation: str, allowed: str, attempt: Callable[[], object]
) -> Iterator[str]:
    """Refuse requests until the end of the block.

    Args:
        cluster: The cluster.
        group: API group of the objects.
        resource: Their plural.
        operation: CREATE or DELETE.
        allowed: CEL expression of the requests that stay allowed.
        attempt: Sends a request that the policy refuses, to wait until it does.

    Gives:
        The message of the refusals.
    """
    name = f"policy-{secrets.token_hex(4)}.example.com"
    rule = {"apiGroups": [group], "apiVersions": ["*"], "operations": [operation], "resources": [resource]}
    message = f"denied by the test's {name}"
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": allowed, "message": message}],
    }
    common = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    policy = {**common, "kind": "ValidatingAdmissionPolicy", "spec": spec}
    binding = {"policyName": name, "validationActions": ["Deny"]}
    objects = [policy, {**common, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding}]

    def refused() -> bool:
        try:
            attempt()
        except ClusterError as error:
            return message in str(error)
        return False

    cluster.apply(objects)
    try:
        wait_for(refused, what="that the policy is in force", timeout=120)
        yield message
    finally:
        for item in objects:
            cluster.delete_object(item)
        wait_for(lambda: not refused(), what="that the policy is gone", timeout=120)
