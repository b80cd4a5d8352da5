"""Sizes of models, from data/models.yaml: their matrices, parameters and FLOPs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from chartgen.data import read_table


class Matrix(NamedTuple):
    """A weight matrix of all layers of one kind."""

    rows: int  # size of its input
    columns: int  # size of its output
    layers: int  # layers that have it
    copies: int = 1  # such matrices of a layer: one for each expert
    active: int = 1  # those of them that a token passes through

    @property
    def parameters(self) -> int:
        """Return the weights of all layers."""
        return self.rows * self.columns * self.layers * self.copies

    @property
    def operations(self) -> int:
        """Return the FLOPs of one token, forward."""
        return 2 * self.rows * self.columns * self.layers * self.active


@dataclass(frozen=True)
class Architecture:
    """The sizes of a model, by the names of data/models.yaml.

    `head_size`, `groups`, and the layers with attention and with dense blocks follow from the others where 0 or None.
    """

    name: str
    layers: int
    hidden: int
    vocabulary: int
    heads: int
    head_size: int = 0
    groups: int = 0
    ffn: int = 0
    tied: bool = False
    gated: bool = True
    attention: int | None = None
    dense: int | None = None
    window: Mapping[str, int] = field(default_factory=dict)
    latent: Mapping[str, int] = field(default_factory=dict)
    experts: Mapping[str, int] = field(default_factory=dict)
    mamba: Mapping[str, int] = field(default_factory=dict)
    extra: int = 0
    biased: bool = False
    fused: Collection[str] = ()

    @property
    def attention_layers(self) -> int:
        """Return the layers with attention."""
        return self.layers if self.attention is None else self.attention

    @property
    def dense_layers(self) -> int:
        """Return the layers with a feed-forward block without experts."""
        return self.layers - self.expert_layers if self.dense is None else self.dense

    @property
    def expert_layers(self) -> int:
        """Return the layers with experts."""
        return self.experts.get("layers", 0)

    @property
    def mamba_layers(self) -> int:
        """Return the layers with a state space in place of attention."""
        return self.mamba.get("layers", 0)

    @property
    def head_dimension(self) -> int:
        """Return the size of an attention head."""
        return self.head_size or self.hidden // self.heads

    @property
    def expert_hidden(self) -> int:
        """Return the size of a token on its way to an expert."""
        return self.experts.get("hidden") or self.hidden

    @property
    def repeated(self) -> float:
        """Return how much of the layers trains for one step: more than 1 where further tokens are predicted."""
        return 1 + self.extra / self.layers

    @cached_property
    def common(self) -> tuple[Matrix, ...]:
        """Return the matrices that every token passes through, but for those of the vocabulary."""
        return tuple(self._common())

    def _common(self) -> Iterator[Matrix]:
        if self.attention_layers:
            yield from self._latent() if self.latent else self._heads()
        yield from _feed_forward(self.hidden, self.ffn, self.dense_layers, gated=self.gated)
        yield from _feed_forward(self.hidden, self.experts.get("shared", 0), self.expert_layers, gated=self.gated)
        if self.expert_hidden != self.hidden:
            yield Matrix(self.hidden, self.expert_hidden, self.expert_layers)
            yield Matrix(self.expert_hidden, self.hidden, self.expert_layers)
        if self.mamba:
            inner = self.mamba["heads"] * self.mamba["headSize"]
            states = 2 * self.mamba["groups"] * self.mamba["state"]
            yield Matrix(self.hidden, 2 * inner + states + self.mamba["heads"], self.mamba_layers)
            yield Matrix(inner, self.hidden, self.mamba_layers)

    @cached_property
    def routed(self) -> tuple[Matrix, ...]:
        """Return the matrices of experts that a router chooses."""
        sizes, gated = self.experts, self.gated
        found = _feed_forward(self.expert_hidden, sizes["ffn"], sizes["layers"], gated=gated) if sizes else ()
        return tuple(matrix._replace(copies=sizes["count"], active=sizes["active"]) for matrix in found)

    @cached_property
    def parameters(self) -> float:
        """Return all parameters, without those of norms and of further tokens' layers."""
        tables = self.hidden * self.vocabulary * (1 if self.tied else 2)
        return tables + sum(matrix.parameters for matrix in (*self.common, *self.routed))

    def attention_operations(self, sequence: int) -> float:
        """Return the FLOPs of scores and values for one token, forward; half of them are masked (causal)."""
        both = sum(self.latent.get(part, 0) for part in ("plain", "rotary", "value"))
        width = self.heads * (both or 2 * self.head_dimension)
        near = self.window.get("layers", 0)
        seen = self.window.get("size", 0)
        short = seen * (1 - seen / (2 * sequence)) if seen < sequence else sequence / 2
        return 2 * width * ((self.attention_layers - near) * sequence / 2 + near * short)

    def scan_operations(self) -> float:
        """Return the FLOPs of state spaces for one token, forward, as Megatron-LM core_v0.19.0 counts them."""
        of_mamba = self.mamba
        return 7 * of_mamba["heads"] * of_mamba["headSize"] * of_mamba["state"] * of_mamba["layers"] if of_mamba else 0

    def state_values(self) -> float:
        """Return the values of states that one token accounts for: each chunk of 128 tokens has one (chunk_size)."""
        of_mamba = self.mamba
        return (
            of_mamba["heads"] * of_mamba["headSize"] * of_mamba["state"] * of_mamba["layers"] / 128 if of_mamba else 0
        )

    def operations(self, sequence: int) -> float:
        """Return the FLOPs that training takes for one token: forward, and twice as many backward."""
        layers: float = sum(matrix.operations for matrix in (*self.common, *self.routed))
        layers += self.attention_operations(sequence) + self.scan_operations()
        head = 2 * self.hidden * self.vocabulary
        return 3 * (layers * self.repeated + head * (1 + self.extra))

    def _heads(self) -> Iterator[Matrix]:
        width = self.heads * self.head_dimension
        shared = (self.groups or self.heads) * self.head_dimension
        yield Matrix(self.hidden, width + 2 * shared, self.attention_layers)
        yield Matrix(width, self.hidden, self.attention_layers)

    def _latent(self) -> Iterator[Matrix]:
        size, layers, heads = self.latent, self.attention_layers, self.heads
        if "output" in size:
            width, rank = heads * self.head_dimension, size["outputGroups"] * size["output"]
            yield Matrix(self.hidden, size["query"] + self.head_dimension, layers)
            yield Matrix(size["query"], width, layers)
            # each group of heads has its own part of the output's first factor
            yield Matrix(width, size["output"], layers)
            yield Matrix(rank, self.hidden, layers)
            return
        yield Matrix(self.hidden, size["query"] + size["keyValue"] + size["rotary"], layers)
        yield Matrix(size["query"], heads * (size["plain"] + size["rotary"]), layers)
        yield Matrix(size["keyValue"], heads * (size["plain"] + size["value"]), layers)
        yield Matrix(heads * size["value"], self.hidden, layers)


