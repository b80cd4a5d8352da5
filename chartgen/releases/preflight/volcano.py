"""Check of the run's Volcano queue: it exists, is open, and its capability suffices for the whole gang."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chartgen.kube import VOLCANO_QUEUE, Object
from chartgen.kube.quantities import add, amount_text, read_quantities
from chartgen.kube.workloads import is_volcano
from chartgen.releases.preflight.context import PreflightContext
from chartgen.releases.preflight.result import Diagnosis, failed, passed, warned
from chartgen.releases.preflight.setup_hint import setup_step


def volcano_queue(context: PreflightContext) -> Iterator[Diagnosis]:
    """The queue exists, is open, and its capability covers the requests of the gang."""
    if not (context.run and is_volcano(context.run)):
        return
    name = context.run["spec"].get("queue", "default")
    found = context.get(VOLCANO_QUEUE, name)
    if found is None:
        yield failed(f"no Volcano queue {name}", f"{setup_step(context)}, or set queue.name")
    elif (state := found.get("status", {}).get("state", "not processed yet")) != "Open":
        yield failed(f"Volcano queue {name} is {state}", f"vcctl queue operate --action open --name {name}")
    else:
        yield _capability(context, name, found)


def _capability(context: PreflightContext, name: str, found: Object) -> Diagnosis:
    requested = add(pods.total for pods in context.pods)
    most = read_quantities(_table(found, "spec", "capability"))
    used = read_quantities(_table(found, "status", "allocated"))
    short = sorted(resource for resource, amount in most.items() if requested.get(resource, 0) > amount)
    if short:
        shown = " and ".join(
            f"{amount_text(requested[each], each)} {each} of {amount_text(most[each], each)}" for each in short
        )
        text = f"the gang asks for {shown} that Volcano queue {name} may give"
        return failed(text, f"kubectl edit queues.scheduling.volcano.sh {name}: raise capability, or use fewer nodes")
    busy = sorted(each for each in most if requested.get(each, 0) > most[each] - used.get(each, 0))
    if busy and not context.is_running:
        shown = " and ".join(
            f"{amount_text(used[each], each)} {each} of {amount_text(most[each], each)}" for each in busy
        )
        return warned(f"Volcano queue {name} has given {shown}", "the gang waits until other jobs of the queue end")
    return passed(f"Volcano queue {name} is open")


def _table(item: Object, part: str, name: str) -> dict[str, Any]:
    return item.get(part, {}).get(name) or {}
