"""Connections: what is said when there is no cluster, no context or no client library."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from proxy import Answer, faults_of

from chartgen.errors import MissingToolError, UsageError
from chartgen.kube import CONFIG_MAP, CRD, SECRET, ClusterError, Kind, Object, connect, http
from chartgen.rehearsal.controlplane import ControlPlane


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


def test_a_missing_credential_plugin_is_one_clear_line(tmp_path: Path) -> None:
    plugin = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "no-such-plugin"}
    config = kubeconfig(tmp_path / "config", "gke", "http://127.0.0.1:9", exec=plugin)
    with pytest.raises(MissingToolError, match=r"cluster 'gke' .*no-such-plugin"):
        connect(kubeconfig=config)


def test_an_unknown_context_has_a_hint(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "config", "staging", "http://127.0.0.1:9")
    with pytest.raises(UsageError, match="there is no context 'stagin'; did you mean staging"):
        connect(kubeconfig=config, context="stagin")


def test_without_any_configuration_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match=r"there is no kubeconfig at .*nowhere; name one"):
        connect(kubeconfig=tmp_path / "nowhere")


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("a: [")
    with pytest.raises(MissingToolError, match=r"config:2:1: is no kubeconfig"):
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


@pytest.mark.parametrize("data", [{"contexts": {}}, {"users": ["u"]}, {"clusters": [{"name": "c", "cluster": 5}]}, []])
def test_what_is_no_kubeconfig_is_said(tmp_path: Path, data: Any) -> None:
    (tmp_path / "config").write_text(json.dumps(data or [1]))
    with pytest.raises((MissingToolError, UsageError), match=str(tmp_path)):
        connect(kubeconfig=tmp_path / "config")


def test_without_the_client_library_it_names_the_extra() -> None:
    code = "import sys; sys.modules['lightkube'] = None; from chartgen.kube import connect; connect()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'the Kubernetes client library is missing; pip install "chartgen[cluster]"' in result.stderr


def test_importing_the_module_does_not_import_the_library() -> None:
    code = "import sys, chartgen.kube; sys.exit('lightkube' in sys.modules or 'httpx2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.engines
def test_objects_come_and_go(plane: ControlPlane) -> None:
    cluster = plane.cluster
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"a": "b"}}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "come-and-go"}}
    cluster.apply([secret, namespace], namespace="come-and-go")
    cluster.apply([secret], namespace="come-and-go")
    assert [item["metadata"]["name"] for item in cluster.list(SECRET, labels={"a": "b"})] == ["s"]
    assert cluster.list(SECRET, namespace="come-and-go", labels={"a": "c"}) == []
    assert cluster.patch(SECRET, "s", {"data": {"k": "dg=="}}, namespace="come-and-go")["data"] == {"k": "dg=="}
    assert cluster.delete(SECRET, "s", "come-and-go")
    assert not cluster.delete(SECRET, "s", "come-and-go")
    assert cluster.get(SECRET, "s", "come-and-go") is None
    assert cluster.delete_object(namespace)


@pytest.mark.engines
def test_a_wrong_token_is_refused(plane: ControlPlane, tmp_path: Path) -> None:
    config = json.loads(plane.kubeconfig.read_text())
    config["users"][0]["user"]["token"] = "wrong"  # noqa: S105 - it is
    (tmp_path / "config").write_text(json.dumps(config))
    with pytest.raises(Exception, match="refuses access: Unauthorized"):
        connect(kubeconfig=tmp_path / "config")


@pytest.mark.engines
def test_any_text_arrives_as_it_is(plane: ControlPlane) -> None:
    """An apply is read as YAML, which does not take all escapes of JSON."""
    text = 'caf\u00e9 \U0001d594 \x7f \x85 \u2028 \ufeff "a\\b" \t\n{{ x }}'
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "any-text"}, "data": {"a": text}}
    plane.cluster.apply([item], namespace="default")
    found = plane.cluster.get(CONFIG_MAP, "any-text", "default")
    assert found
    assert found["data"] == {"a": text}


def status(code: int, reason: str, message: str, **metadata: str) -> Object:
    """An error as the API server writes it."""
    told = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return {"kind": "Status", "apiVersion": "v1", "metadata": metadata, **told}


MAPS = 1100  # more than two pages


@pytest.fixture(scope="module")
def maps(plane: ControlPlane) -> Iterator[list[str]]:
    """A namespace with more objects than fit into two pages; gives their names."""
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "paged"}}
    plane.cluster.apply([space])
    names = [f"map-{number:04}" for number in range(MAPS)]
    for name in names:
        metadata = {"name": name, "namespace": "paged", "labels": {"paged": "yes"}}
        plane.cluster.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    yield names
    plane.cluster.delete_object(space)


def continued(path: str) -> str:
    return parse_qs(urlsplit(path).query).get("continue", [""])[0]


@pytest.mark.engines
def test_a_list_that_expires_is_gone_on_with(plane: ControlPlane, tmp_path: Path, maps: list[str]) -> None:
    """The token that comes with a 410 is the server's own form (k8s.io/apiserver, pkg/storage/continue.go), rv -1."""
    expired: list[str] = []

    def fault(_: str, path: str) -> Answer | None:
        token = continued(path)
        plain = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))) if token else {"rv": -1}
        if plain["rv"] == -1:
            return None
        expired.append(path)
        fresh = base64.urlsafe_b64encode(json.dumps({**plain, "rv": -1}).encode()).decode().rstrip("=")
        message = "The provided continue parameter is too old to display a consistent list result"
        return Answer(410, status(410, "Expired", message, **{"continue": fresh}))

    with faults_of(plane, tmp_path, fault) as (config, _), connect(kubeconfig=config) as cluster:
        found = [item["metadata"]["name"] for item in cluster.each(CONFIG_MAP, labels={"paged": "yes"})]
    assert found == maps
    assert expired


