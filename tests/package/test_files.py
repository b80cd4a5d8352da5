"""Files are written as a whole or not at all."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chartgen.errors import ChartgenError
from chartgen.files import whole_folder, write_whole


def test_a_file_keeps_its_mode_and_a_link_stays_one(tmp_path: Path) -> None:
    file, link = tmp_path / "report.json", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o750)
    link.symlink_to(file)
    write_whole(link, "new\n")
    assert (file.read_text(), file.stat().st_mode & 0o777, link.is_symlink()) == ("new\n", 0o640, True)
    assert {path.name for path in tmp_path.iterdir()} == {"report.json", "link"}


@pytest.mark.threat(5)
def test_links_out_of_a_folder_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an absolute name the link itself; below the working directory, which others may have written, each folder."""
    folder, home = tmp_path / "folder", tmp_path / "home"
    for each in (folder / "in", home):
        each.mkdir(parents=True)
    (folder / "file").symlink_to(home / "file")
    (folder / "own").symlink_to(folder / "in")
    (folder / "out").symlink_to(home)
    write_whole(folder / "out" / "file", "1")  # a folder that the user named
    monkeypatch.chdir(folder)
    write_whole(Path("own/file"), "2")
    assert ((home / "file").read_text(), (folder / "in" / "file").read_text()) == ("1", "2")
    for refused in (folder / "file", Path("file"), Path("own/../file"), Path("out/file"), Path("out/new/file")):
        with pytest.raises(ChartgenError, match=re.escape(str(refused))):
            write_whole(refused, "3", parents=True)
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder / "in")  # links of the whole checkout are its author's
    with pytest.raises(ChartgenError, match="link"):
        write_whole(Path("../out/file"), "3")
    assert [(each.name, each.read_text()) for each in home.iterdir()] == [("file", "1")]


@pytest.mark.threat(14)
def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("old")
    program = (
        "import resource, signal, sys; from pathlib import Path; from chartgen.files import write_whole;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "write_whole(Path(sys.argv[1]), 'x' * 100_000)"
    )
    argv = [sys.executable, "-c", program, str(tmp_path / "report.json")]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "cannot be written: File too large" in ran.stderr
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_device_is_written_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(ChartgenError, match="No space left"):
        write_whole(Path("/dev/full"), "x")
    write_whole(Path("/dev/null"), "x")
    program = "from pathlib import Path; from chartgen.files import write_whole; write_whole(Path('/dev/stdout'), 'x')"
    argv = [sys.executable, "-c", program]
    assert subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout == "x"
    with (tmp_path / "file").open("w") as file:
        subprocess.run(argv, stdout=file, check=True)
    assert (tmp_path / "file").read_text() == "x"


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ChartgenError, match="no such folder"):
        write_whole(tmp_path / "none" / "report.json", "x")


WRITER = """
import sys
from pathlib import Path
from chartgen.files import whole_folder

for number in range(100_000):
    with whole_folder(Path(sys.argv[1])) as draft:
        for name in "abc":
            (draft / name).write_text(f"{number}\\n")
    print(number, flush=True)
"""


@pytest.mark.threat(14)
def test_a_killed_writer_leaves_a_whole_folder(tmp_path: Path) -> None:
    """Killed at 40 moments: the folder is there each time, with the files of one state."""
    folder = tmp_path / "chart"
    for moment in range(40):
        argv = [sys.executable, "-c", WRITER, str(folder)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout
            for _ in range(1 + moment):
                running.stdout.readline()
            running.send_signal(signal.SIGKILL)
        assert len({(folder / name).read_text() for name in "abc"}) == 1


@pytest.mark.threat(14)
def test_drafts_that_were_left_are_cleared_away(tmp_path: Path) -> None:
    old, new = tmp_path / ".chart.1.draft", tmp_path / ".chart.2.draft"
    for folder in (old, new):
        folder.mkdir()
    os.utime(old, (0, 0))
    with whole_folder(tmp_path / "chart") as draft:
        (draft / "a").write_text("a")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".chart.2.draft", "chart"]


def test_a_folder_stays_when_its_writer_fails(tmp_path: Path) -> None:
    (tmp_path / "chart").mkdir()
    (tmp_path / "chart" / "a").write_text("old")
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "chart") as draft:  # noqa: PT012
        (draft / "a").write_text("new")
        raise ZeroDivisionError
    assert (tmp_path / "chart" / "a").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["chart"]
