"""The answers of an API server as plain data, within bounds: a stranger may answer, and a tenant may fill an object."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from chartgen.kube.kinds import Kind, Object

LARGEST = 32 * 2**20  # bytes; an object has at most 1.5 MiB (etcd, Documentation: System limits), a page may have fewer
# Commas and brackets, of which each value has one at least. The densest object of 1.5 MiB has fewer: `[],` repeated.
_MOST_MARKS = 1_200_000
_DEEPEST = 100  # levels; no field of the API that chartgen reads is half as deep
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
# k8s.io/apimachinery, pkg/api/validation/path; none that kubectl would take for a flag
_NAME = re.compile(r"(?!-|\.{1,2}$)[!-$&-.0-~]{1,253}")
_TEXTS = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "resourceVersion")
_MAPS_OF_TEXT = ("labels", "annotations")


class TooLargeError(ValueError):
    """An answer has more bytes or values than any object of the API."""


def body(blocks: Iterable[bytes], encoding: str) -> bytes:
    """Return an answer's unpacked bytes; TooLargeError: more than `LARGEST`. ValueError: not packed as claimed."""
    found = bytearray()
    for block in _unpacked(blocks) if encoding == "gzip" else blocks:
        found += block
        if len(found) > LARGEST:
            raise TooLargeError(f"with more than {LARGEST >> 20} MiB")
    return bytes(found)


def _unpacked(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield unpacked bytes in pieces of bounded size."""
    packed = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    for block in blocks:
        rest = block
        while rest:
            if packed.eof:  # zlib would keep all of it
                raise ValueError("as gzip with more behind its end")
            try:
                yield packed.decompress(rest, LARGEST)
            except zlib.error as error:
                raise ValueError(f"as damaged gzip ({error})") from None
            rest = packed.unconsumed_tail


def parse_json(text: bytes) -> Any:
    """Return the data in JSON; what is nested deeper than any field of the API is replaced by null.

    Raises:
        TooLargeError: It has too many values.
        ValueError: It is not JSON.
    """
    if sum(map(text.count, (b",", b"[", b"{"))) > _MOST_MARKS:
        raise TooLargeError("with too many values")
    try:
        return json.loads(text.decode())  # as bytes, it might be UTF-16, where brackets and commas cannot be counted
    except RecursionError:
        return parse_json(_flattened(text))
    except ValueError:
        raise ValueError("without an object in JSON") from None


def _flattened(text: bytes) -> bytes:
    kept, depth, begin = [], 0, 0
    for match in _TOKEN.finditer(text):
        if match[0] in b"[{":
            depth += 1
            if depth == _DEEPEST + 1:
                kept.append(text[begin : match.start()] + b"null")
        elif match[0] in b"]}":
            if depth == _DEEPEST + 1:
                begin = match.end()
            depth -= 1
    return b"".join(kept) + (text[begin:] if depth <= _DEEPEST else b"")


def parse_page(answer: Object, kind: Kind) -> tuple[list[Object], str]:
    """Return a page's objects, of any form, and where the next begins, or empty; raise ValueError for other data."""
    items, metadata = answer.get("items") or [], answer.get("metadata")
    rest = metadata.get("continue", "") if isinstance(metadata, dict) else None
    if not isinstance(items, list) or not isinstance(rest, str):
        raise ValueError("without a list of objects")  # noqa: TRY004 - it is the answer that is wrong
    return [_named(item, kind) for item in items], rest


def discovered(answer: Object, api_version: str) -> list[Kind]:
    """Return the kinds of an API version; raise ValueError if it is not a list of kinds."""
    try:
        return [
            Kind(api_version, str(resource["kind"]), str(resource["name"]), bool(resource["namespaced"]))
            for resource in answer["resources"]
            if "/" not in resource["name"]
        ]
    except (KeyError, TypeError):
        raise ValueError("without a list of kinds") from None


def all_discovered(answer: Object) -> list[Kind] | None:
    """Return the kinds of all API groups; None before Kubernetes 1.30, which lists groups alone; else ValueError."""
    if "items" not in answer:
        return None
    try:
        return [
            Kind(
                f"{group['metadata']['name']}/{version['version']}",
                str(resource["responseKind"]["kind"]),
                str(resource["resource"]),
                resource["scope"] == "Namespaced",
            )
            for group in answer["items"]
            for version in group.get("versions") or ()
            for resource in version.get("resources") or ()
            if resource.get("responseKind")  # null where the resource has subresources only
        ]
    except (KeyError, TypeError, AttributeError):
        raise ValueError("without a list of kinds") from None


def shaped(item: Any, kind: Kind) -> Object:
    """Return an object with the parts of each, without those that no reader needs; ValueError: another form."""
    named = _named(item, kind)
    check_form(named)
    return named


def _named(item: Any, kind: Kind) -> Object:
    """Return an object that has a name, and a namespace if its kind has; an answer without is not of the API.

    Raises:
        ValueError: It has none.
    """
    metadata = item.get("metadata") if isinstance(item, dict) else None
    if not isinstance(metadata, dict) or not _NAME.fullmatch(str(metadata.get("name") or "")):
        raise ValueError("with something other than an object")
    # the manager of each field: often half of an object, and free text of whoever wrote it
    kept = {key: value for key, value in metadata.items() if value is not None and key != "managedFields"}
    if {type(kept.get(key, "")) for key in _TEXTS} != {str} or (kind.namespaced and not kept.get("namespace")):
        raise ValueError("with an object of another form")
    given = {key: value for key, value in item.items() if value is not None}
    return {**given, "apiVersion": kind.api_version, "kind": kind.name, "metadata": kept}


def check_form(item: Object) -> None:
    """Raise ValueError for an object of another form than readers expect: a tenant's, of a kind with a loose schema."""
    metadata = item["metadata"]
    maps, owners = [metadata.get(key, {}) for key in _MAPS_OF_TEXT], metadata.get("ownerReferences", [])
    if not (
        all(isinstance(each, dict) for each in (*maps, item.get("spec", {}), item.get("status", {})))
        and all({str}.issuperset(map(type, each.values())) for each in maps)
        and isinstance(owners, list)
        and all(isinstance(owner, dict) and isinstance(owner.get("kind"), str) and "uid" in owner for owner in owners)
    ):
        raise ValueError("with an object of another form")
