"""Fragments and launchers come from packages and pull requests: they are composed, and read nothing of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from userlib import composed, library, write

from chartgen.errors import ChartgenError

CONTENT = "stolen-content-4711"
LAUNCHER = "description: A launcher of a test\ntask: data\nimage: example.com/x:1\nsources: [the test]\n"


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text(f"- name: X\n  value: {CONTENT}\n")
    return tmp_path / "secret"


def refused(folder: Path) -> str:
    """Return why a target is refused, which must not quote what was reached for."""
    with pytest.raises(ChartgenError) as raised:
        composed(folder)
    assert CONTENT not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("name", ["/etc/passwd", "../../LICENSE", "templates/_helpers.tpl", "README.md", ""])
def test_common_gives_its_own_programs_only(tmp_path: Path, name: str) -> None:
    folder = library(tmp_path / "lib", {"mine/env.yaml": f'# <%= common("{name}") %>\n'})
    assert "mine/env.yaml" in refused(folder)


@pytest.mark.parametrize(
    "tag",
    [
        "target.path.read_text()",
        "target.library.roots",
        "target.library.find('fragment', 'mine').read_text()",
        "kind.path.parent",
        "common.__globals__",
        "().__class__.__mro__[1].__subclasses__()",
        "compat.__wrapped__.__globals__",
        "cycler.__init__.__globals__.os.popen('id').read()",
    ],
)
def test_tags_reach_no_files_and_nothing_of_python(tmp_path: Path, tag: str) -> None:
    folder = library(tmp_path / "lib", {"mine/env.yaml": f"# <%= {tag} %>\n"})
    assert "mine/env.yaml:1" in refused(folder)


@pytest.mark.parametrize("file", ["env.yaml", "beforeLaunch.sh", "helpers.tpl", "values.yaml", "manifests", "setup"])
def test_links_in_a_fragment_are_refused(tmp_path: Path, secret: Path, file: str) -> None:
    folder = library(tmp_path / "lib", {})
    link = folder / "fragments" / "mine" / file
    link.symlink_to(secret.parent if file in ("manifests", "setup") else secret)
    assert str(link) in refused(folder)


def test_a_fragment_and_a_target_that_are_links_are_refused(tmp_path: Path) -> None:
    elsewhere = library(tmp_path / "elsewhere", {"mine/env.yaml": f"- name: X\n  value: {CONTENT}\n"})
    folder = library(tmp_path / "lib", {}, "mine", "other")
    for kind, name in (("fragments", "linked"), ("targets", "box.yaml")):
        source = elsewhere / kind / ("mine" if kind == "fragments" else name)
        link = folder / kind / name
        link.unlink(missing_ok=True)
        link.symlink_to(source)
    assert str(folder / "targets" / "box.yaml") in refused(folder)


def test_links_in_a_launcher_are_refused(tmp_path: Path, secret: Path) -> None:
    folder = library(tmp_path / "lib", {})
    target = folder / "targets" / "box.yaml"
    target.write_text(target.read_text().replace("[nemo-1]", "[nemo-1, ours]"))
    write(folder, {"launchers/ours/launcher.yaml": LAUNCHER})
    link = folder / "launchers" / "ours" / "beforeLaunch.sh"
    link.symlink_to(secret)
    assert str(link) in refused(folder)


def test_links_within_a_library_are_followed(tmp_path: Path) -> None:
    folder = library(tmp_path / "lib", {"mine/env.yaml": "- name: SHARED\n  value: x\n"}, "mine", "twin")
    shared = folder / "shared.yaml"
    (folder / "fragments" / "mine" / "env.yaml").rename(shared)
    (folder / "fragments" / "mine" / "env.yaml").symlink_to(shared)
    assert any("SHARED" in text for text in composed(folder).files.values())
