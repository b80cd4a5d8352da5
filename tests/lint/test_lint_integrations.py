"""What other repositories take from here, run as they run it: GitHub Action, GitLab job, pre-commit hooks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from lint_seeds import SEEDS, plant

from chartgen.helm.program import find_helm
from chartgen.helm.yaml import load, load_file

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "how-to" / "lint-in-ci.md"
SEED = next(seed for seed in SEEDS if seed["rule"] == "names-fit")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a chart that has one defect."""
    plant(SEED, tmp_path / "charts" / "mine")
    return tmp_path


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A shell of its own: pip installs without a network into a folder, with the build backend that is here."""
    home = tmp_path_factory.mktemp("home")
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_TARGET": str(home / "packages")}
    own = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "CHARTGEN_HELM": str(find_helm().executable),
        "CHARTGEN_CACHE": str(home / "cache"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    return {**os.environ, **own, **pip}


def step(script: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub's runner and GitLab's do: bash, which ends at the first command that fails."""
    argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def installed(environment: dict[str, str]) -> dict[str, str]:
    """A runner on which the action's first step has installed chartgen."""
    (install,) = action(ROOT, environment, slice(1))
    assert install.returncode == 0, install.stderr
    return environment


def action(
    repository: Path, env: dict[str, str], steps: slice = slice(1, None), **inputs: str
) -> list[subprocess.CompletedProcess[str]]:
    """Run steps of action.yml, by default those after the installation, with expressions filled in as GitHub does."""
    meta: Any = load_file(ROOT / "action.yml").data
    given = {name: inputs.get(name, entry["default"]) for name, entry in meta["inputs"].items()}
    ran = []
    for each in meta["runs"]["steps"][steps]:
        assert each["shell"] == "bash"
        assert "${{" not in each["run"]
        filled = {
            name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda match: given[match[1]], text)
            for name, text in each.get("env", {}).items()
        }
        # Installing with hashes takes every package from where the runner's pip takes it.
        online = {key: value for key, value in env.items() if key != "PIP_NO_INDEX"}
        runner = {"RUNNER_TEMP": str(temporary(env)), "GITHUB_OUTPUT": str(temporary(env) / "output")}
        ran.append(step(each["run"], repository, {**online, **filled, **runner, "GITHUB_ACTION_PATH": str(ROOT)}))
    return ran


def temporary(env: dict[str, str]) -> Path:
    """Return the runner's own folder."""
    folder = Path(env["CHARTGEN_CACHE"]).with_name("runner")
    folder.mkdir(exist_ok=True)
    return folder


def written(env: dict[str, str]) -> Any:
    """Return the run of the SARIF file that the action names as its output."""
    name, _, file = (temporary(env) / "output").read_text().splitlines()[-1].partition("=")
    assert name == "sarif"
    assert Path(file).parent == temporary(env)
    (run,) = json.loads(Path(file).read_text())["runs"]
    return run


@pytest.mark.threat(10)
def test_github_action_installs_by_hashes() -> None:
    """No package without a hash, the build backend included; chartgen itself is the commit that the workflow names."""
    meta: Any = load_file(ROOT / "action.yml").data
    install = meta["runs"]["steps"][0]
    commands = [line for line in install["run"].splitlines() if "pip install" in line]
    assert len(commands) == 2
    for command in commands:
        words = set(command.split())
        assert "--require-hashes" in words or {"--no-deps", "--no-build-isolation", "."} <= words, command


@pytest.mark.threat(10)
@pytest.mark.helm
def test_github_action_fails_and_shows_the_finding(repository: Path, installed: dict[str, str]) -> None:
    write, lint = action(repository, installed, charts="charts")
    assert (write.returncode, lint.returncode) == (0, 1), write.stderr
    assert lint.stdout.startswith("::error file=charts/mine/templates/job.yaml,line=5,title=names-fit::Job lint-")
    (place,) = [each["locations"][0]["physicalLocation"] for each in written(installed)["results"]]
    assert place == {"artifactLocation": {"uri": "charts/mine/templates/job.yaml"}, "region": {"startLine": 5}}


@pytest.mark.helm
def test_github_action_passes_with_arguments(repository: Path, installed: dict[str, str]) -> None:
    *_, lint = action(repository, installed, charts="charts", arguments="--ignore names-fit")
    assert (lint.returncode, lint.stdout) == (0, "")
    assert written(installed)["results"] == []


@pytest.mark.threat(5)
@pytest.mark.helm
def test_github_action_and_gitlab_job_replace_no_program(
    repository: Path, environment: dict[str, str], installed: dict[str, str]
) -> None:
    """A pull request with links named as the reports, to a program that the runner may write."""
    program = temporary(environment) / "program"
    program.write_text("#!/bin/sh\n")
    for name in ("chartgen.sarif", "chartgen.xml"):
        (repository / name).symlink_to(program)
    _, lint = action(repository, installed, charts="charts")
    *_, junit = gitlab(repository, environment)
    assert (lint.returncode, junit.returncode, program.read_text()) == (1, 1, "#!/bin/sh\n")
    assert "chartgen.xml: a link leads out of its folder" in junit.stderr


@pytest.mark.threat(10)
@pytest.mark.helm
def test_github_action_takes_every_line(repository: Path, installed: dict[str, str]) -> None:
    plant(SEED, repository / "more" / "other")
    *_, lint = action(repository, installed, charts="charts\nmore\n", arguments="--select\nnames-fit\n--strict")
    assert lint.returncode == 1
    places = [line.partition("file=")[2].partition(",")[0] for line in lint.stdout.splitlines()]
    assert places == ["charts/mine/templates/job.yaml", "more/other/templates/job.yaml"]


