"""From a kubeconfig file to a connection; the one place, with client.py, that uses the Kubernetes client library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from chartgen.cluster.client import Cluster
from chartgen.errors import MissingToolError, Problem, UsageError, did_you_mean

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import KubeConfig, SingleConfig


def connect(*, kubeconfig: Path | str | None = None, context: str | None = None, timeout: float = 10.0) -> Cluster:
    """Connect to a cluster and ask for its version.

    Args:
        kubeconfig: A kubeconfig file; default $KUBECONFIG, ~/.kube/config, or the service account inside a pod.
        context: A context of it; default its current one.
        timeout: Seconds for one request.

    Raises:
        UsageError: There is no such context.
        MissingToolError: lightkube is not installed, there is no configuration, or the cluster does not answer.
    """
    try:
        from lightkube.config import client_adapter
        from lightkube.core.exceptions import ConfigError
    except ImportError:
        hint = 'pip install "chartgen[cluster]"'
        raise MissingToolError(Problem("the Kubernetes client library is missing", hint=hint)) from None
    import httpx2

    config = _load_config(kubeconfig, context)
    # A proxy from the environment must not see the traffic of a control plane on this machine.
    local = urlsplit(config.cluster.server).hostname in {"127.0.0.1", "localhost", "::1"}
    parameters = client_adapter.ConnectionParams(timeout=httpx2.Timeout(timeout), trust_env=not local)
    try:
        client = client_adapter.Client(config, parameters)
    except (ConfigError, AssertionError, OSError, ValueError) as error:
        raise MissingToolError(f"context {config.context_name!r} cannot be used: {error}") from None
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
    try:
        loaded = [KubeConfig.from_file(path) for path in files] or [KubeConfig.from_service_account()]
    except ConfigError:
        hint = "name one with --context and KUBECONFIG, or try `chartgen sandbox up`"
        raise MissingToolError(Problem(f"there is no kubeconfig at {paths[0]}", hint=hint)) from None
    except Exception as error:  # noqa: BLE001 - YAML and type errors of a broken file have no common base
        raise MissingToolError(Problem(f"is no kubeconfig: {' '.join(str(error).split())}", files[0])) from None
    wanted = context or next((each.current_context for each in loaded if each.current_context), None)
    for each in loaded:
        if wanted is not None and wanted in each.contexts:
            return _select(each, wanted)
    known = [name for each in loaded for name in each.contexts]
    raise UsageError(Problem(f"there is no context {wanted!r}", paths[0], hint=did_you_mean(wanted or "", known)))


def _select(config: KubeConfig, context: str) -> SingleConfig:
    try:
        selected = config.get(context)
    except KeyError as error:
        problem = f"context {context!r} refers to {error}, which is missing"
        raise MissingToolError(Problem(problem, config.fname)) from None
    if selected is None:
        raise UsageError(f"there is no context {context!r}")
    return selected
