"""`run.metricsPort`: each machine serves its steps to Prometheus, with the figures of `chartgen metrics`."""

from __future__ import annotations

import gzip
import http.client
import json
import math
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from corpus import CORPUS
from exporters import LINE, exporter, exporter_module, free_port, send
from fake_torchrun import install
from pod_runner import Machine, run
from process_helpers import command_lines, gone
from promtool import check_metrics
from rendered import VALUES, one, rendered, target

from chartgen.checks.line_patterns import compile_lines
from chartgen.errors import ChartgenError
from chartgen.helm.values import load_values
from chartgen.metrics.read.log import read_logs
from chartgen.metrics.report_data import Wanted, read_out

LOGS = Path(__file__).parents[1] / "data/logs"
GENUINE = CORPUS or Path("absent")
OWN_PROGRAM: Any = load_values([VALUES / "fsdp.yaml"]).data
FSDP: list[str] = OWN_PROGRAM["launchers"]["torchrun"]["metrics"]
# Rank 1 prints steps, as the last rank does with Megatron-LM; before them and after them it waits for a sign.
PROGRAM = """\
import os, pathlib, sys, time
def wait(name):
    while not pathlib.Path(os.environ["CHECKPOINT_DIRECTORY"], name).exists():
        time.sleep(0.02)
if os.environ["RANK"] == "1":
    print("waiting", flush=True)
    wait("begin")
    for step in range(1, 4):
        figures = f"elapsed time per iteration (ms): {step}50.0 | lm loss: 9.{step} |"
        print(f" iteration {step:8}/ 100 | {figures}", flush=True)
    print("all steps are printed", flush=True)
    wait("end")
    sys.exit(int(os.environ.get("CODE", "0")))
"""


def line_of(launcher: str) -> dict[str, Any]:
    """What reads a step's line of a launcher."""
    (found,) = (each for each in target("eks-p5").launchers if each.name == launcher)
    return {"also": [], **found.step_line}


def samples(text: str) -> dict[str, float]:
    """Samples of rank 0 or without a rank, name -> value."""
    rows = re.findall(r'^(\w+)(?:\{rank="0"\})? (\S+)$', text, re.MULTILINE)
    return {name: float(value) for name, value in rows}


def figures(path: Path, settings: dict[str, Any]) -> dict[int, dict[str, float]]:
    """Step -> its last figures, of a log whose lines a process prints."""
    steps = exporter_module().LastSteps({"port": 1, "also": [], **settings})
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found = {}
    for line in re.split(rb"[\r\n]", text):
        if re.search(settings["find"][0].encode(), line[:4096]):
            steps.take("0", line[:4096].decode(errors="replace"), 1.0)
            figures = samples(steps.exposition())
            if figures:
                found[int(figures["chartgen_step"])] = figures
    return found


CASES = [
    ("nemo-1", LOGS / "nemo-bars.log"),
    ("nemo-1", GENUINE / "other/nemo1-bars-sci.log"),
    ("megatron-lm", LOGS / "megatron-tgs.log"),
    ("megatron-bridge", LOGS / "megatron-tgs.log"),
    ("megatron-lm", GENUINE / "other/leonardo-megatron.log"),
    ("megatron-lm", GENUINE / "other/megds-tflops.log"),
    ("megatron-lm", GENUINE / "megatron/meg_gpt2_perf_n16-1999618.out.gz"),
    ("torchtitan", LOGS / "torchtitan.log"),
    ("torchtitan", GENUINE / "other/torchtitan-aurora.log"),
    ("automodel", LOGS / "automodel.log"),
    ("automodel", GENUINE / "other/automodel-gpt2.log"),
    ("torchrun", LOGS / "fsdp.log"),
]


