"""The generated reference is fresh, names every finding once, and says of each why it matters and what to do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import make_reference
from findings_page import findings_pages

from chartgen.linter import catalogue
from chartgen.linter.rules import level_of

PAGES = findings_pages()
ENTRIES = [rule for rules in catalogue.catalogue().values() for rule in rules]


def sections() -> Iterator[tuple[str, str, str]]:
    """Read the pages back: the id of each finding, what stands below it, and the page."""
    for page, text in PAGES.items():
        for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:] if page != "README" else ():
            head, _, body = part.partition("\n")
            yield head, body.strip(), page


OF_LINT = {entry.id for entry in catalogue.rules_of_lint()}
SECTIONS = {head: body for head, body, _ in sections()}


def test_every_finding_has_one_heading_and_a_link_in_the_index() -> None:
    assert sorted(head for head, _, _ in sections()) == sorted(entry.id for entry in ENTRIES)
    links = re.findall(r"\[`(.*?)`\]\((.*?)\)", PAGES["README"])
    assert sorted(links) == sorted((head, f"{page}.md#{head}") for head, _, page in sections())


def test_every_id_that_the_code_reports_is_known() -> None:
    code = "".join(path.read_text() for path in Path(catalogue.__file__).parent.rglob("*.py"))
    assert set(re.findall(r'\bFinding\(\s*"([a-z0-9-]+)"', code)) <= {entry.id for entry in ENTRIES}


def test_every_finding_says_why_and_what_to_do() -> None:
    for entry in ENTRIES:
        assert re.fullmatch(r"[^<>]{20,}[.]", entry.meaning), entry.id
        assert len(entry.remedy) > 3, entry.id
        lines = [entry.meaning, "", f"- Severity: {entry.severity}"]
        lines += [f"- Level: {level_of(entry.id)}"] if entry.id in OF_LINT else []
        lines += [f"- What to do: {entry.remedy}"]
        lines += [f"- Source: {entry.source}"] if entry.source else []
        assert SECTIONS[entry.id] == "\n".join(lines)


def test_sarif_describes_its_rules_without_docstrings(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(
        "{workload: {gpus: 3}, y: 012, storage: {token: hf_abcdefghijklmnopqrstuvwxyz}}"
    )
    words = [sys.executable, "-m", "chartgen", "lint", str(tmp_path / "values.yaml"), "--output", "sarif"]
    plain, optimized = (
        subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONOPTIMIZE": level})
        for level in ("", "2")
    )
    rules = json.loads(optimized.stdout)["runs"][0]["tool"]["driver"]["rules"]
    assert len(rules) > 1
    assert [each for each in rules if not each["shortDescription"]["text"].endswith(".")] == []
    assert optimized.stdout == plain.stdout


def test_a_new_version_of_generated_files_leaves_those_of_people_alone(tmp_path: Path) -> None:
    mine = {"notes.md": "mine\n", "own.json": '{"title": "mine"}\n'}
    page, schema, former = tmp_path / "page.md", tmp_path / "schema.json", tmp_path / "former.md"
    for name, text in mine.items():
        (tmp_path / name).write_text(text)
    texts = make_reference.marked({page: "# Page\n", schema: '{\n  "type": "object"\n}\n'})
    assert json.loads(texts[schema]) == {"$comment": make_reference.MARK, "type": "object"}
    assert make_reference.outdated(texts) == ([page, schema], [])
    make_reference.write(texts)
    former.write_text(page.read_text())
    page.write_text("old\n")
    assert make_reference.outdated(texts) == ([page], [former])
    make_reference.write(texts)
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == {page.name: texts[page], schema.name: texts[schema], **mine}
