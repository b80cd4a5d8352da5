"""Connections that cannot be made: no cluster, no context, a broken kubeconfig, no client library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from website import Site, answer, serving

from chartgen.errors import ChartgenError, MissingToolError, UsageError
from chartgen.kube import connect


def kubeconfig(path: Path, context: str, server: str, **user: Any) -> Path:
    data = {
        "current-context": context,
        "contexts": [{"name": context, "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(json.dumps(data))
    return path


def test_a_cluster_that_does_not_answer_is_one_clear_line(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", "prod", "http://127.0.0.1:9")
    with pytest.raises(MissingToolError) as caught:
        connect(kubeconfig=config)
    assert caught.value.exit_code == 3
    message = str(caught.value)
    assert message.startswith("cluster 'prod' at http://127.0.0.1:9 does not answer (")
    assert message.endswith("check that it runs and that `kubectl --context prod version` answers")
    assert "\n" not in message


@pytest.mark.parametrize("server", ["http://127.0.0.1:9/\r\nX: y", "http://\u2100.example", "http://[::1"])
def test_an_address_that_is_none_is_one_clear_line(tmp_path: Path, server: str) -> None:
    with pytest.raises(MissingToolError, match="context 'prod' cannot be used"):
        connect(kubeconfig=kubeconfig(tmp_path / "config", "prod", server))


def test_a_missing_credential_plugin_is_one_clear_line(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "no-such-plugin"}
    config = kubeconfig(tmp_path / "config", "gke", "http://127.0.0.1:9", exec=plugin)
    with pytest.raises(MissingToolError, match=r"cluster 'gke' .*no-such-plugin"):
        connect(kubeconfig=config)


def test_an_unknown_context_has_a_hint(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", "staging", "http://127.0.0.1:9")
    with pytest.raises(UsageError, match="no context named 'stagin'; did you mean staging"):
        connect(kubeconfig=config, context="stagin")


def test_without_any_configuration_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match=r"no kubeconfig at .*nowhere; name one"):
        connect(kubeconfig=tmp_path / "nowhere")


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a: [")
    with pytest.raises(MissingToolError, match=r"config:2:1: is not a kubeconfig"):
        connect(kubeconfig=tmp_path / "config")


def test_several_files_are_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kubeconfig(tmp_path / "first", "one", "http://127.0.0.1:9")
    second = kubeconfig(tmp_path / "second", "two", "http://127.0.0.1:9")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{second}")
    with pytest.raises(MissingToolError, match="cluster 'two'"):
        connect(context="two")


def put(path: Path, **data: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({key.replace("_", "-"): value for key, value in data.items()}))
    return path


@pytest.mark.parametrize("empty", ["", "{}", '{"clusters": null, "contexts": null, "users": null}'])
def test_split_files_are_merged_as_kubectl_does(tmp_path: Path, empty: str) -> None:
    """The context, its cluster and its user may stand in three files, of which each lacks the other keys."""
    (tmp_path / "none").write_text(empty)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "bin/no-such-plugin"}}
    files = [
        tmp_path / "none",
        put(tmp_path / "a" / "config", contexts=[{"name": "prod", "context": {"cluster": "c", "user": "u"}}]),
        put(tmp_path / "b" / "config", clusters=[{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}]),
        put(tmp_path / "c" / "config", users=[{"name": "u", "user": user}], current_context="prod"),
        put(tmp_path / "d" / "config", clusters=[{"name": "c", "cluster": {"server": "http://127.0.0.1:7"}}]),
        tmp_path / "nowhere",
    ]
    with pytest.raises(MissingToolError, match="cluster 'prod'") as caught:
        connect(kubeconfig=":".join(map(str, files)))
    assert "127.0.0.1:9 " in str(caught.value)
    assert str(tmp_path / "c" / "bin" / "no-such-plugin") in str(caught.value)


def test_what_is_not_asked_for_may_be_broken(tmp_path: Path) -> None:
    config = json.loads(kubeconfig(tmp_path / "config", "prod", "http://127.0.0.1:9").read_text())
    config["clusters"].append({"name": "broken", "cluster": {"server": 5}})
    config["contexts"].append({"name": "broken", "context": {"cluster": "broken"}})
    config["contexts"].append({"name": "lost", "context": {"cluster": "nowhere"}})
    (tmp_path / "config").write_text(json.dumps(config))
    with pytest.raises(MissingToolError, match="does not answer"):
        connect(kubeconfig=tmp_path / "config")
    with pytest.raises(MissingToolError, match="context 'broken' cannot be used"):
        connect(kubeconfig=tmp_path / "config", context="broken")
    with pytest.raises(MissingToolError, match="context 'lost' refers to cluster 'nowhere', which is missing"):
        connect(kubeconfig=tmp_path / "config", context="lost")


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("user", "as", "ci-bot"),
        ("user", "as-uid", "7"),
        ("user", "as-groups", ["system:masters"]),
        ("user", "as-user-extra", {"reason": ["x"]}),
        ("cluster", "proxy-url", "http://127.0.0.1:9"),
        ("cluster", "tls-server-name", "kube.example"),
    ],
)
def test_what_kubectl_and_helm_would_honour_is_never_ignored(tmp_path: Path, kind: str, field: str, value: Any) -> None:
    """Without the field chartgen would act as another identity, or talk to another server, than Helm."""
    config = json.loads(kubeconfig(tmp_path / "config", "prod", "http://127.0.0.1:9").read_text())
    first = config[f"{kind}s"][0]
    config[f"{kind}s"].append({"name": "other", kind: {**first[kind], field: value}})
    config["contexts"].append({"name": "plain", "context": {"cluster": "c", "user": "u"}})
    config["contexts"][0]["context"][kind] = "other"
    (tmp_path / "config").write_text(json.dumps(config, indent=1))
    with pytest.raises(MissingToolError) as caught:
        connect(kubeconfig=f"{tmp_path / 'nowhere'}:{tmp_path / 'config'}")
    (problem,) = caught.value.problems
    line = next(n for n, text in enumerate((tmp_path / "config").read_text().splitlines(), 1) if f'"{field}"' in text)
    assert (problem.path, problem.line) == (tmp_path / "config", line)
    assert f"{kind} 'other'" in problem.message
    assert repr(field) in problem.message
    with pytest.raises(MissingToolError, match="does not answer"):
        connect(kubeconfig=tmp_path / "config", context="plain")


@pytest.mark.parametrize("data", [{"contexts": {}}, {"users": ["u"]}, {"clusters": [{"name": "c", "cluster": 5}]}, []])
def test_what_is_no_kubeconfig_is_said(tmp_path: Path, data: Any) -> None:
    (tmp_path / "config").write_text(json.dumps(data or [1]))
    with pytest.raises((MissingToolError, UsageError), match=str(tmp_path)):
        connect(kubeconfig=tmp_path / "config")


def test_without_the_client_library_it_names_the_extra() -> None:
    code = "import sys; sys.modules['lightkube'] = None; from chartgen.kube import connect; connect()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "the Kubernetes client library is missing; pip install 'PATH[cluster]'" in result.stderr


def test_importing_the_module_does_not_import_the_library() -> None:
    code = "import sys, chartgen.kube; sys.exit('lightkube' in sys.modules or 'httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b'{"hello": 1}', b"[1]", b"", b"\xff"])
def test_another_server_than_kubernetes_is_named(tmp_path: Path, body: bytes) -> None:
    with serving(Site(files={"/version": body})) as site:
        config = kubeconfig(tmp_path / "config", "prod", site.address)
        with pytest.raises(
            MissingToolError, match=f"'prod' at {site.address} is not a Kubernetes API server"
        ) as caught:
            connect(kubeconfig=config)
    assert "\n" not in str(caught.value)


def test_a_redirection_is_no_answer_of_kubernetes(tmp_path: Path) -> None:
    site = Site(instead={"/version": [lambda handler: answer(handler, 302, b"{}", Location="https://sso.example")]})
    with serving(site), pytest.raises(MissingToolError, match="is not a Kubernetes API server"):
        connect(kubeconfig=kubeconfig(tmp_path / "config", "prod", site.address))
    assert site.paths() == ["/version"]


def plugin(folder: Path, version: str, output: str) -> dict[str, str]:
    """A credential plugin that prints something."""
    (folder / "output").write_text(output)
    (folder / "plugin").write_text('#!/bin/sh\ncat "$(dirname "$0")/output"\n')
    (folder / "plugin").chmod(0o755)
    return {"apiVersion": f"client.authentication.k8s.io/{version}", "command": str(folder / "plugin")}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_token_of_a_credential_plugin_is_sent(tmp_path: Path, version: str) -> None:
    """The web server is no Kubernetes: what counts is the request."""
    printed = {"kind": "ExecCredential", "status": {"token": "from-plugin"}}
    asked = plugin(tmp_path, version, json.dumps(printed))
    with serving(Site()) as site, pytest.raises(ChartgenError):
        connect(kubeconfig=kubeconfig(tmp_path / "config", "gke", site.address, exec=asked))
    ((path, headers),) = site.asked
    assert (path, headers["Authorization"]) == ("/version", "Bearer from-plugin")


@pytest.mark.parametrize("output", ["Please log in", "{}", '{"status": {}}', '{"status": null}', "[]"])
def test_a_credential_plugin_without_a_token_is_one_clear_line(tmp_path: Path, output: str) -> None:
    asked = plugin(tmp_path, "v1", output)
    with serving(Site()) as site, pytest.raises(MissingToolError, match="cluster 'gke'") as caught:
        connect(kubeconfig=kubeconfig(tmp_path / "config", "gke", site.address, exec=asked))
    assert asked["command"] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not site.asked


def test_an_unknown_version_of_credential_plugins_is_one_clear_line(tmp_path: Path) -> None:
    asked = plugin(tmp_path, "v9", "{}")
    with pytest.raises(MissingToolError, match=r"cluster 'gke' .*k8s\.io/v9"):
        connect(kubeconfig=kubeconfig(tmp_path / "config", "gke", "http://127.0.0.1:9", exec=asked))
