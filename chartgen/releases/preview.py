"""Preview of the effect of a command on the run of a release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from chartgen.releases.effect import effect, old_run, side
from chartgen.releases.loss import LostWork, lost_work
from chartgen.releases.survival import Survival, stored_values

if TYPE_CHECKING:
    from chartgen.kube import Cluster, Object
    from chartgen.releases.history import RevisionRecord
    from chartgen.releases.state import State


@dataclass(frozen=True)
class Preview:
    """The effect of a change on the run.

    Args:
        effect: Description of the effect; empty when neither revision has a run.
        survival: Data that outlives the pods of the previous run; None without such a run.
        losses: Work that is lost with live runs.
    """

    effect: str
    survival: Survival | None = None
    losses: list[LostWork] = field(default_factory=list)


def preview(
    cluster: Cluster, state: State, base: RevisionRecord | None, rendered: Iterable[Object], values: Mapping[str, Any]
) -> Preview:
    """Return the effect of a change of a release on its run; nothing is changed.

    Args:
        cluster: The cluster of the release.
        state: State of the release.
        base: The revision to start from; None for a first install.
        rendered: The objects of the new revision.
        values: The values that its templates received, chart defaults included.
    """
    before = side(base.objects if base else [], stored_values(base) if base else {})
    after = side(rendered, values)
    next_run = after.workers.name if after.workers else ""
    going = [run for run in state.runs if run["metadata"]["name"] != next_run]
    words = effect(before, after, old_run(cluster, state, before.workers))
    return Preview(words, before.survival, lost_work(cluster, state, going))
