"""One connection to an API server: objects are read, applied, changed and deleted as plain data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from chartgen.errors import ChartgenError, Problem
from chartgen.kube.http import ClusterError, Streams, Transport
from chartgen.kube.kinds import CRD, Kind, Object

if TYPE_CHECKING:
    import httpx2
    from lightkube.config.kubeconfig import SingleConfig
    from typing_extensions import Self

T = TypeVar("T")

FIELD_MANAGER = "chartgen"
_PAGE = 500  # objects of one answer, as kubectl asks for (its --chunk-size), so that memory stays bounded
_CRD_SECONDS = 10.0  # how long a kind whose CRD was just created may stay unknown
_FIRST = {"Namespace": 0, "CustomResourceDefinition": 1}  # what other objects of one `apply` may need


class Cluster(Transport):
    """A connection to one API server; use it as a context manager, or call `close`.

    Attributes:
        context: Name of the kubeconfig context.
        server: Address of the API server.
        namespace: Namespace of the context.
        version: Kubernetes version of the server, such as v1.36.3.
    """

    def __init__(self, client: httpx2.Client, config: SingleConfig) -> None:
        super().__init__(client, config)
        self._kinds: dict[tuple[str, str], Kind] = {}
        self.namespace: str = config.namespace
        self.version: str = self._send("GET", "version")["gitVersion"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """Return an object, or None when it, or its kind, does not exist."""
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
        """List objects; none when the kind does not exist. See `each` for the arguments."""
        return [*self.each(kind, namespace=namespace, labels=labels, fields=fields)]

    def each(
        self, kind: Kind, *, namespace: str = "", labels: Mapping[str, str] | None = None, fields: str = ""
    ) -> Iterator[Object]:
        """Return objects one by one, read in pages; none when the kind does not exist.

        Args:
            kind: Their kind.
            namespace: Only this one; empty for all.
            labels: Labels that they carry; an empty value means that the label exists.
            fields: A field selector, such as `type=Warning`.
        """
        selector = ",".join(f"{key}={value}" if value else key for key, value in (labels or {}).items())
        chosen = {"labelSelector": selector, "fieldSelector": fields, "limit": str(_PAGE)}
        params = {key: value for key, value in chosen.items() if value}
        while True:
            try:
                answer = self._send("GET", kind.path(namespace), params)
            except ClusterError as error:
                if error.status == 404:
                    return
                if error.status != 410 or not error.resume or error.resume == params.get("continue"):
                    raise
                # The first page's state is compacted after five minutes; the server offers to go on behind the last
                # object with what is there now (k8s.io/apiserver, pkg/storage/continue.go). Nothing comes twice.
                params["continue"] = error.resume
                continue
            yield from answer["items"]
            params["continue"] = answer["metadata"].get("continue", "")
            if not params["continue"]:
                return

    def stream(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        subresource: str,
        params: Mapping[str, str],
        idle: float,
        streams: Streams | None = None,
    ) -> Iterator[str]:
        """Return the lines of a subresource, such as a pod's log, as they come, until it ends or falls silent.

        Args:
            kind: Kind of the object.
            name: Its name.
            namespace: Its namespace; default the context's.
            subresource: Such as log.
            params: What the API takes with it.
            idle: Seconds without a byte after which it is left: the other end may be gone without a word.
            streams: Ends it from another thread.

        Raises:
            ClusterError: The server refuses it.
            MissingToolError: The connection is lost.
        """
        return self._stream(
            kind.path(self._scope(kind, namespace), name, subresource), params, idle, streams or Streams()
        )

    def create(self, kind: Kind, item: Object, *, dry_run: bool = False) -> Object:
        """Create an object."""
        path = kind.path(self._scope(kind, item["metadata"].get("namespace", "")))
        created: Object = self._send("POST", path, {"dryRun": "All"} if dry_run else None, item)
        return created

    def apply(
        self, objects: Iterable[Object], *, namespace: str = "", dry_run: bool = False, manager: str = ""
    ) -> None:
        """Apply objects server-side, namespaces and CRDs first; unknown fields are refused.

        Args:
            objects: Manifests of any kinds.
            namespace: For those that name none; default the context's.
            dry_run: Let the server check them and change nothing.
            manager: Apply as this field manager, and take no field from another one; default: as chartgen, by force.

        Raises:
            ClusterError: The server refused one; those before it stay applied.
        """
        params = {"fieldManager": manager or FIELD_MANAGER, "force": str(not manager).lower()}
        params["fieldValidation"] = "Strict"
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
        """Return a kind as the server knows it.

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
        """Report whether the server knows a kind; unlike `list` this needs no permission for it."""
        key = (kind.api_version, kind.name)
        if key not in self._kinds:
            self._kinds.update({(kind.api_version, found.name): found for found in self._discover(kind.api_version)})
        return key in self._kinds

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
        """Report whether a CRD of this group exists, or may exist, so that its kinds will be served in a moment."""
        if "/" not in api_version:
            return False  # the core group has no CRDs
        try:
            crds = self.list(CRD)
        except ClusterError as error:
            if error.status == 403:  # users of a namespace mostly may not list them: wait as for one that exists
                return True
            raise
        return any(crd["spec"]["group"] == api_version.partition("/")[0] for crd in crds)

    def _scope(self, kind: Kind, namespace: str) -> str:
        return (namespace or self.namespace) if kind.namespaced else ""


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
