"""Where definitions are found: chartgen's own, the user's folders, and installed packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from answers import findings
from userlib import chartgen, composed, library, write

from chartgen.composer.definition import definition_schema
from chartgen.composer.library import BUILTIN, KINDS, Library, open_library
from chartgen.composer.target import LAUNCHERS, load_target
from chartgen.errors import ChartgenError, UsageError
from chartgen.helm.schema import check_sound, validate_schema
from chartgen.helm.yaml import load_file
from chartgen.linter.values_coverage import documents

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _without_the_developers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHARTGEN_PATH", raising=False)


def packaged(folder: Path, monkeypatch: pytest.MonkeyPatch, value: str = "our_charts") -> Path:
    """Install a package with a target and a fragment into a folder on sys.path, as pip would."""
    about = "our_charts-1.0.dist-info"
    library(folder / "our_charts", {})
    write(
        folder,
        {
            "our_charts/__init__.py": "",
            f"{about}/METADATA": "Metadata-Version: 2.1\nName: our-charts\nVersion: 1.0\n",
            f"{about}/entry_points.txt": f"[chartgen.library]\nours = {value}\n",
        },
    )
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "our_charts", raising=False)
    return folder / "our_charts"


def test_own_definitions_of_every_kind() -> None:
    found = open_library()
    assert found.find("target", "gke-a3mega") == BUILTIN / "targets" / "gke-a3mega.yaml"
    assert found.find("fragment", "kueue") == BUILTIN / "fragments" / "kueue"
    assert found.names("workload") == ["job", "jobset", "mpijob", "pytorchjob", "rayjob", "trainjob", "volcano-job"]
    assert "nemo-1" in found.names("launcher")


def test_a_target_that_names_no_launcher_offers_each_of_chartgens() -> None:
    found = open_library()
    assert sorted(LAUNCHERS) == found.names("launcher")
    for name in found.names("target"):
        assert tuple(launcher.name for launcher in load_target(name).every_launcher) == LAUNCHERS, name


def test_an_installed_wheel_builds_every_chart(tmp_path: Path) -> None:
    """pip leaves compiled files beside every Python file, also in the folders of launchers."""
    folder = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--compile"]
    subprocess.run([*pip, "--target", str(folder), str(ROOT)], check=True)
    program = "import chartgen, sys; assert chartgen.__file__.startswith(sys.path[0]); chartgen.cli.main()"
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import chartgen.cli; {program}"
    build = [sys.executable, "-c", code, "build", "--all", "--destination", str(tmp_path / "charts")]
    subprocess.run(build, cwd=tmp_path, check=True)
    assert {path.name for path in (tmp_path / "charts").iterdir()} == {
        path.name for path in (ROOT / "charts").iterdir()
    }


def test_folders_of_the_command_line_and_of_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = library(tmp_path / "first", {}), tmp_path / "second"
    write(second, {"targets/other.yaml": ""})
    monkeypatch.setenv("CHARTGEN_PATH", f"{second}:")
    found = open_library([first])
    assert found.names("target") == sorted([*open_library().names("target"), "box"])
    assert found.find("fragment", "mine") == first / "fragments" / "mine"
    assert found.is_builtin(found.find("fragment", "storage"))
    assert not found.is_builtin(found.find("fragment", "mine"))


def test_one_folder_named_twice_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library(tmp_path / "ours", {})
    (tmp_path / "link").symlink_to(tmp_path / "ours")
    monkeypatch.setenv("CHARTGEN_PATH", str(tmp_path / "ours"))
    monkeypatch.chdir(tmp_path)
    found = open_library([Path("ours"), tmp_path / "link", BUILTIN])
    assert len(found.roots) == 2
    assert found.find("target", "box") == tmp_path / "ours" / "targets" / "box.yaml"


def test_a_path_into_chartgen_and_out_again_is_not_trusted(tmp_path: Path) -> None:
    ours = library(tmp_path, {})
    detour = BUILTIN / Path(*[".."] * len(BUILTIN.parts[1:])) / ours.relative_to("/")
    found = open_library([detour])
    assert not found.is_builtin(found.find("fragment", "mine"))


def test_names_skip_what_editors_and_systems_leave(tmp_path: Path) -> None:
    library(tmp_path, {})
    write(tmp_path, {"targets/.#box.yaml": "", "targets/box.yaml~": "", "fragments/.cache/fragment.yaml": ""})
    (tmp_path / "targets" / "folder.yaml").mkdir()
    (tmp_path / "targets" / "gone.yaml").symlink_to("nowhere")
    found = open_library([tmp_path])
    assert found.names("target") == sorted([*open_library().names("target"), "box"])
    assert ".cache" not in found.names("fragment")


@pytest.mark.parametrize("name", ["", ".", "..", "../targets/box", "box.yaml", "/etc/passwd", "bo\0x"])
def test_names_are_not_paths(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown target"):
        open_library([library(tmp_path, {})]).find("target", name)


def test_of_two_definitions_of_one_name_the_later_folder_s_counts(tmp_path: Path) -> None:
    first, second = library(tmp_path / "first", {}), library(tmp_path / "second", {})
    assert open_library([first, second]).find("target", "box") == second / "targets/box.yaml"


def test_an_own_name_wins_over_chartgen_s_and_one_line_reports_it(tmp_path: Path) -> None:
    folder = library(tmp_path, {"shared-memory/env.yaml": "- name: OURS\n  value: x\n"}, "shared-memory")
    ran = chartgen("build", "box", "--path", folder, "-d", tmp_path / "charts", "--set", "launcher=nemo-1")
    assert ran.exit_code == 0, ran.output
    assert "OURS" in (tmp_path / "charts/box/templates/_env.tpl").read_text()
    lines = [line for line in ran.stderr.splitlines() if str(folder / "fragments/shared-memory") in line]
    assert len(lines) == 1


def test_another_suffix_is_pointed_out(tmp_path: Path) -> None:
    write(tmp_path, {"targets/mine.yml": ""})
    with pytest.raises(ChartgenError, match=r"mine.yml: is not read; rename it to mine.yaml"):
        open_library([tmp_path]).find("target", "mine")


def test_folders_that_are_no_library(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError) as caught:
        open_library([tmp_path / "empty", tmp_path / "gone"])
    assert [str(problem) for problem in caught.value.problems] == [
        f"{tmp_path}/empty: is not a chartgen library; it must contain one of {', '.join(KINDS.values())}",
        f"{tmp_path}/gone: no such folder; --path, CHARTGEN_PATH, chartgen.yaml name folders",
    ]


def test_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = packaged(tmp_path, monkeypatch)
    found = open_library()
    assert found.find("target", "box") == folder / "targets" / "box.yaml"
    assert "mine" in found.names("fragment")
    assert chartgen("build", "box", "-d", tmp_path / "charts").exit_code == 0
    assert "our_charts" not in sys.modules, "a library's code has no part in a build"


def test_installed_package_is_untrusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = packaged(tmp_path, monkeypatch)
    write(folder, {"fragments/mine/env.yaml": "- name: A\n  value: <%= target.path %>\n"})
    result = chartgen("build", "box", "-d", tmp_path / "charts")
    assert result.exit_code == 1
    assert "fragments/mine/env.yaml:2" in result.stderr


@pytest.mark.parametrize("value", ["no_such_package", "no_such_package.charts", "json.tool"])
def test_installed_package_that_is_broken(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged(tmp_path, monkeypatch, value)
    assert chartgen("build", "gke-a3mega", "-d", tmp_path / "charts").exit_code == 0
    result = chartgen("build", "box", "-d", tmp_path / "charts")
    assert result.stderr == (
        f"error: entry point 'ours' of group chartgen.library: {value!r} is not a package; "
        "correct what declares it, or uninstall it\n"
    )


def test_a_users_gpu_model(tmp_path: Path) -> None:
    """Its memory and number formats are checked as those of chartgen's models are."""
    library(tmp_path, {})
    target = tmp_path / "targets/box.yaml"
    row = (
        "{memory: 20, tflops: {bf16: 100}, computeCapability: '7.5', nvlink: 1, precisions: [fp16, fp32], sources: [s]}"
    )
    target.write_text(target.read_text().replace("h100-80gb", "own-20gb") + f"gpus:\n  own-20gb: {row}\n")
    sets = ("--set", "launchers.nemo-1.image=nvcr.io/nvidia/nemo:25.07", "--preset", "llama3-70b", "--path", tmp_path)
    result = chartgen("check", "box", *sets, "--set", "nodes=8", "--output", "json")
    assert {"layout-fits", "precision-of-the-gpu"} <= {each["rule"] for each in findings(result.stdout)}
    known = target.read_text()
    target.write_text(known.replace("[fp16, fp32]", "[fp16, fp33]").replace("{bf16: 100}", "{bf61: 100}"))
    told = chartgen("build", "box", "--path", tmp_path).stderr
    assert "unknown format 'bf61'; did you mean bf16?" in told
    assert "unknown format 'fp33'; did you mean" in told
    target.write_text(known.replace("own-20gb", "h200-141gb"))
    assert "already knows the GPU model 'h200-141gb'" in chartgen("build", "box", "--path", tmp_path).stderr


