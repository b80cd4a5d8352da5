"""Commands that end a run say what is lost with it, and ask for more than a yes; what interrupts them is told too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import manifests
import pytest
from click.testing import Result
from kill_at import run_interrupted
from releases import RELEASE, Site, rolling, run_chart, site_of, small
from userlib import chartgen

from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.kube import CLAIM, JOB, POD, wait_for
from chartgen.rehearsal.controlplane import ControlPlane

pytestmark = pytest.mark.engines
MEMORY = {"emptyDir": {"medium": "Memory"}}


@pytest.fixture(scope="module")
def machines(plane: ControlPlane) -> Iterator[ControlPlane]:
    with rolling(plane) as found:
        yield found


@pytest.fixture
def here(request: pytest.FixtureRequest, machines: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("KUBECONFIG", str(machines.kubeconfig))
    with site_of(request, machines, "loss") as found:
        yield found


@pytest.fixture
def passing(tmp_path: Path) -> Path:
    """A chart whose checkpoints end with its pods."""
    return written(small("job", outputs=MEMORY), tmp_path / "passing")


@pytest.fixture
def staying(tmp_path: Path) -> Path:
    """A chart whose checkpoints stay."""
    return written(small("job"), tmp_path / "staying")


def written(chart: Chart, folder: Path) -> Path:
    chart.write(folder)
    return folder


def call(here: Site, *arguments: str | Path, **options: Any) -> Result:
    return chartgen(*arguments, "--namespace", here.namespace, **options)


def start(here: Site, chart: Path) -> str:
    """Install a release and wait until its pods run; the run's name."""
    made = call(here, "install", chart, RELEASE, "--set", "run.steps=1")
    assert made.exit_code == 0, made.stderr
    here.running()
    (run,) = here.runs()
    return run


def test_upgrade_that_loses_steps(here: Site, passing: Path) -> None:
    first = start(here, passing)
    changed = ("upgrade", passing, RELEASE, "--set", "run.steps=2")
    refused = call(here, *changed, "--yes")
    assert refused.exit_code == 2, refused.stderr
    assert "--lose-progress" in refused.stderr
    assert "resumes" not in refused.stderr
    assert here.runs() == [first]
    made = call(here, *changed, "--yes", "--lose-progress", "--output", "json")
    assert made.exit_code == 0, made.stderr
    facts = json.loads(made.stdout)
    (lost,) = facts["losses"]
    assert lost["run"] == first
    assert lost["gpuHours"] >= 0
    assert (facts["survival"]["saves"], facts["survival"]["checkpoints"]["stays"]) == ("unknown", "no")
    assert here.runs() == [facts["run"]] != [first]


def test_unchanged_upgrade_loses_nothing(here: Site, passing: Path) -> None:
    first = start(here, passing)
    assert call(here, "upgrade", passing, RELEASE, "--set", "run.steps=1", "--yes").exit_code == 0
    assert here.runs() == [first]


