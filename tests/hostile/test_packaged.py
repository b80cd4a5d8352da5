"""An archive of a stranger's: nothing of it lands outside of its folder, it takes a bounded room, and lint ends."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from chartgen.errors import ChartgenError
from chartgen.helm.chart_folder import read_folder
from chartgen.helm.packages import unpack_chart
from chartgen.helm.program import find_helm
from chartgen.linter.chart_files import read_archives

HEAD = b"apiVersion: v2\nname: x\nversion: 0.1.0\n"


def member(
    name: str, data: bytes = b"a: 1\n", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data) if kind == tarfile.REGTYPE else 0
    return info, data


def packed(folder: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    path = folder / "x.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for info, data in (member("x/Chart.yaml", HEAD), *members):
            archive.addfile(info, io.BytesIO(data))
    return path


def sparse(name: str, size: int) -> Callable[[Path], Path]:
    """Make an archive whose one file is so many zeros, in a few kilobytes."""

    def make(folder: Path) -> Path:
        info = tarfile.TarInfo(name)
        info.size = size
        with gzip.open(folder / "x.tgz", "wb", compresslevel=9) as file:
            file.write(info.tobuf())
            for _ in range(size // (1 << 20)):
                file.write(bytes(1 << 20))
        return folder / "x.tgz"

    return make


def many(folder: Path) -> Path:
    return packed(folder, *(member(f"x/{number}", b"") for number in range(20_001)))


REFUSED: dict[str, tuple[tarfile.TarInfo, bytes]] = {
    "above": member("x/../../stolen"),
    "above at once": member("../stolen"),
    "absolute": member("/tmp/chartgen-stolen"),
    "absolute below": member("x//../../stolen"),
    "backslash": member("x\\..\\stolen"),
    "drive": member("C:/stolen"),
    "soft link": member("x/values.yaml", b"", tarfile.SYMTYPE, "/etc/passwd"),
    "hard link": member("x/values.yaml", b"", tarfile.LNKTYPE, "/etc/passwd"),
    "folder that is a link": member("x/templates", b"", tarfile.SYMTYPE, "/tmp"),
    "device": member("x/zero", b"", tarfile.CHRTYPE),
    "pipe": member("x/pipe", b"", tarfile.FIFOTYPE),
    "beside the folder": member("stolen"),
    "twice": member("x/Chart.yaml", HEAD),
    "below a file": member("x/Chart.yaml/a"),
}
FILES: dict[str, Callable[[Path], Path]] = {
    "large file": sparse("x/a", 6 << 20),
    "large archive": sparse("x/a", 101 << 20),
    "many files": many,
}


def write(folder: Path, data: bytes) -> Path:
    (folder / "x.tgz").write_bytes(data)
    return folder / "x.tgz"


BROKEN = {
    "empty": b"",
    "no gzip": b"PK\3\4" * 100,
    "cut off": gzip.compress(b"x" * 99999)[:50],
    "no tar": gzip.compress(b"x" * 2048),
}


def refused(archive: Path, folder: Path) -> None:
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(ChartgenError) as error:
        unpack_chart(archive, "x.tgz", folder)
    assert str(error.value).startswith("x.tgz")
    left = [path for path in folder.parent.rglob("*") if path not in before and not path.is_relative_to(folder)]
    assert left == []
    assert not Path("/tmp/chartgen-stolen").exists()
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    assert sum(path.stat().st_size for path in folder.rglob("*")) < 10 << 20


@pytest.mark.threat(5)
@pytest.mark.parametrize("case", REFUSED)
def test_member_that_is_no_plain_file_below_the_chart_is_refused(case: str, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    refused(packed(tmp_path, REFUSED[case]), tmp_path / "into")


@pytest.mark.threat(9)
@pytest.mark.parametrize("case", FILES)
def test_archive_that_holds_too_much_is_refused(case: str, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    refused(FILES[case](tmp_path), tmp_path / "into")


@pytest.mark.parametrize("case", BROKEN)
def test_broken_archive_is_refused(case: str, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    refused(write(tmp_path, BROKEN[case]), tmp_path / "into")


def test_archive_is_read_as_helm_reads_it(tmp_path: Path) -> None:
    """The first folder of a path is left out, whatever its name."""
    (tmp_path / "into").mkdir()
    chart = unpack_chart(packed(tmp_path, member("y/templates/a.yaml")), "x.tgz", tmp_path / "into")
    assert sorted(path.relative_to(chart).as_posix() for path in chart.rglob("*") if path.is_file()) == [
        "Chart.yaml",
        "templates/a.yaml",
    ]


def block(
    name: bytes, data: bytes, kind: bytes = b"0", *, size: bytes = b"", magic: bytes = b"ustar\0", **parts: bytes
) -> bytes:
    """Return a member as bytes, with what tarfile does not write."""
    head = bytearray(512)
    head[: len(name)], head[100:107], head[124:136] = name, b"0000644", size or b"%011o\0" % len(data)
    head[156:157], head[257 : 257 + len(magic)] = kind, magic
    for field, part in parts.items():
        at = {"mode": 100, "uid": 108, "prefix": 345}[field]
        head[at : at + len(part)] = part
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + data + bytes(-len(data) % 512)


def pax(*records: bytes, kind: bytes = b"x", behind: bytes = b"") -> bytes:
    """Return a pax header with `path` or other records, and what lies behind its end."""
    data = b"".join(b"%d %s\n" % (len(each) + (4 if len(each) > 6 else 3), each) for each in records)
    whole = block(b"pax", data, kind)
    return whole[: 512 + len(data)] + behind + whole[512 + len(data) + len(behind) :]


def long_name(name: bytes) -> bytes:
    return block(b"././@LongLink", name + b"\0", b"L")


EVIL = b"kind: Pod\n"
HIDDEN, SHOWN = b"x/templates/pod.yaml", b"x/aaa.txt"
# Members of which Go sees the template, and Python sees none; Go's own reading is by its source, as in archives.py.
APART: dict[str, bytes] = {
    "pax before a long name": pax(b"path=" + SHOWN) + long_name(HIDDEN) + block(SHOWN, EVIL),
    "two pax headers": pax(b"path=" + SHOWN) + pax(b"path=" + HIDDEN) + block(SHOWN, EVIL),
    "two long names": long_name(SHOWN) + long_name(HIDDEN) + block(SHOWN, EVIL),
    "old form with a prefix": block(HIDDEN, EVIL, magic=b"", prefix=b"zzz"),
    "form of GNU with a prefix": block(HIDDEN, EVIL, magic=b"ustar  \0", prefix=b"zzz"),
    "name of a sparse file": pax(b"GNU.sparse.name=" + SHOWN) + block(HIDDEN, EVIL),
    "size without a number": pax(b"size=") + block(SHOWN, EVIL) + block(HIDDEN, EVIL),
    "records behind the end": pax(b"path=" + HIDDEN, behind=b"18 path=" + SHOWN + b"\n") + block(SHOWN, EVIL),
    "values with the mode of a folder": block(b"x/values.yaml", b"a: 1\n", mode=b"0040644"),
    "hidden template": block(b"x/templates/.pod.yaml", EVIL),
    "template in a hidden folder": block(b"x/templates/.git/pod.yaml", EVIL),
}
# Members that Python alone reads as something else, and that are read as Helm does.
AS_HELM: dict[str, bytes] = {
    "no folder": block(b"./templates/pod.yaml", EVIL),
    "excluded": block(b"x/.helmignore", b"templates/\n") + block(HIDDEN, EVIL),
    "another name for all": pax(b"path=" + SHOWN, kind=b"g") + block(HIDDEN, EVIL),
    "owner that is no number": block(SHOWN, EVIL, uid=b"\x81") + block(HIDDEN, EVIL),
    "size behind zeros": block(SHOWN, EVIL, size=b"\0" + b"%010o\0" % len(EVIL)) + block(HIDDEN, EVIL),
    "prefix": block(b"pod.yaml", EVIL, prefix=b"x/templates"),
    "pax": pax(b"path=" + HIDDEN) + block(SHOWN, EVIL),
    "long name": long_name(HIDDEN) + block(SHOWN, EVIL),
}


def raw(folder: Path, members: bytes) -> Path:
    return write(folder, gzip.compress(block(b"x/Chart.yaml", HEAD) + members + bytes(1024)))


@pytest.mark.threat(15)
@pytest.mark.parametrize("case", APART)
def test_member_that_go_and_python_read_differently_is_refused(case: str, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    refused(raw(tmp_path, APART[case]), tmp_path / "into")


@pytest.mark.threat(15)
@pytest.mark.helm
@pytest.mark.parametrize("case", AS_HELM)
def test_template_that_helm_reads_is_read(case: str, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    archive = raw(tmp_path, AS_HELM[case])
    chart = unpack_chart(archive, "x.tgz", tmp_path / "into")
    shown = subprocess.run([find_helm().executable, "template", "r", archive], capture_output=True, check=True)
    assert b"kind: Pod" in shown.stdout
    assert read_folder(chart).texts["templates/pod.yaml"] == EVIL.decode()


def test_no_folder_of_an_archive_has_content(tmp_path: Path) -> None:
    """Python takes it for further members, which Go skips (python/cpython, CVE-2025-13462): each sees other files."""
    name = tarfile.TarInfo("././@LongLink")
    name.type, name.size = tarfile.GNUTYPE_LONGNAME, 10
    folder = tarfile.TarInfo("x/")
    folder.type, folder.size = tarfile.AREGTYPE, 512
    hidden = tarfile.TarInfo("x/templates/evil.yaml")
    cover = tarfile.TarInfo("x/README.md")
    cover.size = 512
    head, text = member("x/Chart.yaml", HEAD)
    blocks = [head.tobuf(), text.ljust(512, b"\0"), name.tobuf(), b"x/doc.txt\0".ljust(512, b"\0"), folder.tobuf()]
    data = b"".join((*blocks, cover.tobuf(), hidden.tobuf(), bytes(1024)))
    data = data.replace(folder.tobuf(), flagged(folder.tobuf()))
    path = tmp_path / "x.tgz"
    path.write_bytes(gzip.compress(data))
    (tmp_path / "out").mkdir()
    with pytest.raises(ChartgenError):
        unpack_chart(path, "x.tgz", tmp_path / "out")
    (tmp_path / "x" / "charts").mkdir(parents=True)
    path.rename(tmp_path / "x" / "charts" / "x.tgz")
    assert [each.rule for each in read_archives(tmp_path / "x").findings] == ["chart-files"]


def flagged(block: bytes) -> bytes:
    """Return a header with the type of old archives, which tarfile writes as that of a folder or file."""
    old = block[:148] + b" " * 8 + b"\0" + block[157:]
    return old[:148] + b"%06o\0 " % sum(old) + old[156:]
