"""What a command costs is seen when it changes: counts of work, which are the same on each machine, not times."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML
from work import TABLE, measure

MARGIN = 0.05


@pytest.mark.helm
def test_commands_do_as_much_work_as_the_table_says() -> None:
    for command, wanted in YAML(typ="safe").load(TABLE).items():
        counts = measure(command)
        assert counts["exit"] == wanted["exit"], command
        for name, number in wanted.items():
            assert number * (1 - MARGIN) <= counts[name] <= number * (1 + MARGIN), (command, name, "run `make work`")
