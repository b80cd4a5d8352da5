"""What a public bucket, repository or web server answers decides neither where `download` writes nor who gets a token.

Each case did harm at commit e0791ee, or was left to chance. The program runs against a server of this machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote

import pytest
from pod_runner import Machine
from website import TOKEN, Site, answer, download, files, hub, serving, tls

pytestmark = pytest.mark.helm

OUTSIDE = b"written by a stranger"
COMMIT = "0123456789abcdef" * 2 + "01234567"
Answer = Callable[[BaseHTTPRequestHandler], None]


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as found:
        yield found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "pod").mkdir()
    return Machine(tmp_path / "pod", {"no_proxy": "*", "GCE_METADATA_HOST": "127.0.0.1:9"})


def bucket(site: Site, *names: str) -> dict[str, str]:
    """Put objects on the server, whatever their names, and return the variables that lead to it."""
    items = [{"name": name, "size": str(len(OUTSIDE))} for name in names]
    site.files["/storage/v1/b/public/o"] = json.dumps({"items": items}).encode()
    for name in names:
        site.files[f"/storage/v1/b/public/o/{quote(name, safe='')}?alt=media"] = OUTSIDE
    return {"STORAGE_EMULATOR_HOST": site.address}


def fetched(site: Site) -> list[str]:
    return [path for path in site.paths() if "alt=media" in path or "/resolve/" in path]


def below(folder: Path) -> list[str]:
    """Return all files of the machine that hold what the stranger sent."""
    return [str(path) for path in folder.rglob("*") if path.is_file() and path.read_bytes() == OUTSIDE]


NAMES = {
    "absolute": ["data/{outside}/x"],
    "parent": ["data/../../../x"],
    "parent in the middle": ["data/a/../../../x"],
    "dot": ["data/./x"],
    "empty part": ["data/a//x"],
    "nul": ["data/a\0b"],
    "newline": ["data/a\nb"],
    "right to left": ["data/a\u202eb"],
    "too long": ["data/" + "x" * 252],
    "case": ["data/Model.bin", "data/model.bin"],
    "case of a folder": ["data/A/one", "data/a/one"],
    "file and folder": ["data/a", "data/a/b"],
    "packed and not": ["data/a.jsonl", "data/a.jsonl.gz"],
    "packed twice": ["data/a.xz", "data/a.gz"],
    "another's part": ["data/a", "data/a.part"],
    "packed file and folder": ["data/a.xz", "data/a/b"],
}


@pytest.mark.threat(6)
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_names_that_cannot_stand_together_or_lead_elsewhere(
    names: list[str], site: Site, machine: Machine, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    variables = bucket(site, "data/good", *(name.format(outside=outside) for name in names))
    code, log = machine.finish(download("data.source=gs://public/data/,data.directory=/data/set"), variables)
    assert code == 1, log
    assert fetched(site) == []
    assert below(tmp_path) == []
    assert "Traceback" not in log
    assert "\u202e" not in log


def test_names_that_are_odd_but_sound(site: Site, machine: Machine) -> None:
    names = ["a/..b", "a/b c", "a/...", "a\\b", "ä", "-rf", "x" * 240]
    variables = bucket(site, *(f"data/{name}" for name in names))
    code, log = machine.finish(download("data.source=gs://public/data/,data.directory=/data/set"), variables)
    assert code == 0, log
    assert files(machine.folder / "data/set") == sorted(names)


@pytest.mark.threat(6)
@pytest.mark.parametrize("link", ["set/a", "set/a/b", "set/a/b.part", "set/a/b.gz", "set/a/b.gz.part"])
def test_links_that_lead_elsewhere(link: str, site: Site, machine: Machine, tmp_path: Path) -> None:
    """Another release, or an archive unpacked before, has left a link in the storage."""
    outside = tmp_path / "outside"
    outside.mkdir()
    path = machine.folder / "data" / link
    path.parent.mkdir(parents=True)
    path.symlink_to(outside if link == "set/a" else outside / "file")
    variables = bucket(site, "data/a/b.gz")
    code, log = machine.finish(download("data.source=gs://public/data/,data.directory=/data/set"), variables)
    assert code == 1, log
    assert fetched(site) == []
    assert list(outside.iterdir()) == []


@pytest.mark.threat(6)
@pytest.mark.parametrize("place", ["", "refs", "refs/main", "snapshots", f"snapshots/{COMMIT}"])
def test_no_link_in_a_cache_of_models_leads_elsewhere(place: str, site: Site, machine: Machine, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    link = machine.folder / "data/huggingface/hub/models--org--model" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / "file" if place == "refs/main" else outside)
    hub(site, "", "org/model", COMMIT, {"config.json": b"{}"})
    site.files["/api/models/org/model/revision/main"] = json.dumps({"sha": COMMIT}).encode()
    code, log = machine.finish(download("launchers.download.models={org/model}"), {"HF_ENDPOINT": site.address})
    assert code == 1, log
    assert fetched(site) == []
    assert list(outside.iterdir()) == []


def test_what_is_no_file_is_not_written_to(site: Site, machine: Machine) -> None:
    (machine.folder / "data/set").mkdir(parents=True)
    os.mkfifo(machine.folder / "data/set/a.part")
    code, log = machine.finish(
        download("data.source=gs://public/data/,data.directory=/data/set"), bucket(site, "data/a")
    )
    assert code == 1, log
    assert fetched(site) == []


def test_links_of_the_storage_itself_are_followed(site: Site, machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (machine.folder / "data").mkdir()
    (machine.folder / "data/set").symlink_to(tmp_path / "disk")
    code, log = machine.finish(
        download("data.source=gs://public/data/,data.directory=/data/set"), bucket(site, "data/a")
    )
    assert code == 0, log
    assert files(tmp_path / "disk") == ["a"]


def test_one_file_that_two_values_name_is_fetched_once(site: Site, machine: Machine) -> None:
    hub(site, "", "o/n", "main", {"tokenizer.model": b"words", "weights": b"w"})
    found = download(
        "checkpoint.source=hf://o/n,checkpoint.from=/data/model",
        "tokenizer.source=hf://o/n,tokenizer.kind=sentencepiece,tokenizer.path=/data/model",
    )
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address})
    assert code == 0, log
    assert sorted(fetched(site)) == ["/o/n/resolve/main/tokenizer.model", "/o/n/resolve/main/weights"]


@pytest.mark.parametrize("source", ["https://host.invalid", "https://host.invalid/..", "hf://o/n/a/.."])
def test_addresses_without_a_files_name(source: str, machine: Machine) -> None:
    code, log = machine.finish(download(f"data.source={source}"))
    assert code == 1
    assert "attempt" not in log
    assert files(machine.folder / "data") == []


LISTINGS = {
    "no json": b"<html>",
    "no object": b"[]",
    "no list": b'{"items": 7}',
    "no names": b'{"items": [{"size": "1"}]}',
    "no text": b'{"items": [{"name": 7, "size": "1"}]}',
    "no size": b'{"items": [{"name": "data/a", "size": "many"}]}',
    "negative": b'{"items": [{"name": "data/a", "size": "-1"}]}',
    "deep": b'{"items":' + b"[" * 100_000,
    "digits": b'{"items": [{"name": "data/a", "size": %s}]}' % (b"9" * 5000),
}


@pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS)
def test_listings_that_are_none(listing: bytes, site: Site, machine: Machine) -> None:
    site.files["/storage/v1/b/public/o"] = listing
    code, log = machine.finish(download("data.source=gs://public/data/"), {"STORAGE_EMULATOR_HOST": site.address})
    assert code == 1
    assert "Traceback" not in log
    assert "gs://public/data/: " in log


def test_a_listing_that_never_ends(site: Site, machine: Machine) -> None:
    page = f"{site.address}/api/models/o/n/tree/main?recursive=true"
    again: list[Answer] = [lambda handler: answer(handler, 200, b"[]", Link=f'<{page}>; rel="next"')]
    site.instead["/api/models/o/n/tree/main"] = again * 100
    found = download("checkpoint.source=hf://o/n,checkpoint.from=/data/model")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address})
    assert code == 1
    assert "attempt" not in log
    assert len(site.asked) < 4


@pytest.mark.threat(6)
def test_pages_that_are_always_others_end(site: Site, machine: Machine) -> None:
    """Each page named another one, for as long as the server liked."""

    def page(handler: BaseHTTPRequestHandler) -> None:
        following = f"/api/models/o/n/tree/main?cursor={len(site.asked)}"
        answer(handler, 200, b"[]", Link=f'<{following}>; rel="next"')

    site.instead["/api/models/o/n/tree/main"] = [page] * 5_000
    found = download("checkpoint.source=hf://o/n,checkpoint.from=/data/model")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address})
    assert code == 1
    assert "do not end" in log
    assert 1_000 < len(site.asked) < 5_000


@pytest.mark.parametrize("page", [b"{}", b'{"items": []}', b'{"items": [{"name": "data/", "size": "0"}]}'])
def test_a_listing_without_a_file_is_a_failure(page: bytes, site: Site, machine: Machine) -> None:
    """A path that is wrong in one letter ended well, with nothing fetched."""
    site.files["/storage/v1/b/public/o"] = page
    code, log = machine.finish(download("data.source=gs://public/data/"), {"STORAGE_EMULATOR_HOST": site.address})
    assert code == 1
    assert "gs://public/data/: has no file" in log


@pytest.mark.threat(6)
@pytest.mark.parametrize("source", ["hf://o/n", "hf://o/n/a"])
@pytest.mark.parametrize("end", ["\nHF_HOME=x", "\u200b", "\rx"])
def test_a_token_that_no_request_can_have_is_not_shown(source: str, end: str, site: Site, machine: Machine) -> None:
    """Python's error quotes the header that it refuses."""
    hub(site, "", "o/n", "main", {"a": b"1"})
    found = download(f"checkpoint.source={source},checkpoint.from=/data/model")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address, "HF_TOKEN": TOKEN + end})
    assert code == 1
    assert "HF_TOKEN" in log
    assert TOKEN not in log


