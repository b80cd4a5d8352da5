"""Bad input: one line for each problem, with its place, the right exit code, and nothing half-written."""

from __future__ import annotations

import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from userlib import chartgen

from chartgen.composer.library import BUILTIN

MEANT = "did you mean gke-a3mega or gke-a3high or gke-a3ultra?"
DEFECTS = Path(__file__).parents[1] / "data" / "defects"
FILES = ("gpt3-175b.yaml", "gke-a3mega/gpt3-175b.yaml", "site.gke-a3mega.example.yaml")
GPT3 = tuple(word for name in FILES for word in ("-f", f"values/{name}"))


@pytest.fixture(autouse=True)
def _in_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    monkeypatch.delenv("CHARTGEN_PATH", raising=False)


@pytest.mark.parametrize("name", sorted(path.name for path in DEFECTS.iterdir()))
def test_defect_of_a_users_folder(name: str, tmp_path: Path) -> None:
    result = chartgen("build", "broken", "--path", DEFECTS / name, "-d", tmp_path / "charts")
    told = result.stderr.replace(f"{DEFECTS / name}/", "").replace(f"{BUILTIN}/", "chartgen/library/")
    assert f"exit {result.exit_code}\n{told}" == (DEFECTS / name / "expected.txt").read_text()
    assert result.stdout == ""
    assert not (tmp_path / "charts").exists()


