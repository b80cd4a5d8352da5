"""Answers in place of an API server's: each ends in bounded time and memory, with one line."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import hostileclusters
import pytest
from stranger_api import VERSION, Answer, answering

from chartgen.errors import ChartgenError, Problem
from chartgen.helm import program
from chartgen.kube import JOBSET, LEASE, POD, SECRET, Cluster
from chartgen.kube.answers import body
from chartgen.kube.connection import connect
from chartgen.releases.cleanup import remove_runs
from chartgen.releases.lock import version_of
from chartgen.releases.state import pods_before, survey_release
from chartgen.releases.status.overview import read_releases
from chartgen.releases.status.readout import read_readout

NESTED = b"[" * 200_000 + b"]" * 200_000
PODS = "api/v1/pods"


def pod(name: str, **parts: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "theirs", "uid": name}, "spec": {"containers": []}, **parts}


def pods(*items: Any, rest: str = "") -> bytes:
    return json.dumps({"kind": "PodList", "metadata": {"continue": rest}, "items": items}).encode()


@contextmanager
def connected(folder: Path, table: dict[str, Answer]) -> Iterator[Cluster]:
    """Connect to a server that answers each path alike, whatever the query."""
    whole = {**VERSION, **table}
    with (
        answering(folder, lambda path: whole.get(path.partition("?")[0])) as file,
        connect(kubeconfig=file, timeout=5) as cluster,
    ):
        yield cluster


def trickle(before: bytes) -> Callable[[BaseHTTPRequestHandler], None]:
    """Send a byte every tenth of a second, after some at once."""

    def send(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(before)
        while True:
            handler.wfile.write(b" ")
            time.sleep(0.1)

    return send


def endless(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n{")
    while True:
        handler.wfile.write(b'"a":"' + b"x" * 100_000 + b'",')


def packed(data: bytes) -> Answer:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
    return lambda handler: handler.wfile.write(head + data)


NOT_AN_API: dict[str, Answer] = {
    "deep": b'{"items":' + NESTED + b',"metadata":{}}',
    "deep without an end": NESTED[:200_000],
    "no JSON": b"<html>",
    "a number of 5,000 digits": b'{"items":[],"metadata":{"a":' + b"9" * 5000 + b"}}",
    "no UTF-8": b'{"items":"\xff"}',
    "UTF-16, in which a quote is half of a sign": ('{"metadata":{},"\u2200":' + "[" * 3000 + '"').encode("utf-16-le"),
    "a list": b"[]",
    "items that are a map": b'{"items":{"a":1},"metadata":{}}',
    "no metadata": b'{"items":[]}',
    "a number to go on with": b'{"items":[],"metadata":{"continue":7}}',
    "an item that is a number": pods(7),
    "an item without metadata": pods({"spec": {}}),
    "an item without a name": pods({"metadata": {}}),
    "a name that is a list": pods({"metadata": {"name": []}}),
    "the same page again": pods(pod("x"), rest="again"),
    "no end": endless,
    "a name that leads elsewhere": pods(pod("../../../secrets")),
    "a name that no address can have": pods(pod("a\ud800")),
    "a name that kubectl would take for a flag": pods(pod("--server=theirs")),
    "a name without end": pods(pod("a" * 1000)),
    "no namespace": pods({"metadata": {"name": "x"}}),
    "a bomb": packed(gzip.compress(b" " * 2**26, 1)),
    "damaged gzip": packed(b"x"),
    "too many values": b'{"metadata":{},"items":[' + b"[]," * 700_000 + b"[]]}",
}


@pytest.mark.threat(17)
def test_what_is_no_answer_of_an_api_server_ends_with_one_line(tmp_path: Path) -> None:
    for name, answer in NOT_AN_API.items():
        with connected(tmp_path, {PODS: answer}) as cluster, pytest.raises(ChartgenError) as caught:
            cluster.list(POD)
        assert caught.value.exit_code == 3, name
        assert len(caught.value.problems) == 1, name


def refused(code: str, body: bytes = b"{}", head: str = "") -> Answer:
    text = f"HTTP/1.1 {code}\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    return lambda handler: handler.wfile.write(text)


@pytest.mark.threat(17)
def test_what_a_server_says_of_a_refusal_is_short(tmp_path: Path) -> None:
    """Its message had 27 MB: it was masked for a minute, and printed."""
    message = json.dumps({"message": "token: a1b2 " * 2_000_000}).encode()
    busy = refused("429 Too Many Requests", head=f"Retry-After: {'9' * 5000}\r\n")
    expired = refused("410 Gone", json.dumps({"message": "x", "metadata": {"continue": "x" * 100_000}}).encode())
    for answer in (refused("403 Forbidden", message), refused("500 x", message), busy, expired):
        with connected(tmp_path, {PODS: answer}) as cluster, pytest.raises(ChartgenError) as caught:
            cluster.list(POD)
        assert len(str(caught.value)) < 3000


HEAD = {"name": "x", "namespace": "theirs"}
ODD: dict[str, Any] = {
    "a spec that is a text": {"spec": "x"},
    "a status that is a number": {"status": -1},
    "labels that are a list": {"metadata": {**HEAD, "labels": ["a"]}},
    "a label that is a number": {"metadata": {**HEAD, "labels": {"a": 1}}},
    "owners that are numbers": {"metadata": {**HEAD, "ownerReferences": [1]}},
    "an owner of kind []": {"metadata": {**HEAD, "ownerReferences": [{"kind": [], "uid": "x"}]}},
}


@pytest.mark.threat(17)
def test_an_object_of_another_form_is_left_out_and_reported(tmp_path: Path) -> None:
    """A tenant's object, of a kind with a loose schema, must not end a command for all others."""
    for name, parts in ODD.items():
        with connected(tmp_path, {PODS: pods(pod("x", **parts), pod("y"))}) as cluster:
            assert [each["metadata"]["name"] for each in cluster.list(POD)] == ["y"], name
            (gap,) = cluster.gaps
        assert "Pod" in str(gap), name
        assert "x" in str(gap), name