def pages(site: Site, following: str) -> None:
    """Put the first page of a repository on the server; what follows is said to be elsewhere."""
    first = json.dumps([{"type": "file", "path": "a", "size": 1}]).encode()
    listing: Answer = lambda handler: answer(handler, 200, first, Link=f'<{following}>; rel="next"')  # noqa: E731
    site.instead["/api/models/o/n/tree/main"] = [listing]
    site.files["/o/n/resolve/main/a"] = b"1"


@pytest.mark.threat(6)
def test_the_next_page_on_another_host_gets_no_token(site: Site, machine: Machine) -> None:
    with serving(Site(files={"/next": b'[{"type": "file", "path": "b", "size": 1}]'})) as other:
        pages(site, f"{other.address}/next")
        site.files["/o/n/resolve/main/b"] = b"2"
        found = download("checkpoint.source=hf://o/n,checkpoint.from=/data/model")
        code, log = machine.finish(found, {"HF_ENDPOINT": site.address, "HF_TOKEN": TOKEN})
        assert code == 0, log
        assert [headers.get("Authorization") for _, headers in other.asked] == [None]
    assert {headers.get("Authorization") for _, headers in site.asked} == {f"Bearer {TOKEN}"}
    assert files(machine.folder / "data/model") == ["a", "b"]