def test_every_defect_is_told_in_lines_of_their_own() -> None:
    for path in DEFECTS.glob("*/expected.txt"):
        first, *lines = path.read_text().splitlines()
        assert first in ("exit 1", "exit 2"), path
        assert lines, path
        assert [line for line in lines if not line.startswith("error: ")] == [], path


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["build", "gke-a3mgea"], 2, f"unknown target 'gke-a3mgea'; {MEANT}"),
        (["build", "gke-a3mega/"], 2, f"unknown target 'gke-a3mega/'; {MEANT}"),
        (
            ["show", "../gke-a3mega"],
            2,
            "no definition has the name '../gke-a3mega'; did you mean gke-a3mega or gke-a3high?",
        ),
        (
            ["check", "charts/lab-setup", "--path", str(DEFECTS / "tab")],
            2,
            "unknown target 'charts/lab-setup', and the folder contains no chart; build the chart first",
        ),
        (
            ["build", "our-cloud", "--path", str(DEFECTS / "tab")],
            2,
            "unknown target 'our-cloud'; `chartgen list targets` lists them, yours from targets/",
        ),
        (["build"], 2, "name the targets to build, or use --all; `chartgen list targets` shows them"),
        (
            ["build", "--all", "gke-a3mega"],
            2,
            "name the targets to build, or use --all; `chartgen list targets` shows them",
        ),
        (
            ["build", "gke-a3mega", "--workload", "jobs"],
            2,
            "unknown workload 'jobs'; did you mean job or jobset or rayjob?",
        ),
        (
            ["list", "targets", "--path", "nowhere"],
            2,
            "nowhere: no such folder; --path, CHARTGEN_PATH, chartgen.yaml name folders",
        ),
        (
            ["list", "targets", "--path", "tests"],
            2,
            (
                "tests: is not a chartgen library; "
                "it must contain one of targets, fragments, workloads, launchers, policies"
            ),
        ),
        (["render", "gke-a3mega", "-f", "site.yaml"], 2, "site.yaml: no such file; check the path"),
        (["render", "gke-a3mega", "-f", "values"], 2, "values: is a folder, not a file"),
        (
            ["render", "gke-a3mega", "a" * 54],
            2,
            f"release name '{'a' * 54}' has 54 characters, at most 53 fit; shorten it",
        ),
        (
            ["render", "gke-a3mega", "My_Run"],
            2,
            "'My_Run' cannot be a release name; use lower-case letters, digits and '-', beginning and ending with a letter or digit",  # noqa: E501
        ),
    ],
)
def test_command_line(arguments: list[str], code: int, line: str) -> None:
    result = chartgen(*arguments)
    assert (result.exit_code, result.stderr, result.stdout) == (code, f"error: {line}\n", "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("network:\n  subnetworks[]: vpc1\n", '2:3: unknown key "subnetworks[]" in network'),
        ("node: 4\n", '1:1: unknown key "node"'),
        ("nodes: four\n", '1:1: nodes must be a whole number from 1 to 100000, not "four"'),
        ("nodes: [4\n", "2:1: invalid YAML: did not find expected ',' or ']'"),
        ("nodes: 4\nsteps: 5\nnodes: 5\n", "3:1: duplicate key 'nodes'"),
        ("- nodes: 4\n", "1:1: a values file must be a map of keys, not a list"),
        ("env:\n  GREETING: 5\n", "2:3: env.GREETING must be text, not 5"),
    ],
)
def test_values_file(text: str, problem: str, tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text(text)
    result = chartgen("render", "gke-a3mega", "-f", site)
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {site}:{problem}"), line


@pytest.mark.parametrize(
    ("flag", "hint"),
    [
        ("machineType=a3-highgpu-8g", "a3-highgpu-8g belongs to target gke-a3high"),
        ("launcher=nemo-2", "NeMo 2 is superseded by Megatron-Bridge: use megatron-bridge"),
        ("machineType=a3-megagpu-9g", "did you mean a3-megagpu-8g?"),
    ],
)
def test_a_name_that_is_known_elsewhere(flag: str, hint: str) -> None:
    result = chartgen("check", "gke-a3mega", "--set", flag)
    assert (result.exit_code, hint in result.stdout) == (1, True), result.stdout


def test_all_problems_of_a_values_file_are_told_at_once(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    site.write_text("nodes: four\nnetwork:\n  subnetworks: [vpc1]\nprecison: fp8\n")
    result = chartgen("render", "gke-a3mega", "-f", site)
    assert [line.split(": ")[1] for line in result.stderr.splitlines()] == [
        f"{site}:{n}" for n in ("1:1", "3:3", "4:1")
    ]


def snapshot(folder: Path) -> dict[str, bytes | str]:
    """All that is in a folder, with the contents of files and the ends of links."""
    found = sorted(folder.rglob("*"))
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else ""
        for path in found
    }


def a_file(folder: Path) -> None:
    (folder / "gke-a3mega").write_text("mine\n")


def foreign_files(folder: Path) -> None:
    (folder / "gke-a3mega").mkdir()
    (folder / "gke-a3mega" / "notes.txt").write_text("mine\n")


def chart_with_a_file_of_the_user(folder: Path) -> None:
    assert chartgen("build", "gke-a3mega", "-d", folder).exit_code == 0
    (folder / "gke-a3mega" / "values.yaml").write_text("nodes: 5\n")
    (folder / "gke-a3mega" / "site.yaml").write_text("nodes: 4\n")


@pytest.mark.parametrize(
    ("prepare", "problem"),
    [
        (a_file, "is not a folder; nothing was written; move it, or choose another folder"),
        (
            foreign_files,
            "contains notes.txt, not part of the chart; nothing was written; move it, or choose another folder",
        ),
        (
            chart_with_a_file_of_the_user,
            "contains site.yaml, not part of the chart; nothing was written; move it, or choose another folder",
        ),
    ],
)
def test_destination_that_is_in_use(prepare: object, problem: str, tmp_path: Path) -> None:
    assert callable(prepare)
    prepare(tmp_path)
    before = snapshot(tmp_path)
    result = chartgen("build", "gke-a3mega", "-d", tmp_path)
    assert (result.exit_code, result.stderr) == (1, f"error: {tmp_path / 'gke-a3mega'}: {problem}\n")
    assert snapshot(tmp_path) == before


def test_destination_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "charts").write_text("mine\n")
    result = chartgen("build", "gke-a3mega", "-d", tmp_path / "charts")
    place = tmp_path / "charts" / "gke-a3mega"
    assert result.exit_code == 1
    assert result.stderr == f"error: {place}: cannot be written: File exists; choose another folder\n"
    assert snapshot(tmp_path) == {"charts": b"mine\n"}


