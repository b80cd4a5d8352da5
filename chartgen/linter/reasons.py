"""The privileges that a chart states a reason for: the table in its README, which a build takes from the fragments."""

from __future__ import annotations

import re

_SECTION = re.compile(r"^## Privileges$(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_CAPABILITY = re.compile(r"CAP_")


def reasons(readme: str) -> dict[str, str]:
    """Read the section `## Privileges`: a table whose last two columns are the privilege and the reason.

    Args:
        readme: The chart's README.md.

    Returns:
        Privilege, such as `hostPath` or `IPC_LOCK` -> reason; one without a reason is left out.
    """
    section = _SECTION.search(readme)
    found = {}
    for line in section["body"].splitlines() if section else ():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if len(cells) >= 2 and cells[-1].strip("- "):
            found[_CAPABILITY.sub("", cells[-2])] = cells[-1]
    return found
