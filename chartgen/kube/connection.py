"""From a kubeconfig file to a connection; only this module and credentials.py use the Kubernetes client library."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from chartgen.errors import ChartgenError, MissingToolError, Problem, UsageError, did_you_mean
from chartgen.files import home_expanded
from chartgen.helm.yaml import load_file, require_map, type_name
from chartgen.kube.cluster import Cluster

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig


Entry = dict[str, Any]

# Kinds of entries, each in a list named after it; the fields with files relative to the kubeconfig's folder
# (k8s.io/client-go, tools/clientcmd/loader.go: GetClusterFileReferences, GetAuthInfoFileReferences); and the fields
# that kubectl and Helm honour and lightkube ignores (tools/clientcmd/api/v1/types.go of client-go 0.37.1): without them
# a request has another identity than Helm's, or goes another way.
_KINDS = {
    "cluster": (("certificate-authority",), ("proxy-url", "tls-server-name")),
    "context": ((), ()),
    "user": (("client-certificate", "client-key", "tokenFile"), ("as", "as-uid", "as-groups", "as-user-extra")),
}
_HINT = "name a context without it with --context, or in current-context"


@dataclass
class Merged:
    """The merged content of several kubeconfig files."""

    current: str = ""  # the current context; empty for none
    # Kind, such as `user` -> name -> content
    entries: dict[str, dict[str, Entry]] = field(default_factory=lambda: {kind: {} for kind in _KINDS})
    # Kind and name of an entry -> its fields that chartgen does not support
    unsupported: dict[tuple[str, str], list[Problem]] = field(default_factory=dict)


def merge_kubeconfigs(files: Iterable[Path]) -> Merged:
    """Merge kubeconfig files: for a name in several files, the whole entry of the first file wins.

    A file may lack any of the keys, and may be empty.

    Raises:
        MissingToolError: A file is not a kubeconfig.
    """
    merged = Merged()
    for file in files:
        try:
            _add(merged, file)
        except ChartgenError as error:
            first = error.problems[0]
            problem = Problem(f"is not a kubeconfig: {first.message}", first.path, first.line, first.column, first.hint)
            raise MissingToolError(problem) from None
    return merged


def _add(merged: Merged, file: Path) -> None:
    document = load_file(file)
    data = require_map(document, "it")
    merged.current = merged.current or str(data.get("current-context") or "")
    for key, (paths, unsupported) in _KINDS.items():
        table, name = merged.entries[key], f"{key}s"
        listed = data.get(name) or []
        if not isinstance(listed, list):
            raise ChartgenError(document.problem(f"{name} must be a list, not {type_name(listed)}", (name,)))
        for index, each in enumerate(listed):
            entry = each.get(key) or {} if isinstance(each, dict) and "name" in each else None
            if not isinstance(each, dict) or not isinstance(entry, dict):
                raise ChartgenError(document.problem(f"this needs a name and a map {key}", (name, index)))
            title = str(each["name"])
            if title in table:
                continue
            table[title] = _absolute(dict(entry), paths, file.absolute().parent)
            merged.unsupported[key, title] = [
                document.problem(
                    f"chartgen does not support field {what!r} of {key} {title!r}", (name, index, key, what), _HINT
                )
                for what in unsupported
                if entry.get(what)
            ]


def _absolute(entry: Entry, paths: Iterable[str], folder: Path) -> Entry:
    """Resolve the paths of an entry, and the path of a credential plugin that is given as a path."""
    for path in paths:
        if entry.get(path):
            entry[path] = str(folder / entry[path])
    plugin = entry.get("exec")
    if isinstance(plugin, dict) and "/" in str(plugin.get("command")):
        entry["exec"] = {**plugin, "command": str(folder / plugin["command"])}
    return entry


_EXEC = "client.authentication.k8s.io"  # the API group of credential plugins


def connect(*, kubeconfig: Path | str | None = None, context: str | None = None, timeout: float = 10.0) -> Cluster:
    """Connect to a cluster and query its version.

    Args:
        kubeconfig: A kubeconfig file, or several as in $KUBECONFIG; default $KUBECONFIG, ~/.kube/config, or the service
            account inside a pod.
        context: A context in it; default its current one.
        timeout: Seconds for one request.

    Raises:
        UsageError: The context does not exist.
        MissingToolError: lightkube, the configuration or a credential is missing, the configuration has a field that
            chartgen does not support, or no Kubernetes API server answers.
    """
    try:
        from lightkube.config import client_adapter
        from lightkube.core.exceptions import ConfigError
    except ImportError:
        hint = "pip install 'PATH[cluster]', with the folder or the wheel of chartgen as PATH"
        raise MissingToolError(Problem("the Kubernetes client library is missing", hint=hint)) from None
    import httpx2

    from chartgen.kube.credentials import Credentials

    config = _load_config(kubeconfig, context)
    # A proxy from the environment must not see the traffic of a control plane on this machine.
    try:
        local = urlsplit(config.cluster.server).hostname in {"127.0.0.1", "localhost", "::1"}
        parameters = client_adapter.ConnectionParams(timeout=httpx2.Timeout(timeout), trust_env=not local)
        client = client_adapter.Client(config, parameters)
    except (ConfigError, AssertionError, OSError, ValueError, httpx2.InvalidURL) as error:
        raise MissingToolError(f"context {config.context_name!r} cannot be used: {error}") from None
    if client.auth:
        client.auth = Credentials(client.auth, config)
    try:
        return Cluster(client, config)
    except BaseException:
        client.close()
        raise


def _load_config(kubeconfig: Path | str | None, context: str | None) -> SingleConfig:
    from lightkube.config.kubeconfig import KubeConfig
    from lightkube.core.exceptions import ConfigError

    named = str(kubeconfig) if kubeconfig else os.environ.get("KUBECONFIG", "")
    paths = [home_expanded(part) for part in (named or "~/.kube/config").split(os.pathsep) if part]
    files = [path for path in paths if path.is_file()]
    if files:
        return _select(merge_kubeconfigs(files), context, paths[0])
    try:
        inside = KubeConfig.from_service_account().get(context)
    except (ConfigError, KeyError):
        inside = None
    if inside is None:
        hint = "name one with --context and KUBECONFIG, or try `chartgen sandbox up`"
        raise MissingToolError(Problem(f"no kubeconfig at {paths[0]}", hint=hint))
    return inside


def _select(merged: Merged, context: str | None, file: Path) -> SingleConfig:
    """Return one context with its cluster and user; the rest of the files may be broken."""
    from lightkube.config.kubeconfig import KubeConfig

    wanted = context or merged.current
    contexts = merged.entries["context"]
    if wanted not in contexts:
        hint = did_you_mean(wanted, contexts)
        problem = f"no context named {wanted!r}" if wanted else "no context is named, and none is current"
        raise UsageError(Problem(problem, file, hint=hint))
    chosen = contexts[wanted]
    named = {kind: str(chosen.get(kind) or "") for kind in ("cluster", "user")}
    if unsupported := [each for entry in named.items() for each in merged.unsupported.get(entry, ())]:
        raise MissingToolError(unsupported)
    data: dict[str, Any] = {"current-context": wanted, "contexts": [{"name": wanted, "context": chosen}]}
    for kind, name in named.items():
        if name and name not in merged.entries[kind]:
            raise MissingToolError(Problem(f"context {wanted!r} refers to {kind} {name!r}, which is missing", file))
        data[f"{kind}s"] = [{"name": name, kind: merged.entries[kind][name]}] if name else []
    try:
        found = KubeConfig.from_dict(data, fname=file).get()
    except (ValueError, KeyError, TypeError) as error:  # msgspec's errors derive from ValueError
        problem = f"context {wanted!r} cannot be used: {' '.join(str(error).split())}"
        raise MissingToolError(Problem(problem, file)) from None
    assert found is not None  # noqa: S101 - the context is in the data
    # lightkube rejects v1, whose output has the same token (client-go, pkg/apis/clientauthentication), and does not
    # name the version to the plugin
    if found.user and found.user.exec and found.user.exec.apiVersion == f"{_EXEC}/v1":
        found.user.exec.apiVersion = f"{_EXEC}/v1beta1"
    return found
