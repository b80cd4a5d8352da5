"""Whether NCCL uses the network that the chart promises, told before a run of several machines trains.

    transport.py meet LOG           in each process of the run: one small communicator over all ranks
    transport.py compare LOG CODE   then once on each machine: what NCCL says of it, against transport.json; CODE is the
                                    exit code of the meeting

Exit codes of `compare`: 0 as promised, or not checked strictly; 78 NCCL uses another network; else the meeting's own.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

CONTRACT = "/etc/chartgen/transport.json"
BROKEN = 78  # EX_CONFIG of sysexits.h: no other start will find another network
PATIENCE = timedelta(seconds=120)  # a communicator of thousands of ranks takes seconds
_PREFIX = re.compile(r"^.*?NCCL (?:INFO|WARN) ")
_NETWORK = re.compile(r"Using network (.+)")
_USING = re.compile(r"NET/(\S+) ?: Using (.*)")
_ADAPTER = re.compile(r"\[\d+\]([\w.-]+):")
# NCCL's words for it have changed from version to version.
_NO_PLUGIN = re.compile(r"NET/Plugin.*?(?:Could not find|No plugin found|dlerror=)\W*(lib[\w.-]+\.so)")


def meet(log: str) -> None:
    """Make one communicator over all ranks and use it once; the first process of a machine keeps what NCCL says.

    Args:
        log: The file for it.
    """
    local = int(os.environ["LOCAL_RANK"])
    if local == 0:
        os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,NET", NCCL_DEBUG_FILE=log)
    # NCCL reads the variables when torch loads it.
    import torch  # type: ignore[import-not-found]
    from torch import distributed

    device = "cpu"
    if torch.cuda.is_available():
        device = f"cuda:{local}"
        torch.cuda.set_device(local)
    distributed.init_process_group("gloo" if device == "cpu" else "nccl", timeout=PATIENCE)
    total = torch.ones(1, device=device)
    distributed.all_reduce(total)
    if int(total.item()) != distributed.get_world_size():
        sys.exit(f"transport: {distributed.get_world_size()} ranks add up to {int(total.item())}")
    distributed.destroy_process_group()
    if device == "cpu" and local == 0 and "CHARTGEN_NCCL_LOG" in os.environ:
        # Without GPUs there is no NCCL; a recorded log shows what a machine that has them would do.
        shutil.copyfile(os.environ["CHARTGEN_NCCL_LOG"], log)


def fault(contract: dict[str, Any], lines: list[str]) -> str:
    """Say what is not as promised; nothing when all is.

    Args:
        contract: What is promised, as transport.json holds it.
        lines: NCCL's log.
    """
    found = devices(contract["device"], lines)
    if not all(any(re.search(each, line) for line in lines) for each in contract["reports"]):
        return f"promised {contract['promise']}, NCCL uses {network(lines)}: {why(contract['why'], lines)}"
    if contract["device"] and found < contract["devices"]:
        return f"promised {contract['promise']} with {contract['devices']} adapters, NCCL found {found} of them"
    return ""


def devices(pattern: str, lines: list[str]) -> int:
    """Count adapters: each different text that the pattern finds, or the highest number of its group `count`."""
    matches = [match for line in lines for match in re.finditer(pattern, line)] if pattern else []
    if "count" in re.compile(pattern).groupindex:
        return max((int(match["count"]) for match in matches), default=0)
    return len({match[0] for match in matches})


def network(lines: list[str]) -> str:
    """Name the network that NCCL uses and its first adapters, such as `Socket on eth0`."""
    used = [match[1].strip() for match in map(_NETWORK.search, lines) if match]
    if not used:
        return "no network"
    lists = [match for match in map(_USING.search, lines) if match and used[-1].startswith(match[1])]
    names = _ADAPTER.findall(lists[-1][2])[:4] if lists else []
    return used[-1] + (" on " + ", ".join(names) if names else "")


def why(pattern: str, lines: list[str]) -> str:
    """Quote the line that says why: of the promised network, else of NCCL's plugin, else NCCL's last warning."""
    told = [line for line in lines if pattern and re.search(pattern, line)]
    if told:
        return told[-1]
    missing = [match[1] for match in map(_NO_PLUGIN.search, lines) if match]
    if missing:
        return f"NET/Plugin not found: {missing[-1]}"
    return "it does not say why"


def compare(log: Path, code: int) -> int:
    """Compare what NCCL says with what is promised, print one line of it, and give the exit code.

    Args:
        log: What NCCL said in the first process of this machine.
        code: Exit code of the meeting.
    """
    contract = json.loads(Path(CONTRACT).read_text())
    text = log.read_text(errors="replace") if log.exists() else ""
    found = fault(contract, [_PREFIX.sub("", line) for line in text.splitlines()])
    result = BROKEN if found else code
    if code and (not found or not text):
        found, result = "no communicator over all ranks was made; what is printed above says why", code
    if found:
        strict = contract["check"] == "fail"
        sys.stderr.write(f"transport: {'' if strict else 'warning: '}{found}; see {log}\n")
        return result if strict else 0
    number = devices(contract["device"], text.splitlines())
    counted = f", {number} adapters" if number else ""
    sys.stdout.write(f"transport: {contract['promise']} as promised{counted}\n")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "meet":
        meet(sys.argv[2])
    else:
        sys.exit(compare(Path(sys.argv[2]), int(sys.argv[3])))
