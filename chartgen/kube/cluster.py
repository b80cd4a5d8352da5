"""One connection to an API server: read, apply, change and delete objects as plain data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import starmap
from typing import TYPE_CHECKING, TypeVar

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.kube.answers import all_discovered, check_form, discovered, parse_page, shaped
from chartgen.kube.http import ClusterError, LargeAnswerError, Streams, Transport
from chartgen.kube.kinds import CONFIG_MAP, CRD, POD, SECRET, Kind, Object
from chartgen.kube.permissions import Permission
from chartgen.visible import counted

if TYPE_CHECKING:
    import httpx2
    from lightkube.config.kubeconfig import SingleConfig
    from typing_extensions import Self

T = TypeVar("T")

FIELD_MANAGER = "chartgen"
_PAGE = 500  # objects per answer, like kubectl's --chunk-size, to limit memory
_MOST_PAGES = 2_000  # of a list: a million objects, beyond what any cluster has
# Objects without spec, data and status (Kubernetes API Concepts, "Metadata-only fetches").
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
# All API groups with their kinds in one answer (Kubernetes API Concepts, "Aggregated discovery").
_GROUPS = "application/json;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=v2,application/json"
_CRD_SECONDS = 60.0  # how long a kind may stay unknown after the creation of its CRD, on a busy server
_UNSEEN_CRD_SECONDS = 10.0  # the same where nobody may look for the CRD
_ABSENT_SECONDS = 5.0  # how long an API is taken to be absent: a command asks for all kinds of runs several times
_FIRST = {"Namespace": 0, "CustomResourceDefinition": 1}  # other objects of one `apply` may need these


class Cluster(Transport):
    """A connection to one API server; use it as a context manager, or call `close`.

    Attributes:
        context: Name of the kubeconfig context.
        server: Address of the API server.
        namespace: Namespace of the context.
        version: Kubernetes version of the server, such as v1.36.3.
        unread: The permissions that `optional` reads lacked, each once.
        unreadable: The objects that `judged` left out: kind and namespace -> the name of each, and why.
    """

    def __init__(self, client: httpx2.Client, config: SingleConfig) -> None:
        super().__init__(client, config)
        # those that every server has, and then those that this one lists
        self._kinds = {(each.api_version, each.name): each for each in (CONFIG_MAP, POD, SECRET)}
        self._lists_all = True  # whether the server lists the kinds of all groups in one answer
        self._asked: dict[str, float] = {}  # API version, or apis for all -> until when other kinds are absent
        self.namespace: str = config.namespace
        self.unread: dict[Permission, None] = {}
        self.unreadable: dict[tuple[str, str], dict[str, str]] = {}
        version = self._send("GET", "version").get("gitVersion")
        if not isinstance(version, str):
            raise self._stranger("GET version is answered without gitVersion")
        self.version: str = version

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def optional(self) -> Iterator[None]:
        """Make reads optional: one without permission ends the block and is added to `unread`."""
        try:
            yield
        except ClusterError as error:
            if error.denied is None:
                raise
            self.unread[error.denied] = None

    def judged(self, items: Iterable[Object], judge: Callable[[Object], T]) -> Iterator[tuple[Object, T]]:
        """Yield each object with what a function makes of it.

        What fails at the content of an object, which may be anybody's, must not end a command for all others: such an
        object is left out, and added to `unreadable`.
        """
        for item in items:
            try:
                found = judge(item)
            except (ClusterError, MissingToolError):
                raise
            except Exception as error:  # noqa: BLE001 - see above
                metadata = item["metadata"]
                place = self.unreadable.setdefault((item["kind"], metadata.get("namespace", "")), {})
                place[metadata["name"]] = type(error).__name__
            else:
                yield item, found

    @property
    def gaps(self) -> list[Problem]:
        """Return what reads so far lack: permissions, and objects that could not be read."""
        return [*(each.missing for each in self.unread), *starmap(_unreadable, list(self.unreadable.items()))]

    def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """Return an object; None when it or its kind does not exist."""
        try:
            found = self._send("GET", kind.path(self._scope(kind, namespace), name))
        except ClusterError as error:
            if error.status == 404:
                return None
            raise
        with self._understood(f"GET {kind.name} {name}"):
            return shaped(found, kind)

    def list(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: str = "",
        metadata_only: bool = False,
    ) -> list[Object]:
        """Return objects; an empty list when the kind does not exist. See `each` for the arguments."""
        return [*self.each(kind, namespace=namespace, labels=labels, fields=fields, metadata_only=metadata_only)]

    def each(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: str = "",
        metadata_only: bool = False,
        page: int = _PAGE,
    ) -> Iterator[Object]:
        """Yield objects one by one, read in pages; nothing when the kind does not exist.

        Args:
            labels: Their labels; an empty value matches any value of the label.
            fields: A field selector, such as `type=Warning`.
            metadata_only: Read only their metadata.
            page: Objects of a request; 1 to ask whether there is any.
        """
        selector = ",".join(f"{key}={value}" if value else key for key, value in (labels or {}).items())
        chosen = {"labelSelector": selector, "fieldSelector": fields}
        params = {key: value for key, value in chosen.items() if value}
        size, path, seen = page, kind.path(namespace), {""}
        while True:
            try:
                accept = _METADATA if metadata_only else "application/json"
                answer = self._send("GET", path, {**params, "limit": str(size)}, accept=accept)
            except LargeAnswerError:
                if size == 1:
                    raise
                size = max(size // 5, 1)  # the objects are large: fewer fill an answer
                continue
            except ClusterError as error:
                if error.status == 404:
                    return
                if error.status != 410 or not error.resume or error.resume in seen or len(seen) > _MOST_PAGES:
                    raise
                # The first page's state is compacted after five minutes; the server offers to continue after the last
                # object with the current state (k8s.io/apiserver, pkg/storage/continue.go). No object repeats.
                params["continue"] = error.resume
                seen.add(error.resume)
                continue
            with self._understood(f"GET {path}"):
                items, rest = parse_page(answer, kind)
            yield from (item for item, _ in self.judged(items, check_form))
            if not rest:
                return
            if rest in seen or len(seen) > _MOST_PAGES:
                raise self._stranger(f"the pages of GET {path} do not end")
            params["continue"] = rest
            seen.add(rest)

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
        """Yield the lines of a subresource, such as a pod's log, as they arrive, until it ends.

        Args:
            subresource: Its name, such as log.
            idle: Seconds without a byte after which to stop, since the other end may have disappeared: a followed
                stream ends, any other fails.

        Raises:
            ClusterError: The server rejects the request.
            MissingToolError: The connection is lost, or the answer stops before its end.
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
        """Apply objects server-side, namespaces and CRDs first; reject unknown fields.

        Args:
            objects: Manifests of any kinds.
            namespace: For objects without a namespace; default the context's.
            dry_run: Let the server check the objects without changing anything.
            manager: Apply as this field manager, and do not take fields from others; default: as chartgen, by force.

        Raises:
            ClusterError: The server rejected an object; the earlier ones stay applied.
        """
        params = {"fieldManager": manager or FIELD_MANAGER, "force": str(not manager).lower()}
        params["fieldValidation"] = "Strict"
        if dry_run:
            params["dryRun"] = "All"
        else:
            self._asked.clear()  # these may define an API
        for item in sorted(objects, key=lambda item: _FIRST.get(item["kind"], 2)):
            kind, metadata = self.kind(item["apiVersion"], item["kind"]), item["metadata"]
            place = self._scope(kind, metadata.get("namespace") or namespace)
            path = kind.path(place, metadata["name"])
            self._send("PATCH", path, params, item, content_type="application/apply-patch+yaml")

    def patch(self, kind: Kind, name: str, change: Object, *, namespace: str = "", subresource: str = "") -> Object:
        """Change an object with a JSON merge patch."""
        path = kind.path(self._scope(kind, namespace), name, subresource)
        changed: Object = self._send("PATCH", path, None, change, content_type="application/merge-patch+json")
        return changed

    def delete(self, kind: Kind, name: str, namespace: str = "", *, foreground: bool = False, uid: str = "") -> bool:
        """Delete an object, with `foreground` after its own; return False: it was gone. ClusterError: another uid."""
        options: Object = {"propagationPolicy": "Foreground" if foreground else "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        try:
            self._send("DELETE", kind.path(self._scope(kind, namespace), name), None, options)
        except ClusterError as error:
            if error.status == 404:
                return False
            raise
        return True

    def delete_object(self, item: Object, *, namespace: str = "", foreground: bool = False) -> bool:
        """Delete the object that a manifest, or an answer, describes; see `delete`."""
        metadata, kind = item["metadata"], self.kind(item["apiVersion"], item["kind"])
        place, uid = metadata.get("namespace") or namespace, metadata.get("uid", "")
        return self.delete(kind, metadata["name"], place, foreground=foreground, uid=uid)

    def kind(self, api_version: str, name: str) -> Kind:
        """Return a kind as the server has it; ClusterError: unknown even after the time that a new CRD may take."""
        deadline: float | None = None
        while (api_version, name) not in self._kinds:
            for kind in self._discover(api_version):
                self._kinds[api_version, kind.name] = kind
            if (api_version, name) not in self._kinds:
                if deadline is None:
                    deadline = time.monotonic() + self._patience(api_version, name)
                if time.monotonic() >= deadline:
                    raise ClusterError(Problem(f"{self} has no {name} ({api_version})", hint="install its CRD"), 404)
                time.sleep(0.1)
        return self._kinds[api_version, name]

    def serves(self, kind: Kind) -> bool:
        """Report whether the server knows a kind; unlike `list`, this does not need permission for it.

        The server is asked again for a kind that it did not know only after some seconds.
        """
        key, now = (kind.api_version, kind.name), time.monotonic()
        has_group = "/" in kind.api_version
        place = "apis" if has_group and self._lists_all else kind.api_version
        if key not in self._kinds and self._asked.get(place, 0.0) < now:
            found = self._discover_all() if has_group else None
            found = self._discover(kind.api_version) if found is None else found
            self._kinds.update({(each.api_version, each.name): each for each in found})
            self._asked[place] = now + _ABSENT_SECONDS
        return key in self._kinds

    def _discover_all(self) -> Sequence[Kind] | None:
        """Return the kinds of all API groups; None where the server does not list them in one answer."""
        if not self._lists_all:
            return None
        try:
            answer = self._send("GET", "apis", accept=_GROUPS)
        except ClusterError:  # a proxy may let only some paths through
            answer = {}
        with self._understood("GET apis"):
            found = all_discovered(answer)
        self._lists_all = found is not None
        return found

    def _discover(self, api_version: str) -> Sequence[Kind]:
        try:
            answer = self._send("GET", f"{'apis' if '/' in api_version else 'api'}/{api_version}")
        except ClusterError as error:
            if error.status == 404:
                return []
            raise
        with self._understood(f"GET {api_version}"):
            return discovered(answer, api_version)

    def _patience(self, api_version: str, name: str) -> float:
        """Return for how many seconds the server may still come to know a kind: while its CRD is new."""
        group, _, version = api_version.rpartition("/")
        if not group:
            return 0.0  # the core group has no CRDs
        try:
            crds = self.list(CRD)
        except ClusterError as error:
            if error.status == 403:  # most users of a namespace may not list CRDs: wait as if it exists
                return _UNSEEN_CRD_SECONDS
            raise

        def defines(crd: Object) -> bool:
            spec = crd["spec"]
            is_it = (spec["group"], spec["names"]["kind"]) == (group, name)
            return is_it and any(each["name"] == version and each["served"] for each in spec["versions"])

        return _CRD_SECONDS if any(found for _, found in self.judged(crds, defines)) else 0.0

    def _scope(self, kind: Kind, namespace: str) -> str:
        return (namespace or self.namespace) if kind.namespaced else ""


def _unreadable(place: tuple[str, str], found: Mapping[str, str]) -> Problem:
    (kind, namespace), (name, why) = place, next(iter(found.items()))
    where, flag = (f" of namespace {namespace}", f"--namespace {namespace} ") if namespace else ("", "")
    text = f"{counted(len(found), kind)}{where} could not be read, such as {name} ({why})"
    return Problem(text, hint=f"`kubectl {flag}get {kind} {name} -o yaml` shows it")


def wait_for(check: Callable[[], T | None], *, what: str, timeout: float, interval: float = 0.2) -> T:
    """Poll until a check succeeds.

    Args:
        check: Returns a true value on success.
        what: The awaited condition, for the message.
        timeout: Seconds.
        interval: Seconds between two checks.

    Raises:
        ChartgenError: The check did not succeed in time.
    """
    deadline = time.monotonic() + timeout
    while True:
        if found := check():
            return found
        if time.monotonic() > deadline:
            raise ChartgenError(f"{what} did not happen within {timeout:.0f} s")
        time.sleep(interval)
