"""A repository with one seeded defect for each rule: the same findings in every form; what counts is chosen."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from answers import answer, findings
from jsonschema import Draft4Validator
from lint_seeds import SEEDS, SOUND, Repository, expected, plant

from chartgen.composer.assembly import compose
from chartgen.composer.target import load_target
from chartgen.findings import LEFT_OUT, UNFINISHED
from chartgen.linter.rules import RULES, STEP_RULES, STYLE, level_of

pytestmark = pytest.mark.helm

# What lint could not finish has no seed; tests/hostile has charts that do not end.
SEVERITIES = {rule.id: rule.severity for rule in RULES} | {rule.id: rule.severity for rule in STEP_RULES}
for unseeded in (LEFT_OUT, UNFINISHED):
    del SEVERITIES[unseeded]


LONG = f"Job lint-{'t' * 58}: name lint-{'t' * 58}-1 has 65 characters, at most 63 fit"


_ANNOTATION = re.compile(
    r"::(?P<level>error|warning) file=(?P<file>[^,]+)(?:,line=(?P<line>\d+))?(?:,col=\d+)?,title=(?P<rule>[^:]+)::.+"
)
_START_LINE = "runs.0.results.0.locations.0.physicalLocation.region.startLine"


def misfits(log: dict[str, Any]) -> list[str]:
    """Name the places of a SARIF log that do not fit the standard's schema, as `make schemas` packed it."""
    text = gzip.decompress((Path(__file__).parents[1] / "data" / "sarif-2.1.0.json.gz").read_bytes()).decode()
    schema = json.loads(text.replace('"$ref":"', '"$ref":"#/definitions/'))
    return sorted(".".join(map(str, error.absolute_path)) for error in Draft4Validator(schema).iter_errors(log))


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """The seeded repository, linted once, so that the tests take what is known of unchanged charts."""
    root = tmp_path_factory.mktemp("repository")
    (root / "charts").mkdir()
    for seed in SEEDS:
        plant(seed, root / "charts" / seed["rule"])
    found = Repository(root)
    assert found.lint().returncode == 1
    return found


def found(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str, int]]:
    return sorted((row["rule"], row["path"], row["line"] or 0) for row in rows)


def seeded(repository: Repository) -> list[tuple[str, str]]:
    places = [expected(seed, repository.root / "charts" / seed["rule"]) for seed in SEEDS]
    return sorted((rule, str(Path(path).relative_to(repository.root))) for rule, path, _ in places)


def test_exactly_the_seeded_defects_are_found(repository: Repository) -> None:
    rows = repository.rows("charts")
    assert [place[:2] for place in found(rows)] == seeded(repository)
    assert {row["rule"]: row["severity"] for row in rows} == SEVERITIES


def test_sarif(repository: Repository) -> None:
    log = json.loads(repository.lint("--output", "sarif").stdout)
    assert misfits(log) == []
    (run,) = log["runs"]
    places = [result["locations"][0]["physicalLocation"] for result in run["results"]]
    told = [
        (result["ruleId"], place["artifactLocation"]["uri"], place.get("region", {}).get("startLine", 0))
        for result, place in zip(run["results"], places, strict=True)
    ]
    assert sorted(told) == found(repository.rows())
    levels = {each["id"]: each["properties"]["level"] for each in run["tool"]["driver"]["rules"]}
    assert levels == {rule: level_of(rule) for rule in SEVERITIES}


def test_sarif_is_held_to_its_schema(repository: Repository) -> None:
    log = json.loads(repository.lint("charts/names-fit", "--output", "sarif").stdout)
    (result,) = log["runs"][0]["results"]
    result["locations"][0]["physicalLocation"]["region"]["startLine"] = 0
    result["level"] = "fatal"
    del result["message"]
    assert misfits(log) == ["runs.0.results.0", "runs.0.results.0.level", _START_LINE]


