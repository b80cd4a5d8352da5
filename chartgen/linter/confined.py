"""Lint one chart in its own process, so that a third-party chart takes bounded time and memory.

A chart, its values and its schema come from whoever opened the pull request. A pattern that backtracks for years, a
template that fills the memory or an unexpected file becomes a finding here, and lint continues with the next chart.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from chartgen.errors import ChartgenError, MissingToolError, Problem, UsageError
from chartgen.findings import UNFINISHED, Finding, finding_of, row_of
from chartgen.linter.examination import LintStep
from chartgen.linter.limits import Limits

_HINT = "make the chart smaller, or give it more time with --limit; what was found in it is not shown"
_ENDED = {"missing": MissingToolError, "usage": UsageError}


@dataclass(frozen=True)
class Outcome:
    """Result of the lint of one chart."""

    findings: list[Finding]
    steps: list[LintStep] | None = None  # the completed steps; None when nothing has changed since the last lint
    hidden: int = 0  # number of findings of good practice that are left out because they were not requested
    renders: Sequence[str] = ()  # Kubernetes version of each render


def confined(name: str, work: Callable[[], Outcome], limits: Limits) -> Outcome:
    """Lint one chart in a child process with limits.

    Args:
        work: Lints it; runs in the child, so it changes nothing in this process.

    Returns:
        Its outcome; a finding of `lint-finishes` if it did not finish.

    Raises:
        MissingToolError: No suitable Helm is found.
        UsageError: The chart to lint does not exist.
    """
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # From Python 3.12 on, a fork beside threads warns; the child runs none of them and leaves by _exit.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.close(reader)
        _answer(writer, work, limits)
    os.close(writer)
    text, why = _read(reader, limits)
    os.close(reader)
    _end(child)
    status = os.waitpid(child, 0)[1]
    if why or not text:
        return _unfinished(name, why or _reason(status, limits))
    return _outcome(name, json.loads(text))


def _answer(writer: int, work: Callable[[], Outcome], limits: Limits) -> NoReturn:
    """Do the work and write its outcome; this ends the child process."""
    status = 1
    # nearly all that lint reads lives to its end: to look for circles in it takes a tenth of the time
    gc.freeze()
    gc.set_threshold(100_000)
    try:
        _confine(limits)
        text = json.dumps(_as_json(work)).encode("utf-8", "surrogateescape")
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(text)
        status = 0
    except BaseException:  # noqa: BLE001, S110 - it must not run the parent's code; there it is a finding
        pass
    finally:
        os._exit(status)


def _as_json(work: Callable[[], Outcome]) -> dict[str, Any]:
    try:
        done = work()
    except ChartgenError as error:
        kind = "missing" if isinstance(error, MissingToolError) else "usage" if isinstance(error, UsageError) else ""
        return {"raised": kind, "findings": [row_of(Finding("chart-files", problem)) for problem in error.problems]}
    except (Exception, RecursionError, MemoryError) as error:  # noqa: BLE001 - one chart must not end the lint of the rest
        return {"stopped": f"{type(error).__name__}: {error}"[:500]}
    steps = None if done.steps is None else [[step.name, step.seconds] for step in done.steps]
    rows = [row_of(finding) for finding in done.findings]
    return {"findings": rows, "steps": steps, "hidden": done.hidden, "renders": [*done.renders]}


def _confine(limits: Limits) -> None:
    """Bound the child and its processes, and make it the head of a process group that ends together."""
    import resource

    os.setsid()
    for what, most in ((resource.RLIMIT_AS, limits.memory), (resource.RLIMIT_CPU, int(limits.seconds) + 1)):
        hard = resource.getrlimit(what)[1]
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError, OSError):  # macOS rejects a limit of the address space
            resource.setrlimit(what, (bound, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _read(answers: int, limits: Limits) -> tuple[bytes, str]:
    """Read the answer to its end, and report why it is rejected if it is."""
    import select

    text, deadline = b"", time.monotonic() + limits.seconds
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([answers], [], [], left)[0]:
            break
        part = os.read(answers, 1 << 16)
        if not part:
            return text, ""
        text += part
        if len(text) > limits.answer:
            return b"", f"its findings take more than {limits.answer / 1e6:.0f} MB"
    return b"", f"it did not end within {limits.seconds:g} s"


def _end(child: int) -> None:
    """End the rest of the child's group, such as a Helm that is still running."""
    for kill, target in ((os.killpg, child), (os.kill, child)):
        with suppress(ProcessLookupError, PermissionError):
            kill(target, signal.SIGKILL)


def _reason(status: int, limits: Limits) -> str:
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return f"it took more than {limits.seconds:g} s of processor time"
    return f"it needs more than {limits.memory / 1e9:.0f} GB of memory, or crashed"


def _unfinished(name: str, why: str) -> Outcome:
    return Outcome([Finding(UNFINISHED, Problem(f"was not checked to the end: {why}", name, hint=_HINT))], [])


def _outcome(name: str, data: dict[str, Any]) -> Outcome:
    if stopped := data.get("stopped"):
        return _unfinished(name, stopped)
    findings = [finding_of(row) for row in data["findings"]]
    if data.get("raised"):
        raise _ENDED[data["raised"]](finding.problem for finding in findings)
    steps = data.get("steps", [])
    done = None if steps is None else [LintStep(*step) for step in steps]
    return Outcome(findings, done, data.get("hidden", 0), data.get("renders", ()))
