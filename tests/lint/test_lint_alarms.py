"""What lint must not report of sound charts of others, each beside the defect that it must; the charts are ours.

The cases were found in public charts; tests/programs/lint_report.py lints those.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from chartgen.errors import Problem
from chartgen.findings import Finding, exit_code
from chartgen.helm.chart_folder import Ignored
from chartgen.helm.manifests import KUBE_VERSION
from chartgen.helm.program import find_helm
from chartgen.linter import Subject, run_steps
from chartgen.linter.chart_files import read_chart
from chartgen.linter.examination import Examination
from chartgen.linter.render import Renderer
from chartgen.linter.schema_references import foreign_references
from chartgen.linter.size import stored

HEAD = "apiVersion: v2\nname: theirs\nversion: 0.1.0\n"
POD = """\
      containers:
      - name: main
        image: example.com/main:v1
        ports: [{name: http, containerPort: 8080}]
"""


class Case(NamedTuple):
    """A file of a sound chart, and what of it becomes what in a defective one."""

    text: str
    old: str
    new: str


CASES = {
    "selectors-match-pods": Case(
        "apiVersion: v1\nkind: Service\nmetadata: {name: job}\nspec:\n  selector: {job-name: train}\n"
        "---\napiVersion: v1\nkind: Service\nmetadata: {name: first}\nspec:\n"
        "  selector: {statefulset.kubernetes.io/pod-name: web-0, batch.kubernetes.io/job-name: train}\n",
        "{job-name: train}",
        "{app: train}",
    ),
    "keys-are-unique": Case(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: labelled\n  labels: {}\n"
        "data:\n  app: web\n  app: {{ .Values.jobs.namespace | trunc 0 }}web\n",
        "| trunc 0",
        "",
    ),
    "mounts-have-volumes": Case(
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\nspec:\n  serviceName: web\n"
        "  selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n" + POD + ""
        "        volumeMounts: [{name: data, mountPath: /data}]\n"
        "  volumeClaimTemplates:\n  - metadata: {name: data}\n"
        "    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
        "- metadata: {name: data}",
        "- metadata: {name: date}",
    ),
    "service-ports-are-served": Case(
        "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  selector: {app: web}\n"
        "  ports: [{port: 80, targetPort: 8081}]\n",
        "8081",
        "metrics",
    ),
    "probes-reach-a-port": Case(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: probed}\nspec:\n  containers:\n"
        "  - name: one\n    image: 'example.com/main:v1'\n    ports:\n    - containerPort: 8080\n"
        "    {{- if .Values.metrics }}\n    - containerPort: {{ add 9000 9 }}\n    {{- end }}\n"
        "    livenessProbe: {tcpSocket: {port: 8080}}\n    readinessProbe:\n      tcpSocket:\n"
        "        port: {{ add 9000 9 }}\n",
        "        port: {{ add 9000 9 }}",
        "        port: 9009",
    ),
    "unique-ports": Case(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: proxied}\nspec:\n  containers:\n"
        "  - {name: one, image: 'example.com/main:v1', ports: [{name: http, containerPort: 8080}]}\n"
        "  - {name: two, image: 'example.com/main:v1', ports: [{name: http, containerPort: 8081}]}\n",
        "8081",
        "8080",
    ),
    "quantities-are-text": Case(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n"
        "spec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: Thing, plural: things}\n  versions:\n"
        "  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n"
        "        properties: {limits: {type: object, x-kubernetes-preserve-unknown-fields: true}}\n"
        '{{- "" }}\n---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: most}\n'
        'spec: {limits: [{type: Pod, sizeLimit: "1"}]}\n',
        'sizeLimit: "1"',
        "sizeLimit: 1",
    ),
    "no-literal-namespace": Case(
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: reader\n  namespace: kube-system\n"
        "---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: worker\n"
        "  namespace: {{ .Values.jobs.namespace }}\n"
        "{{- range $namespace := list .Values.jobs.namespace }}\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n"
        "  name: helper\n  namespace: {{ $namespace }}\n{{- end }}\n",
        "{{ .Values.jobs.namespace }}\n{{- range",
        "jobs\n{{- range",
    ),
    "kinds-are-served": Case(
        '{{- if .Capabilities.APIVersions.Has "policy/v1beta1" }}\napiVersion: policy/v1beta1\n'
        "kind: PodDisruptionBudget\nmetadata: {name: web}\nspec: {minAvailable: 1}\n{{- end }}\n",
        '.Capabilities.APIVersions.Has "policy/v1beta1"',
        "true",
    ),
    "renders-are-identical": Case(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
        'data: {steps: {{ if .Release.IsUpgrade }}"10"{{ else }}"10"{{ end }}}\n'
        # an upgrade with Helm keeps what it does not render
        "{{- if .Release.IsInstall }}\n---\n"
        "apiVersion: v1\nkind: ConfigMap\n"
        "metadata: {name: first, annotations: {helm.sh/resource-policy: keep}}\n{{- end }}\n"
        # a sum of the release's name, a program that runs once, and what is a hook in upgrades only
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: sum}\ndata: {a: {{ .Release.Name | sha256sum }}}\n"
        "{{- if .Release.IsInstall }}\n---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec:\n"
        "  template:\n    spec:\n      restartPolicy: Never\n" + POD + "{{- end }}\n"
        "---\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: migrates\n"
        "  annotations: { {{- if .Release.IsUpgrade }}helm.sh/hook: pre-upgrade{{ end }} }\n",
        '"10"{{ else }}',
        '"20"{{ else }}',
    ),
    "helm-lint": Case(
        '{{- if .Capabilities.APIVersions.Has "policy/v1/PodDisruptionBudget" }}\napiVersion: policy/v1\n{{- else }}\n'
        "apiVersion: policy/v1beta1\n{{- end }}\nkind: PodDisruptionBudget\nmetadata: {name: budget}\n"
        "spec: {minAvailable: 1}\n",
        "name: budget",
        "name: Budget_",
    ),
    "scripts-parse": Case(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tests}\ndata:\n  run.sh: |-\n"
        '    @test "answers" {\n      curl web\n    }\n'
        "  move.sh: |-\n    shopt -s extglob\n    mv !(db) db\n",
        "@test",
        "test",
    ),
    "secrets-by-reference": Case(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: asks}\nspec:\n  containers:\n"
        "  - {name: one, image: 'example.com/main:v1', args: ['postgresql://$USER:$PASS@db/app',\n"
        "     'tcp://${env:USER}:${env:PASS}@db/app'],\n"
        "     env: [{name: ETCD_INITIAL_CLUSTER_TOKEN, value: etcd-cluster-k8s}]}\n",
        "$PASS@",
        "Vp9tQ2mZ@",
    ),
    "annotations-are-json": Case(
        "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: lag\n  annotations:\n"
        "    a: '[1]'\n    path: '{.data.key}'\n    text: '{{ `{{ with secret }}` }}'\n"
        "spec:\n  groups:\n  - name: a\n    rules:\n"
        "    - {alert: A, expr: up, annotations: {s: '{{ `{{ $labels.job }}` }} is late'}}\n",
        "'[1]'",
        "'[1'",
    ),
    "names-fit": Case(
        f"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {'binding-' * 8}x}}\n"
        "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\n"
        "---\napiVersion: v1\nkind: Pod\nmetadata: {name: of-a-fitting-name}\nspec:\n  containers:\n"
        "  - {name: one, image: 'example.com/main:v1'}\n",
        "of-a-fitting-name",
        "name-" * 13 + "x",
    ),
    "environment-is-not-printed": Case(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: keeps}\nspec:\n  containers:\n"
        "  - name: one\n    image: example.com/main:v1\n    command: [bash, -c]\n"
        '    args:\n    - |\n      export -p > "${HOME}/.environment"\n      sleep 1\n'
        "    env: [{name: A, valueFrom: {secretKeyRef: {name: a, key: a}}}]\n",
        ' > "${HOME}/.environment"',
        "",
    ),
    "tokens-by-reference": Case(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: signs-in}\nspec:\n  containers:\n"
        "  - name: one\n    image: example.com/main:v1\n    env:\n    - name: DISABLE_USERNAME_PASSWORD\n"
        "      value: {{ .Values.jobs.disableUsernamePassword | quote }}\n    - name: DB_PASSWORD\n"
        "      {{- if .Values.jobs.namespace }}\n      {{- if not .Values.jobs.existingSecret }}\n"
        "      value: {{ .Values.jobs.rootPassword | quote }}\n      {{- else }}\n      valueFrom:\n"
        "        secretKeyRef: {name: a, key: a}\n      {{- end }}\n      {{- end }}\n",
        ".disableUsernamePassword",
        ".usernamePassword",
    ),
    "schema-refers-to-itself": Case(
        '{"$schema": "http://json-schema.org/schema#", "type": "object"}\n',
        "json-schema.org/schema#",
        "example.com/schema#",
    ),
}
PATHS = {"schema-refers-to-itself": "values.schema.json"}
VALUES = "jobs: {namespace: jobs}\n"
# An upgrade with Helm finds what the install drew.
KEPT = {
    "templates/drawn.yaml": '{{- $kept := (lookup "v1" "Secret" .Release.Namespace "drawn" | default dict).data }}\n'
    "apiVersion: v1\nkind: Secret\nmetadata: {name: drawn}\n"
    "data: {a: {{ ($kept | default dict).a | default (randAlphaNum 9 | b64enc) }}}\n",
    "templates/sum.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sum-of-drawn}\n"
    'data: {a: {{ include (print $.Template.BasePath "/drawn.yaml") . | sha256sum }}}\n',
}


def written(folder: Path, files: dict[str, str]) -> Path:
    for path, text in {"Chart.yaml": HEAD, "values.yaml": VALUES, **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def path_of(rule: str) -> str:
    return PATHS.get(rule, f"templates/{rule}.yaml")


def linted(folder: Path, **presets: str) -> list[Finding]:
    read = read_chart(folder)
    files = {}
    for name, text in presets.items():
        files[name] = [folder.parent / f"{name}.yaml"]
        files[name][0].write_text(text)
    subject = Subject(read.chart, folder, files, faults=read.findings, data=read.data, bare=not files)
    return run_steps(replace(subject, packaged=read.packaged)).findings


def about(findings: list[Finding], rule: str) -> list[Finding]:
    return [each for each in findings if each.rule == rule]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """What is found in a chart with everything that is sound."""
    files = {path_of(rule): text for rule, (text, _, _) in CASES.items()} | KEPT
    return linted(written(tmp_path_factory.mktemp("charts") / "sound", files))


@pytest.fixture(scope="module")
def defective(tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """What is found in the same chart with every defect."""
    files = {path_of(rule): text.replace(old, new) for rule, (text, old, new) in CASES.items()} | KEPT
    return linted(written(tmp_path_factory.mktemp("charts") / "defective", files))


@pytest.mark.helm
@pytest.mark.parametrize("rule", CASES)
def test_sound_charts_of_others_are_left_alone(rule: str, sound: list[Finding]) -> None:
    assert about(sound, rule) == []


@pytest.mark.helm
@pytest.mark.parametrize("rule", CASES)
def test_the_defect_beside_it_is_found(rule: str, defective: list[Finding]) -> None:
    (finding,) = about(defective, rule)
    assert str(finding.problem.path).endswith(path_of(rule))


def test_binary_files_of_a_subchart_with_the_name_of_a_folder(tmp_path: Path) -> None:
    for place, fault in (("files", False), ("crds", True), ("templates", True)):
        folder = tmp_path / place / "charts" / "crds"
        (folder / place).mkdir(parents=True)
        (folder / place / "all.bz2").write_bytes(b"\xff")
        written(folder, {}), written(tmp_path / place, {})
        assert bool(read_chart(tmp_path / place).findings) == fault, place


@pytest.mark.helm
def test_what_differs_between_install_and_upgrade_is_named(defective: list[Finding]) -> None:
    (finding,) = about(defective, "renders-are-identical")
    assert "ConfigMap settings: data.steps" in finding.problem.message


@pytest.mark.helm
@pytest.mark.parametrize("keeps", [True, False])
def test_what_a_packaged_subchart_draws(keeps: bool, tmp_path: Path) -> None:
    folder = written(tmp_path / "chart", {})
    (folder / "charts").mkdir()
    asks = '(lookup "v1" "Secret" .Release.Namespace "drawn" | default dict).data'
    drawn = KEPT["templates/drawn.yaml"] if keeps else KEPT["templates/drawn.yaml"].replace(asks, "dict")
    written(tmp_path / "database", {"Chart.yaml": HEAD.replace("theirs", "database"), "templates/drawn.yaml": drawn})
    package = folder / "charts/database-0.1.0.tgz"
    subprocess.run(["tar", "czf", str(package), "-C", str(tmp_path), "database"], check=True)
    assert len(about(linted(folder), "renders-are-identical")) == (0 if keeps else 1)


@pytest.mark.helm
def test_fields_that_only_an_old_kubernetes_lacks_name_it_and_warn(tmp_path: Path) -> None:
    text = (
        CASES["quantities-are-text"][0]
        .partition("{{-")[0]
        .replace("    storage: true\n", "    storage: true\n    selectableFields: [{jsonPath: .spec.queue}]\n")
    )
    folder = written(tmp_path / "chart", {"templates/crd.yaml": text})
    (finding,) = about(linted(folder), "objects-fit-their-schema")
    assert finding.severity == "warning"
    assert finding.problem.message.endswith("in Kubernetes 1.29")
    (folder / "Chart.yaml").write_text(HEAD + "kubeVersion: '>=1.29.0-0'\n")
    (finding,) = about(linted(folder), "objects-fit-their-schema")
    assert finding.severity == "error"
    (folder / "Chart.yaml").write_text(HEAD + "kubeVersion: '>=1.32.0-0'\n")
    assert about(linted(folder), "objects-fit-their-schema") == []


JOB = (
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\nspec:\n  template:\n    spec:\n"
    "      restartPolicy: Never\n      hostNetwork: true\n" + POD
)
NEEDS = "dependencies: [{name: %s, version: 1.x.x, repository: 'https://example.com'}]\n"


@pytest.mark.helm
def test_a_missing_subchart_is_one_finding_and_the_rest_is_checked(tmp_path: Path) -> None:
    folder = written(tmp_path / "chart", {"Chart.yaml": HEAD + NEEDS % "database", "templates/job.yaml": JOB})
    found = linted(folder, one="jobs: {}", two="jobs: {a: 1}", three="jobs: {b: 1}")
    (missing,) = [each for each in found if "database" in each.problem.message]
    assert (missing.rule, missing.severity, missing.problem.line) == ("dependencies-are-there", "unchecked", 4)
    assert exit_code([missing]) == 0
    assert about(found, "no-host-access")
    assert (folder / "Chart.yaml").read_text() == HEAD + NEEDS % "database"


@pytest.mark.helm
def test_what_a_missing_subchart_makes_is_not_missed(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Release.Name }}-own'}\n---\n" + JOB.rstrip()
    text += "\n      volumes: [{name: a, secret: {secretName: '{{ .Release.Name }}-database-keys'}}]\n"
    folder = written(tmp_path / "chart", {"Chart.yaml": HEAD + NEEDS % "database", "templates/job.yaml": text})
    assert about(linted(folder), "names-are-in-the-release") == []
    (folder / "Chart.yaml").write_text(HEAD + NEEDS % "cache")
    assert about(linted(folder), "names-are-in-the-release")


@pytest.mark.helm
def test_a_missing_library_is_one_finding_and_leaves_the_question_open(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ %s }}}\n"
    uses = {"a": 'include "common.name" .', "b": 'index .Subcharts "common" "Release" "Name"'}
    files = {f"templates/{name}.yaml": text % use for name, use in uses.items()}
    folder = written(tmp_path / "chart", {"Chart.yaml": HEAD + NEEDS % "common", "values.yaml": "", **files})
    (finding,) = linted(folder, one="jobs: {}", two="jobs: {a: 1}")
    assert (finding.rule, finding.severity) == ("chart-is-rendered", "unchecked")
    assert exit_code([finding]) == 3


@pytest.mark.helm
def test_a_value_of_a_missing_subchart_may_come_with_it(tmp_path: Path) -> None:
    text = '{{ $its := index .Values "database" }}a: {{ $its.auth.user }}\n'
    files = {"Chart.yaml": HEAD + NEEDS % "database", "values.yaml": "database: {a: 1}\n", "templates/a.yaml": text}
    folder = written(tmp_path / "chart", files)
    (finding,) = (each for each in linted(folder) if each.level == "breaks")
    assert (finding.rule, finding.severity) == ("chart-is-rendered", "unchecked")
    (folder / "Chart.yaml").write_text(HEAD)
    assert about(linted(folder), "helm-template")


@pytest.mark.helm
def test_dependencies_of_charts_of_the_first_version(tmp_path: Path) -> None:
    files = {"Chart.yaml": HEAD.replace("v2", "v1"), "requirements.yaml": NEEDS % "database", "templates/job.yaml": JOB}
    (missing,) = about(linted(written(tmp_path / "chart", files)), "dependencies-are-there")
    assert str(missing.problem.path).endswith("requirements.yaml")


@pytest.mark.helm
def test_subcharts_that_are_there_are_not_missing(tmp_path: Path) -> None:
    needs = NEEDS % "database" + "- {name: cache, version: 1.x.x}\n"
    files = {"Chart.yaml": HEAD + needs.replace("[", "\n- ").replace("]", ""), "templates/job.yaml": JOB}
    files |= {"charts/db/Chart.yaml": HEAD.replace("theirs", "database"), "charts/db/values.yaml": ""}
    folder = written(tmp_path / "chart", files)
    cache = written(tmp_path / "cache", {"Chart.yaml": HEAD.replace("theirs", "cache")})
    subprocess.run(["tar", "czf", folder / "charts/cache-1.2.3.tgz", "-C", tmp_path, cache.name], check=True)
    assert about(linted(folder), "dependencies-are-there") == []


@pytest.mark.helm
def test_one_reason_is_told_once_for_all_presets(tmp_path: Path) -> None:
    folder = written(tmp_path / "chart", {"templates/a.yaml": "a: {{ .Values.none.such }}\n", "values.yaml": ""})
    found = linted(folder, one="jobs: {}", two="jobs: {a: 1}", three="jobs: {b: 1}", four="jobs: {c: 1}")
    assert [each.rule for each in found] == ["helm-template"]
    assert "one, two and 2 more" in found[0].problem.message


@pytest.mark.helm
def test_a_chart_that_asks_for_values_is_not_blamed(tmp_path: Path) -> None:
    text = (
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ required "name it" .Values.a | quote }}}\n'
    )
    asks = {"templates/a.yaml": text, "values.yaml": ""}
    (finding,) = (each for each in linted(written(tmp_path / "chart", asks)) if each.level == "breaks")
    assert (finding.rule, finding.severity) == ("chart-is-rendered", "unchecked")
    assert exit_code([finding]) == 3


@pytest.mark.helm
@pytest.mark.parametrize("part", [".Values.site.zone", '"a" | replace "a" .Values.zone'])
def test_a_chart_without_defaults_asks_for_values(tmp_path: Path, part: str) -> None:
    folder = written(tmp_path / "chart", {"templates/a.yaml": f"a: {{{{ {part} }}}}\n"})
    (folder / "values.yaml").unlink()
    (finding,) = (each for each in linted(folder) if each.level == "breaks")
    assert (finding.rule, finding.severity) == ("chart-is-rendered", "unchecked")
    (finding,) = about(linted(folder, one="site: {}", two="other: 1"), "helm-template")
    assert "two" in finding.problem.message


@pytest.mark.helm
def test_global_values_come_from_the_chart_around_it(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ .Values.global.site.zone | quote }}}\n"
    folder = written(tmp_path / "chart", {"templates/a.yaml": text, "values.yaml": ""})
    (finding,) = (each for each in linted(folder) if each.level == "breaks")
    assert (finding.rule, finding.severity) == ("chart-is-rendered", "unchecked")
    (folder / "templates" / "a.yaml").write_text(text.replace("global", "own"))
    assert about(linted(folder), "helm-template")


@pytest.mark.helm
def test_a_list_needs_no_name(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMapList\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]\n"
    assert about(linted(written(tmp_path / "chart", {"templates/a.yaml": text})), "helm-lint") == []


@pytest.mark.helm
def test_what_helm_lint_makes_of_missing_values_is_no_fault(tmp_path: Path) -> None:
    data = '  a: {{ required "name it" .Values.a }}:{{ .Values.a }}\n'
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n{data}"
    folder = written(tmp_path / "chart", {"templates/a.yaml": text, "values.yaml": ""})
    assert {each.rule for each in linted(folder) if each.level == "breaks"} == {"chart-is-rendered"}
    (folder / "Chart.yaml").write_text(HEAD + "dependencies: 1\n")
    assert about(linted(folder), "helm-lint")


@pytest.mark.helm
def test_a_chart_that_misses_an_object_of_the_cluster_is_not_blamed(tmp_path: Path) -> None:
    asks = {"templates/a.yaml": '{{- if not (lookup "v1" "Secret" "a" "b") }}{{ fail "no Secret b" }}{{ end }}\n'}
    asks["values.yaml"] = ""
    (finding,) = (each for each in linted(written(tmp_path / "chart", asks), one="jobs: {}") if each.level == "breaks")
    assert (finding.rule, finding.severity) == ("chart-is-rendered", "unchecked")


@pytest.mark.helm
def test_messages_of_helm_lint_say_what_is_wrong(tmp_path: Path) -> None:
    text = 'a: {{ include "a" . }}\n'
    helper = '{{ define "a" }}{{ .Values.none.such }}{{ end }}'
    folder = written(tmp_path / "chart", {"templates/a.yaml": text, "templates/_a.tpl": helper})
    renderer = Renderer(folder)
    found = renderer.lint({}, "1.37").result()
    renderer.close()
    assert [each.rule for each in found] == ["helm-lint"]
    assert "nil pointer" in found[0].problem.message
    assert (found[0].problem.path, found[0].problem.line) == ("templates/_a.tpl", 1)


@pytest.mark.helm
def test_charts_that_chart_yaml_leaves_out_are_named_in_one_order(tmp_path: Path) -> None:
    names = ["five", "four", "one", "seven", "six", "three", "two"]
    folder = written(tmp_path / "chart", {"templates/job.yaml": JOB})
    for name in names:
        written(folder / "charts" / name, {"Chart.yaml": HEAD.replace("theirs", name)})
    (finding,) = about(linted(folder), "helm-lint")
    assert finding.problem.message.endswith(f": {','.join(names)}")


@pytest.mark.helm
def test_mistakes_in_chart_yaml_that_helm_warns_of_are_style(tmp_path: Path) -> None:
    folder = written(tmp_path / "chart", {"Chart.yaml": HEAD + "engine: gotpl\n", "templates/job.yaml": JOB})
    (finding,) = about(linted(folder), "helm-lint-strict")
    assert (finding.level, "engine" in finding.problem.message) == ("style", True)


@pytest.mark.helm
def test_values_that_a_template_from_elsewhere_may_use(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
    folder = written(tmp_path / "chart", {"templates/a.yaml": text % '{{ include "common.name" . }}'})
    assert about(linted(folder), "values-are-used") == []
    (folder / "templates/a.yaml").write_text(text % "a")
    assert [each.key for each in about(linted(folder), "values-are-used")] == ["jobs"]
    (folder / "templates/a.yaml").unlink()  # a patch of another chart has values alone
    assert about(linted(folder), "values-are-used") == []
    (folder / "Chart.yaml").write_text(HEAD + NEEDS % "database")
    assert about(linted(folder), "values-are-used")


@pytest.mark.helm
def test_a_volume_without_a_mount_breaks_no_pod(tmp_path: Path) -> None:
    folder = written(tmp_path / "chart", {"templates/job.yaml": JOB.rstrip() + "\n      volumes: [{name: left}]\n"})
    assert [each.level for each in about(linted(folder), "volumes-are-used")] == ["style"]


@pytest.mark.helm
def test_values_that_helm_or_another_file_uses(tmp_path: Path) -> None:
    head = HEAD + (
        "dependencies:\n- {name: db, version: 1.x.x, condition: 'own.db,other.db', tags: [all]}\n"
        "- {name: log, version: 1.x.x, import-values: [{child: a, parent: imported}]}\n"
    )
    values = "own: {}\nother: {}\ntags: {}\nimported: {}\nenabled: true\nport: 1\nhost: '{{ .Values.zone }}'\nzone: a\n"
    values += "around: 1\nall: &all true\nmost:\n  some: &some 1\ncache: {on: *all, of: *some}\ntwice: &twice 1\n"
    files = {"Chart.yaml": head, "values.yaml": values + "nobody: 1\n", "files/web.conf": "listen {{ .Values.port }}\n"}
    files["templates/a.yaml"] = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
        '{{ define "own" }}{{ .Values.theirs.around }}{{ end }}{{ $_ := .Values.cache }}'
        'data: {a: {{ tpl (.Files.Get "files/web.conf") . | quote }}, b: {{ tpl .Values.host . | quote }}}\n'
    )
    found = about(linted(written(tmp_path / "chart", files)), "values-are-used")
    assert sorted(str(each.key) for each in found) == ["nobody", "twice"]


@pytest.mark.helm
def test_values_of_ci_with_several_documents_are_read_as_helm_reads_them(tmp_path: Path) -> None:
    folder = written(tmp_path / "chart", {"templates/a.yaml": "a: {{ .Values.b.c }}\n", "values.yaml": ""})
    (folder / "ci").mkdir()
    (folder / "ci/more-values.yaml").write_text("a: 1\n---\nb: {c: 2}\n")
    argv = [str(find_helm().executable), "template", str(folder), "-f", str(folder / "ci/more-values.yaml")]
    renders = subprocess.run(argv, capture_output=True, check=False).returncode == 0
    assert renders is (find_helm().version >= (4,))  # Helm 3 reads the first document
    assert renders is (about(linted(folder, more="a: 1\n---\nb: {c: 2}\n"), "helm-template") == [])


def test_a_step_without_an_end_leaves_the_question_open(tmp_path: Path) -> None:
    done = Examination(Subject(read_chart(written(tmp_path / "chart", {})).chart), limit=0.01)
    done.add("slow", lambda: [Finding("x", Problem(str(time.sleep(1))))])  # type: ignore[func-returns-value]
    assert [(each.rule, each.severity) for each in done.findings] == [("lint-finishes", "unchecked")]
    assert exit_code(done.findings) == 3


@pytest.mark.helm
def test_privileges_of_others_are_excused_by_comments_only(tmp_path: Path) -> None:
    (finding,) = about(linted(written(tmp_path / "chart", {"templates/job.yaml": JOB})), "no-host-access")
    assert "fragment" not in finding.problem.hint
    assert "comment" in finding.problem.hint


@pytest.mark.helm
def test_kinds_without_a_schema_are_said_once_and_refuse_nothing(tmp_path: Path) -> None:
    monitor = "apiVersion: example.com/v1\nkind: Monitor\nmetadata: {name: %s}\n"
    texts = {f"templates/{name}.yaml": monitor % name for name in ("a", "b")}
    (finding,) = about(linted(written(tmp_path / "chart", texts)), "kinds-are-known")
    assert finding.severity == "unchecked"


# Size and files


def noise(size: int) -> str:
    return base64.b64encode(os.urandom(size)).decode()


@pytest.mark.helm
def test_the_release_is_as_large_as_helm_makes_it(tmp_path: Path) -> None:
    subchart = {
        f"charts/other/{path}": text for path, text in {"Chart.yaml": HEAD, "files/a.txt": noise(50_000)}.items()
    }
    files = {
        ".helmignore": "*.bak\n",
        "a.bak": noise(50_000),
        "files/data.txt": noise(30_000),
        "templates/job.yaml": JOB,
    }
    folder = written(tmp_path / "chart", {**files, **subchart})
    (folder / "icon.png").write_bytes(os.urandom(20_000))
    read = read_chart(folder)
    helm = [str(find_helm().executable), "install", "x", str(folder), "--dry-run=client", "--output", "json"]
    env = {**os.environ, "KUBECONFIG": os.devnull, "HOME": str(tmp_path)}
    release = subprocess.run(
        [*helm, "--kube-version", KUBE_VERSION], env=env, capture_output=True, text=True, check=False
    )
    if release.returncode:
        release = subprocess.run(helm, env=env, capture_output=True, text=True, check=True)
    kept = json.loads(release.stdout)
    real = len(base64.b64encode(gzip.compress(json.dumps(kept, separators=(",", ":")).encode(), 9)))
    assert stored(read.chart, read.data, kept["manifest"]) == pytest.approx(real, rel=0.02)


@pytest.mark.helm
def test_what_helm_leaves_out_takes_no_room(tmp_path: Path) -> None:
    files = {".helmignore": "/data/\n", "data/noise.txt": noise(1_200_000), "templates/job.yaml": JOB}
    files |= {"charts/off/Chart.yaml": HEAD, "charts/off/noise.txt": noise(1_200_000)}
    folder = written(tmp_path / "chart", files)
    assert about(linted(folder), "release-fits") == []
    (folder / ".helmignore").unlink()
    assert len(about(linted(folder), "release-fits")) == 1


# helm/helm @ e9b85e4, pkg/ignore/rules_test.go: the forms of its table, with names of ours.
@pytest.mark.parametrize(
    ("line", "path", "folder", "left_out"),
    [
        ("notes.txt", "notes.txt", False, True),
        ("notes.txt", "docs/notes.txt", False, True),
        ("*.txt", "docs/a.txt", False, True),
        ("docs/*", "docs/a.txt", False, True),
        ("docs/*", "docs/deep/a.txt", False, False),
        ("docs/", "docs", True, True),
        ("docs/", "docs", False, False),
        ("/docs", "docs", True, True),
        ("/docs", "more/docs", True, False),
        ("a[a-c]", "ab", False, True),
        ("a[^a-c]", "ab", False, False),
        ("a?", "ab", False, True),
        ("a?", "a", False, False),
        (r"a\*", "a*", False, True),
        (r"a\*", "ab", False, False),
        ("# notes.txt", "notes.txt", False, False),
        ("**/a", "b/a", False, False),
        ("!*.yaml", "a.yaml", False, False),
        ("!*.yaml", "a.txt", False, True),
        ("", "templates/.hidden", False, True),
        ("", "templates/a.yaml", False, False),
    ],
)
def test_helmignore(line: str, path: str, folder: bool, left_out: bool) -> None:
    assert Ignored(line)(path, folder=folder) is left_out


def test_a_document_that_a_schema_refers_to_is_one_finding() -> None:
    refers = {name: {"$ref": f"https://example.com/{name[0]}.json#/{name}"} for name in ("a1", "a2", "a3", "b1")}
    found = list(foreign_references({"values.schema.json": json.dumps({"properties": refers})}))
    assert ["2 other parts" in each.problem.message for each in found] == [True, False]


def test_lines_end_as_helm_ends_them() -> None:
    assert not Ignored("a\x0cvalues.schema.json")("values.schema.json")


def test_links_to_folders_of_the_chart_are_followed_and_circles_are_not(tmp_path: Path) -> None:
    folder = written(tmp_path / "chart", {"crd/bases/a.yaml": "a: 1\n", "templates/job.yaml": JOB, "b/c/d.txt": ""})
    (folder / "crd" / "v1").symlink_to("bases")
    read = read_chart(folder)
    assert read.findings == []
    assert "crd/v1/a.yaml" in read.chart.files
    (folder / "b" / "c" / "up").symlink_to("../../crd")
    (folder / "crd" / "down").symlink_to("../b")
    circles = read_chart(folder).findings
    assert {each.rule for each in circles} == {"chart-files"}
    (folder / ".helmignore").write_text("down\nup\n")
    assert read_chart(folder).findings == []


def test_a_link_to_another_folder_of_the_checkout_is_no_fault_and_leaves_the_chart_unchecked(
    tmp_path: Path,
) -> None:
    folder = written(tmp_path / "checkout" / "chart", {"../api/crd.yaml": "a: 1\n", "templates/job.yaml": JOB})
    (folder / "crds").symlink_to("../api")
    (finding,) = read_chart(folder).findings
    assert (finding.rule, finding.severity) == ("chart-files", "error")
    (tmp_path / "checkout" / ".git").mkdir()
    (finding,) = read_chart(folder).findings
    assert (finding.rule, finding.severity, exit_code([finding])) == ("chart-is-rendered", "unchecked", 3)
    assert "package" in finding.problem.hint
    (folder / "crds").unlink()
    (folder / "crds").symlink_to(tmp_path)
    assert [each.rule for each in read_chart(folder).findings] == ["chart-files"]


def test_links_out_of_a_chart_matter_where_helm_ignores_them_too(tmp_path: Path) -> None:
    folder = written(tmp_path / "chart", {"templates/job.yaml": JOB})
    (folder / "data").symlink_to("/etc")
    assert [each.rule for each in read_chart(folder).findings] == ["chart-files"]
    # What is ignored is Helm's to decide, and it looks where a link leads first.
    (folder / ".helmignore").write_text("data\n")
    assert [each.rule for each in read_chart(folder).findings] == ["chart-files"]
    (folder / "data").unlink()
    (folder / "data").symlink_to("nowhere")
    assert [each.rule for each in read_chart(folder).findings] == ["chart-files"]


@pytest.mark.helm
def test_keys_of_values_that_stand_twice(tmp_path: Path) -> None:
    """Helm takes the last one, and says nothing."""
    chart = written(
        tmp_path / "chart", {"values.yaml": "jobs: {namespace: one}\nsame: 1\nsame: 1\njobs: {namespace: two}\n"}
    )
    found = about(linted(chart), "keys-are-unique")
    assert [(str(each.problem.path), each.problem.line) for each in found] == [(str(chart / "values.yaml"), 4)]


@pytest.mark.helm
@pytest.mark.parametrize("left_out", ["apiVersion: v1\n", "kind: ConfigMap\n"])
def test_objects_without_a_kind_or_a_version(left_out: str, tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n".replace(left_out, "")
    chart = written(tmp_path / "chart", {"templates/object.yaml": text})
    found = [each for each in linted(chart) if each.problem.path == chart / "templates" / "object.yaml"]
    assert {each.rule for each in found if each.severity == "error"} >= {"objects-fit-their-schema"}
