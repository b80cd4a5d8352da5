"""What a command would do to the run of a release, seen before it is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chartgen.releases.effect import effect, side, standing
from chartgen.releases.loss import Loss, losses
from chartgen.releases.survival import Survival, values_of

if TYPE_CHECKING:
    from chartgen.kube import Cluster, Object
    from chartgen.releases.history import Record
    from chartgen.releases.state import State


@dataclass(frozen=True)
class Preview:
    """What becomes of the run.

    Args:
        effect: What happens to it, in words; empty when neither revision runs anything.
        survival: What outlives the pods of the run before; None when there is none.
        losses: Work of live runs that ends with them.
    """

    effect: str
    survival: Survival | None = None
    losses: list[Loss] = field(default_factory=list)


def preview(
    cluster: Cluster, state: State, base: Record | None, rendered: Iterable[Object], values: Mapping[str, Any]
) -> Preview:
    """Work out what a change of a release does to its run; nothing is changed.

    Args:
        cluster: Where it lives.
        state: What stands of it.
        base: The revision to start from; None for a first install.
        rendered: The objects of the revision that is to be.
        values: The values that its templates saw, the chart's defaults included.
    """
    before = side(base.objects if base else [], values_of(base) if base else {})
    after = side(rendered, values)
    next_run = after.workers.name if after.workers else ""
    going = [run for run in state.runs if run["metadata"]["name"] != next_run]
    words = effect(before, after, standing(cluster, state, before.workers))
    return Preview(words, before.survival, losses(cluster, state, going))
