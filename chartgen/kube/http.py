"""HTTP to one API server: requests with retries, streams of lines, and readable errors."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.helm.values import to_json
from chartgen.kube.kinds import Object
from chartgen.kube.permissions import Permission, denied_permission

if TYPE_CHECKING:
    import httpx2
    from lightkube.config.kubeconfig import SingleConfig

_RETRIES = 3  # of reads, after the first answer: a long poll survives a lost connection
_BUSY = 429  # Too Many Requests: the server has not started the request, so it may be sent again
_PAUSE = 0.5  # minimum of seconds between two attempts
_LONGEST_LINE = 2**20  # bytes; a longer line is split, so that a program's output cannot fill the memory
_PATIENCE = 30.0  # total seconds that a request waits at the server's request


class ClusterError(ChartgenError):
    """The API server rejected a request.

    Args:
        problem: The server's message.
        status: HTTP status code, such as 404 or 409.
        resume: Where to continue an expired list (410); empty when the server does not report it.
        denied: The permission that the caller lacks; None for any other reason.
    """

    def __init__(
        self, problem: str | Problem, status: int, resume: str = "", *, denied: Permission | None = None
    ) -> None:
        super().__init__(problem)
        self.status, self.resume, self.denied = status, resume, denied


class Streams:
    """Streams of lines that another thread can end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._is_cut = False

    def cut(self) -> None:
        """End all streams immediately, and every later one at its first line."""
        with self._lock:
            self._is_cut = True
            for each in self._sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    @contextmanager
    def holding(self, reply: httpx2.Response) -> Iterator[None]:
        """Register the connection of an answer while it is read."""
        wire: socket.socket = reply.extensions["network_stream"].get_extra_info("socket")
        with self._lock:
            self._sockets.add(wire)
            if self._is_cut:
                with suppress(OSError):
                    wire.shutdown(socket.SHUT_RDWR)
        try:
            yield
        finally:
            with self._lock:
                self._sockets.discard(wire)


class Transport:
    """The requests of one connection.

    Attributes:
        context: Name of the kubeconfig context.
        server: Address of the API server.
    """

    def __init__(self, client: httpx2.Client, config: SingleConfig) -> None:
        self._client = client
        self._answered = False
        self.context: str = config.context_name
        self.server: str = config.cluster.server

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __str__(self) -> str:
        return f"cluster {self.context!r}"

    def _send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str] | None = None,
        body: Object | None = None,
        *,
        content_type: str = "application/json",
    ) -> Any:
        # some bodies are read as YAML, which does not support surrogate pairs
        content = None if body is None else to_json(body)
        headers = {"Accept": "application/json", **({"Content-Type": content_type} if content else {})}
        reply = self._patiently(method, path, params=params, content=content, headers=headers)
        if not reply.is_success:
            raise self._refusal(method, path, reply)
        try:
            answer = reply.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):  # every answer of an API server is an object
            raise self._stranger(f"{method} {path} is answered without an object in JSON")
        self._answered = True
        return answer

    def _patiently(self, method: str, path: str, **arguments: Any) -> httpx2.Response:
        """Send a request; repeat it while the server is too busy and reports when to retry."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            reply = self._request(method, path, **arguments)
            after = reply.headers.get("Retry-After", "")
            if reply.status_code != _BUSY or not after.isdecimal() or time.monotonic() + int(after) > deadline:
                return reply
            time.sleep(max(int(after), _PAUSE))

    def _request(self, method: str, path: str, **arguments: Any) -> httpx2.Response:
        import httpx2

        for tries_left in reversed(range(_RETRIES if method == "GET" and self._answered else 1)):
            try:
                return self._client.request(method, path, **arguments)
            except httpx2.TransportError as error:
                if tries_left == 0:
                    raise self._unreachable(error) from None
                time.sleep(_PAUSE)
        raise AssertionError("unreachable")

    def _stream(self, path: str, params: Mapping[str, str], idle: float, streams: Streams) -> Iterator[str]:
        """Yield the lines of an answer as they arrive, until it ends or, if followed, is silent for `idle` seconds.

        Only LF ends a line, since programs also print CR.
        """
        import httpx2

        try:
            limits = {**self._client.timeout.as_dict(), "read": idle}
            timeout = httpx2.Timeout(**limits)
            with self._client.stream("GET", path, params=params, timeout=timeout) as reply:
                if not reply.is_success:
                    reply.read()
                    raise self._refusal("GET", path, reply)
                with streams.holding(reply):
                    yield from _lines(reply.iter_bytes())
        except (httpx2.TransportError, httpx2.StreamError) as error:
            # only what is followed may be silent: a program may print nothing
            if not isinstance(error, httpx2.ReadTimeout) or params.get("follow") != "true":
                raise self._unreachable(error) from None

    def _unreachable(self, error: Exception) -> MissingToolError:
        reason = " ".join(str(error).split()) or type(error).__name__
        hint = f"check that it runs and that `kubectl --context {self.context} version` answers"
        return MissingToolError(Problem(f"{self} at {self.server} does not answer ({reason})", hint=hint))

    def _stranger(self, reason: str) -> MissingToolError:
        hint = "check the server of its context: a login page or a proxy may answer instead"
        return MissingToolError(
            Problem(f"{self} at {self.server} is not a Kubernetes API server ({reason})", hint=hint)
        )

    def _refusal(self, method: str, path: str, reply: httpx2.Response) -> ChartgenError:
        if reply.status_code < 400:
            return self._stranger(f"{method} {path} is redirected")
        resume = ""
        try:
            status = reply.json()
            message = status["message"]
            resume = status.get("metadata", {}).get("continue", "")
        except (ValueError, KeyError, TypeError, AttributeError):
            message = reply.text.strip()[:300] or reply.reason_phrase
        if reply.status_code in {401, 403}:
            denied = denied_permission(message) if reply.status_code == 403 else None
            hint = denied.fix if denied else "log in again, or ask for the permission"
            problem = Problem(f"{self} refuses access: {message}", hint=hint)
            return ClusterError(problem, reply.status_code, denied=denied)
        return ClusterError(f"{self} refused {method} {path}: {message}", reply.status_code, resume)


def _lines(blocks: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
        if len(rest) > _LONGEST_LINE:
            yield rest.decode("utf-8", "replace")
            rest = b""
    if rest:
        yield rest.decode("utf-8", "replace")


def is_passing(error: ChartgenError) -> bool:
    """Report whether a failed request may succeed later: no answer, too many requests, or a server error."""
    return not isinstance(error, ClusterError) or error.status == 429 or error.status >= 500
