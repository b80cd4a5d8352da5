"""The start script of the chart, run for real by bash with a torchrun that records how it was called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import profiles
import pytest
from image_recorder import Image, ended, patient
from rendered import arguments, env, init, one, rendered

# What a Secret holds; nothing but the program may see it.
SECRET = "hf_very_secret"  # noqa: S105
NASTY = [
    "two words",
    "double \" and single ' quotes",
    "$(whoami) `id` $HOME $$ ${X}",
    "line\nbreak\n",
    "-n",
    "*",
    "",
    "\\",
    "ünïcode",
]


@pytest.fixture
def image(tmp_path: Path) -> Image:
    found = Image(tmp_path)
    for name in ("torchrun", "ldconfig", "nsys"):
        found.program(name)
    return found


def test_torchrun_gets_the_rendezvous_and_the_program(image: Image) -> None:
    found = rendered()
    assert image.start(found, rank=5).returncode == 0
    argv = image.record()["argv"][1:]
    master = env(found)["MASTER_ADDR"]
    assert argv[:5] == [
        "--nnodes=32",
        "--nproc-per-node=8",
        "--node-rank=5",
        f"--master-addr={master}",
        "--master-port=6002",
    ]
    assert argv[5:] == ["--no-python", "bash", str(image.folder / "rank.sh"), *arguments(found)]
    assert image.record()["env"]["NODE_RANK"] == "5"


def test_without_its_number_a_machine_does_not_start(image: Image) -> None:
    command, variables = image.command(rendered())
    del variables["NODE_RANK"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode != 0
    assert "NODE_RANK" in done.stderr
    assert not (image.folder / "torchrun").exists()


def test_each_process_becomes_the_program(image: Image) -> None:
    found = rendered(
        "launchers.nemo-1.dllogger=false", "run.hangMinutes=0", json=(f"launchers.nemo-1.args={json.dumps(NASTY)}",)
    )
    assert image.start(found).returncode == 0
    image.program("python3", "sys.exit(23)")
    variables = {**image.record()["env"], "LOCAL_RANK": "0"}
    rank = image.record()["argv"][7:]
    assert subprocess.run(rank, env=variables, check=False, timeout=120).returncode == 23
    assert image.record("python3")["argv"][1:] == ["-u", *arguments(found)]


def test_arguments_and_variables_arrive_unchanged(image: Image) -> None:
    variables = {f"NASTY_{i}": text for i, text in enumerate(NASTY)}
    flags = (f"launchers.nemo-1.args={json.dumps(NASTY)}", f"env={json.dumps(variables)}")
    found = rendered("launchers.nemo-1.dllogger=false", json=flags)
    assert image.start(found).returncode == 0
    assert image.record()["argv"][-len(NASTY) :] == NASTY
    assert variables.items() <= image.record()["env"].items()


def test_exit_code_is_the_trainers(image: Image) -> None:
    image.program("torchrun", "sys.exit(37)")
    assert image.start(rendered()).returncode == 37


def test_sigterm_reaches_the_trainer_and_its_exit_code_counts(image: Image) -> None:
    image.program(
        "torchrun",
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(41))\n"
        "open(os.environ['RECORD'] + '/ready', 'w').close()\n"
        "time.sleep(20)",
    )
    command, variables = image.command(rendered())
    assert ended(command, image.folder / "ready", variables) == 41


@pytest.mark.parametrize("name", [profiles.TCPXO, profiles.TCPXO_BEFORE])
def test_the_vendors_profile_finds_what_it_requires(image: Image, name: str) -> None:
    image.profile = profiles.script(name)
    found = rendered()
    done = image.start(found)
    assert done.returncode == 0, done.stderr
    seen, folder = image.record()["env"], str(image.folder / "nccl-plugin/lib64")
    assert seen["NCCL_LIB_DIR"] == folder
    assert seen["LD_LIBRARY_PATH"].split(":")[:2] == [folder, "/usr/local/nvidia/lib64"]
    left = {name for name in profiles.sets(name) if name not in env(found)} - {"LD_LIBRARY_PATH"}
    assert left, "the profile sets what the chart leaves to it"
    assert {name: seen[name] for name in left} == {key: profiles.sets(name)[key] for key in left}


@pytest.mark.parametrize("name", sorted(profiles.profiles()))
def test_every_vendors_profile_is_read(image: Image, name: str) -> None:
    """Also those of fabrics that no chart of chartgen's own has: a user's fragment reads them alike."""
    image.profile = profiles.script(name)
    found = rendered()
    done = image.start(found)
    assert done.returncode == 0, done.stderr
    seen = image.record()["env"]
    left = profiles.sets(name).keys() - env(found).keys() - {"LD_LIBRARY_PATH"}
    assert left, "the profile sets what the chart leaves to it"
    folder = seen["NCCL_LIB_DIR"]
    assert {key: seen[key] for key in left} == {
        key: profiles.sets(name)[key].replace("${NCCL_LIB_DIR}", folder) for key in left
    }


def test_the_release_wins_over_the_vendors_profile(image: Image) -> None:
    assert {"NCCL_CROSS_NIC", "NCCL_DEBUG_SUBSYS"} <= profiles.sets(profiles.TCPXO).keys()
    found = rendered("env.NCCL_CROSS_NIC=own", "env.NCCL_DEBUG_SUBSYS=INIT")
    assert image.start(found).returncode == 0
    seen = image.record()["env"]
    assert (seen["NCCL_CROSS_NIC"], seen["NCCL_DEBUG_SUBSYS"]) == ("own", "INIT")


def test_a_profile_is_read_as_in_the_vendors_own_shell(image: Image) -> None:
    # which fails for nothing but what the script itself asks for
    image.profile += ": $UNSET_IN_PROFILE\nfalse\nfalse | true\n[[ -e /none ]] && echo\nexport NCCL_LATER=1\n"
    assert image.start(rendered()).returncode == 0
    assert image.record()["env"]["NCCL_LATER"] == "1"


def test_a_missing_profile_stops_the_run(image: Image) -> None:
    command, variables = image.command(rendered())
    shutil.rmtree(image.folder / "nccl-plugin")
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "nccl-env-profile.sh" in done.stderr
    assert not (image.folder / "torchrun").exists()


@pytest.mark.parametrize(("rank", "profiled"), [(0, True), (1, False), (2, True)])
def test_nsight_runs_where_a_profiled_rank_is(image: Image, rank: int, *, profiled: bool) -> None:
    found = rendered("profile.enabled=true", "profile.ranks={3,17}")
    assert image.start(found, rank=rank).returncode == 0
    assert (image.folder / "nsys").exists() is profiled
    if profiled:
        argv = image.record("nsys")["argv"]
        assert argv[argv.index("-o") + 1] == str(image.folder / f"outputs/run/noderank-{rank}")
        assert argv[-len(arguments(found)) :] == arguments(found)


@pytest.mark.parametrize("installed", [True, False])
def test_dllogger_is_used_when_the_image_has_it(image: Image, *, installed: bool) -> None:
    image.program("python3", f"sys.exit(sys.argv[1] == '-c' and not {installed})")
    command, variables = image.command(rendered(), rank=3)
    variables["CHARTGEN_PROCESSES"] = str(image.folder)
    rank = [command[0], str(image.folder / "rank.sh"), *command[2:]]
    said = [
        subprocess.run(rank, env={**variables, "LOCAL_RANK": local}, capture_output=True, text=True, check=True).stderr
        for local in ("0", "1")
    ]
    path = image.folder / "outputs/run/dllogger/rank-3/dllogger.json"
    argv = image.record("python3")["argv"]
    assert (f"++exp_manager.dllogger_logger_kwargs.json_file='{path}'" in argv) is installed
    assert path.parent.is_dir() is installed
    assert ["no DLLogger" in text for text in said] == [not installed, False], "one word for each machine"


def test_no_secret_reaches_logs_or_artefacts(image: Image) -> None:
    found = rendered("secretEnv.HF_TOKEN.secretName=hf", "secretEnv.HF_TOKEN.key=token")
    assert SECRET not in json.dumps(found)
    image.environment["HF_TOKEN"] = SECRET
    done = image.start(found)
    artefacts = "".join(path.read_text() for path in (image.folder / "outputs").rglob("*") if path.is_file())
    assert SECRET not in done.stdout + done.stderr + artefacts
    assert image.record()["env"]["HF_TOKEN"] == SECRET


@pytest.mark.parametrize(
    "sets",
    [("run.hangMinutes=3",), ("profile.enabled=true",), ("launchers.nemo-1.dllogger=false", "profile.enabled=true")],
)
def test_script_is_clean_for_bash_and_shellcheck(tmp_path: Path, sets: tuple[str, ...]) -> None:
    script = tmp_path / "start.sh"
    script.write_text(one("ConfigMap", rendered(*sets))["data"]["start.sh"])
    subprocess.run(["bash", "-n", str(script)], check=True)
    shellcheck = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert shellcheck, "shellcheck is in requirements/dev.txt"
    done = subprocess.run([shellcheck, str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == ""


@pytest.mark.parametrize("obeys", [True, False])
def test_daemon_ends_with_its_container_in_time(tmp_path: Path, *, obeys: bool) -> None:
    entry = tmp_path / "entrypoint_rxdm_container.sh"
    handler = f"trap 'echo stopped > {tmp_path}/stopped; exit 3' TERM" if obeys else "trap '' TERM"
    entry.write_text(f"#!/bin/bash\n{handler}\ntouch {tmp_path}/ready\nwhile :; do /bin/sleep 0.05; done\n")
    assert ended(daemon(tmp_path), tmp_path / "ready", patient(tmp_path) if obeys else None) == 0
    assert (tmp_path / "stopped").exists() is obeys


def test_a_daemon_that_fails_fails_its_container(tmp_path: Path) -> None:
    (tmp_path / "entrypoint_rxdm_container.sh").write_text("exit 9\n")
    assert subprocess.run(daemon(tmp_path), check=False, timeout=120).returncode == 9


def daemon(folder: Path) -> list[str]:
    """The daemon's container as it is started, with a folder of the test in place of the image's."""
    found = init(rendered(), "tcpxo-daemon")
    return [part.replace("/fts/", f"{folder}/") for part in (*found["command"], *found["args"])]
