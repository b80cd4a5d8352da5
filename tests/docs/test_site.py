"""The site lists every page, `make site` finds what leads nowhere, and pictures and tables show what the code has."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from userlib import chartgen

from chartgen.composer.library import open_library

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "index.html": '<a href="a/page.html#one">1</a> <a href="a/">2</a> <a href="https://a.b/">3</a> <p>',
    "a/index.html": '<img src="../dot.svg"> <a href="../index.html">1</a>',
    "a/page.html": '<h2 id="one">1</h2>',
    "404.html": '<a href="/index.html">1</a>',
    "dot.svg": "<svg/>",
}


def links(site: Path) -> list[str]:
    """Run the program on a site; return what it reports."""
    argv = [sys.executable, str(ROOT / "tests" / "programs" / "links.py"), str(site)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ran.returncode == (1 if ran.stderr else 0)
    return ran.stderr.splitlines()


def write(site: Path, pages: dict[str, str]) -> Path:
    for name, text in pages.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return site


def test_a_whole_site_has_no_broken_link(tmp_path: Path) -> None:
    assert links(write(tmp_path, PAGES)) == []


def test_what_leads_nowhere_or_loads_from_the_network_is_found(tmp_path: Path) -> None:
    broken = {
        "a/page.html": '<a href="#2">1</a> <a href="../index.html#3">2</a> <img src="../no"> <a href="../Make">3</a>',
        "404.html": '<script src="https://example.com/x.js"></script> <link rel="stylesheet" href="//example.com/x">',
    }
    assert links(write(tmp_path, PAGES | broken)) == [
        "404.html: loads //example.com/x from the network",
        "404.html: loads https://example.com/x.js from the network",
        "a/page.html: #2 leads nowhere",
        "a/page.html: ../Make leads nowhere",
        "a/page.html: ../index.html#3 leads nowhere",
        "a/page.html: ../no leads nowhere",
        "index.html: a/page.html#one leads nowhere",
    ]


def test_the_navigation_lists_every_page_once() -> None:
    listed = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = [
        *ROOT.glob("docs/**/*.md"),
        *(path for path in ROOT.glob("charts/*/*.md") if "-setup" not in str(path)),
    ]
    top = {"README.md", "CONTRIBUTING.md", "CHANGES.md", "SECURITY.md"}
    assert sorted(listed) == sorted(top | {str(path.relative_to(ROOT)) for path in pages})


def test_no_page_is_longer_than_1200_words() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("charts/*/*.md")]
    words = {str(page.relative_to(ROOT)): len(page.read_text().split()) for page in pages}
    assert {page: count for page, count in words.items() if count > 1200} == {}


def test_no_code_in_a_table_has_a_bar() -> None:
    """GitHub needs a backslash before it, which the site would show."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("charts/*/*.md")]
    rows = [line for page in pages for line in page.read_text().splitlines() if line.startswith("|")]
    assert [row for row in rows if any("\\|" in code for code in re.findall("`[^`]*`", row))] == []


def test_the_pictures_are_up_to_date() -> None:
    argv = [sys.executable, str(ROOT / "tests" / "programs" / "pictures.py"), "--check"]
    assert subprocess.run(argv, capture_output=True, text=True, check=False).stderr == ""


def test_the_readme_names_every_target_and_launcher_and_the_kinds_have_a_page() -> None:
    library = open_library()
    readme = (ROOT / "README.md").read_text()
    kinds = (ROOT / "docs" / "explanation" / "kinds.md").read_text()
    assert {name for name in library.names("workload") if f"| `{name}` |" not in kinds} == set()
    assert {name for name in library.names("target") if f"| `{name}` |" not in readme} == set()
    assert {name for name in library.names("launcher") if f"`{name}`" not in readme} == set()


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "run.yaml").write_text(chartgen("show", "gpt3-175b", "--target", "gke-a3mega").stdout)
    (tmp_path / "site.yaml").symlink_to(ROOT / "values" / "site.gke-a3mega.example.yaml")
    code, call, _ = block.rpartition("print(rehearse(target, values).verdict)\n")  # tests/cluster rehearses
    assert call
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_the_files_of_a_fragment_on_the_page_exist() -> None:
    page = (ROOT / "docs" / "explanation" / "how-it-works.md").read_text()
    files = re.findall(r"`(gpudirect(?:-tcpxo)?/\w+[.]\w+)`", page)
    assert len(files) == 6
    assert [name for name in files if not (ROOT / "chartgen" / "library" / "fragments" / name).is_file()] == []
