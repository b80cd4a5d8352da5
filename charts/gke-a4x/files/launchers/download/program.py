"""Fetches data, a tokenizer, base weights, and models' descriptions: complete files stay, incomplete ones continue.

Needs only Python's standard library. Addresses:
    https://host/file                       a file
    https://host/folder/                    a tokenizer's folder, with its standard file names
    hf://[datasets/]org/name[@rev][/path]   a repository, a folder of it (the path ends in /), or a file
    gs://bucket/path                        a file, or all below a path that ends in /
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import lzma
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from io import BufferedReader
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urljoin, urlsplit

from places import PART, clashes, name_fault, unpacked
from web import FetchError, follows, open_address, public, same_host

ATTEMPTS = 6
CHUNK = 1 << 20
PAGE_BYTES = 64 << 20  # the hub lists 1,000 files in a page of less than 1 MiB
MOST_PAGES = 2_000
SHOWN = 5  # problems in one message
# Kind -> files of the tokenizer's directory: another name that repositories use, and whether all tokenizers have it.
TOKENIZERS = {
    "gpt2": {"gpt2-vocab.json": ("vocab.json", True), "gpt2-merges.txt": ("merges.txt", True)},
    "sentencepiece": {"tokenizer.model": ("", True)},
    "huggingface": {
        "tokenizer_config.json": ("", True),
        **dict.fromkeys(("tokenizer.json", "tokenizer.model", "special_tokens_map.json", "config.json"), ("", False)),
    },
}
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf", ".onnx", ".h5", ".msgpack", ".ot")
NO_LISTING = (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, RecursionError, HTTPException)
HINTS = {401: "set secretEnv.HF_TOKEN, or renew the token", 403: "ask for access with the account of the token"}


@dataclass(frozen=True)
class DownloadItem:
    """One file: its address, its path below its directory, and its size if a listing contains it."""

    url: str
    path: str
    size: int | None = None
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    needed: bool = True


def log(text: str) -> None:
    """Write a line to the pod's log. Servers have a hand in it, so what moves a terminal's cursor is spelled out."""
    shown = "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
    print(f"chartgen: {shown}", flush=True)  # noqa: T201  the log is what the program prints


def listing(source: str, url: str, headers: dict[str, str]) -> tuple[Any, Any]:
    """Read one page of a listing, and the headers that came with it."""
    with open_address(url, headers) as answer:
        text = BufferedReader(answer).read(PAGE_BYTES + 1)  # alone it has no limit for a chunk of negative length
        if len(text) > PAGE_BYTES:
            raise FetchError(f"{source}: a page of its listing is larger than {PAGE_BYTES >> 20} MiB")
        return json.loads(text), answer.headers


def hub_access() -> tuple[str, dict[str, str]]:
    """Return the address of the Hugging Face hub, and the headers of a request with the user's token, if any."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    token = os.environ.get("HF_TOKEN", "").strip()
    if not (token.isascii() and token.isprintable()):  # http.client would quote it in its error
        raise FetchError("HF_TOKEN has characters that no token has: only one line of letters and digits")
    return endpoint, {"Authorization": f"Bearer {token}"} if token else {}


def hub(source: str) -> Iterator[DownloadItem]:
    """List what a Hugging Face address names."""
    match = re.fullmatch(r"hf://(datasets/)?([^/@]+/[^/@]+)(?:@([^/]+))?(?:/(.*))?", source)
    if not match:
        raise FetchError(f"{source}: must be hf://[datasets/]org/name[@revision][/path]")
    kind, name, revision, path = match[1] or "", match[2], quote(match[3] or "main"), match[4] or ""
    endpoint, headers = hub_access()
    files = f"{endpoint}/{kind}{name}/resolve/{revision}/"
    if path and not path.endswith("/"):
        yield DownloadItem(files + quote(path), Path(path).name, None, headers)
        return
    page = f"{endpoint}/api/{kind or 'models/'}{name}/tree/{revision}/{quote(path)}".rstrip("/") + "?recursive=true"
    seen: set[str] = set()
    while page not in seen and len(seen) < MOST_PAGES:
        seen.add(page)
        found, answered = listing(source, page, headers if same_host(page, endpoint) else {})
        for entry in found:
            if entry["type"] == "file":
                yield DownloadItem(files + quote(entry["path"]), entry["path"][len(path) :], size(entry), headers)
        link = re.search(r'<([^<>]+)>; *rel="next"', answered.get("Link", ""))
        if not link:
            return
        follows(page, following := urljoin(page, link[1]))
        page = following
    raise FetchError(f"{source}: the pages of its listing do not end")


