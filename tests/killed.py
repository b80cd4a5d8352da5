"""Runs one chartgen command and kills it, with all its children, before its n-th change of the cluster.

The command line is JSON on stdin: action, chart, values, namespace, kubeconfig, and where to die: `change` counts the
requests that change something and the calls of Helm, from 0; `delay` lets the call of Helm run for so many seconds.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any


def run_killed(
    action: str,
    chart: Path,
    values: dict[str, Any],
    namespace: str,
    kubeconfig: Path,
    *,
    change: int,
    delay: float = 0.0,
    release: str = "my-run",
) -> bool:
    """Run a command in a process of its own; tell whether it came to the place where it dies.

    Raises:
        AssertionError: It failed by itself, with what it said.
    """
    order: dict[str, Any] = {"action": action, "chart": str(chart), "values": values, "namespace": namespace}
    order |= {"kubeconfig": str(kubeconfig), "change": change, "delay": delay, "release": release}
    done = subprocess.run(
        [sys.executable, __file__], input=json.dumps(order), capture_output=True, text=True, start_new_session=True,
        check=False,
    )  # fmt: skip
    if done.returncode not in (0, -signal.SIGKILL):
        raise AssertionError(done.stderr)
    return done.returncode != 0


def _die() -> None:
    os.killpg(0, signal.SIGKILL)


def _arm(change: int, delay: float) -> None:
    """Count what changes the cluster, and die at the given place."""
    import httpx2

    from chartgen.helm import Helm

    left = iter(range(change, -1, -1))
    request, helm = httpx2.Client.request, Helm.run

    def counted(self: Any, method: str, path: str, **arguments: Any) -> Any:
        if method != "GET" and not (arguments.get("params") or {}).get("dryRun") and next(left, 0) == 0:
            _die()
        return request(self, method, path, **arguments)

    def called(self: Any, arguments: Any, stdin: str | None = None) -> str:
        if arguments[0] in ("install", "upgrade", "uninstall") and next(left, 0) == 0:
            if delay:
                threading.Timer(delay, _die).start()
            else:
                _die()
        return helm(self, arguments, stdin)

    httpx2.Client.request = counted  # type: ignore[method-assign,assignment]
    Helm.run = called  # type: ignore[method-assign]


def _ignore(_line: str) -> None:
    """Take a line of progress."""


def _main() -> None:
    from chartgen.chart import Chart
    from chartgen.cluster import connect
    from chartgen.release import Place
    from chartgen.rollout import execute, prepare, prepare_rollback, uninstall

    order = json.load(sys.stdin)
    place = Place(order["namespace"], Path(order["kubeconfig"]))
    with connect(kubeconfig=place.kubeconfig) as cluster:
        say = _ignore
        if order["action"] == "uninstall":
            _arm(order["change"], order["delay"])
            uninstall(cluster, place, order["release"], progress=say)
            return
        if order["action"] == "rollback":
            rollout = prepare_rollback(cluster, place, order["release"])
        else:
            chart = Chart.read(Path(order["chart"]))
            rollout = prepare(cluster, place, chart, order["release"], order["values"], action=order["action"])
        _arm(order["change"], order["delay"])
        execute(rollout, cluster, place, progress=say)


if __name__ == "__main__":
    _main()
