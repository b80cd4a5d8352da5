"""Helm is found, checked and run; what it says is reduced to one useful line for each thing that is wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mini_charts import CHART_YAML

from chartgen.errors import ChartgenError, MissingToolError
from chartgen.helm import manifests, program
from chartgen.helm.chart import Chart
from chartgen.helm.program import HelmError, explain_helm, find_helm, parse_version

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: here}}]
clusters: [{name: here, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: here, user: {}}]
"""


def tiny(template: str, schema: str | None = None) -> Chart:
    files = {"Chart.yaml": CHART_YAML, "values.yaml": "a: 1\n", "templates/a.yaml": template}
    return Chart("tiny", files if schema is None else {**files, "values.schema.json": schema})


def refusal(chart: Chart) -> str:
    with pytest.raises(ChartgenError) as caught:
        manifests.render(chart, "release", "default", {"b": 0, "c": 1})
    return str(caught.value)


def test_missing_helm_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CHARTGEN_HELM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CHARTGEN_CACHE", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"^helm is not installed; .*chartgen engines get helm") as caught:
        find_helm()
    assert caught.value.exit_code == 3


def test_variable_that_names_no_program_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CHARTGEN_HELM", str(tmp_path / "helm"))
    with pytest.raises(MissingToolError, match=r"CHARTGEN_HELM=.* is not an executable file"):
        find_helm()


def test_program_that_is_not_helm_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHARTGEN_HELM", "/bin/cat")
    with pytest.raises(MissingToolError, match=r"/bin/cat does not run: .*'?--template'?"):
        find_helm()


@pytest.mark.helm
def test_old_helm_is_refused_with_both_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ".".join(map(str, find_helm().version))
    monkeypatch.setattr(program, "MINIMUM_VERSION", (99, 1))
    with pytest.raises(MissingToolError, match=rf"is Helm {found}, but 99\.1 or newer is needed"):
        find_helm()


@pytest.mark.helm
def test_built_helm_is_found_in_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = find_helm().executable
    for version in ("v4.9.0", "v4.10.1", "v4.2.0"):
        folder = tmp_path / f"engines/helm-{version}-linux-amd64/bin"
        folder.mkdir(parents=True)
        (folder / "helm").symlink_to(found)
    monkeypatch.delenv("CHARTGEN_HELM", raising=False)
    monkeypatch.setenv("CHARTGEN_CACHE", str(tmp_path))
    monkeypatch.setattr("chartgen.programs.on_path", lambda _: None)  # nothing on PATH, but the shell must stay there
    assert find_helm().executable == tmp_path / "engines/helm-v4.10.1-linux-amd64/bin/helm"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("v4.3.1", (4, 3, 1)),
        ("v4.3", (4, 3, 0)),
        ("v3.21+unreleased", (3, 21, 0)),
        ("4.0.0-rc.1\n", (4, 0, 0)),
        ("x", None),
    ],
)
def test_version_is_read_from_any_build(text: str, version: tuple[int, int, int] | None) -> None:
    assert parse_version(text) == version


@pytest.mark.helm
def test_fail_of_the_chart_is_the_message() -> None:
    assert refusal(tiny('{{ fail "world size 12 is not a multiple of 8" }}')) == "world size 12 is not a multiple of 8"


@pytest.mark.helm
def test_fail_in_a_helper_with_several_lines_is_several_problems() -> None:
    chart = tiny('{{ define "check" }}{{ fail "one\\ntwo" }}{{ end }}a: {{ include "check" . }}')
    assert refusal(chart).splitlines() == ["one", "two"]
    assert refusal(tiny('{{ fail "\\none\\n\\ntwo\\n" }}')).splitlines() == ["one", "two"]


@pytest.mark.helm
def test_required_value_is_the_message() -> None:
    assert refusal(tiny('a: {{ required "image is needed" .Values.image }}')) == "image is needed"