def test_name_is_typed_where_somebody_answers(here: Site, passing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = start(here, passing)
    monkeypatch.setattr("chartgen.cli.rollout.can_ask", lambda: True)
    changed = ("upgrade", passing, RELEASE, "--set", "run.steps=2")
    for answer in ("y\n", "yes\n", "\n"):
        assert call(here, *changed, input=answer).exit_code == 1
        assert call(here, *changed, "--yes", input=answer).exit_code == 1, "--yes is not enough"
        assert call(here, "uninstall", RELEASE, input=answer).exit_code == 1
    assert here.runs() == [first]
    made = call(here, *changed, input=f"{RELEASE}\n")
    assert made.exit_code == 0, made.stderr
    assert first not in here.runs()
    here.running()
    assert call(here, "rollback", RELEASE, input="y\n").exit_code == 1
    assert call(here, "rollback", RELEASE, input=f"{RELEASE}\n").exit_code == 0
    here.running()
    gone = call(here, "uninstall", RELEASE, input=f"{RELEASE}\n")
    assert gone.exit_code == 0, gone.stderr
    assert here.runs() == []


def test_diff_and_uninstall_tell_what_is_lost(here: Site, passing: Path) -> None:
    first = start(here, passing)
    shown = json.loads(
        call(here, "diff", RELEASE, "--target", str(passing), "--set", "run.steps=2", "--output", "json").stdout
    )
    assert [lost["run"] for lost in shown["losses"]] == [first]
    assert shown["survival"]["checkpoints"]["stays"] == "no"
    told = call(here, "diff", RELEASE, "--target", str(passing), "--set", "run.steps=2").stdout
    assert first in told.splitlines()[-1]
    assert "resumes" not in told
    refused = call(here, "uninstall", RELEASE)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert here.runs() == [first]
    gone = call(here, "uninstall", RELEASE, "--lose-progress", "--output", "json")
    facts = json.loads(gone.stdout)
    assert [lost["run"] for lost in facts["losses"]] == [first]
    assert facts["kept"] == []


def test_checkpoints_that_stay_ask_for_a_yes_alone(here: Site, staying: Path) -> None:
    start(here, staying)
    made = call(here, "upgrade", staying, RELEASE, "--set", "run.steps=2", "--yes", "--output", "json")
    assert made.exit_code == 0, made.stderr
    assert json.loads(made.stdout)["losses"] == []
    assert "resumes" in made.stderr
    gone = call(here, "uninstall", RELEASE, "--output", "json")
    assert gone.exit_code == 0
    (kept,) = json.loads(gone.stdout)["kept"]
    assert "/outputs/checkpoints" in kept


@pytest.mark.parametrize("saves", [True, False])
def test_run_whose_checkpoints_are_off_keeps_none(here: Site, tmp_path: Path, saves: bool) -> None:
    """What holds its outputs stays in both cases."""
    chart = small("job")
    known = f"launcher: megatron-lm\ncheckpoint: {{enabled: {str(saves).lower()}, interval: 500}}\n"
    values = {"values.yaml": chart.files["values.yaml"] + known}
    folder = written(Chart(chart.name, {**chart.files, **values}), tmp_path / "known")
    start(here, folder)
    changed = call(here, "upgrade", folder, RELEASE, "--set", "run.steps=2", "--yes")
    assert changed.exit_code == (0 if saves else 2), changed.stderr
    assert ("resumes" in changed.stderr) is saves
    gone = call(here, "uninstall", RELEASE, "--lose-progress", "--output", "json")
    assert any("checkpoints" in each for each in json.loads(gone.stdout)["kept"]) is saves


def test_run_that_has_not_started_loses_nothing(here: Site, tmp_path: Path) -> None:
    chart = written(run_chart(manifests.job("x", 2, pool="nowhere"), outputs=MEMORY), tmp_path / "waits")
    assert call(here, "install", chart, RELEASE, "--force").exit_code == 0
    wait_for(lambda: len(here.pods()) == 2 or None, what="that the pods exist", timeout=180)
    gone = call(here, "uninstall", RELEASE)
    assert gone.exit_code == 0, gone.stderr


def test_claim_that_goes_with_the_release_is_not_kept(here: Site, tmp_path: Path) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "own", "labels": {"app.kubernetes.io/instance": RELEASE}},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    outputs = {"persistentVolumeClaim": {"claimName": "own"}}
    chart = written(run_chart(manifests.job("x", 2, pool="roll"), extra=claim, outputs=outputs), tmp_path / "own")
    assert call(here, "install", chart, RELEASE, "--force").exit_code == 0
    gone = json.loads(call(here, "uninstall", RELEASE, "--output", "json").stdout)
    assert gone["kept"] == []
    wait_for(lambda: here.cluster.get(CLAIM, "own", here.namespace) is None, what="that it is gone", timeout=180)


def test_run_that_is_gone_stops_no_pods(here: Site, staying: Path) -> None:
    first = start(here, staying)
    here.cluster.delete(JOB, first, here.namespace, foreground=True)
    wait_for(lambda: here.cluster.get(JOB, first, here.namespace) is None, what="that it is gone", timeout=180)
    made = call(here, "upgrade", staying, RELEASE, "--set", "run.steps=2", "--yes")
    assert made.exit_code == 0, made.stderr
    assert "pods stop" not in made.stderr