def test_junit(repository: Repository) -> None:
    suites = ET.fromstring(repository.lint("--output", "junit").stdout)  # noqa: S314
    (suite,) = suites
    cases = sorted((str(case.get("name")), str(case.get("classname"))) for case in suite)
    assert (suites.tag, suite.tag, {case.tag for case in suite}) == ("testsuites", "testsuite", {"testcase"})
    assert cases == seeded(repository)
    errors = sum(severity == "error" for severity in SEVERITIES.values())
    assert (suite.get("tests"), suite.get("failures")) == (str(len(cases)), str(errors))
    failed = {str(case.get("name")) for case in suite if case.find("failure") is not None}
    assert failed == {rule for rule, severity in SEVERITIES.items() if severity == "error"}


def test_github(repository: Repository) -> None:
    lines = repository.lint("--output", "github").stdout.splitlines()
    told = [_ANNOTATION.fullmatch(line) for line in lines]
    places = [(each["rule"], each["file"], int(each["line"] or 0)) for each in told if each]
    assert sorted(places) == found(repository.rows())
    levels = {rule: "error" if severity == "error" else "warning" for rule, severity in SEVERITIES.items()}
    assert {each["rule"]: each["level"] for each in told if each} == levels
    assert len(places) == len(lines)


def test_text_is_grouped_by_file_and_ends_with_the_counts(repository: Repository) -> None:
    ran = repository.lint("charts/names-fit", "charts/ignore-has-reason", "--verbose")
    assert ran.stdout.splitlines() == [
        "charts/ignore-has-reason/templates/job.yaml",
        "     14  error      ignores a rule without a reason; write the reason behind it [ignore-has-reason]",
        "charts/names-fit/templates/job.yaml",
        f"      5  error      {LONG}; truncate it earlier [names-fit]",
        "2 errors",
    ]
    unchanged = ["> charts/names-fit: unchanged", "> charts/ignore-has-reason: unchanged"]
    assert ran.stderr.splitlines()[:-1] == unchanged
    assert ran.stderr.splitlines()[-1].startswith("> checked 2 charts: 2 unchanged")


def test_steps_are_named_with_their_times_on_request(repository: Repository) -> None:
    assert repository.lint("charts/names-fit", "--no-cache").stderr.startswith("> checked 1 chart: 2 renders")
    ran = repository.lint("charts/names-fit", "--no-cache", "--verbose")
    assert ran.stderr.startswith("> charts/names-fit: files 0.0")
    assert "helm template 0." in ran.stderr


def test_a_changed_chart_is_checked_again(repository: Repository) -> None:
    chart = repository.root / "charts" / "unique-volumes"
    job = chart / "templates" / "job.yaml"
    before = job.read_text()
    job.write_text(before.replace("name: plugin, emptyDir", "name: gke-gcsfuse-cache, emptyDir"))
    assert repository.rows("charts/unique-volumes") == []
    job.write_text(before)
    assert [row["rule"] for row in repository.rows("charts/unique-volumes")] == ["unique-volumes"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["charts/limits-are-set"], 0),
        (["charts/limits-are-set", "--strict"], 1),
        (["charts/names-fit"], 1),
        (["charts/names-fit", "--ignore", "names-fit"], 0),
        (["charts/names-fit", "--select", "unique-ports,unique-volumes"], 0),
        (["charts/names-fit", "--select", "names-fits"], 2),
        (["charts/nothing"], 2),
        (["charts/names-fit", "--kubernetes", "1.2"], 2),
    ],
    ids=str,
)
def test_exit_codes(options: list[str], code: int, repository: Repository) -> None:
    assert repository.lint(*options).returncode == code


def test_good_practice_of_others_is_reported_on_request(repository: Repository) -> None:
    chart, rule = "charts/security-context-is-explicit", "security-context-is-explicit"
    quiet = repository.run("lint", chart)
    assert (quiet.returncode, quiet.stdout) == (0, "no findings\n")
    assert "1 of good practice not shown" in quiet.stderr
    assert [row["level"] for row in repository.rows(chart)] == ["style"]
    assert repository.run("lint", chart, "--select", rule).returncode == 1
    settings = repository.root / "chartgen.toml"
    settings.write_text('[lint]\nlevel = "style"\n')
    assert repository.run("lint", chart).returncode == 1
    assert repository.run("lint", chart, "--level", "breaks").returncode == 0
    settings.write_text('[lint]\nlevel = "strict"\n')
    assert repository.run("lint", chart).returncode == 2
    settings.unlink()