@pytest.mark.helm
def test_template_errors_have_a_place() -> None:
    assert refusal(tiny("a: {{ .Values.x.y }}")).startswith("tiny/templates/a.yaml:1:13: ")
    assert "nil pointer evaluating" in refusal(tiny("a: {{ .Values.x.y }}"))
    assert refusal(tiny("a: {{ .Values.x")).startswith("tiny/templates/a.yaml:1: unclosed action")
    assert "mapping values are not allowed" in refusal(tiny("a: b: c"))


@pytest.mark.helm
def test_schema_errors_are_one_line_each() -> None:
    schema = '{"properties": {"a": {"type": "string"}, "b": {"type": "integer", "minimum": 1}}, "required": ["d"]}'
    lines = refusal(tiny("{}", schema)).splitlines()
    assert len(lines) == 3
    assert "a: got number, want string" in lines
    assert "b: minimum: got 0, want 1" in lines


def test_unknown_output_is_kept_as_one_line() -> None:
    (problem,) = explain_helm('level=INFO msg="x"\nError: something\n  new happened\n')
    assert str(problem) == "something new happened"


@pytest.mark.helm
def test_unreachable_cluster_is_one_line(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        config = tmp_path / "config"
        config.write_text(KUBECONFIG % unused.getsockname()[1])
        with pytest.raises(MissingToolError, match=r"the Kubernetes cluster cannot be reached: .*refused") as caught:
            find_helm(config).run(["list"])
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.helm
def test_unknown_context_is_one_line(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(KUBECONFIG % 1)
    with pytest.raises(MissingToolError, match=r'cannot be reached: .*context "there" does not exist'):
        find_helm(config, "there").run(["list"])


@pytest.mark.helm
def test_helm_runs_from_within_an_event_loop() -> None:
    async def notebook() -> str:
        return find_helm().run(["version", "--template", "{{.Version}}"])

    assert parse_version(asyncio.run(notebook())) == find_helm().version


@pytest.mark.helm
def test_error_keeps_what_helm_said() -> None:
    with pytest.raises(HelmError) as caught:
        find_helm().run(["template", "x", "/no/such/chart"])
    assert "Error: " in caught.value.stderr


@pytest.mark.helm
def test_interrupt_ends_helm(tmp_path: Path) -> None:
    """Helm asks a server that never answers; Ctrl-C reaches Python alone, and Helm must end too."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        config = tmp_path / "config"
        config.write_text(KUBECONFIG % server.getsockname()[1])
        code = "import sys, pathlib, chartgen.helm.program as h; h.find_helm(pathlib.Path(sys.argv[1])).run(['list'])"
        python = subprocess.Popen(
            [sys.executable, "-c", code, str(config)], start_new_session=True, stderr=subprocess.DEVNULL
        )
        connection, _ = server.accept()
        with connection:
            connection.recv(1)
            children = _children(python.pid)
            python.send_signal(signal.SIGINT)
            assert python.wait(180) != 0
    assert children
    assert not any(map(_runs, children))


def _children(pid: int) -> list[int]:
    text = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=True).stdout
    return [int(word) for word in text.split()]


def _runs(pid: int) -> bool:
    for _ in range(20):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.helm
def test_objects_are_read_as_helm_reads_them() -> None:
    chart = tiny("kind: A\nyes: no\noctal: 012\nday: 2026-01-01\n---\n# nothing\n---\nkind: B\ntext: |\n  a\n  --- b\n")
    text = manifests.render(chart, "release", "default", {})
    assert manifests.objects(text) == [
        {"kind": "A", "true": False, "octal": 10, "day": "2026-01-01"},
        {"kind": "B", "text": "a\n--- b\n"},
    ]


def test_a_chart_that_is_shared_is_written_once_and_another_alone() -> None:
    chart = Chart("x", {"Chart.yaml": CHART_YAML})
    with manifests.written_chart(chart) as one, manifests.written_chart(chart) as other:
        assert one != other
    with manifests.written_chart(chart, shared=True) as one:
        with manifests.written_chart(chart) as other:
            assert one == other
        assert (one / "Chart.yaml").is_file()
    assert not one.exists()
    with manifests.written_chart(chart) as other:
        assert other != one
