"""`chartgen.yaml` of a folder names target, preset and site file once for the commands that are called there."""

from __future__ import annotations

from pathlib import Path

import pytest
from answers import findings
from userlib import chartgen, write

from chartgen.composer.presets import VALUES
from chartgen.helm.yaml import load_file
from chartgen.kube.manifest_walk import texts


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert chartgen("init", "gke-a3mega", "--no-ask", "--preset", "gpt3-175b").exit_code == 0
    return tmp_path


def test_init_names_target_preset_and_site_file(folder: Path) -> None:
    expected = {"target": "gke-a3mega", "preset": "gpt3-175b", "values": ["site.yaml"]}
    assert load_file(folder / "chartgen.yaml").data == expected


def test_check_without_arguments_checks_the_runs_of_the_folder() -> None:
    result = chartgen("check")
    assert result.exit_code == 0
    assert "gpt3-175b" in result.stderr
    assert "site.yaml" in result.stderr
    assert chartgen("check", "--set", "nodes=31").exit_code == 1  # which the preset's layout does not divide


def test_estimate_without_arguments_estimates_the_runs_of_the_folder() -> None:
    result = chartgen("estimate")
    assert result.exit_code == 0
    assert result.stdout.startswith("gke-a3mega: 256 x h100")
    assert "target gke-a3mega, preset gpt3-175b, values site.yaml" in result.stderr


def test_one_argument_that_is_no_target_is_the_release() -> None:
    result = chartgen("render", "one-of-mine")
    assert result.exit_code == 0
    assert "name: one-of-mine-gke-a3mega" in result.stdout
    assert chartgen("install", "gke-a3mega").exit_code == 2  # the release is missing


def test_arguments_win_over_the_folder(folder: Path) -> None:
    write(folder, {"own.yaml": "nodes: 3\n"})
    assert "gpt3-175b" not in chartgen("check", "--preset", "llama3-70b").stderr
    shown = chartgen("check", "-f", "own.yaml")
    assert "not values site.yaml" in shown.stderr
    assert "site.yaml" not in shown.stdout
    assert "site.yaml" not in chartgen("check", "-f", "own.yaml", "-f", "site.yaml").stderr


def test_a_program_of_ones_own_brings_its_own_model(folder: Path) -> None:
    write(folder, {"code/train.py": "print()\n"})
    shown = chartgen("check", "--code", "code", "--set", "launchers.torchrun.image=a:1", "--output", "json")
    assert shown.exit_code == 0, shown.stdout
    assert "gpt3-175b" not in shown.stderr
    assert "site.yaml" in shown.stderr
    assert "--code code" in {each["path"] for each in findings(shown.stdout)}


def test_another_target_gets_nothing_of_the_folder() -> None:
    assert "chartgen.yaml" not in chartgen("check", "gke-a3ultra").stderr


def test_lint_does_not_use_what_a_pull_request_may_write(folder: Path) -> None:
    write(folder, {"charts/x/Chart.yaml": "apiVersion: v2\nname: x\nversion: 0.1.0\n"})
    assert "gpt3-175b" not in chartgen("lint", "charts/x").output


@pytest.mark.threat(5)
def test_values_files_of_the_folder_lie_below_it(folder: Path) -> None:
    (folder / "link.yaml").symlink_to("/etc/hostname")
    for place in ("../own.yaml", "/etc/hostname", "link.yaml"):
        write(folder, {"chartgen.yaml": f"target: gke-a3mega\nvalues: [{place}]\n"})
        assert (result := chartgen("check")).exit_code == 2
        assert "chartgen.yaml:2" in result.stderr


def test_an_unknown_key_or_a_preset_without_target_is_refused(folder: Path) -> None:
    for text, code in (("targets: gke-a3mega\n", 1), ("preset: gpt3-175b\n", 2)):
        write(folder, {"chartgen.yaml": text})
        assert (result := chartgen("check", "gke-a3mega")).exit_code == code
        assert "chartgen.yaml:1" in result.stderr


def test_a_name_of_the_example_is_warned_of_at_its_line(folder: Path) -> None:
    (found,) = findings(chartgen("check", "--output", "json").stdout)
    line = (folder / "site.yaml").read_text().splitlines().index('  outputs: {from: "gs://my-logs"}') + 1
    assert (found["rule"], found["severity"]) == ("placeholders-are-replaced", "warning")
    assert (found["path"], found["line"]) == ("site.yaml", line)


def test_what_a_run_does_not_use_may_be_the_examples(folder: Path) -> None:
    """The site file of EKS has images of two launchers and a file system for the setup chart."""
    (folder / "chartgen.yaml").unlink()
    assert chartgen("init", "eks-p5", "--no-ask", "--to", "eks.yaml").exit_code == 0
    options = ("-f", "eks.yaml", "--set", "launcher=torchrun,launchers.torchrun.image=mine:1", "--output", "json")
    assert "placeholders-are-replaced" not in chartgen("check", "eks-p5", *options).stdout
    result = chartgen("check", "eks-p5", *options[:2], "--set", "launcher=torchrun", "--output", "json")
    assert "placeholders-are-replaced" in [each["rule"] for each in findings(result.stdout)]


@pytest.mark.parametrize("example", sorted(VALUES.glob("site.*.example.yaml")), ids=lambda file: file.name)
def test_each_placeholder_is_in_its_example(example: Path) -> None:
    content = [text for _, text in texts(load_file(example).data)]
    for line in example.read_text().splitlines():
        for word in line.removeprefix("# Placeholders: ").split(", ") if line.startswith("# Placeholders") else ():
            assert any(word in text for text in content), word


def test_check_shows_the_plan_and_what_was_checked() -> None:
    shown = chartgen("check").stderr
    assert "32 x a3-megagpu-8g = 256 GPUs" in shown
    assert "tensor 4 x pipeline 16 x virtualPipeline 3 x data 4" in shown
    assert all(label in shown for label in ("image", "queue", "outputs", "checkpoints", "checked"))
    assert "machines" not in chartgen("check", "--set", "nodes=31").stderr


def test_lint_shows_how_much_it_checked(folder: Path) -> None:
    chart = {"Chart.yaml": "apiVersion: v2\nname: x\nversion: 0.1.0\n", "templates/a.yaml": "kind: ConfigMap\n"}
    write(folder, {f"charts/x/{name}": text for name, text in chart.items()})
    versions = ("--kubernetes", "1.32", "--kubernetes", "1.34", "--no-cache")
    shown = chartgen("lint", "charts/x", *versions).stderr
    assert "1 chart" in shown
    assert "2 renders" in shown
    assert "1.32 and 1.34" in shown
