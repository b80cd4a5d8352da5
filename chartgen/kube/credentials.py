"""Credentials of requests, with readable errors; imported at the first connection, for it needs the client library."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import httpx2
from lightkube.core.exceptions import ConfigError

from chartgen.errors import MissingToolError, Problem

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig


class Credentials(httpx2.Auth):
    """The client library's credentials of a context, whose errors are one line."""

    def __init__(self, auth: httpx2.Auth, config: SingleConfig) -> None:
        self._auth, self._config = auth, config

    def sync_auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add credentials; raise MissingToolError if the plugin is missing, fails or is silent, or for no token."""
        try:
            yield from self._auth.sync_auth_flow(request)
        except (ConfigError, OSError) as error:
            raise self._missing(" ".join(str(error).split())) from None
        except (ValueError, LookupError, TypeError):  # of what the plugin prints, which may be secret
            plugin = self._config.user and self._config.user.exec
            raise self._missing(
                f"{plugin.command if plugin else 'its user'} gives no ExecCredential with a token"
            ) from None

    def _missing(self, reason: str) -> MissingToolError:
        context, server = self._config.context_name, self._config.cluster.server
        hint = f"check that `kubectl --context {context} version` answers"
        return MissingToolError(Problem(f"no credentials for cluster {context!r} at {server} ({reason})", hint=hint))
