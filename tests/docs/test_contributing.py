"""CONTRIBUTING.md and the pages on extending, followed word for word: their shell blocks give what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from rendered import security

from chartgen.composer.library import open_library
from chartgen.composer.origin import identified
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.program import find_helm
from chartgen.helm.yaml import Plain
from chartgen.linter import lint

ROOT = Path(__file__).parents[2]
PAGES = ("CONTRIBUTING.md", "docs/extend/add-a-fragment.md", "docs/extend/add-a-launcher.md")
TEXT = "\n".join((ROOT / page).read_text() for page in PAGES)
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Followed:
    """What a reader has after the last block: a folder, and what the commands printed."""

    folder: Path
    output: str


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Followed:
    folder = tmp_path_factory.mktemp("reader")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {name: value for name, value in os.environ.items() if name != "CHARTGEN_PATH"} | {"PATH": path}
    output = ""
    for block in BLOCKS:
        ran = subprocess.run(
            ["bash", "-eu"], input=block, capture_output=True, text=True, check=False, cwd=folder, env=env
        )
        assert ran.returncode == 0, f"{block}\n{ran.stderr}"
        output += ran.stdout
    return Followed(folder, output)


def test_there_is_something_to_follow() -> None:
    assert len(BLOCKS) == 5
    assert "```" not in re.sub(r"^```(?:sh|yaml)\n.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.helm
def test_the_commands_show_the_new_lines(followed: Followed) -> None:
    assert re.search(r"^lab-rdma +InfiniBand between the GPUs", followed.output, re.MULTILINE)
    assert re.search(r"^container.resources.limits +nvidia-gpu, lab-rdma$", followed.output, re.MULTILINE)
    assert re.search(r"^charts/lab-h100: written$", followed.output, re.MULTILINE)
    assert re.search(r'- name: NCCL_IB_HCA\n +value: "mlx5"$', followed.output, re.MULTILINE)
    assert re.search(r'nvidia.com/hostdev: "8"$', followed.output, re.MULTILINE)


@pytest.mark.helm
def test_the_chart_is_clean(followed: Followed) -> None:
    for name in ("lab-h100", "lab-h100-setup"):
        folder = followed.folder / "charts" / name
        assert "0 chart(s) failed" in find_helm().run(["lint", "--strict", str(folder)])
        chart = identified(Chart.read(folder), open_library([followed.folder / "ours"]))
        assert [str(finding) for finding in lint(chart, {}) if finding.severity != "unchecked"] == []


@pytest.mark.helm
def test_the_pods_hold_what_the_fragment_says(followed: Followed) -> None:
    chart = Chart.read(followed.folder / "charts" / "lab-h100")
    values: dict[str, Plain] = {"nodes": 4, "queue": {"name": "lab"}, "network": {"resource": "rdma/hca"}}
    found = objects(render(chart, "my-run", "default", values))
    (jobset,) = (item for item in found if item["kind"] == "JobSet")
    job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    spec = job["template"]["spec"]
    (program,) = spec["containers"]
    assert job["completions"] == 4
    assert jobset["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "lab"
    assert program["resources"]["limits"] == {"nvidia.com/gpu": "8", "rdma/hca": "8"}
    assert program["securityContext"] == security("IPC_LOCK")
    assert {"name": "NCCL_NET", "value": "IB"} in program["env"]
    assert {"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}} in spec["volumes"]
    assert {"name": "data", "mountPath": "/data"} in program["volumeMounts"]
    assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": "h100-8x"}


@pytest.mark.helm
def test_the_readme_of_the_chart_tells_about_the_fragment(followed: Followed) -> None:
    chart = followed.folder / "charts" / "lab-h100"
    readme, fragments = ((chart / name).read_text() for name in ("README.md", "FRAGMENTS.md"))
    assert "| lab-rdma | IPC_LOCK in program | RDMA pins the memory that the adapters read and write |" in fragments
    assert "- Nodes prepared for InfiniBand.\n" in readme
    assert "`network`" in readme.partition("- All keys, ")[2]


@pytest.mark.helm
def test_the_mistakes_that_it_proposes_are_told(followed: Followed) -> None:
    fragment = followed.folder / "ours" / "fragments" / "lab-rdma"
    values = fragment / "values.yaml"
    text = values.read_text()
    (fragment / "pods.yaml").write_text("- name: a\n")
    argv = [sys.executable, "-m", "chartgen", "build", "lab-h100", "--path", "ours"]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=followed.folder)
    (fragment / "pods.yaml").unlink()
    assert ran.returncode == 1
    assert "pods.yaml: is not a file that fragments can have; did you mean pod.yaml" in ran.stderr
    values.write_text(text.replace("adapters:", "adapter:"))
    ran = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=followed.folder)
    values.write_text(text)
    assert ran.returncode == 1
    assert ran.stderr == f'error: {values}:5:3: unknown key "adapter" in network; did you mean adapters?\n'


def test_the_rooms_that_it_names_are_those_of_the_package() -> None:
    package = ROOT / "chartgen"
    table = TEXT.partition("## Where things are")[2].partition("Beside it")[0]
    rooms = re.findall(
        r"`([a-z]+)/`", "".join(line.partition(" | ")[0] for line in table.splitlines() if line.startswith("| "))
    )
    # what Python has left behind of a module that has moved is no room
    files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert sorted(rooms) == sorted({path.relative_to(package).parts[0] for path in files if path.parent != package})
    modules = re.findall(r"`([a-z]+)`", table.partition("| top level |")[2])
    assert sorted(modules) == sorted(path.stem for path in package.glob("*.py") if path.name[0] != "_")
