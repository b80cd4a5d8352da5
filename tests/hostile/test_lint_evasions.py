"""Ways of a pull request to keep a chart from being judged; each of them passed with exit 0 at commit 0a2fb7d."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answers import findings
from click.testing import CliRunner
from rendered import VALUES
from ruamel.yaml import YAML

from chartgen.cli import main
from chartgen.composer.assembly import compose
from chartgen.composer.library import BUILTIN, open_library
from chartgen.composer.privileges import is_forbidden
from chartgen.composer.target import load_target
from chartgen.linter.left_out import left_out

HEAD = "apiVersion: v2\nname: {}\nversion: 0.1.0\ndescription: a chart\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: b}\n"
POD = """apiVersion: v1
kind: Pod
metadata: {name: evil}
spec:
  hostPID: true
  containers:
  - name: evil
    image: example.com/evil:v1
    securityContext: {privileged: true}
    volumeMounts: [{name: all, mountPath: /all}]
  volumes:
  - {name: all, hostPath: {path: /}}
"""
PLAIN = POD.replace("  hostPID: true\n", "").replace("{path: /}", "{path: /data}")  # and privileged
BINDING = """apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: Group, name: all, apiGroup: rbac.authorization.k8s.io}]
"""
WORKFLOW = """apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: w}
spec:
  templates:
  - {name: t, container: {image: "a:v1", volumeMounts: [{name: v, mountPath: /v}]}}
"""
CONTROL = {"no-system-folders", "no-privileged-containers", "no-host-processes"}
Lint = Callable[..., tuple[int, set[str], set[str]]]

pytestmark = pytest.mark.helm


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lint:
    """Write files and lint the repository that they are; return exit code, rules and places of what counts."""
    monkeypatch.chdir(tmp_path)

    def run(files: dict[str, str | bytes], *arguments: str) -> tuple[int, set[str], set[str]]:
        for path, content in files.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        ran = CliRunner().invoke(main, ["lint", "--no-cache", "--output", "json", *arguments])
        found = [
            each for each in findings(ran.stdout) if each["severity"] == "error" or each["rule"].startswith("chart")
        ]
        return ran.exit_code, {each["rule"] for each in found}, {str(each["path"]) for each in found}

    return run


def chart(folder: str = "charts/x", *, head: str = "", **templates: str) -> dict[str, Any]:
    """Return a chart's files; a template's name is that of its keyword."""
    texts = {f"{folder}/templates/{name}.yaml": text for name, text in (templates or {"config": CONFIG}).items()}
    return {f"{folder}/Chart.yaml": HEAD.format(folder.rpartition("/")[2]) + head, **texts}


@pytest.mark.threat(11)
def test_control_of_the_machine_has_no_level(lint: Lint) -> None:
    """Neither who claims to have made the chart, nor settings, comments and annotations excuse it."""
    every = ", ".join(sorted(CONTROL))
    excused = f"# chartgen: ignore[{every}] needed\n" + "\n".join(
        f"{line} # chartgen: ignore[{every}] needed" if line else "" for line in POD.splitlines()
    )
    annotated = ", ".join(
        f"ignore-check.kube-linter.io/{name}: needed"
        for name in ("host-pid", "host-ipc", "privileged-container", "sensitive-host-mounts")
    )
    for head in ("", "annotations: {chartgen/target: gke-a3mega}\n", "annotations: {chartgen/target: nobody}\n"):
        for text in (POD, excused, POD.replace("{name: evil}", f"{{name: evil, annotations: {{{annotated}}}}}", 1)):
            for settings in ("", 'level = "breaks"', 'select = ["unique-environment"]'):
                files = {**chart(head=head, pod=text), "chartgen.toml": f"[lint]\n{settings}\n"}
                code, rules, _ = lint(files)
                assert code == 1, (head, text, settings)
                # a chart that only claims to be a target's cannot be read to its end, which is an error too
                assert rules >= CONTROL or "lint-finishes" in rules, (head, text, settings)


@pytest.mark.threat(11)
def test_settings_cannot_ignore_what_was_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    unchecked = (
        "chart-files",
        "helm-template",
        "chart-is-rendered",
        "charts-are-linted",
        "lint-finishes",
        "dependencies-are-there",
    )
    for rule in (*unchecked, "no-cluster-admin"):
        for ignored in (rule, f"{rule}:charts/x"):
            (tmp_path / "chartgen.toml").write_text(f'[lint]\nignore = ["{ignored}"]\n')
            ran = CliRunner().invoke(main, ["lint", "."])
            assert (ran.exit_code, f"cannot ignore {rule}" in ran.output) == (2, True)


@pytest.mark.threat(11)
def test_the_command_line_excuses_one_chart(lint: Lint) -> None:
    files = {**chart("charts/agent", pod=POD), **chart("charts/other", pod=POD)}
    ignored = ",".join(f"{rule}:charts/agent" for rule in CONTROL)
    code, rules, places = lint(files, "--ignore", ignored)
    assert (code, rules, places) == (1, CONTROL, {"charts/other/templates/pod.yaml"})


@pytest.mark.threat(11)
def test_definitions_of_the_repository_excuse_nothing(lint: Lint, tmp_path: Path) -> None:
    """A pull request may add a `chartgen.yaml`, with a fragment that states a reason in the name of chartgen's own."""
    own = tmp_path / "ours/fragments/nvidia-gpu"
    shutil.copytree(BUILTIN / "fragments/nvidia-gpu", own)
    (own / "securityContext.yaml").write_text("privileged: true\n")
    stated = (own / "fragment.yaml").read_text().replace("privileges:\n", "privileges:\n  privileged in program: so\n")
    (own / "fragment.yaml").write_text(stated)
    compose(load_target("crusoe", open_library([tmp_path / "ours"]))).write(tmp_path / "charts/crusoe")
    named = ("charts/crusoe", "--kubernetes", "1.34")
    assert lint({}, *named, "--path", "ours")[0] == 0
    for settings in ("path: [ours]\n", "path: [nowhere]\n", "path: [[[[\n"):
        code, rules, _ = lint({"chartgen.yaml": settings}, *named)
        assert (code, rules & CONTROL) == (1, {"no-privileged-containers"}), settings


