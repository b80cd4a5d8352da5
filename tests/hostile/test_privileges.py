"""A stated reason allows one folder, one capability, one container; nobody who changes a chart states reasons for it.

Each case passed without a finding at commit e0791ee.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pairs import PRIVILEGES
from rendered import VALUES

from chartgen.checks import check
from chartgen.cli import main
from chartgen.composer.assembly import compose
from chartgen.composer.fragment import load_fragment
from chartgen.composer.privileges import SYSTEM, is_system, read_privilege, volume_fault
from chartgen.composer.target import load_target
from chartgen.data.api_schemas import kubernetes_versions
from chartgen.errors import ChartgenError
from chartgen.findings import Finding
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import Values, load_values
from chartgen.linter import Subject, find_presets, lint, run_steps

POLICY = ("no-host-access", "no-privileged-containers", "no-added-capabilities")
SYSTEM_FOLDERS = "no-system-folders"
SOUND = Path(__file__).parents[1] / "data" / "lint" / "sound"
NEWEST = kubernetes_versions("")[-1:]


def policy(findings: list[Finding]) -> list[str]:
    return sorted({each.rule for each in findings if each.rule in (*POLICY, SYSTEM_FOLDERS)})


def of(chart: Chart, *, given: dict[str, Any] | None = None, sets: tuple[str, ...] = ()) -> list[Finding]:
    """Lint a chart with some values, on one Kubernetes version."""
    files = find_presets(chart.name, VALUES)
    first = next(iter(files.values()), [])
    values = load_values(
        first, set_values=sets, set_json=tuple(f"{k}={json.dumps(v)}" for k, v in (given or {}).items())
    )
    return run_steps(Subject(chart, presets={"given": values}, bare=False, versions=NEWEST)).findings


def extra(path: str, container: bool = True) -> dict[str, Any]:
    volumes: dict[str, Any] = {"extraVolumes": [{"name": "more", "hostPath": {"path": path}}]}
    mounts = {"extraVolumeMounts": [{"name": "more", "mountPath": "/more"}]} if container else {}
    return {**volumes, **mounts}


@pytest.mark.threat(11)
@pytest.mark.helm
@pytest.mark.parametrize("target", ["gke-a3mega", "onprem-p8000"])
@pytest.mark.parametrize("path", ["/", "/etc", "/mnt/other", "/sys"])
def test_folders_that_no_fragment_names(target: str, path: str) -> None:
    """Of a JobSet, and of a Job, whose annotations for kube-linter allow hostPath as such."""
    chart = compose(load_target(target))
    rule = "system-folders-of-volumes" if path in ("/", "/etc") else "no-host-access"
    found = [each for each in of(chart, given=extra(path)) if each.rule == rule]
    assert [path in each.problem.message for each in found] == [True]


@pytest.mark.helm
def test_a_folder_stated_for_one_container_in_another() -> None:
    chart = compose(load_target("gke-a3mega"))
    mount = {"extraVolumeMounts": [{"name": "sys", "mountPath": "/more"}]}
    assert policy(of(chart, given=mount)) == ["no-host-access", SYSTEM_FOLDERS]


@pytest.mark.helm
@pytest.mark.parametrize("target", PRIVILEGES)
def test_what_fragments_state_is_allowed(target: str) -> None:
    chart = compose(load_target(target))
    assert policy(of(chart)) == []
    if "localDisk" in chart.files["values.yaml"]:
        disks = {"storage": {"scratch": {"from": "disk://"}}, "localDisk": "/mnt/mine"}
        assert policy(of(chart, given=disks)) == []


@pytest.mark.threat(11)
@pytest.mark.helm
def test_a_privilege_of_one_container_in_another() -> None:
    chart = compose(load_target("gke-a3high"))
    installer = "name: nccl-plugin-installer\n"
    path = next(path for path, text in chart.files.items() if installer in text)
    text = chart.files[path]
    before, name, rest = text.partition(installer)
    granted = rest.replace("allowPrivilegeEscalation: false", "privileged: true", 1).replace("CHOWN", "NET_ADMIN", 1)
    changed = replace(chart, files={**chart.files, path: before + name + granted})
    found = of(changed)
    assert policy(found) == sorted([*POLICY, SYSTEM_FOLDERS])  # no reason counts in a chart that differs from its build
    assert all("gke-a3high" in each.problem.hint for each in found if policy([each]))


TABLE = """
## Privileges