@pytest.mark.parametrize("following", ["file:///etc/hostname", "ftp://host.invalid/x", "data:application/json,[]"])
def test_the_next_page_has_the_schemes_of_the_web(following: str, site: Site, machine: Machine) -> None:
    pages(site, following)
    found = download("checkpoint.source=hf://o/n,checkpoint.from=/data/model")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address, "HF_TOKEN": TOKEN})
    assert code == 1
    assert "Traceback" not in log
    assert files(machine.folder / "data") == []


def test_the_next_page_may_be_relative(site: Site, machine: Machine) -> None:
    pages(site, "/next?cursor=2")
    site.files["/next"] = b"[]"
    found = download("checkpoint.source=hf://o/n,checkpoint.from=/data/model")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address})
    assert code == 0, log


@pytest.mark.threat(6)
@pytest.mark.parametrize("scheme", ["file:///etc/hostname", "ftp://127.0.0.1:9/x", "data:text/plain,x", "gopher://h/x"])
def test_redirects_have_the_schemes_of_the_web(scheme: str, site: Site, machine: Machine) -> None:
    site.instead["/a"] = [lambda handler: answer(handler, 302, Location=scheme)]
    code, log = machine.finish(download(f"data.source={site.address}/a"))
    assert code == 1
    assert "attempt" not in log
    assert "Traceback" not in log
    assert files(machine.folder / "data") == []


