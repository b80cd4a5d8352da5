"""Secrets that leave their Secret: tokens that values carry, scripts that print all variables; and empty names."""

from __future__ import annotations

from typing import Any

import pytest

from chartgen.helm.chart import Chart
from chartgen.linter.dumps import dumps, environment_is_not_printed, printing_files
from chartgen.linter.names import names_are_set
from chartgen.linter.tokens import rendered_tokens

HEAD = "apiVersion: v2\nname: x\nversion: 0.1.0\n"


def chart(template: str = "", values: str = "", **files: str) -> Chart:
    return Chart("x", {"Chart.yaml": HEAD, "values.yaml": values, "templates/a.yaml": template, **files})


RENDERED = {
    "export in a script": 'args:\n- |\n  export HF_TOKEN="{{ .Values.workload.hfToken }}"\n',
    "variable": "args:\nenv:\n- name: HF_TOKEN\n  value: {{ $root.Values.workload.hfToken | quote }}\n",
    "behind a condition": (
        "- name: DB_PASSWORD\n  {{- if .Values.secret }}\n  {{- else }}\n  value: {{ .Values.password }}\n"
    ),
    "in one line": "x:\ny:\n- {name: NGC_API_KEY, value: {{ .Values.ngc.apiKey }}}\n",
    "flag": "args:\n- run\n- --hf-token={{ .Values.hfToken }}\n",
    "below a map": "- name: MONGODB_PASSWORD\n  value: {{ .Values.mongo.password.value }}\n",
}
LINES = {"variable": 3, "behind a condition": 1, "below a map": 1}


@pytest.mark.parametrize("shape", RENDERED)
def test_token_from_a_value_is_found_at_its_line(shape: str) -> None:
    (found,) = rendered_tokens(chart(RENDERED[shape]))
    assert (found.rule, found.problem.path) == ("tokens-by-reference", "templates/a.yaml")
    assert found.problem.line == LINES.get(shape, 3)


HARMLESS = {
    "by reference": "- name: HF_TOKEN\n  valueFrom:\n    secretKeyRef: {name: {{ .Values.secretName }}, key: token}\n",
    "a choice of the user": "- name: HF_TOKEN\n  {{ if .Values.secret }}\n  valueFrom:\n"
    "    secretKeyRef: {name: a, key: b}\n  {{ else }}\n  value: {{ .Values.hfToken }}\n  {{ end }}\n",
    "a choice in two items": "{{ if .Values.secret }}\n- name: HF_TOKEN\n  valueFrom:\n"
    "    secretKeyRef: {name: a, key: b}\n{{ else }}\n- name: HF_TOKEN\n  value: {{ .Values.hfToken }}\n{{ end }}\n",
    "the next variable": "- name: HF_TOKEN\n  valueFrom: {}\n- name: MODE\n  value: {{ .Values.keyMode }}\n",
    "name of a Secret": "- name: HF_TOKEN\n  value: {{ .Values.token.secretName }}\n",
    "key in a Secret": (
        "- name: API_KEY_SECRET_KEY\n  value: {{ .Values.apiSecret.key }}\n"
        "- name: API_KEY\n  value: {{ .Values.apiSecret.key }}\n"
    ),
    "a Secret": "kind: Secret\nstringData:\n  x: |\n    HF_TOKEN={{ .Values.hfToken }}\n",
    "a switch": "- name: ALLOW_EMPTY_PASSWORD\n  value: {{ .Values.allowEmptyPassword | quote }}\n",
    "a switch as text": "- name: ALWAYS_REFRESH_TOKEN\n  value: {{ .Values.alwaysRefreshToken }}\n",
    "a question": '- name: USE_PASSWORD\n  value: {{ ternary "yes" "no" (not .Values.password) }}\n',
    "other words": (
        "- name: MAX_TOKENS\n  value: {{ .Values.maxTokens }}\n- name: CACHE_KEY\n  value: {{ .Values.cacheKey }}\n"
    ),
    "an identifier": "- name: ETCD_INITIAL_CLUSTER_TOKEN\n  value: {{ .Values.initialClusterToken }}\n",
}


@pytest.mark.parametrize("shape", HARMLESS)
def test_what_is_no_token_is_not_one(shape: str) -> None:
    values = "allowEmptyPassword: true\nalwaysRefreshToken: 'true'\napiSecret: {name: a, key: b}\n"
    assert not list(rendered_tokens(chart(HARMLESS[shape], values)))


@pytest.mark.parametrize(
    "values",
    [
        "workload:\n  envs:\n  - name: HF_TOKEN\n    value: null\n",
        "main:\n  env:\n    HF_TOKEN: hf_aBcDeFgHiJkLmNoPqRsT\n",
    ],
)
def test_token_that_the_values_ask_for_is_found_and_never_shown(values: str) -> None:
    (found,) = rendered_tokens(chart("x: 1", values))
    assert (found.problem.path, found.problem.line) == ("values.yaml", 3)
    assert "aBcDeFg" not in str(found)


def test_variables_by_reference_in_values_are_sound() -> None:
    values = "envs:\n- name: HF_TOKEN\n  valueFrom: {secretKeyRef: {name: a, key: b}}\n- {name: B_TOKEN, value: $(A)}\n"
    values += "- {name: ALWAYS_REFRESH_TOKEN, value: 'true'}\n"
    assert not list(rendered_tokens(chart("x: 1", values)))


