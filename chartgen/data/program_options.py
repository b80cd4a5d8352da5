"""The options of a launcher's program, by the release of its image, from data/options.yaml."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from chartgen.data import read_table
from chartgen.data.compatibility import version, within


class Options(NamedTuple):
    """The options of one program."""

    releases: tuple[str, ...]  # the known releases of nvidia/nemo, oldest first
    # Maps of `names`, a text, with the first release that has them and the first that does not
    spans: tuple[dict[str, str], ...]

    def for_release(self, release: str) -> frozenset[str]:
        """Return the options of one release; empty for an unknown release."""
        found = [span for span in self.spans if release in self.releases and within(span, release)]
        return frozenset(name for span in found for name in span["names"].split())

    @property
    def ever(self) -> frozenset[str]:
        """Return the options that at least one known release has."""
        return frozenset(name for span in self.spans for name in span["names"].split())

    @property
    def always(self) -> frozenset[str]:
        """Return the options that all known releases have."""
        return frozenset.intersection(*map(self.for_release, self.releases))


@lru_cache(maxsize=8)
def options_of(launcher: str) -> Options | None:
    """Return the options of a launcher's program; None for an unknown program."""
    found: Any = read_table("options.yaml").get(launcher)
    if not found:
        return None
    return Options(tuple(sorted(found["releases"], key=version)), tuple(found["options"]))
