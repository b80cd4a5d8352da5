"""One connection to an API server: objects are read, applied, changed and deleted as plain data."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from chartgen.cluster.kinds import CRD, Kind, Object
from chartgen.errors import ChartgenError, MissingToolError, Problem

if TYPE_CHECKING:
    import httpx2
    from lightkube.config.kubeconfig import SingleConfig
    from typing_extensions import Self

T = TypeVar("T")

FIELD_MANAGER = "chartgen"
_RETRIES = 3  # of reads, once the cluster has answered: a poll of minutes survives a lost connection
_CRD_SECONDS = 10.0  # how long a kind whose CRD was just created may stay unknown
_FIRST = {"Namespace": 0, "CustomResourceDefinition": 1}  # what other objects of one `apply` may need


class ClusterError(ChartgenError):
    """The API server refused a request.

    Args:
        problem: What it said.
        status: HTTP status code, such as 404 or 409.
    """

    def __init__(self, problem: str | Problem, status: int) -> None:
        super().__init__(problem)
        self.status = status


class Cluster:
    """A connection to one API server; use it as a context manager, or call `close`.

    Attributes:
        context: Name of the kubeconfig context.
        server: Address of the API server.
        namespace: Namespace of the context.
        version: Kubernetes version of the server, such as v1.36.3.
    """

    def __init__(self, client: httpx2.Client, config: SingleConfig) -> None:
        self._client = client
        self._kinds: dict[tuple[str, str], Kind] = {}
        self._answered = False
        self.context: str = config.context_name
        self.server: str = config.cluster.server
        self.namespace: str = config.namespace
        self.version: str = self._send("GET", "version")["gitVersion"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """Give an object, or None when it, or its kind, does not exist."""
        try:
            found: Object = self._send("GET", kind.path(self._scope(kind, namespace), name))
        except ClusterError as error:
            if error.status == 404:
                return None
            raise
        return found

    def list(
        self, kind: Kind, *, namespace: str = "", labels: Mapping[str, str] | None = None, fields: str = ""
    ) -> list[Object]:
        """List objects; none when the kind does not exist.

        Args:
            kind: Their kind.
            namespace: Only this one; empty for all.
            labels: Labels that they carry; an empty value means that the label exists.
            fields: A field selector, such as `type=Warning`.
        """
        selector = ",".join(f"{key}={value}" if value else key for key, value in (labels or {}).items())
        params = {"labelSelector": selector, "fieldSelector": fields}
        try:
            answer = self._send("GET", kind.path(namespace), {key: value for key, value in params.items() if value})
        except ClusterError as error:
            if error.status == 404:
                return []
            raise
        items: list[Object] = answer["items"]
        return items

    def create(self, kind: Kind, item: Object, *, dry_run: bool = False) -> Object:
        """Create an object."""
        path = kind.path(self._scope(kind, item["metadata"].get("namespace", "")))
        created: Object = self._send("POST", path, {"dryRun": "All"} if dry_run else None, item)
        return created

    def apply(self, objects: Iterable[Object], *, namespace: str = "", dry_run: bool = False) -> None:
        """Apply objects server-side, namespaces and CRDs first; unknown fields are refused.

        Args:
            objects: Manifests of any kinds.
            namespace: For those that name none; default the context's.
            dry_run: Let the server check them and change nothing.

        Raises:
            ClusterError: The server refused one; those before it stay applied.
        """
        params = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
        if dry_run:
            params["dryRun"] = "All"
        for item in sorted(objects, key=lambda item: _FIRST.get(item["kind"], 2)):
            kind, metadata = self.kind(item["apiVersion"], item["kind"]), item["metadata"]
            place = self._scope(kind, metadata.get("namespace") or namespace)
            path = kind.path(place, metadata["name"])
            self._send("PATCH", path, params, item, content_type="application/apply-patch+yaml")

    def patch(self, kind: Kind, name: str, change: Object, *, namespace: str = "", subresource: str = "") -> Object:
        """Change an object by a JSON merge patch."""
        path = kind.path(self._scope(kind, namespace), name, subresource)
        changed: Object = self._send("PATCH", path, None, change, content_type="application/merge-patch+json")
        return changed

    def delete(self, kind: Kind, name: str, namespace: str = "", *, foreground: bool = False) -> bool:
        """Delete an object.

        Args:
            kind: Its kind.
            name: Its name.
            namespace: Default the context's.
            foreground: Keep it until all objects that it owns are gone.

        Returns:
            False when it did not exist.
        """
        policy = {"propagationPolicy": "Foreground" if foreground else "Background"}
        try:
            self._send("DELETE", kind.path(self._scope(kind, namespace), name), policy)
        except ClusterError as error:
            if error.status == 404:
                return False
            raise
        return True

    def delete_object(self, item: Object, *, namespace: str = "", foreground: bool = False) -> bool:
        """Delete the object that a manifest describes; see `delete`."""
        metadata = item["metadata"]
        kind = self.kind(item["apiVersion"], item["kind"])
        return self.delete(kind, metadata["name"], metadata.get("namespace") or namespace, foreground=foreground)

    def kind(self, api_version: str, name: str) -> Kind:
        """Give a kind as the server knows it.

        Raises:
            ClusterError: It does not know it, also after the seconds that a new CRD may take.
        """
        deadline = time.monotonic() + _CRD_SECONDS
        while (api_version, name) not in self._kinds:
            for found in self._discover(api_version):
                self._kinds[api_version, found.name] = found
            if (api_version, name) not in self._kinds:
                if time.monotonic() > deadline or not self._expects(api_version):
                    raise ClusterError(Problem(f"{self} has no {name} ({api_version})", hint="install its CRD"), 404)
                time.sleep(0.1)
        return self._kinds[api_version, name]

    def serves(self, kind: Kind) -> bool:
        """Tell whether the server knows a kind; unlike `list` this needs no permission for it."""
        key = (kind.api_version, kind.name)
        if key not in self._kinds:
            self._kinds.update({(kind.api_version, found.name): found for found in self._discover(kind.api_version)})
        return key in self._kinds

    def __str__(self) -> str:
        return f"cluster {self.context!r}"

    def _discover(self, api_version: str) -> Iterable[Kind]:
        try:
            answer = self._send("GET", f"{'apis' if '/' in api_version else 'api'}/{api_version}")
        except ClusterError as error:
            if error.status == 404:
                return []
            raise
        return [
            Kind(api_version, entry["kind"], entry["name"], entry["namespaced"])
            for entry in answer["resources"]
            if "/" not in entry["name"]
        ]

    def _expects(self, api_version: str) -> bool:
        """Tell whether a CRD of this group exists, so that its kinds will be served in a moment."""
        return any(crd["spec"]["group"] == api_version.partition("/")[0] for crd in self.list(CRD))

    def _scope(self, kind: Kind, namespace: str) -> str:
        return (namespace or self.namespace) if kind.namespaced else ""

    def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: Object | None = None,
        *,
        content_type: str = "application/json",
    ) -> Any:
        content = None if body is None else json.dumps(body)
        headers = {"Accept": "application/json", **({"Content-Type": content_type} if content else {})}
        reply = self._request(method, path, params=params, content=content, headers=headers)
        if reply.status_code < 400:
            self._answered = True
            return reply.json()
        raise self._refusal(method, path, reply)

    def _request(self, method: str, path: str, **arguments: Any) -> httpx2.Response:
        import httpx2
        from lightkube.core.exceptions import ConfigError

        for tries_left in reversed(range(_RETRIES if method == "GET" and self._answered else 1)):
            try:
                return self._client.request(method, path, **arguments)
            except httpx2.TransportError as error:
                if tries_left == 0:
                    raise self._unreachable(error) from None
                time.sleep(0.5)
            except (ConfigError, OSError) as error:  # a credential plugin that is missing or fails
                raise self._unreachable(error) from None
        raise AssertionError("unreachable")

    def _unreachable(self, error: Exception) -> MissingToolError:
        reason = " ".join(str(error).split()) or type(error).__name__
        hint = f"check that it runs and that `kubectl --context {self.context} version` answers"
        return MissingToolError(Problem(f"{self} at {self.server} does not answer ({reason})", hint=hint))

    def _refusal(self, method: str, path: str, reply: httpx2.Response) -> ClusterError:
        try:
            message = reply.json()["message"]
        except (ValueError, KeyError, TypeError):
            message = reply.text.strip()[:300] or reply.reason_phrase
        if reply.status_code in {401, 403}:
            hint = "log in again, or ask for the permission"
            return ClusterError(Problem(f"{self} refuses access: {message}", hint=hint), reply.status_code)
        return ClusterError(f"{self} refused {method} {path}: {message}", reply.status_code)


def wait_for(check: Callable[[], T | None], *, what: str, timeout: float, interval: float = 0.2) -> T:
    """Poll until a check gives something.

    Args:
        check: Gives a true value when it is satisfied.
        what: What is waited for, for the message.
        timeout: Seconds.
        interval: Seconds between two checks.

    Raises:
        ChartgenError: It was not satisfied in time.
    """
    deadline = time.monotonic() + timeout
    while True:
        if found := check():
            return found
        if time.monotonic() > deadline:
            raise ChartgenError(f"{what} did not happen within {timeout:.0f} s")
        time.sleep(interval)
