"""The files that a release has of the user's machine: an upgrade that gives none keeps them."""

from __future__ import annotations

import json
from typing import Any

from chartgen.helm.values import Values, override

_LAUNCHER = "torchrun"
_FILES = ("launchers", _LAUNCHER, "files")
_PROGRAM = ("launchers", _LAUNCHER, "program")


def keep_files(values: Values, earlier: dict[str, Any]) -> tuple[Values, list[str]]:
    """Return values with the program's files of a release where they have none, and the names of these files."""
    launchers: Any = earlier.get("launchers")
    own: Any = launchers.get(_LAUNCHER) if isinstance(launchers, dict) else None
    files = own.get("files") if isinstance(own, dict) else None
    other = values.data.get("launcher", _LAUNCHER) != _LAUNCHER or earlier.get("launcher") != _LAUNCHER
    if other or not files or not isinstance(files, dict) or values.sets(_FILES):
        return values, []
    kept: dict[str, Any] = {"launcher": _LAUNCHER, "launchers": {_LAUNCHER: {"files": files}}}
    if own.get("program") and not values.sets(_PROGRAM):
        kept["launchers"][_LAUNCHER]["program"] = own["program"]
    return override(values, "--set-json", json.dumps(kept)), sorted(files)
