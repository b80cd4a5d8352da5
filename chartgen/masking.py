"""Secrets in texts: their patterns, and the function that masks them in all output for people and tools.

A release's manifests are not masked: `render` and `exec` must return them unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

HIDDEN = "(hidden)"
# Prefixes that only one issuer uses, from the issuers' documents on tokens, with the minimum length of a real token.
KINDS = {
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{16,}",
    "an AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "an NGC key": r"\bnvapi-[A-Za-z0-9_-]{16,}",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})",
    "a GitLab token": r"\bgl(?:pat|rt|dt|cbt|ptt|ft|soat|agent|imt|oas)-[A-Za-z0-9_-]{20,}",
    "a Slack token": r"\b(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{16,}|\bhooks\.slack\.com/services/[\w/]{20,}",
    "an npm token": r"\bnpm_[A-Za-z0-9]{36}",
    "a PyPI token": r"\bpypi-[A-Za-z0-9_-]{50,}",
    "a Google API key": r"\bAIza[A-Za-z0-9_-]{35}",
    "a token of Google or Vault": r"\b(?:ya29|hv[bs])\.[A-Za-z0-9_-]{20,}",
    "a RunPod key": r"\brpa_[A-Za-z0-9]{32,}",
    "a Docker Hub token": r"\bdckr_[op]at_[A-Za-z0-9_-]{20,}",
    "a W&B key": r"\bwandb_v1_[A-Za-z0-9_]{20,}",
    # OpenAI's, and Anthropic's sk-ant-; a name of words has no digit so early
    "an API key": r"(?<![\w-])sk-(?=[A-Za-z_-]{0,30}[0-9])[A-Za-z0-9_-]{20,}",
    # RFC 7519: base64url of {"...
    "a JSON Web Token": r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
    # Its headers and lines also where the end is cut off, with line ends as they are or escaped
    "a private key": (
        r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:\s|\\+[nr])+(?:(?:Proc-Type|DEK-Info): ?[^\s\\]+|[A-Za-z0-9+/=]{16,}))*"
        r"(?:[^-]*-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)?"
    ),
    # The same in base64, as kubeconfig files have it: PKCS 8, RSA, EC, OpenSSH
    "a packed private key": (
        r"LS0tLS1CRUdJTi(?:BQUklWQVRFIEtFW|BSU0EgUFJJVkFURSBLRV|BFQyBQUklWQVRFIEtFW|BPUEVOU1NIIFBSSVZBVEUgS0VZ)"
        r"[A-Za-z0-9+/=]*"
    ),
}
# One of these begins each of them, and one of the words is in each name of a secret: most texts have none, and the
# expressions, which `re` compiles when they are first used, take a tenth of a short command's time.
_BEGINNINGS = (
    r"hf_|AKIA|ASIA|nvapi-|gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox|xapp-|hooks\.slack|npm_|pypi-|AIza|ya29\.|hv[bs]\."
    r"|rpa_|dckr_|wandb_v1_|sk-|eyJ|-----BEGIN |LS0tLS1C"
)
_HINTS = r"(?i)pass|pwd|token|secret|key|credential|auth|bearer|sig|dockerconfig"
# Signatures of addresses: Azure's SAS, Google's and AWS's (version 4), and tokens in a query; then the header of HTTP.
_SIGNED = (
    r"(?i)([?&](?:sig|signature|token|access_token|X-(?:Goog|Amz)-(?:Signature|Credential|Security-Token))=)"
    r"[^&\s\"']{8,}"
)
_AUTHORIZATION = (
    r"(?i)(\bauthorization[\"']?(?::\s{0,9}|=)[\"']?(?:bearer|basic|token|apikey) )[A-Za-z0-9._~+/=-]{6,}"
    r"|(\bbearer )(?=[A-Za-z._~+/=-]{0,30}[0-9])[A-Za-z0-9._~+/=-]{16,}"
)
# Up to the last @ of a word: people do not escape the @ and / of a password. A port or a path is not a password, and
# a reference such as $(PASSWORD) contains none. Bounded, because words in values and logs can have megabytes.
PASSWORD = (
    r"((?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]{1,40}://(?:\$\{[^\s{}]{0,100}\}|[^\s/:@\"'$]|\$(?!\{)){0,300}:)"
    r"(?!\$[({])(?![0-9]+/)[^\s\"']{1,256}(?=@)"
)
# 40 hexadecimal digits can also be a commit, so the name decides.
WANDB_KEY = r"\b[0-9a-f]{40}\b"
WANDB_NAME = r"(?i)wandb|api[-_]?key"
# Upper case only: configurations contain bos_token and similar names, which are not secrets. The cluster token of etcd
# is an identifier (etcd.io, --initial-cluster-token).
SECRET_NAME = (
    r"(?!.*INITIAL_CLUSTER_TOKEN$)(?:.*_PASS|.*_PWD"
    r"|(?:.*_|PG)?(?:TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|API_KEY|ACCESS_KEY|SECRET_KEY))"
)
RANDOM = r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+=._-][A-Za-z0-9+/=._-]{15,}"

# If masking too much does no harm, the other names also count in lower case.
_ANY_CASE = r"(?i:(?:.*_)?(?:PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_KEY|SECRET_KEY|CREDENTIALS?))"
_NAME = f"{SECRET_NAME}|{_ANY_CASE}"
# Not a secret, whatever the name: PASSWORD=, SECRET=/var/run/secret, API_KEY=$(KEY).
_NOTHING = r"(?s)|true|false|null|/.*|<.*>|\$[({].*|\(hidden\)|\{.*"
# NAME=text, as in flags and arguments, and "NAME": "text", as in JSON. What is quoted goes to the closing quote, and is
# bounded, because a quote may never close.
_QUOTED = r"""((?<![\w.-])([\w.-]+)(?:=|["']: ?)(["']))((?:\\.|(?!\3)[^\\\n]){1,1000}(?=\3))"""
# A variable of Kubernetes, in JSON or in lines of YAML.
_ENTRY = r"""(\bname["']?: ?["']?([\w.-]+)["']?(?:,[ \t]{0,9}|\n[-+ ]*)["']?value["']?: ?["']?)([^\s,"'}]+)"""
# A list or map of texts below a name, but not one that refers to a Secret.
_INSIDE = r"""((?<![\w.-])([\w.-]+)["']: ?[\[{])((?!.{0,9}(?:secretName|\w+Ref|valueFrom))[^\[\]{}]*(?=[\]}]))"""
_CAMEL = r"(?<=[a-z0-9])(?=[A-Z])"  # between two words of a name
_ASSIGNED = r"""((?<![\w.-])([\w.-]+)(?:=["']?|["']: ?["']))((?:\\.|[^\s,"'}\\])+)"""
# Names in any case, with a blank or colon too, as in YAML and INI: there the text must look like a secret, since prose
# and configurations have `token: ...`.
# With a blank too as in --password x, or as two items of a list. `auth` is Docker's.
_WORDY = (
    r"""((?<![\w.-])([\w.-]+)\\*["']?[ \t]{0,99}[=:][ \t]{0,99}(?:[!&]\S{1,99} )?\\*["']?)([^\s,;&"'(){}\[\]\\]+)"""
)
_FLAG = r"""((?<![\w.-])--([\w-]+)(?: +|["'], ?)["']?)([^\s,;&"'(){}\[\]\\]+)"""
_SECRETIVE = (
    r"(?i)(?:.*[_.-])?(?:token|secret|passw(?:or)?d|(?:api|access|account|secret|secret_access)[_-]?key|credentials?|auth"
    r"|dockerconfigjson)"
)
_PASSWORD_NAME = r"(?i).*(?:passw(?:or)?d|(?:access|api|auth|bearer|client|refresh|session)[_-]?(?:token|key|secret))"
_MIXED = r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/=_]{16,}|(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])[\w+/=.~-]{16,}"
_TYPED = r"(?=.*[0-9])(?=.*[A-Za-z])[^/<$]{6,}"
_GIVEN = r"(?=.*[0-9A-Z])(?=.*[A-Za-z])[^/<$]{4,}"  # behind a flag, where prose has words such as "or"
# The keys of secretEnv map to references: a plain text there is the secret itself.
_SECRET_ENV = r"""(secretEnv\.[\w-]+(?:=["']?))((?:\\.|[^,"'{])+)"""
_SECRET_MAP = r"""secretEnv["']?(?:=|: ?)\{[^{}]*\}"""
_MAP_TEXT = r"""(["'][\w-]+["']: ?)(["'])(?:\\.|(?!\2)[^\\\n])*\2"""
# Printers and people align with blanks.
_QUOTED, _ENTRY, _INSIDE, _ASSIGNED, _SECRET_MAP, _MAP_TEXT = (
    form.replace(": ?", r"[ \t]{0,9}:[ \t]{0,9}")
    for form in (_QUOTED, _ENTRY, _INSIDE, _ASSIGNED, _SECRET_MAP, _MAP_TEXT)
)


def tokens_in(text: str) -> Iterator[tuple[str, int]]:
    """Yield the kinds of tokens in a text that are known by their form, each with the place of its first."""
    if re.search(_BEGINNINGS, text):
        yield from ((kind, found.start()) for kind, form in KINDS.items() if (found := re.search(form, text)))


def masked(text: str) -> str:
    """Return a text with every secret replaced by `(hidden)`: tokens, passwords in addresses, NAME=secret."""
    if re.search(_BEGINNINGS, text):
        for form in KINDS.values():
            text = re.sub(form, HIDDEN, text)
    if re.search(_HINTS, text):
        text = _named_masked(text)
    if "://" in text:
        text = re.sub(PASSWORD, rf"\1{HIDDEN}", text)
    return re.sub(WANDB_KEY, HIDDEN, text) if re.search(WANDB_NAME, text) else text


def _named_masked(text: str) -> str:
    """Mask what follows the name of a secret, its flag or its scheme of HTTP."""
    text = re.sub(_SECRET_MAP, lambda match: re.sub(_MAP_TEXT, rf"\1{HIDDEN}", match[0]), text)
    text = re.sub(_SECRET_ENV, rf"\1{HIDDEN}", text)
    for form in (_QUOTED, _ASSIGNED, _ENTRY, _INSIDE):
        text = re.sub(form, _without_secret, text)
    text = re.sub(_AUTHORIZATION, rf"\1\2{HIDDEN}", re.sub(_SIGNED, rf"\1{HIDDEN}", text))
    text = re.sub(_WORDY, lambda found: found[1] + HIDDEN if _looks_like_one(found[2], found[3]) else found[0], text)
    return re.sub(_FLAG, lambda found: found[1] + HIDDEN if _is_given(found[2], found[3]) else found[0], text)


def _is_given(flag: str, text: str) -> bool:
    return bool(re.fullmatch(_SECRETIVE, flag) and re.fullmatch(_GIVEN, text))


def _looks_like_one(name: str, text: str) -> bool:
    """Report whether both a name, in any case, and its text look like a secret."""
    if not re.fullmatch(_SECRETIVE, re.sub(_CAMEL, "_", name)) or text.startswith("/"):
        return False
    return bool(re.fullmatch(_MIXED, text) or (re.fullmatch(_PASSWORD_NAME, name) and re.fullmatch(_TYPED, text)))


def _without_secret(assigned: re.Match[str]) -> str:
    """Return NAME=text with the text masked if the last word of the name indicates a secret."""
    name = assigned[2].rpartition(".")[2].replace("-", "_").lstrip("0123456789_")
    return assigned[1] + HIDDEN if names_secret(name, assigned[assigned.lastindex or 0]) else assigned[0]


def masked_value(value: Any, keys: tuple[str | int, ...] = ()) -> Any:
    """Return data with every secret in it masked, identified by its pattern or by its name.

    Args:
        value: Data from YAML or JSON.
        keys: The key path of the value; below `secretEnv` every text is a secret, except the names of Secrets.
    """
    if isinstance(value, dict):
        # a variable is an object of name and value
        named = str(value.get("name", ""))
        return {key: masked_value(item, (*keys, named if key == "value" else key)) for key, item in value.items()}
    if isinstance(value, list):
        texts = [each if isinstance(each, str) else "" for each in ("", *value)]
        flags = [text[2:].replace("-", "_") if text.startswith("--") else "" for text in texts]
        return [masked_value(item, (*keys, flag) if flag else keys) for flag, item in zip(flags, value, strict=False)]
    if value is None or isinstance(value, bool):
        return value
    name, text = str(keys[-1]) if keys else "", str(value)
    is_secret = re.search(_HINTS, name) and (names_secret(name, text) or _looks_like_one(name, text))
    if is_secret or (len(keys) > 1 and keys[-2] == "secretEnv"):
        return HIDDEN
    if not isinstance(value, str):
        return value
    return HIDDEN if re.search(WANDB_NAME, name) and re.search(WANDB_KEY, value) else masked(value)


def names_secret(name: str, text: str) -> bool:
    """Report whether a name indicates a secret and its text is not evidently something else."""
    if not re.fullmatch(_NAME, re.sub(_CAMEL, "_", name)) or re.fullmatch(_NOTHING, text):
        return False
    # PAD_TOKEN=[PAD] and MAX_TOKEN=5 are not secrets
    return not (name.endswith("TOKEN") and re.fullmatch(r"[0-9.]+|\[.*\]", text))
