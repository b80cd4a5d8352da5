"""A stranger's repository is linted: nothing of it runs, nothing beside it is read, and lint ends.

Each case was a break-out or an endless run at commit e0791ee.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import socket
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from answers import findings as read
from selection import HELMS

from chartgen.rehearsal import engines

CHART = "apiVersion: v2\nname: {name}\nversion: 0.1.0\ndescription: a chart\n"
ENDS = 100  # seconds after which a test gives up: far above what any case takes, far below for ever
PAYLOAD = "stolen-content-4711"


@pytest.fixture(params=HELMS)
def helm(request: pytest.FixtureRequest) -> dict[str, str]:
    """Both Helms: what one reads as a flag or a URL the other may not."""
    found = engines.find_engine(request.param)
    assert found
    return {"CHARTGEN_HELM": str(found)}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "repo").mkdir()
    return tmp_path / "repo"


def write(folder: Path, **files: str) -> Path:
    for name, text in {"Chart__yaml": CHART.format(name=folder.name.lstrip("-=./") or "x"), **files}.items():
        path = folder / name.replace("___", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def lint(repo: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P" if sys.version_info >= (3, 11) else "-I", "-m", "chartgen", "lint", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": "", **env}
    ran = subprocess.run(
        [*command, *arguments], cwd=repo, env=environment, capture_output=True, text=True, timeout=ENDS, check=False
    )
    assert "Traceback" not in ran.stderr + ran.stdout, ran.stderr
    return ran


def findings(ran: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return read(ran.stdout)


def rules(ran: subprocess.CompletedProcess[str]) -> set[str]:
    return {each["rule"] for each in findings(ran)}


@pytest.mark.threat(1)
@pytest.mark.helm
@pytest.mark.parametrize("settings", ["chartgen.toml", "pyproject.toml"])
def test_settings_that_are_flags_run_nothing(repo: Path, helm: dict[str, str], settings: str) -> None:
    evil = "--post-renderer=./evil.sh"
    table = "lint" if settings == "chartgen.toml" else "tool.chartgen.lint"
    (repo / settings).write_text(f'[{table}]\ncharts = ["{evil}"]\n')
    script = repo / "evil.sh"
    script.write_text("#!/bin/sh\ntouch ran\ncat\n")
    script.chmod(0o755)
    write(repo / evil.rpartition("/")[0])
    write(repo / evil)
    write(repo / "lint")
    ran = lint(repo, **helm)
    assert ran.returncode == 2
    assert not (repo / "ran").exists()
    assert evil in ran.stderr


@pytest.mark.threat(1, 2)
@pytest.mark.helm
def test_folders_that_are_flags_are_folders(repo: Path, helm: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "outside").write_text(PAYLOAD)
    write(repo / "charts" / f"--set-file=x={tmp_path}" / "outside", templates___x__yaml="x: {{ .Values.x }}\n")
    write(repo / "charts" / "--dry-run=server", values__yaml="x: 1\n", templates___x__yaml="x: {{ .Values.x }}\n")
    ran = lint(repo / "charts", "--output", "json", "--", "--dry-run=server", **helm)
    assert PAYLOAD not in ran.stdout + ran.stderr
    assert "no-such" not in ran.stderr
    assert {str(each["path"]).split("/")[0] for each in findings(ran)} == {"--dry-run=server"}


@pytest.mark.threat(1)
@pytest.mark.parametrize("entry", ["/etc", "../elsewhere", "linked"])
@pytest.mark.parametrize("key", ["charts", "presets", "baseline"])
def test_settings_that_leave_the_repository(repo: Path, entry: str, key: str) -> None:
    (repo / "linked").symlink_to("/etc")
    write(repo / "charts" / "a")
    value = json.dumps([entry] if key == "charts" else entry)
    (repo / "chartgen.toml").write_text(f"[lint]\n{key} = {value}\n")
    ran = lint(repo)
    assert ran.returncode == 2
    assert f"chartgen.toml: {key}: {entry!r}" in ran.stderr


@pytest.mark.parametrize("entry", ["{" * 256, "a/" * 600, "a\0b"])
@pytest.mark.parametrize("key", ["charts", "presets", "baseline"])
def test_settings_that_no_file_system_takes(repo: Path, entry: str, key: str) -> None:
    write(repo / "charts" / "a")
    (repo / "chartgen.toml").write_text(f"[lint]\n{key} = {json.dumps([entry] if key == 'charts' else entry)}\n")
    ran = lint(repo)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"chartgen.toml: {key}: " in ran.stderr


@pytest.mark.parametrize(
    "settings", ["[" + "a." * 150_000 + "a]\n", ("a." * 4000 + "a = 1\n") * 60, "# " + "a" * 1_000_000]
)
def test_settings_that_take_long_to_read(repo: Path, settings: str) -> None:
    """Python's reader of TOML takes a time that grows with the square of the parts of a key."""
    (repo / "pyproject.toml").write_text(settings)
    ran = lint(repo)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")
    assert "pyproject.toml" in ran.stderr


