"""The scripts of a Volcano Job, run for real by bash: each machine a folder, with an ssh and an mpirun that record.

The stand-ins do what the real ones do to a script: ssh reaches a machine only when its server runs, mpirun starts
processes that know nothing but what Open MPI tells them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from exporters import free_port
from fake_torchrun import TORCH
from nccllogs import TCP, verbs
from rendered import Objects, one, rendered, unescaped

NASTY = [
    "two words",
    "double \" and single ' quotes",
    "$(whoami) `id` $HOME $$ ${X}",
    "line\nbreak\n",
    "-n",
    "*",
    "",
    "\\",
]
SECRET = "hf_very_secret"  # noqa: S105
METADATA = "http://169.254.169.254"

SSHD = """
import json, os, signal, sys
with open(os.environ["MACHINE"] + "/sshd", "w") as file:
    json.dump(sys.argv, file)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(255))
signal.pause()
"""
SSH = """
import json, os, subprocess, sys
arguments, machines = sys.argv[1:], os.environ["MACHINES"]
while arguments[0].startswith("-"):
    arguments = arguments[2:]
folder = machines + "/" + arguments[0]
if not os.path.exists(folder + "/sshd"):
    sys.exit(255)
command = " ".join(arguments[1:]).replace(machines + "/master/", folder + "/")
sys.exit(subprocess.run(["bash", "-c", command]).returncode)
"""
MPIRUN = """
import json, os, subprocess, sys
arguments = sys.argv[1:]
with open(os.environ["MACHINES"] + "/mpirun", "w") as file:
    json.dump({"argv": arguments, "env": dict(os.environ)}, file)
hosts = open(arguments[arguments.index("--hostfile") + 1]).read().split("\\n")[:-1]
processes = []
for host, slots in (line.split(" slots=") for line in hosts):
    for local in range(int(slots)):
        variables = {"PATH": os.environ["PATH"], "MASTER_ADDR": os.environ["MASTER_ADDR"]}
        world = {"RANK": len(processes), "SIZE": arguments[arguments.index("-np") + 1]}
        for name, value in {**world, "LOCAL_RANK": local, "LOCAL_SIZE": slots}.items():
            variables["OMPI_COMM_WORLD_" + name] = str(value)
        command = [part.replace("/etc/chartgen", os.environ["MACHINES"] + "/" + host) for part in arguments[-2:]]
        processes.append(subprocess.Popen(command, env=variables, cwd="/"))
sys.exit(next((code for code in [process.wait() for process in processes] if code), 0))
"""
NSYS = """
import json, os, sys
with open(os.environ["RUN_DIRECTORY"] + "/nsys-" + os.environ["RANK"], "w") as file:
    json.dump(sys.argv[1:], file)
