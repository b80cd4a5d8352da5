"""Secrets in texts: their patterns, and the function that masks them in all output for people and tools.

A release's manifests are not masked: `render` and `exec` must return them unchanged.
"""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "(hidden)"
# Prefixes that only one issuer uses, from the issuers' documents on tokens, with the minimum length of a real token.
KINDS = {
    "a Hugging Face token": re.compile(r"\bhf_[A-Za-z0-9]{16,}"),
    "an AWS access key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "an NGC key": re.compile(r"\bnvapi-[A-Za-z0-9_-]{16,}"),
    "a GitHub token": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    "a GitLab token": re.compile(r"\bgl(?:pat|rt|dt|cbt|ptt|ft|soat|agent|imt|oas)-[A-Za-z0-9_-]{20,}"),
    "a Slack token": re.compile(r"\b(?:xox[abeprs]|xapp)-[A-Za-z0-9-]{16,}|\bhooks\.slack\.com/services/[\w/]{20,}"),
    "an npm token": re.compile(r"\bnpm_[A-Za-z0-9]{36}"),
    "a PyPI token": re.compile(r"\bpypi-[A-Za-z0-9_-]{50,}"),
    "a Google API key": re.compile(r"\bAIza[A-Za-z0-9_-]{35}"),
    "a token of Google or Vault": re.compile(r"\b(?:ya29|hv[bs])\.[A-Za-z0-9_-]{20,}"),
    "a RunPod key": re.compile(r"\brpa_[A-Za-z0-9]{32,}"),
    "a Docker Hub token": re.compile(r"\bdckr_[op]at_[A-Za-z0-9_-]{20,}"),
    "a W&B key": re.compile(r"\bwandb_v1_[A-Za-z0-9_]{20,}"),
    # OpenAI's, and Anthropic's sk-ant-; a name of words has no digit so early
    "an API key": re.compile(r"(?<![\w-])sk-(?=[A-Za-z_-]{0,30}[0-9])[A-Za-z0-9_-]{20,}"),
    # RFC 7519: base64url of {"...
    "a JSON Web Token": re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    # Its headers and lines also where the end is cut off, with line ends as they are or escaped
    "a private key": re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:\s|\\+[nr])+(?:(?:Proc-Type|DEK-Info): ?[^\s\\]+|[A-Za-z0-9+/=]{16,}))*"
        r"(?:[^-]*-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----)?"
    ),
    # The same in base64, as kubeconfig files have it: PKCS 8, RSA, EC, OpenSSH
    "a packed private key": re.compile(
        r"LS0tLS1CRUdJTi(?:BQUklWQVRFIEtFW|BSU0EgUFJJVkFURSBLRV|BFQyBQUklWQVRFIEtFW|BPUEVOU1NIIFBSSVZBVEUgS0VZ)"
        r"[A-Za-z0-9+/=]*"
    ),
}
# Signatures of addresses: Azure's SAS, Google's and AWS's (version 4), and tokens in a query; then the header of HTTP.
_SIGNED = re.compile(
    r"([?&](?:sig|signature|token|access_token|X-(?:Goog|Amz)-(?:Signature|Credential|Security-Token))=)[^&\s\"']{8,}",
    re.IGNORECASE,
)
_AUTHORIZATION = re.compile(
    r"(\bauthorization[\"']?(?::\s{0,9}|=)[\"']?(?:bearer|basic|token|apikey) )[A-Za-z0-9._~+/=-]{6,}"
    r"|(\bbearer )(?=[A-Za-z._~+/=-]{0,30}[0-9])[A-Za-z0-9._~+/=-]{16,}",
    re.IGNORECASE,
)
# Up to the last @ of a word: people do not escape the @ and / of a password. A port or a path is not a password, and
# a reference such as $(PASSWORD) contains none. Bounded, because words in values and logs can have megabytes.
PASSWORD = re.compile(
    r"((?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]{1,40}://(?:\$\{[^\s{}]{0,100}\}|[^\s/:@\"'$]|\$(?!\{)){0,300}:)"
    r"(?!\$[({])(?![0-9]+/)[^\s\"']{1,256}(?=@)"
)
# 40 hexadecimal digits can also be a commit, so the name decides.
WANDB_KEY = re.compile(r"\b[0-9a-f]{40}\b")
WANDB_NAME = re.compile(r"wandb|api[-_]?key", re.IGNORECASE)
# Upper case only: configurations contain bos_token and similar names, which are not secrets. The cluster token of etcd
# is an identifier (etcd.io, --initial-cluster-token).
SECRET_NAME = re.compile(
    r"(?!.*INITIAL_CLUSTER_TOKEN$)(?:.*_PASS|.*_PWD"
    r"|(?:.*_|PG)?(?:TOKEN|PASSWORD|PASSWD|PASSPHRASE|SECRET|API_KEY|ACCESS_KEY|SECRET_KEY))"
)
RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+=._-][A-Za-z0-9+/=._-]{15,}")

