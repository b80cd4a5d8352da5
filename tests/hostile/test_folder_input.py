"""What a pull request or a downloaded folder may contain: `chartgen.yaml`, a folder of code, a model's config.json."""

from __future__ import annotations

import json
import tracemalloc
from base64 import b64encode
from pathlib import Path

import pytest
from userlib import chartgen, write

from chartgen.composer.code_folder import packed_code
from chartgen.composer.library import open_library
from chartgen.errors import UsageError

MODEL = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, {"here/code/train.py": "print()\n", "chart/Chart.yaml": "name: x\n"})
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.threat(5)
@pytest.mark.parametrize("target", ["--help", "-fx.yaml", "../chart", "oci://registry.invalid/chart", "a\\0b"])
def test_a_target_of_the_folder_is_a_name_or_a_chart_in_it(folder: Path, target: str) -> None:
    write(folder, {"chartgen.yaml": f'target: "{target}"\n'})
    assert (result := chartgen("check")).exit_code == 2
    assert "chartgen.yaml:1:1" in result.stderr


@pytest.mark.threat(14)
@pytest.mark.parametrize("key", ["path", "values"])
def test_a_path_of_the_folder_that_is_none_is_refused_with_its_place(folder: Path, key: str) -> None:
    write(folder, {"chartgen.yaml": f'target: gke-a3mega\n{key}: ["a\\0b"]\n'})
    assert (result := chartgen("check")).exit_code == 2
    assert "chartgen.yaml:2:1" in result.stderr


@pytest.mark.threat(11)
def test_no_folder_of_the_settings_replaces_a_definition_of_the_command_line(folder: Path) -> None:
    write(folder, {f"{name}/policies/company.yaml": f"description: of {name}.\n" for name in ("company", "theirs")})
    write(folder, {"chartgen.yaml": "path: [company, theirs]\n"})
    assert open_library([Path("company")]).find("policy", "company") == folder / "company/policies/company.yaml"


@pytest.mark.threat(9)
def test_a_folder_of_code_with_a_checkpoint_is_refused_before_it_is_read(folder: Path) -> None:
    with (folder / "code" / "last.ckpt").open("wb") as file:
        file.truncate(400_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="cp"):
            packed_code(folder / "code")
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.threat(12)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hf-token", "hf_" + "aB3" * 11),
        ("lib/settings.py", "TOKEN = 'hf_" + "aB3" * 11 + "'"),
        ("kubeconfig", "client-key-data: " + b64encode(b"-----BEGIN RSA PRIVATE KEY-----\nMIIE").decode()),
    ],
)
def test_a_token_in_a_folder_of_code_goes_nowhere(folder: Path, name: str, text: str) -> None:
    write(folder / "code", {name: text})
    with pytest.raises(UsageError) as caught:
        packed_code(folder / "code")
    (problem,) = caught.value.problems
    assert str(problem.path).endswith(name)
    assert "aB3" not in str(problem)


@pytest.mark.threat(14)
@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"a": ' + "9" * 5000 + "}",
        json.dumps({**MODEL, "layer_types": [[1]]}),
        json.dumps({**MODEL, "layer_types": [{"a": 1}]}),
    ],
    ids=["deep", "long number", "list", "map"],
)
def test_a_config_of_another_form_is_one_line(folder: Path, text: str) -> None:
    write(folder, {"config.json": text})
    result = chartgen("preset", "--from-hf", "config.json")
    assert result.exit_code == 1
    assert "config.json:1" in result.stderr
