"""`setup.monitoring`: PodMonitors that find the pods of runs and of DCGM, and a board whose figures exist."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from doc_runner import REPOSITORY, blocks
from exporters import exporter, exporter_module, free_port, send
from process_helpers import running
from promtool import check_expressions, program
from rendered import Objects, one, rendered, rendered_setup, setup_chart

from chartgen.composer.library import BUILTIN
from chartgen.errors import ChartgenError
from chartgen.helm.manifests import objects, render
from chartgen.linter import lint

ON = "setup.monitoring.enabled=true"
NAME = re.compile(r"\b(chartgen_\w+|DCGM_\w+)\b")
# NVIDIA/dcgm-exporter 4.5.3-4.8.2, etc/default-counters.csv: those of it that the board shows.
DCGM = {
    *("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"),
    *("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_GPU_UTIL"),
}


def monitors(found: Objects) -> dict[str, Any]:
    """The PodMonitors by the end of their names."""
    return {each["metadata"]["name"].rpartition("-")[2]: each for each in found if each["kind"] == "PodMonitor"}


def board(*sets: str) -> dict[str, Any]:
    (text,) = one("ConfigMap", rendered_setup(ON, *sets, files=()))["data"].values()
    return dict(json.loads(text))


def expressions(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The title of a panel and each of its expressions, with an interval and a run for Grafana's variables."""
    for panel in found["panels"]:
        for each in panel["targets"]:
            text = each["expr"].replace("$__rate_interval", "10s")
            yield panel["title"], text.replace("$namespace", "ml").replace("$run", "my-run-1")


def test_nothing_is_created_without_the_value() -> None:
    assert rendered_setup(files=()) == []


def test_each_half_creates_its_own() -> None:
    kinds = {
        sets: sorted(each["metadata"]["name"] for each in rendered_setup(ON, *sets, files=()))
        for sets in ((), ("setup.cluster=false",), ("setup.namespace=false",), ("setup.monitoring.dcgm.namespace=",))
    }
    assert kinds == {
        (): ["my-run-board", "my-run-dcgm", "my-run-runs"],
        ("setup.cluster=false",): ["my-run-runs"],
        ("setup.namespace=false",): ["my-run-board", "my-run-dcgm"],
        ("setup.monitoring.dcgm.namespace=",): ["my-run-board", "my-run-runs"],
    }


@pytest.mark.parametrize("name", sorted(path.stem for path in (BUILTIN / "targets").glob("*.yaml")))
def test_lint_finds_nothing(name: str, tmp_path: Path) -> None:
    """The real CRD of the Prometheus Operator is among the schemas."""
    values = tmp_path / "values.yaml"
    values.write_text("setup: {monitoring: {enabled: true, labels: {release: kube-prometheus-stack}}}\n")
    made = setup_chart(name)
    assert lint(made, {"monitoring": (values,)}) == []
    found = monitors(rendered_setup(ON, "setup.monitoring.labels.release=kps", files=(), name=name))
    assert {each["metadata"]["labels"]["release"] for each in found.values()} == {"kps"}
    assert found.keys() == {"runs", "dcgm"}


def pods(found: Objects) -> Iterator[dict[str, Any]]:
    """The templates of all pods, wherever they are."""
    left: list[Any] = list(found)
    while left:
        each = left.pop()
        if isinstance(each, dict):
            if "containers" in each.get("spec", {}):
                yield each
            left += each.values()
        elif isinstance(each, list):
            left += each


@pytest.mark.parametrize(
    ("name", "workload"),
    [
        *(("gke-a3mega", kind) for kind in (None, "job", "mpijob", "trainjob")),
        ("eks-p5", None),
        ("oke-h100", None),
    ],
)
def test_the_machines_of_a_run_are_found_and_no_other_pod(name: str, workload: str | None) -> None:
    spec = monitors(rendered_setup(ON, files=(), name=name))["runs"]["spec"]
    (endpoint,) = spec["podMetricsEndpoints"]
    wanted = spec["selector"]["matchLabels"]
    assert spec["selector"]["matchExpressions"] == [{"key": "run", "operator": "Exists"}]
    found = [
        pod
        for pod in pods(rendered("run.metricsPort=9401", "queue.name=q", files=(), name=name, workload=workload))
        if wanted.items() <= pod["metadata"]["labels"].items() and "run" in pod["metadata"]["labels"]
    ]
    (program_pod,) = found
    ports = [port for each in program_pod["spec"]["containers"] for port in each.get("ports", ())]
    assert [port["containerPort"] for port in ports if port["name"] == endpoint["port"]] == [9401]
    assert {each["sourceLabels"][0].rpartition("label_")[2] for each in endpoint["relabelings"]} == {
        "app_kubernetes_io_instance",
        "run",
    }
    assert "app.kubernetes.io/instance" in program_pod["metadata"]["labels"]


def test_data_programs_are_not_scraped() -> None:
    wanted = monitors(rendered_setup(ON, files=()))["runs"]["spec"]["selector"]["matchLabels"]
    for pod in pods(rendered("launcher=download", "data.source=hf://a/b", "run.metricsPort=9401", files=())):
        assert not wanted.items() <= pod["metadata"]["labels"].items()


