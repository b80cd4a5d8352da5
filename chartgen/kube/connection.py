"""From a kubeconfig file to a connection; only this module and credentials.py use the Kubernetes client library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from chartgen.errors import MissingToolError, Problem, UsageError, did_you_mean
from chartgen.kube.cluster import Cluster
from chartgen.kube.kubeconfig import Merged, merge_kubeconfigs

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig

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
        hint = 'pip install "chartgen[cluster]"'
        raise MissingToolError(Problem("the Kubernetes client library is missing", hint=hint)) from None
    import httpx2

    from chartgen.kube.credentials import Credentials

    config = _load_config(kubeconfig, context)
    # A proxy from the environment must not see the traffic of a control plane on this machine.
    local = urlsplit(config.cluster.server).hostname in {"127.0.0.1", "localhost", "::1"}
    parameters = client_adapter.ConnectionParams(timeout=httpx2.Timeout(timeout), trust_env=not local)
    try:
        client = client_adapter.Client(config, parameters)
    except (ConfigError, AssertionError, OSError, ValueError) as error:
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
    paths = [Path(part).expanduser() for part in (named or "~/.kube/config").split(os.pathsep) if part]
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