@pytest.mark.threat(1)
def test_settings_file_that_is_a_link(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(PAYLOAD)
    (repo / "chartgen.toml").symlink_to(tmp_path / "secret")
    ran = lint(repo)
    assert ran.returncode == 2
    assert PAYLOAD not in ran.stderr


@pytest.mark.threat(15)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, partial(os.symlink, "nothing")])
def test_settings_that_are_no_file_are_reported(repo: Path, make: Callable[[Path], None]) -> None:
    make(repo / "chartgen.toml")
    ran = lint(repo)
    assert ran.returncode in (1, 2)
    assert re.fullmatch(r"error: \S*chartgen\.toml: .*\n", ran.stderr)


@pytest.mark.threat(5)
@pytest.mark.helm
@pytest.mark.parametrize("where", ["charts/evil", "values/good/p.yaml", "values"])
def test_links_out_of_the_repository_are_not_followed(repo: Path, tmp_path: Path, where: str) -> None:
    outside = write(tmp_path / "good", templates___x__yaml=f'{{{{ fail "{PAYLOAD}" }}}}')
    (tmp_path / "p.yaml").write_text(f"token: {PAYLOAD}\n")
    (outside / "p.yaml").write_text(f"token: {PAYLOAD}\n")
    write(repo / "charts" / "good", templates___x__yaml="{{ fail (toJson .Values) }}")
    link = repo / where
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to({"charts/evil": outside, "values/good/p.yaml": tmp_path / "p.yaml", "values": tmp_path}[where])
    ran = lint(repo, "--output", "json")
    assert ran.returncode == 1
    assert PAYLOAD not in ran.stdout + ran.stderr
    assert "chart-files" in rules(ran)


@pytest.mark.threat(5)
@pytest.mark.parametrize("name", ["../../outside", "/etc", "a/b", "..", ""])
def test_a_charts_name_is_no_path(repo: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "p.yaml").write_text(f"token: {PAYLOAD}\n")
    chart = write(repo / "charts" / "good", templates___x__yaml="{{ fail (toJson .Values) }}")
    (chart / "Chart.yaml").write_text(CHART.format(name=json.dumps(name)))
    ran = lint(repo, "--output", "json")
    assert ran.returncode == 1
    assert PAYLOAD not in ran.stdout + ran.stderr
    assert "chart-files" in rules(ran)


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A server that takes connections, notes them, and never answers."""
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            held = []
            while True:
                try:
                    connection = listening.accept()[0]
                except OSError:
                    return
                held.append(connection)
                asked.append("asked")

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/schema.json", asked
        listening.shutdown(socket.SHUT_RDWR)


def packed(files: dict[str, bytes], *, kind: bytes = tarfile.REGTYPE, **options: Any) -> bytes:
    """Return a packaged subchart of some files beside its Chart.yaml."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz", **options) as archive:
        for name, content in {"sub/Chart.yaml": CHART.format(name="sub").encode(), **files}.items():
            info = tarfile.TarInfo(name)
            info.size, info.type = len(content), tarfile.REGTYPE if name.endswith("Chart.yaml") else kind
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()