def test_a_users_values_are_described_and_used(tmp_path: Path) -> None:
    schema = '{"properties": {"pool": {"properties": {"name": {"type": "string"}, "zone": {"type": "string"}}}}}'
    values = "pool:\n  # -- Pool of the machines\n  name: a\n  zone: b\n"
    selector = "example.com/pool: {{ .Values.pool.name }}\n"
    files = {"mine/values.yaml": values, "mine/values.schema.json": schema, "mine/nodeSelector.yaml": selector}
    found = [(each.rule, each.key) for each in documents(composed(library(tmp_path, files)))]
    assert sorted(found) == [("readme-names-values", "pool.zone"), ("values-are-used", "pool.zone")]


def test_a_users_launcher_and_workload_kind(tmp_path: Path) -> None:
    library(tmp_path, {})
    target = (tmp_path / "targets/box.yaml").read_text()
    job = BUILTIN / "workloads" / "job"
    files = {
        f"workloads/our-job/{path.relative_to(job)}": path.read_text() for path in job.rglob("*") if path.is_file()
    }
    files["workloads/our-job/validate.tpl"] = "{{/* of <%= target.name %> */}}\n"
    files["launchers/ours/launcher.yaml"] = (
        "description: Our program\ntask: train\nprocesses: gpu\nprogram: /opt/train.py\nimage: example.com/ours:1\n"
        "precisions: [bf16]\nsources: [us]\n"
    )
    files["launchers/ours/args.yaml"] = "- --steps={{ .Values.steps }}\n"
    files["targets/box.yaml"] = target.replace("[nemo-1]", "[ours]").replace("jobset", "our-job")
    write(tmp_path, files)
    chart = composed(tmp_path)
    assert "kind: Job\n" in chart.files["templates/our-job.yaml"]
    assert "{{/* of box */}}" in chart.files["templates/_validate.tpl"]
    assert "launcher: ours  #" in chart.files["values.yaml"]


def test_library_without_folders_is_chartgens_own() -> None:
    assert open_library() == Library((BUILTIN,))


def test_the_schemas_of_definitions_accept_all_of_chartgens_own() -> None:
    files = {
        "target": BUILTIN.glob("targets/*.yaml"),
        **{kind: BUILTIN.glob(f"{kind}s/*/{kind}.yaml") for kind in ("fragment", "launcher", "workload")},
        "rule": BUILTIN.rglob("rules.yaml"),
    }
    for kind, paths in files.items():
        schema = definition_schema(kind)
        assert check_sound(schema) == []
        whole = {"type": "array", "items": schema} if kind == "rule" else schema
        for path in paths:
            assert validate_schema(load_file(path).data, whole, lambda _: ("", 0, 0)) == [], path