@pytest.mark.threat(17)
def test_pages_without_end_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chartgen.kube.cluster._MOST_PAGES", 20)
    asked: list[str] = []

    def answer(path: str) -> bytes | None:
        asked.append(path)
        return pods(pod(f"x{len(asked)}"), rest=f"{len(asked)}") if path.startswith(PODS) else VERSION.get(path)

    with answering(tmp_path, answer) as file, connect(kubeconfig=file) as cluster, pytest.raises(ChartgenError):
        cluster.list(POD)
    assert 20 < len(asked) < 30


@pytest.mark.threat(17)
def test_a_list_that_always_expires_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each refusal named another place to go on from."""
    monkeypatch.setattr("chartgen.kube.cluster._MOST_PAGES", 20)
    asked: list[str] = []

    def answer(path: str) -> Answer | None:
        asked.append(path)
        expired = json.dumps({"message": "x", "metadata": {"continue": f"{len(asked)}"}}).encode()
        return refused("410 Gone", expired) if path.startswith(PODS) and len(asked) < 99 else VERSION.get(path)

    with answering(tmp_path, answer) as file, connect(kubeconfig=file) as cluster, pytest.raises(ChartgenError):
        cluster.list(POD)
    assert 20 < len(asked) < 30


@pytest.mark.threat(17)
@pytest.mark.parametrize(("limit", "params"), [("_DEADLINE", {"tailLines": "5"}), ("_WHOLE_LOG", {})])
def test_a_log_that_never_ends_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, params: dict[str, str]
) -> None:
    log = f"{PODS.replace('pods', 'namespaces/ml/pods')}/x/log"
    with connected(tmp_path, {log: trickle(b"HTTP/1.1 200 OK\r\n\r\n")}) as cluster:
        monkeypatch.setattr(f"chartgen.kube.http.{limit}", 0.6)
        with pytest.raises(ChartgenError, match="in time"):
            list(cluster.stream(POD, "x", "ml", subresource="log", params=params, idle=9))


@pytest.mark.threat(17)
def test_a_log_is_not_packed(tmp_path: Path) -> None:
    """Packed twice, 7 KB were lines for two minutes, and `why` judged those that came."""
    path = f"{PODS.replace('pods', 'namespaces/ml/pods')}/x/log"
    log = {path: packed(gzip.compress(b"step 1\n" * 10))}
    with connected(tmp_path, log) as cluster, pytest.raises(ChartgenError, match="packed"):
        list(cluster.stream(POD, "x", "ml", subresource="log", params={}, idle=9))


@pytest.mark.threat(17)
def test_a_run_of_another_form_is_one_line_and_leaves_other_releases(tmp_path: Path) -> None:
    """Python has no year 0, which Go reads."""
    objects = deepcopy(hostileclusters._cluster())
    objects[JOBSET.path()][0]["metadata"]["creationTimestamp"] = "0000-01-01T00:00:00Z"
    texts: dict[str, Answer] = {p: json.dumps(each).encode() for p, each in hostileclusters._paths(objects).items()}
    problems: list[Problem] = []
    with connected(tmp_path, texts) as cluster:
        with pytest.raises(ChartgenError, match="my-run in namespace ml"):
            read_readout(cluster, "my-run", "ml")
        found = [each.namespace for each in read_releases(cluster, refused=problems.append)]
    assert found == ["theirs"]
    assert "my-run in namespace ml" in str(problems)


@pytest.mark.threat(17)
def test_a_foreign_run_with_the_name_of_one_that_is_gone_is_no_success(tmp_path: Path) -> None:
    objects = deepcopy(hostileclusters._cluster())
    run = objects[JOBSET.path()][0]
    run["status"]["conditions"] = hostileclusters._conditions(Completed="True")
    annotations = run["metadata"].pop("annotations")
    for owned, record in ((False, True), (True, True), (False, False)):  # GitOps without Helm has no record
        run["metadata"]["annotations"] = annotations if owned else {}
        objects[SECRET.path()] = objects[SECRET.path()] if record else []
        texts: dict[str, Answer] = {p: json.dumps(each).encode() for p, each in hostileclusters._paths(objects).items()}
        with connected(tmp_path, texts) as cluster:
            phases = {read_readout(cluster, "my-run", "ml", brief=brief).phase for brief in (True, False)}
        assert phases == {"absent" if record and not owned else "finished"}


@pytest.mark.threat(17)
def test_no_command_waits_for_a_pod_that_only_has_the_labels_of_a_run(tmp_path: Path) -> None:
    """It waited for as long as the grace period of such a pod, which may be years."""
    objects = deepcopy(hostileclusters._cluster())
    for each in objects[POD.path()]:
        each["metadata"]["labels"]["run"] = "my-run"
    stranger = deepcopy(objects[POD.path()][0])
    stranger["metadata"].update(name="stranger", ownerReferences=[])
    objects[POD.path()].append(stranger)
    texts: dict[str, Answer] = {p: json.dumps(each).encode() for p, each in hostileclusters._paths(objects).items()}
    with connected(tmp_path, texts) as cluster:
        state = survey_release(cluster, "my-run", "ml")
        found = [
            each["metadata"]["name"] for each in pods_before(cluster, state, cluster.list(JOBSET, namespace="ml"), "")
        ]
    assert found == ["my-run-workers-0", "my-run-workers-1"]


@pytest.mark.threat(17)
@pytest.mark.parametrize("grace", ["x", None, [7], 10**12])
def test_a_removal_ends_whatever_its_pods_state(grace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods without labels, and with other numbers of seconds, ended `uninstall`, or made it wait for 30,000 years."""
    monkeypatch.setattr("chartgen.releases.cleanup._MOST_GRACE", 0)
    monkeypatch.setattr("chartgen.releases.cleanup._GRACE_BEYOND", 0.2)
    objects = deepcopy(hostileclusters._cluster())
    bare, own = objects[POD.path()][:2]
    del bare["metadata"]["labels"]
    own["metadata"]["labels"]["run"] = "my-run"
    own["spec"]["terminationGracePeriodSeconds"] = grace
    texts: dict[str, Answer] = {p: json.dumps(each).encode() for p, each in hostileclusters._paths(objects).items()}
    with connected(tmp_path, texts) as cluster:
        state = survey_release(cluster, "my-run", "ml")
        with pytest.raises(ChartgenError, match="does not end"):
            remove_runs(
                cluster, state, cluster.list(JOBSET, namespace="ml"), check=lambda: None, progress=lambda _: None
            )