@pytest.mark.threat(3)
@pytest.mark.helm
@pytest.mark.parametrize("place", ["own", "folder", "packed", "dialect", "by its id", "under default"])
def test_a_reference_of_a_schema_is_not_fetched(
    repo: Path, helm: dict[str, str], server: tuple[str, list[str]], place: str
) -> None:
    url, asked = server
    schemas: dict[str, dict[str, Any]] = {
        "dialect": {"$schema": url, "type": "object"},
        "by its id": {"$id": url, "properties": {"a": {"$ref": "other.json"}}},
        "under default": {"properties": {"a": {"$ref": "#/default/x"}}, "default": {"x": {"$ref": url}}},
    }
    schema = json.dumps(schemas.get(place, {"properties": {"a": {"$ref": url}}}))
    chart = write(repo / "charts" / "good", values__yaml="a: 1\n", templates___x__yaml="")
    if place == "folder":
        write(chart / "charts" / "sub", values__schema__json=schema)
    elif place == "packed":
        (chart / "charts").mkdir()
        (chart / "charts" / "sub-0.1.0.tgz").write_bytes(packed({"sub/values.schema.json": schema.encode()}))
    else:
        (chart / "values.schema.json").write_text(schema)
    preset = repo / "values" / "good" / "p.yaml"
    preset.parent.mkdir(parents=True)
    preset.write_text("a: 2\n")
    ran = lint(repo, "--output", "json", **helm)
    assert ran.returncode == 1
    assert "schema-refers-to-itself" in rules(ran)
    assert not asked


def twice(schema: bytes) -> bytes:
    """Return a subchart whose archive goes on in a second gzip stream, as Go reads it and a plain reader does not."""
    whole = gzip.decompress(packed({"sub/values.schema.json": schema}))
    return gzip.compress(whole[:1024]) + gzip.compress(whole[1024:])


def renamed_for_all(schema: bytes) -> bytes:
    """Return a subchart whose members have another name by a header for all, which Go does not heed."""
    headers = {"path": "sub/other.json"}
    return packed({"sub/values.schema.json": schema}, format=tarfile.PAX_FORMAT, pax_headers=headers)


# Archives of subcharts with a schema, in which a reader by other rules than Helm's sees none.
PACKAGES: dict[str, Callable[[bytes], bytes]] = {
    "an archive within": lambda schema: packed({"sub/charts/x.tgz": packed({"sub/values.schema.json": schema})}),
    "of Windows": lambda schema: packed({".\\values.schema.json": schema}),
    "a dot behind": lambda schema: packed({"sub/values.schema.json/.": schema}),
    "a slash behind": lambda schema: packed({"sub/values.schema.json/": schema}),
    "and back": lambda schema: packed({"sub/values.schema.json/x/..": schema}),
    "a type that nobody knows": lambda schema: packed({"sub/values.schema.json": schema}, kind=b"V"),
    "two streams": twice,
    "another name for all": renamed_for_all,
}


@pytest.mark.threat(3)
@pytest.mark.helm
@pytest.mark.parametrize("package", PACKAGES)
def test_no_schema_hides_in_an_archive(
    repo: Path, helm: dict[str, str], server: tuple[str, list[str]], package: str
) -> None:
    url, asked = server
    data = PACKAGES[package](json.dumps({"$ref": url}).encode())
    chart = write(repo / "charts" / "good", values__yaml="sub:\n  sub: {}\n", templates___x__yaml="")
    (chart / "charts").mkdir()
    (chart / "charts" / "sub-0.1.0.tgz").write_bytes(data)
    ran = lint(repo, "--output", "json", **helm)
    assert ran.returncode == 1
    assert not asked
    assert rules(ran) & {"schema-refers-to-itself", "chart-files"}


@pytest.mark.threat(3)
@pytest.mark.helm
@pytest.mark.parametrize("ignored", ["*.txt\x0cvalues.schema.json", "values.schema.json"])
def test_no_schema_hides_behind_a_helmignore(
    repo: Path, helm: dict[str, str], server: tuple[str, list[str]], ignored: str
) -> None:
    url, asked = server
    chart = write(repo / "charts" / "good", values__schema__json=json.dumps({"$ref": url}))
    (chart / ".helmignore").write_text(ignored)
    ran = lint(repo, "--output", "json", **helm)
    assert not asked
    assert "schema-refers-to-itself" in rules(ran)


