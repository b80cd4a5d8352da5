"""A company's policy, one file, holds in every pod and object of all targets and kinds; plain Helm obeys it too."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from answers import findings
from rendered import NAMESPACE, RELEASE, Objects, fit_schema, one
from userlib import chartgen, write

from chartgen.composer.assembly import compose, compose_setup
from chartgen.composer.library import open_library
from chartgen.composer.policies import begins, load_policies, mirrored, wanted
from chartgen.composer.target import load_target, with_fragments
from chartgen.errors import ChartgenError
from chartgen.helm.chart import Chart
from chartgen.helm.manifests import objects, render
from chartgen.helm.values import load_values
from chartgen.kube.manifest_walk import all_containers, maps, pods

pytestmark = pytest.mark.helm

ACME = """\
description: What Acme wants of every training run
labels:
  acme.example/team: ml
  acme.example/cost-centre: "{{ .Values.acme.costCentre }}"
annotations: {acme.example/owner: ml-platform}
variables: {HTTPS_PROXY: "http://proxy.acme.example:3128", NO_PROXY: ".svc,10.0.0.0/8"}
images:
  nvcr.io: mirror.acme.example/nvcr
  us-docker.pkg.dev: mirror.acme.example/gcp
  docker.io: mirror.acme.example/hub
  registry.k8s.io: mirror.acme.example/k8s
registries: [mirror.acme.example]
pod:
  spec:
    priorityClassName: training
    initContainers:
      - name: audit
        image: mirror.acme.example/audit:1.4
        restartPolicy: Always
        resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 64Mi}}
        securityContext: {runAsNonRoot: true, runAsUser: 65532}
    affinity:
      nodeAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
            - matchExpressions:
                - {key: acme.example/retired, operator: DoesNotExist}
limits: {machines: 64, hours: 72}
values:
  acme.costCentre:
    {type: string, pattern: "^([0-9]{6})?$", title: six digits, description: Who pays for the run, default: ""}
