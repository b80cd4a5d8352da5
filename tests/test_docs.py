"""The generated reference is fresh, names every finding once, and says of each why it matters and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from chartgen import docs
from chartgen.checks.claim import Claim
from chartgen.findings import Complaint
from chartgen.linter.rules import known_ids

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
PAGE = docs.reference()["findings.md"]
ENTRIES = docs.catalogue()


def sections() -> Iterator[tuple[str, str]]:
    """Read the page back: the id of each finding, and what stands below it."""
    for part in re.split(r"^### ", PAGE, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        yield head, body.partition("\n## ")[0].strip()


def test_committed_reference_is_fresh() -> None:
    assert docs.stale(docs.reference(), FOLDER) == []


def test_every_finding_has_one_heading() -> None:
    ids = {"refused-by-the-chart", *known_ids()}
    assert sorted(head for head, _ in sections()) == sorted(ids) == sorted(entry.id for entry in ENTRIES)


def test_every_id_that_the_code_reports_is_known() -> None:
    code = "".join(path.read_text() for path in Path(docs.__file__).parent.rglob("*.py"))
    assert set(re.findall(r'\bFinding\(\s*"([a-z0-9-]+)"', code)) <= {entry.id for entry in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_every_finding_says_why_and_what_to_do(entry: docs.Entry) -> None:
    assert re.fullmatch(r"[^<>]{20,}[.]", entry.meaning)
    assert len(entry.remedy) > 3
    lines = [entry.meaning, "", f"- Severity: {entry.severity}", f"- What to do: {entry.remedy}"]
    lines += [f"- Source: {entry.source}"] if entry.source else []
    assert dict(sections())[entry.id] == "\n".join(lines)


def rule(kind: str) -> Iterator[Claim | Complaint]:
    """A rule with a hint of each shape."""
    yield Claim("a.b", f"{kind} is wrong", f"use {kind}{kind} or more", ("c",))
    yield Claim(f"a.{kind}", "is wrong", hint="use c" if kind else f"use {hint_of(kind)}")
    yield Claim("a", "is wrong", hint_of(kind))
    yield Claim(f"{kind}.{kind}", "is wrong", "remove it")
    yield Complaint("is wrong", "mend it")
    yield Complaint("has no hint")
    yield Complaint("is wrong", kind)


def hint_of(kind: str) -> str:
    return f"take {kind}"


def test_what_to_do_is_read_from_the_code() -> None:
    assert docs._remedy(rule) == "`a.b`: use … or more; `a.…`: use c or use …; `a`: take …; remove it; mend it"
    assert docs._remedy(hint_of) == "change the value that the finding names; the finding says to what"


def test_a_stale_or_missing_page_is_named_and_others_are_left_alone(tmp_path: Path) -> None:
    pages = {"findings.md": "new\n"}
    own = tmp_path / "own.md"
    own.write_text("mine\n")
    assert docs.stale(pages, tmp_path) == [tmp_path / "findings.md"]
    docs.write(pages, tmp_path)
    assert docs.stale(pages, tmp_path) == []
    (tmp_path / "findings.md").write_text("old\n")
    assert docs.stale(pages, tmp_path) == [tmp_path / "findings.md"]
    docs.write(pages, tmp_path)
    assert (own.read_text(), (tmp_path / "findings.md").read_text()) == ("mine\n", "new\n")


def test_two_pages_are_identical() -> None:
    assert docs.reference() == {"findings.md": PAGE}
    assert PAGE.endswith("\n")
    assert not PAGE.endswith("\n\n")