def test_destination_that_nobody_may_write() -> None:
    """Not even root may write into /proc."""
    result = chartgen("build", "gke-a3mega", "-d", "/proc/charts")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: /proc/charts/gke-a3mega: cannot be written: ")


def test_destination_that_is_full_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chartgen("build", "gke-a3mega", "-d", tmp_path).exit_code == 0
    (tmp_path / "gke-a3mega" / "values.yaml").write_text("stale: true\n")
    before = snapshot(tmp_path)

    def full(_self: Path, *_arguments: object, **_options: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    result = chartgen("build", "gke-a3mega", "-d", tmp_path)
    assert result.exit_code == 1
    assert "cannot be written: No space left on device" in result.stderr
    assert snapshot(tmp_path) == before


def test_destination_that_is_a_link_within_its_folder_is_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "charts" / "elsewhere"
    elsewhere.mkdir(parents=True)
    (tmp_path / "charts" / "gke-a3mega").symlink_to(elsewhere)
    for expected in ("written", "unchanged"):
        result = chartgen("build", "gke-a3mega", "-d", tmp_path / "charts")
        assert result.stdout.splitlines()[0] == f"{tmp_path / 'charts' / 'gke-a3mega'}: {expected}"
    assert (tmp_path / "charts" / "gke-a3mega").is_symlink()
    assert (elsewhere / "Chart.yaml").is_file()


def test_one_wrong_target_of_several_writes_none(tmp_path: Path) -> None:
    result = chartgen("build", "gke-a3mega", "nowhere", "-d", tmp_path / "charts")
    assert result.exit_code == 2
    assert not (tmp_path / "charts").exists()


def test_helm_is_missing(tmp_path: Path) -> None:
    nothing = {"PATH": str(tmp_path), "CHARTGEN_CACHE": str(tmp_path), "CHARTGEN_HELM": None}
    result = chartgen("render", "gke-a3mega", env=nothing)
    assert (result.exit_code, result.stdout) == (3, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: helm is not installed; ")


def test_helm_is_too_old(tmp_path: Path) -> None:
    helm = tmp_path / "helm"
    helm.write_text("#!/bin/sh\necho v3.10.3\n")
    helm.chmod(helm.stat().st_mode | stat.S_IXUSR)
    only = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CHARTGEN_HELM": None, "CHARTGEN_CACHE": str(tmp_path / "cache")}
    result = chartgen("render", "gke-a3mega", env=only)
    line = f"error: {helm} is Helm 3.10.3, but 3.18 or newer is needed; upgrade Helm\n"
    assert (result.exit_code, result.stderr, result.stdout) == (3, line, "")


def test_cluster_is_out_of_reach(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]  # held, so that nobody else listens there
        kubeconfig = tmp_path / "config"
        kubeconfig.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: gone\n"
            f"clusters: [{{name: gone, cluster: {{server: 'http://127.0.0.1:{port}'}}}}]\n"
            "contexts: [{name: gone, context: {cluster: gone, user: gone}}]\nusers: [{name: gone, user: {}}]\n"
        )
        result = chartgen("status", "my-run", env={"KUBECONFIG": str(kubeconfig)})
    assert result.exit_code == 3
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: cluster 'gone' at http://127.0.0.1:{port} does not answer (")
    assert line.endswith("; check that it runs and that `kubectl --context gone version` answers")


def test_a_process_says_the_same_without_a_traceback(tmp_path: Path) -> None:
    folder = DEFECTS / "tab"
    argv = [sys.executable, "-m", "chartgen", "build", "broken", "--path", str(folder), "-d", str(tmp_path / "charts")]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr == f"error: {folder}/targets/broken.yaml:13:1: a tab cannot indent YAML; use spaces\n"