def test_dcgm_is_found_where_the_values_say() -> None:
    found = monitors(rendered_setup(ON, files=()))["dcgm"]["spec"]
    # NVIDIA/gpu-operator @ 06faaf0, assets/state-dcgm-exporter/0800_daemonset.yaml
    assert found["selector"]["matchLabels"] == {"app": "nvidia-dcgm-exporter"}
    assert (found["podMetricsEndpoints"][0]["port"], found["podMetricsEndpoints"][0]["honorLabels"]) == (
        "metrics",
        True,
    )
    own = (
        "setup.monitoring.dcgm.namespace=monitoring",
        "setup.monitoring.dcgm.label=app.kubernetes.io/name=dcgm-exporter",
    )
    found = monitors(rendered_setup(ON, *own, files=()))["dcgm"]["spec"]
    assert found["namespaceSelector"] == {"matchNames": ["monitoring"]}
    assert found["selector"]["matchLabels"] == {"app.kubernetes.io/name": "dcgm-exporter"}


@pytest.mark.parametrize("label", ["app", "=x", "app=", "a b=c", "app={{x}}", "app=x,b=y"])
def test_what_is_no_label_is_refused(label: str) -> None:
    quoted = label.replace(",", "\\,")
    with pytest.raises(ChartgenError):
        rendered_setup(ON, f"setup.monitoring.dcgm.label={quoted}", files=())


# -- the board


def test_the_board_has_grafanas_form() -> None:
    """As the types of @grafana/schema 11.6.0 (npm) have it, with which TypeScript has accepted it."""
    found = board()
    assert found["schemaVersion"] == 39
    assert re.fullmatch(r"[a-zA-Z0-9_-]{8,40}", found["uid"])
    assert [each["id"] for each in found["panels"]] == list(range(1, 13))
    for panel in found["panels"]:
        assert {"type", "title", "gridPos", "datasource", "fieldConfig", "options", "targets"} <= panel.keys()
        assert set(panel["gridPos"]) == {"h", "w", "x", "y"}
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        assert len({each["refId"] for each in panel["targets"]}) == len(panel["targets"])
    places = [(each["gridPos"]["x"], each["gridPos"]["y"]) for each in found["panels"]]
    assert len(set(places)) == len(places)
    assert [each["name"] for each in found["templating"]["list"]] == ["source", "namespace", "run"]
    metadata = one("ConfigMap", rendered_setup(ON, files=()))["metadata"]
    assert metadata["labels"]["grafana_dashboard"] == "1"


def test_two_releases_have_two_boards() -> None:
    values: Any = {"setup": {"monitoring": {"enabled": True}}, "machineType": "a3-megagpu-8g"}
    texts = [render(setup_chart(), name, "ml", values) for name in ("one", "two")]
    (one_board,), (other,) = ([each["data"] for each in objects(text) if each["kind"] == "ConfigMap"] for text in texts)
    assert not one_board.keys() & other.keys()
    assert len({json.loads(text)["uid"] for each in (one_board, other) for text in each.values()}) == 2


def test_each_figure_of_the_board_exists() -> None:
    known = set(DCGM)
    for name, (kind, _) in exporter_module().METRICS.items():
        known |= {f"{name}_sum", f"{name}_count"} if kind == "summary" else {name}
    named = {name for _, text in expressions(board()) for name in NAME.findall(text)}
    assert named <= known
    assert {name for name in named if name.startswith("chartgen_")} >= {"chartgen_step", "chartgen_loss"}


def test_expressions_are_promql(tmp_path: Path) -> None:
    page = blocks(REPOSITORY / "docs/how-to/watch-in-grafana.md", "promql")
    assert len(page) == 2
    check_expressions([*(text for _, text in expressions(board())), *page], tmp_path)


# -- a real Prometheus


@contextmanager
def prometheus(folder: Path, target: int) -> Iterator[int]:
    """Prometheus that scrapes a port each second, with the labels that the PodMonitor gives."""
    port = free_port()
    labels = {"namespace": "ml", "run": "my-run-1", "release": "my-run"}
    static = [{"targets": [f"127.0.0.1:{target}"], "labels": labels}]
    config = folder / "prometheus.yaml"
    jobs = [{"job_name": "runs", "static_configs": static}]
    config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))
    argv = [
        program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=error",
    ]  # fmt: skip
    with running(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        yield port


def query(port: int, expression: str) -> list[float]:
    """Values of an expression, once there are some."""
    deadline = time.monotonic() + 180
    address = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                found = json.load(answer)["data"]["result"]
            values = [float(each["value"][1]) for each in found]
            if values and not any(value != value for value in values):  # noqa: PLR0124 - nan
                return values
        except OSError:
            pass  # it starts
        time.sleep(0.2)
    raise AssertionError(expression)


def test_prometheus_draws_the_boards_figures(tmp_path: Path) -> None:
    expected = {
        "Progress": 0.08,
        "Tokens per second": 16000.0,
        "Tokens per second and GPU": 8000.0,
        "Loss": 2.5,
    }
    with (
        exporter(tmp_path, batch=4, sequence=1000, steps=100, gpus=2) as (_, target),
        prometheus(tmp_path, target) as port,
    ):
        query(port, "up == 1")
        for step, seconds in ((6, 300.0), (7, 500.0), (8, 250.0)):
            if step > 6:  # rates need a first count
                query(port, f"chartgen_step >= {step - 1}")
            send(tmp_path, f"3  iteration {step}/ 9 | elapsed time per iteration (ms): {seconds} | lm loss: 2.5 |")
        query(port, "chartgen_step == 8")
        found: dict[str, list[list[float]]] = {}
        for title, text in expressions(board()):
            if "DCGM" not in text:
                found.setdefault(title, []).append(query(port, text))
    assert found.pop("Time since the last step")[0][0] < 60
    (last,), (mean,) = found.pop("Step time")
    assert last == 0.25
    assert 0.25 < mean < 0.5, "rates are extrapolated to the ends of their interval"
    assert {title: value for title, ((value,),) in found.items()} == pytest.approx(expected)
