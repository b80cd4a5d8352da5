"""A packaged chart, or one in a registry, wherever a chart's folder may be named."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest
from answers import findings
from ociregistry import registry
from userlib import chartgen

from chartgen.rehearsal import engines

CHART = Path("charts/onprem-p8000")
SETS = ("--preset", "llama2-7b", "--set", "nodes=31")


@pytest.mark.usefixtures("built_engines")
def test_a_packaged_chart_is_as_its_folder(tmp_path: Path) -> None:
    """In an archive and in a registry, which Helm reads back."""
    helm = engines.find_engine("helm")
    assert helm
    subprocess.run([helm, "package", CHART, "--destination", tmp_path], check=True, capture_output=True)
    (archive,) = tmp_path.iterdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with registry(tmp_path) as address:
        places = (CHART, archive, f"oci://{address}/charts/{CHART.name}")
        push = [str(helm), "push", str(archive), f"oci://{address}/charts", "--plain-http"]
        subprocess.run(push, check=True, capture_output=True)
        checked = [chartgen("check", each, *SETS, "--output", "json") for each in places]
        rendered = [chartgen("render", each, "my-run") for each in places]
        linted = chartgen("lint", places[-1], "--no-cache", "--output", "json")
    assert [each.exit_code for each in checked] == [1, 1, 1]
    rules = [{each["rule"] for each in findings(ran.stdout)} for ran in checked]
    assert rules[0] == rules[1] == rules[2] != set()
    assert rendered[0].stdout == rendered[1].stdout == rendered[2].stdout
    assert rendered[0].exit_code == 0, rendered[0].stderr
    assert linted.exit_code == 0, linted.stderr
    assert {each["severity"] for each in findings(linted.stdout)} == {"unchecked"}
    assert resource.getrlimit(resource.RLIMIT_FSIZE) == before, "the limit is for Helm alone"


@pytest.mark.usefixtures("built_helm")
@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("nothing-1.0.0.tgz", 1, "is not an archive of a chart"),
        ("oci://not a chart", 2, "is not an address of a chart"),
        ("oci://127.0.0.1:9/charts/x:1.0.0", 3, "127.0.0.1:9"),
    ],
)
def test_what_is_no_packaged_chart_is_one_line(name: str, code: int, told: str) -> None:
    ran = chartgen("check", name)
    assert ran.exit_code == code, ran.stderr
    assert told in ran.stderr
    assert ran.stderr.count("\n") == 1
