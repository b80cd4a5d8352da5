"""Releases on a real control plane: installed once, upgraded to exactly the given values, reported and removed."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from mini_charts import CHART_YAML
from selection import HELMS

from chartgen.errors import ChartgenError, MissingToolError, UsageError
from chartgen.helm.chart import Chart
from chartgen.helm.program import find_helm
from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.releases import helm_release
from chartgen.releases.helm_release import Place

TEMPLATE = """\
{{- if not .Values.list }}{{ fail "list must not be empty" }}{{ end }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-{{ .Values.list | toJson | sha256sum | trunc 8 }}
data:
  values: {{ .Values | toJson | quote }}
"""
CHART = Chart(
    "tiny", {"Chart.yaml": CHART_YAML, "values.yaml": "list: [1, 2]\ntext: t\n", "templates/a.yaml": TEMPLATE}
)


@pytest.fixture(params=HELMS)
def place(request: pytest.FixtureRequest, plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A namespace for one test and one Helm."""
    monkeypatch.setenv("CHARTGEN_HELM", str(engines.require(request.param)))
    namespace = f"release-{request.param}-{abs(hash(request.node.name)) % 10**8}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    plane.cluster.apply([body])
    return Place(namespace, plane.kubeconfig)


def config(place: Place, name: str = "run") -> str:
    """Return the manifest that Helm has recorded."""
    return find_helm(place.kubeconfig).run(["get", "manifest", name, "--namespace", place.namespace])


@pytest.mark.engines
def test_release_lives_once_from_install_to_uninstall(place: Place) -> None:
    made = helm_release.install(CHART, "run", {}, place)
    assert (made.name, made.namespace, made.revision) == ("run", place.namespace, 1)
    assert (made.chart, made.status) == ("tiny-0.1.0", "deployed")
    assert abs(made.updated - datetime.now(timezone.utc)) < timedelta(minutes=1)

    changed = helm_release.upgrade(CHART, "run", {"list": [3]}, place)
    assert (changed.revision, changed.chart, changed.status) == (2, "tiny-0.1.0", "deployed")
    helm_release.uninstall("run", place)
    with pytest.raises(ChartgenError, match="not found"):
        config(place)


@pytest.mark.engines
def test_install_refuses_an_existing_release(place: Place) -> None:
    helm_release.install(CHART, "run", {}, place)
    with pytest.raises(ChartgenError, match=r"^release run already exists; use `chartgen upgrade`") as caught:
        helm_release.install(CHART, "run", {"list": [9]}, place)
    assert "\n" not in str(caught.value)


@pytest.mark.engines
def test_upgrade_and_uninstall_refuse_a_missing_release(place: Place) -> None:
    with pytest.raises(ChartgenError, match=r"^no release run in namespace .*; use `chartgen install`$"):
        helm_release.upgrade(CHART, "run", {}, place)
    with pytest.raises(ChartgenError, match="not found"):
        helm_release.uninstall("run", place)


@pytest.mark.engines
def test_lists_replace_and_nulls_delete(place: Place) -> None:
    helm_release.install(CHART, "run", {"list": [3], "text": None, "quote": "$(x) 'y' \"z\"\n\u2028"}, place)
    manifest = config(place)
    assert '\\"list\\":[3]' in manifest
    assert "text" not in manifest
    assert "$(x) 'y'" in manifest


@pytest.mark.engines
def test_upgrade_without_values_returns_to_the_defaults(place: Place) -> None:
    helm_release.install(CHART, "run", {"list": [3]}, place)
    helm_release.upgrade(CHART, "run", {}, place)
    assert '\\"list\\":[1,2]' in config(place)


@pytest.mark.engines
def test_refusal_of_the_chart_is_its_own_message(place: Place) -> None:
    with pytest.raises(ChartgenError, match=r"^list must not be empty$"):
        helm_release.install(CHART, "run", {"list": []}, place)


@pytest.mark.engines
def test_missing_namespace_is_refused_in_one_line(place: Place) -> None:
    with pytest.raises(ChartgenError, match='namespaces "nowhere" not found') as caught:
        helm_release.install(CHART, "run", {}, Place("nowhere", place.kubeconfig))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a" * 54, "has 54 characters, at most 53 fit; shorten it"),
        ("Run", "cannot be a release name; use lower-case letters"),
        ("run_1", "cannot be a release name"),
        ("-run", "cannot be a release name"),
        ("run-", "cannot be a release name"),
        ("a.b", "cannot be a release name"),
        ("", "cannot be a release name"),
        ("run\n", "cannot be a release name"),
        ("--help", "cannot be a release name"),
    ],
)
def test_bad_name_is_refused_before_anything_runs(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHARTGEN_HELM", os.devnull)  # would fail as a missing tool if it were asked
    calls: list[Callable[[], object]] = [
        lambda: helm_release.install(CHART, name, {}),
        lambda: helm_release.upgrade(CHART, name, {}),
        lambda: helm_release.uninstall(name),
    ]
    for call in calls:
        with pytest.raises(UsageError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_unreachable_cluster_is_a_missing_tool(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text("apiVersion: v1\nkind: Config\n")
    with pytest.raises(MissingToolError, match="the Kubernetes cluster cannot be reached"):
        helm_release.install(CHART, "run", {}, Place("default", kubeconfig))