@pytest.mark.threat(3)
@pytest.mark.helm
def test_an_archive_beside_a_subchart_in_a_folder(
    repo: Path, helm: dict[str, str], server: tuple[str, list[str]]
) -> None:
    url, asked = server
    chart = write(repo / "charts" / "good", values__yaml="sub:\n  sub: {}\n", templates___x__yaml="")
    within = write(chart / "charts" / "sub") / "charts"
    within.mkdir()
    within.joinpath("x.tgz").write_bytes(packed({"sub/values.schema.json": json.dumps({"$ref": url}).encode()}))
    ran = lint(repo, "--output", "json", **helm)
    assert not asked
    assert "schema-refers-to-itself" in rules(ran)


def test_archives_without_an_end_in_one_another(repo: Path) -> None:
    data = packed({})
    for _ in range(200):
        data = packed({"sub/charts/x.tgz": data})
    chart = write(repo / "charts" / "good")
    (chart / "charts").mkdir()
    (chart / "charts" / "x.tgz").write_bytes(data)
    assert rules(lint(repo, "--output", "json")) == {"chart-files"}


OLD = "http://json-schema.org/draft-07/schema#"
# Schemas in which a part has a reference's name, by a keyword or in a place by which Helm does not know it.
NAMED: dict[str, Callable[[str], dict[str, Any]]] = {
    "under enum": lambda url: {"enum": [{"$id": url}], "$ref": url},
    "by another draft's keyword": lambda url: {"$schema": OLD, "definitions": {"a": {"id": url}}, "$ref": url},
    "beside a reference": lambda url: {
        "$schema": OLD,
        "definitions": {"a": {"$id": url, "$ref": "#/definitions/b"}, "b": {}},
        "$ref": url,
    },
    "below another name": lambda url: {
        "$id": "https://example.com/schema.json",
        "properties": {"a": {"$id": url.rpartition("/")[0] + "/x", "$ref": "schema.json"}},
    },
    "a tab within": lambda url: {"$id": url, "properties": {"a": {"$ref": url.replace("/schema", "/\tschema")}}},
}


@pytest.mark.threat(3)
@pytest.mark.helm
@pytest.mark.parametrize("place", NAMED)
def test_names_that_helm_does_not_know_are_foreign(
    repo: Path, helm: dict[str, str], server: tuple[str, list[str]], place: str
) -> None:
    url, asked = server
    schema = json.dumps(NAMED[place](url))
    write(repo / "charts" / "good", values__yaml="a: 1\n", values__schema__json=schema, templates___x__yaml="")
    ran = lint(repo, "--output", "json", **helm)
    assert not asked
    assert "schema-refers-to-itself" in rules(ran)


@pytest.mark.threat(3)
@pytest.mark.helm
@pytest.mark.parametrize("place", ["own", "folder"])
def test_a_schema_that_is_no_text_is_not_used(
    repo: Path, helm: dict[str, str], server: tuple[str, list[str]], place: str
) -> None:
    """Helm takes a byte that is no UTF-8 for any letter, and would follow the reference beside it."""
    url, asked = server
    chart = write(repo / "charts" / "good", values__yaml="a: 1\n", templates___x__yaml="")
    folder = chart if place == "own" else write(chart / "charts" / "sub")
    schema = json.dumps({"title": "?", "properties": {"a": {"$ref": url}}}).encode().replace(b"?", b"\xff")
    (folder / "values.schema.json").write_bytes(schema)
    ran = lint(repo, "--output", "json", **helm)
    assert ran.returncode == 1
    assert rules(ran) == {"chart-files"}
    assert not asked


@pytest.mark.threat(14)
@pytest.mark.parametrize("name", ["Chart.yaml", "values.yaml"])
def test_files_that_are_no_text(repo: Path, name: str) -> None:
    chart = write(repo / "charts" / "good", values__yaml="a: 1\n")
    (chart / name).write_bytes((chart / name).read_bytes() + b"# \xff\n")
    ran = lint(repo, "--output", "json")
    assert [(each["rule"], each["path"]) for each in findings(ran)] == [("chart-files", f"charts/good/{name}")]