PRINT_ALL = [
    *(
        "env",
        "  env | sort",
        "env > /logs/environ.txt",
        "env | sed 's/^/  /' ;",
        "printenv",
        "set",
        "export -p",
        "export",
    ),
    *(
        "declare -xp",
        "if true; then env; fi",
        "(printenv | tee a)",
        'echo "$(env)" && env',
        "{ env; } >&2",
        "{ env; } >/logs/environment",
        "set | head",
    ),
    *("cat /proc/self/environ", "sleep 1; env", "env | sort  # all of them"),
]
PRINT_SOME = [
    *("env | grep NCCL", "env | sort | grep -E '^NCCL_'", "env -i bash", "env A=b python x.py", "set -euo pipefail"),
    *("# env | sort", "echo 'env | sort'", 'echo "env"', "export A=b", "printenv HOME", "set -- a b", "conda env list"),
    *(
        "env > /dev/null",
        "env >/tmp/environment",
        "{ declare -px && declare -p arguments; } >/run/x/launch",
        "env | cut -d= -f1",
        "declare -x A=b",
        "setup",
        "env=1",
        "kubectl set image a",
        "my-env | sort",
    ),
]


@pytest.mark.parametrize("line", PRINT_ALL)
def test_command_that_prints_all_variables(line: str) -> None:
    assert [number for number, _ in dumps(f"#!/bin/bash\n{line}\ntrue\n")] == [2]


@pytest.mark.parametrize("line", PRINT_SOME)
def test_command_that_does_not(line: str) -> None:
    assert list(dumps(f"#!/bin/bash\n{line}\n")) == []


TOKEN = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}


def pod(env: list[dict[str, Any]], script: str = "", **more: Any) -> dict[str, Any]:
    container = {"name": "main", "env": env, "command": ["bash", "-c", script], **more}
    volumes = [{"name": "scripts", "configMap": {"name": "launcher"}}]
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container], "volumes": volumes}}


CONFIGMAP = {"kind": "ConfigMap", "metadata": {"name": "launcher"}, "data": {"launch.sh": "true\nenv > x\n"}}
MOUNTED = {"volumeMounts": [{"name": "scripts", "mountPath": "/s"}]}
BY_NAME = [{"name": "WANDB_API_KEY", "value": None}]
ENVIRONMENTS = {
    "secret by reference": ([pod([TOKEN], "env")], [(0, 1)]),
    "secret by its name": ([pod(BY_NAME, "true\nenv")], [(0, 2)]),
    "all of a Secret": ([pod([], "env", envFrom=[{"secretRef": {"name": "a"}}])], [(0, 1)]),
    "exported": ([pod([], 'export HF_TOKEN=""\nenv')], [(0, 2)]),
    "script of a ConfigMap": ([CONFIGMAP, pod([TOKEN], "true", **MOUNTED)], [(0, 2)]),
    "not mounted": ([CONFIGMAP, pod([TOKEN], "true")], []),
    "no secret": ([CONFIGMAP, pod([{"name": "MODE", "value": "a"}], "env", **MOUNTED)], []),
}


@pytest.mark.parametrize("case", ENVIRONMENTS)
def test_environment_with_secrets_is_not_printed(case: str) -> None:
    things, expected = ENVIRONMENTS[case]
    found = [(number, complaint.line) for number, complaint in environment_is_not_printed(things)]
    assert found == expected


def test_script_beside_the_templates_is_looked_at() -> None:
    given = "env:\n- name: HF_TOKEN\n  valueFrom:\n    secretKeyRef: {name: a, key: b}\n"
    script = {"launcher.sh": "true\nenv > environ.txt\n", "ci/test.sh": "env\n"}
    (found,) = printing_files(chart(given, **script))
    assert (found.problem.path, found.problem.line, found.severity) == ("launcher.sh", 2, "warning")
    assert not list(printing_files(chart("x: 1", **script)))


EMPTY: dict[str, tuple[dict[str, Any], str]] = {
    "volume": ({"volumes": [{"name": "", "csi": {"driver": "d", "volumeAttributes": {"bucketName": ""}}}]}, "name"),
    "mount": ({"containers": [{"name": "a", "image": "b", "volumeMounts": [{"name": "", "mountPath": ""}]}]}, "name"),
    "claim": ({"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": " "}}]}, "claimName"),
    "bucket": (
        {"volumes": [{"name": "a", "csi": {"driver": "d", "volumeAttributes": {"bucketName": ""}}}]},
        "bucketName",
    ),
    "image": ({"containers": [{"name": "a", "image": ""}]}, "image"),
    "key": ({"containers": [{"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": ""}}}]}]}, "key"),
}


@pytest.mark.parametrize("case", EMPTY)
def test_empty_name_is_found_once_for_each_item(case: str) -> None:
    spec, field = EMPTY[case]
    thing = {"kind": "JobSet", "metadata": {"name": "a"}, "spec": {"template": {"spec": {"containers": [], **spec}}}}
    (complaint,) = names_are_set(thing)
    assert complaint.at[-1] == field


def test_a_trigger_fills_an_image() -> None:
    spec = {"template": {"spec": {"containers": [{"name": "a", "image": " "}]}}}
    thing: dict[str, Any] = {"kind": "DeploymentConfig", "metadata": {"name": "a"}, "spec": spec}
    assert list(names_are_set(thing))
    assert not list(names_are_set({**thing, "spec": {**spec, "triggers": [{"type": "ImageChange"}]}}))
    notes = {"name": "a", "annotations": {"image.openshift.io/triggers": "[]"}}
    assert not list(names_are_set({**thing, "kind": "Deployment", "metadata": notes}))


def test_optional_and_missing_names_are_sound() -> None:
    port = {"name": "a", "image": "b", "ports": [{"name": "", "containerPort": 1}], "env": [{"name": "A", "value": ""}]}
    spec = {"containers": [port], "volumes": [{"emptyDir": {}}], "serviceAccountName": ""}
    assert not list(names_are_set({"kind": "Pod", "metadata": {"generateName": "a-", "name": ""}, "spec": spec}))