required: [acme.costCentre]
"""
VALUES = Path(__file__).parents[2] / "values"
PAID = ("run.deadlineSeconds=7200",)
RAY = "launchers.nemo-rl.model=/data/llama"
DATA = ("launcher=download", "data.source=https://example.com/a", "data.directory=/data/a")
# A target and kind, and what its runs need.
USUAL = [
    ("gke-a3mega", "jobset", ()),
    ("gke-a3mega", "trainjob", ()),
    ("gke-a3mega", "jobset", DATA),
    ("eks-p5", "pytorchjob", ("rendezvous.backend=etcd",)),
    ("eks-p5", "mpijob", ()),
    ("eks-p5", "rayjob", (RAY,)),
    ("oke-h100", "volcano-job", ("network.mode=sriov",)),
    ("onprem-p8000", "job", ("network.interface=infiniband",)),
]
# The other pods of a run, as `appliesTo` of a fragment lists them.
WITHOUT_PROGRAM = {"mpimaster", "head", "submitter", "etcd"}
OTHERS = [
    *("aks-nd", "coreweave", "crusoe", "eks-p6e-gb200", "gke-a3high", "gke-a3ultra", "gke-a4", "gke-a4x", "nebius"),
]


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """A folder with the policy."""
    write(tmp_path, {"policies/acme.yaml": ACME})
    return tmp_path


def objects_of(chart: Chart | None, *sets: str, site: str = "") -> Objects:
    """The objects of a chart whose run is paid for."""
    assert chart is not None
    files = [VALUES / f"site.{site}.example.yaml"] if site else []
    values = load_values(files, set_values=[*PAID, *sets], set_strings=["acme.costCentre=471100"])
    fit_schema(chart, values)
    return objects(render(chart, RELEASE, NAMESPACE, values.data))


def assert_obedient(found: Objects) -> None:
    """Each object has the labels and annotations, each pod all parts, and each image comes from the mirror."""
    assert found
    for thing in found:
        templates = [node for _, node in maps(thing) if "containers" in (node.get("spec") or ())]
        for each in (thing, *templates):
            labels, annotations = each["metadata"]["labels"], each["metadata"]["annotations"]
            assert (labels["acme.example/team"], labels["acme.example/cost-centre"]) == ("ml", "471100"), thing["kind"]
            assert annotations["acme.example/owner"] == "ml-platform", thing["kind"]
        assert len(templates) == len(list(pods(thing)))
        for pod in pods(thing):
            assert pod.spec["priorityClassName"] == "training"
            assert [each["name"] for each in pod.spec["initContainers"]].count("audit") == 1
            required = pod.spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            for term in required["nodeSelectorTerms"]:
                assert {"key": "acme.example/retired", "operator": "DoesNotExist"} in term["matchExpressions"]
        for container in all_containers(thing):
            env = {each["name"]: each.get("value") for each in container.spec["env"]}
            assert env["HTTPS_PROXY"] == "http://proxy.acme.example:3128", container.name
            assert len(env) == len(container.spec["env"])
            assert container.spec["image"].startswith("mirror.acme.example/"), container.name


def test_the_example_is_one_short_file() -> None:
    assert len(ACME.splitlines()) <= 40


@pytest.mark.parametrize(("name", "kind", "sets"), USUAL)
def test_a_policy_holds_in_every_pod_and_object(acme: Path, name: str, kind: str, sets: tuple[str, ...]) -> None:
    chart = compose(load_target(name, open_library([acme])), kind)
    assert_obedient(objects_of(chart, "nodes=2", *sets))


@pytest.mark.parametrize(("name", "kind", "sets"), USUAL)
def test_a_fragment_is_in_every_pod_that_runs_a_program(
    tmp_path: Path, name: str, kind: str, sets: tuple[str, ...]
) -> None:
    parts = {
        "fragment.yaml": "description: d\nsources: [us]\n",
        "podSpec.yaml": "priorityClassName: mine\n",
        "initContainers.yaml": "- name: mine\n  image: a\n",
        "env.yaml": "- name: MINE\n  value: a\n",
    }
    write(tmp_path, {f"fragments/mine/{file}": text for file, text in parts.items()})
    target = with_fragments(load_target(name, open_library([tmp_path])), ["mine"])
    values = load_values((), set_values=["nodes=2", *sets])
    rendered = objects(render(compose(target, kind), RELEASE, NAMESPACE, values.data))
    kinds = set()
    for pod in (pod for thing in rendered for pod in pods(thing)):
        (first, *_) = pod.spec["containers"]
        if first["name"] not in WITHOUT_PROGRAM:
            assert pod.spec["priorityClassName"] == "mine"
            assert "mine" in [each["name"] for each in pod.spec["initContainers"]]
            assert {"name": "MINE", "value": "a"} in first["env"]
        kinds.add(first["name"])
    assert kinds - WITHOUT_PROGRAM


@pytest.mark.full
@pytest.mark.parametrize("name", OTHERS)
def test_a_policy_holds_on_the_other_targets(acme: Path, name: str) -> None:
    target = load_target(name, open_library([acme]))
    for kind in (target.workload, "job"):
        assert_obedient(objects_of(compose(target, kind), "launchers.megatron-lm.image=nvcr.io/a:1", site=name))
        assert_obedient(objects_of(compose(target, kind), *DATA, site=name))
    assert_obedient(objects_of(compose_setup(target), site=name))


@pytest.mark.parametrize("name", ["gke-a3mega", "oke-h100"])
def test_a_policy_holds_in_what_is_installed_once(acme: Path, name: str) -> None:
    assert_obedient(objects_of(compose_setup(load_target(name, open_library([acme]))), site=name))


def test_check_names_the_policy_that_refused(acme: Path) -> None:
    ran = chartgen("check", "gke-a3mega", "--path", acme, "--set", "nodes=65", "--output", "json")
    found = [each for each in findings(ran.stdout) if each["rule"] == "policy-acme"]
    assert {each["message"].partition(":")[0] for each in found} == {"nodes", "run.deadlineSeconds", "acme.costCentre"}
    assert all("[policy acme]" in each["message"] for each in found)


def test_plain_helm_refuses_what_the_policy_does(acme: Path) -> None:
    chart = compose(load_target("gke-a3mega", open_library([acme])))
    with pytest.raises(ChartgenError, match=r"nodes: 65 is more than 64 machines \[policy acme\]"):
        objects_of(chart, "nodes=65")


def test_spares_count_as_machines_in_check_and_helm(acme: Path) -> None:
    spares = ("nodes=60", "run.spares=5")
    ran = chartgen("check", "gke-a3mega", "--path", acme, "--set", ",".join(spares), "--output", "json")
    found = [each["message"] for each in findings(ran.stdout) if each["rule"] == "policy-acme"]
    assert [each for each in found if each.startswith("nodes: 65 is more than 64 machines")]
    chart = compose(load_target("gke-a3mega", open_library([acme])))
    with pytest.raises(ChartgenError, match=r"nodes: 65 is more than 64 machines.* \[policy acme\]"):
        objects_of(chart, *spares)
    assert objects_of(chart, "nodes=60", "run.spares=4")


@pytest.mark.parametrize(("name", "kind", "sets"), [each for each in USUAL if each[1] != "job" and each[2] != DATA])
def test_hours_of_a_run_are_those_of_all_its_starts(acme: Path, name: str, kind: str, sets: tuple[str, ...]) -> None:
    """The controllers of most kinds count a deadline again at each start: 72 hours were years."""
    chart = compose(load_target(name, open_library([acme])), kind)
    once = kind in ("mpijob", "pytorchjob")
    assert objects_of(chart, *sets, "run.deadlineSeconds=86400", "run.maxRestarts=2")
    more = (
        ("run.deadlineSeconds=86401", "run.maxRestarts=2"),
        ("checkpoint.enabled=true", "storage.outputs.from=pvc://team", "run.deadlineSeconds=3600"),
    )
    for restarts in more:
        with nullcontext() if once else pytest.raises(ChartgenError, match=r"run.deadlineSeconds: .* \[policy acme\]"):
            assert objects_of(chart, *sets, *restarts)


def test_pods_of_a_data_program_count_as_machines_in_check_and_helm(acme: Path) -> None:
    pile = ("launcher=pile-dataprep", "launchers.pile-dataprep.nodes=65")
    ran = chartgen("check", "gke-a3mega", "--path", acme, "--set", ",".join(pile), "--output", "json")
    assert [each for each in findings(ran.stdout) if each["message"].startswith("nodes: 65 is more than 64 machines")]
    chart = compose(load_target("gke-a3mega", open_library([acme])))
    with pytest.raises(ChartgenError, match=r"nodes: 65 is more than 64 machines.* \[policy acme\]"):
        objects_of(chart, *pile)


def test_an_image_of_another_registry_is_refused_by_check_and_helm(acme: Path) -> None:
    image = ("launcher=nemo-1", "launchers.nemo-1.image=ghcr.io/acme/nemo:1")
    more = [f"extra{kind}[0].name=a,extra{kind}[0].image" for kind in ("InitContainers", "Containers", "Volumes")]
    sets = ",".join(
        (*image, f"{more[0]}=docker.io/a:1", f"{more[1]}=a.io/a:1", f"{more[2]}.reference=mirror.acme.example:5000/b:1")
    )
    ran = chartgen("check", "gke-a3mega", "--path", acme, "--set", sets, "--output", "json")
    found = [each for each in findings(ran.stdout) if each["rule"] == "allowed-registries"]
    places = {"launchers.nemo-1.image", "extraContainers[0].image", "extraVolumes[0].image.reference"}
    assert {each["message"].partition(": ")[0] for each in found} == places
    with pytest.raises(ChartgenError, match=r"image ghcr\.io/acme/nemo:1 is of no registry"):
        objects_of(compose(load_target("gke-a3mega", open_library([acme]))), *image)
    port = "launchers.nemo-1.image=mirror.acme.example:5000/nemo:1"
    with pytest.raises(ChartgenError, match=r"image mirror\.acme\.example:5000/nemo:1 is of no registry"):
        objects_of(compose(load_target("gke-a3mega", open_library([acme]))), image[0], port)


@pytest.mark.parametrize("image", ["acme/nemo:1", "mirror.acme.example:1", "nemo:1"])
def test_a_registry_is_that_of_an_images_whole_name(tmp_path: Path, image: str) -> None:
    registries = "[us-docker.pkg.dev, docker.io/acme, mirror.acme.example]"
    write(tmp_path, {"policies/acme.yaml": f"description: d\nregistries: {registries}\n"})
    chart = compose(load_target("gke-a3mega", open_library([tmp_path])))
    sets = f"launcher=nemo-1,launchers.nemo-1.image={image}"
    ran = chartgen("check", "gke-a3mega", "--path", tmp_path, "--set", sets, "--output", "json")
    is_refused = any(each["rule"] == "allowed-registries" for each in findings(ran.stdout))
    assert is_refused == (image != "acme/nemo:1")
    with pytest.raises(ChartgenError, match="of no registry") if is_refused else nullcontext():
        objects(render(chart, RELEASE, NAMESPACE, load_values(set_values=[sets]).data))


@pytest.mark.parametrize(("name", "kind", "sets"), USUAL)
def test_an_image_of_a_volume_is_replaced_or_refused(acme: Path, name: str, kind: str, sets: tuple[str, ...]) -> None:
    chart = compose(load_target(name, open_library([acme])), kind)
    volume = ("extraVolumes[0].name=tools", "extraVolumes[0].image.reference")
    mount = ("extraVolumeMounts[0].name=tools", "extraVolumeMounts[0].mountPath=/opt/tools")
    found = objects_of(chart, "nodes=2", volume[0], f"{volume[1]}=acme/tools:1", *mount, *sets)
    volumes = [each for thing in found for pod in pods(thing) for each in pod.spec.get("volumes", ())]
    images = {each["image"]["reference"] for each in volumes if "image" in each}
    assert images == {"mirror.acme.example/hub/acme/tools:1"}
    with pytest.raises(ChartgenError, match=r"image evil\.example/x:1 is of no registry"):
        objects_of(chart, "nodes=2", volume[0], f"{volume[1]}=evil.example/x:1", *mount, *sets)


def test_an_image_of_a_fragments_volume_is_refused(acme: Path) -> None:
    pod = "spec:\n  volumes:\n    - name: tools\n      image: {reference: evil.example/x:1}\n"
    write(acme, {"fragments/mine/fragment.yaml": "description: d\nsources: [us]\n", "fragments/mine/pod.yaml": pod})
    target = with_fragments(load_target("gke-a3mega", open_library([acme])), ["mine"])
    with pytest.raises(ChartgenError, match=r"image evil\.example/x:1 is of no registry"):
        objects_of(compose(target))


EMPTY = """\
description: d
labels: {acme.example/label: ""}
annotations: {acme.example/note: "{{ .Values.acme.note }}"}
values: {acme.note: {type: string, description: d, default: ""}}
pod:
  metadata: {labels: {acme.example/pod: ""}, annotations: {acme.example/pod: ""}}
  spec: {nodeSelector: {acme.example/training: ""}, securityContext: {supplementalGroups: [], fsGroup: 0}}