@pytest.mark.parametrize(("launcher", "path"), [pytest.param(*case, id=f"{case[0]}-{case[1].name}") for case in CASES])
def test_the_figures_are_those_of_metrics(launcher: str, path: Path) -> None:
    """Each step's time, loss and tokens per second of a log are what `chartgen metrics` reads from the same lines."""
    if not path.exists():
        pytest.skip("the corpus of genuine logs is not here: see CHARTGEN_CORPUS")
    line = line_of(launcher) if launcher != "torchrun" else {"find": FSDP}
    own = compile_lines(FSDP) if launcher == "torchrun" else None
    gpus, batch, sequence = 8, 64, 2048
    # neither reaches the program of values/fsdp.yaml, which prints its speed
    reach = {"batch": batch, "sequence": sequence} if launcher != "torchrun" else {}
    found = figures(path, {**line, **reach, "gpus": gpus})
    track = read_logs([str(path)], own).track
    assert sorted(found) == sorted(set(track.numbers)), "other steps"
    columns = {name: dict(zip(track.numbers, track.columns.get(name, ()), strict=False)) for name in track.columns}
    names = {
        "seconds": "chartgen_last_step_seconds",
        "loss": "chartgen_loss",
        "tokens": "chartgen_tokens_per_second_per_gpu",
    }
    compared = 0
    for number, figures_of in found.items():
        for column, name in names.items():
            value = columns.get(column, {}).get(number)
            if value is None or (column == "tokens" and "seconds" in columns and reach):
                continue
            assert figures_of[name] == pytest.approx(value, nan_ok=True), (number, name)
            compared += 1
        size = columns.get("batch", {}).get(number, batch) * sequence
        speed = figures_of["chartgen_tokens_per_second"]
        if not math.isnan(figures_of["chartgen_last_step_seconds"]):
            expected = figures_of["chartgen_tokens_per_second_per_gpu"] * gpus
            assert speed == pytest.approx(expected)
            if reach:
                assert figures_of["chartgen_last_step_seconds"] == pytest.approx(size / speed)
    assert compared >= len(found)


@pytest.mark.parametrize(
    ("launcher", "name", "gpus"),
    [("nemo-1", "nemo-bars.log", 8), ("torchtitan", "torchtitan.log", 8), ("automodel", "automodel.log", 2)],
)
def test_the_last_step_has_the_speed_of_the_readout(launcher: str, name: str, gpus: int) -> None:
    """Tokens per second of one step are what the readout of that step alone has."""
    found = figures(LOGS / name, {**line_of(launcher), "gpus": gpus, "batch": 64, "sequence": 2048})
    step = max(found)
    facts = {"gpus": gpus, "batch": 64, "sequenceLength": 2048}
    out = read_out(read_logs([str(LOGS / name)]), Wanted(window=f"{step}:{step}", facts=[("the test", facts)]))
    assert found[step]["chartgen_tokens_per_second"] == pytest.approx(out.speed.tokens)
    assert found[step]["chartgen_tokens_per_second_per_gpu"] == pytest.approx(out.speed.tokens_per_gpu)


def test_every_program_that_trains_describes_its_line_or_is_refused() -> None:
    described = {each.name for each in target("eks-p5").launchers if each.step_line}
    found = target("eks-p5").launchers
    training = {each.name for each in found if each.task == "train" and each.processes == "gpu"}
    # values describe the line of torchrun, and MLPerf counts samples
    assert training - described == {"torchrun", "mlperf-llama2-lora"}
    assert described == {name for name, _ in CASES} - {"torchrun"}
    for name in described:
        compile_lines([*line_of(name)["find"], *line_of(name)["also"]])


def test_a_sum_counts_each_step_once_and_no_nan() -> None:
    steps = exporter_module().LastSteps({"find": FSDP, "also": [], "gpus": 8})
    for number, seconds in ((1, "2"), (1, "2"), (2, "3")):
        steps.take("7", f"step: {number} loss: 1 seconds: {seconds} tokens: 5", 1.0)
    text = steps.exposition()
    assert 'chartgen_step_seconds_sum{rank="7"} 5.0' in text
    assert 'chartgen_step_seconds_count{rank="7"} 2.0' in text


def test_memory_is_bounded() -> None:
    steps = exporter_module().LastSteps({"find": FSDP, "also": [], "gpus": 8})
    for rank in range(500):
        steps.take(str(rank), "step: 1 loss: 1 seconds: 1 tokens: 5", 1.0)
    assert steps.exposition().count("chartgen_step{") == 64


# -- the server