@pytest.mark.threat(15)
def test_values_of_ci_do_not_replace_the_defaults(lint: Lint) -> None:
    pod = "{{ if .Values.evil }}\n" + POD + "{{ end }}\n"
    files = chart(pod=pod) | {"charts/x/values.yaml": "evil: true\n", "charts/x/ci/ok-values.yaml": "evil: false\n"}
    assert lint(files)[:2] == (1, CONTROL)


def test_values_of_ci_replace_defaults_that_the_chart_refuses(lint: Lint) -> None:
    asks = '{{ required "name is needed" .Values.name }}'
    schema = json.dumps({"properties": {"name": {"type": "string", "minLength": 1}}})
    for files in (
        chart(config=CONFIG.replace("{a: b}", f"{{a: {asks}}}")),
        chart(config=CONFIG.replace("{a: b}", "{a: {{ .Values.name }}}")) | {"charts/x/values.schema.json": schema},
    ):
        files |= {"charts/x/values.yaml": 'name: ""\n'}
        assert lint(files)[0] in (1, 3)
        assert lint(files | {"charts/x/ci/ok-values.yaml": "name: mine\n"})[:2] == (0, set())
        (Path.cwd() / "charts/x/ci/ok-values.yaml").unlink()


@pytest.mark.threat(15)
def test_charts_beside_the_named_ones_are_unchecked(lint: Lint) -> None:
    """Whether the repository's settings name too few, or another chart hides them from lint."""
    files = {**chart("charts/good"), **chart("charts/evil", pod=POD), **chart("deploy/more/evil", pod=POD)}
    left = {"charts/evil/Chart.yaml", "deploy/more/evil/Chart.yaml"}
    found = lint({**files, "chartgen.toml": '[lint]\ncharts = ["charts/good"]\n'})
    assert found == (3, {"charts-are-linted"}, left)
    found = lint({**chart("charts"), "chartgen.toml": ""}, "charts")
    assert found == (3, {"charts-are-linted"}, {"charts/evil/Chart.yaml", "charts/good/Chart.yaml"})