container: {securityContext: {capabilities: {drop: []}, runAsUser: 0, readOnlyRootFilesystem: false}}
variables: {EMPTY: ""}
"""


@pytest.mark.parametrize(("name", "kind", "sets"), USUAL)
def test_an_empty_text_of_a_policy_is_the_policys_too(
    tmp_path: Path, name: str, kind: str, sets: tuple[str, ...]
) -> None:
    write(tmp_path, {"policies/acme.yaml": EMPTY})
    container = {"runAsUser": 7, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    own = {
        "podLabels": {"acme.example/label": "mine", "acme.example/pod": "mine", "mine": "mine"},
        "podAnnotations": {"acme.example/note": "mine", "acme.example/pod": "mine", "mine": "mine"},
        "nodeSelector": {"acme.example/training": "mine", "mine": "mine"},
        "extraContainers": [{"name": "mine", "image": "a:1", "securityContext": container}],
        "env": {"EMPTY": "mine"},
    }
    write(tmp_path, {"site.yaml": json.dumps(own)})
    chart = compose(load_target(name, open_library([tmp_path])), kind)
    values = load_values([tmp_path / "site.yaml"], set_values=["nodes=2", *sets])
    found = [pod for thing in objects(render(chart, RELEASE, NAMESPACE, values.data)) for pod in maps(thing)]
    templates = [node for _, node in found if "containers" in (node.get("spec") or ())]
    assert any("mine" in pod["metadata"]["labels"] for pod in templates)
    for pod in templates:
        marks, spec = pod["metadata"], pod["spec"]
        assert (marks["labels"]["acme.example/label"], marks["labels"]["acme.example/pod"]) == ("", "")
        assert (marks["annotations"]["acme.example/note"], marks["annotations"]["acme.example/pod"]) == ("", "")
        assert spec["nodeSelector"]["acme.example/training"] == ""
        assert (spec["securityContext"]["supplementalGroups"], spec["securityContext"]["fsGroup"]) == ([], 0)
        for each in [*spec.get("initContainers", ()), *spec["containers"]]:
            context = each["securityContext"]
            assert (context["capabilities"]["drop"], context["runAsUser"]) == ([], 0)
            assert context["readOnlyRootFilesystem"] is False
            assert [row["value"] for row in each["env"] if row["name"] == "EMPTY"] == [""]


def test_a_mirror_replaces_whole_names_the_longest_first() -> None:
    mirrors = {"nvcr.io": "m/nv", "nvcr.io/nvidia/nemo": "m/nemo", "docker.io": "m/hub"}
    wanted = {
        "nvcr.io/nvidia/pytorch:1": "m/nv/nvidia/pytorch:1",
        "nvcr.io/nvidia/nemo:25.07": "m/nemo:25.07",
        "nvcr.io/nvidia/nemo-rl:1": "m/nv/nvidia/nemo-rl:1",
        "nvcr.io.evil.example/x": "nvcr.io.evil.example/x",
        "busybox": "m/hub/library/busybox",
        "org/tool@sha256:0": "m/hub/org/tool@sha256:0",
        "localhost:5000/x": "localhost:5000/x",
    }
    assert {image: mirrored(image, tuple(mirrors.items())) for image in wanted} == wanted
    assert not begins("mirror.acme.example.evil/x", "mirror.acme.example")


def test_two_policies_that_want_one_thing_differently_are_named(acme: Path) -> None:
    write(acme, {"policies/other.yaml": "description: d\nlabels: {acme.example/team: web}\n"})
    with pytest.raises(ChartgenError) as caught:
        load_target("gke-a3mega", open_library([acme]))
    (problem,) = caught.value.problems
    assert (str(problem.path), problem.line) == (str(acme / "policies/other.yaml"), 2)
    assert str(acme / "policies/acme.yaml") in problem.message


@pytest.mark.parametrize("label", ["app.kubernetes.io/name", "run", "kueue.x-k8s.io/queue-name", "kubernetes.io/os"])
def test_a_policy_sets_no_label_that_selects_pods(tmp_path: Path, label: str) -> None:
    write(tmp_path, {"policies/acme.yaml": f"description: d\nlabels: {{{label}: x}}\n"})
    with pytest.raises(ChartgenError) as caught:
        load_target("gke-a3mega", open_library([tmp_path]))
    assert [problem.line for problem in caught.value.problems] == [2]


def test_a_changed_policy_is_a_changed_run(acme: Path) -> None:
    def name_of_run() -> Any:
        return one("JobSet", objects_of(compose(load_target("gke-a3mega", open_library([acme])))))["metadata"]["name"]

    before = name_of_run()
    write(acme, {"policies/acme.yaml": ACME.replace("audit:1.4", "audit:1.5")})
    assert name_of_run() != before


def test_settings_beside_the_charts_name_the_folder(acme: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(acme, {"chartgen.yaml": "path: [.]\n"})
    monkeypatch.chdir(acme)
    assert [policy.name for policy in load_target("gke-a3mega").policies] == ["acme"]


def test_a_chart_with_a_policy_that_is_not_known_here_was_not_checked_by_it(acme: Path) -> None:
    compose(load_target("gke-a3mega", open_library([acme]))).write(acme / "chart")
    ran = chartgen("check", acme / "chart", "--output", "json")
    assert [each["rule"] for each in findings(ran.stdout) if each["severity"] == "unchecked"] == ["target-is-known"]
    assert ran.exit_code == 3


def test_a_chart_without_a_policy_of_its_reader_is_stale(acme: Path) -> None:
    compose(load_target("gke-a3mega")).write(acme / "chart")
    ran = chartgen("check", acme / "chart", "--path", acme, "--output", "json")
    assert [each["rule"] for each in findings(ran.stdout)] == ["chart-is-of-chartgen"]


def test_a_policy_needs_no_values_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, {"policies/acme.yaml": "description: d\nlimits: {machines: 1}\n"})
    ran = chartgen("check", "gke-a3mega", "--set", "nodes=2", "--path", tmp_path, "--output", "json")
    assert "policy-acme" in {each["rule"] for each in findings(ran.stdout)}


def test_an_expression_of_a_policy_without_an_end_is_refused(tmp_path: Path) -> None:
    text = 'description: d\nlabels: {a: "{{ .Values.x"}\npod: {spec: {priorityClassName: "{{ .Values.x }} {{"}}\n'
    write(tmp_path, {"policies/acme.yaml": text})
    with pytest.raises(ChartgenError) as caught:
        load_target("gke-a3mega", open_library([tmp_path]))
    assert [problem.line for problem in caught.value.problems] == [2, 3]


MISTAKES = """\
description: d
variables: {A: {secretKeyRf: {name: a, key: b}}, B: {secretKeyRef: {name: a, key: "{{ .Values.launcher }}"}}}
labels: {acme.example/fine: "{{ .Values.launcher }} of"}
annotations: {"{{ .Values.launcher }}": a}
values:
  acme.team: {type: strng, description: d, default: ""}
