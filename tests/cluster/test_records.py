"""Helm's records, read without Helm: what both Helms keep, wherever they keep it, and charts restored from it."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from releases import RELEASE, Site, site_of, small
from rendered import VALUES, chart, fit_schema
from selection import HELMS
from trainlogs import megatron, steps

from chartgen.errors import ChartgenError, MissingToolError
from chartgen.helm.manifests import objects, render
from chartgen.helm.program import find_helm
from chartgen.helm.values import Values, load_values
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.releases import helm_release
from chartgen.releases.history import RevisionRecord, read_last_record, read_records, restore_chart, storage_kind
from chartgen.releases.status.training_log import progress_of

FILES = [VALUES / name for name in ("gpt3-5b.yaml", "gke-a3mega/gpt3-5b.yaml", "site.gke-a3mega.example.yaml")]
LINES = [f"iteration {number}/ 100 | elapsed time per iteration (ms): 20000.0 |" for number in (41, 42)]


@pytest.fixture(params=HELMS)
def here(request: pytest.FixtureRequest, plane: ControlPlane) -> Iterator[Site]:
    with site_of(request, plane, "records") as found:
        yield found


@pytest.fixture
def values() -> Values:
    return load_values(FILES)


@pytest.fixture
def record(here: Site, values: Values) -> RevisionRecord:
    """What Helm keeps of the A3 Mega chart."""
    helm_release.install(chart(), RELEASE, values.data, here.place, description="the first one")
    (found,) = here.records()
    return found


@pytest.mark.engines
def test_record_says_what_helm_says(here: Site, record: RevisionRecord, values: Values) -> None:
    assert (record.name, record.namespace, record.revision) == (RELEASE, here.namespace, 1)
    assert (record.status, record.description, record.target) == ("deployed", "the first one", "gke-a3mega")
    (told,) = json.loads(find_helm(here.place.kubeconfig).run(["list", "-n", here.namespace, "--output", "json"]))
    assert f"{record.chart}-{record.chart_version}" == told["chart"]
    assert f"{record.updated:%Y-%m-%d %H:%M:%S}" == told["updated"][:19]
    assert record.values == values.data
    assert objects(record.manifest) == objects(render(chart(), RELEASE, here.namespace, values.data))
    assert record.server_side is ("helm3" not in str(here.helm))


@pytest.mark.engines
def test_last_record_is_read_without_the_earlier_ones(here: Site, record: RevisionRecord) -> None:
    """Each has a whole chart: ten of them are megabytes."""
    last = here.cluster.get(storage_kind(), record.stored, here.namespace)
    assert last
    labels = {**last["metadata"]["labels"], "version": "0"}
    metadata = {"name": record.stored.replace(".v1", ".v0"), "namespace": here.namespace, "labels": labels}
    here.cluster.create(storage_kind(), {**last, "metadata": metadata, "data": {"release": "bm9uZQ=="}})
    assert read_last_record(here.cluster, RELEASE, here.namespace) == record
    with pytest.raises(ChartgenError):
        here.records()


@pytest.mark.engines
def test_restored_chart_renders_and_is_checked_like_the_original(record: RevisionRecord, values: Values) -> None:
    restored = restore_chart(record)
    assert objects(render(restored, "a", "b", values.data)) == objects(render(chart(), "a", "b", values.data))
    fit_schema(restored, values)
    with pytest.raises(ChartgenError):
        render(restored, "a", "b", {**values.data, "nodes": 3})


@pytest.mark.engines
def test_config_maps_are_read_too(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_DRIVER", "configmap")
    here.roll("install", small(), {"run": {"steps": 1}})
    assert here.statuses() == ["deployed"]
    here.roll("upgrade", small(), {"run": {"steps": 2}})
    assert here.statuses() == ["superseded", "deployed"]
    monkeypatch.delenv("HELM_DRIVER")
    assert here.records() == []


def test_records_outside_of_the_cluster_are_refused(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HELM_DRIVER", "sql")
    with pytest.raises(MissingToolError) as caught:
        read_records(here.cluster, RELEASE, here.namespace)
    assert str(caught.value) == (
        "HELM_DRIVER=sql keeps releases outside the cluster, where chartgen cannot read them; use secret, Helm's "
        "default, or configmap"
    )


@pytest.mark.engines
def test_chart_with_subcharts_is_not_restored(record: RevisionRecord) -> None:
    metadata = {**record.content["metadata"], "dependencies": [{"name": "other"}]}
    with pytest.raises(
        ChartgenError, match="has subcharts, which Helm keeps rendered only; use `helm rollback my-run 1`"
    ):
        restore_chart(replace(record, content={**record.content, "metadata": metadata}))


@pytest.mark.engines
def test_progress_knows_the_model_from_the_record(record: RevisionRecord) -> None:
    """5 B parameters on 16 GPUs: 2,048 samples of 2,048 tokens in 20 s."""
    said = progress_of(LINES, record).text
    assert said.startswith("step 42 of 50, 20 s a step, 209,715 tokens/s, MFU ")
    assert said.endswith("(full attention), 2 min 40 s left")
    assert progress_of(LINES, None).text == "step 42 of 100, 20 s a step, 19 min 20 s left"
    assert progress_of(["no step yet"], record).text == ""
    stale = replace(record, values={**record.values, "nosuch": 1})
    assert progress_of(LINES, stale) == progress_of(LINES, None)


@pytest.mark.engines
@pytest.mark.parametrize(("seconds", "count", "slow"), [(2000.0, 25, True), (2000.0, 5, False), (0.1, 25, False)])
def test_a_run_far_below_its_estimate_is_a_finding(
    record: RevisionRecord, seconds: float, count: int, slow: bool
) -> None:
    lines = megatron(steps([seconds] * count)).splitlines()
    assert (progress_of(lines, record).slow is not None) is slow
    assert progress_of(lines, None).slow is None


def stored(here: Site, data: dict[str, str]) -> None:
    """Put a Secret there that only looks like a record of Helm."""
    labels = {"owner": "helm", "name": RELEASE, "status": "deployed", "version": "1"}
    metadata = {"name": f"sh.helm.release.v1.{RELEASE}.v1", "namespace": here.namespace, "labels": labels}
    item = {"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1", "metadata": metadata, "data": data}
    here.cluster.apply([item])


def twice(content: bytes) -> str:
    return base64.b64encode(base64.b64encode(content)).decode()


@pytest.mark.engines
@pytest.mark.parametrize(
    "data",
    [
        {},
        {"other": ""},
        {"release": base64.b64encode(b"not base64 inside").decode()},
        {"release": twice(b"not gzip")},
        {"release": twice(gzip.compress(b"{}" * 100)[:-9])},
        {"release": twice(gzip.compress(b"\xff"))},
        {"release": twice(gzip.compress(b"[]"))},
        {"release": twice(gzip.compress(b'{"info": {}, "chart": null}'))},
        {"release": twice(gzip.compress(b'{"info": {"last_deployed": "today"}, "chart": {"metadata": {}}}'))},
    ],
)
def test_broken_record_is_named(here: Site, data: dict[str, str]) -> None:
    stored(here, data)
    with pytest.raises(ChartgenError, match=f"Secret sh.helm.release.v1.{RELEASE}.v1 "):
        here.records()