def bucket(source: str) -> Iterator[DownloadItem]:
    """List what a Cloud Storage address names, with the token of the pod's account; public buckets need none."""
    name, _, path = source.removeprefix("gs://").partition("/")
    endpoint = os.environ.get("STORAGE_EMULATOR_HOST", "https://storage.googleapis.com").rstrip("/")
    objects = f"{endpoint if '://' in endpoint else 'http://' + endpoint}/storage/v1/b/{name}/o"
    account = f"http://{os.environ.get('GCE_METADATA_HOST', 'metadata.google.internal')}/computeMetadata/v1/instance"
    try:
        with open_address(
            f"{account}/service-accounts/default/token", {"Metadata-flavor": "Google"}, timeout=3
        ) as answer:
            headers = {"Authorization": f"Bearer {json.load(answer)['access_token']}"}
    except (OSError, ValueError, KeyError):
        headers = {}
    if path and not path.endswith("/"):
        yield DownloadItem(f"{objects}/{quote(path, safe='')}?alt=media", Path(path).name, None, headers)
        return
    page, token = f"{objects}?prefix={quote(path, safe='')}", ""
    seen: set[str] = set()
    while token not in seen and len(seen) < MOST_PAGES:
        seen.add(token)
        found, _ = listing(source, page + token, headers)
        for entry in (entry for entry in found.get("items", []) if not entry["name"].endswith("/")):
            url = f"{objects}/{quote(entry['name'], safe='')}?alt=media"
            yield DownloadItem(url, entry["name"][len(path) :], size(entry), headers)
        if "nextPageToken" not in found:
            return
        token = f"&pageToken={quote(found['nextPageToken'])}"
    raise FetchError(f"{source}: the pages of its listing do not end")


def size(entry: dict[str, Any]) -> int:
    """Return the size that a listing states."""
    if (stated := int(entry["size"])) < 0:
        raise ValueError(f"size {stated}")
    return stated


def list_address(source: str) -> list[DownloadItem]:
    """List what an address names; raise FetchError if the server's answer is not a listing."""
    if source.startswith(("hf://", "gs://")):
        try:
            found = list((hub if source.startswith("hf://") else bucket)(source))
        except NO_LISTING as error:
            raise FetchError(f"{source}: the answer of the server is not a listing ({error!r:.100})") from None
        if not found:
            raise FetchError(f"{source}: has no file; is its path right?")
        return found
    return [DownloadItem(source, Path(urlsplit(source).path).name)]


def tokenizer(source: str, kind: str) -> list[DownloadItem]:
    """List the files of a tokenizer, under their standard names."""
    wanted = TOKENIZERS[kind].items()
    if source.startswith("http") and source.endswith("/"):
        return [DownloadItem(source + name, name, needed=needed) for name, (_, needed) in wanted]
    found = {item.path: item for item in list_address(source)}
    items = {name: found.get(name) or found.get(other) for name, (other, _) in wanted}
    if lacking := [name for name, (_, needed) in wanted if needed and not items[name]]:
        raise FetchError(f"{source}: has no {' and no '.join(lacking)}; is tokenizer.kind right?")
    return [replace(item, path=name) for name, item in items.items() if item]


def described(name: str, cache: Path) -> tuple[list[DownloadItem], Path, str]:
    """List what describes a model of the hub: all of its files but the weights.

    Returns:
        The files, by their paths below a cache of Hugging Face's libraries; the file that names the commit there; it.
    """
    endpoint, headers = hub_access()
    try:
        commit = listing(name, f"{endpoint}/api/models/{name}/revision/main", headers)[0]["sha"]
    except NO_LISTING:
        commit = ""
    if not isinstance(commit, str) or not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise FetchError(f"{name}: the answer of the server names no commit")
    folder = f"hub/models--{name.replace('/', '--')}"
    if why := name_fault(f"{folder}/refs/main", cache):
        raise FetchError(f"{name}: {why}")
    found = (item for item in list_address(f"hf://{name}@{commit}") if not item.path.endswith(WEIGHTS))
    placed = [replace(item, path=f"{folder}/snapshots/{commit}/{item.path}") for item in found]
    return placed, cache / folder / "refs" / "main", commit


def planned(work: list[tuple[DownloadItem, Path]]) -> list[tuple[DownloadItem, Path]]:
    """Return what is fetched to which path, each once; raise FetchError for a bad name: nothing is fetched then."""
    problems = [f"{public(item.url)}: {why}" for item, folder in work if (why := name_fault(item.path, folder))]
    found = [(item, folder / item.path) for item, folder in work]
    plan = {(item.url, target): (item, target) for item, target in found}
    problems = problems or list(clashes(target for _, target in plan.values()))
    if problems:
        more = [f"and {len(problems) - SHOWN} more"] if len(problems) > SHOWN else []
        raise FetchError("; ".join([*problems[:SHOWN], *more]))
    return list(plan.values())


def fetch(item: DownloadItem, target: Path) -> None:
    """Fetch one file and unpack it, unless that is done; `.part` files are what is not complete."""
    result = unpacked(target)
    if result.is_file() and (result != target or item.size in (None, result.stat().st_size)):
        return log(f"{result} already exists")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + PART)
    if result == target or not target.is_file():
        try:
            attempts(item, part)
        except HTTPError as error:
            if error.code != 404 or item.needed:
                raise
            return None
        part.replace(target)
    if result != target:
        unpack(target, result)
    return log(f"{result} has {result.stat().st_size} bytes")