@pytest.mark.threat(6)
def test_the_token_leaves_with_the_first_other_host(site: Site, machine: Machine) -> None:
    """There and back again: what another host sends on to is that host's word."""
    hub(site, "", "o/n", "main", {"a": b"x"})
    with serving(Site()) as other:
        site.instead["/o/n/resolve/main/a"] = [
            lambda handler: answer(handler, 302, Location=f"{other.address}/there"),
        ]
        other.instead["/there"] = [lambda handler: answer(handler, 302, Location=f"{site.address}/back")]
        site.files["/back"] = b"x"
        found = download("data.source=hf://o/n/a")
        code, log = machine.finish(found, {"HF_ENDPOINT": site.address, "HF_TOKEN": TOKEN})
        assert code == 0, log
        assert "Authorization" not in other.asked[0][1]
    assert [headers.get("Authorization") for path, headers in site.asked if path == "/back"] == [None]


def test_encryption_is_not_given_up(site: Site, machine: Machine, tmp_path: Path) -> None:
    """A redirect from https:// to http:// would let everybody on the way write the file, and read the token."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", *words, *names], check=True, capture_output=True)
    site.files["/a"] = OUTSIDE
    with serving(Site(), tls(certificate, key)) as secure:
        secure.files["/sound"] = b"sound"
        secure.instead["/a"] = [lambda handler: answer(handler, 302, Location=f"{site.address}/a")]
        variables = {"SSL_CERT_FILE": str(certificate)}
        code, log = machine.finish(download(f"data.source={secure.address}/sound"), variables)
        assert code == 0, log
        code, log = machine.finish(download(f"data.source={secure.address}/a"), variables)
    assert code == 1
    assert site.asked == []
    assert files(machine.folder / "data") == ["sound"]


def chunked(body: bytes) -> Answer:
    """Answer without a length."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(body)
        handler.close_connection = True

    return send


@pytest.mark.threat(6)
def test_a_file_without_end_is_cut_at_its_listed_size(site: Site, machine: Machine) -> None:
    hub(site, "", "o/n", "main", {"a": b"right"})
    sent: list[int] = []

    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            for _ in range(512):
                handler.wfile.write(bytes(1 << 20))
                sent.append(1)
        except OSError:
            handler.close_connection = True

    site.instead["/o/n/resolve/main/a"] = [endless]
    found = download("checkpoint.source=hf://o/n,checkpoint.from=/data/model")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address})
    assert code == 1, log
    assert "attempt" not in log
    assert len(sent) < 512
    assert files(machine.folder / "data") == []


def test_a_file_that_ends_before_its_listed_size_is_not_taken(site: Site, machine: Machine) -> None:
    hub(site, "", "o/n", "main", {"a": b"right"})
    site.instead["/o/n/resolve/main/a"] = [chunked(b"ri")]
    found = download("checkpoint.source=hf://o/n,checkpoint.from=/data/model")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address})
    assert code == 0, log
    assert (machine.folder / "data/model/a").read_bytes() == b"right"