def ask(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    """Return status and text of an answer, once the server is there."""
    deadline = time.monotonic() + 180
    while True:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
            try:
                connection.request(method, path)
                answer = connection.getresponse()
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                return answer.status, answer.read().decode()
            except OSError:  # also of a connection that it closes
                if time.monotonic() > deadline:
                    raise
        time.sleep(0.05)


def fetch(port: int) -> str:
    """Return the page."""
    status, text = ask(port, "/metrics")
    assert status == 200
    return text


def fetch_with(port: int, sample: str) -> str:
    """Return the first page with a sample: the program's log and the exporter's pipe do not wait for each other."""
    text, limit = fetch(port), time.monotonic() + 180
    while sample not in text and time.monotonic() < limit:
        time.sleep(0.05)
        text = fetch(port)
    assert sample in text
    return text


def test_prometheus_accepts_the_text(tmp_path: Path) -> None:
    with exporter(tmp_path, batch=4, sequence=1000, steps=100) as (_, port):
        assert fetch(port) == "# HELP chartgen_steps_planned Steps of the whole run.\n" * 1 + (
            "# TYPE chartgen_steps_planned gauge\nchartgen_steps_planned 100\n"
        )
        send(tmp_path, "3  iteration 5/ 9 | elapsed time per iteration (ms): 500.0 | lm loss: nan |")
        text = fetch(port)
        assert 'chartgen_tokens_per_second_per_gpu{rank="3"} 4000.0' in text
        assert 'chartgen_loss{rank="3"} NaN' in text
        check_metrics(text)


def test_nothing_but_the_page_is_served(tmp_path: Path) -> None:
    with exporter(tmp_path) as (_, port):
        fetch(port)
        for path in ("/", "/metrics/x", "/../../etc/passwd", "/exporter.json"):
            assert ask(port, path)[0] == 404, path
        for method in ("POST", "PUT", "DELETE", "HEAD"):
            assert ask(port, "/metrics", method)[0] == 404, method


def test_readers_that_stay_or_send_rubbish_do_not_stop_it(tmp_path: Path) -> None:
    with exporter(tmp_path) as (process, port):
        fetch(port)
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
        for each in silent[:10]:
            each.send(b"GET /metrics HTTP/1.1\r\n" + b"x" * 100)
        with closing(socket.create_connection(("127.0.0.1", port))) as flood:
            try:
                for _ in range(1000):
                    flood.sendall(b"x" * 65536)
            except OSError:
                pass  # it has closed the connection
        for text in ("", " ", "x y", "1", "1 " + "z" * 100000, "\x00", "9  iteration x/"):
            send(tmp_path, text)
        send(tmp_path, "1  iteration 7/ 9 | elapsed time per iteration (ms): 1.5 | lm loss: x |")
        send(tmp_path, "1  iteration 8/ 9 | elapsed time per iteration (ms): 1.5 | lm loss: 1 |")
        deadline = time.monotonic() + 20
        while 'chartgen_step{rank="1"} 8.0' not in fetch(port):  # the lines come by another socket
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert process.poll() is None
        for each in silent:
            each.close()


@pytest.mark.threat(21)
def test_readers_that_stay_keep_nobody_from_the_page(tmp_path: Path) -> None:
    """Each new reader takes the place of the oldest one of the address with the most: also not of a slow Prometheus."""
    with exporter(tmp_path) as (_, port), ExitStack() as stack:
        fetch(port)
        slow = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=4))
        slow.send(b"GET /metrics HTTP/1.1\r\n")
        for _ in range(100):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0)))
        for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
            new = http.client.HTTPConnection("127.0.0.1", port, timeout=4, source_address=(source, 0))
            with closing(new) as connection:
                connection.request("GET", "/metrics")
                assert connection.getresponse().status == 200, source
        slow.send(b"\r\n")
        assert slow.recv(100).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("settings", [{"find": ["("]}, {"also": ["("]}, {"port": "x"}])
def test_an_exporter_that_cannot_start_says_why(tmp_path: Path, settings: dict[str, Any]) -> None:
    with exporter(tmp_path, **settings) as (process, _):
        text = process.communicate(timeout=180)[0]
    assert text.startswith("chartgen: no metrics of this machine: ")
    assert text.count("\n") == 1


# -- in a pod


@lru_cache
def made(port: int, **more: Any) -> Any:
    values = {
        "launcher": "torchrun", "nodes": 1, "gpusPerNode": 2,
        "launchers": {"torchrun": {
            "image": "example.com/own:1", "program": "/etc/chartgen/own.py", "files": {"own.py": PROGRAM},
            "metrics": LINE,
            "args": ["--batch=$(globalBatch)", "--sequence=$(sequenceLength)", "--steps=$(steps)"],
        }},
        "batch": {"global": 8}, "sequenceLength": 1024, "steps": 100,
        "run": {"metricsPort": port, **more},
    }  # fmt: skip
    return run(json=tuple(f"{name}={json.dumps(value)}" for name, value in values.items()))