NEEDS = "dependencies: [{name: sub, version: 0.1.0, repository: 'https://charts.example'}]\n"


def subchart() -> dict[str, Any]:
    return chart("charts/x/charts/sub", config=CONFIG.replace("name: c", "name: d"))


def test_subcharts_are_checked_with_their_chart(lint: Lint) -> None:
    files = {**chart("charts/x", head=NEEDS), **subchart(), "chartgen.toml": '[lint]\ncharts = ["charts/x"]\n'}
    assert lint(files)[:2] == (0, set())


@pytest.mark.threat(15)
def test_presets_that_settings_leave_out_are_unchecked(lint: Lint) -> None:
    files = {**chart(), "values/x/p.yaml": "a: 1\n", "other/readme": "", "chartgen.toml": '[lint]\npresets = "other"\n'}
    assert lint(files) == (3, {"charts-are-linted"}, {"values"})
    assert lint(files, "--presets", "other")[0] == 0


def packed(files: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        for path, text in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return data.getvalue()


@pytest.mark.threat(15)
def test_objects_that_helm_installs_without_rendering_are_judged(lint: Lint) -> None:
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n"
    again = {"charts/x/charts/sub/crds/pod.yaml": f"{crd}---\n{crd.replace('metadata', 'kind: Pod' + chr(10) + 'x')}"}
    sub = subchart()
    inner = packed({"sub/Chart.yaml": HEAD.format("sub"), "sub/crds/pod.yaml": f"{crd}---\n{POD}"})
    for crds, place in (
        ({**sub, "charts/x/charts/sub/crds/pod.yml": POD}, "charts/x/charts/sub/crds/pod.yml"),
        ({**sub, "charts/x/charts/sub/crds/a/pod.json": f"{crd}---\n{POD}"}, "charts/x/charts/sub/crds/a/pod.json"),
        # helm.sh/helm/v4 pkg/chart/v2, hasManifestExtension: in any case, and without a name
        ({**sub, "charts/x/charts/sub/crds/pod.YAML": POD}, "charts/x/charts/sub/crds/pod.YAML"),
        ({**sub, "charts/x/charts/sub/crds/.yaml": POD}, "charts/x/charts/sub/crds/.yaml"),
        ({"charts/x/charts/sub-0.1.0.tgz": inner}, "charts/x/charts/sub-0.1.0.tgz/sub/crds/pod.yaml"),
    ):
        code, rules, places = lint({**chart("charts/x", head=NEEDS), **crds})
        assert (code, rules, places) == (1, CONTROL, {place})
        for path in crds:
            (Path.cwd() / path).unlink()
    assert lint({**chart("charts/x", head=NEEDS), **sub, **again})[0] == 1


@pytest.mark.threat(11)
def test_volumes_of_a_persistent_volume(lint: Lint) -> None:
    spec = "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], "
    volume = "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: v}\n" + spec
    for source in ("local", "hostPath"):
        assert lint(chart(volume=f"{volume}{source}: {{path: /}}}}\n"))[1] == {"no-system-folders"}
    assert lint(chart(volume=f"{volume}local: {{path: /mnt/disks/ssd0}}}}\n"))[0] == 0


@pytest.mark.threat(15)
def test_templates_cannot_tell_lint_by_its_names(lint: Lint) -> None:
    for condition in (
        'ne .Release.Name "lint"',
        'ne .Release.Namespace "chartgen-lint"',
        'and (ne .Release.Name "lint") (semverCompare "<1.30" .Capabilities.KubeVersion.Version)',
        '($n := .Release.Name) | ne "lint"',
    ):
        pod = f"{{{{ if {condition} }}}}\n{POD}{{{{ end }}}}\n"
        code, rules, _ = lint(chart(pod=pod))
        assert (code, CONTROL - rules) == (1, set()), condition


@pytest.mark.threat(15)
def test_findings_have_fixed_names(lint: Lint) -> None:
    files = chart(
        pod=POD.replace("{name: evil}", "{name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}", 1)
    )
    files["charts/x/templates/fail.yaml"] = (
        '{{ if .Values.x }}{{ fail (printf "%s %s" .Release.Name .Release.Namespace) }}{{ end }}'
    )
    lint({**files, "charts/x/ci/x-values.yaml": "x: true\n"})
    runs = [CliRunner().invoke(main, ["lint", "--no-cache", "--output", "json"]).stdout for _ in range(2)]
    assert runs[0] == runs[1]
    assert "Pod lint: " in runs[0]
    assert "lint chartgen-lint" in runs[0]


@pytest.mark.threat(15)
def test_a_call_ends_and_reports_the_rest(lint: Lint) -> None:
    """A name counts once, and the time is that of all charts."""
    names = ["charts/a", "charts/./a", "charts", "charts/b"] * 500
    files = {**chart("charts/a"), **chart("charts/b"), "chartgen.toml": f"[lint]\ncharts = {json.dumps(names)}\n"}
    assert lint(files)[:2] == (0, set())
    slow = {"charts/a/templates/slow.yaml": "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"}
    code, rules, places = lint({**files, **slow}, "--deadline", "3")
    assert (code, rules) == (1, {"lint-finishes", "charts-are-linted"})
    assert places - {"charts"} == {"charts/a", "charts/b"}


@pytest.mark.threat(15)
def test_the_search_for_other_charts_ends_too(tmp_path: Path) -> None:
    """By a deadline also inside a subchart: its files times the lines of a `.helmignore` can be any number."""
    whole = tmp_path / "whole"
    (whole / "charts" / "part" / "templates").mkdir(parents=True)
    (whole / "Chart.yaml").touch()
    (whole / "charts" / "part" / "Chart.yaml").touch()
    for number in range(2000):
        (whole / "charts" / "part" / "templates" / f"{number}.yaml").touch()
    (whole / ".helmignore").write_text("".join(f"*a*{number}*b\n" for number in range(20000)))
    begun = time.process_time()
    found = list(left_out([tmp_path], {str(whole)}, time.monotonic() + 1))
    assert time.process_time() - begun < 8  # minutes without a deadline
    assert {each.severity for each in found} == {"unchecked"}


@pytest.mark.threat(11)
def test_devices_and_folders_of_users_are_the_machines() -> None:
    for path in ("/dev/sda", "/dev/nvme0n1", "/dev/mem", "/dev/kmsg", "/home/ubuntu", "/home/kubernetes/bin", "/dev"):
        assert is_forbidden(path), path
    for path in (
        "/dev/infiniband",
        "/dev/infiniband/uverbs0",
        "/dev/nvidia0",
        "/dev/nvidia-caps",
        "/dev/shm",
        "/dev/kfd",
    ):
        assert not is_forbidden(path), path


@pytest.mark.threat(11)
def test_other_ways_to_control_a_machine_or_cluster(lint: Lint) -> None:
    def container(context: str) -> str:
        return (
            POD.partition("  hostPID")[0] + f"  containers:\n  - {{name: p, image: a:v1, securityContext: {context}}}\n"
        )

    assert lint(chart(x=container("{windowsOptions: {hostProcess: true}}")))[1] == {"no-privileged-containers"}
    assert lint(chart(x=BINDING))[1] == {"no-cluster-admin"}
    confined = ("{procMount: Unmasked}", "{seccompProfile: {type: Unconfined}}", "{allowPrivilegeEscalation: true}")
    for context in (*confined, "{appArmorProfile: {type: Unconfined}}"):
        assert "no-unconfined-containers" in lint(chart(x=container(context)), "--level", "style")[1], context


def listed(head: str, *items: str) -> str:
    """Return an object with a list of others as JSON, which is YAML too."""
    return head + f"items: {json.dumps([YAML(typ='safe').load(each) for each in items])}\n"


@pytest.mark.threat(15)
def test_whatever_has_items_is_a_list(lint: Lint) -> None:
    """An API client creates the items of an object of any kind."""
    definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n"
    kind = "apiVersion: {}\nkind: {}\n".format
    excused = ["kinds-are-known", "kinds-are-served", "objects-fit-their-schema", "helm-lint"]
    settings = {"chartgen.toml": f"[lint]\nignore = {json.dumps(excused)}\n"}
    unnamed = BINDING.partition("metadata:")[1] + BINDING.partition("metadata:")[2]
    for text, rules in (
        (listed(definition, POD), CONTROL),
        (listed(CONFIG, BINDING), {"no-cluster-admin"}),
        (listed(kind("apps/v1", "List"), POD, BINDING), {*CONTROL, "no-cluster-admin"}),
        (listed(kind("v1", "List"), listed(kind("v1", "List"), BINDING)), {"no-cluster-admin"}),
        (listed(kind("rbac.authorization.k8s.io/v1", "ClusterRoleBindingList"), unnamed), {"no-cluster-admin"}),
    ):
        assert lint({**chart(x=text), **settings})[1] >= rules, text
    assert lint({**chart(), **settings, "charts/x/crds/x.yaml": listed(definition, POD)})[1] >= CONTROL


@pytest.mark.threat(15)
def test_a_value_is_what_helms_reader_makes_of_it(lint: Lint) -> None:
    """Also where the repository ignores that a text is no true."""
    settings = {"chartgen.toml": '[lint]\nignore = ["objects-fit-their-schema"]\n'}
    for context in (
        "{privileged: false, <<: {privileged: true}}",
        '{privileged: false, !!merge "<<": {privileged: true}}',
        '{privileged: !!bool "true"}',
        "{privileged: &a !!bool 'yes'}",
        "{!!binary cHJpdmlsZWdlZA==: true}",
    ):
        text = PLAIN.replace("{privileged: true}", context)
        assert lint({**chart(x=text), **settings})[1] == {"no-privileged-containers"}, context
    coded = BINDING.replace("name: cluster-admin", "name: !!binary Y2x1c3Rlci1hZG1pbg==")
    assert "no-cluster-admin" in lint({**chart(x=coded), **settings})[1]


@pytest.mark.threat(15)
def test_names_of_files_keep_no_object_from_being_judged(lint: Lint) -> None:
    inner = {"sub/Chart.yaml": HEAD.format("sub"), "sub/templates/config.yaml": CONFIG.replace("name: c", "name: d")}
    archive = "charts/x/charts/sub-0.1.0.tgz"
    for files, rules in (
        ({**subchart(), "charts/x/charts/sub/crds/a\nb.yaml": POD}, CONTROL),
        ({archive: packed({**inner, "sub/crds/a\nb.yaml": POD})}, CONTROL),
        ({archive: packed({**inner, "/crds/pod.yaml": POD})}, {"chart-files"}),
        ({archive: packed({**inner, "a/b\\crds\\pod.yaml": POD})}, {"chart-files"}),
    ):
        assert lint({**chart("charts/x", head=NEEDS), **files})[:2] == (1, rules)
        for path in files:
            (Path.cwd() / path).unlink()


@pytest.mark.threat(15)
def test_a_folder_with_the_name_of_a_targets_setup_chart_is_linted(lint: Lint) -> None:
    files = {**chart("single-setup", pod=POD), "chartgen.toml": '[lint]\ncharts = ["gke-a3mega", "gke-a3mega-setup"]\n'}
    files = {path.replace("single", "gke-a3mega"): text for path, text in files.items()}
    assert lint(files)[:2] == (1, CONTROL)


@pytest.mark.threat(15)
def test_a_chart_that_its_parent_ignores_is_unchecked(lint: Lint) -> None:
    files = {**chart("charts/x"), **chart("charts/x/charts/evil", pod=POD), "charts/x/.helmignore": "charts/evil\n"}
    assert lint(files) == (3, {"charts-are-linted"}, {"charts/x/charts/evil/Chart.yaml"})
    # what keeps an empty folder in Git is no object; a hidden manifest is one
    for name, is_left_out in ((".keep", False), (".a.yaml", True)):
        files |= {f"charts/x/charts/evil/crds/{name}": "", "charts/x/.helmignore": f"{name}\n"}
        assert ("charts-are-linted" in lint(files)[1]) is is_left_out


@pytest.mark.threat(15)
def test_what_an_upgrade_alone_installs_is_judged(lint: Lint) -> None:
    hook = POD.replace("{name: evil}", "{name: evil, annotations: {helm.sh/hook: pre-upgrade}}", 1)
    for condition in (
        ".Release.IsUpgrade",
        'index .Release "IsUpgrade"',
        'not (get .Release "IsInstall")',
        'or (lookup "v1" "Secret" "a" "b") .Release.IsUpgrade',
    ):
        assert lint(chart(x=f"{{{{ if {condition} }}}}\n{hook}{{{{ end }}}}\n"))[1] == CONTROL, condition


@pytest.mark.threat(15)
def test_an_upgrade_is_rendered_however_a_chart_asks_for_it(lint: Lint) -> None:
    """In an archive, in a text that `tpl` renders, or by words that are in no file."""
    asks = f"{{{{ if .Release.IsUpgrade }}}}\n{POD}{{{{ end }}}}\n"
    joined = asks.replace(".Release.IsUpgrade", 'get .Release (print "Is" "Upgrade")')
    old = 'and .Release.IsUpgrade (semverCompare "<1.31-0" .Capabilities.KubeVersion.Version)'
    inner = {"sub/Chart.yaml": HEAD.format("sub"), "sub/templates/pod.yaml": asks}
    for files in (
        {**chart("charts/x", head=NEEDS), "charts/x/charts/sub-0.1.0.tgz": packed(inner)},
        {**chart(x="{{ tpl .Values.text . }}"), "charts/x/values.yaml": json.dumps({"text": asks})},
        {**chart(x='{{ tpl (.Files.Get "a.txt") . }}'), "charts/x/a.txt": asks},
        chart(x=joined),
        chart(x=asks.replace(".Release.IsUpgrade", old)),
    ):
        assert not CONTROL - lint(files)[1]
        shutil.rmtree("charts")


@pytest.mark.threat(15)
def test_an_upgrade_is_rendered_of_what_no_build_of_chartgen_alone_has(lint: Lint) -> None:
    """Beside the files of a target's chart, as text or as archive, or in a folder of one's own."""
    joined = f'{{{{ if get .Release (print "Is" "Upgrade") }}}}\n{POD}{{{{ end }}}}\n'
    built = {f"charts/gke-a3mega/{path}": text for path, text in compose(load_target("gke-a3mega")).files.items()}
    kueue = BUILTIN / "fragments" / "kueue"
    own = {f"lib/fragments/kueue/{each.relative_to(kueue)}": each.read_text() for each in kueue.rglob("*.*")}
    own["lib/fragments/kueue/manifests/pod.yaml"] = joined
    names = ("gpt3-5b", "gke-a3mega/gpt3-5b", "site.gke-a3mega.example")
    values = [word for name in names for word in ("-f", f"{VALUES / name}.yaml")]
    # the only name of a subchart that a closed schema lets pass
    packed_chart = packed({"global/Chart.yaml": HEAD.format("global"), "global/templates/pod.yaml": joined})
    for files, options in (
        ({**built, "charts/gke-a3mega/templates/pod.yaml": joined}, ()),
        ({**built, "charts/gke-a3mega/charts/global-0.1.0.tgz": packed_chart}, ()),
        (own, ("gke-a3mega", "--path", "lib")),
    ):
        _, rules, _ = lint(files, *values, *options)
        assert not CONTROL - rules, (rules, options)
        shutil.rmtree("charts", ignore_errors=True)


@pytest.mark.threat(11)
def test_a_claimed_target_states_no_reason_for_a_strangers_template(lint: Lint) -> None:
    """Its containers have the names for which the target's fragments state privileges; comments and settings say so."""
    claim = "annotations: {chartgen/target: gke-a3mega, chartgen/workload: jobset, chartgen/launchers: nemo-1}\n"
    named = PLAIN.replace("name: evil\n    image", "name: tcpxo-daemon\n    image").replace("path: /data", "path: /sys")
    settings = {"chartgen.toml": '[lint]\nignore = ["chart-is-as-built"]\n'}
    target = load_target("gke-a3mega")
    built = {f"charts/gke-a3mega/{path}": text for path, text in compose(target).files.items()}
    packed_chart = packed({"global/Chart.yaml": HEAD.format("global"), "global/templates/pod.yaml": named})
    own = "values/gke-a3mega/gpt3-5b", "values/gpt3-5b", "values/site.gke-a3mega.example"
    values = [word for name in sorted(own, key=len) for word in ("-f", f"{VALUES.parent / name}.yaml")]
    for files, options in (
        (chart(head=claim, pod=named), ()),
        ({**built, "charts/gke-a3mega/templates/pod.yaml": named}, values),
        ({**built, "charts/gke-a3mega/crds/pod.yaml": named}, values),
        ({**built, "charts/gke-a3mega/charts/global-0.1.0.tgz": packed_chart}, values),
    ):
        code, rules, _ = lint({**files, **settings}, *options)
        assert code == 1
        assert rules >= {"no-privileged-containers", "no-system-folders"}, sorted(files)
        shutil.rmtree("charts")
    assert lint({**built, "charts/gke-a3mega/README.md": "changed\n", **settings}, *values)[:2] == (0, set())


@pytest.mark.threat(15)
def test_links_hide_no_chart(lint: Lint) -> None:
    files = {**chart("charts/x"), **chart(".hidden/evil", pod=POD), "chartgen.toml": '[lint]\ncharts = ["charts/x"]\n'}
    for link, target, found in (("evil", ".hidden/evil", "evil"), ("deploy", ".hidden", "deploy/evil")):
        Path(link).symlink_to(target)
        assert lint(files) == (3, {"charts-are-linted"}, {f"{found}/Chart.yaml"})
        Path(link).unlink()
    inner = {path.replace(".hidden/evil", "charts/x/files/sub"): text for path, text in files.items()}
    lint(
        {**inner, "charts/x/files/sub/Chart.yaml": HEAD.format("sub"), "charts/x/files/sub/templates/pod.yaml": CONFIG}
    )
    Path("charts/x/charts").mkdir()
    Path("charts/x/charts/sub").symlink_to("../files/sub")
    assert "charts/x/charts/sub/Chart.yaml" not in lint({})[2]


@pytest.mark.threat(11)
def test_who_may_write_to_the_kernel_controls_the_machine(lint: Lint) -> None:
    pod = PLAIN.replace("    securityContext: {privileged: true}\n", "")
    for path in ("/proc/sys", "/sys"):
        mounted = pod.replace("path: /data", f"path: {path}")
        assert lint(chart(pod=mounted))[:2] == (1, {"no-system-folders"})
        assert lint(chart(pod=mounted.replace("/all}", "/all, readOnly: true}")))[0] == 0


@pytest.mark.threat(11)
def test_privileges_by_other_names(lint: Lint) -> None:
    kind = "apiVersion: psmdb.percona.com/v1\nkind: PerconaServerMongoDB\nmetadata: {name: e}\n"
    text = f"{kind}spec: {{replsets: [{{name: a, containerSecurityContext: {{privileged: true}}}}]}}\n"
    assert "no-privileged-containers" in lint(chart(x=text))[1]
    names = ("controller:clusterrole-aggregation-controller", "kube-controller-manager", "node", "kubelet-api-admin")
    for name in names:
        assert lint(chart(x=BINDING.replace("cluster-admin", f"'system:{name}'")))[:2] == (1, {"no-cluster-admin"})
    for name in ("system:node-problem-detector", "system:node-proxier"):
        assert lint(chart(x=BINDING.replace("cluster-admin", f"'{name}'")))[0] == 0
    # the accounts of the cluster's controllers are in kube-system
    bound = BINDING.replace("ClusterRoleBinding", "RoleBinding").replace(
        "{name: b}", "{name: b, namespace: kube-system}"
    )
    assert lint(chart(x=bound))[1] == {"no-cluster-admin"}
    assert lint(chart(x=bound.replace("kube-system", "a")))[0] == 0


@pytest.mark.threat(11)
def test_one_container_of_a_custom_resource_is_no_way_around(lint: Lint) -> None:
    container = "spec:\n  hostPID: true\n  container: {name: a, image: a:v1, securityContext: {privileged: true}}\n"
    text = f"apiVersion: example.com/v1\nkind: Thing\nmetadata: {{name: evil}}\n{container}"
    rules = lint({**chart(x=text), "chartgen.toml": '[lint]\nignore = ["kinds-are-known"]\n'})[1]
    assert rules == {"no-privileged-containers", "no-host-processes"}


@pytest.mark.threat(11)
def test_the_root_of_image_based_systems_is_the_machines() -> None:
    for path in ("/sysroot", "/sysroot/ostree/deploy", "/ostree", "/efi"):
        assert is_forbidden(path), path


@pytest.mark.threat(11)
def test_a_missing_dependency_excuses_no_control_of_the_machine(lint: Lint) -> None:
    """A container may have the name that an object of the dependency would have."""
    named = PLAIN.replace("- name: evil", "- name: lint-sub")
    assert lint(chart(head=NEEDS, x=named))[:2] == (1, {"no-privileged-containers"})


@pytest.mark.threat(15)
@pytest.mark.parametrize("key", ["!!str <<", "!mine <<", "*merge "])
def test_what_go_does_not_merge_replaces_nothing(key: str, lint: Lint) -> None:
    noted = "metadata: {name: evil, annotations: {a: &merge <<}}"
    text = PLAIN.replace("metadata: {name: evil}", noted).replace(
        "{privileged: true}", f"{{privileged: true, {key}: {{privileged: false}}}}"
    )
    assert lint(chart(x=text))[0] == 1


@pytest.mark.threat(11)
def test_a_custom_resource_hides_no_host_process_and_no_writer(lint: Lint) -> None:
    """Of its containers, lint knows neither the names of their keys nor which pod's volumes they mount."""
    windows = "  securityContext: {windowsOptions: {hostProcess: true}}\n"
    assert lint(chart(x=WORKFLOW + windows))[1] == {"no-privileged-containers"}
    for path in ("/opt/cni/bin", "/proc/sys"):
        volumes = f"  volumes: [{{name: v, hostPath: {{path: {path}, type: Directory}}}}]\n"
        reader = "{name: a, image: 'a:v1', volumeMounts: [{name: v, mountPath: /v, readOnly: true}]}"
        assert lint(chart(x=f"{WORKFLOW}{volumes}  containers: [{reader}]\n"))[1] == {"no-system-folders"}, path
