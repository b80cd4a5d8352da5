"""Scripts of a stranger's chart are read by a bash that may crash on them: no answer is not a sound script."""

from __future__ import annotations

from pathlib import Path

import pytest

from chartgen.linter.scripts import scripts_parse


@pytest.mark.threat(14)
@pytest.mark.parametrize("end", ["kill -9 $$", "exit 7"])
def test_a_bash_that_ends_without_a_word_is_a_finding(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bash = tmp_path / "bash"
    bash.write_text(f"#!/bin/sh\n{end}\n")
    bash.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = list(scripts_parse({"kind": "ConfigMap", "data": {"run.sh": f"true # {end}\n"}}))
    assert [each.at for each in found] == [("data", "run.sh")]
