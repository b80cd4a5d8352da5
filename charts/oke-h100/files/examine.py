"""Examines this machine before the program starts: its GPUs, NCCL, its adapters and the storage of checkpoints.

    examine.py FOLDER CHECK PEAK MACHINES [CHECKPOINTS]

FOLDER is one of the run, where its MACHINES leave their figures and compare them. CHECK is fail or warn. PEAK is the
TFLOP/s of the data sheet in BF16 (0: unknown). CHECKPOINTS is a directory that must be writable.

Faults of hardware end the pod; what is only slow is a warning.

Exit codes: 0 fit, or nothing to examine it with; 69 this machine is not fit, but another one may be.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

UNFIT = 69  # EX_UNAVAILABLE of sysexits.h
PATIENCE = 60.0  # seconds: nvidia-smi answers in 2, eight GPUs multiply within 20
SIDE = 8192  # of matrices: products of this size are bound by arithmetic on every GPU since A100
SECONDS = 3.0  # of products: clocks and power settle within 1
SLOW = 0.9  # of the median of the run's GPUs; equal ones differ by a few percent
USUAL = 0.6  # of the data sheet; H100, H200 and B200 reach 0.7 to 0.8 with products of this size
# Figures of a machine: what is slow, of the median of the run's machines, and their words.
ALIKE = {
    "written": (0.5, "writes checkpoints at", "MB/s"),
    "summed": (SLOW, "adds up between its GPUs at", "GB/s"),
}
BLOCK = 64 << 20  # bytes written to the storage
SUMMED = 64 << 20  # numbers of 4 bytes that NCCL adds up
# No plugin of the network, whose daemons may start later, and which the check of the transport is for.
INSIDE = {"NCCL_NET": "Socket", "NCCL_NET_PLUGIN": "none", "NCCL_TUNER_PLUGIN": "none"}
RECENT = 1800  # seconds: older figures are of an earlier start
LARGEST = 1000  # bytes of a machine's figures
BUSY = 0.05  # of a GPU's memory that is used before the run
# Paths in the XML of nvidia-smi (driver 580; earlier ones lack some), with the elements and values there that a GPU
# cannot train with, and those that slow it down. Recovery actions: NVML API, nvmlDeviceGpuRecoveryAction_t; rows:
# NVIDIA, GPU Memory Error Management, r580.
FAULTS = (
    ("gpu_recovery_action", r" (?!None|N/A)\w", "needs recovery"),
    ("remapped_rows/remapped_row_failure", " Yes", "cannot replace a damaged row of its memory"),
    ("remapped_rows/remapped_row_pending", " Yes", "replaces a damaged row of its memory at its next reset"),
    ("retired_pages/pending_retirement", " Yes", "retires a damaged page of its memory at its next reset"),
)
DOUBTS = (
    ("ecc_errors/volatile/*", r"uncorrectable\w* [1-9]", "has had errors of its memory since its driver started"),
    ("ecc_errors/aggregate/sram_threshold_exceeded", " Yes", "has had too many errors of its caches"),
    ("fabric/health/bandwidth", " Degraded", "has lost a part of its NVLink"),
    ("*/*", r"^clocks_\w+_hw_thermal_slowdown Active", "is too hot, and slowed down by its hardware"),
    ("*/*", r"^clocks_\w+_hw_power_brake_slowdown Active", "is slowed down for lack of power"),
)


def read_gpus() -> list[ET.Element] | None:
    """Return what nvidia-smi reports on each GPU; None without nvidia-smi.

    Raises:
        RuntimeError: It does not answer, or fails.
    """
    text = _ask("-q", "-x")
    return None if text is None else ET.fromstring(text).findall("gpu")  # noqa: S314 - of the driver


def _ask(*argv: str) -> str | None:
    program = shutil.which("nvidia-smi", path=f"{os.environ.get('PATH', '')}:/usr/local/nvidia/bin")
    if program is None:
        return None
    process = subprocess.Popen(
        [program, *argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
    )
    try:
        text, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:  # in the driver, where no signal ends it
        raise RuntimeError(f"nvidia-smi did not answer within {PATIENCE:g} s") from None
    if process.returncode:
        raise RuntimeError(f"nvidia-smi failed with {process.returncode}: {' '.join(text.split())[-200:]}")
    return text


def find_marks(gpus: list[ET.Element], marks: tuple[tuple[str, str, str], ...]) -> Iterator[str]:
    """Yield a line for each GPU with one of some values."""
    for number, gpu in enumerate(gpus):
        for path, bad, meaning in marks:
            for element in gpu.iterfind(path):
                found = f"{element.tag} {(element.text or '').strip()}"
                if re.search(bad, found):
                    yield f"GPU {number} {meaning} ({found})"


def find_busy(gpus: list[ET.Element]) -> Iterator[str]:
    """Yield a line for each GPU whose memory is used before the run starts."""
    for number, gpu in enumerate(gpus):
        sizes = [re.match(r"\d+", gpu.findtext(f"fb_memory_usage/{name}", "")) for name in ("used", "total")]
        used, total = (int(match[0]) if match else 0 for match in sizes)
        if used > BUSY * total:
            yield f"GPU {number} is in use already: {used} of {total} MiB of its memory"


def find_lost_links(report: str) -> Iterator[str]:
    """Yield a line for each GPU that has fewer links of NVLink than another one of this machine."""
    blocks = re.split(r"(?m)^GPU (?=\d+:)", report)[1:]
    active = [len(re.findall(r"Link \d+: [\d.]+ GB/s", block)) for block in blocks]
    for number, links in enumerate(active):
        if links < max(active):
            yield f"GPU {number} has {links} of {max(active)} links of NVLink"


def find_down_ports(root: Path = Path("/sys/class/infiniband")) -> Iterator[str]:
    """Yield a line for each port of a network adapter that has no link."""
    for state in sorted(root.glob("*/ports/*/state")):
        if "ACTIVE" not in (text := state.read_text().strip()):
            yield f"port {state.parent.name} of adapter {state.parts[-4]} is {text.partition(': ')[2] or text}"


def find_torch(gpus: int) -> Any:
    """Return PyTorch; None where the image has none for GPUs.

    Raises:
        RuntimeError: CUDA finds fewer GPUs.
    """
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # that of nvidia-smi
    try:
        import torch  # type: ignore[import-not-found]
    except ImportError:
        return None
    if torch.version.cuda is None:
        return None
    if torch.cuda.device_count() < gpus:
        raise RuntimeError(f"CUDA finds {torch.cuda.device_count()} of {gpus} GPUs")
    return torch


def multiply(torch: Any, gpus: int, meanwhile: Callable[[], None]) -> list[float]:
    """Return the TFLOP/s of each GPU, of matrix products on all of them at once.

    Raises:
        RuntimeError: A GPU fails, does not answer, or computes another result the second time.
    """
    pool = ThreadPoolExecutor(gpus)
    work = {f"GPU {number}": pool.submit(_multiply, torch, number) for number in range(gpus)}
    time.sleep(SECONDS)
    meanwhile()
    return _results(work, "multiply matrices")


def _results(work: dict[str, Future[float]], task: str) -> list[float]:
    wait(work.values(), PATIENCE)
    errors = []
    for name, each in work.items():
        if not each.done():
            errors.append(f"{name} did not {task} within {PATIENCE:g} s")
        elif error := each.exception():
            errors.append(f"{name}: {str(error).splitlines()[0]}")
    if errors:
        raise RuntimeError("; ".join(errors))
    return [each.result() for each in work.values()]


def add_up(torch: Any, gpus: int) -> float:
    """Return the GB/s of NCCL's all-reduce over the GPUs of this machine, as nccl-tests count them; 0 for one GPU.

    Raises:
        RuntimeError: NCCL fails, does not answer, or a GPU has another sum.
    """
    if gpus < 2:
        return 0.0
    os.environ |= INSIDE
    return _results({"NCCL": ThreadPoolExecutor(1).submit(_add_up, torch, gpus)}, "add up")[0]


def _add_up(torch: Any, gpus: int) -> float:
    parts = [torch.full((SUMMED,), 1.0 + number, device=f"cuda:{number}") for number in range(gpus)]
    if not torch.cuda.nccl.is_available(parts):
        return 0.0
    torch.cuda.nccl.all_reduce(parts)
    for number, part in enumerate(parts):
        if not bool((part == gpus * (gpus + 1) / 2).all()):
            raise RuntimeError(f"GPU {number} has another sum")
    start = time.monotonic()
    for _ in range(10):
        torch.cuda.nccl.all_reduce(parts)
    for number in range(gpus):
        torch.cuda.synchronize(number)
    return 10 * 2 * (gpus - 1) / gpus * 4 * SUMMED / 1e9 / (time.monotonic() - start)


def _multiply(torch: Any, number: int) -> float:
    """Return the TFLOP/s of one GPU. cuBLAS computes the same bits each time (cuBLAS 13, Results Reproducibility)."""
    with torch.cuda.device(number):
        random = torch.Generator("cuda").manual_seed(1)
        left, right = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16, generator=random) for _ in range(2))
        first = last = left @ right
        rates: list[float] = []
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or len(rates) < 3:
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(20):
                last = left @ right
            stop.record()
            stop.synchronize()
            rates.append(20 * 2 * SIDE**3 / start.elapsed_time(stop) / 1e9)
        if not torch.equal(first, last):
            raise RuntimeError("computes the same product with another result")
        return float(statistics.median(rates))


def write_speed(folder: str) -> float:
    """Return the MB/s at which this machine writes a file there."""
    own = f".examine-{os.environ['NODE_RANK']}-"
    for left in Path(folder).glob(f"{own}*"):  # of a start that was killed
        with suppress(OSError):
            left.unlink()
    block = os.urandom(BLOCK)
    start = time.monotonic()
    # what another user has put there has another name
    handle, path = tempfile.mkstemp(prefix=own, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(block)
            file.flush()
            os.fsync(file.fileno())
        return BLOCK / 1e6 / (time.monotonic() - start)
    finally:
        Path(path).unlink(missing_ok=True)


def share(folder: Path, figures: dict[str, Any], machines: int) -> dict[int, dict[str, Any]]:
    """Leave the figures of this machine, and return those that the machines of this start have left so far.

    Raises:
        OSError: Something else is in its place, or the storage cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    os.close(os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW))  # no link of another user
    own = int(os.environ["NODE_RANK"])
    part = folder / f"{own}.part"
    part.unlink(missing_ok=True)
    with part.open("x") as file:
        json.dump(figures, file)
    part.replace(folder / f"{own}.json")
    recent = time.time() - RECENT
    found = {number: _figures(folder / f"{number}.json", recent) for number in range(machines)}
    # whatever is in its own file by now, or when by the clock of the storage
    return {number: each for number, each in {**found, own: figures}.items() if each}