def test_good_practice_is_reported_of_our_charts(tmp_path: Path) -> None:
    compose(load_target("onprem-p8000")).write(tmp_path / "chart")
    (tmp_path / "chart/templates/more.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n")
    found = Repository(tmp_path).run("lint", "chart", "--output", "json")
    assert "standard-labels" in {row["rule"] for row in findings(found.stdout)}


def test_list_names_every_rule_with_its_level(repository: Repository) -> None:
    listed = {row["rule"]: row for row in answer(repository.run("lint", "--list", "--output", "json").stdout)["rules"]}
    assert listed.keys() >= SEVERITIES.keys()
    assert listed.keys() >= STYLE
    assert {rule for rule, row in listed.items() if row["level"] == "style"} == STYLE
    lines = repository.run("lint", "--list").stdout.splitlines()
    assert sorted(line.split()[0] for line in lines) == sorted(listed)


def test_unknown_rule_is_named(repository: Repository) -> None:
    ran = repository.lint("charts/names-fit", "--ignore", "names-fits")
    near = "names-fit or names-of-data-sets or names-in-arguments"
    assert ran.stderr == f"error: no rule is named 'names-fits'; did you mean {near}?\n"


def test_baseline_hides_what_is_known_and_nothing_else(repository: Repository) -> None:
    charts = ["charts/names-fit", "charts/unique-volumes"]
    assert repository.lint("charts/names-fit", "--write-baseline", "known.json").returncode == 0
    answer((repository.root / "known.json").read_text())
    assert [row["rule"] for row in repository.rows(*charts, "--baseline", "known.json")] == ["unique-volumes"]


def test_configuration_of_the_repository(repository: Repository) -> None:
    settings = repository.root / "chartgen.toml"
    settings.write_text('[lint]\ncharts = ["charts/names-fit", "charts/unique-ports"]\nignore = ["names-fit"]\n')
    assert {row["rule"] for row in repository.rows()} == {LEFT_OUT, "unique-ports"}  # the others are beside them
    settings.write_text('[lint]\nchart = ["charts"]\nignore = "names-fit"\n')
    assert repository.lint().stderr == (
        "error: "
        f"{settings}: ignore must be a list of strings, not text\n"
        f"error: {settings}: lint has no setting 'chart'; did you mean charts?\n"
    )
    settings.unlink()
    project = repository.root / "pyproject.toml"
    project.write_text('[tool.chartgen.lint]\ncharts = ["charts/limits-are-set"]\nstrict = true\n')
    assert repository.lint().returncode == 1
    project.unlink()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "      - name: installer",
            "      # chartgen: ignore[images-are-pinned] a mirror pins it\n      - name: installer",
        ),
        (
            "        image: example.com/installer:latest",
            "        image: example.com/installer:latest # chartgen: ignore[images-are-pinned] pinned by a mirror",
        ),
        ("{{- /* A", "{{- /* chartgen: ignore[images-are-pinned] a mirror pins it */}}\n{{- /* A"),
        (
            "apiVersion: batch/v1",
            "# chartgen: ignore[images-are-pinned, names-fit] a mirror pins it\napiVersion: batch/v1",
        ),
        ("  annotations:", '  annotations:\n    ignore-check.kube-linter.io/latest-tag: "a mirror pins it"'),
    ],
    ids=["what holds it", "same line", "template comment elsewhere", "object", "annotation"],
)
def test_exceptions_stated_in_the_chart(old: str, new: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seed = next(seed for seed in SEEDS if seed["rule"] == "images-are-pinned")
    plant(seed, tmp_path / "chart")
    job = tmp_path / "chart" / "templates" / "job.yaml"
    assert old in job.read_text()
    job.write_text(job.read_text().replace(old, new, 1))
    left = [row["rule"] for row in Repository(tmp_path).rows("chart")]
    assert left == (["images-are-pinned"] if "elsewhere" in request.node.name else [])


def test_a_chart_in_the_working_directory_is_found(tmp_path: Path) -> None:
    shutil.copytree(SOUND, tmp_path / "chart")
    assert Repository(tmp_path / "chart").lint("--no-cache").stdout == "no findings\n"