@pytest.mark.threat(3)
@pytest.mark.helm
@pytest.mark.parametrize("target", ["file:///etc/passwd", "file:///dev/zero", "/etc/passwd"])
def test_a_reference_to_a_file_is_not_read(repo: Path, helm: dict[str, str], target: str) -> None:
    schema = json.dumps({"properties": {"a": {"$ref": target}}})
    write(repo / "charts" / "good", values__yaml="a: 1\n", values__schema__json=schema, templates___x__yaml="")
    ran = lint(repo, "--output", "json", **helm)
    assert ran.returncode == 1
    assert "schema-refers-to-itself" in rules(ran)
    assert "root:" not in ran.stdout + ran.stderr


@pytest.mark.threat(3)
@pytest.mark.helm
def test_references_inside_a_schema_are_no_finding(repo: Path) -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://example.com/ours.json",
        "definitions": {"n": {"type": "integer"}, "m": {"$id": "https://example.com/m.json", "type": "integer"}},
        "properties": {
            "a": {"$ref": "#/definitions/n"},
            "b": {"$ref": "ours.json#/definitions/n"},
            "c": {"$ref": "https://example.com/m.json"},
        },
    }
    write(repo / "charts" / "good", values__yaml="a: 1\nb: 2\nc: 3\n", values__schema__json=json.dumps(schema))
    assert "schema-refers-to-itself" not in rules(lint(repo, "--output", "json"))


@pytest.mark.threat(2)
@pytest.mark.helm
def test_helm_sees_nothing_of_the_user(repo: Path, helm: dict[str, str], tmp_path: Path) -> None:
    """Neither a kubeconfig, a home, plugins, a proxy nor a secret of the shell: templates and flags could use them."""
    seen = tmp_path / "seen"
    program = tmp_path / "helm"
    program.write_text(f'#!/bin/sh\nexport -p >> {seen}\nexec {helm["CHARTGEN_HELM"]} "$@"\n')
    program.chmod(0o755)
    write(repo / "charts" / "good", templates___x__yaml="")
    of_user = {"KUBECONFIG": "/k", "HTTPS_PROXY": "http://h:1", "HELM_PLUGINS": "/p", "AWS_SECRET_ACCESS_KEY": "x"}
    ran = lint(repo, "--output", "json", CHARTGEN_HELM=str(program), **of_user)
    assert ran.returncode in (0, 1)
    calls = seen.read_text().partition("HELM_CACHE_HOME")[2]  # behind that of `helm version`, which reads no chart
    assert "/nonexistent" in calls
    # what chartgen sets itself leads nowhere
    nowhere = ("/nonexistent", "http://127.0.0.1:0")
    of_user_seen = [line for line in calls.splitlines() if any(name in line for name in of_user)]
    assert not [line for line in of_user_seen if not any(place in line for place in nowhere)]


SCHEMAS: dict[str, Any] = {
    "no JSON": "{",
    "a list": "[]",
    "deep": "[" * 100_000 + "]" * 100_000,
    "unknown type": '{"type": "foo"}',
    "type is a number": '{"type": 7}',
    "properties is a list": '{"properties": []}',
    "required is a number": '{"required": 7}',
    "reference to nothing": '{"properties": {"a": {"$ref": "#/definitions/none"}}}',
    "reference is a number": '{"properties": {"a": {"$ref": 7}}}',
    "circle": '{"$ref": "#"}',
    "pattern": '{"properties": {"a": {"pattern": "("}}}',
    "definitions is a list": '{"definitions": [], "properties": {"a": {"$ref": "#/definitions/x"}}}',
    "enum is a number": '{"properties": {"a": {"enum": 7}}}',
    "true": "true",
}


@pytest.mark.threat(14)
@pytest.mark.helm
@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_broken_schema_does_not_end_the_lint_of_others(repo: Path, kind: str) -> None:
    write(repo / "charts" / "a-broken", values__yaml='a: "x"\n', values__schema__json=SCHEMAS[kind])
    write(repo / "charts" / "b-other", templates___x__yaml="{{ fail }}")
    preset = repo / "values" / "a-broken" / "p.yaml"
    preset.parent.mkdir(parents=True)
    preset.write_text('a: "y"\n')
    ran = lint(repo, "--output", "json")
    assert ran.returncode == 1
    paths = {each["path"] for each in findings(ran)}
    assert any("b-other" in str(path) for path in paths)
    if kind != "true":
        assert any("a-broken" in str(path) for path in paths)


