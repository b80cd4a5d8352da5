"""What is known of a run beside its log: model, batch, machines. Sources have to agree; nothing is guessed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from chartgen.metrics.figures.flops import Shape


# Fact -> how people call it. The names are those of the values.
NAMES = {
    "layers": "layers",
    "hiddenSize": "hidden size",
    "ffnHiddenSize": "feed-forward size",
    "attentionHeads": "attention heads",
    "queryGroups": "query groups",
    "headSize": "head size",
    "vocabularySize": "vocabulary",
    "experts": "experts",
    "expertsPerToken": "experts per token",
    "gated": "gated feed-forward",
    "sequenceLength": "sequence length",
    "batch": "global batch",
    "gpus": "GPUs",
    "machines": "machines",
    "gpu": "GPU",
    "precision": "precision",
    "lora": "LoRA",
    "steps": "steps",
    "flops": "FLOPs per sample",
}
# No size, count or rate of a run comes near; FLOPs of a sample may.
_LARGEST = 1e30
_FAMILIES_WITH_GATE = ("llama", "mixtral")


class Notice(NamedTuple):
    """One thing that the reader of a figure has to know.

    Args:
        message: What it is, one sentence without a final stop.
        hint: What to do; empty when there is nothing to do.
        severity: An error makes the command fail: sources contradict one another.
    """

    message: str
    hint: str = ""
    severity: str = "warning"

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class Facts(NamedTuple):
    """What all sources agree on.

    Args:
        known: Fact -> value, by the names of NAMES.
        notices: Contradictions; the facts in question are not in `known`.
    """

    known: Mapping[str, Any] = {}
    notices: Sequence[Notice] = ()

    def get(self, name: str) -> Any:
        """Return a fact; None when it is not known."""
        return self.known.get(name)

    @property
    def shape(self) -> Shape | None:
        """The model's sizes; None when one is missing that does not follow from the others."""
        known = self.known
        if missing_sizes(known):
            return None
        from chartgen.metrics.figures.flops import Shape

        heads = known["attentionHeads"]
        return Shape(
            layers=known["layers"],
            hidden=known["hiddenSize"],
            feed_forward=known.get("ffnHiddenSize") or 4 * known["hiddenSize"],
            heads=heads,
            groups=known.get("queryGroups") or heads,
            head=known.get("headSize") or known["hiddenSize"] // heads,
            vocabulary=known["vocabularySize"],
            gated=bool(known.get("gated")),
            routed=known.get("expertsPerToken") or 2 if known.get("experts") else 1,
        )


def missing_sizes(known: Mapping[str, Any]) -> list[str]:
    """List the sizes that a model needs before its operations can be counted."""
    return [NAMES[name] for name in ("layers", "hiddenSize", "attentionHeads", "vocabularySize") if not known.get(name)]


def agree(sources: Sequence[tuple[str, Mapping[str, Any]]]) -> Facts:
    """Join facts of several sources.

    Args:
        sources: What tells, such as "the log", and its facts.

    Returns:
        What they agree on, and a notice for each contradiction.
    """
    known: dict[str, Any] = {}
    notices = []
    for name, words in NAMES.items():
        told = [(source, facts[name]) for source, facts in sources if _can_be(facts.get(name))]
        if not told:
            continue
        if all(same(name, value, told[0][1]) for _, value in told):
            known[name] = told[0][1]
        else:
            says = ", ".join(f"{_write(value)} by {source}" for source, value in told)
            notices.append(
                Notice(f"{words} is {says}", "name the right one; figures that need it are left out", "error")
            )
    return Facts(known, notices)


def _can_be(value: Any) -> bool:
    """Report whether a source tells of something at all, and not of a number that nothing can be worked out with."""
    return value not in (None, 0, "") and not (isinstance(value, int | float) and not abs(value) < _LARGEST)


def same(name: str, one: Any, other: Any) -> bool:
    """Report whether two sources agree on a fact."""
    # vocabularies are padded so that GPUs share them evenly, by up to some thousand
    return abs(one - other) <= 0.02 * other if name == "vocabularySize" else bool(one == other)


def _write(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def facts_of_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Translate the values of a release, as far as they are written down; what a chart would add needs its target."""
    model = values.get("model") or {}
    facts = {name: model[name] for name in NAMES if name in model}
    if "family" in model:
        facts["gated"] = model["family"] in _FAMILIES_WITH_GATE
    facts |= {name: values[name] for name in ("sequenceLength", "precision", "steps") if values.get(name)}
    machines, each = values.get("nodes"), values.get("gpusPerNode")
    if machines:
        facts["machines"] = machines
    if machines and each:
        facts["gpus"] = machines * each
    batch = (values.get("batch") or {}).get("global")
    if isinstance(batch, int):
        facts["batch"] = batch
    elif isinstance(batch, str) and "gpus" in facts:
        facts["batch"] = int(batch.removesuffix("/gpu")) * facts["gpus"]
    if "lora" in str(values.get("launcher", "")):
        facts["lora"] = True
    return facts