class Pod:
    """A pod whose program waits for signs.

    Args:
        folder: Its files.
        process: Its start script.
    """

    def __init__(self, folder: Path, process: subprocess.Popen[str]) -> None:
        self._folder, self._process = folder, process

    def sign(self, name: str) -> None:
        """Let the program go on."""
        (found,) = self._folder.rglob("checkpoints")
        (found / name).touch()

    def read_until(self, text: str) -> str:
        """Return the log up to the line with a text."""
        assert self._process.stdout
        seen = ""
        for line in self._process.stdout:
            seen += line
            if text in line:
                return seen
        raise AssertionError(seen)

    def end(self) -> int:
        """Let the program end, and return the exit code."""
        self.sign("begin")
        self.sign("end")
        self._process.communicate(timeout=180)
        return self._process.returncode


@contextmanager
def pod(folder: Path, found: Any, **variables: str) -> Iterator[Pod]:
    install(folder)
    machine = Machine(folder, {"PYTHONPATH": str(folder / "modules"), **variables})
    with machine.start(found) as process:
        try:
            yield Pod(folder, process)
        finally:
            machine.kill()


@pytest.mark.parametrize("hang", [None, 60])
def test_a_pod_serves_the_steps_of_its_ranks(tmp_path: Path, hang: int | None) -> None:
    port = free_port()
    with pod(tmp_path, made(port, hangMinutes=hang)) as found:
        fetch(port)
        found.read_until("waiting")
        found.sign("begin")
        assert found.read_until("all steps are printed").count(" iteration     ") == 3
        text = fetch_with(port, 'chartgen_step{rank="1"} 3.0')
        assert 'chartgen_last_step_seconds{rank="1"} 0.35' in text
        assert 'chartgen_loss{rank="1"} 9.3' in text
        assert f'chartgen_tokens_per_second{{rank="1"}} {8 * 1024 / 0.35!r}' in text
        assert "chartgen_steps_planned 100" in text
        assert 'rank="0"' not in text
        assert found.end() == 0
    with pytest.raises(OSError, match=r"refused"):
        socket.create_connection(("127.0.0.1", port), timeout=5)


@pytest.mark.parametrize("code", ["0", "37"])
def test_an_exporter_that_cannot_listen_ends_no_run(tmp_path: Path, code: str) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("", 0))
        taken.listen()
        with pod(tmp_path, made(taken.getsockname()[1]), CODE=code) as found:
            seen = found.read_until("chartgen: no metrics of this machine")
            if "waiting" not in seen:
                found.read_until("waiting")
            assert found.end() == int(code)


def test_a_killed_exporter_is_not_missed(tmp_path: Path) -> None:
    port = free_port()
    with pod(tmp_path, made(port)) as found:
        fetch(port)
        found.read_until("waiting")
        pids = [
            pid for pid, argv in command_lines().items() if "exporter.py" in str(argv) and str(tmp_path) in str(argv)
        ]
        assert len(pids) == 1
        os.kill(pids[0], signal.SIGKILL)
        assert gone(pids)
        found.sign("begin")
        found.read_until("all steps are printed")
        assert found.end() == 0


def test_the_pod_declares_the_port() -> None:
    for name, workload in (
        ("gke-a3mega", None), ("gke-a3mega", "job"), ("gke-a3mega", "trainjob"), ("gke-a3mega", "mpijob"),
        ("eks-p5", None), ("oke-h100", None),
    ):  # fmt: skip
        found = rendered("run.metricsPort=9401", "queue.name=q", name=name, workload=workload, files=())
        text = json.dumps(found)
        assert text.count('"containerPort": 9401, "name": "metrics"') + text.count(
            '"name": "metrics", "containerPort": 9401'
        ) == (1), (name, workload)
        assert 'exporter.py \\"$METRICS_SOCKET\\"' in text


def test_nothing_changes_without_the_value() -> None:
    found = json.dumps(rendered("run.hangMinutes=0"))  # the watch knows of the exporter
    assert "exporter" not in found
    assert "metrics" not in json.dumps(one("ConfigMap", rendered())["data"]["start.sh"])
    data = rendered("launcher=download", "run.metricsPort=9401", "data.source=hf://a/b", files=())
    assert "exporter" not in json.dumps(data), "a program that trains nothing has no steps"


@pytest.mark.parametrize(
    ("sets", "port"),
    [
        (("launcher=torchrun", "launchers.torchrun.program=/a.py"), 9401),
        (("launcher=mlperf-llama2-lora",), 9401),
        ((), 6002),
        ((), 6003),
    ],
)
def test_a_port_without_steps_or_of_another_server_is_refused(sets: tuple[str, ...], port: int) -> None:
    with pytest.raises(ChartgenError) as caught:
        run("nodes=1", "launcher=megatron-lm", *sets, f"run.metricsPort={port}")
    assert "run.metricsPort" in str(caught.value)