def test_release_that_is_or_is_not_there_is_said_before_all_else(here: Site, staying: Path) -> None:
    absent = call(here, "upgrade", staying, RELEASE)
    assert absent.exit_code == 1
    assert [line[:6] for line in absent.stderr.splitlines()] == ["error:"]
    made = call(here, "upgrade", staying, RELEASE, "--install", "--yes")
    assert made.exit_code == 0, made.stderr
    twice = call(here, "install", staying, RELEASE)
    assert twice.exit_code == 1
    assert [line[:6] for line in twice.stderr.splitlines()] == ["error:"]
    assert call(here, "upgrade", staying, RELEASE, "--install", "--yes").exit_code == 0
    assert here.statuses() == ["superseded", "deployed"]


@pytest.mark.parametrize("action", ["install", "upgrade", "uninstall"])
def test_interrupted_at_any_change(here: Site, staying: Path, action: str) -> None:
    """Ctrl-C at every place: what was done is said, and the command that is named brings all in order."""
    assert here.place.kubeconfig
    chart, change = Chart.read(staying), 0
    while True:
        if action != "install":
            here.roll("install", chart, {"run": {"steps": 0}})
        values = {"run": {"steps": 1}}
        place = (here.namespace, here.place.kubeconfig)
        lines = run_interrupted(action, staying, values, *place, change=change, delay=0.3 * (change % 2))
        if not lines:
            break
        last = lines[-1]
        assert last.startswith("interrupted: "), lines
        (named,) = re.findall(r"`chartgen (\w+)`", last)
        assert change > 0 or "nothing was changed" in last, lines
        if named == "uninstall":
            here.uninstall()
        else:
            here.roll(named, chart, values)
            here.running()
            assert here.statuses()[-1] == "deployed"
            here.uninstall()
        wait_for(lambda: here.left() == [] or None, what="that nothing is left", timeout=180)
        change += 1
    assert change > 3


def test_helm_that_fails_after_the_old_run_was_stopped(here: Site, staying: Path) -> None:
    """Only the cluster knows; Helm's words are told, and that no run is left."""
    start(here, staying)
    chart = Chart.read(staying)
    fails = '{{ if lookup "v1" "Namespace" "" "default" }}{{ fail "refused by the test" }}{{ end }}'
    broken = Chart(chart.name, {**chart.files, "templates/z.yaml": fails})
    with pytest.raises(ChartgenError, match="refused by the test") as caught:
        here.roll("upgrade", broken, {"run": {"steps": 2}})
    assert len(caught.value.problems) == 2
    assert here.runs() == []
    here.roll("upgrade", chart, {"run": {"steps": 2}})
    here.running()


def test_pods_are_not_listed_while_their_run_is_still_there(here: Site, staying: Path) -> None:
    """A run of thousands of pods takes a while to end; nobody reads them all again and again meanwhile."""
    start(here, staying)
    asked: list[str] = []
    whole = type(here.cluster).list

    def watched(self: Any, kind: Any, **options: Any) -> Any:
        asked.append(kind.name)
        return whole(self, kind, **options)

    for pod in here.cluster.list(POD, namespace=here.namespace):
        held = {"metadata": {"finalizers": ["test.example.com/hold"]}}
        here.cluster.patch(POD, pod["metadata"]["name"], held, namespace=here.namespace)
    names = [pod["metadata"]["name"] for pod in here.pods()]
    left = iter(range(8))

    def release() -> None:
        if next(left, None) is None:
            for name in names:
                here.cluster.patch(POD, name, {"metadata": {"finalizers": None}}, namespace=here.namespace)
            left_over.clear()

    left_over = set(names)
    get = type(here.cluster).get

    def looked(self: Any, kind: Any, name: str, namespace: str = "") -> Any:
        if kind.name == "Job" and left_over and asked:
            release()
        return get(self, kind, name, namespace)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(here.cluster), "list", watched)
        patch.setattr(type(here.cluster), "get", looked)
        here.uninstall()
    assert asked.count("Pod") <= 4
