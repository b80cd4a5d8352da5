"""`chartgen sandbox env`: `eval` of what it prints leads into the sandbox, or nowhere; never to the user's cluster."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from userlib import chartgen

from chartgen.rehearsal import engines

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


def bash(script: str, home: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    variables = {"HOME": str(home), "CHARTGEN_CACHE": str(cache), "PATH": os.environ["PATH"]}
    return subprocess.run(["bash", "-c", script], env=variables, capture_output=True, text=True, check=False)


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


def programs() -> list[tuple[str, str]]:
    found = [("helm", "list"), ("kubectl", "get nodes --request-timeout=5s")]
    return [(shlex.quote(str(path)), words) for name, words in found if (path := engines.find(name))]


@pytest.mark.usefixtures("own_cache")
def test_a_sandbox_that_is_not_there_is_a_usage_error() -> None:
    result = chartgen("sandbox", "env", "absent")
    assert result.exit_code == 2
    assert "'absent'" in result.stderr


@pytest.mark.usefixtures("own_cache")
def test_an_empty_list_says_so() -> None:
    assert "no sandbox" in chartgen("sandbox", "list").stdout
    assert chartgen("sandbox", "list", "--output", "json").stdout == "[]\n"
