"""What lint keeps between two calls: a cache that is never stale and never grows, baselines that hold elsewhere too."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from lint_seeds import JOB, SEEDS, SOUND, Repository, plant
from userlib import library, write

from chartgen.errors import Problem
from chartgen.findings import Finding
from chartgen.linter import cache
from chartgen.linter.chart_files import read_chart
from chartgen.linter.examination import Subject
from chartgen.linter.steps import run_steps

SEED = next(seed for seed in SEEDS if seed["rule"] == "names-fit")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    plant(SEED, tmp_path / "charts" / "one")
    return Repository(tmp_path)


@pytest.mark.helm
@pytest.mark.parametrize("source", ["CHARTGEN_PATH", "entry point"])
def test_a_changed_library_is_seen(source: str, tmp_path: Path) -> None:
    """The chart's folder stays as it is; what it is composed from does not."""
    repository = Repository(tmp_path)
    package = tmp_path / "site" / "our_charts"
    library(package, {"mine/env.yaml": "- name: A\n  value: b\n"})
    if source == "CHARTGEN_PATH":
        repository.env["CHARTGEN_PATH"] = str(package)
    else:
        about = "our_charts-1.0.dist-info"
        points = "[chartgen.library]\nours = our_charts\n"
        metadata = "Metadata-Version: 2.1\nName: our-charts\nVersion: 1.0\n"
        write(tmp_path / "site", {"our_charts/__init__.py": "", f"{about}/METADATA": metadata})
        write(tmp_path / "site", {f"{about}/entry_points.txt": points})
        repository.env["PYTHONPATH"] = str(package.parent)
    assert repository.run("build", "box").returncode == 0
    assert "chart-is-as-built" not in {row["rule"] for row in repository.rows("charts/box")}
    assert "unchanged" in repository.lint("charts/box", "--verbose").stderr
    (package / "fragments" / "mine" / "env.yaml").write_text("- name: A\n  value: c\n")
    assert "chart-is-as-built" in {row["rule"] for row in repository.rows("charts/box")}


def test_the_cache_keeps_what_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHARTGEN_CACHE", str(tmp_path))
    finding = [Finding("names-fit", Problem("x" * 1000, Path("a"), 1))]
    for key in ("old", "used", "new"):
        cache.remember(key, finding)
    month_ago = time.time() - 31 * 86400
    for key in ("old", "used"):
        os.utime(tmp_path / "lint" / f"{key}.json", (month_ago, month_ago))
    assert cache.remembered("used") == finding
    cache.remember("next", finding)
    assert sorted(path.stem for path in (tmp_path / "lint").iterdir()) == ["new", "next", "used"]


def test_the_cache_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHARTGEN_CACHE", str(tmp_path))
    monkeypatch.setattr("chartgen.cached._LARGEST", 10_000)
    now = time.time()
    for number in range(30):
        cache.remember(f"{number:02}", [Finding("names-fit", Problem("x" * 1000))])
        os.utime(tmp_path / "lint" / f"{number:02}.json", (now - 100 + number, now - 100 + number))
    kept = sorted((tmp_path / "lint").iterdir())
    assert 5 < len(kept) < 10
    assert kept[-1].stem == "29"


@pytest.mark.helm
def test_a_baseline_holds_however_the_chart_is_named(repository: Repository) -> None:
    (repository.root / "ci").mkdir()
    assert repository.lint("charts/one", "--write-baseline", "ci/known.json").returncode == 0
    assert str(repository.root) not in (repository.root / "ci" / "known.json").read_text()
    absolute = repository.root / "charts" / "one"
    for name in ("charts/one", "./charts/../charts/one", absolute, "charts"):
        assert repository.rows(name, "--baseline", "ci/known.json") == [], name
    assert repository.rows(absolute, "--baseline", repository.root / "ci" / "known.json") == []
    inside = Repository(repository.root / "charts")
    inside.env = repository.env
    assert inside.rows("one", "--baseline", "../ci/known.json") == []


@pytest.mark.helm
def test_a_baseline_holds_where_names_are_drawn(tmp_path: Path) -> None:
    """Each render gives the object another name, which is in the message; a new kind of finding still counts."""
    repository = Repository(tmp_path)
    shutil.copytree(SOUND, tmp_path / "chart")
    job = tmp_path / "chart" / JOB
    text = job.read_text()
    name = next(line for line in text.splitlines() if line.startswith("  name: "))
    drawn = text.replace(name, "  name: drawn-{{ randAlphaNum 50 | lower }}-{{ randAlphaNum 20 | lower }}", 1)
    job.write_text(drawn)
    first, second = (repository.rows("chart", "--no-cache") for _ in range(2))
    assert {row["message"] for row in first} != {row["message"] for row in second}
    assert repository.lint("chart", "--write-baseline", "known.json").returncode == 0
    assert repository.rows("chart", "--no-cache", "--baseline", "known.json") == []
    job.write_text(drawn + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: UPPER}\n")
    assert repository.rows("chart", "--no-cache", "--baseline", "known.json")


@pytest.mark.helm
def test_lint_leaves_no_threads(tmp_path: Path) -> None:
    shutil.copytree(SOUND, tmp_path / "chart")
    read = read_chart(tmp_path / "chart")
    before = set(threading.enumerate())
    run_steps(Subject(read.chart, folder=tmp_path / "chart"))
    assert set(threading.enumerate()) <= before


@pytest.mark.helm
def test_the_cache_sees_a_schema_that_the_chart_ignores(repository: Repository) -> None:
    """Helm may apply what lint takes for ignored, so what it refers to is looked at every time."""
    chart = repository.root / "charts" / "one"
    write(chart, {".helmignore": "vendored/\n", "vendored/values.schema.json": "{}"})
    assert "schema-refers-to-itself" not in {row["rule"] for row in repository.rows("charts/one")}
    write(chart, {"vendored/values.schema.json": '{"$ref": "http://127.0.0.1:9/schema.json"}'})
    assert "schema-refers-to-itself" in {row["rule"] for row in repository.rows("charts/one")}
