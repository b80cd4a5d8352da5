"""An archive of a stranger's: nothing of it lands outside of its folder, it takes a bounded room, and lint ends."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from chartgen.errors import ChartgenError
from chartgen.helm.packages import unpack_chart
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
