"""Official programs from a real server, with everything that can go wrong on the way."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import click
import pytest
from userlib import chartgen

from chartgen.cli import options
from chartgen.composer.presets import VALUES
from chartgen.errors import MissingToolError, Problem, UsageError
from chartgen.rehearsal import engine_download, engines
from chartgen.rehearsal.engine_download import address, download
from chartgen.rehearsal.engines import Download, Engine

pytestmark = pytest.mark.skipif(not engines.system().startswith("linux"), reason="serves a Linux program")

HOST = "files.example"
FILE = f"/{HOST}/v1/tool.tar.gz"
PROGRAM = Path(shutil.which("true") or "/bin/true").resolve().read_bytes()
GET = "import sys; from chartgen.rehearsal.engine_download import get; get(sys.argv[1:])"


class Handler(BaseHTTPRequestHandler):
    """Sends what the server has; a function instead of bytes sends it itself."""

    server: Files

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        found = self.server.files.get(self.path)
        if callable(found):
            found(self)
        elif found is None:
            self.send_error(404)
        else:
            self.begin(len(found))
            self.wfile.write(found)

    def do_HEAD(self) -> None:
        self.redirect("http://127.0.0.1:1/")  # as registries send a reader to their documentation

    def begin(self, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def redirect(self, place: str) -> None:
        self.send_response(302)
        self.send_header("Location", place)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 its name in the base class
        pass


class Files(ThreadingHTTPServer):
    """A mirror; `released` lets the answers go on that wait for it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes | Callable[[Handler], None]] = {}
        self.asked: list[str] = []
        self.released = Event()
        self.url = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    """The set mirror, of a machine without engines and without Go."""
    (tmp_path / "bin").mkdir()
    with Files() as server:
        for name, value in {"CACHE": tmp_path / "cache", "ENGINES_MIRROR": server.url}.items():
            monkeypatch.setenv(f"CHARTGEN_{name}", str(value))
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield server
        server.released.set()
        server.shutdown()


def sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def archive(**files: bytes | tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", compresslevel=1) as tar:
        for name, content in files.items():
            entry = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(name)
            entry.size = len(content) if isinstance(content, bytes) else 0
            tar.addfile(entry, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


GOOD = archive(**{"README": b"text", "./linux/tool": PROGRAM})


def offer(
    monkeypatch: pytest.MonkeyPatch, content: bytes = GOOD, member: str = "linux/tool", url: str = f"https:/{FILE}"
) -> Engine:
    """Make a tool the only engine, with the checksum of this content."""
    tool = Engine("tool", "m", "v1.0.0", binary="tool", download=Download("v1.0.1", url, member, sha256(content)))
    monkeypatch.setattr(engines, "engine_table", lambda: {"tool": tool})
    return tool


def refused(lines: list[str] | None = None) -> list[Problem]:
    """Return the problems of an attempt that leaves nothing but a lock."""
    with pytest.raises(MissingToolError) as caught:
        engine_download.get(["tool"], progress=(lines if lines is not None else []).append)
    assert engines.engine_places(["tool"])[0].path is None
    assert [path.name for path in engines.engines_dir().iterdir()] == [".lock-tool"]
    assert caught.value.exit_code == 3
    return caught.value.problems


def test_a_program_is_downloaded_once_and_runs(mirror: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    tool, lines = offer(monkeypatch), list[str]()
    mirror.files = {FILE: lambda to: to.redirect("/elsewhere"), "/elsewhere": GOOD}
    program = engine_download.get(["tool"], progress=lines.append)["tool"]
    assert subprocess.run([program], check=False).returncode == 0
    assert (program, program.read_bytes()) == (tool.program, PROGRAM)
    assert engines.engine_places(["tool"]) == [engines.EngineStatus("tool", "v1.0.1", program, "cache")]
    assert [each.split(" ")[:3] for each in lines] == [
        ["tool", "v1.0.1:", word] for word in ("downloading", "downloaded")
    ]
    assert engine_download.get(["tool"]) == {"tool": program}
    assert mirror.asked == [FILE, "/elsewhere"]


def test_a_built_program_comes_before_a_downloaded_one(mirror: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = offer(monkeypatch)
    mirror.files[FILE] = GOOD
    engine_download.get(["tool"])
    built = tool.folder / "bin" / "tool"
    built.parent.mkdir(parents=True)
    built.write_bytes(PROGRAM)
    assert engines.find_engine("tool") == built != tool.downloaded


def cut(to: Handler) -> None:
    to.begin(len(GOOD))
    to.wfile.write(GOOD[:1000])


@pytest.mark.threat(14)
@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (GOOD[:-1] + b"x", "checksum"),
        (cut, f"1000 of {len(GOOD)} bytes"),
        (None, "404"),
        (lambda to: to.send_error(503), "503"),
        (lambda to: to.redirect("file:///etc/passwd"), "file:///etc/passwd"),
        (lambda to: to.redirect("https://127.0.0.1:1/x"), "redirects to https"),
        (lambda to: to.redirect("ftp://127.0.0.1:1/x"), "ftp"),
        (lambda to: to.redirect(FILE), "302"),
    ],
    ids=["changed", "cut", "missing", "refused", "to-a-file", "to-https", "to-ftp", "in-a-circle"],
)
def test_what_goes_wrong_on_the_way_is_one_line(
    mirror: Files, monkeypatch: pytest.MonkeyPatch, answer: bytes | Callable[[Handler], None] | None, word: str
) -> None:
    offer(monkeypatch)
    lines: list[str] = []
    if answer is not None:
        mirror.files[FILE] = answer
    problems = refused(lines)
    assert len(lines) == 2
    assert mirror.url + FILE in lines[1]
    assert word in lines[1]
    assert [("Go" in str(each), word in str(each)) for each in problems] == [(True, False), (False, True)]
    assert "\n" not in "".join(map(str, problems))


@pytest.mark.threat(14)
@pytest.mark.parametrize(
    ("content", "member", "word"),
    [
        (
            archive(**{"../linux/tool": PROGRAM, "/linux/tool": PROGRAM, "linux/tool2": PROGRAM}),
            "linux/tool",
            "no file",
        ),
        (b"no archive", "linux/tool", "cannot be read"),
        (GOOD[:-2000], "linux/tool", "cannot be read"),
    ],
    ids=["other-names", "no-archive", "half-an-archive"],
)
def test_what_is_published_wrongly_is_refused(
    mirror: Files, monkeypatch: pytest.MonkeyPatch, content: bytes, member: str, word: str
) -> None:
    """Also with the right checksum; and no name in an archive leads outside."""
    offer(monkeypatch, content, member)
    mirror.files[FILE] = content
    assert any(word in str(each) for each in refused())


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_only_a_file_of_an_archive_is_a_program(mirror: Files, monkeypatch: pytest.MonkeyPatch, kind: bytes) -> None:
    entry = tarfile.TarInfo("tool")
    entry.type, entry.linkname = kind, "/bin/sh"
    mirror.files[FILE] = content = archive(tool=entry)
    offer(monkeypatch, content, "tool")
    refused()


@pytest.mark.parametrize(("piece", "limit"), [(b"", "PATIENCE"), (b"x", "LONGEST")], ids=["silent", "trickling"])
def test_a_server_that_is_too_slow_is_left(
    mirror: Files, monkeypatch: pytest.MonkeyPatch, piece: bytes, limit: str
) -> None:
    def dawdle(to: Handler) -> None:
        to.begin(10_000_000)
        while not mirror.released.wait(0.02):
            to.wfile.write(piece)

    tool = offer(monkeypatch)
    mirror.files[FILE] = dawdle
    monkeypatch.setattr(engine_download, limit, 0.2)
    assert tool.download
    assert tool.downloaded
    engines.engines_dir().mkdir(parents=True)
    with pytest.raises(MissingToolError, match=FILE):
        download(tool.download, "tool", tool.downloaded, mirror.url)
    assert not list(engines.engines_dir().iterdir())


@pytest.mark.threat(14)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_download_leaves_no_engine(mirror: Files, number: signal.Signals) -> None:
    begun = Event()

    def half(to: Handler) -> None:
        to.begin(10_000_000)
        to.wfile.write(PROGRAM)
        begun.set()
        mirror.released.wait(180)

    kwok = engines.engine("kwok")
    assert kwok.download
    file = f"/{kwok.download.url.partition('://')[2]}"
    mirror.files[file] = half
    process = subprocess.Popen([sys.executable, "-c", GET, "kwok"])
    assert begun.wait(180)
    process.send_signal(number)
    assert process.wait() in (-number, 128 + number)
    assert engines.find_engine("kwok") is None
    if number == signal.SIGTERM:
        assert [path.name for path in engines.engines_dir().iterdir()] == [".lock-kwok"]
    mirror.files[file] = b"another"
    with pytest.raises(MissingToolError):
        engine_download.get(["kwok"])
    assert [path.name for path in engines.engines_dir().iterdir()] == [".lock-kwok"]


def image(mirror: Files, *layers: bytes, system: str = engines.system()) -> str:
    """Serve an image with an index, and return the digest of the index."""
    base = f"/{HOST}/v2/team/tool"

    def put(kind: str, content: bytes) -> dict[str, str]:
        mirror.files[f"{base}/{kind}/{sha256(content)}"] = content
        return {"digest": sha256(content)}

    machine = dict(zip(("os", "architecture"), system.split("-"), strict=True))
    manifest = put("manifests", json.dumps({"layers": [put("blobs", each) for each in layers]}).encode())
    other = {"digest": sha256(b""), "platform": {"os": "linux", "architecture": "s390x"}}
    index = {"manifests": [other, manifest | {"platform": machine}]}
    return put("manifests", json.dumps(index).encode())["digest"]


def offer_image(monkeypatch: pytest.MonkeyPatch, digest: str) -> Engine:
    wanted = Download("v1.0.1", f"oci://{HOST}/team/tool", "usr/bin/tool", digest)
    tool = Engine("tool", "m", "v1.0.0", binary="tool", download=wanted)
    monkeypatch.setattr(engines, "engine_table", lambda: {"tool": tool})
    return tool


def test_a_program_comes_out_of_an_image(mirror: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    base, own, last = (
        archive(**{"etc/passwd": b"root"}),
        archive(**{"usr/bin/tool": PROGRAM}),
        archive(runner=b"another"),
    )
    tool = offer_image(monkeypatch, image(mirror, base, own, last))
    assert engine_download.get(["tool"]) == {"tool": tool.downloaded}
    assert subprocess.run([tool.program], check=False).returncode == 0
    assert [path.rpartition("/")[2] for path in mirror.asked[2:]] == [sha256(last), sha256(own)]


@pytest.mark.parametrize("part", ["index", "layer", "machine", "member", "no-image"])
def test_an_image_with_a_defect_is_refused(mirror: Files, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    layer = archive(**{"usr/bin/another" if part == "member" else "usr/bin/tool": PROGRAM})
    digest = image(mirror, layer, system="linux-riscv64" if part == "machine" else engines.system())
    if part in ("index", "layer"):
        (path,) = (each for each in mirror.files if each.endswith(digest if part == "index" else sha256(layer)))
        mirror.files[path] = b"{}"
    if part == "no-image":
        digest = sha256(b"[]")
        mirror.files[f"/{HOST}/v2/team/tool/manifests/{digest}"] = b"[]"
    offer_image(monkeypatch, digest)
    words = {
        "index": "checksum",
        "layer": "checksum",
        "machine": "no image for",
        "member": "no file",
        "no-image": "not an",
    }
    assert words[part] in str(refused()[-1])


def test_nobody_is_asked_when_downloads_are_off(mirror: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch)
    monkeypatch.setenv("CHARTGEN_ENGINES_MIRROR", "off")
    with pytest.raises(MissingToolError, match="Go is not installed"):
        engine_download.get(["tool"])
    assert mirror.asked == []


@pytest.mark.usefixtures("mirror")
@pytest.mark.parametrize(
    "value", ["mirror.example", "ftp://mirror.example", "http://", "https://me:word@mirror.example"]
)
def test_a_mirror_is_a_url_without_a_password(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    offer(monkeypatch)
    monkeypatch.setenv("CHARTGEN_ENGINES_MIRROR", value)
    with pytest.raises(UsageError, match="CHARTGEN_ENGINES_MIRROR") as caught:
        engine_download.get(["tool"])
    assert "word" not in str(caught.value).partition(";")[0]


def test_the_command_reports_what_is_missing_and_keeps_the_rest(mirror: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = offer(monkeypatch)
    monkeypatch.setattr(engines, "engine_table", lambda: {"tool": tool, "own": Engine("own", "m", "v1", binary="own")})
    mirror.files[FILE] = GOOD
    done = chartgen("engines", "get")
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (done.exit_code, len(errors), "CHARTGEN_OWN" in errors[1]) == (3, 2, True)
    assert (engines.find_engine("tool"), engines.find_engine("own")) == (tool.downloaded, None)
    done = chartgen("engines", "get", "tool")
    assert (done.exit_code, done.stdout) == (0, f"tool: {tool.downloaded}\n")


def test_nothing_is_built_without_agreement(mirror: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = offer(monkeypatch)
    monkeypatch.setattr(engines, "engine_table", lambda: {"tool": tool, "own": Engine("own", "m", "v1", binary="own")})
    mirror.files[FILE] = GOOD
    asked: list[list[str]] = []

    def refuse(names: list[str]) -> bool:
        asked.append(names)
        return False

    with pytest.raises(MissingToolError, match="own"):
        engine_download.get(["tool", "own"], may_build=refuse)
    assert asked == [["own"]]  # once, after the downloads


TARGET = ["gke-a3mega", "--preset", "gpt3-5b", "-f", str(VALUES / "site.gke-a3mega.example.yaml")]


@pytest.mark.parametrize("command", [["rehearse", *TARGET], ["sandbox", "up", *TARGET], ["engines", "get", "helm"]])
def test_a_terminal_is_asked_once_before_a_build(command: list[str], tmp_path: Path) -> None:
    """Without a terminal nothing is asked, and the build fails for want of Go."""
    env = {
        "CHARTGEN_CACHE": str(tmp_path),
        "CHARTGEN_ENGINES_MIRROR": "off",
        "PATH": str(tmp_path),
        "HOME": str(tmp_path),
    }
    for answer, asked, no_go in (("n", 1, False), ("y", 1, True), ("", 0, True), ("--no-build", 0, False)):
        ours, theirs = pty.openpty()
        os.write(ours, answer[:1].encode() + b"\n")
        argv = [sys.executable, "-m", "chartgen", *command, *([answer] if answer[1:] else [])]
        stdin = theirs if answer else subprocess.DEVNULL
        ran = subprocess.run(
            argv, stdin=stdin, stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, **env}, check=False
        )
        os.close(theirs)
        with os.fdopen(ours, "rb", buffering=0) as terminal:
            shown = terminal.read(1 << 16).decode()
        assert (ran.returncode, shown.count("[Y/n]"), "Go is not installed" in shown) == (3, asked, no_go), shown


def test_an_agreement_to_build_counts_for_the_whole_command(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter((True, False))
    monkeypatch.setattr("click.confirm", lambda *_, **_of: next(answers))
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)

    @click.command()
    @options.build_option
    def command(may_build: engine_download.MayBuild) -> list[bool]:
        return [may_build(["helm"]), may_build(["kueue"])]

    assert command.main([], standalone_mode=False) == [True, True]


def test_a_server_that_does_not_answer_is_asked_once(monkeypatch: pytest.MonkeyPatch, mirror: Files) -> None:
    tools = {name: Engine(name, "m", "v1", download=Download("v1", "https:/" + FILE, "", "sha256:0")) for name in "ab"}
    monkeypatch.setattr(engines, "engine_table", lambda: tools)
    monkeypatch.setenv("CHARTGEN_ENGINES_MIRROR", "http://127.0.0.1:1")
    lines: list[str] = []
    with pytest.raises(MissingToolError) as caught:
        engine_download.get(tools, progress=lines.append)
    assert [line.split(" ")[0] for line in lines] == ["a", "a"]
    assert sorted("127.0.0.1:1" in str(each) for each in caught.value.problems) == [False, True, True]
    assert mirror.asked == []


def test_without_a_mirror_everything_comes_by_https() -> None:
    assert {address(f"{scheme}://a.example/b", "") for scheme in ("http", "https", "oci")} == {"https://a.example/b"}


@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_every_download_of_linux_is_pinned(monkeypatch: pytest.MonkeyPatch, processor: str) -> None:
    monkeypatch.setattr("platform.machine", lambda: processor)
    table = engines.engine_table.__wrapped__()
    own = {name for name, each in table.items() if not each.download and not each.tests}
    volcano = {name for name in table if name.startswith("volcano-")}
    assert own == {"training-operator", "mpi-operator", "trainer", "kuberay", *volcano}
    for wanted in (each.download for each in table.values() if each.download):
        kind, _, value = wanted.digest.partition(":")
        assert (wanted.url.partition("://")[0] in ("https", "oci"), "{" in wanted.url + wanted.member) == (True, False)
        assert len(value) == {"sha256": 64, "sha512": 128}[kind]


@pytest.mark.engines
@pytest.mark.usefixtures("built_engines")
def test_a_genuine_engine_comes_through_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    genuine = engines.require("kubeconform").read_bytes()
    mirror: Files = request.getfixturevalue("mirror")
    mirror.files[FILE] = content = archive(kubeconform=genuine)
    offer(monkeypatch, content, "kubeconform")
    program = engine_download.get(["tool"])["tool"]
    assert program.is_relative_to(tmp_path)
    assert os.access(program, os.X_OK)
    assert subprocess.run([program, "-v"], check=False, capture_output=True).returncode == 0
