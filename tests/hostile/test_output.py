"""What strangers write steers no terminal and no CI runner: names, logs, clusters, in every output command."""

from __future__ import annotations

import ast
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import manifests
import pytest
from click.testing import CliRunner
from kubelet import Kubelet, end_container, kubelet_of
from process_helpers import running
from steering import FORBIDDEN, faults
from trainlogs import megatron, steps

import chartgen.cli
from chartgen.cli import main
from chartgen.kube import POD
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.rehearsal.simulated_nodes import create_machines, delete_machines
from chartgen.visible import harmless, one_line, visible

ROOT = Path(__file__).resolve().parents[2]
# Clear the screen, set the title, C1's CSI, reverse the reading order, a tag character, and commands of CI runners.
EVIL = "\x1b[2J\x1b]0;pwned\x07\x9b31m\u202egnp.\u2066\u200b\u2028\U000e0041##[stop-commands]x"
NAME = f"::stop-commands::x{EVIL.replace('/', '')}"
KEY = EVIL.replace("\U000e0041", "")  # YAML has no escapes for pairs of surrogates
BROKEN = "a\n::stop-commands::x\n##[add-mask]y\n"


def on_a_terminal(argv: list[str], cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run the command line with a terminal as its streams; give all that it would draw."""
    near, far = pty.openpty()
    command = [sys.executable, "-m", "chartgen", *argv]
    with running(command, cwd=cwd, env=env, stdin=far, stdout=far, stderr=far) as process:
        os.close(far)
        drawn = b""
        while True:
            try:
                block = os.read(near, 65536)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            drawn += block
        process.wait()
    os.close(near)
    return drawn.decode("utf-8", "replace")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Charts, values, a log and a library whose names and contents want harm."""
    for name in (NAME, BROKEN):
        chart = tmp_path / "charts" / name
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text(json.dumps({"apiVersion": "v2", "name": name, "version": "x"}))
        (chart / "templates" / f"{name}.yaml").write_text(f"{{{{ fail {json.dumps(EVIL + BROKEN)} }}}}")
    (tmp_path / "values.yaml").write_text(json.dumps({KEY: 1, BROKEN: {KEY: KEY}}))
    (tmp_path / "broken.yaml").write_text(f"a: [{EVIL.replace(chr(0x9B), '')}")
    log = megatron(steps([1.0] * 20), extra=f" {EVIL} |") + f"{EVIL} .... {EVIL}\n  {EVIL} ......... {EVIL}{BROKEN}"
    (tmp_path / f"{NAME}.log").write_text(log)
    (tmp_path / "lib" / "targets").mkdir(parents=True)
    (tmp_path / "lib" / "targets" / "evil.yaml").write_text(json.dumps({"description": EVIL, EVIL: BROKEN}))
    return tmp_path


COMMANDS = {
    "lint all": ["lint", "--no-cache", "charts"],
    "lint one": ["lint", "--no-cache", f"charts/{BROKEN}"],
    "lint a name": ["lint", "--no-cache", NAME],
    "lint values": ["lint", "--no-cache", "values.yaml"],
    "check": ["check", "gke-a3mega", "-f", "values.yaml"],
    "check broken values": ["check", "gke-a3mega", "-f", "broken.yaml"],
    "check a flag": ["check", "gke-a3mega", "--set", f"x={EVIL}"],
    "check a folder": ["check", f"charts/{NAME}"],
    "fit": ["fit", "gke-a3mega", "-f", "values.yaml"],
    "render": ["render", f"charts/{BROKEN}"],
    "metrics": ["metrics", f"{NAME}.log", "--window", "all"],
    "metrics, no log": ["metrics", f"{BROKEN}.log"],
    "list": ["list", "targets", "--path", "lib"],
    "show": ["show", "evil", "--path", "lib"],
    "show a name": ["show", EVIL],
    "build": ["build", "evil", "--path", "lib"],
    "preset": ["preset", "--from-hf", "values.yaml"],
    "exec": ["exec", "gke-a3mega", "--dry-run", "--set", f"env.X={EVIL}"],
    "an unknown command": [EVIL],
    "an unknown option": ["check", f"--{EVIL}"],
    "a bad choice": ["list", f"{BROKEN}{EVIL}"],
    "a release": ["status", EVIL],
}


@pytest.mark.threat(13)
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_prints_what_steers(name: str, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    monkeypatch.setenv("KUBECONFIG", str(repository / "none"))
    result = CliRunner().invoke(main, COMMANDS[name])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    stdout = "" if name == "exec" else result.stdout  # a script for a shell, byte for byte
    assert (faults(stdout), faults(result.stderr)) == ([], [])
    assert result.output


@pytest.mark.threat(13)
@pytest.mark.parametrize("name", ["lint all", "check", "metrics", "list", "exec", "an unknown option"])
def test_no_terminal_is_steered(name: str, repository: Path) -> None:
    drawn = on_a_terminal(COMMANDS[name], repository)
    assert drawn
    assert faults(drawn) == []


@pytest.mark.threat(13)
@pytest.mark.parametrize("form", ["json", "sarif", "junit", "github"])
@pytest.mark.parametrize("command", ["lint all", "check", "check a flag"])
def test_reports_are_sound(command: str, form: str, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    text = CliRunner().invoke(main, [*COMMANDS[command], "--output", form]).stdout
    assert not [line for line in text.split("\n") if FORBIDDEN.search(line)]
    if form != "github":  # its lines are commands on purpose
        assert faults(text) == []
    if form in {"json", "sarif"}:
        assert json.loads(text)
    elif form == "junit":
        assert ET.fromstring(text).findall(".//testcase")  # noqa: S314 - our own
    else:
        assert {line.partition(" ")[0] for line in text.splitlines()} <= {"::error", "::warning"}


@pytest.mark.threat(13)
def test_a_page_holds_no_controls(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    page = repository / "page.html"
    assert CliRunner().invoke(main, [*COMMANDS["metrics"], "--report", str(page)]).exit_code in {0, 1}
    assert not [line for line in page.read_text().split("\n") if FORBIDDEN.search(line)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u00e9\u4f60\t\n", "plain \u00e9\u4f60\t\n"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\x9bb\x7f\r", r"a\x9bb\x7f\r"),
        ("\u202eabc\u2069", r"\u202eabc\u2069"),
        ("\U000e0041", r"\U000e0041"),
        ("\udc80", r"\udc80"),
        ("::error::x", r"\x3a:error::x"),
        ("a\n \u3000::error::x", "a\n \u3000\\x3a:error::x"),
        ("a ::b", "a ::b"),
        ("x##[group]", r"x#\u0023[group]"),
        ("## [a]", "## [a]"),
        ("x ##vso[task.setvariable variable=PATH]y", r"x #\u0023vso[task.setvariable variable=PATH]y"),
        ("##VSO[a]##teamcity[b]##teamcity b", r"#\u0023VSO[a]#\u0023teamcity[b]##teamcity b"),
    ],
)
def test_what_is_escaped(text: str, shown: str) -> None:
    assert harmless(text) == shown
    assert json.loads(f'"{harmless("##[x]")}"') == "##[x]"


def test_one_line_is_one_line() -> None:
    assert one_line("a\nb\r\n\x85c\u2028d") == r"a\nb\r\n\x85c\u2028d"
    assert visible("a\nb") == "a\nb"


@pytest.mark.threat(13)
def test_commands_print_by_click_alone() -> None:
    """What goes by `print` or by a stream of its own would pass the guard by."""
    for path in Path(chartgen.cli.__file__).parent.glob("*.py"):
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        assert not [node for node in calls if getattr(node.func, "id", "") == "print"], path
        streams = [keyword for node in calls for keyword in node.keywords if keyword.arg == "file"]
        assert not streams or path.name == "output.py", path


@pytest.fixture(scope="module")
def kubelet(plane: ControlPlane) -> Iterator[Kubelet]:
    names = create_machines(plane.cluster, [manifests.pool("evil", 2)])
    with kubelet_of(plane, names) as found:
        yield found
    delete_machines(plane.cluster, names)


@pytest.mark.threat(13)
@pytest.mark.engines
def test_a_cluster_steers_no_terminal(plane: ControlPlane, kubelet: Kubelet, tmp_path: Path) -> None:
    """A container's last words, a pod's log and an event's message are written by whoever runs there."""
    from chartgen.rehearsal.verdict import wait_for_verdict

    run = manifests.jobset("evil", 2, pool="evil")
    plane.cluster.apply([run])
    assert wait_for_verdict(plane.cluster, "evil", timeout=180).ok
    found = plane.cluster.list(POD, namespace="default", labels={"app.kubernetes.io/instance": "evil"})
    pods = sorted(pod["metadata"]["name"] for pod in found)
    kubelet.write(pods[0], f"RuntimeError: {EVIL}", "::stop-commands::x", "##[error]x")
    env = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    end_container(plane.cluster, pods[0], message=f"RuntimeError: {EVIL}\n::stop-commands::x", reason=EVIL)
    try:
        # the wait first: it ends when the controller has seen the failure
        for argv in (["wait", "evil"], ["status", "evil"], ["logs", "evil", "--rank", "0"]):
            drawn = on_a_terminal(argv, tmp_path, env)
            assert r"\x1b[2J" in drawn, argv
            assert faults(drawn) == [], argv
        piped = [sys.executable, "-m", "chartgen", "logs", "evil", "--rank", "0"]
        runner = subprocess.run(
            piped, env={**env, "GITHUB_ACTIONS": "true"}, capture_output=True, text=True, check=True
        )
        assert faults(runner.stdout) == []
        kept = subprocess.run(piped, env=env, capture_output=True, check=True).stdout.decode()
        assert EVIL in kept  # a file of it is what the program printed
    finally:
        plane.cluster.delete_object(run, namespace="default", foreground=True)