| container | privilege | reason |
|---|---|---|
| trainer | hostPath | needed |
| trainer | privileged | needed |
| trainer | SYS_ADMIN | needed |
"""


@pytest.mark.threat(11)
@pytest.mark.helm
@pytest.mark.parametrize("target", ["", "gke-a3mega"])
def test_a_table_in_the_readme_states_nothing(target: str) -> None:
    """Neither in a chart of others, nor in one that says to be a target's."""
    chart = Chart.read(SOUND)
    job = chart.files["templates/job.yaml"]
    job = job.replace("{privileged: false}", "{privileged: true, capabilities: {add: [SYS_ADMIN]}}")
    job = job.replace("emptyDir: {medium: Memory", "hostPath: {path: /mnt/x}, was: {medium: Memory")
    head = chart.files["Chart.yaml"] + (f"annotations: {{chartgen/target: {target}}}\n" if target else "")
    files = {
        **chart.files,
        "Chart.yaml": head,
        "templates/job.yaml": job,
        "README.md": chart.files["README.md"] + TABLE,
        "FRAGMENTS.md": TABLE,
    }
    assert policy(lint(Chart(chart.name, files))) == sorted(POLICY)


@pytest.mark.helm
def test_defaults_of_a_changed_chart_are_no_reason() -> None:
    """The chart's own values.yaml names the folder, and its own schema would let it pass."""
    chart = compose(load_target("gke-a3mega"))
    default = load_target("gke-a3mega").values["localDisk"]
    assert default in chart.files["values.yaml"]
    values = chart.files["values.yaml"].replace(default, "/var/run")
    files = {path: text for path, text in chart.files.items() if path != "values.schema.json"}
    changed = replace(chart, files={**files, "values.yaml": values})
    assert policy(of(changed, given={"storage": {"scratch": {"from": "disk://"}}})) == [SYSTEM_FOLDERS]


def refused_disks(chart: Chart, values: Values) -> int:
    return sum(each.rule == "values-schema" and "localDisk is" in each.problem.message for each in check(chart, values))


REFUSED = ["/", "//etc", "/mnt/../etc", "/mnt/./x", "/mnt/x/", "/mnt", "/x.sock", "/mnt/stateful_partition", "etc"]
REFUSED += ["/mnt/stateful_partition/var", "/var/lib/kubelet", "/var/run", "/home/kubernetes", "/mnt/a b", "/mnt/a\nb"]
TAKEN = ["/mnt/disk", "/raid", "/etcetera", "/mnt/k8s-disks/0", "/mnt/stateful_partition/kube-ephemeral-ssd", "/data_1"]


@pytest.mark.threat(11)
@pytest.mark.parametrize("path", [*REFUSED, *(f"/{name}" for name in SYSTEM), *(f"/{name}/x" for name in SYSTEM)])
def test_local_disks_are_no_system_folders(path: str) -> None:
    """For check, for Helm alone, and for lint."""
    chart = compose(load_target("gke-a3mega"))
    values = load_values((), set_json=(f"localDisk={json.dumps(path)}",))
    assert refused_disks(chart, values) == 1
    assert is_system(path)


@pytest.mark.parametrize(("path", "absolute"), [("<folder>", False), ("etc", False), ("/etc", True), (r"C:\etc", True)])
def test_a_path_that_is_not_absolute_is_called_so(path: str, absolute: bool) -> None:
    fault = volume_fault({"path": path}, writable=False)
    assert fault
    assert ("not an absolute path" in fault[0]) is not absolute


@pytest.mark.helm
def test_helm_refuses_system_folders_too() -> None:
    chart = compose(load_target("gke-a3mega"))
    with pytest.raises(ChartgenError, match="localDisk"):
        render(chart, "run", "default", {"localDisk": "/etc"})


