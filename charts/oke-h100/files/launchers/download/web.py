"""Requests over http:// and https://, and no other scheme, whose secrets stay with the host that they are for."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

SCHEMES = ("http", "https")


class FetchError(Exception):
    """An error for the user, in one line. Another attempt would end the same way."""


class SameHost(HTTPRedirectHandler):
    """Keeps a token on its scheme and host: hubs redirect to stores, which must not see it."""

    def redirect_request(self, req: Request, fp: Any, *rest: Any) -> Request | None:
        """Follow to web addresses only, with the headers that urllib does not redirect on the same scheme and host."""
        fp.close()  # its body, of any length, would be read into the memory
        new = super().redirect_request(req, fp, *rest)
        if new:
            follows(req.full_url, new.full_url)
            if same_host(req.full_url, new.full_url):
                new.unredirected_hdrs.update(req.unredirected_hdrs)
        return new


def same_host(one: str, other: str) -> bool:
    """Return whether two addresses have the same scheme, host and port."""
    return urlsplit(one)[:2] == urlsplit(other)[:2]


def follows(url: str, following: str) -> None:
    """Raise FetchError if a server's address may not follow its own: no web address, or one without encryption."""
    scheme = urlsplit(following).scheme
    if scheme not in SCHEMES or (scheme == "http" and urlsplit(url).scheme == "https"):
        raise FetchError(f"{public(url)}: leads to {public(following)}, which is refused: only https:// may follow")


def public(url: str) -> str:
    """Return an address without what is secret in it: accounts, and the signatures of stores."""
    scheme, _, rest = url.partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}" if rest else scheme


def open_address(url: str, headers: dict[str, str], timeout: float = 60) -> Any:
    """Open an address, else OSError; headers stay on its scheme and host. FetchError: a redirect that is refused."""
    if urlsplit(url).scheme not in SCHEMES:
        raise FetchError(f"{public(url)}: is not an http:// or https:// address")
    request = Request(url)  # noqa: S310  checked in the line above
    request.unredirected_hdrs.update(headers)
    return build_opener(SameHost).open(request, timeout=timeout)
