"""`--code FOLDER` ships a folder of code with the run, and an upgrade keeps what the release has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from userlib import chartgen, write

from chartgen.composer.code_folder import LARGEST, packed_code
from chartgen.errors import UsageError
from chartgen.helm.values import load_values
from chartgen.releases.plan import keep_files

FILES = {
    "train.py": "import sys\nfrom lib.model import NAME\nprint(NAME, sys.argv[1:])\n",
    "lib/model.py": "NAME = 'ours'\n",
    ".git/config": "secret",
    "lib/__pycache__/model.cpython-311.pyc": "compiled",
}


@pytest.fixture
def code(tmp_path: Path) -> Path:
    write(tmp_path / "code", FILES)
    return tmp_path / "code"


def test_the_packed_program_runs_its_entry_with_arguments_and_modules(code: Path, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(packed_code(code))
    argv = [sys.executable, "code.py", "--lr", "1"]
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ours ['--lr', '1']\n"), done.stderr
    (unpacked,) = tmp_path.glob("code-*")
    assert sorted(path.name for path in unpacked.rglob("*.py")) == ["model.py", "train.py"]
    assert not (unpacked / ".git").exists()


def test_equal_folders_make_equal_programs_and_others_another(code: Path, tmp_path: Path) -> None:
    before = packed_code(code)
    write(tmp_path / "again" / "code", FILES)
    os.utime(tmp_path / "again" / "code" / "train.py", (1, 1))
    assert packed_code(tmp_path / "again" / "code") == before
    (code / "lib" / "model.py").write_text("NAME = 'theirs'\n")
    assert packed_code(code) != before


def test_another_entry_is_named(code: Path) -> None:
    assert "lib/model.py" in packed_code(code, code / "lib" / "model.py")
    assert packed_code(code, Path("lib/model.py")) == packed_code(code, code / "lib" / "model.py")
    for program in (Path("/etc/hostname"), Path("absent.py")):
        with pytest.raises(UsageError, match="--program-file"):
            packed_code(code, program)
    (code / "train.py").unlink()
    with pytest.raises(UsageError, match="--program-file"):
        packed_code(code)


def test_what_no_release_takes_is_refused_with_the_commands_that_upload_it(code: Path) -> None:
    (code / "weights.bin").write_bytes(os.urandom(LARGEST))
    with pytest.raises(UsageError, match=r"gcloud storage cp.*aws s3 cp.*kubectl cp"):
        packed_code(code)


@pytest.mark.threat(1)
def test_a_link_out_of_the_folder_is_refused(code: Path) -> None:
    (code / "secret").symlink_to("/etc/hostname")
    (code / "ours").symlink_to(code.parent)
    (code / "lost").symlink_to("nowhere")
    with pytest.raises(UsageError, match=r"(?s)link to a folder.*link to a folder.*link out"):
        packed_code(code)


@pytest.mark.helm
def test_the_run_of_other_code_has_another_name(code: Path) -> None:
    site = Path(__file__).parents[2] / "values" / "site.gke-a3ultra.example.yaml"

    def rendered() -> str:
        ran = chartgen("render", "gke-a3ultra", "run", "-f", site, "--code", code)
        assert ran.exit_code == 0, ran.stderr
        return next(line for line in ran.stdout.splitlines() if "name: run-gke-a3ultra-" in line)

    before = rendered()
    assert rendered() == before
    (code / "train.py").write_text("print()\n")
    assert rendered() != before


def test_an_upgrade_without_files_keeps_those_of_the_release() -> None:
    own = {"files": {"a.py": "print()"}, "program": "/etc/chartgen/a.py"}
    earlier = {"launcher": "torchrun", "launchers": {"torchrun": own}}
    kept, names = keep_files(load_values(set_values=["steps=5"]), earlier)
    assert (kept.data["launcher"], kept.data["launchers"], names) == ("torchrun", {"torchrun": own}, ["a.py"])
    for given in ({"launcher": "nemo-1"}, {"launchers": {"torchrun": {"files": {"b.py": ""}}}}):
        values = load_values(set_json=[json.dumps(given)])
        assert keep_files(values, earlier) == (values, [])