@pytest.mark.parametrize(
    "headers", [{"Content_Range": "bytes 0-11/12"}, {"Content_Range": "bytes 3-11/12"}, {"Content_Range": "x"}, {}]
)
def test_another_part_than_asked_for_is_not_appended(headers: dict[str, str], site: Site, machine: Machine) -> None:
    (machine.folder / "data").mkdir()
    (machine.folder / "data/a.jsonl.part").write_bytes(b"first ")
    site.files = {"/a.jsonl": b"first second"}
    site.instead["/a.jsonl"] = [lambda handler: answer(handler, 206, b"wrong!", **headers)]
    code, log = machine.finish(download(f"data.source={site.address}/a.jsonl"))
    assert code == 0, log
    assert (machine.folder / "data/a.jsonl").read_bytes() == b"first second"


def test_a_part_that_ends_too_early_is_continued(site: Site, machine: Machine) -> None:
    """Its own length was taken for the rest of the file, which ended well without its last bytes."""
    (machine.folder / "data").mkdir()
    (machine.folder / "data/a.jsonl.part").write_bytes(b"first ")
    site.files = {"/a.jsonl": b"first second"}
    site.instead["/a.jsonl"] = [lambda handler: answer(handler, 206, b"se", Content_Range="bytes 6-7/12")]
    code, log = machine.finish(download(f"data.source={site.address}/a.jsonl"))
    assert code == 0, log
    assert (machine.folder / "data/a.jsonl").read_bytes() == b"first second"


# Python reads the body of a redirect, and a chunk of negative length, to their ends.
CHUNKED = {"Transfer-Encoding": "chunked"}
FLOODS = {
    "redirect": ("/a", 302, {"Location": "/b"}, b"", "a has 1 bytes"),
    "file": ("/o/n/resolve/main/a", 200, CHUNKED, b"-1\r\n", "more than the 5 bytes"),
    "listing": ("/api/models/o/n/tree/main", 200, CHUNKED, b"-1\r\n", "is not a listing"),
}


@pytest.mark.threat(6)
@pytest.mark.parametrize(("path", "status", "headers", "start", "end"), FLOODS.values(), ids=FLOODS)
def test_no_answer_fills_the_memory(
    path: str, status: int, headers: dict[str, str], start: bytes, end: str, site: Site, machine: Machine
) -> None:
    def flood(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.close_connection = True
        with contextlib.suppress(OSError):
            handler.wfile.write(start)
            for _ in range(400):
                handler.wfile.write(bytes(1 << 20))

    hub(site, "", "o/n", "main", {"a": b"right"})
    site.files["/b"] = b"x"
    site.instead[path] = [flood]
    source = (
        f"data.source={site.address}/a" if path == "/a" else "checkpoint.source=hf://o/n,checkpoint.from=/data/model"
    )
    with machine.start(download(source), {"HF_ENDPOINT": site.address}) as process:
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (300 << 20, 300 << 20))
        log, _ = process.communicate(timeout=180)
    assert end in log
    assert "Traceback" not in log


@pytest.mark.parametrize("length", ["-5", "many", "9" * 5000])
def test_lengths_that_are_none(length: str, site: Site, machine: Machine) -> None:
    site.instead["/a"] = [lambda handler: answer(handler, 200, b"x", Content_Length=length)] * 6
    code, log = machine.finish(download(f"data.source={site.address}/a"))
    assert "Traceback" not in log
    assert (code, files(machine.folder / "data")) in ((0, ["a"]), (1, []), (1, ["a.part"]))


def test_a_server_that_has_never_more(site: Site, machine: Machine) -> None:
    site.instead["/a"] = [lambda handler: answer(handler, 416)]
    site.files = {"/a": b"x"}
    code, log = machine.finish(download(f"data.source={site.address}/a"))
    assert code == 0, log


def test_messages_have_no_secrets_and_no_control_characters(site: Site, machine: Machine) -> None:
    site.files = {"/a": b"x"}

    def busy(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(503, "busy \x1b[31m::stop-commands::")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    site.instead["/a"] = [busy]
    code, log = machine.finish(download(f"data.source={site.address}/a?signature=4711"))
    assert code == 0, log
    assert "attempt 1 of 6" in log
    assert "4711" not in log
    assert "\x1b" not in log