@pytest.mark.engines
@pytest.mark.usefixtures("maps")
def test_a_list_that_expires_without_a_way_on_is_an_error(plane: ControlPlane, tmp_path: Path) -> None:
    def fault(_: str, path: str) -> Answer | None:
        return (
            Answer(410, status(410, "Expired", "too old", **{"continue": continued(path)})) if continued(path) else None
        )

    with faults_of(plane, tmp_path, fault) as (config, seen), connect(kubeconfig=config) as cluster:
        with pytest.raises(ClusterError, match="too old") as caught:
            cluster.list(CONFIG_MAP, labels={"paged": "yes"})
        assert caught.value.status == 410
        assert sum("continue=" in each for each in seen) == 1


@pytest.mark.engines
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_busy_server_is_waited_for(plane: ControlPlane, tmp_path: Path, method: str) -> None:
    """What API Priority and Fairness answers (k8s.io/apiserver, pkg/server/filters/priority-and-fairness.go)."""
    refusals = iter(range(2))

    def fault(command: str, path: str) -> Answer | None:
        if command != method or "configmaps" not in path or next(refusals, None) is None:
            return None
        return Answer(429, status(429, "TooManyRequests", "too many requests"), {"Retry-After": "0"})

    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "busy", "namespace": "default"}}
    with faults_of(plane, tmp_path, fault) as (config, seen), connect(kubeconfig=config) as cluster:
        cluster.list(CONFIG_MAP, namespace="default") if method == "GET" else cluster.create(
            CONFIG_MAP, item, dry_run=True
        )
        assert sum(each.startswith(method) and "configmaps" in each for each in seen) == 3


@pytest.mark.engines
@pytest.mark.parametrize(("after", "waited"), [("7", 7), ("0", 0.5)])
def test_a_busy_server_says_for_how_long(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str, waited: float
) -> None:
    refusals = iter(range(2))
    pauses: list[float] = []

    def fault(_: str, path: str) -> Answer | None:
        if "configmaps" not in path or next(refusals, None) is None:
            return None
        return Answer(429, status(429, "TooManyRequests", "too many requests"), {"Retry-After": after})

    with faults_of(plane, tmp_path, fault) as (config, _), connect(kubeconfig=config) as cluster:
        monkeypatch.setattr(http, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append))
        cluster.list(CONFIG_MAP, namespace="default")
    assert pauses == [waited, waited]


@pytest.mark.engines
@pytest.mark.parametrize("after", [{}, {"Retry-After": "3600"}, {"Retry-After": "soon"}])
def test_a_server_that_stays_busy_is_said(plane: ControlPlane, tmp_path: Path, after: dict[str, str]) -> None:
    def fault(_: str, path: str) -> Answer | None:
        return Answer(429, status(429, "TooManyRequests", "too many"), after) if "configmaps" in path else None

    with faults_of(plane, tmp_path, fault) as (config, _), connect(kubeconfig=config) as cluster:
        with pytest.raises(ClusterError, match="too many") as caught:
            cluster.list(CONFIG_MAP, namespace="default")
        assert caught.value.status == 429


@pytest.mark.engines
def test_a_new_kind_is_found_by_who_may_not_list_crds(
    plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user of one namespace mostly may not: until the kind is served, that is no error."""
    names = {"plural": "cogs", "singular": "cog", "kind": "Cog"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec: Object = {"group": "late.example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    crd: Object = {
        "apiVersion": CRD.api_version,
        "kind": CRD.name,
        "metadata": {"name": "cogs.late.example.com"},
        "spec": spec,
    }
    denied = 'customresourcedefinitions is forbidden: User "u" cannot list resource "customresourcedefinitions"'

    def fault(_: str, path: str) -> Answer | None:
        if CRD.plural not in path:
            return None
        if plane.cluster.get(CRD, crd["metadata"]["name"]) is None:
            plane.cluster.apply([crd])
        return Answer(403, status(403, "Forbidden", denied))

    with faults_of(plane, tmp_path, fault) as (config, seen), connect(kubeconfig=config) as cluster:
        assert cluster.kind("late.example.com/v1", "Cog") == Kind("late.example.com/v1", "Cog", "cogs")
        assert any(CRD.plural in each for each in seen)
        monkeypatch.setattr("chartgen.kube.cluster._CRD_SECONDS", 0.0)
        with pytest.raises(ClusterError, match="has no Wheel") as caught:
            cluster.kind("none.example.com/v1", "Wheel")
        assert caught.value.status == 404
    plane.cluster.delete(CRD, crd["metadata"]["name"])