@pytest.mark.parametrize("path", TAKEN)
def test_local_disks_are_taken(path: str) -> None:
    chart = compose(load_target("gke-a3mega"))
    assert refused_disks(chart, load_values((), set_values=(f"localDisk={path}",))) == 0
    assert not is_system(path)


@pytest.mark.threat(11)
@pytest.mark.parametrize(
    "text",
    [
        *(
            "root",
            "default capabilities",
            "default in program",
            "hostPath",
            "hostPath in program",
            "hostPath /mnt/x",
            "privileged",
            "SYS_ADMIN",
            "hostNetwork in program",
        ),
        *("privileged /x in program", "hostPath / in program", "hostPath /etc in program", "hostPath /dev in program"),
        *("hostPath /run/containerd/containerd.sock in program", "hostPath /sys/fs in program", "hostPath /mnt in a"),
        *("hostPath /dev/../etc in program", "hostPath /proc in program", "hostPath /home in program", "", "a b c"),
    ],
)
def test_fragments_state_no_such_privilege(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_privilege(text)
    folder = tmp_path / "wide"
    folder.mkdir()
    (folder / "fragment.yaml").write_text(f"description: d\nprivileges:\n  {json.dumps(text)}: why\nsources: [s]\n")
    with pytest.raises(ChartgenError) as raised:
        load_fragment(folder)
    assert [each.line for each in raised.value.problems] == [3]


@pytest.mark.threat(11)
@pytest.mark.helm
def test_virtual_functions_need_no_privilege() -> None:
    chart = compose(load_target("oke-h100"))
    findings = of(chart, sets=("network.mode=sriov",))
    assert policy(findings) == []
    pods = objects(render(chart, "run", "default", {"network": {"mode": "sriov"}}))
    assert "privileged: true" not in json.dumps(pods)
    assert "hostPath" not in json.dumps(pods)


def mounted(path: str, *, template: str = "", above: str = "", note: str = "") -> Chart:
    """Return the sound chart of others, which mounts a folder of the machine."""
    chart = Chart.read(SOUND)
    job = chart.files["templates/job.yaml"].replace("the plugin's folder", f"{above}the plugin's folder")
    job = job.replace("ignore[no-host-access]", f"ignore[no-host-access, {SYSTEM_FOLDERS}]")
    job = job.replace("hostPath: {path: /plugin}}", f"hostPath: {{path: {json.dumps(path)}}}}} # {note}")
    more = {"templates/more.yaml": template} if template else {}
    return replace(chart, files={**chart.files, "templates/job.yaml": job, **more})


@pytest.mark.threat(11)
@pytest.mark.helm
@pytest.mark.parametrize("path", ["/", "/etc", "/var/run", "/var/run/docker.sock", "//", "/mnt/..", "/proc", "/root"])
def test_no_comment_excuses_a_folder_of_the_system(path: str) -> None:
    """In a chart of others a comment is the only way to excuse a folder: a pull request could add it."""
    assert policy(lint(mounted(path, note=f"chartgen: ignore[{SYSTEM_FOLDERS}] needed"))) == [SYSTEM_FOLDERS]


@pytest.mark.helm
def test_a_comment_excuses_another_folder() -> None:
    assert policy(lint(mounted("/mnt/plugin"))) == []


VOLUME = """apiVersion: v1
kind: PersistentVolume
# chartgen: ignore[no-system-folders] needed
metadata:
  name: all
  annotations: {ignore-check.kube-linter.io/sensitive-host-mounts: needed}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  hostPath: {path: /}
"""


@pytest.mark.threat(11)
@pytest.mark.helm
def test_a_volume_of_its_own_is_no_way_around() -> None:
    assert policy(lint(mounted("/mnt/plugin", template=VOLUME))) == [SYSTEM_FOLDERS]


@pytest.mark.helm
def test_that_a_rule_cannot_be_ignored_is_told() -> None:
    found = lint(mounted("/mnt/plugin", template=VOLUME))
    told = [(each.problem.path, each.problem.line) for each in found if each.rule == "ignore-has-reason"]
    assert ("templates/more.yaml", 3) in told


@pytest.mark.threat(11)
@pytest.mark.helm
@pytest.mark.parametrize("settings", ['ignore = ["no-system-folders"]', 'select = ["unique-environment"]', "baseline"])
def test_a_repositorys_settings_excuse_no_folder_of_the_system(settings: str, tmp_path: Path, monkeypatch: Any) -> None:
    for path, text in mounted("/").files.items():
        file = tmp_path / "charts" / "x" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    if settings == "baseline":
        assert run(main, ["lint", "--level", "style", "--write-baseline", "known.json"]).exit_code == 0
        settings = 'baseline = "known.json"'
    (tmp_path / "chartgen.toml").write_text(f"[lint]\n{settings}\n")
    told = run(main, ["lint", "--no-cache", "--level", "style"])
    assert told.exit_code in (1, 2)
    assert SYSTEM_FOLDERS in told.output
    assert (
        run(
            main, ["lint", "--no-cache", "--level", "style", "--ignore", SYSTEM_FOLDERS, "--select", "no-host-access"]
        ).exit_code
        != 1
    )


@pytest.mark.threat(20)
@pytest.mark.helm
def test_plain_helm_refuses_the_volumes_that_check_refuses() -> None:
    """In one render, whose refusals name the index of each."""
    text = "/ /dev/sda /home/ubuntu /home/kubernetes/bin/gib/a /dev/nvidia0 /etc "
    text += "/etc/crusoe/nccl_topo /opt/vendor /mnt /mnt/disk /var/run /mnt/a.sock /dev/infiniband /dev/a.sock"
    text += " /mnt/../etc /sys /proc/sys/a /varnish /home /a//b /mnt/stateful_partition"
    text += " /mnt/stateful_partition/kube-ephemeral-ssd/a /mnt/stateful_partition/kube-ephemeral-ssdb"
    places = text.split()
    hosts: list[dict[str, Any]] = [{"path": path, **kind} for path in places for kind in ({}, {"type": "Directory"})]
    volumes: list[dict[str, Any]] = [{"name": f"v{index}", "hostPath": host} for index, host in enumerate(hosts * 2)]
    kept = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    mounts = [{**each, "readOnly": index < len(hosts)} for index, each in enumerate(kept)]
    values: dict[str, Any] = {"extraVolumes": volumes, "extraVolumeMounts": mounts}
    with pytest.raises(ChartgenError) as refused:
        render(compose(load_target("gke-a3mega")), "a", "b", values)
    found = {int(each) for each in re.findall(r"extraVolumes\[(\d+)\]", str(refused.value))}
    faults = [
        volume_fault(each["hostPath"], writable=not mounts[index]["readOnly"]) for index, each in enumerate(volumes)
    ]
    assert found == {index for index, fault in enumerate(faults) if fault}
    assert 0 < len(found) < len(volumes)


# Labels by which controllers find their pods, and annotations that end a confinement or mount a device.
SET_BY_OTHERS = (
    *("run", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart", "pod-template-hash"),
    *("job-name", "controller-uid", "batch.kubernetes.io/job-name", "jobset.sigs.k8s.io/jobset-name"),
    *("kueue.x-k8s.io/queue-name", "training.kubeflow.org/replica-index", "ray.io/cluster", "volcano.sh/task-index"),
    *("kubectl.kubernetes.io/default-container", "devices.gke.io/container.train"),
    *("container.apparmor.security.beta.kubernetes.io/train", "seccomp.security.alpha.kubernetes.io/pod"),
)


@pytest.mark.threat(20)
@pytest.mark.helm
@pytest.mark.parametrize("key", ["podLabels", "podAnnotations"])
def test_plain_helm_refuses_names_that_the_chart_or_a_controller_sets(key: str) -> None:
    chart = compose(load_target("gke-a3mega"))
    for name in SET_BY_OTHERS:
        with pytest.raises(ChartgenError, match=re.escape(name)):
            render(chart, "a", "b", {key: {name: "other"}})
        found = check(chart, load_values(set_json=[json.dumps({key: {name: "a"}})]))
        assert [each.rule for each in found] == ["values-schema"], name
    mine: dict[str, Any] = {
        "team": "a",
        "example.com/run": "b",
        "networking.gke.io/interfaces": "c",
        "my-helm.sh.example/x": "d",
    }
    render(chart, "a", "b", {key: mine})