SLOW: dict[str, dict[str, str]] = {
    "braces": {"templates___x__yaml": "{{" * 400_000},
    "blanks": {"templates___x__yaml": "# chartgen: ignore[x]" + " " * 200_000 + "x"},
    "many ignores": {"values__yaml": "a: 1 # chartgen: ignore[" + "#" * 200_000},
    "a pattern": {
        "values__yaml": f"a: {'a' * 60}!\n",
        "values__schema__json": '{"properties": {"a": {"pattern": "^(a+)+$"}}}',
    },
    "doubling": {
        "values__yaml": "a: 1\n",
        "values__schema__json": json.dumps(
            {
                "definitions": {
                    **{f"d{n}": {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}] * 2} for n in range(40)},
                    "d40": {"type": "integer"},
                },
                "properties": {"a": {"$ref": "#/definitions/d0"}},
            }
        ),
    },
    "a name": {"templates___x__yaml": " " * 500_000 + "x {{ .Values.a }}"},
    "a word": {"templates___x__yaml": "{{ fail .Values.a }}", "values__yaml": f"a: {'a' * 1_000_000}!\n"},
    "calls": {
        "templates___x__yaml": "{{ fail .Values.a }}",
        "values__yaml": "a: '" + 'executing "" at <' * 30_000 + "'\n",
    },
    "memory": {"templates___x__yaml": '{{ repeat 2000000000 "x" }}'},
}


@pytest.mark.threat(9)
@pytest.mark.helm
@pytest.mark.parametrize("kind", SLOW)
def test_lint_of_a_costly_chart_ends(repo: Path, kind: str) -> None:
    write(repo / "charts" / "a-costly", **SLOW[kind])
    preset = repo / "values" / "a-costly" / "p.yaml"
    preset.parent.mkdir(parents=True)
    preset.write_text(SLOW[kind].get("values__yaml", ""))
    write(repo / "charts" / "b-other", templates___x__yaml="{{ fail }}")
    ran = lint(repo, "--output", "json", "--limit", "20")
    assert ran.returncode == 1
    assert any("b-other" in str(each["path"]) for each in findings(ran))


@pytest.mark.threat(9)
def test_archives_that_unpack_to_too_much(repo: Path) -> None:
    chart = write(repo / "charts" / "bombs")
    (chart / "charts").mkdir()
    for number in range(3):
        header = tarfile.TarInfo(f"s{number}/Chart.yaml")
        header.size = 90 * 1024 * 1024
        with gzip.open(chart / "charts" / f"s{number}.tgz", "wb", compresslevel=9) as file:
            file.write(header.tobuf())
            for _ in range(90):
                file.write(bytes(1024 * 1024))
    ran = lint(repo, "--output", "json")
    assert rules(ran) == {"chart-files"}


@pytest.mark.threat(9)
def test_a_large_chart_is_not_read_to_its_end(repo: Path) -> None:
    chart = write(repo / "charts" / "large")
    for number in range(60):
        with (chart / f"f{number}.bin").open("wb") as file:
            file.truncate(4 * 1024 * 1024)
    ran = lint(repo, "--output", "json")
    assert rules(ran) == {"chart-files"}


@pytest.mark.threat(9)
def test_what_does_not_end_is_a_finding() -> None:
    from chartgen.linter.confined import Outcome, confined
    from chartgen.linter.limits import Limits

    def endless() -> Outcome:
        while True:
            pass

    def greedy() -> Outcome:
        return Outcome([], [] if bytearray(8 * 1024**3) else None)

    def broken() -> Outcome:
        raise ZeroDivisionError("of a test")

    for work in (endless, greedy, broken, lambda: os._exit(0)):
        found = confined("x", work, Limits(seconds=2)).findings
        assert [each.rule for each in found] == ["lint-finishes"], work