pod:
  spec:
    nope: 1
    resourceClaims: []
    priorityClassName: "{{ .Values.launcher }}"
    initContainers: [{name: a, image: b, comand: []}]
  metadata:
    labels: {a b: c}
container:
  securityContext: {runAsNobody: true}
"""
EARLIER = """\
description: d
pods:
  podSpec: {nope: 1, priorityClassName: training}
  podLabels: {a b: c}
  tolerations: [{kez: a}]
  securityContext: {runAsNobody: true}
"""


def test_a_policy_of_the_earlier_form_is_the_same_and_refused_where_it_is_written(tmp_path: Path) -> None:
    write(tmp_path, {"policies/acme.yaml": EARLIER})
    with pytest.raises(ChartgenError) as caught:
        load_target("gke-a3mega", open_library([tmp_path]))
    assert sorted(problem.line for problem in caught.value.problems) == [3, 4, 5, 6]
    sound = {"nope: 1, ": "", "a b": "a", "kez": "key", "runAsNobody": "runAsNonRoot"}
    write(tmp_path, {"policies/acme.yaml": reduce(lambda text, pair: text.replace(*pair), sound.items(), EARLIER)})
    (policy,) = load_policies(open_library([tmp_path]))
    write(tmp_path, {"policies/other.yaml": "description: d\npod: {}\npods: {}\n"})
    with pytest.raises(ChartgenError, match=r"other\.yaml:3:1: is the earlier form"):
        load_policies(open_library([tmp_path]))
    spec = {"priorityClassName": "training", "tolerations": [{"key": "a"}]}
    pod = {"metadata": {"labels": {"a": "c"}}, "spec": spec}
    assert wanted([policy]) == {"pod": pod, "container": {"securityContext": {"runAsNonRoot": True}}}


def test_a_policy_with_what_kubernetes_refuses_in_pods_is_refused_where_it_is_written(tmp_path: Path) -> None:
    write(tmp_path, {"policies/acme.yaml": MISTAKES})
    with pytest.raises(ChartgenError) as caught:
        load_target("gke-a3mega", open_library([tmp_path]))
    assert sorted(problem.line for problem in caught.value.problems) == [2, 4, 6, 9, 10, 12, 14, 16]


def test_a_required_value_that_does_not_exist_is_one_problem(tmp_path: Path) -> None:
    write(tmp_path, {"policies/acme.yaml": "description: d\nrequired: [data.nope]\n"})
    with pytest.raises(ChartgenError) as caught:
        compose(load_target("gke-a3mega", open_library([tmp_path])))
    assert [problem.line for problem in caught.value.problems] == [2]


@pytest.mark.parametrize(("name", "make"), [("acme.yml", Path.touch), ("acme.yaml", os.mkfifo)])
def test_a_file_of_policies_that_nothing_reads_is_refused(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    (tmp_path / "policies").mkdir()
    make(tmp_path / "policies" / name)
    with pytest.raises(ChartgenError, match=rf"{name}: is not read"):
        load_target("gke-a4", open_library([tmp_path]))


@pytest.mark.threat(5)
def test_settings_name_folders_beside_them_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"secret/policies/a.yaml": "description: d\nlimits: {machines: 1}\n", "secret.yaml": "path: [a]\n"})
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    (here / "link").symlink_to(tmp_path / "secret")
    for place in ("../secret", str(tmp_path / "secret"), "link"):
        (here / "chartgen.yaml").write_text(f"path: [{place}]\n")
        assert "elsewhere" in chartgen("list", "policies").stderr
    (here / "chartgen.yaml").unlink()
    (here / "chartgen.yaml").symlink_to(tmp_path / "secret.yaml")
    assert "link out" in chartgen("list", "policies").stderr