os.execvp("bash", sys.argv[sys.argv.index("bash"):])
"""
PROGRAM = """
import json, os, sys
with open(os.environ["RUN_DIRECTORY"] + "/rank-" + os.environ["RANK"] + ".json", "w") as file:
    json.dump({"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}, file)
"""


@dataclass
class Cluster:
    """The pods of a run as folders of this machine.

    Args:
        folder: Where they are.
        found: The rendered objects.
        environment: More variables of the workers.
    """

    folder: Path
    found: Objects
    environment: dict[str, str] = field(default_factory=dict)
    metadata: str = "http://127.0.0.1:9"  # the discard port: nobody answers

    def __post_init__(self) -> None:
        (self.folder / "outputs").mkdir()
        for name, body in {"sshd": SSHD, "ssh": SSH, "mpirun": MPIRUN, "nsys": NSYS}.items():
            self.install(self.folder / "bin" / name, body)
        # what Volcano's plugin and the MPI operator mount into every pod of a run
        (self.folder / "ssh").mkdir()
        for name in ("id_rsa", "id_rsa.pub"):
            (self.folder / "ssh" / name).write_text(f"ssh-rsa {name}\n")
        (self.folder / "modules").mkdir()
        (self.folder / "modules" / "torch.py").write_text(TORCH)
        (self.folder / "said").write_text(verbs("RoCE", 16))

    def install(self, path: Path, body: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!{sys.executable}\n{body}")
        path.chmod(0o755)

    def task(self, name: str) -> dict[str, Any]:
        (only,) = (item for item in one("Job", self.found)["spec"]["tasks"] if item["name"] == name)
        return dict(only)

    @property
    def hosts(self) -> list[str]:
        """Names that Volcano gives to the workers."""
        job = one("Job", self.found)["metadata"]["name"]
        return [f"{job}-mpiworker-{index}.{job}" for index in range(self.task("mpiworker")["replicas"])]

    def container(self, name: str) -> dict[str, Any]:
        return dict(self.task(name)["template"]["spec"]["containers"][0])

    def script(self, name: str, place: Path) -> Path:
        """Put a script into a pod's folder, with the folder's own paths."""
        (text,) = (item["data"][name] for item in self.found if name in item.get("data", {}))
        place.mkdir(parents=True, exist_ok=True)
        for there, here in {"/run/chartgen": "run", "/run/sshd": "sshd-run"}.items():
            text = text.replace(there, str(place / here))
        text = text.replace("/root/.ssh", str(self.folder / "ssh"))
        file = place / name
        file.write_text(text.replace(METADATA, self.metadata))
        return file

    def variables(self, name: str) -> dict[str, str]:
        entries = self.container(name)["env"]
        known = {entry["name"]: unescaped(entry["value"]) for entry in entries if "value" in entry}
        return {**known, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "MACHINES": str(self.folder)}

    def worker(self, index: int, key: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a worker, perhaps with another key than the run's."""
        place = self.folder / self.hosts[index]
        start = self.script("start.sh", place)
        start.write_text(
            start.read_text().replace(str(self.folder / "ssh/id_rsa"), str(key or self.folder / "ssh/id_rsa"))
        )
        start.write_text(start.read_text().replace("/etc/chartgen/examine.py", str(place / "examine.py")))
        for name in ("rank.sh", "transport.sh", "transport.py", "transport.json", "watch.py", "examine.py"):
            script = self.script(name, place)
            script.write_text(script.read_text().replace("/etc/chartgen", str(place)))
        start.write_text(start.read_text().replace(self.metadata, f"{self.metadata}/{index}"))
        variables = {
            **self.variables("mpiworker"),
            "NODE_RANK": str(index),
            "MACHINE": str(place),
            "RUN_DIRECTORY": str(self.folder / "outputs"),
            "CHECKPOINT_DIRECTORY": str(self.folder / "checkpoints"),
            "PYTHONPATH": str(self.folder / "modules"),
            "CHARTGEN_NCCL_LOG": str(self.folder / "said"),
            **self.environment,
        }
        arguments = [unescaped(text) for text in self.container("mpiworker")["args"]]
        return subprocess.Popen(["bash", str(start), *arguments], env=variables, cwd=place)

    def master(self, hosts: str = "") -> subprocess.Popen[str]:
        """Start the master."""
        script = self.script("master.sh", self.folder / "master")
        variables = {**self.variables("mpimaster"), "VC_MPIWORKER_HOSTS": hosts or ",".join(self.hosts)}
        return subprocess.Popen(["bash", str(script)], env=variables, stdout=-1, stderr=-1, text=True)

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run all pods until the master ends, and then the workers, as Volcano does."""
        with ExitStack() as stack:
            for index in range(len(self.hosts)):
                stack.callback(_end, self.worker(index))
            master = self.master()
            out, err = master.communicate(timeout=180)
        return subprocess.CompletedProcess([], master.returncode, out, err)

    def ranks(self) -> list[dict[str, Any]]:
        """What the programs recorded, by rank."""
        files = (self.folder / "outputs").glob("rank-*.json")
        return [json.loads(file.read_text()) for file in sorted(files, key=lambda file: int(file.stem.split("-")[1]))]

    def mpirun(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "mpirun").read_text()))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    assert process.wait(timeout=180) == 143


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def make(tmp_path: Path, program: Path) -> Any:
    """Render a run of two workers with two GPUs each, unless the flags say otherwise, that starts the program."""

    def cluster(*sets: str, flags: tuple[str, ...] = ()) -> Cluster:
        own = (
            "launcher=nemo-1",
            "nodes=2",
            "gpusPerNode=2",
            "launchers.nemo-1.dllogger=false",
            f"launchers.nemo-1.program={program}",
        )
        return Cluster(tmp_path, rendered(*own, *sets, name="oke-h100", files=(), json=flags))

    return cluster


def test_every_rank_gets_arguments_and_environment_unchanged(make: Any) -> None:
    variables = {f"NASTY_{i}": text for i, text in enumerate(NASTY)}
    cluster = make(flags=(f"launchers.nemo-1.args={json.dumps(NASTY)}", f"env={json.dumps(variables)}"))
    cluster.environment["HF_TOKEN"] = SECRET
    done = cluster.run()
    assert done.returncode == 0, done.stderr
    ranks = cluster.ranks()
    assert len(ranks) == 4
    for rank in ranks:
        assert rank["argv"][-len(NASTY) :] == NASTY
        assert {**variables, "HF_TOKEN": SECRET}.items() <= rank["env"].items()
        assert Path(rank["cwd"]).parent == cluster.folder


def test_ranks_are_torchruns_for_the_program(make: Any) -> None:
    cluster = make()
    cluster.run()
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK")
    seen = [tuple(rank["env"][name] for name in names) for rank in cluster.ranks()]
    assert seen == [(str(r), str(r % 2), "4", "2", str(r // 2), str(r // 2)) for r in range(4)]
    for rank in cluster.ranks():
        # what Lightning asks for before it believes these variables, and where it then meets
        assert rank["env"]["TORCHELASTIC_RUN_ID"]
        assert (rank["env"]["MASTER_ADDR"], rank["env"]["MASTER_PORT"]) == (cluster.hosts[0], "6002")


def test_mpirun_starts_a_process_for_each_gpu_by_ssh_on_the_port(make: Any) -> None:
    cluster = make("mpi.sshPort=2345")
    cluster.run()
    record = cluster.mpirun()
    text = " ".join(record["argv"])
    assert "-np 4 " in text
    assert "--map-by ppr:2:node --bind-to numa" in text
    assert record["argv"][-2:] == ["bash", "/etc/chartgen/rank.sh"]
    for name in ("OMPI_MCA_plm_rsh_args", "PRTE_MCA_plm_ssh_args"):
        assert record["env"][name].startswith("-p 2345 ")
    assert (cluster.folder / "master/run/hosts").read_text() == "".join(f"{host} slots=2\n" for host in cluster.hosts)
    server = json.loads((cluster.folder / cluster.hosts[0] / "sshd").read_text())
    assert server[server.index("-p") + 1] == "2345"


def test_secrets_stay_in_the_environment(make: Any) -> None:
    cluster = make("secretEnv.HF_TOKEN.secretName=hf", "secretEnv.HF_TOKEN.key=token")
    cluster.environment["HF_TOKEN"] = SECRET
    done = cluster.run()
    seen = [done.stdout, done.stderr, cluster.mpirun(), *(rank["argv"] for rank in cluster.ranks())]
    assert SECRET not in json.dumps(seen)
    saved = cluster.folder / cluster.hosts[0] / "run/launch"
    assert SECRET in saved.read_text()
    assert saved.stat().st_mode & 0o777 == 0o600


def test_ranks_start_when_nccl_uses_the_promised_network(make: Any) -> None:
    cluster = make()
    done = cluster.run()
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("transport: RoCE as promised, 16 adapters\n") == 2


def test_without_the_promised_network_the_master_ends_with_its_exit_code(make: Any) -> None:
    cluster = make()
    (cluster.folder / "said").write_text(TCP)
    done = cluster.run()
    assert done.returncode == 78
    line = "transport: promised RoCE, NCCL uses Socket on eth0: NET/IB : No device found.; see "
    assert sum(text.startswith(line) for text in done.stdout.splitlines()) == 2
    boxes = sorted(cluster.folder.rglob("blackbox/*"))
    assert [box.name for box in boxes] == ["machine-0.log", "machine-1.log"]
    assert all(line in box.read_text() and "exit code 78" in box.read_text() for box in boxes)
    assert cluster.ranks() == []
    assert cluster.mpirun()["argv"][-2:] == ["bash", "/etc/chartgen/transport.sh"]


def test_a_rank_that_fails_fails_the_master(make: Any, program: Path) -> None:
    program.write_text("import os, sys\nsys.exit(37 if os.environ['RANK'] == '3' else 0)\n")
    assert make().run().returncode == 37


def test_a_machine_that_never_answers_is_named(make: Any) -> None:
    cluster = make("mpi.waitSeconds=5")  # enough for the other machine
    with ExitStack() as stack:
        stack.callback(_end, cluster.worker(0))
        master = cluster.master()
        out, err = master.communicate(timeout=180)
    assert master.returncode == 1
    (line,) = err.splitlines()
    assert cluster.hosts[1] in line
    assert cluster.hosts[0] not in line
    assert "waiting for 1 of 2 machines" in out or "waiting for 2 of 2 machines" in out
    assert not (cluster.folder / "mpirun").exists()


@pytest.mark.threat(18)
@pytest.mark.parametrize("own", [True, False], ids=["own", "foreign"])
def test_only_a_machine_with_the_key_of_the_run_gets_commands(make: Any, *, own: bool) -> None:
    """A real client and a real server, each with what the controllers mount into /root/.ssh."""
    server = shutil.which("sshd", path="/usr/sbin:/usr/bin")
    if not server or os.geteuid():
        pytest.skip("no OpenSSH server here, or not root: apt-get install openssh-server")
    cluster = make("mpi.waitSeconds=5", f"mpi.sshPort={free_port()}")
    keys = cluster.folder / "ssh"
    for key in (keys / "id_rsa", cluster.folder / "foreign"):
        key.unlink(missing_ok=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-N", "", "-f", key], check=True, input=b"y\n")
    for name, line in {
        "sshd": f"mkdir -p /run/sshd && exec {server} -o AuthorizedKeysFile={keys}/id_rsa.pub",
        "ssh": f"exec {shutil.which('ssh')} -F none -i {keys}/id_rsa",
    }.items():
        (cluster.folder / "bin" / name).write_text(f'#!/bin/sh\n{line} "$@"\n')
    place = cluster.folder / "master/run/place"  # where this one machine has that of its worker
    place.parent.mkdir(parents=True)
    place.touch()
    with ExitStack() as stack:
        worker = cluster.worker(0, key=None if own else cluster.folder / "foreign")
        stack.callback(worker.wait, timeout=180)
        stack.callback(worker.terminate)
        master = cluster.master(hosts="127.0.0.1")
        out, err = master.communicate(timeout=180)
    assert ("all 1 machines answer" in out) is own, err
    assert (cluster.folder / "mpirun").exists() is own


def test_an_image_without_a_server_says_so(make: Any) -> None:
    cluster = make()
    (cluster.folder / "bin" / "sshd").unlink()
    if shutil.which("sshd", path="/usr/sbin:/usr/bin"):
        pytest.skip("this machine has a server of its own")
    process = cluster.worker(0)
    assert process.wait(timeout=180) == 1


def test_sigterm_lets_every_rank_save_and_the_run_is_not_completed(make: Any, program: Path) -> None:
    program.write_text(
        "import os, signal, sys, time\n"
        "path = os.environ['RUN_DIRECTORY'] + '/rank-' + os.environ['RANK']\n"
        "def save(*_):\n"
        "    time.sleep(1)\n"
        "    open(path + '-saved', 'w').close()\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "open(path + '-ready', 'w').close()\n"
        "time.sleep(40)\n"
    )
    cluster = make()
    outputs = cluster.folder / "outputs"
    workers = [cluster.worker(index) for index in range(2)]
    for host in cluster.hosts:  # what a first attempt of the run has left there
        ranks = cluster.folder / host / "run" / "ranks"
        _wait(ranks.is_dir)
        for rank in range(2):
            (ranks / str(rank)).write_text("4194303 4194303\n")
    master = cluster.master()
    _wait(lambda: len(list(outputs.glob("*-ready"))) == 4)
    master.send_signal(signal.SIGTERM)
    master.communicate(timeout=180)
    assert master.returncode == 143
    assert len(list(outputs.glob("*-saved"))) == 4
    assert [worker.wait(timeout=180) for worker in workers] == [143, 143]


# The run of this chart has 10 steps.
PROFILE = ("profile.enabled=true", "profile.startStep=5", "profile.endStep=7")


def test_a_profiler_runs_around_the_ranks_that_are_asked_for(make: Any) -> None:
    cluster = make(*PROFILE, "profile.ranks={1,2}")
    assert cluster.run().returncode == 0
    outputs = cluster.folder / "outputs"
    assert {file.name for file in outputs.glob("nsys-*")} == {"nsys-1", "nsys-2"}
    argv = json.loads((outputs / "nsys-2").read_text())
    assert argv[argv.index("-o") + 1] == str(outputs / "rank-2")
    first, profiled = cluster.ranks()[0], cluster.ranks()[2]
    assert profiled["argv"] == first["argv"]


@pytest.fixture
def metadata() -> Iterator[tuple[str, dict[str, Any]]]:
    """OCI's metadata service, version 2: it refuses who does not send its header."""
    documents: dict[str, Any] = {}

    class Service(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.headers["Authorization"] == "Bearer Oracle" and self.path in documents
            self.send_response(200 if known else 404)
            self.end_headers()
            self.wfile.write(documents[self.path].encode() if known else b"")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=partial(server.serve_forever, 0.05), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", documents
    server.shutdown()
    server.server_close()


def topology(island: str, network: str, local: str) -> str:
    fields = {"customerHPCIslandId": island, "customerNetworkBlock": network, "customerLocalBlock": local}
    return json.dumps({**fields, "customerHostId": "host"})


def test_neighbours_in_the_network_get_neighbouring_ranks(make: Any, metadata: tuple[str, dict[str, Any]]) -> None:
    cluster = make("nodes=5", "gpusPerNode=1")
    cluster.metadata, documents = metadata
    places = [("i", "n2", "l1"), ("i", "n1", "l2"), ("i", "n2", "l1"), ("i", "n1", "l1"), ("i", "n1", "l2")]
    for index, place in enumerate(places):
        documents[f"/{index}/opc/v2/host/rdmaTopologyData"] = topology(*place)
    done = cluster.run()
    order = [cluster.hosts[index] for index in (3, 1, 4, 0, 2)]
    assert [line.split()[0] for line in (cluster.folder / "master/run/hosts").read_text().splitlines()] == order
    assert {rank["env"]["MASTER_ADDR"] for rank in cluster.ranks()} == {order[0]}
    assert f"ranks from 0 on {order[0]} i n1 l1" in done.stdout


def test_shapes_without_capacity_topology_are_sorted_by_block_and_rack(
    make: Any, metadata: tuple[str, dict[str, Any]]
) -> None:
    cluster = make()
    cluster.metadata, documents = metadata
    documents["/0/opc/v2/host"] = json.dumps({"networkBlockId": "n", "rackId": "r2"})
    documents["/1/opc/v2/host"] = json.dumps({"networkBlockId": "n", "rackId": "r1"})
    cluster.run()
    assert cluster.ranks()[0]["env"]["MASTER_ADDR"] == cluster.hosts[1]


@pytest.mark.parametrize("answer", [None, "", "not json", "[]", '{"customerNetworkBlock": "n"}'])
def test_without_an_answer_volcanos_order_stays_and_the_log_says_so(
    make: Any, metadata: tuple[str, dict[str, Any]], answer: str | None
) -> None:
    cluster = make()
    cluster.metadata, documents = metadata
    documents["/1/opc/v2/host/rdmaTopologyData"] = topology("i", "n", "a")
    if answer is not None:
        documents["/0/opc/v2/host/rdmaTopologyData"] = answer
    done = cluster.run()
    assert done.returncode == 0
    assert cluster.ranks()[0]["env"]["MASTER_ADDR"] == cluster.hosts[0]
    assert f"the network position of 1 of 2 machines is not known, such as {cluster.hosts[0]}" in done.stdout


def test_order_stays_when_sorting_is_off(make: Any, metadata: tuple[str, dict[str, Any]]) -> None:
    cluster = make("mpi.sortHosts=false")
    cluster.metadata, documents = metadata
    for index, local in enumerate("ba"):
        documents[f"/{index}/opc/v2/host/rdmaTopologyData"] = topology("i", "n", local)
    done = cluster.run()
    assert cluster.ranks()[0]["env"]["MASTER_ADDR"] == cluster.hosts[0]
    assert "network position" not in done.stdout


@pytest.mark.parametrize(
    ("name", "kind", "sets"),
    [
        ("oke-h100", None, ()),
        ("oke-h100", None, (*PROFILE, "data.stage=true", "data.name=pile")),
        ("onprem-p8000", "mpijob", ("network.interface=infiniband",)),
    ],
)
def test_scripts_are_clean_for_bash_and_shellcheck(
    tmp_path: Path, name: str, kind: str | None, sets: tuple[str, ...]
) -> None:
    shellcheck = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert shellcheck, "shellcheck is in requirements/dev.txt"
    found = rendered(*sets, name=name, workload=kind, files=())
    texts = {name: text for item in found for name, text in item.get("data", {}).items() if name.endswith(".sh")}
    assert set(texts) == {"start.sh", "rank.sh", "master.sh"}
    for script_name, text in texts.items():
        script = tmp_path / script_name
        script.write_text(text)
        subprocess.run(["bash", "-n", str(script)], check=True)
        done = subprocess.run([shellcheck, str(script)], capture_output=True, text=True, check=False)
        assert done.stdout == ""


def _wait(done: Any) -> None:
    end = time.monotonic() + 120
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)
