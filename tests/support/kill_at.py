"""Runs one chartgen command, and lets something happen to it at its n-th change of the cluster.

The command line is JSON on stdin: action, chart, values, namespace, kubeconfig, release, and the fault: its `kind`,
where it happens, and for how long. `change` counts the requests that change something and the calls of Helm, from 0;
`delay` lets the call of Helm run for so many seconds.

kill: the command and all its children get SIGKILL; interrupt: SIGINT, as for Ctrl-C
cut: the network refuses connections from there on; block: it drops everything for some seconds
sleep: the machine sleeps at the n-th write of the Lease, until somebody wakes it; its clock goes on
unheard: the answers of every second write of the Lease are lost
busy: the Lease is renewed all the time
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import proxy as road

INTERRUPTED = 130
NETWORK = ("cut", "block")
_BLOCKED = 3.0  # seconds; longer than a request may take
_PATIENCE = 2.0  # seconds that a request may take
_SLEPT: list[float] = []  # seconds


def order_of(
    action: str,
    chart: Path,
    values: dict[str, Any],
    namespace: str,
    kubeconfig: Path,
    *,
    release: str = "my-run",
    **fault: Any,
) -> str:
    """What the program reads from its input."""
    found: dict[str, Any] = {"action": action, "chart": str(chart), "values": values, "namespace": namespace}
    return json.dumps({**found, "kubeconfig": str(kubeconfig), "release": release, "fault": fault})


def run(order: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process group of its own."""
    return subprocess.run(
        [sys.executable, __file__], input=order, capture_output=True, text=True, start_new_session=True, check=False
    )


def run_killed(*command: Any, change: int, delay: float = 0.0, release: str = "my-run") -> bool:
    """Run a command that is killed; tell whether it came to the place where it dies.

    Raises:
        AssertionError: It failed by itself, with what it said.
    """
    done = run(order_of(*command, release=release, kind="kill", change=change, delay=delay))
    if done.returncode not in (0, -signal.SIGKILL):
        raise AssertionError(done.stderr)
    return done.returncode != 0


def run_interrupted(*command: Any, change: int, delay: float = 0.0) -> list[str]:
    """Run a command that is interrupted; give the lines that it said, none when it did not come to the place.

    Raises:
        AssertionError: It failed by itself, with what it said.
    """
    done = run(order_of(*command, kind="interrupt", change=change, delay=delay))
    if done.returncode not in (0, INTERRUPTED):
        raise AssertionError(done.stderr)
    return done.stderr.splitlines() if done.returncode else []


def _happens(fault: dict[str, Any], network: road.Proxy | None) -> Callable[[], None]:
    """What happens at the place of a fault."""
    kind = fault["kind"]
    if kind == "cut" and network:
        return network.cut
    if kind == "block" and network:

        def block() -> None:
            network.block()
            threading.Timer(_BLOCKED, network.mend).start()

        return block
    if kind == "sleep":

        def sleep() -> None:
            os.kill(os.getpid(), signal.SIGSTOP)
            _SLEPT.append(3600.0)

        return sleep
    return lambda: os.killpg(0, signal.SIGINT if kind == "interrupt" else signal.SIGKILL)


def _arm(fault: dict[str, Any], network: road.Proxy | None) -> None:
    """Count what changes the cluster, and let it happen at the given place."""
    import httpx2

    from chartgen.helm.program import Helm

    happens, delay, kind = _happens(fault, network), fault.get("delay", 0.0), fault["kind"]
    places = itertools.count()
    send, helm = httpx2.Client.send, Helm.run

    def counted(self: Any, request: httpx2.Request, **arguments: Any) -> Any:
        is_change = request.method != "GET" and not request.url.params.get("dryRun")
        # what follows a check at once cannot be held back by any lock; a Lease's version fences its writes
        counts = "/leases" in request.url.path if kind == "sleep" else True
        if is_change and counts and next(places) == fault["change"]:
            happens()
        return send(self, request, **arguments)

    def called(self: Any, arguments: Any, stdin: str | None = None) -> str:
        if arguments[0] in ("install", "upgrade", "uninstall") and kind != "sleep" and next(places) == fault["change"]:
            if delay:
                threading.Timer(delay, happens).start()
            else:
                happens()
        return helm(self, arguments, stdin)

    httpx2.Client.send = counted  # type: ignore[method-assign]
    Helm.run = called  # type: ignore[method-assign]


def _lose_answers() -> None:
    """Lose the answer of every second write of the Lease."""
    import httpx2

    send, places = httpx2.Client.send, itertools.count()

    def unheard(self: Any, request: httpx2.Request, **arguments: Any) -> Any:
        reply = send(self, request, **arguments)
        if request.method == "PATCH" and "/leases" in request.url.path and next(places) % 2:
            reply.close()
            raise httpx2.ReadTimeout("the answer is lost")
        return reply

    httpx2.Client.send = unheard  # type: ignore[method-assign]


def _pace(kind: str) -> None:
    """Renew all the time; or never, with a clock on which every sleep takes an hour."""
    from chartgen.releases.lock import Lock, Pace, now

    if kind == "busy":
        Lock.__init__.__defaults__ = (Pace(every=0.01),)
    elif kind == "sleep":
        Lock.__init__.__defaults__ = (Pace(clock=lambda: now() + sum(_SLEPT), every=1e6),)


def _say(line: str) -> None:
    """Take a line of progress."""
    sys.stderr.write(f"{line}\n")


def _main(folder: Path) -> None:
    from chartgen.helm.chart import Chart
    from chartgen.kube import connect
    from chartgen.releases.helm_release import Place
    from chartgen.releases.rollout import execute, prepare, prepare_rollback
    from chartgen.releases.uninstall import uninstall

    order = json.load(sys.stdin)
    fault, kubeconfig = order["fault"], Path(order["kubeconfig"])
    network = road.Proxy(kubeconfig, folder) if fault.get("kind") in NETWORK else None
    place = Place(order["namespace"], network.kubeconfig if network else kubeconfig)

    def arm() -> None:
        _pace(fault.get("kind", ""))
        if fault.get("kind") == "unheard":
            _lose_answers()
        elif "change" in fault:
            _arm(fault, network)

    with connect(kubeconfig=place.kubeconfig, timeout=_PATIENCE if network else 10.0) as cluster:
        if order["action"] == "uninstall":
            arm()
            uninstall(cluster, place, order["release"], progress=_say)
            return
        if order["action"] == "rollback":
            rollout = prepare_rollback(cluster, place, order["release"])
        else:
            chart = Chart.read(Path(order["chart"]))
            rollout = prepare(cluster, place, chart, order["release"], order["values"], action=order["action"])
        arm()
        execute(rollout, cluster, place, progress=_say)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as own:
        try:
            _main(Path(own))
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
