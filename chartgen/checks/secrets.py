"""Keys and passwords in plain text: values end up in the release, manifests and logs, where many can read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from chartgen.checks.job import TASKS, Job
from chartgen.findings import KeyProblem, rule, rules_in
from chartgen.masking import PASSWORD, RANDOM, SECRET_NAME, WANDB_KEY, WANDB_NAME, tokens_in

_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})(?=@)")
_SECRET_NAME, _RANDOM, _WANDB_KEY, _WANDB_NAME = map(re.compile, (SECRET_NAME, RANDOM, WANDB_KEY, WANDB_NAME))
_SHORTEST = 16  # characters of a secret that is known by its form, but for passwords in addresses


class _Text(NamedTuple):
    """A text among the values: its keys, without list indexes, and its name."""

    keys: tuple[str, ...]
    name: str
    text: str


@rule(
    "kubernetes.io, Good practices for Kubernetes Secrets",
    tasks=TASKS,
    remedy="put it into a Secret, and use secretEnv: {…: {secretName: ..., key: ...}}",
)
def no_secrets_in_values(job: Job) -> Iterator[KeyProblem]:
    """Keys, tokens and passwords belong in a Secret: values are stored in the release, and many tools show them."""
    for text in _texts(job.values, (), ""):
        kind = _kind(text)
        if kind:
            # a key with a dot, such as an annotation, is reported by its parent map
            dotted = next((index for index, key in enumerate(text.keys) if "." in key), len(text.keys))
            yield KeyProblem(".".join(text.keys[:dotted]) or "values", f"contains {kind} in plain text", _hint(text))


def looks_secret(name: str, text: str) -> bool:
    """Report whether a text resembles a key, a token or a password, by its form or by its name.

    A variable of a shell in an address, as in `://$NAME:$PASSWORD@`, is not one.
    """
    return bool(_kind(_Text((name,), name, _VARIABLE.sub("", text))))


def _kind(found: _Text) -> str:
    """Return the kind of secret in a text; empty if it contains none."""
    if len(found.text) < _SHORTEST and "://" not in found.text:
        return ""
    for kind, _ in tokens_in(found.text):
        return kind
    if "://" in found.text and re.search(PASSWORD, found.text):
        return "a password in an address"
    if _WANDB_KEY.search(found.text) and _WANDB_NAME.search(f"{'.'.join(found.keys)} {found.name} {found.text}"):
        return "a Weights & Biases key"
    assigned = found.text.partition("=")[2] if _SECRET_NAME.fullmatch(found.text.partition("=")[0]) else ""
    secret = assigned or (found.text if _SECRET_NAME.fullmatch(found.name) else "")
    return "a secret" if _RANDOM.fullmatch(secret) else ""


def _hint(text: _Text) -> str:
    name = text.name if text.keys[0] == "env" else "NAME"
    return f"put it into a Secret, and use secretEnv: {{{name}: {{secretName: ..., key: ...}}}}"


def _texts(value: Any, keys: tuple[str, ...], name: str) -> Iterator[_Text]:
    if isinstance(value, str):
        yield _Text(keys, name, value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*keys, str(key)), str(key))
    elif isinstance(value, list):
        # an option and its value may be two arguments: the preceding one is the name
        names = [name, *(each if isinstance(each, str) else name for each in value)]
        for before, item in zip(names, value, strict=False):
            yield from _texts(item, keys, before)


SECRETS = rules_in(globals())
