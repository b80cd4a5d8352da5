"""No form of output holds a secret's value, whatever rule speaks of it; ordinary values stay readable."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from userlib import chartgen

from chartgen import masking
from chartgen.checks.yaml_pitfalls import pitfalls
from chartgen.cli.output import note
from chartgen.helm.yaml import load
from chartgen.masking import HIDDEN, masked, masked_value

HEX = "0123456789abcdef0123456789abcdef01234567"
HF = "hf_" + "aB3dE5gH7jK9" * 3
FORMS = ("text", "json", "sarif", "junit", "github")
# a flag that somebody might write, and what of it must not be seen again
FLAGS = [
    ("--set", f"secretEnv.HF_TOKEN={HF}", HF),
    ("--set", "secretEnv.DB=hunter2-x", "hunter2-x"),
    ("--set", "nodes=3,secretEnv.DB=hunter2-x,parallelism.tensor=16", "hunter2-x"),
    ("--set-json", f'secretEnv={{"HF_TOKEN": "{HF}"}}', HF),
    ("--set-json", 'secretEnv={"DB": "hunter2-x"}', "hunter2-x"),
    ("--set-json", 'env={"DB_PASSWORD": {"a": "hunter2-x"}}', "hunter2-x"),
    ("--set-json", 'env={"DB_PASSWORD": ["x", "hunter2-x"]}', "hunter2-x"),
    ("--set-string", f"env.HF_TOKEN={HF}", HF),
    ("--set", "env.DB_PASSWORD=12345678", "12345678"),
    ("--set", "env.DB_URL=postgres://u:pw-x@db/train", "pw-x"),
    ("--set", "env.DB_URL=postgres://u:p/w@x-y@db/train", "w@x-y"),
    ("--set", "data.source=https://ann:hunter2-x@example.com/a/,launcher=download", "hunter2-x"),
    ("--set", "model.name=nvapi-" + "x1Y2z3-_" * 5, "x1Y2z3-_"),
    ("--set", f"serviceAccount={HF}", HF),
    ("--set", f"{HF}=5", HF),
    (
        "--set-json",
        f'launchers.megatron-lm.args=["--wandb-key","{"0123456789abcdef" * 2}01234567"]',
        "0123456789abcdef",
    ),
]


@pytest.mark.threat(12)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("flag", "text", "secret"), FLAGS)
def test_no_form_of_check_repeats_a_secret(flag: str, text: str, secret: str, form: str) -> None:
    found = chartgen("check", "gke-a3mega", flag, text, "--output", form)
    assert found.exit_code == 1
    assert secret not in found.output
    assert found.output


@pytest.mark.threat(12)
@pytest.mark.parametrize("form", FORMS)
def test_nor_does_it_where_a_file_holds_it(form: str, tmp_path: Path) -> None:
    file = tmp_path / "site.yaml"
    file.write_text(
        f"secretEnv: {{HF_TOKEN: {HF}, DB: hunter2-x}}\nenv: {{DB_PASSWORD: 0o12345678, X_SECRET: 2468e3}}\n"
    )
    found = chartgen("check", "gke-a3mega", "-f", file, "--output", form)
    assert found.exit_code == 1
    for secret in (HF, "hunter2-x", "12345678", "2468"):
        assert secret not in found.output
    assert "secretEnv.HF_TOKEN" in found.output


@pytest.mark.threat(12)
def test_an_error_on_its_way_out_is_masked_too() -> None:
    found = chartgen("render", "gke-a3mega", "my-run", "--set", "secretEnv.DB=hunter2-x")
    assert found.exit_code == 1
    assert "hunter2-x" not in found.output
    assert "secretEnv.DB" in found.output


@pytest.mark.usefixtures("built_helm")
@pytest.mark.parametrize("form", FORMS)
def test_nor_does_lint(form: str) -> None:
    flags = f"secretEnv.DB=hunter2-x,serviceAccount={HF},env.DB_URL=postgres://u:pw-x@db/train"
    found = chartgen("lint", "gke-a3mega", "--set", flags, "--no-cache", "--output", form)
    assert found.exit_code == 1
    for secret in (HF, "hunter2-x", "pw-x"):
        assert secret not in found.output


@pytest.mark.usefixtures("built_helm")
def test_nor_does_what_helm_quotes(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: other, version: 1.0.0}\n")
    (tmp_path / "values.yaml").write_text("token: none\n")
    (tmp_path / "templates" / "a.yaml").write_text('{{ fail (printf "cannot use %s" .Values.token) }}\n')
    found = chartgen("render", tmp_path, "my-run", "--set", f"token={HF}")
    assert found.exit_code == 1
    assert "cannot use (hidden)" in found.output
    assert HF not in found.output


@pytest.mark.threat(12)
def test_what_yaml_makes_of_a_password_is_not_told() -> None:
    (found,) = pitfalls(load("env: {DB_PASSWORD: 0123456}\n", "site.yaml"))
    assert "123456" not in str(found)
    assert "42798" not in str(found)  # 0123456, read as octal


@pytest.mark.parametrize(
    "text",
    [
        "env.MAX_TOKEN=100000000000000000",
        "env.PAD_TOKEN=[PAD]",
        "env.EOS_TOKEN=</s>",
        "env.HF_TOKEN_PATH=/var/run/secrets/hf/token",
        "env.HF_TOKEN=/var/run/secrets/huggingface/token1",
        "env.HTTPS_PROXY=http://proxy.example.com:3128/a@b",
        "env.URL=https://$(USER):$(PASSWORD)@example.com/",
        "secretEnv.HF_TOKEN.secretName=huggingface",
        "use secretEnv: {HF_TOKEN: {secretName: ..., key: ...}}",
        "env.HF_TOKEN: contains a Hugging Face token in plain text",
        'secretEnv={"HF_TOKEN": {"secretName": "hf", "key": "token"}}',
        '{"PAD_TOKEN": ["[PAD]"], "API_KEY": {"valueFrom": {"x": 1}}, "SECRET": []}',
        "image registry.example.com:5000/own@sha256:" + "0123456789abcdef" * 4,
        "commit 0123456789abcdef0123456789abcdef01234567",
        "/data/hf_transfer_is_a_library",
        "tokenizer: meta-llama/Llama-3.1-70B-Instruct",
        "bos_token: <s>, eos_token=<|end_of_text|>, pad_token: tokenizer-of-llama3-70b",
        "password: see docs, token: none, secret: huggingface-2",
        "sk-learn-and-other-libraries-of-python",
        "--password-file /etc/x, --token-path /var/run/token1, --password $PASS, --api-key ${API_KEY}",
        "global-batch-size-of-the-run-1, adminPassword: see docs, existingSecret: huggingface-2, the bearer of it",
        "maxTokens: 4096, padToken: <pad>, tokenPath: /run/token1, - name: HF_TOKEN\n  valueFrom: {}",
        'give --password or --token first, "auth": "none", {"auth": "basic"}, --max-token 16',
    ],
)
def test_ordinary_text_is_left_as_it_is(text: str) -> None:

    assert masked(text) == text


JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
MIXED = "aB3dE5gH7jK9mN1pQ3sT5vW7"
# texts of tools and people, and the part of each that is secret
SHOWN = {
    "--password SWORDFISH": "SWORDFISH",
    "--api-key s3cr3t-Value9": "Value9",
    "--api-key=SWORDFISH": "SWORDFISH",
    "access_token: s3cr3tValue9": "Value9",
    '{"client_secret": "s3cr3tValue9"}': "Value9",
    f"error: {JWT} was rejected": "eyJzdWIi",
    f"https://x.blob.core.windows.net/c/f?sv=2024-11-04&sig={MIXED}%3D&se=2026": MIXED,
    f"https://storage.googleapis.com/b/o?X-Goog-Algorithm=A&X-Goog-Signature={'0a1b' * 20}": "0a1b",
    f"sk-{MIXED}": MIXED,
    f"sk-ant-api03-{MIXED}": MIXED,
    f"key glpat-{MIXED}.": MIXED,
    f"xoxb-1234567890-{MIXED}": MIXED,
    f"dckr_pat_{MIXED}": MIXED,
    f"wandb_v1_{MIXED}": MIXED,
    f"hf_token={MIXED}": MIXED,
    f"client_secret={MIXED}": MIXED,
    f"Authorization: Bearer {MIXED}": MIXED,
    "  password: hunter2x": "hunter2x",
    f"GITLAB_TOKEN: {MIXED}": MIXED,
    f"aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/{MIXED[:18]}": "wJalrX",
    f"AccountName=x;AccountKey={MIXED}==;EndpointSuffix=core": MIXED,
    f"MLFLOW_TRACKING_TOKEN: {MIXED}": MIXED,
    "DB_PASSWORD='correct horse, battery staple'": "battery",
    '{"API_KEY": "abc,def ghi"}': "ghi",
    f"Authorization: ApiKey {MIXED}": MIXED,
    f"AIza{MIXED}{MIXED[:11]}": MIXED,
    f"npm_{MIXED}{MIXED[:12]}": MIXED,
    f"pypi-{MIXED}{MIXED}{MIXED}": MIXED,
    f"curl -H 'X-Api-Key: {MIXED}'": MIXED,
    f"x-auth-token={MIXED}": MIXED,
    "login --user me --password hunter2x now": "hunter2x",
    f"run --api-key '{MIXED}'": MIXED,
    '{"auths": {"nvcr.io": {"auth": "JG9hdXRodG9rZW46bnZhcGk="}}}': "JG9hdX",
    r"{\"auths\": {\"nvcr.io\": {\"auth\": \"JG9hdXRodG9rZW46bnZhcGk=\"}}}": "JG9hdX",
    f"-----BEGIN RSA PRIVATE KEY-----\n{MIXED}+/{MIXED}\n{MIXED}": MIXED,
    "  adminPassword: Sup3rSecret": "Sup3r",
    f'{{"clientSecret": "{MIXED}"}}': MIXED,
    f'{{"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/{MIXED[:18]}"}}': "wJalrX",
    "--set auth.rootPassword=correct": "correct",
    "PGPASSWORD=hunter DB_PASS=hunter SSH_PASSPHRASE=hunter": "hunter",
    "password: !!str hunter2x": "hunter2x",
    '[{"name": "DB_PASSWORD", "value": "hunter"}]': "hunter",
    "+ - name: DB_PASSWORD\n+   value: hunter": "hunter",
    f"the bearer {MIXED} is not known": MIXED,
    f"Authorization:\n  Bearer {MIXED}": MIXED,
    f"ya29.{MIXED}": MIXED,
    f"hvs.{MIXED}": MIXED,
    f"rpa_{MIXED}{MIXED}": MIXED,
    f"glrt-{MIXED}": MIXED,
    f"https://hooks.slack.com/services/T00/B00/{MIXED}": MIXED,
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{MIXED}": MIXED,
    f"-----BEGIN OPENSSH PRIVATE KEY-----\\n{MIXED}\\n": MIXED,
    f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{MIXED}\n-----END RSA PRIVATE KEY-----": MIXED,
}


@pytest.mark.threat(12)
def test_secrets_in_texts_of_any_tool_are_masked() -> None:
    for text, secret in SHOWN.items():
        assert secret not in masked(text), text
        assert masked(masked(text)) == masked(text), text


@pytest.mark.threat(12)
@pytest.mark.parametrize("form", masking.KINDS.values(), ids=[*masking.KINDS])
@given(data=st.data())
def test_each_form_of_token_has_a_known_beginning(form: str, data: st.DataObject) -> None:
    assert re.search(masking._BEGINNINGS, data.draw(st.from_regex(re.compile(form, re.ASCII))))


@pytest.mark.threat(12)
@given(st.one_of(*(st.from_regex(name, fullmatch=True) for name in (masking._NAME, masking._SECRETIVE))))
def test_each_name_of_a_secret_has_a_known_word(name: str) -> None:
    assert re.search(masking._HINTS, name)


@pytest.mark.threat(12)
@given(st.one_of(*(st.from_regex(form) for form in (masking._AUTHORIZATION, masking._SIGNED, masking._SECRET_MAP))))
def test_each_scheme_and_signature_has_a_known_word(text: str) -> None:
    assert re.search(masking._HINTS, text)


@pytest.mark.threat(12)
@pytest.mark.parametrize(
    "form",
    [
        *('{"api_key" : "SECRET"}', '{"apiKey":  "SECRET"}', '{"DB_PASSWORD" :"a SECRET"}', "password:  SECRET"),
        *("password : SECRET", 'password:   "SECRET"', "API_KEY:    SECRET", "x_secret_access_key    = SECRET"),
        *("HF_TOKEN=  SECRET", "HF_TOKEN :SECRET", '{"DB_PASSWORD" : ["x", "SECRET"]}', "TOKEN\t=\tSECRET"),
        '{"name" : "A_TOKEN",  "value" :  "SECRET"}',
    ],
)
def test_blanks_around_a_colon_hide_nothing_from_the_masks(form: str) -> None:
    assert HEX[:20] not in masked(form.replace("SECRET", HEX[:20]))


@pytest.mark.threat(12)
def test_nor_does_the_preset_of_a_config_json(tmp_path: Path) -> None:
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "llama", **sizes, "vocab_size": 100, "api_key": HEX[:20]}))
    ran = chartgen("preset", "--from-hf", file)
    assert "api_key" in ran.output
    assert HEX[:20] not in ran.output


def test_masking_twice_is_masking_once() -> None:
    for _, text, secret in FLAGS:
        assert secret not in masked(text)
        assert masked(masked(text)) == masked(text)


@pytest.mark.threat(12)
def test_data_are_masked_by_their_keys() -> None:
    data = {
        "env": [{"name": "DB_PASSWORD", "value": "x"}, {"name": "A", "value": "b"}],
        "secretEnv": {"T": "y"},
        "args": ["--db-password", "z", "--name", "c"],
        "auth": {"rootPassword": "x", "clientSecret": MIXED, "existingSecret": "a-name"},
    }
    assert json.loads(json.dumps(masked_value(data))) == {
        "env": [{"name": "DB_PASSWORD", "value": HIDDEN}, {"name": "A", "value": "b"}],
        "secretEnv": {"T": HIDDEN},
        "args": ["--db-password", HIDDEN, "--name", "c"],
        "auth": {"rootPassword": HIDDEN, "clientSecret": HIDDEN, "existingSecret": "a-name"},
    }


@pytest.mark.threat(12)
def test_no_line_of_progress_repeats_a_secret(capsys: pytest.CaptureFixture[str]) -> None:
    """`wait` printed the message of a failed pod as it was."""
    note(f"failed: pod x failed: HF_TOKEN={HF}")
    assert capsys.readouterr().err == f"> failed: pod x failed: HF_TOKEN={HIDDEN}\n"
