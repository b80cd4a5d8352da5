"""Keys and passwords in plain text: values end in the release, in manifests and in logs, where many can read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from chartgen.checks.claim import Check, Claim
from chartgen.checks.job import Job

# Beginnings that only one issuer uses, by the issuers' own documents on tokens, with the least length that is real.
_KINDS = {
    "a Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{16,}"),
    "an AWS access key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "an NGC key": re.compile(r"\bnvapi-[A-Za-z0-9_-]{16,}"),
    "a GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----"),
    # a reference such as $(PASSWORD) holds nothing
    "a password in an address": re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://[^\s/:@]*:[^\s/@$][^\s/@]*@"),
}
# 40 hexadecimal digits are also a commit, so that the name has to tell.
_WANDB_KEY = re.compile(r"\b[0-9a-f]{40}\b")
_WANDB_NAME = re.compile(r"wandb|api[-_]?key", re.IGNORECASE)
# Upper case: configurations hold bos_token and the like, which are no secrets.
_SECRET_NAME = re.compile(r"(?:.*_)?(?:TOKEN|PASSWORD|PASSWD|SECRET|API_KEY|ACCESS_KEY|SECRET_KEY)")
_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+=._-][A-Za-z0-9+/=._-]{15,}")


class _Text(NamedTuple):
    """A text among the values: the keys that lead to it, without list indexes, and the name it goes by."""

    keys: tuple[str, ...]
    name: str
    text: str


def no_secrets_in_values(job: Job) -> Iterator[Claim]:
    """Keys, tokens and passwords belong into a Secret: values are kept in the release and shown by many tools."""
    for found in _texts(job.values, (), ""):
        kind = _kind(found)
        if kind:
            # a key with a dot in it, such as an annotation, is named by the map that holds it
            dotted = next((index for index, key in enumerate(found.keys) if "." in key), len(found.keys))
            yield Claim(".".join(found.keys[:dotted]) or "values", f"holds {kind} in plain text", _hint(found))


def looks_secret(name: str, text: str) -> bool:
    """Tell whether a text looks like a key, a token or a password, by itself or by the name it goes by."""
    return bool(_kind(_Text((name,), name, text)))


def _kind(found: _Text) -> str:
    """Say what kind of secret a text holds; nothing when it holds none."""
    for kind, pattern in _KINDS.items():
        if pattern.search(found.text):
            return kind
    name = f"{'.'.join(found.keys)} {found.name} {found.text}"
    if _WANDB_KEY.search(found.text) and _WANDB_NAME.search(name):
        return "a Weights & Biases key"
    assigned = found.text.partition("=")[2] if _SECRET_NAME.fullmatch(found.text.partition("=")[0]) else ""
    secret = assigned or (found.text if _SECRET_NAME.fullmatch(found.name) else "")
    return "a secret" if _RANDOM.fullmatch(secret) else ""


def _hint(found: _Text) -> str:
    name = found.name if found.keys[0] == "env" else "NAME"
    return f"put it into a Secret, and use secretEnv: {{{name}: {{secretName: ..., key: ...}}}}"


def _texts(value: Any, keys: tuple[str, ...], name: str) -> Iterator[_Text]:
    if isinstance(value, str):
        yield _Text(keys, name, value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*keys, str(key)), str(key))
    elif isinstance(value, list):
        # an option and its value may be two arguments: the one before names the next
        names = [name, *(each if isinstance(each, str) else name for each in value)]
        for before, item in zip(names, value, strict=False):
            yield from _texts(item, keys, before)


SECRETS = (
    Check(
        no_secrets_in_values,
        "kubernetes.io, Good practices for Kubernetes Secrets",
        tasks=("train", "data", "test"),
    ),
)
