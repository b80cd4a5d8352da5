"""The scripts of a RayJob under a real Ray: head, machine, and the program that Ray's own command submits.

`CHARTGEN_RAY` is the folder of Ray's programs, such as `bin` of a virtual environment with `pip install ray[default]`.
What KubeRay does, this test does: it passes `ray start`, and runs `ray job submit` with the entrypoint.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from rendered import one, rendered

from chartgen.kube import wait_for

RAY = os.environ.get("CHARTGEN_RAY", "")
SETS = ("checkpoint.enabled=true", "storage.outputs.from=pvc://r", "storage.data.from=pvc://d")
# As NeMo RL does it: the driver's variables reach every process (nemo_rl/distributed/virtual_cluster.py of v0.6.0).
PROGRAM = """\
import os, sys, ray
ray.init(address="auto", runtime_env={"env_vars": dict(os.environ)})
get = ray.remote(num_cpus=1)(lambda: os.environ.get("LD_LIBRARY_PATH"))
print("DRIVER", os.getcwd(), os.environ.get("LD_LIBRARY_PATH"), sys.argv[1:])
print("GPUS", int(ray.cluster_resources()["GPU"]), "ON", ray.get(get.remote()))
sys.exit(int(os.environ.get("CODE", "0")))
"""

pytestmark = pytest.mark.skipif(not RAY, reason="CHARTGEN_RAY does not name the folder of Ray's programs")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def running(argv: list[str], env: dict[str, str], log: Path) -> Iterator[None]:
    """Run a script in the background, and end it with SIGTERM, as a kubelet does."""
    with log.open("w") as out:
        process = subprocess.Popen(argv, env=env, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(180)


@pytest.mark.parametrize("code", [0, 3])
def test_ray_starts_the_program_with_the_machines_libraries(tmp_path: Path, code: int) -> None:
    found = rendered(
        *SETS, "launchers.nemo-rl.args={grpo.seed=7,a b}", files=(), workload="rayjob", name="onprem-p8000"
    )
    for name, text in one("ConfigMap", found)["data"].items():
        moved = text.replace("/run/chartgen", str(tmp_path / "run")).replace("/etc/chartgen", str(tmp_path))
        (tmp_path / name).write_text(moved)
    program = tmp_path / "examples" / "run_grpo.py"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    folders = {name: str(tmp_path / name) for name in ("RUN_DIRECTORY", "CHECKPOINT_DIRECTORY")}
    base = {
        **os.environ,
        **folders,
        "PATH": f"{RAY}:{os.environ['PATH']}",
        "CODE": str(code),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    port, dashboard = free_port(), free_port()
    # the sockets of Ray need a short path
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="r") as short, ExitStack() as stack:
        common = f"--block --object-store-memory=100000000 --dashboard-agent-listen-port={free_port()}"
        start = f"ray start --head --node-ip-address=127.0.0.1 --port={port} --dashboard-port={dashboard} --num-cpus=0"
        start += f" --num-gpus=0 --temp-dir={short} {common}"
        env = {**base, "LD_LIBRARY_PATH": "/opt/image", "KUBERAY_GEN_RAY_START_CMD": start}
        argv = ["bash", str(tmp_path / "head.sh"), str(program), "--config", "x.yaml", "grpo.seed=7", "a b"]
        stack.enter_context(running(argv, env, tmp_path / "head.log"))

        def healthy() -> bool:
            ask = [f"{RAY}/ray", "health-check", "--address", f"127.0.0.1:{port}"]
            return subprocess.run(ask, env=base, capture_output=True, check=False).returncode == 0

        wait_for(healthy, what="that the head answers", timeout=180)
        start = (
            f"ray start --address=127.0.0.1:{port} --num-gpus=8 --num-cpus=2 --block --object-store-memory=100000000"
        )
        start += f" --node-ip-address=127.0.0.1 --dashboard-agent-listen-port={free_port()}"
        env = {**base, "LD_LIBRARY_PATH": "/opt/vendor:/opt/image", "KUBERAY_GEN_RAY_START_CMD": start}
        stack.enter_context(running(["bash", str(tmp_path / "start.sh")], env, tmp_path / "machine.log"))
        joined = tmp_path / "machine.log"
        # KubeRay submits when every pod is ready
        wait_for(lambda: "will now block" in joined.read_text(), what="that the machine has joined", timeout=180)
        submit = [f"{RAY}/ray", "job", "submit", "--address", f"http://127.0.0.1:{dashboard}", "--"]
        entrypoint = one("RayJob", found)["spec"]["entrypoint"].replace("/etc/chartgen", str(tmp_path)).split()
        done = subprocess.run(
            [*submit, *entrypoint], env=base, capture_output=True, text=True, check=False, timeout=180
        )
    assert f"DRIVER {tmp_path} None ['--config', 'x.yaml', 'grpo.seed=7', 'a b']" in done.stdout, (
        done.stdout + done.stderr
    )
    assert "GPUS 8 ON /opt/vendor:/opt/image" in done.stdout, (
        "not the libraries of the image alone, as the head has them"
    )
    assert (done.returncode == 0) == (code == 0), "a program that fails is a failure"
