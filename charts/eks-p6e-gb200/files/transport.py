"""Reports whether NCCL uses the network that the chart promises, before a run of several machines trains.

    transport.py meet LOG                 in each process of the run: one small communicator over all ranks
    transport.py compare LOG CODE FOLDER  then once on each machine: NCCL's log against transport.json; CODE is the exit
                                          code of the meeting. FOLDER of the run keeps the log

Exit codes of `compare`: 0 as promised, not checked strictly, or logged in an unknown form; 78 NCCL uses another
network; else the meeting's own.
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
_USING = re.compile(r"NET/(\S+) ?: Using ?(.*)")
# How NCCL's own InfiniBand and RoCE transport, and NVIDIA's plugin of it, list their adapters: NCCL 2.20 to 2.23 puts
# the ports of one adapter in braces, 2.27 adds _dma to a name, 2.30 rail and plane to a port, the plugin SHARP to a
# link (NVIDIA/nccl v2.18.3-1 to v2.30.7-1, src/transport/net_ib*; Mellanox/nccl-rdma-sharp-plugins 2f5ac02).
_ADAPTER = re.compile(
    r"\[\d+\] ?(?P<name>[^\s:{}]+?)(?:_dma)?:(?P<port>\d+)(?::\d*)*/(?P<link>\w+)(?:/SHARP)?(?=[\s,}]|$)"
)
_AROUND = re.compile(r"\[\d+\]=\{|[},\s]|\[RO\]")
_END = "; OOB "
# What networks are called whose names are known. Another name proves nothing.
_KNOWN = re.compile(r"Socket|FastSocket|IB(ext(_v\d+)?)?|(AWS )?Libfabric|FasTrak|GPUDirectTCPX(_v\d+)?|gIB")
# NCCL_NET asks for a network that is not there (NCCL up to 2.26; from 2.27 on).
_NONE = re.compile(r"Error: network .* not found|Failed to initialize any NET plugin")
# NCCL's words for it have changed from version to version.
_NO_PLUGIN = re.compile(r"NET/Plugin.*?(?:Could not find|No plugin found|dlerror=)\W*(lib[\w.-]+\.so)")


def meet(log: str) -> None:
    """Make one communicator over all ranks and use it once; the first process of a machine keeps NCCL's log."""
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


def fault(contract: dict[str, Any], lines: list[str]) -> tuple[str, bool]:
    """Return what is not as promised, nothing when all is, and whether the log proves it.

    A log in another form than those that are known proves nothing. Its lines come without their prefixes.
    """
    promise = contract["promise"]
    missing = [report for report in contract["reports"] if not any(re.search(report, line) for line in lines)]
    if missing and proven(contract, lines):
        return f"promised {promise}, NCCL uses {network(lines)}: {why(contract['why'], lines)}", True
    if missing:
        reason = f"its log names {network(lines)}, and no line matches {missing[0]!r}" if lines else "its log is empty"
        return f"cannot determine whether NCCL uses {promise}: {reason}", False
    found, unread = devices(contract, lines)
    if found >= contract["devices"] or not (contract["links"] or contract["device"]):
        return "", False
    if unread:
        reason = f"{found} can be read in its log, {unread!r} cannot"
        return f"cannot determine whether NCCL uses {promise} with {contract['devices']} adapters: {reason}", False
    return f"promised {promise} with {contract['devices']} adapters, NCCL found {found} of them", True


def proven(contract: dict[str, Any], lines: list[str]) -> bool:
    """Check whether the log proves that NCCL uses another network: it names one that is known, or found none."""
    named = [match for match in map(_NETWORK.search, lines) if match]
    other = bool(named) and not any(re.search(report, named[-1][0]) for report in contract["reports"])
    if other and _KNOWN.fullmatch(named[-1][1].strip()):
        return True
    refuted = contract["refutedBy"]
    return any(_NONE.search(line) or (refuted and re.search(refuted, line)) for line in lines)


def devices(contract: dict[str, Any], lines: list[str]) -> tuple[int, str]:
    """Count adapters; also return what of the list could not be read, empty when all of it was.

    By `links` NCCL's own list is read; by `device` each different text counts, or the highest number of its `count`.
    """
    if contract["links"]:
        return listed(contract["links"], lines)
    pattern = re.compile(contract["device"])
    matches = [match for line in lines for match in pattern.finditer(line)] if pattern.pattern else []
    unread = "" if matches else "what names them"
    if "count" in pattern.groupindex:
        return max((int(match["count"]) for match in matches), default=0), unread
    return len({match[0] for match in matches}), unread


def listed(links: list[str], lines: list[str]) -> tuple[int, str]:
    """Count the ports of some links in NCCL's own list; also return the first part of it that could not be read."""
    lists = [match[2].partition(_END) for match in map(_USING.search, lines) if match and match[1] == "IB"]
    adapters = [each for text, _, _ in lists for each in _ADAPTER.finditer(text) if each["link"] in links]
    unread = [] if lists else ["the list of them"]
    for text, end, _ in lists:
        unread += _AROUND.sub(" ", _ADAPTER.sub(" ", text)).split() + ([] if end else ["its end"])
    return len({(adapter["name"], adapter["port"]) for adapter in adapters}), next(iter(unread), "")


def network(lines: list[str]) -> str:
    """Return the network that NCCL uses and its first adapters, such as `Socket on eth0`."""
    used = [match[1].strip() for match in map(_NETWORK.search, lines) if match]
    if not used:
        return "no network"
    lists = [match for match in map(_USING.search, lines) if match and used[-1].startswith(match[1])]
    names = re.findall(r"\[\d+\] ?([\w.-]+):", lists[-1][2])[:4] if lists else []
    return used[-1] + (" on " + ", ".join(names) if names else "")


def why(pattern: str, lines: list[str]) -> str:
    """Return the line that explains it: of the promised network, else of NCCL's plugin, else NCCL's last warning."""
    matching = [line for line in lines if pattern and re.search(pattern, line)]
    if matching:
        return matching[-1]
    missing = [match[1] for match in map(_NO_PLUGIN.search, lines) if match]
    if missing:
        return f"NET/Plugin not found: {missing[-1]}"
    return "its log gives no reason"


def keep(log: Path, folder: Path) -> Path:
    """Copy NCCL's log to the run's storage, and return where it is: what another user has put there is replaced."""
    kept = folder / log.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.close(os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW))  # no link
        kept.unlink(missing_ok=True)
        with log.open("rb") as file, kept.open("xb") as copy:
            shutil.copyfileobj(file, copy)
    except OSError:
        return log
    return kept


def check_transport(log: Path, code: int, folder: Path) -> int:
    """Compare NCCL's log with the promise, print one line about it, and return the exit code."""
    contract = json.loads(Path(CONTRACT).read_text())
    text = log.read_text(errors="replace") if log.exists() else ""
    log = keep(log, folder)
    lines = [_PREFIX.sub("", line) for line in text.splitlines()]
    found, sure = fault(contract, lines)
    if code and not sure:
        found = "NCCL could not create a communicator over all ranks; the output above shows why"
    if found:
        strict = contract["check"] == "fail" and (sure or code)
        sys.stderr.write(f"transport: {'' if strict else 'warning: '}{found}; see {log}\n")
        return (BROKEN if sure else code) if strict else 0
    number, _ = devices(contract, lines)
    counted = f", {number} adapters" if number else ""
    sys.stdout.write(f"transport: {contract['promise']} as promised{counted}\n")
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "meet":
        meet(sys.argv[2])
    else:
        sys.exit(check_transport(Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])))
