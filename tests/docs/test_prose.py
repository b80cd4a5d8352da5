"""The prose linter finds a phrase in a page, a docstring, a message and the sources of a chart, not in code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").is_file())


def prose(folder: Path) -> list[str]:
    """Run the linter in a folder; return the place and the phrase of each finding."""
    argv = [sys.executable, str(ROOT / "tests" / "programs" / "prose.py")]
    ran = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == (1 if ran.stderr else 0)
    assert ran.stdout == ""
    return [line.partition("; better: ")[0] for line in ran.stderr.splitlines()]


def test_planted_phrases_are_found(tmp_path: Path) -> None:
    texts = {
        "docs/page.md": "# A page\n\nSee what\nbecomes of it. Nobody\nis no reader.\n",
        "chartgen/module.py": '"""A page says it.\n\n    told: Go in order to.\n"""\n\nT = f"{1} for want of"\n',
        "chartgen/library/fragments/mine/rules.yaml": "- id: says\n  hint: use tcp to say so\n",
        "chartgen/library/fragments/mine/validate.tpl": '{{ fail (printf "%s is no name" .) }}\n',
        "chartgen/library/workloads/mine/files/start.sh": "# Nobody waits.\necho 'one of others' >&2\n",
        "values/mine.yaml": "# A command that holds the lock; it holds a pod.\nsaid: 1\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert prose(tmp_path) == [
        "chartgen/library/fragments/mine/rules.yaml:1: 'says'",
        "chartgen/library/fragments/mine/rules.yaml:2: 'say'",
        "chartgen/library/fragments/mine/validate.tpl:1: 'is no'",
        "chartgen/library/workloads/mine/files/start.sh:1: 'Nobody'",
        "chartgen/library/workloads/mine/files/start.sh:2: 'of others'",
        "chartgen/module.py:1: 'says'",
        "chartgen/module.py:3: 'in order to'",
        "chartgen/module.py:6: 'for want of'",
        "docs/page.md:4: 'Nobody'",
        "docs/page.md:4: 'becomes of'",
        "docs/page.md:5: 'is no'",
        "values/mine.yaml:1: 'holds'",
        "values/mine.yaml:2: 'said'",
    ]


def test_code_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(
        "```\nit says so\n```\n\nThe output `it says so`, whatever the chart is; id it-says-so.\n"
    )
    assert prose(tmp_path) == []