@pytest.mark.threat(17)
def test_notes_of_another_form_are_left_out_of_a_status(tmp_path: Path) -> None:
    objects = deepcopy(hostileclusters._cluster())
    objects[JOBSET.path()][0]["status"]["conditions"] = hostileclusters._conditions(Failed="True")
    objects[LEASE.path()][0]["metadata"]["annotations"] = {"chartgen/notes": "[1"}
    texts: dict[str, Answer] = {p: json.dumps(each).encode() for p, each in hostileclusters._paths(objects).items()}
    with connected(tmp_path, texts) as cluster:
        found = read_readout(cluster, "my-run", "ml")
    assert found.phase == "failed"
    assert "Lease" in str(found.unread)


@pytest.mark.threat(17)
@pytest.mark.parametrize("answer", [{}, {"metadata": "x"}, {"metadata": {"name": "x"}}])
def test_a_lease_without_a_version_is_one_line(answer: Any) -> None:
    with pytest.raises(ChartgenError, match="not a Kubernetes API server"):
        version_of(answer)


@pytest.mark.threat(17)
def test_bytes_that_come_slowly_are_waited_for_until_one_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits of the client begin anew with each byte, in headers, in a body, and in the end of a log."""
    for name, before in {"header": b"HTTP/1.1 200 OK\r\nA: ", "body": b"HTTP/1.1 200 OK\r\n\r\n{"}.items():
        for refused in (False, True):
            text = before.replace(b"200 OK", b"403 No") if refused else before
            log = f"{PODS.replace('pods', 'namespaces/ml/pods')}/x/log"
            with (
                connected(tmp_path, {PODS: trickle(text), log: trickle(text)}) as cluster,
                monkeypatch.context() as patch,
            ):
                patch.setattr("chartgen.kube.http._DEADLINE", 0.6)  # not for the connection, on a busy machine
                begun = time.monotonic()
                with pytest.raises(ChartgenError):
                    cluster.list(POD)
                params = {"tailLines": "5"}
                with pytest.raises(ChartgenError):
                    list(cluster.stream(POD, "x", "ml", subresource="log", params=params, idle=9))
                assert time.monotonic() - begun < 5, (name, refused)


@pytest.mark.threat(17)
def test_an_object_nested_deeply_is_read_without_what_is_deep(tmp_path: Path) -> None:
    deep = b'{"a":"]}\\"[",' * 1 + b'"b":' * 1 + NESTED + b',"c":[{}],"d":"x"}'
    one = json.dumps(pod("x", status={"deep": "DEEP"})).encode().replace(b'"DEEP"', deep)
    fields = json.dumps(pod("y")).encode().replace(b'"uid"', b'"managedFields":' + NESTED + b',"uid"')
    answer = b'{"metadata":{},"items":[' + one + b"," + fields + b"]}"
    with connected(tmp_path, {PODS: answer}) as cluster:
        first, second = cluster.list(POD)
    status = first["status"]["deep"]
    assert (status["a"], status["c"], status["d"]) == (']}"[', [{}], "x")
    assert second == {"apiVersion": "v1", "kind": "Pod", **pod("y")}


@pytest.mark.threat(17)
def test_large_objects_come_in_smaller_pages(tmp_path: Path) -> None:
    """One answer with all of them would be too large: a thousand Secrets may have a gigabyte."""
    many = [pod(f"x{number:02}", data="x" * 3_000_000) for number in range(30)]

    def answer(path: str) -> bytes | None:
        if not path.startswith(PODS):
            return VERSION.get(path)
        query = dict(part.split("=") for part in path.partition("?")[2].split("&"))
        begin, size = int(query.get("continue", 0)), int(query["limit"])
        return pods(*many[begin : begin + size], rest=str(begin + size) if begin + size < len(many) else "")

    with answering(tmp_path, answer) as file, connect(kubeconfig=file) as cluster:
        assert [each["metadata"]["name"] for each in cluster.each(POD)] == [each["metadata"]["name"] for each in many]


@pytest.mark.threat(17)
def test_nothing_is_kept_of_what_follows_packed_bytes() -> None:
    blocks = (block for block in (gzip.compress(b"{}"), *[bytes(2**20)] * 64))
    with pytest.raises(ValueError, match="gzip"):
        body(blocks, "gzip")
    assert len(list(blocks)) == 63


@pytest.mark.threat(17)
@pytest.mark.parametrize("case", ["nothing", "blanks", "a text without an end"])
def test_helm_ends_whatever_the_server_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    answers = {"nothing": lambda _: time.sleep(60), "blanks": trickle(b"HTTP/1.1 200 OK\r\n\r\n{")}
    monkeypatch.setattr(program, "CLUSTER_LIMIT", 60.0 if case == "a text without an end" else 3.0)
    monkeypatch.setattr(program, "CLUSTER_MEMORY", 3 << 20)
    began = time.monotonic()
    with answering(tmp_path, lambda _: answers.get(case, endless)) as file:
        helm = program.find_helm(kubeconfig=file)
        with pytest.raises(program.HelmError, match=r"^helm uninstall was ended: it took more memory or time"):
            helm.run(["uninstall", "my-run"])
    assert time.monotonic() - began < 50
