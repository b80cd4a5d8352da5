"""The privileges that a chart of a target may hold: those that the target's fragments state a reason for.

What stands in the chart's own README counts for nothing: whoever adds a privilege could add its reason there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

from chartgen.composer.origin import Composed, origin_of
from chartgen.composer.privileges import PROGRAM, VALUE, Privilege, is_system, read_privilege
from chartgen.composer.target import Target
from chartgen.composer.workload import load_workload
from chartgen.helm.chart import Chart
from chartgen.helm.yaml import load


def held(name: str, *details: str) -> str:
    """Return how lint names a privilege that an object holds: with its folder and container, where it has them."""
    return " ".join(filter(None, (name, *details)))


class Reasons:
    """What the fragments of a chart's target state.

    Args:
        chart: The chart; one of no known target states nothing.
    """

    def __init__(self, chart: Chart) -> None:
        origin = origin_of(chart)
        self.target = origin.target if isinstance(origin, Composed) else None
        self._stated = list(_privileges(self.target)) if self.target else []
        self._programs = _programs(self.target) if self.target else ()
        self._defaults = load(chart.files.get("values.yaml", ""), "values.yaml").data if self.target else None

    def allowed(self, values: Mapping[str, Any]) -> frozenset[str]:
        """Return the privileges, as `held` names them, that a release with these values may hold."""
        return frozenset(each for privilege in self._stated for each in self._held(privilege, values))

    def _held(self, privilege: Privilege, values: Mapping[str, Any]) -> Iterator[str]:
        path = privilege.path
        if path.startswith(VALUE):
            keys = path.removeprefix(VALUE).split(".")
            path = str(_get(values, keys) or _get(self._defaults, keys))
            if is_system(path):
                return
        if not privilege.containers:
            yield held(privilege.name)
        for container in privilege.containers:
            for name in self._programs if container == PROGRAM else (container,):
                yield held(privilege.name, path, name)


def _privileges(target: Target) -> Iterator[Privilege]:
    return (read_privilege(text) for fragment in target.fragments for text in fragment.privileges)


def _programs(target: Target) -> tuple[str, ...]:
    """Return what the workload kinds call the container of the program."""
    kinds = (load_workload(target.library.find("workload", name)) for name in target.library.names("workload"))
    return tuple(dict.fromkeys(kind.container for kind in kinds))


def _get(values: Any, keys: list[str]) -> Any:
    return reduce(lambda node, key: node.get(key) if isinstance(node, Mapping) else None, keys, values)