def attempts(item: DownloadItem, part: Path) -> None:
    """Receive one file, in as many attempts as it takes."""
    for attempt in range(ATTEMPTS):
        try:
            return receive(item, part)
        except HTTPError as error:
            if error.code == 416:  # there is no more of it than is here: another file of this name
                part.unlink(missing_ok=True)
            elif error.code not in (408, 429) and error.code < 500:
                raise
            reason: object = error
        except (OSError, HTTPException) as error:
            reason = error
        log(f"{public(item.url)}: attempt {attempt + 1} of {ATTEMPTS}: {reason}")
        time.sleep(2**attempt)
    raise FetchError(f"{public(item.url)}: {ATTEMPTS} attempts failed")


def receive(item: DownloadItem, part: Path) -> None:
    """Fetch what is missing of one file, and check its size."""
    have = part.stat().st_size if part.is_file() else 0
    with open_address(item.url, {**item.headers, **({"Range": f"bytes={have}-"} if have else {})}) as answer:
        have = continued(answer, part, have)
        length = answer.length  # None where the server states none that is a number
        whole = re.search(r"/(\d{1,18})$", answer.headers.get("Content-Range", "")) if have else None
        total = int(whole[1]) if whole else item.size if length is None else have + length
        if item.size not in (None, total):
            part.unlink(missing_ok=True)
            raise FetchError(f"{public(item.url)}: has {total} bytes, but {item.size} in its listing")
        with part.open("ab" if have else "wb") as file:
            while data := answer.read1(CHUNK):  # `read` has no limit for a chunk of negative length
                if total is not None and file.tell() + len(data) > total:
                    part.unlink()
                    raise FetchError(f"{public(item.url)}: sends more than the {total} bytes in its listing")
                if file.tell() >> 30 < (file.tell() + file.write(data)) >> 30:
                    log(f"{part}: {file.tell() >> 20} of {(total or 0) >> 20} MiB")
    if total not in (None, part.stat().st_size):
        raise ConnectionError(f"broke off after {part.stat().st_size} of {total} bytes")


def continued(answer: Any, part: Path, have: int) -> int:
    """Return the downloaded bytes that stay; raise ConnectionError for another part: the next attempt starts over."""
    if answer.status != 206:
        return 0
    if not re.match(rf"bytes {have}-", answer.headers.get("Content-Range", "")):
        part.unlink(missing_ok=True)
        raise ConnectionError(f"the server does not continue from byte {have}")
    return have


def unpack(archive: Path, result: Path) -> None:
    """Unpack a file beside itself, and remove the archive."""
    modules = {".xz": [lzma], ".gz": [gzip]}.get(archive.suffix) or [
        importlib.import_module(name)
        for name in ("compression.zstd", "zstandard")
        if importlib.util.find_spec(name.partition(".")[0])
    ]
    if not modules:
        raise FetchError(f"{archive}: only Python 3.14 or the module zstandard unpack it; set launchers.download.image")
    part = result.with_name(result.name + PART)
    try:
        with modules[0].open(archive, "rb") as source, part.open("wb") as file:
            shutil.copyfileobj(source, file, CHUNK)
    except Exception as error:  # noqa: BLE001  each module has errors of its own
        archive.unlink()
        raise FetchError(f"{archive}: cannot be unpacked ({error}) and was deleted; start again") from None
    part.replace(result)
    archive.unlink()


def message_of(problem: BaseException) -> str:
    """Return what went wrong and what to do, without the signatures in addresses of stores."""
    if isinstance(problem, HTTPError):
        hint = HINTS.get(problem.code, "check the address")
        return f"{public(str(problem.url))}: {problem.code} {problem.reason}; {hint}"
    return str(problem)


def main() -> None:
    """Fetch what the arguments name; any failure is an exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("--data", nargs=2, default=[])
    parser.add_argument("--tokenizer", nargs=3, default=[])
    parser.add_argument("--checkpoint", nargs=2, default=[])
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--model", action="append", default=[])
    given = parser.parse_args()
    problems: list[BaseException] = []
    try:
        work = [
            (item, Path(pair[1])) for pair in (given.data, given.checkpoint) if pair for item in list_address(pair[0])
        ]
        if given.tokenizer:
            work += [(item, Path(given.tokenizer[1])) for item in tokenizer(given.tokenizer[0], given.tokenizer[2])]
        models = [described(name, given.cache) for name in given.model]
        work += [(item, given.cache) for found, _, _ in models for item in found]
        plan = planned(work)
        with ThreadPoolExecutor(given.parallel) as pool:
            done = [pool.submit(fetch, item, target) for item, target in plan]
        problems = [problem for future in done if (problem := future.exception())]
        for _, named, commit in [] if problems else models:
            named.parent.mkdir(exist_ok=True)
            named.write_text(commit)
    except (FetchError, OSError) as error:
        problems = [error]
    for problem in problems:
        log(message_of(problem))
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
