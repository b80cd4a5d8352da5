"""The command line: help, output for people and for programs, exit codes, completion."""

from __future__ import annotations

import difflib
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from answers import answer, findings
from userlib import chartgen, library

from chartgen.cli import main

ROOT = Path(__file__).parents[2]
# What a help text has no use for: each costs more than the whole of it.
HEAVY = ("jinja2", "jsonschema", "lightkube", "pyhelm3", "pydantic", "ruamel.yaml", "asyncio", "importlib.metadata")


@pytest.fixture(autouse=True)
def _without_the_developers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHARTGEN_PATH", raising=False)
    monkeypatch.chdir(ROOT)


def commands(
    group: click.Command = main, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands and groups, each with the words that are typed for it."""
    yield words, group
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from commands(command, (*words, name))


COMMANDS = dict(commands())


def process(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "chartgen", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env={**os.environ, **env})


# -- help


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_shows_how_a_command_is_typed(words: tuple[str, ...]) -> None:
    result = chartgen(*words, "--help")
    assert result.exit_code == 0
    assert chartgen(*words, "-h").output == result.output
    is_group = isinstance(COMMANDS[words], click.Group)
    if words and is_group:
        return
    examples = re.findall(r"^ +(chartgen [^\n]*)$", result.output.partition("Example")[2], re.MULTILINE)
    assert examples, "no example"
    assert any(line.startswith(" ".join(("chartgen", *words))) for line in examples)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_examples_are_understood(words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chartgen.yaml").write_text("target: gke-a3mega\n")
    monkeypatch.chdir(tmp_path)  # where `chartgen check` alone means the target
    text = chartgen(*words, "--help").output.partition("Example")[2].replace("\\\n", "")
    for example in re.findall(r"^ +chartgen ([^\n$]*)$", text, re.MULTILINE):
        names = shlex.split(re.split(" && | > ", example)[0])
        context = main.make_context("chartgen", list(names), resilient_parsing=True)
        command: click.Command | None = main
        while isinstance(command, click.Group):
            command = command.get_command(context, names.pop(0))
        assert command is not None
        assert command.make_context("command", names, parent=context).params


def test_the_list_of_commands_has_the_whole_summary_of_each() -> None:
    """It is read from their files; click would import them all, and cut the summaries."""
    listed = " ".join(chartgen("--help").output.split())
    summaries = {
        words[0]: inspect.cleandoc(each.help or "").partition("\n")[0]
        for words, each in COMMANDS.items()
        if len(words) == 1
    }
    assert [name for name, text in summaries.items() if f" {name} {text}" not in listed] == []


def test_every_option_is_explained() -> None:
    for words, command in COMMANDS.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{' '.join(words)} {parameter.name}"


def test_help_of_every_command_is_light() -> None:
    script = (
        "import sys; from click.testing import CliRunner; from chartgen.cli import main\n"
        f"for words in {[*COMMANDS]!r}: assert CliRunner().invoke(main, [*words, '--help']).exit_code == 0\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.helm
def test_a_render_loads_neither_pyhelm3_nor_what_it_needs() -> None:
    site = "values/site.gke-a3mega.example.yaml"
    script = (
        "import sys; from click.testing import CliRunner; from chartgen.cli import main\n"
        f"assert CliRunner().invoke(main, ['render', 'gke-a3mega', '-f', '{site}']).exit_code == 0\n"
        "print([name for name in ('pyhelm3', 'pydantic', 'asyncio') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.helm
def test_helm_runs_without_the_client_of_pyhelm3_and_pydantic() -> None:
    script = (
        "import sys; from chartgen.helm.program import find_helm\n"
        "assert find_helm().run(['version', '--short']).startswith('v')\n"
        "print([name for name in ('pyhelm3', 'pydantic') if name in sys.modules])\n"
        "import pyhelm3; print(pyhelm3.Client.__name__)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\nClient\n"


def test_progress_of_a_run_loads_no_checks_of_values() -> None:
    """They are a third of its modules, and only values of a release need them."""
    script = (
        "import sys; from chartgen.releases.status.training_log import progress_of\n"
        "assert progress_of([' iteration 3/ 50 | elapsed time per iteration (ms): 10.0 |'], None).text\n"
        "print([name for name in sys.modules if name.startswith('chartgen.checks')])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_version() -> None:
    assert re.fullmatch(r"chartgen, version \d+\.\d+\.\d+\n", chartgen("--version").output)


# -- list and show


@pytest.mark.parametrize("kind", ["targets", "fragments", "launchers", "workloads"])
def test_list(kind: str) -> None:
    found = answer(chartgen("list", kind, "--output", "json").stdout)["items"]
    assert [row["name"] for row in found] == sorted(row["name"] for row in found)
    assert table(chartgen("list", kind).stdout) == {row["name"]: row["description"] for row in found}


def table(text: str) -> dict[str, str]:
    """Read a printed table back: the name in column 1, and its text, wrapped to the terminal, beside and below it."""
    assert max(map(len, text.splitlines())) <= 80
    rows: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        name = name if line.startswith(" ") else line.split()[0]
        words = line.strip() if line.startswith(" ") else line.partition(" ")[2].strip()
        rows[name] = f"{rows.get(name, '')} {words}".strip()
    return rows


def test_list_takes_a_users_folder(tmp_path: Path) -> None:
    folder = library(tmp_path, {})
    for arguments, env in ((["--path", str(folder)], {}), ([], {"CHARTGEN_PATH": str(folder)})):
        found = answer(chartgen("list", "targets", "--output", "json", *arguments, env=env).stdout)["items"]
        assert ("box", "Machines of a test") in [(each["name"], each["description"]) for each in found]


def test_show_names_the_fragments_of_each_slot() -> None:
    facts = answer(chartgen("show", "gke-a3mega", "--output", "json").stdout)
    assert facts["machines"] == [{"name": "a3-megagpu-8g", "gpus": 8, "gpu": "h100-80gb"}]
    assert facts["slots"]["pod.spec.initContainers"] == ["gpudirect", "storage"]
    assert facts["slots"]["setup/localqueue.yaml"] == ["kueue"]
    _, machine, slots = chartgen("show", "gke-a3mega").stdout.split("\n\n")
    assert table(machine)["machine"] == "a3-megagpu-8g: 8 x h100-80gb"
    assert table(slots) == {slot: ", ".join(fragments) for slot, fragments in facts["slots"].items()}


def test_show_of_a_target_without_slots(tmp_path: Path) -> None:
    folder = library(tmp_path, {})
    (folder / "targets/box.yaml").write_text(
        (folder / "targets/box.yaml").read_text().replace("nvidia-gpu, storage, storage-memory, ", "")
    )
    assert chartgen("show", "box", "--path", folder).exit_code == 0


# -- build


def test_build_says_what_it_did(tmp_path: Path) -> None:
    chart, setup = tmp_path / "gke-a3mega", tmp_path / "gke-a3mega-setup"
    for word in ("written", "unchanged"):
        result = chartgen("build", "gke-a3mega", "-d", tmp_path)
        assert (result.stdout, result.stderr) == (f"{chart}: {word}\n{setup}: {word}\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gke-a3mega", "gke-a3mega-setup"]


def test_build_removes_templates_that_are_gone_only_when_it_is_told_to(tmp_path: Path) -> None:
    chartgen("build", "gke-a3mega", "-d", tmp_path)
    stale = tmp_path / "gke-a3mega" / "templates" / "gone.yaml"
    stale.write_text("a: b\n")
    ran = chartgen("build", "gke-a3mega", "-d", tmp_path)
    assert (ran.exit_code, stale.read_text()) == (1, "a: b\n")
    assert "templates/gone.yaml" in ran.stderr
    assert "--prune" in ran.stderr
    assert chartgen("build", "gke-a3mega", "-d", tmp_path, "--prune").exit_code == 0
    assert not stale.exists()


def test_build_all_takes_users_targets_too(tmp_path: Path) -> None:
    folder = library(tmp_path / "ours", {})
    assert chartgen("build", "--all", "--path", folder, "-d", tmp_path / "charts").exit_code == 0
    assert {"box", "gke-a3mega"} <= {path.name for path in (tmp_path / "charts").iterdir()}


def test_build_of_another_workload_kind(tmp_path: Path) -> None:
    assert chartgen("build", "gke-a3mega", "--workload", "job", "-d", tmp_path).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["gke-a3mega-job"]


def test_check_is_quiet_about_what_is_fresh(tmp_path: Path) -> None:
    chartgen("build", "gke-a3mega", "-d", tmp_path)
    result = chartgen("build", "gke-a3mega", "--check", "-d", tmp_path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.count("up to date\n") == 2


def test_check_shows_what_is_stale_as_a_unified_diff(tmp_path: Path) -> None:
    chartgen("build", "gke-a3mega", "-d", tmp_path)
    values = tmp_path / "gke-a3mega" / "values.yaml"
    built = values.read_text()
    stale = built.replace("nodes: 1", "nodes: 7", 1)
    values.write_text(stale)
    result = chartgen("build", "gke-a3mega", "--check", "-d", tmp_path)
    names = (str(values), f"{values} (built)")
    expected = difflib.unified_diff(stale.splitlines(keepends=True), built.splitlines(keepends=True), *names)
    assert (result.exit_code, result.stdout) == (1, "".join(expected))
    assert f"{values.parent}: stale; build it again without --check\n" in result.stderr
    assert values.read_text() == stale


def test_check_of_what_was_never_built(tmp_path: Path) -> None:
    result = chartgen("build", "gke-a3mega", "--check", "-d", tmp_path / "charts")
    assert result.exit_code == 1
    assert result.stdout.startswith("--- /dev/null\n+++ ")
    assert not (tmp_path / "charts").exists()


def test_the_committed_charts_are_fresh() -> None:
    result = chartgen("build", "--all", "--check")
    assert (result.exit_code, result.stdout) == (0, "")


# -- the process


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["list", "targets"], 0),
        (["build", "gke-a3mega", "--check", "-d", "nowhere"], 1),
        (["render", "gke-a3mega", "-f", "nowhere.yaml"], 2),
        (["show", "nowhere"], 2),
        (["bulid"], 2),
        (["list", "targets", "--outptu", "json"], 2),
        (["list", "nothing"], 2),
    ],
)
def test_exit_code(arguments: list[str], code: int) -> None:
    ran = process(*arguments)
    assert ran.returncode == code
    assert "Traceback" not in ran.stderr
    assert "\x1b" not in ran.stdout + ran.stderr, "no colours where there is no terminal"


@pytest.mark.parametrize(
    ("time", "understood"), [("40", True), ("1.5", True), ("90s", True), ("2m", True), ("0", False), ("90x", False)]
)
def test_a_rehearsal_takes_seconds_with_or_without_a_unit(time: str, understood: bool) -> None:
    ran = chartgen("rehearse", "no-such-target", "--timeout", time)
    assert ran.exit_code == 2
    assert ("unknown target" in ran.stderr, "--timeout" in ran.stderr) == (understood, not understood)


def test_missing_tool_is_an_exit_code_of_its_own(tmp_path: Path) -> None:
    ran = process("render", "gke-a3mega", PATH=str(tmp_path), CHARTGEN_CACHE=str(tmp_path))
    assert (ran.returncode, ran.stdout) == (3, "")


def test_reader_that_has_seen_enough() -> None:
    argv = f"{sys.executable} -m chartgen show gke-a3mega | head -c 1"
    ran = subprocess.run(["bash", "-c", argv], capture_output=True, text=True, check=False)
    assert ran.stderr == ""


@pytest.mark.parametrize(
    ("line", "words"), [("chartgen show gke", "show gke"), ("chartgen build gke-a3mega gke", "build gke-a3mega gke")]
)
def test_completion_knows_the_targets(line: str, words: str) -> None:
    ran = process(_CHARTGEN_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words.split())))
    assert "plain,gke-a3mega" in ran.stdout.splitlines()
    assert ran.stderr == ""


@pytest.mark.parametrize("command", ["why", "metrics"])
def test_what_reads_logs_completes_files(command: str, tmp_path: Path) -> None:
    variables = {"_CHARTGEN_COMPLETE": "bash_complete", "COMP_CWORD": "2", "KUBECONFIG": str(tmp_path / "absent")}
    assert process(COMP_WORDS=f"chartgen {command} lo", **variables).stdout == "file,lo\n"


def test_completion_of_a_users_targets(tmp_path: Path) -> None:
    folder = library(tmp_path, {})
    completing = {"_CHARTGEN_COMPLETE": "bash_complete", "COMP_CWORD": "4"}
    ran = process(COMP_WORDS=f"chartgen show --path {folder} bo", **completing)
    assert ran.stdout.splitlines() == ["plain,box"]
    ran = process(COMP_WORDS="chartgen show --path /nowhere bo", **completing)
    assert (ran.stdout.strip(), ran.stderr) == ("", "")


def test_completion_of_the_keys_of_a_chart() -> None:
    completing = {"_CHARTGEN_COMPLETE": "bash_complete", "COMP_CWORD": "4"}
    ran = process(COMP_WORDS="chartgen check gke-a3mega --set nodes=2,run.hang", **completing)
    assert ran.stdout.splitlines() == ["plain,nodes=2,run.hangMinutes="]
    for word in ("nodes=1", "nothing"):
        assert process(COMP_WORDS=f"chartgen check gke-a3mega --set {word}", **completing).stdout.strip() == ""


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("metrics run.log --gpu b200", "b200-180gb"),
        ("metrics run.log --model llama2-70", "llama2-70b"),
        ("diff my-run --target eks-p", "eks-p5"),
        ("check gke-a3mega --workload mpi", "mpijob"),
    ],
)
def test_completion_of_names(words: str, known: str) -> None:
    variables = {"_CHARTGEN_COMPLETE": "bash_complete", "COMP_WORDS": f"chartgen {words}"}
    ran = process(**variables, COMP_CWORD=str(len(words.split())))
    assert f"plain,{known}" in ran.stdout.splitlines()


def test_a_value_in_other_letters_is_recognized() -> None:
    ran = chartgen("check", "gke-a3mega", "--set", "precision=FP8")
    assert "did you mean fp8?" in ran.stdout


def test_a_command_that_does_not_exist_is_answered_with_the_one_that_was_meant() -> None:
    refused = chartgen("chek")
    assert refused.exit_code == 2
    assert "did you mean check?" in refused.stderr
    assert "Traceback" not in chartgen("frobnicate").stderr


def test_names_of_machines_and_habits_of_other_tools_lead_to_the_command() -> None:
    hints = {
        "check a3-ultragpu-8g": "gke-a3ultra",
        "check h200-141gb": "gke-a3ultra",
        "check gke": "gke-a3high, gke-a3mega",
        "install my-run gke-a4": "gke-a4 my-run",
        "check gke-a4 --nodes 4": "--set nodes=",
        "check gke-a4 --tensor 4": "--set parallelism.tensor=",
        "check gke-a4 --gpus-per-node=4": "--set gpusPerNode=",
        "check gke-a4 --rendr": "--render",
    }
    for words, hint in hints.items():
        refused = chartgen(*words.split())
        assert (refused.exit_code, hint in refused.stderr) == (2, True), words
    assert chartgen("help", "check").stdout == chartgen("check", "--help").stdout


def test_targets_and_machines_are_found_by_gpu_machine_or_cloud() -> None:
    found = answer(chartgen("list", "machines", "--gpu", "GB300", "--output", "json").stdout)["items"]
    assert {each["name"] for each in found} >= {"a4x-maxgpu-4g-metal"}
    found = answer(chartgen("list", "targets", "--gpu", "a3-megagpu-8g", "--output", "json").stdout)["items"]
    assert [each["name"] for each in found] == ["gke-a3mega"]
    assert chartgen("list", "presets", "--gpu", "h100").exit_code == 2


def test_what_a_command_line_lacks_is_a_usage_error(tmp_path: Path) -> None:
    for words in (("--set", "nodes"), ("--set-json", "a={"), ("-f", tmp_path), ("-f", tmp_path / "absent.yaml")):
        assert chartgen("check", "gke-a4", *words).exit_code == 2, words
    assert chartgen("metrics", tmp_path / "absent.log").exit_code == 2
    for typed in ("metrics . --price nan", "metrics . --model-flops inf", "lint --limit nan", "status --price inf"):
        assert "not a finite number" in chartgen(*typed.split()).stderr


def test_an_unknown_key_hides_no_other_problem() -> None:
    ran = chartgen("check", "gke-a3mega", "--set", "node=4,parallelism.tensor=3", "--output", "json")
    assert {each["rule"] for each in findings(ran.stdout)} == {"values-schema", "world-size"}


def test_a_site_file_of_another_target_is_refused_and_a_missing_one_is_named(tmp_path: Path) -> None:
    site = tmp_path / "site.yaml"
    chartgen("init", "gke-a3ultra", "--no-ask", "--to", site)
    preset = ("--preset", "llama3-8b")
    assert chartgen("check", "gke-a3ultra", *preset, "-f", site).exit_code == 0
    for kind in ((), ("--workload", "job")):
        found = findings(chartgen("check", "gke-a3mega", *preset, *kind, "-f", site, "--output", "json").stdout)
        assert [(each["rule"], each["line"]) for each in found if each["rule"] == "site-of-target"] == [
            ("site-of-target", 1)
        ]
    assert "site.yaml:1:1" in chartgen("render", "gke-a3mega", "run", *preset, "-f", site).stderr
    setup = chartgen("check", Path("charts/gke-a3mega-setup").absolute(), "-f", site)
    assert setup.exit_code == 1
    lacking = chartgen("check", "gke-a3ultra", *preset)
    assert (lacking.exit_code, "chartgen init gke-a3ultra" in lacking.stderr) == (1, True)


@pytest.mark.helm
def test_a_program_of_ones_own_goes_with_the_run(tmp_path: Path) -> None:
    program = tmp_path / "my.train.py"
    program.write_text("print()\n")
    ran = chartgen(
        "render",
        "gke-a3ultra",
        "run",
        "-f",
        Path("values/site.gke-a3ultra.example.yaml").absolute(),
        "--program-file",
        program,
    )
    assert ran.exit_code == 0, ran.stderr
    assert '"/etc/chartgen/my.train.py"' in ran.stdout
    assert 'my.train.py: "print()' in ran.stdout
    assert chartgen("check", "gke-a4", "--program-file", tmp_path / "absent.py").exit_code == 2
    assert chartgen("check", "gke-a4", "--program-file", tmp_path).exit_code == 2
    (tmp_path / "large.py").write_text("#" * 500_000)
    refused = chartgen("check", "gke-a4", "--program-file", tmp_path / "large.py")
    assert (refused.exit_code, "--code" in refused.stderr) == (2, True)
    given = ("--set", "launcher=torchrun", "--set-file", f"launchers.torchrun.files.x={tmp_path / 'large.py'}")
    refused = chartgen("check", "gke-a4", *given)
    assert (refused.exit_code, "text of 0 to 400000 characters" in refused.output) == (1, True)


def test_an_image_has_one_tag_a_digest_or_both() -> None:
    digest = f"@sha256:{'a' * 64}"
    for image, code in {
        "a:1": 0,
        "a/b:1" + digest: 0,
        "host:5000/a:1": 0,
        "a" + digest: 0,
        "a:1.2:3": 1,
        "a/b": 1,
        "a:latest": 1,
    }.items():
        assert chartgen("check", "gke-a4", "--set-string", f"launchers.megatron-lm.image={image}").exit_code == code, (
            image
        )


def test_values_come_from_the_standard_input_and_not_from_the_network(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "chartgen", "check", "gke-a3mega", "--preset", "gpt3-175b", "-f", "-"]
    done = subprocess.run(
        argv, input="nodes: 31\nqueue: {name: a}\n", cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout.startswith("/dev/stdin:1:1: nodes: no layout of gpt3-175b")
    refused = chartgen("check", "gke-a3mega", "-f", "https://example.com/values.yaml")
    assert refused.exit_code == 2
    assert "https://example.com/values.yaml" in refused.stderr


def test_names_of_other_programs_lead_to_the_key(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("tp: 4\nbatch: {mbs: 1, gbs: 8}\nmax_steps: 5\n")
    found = findings(chartgen("check", "gke-a3mega", "-f", file, "--output", "json").stdout)
    hints = {each["hint"] for each in found if "unknown key" in each["message"]}
    keys = ("parallelism.tensor", "batch.micro", "batch.global", "steps")
    assert hints == {f"did you mean {key}?" for key in keys}


def test_a_key_of_every_launcher_is_suggested_once() -> None:
    (found, *_) = findings(chartgen("check", "gke-a3mega", "--set", "image=a:1", "--output", "json").stdout)
    assert "launchers.NAME.image" in found["hint"]
