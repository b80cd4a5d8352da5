"""Plain wordings of the messages about a stuck run, each with advice."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from chartgen.errors import Problem

# Searched characters of a message. An event's note has at most 1,024 (events.k8s.io/v1), a condition's message 32,768
# (metav1.Condition); third-party controllers and webhooks write them.
LONGEST = 4096


@dataclass(frozen=True)
class Wording:
    """Plain wording for a message of Kubernetes or a controller."""

    pattern: str
    words: str  # the wording; may use the pattern's groups
    hint: str  # advice; may use the groups too


def reword(message: str, wordings: Iterable[Wording]) -> list[Problem]:
    """Return a problem for each match of a wording in a message."""
    return [
        Problem(match.expand(wording.words), hint=match.expand(wording.hint))
        for wording in wordings
        for match in re.finditer(wording.pattern, message[:LONGEST])
    ]


# Messages of the API server (plugin/pkg/admission/resourcequota, webhook, serviceaccount) and pod security admission.
_REFUSALS = (
    Wording(
        r"exceeded quota: (\S+), requested: (.+?), used: (.+?), limited: (.+)",
        r"quota \1 of the namespace is used up: a pod requests \2, \3 of \4 is in use",
        r"free some of it or ask for more; see `kubectl describe resourcequota \1`",
    ),
    Wording(
        r'(?s)admission webhook "([^"]+)" denied the request: (.+)',
        r"webhook \1 refuses it: \2",
        r"change what it names, or ask whoever runs that webhook",
    ),
    Wording(
        r'(?s)failed calling webhook "([^"]+)": (.+)',
        r"webhook \1 does not answer: \2",
        r"see whether the controller that serves it runs: `kubectl get pods --all-namespaces`",
    ),
    Wording(
        r"serviceaccount \"([^\"]+)\" not found",
        r"no service account \1 in the namespace",
        r"create it, or change `serviceAccount`",
    ),
    Wording(
        r'(?s)violates PodSecurity "([^"]+)": (.+)',
        r"the namespace allows only pods of level \1: \2",
        r"label the namespace with pod-security.kubernetes.io/enforce=privileged",
    ),
    Wording(
        r"(?s)is invalid: (.+)",
        r"the API server refuses it: \1",
        r"correct the value that sets this field, then `chartgen upgrade`",
    ),
)
_QUOTED = re.compile(r"\\(.)")


def why_rejected(message: str) -> Problem:
    """Return why the API server rejects the pods or Jobs of a run, without the names of single pods."""
    plain = _QUOTED.sub(r"\1", message)
    found = reword(plain, _REFUSALS)
    return found[0] if found else Problem(plain)