def _figures(path: Path, recent: float) -> dict[str, Any]:
    """Return the figures of a machine; nothing of an old file, or of one that no machine has written."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            text = file.read(LARGEST) if os.fstat(file.fileno()).st_mtime > recent else b"{}"
        found = json.loads(text)
        rates, alike = [float(rate) for rate in found["tflops"]], {name: float(found[name]) for name in ALIKE}
        pod = str(found["pod"])
        if all(0 <= each < 1e9 for each in (*rates, *alike.values())) and re.fullmatch(r"[\w.-]*", pod, re.ASCII):
            return {"pod": pod, "tflops": rates, **alike}
    except (OSError, ValueError, TypeError, ArithmeticError, LookupError, RecursionError):
        pass
    return {}


def find_slow(found: dict[int, dict[str, Any]], own: int, machines: int) -> Iterator[str]:
    """Yield a line for each GPU and machine that is slow beside the others; the last machine names those of all."""
    gpus = statistics.median([rate for each in found.values() for rate in each["tflops"]] or [0])
    for number, each in sorted(found.items()):
        if number == own or len(found) >= machines:
            place = f"machine {number} ({each['pod']})"
            for gpu, rate in enumerate(each["tflops"]):
                if rate < SLOW * gpus:
                    yield f"GPU {gpu} of {place} is slow: {rate:.0f} TFLOP/s, {1 - rate / gpus:.0%} below {gpus:.0f}"
            for name, (least, does, unit) in ALIKE.items():
                usual = statistics.median(other[name] for other in found.values())
                if each[name] < least * usual:
                    yield f"{place} {does} {each[name]:.0f} {unit}, the others at {usual:.0f}"


def examine(folder: Path, peak: float, machines: int, checkpoints: str) -> Iterator[str]:
    """Yield each warning, and print the figures at the end.

    Raises:
        RuntimeError: This machine is not fit.
    """
    began, wanted, own = time.monotonic(), int(os.environ["GPUS_PER_NODE"]), int(os.environ["NODE_RANK"])
    gpus = read_gpus()
    if gpus is None:
        sys.stdout.write("examine: no nvidia-smi here: this machine is not examined\n")
        return
    if len(gpus) < wanted:
        raise RuntimeError(f"nvidia-smi finds {len(gpus)} of {wanted} GPUs")
    faults = [*find_marks(gpus, FAULTS), *find_lost_links(_ask("nvlink", "--status") or "")]
    if faults:
        raise RuntimeError("; ".join(faults))
    yield from (*find_busy(gpus), *find_down_ports())
    loaded: list[ET.Element] = []
    torch = find_torch(wanted)
    rates = multiply(torch, wanted, lambda: loaded.extend(read_gpus() or [])) if torch else []
    summed = add_up(torch, wanted) if torch else 0.0
    yield from find_marks(loaded or gpus, DOUBTS)
    written = write_speed(checkpoints) if checkpoints else 0.0
    pod, tflops = os.environ.get("HOSTNAME", ""), [round(rate) for rate in rates]
    figures = {"pod": pod, "tflops": tflops, "written": written, "summed": summed}
    try:
        found = share(folder, figures, machines)
    except OSError as error:
        found = {own: figures}
        yield f"its figures are not compared with those of the other machines: {error}"
    yield from find_slow(found, own, machines)
    if rates and max(rates) < USUAL * peak:
        yield f"all GPUs are slow: {max(rates):.0f} TFLOP/s at most, of {peak:.0f}"
    speeds = f", {' '.join(f'{rate:.0f}' for rate in rates)} TFLOP/s" if rates else ", no PyTorch to measure them with"
    speeds += f", {summed:.0f} GB/s between them" if summed else ""
    speeds += f", writes {written:.0f} MB/s" if written else ""
    sys.stdout.write(f"examine: {wanted} GPUs fit{speeds}, in {time.monotonic() - began:.0f} s\n")


def main(folder: str, check: str, peak: str, machines: str, checkpoints: str = "") -> int:
    """Print a line for each finding, and return the exit code."""
    place = f"machine {os.environ['NODE_RANK']} ({os.environ.get('HOSTNAME', '')})"
    try:
        for warning in examine(Path(folder), float(peak), int(machines), checkpoints):
            sys.stderr.write(f"examine: warning: {warning}\n")
    except (RuntimeError, ET.ParseError) as error:
        strict = check == "fail"
        sys.stderr.write(f"examine: {'' if strict else 'warning: '}{place} is not fit: {error}\n")
        if strict and "FT_LAUNCHER_IPC_SOCKET" in os.environ:  # ft_launcher starts the others without this machine
            from nvidia_resiliency_ext import fault_tolerance as ft  # type: ignore[import-not-found]

            (client := ft.RankMonitorClient()).init_workload_monitoring()
            client.send_workload_control_request(ft.WorkloadControlRequest(ft.WorkloadAction.ExcludeThisNode))
        return UNFIT if strict else 0
    except OSError as error:  # another machine would not find it better
        sys.stderr.write(f"examine: the run's storage: {error}\n")
        return int(check == "fail")
    return 0


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # whatever a GPU that hangs still keeps
