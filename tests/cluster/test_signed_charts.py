"""Charts signed by Helm: a key of this test signs, and Helm checks it at the installation (docs/how-to/gitops.md)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from selection import HELMS

from chartgen.rehearsal import engines
from chartgen.rehearsal.controlplane import ControlPlane

CHART = Path("charts/onprem-p8000")
NAME = "Charts of a test"
pytestmark = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg, which makes the key, is not on PATH")


def gpg(home: Path, *arguments: str) -> None:
    subprocess.run(["gpg", "--batch", "--homedir", str(home), *arguments], check=True, capture_output=True)


def keys(folder: Path) -> tuple[Path, Path]:
    """Make a key without a passphrase, and return its secret and its public ring in the form that Helm reads."""
    home = folder / "gnupg"
    home.mkdir(mode=0o700)
    try:
        gpg(home, "--passphrase", "", "--quick-generate-key", NAME, "rsa2048", "sign", "1d")
        secret, public = folder / "secring.gpg", folder / "pubring.gpg"
        gpg(home, "--output", str(secret), "--export-secret-keys", NAME)
        gpg(home, "--output", str(public), "--export", NAME)
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "gpg-agent"], check=False, capture_output=True)
    return secret, public


def helm(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    argv = [str(program), *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("name", HELMS)
def test_a_signed_chart_is_installed_and_a_changed_one_refused(plane: ControlPlane, name: str, tmp_path: Path) -> None:
    program = engines.find_engine(name)
    assert program
    secret, public = keys(tmp_path)
    out = tmp_path / "out"
    done = helm(program, "package", CHART, "--sign", "--key", NAME, "--keyring", secret, "--destination", out)
    assert done.returncode == 0, done.stderr
    (archive,) = out.glob("*.tgz")
    assert Path(f"{archive}.prov").is_file()

    cluster = ("--kubeconfig", plane.kubeconfig)
    install = ("install", f"signed-{name}", archive, *cluster, "--verify", "--set", "queue.name=lab")
    done = helm(program, *install, "--keyring", public)
    assert done.returncode == 0, done.stderr
    done = helm(program, "uninstall", f"signed-{name}", *cluster)
    assert done.returncode == 0, done.stderr

    (tmp_path / "other").mkdir()
    _, stranger = keys(tmp_path / "other")
    assert helm(program, *install, "--keyring", stranger).returncode != 0, "a key that nobody trusts"
    archive.write_bytes(archive.read_bytes() + b"\0")
    assert helm(program, *install, "--keyring", public).returncode != 0, "another file"
    Path(f"{archive}.prov").unlink()
    assert helm(program, *install, "--keyring", public).returncode != 0, "a chart without a signature"
