"""`chartgen sandbox env`: `eval` of what it prints leads into the sandbox, or nowhere; never to the user's cluster."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from answers import answer
from userlib import chartgen

from chartgen.rehearsal import engines, sandbox
from chartgen.rehearsal.folders import new_folder

EVAL = 'eval "$({chartgen} sandbox env {arguments})"\n'


@pytest.fixture
def real_cluster(tmp_path: Path) -> Iterator[tuple[Path, list[str]]]:
    """The cluster of a user's ~/.kube/config: their home, and what was asked of the cluster."""
    asked: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)
    (home / ".kube" / "config").write_text(
        "{apiVersion: v1, kind: Config, current-context: real,"
        f" clusters: [{{name: real, cluster: {{server: 'http://127.0.0.1:{server.server_port}'}}}}],"
        " contexts: [{name: real, context: {cluster: real, user: me}}], users: [{name: me, user: {}}]}"
    )
    yield home, asked
    server.shutdown()
    thread.join()
    server.server_close()


def bash(script: str, home: Path, cache: Path, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    variables = {"HOME": str(home), "CHARTGEN_CACHE": str(cache), "PATH": path}
    shell = shutil.which("bash")
    assert shell
    return subprocess.run([shell, "-c", script], env=variables, capture_output=True, text=True, check=False)


def command(arguments: str) -> str:
    return EVAL.format(chartgen=f"{shlex.quote(sys.executable)} -m chartgen", arguments=arguments)


def test_the_users_cluster_is_there_without_a_sandbox(real_cluster: tuple[Path, list[str]], own_cache: Path) -> None:
    """What the next test must not reach can be reached."""
    home, asked = real_cluster
    bash(f"{sys.executable} -m chartgen status my-run", home, own_cache)
    assert asked


@pytest.mark.parametrize("arguments", ["absent", "absent twice", "--wrong"])
def test_what_follows_a_sandbox_that_is_not_there_reaches_no_cluster(
    real_cluster: tuple[Path, list[str]], own_cache: Path, arguments: str
) -> None:
    home, asked = real_cluster
    after = [f"{shlex.quote(sys.executable)} -m chartgen status my-run"]
    after += [f"{program} {words}" for program, words in programs() if program]
    for line in after:
        ran = bash(command(arguments) + line, home, own_cache)
        assert ran.returncode != 0, line
        assert "no-such-sandbox" in ran.stderr
    assert bash("set -e\n" + command(arguments) + "touch ~/reached", home, own_cache).returncode != 0
    assert not (home / "reached").exists()
    assert asked == []


@pytest.mark.usefixtures("built_helm")
def test_in_a_sandbox_programs_that_were_built_are_found(own_cache: Path, tmp_path: Path) -> None:
    """The folder, alive as a sandbox's is, is all that `env` looks at."""
    with new_folder() as folder:
        there = sandbox.Sandbox("there", folder.path / "kubeconfig", "", folder.path, os.getpid(), (), 0, "")
        (own_cache / "sandboxes").mkdir()
        (own_cache / "sandboxes" / "there.json").write_text(json.dumps(asdict(there), default=str))
        script = command("there") + 'echo "$KUBECONFIG"; command -v helm; echo "${PATH##*:}"'
        ran = bash(script, tmp_path, own_cache, path=str(tmp_path / "bin"))
        (helm,) = (own_cache / "engines").glob(f"helm-{engines.engine('helm').version}-*/bin/helm")
        assert ran.stdout.splitlines() == [str(there.kubeconfig), str(helm), str(tmp_path / "bin")], ran.stderr
        shutil.rmtree(folder.path)


def programs() -> list[tuple[str, str]]:
    found = [("helm", "list"), ("kubectl", "get nodes --request-timeout=5s")]
    return [(shlex.quote(str(path)), words) for name, words in found if (path := engines.find_engine(name))]


@pytest.mark.usefixtures("own_cache")
def test_a_sandbox_that_is_not_there_is_a_usage_error() -> None:
    result = chartgen("sandbox", "env", "absent")
    assert result.exit_code == 2
    assert "'absent'" in result.stderr


@pytest.mark.usefixtures("own_cache")
def test_an_empty_list_says_so() -> None:
    assert "no sandbox" in chartgen("sandbox", "list").stdout
    assert answer(chartgen("sandbox", "list", "--output", "json").stdout)["sandboxes"] == []