def _feed_forward(hidden: int, ffn: int, layers: int, *, gated: bool) -> Iterator[Matrix]:
    if ffn and layers:
        yield Matrix(hidden, ffn * (2 if gated else 1), layers)
        yield Matrix(ffn, hidden, layers)


def find_architecture(name: str) -> Architecture | None:
    """Return the model whose name or alias a name is, or else starts with; None for an unknown one."""
    wanted = _plain(name)
    known = _names()
    found = known.get(wanted) or next(
        (known[each] for each in sorted(known, key=len)[::-1] if _begins(wanted, each)), ""
    )
    return all_architectures().get(found)


def _begins(name: str, start: str) -> bool:
    """Report whether a name is another with an addition, such as a recipe's."""
    return name.startswith(start) and not name[len(start) :][:1].isalnum()


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").replace(" ", "-")


@lru_cache(maxsize=1)
def _names() -> Mapping[str, str]:
    return {_plain(each): name for name, row in _rows().items() for each in (name, *row.get("aliases", ()))}


@lru_cache(maxsize=1)
def all_architectures() -> Mapping[str, Architecture]:
    """Read all models."""
    return {name: _architecture(name, row) for name, row in _rows().items()}


def _rows() -> Mapping[str, Any]:
    models: Mapping[str, Any] = read_table("models.yaml")["models"]
    return models


def _architecture(name: str, row: dict[str, Any]) -> Architecture:
    own = {key: value for key, value in row.items() if key not in ("parameters", "aliases", "source", "headSize")}
    return Architecture(name, head_size=row.get("headSize", 0), **own)
