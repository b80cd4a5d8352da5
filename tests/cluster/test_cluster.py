"""Connections: what is said when there is no cluster, no context or no client library."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from proxy import Answer, faults_of

from chartgen.kube import CONFIG_MAP, CRD, SECRET, ClusterError, Kind, Object, connect, http
from chartgen.rehearsal.controlplane import ControlPlane


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
    with pytest.raises(ClusterError, match="precondition"):  # another object of this name
        cluster.delete(SECRET, "s", "come-and-go", uid="x")
    (found,) = cluster.list(SECRET, labels={"a": "b"}, metadata_only=True)
    assert cluster.delete_object(found)
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
def test_a_list_goes_on_in_smaller_pages(
    plane: ControlPlane, tmp_path: Path, maps: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server takes another limit along with the token of a larger page."""
    large = [f"{maps[-1]}-{number}" for number in range(3)]
    monkeypatch.setattr("chartgen.kube.answers.LARGEST", 400_000)
    try:
        for name in large:
            metadata = {"name": name, "namespace": "paged", "labels": {"paged": "yes"}}
            plane.cluster.create(CONFIG_MAP, {"metadata": metadata, "data": {"a": "x" * 300_000}})
        with faults_of(plane, tmp_path, lambda *_: None) as (config, seen), connect(kubeconfig=config) as cluster:
            found = [item["metadata"]["name"] for item in cluster.each(CONFIG_MAP, labels={"paged": "yes"})]
    finally:
        for name in large:
            plane.cluster.delete(CONFIG_MAP, name, "paged")
    assert found == [*maps, *large]
    asked = [parse_qs(urlsplit(path).query) for path in seen if "configmaps" in path]
    assert {int(each["limit"][0]) for each in asked if "continue" in each} == {500, 100, 20, 4, 1}


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
        monkeypatch.setattr("chartgen.kube.cluster._UNSEEN_CRD_SECONDS", 0.0)
        with pytest.raises(ClusterError, match="has no Wheel") as caught:
            cluster.kind("none.example.com/v1", "Wheel")
        assert caught.value.status == 404
    # whoever may list CRDs waits for a kind that one of them defines, and for no other
    monkeypatch.setattr("chartgen.kube.cluster._CRD_SECONDS", 1e9)
    for kind in (("late.example.com/v1", "Wheel"), ("late.example.com/v2", "Cog")):
        with pytest.raises(ClusterError, match=f"has no {kind[1]}"):
            plane.cluster.kind(*kind)
    plane.cluster.delete(CRD, crd["metadata"]["name"])