# If masking too much does no harm, the other names also count in lower case.
_ANY_CASE = r"(?i:(?:.*_)?(?:PASSWORD|PASSWD|PASSPHRASE|API_?KEY|ACCESS_KEY|SECRET_KEY|CREDENTIALS?))"
_NAME = re.compile(f"{SECRET_NAME.pattern}|{_ANY_CASE}")
# Not a secret, whatever the name: PASSWORD=, SECRET=/var/run/secret, API_KEY=$(KEY).
_NOTHING = re.compile(r"|true|false|null|/.*|<.*>|\$[({].*|\(hidden\)|\{.*", re.DOTALL)
# NAME=text, as in flags and arguments, and "NAME": "text", as in JSON. What is quoted goes to the closing quote, and is
# bounded, because a quote may never close.
_QUOTED = re.compile(r"""((?<![\w.-])([\w.-]+)(?:=|["']: ?)(["']))((?:\\.|(?!\3)[^\\\n]){1,1000}(?=\3))""")
# A variable of Kubernetes, in JSON or in lines of YAML.
_ENTRY = re.compile(r"""(\bname["']?: ?["']?([\w.-]+)["']?(?:, ?|\n[-+ ]*)["']?value["']?: ?["']?)([^\s,"'}]+)""")
# A list or map of texts below a name, but not one that refers to a Secret.
_INSIDE = re.compile(
    r"""((?<![\w.-])([\w.-]+)["']: ?[\[{])((?!.{0,9}(?:secretName|\w+Ref|valueFrom))[^\[\]{}]*(?=[\]}]))"""
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # between two words of a name
_ASSIGNED = re.compile(r"""((?<![\w.-])([\w.-]+)(?:=["']?|["']: ?["']))((?:\\.|[^\s,"'}\\])+)""")
# Names in any case, with a blank or colon too, as in YAML and INI: there the text must look like a secret, since prose
# and configurations have `token: ...`.
# With a blank too as in --password x, or as two items of a list. `auth` is Docker's.
_WORDY = re.compile(r"""((?<![\w.-])([\w.-]+)\\*["']?(?: ?= ?|: ?)(?:[!&]\S{1,99} )?\\*["']?)([^\s,;&"'(){}\[\]\\]+)""")
_FLAG = re.compile(r"""((?<![\w.-])--([\w-]+)(?: +|["'], ?)["']?)([^\s,;&"'(){}\[\]\\]+)""")
_WORDS = (
    r"(?:.*[_.-])?(?:token|secret|passw(?:or)?d|(?:api|access|account|secret|secret_access)[_-]?key|credentials?|auth"
    r"|dockerconfigjson)"
)
_SECRETIVE = re.compile(_WORDS, re.IGNORECASE)
_PASSWORD_NAME = re.compile(
    r".*(?:passw(?:or)?d|(?:access|api|auth|bearer|client|refresh|session)[_-]?(?:token|key|secret))", re.IGNORECASE
)
_MIXED = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/=_]{16,}|(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])[\w+/=.~-]{16,}")
_TYPED = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[^/<$]{6,}")
_GIVEN = re.compile(r"(?=.*[0-9A-Z])(?=.*[A-Za-z])[^/<$]{4,}")  # behind a flag, where prose has words such as "or"
# The keys of secretEnv map to references: a plain text there is the secret itself.
_SECRET_ENV = re.compile(r"""(secretEnv\.[\w-]+(?:=["']?))((?:\\.|[^,"'{])+)""")
_SECRET_MAP = re.compile(r"""secretEnv["']?(?:=|: ?)\{[^{}]*\}""")
_MAP_TEXT = re.compile(r"""(["'][\w-]+["']: ?)(["'])(?:\\.|(?!\2)[^\\\n])*\2""")


def masked(text: str) -> str:
    """Return a text with every secret replaced by `(hidden)`: tokens, passwords in addresses, NAME=secret."""
    for pattern in KINDS.values():
        text = pattern.sub(HIDDEN, text)
    text = _SECRET_MAP.sub(lambda match: _MAP_TEXT.sub(rf"\1{HIDDEN}", match[0]), text)
    text = _SECRET_ENV.sub(rf"\1{HIDDEN}", text)
    for pattern in (_QUOTED, _ASSIGNED, _ENTRY, _INSIDE):
        text = pattern.sub(_without_secret, text)
    text = _AUTHORIZATION.sub(rf"\1\2{HIDDEN}", _SIGNED.sub(rf"\1{HIDDEN}", text))
    text = _WORDY.sub(lambda match: match[1] + HIDDEN if _looks_like_one(match[2], match[3]) else match[0], text)
    text = _FLAG.sub(
        lambda match: match[1] + HIDDEN if _SECRETIVE.fullmatch(match[2]) and _GIVEN.fullmatch(match[3]) else match[0],
        text,
    )
    text = PASSWORD.sub(rf"\1{HIDDEN}", text)
    return WANDB_KEY.sub(HIDDEN, text) if WANDB_NAME.search(text) else text


def _looks_like_one(name: str, text: str) -> bool:
    """Report whether both a name, in any case, and its text look like a secret."""
    if not _SECRETIVE.fullmatch(_CAMEL.sub("_", name)) or text.startswith("/"):
        return False
    return bool(_MIXED.fullmatch(text) or (_PASSWORD_NAME.fullmatch(name) and _TYPED.fullmatch(text)))


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
    name = str(keys[-1]) if keys else ""
    if (
        names_secret(name, str(value))
        or _looks_like_one(name, str(value))
        or (len(keys) > 1 and keys[-2] == "secretEnv")
    ):
        return HIDDEN
    if not isinstance(value, str):
        return value
    return HIDDEN if WANDB_KEY.search(value) and WANDB_NAME.search(name) else masked(value)


def names_secret(name: str, text: str) -> bool:
    """Report whether a name indicates a secret and its text is not evidently something else."""
    if not _NAME.fullmatch(_CAMEL.sub("_", name)) or _NOTHING.fullmatch(text):
        return False
    # PAD_TOKEN=[PAD] and MAX_TOKEN=5 are not secrets
    return not (name.endswith("TOKEN") and re.fullmatch(r"[0-9.]+|\[.*\]", text))
