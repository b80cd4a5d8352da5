"""Facts for tags, as plain data: from a library of a stranger, no tag reaches a file or an object of Python."""

from __future__ import annotations

from typing import Any

from chartgen.composer.fragment import Fragment
from chartgen.composer.target import Target
from chartgen.composer.workload import Workload

_MACHINE = "name gpus gpu peak capacity labels taints fabric"
_CONTRACT = "reports links device devices why refuted_by"
_FRAGMENT = "name description requires conflicts workloads gpu_only when transport privileges sub_paths sources"
# not `parts`, which reads files: it is a function of its own
_LAUNCHER = (
    "name description task processes program own_program image default_image same_as precisions owns defaults settings"
    " own_model step_line sources"
)
_KIND = "name container api kind starts rank_label port requires extends client_side privileges"
_TARGET = "name description platform kubernetes chosen sources links"


def target_facts(target: Target) -> dict[str, Any]:
    """Return what tags may know of a target, its machines, fragments and launchers."""
    machines = {name: _named(machine, _MACHINE) for name, machine in target.machines.items()}
    launchers = [_named(launcher, _LAUNCHER) for launcher in target.launchers]
    return {
        **_named(target, _TARGET),
        "machines": machines,
        "default_machine": machines[target.default_machine.name],
        "fragments": list(map(_fragment_facts, target.fragments)),
        "launchers": launchers,
        "default_launcher": launchers[0],
    }


def kind_facts(kind: Workload) -> dict[str, Any]:
    """Return what tags may know of a workload kind."""
    return _named(kind, _KIND)


def _fragment_facts(fragment: Fragment) -> dict[str, Any]:
    contract = fragment.contract and _named(fragment.contract, _CONTRACT)
    return {**_named(fragment, _FRAGMENT), "provides": sorted(fragment.provides), "contract": contract}


def _named(value: object, names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names.split()}
