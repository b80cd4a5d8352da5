"""Genuine logs of many programs, which are not part of the project.

CHARTGEN_CORPUS names their folder, or it is `shared/corpus` beside a parent of the checkout.
"""

from __future__ import annotations

import os
from pathlib import Path


def _find() -> Path | None:
    beside = (parent / "shared" / "corpus" for parent in Path(__file__).resolve().parents)
    told = os.environ.get("CHARTGEN_CORPUS")
    return next((path for path in ([Path(told)] if told else beside) if path.is_dir()), None)


CORPUS = _find()
