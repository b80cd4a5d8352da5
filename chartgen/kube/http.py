"""HTTP to one API server: requests with retries and a deadline, streams of lines, and readable errors."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.helm.values import to_json
from chartgen.kube.answers import TooLargeError, body, parse_json
from chartgen.kube.kinds import Object
from chartgen.kube.permissions import Permission, denied_permission
from chartgen.visible import cut, shortened

if TYPE_CHECKING:
    import httpx2
    from lightkube.config.kubeconfig import SingleConfig

T = TypeVar("T")

_RETRIES = 3  # of reads, after the first answer: a long poll survives a lost connection
_BUSY = 429  # Too Many Requests: the server has not started the request, so it may be sent again
_MESSAGE = 2000  # characters of a refusal, which may quote a pod
_PAUSE = 0.5  # minimum of seconds between two attempts
_AT_ONCE = 4  # requests of one command: each connection costs two more round trips when it is made
_UNPACKED = {"Accept-Encoding": "identity"}
_LONGEST_LINE = 2**20  # bytes; a longer line is split, so that a program's output cannot fill the memory
_PATIENCE = 30.0  # total seconds that a request waits at the server's request
# Seconds for a whole answer, however slowly its bytes come: the server's own limit (kube-apiserver, --request-timeout).
_DEADLINE = 60.0
_WHOLE_LOG = 3600.0  # the same for a log without `follow`, which may have gigabytes


class ClusterError(ChartgenError):
    """The API server rejected a request.

    Args:
        status: HTTP status code, such as 404 or 409.
        resume: Where to continue an expired list (410); empty when the server does not report it.
        denied: The permission that the caller lacks; None for any other reason.
    """

    def __init__(
        self, problem: str | Problem, status: int, resume: str = "", *, denied: Permission | None = None
    ) -> None:
        super().__init__(problem)
        self.status, self.resume, self.denied = status, resume, denied


class LargeAnswerError(MissingToolError):
    """An answer has more bytes or values than any object of the API."""


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
            _shut(self._sockets)

    @contextmanager
    def registered(self, reply: httpx2.Response) -> Iterator[None]:
        """Register the connection of an answer while it is read."""
        wire: socket.socket = reply.extensions["network_stream"].get_extra_info("socket")
        with self._lock:
            self._sockets.add(wire)
            if self._is_cut:
                _shut([wire])
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
        self._wires: WeakSet[socket.socket] = WeakSet()
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
        item: Object | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Any:
        # some bodies are read as YAML, which does not support surrogate pairs
        content = None if item is None else to_json(item)
        headers = {"Accept": accept, "Accept-Encoding": "gzip", **({"Content-Type": content_type} if content else {})}
        reply, text = self._patiently(method, path, params=params, content=content, headers=headers)
        if not reply.is_success:
            raise self._refusal(method, path, reply, text)
        with self._understood(f"{method} {path}"):
            answer = parse_json(text)
        if not isinstance(answer, dict):  # every answer of an API server is an object
            raise self._stranger(f"{method} {path} is answered without an object in JSON")
        self._answered = True
        return answer

    @contextmanager
    def _understood(self, request: str) -> Iterator[None]:
        """Turn an answer that is not an API server's into a readable error."""
        try:
            yield
        except TooLargeError as error:
            raise LargeAnswerError(self._stranger(f"{request} is answered {error}").problems) from None
        except ValueError as error:
            raise self._stranger(f"{request} is answered {error}") from None

    def _patiently(self, method: str, path: str, **arguments: Any) -> tuple[httpx2.Response, bytes]:
        """Send a request; repeat it while the server is too busy and reports when to retry."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            reply, text = self._request(method, path, **arguments)
            after = reply.headers.get("Retry-After", "")
            if reply.status_code != _BUSY or not after.isdecimal() or time.monotonic() + float(after) > deadline:
                return reply, text
            time.sleep(max(float(after), _PAUSE))

    def _request(self, method: str, path: str, **arguments: Any) -> tuple[httpx2.Response, bytes]:
        import httpx2

        deadline = time.monotonic() + _DEADLINE
        for tries_left in reversed(range(_RETRIES if method == "GET" and self._answered else 1)):
            try:
                with self._until(deadline), self._open(method, path, **arguments) as reply:
                    return reply, self._body(method, path, reply)
            except (httpx2.InvalidURL, UnicodeEncodeError) as error:  # of a name or a page that the server told
                raise self._stranger(f"it names what no address can have: {str(error)[:100]}") from None
            except (httpx2.TransportError, httpx2.StreamError) as error:
                if tries_left == 0:
                    raise self._unreachable(error) from None
                time.sleep(_PAUSE)
        raise AssertionError("unreachable")

    def _body(self, method: str, path: str, reply: httpx2.Response) -> bytes:
        with self._understood(f"{method} {path}"):
            return body(reply.iter_raw(), reply.headers.get("Content-Encoding", ""))

    def _open(self, method: str, path: str, **arguments: Any) -> AbstractContextManager[httpx2.Response]:
        return self._client.stream(method, path, extensions={"trace": self._register}, **arguments)

    def _register(self, event: str, details: Mapping[str, Any]) -> None:
        """Register each new connection, as the client reports it."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._wires.add(details["return_value"].get_extra_info("socket"))

    @contextmanager
    def _until(self, deadline: float) -> Iterator[threading.Timer]:
        """End the connections at a time: the client's own limits restart at each byte, even of a header."""
        is_over = threading.Event()

        def end() -> None:
            is_over.set()
            _shut(self._wires)

        timer = threading.Timer(deadline - time.monotonic(), end)
        timer.daemon = True
        timer.start()
        try:
            yield timer
        except Exception:
            if not is_over.is_set():
                raise
        finally:
            timer.cancel()
        if is_over.is_set():  # without a length, an answer that is cut off looks complete
            raise self._unreachable("no whole answer in time")

    def _stream(self, path: str, params: Mapping[str, str], idle: float, streams: Streams) -> Iterator[str]:
        """Yield the lines of an answer as they arrive, until it ends or, if followed, is silent for `idle` seconds.

        Only LF ends a line, since programs also print CR.
        """
        import httpx2

        limits = {**self._client.timeout.as_dict(), "read": idle}
        is_followed = params.get("follow") == "true"
        try:
            with ExitStack() as stack:
                seconds = _DEADLINE if is_followed or "tailLines" in params else _WHOLE_LOG
                timer = stack.enter_context(self._until(time.monotonic() + seconds))
                timeout = httpx2.Timeout(**limits)
                opened = self._open("GET", path, params=params, headers=_UNPACKED, timeout=timeout)
                reply = stack.enter_context(opened)
                if not reply.is_success:
                    raise self._refusal("GET", path, reply, self._body("GET", path, reply))
                if is_followed:
                    timer.cancel()  # it may go on for as long as the program runs
                if "Content-Encoding" in reply.headers:  # few bytes are lines for hours
                    raise self._stranger("a log is packed, which no request allows")
                with streams.registered(reply):
                    yield from _lines(reply.iter_raw())
        except (httpx2.TransportError, httpx2.StreamError) as error:
            # only what is followed may be silent: a program may print nothing
            if not isinstance(error, httpx2.ReadTimeout) or not is_followed:
                raise self._unreachable(error) from None

    def _unreachable(self, error: Exception | str) -> MissingToolError:
        reason = " ".join(str(error).split()) or type(error).__name__
        hint = f"check that it runs and that `kubectl --context {self.context} version` answers"
        return MissingToolError(Problem(f"{self} at {self.server} does not answer ({reason})", hint=hint))

    def _stranger(self, reason: str) -> MissingToolError:
        hint = "check the server of its context: a login page or a proxy may answer instead"
        return MissingToolError(
            Problem(f"{self} at {self.server} is not a Kubernetes API server ({reason})", hint=hint)
        )

    def _refusal(self, method: str, path: str, reply: httpx2.Response, text: bytes) -> ChartgenError:
        if reply.status_code < 400:
            return self._stranger(f"{method} {path} is redirected")
        message, resume = cut(text[:600].decode("utf-8", "replace"), 300).strip() or reply.reason_phrase, ""
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            status = parse_json(text)
            message = shortened(str(status["message"]), _MESSAGE)
            resume = str(status["metadata"].get("continue", ""))
        if reply.status_code in {401, 403}:
            denied = denied_permission(message) if reply.status_code == 403 else None
            hint = denied.fix if denied else "log in again, or ask for the permission"
            problem = Problem(f"{self} refuses access: {message}", hint=hint)
            return ClusterError(problem, reply.status_code, denied=denied)
        return ClusterError(f"{self} refused {method} {path}: {message}", reply.status_code, resume)


def _shut(wires: Iterable[socket.socket]) -> None:
    for each in list(wires):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


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


def side_by_side(calls: Iterable[Callable[[], T]], at_once: int = _AT_ONCE) -> list[T]:
    """Return what functions return that wait for the API server, called at the same time; raise the first's error."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(at_once)
    try:
        return [*pool.map(lambda call: call(), calls)]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # an interrupted command does not wait for answers


def is_passing(error: ChartgenError) -> bool:
    """Report whether a failed request may succeed later: no answer, too many requests, or a server error."""
    return not isinstance(error, ClusterError) or error.status == 429 or error.status >= 500
