"""Why a run does not go on, in words, each with what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Characters of a message that are searched. An event's note has 1,024 at most (events.k8s.io/v1), a condition's message
# 32,768 (metav1.Condition), which somebody else's controller or webhook chooses.
LONGEST = 4096


@dataclass(frozen=True)
class Cause:
    """One reason.

    Args:
        text: What is wrong, without a final stop.
        hint: What to do; empty when there is nothing to do but wait.
    """

    text: str
    hint: str = ""


@dataclass(frozen=True)
class Wording:
    """How a message of Kubernetes or a controller is said.

    Args:
        pattern: Finds it in the message.
        words: What is said instead; may use the pattern's groups.
        hint: What to do; may use them too.
    """

    pattern: re.Pattern[str]
    words: str
    hint: str

    def causes(self, message: str) -> list[Cause]:
        """Return a cause for each place where the message says this."""
        found = self.pattern.finditer(message[:LONGEST])
        return [Cause(match.expand(self.words), match.expand(self.hint)) for match in found]


def reword(message: str, wordings: Iterable[Wording]) -> list[Cause]:
    """Say a message in words; nothing when no wording fits."""
    return [cause for wording in wordings for cause in wording.causes(message)]


def unique(causes: Iterable[Cause]) -> list[Cause]:
    """Leave out repeated causes."""
    return list(dict.fromkeys(causes))


# Words of the API server (plugin/pkg/admission/resourcequota, webhook, serviceaccount) and of pod security admission.
_REFUSALS = (
    Wording(
        re.compile(r"exceeded quota: (\S+), requested: (.+?), used: (.+?), limited: (.+)"),
        r"quota \1 of the namespace holds no more: a pod asks for \2, used is \3 of \4",
        r"free some of it or ask for more; see `kubectl describe resourcequota \1`",
    ),
    Wording(
        re.compile(r'admission webhook "([^"]+)" denied the request: (.+)', re.DOTALL),
        r"webhook \1 refuses it: \2",
        r"change what it names, or ask whoever runs that webhook",
    ),
    Wording(
        re.compile(r'failed calling webhook "([^"]+)": (.+)', re.DOTALL),
        r"webhook \1 does not answer: \2",
        r"see whether the controller that serves it runs: `kubectl get pods --all-namespaces`",
    ),
    Wording(
        re.compile(r"serviceaccount \"([^\"]+)\" not found"),
        r"there is no service account \1 in the namespace",
        r"create it, or change `serviceAccount`",
    ),
    Wording(
        re.compile(r'violates PodSecurity "([^"]+)": (.+)', re.DOTALL),
        r"the namespace allows only pods of level \1: \2",
        r"label the namespace with pod-security.kubernetes.io/enforce=privileged",
    ),
    Wording(
        re.compile(r"is invalid: (.+)", re.DOTALL),
        r"the API server refuses it: \1",
        r"correct the value that sets this field, then `chartgen upgrade`",
    ),
)
_QUOTED = re.compile(r"\\(.)")


def refused(message: str) -> Cause:
    """Say why the API server refuses the pods or Jobs of a run; the names of single pods are left out."""
    plain = _QUOTED.sub(r"\1", message)
    found = reword(plain, _REFUSALS)
    return found[0] if found else Cause(plain)
