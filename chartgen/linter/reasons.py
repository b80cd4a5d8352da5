"""The allowed privileges of a target's chart: those with a reason in the target's fragments or its workload kind.

The chart's own README does not count: whoever adds a privilege could add its reason there.
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


def reason_key(name: str, *details: str) -> str:
    """Return lint's name of a privilege: with its folder and container, if it has them."""
    return " ".join(filter(None, (name, *details)))


class Reasons:
    """Privileges with reasons in the fragments of a chart's target, and in its workload kind.

    Args:
        chart: The chart; without a known target it has no reasons.
    """

    def __init__(self, chart: Chart) -> None:
        origin = origin_of(chart)
        self.target = origin.target if isinstance(origin, Composed) else None
        self._stated = list(_privileges(origin)) if isinstance(origin, Composed) else []
        self._programs = _programs(self.target) if self.target else ()
        self._defaults = load(chart.files.get("values.yaml", ""), "values.yaml").data if self.target else None

    def allowed(self, values: Mapping[str, Any]) -> frozenset[str]:
        """Return the allowed privileges of a release with these values, by lint's names."""
        return frozenset(key for privilege in self._stated for key in self._reason_keys(privilege, values))

    def _reason_keys(self, privilege: Privilege, values: Mapping[str, Any]) -> Iterator[str]:
        path = privilege.path
        if path.startswith(VALUE):
            keys = path.removeprefix(VALUE).split(".")
            path = str(_get(values, keys) or _get(self._defaults, keys))
            if is_system(path):
                return
        if not privilege.containers:
            yield reason_key(privilege.name)
        for container in privilege.containers:
            for name in self._programs if container == PROGRAM else (container,):
                yield reason_key(privilege.name, path, name)


def _privileges(origin: Composed) -> Iterator[Privilege]:
    kind = load_workload(origin.target.library.find("workload", origin.workload or origin.target.workload))
    stated = (*(fragment.privileges for fragment in origin.target.fragments), kind.privileges)
    return (read_privilege(text) for privileges in stated for text in privileges)


def _programs(target: Target) -> tuple[str, ...]:
    """Return the workload kinds' names of the program container."""
    kinds = (load_workload(target.library.find("workload", name)) for name in target.library.names("workload"))
    return tuple(dict.fromkeys(kind.container for kind in kinds))


def _get(values: Any, keys: list[str]) -> Any:
    return reduce(lambda node, key: node.get(key) if isinstance(node, Mapping) else None, keys, values)
