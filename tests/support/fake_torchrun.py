"""Stand-ins for a training image on a machine without torch: torchrun, torch's communicator, and a small trainer.

They do what the real ones do to a start script. torchrun starts the processes with their variables, passes SIGTERM on,
kills what is left after its own patience (30 s in torch 2.11, here PATIENCE or 1 s), ends all when one fails and then
names it, and waits for the other machines when all have ended.
"""

from __future__ import annotations

import sys
from pathlib import Path

TORCHRUN = """
import os, signal, subprocess, sys, time
until = sys.argv.index("--no-python")
options = dict(word[2:].split("=", 1) for word in sys.argv[1:until])
nodes, count, node = int(options["nnodes"]), int(options["nproc-per-node"]), int(os.environ["NODE_RANK"])
processes = []
def end(patience):
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and any(process.poll() is None for process in processes):
        time.sleep(0.02)
    for process in processes:
        process.kill()
def stop(*_):
    print("torchrun got SIGTERM", flush=True)
    end(1)
    sys.exit(1)
signal.signal(signal.SIGTERM, stop)
for restart in range(int(options.get("max-restarts", 0)) + 1):
    if processes:
        end(1)
        processes.clear()
    for local in range(count):
        ranks = {"RANK": node * count + local, "LOCAL_RANK": local, "WORLD_SIZE": nodes * count}
        ranks["TORCHELASTIC_RESTART_COUNT"] = restart
        variables = {**os.environ, **{name: str(value) for name, value in ranks.items()}}
        processes.append(subprocess.Popen(sys.argv[until + 1:], env=variables, start_new_session=True))
    while any(process.poll() is None for process in processes) and not any(process.poll() for process in processes):
        time.sleep(0.02)
    if not any(process.poll() for process in processes):
        break
failed = next((local for local, process in enumerate(processes) if process.poll()), None)
if failed is not None:
    code = processes[failed].poll()
    end(float(os.environ.get("PATIENCE", "1")))
    who = f"{node * count + failed} (local_rank: {failed})"
    print("Root Cause (first observed failure):", "[0]:", f"  rank      : {who}",
          f"  exitcode  : {code} (pid: {processes[failed].pid})", "=" * 60, sep="\\n", file=sys.stderr)
    sys.exit(1)
if "meet" not in sys.argv:
    time.sleep(float(os.environ.get("OTHERS_SECONDS", "0")))
"""
TORCH = """
import os
class cuda:
    is_available = staticmethod(lambda: False)
class version:
    cuda = None
class ones:
    def __init__(self, *_, **__):
        self.value = 1
    def item(self):
        return self.value
class distributed:
    init_process_group = destroy_process_group = staticmethod(lambda *_, **__: None)
    get_world_size = staticmethod(lambda: int(os.environ["WORLD_SIZE"]))
    @staticmethod
    def all_reduce(total):
        total.value = distributed.get_world_size()
"""
# As Megatron-LM: iterations, a checkpoint when SIGTERM comes, and the next start goes on from there.
TRAINER = """
import os, signal, sys, time
from pathlib import Path
rank = os.environ["RANK"]
path = Path(sys.argv[sys.argv.index("--save") + 1]) / f"rank-{rank}"
if "--data-path" in sys.argv:
    prefix = sys.argv[sys.argv.index("--data-path") + 1]
    if not Path(prefix + ".idx").exists():
        raise FileNotFoundError(f"{prefix}.idx is missing")
stopped = []
signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
first = int(path.read_text()) if path.exists() else 0
for step in range(first + 1, 1 + int(sys.argv[sys.argv.index("--train-iters") + 1])):
    sys.stdout.write(f"rank {rank} iteration {step}\\n")  # one write, where print() has two
    sys.stdout.flush()
    time.sleep(0.05)
    if stopped:
        time.sleep(float(os.environ.get("SAVE_SECONDS", "0")))
        path.write_text(str(step))
        sys.stdout.write(f"rank {rank} saved {step}\\n")
        sys.exit()
"""


def install(folder: Path) -> Path:
    """Put the stand-ins into a root's `bin` and beside it, and give the trainer's path."""
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    torchrun = folder / "bin/torchrun"
    torchrun.write_text(f"#!{sys.executable}\n{TORCHRUN}")
    torchrun.chmod(0o755)
    (folder / "modules").mkdir()
    (folder / "modules/torch.py").write_text(TORCH)
    trainer = folder / "trainer.py"
    trainer.write_text(TRAINER)
    return trainer