@pytest.mark.threat(10)
@pytest.mark.helm
def test_github_action_shows_what_was_not_checked(repository: Path, installed: dict[str, str]) -> None:
    plant(SEED, repository / "more" / "other")
    (repository / "chartgen.toml").write_text('[lint]\ncharts = ["charts/mine"]\nignore = ["names-fit"]\n')
    write, lint = action(repository, installed)
    assert (write.returncode, lint.returncode) == (0, 3), write.stderr
    assert "file=more/other" in lint.stdout
    assert [each["ruleId"] for each in written(installed)["results"]] == ["charts-are-linted"]


@pytest.mark.threat(10)
@pytest.mark.helm
def test_github_action_takes_charts_for_no_flags(repository: Path, installed: dict[str, str]) -> None:
    *_, lint = action(repository, installed, charts="--select=none")
    assert lint.returncode == 2
    assert "'--select=none' is neither a folder" in lint.stderr


@pytest.mark.threat(10)
@pytest.mark.helm
def test_github_action_does_not_run_what_an_input_holds(repository: Path, installed: dict[str, str]) -> None:
    *_, lint = action(repository, installed, charts="$(touch hacked) ;touch hacked")
    assert lint.returncode == 2
    assert not (repository / "hacked").exists()


@pytest.mark.helm
def test_gitlab_job(repository: Path, environment: dict[str, str]) -> None:
    install, lint = gitlab(repository, environment)
    assert (install.returncode, lint.returncode) == (0, 1), install.stderr + lint.stderr
    suite = ET.parse(repository / "chartgen.xml").getroot()[0]  # noqa: S314
    assert [(case.get("classname"), case.get("name")) for case in suite] == [
        ("charts/mine/templates/job.yaml", "names-fit")
    ]


def gitlab(repository: Path, environment: dict[str, str]) -> list[subprocess.CompletedProcess[str]]:
    """Run the lines of the page's job, whose report is chartgen.xml."""
    snippet = re.search(r"^## GitLab\n\n```yaml\n(.*?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert snippet
    job: Any = load(snippet[1], PAGE).data
    assert job["chartgen"]["artifacts"]["reports"]["junit"] == "chartgen.xml"
    env = {**environment, "CHARTGEN": str(ROOT)}
    return [step(line, repository, env) for line in job["chartgen"]["script"]]


def hooks(
    repository: Path, env: dict[str, str], *names: str, only_staged: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run hooks of .pre-commit-hooks.yaml with pre-commit, from the chartgen that is installed here."""
    published: Any = load_file(ROOT / ".pre-commit-hooks.yaml").data
    chosen = [{**hook, "language": "system"} for hook in published if hook["id"] in names]
    config = {"repos": [{"repo": "local", "hooks": chosen}]}
    (repository / ".pre-commit-config.yaml").write_text(json.dumps(config))
    git = ["git", "-c", "init.defaultBranch=main"]
    for argv in ([*git, "init", "--quiet"], [*git, "add", "--all"]):
        subprocess.run(argv, cwd=repository, env=env, check=True)
    argv = [sys.executable, "-m", "pre_commit", "run", "--color", "never", *([] if only_staged else ["--all-files"])]
    home = {"PRE_COMMIT_HOME": str(repository.parent / "pre-commit")}
    return subprocess.run(argv, cwd=repository, env={**env, **home}, capture_output=True, text=True, check=False)


def test_hooks_are_a_manifest_that_pre_commit_takes() -> None:
    argv = [sys.executable, "-m", "pre_commit", "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")]
    assert subprocess.run(argv, check=False).returncode == 0


@pytest.mark.helm
def test_lint_hook(repository: Path, environment: dict[str, str]) -> None:
    ran = hooks(repository, environment, "chartgen-lint")
    assert ran.returncode == 1
    assert "charts/mine/templates/job.yaml" in ran.stdout
    assert "[names-fit]" in ran.stdout
    shutil.rmtree(repository / "charts" / "mine")
    plant({"rule": "none"}, repository / "charts" / "mine")
    assert hooks(repository, environment, "chartgen-lint").returncode == 0


@pytest.mark.threat(15)
def test_lint_hook_runs_whatever_file_of_a_chart_changes(repository: Path, environment: dict[str, str]) -> None:
    hooks(repository, environment, "chartgen-lint")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=a"]
    subprocess.run(git, cwd=repository, env=environment, check=True)
    (added := repository / "charts" / "mine" / "crds" / "pod.yaml").parent.mkdir()
    added.write_text("{}")
    assert "no files to check" not in hooks(repository, environment, "chartgen-lint", only_staged=True).stdout


@pytest.mark.helm
def test_build_hook(tmp_path: Path, environment: dict[str, str]) -> None:
    published: Any = load_file(ROOT / ".pre-commit-hooks.yaml").data
    entry = next(hook for hook in published if hook["id"] == "chartgen-build-check")
    assert (
        subprocess.run(["chartgen", "build", "onprem-p8000"], cwd=tmp_path, env=environment, check=False).returncode
        == 0
    )
    words = [*entry["entry"].split(), "onprem-p8000"]
    assert subprocess.run(words, cwd=tmp_path, env=environment, check=False).returncode == 0
    (tmp_path / "charts" / "onprem-p8000" / "values.yaml").write_text("nodes: 1\n")
    assert subprocess.run(words, cwd=tmp_path, env=environment, check=False, capture_output=True).returncode == 1
