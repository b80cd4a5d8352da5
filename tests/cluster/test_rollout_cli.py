"""The commands that change releases, as people and scripts call them, on the real control plane."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import manifests
import pytest
from answers import answer
from click.testing import Result
from facts import has
from ociregistry import registry
from releases import RELEASE, Site, rolling, run_chart, site_of, small
from userlib import chartgen, write

from chartgen.kube import CLAIM
from chartgen.rehearsal.controlplane import ControlPlane
from chartgen.releases.history import read_records

pytestmark = pytest.mark.engines
VALUES = Path(__file__).parents[2] / "values"
GPT = tuple(
    word
    for name in ("gpt3-5b.yaml", "gke-a3mega/gpt3-5b.yaml", "site.gke-a3mega.example.yaml")
    for word in ("-f", VALUES / name)
)


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    with rolling(plane) as found:
        yield found


@pytest.fixture
def here(request: pytest.FixtureRequest, machines: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("KUBECONFIG", str(machines.kubeconfig))
    with site_of(request, machines, "cli") as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small().write(tmp_path / "tiny")
    return tmp_path / "tiny"


def call(here: Site, *arguments: str | Path) -> Result:
    return chartgen(*arguments, "--namespace", here.namespace)


def test_an_upgrade_of_a_release_alone_keeps_its_target_kind_and_values(here: Site, folder: Path) -> None:
    sets = ("--workload", "job", "--set", "nodes=1,queue.name=,topology.mode=,steps=10", "--force")
    made = call(here, "install", "gke-a3mega", RELEASE, *GPT, *sets)
    assert made.exit_code == 0, made.stderr
    done = call(here, "upgrade", RELEASE, "--set", "steps=20", "--force", "--yes", "--lose-progress")
    assert done.exit_code == 0, done.stderr
    assert "> my-run is a release of gke-a3mega; its values stay where no other is given\n" in done.stderr
    first, last = read_records(here.cluster, RELEASE, here.namespace)
    assert last.values == {**first.values, "steps": 20}
    assert [run["kind"] for run in last.run_objects] == [run["kind"] for run in first.run_objects]
    for name, problem in {"nothing": "release nothing does not exist; write TARGET RELEASE; "}.items():
        found = call(here, "upgrade", name, "--set", "steps=3")
        assert (found.exit_code, problem in found.stderr) == (2, True), found.stderr
    assert call(here, "install", folder, "tiny").exit_code == 0
    found = call(here, "upgrade", "tiny", "--set", "run.steps=3")
    assert (found.exit_code, "release tiny is of chart tiny, which has no runs of chartgen" in found.stderr) == (
        2,
        True,
    )


def test_life_of_a_release(here: Site, folder: Path) -> None:
    tried = call(here, "install", folder, RELEASE, "--dry-run", "--output", "json")
    assert (tried.exit_code, json.loads(tried.stdout)["action"]) == (0, "install")
    assert here.runs() == []
    made = call(
        here, "install", folder, RELEASE, "--set", "run.steps=1", "--wait-for", "running", "--description", "one"
    )
    assert made.exit_code == 0, made.stderr
    assert made.stdout == has(f"my-run deployed revision 1 tiny-0.1.0 {here.namespace}")
    assert "> running" in made.stderr
    (first,) = here.runs()

    again = call(here, "install", folder, RELEASE)
    assert (again.exit_code, again.stdout) == (1, "")
    assert again.stderr.endswith(
        "error: release my-run already exists; use `chartgen upgrade`, or `chartgen uninstall my-run` first\n"
    )

    tried = call(here, "upgrade", folder, RELEASE, "--set", "run.steps=2", "--dry-run")
    assert tried.exit_code == 0
    assert f"~ JobSet {first} -> " in tried.stderr
    assert here.runs() == [first]

    asked = call(here, "upgrade", folder, RELEASE, "--set", "run.steps=2")
    assert asked.exit_code == 2
    assert asked.stderr.endswith(
        "error: upgrade asks before it changes a release, but stdin is not a terminal; pass --yes\n"
    )
    assert here.runs() == [first]

    shown = call(here, "upgrade", folder, RELEASE, "--set", "run.steps=2", "--yes")
    (second,) = here.runs()
    assert shown.exit_code == 0, shown.stderr
    assert f"~ JobSet {first} -> {second} (replaced)" in shown.stderr
    assert (
        f"Effect: JobSet {first} is replaced by {second}: 2 pods stop; training resumes from the newest checkpoint in "
        "/outputs/checkpoints"
    ) in shown.stderr

    rows = answer(call(here, "history", RELEASE, "--output", "json").stdout)["revisions"]
    assert [(row["revision"], row["status"], row["run"], row["description"]) for row in rows] == [
        (1, "superseded", first, "one"),
        (2, "deployed", second, "Upgrade complete"),
    ]
    table = call(here, "history", RELEASE).stdout.splitlines()
    assert table[0].split() == ["revision", "updated", "status", "chart", "run", "description"]
    assert table[1].endswith(f"superseded  tiny-0.1.0  {first}  one")

    back = call(here, "rollback", RELEASE, "--yes", "--output", "json")
    facts = json.loads(back.stdout)
    assert (facts["release"]["revision"], facts["run"]) == (3, first)
    assert here.records()[-1].description == "Rollback to 1"
    nowhere = call(here, "rollback", RELEASE, "7", "--yes")
    assert nowhere.stderr == has("error my-run revision 7 Helm 1 2 3")

    gone = call(here, "uninstall", RELEASE)
    assert gone.stdout == (
        f"my-run: uninstalled, tiny-0.1.0 in {here.namespace}\n"
        "  kept: checkpoints in /outputs/checkpoints on nfs 192.0.2.1:/\n"
        "  note: chartgen does not know this chart, nor whether it saves checkpoints\n"
    )
    absent = call(here, "uninstall", RELEASE)
    assert (absent.exit_code, absent.stdout) == (1, "")
    for command in ("history", "diff", "rollback"):
        asked = call(here, command, RELEASE)
        assert asked.exit_code == 1
        assert asked.stderr.startswith(f"error: no release my-run in namespace {here.namespace}")


def test_question_on_a_terminal(here: Site, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call(here, "install", folder, RELEASE, "--set", "run.steps=1")
    (first,) = here.runs()
    monkeypatch.setattr("chartgen.cli.rollout.can_ask", lambda: True)
    said_no = call(here, "upgrade", folder, RELEASE, "--set", "run.steps=2")
    assert "Upgrade my-run? [y/N]" in said_no.stderr
    assert said_no.exit_code == 1
    assert here.runs() == [first]
    unchanged = call(here, "upgrade", folder, RELEASE, "--set", "run.steps=1")
    assert unchanged.exit_code == 0, "nothing changes, so that nothing is asked"


def test_uninstall_keeps_data_and_says_so(here: Site, tmp_path: Path) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": "data",
            "annotations": {"helm.sh/resource-policy": "keep"},
            "labels": {"app.kubernetes.io/instance": RELEASE},
        },
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    run_chart(manifests.jobset("x", 2, pool="roll"), extra=claim).write(tmp_path / "tiny")
    assert call(here, "install", tmp_path / "tiny", RELEASE).exit_code == 0
    gone = json.loads(call(here, "uninstall", RELEASE, "--output", "json").stdout)
    assert gone["kept"] == ["claim data", has("checkpoints /outputs/checkpoints 192.0.2.1:/")]
    assert here.cluster.get(CLAIM, "data", here.namespace)


def test_preflight_stops_what_cannot_run_and_force_tries(here: Site, tmp_path: Path) -> None:
    run_chart(manifests.jobset("x", 2, pool="roll", queue="nosuch")).write(tmp_path / "tiny")
    stopped = call(here, "install", tmp_path / "tiny", RELEASE)
    assert stopped.exit_code == 1
    assert stopped.stderr.endswith(
        "error: the cluster is not ready for this release: queue; see above; --force tries\n"
    )
    assert here.left() == []
    forced = call(here, "install", tmp_path / "tiny", RELEASE, "--force")
    assert forced.exit_code == 0, forced.stderr
    assert "> preflight of the cluster skipped (--force)\n" in forced.stderr


def test_diff_of_a_release(here: Site) -> None:
    """The same values on another target, other values on the same, and an earlier revision."""
    made = call(here, "install", "gke-a3mega", RELEASE, *GPT, "--force")
    assert made.exit_code == 0, made.stderr
    same = call(here, "diff", RELEASE, *GPT)
    (run,) = here.runs()
    assert same.stdout == has(f"JobSet {run} continues unchanged"), same.stderr
    other = call(here, "diff", RELEASE, *GPT, "--set", "steps=77")
    assert '      + "++trainer.max_steps=77"\n' in other.stdout
    assert here.runs() == [run]
    own = json.loads(call(here, "diff", RELEASE, "--output", "json").stdout)
    assert (own["effect"], own["changes"]) == (has(f"JobSet {run} continues unchanged"), [])
    assert (own["survival"]["saves"], own["survival"]["checkpoints"]["stays"], own["losses"]) == ("yes", "yes", [])
    high = ("gpt3-5b.yaml", "gke-a3high/gpt3-5b.yaml", "site.gke-a3high.example.yaml")
    files = [word for name in high for word in ("-f", VALUES / name)]
    moved = call(here, "diff", RELEASE, "--target", "gke-a3high", *files)
    assert moved.exit_code == 0, moved.stderr
    assert f"~ JobSet {run} -> Job my-run-gke-a3high-" in moved.stdout
    assert "training starts from the beginning in /outputs" in moved.stdout
    wrong = call(here, "diff", RELEASE, "--target", "gke-a3hgh")
    assert wrong.exit_code == 2
    assert "did you mean" in wrong.stderr
    late = call(here, "diff", RELEASE, "--revision", "4")
    assert late.stderr == has("error my-run revision 4 Helm 1")


def test_a_release_keeps_the_interval_and_the_spare_that_were_chosen_for_it(here: Site, machines: ControlPlane) -> None:
    image = "launchers.megatron-lm.image=nvcr.io/nvidia/nemo:26.06"  # and what its CUDA needs
    image += ",network.pluginVersion=v1.0.17,network.daemonVersion=v1.0.23"
    left_out = ("--set", f"nodes=16,launcher=megatron-lm,checkpoint.enabled=true,steps=100000,{image}")
    made = call(here, "install", "gke-a3mega", RELEASE, *GPT[4:], *left_out, "--force")
    assert made.exit_code == 0, made.stderr
    assert "> checkpoint.interval: left out -> " in made.stderr
    stored = read_records(machines.cluster, RELEASE, here.namespace)[-1].values
    chosen = stored["checkpoint"]["interval"]
    assert chosen != 1000
    assert stored["run"]["spares"] == 1
    (run,) = here.runs()
    assert call(here, "diff", RELEASE, *GPT[4:], *left_out).stdout == has(f"JobSet {run} continues unchanged")
    same = call(here, "upgrade", "gke-a3mega", RELEASE, *GPT[4:], *left_out, "--force", "--yes")
    assert (same.exit_code, here.runs()) == (0, [run]), same.stderr
    assert f"> checkpoint.interval: left out -> {chosen}; run.spares: left out -> 1\n" in same.stderr


def test_an_upgrade_keeps_the_code_of_the_release(here: Site, tmp_path: Path) -> None:
    write(tmp_path / "code", {"train.py": "print()\n"})
    site = ("-f", VALUES / "site.gke-a3ultra.example.yaml")
    made = call(here, "install", "gke-a3ultra", RELEASE, *site, "--code", tmp_path / "code", "--force")
    assert made.exit_code == 0, made.stderr
    same = call(here, "upgrade", "gke-a3ultra", RELEASE, *site, "--dry-run", "--force")
    assert same.exit_code == 0, same.stderr
    assert "code.py" in same.stderr
    (run,) = here.runs()
    assert f"JobSet {run} continues unchanged" in same.stderr


def test_packaged_chart_of_a_registry_is_installed(here: Site, tmp_path: Path) -> None:
    """By plain Helm, and by chartgen, whose release upgrades that of Helm."""
    chart = VALUES.parent / "charts" / "onprem-p8000"
    assert here.plain("package", str(chart), "--destination", str(tmp_path)) == ""
    with registry(tmp_path) as address:
        assert here.plain("push", str(*tmp_path.glob("*.tgz")), f"oci://{address}/charts", "--plain-http") == ""
        name = f"oci://{address}/charts/{chart.name}"
        sets = ("--set", "nodes=1,queue.name=")
        assert here.plain("install", RELEASE, name, "--version", "0.1.0", "--plain-http", *sets) == ""
        (first,) = here.runs()
        made = call(
            here, "upgrade", f"{name}:0.1.0", RELEASE, *sets, "--set", "steps=7", "--force", "--yes", "--lose-progress"
        )
    assert made.exit_code == 0, made.stderr
    assert first not in here.runs()
    assert [record.status for record in here.records()] == ["superseded", "deployed"]


def test_two_releases_of_one_chart_do_not_meet(here: Site) -> None:
    """Names, ports of the host network, sub-domains: two releases of one chart live side by side in a namespace."""
    for release in ("one", "two"):
        made = call(here, "install", "gke-a3mega", release, *GPT, "--force", "--output", "json")
        assert made.exit_code == 0, made.stderr
    names = [item for item in here.left() if not item.startswith(("Pod", "Job "))]
    assert len(set(names)) == len(names) == 4
    assert call(here, "uninstall", "one").exit_code == 0
    assert len([item for item in here.left() if not item.startswith(("Pod", "Job "))]) == 2
    assert call(here, "uninstall", "two").exit_code == 0


def test_namespace_of_the_context_is_the_default(here: Site, folder: Path, tmp_path: Path) -> None:
    assert here.place.kubeconfig
    found = json.loads(here.place.kubeconfig.read_text())
    found["contexts"][0]["context"]["namespace"] = here.namespace
    config = tmp_path / "config"
    config.write_text(json.dumps(found))
    made = chartgen("install", folder, RELEASE, env={"KUBECONFIG": str(config)})
    assert made.stdout == has(f"my-run deployed revision 1 tiny-0.1.0 {here.namespace}"), made.stderr
    gone = chartgen("uninstall", RELEASE, env={"KUBECONFIG": str(config)})
    assert gone.exit_code == 0
