"""Which targets have which machines: for those who know the name of a machine, GPU or cloud, but of no target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chartgen.composer.library import Library
from chartgen.errors import ChartgenError
from chartgen.helm.yaml import load_file, require_map


@dataclass(frozen=True)
class MachineType:
    """A machine type of a target.

    Args:
        name: Its name, as `machineType` takes it.
        gpu: Model of its GPUs, such as h100-80gb.
        count: How many GPUs it has.
        target: The target.
        platform: The target's platform, such as gke.
    """

    name: str
    gpu: str
    count: str
    target: str
    platform: str

    def answers_to(self, word: str) -> bool:
        """Report whether a word names the machine, its GPU (h100 is an h100-80gb) or its platform."""
        names = (self.name, self.gpu, self.gpu.partition("-")[0], self.platform, self.target.partition("-")[0])
        return word.casefold() in map(str.casefold, names)


def machine_types(library: Library) -> Iterator[MachineType]:
    """Yield the machine types of all targets, by target; what is wrong in a target's file is for its own user."""
    for target in library.names("target"):
        try:
            content = require_map(load_file(library.find("target", target)), "a target")
        except ChartgenError:
            continue
        machines, platform = content.get("machines"), str(content.get("platform"))
        for name, facts in machines.items() if isinstance(machines, dict) else ():
            known = facts if isinstance(facts, dict) else {}
            yield MachineType(name, str(known.get("gpu")), str(known.get("gpus")), target, platform)
