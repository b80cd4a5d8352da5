"""Logs as the frameworks write them, for tests; the formats are those of chartgen/metrics/readers."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Iterable, Sequence

NCCL_HEAD = "#       size     count   type   redop   root   time   algbw   busbw #wrong   time   algbw   busbw #wrong"
# Two p5.48xlarge machines, each line with what mpirun puts before it, and spaces left out:
# aws-samples/awsome-distributed-training @ 7217859, micro-benchmarks/nccl-tests/README.md.
NCCL_TESTS = f"""\
[1,0]<stdout>:{NCCL_HEAD}
[1,0]<stdout>:           0           0   float   sum   -1    15.51    0.00    0.00   0    15.52    0.00    0.00   0
[1,0]<stdout>:  1073741824   268435456   float   sum   -1   6426.3  167.09  313.29   0   6426.1  167.09  313.29   0
[1,0]<stdout>:  2147483648   536870912   float   sum   -1   9197.5  233.49  437.79   0   9195.2  233.54  437.89   0
[1,0]<stdout>:# Out of bounds values : 0 OK
[1,0]<stdout>:# Avg bus bandwidth    : 52.9753
"""
BEGIN = 1_770_000_000.0  # 2026-02-02 02:40:00 UTC
Steps = Sequence[tuple[int, float, float]]  # number, seconds, loss


def steps(seconds: Sequence[float], first: int = 1) -> Steps:
    """Number step times; the loss falls by a tenth a step."""
    return [(first + at, value, round(9 - at / 10, 4)) for at, value in enumerate(seconds)]


def ends(run: Steps, begin: float = BEGIN) -> list[float]:
    """When each step ends."""
    total, found = begin, []
    for _, seconds, _ in run:
        total += seconds
        found.append(total)
    return found


def stamp(when: float) -> str:
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(when))}.{round(when % 1 * 1e6):06d}"


def megatron(run: Steps, *, planned: int = 100, batch: int = 256, begin: float = BEGIN, extra: str = "") -> str:
    """Lines of 2026, with microseconds."""
    lines = []
    for (number, seconds, loss), when in zip(run, ends(run, begin), strict=True):
        lines.append(
            f" [{stamp(when)}] iteration {number:8d}/{planned:8d} | consumed samples: {number * batch:12d} |"
            f" elapsed time per iteration (ms): {seconds * 1000:.1f} |{extra} learning rate: 1.500000E-04 |"
            f" global batch size: {batch:5d} | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: 1.797 |"
            " number of skipped iterations:   0 | number of nan iterations:   0 |"
        )
    return text(lines)


def megatron_arguments(**settings: object) -> str:
    head = ["------------------------ arguments ------------------------"]
    body = [f"  {name} {'.' * (48 - len(name))} {value}" for name, value in settings.items()]
    return text([*head, *body, "-------------------- end of arguments ---------------------"])


def nemo_bars(run: Steps, *, batch: int = 256, drawn: int = 1) -> str:
    """A progress bar: one line, its updates separated by carriage returns, each drawn once or more."""
    updates = []
    for number, seconds, loss in run:
        values = f"reduced_train_loss={loss}, global_step={float(number)}, consumed_samples={float(number * batch)}"
        bar = f"Epoch 0: :  47%|\u2588\u2588   | {number}/{len(run)} [06:19<07:13, v_num=, {values}, "
        updates += [f"{bar}train_step_timing in s={seconds}]"] * drawn
    return "\r" + "\r".join(updates) + "\n"


def nemo_list(seconds: Iterable[float]) -> str:
    return f"[NeMo I 2025-03-10 16:24:43 perf_metrics_utils:42] train_step_timing in s: {[*seconds]}\n"


def nemo2(run: Steps, *, batch: int = 256, total: int = 100) -> str:
    lines = []
    for number, seconds, loss in run:
        lines.append(
            f"Training epoch 0, iteration {number}/{total - 1} | lr: 1.469e-05 | global_batch_size: {batch} |"
            f" global_step: {number} | peak_memory_usage: 70000000000 | memory_allocated: 44000000000 |"
            f" reduced_train_loss: {loss:.4} | train_step_timing in s: {seconds:.4} | TFLOPS_per_GPU: 510.2 |"
            f" consumed_samples: {(number + 1) * batch}"
        )
    return text(lines)


def dllogger(run: Steps, *, batch: int = 256, begin: float = BEGIN, config: dict[str, object] | None = None) -> str:
    records: list[dict[str, object]] = []
    if config is not None:
        data = {f"cfg/{name}": value for name, value in config.items()}
        records.append({"timestamp": str(begin), "type": "LOG", "step": "PARAMETER", "data": data})
    for (number, seconds, loss), when in zip(run, ends(run, begin), strict=True):
        values = {
            "reduced_train_loss": loss,
            "lr": 3.6e-05,
            "global_step": float(number),
            "consumed_samples": float((number + 1) * batch),
            "train_backward_timing in s": 4.8e-05,
            "grad_norm": 8.8,
            "train_step_timing in s": seconds,
            "epoch": 0,
        }
        records.append({"timestamp": str(when), "datetime": stamp(when), "type": "LOG", "step": number, "data": values})
    return text(f"DLLL {json.dumps(record)}" for record in records)


def bridge(run: Steps, *, word: str = "MODEL_TFLOP/s/GPU") -> str:
    return text(f"Step Time : {seconds:.2f}s GPU utilization: 663.5{word}" for _, seconds, _ in run)


def automodel(run: Steps, *, tokens: float, gpus: int) -> str:
    """Tokens of a step and GPUs: the speed follows."""
    lines = []
    for number, seconds, loss in run:
        speed = tokens / seconds
        lines.append(
            f"2026-02-02 02:40:00 | INFO | root | step {number} | epoch 0 | loss {loss:.4f} | grad_norm 1.2031 |"
            f" lr 1.00e-05 | mem 33.95 GiB | tps {speed:.2f}({speed / gpus:.2f}/gpu) | num_label_tokens 4040"
        )
    return text(lines)


def mlperf(run: Steps, *, batch: int = 8, each: int = 48, status: str = "success") -> str:
    """`each` steps between two evaluations; the seconds are of one step."""
    when = BEGIN
    lines = [mllog("init_start", when), mllog("global_batch_size", when, batch), mllog("lora_rank", when, 16)]
    lines.append(mllog("run_start", when))
    for number, seconds, loss in run:
        when += seconds * each
        samples = number * each * batch
        lines.append(mllog("tracked_stats", when, {"throughput": batch / seconds}, step=samples))
        lines.append(mllog("eval_accuracy", when, loss, samples_count=samples))
    return text([*lines, mllog("run_stop", when, status=status)])


def mllog(key: str, when: float, value: object = None, **metadata: object) -> str:
    record = {"namespace": "", "time_ms": round(when * 1000), "event_type": "POINT_IN_TIME", "key": key}
    return f":::MLLOG {json.dumps({**record, 'value': value, 'metadata': metadata})}"


def tensorboard(run: Steps, *, begin: float = BEGIN) -> bytes:
    """An event file; each value is an event of its own, as NeMo writes them."""
    found = record(field(1, 1, struct.pack("<d", begin)) + field(3, 2, b"brain.Event:2"))
    for (number, seconds, loss), when in zip(run, ends(run, begin), strict=True):
        for tag, value in (("reduced_train_loss", loss), ("train_step_timing in s", seconds)):
            found += record(event(number, when, tag, value))
    return found


def event(number: int, when: float, tag: str, value: float) -> bytes:
    summary = field(1, 2, field(1, 2, tag.encode()) + field(2, 5, struct.pack("<f", value)))
    return field(1, 1, struct.pack("<d", when)) + field(2, 0, varint(number)) + field(5, 2, summary)


def record(message: bytes) -> bytes:
    return struct.pack("<QI", len(message), 0) + message + b"\0\0\0\0"


def field(number: int, kind: int, value: bytes) -> bytes:
    size = varint(len(value)) if kind == 2 else b""
    return varint(number << 3 | kind) + size + value


def varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
