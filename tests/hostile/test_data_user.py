"""Data programs as a kubelet runs them: a user without capabilities, on a root file system that nobody can write to.

The real scripts of a rendered Job, each with the user, groups and capabilities that its container states, in a mount
namespace whose root is read-only. Storage belongs to root and ignores fsGroup, as new claims of NFS servers do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pod_runner import run
from rendered import Objects, container, init, pod
from website import Site, serving

from chartgen.rehearsal.local_pod import plan_execution, prepare_pod

# Its arguments: the writable folders, "--", the command. /tmp is the first of them.
CONTAINED = """
set -e
mount --bind "$1" /tmp
while [[ $1 != -- ]]; do mount --bind "$1" "$1"; shift; done
mount -o remount,bind,ro /
if touch /var/tmp/chartgen 2>/dev/null; then exit 99; fi
shift
exec "$@"
"""
NOBODY = 65534


def isolated() -> bool:
    command = ["unshare", "--mount", "bash", "-c", "mount --bind / / && mount -o remount,bind,ro /"]
    return bool(shutil.which("setpriv")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not isolated(), reason="needs setpriv, and root that may mount")


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site(files={"/a.jsonl": b"text"})) as found:
        yield found


@pytest.fixture
def machine() -> Iterator[Path]:
    """A folder that every user reaches; that of pytest is root's."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    (folder / "own-tmp").mkdir()
    (folder / "own-tmp").chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def job(site: Site, *sets: str) -> Objects:
    source = f"data.source={site.address}/a.jsonl,data.directory=/data/sets"
    return run("launcher=download", source, "storage.data.from=pvc://shared", *sets)


def contained(machine: Path, spec: dict[str, Any], context: dict[str, Any], argv: list[str], **more: str) -> Any:
    """Run a container's command as its security context says."""
    own = {**context, **spec["securityContext"]}
    assert own["readOnlyRootFilesystem"] is True
    added = "".join(f",+{name.lower()}" for name in own["capabilities"].get("add", ()))
    groups = ",".join(map(str, own.get("supplementalGroups", ())))
    user = [
        *("setpriv", "--no-new-privs", "--inh-caps=-all", f"--bounding-set=-all{added}"),
        *(f"--reuid={own['runAsUser']}", f"--regid={own['runAsGroup']}"),
        f"--groups={groups}" if groups else "--clear-groups",
    ]
    folders = [str(machine / "own-tmp"), str(machine / "data")]
    command = ["unshare", "--mount", "bash", "-c", CONTAINED, "contained", *folders, "--", *user, *argv]
    # an interpreter that every user reaches, as an image's
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "no_proxy": "*", **more}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd="/")


def prepared(machine: Path, found: Objects) -> Any:
    """Run the init container."""
    (machine / "data").mkdir(exist_ok=True)
    spec = init(found, "own-folders")
    argv = [text.replace("/data/", f"{machine}/data/") for text in (*spec["command"], *spec["args"])]
    return contained(machine, spec, pod(found)["spec"]["securityContext"], argv)


def downloaded(machine: Path, found: Objects) -> Any:
    """Run the program."""
    planned = plan_execution(found, machine, overrides={"GCE_METADATA_HOST": "127.0.0.1:9"})
    prepare_pod(planned)
    context = pod(found)["spec"]["securityContext"]
    return contained(machine, container(found), context, list(planned.argv), **planned.environment)


def owner(path: Path) -> tuple[int, int]:
    return path.stat().st_uid, path.stat().st_gid


@pytest.mark.helm
def test_a_user_downloads_into_storage_that_is_roots(site: Site, machine: Path) -> None:
    found = job(site)
    assert prepared(machine, found).returncode == 0
    assert owner(machine / "data/sets") == (NOBODY, NOBODY)
    assert owner(machine / "data") == (0, 0), "what others have there stays theirs"
    done = downloaded(machine, found)
    assert done.returncode == 0, done.stdout + done.stderr
    file = machine / "data/sets/a.jsonl"
    assert (file.read_text(), owner(file)) == ("text", (NOBODY, NOBODY))
    assert file.stat().st_mode & 0o004, "pods that train read it, whoever they are"
    again = prepared(machine, found), downloaded(machine, found)
    assert [each.returncode for each in again] == [0, 0]


@pytest.mark.helm
def test_without_the_init_container_the_user_cannot_write(site: Site, machine: Path) -> None:
    (machine / "data").mkdir()
    done = downloaded(machine, job(site, "data.podSecurityContext.fsGroup=100"))
    assert done.returncode == 1
    assert "Permission denied" in done.stdout + done.stderr


@pytest.mark.threat(6)
@pytest.mark.helm
@pytest.mark.parametrize(
    ("owner", "mode", "sets", "code"),
    [
        ((1000, 1000), 0o755, (), 1),
        ((1000, 1000), 0o775, (), 1),
        ((1000, 1000), 0o777, (), 0),
        ((1000, 1000), 0o755, ("data.podSecurityContext.runAsUser=1000",), 0),
        ((1000, 1000), 0o775, ("data.podSecurityContext.runAsGroup=1000",), 0),
        ((1000, 1000), 0o775, ("data.podSecurityContext.supplementalGroups={1000}",), 0),
        ((0, 0), 0o700, (), 0),
    ],
)
def test_folders_of_other_users_stay_theirs(
    site: Site, machine: Path, owner: tuple[int, int], mode: int, sets: tuple[str, ...], code: int
) -> None:
    folder = machine / "data/sets"
    folder.mkdir(parents=True)
    os.chown(folder, *owner)
    folder.chmod(mode)
    found = job(site, *sets)
    done = prepared(machine, found)
    assert done.returncode == code, done.stderr
    assert folder.stat().st_uid == (owner[0] or NOBODY)
    if code:
        assert "data.podSecurityContext" in done.stderr
        assert f"belongs to user {owner[0]}" in done.stderr
    else:
        assert downloaded(machine, found).returncode == 0


@pytest.mark.helm
def test_a_root_that_keeps_nothing_writes_to_its_own(site: Site, machine: Path) -> None:
    """For images that need root: runAsUser 0, still without capabilities."""
    found = job(site, "data.podSecurityContext.runAsUser=0", "data.podSecurityContext.runAsGroup=0")
    assert "initContainers" not in pod(found)["spec"]
    (machine / "data").mkdir()
    assert downloaded(machine, found).returncode == 0
    assert owner(machine / "data/sets/a.jsonl") == (0, 0)
