"""The data programs, run for real: the chart's own scripts, a web server on this machine, recorders for the tools."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pod_runner import Machine, run
from website import TOKEN, Site, answer, download, files, hub, serving

LORA_IMAGE = "launchers.mlperf-llama2-lora.image=r.example/lora:1"


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as found:
        yield found


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    # no proxy of this machine stands between the programs and the server
    return Machine(tmp_path, {"no_proxy": "*", "GCE_METADATA_HOST": "127.0.0.1:9"})


# -- download


def test_file_is_fetched_and_unpacked_once(site: Site, machine: Machine) -> None:
    text = b'{"text": "line"}\n' * 1000
    site.files = {"/oscar.jsonl.xz": lzma.compress(text)}
    found = download(f"data.source={site.address}/oscar.jsonl.xz,data.directory=/data/gpt2")
    code, log = machine.finish(found)
    assert code == 0, log
    assert files(machine.folder / "data") == ["gpt2/oscar.jsonl"]
    assert (machine.folder / "data/gpt2/oscar.jsonl").read_bytes() == text
    again = machine.finish(found)
    assert again[0] == 0
    assert "oscar.jsonl already exists" in again[1]
    assert len(site.asked) == 1


def test_gzip_is_unpacked_too(site: Site, machine: Machine) -> None:
    site.files = {"/a.jsonl.gz": gzip.compress(b"text")}
    assert machine.finish(download(f"data.source={site.address}/a.jsonl.gz"))[0] == 0
    assert (machine.folder / "data/a.jsonl").read_bytes() == b"text"


def test_zst_is_refused_where_python_has_no_module_for_it(site: Site, machine: Machine) -> None:
    site.files = {"/a.jsonl.zst": b"packed"}
    code, log = machine.finish(download(f"data.source={site.address}/a.jsonl.zst"))
    assert code == 1
    assert "only Python 3.14 or the module zstandard unpack it; set launchers.download.image" in log


@pytest.mark.parametrize("module", [lzma, gzip])
def test_a_damaged_archive_fails_and_is_fetched_again(module: Any, site: Site, machine: Machine) -> None:
    good, name = module.compress(b"text" * 100), {lzma: "a.xz", gzip: "a.gz"}[module]
    site.files = {f"/{name}": good[:10] + b"\xff" * 12 + good[22:]}
    found = download(f"data.source={site.address}/{name}")
    code, log = machine.finish(found)
    assert code == 1
    assert "cannot be unpacked" in log
    site.files = {f"/{name}": good}
    assert machine.finish(found)[0] == 0
    assert files(machine.folder / "data") == ["a"]


def broken_off(body: bytes, sent: int) -> Callable[[BaseHTTPRequestHandler], None]:
    """Promise a whole file and hang up in the middle of it."""

    def hang_up(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:sent])
        handler.wfile.flush()
        handler.connection.close()
        handler.close_connection = True

    return hang_up


def test_a_transfer_that_breaks_off_goes_on_where_it_stopped(site: Site, machine: Machine) -> None:
    body = bytes(range(256)) * 4000
    site.files = {"/big.jsonl": body}
    site.instead = {"/big.jsonl": [broken_off(body, 300_000)]}
    code, log = machine.finish(download(f"data.source={site.address}/big.jsonl"))
    assert code == 0, log
    assert "attempt 1 of 6: broke off after 300000 of 1024000 bytes" in log
    assert (machine.folder / "data/big.jsonl").read_bytes() == body
    assert [headers.get("Range") for _, headers in site.asked] == [None, "bytes=300000-"]


def test_what_an_ended_pod_left_is_used(site: Site, machine: Machine) -> None:
    (machine.folder / "data").mkdir()
    (machine.folder / "data/a.jsonl.part").write_bytes(b"first ")
    site.files = {"/a.jsonl": b"first second"}
    assert machine.finish(download(f"data.source={site.address}/a.jsonl"))[0] == 0
    assert (machine.folder / "data/a.jsonl").read_bytes() == b"first second"
    assert [headers["Range"] for _, headers in site.asked] == ["bytes=6-"]


def test_leftovers_of_another_file_are_dropped(site: Site, machine: Machine) -> None:
    (machine.folder / "data").mkdir()
    (machine.folder / "data/a.jsonl.part").write_bytes(b"longer than the file")
    site.files = {"/a.jsonl": b"short"}
    assert machine.finish(download(f"data.source={site.address}/a.jsonl"))[0] == 0
    assert (machine.folder / "data/a.jsonl").read_bytes() == b"short"


def test_a_busy_server_is_asked_again(site: Site, machine: Machine) -> None:
    site.files = {"/a": b"x"}
    site.instead = {"/a": [lambda handler: answer(handler, 503)]}
    code, log = machine.finish(download(f"data.source={site.address}/a"))
    assert code == 0
    assert "attempt 1 of 6: HTTP Error 503" in log


def test_a_missing_file_fails_at_once_and_leaves_nothing(site: Site, machine: Machine) -> None:
    code, log = machine.finish(download(f"data.source={site.address}/a.jsonl?signature=secret"))
    assert code == 1
    assert f"chartgen: {site.address}/a.jsonl: 404 Not Found; check the address" in log
    assert "signature" not in log
    assert len(site.asked) == 1
    assert files(machine.folder / "data") == []


def test_a_repository_is_fetched_whole(site: Site, machine: Machine) -> None:
    held = {"weights/a/0.0": b"zero" * 100, "weights/a/1.0": b"one", "context/model.yaml": b"yaml"}
    hub(site, "", "org/weights", "main", held)
    found = download("checkpoint.source=hf://org/weights,checkpoint.from=/data/model")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address})
    assert code == 0, log
    model = machine.folder / "data/model"
    assert {path: (model / path).read_bytes() for path in files(model)} == held
    before = len(site.asked)
    assert machine.finish(found, {"HF_ENDPOINT": site.address})[0] == 0
    assert all("/tree/" in path for path in site.paths()[before:])


def test_a_file_that_is_not_its_listed_size_is_fetched_again(site: Site, machine: Machine) -> None:
    hub(site, "", "o/n", "main", {"a": b"right"})
    (machine.folder / "data/model").mkdir(parents=True)
    (machine.folder / "data/model/a").write_bytes(b"half")
    code, _ = machine.finish(
        download("checkpoint.source=hf://o/n,checkpoint.from=/data/model"), {"HF_ENDPOINT": site.address}
    )
    assert code == 0
    assert (machine.folder / "data/model/a").read_bytes() == b"right"


def test_a_file_of_another_size_than_listed_is_an_error(site: Site, machine: Machine) -> None:
    hub(site, "", "o/n", "main", {"a": b"right"})
    site.files["/o/n/resolve/main/a"] = b"not right"
    code, log = machine.finish(
        download("checkpoint.source=hf://o/n,checkpoint.from=/data/model"), {"HF_ENDPOINT": site.address}
    )
    assert code == 1
    assert "has 9 bytes, but 5 in its listing" in log
    assert files(machine.folder / "data") == []


def test_names_that_lead_out_of_the_directory_are_refused(site: Site, machine: Machine) -> None:
    hub(site, "", "o/n", "main", {"../../etc/passwd": b"root"})
    found = download("checkpoint.source=hf://o/n,checkpoint.from=/data/model")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address})
    assert code == 1
    assert "its name leads out of " in log
    assert files(machine.folder / "data") == []


COMMIT = "0123456789abcdef0123456789abcdef01234567"
READS = """
import sys
from huggingface_hub import constants, hf_hub_download, snapshot_download
assert constants.HF_HUB_OFFLINE
for file in ("config.json", "nested/code.py"):
    print(open(hf_hub_download("org/model", file)).read())
print(snapshot_download("org/model"))
"""


def test_the_hubs_own_library_reads_the_cache_without_the_hub(site: Site, machine: Machine) -> None:
    described = {"config.json": b"{}", "nested/code.py": b"pass", "model.safetensors": b"large"}
    hub(site, "", "org/model", COMMIT, described)
    site.files["/api/models/org/model/revision/main"] = json.dumps({"sha": COMMIT}).encode()
    found = download("launchers.download.models={org/model}")
    site.token = TOKEN
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address, "HF_TOKEN": TOKEN})
    assert code == 0, log
    assert not any("safetensors" in path for path in site.paths())
    asked = len(site.asked)
    cache = machine.folder / "data/huggingface"
    env = {**os.environ, "HF_HOME": str(cache), "HF_HUB_OFFLINE": "1", "HF_ENDPOINT": site.address}
    done = subprocess.run([sys.executable, "-c", READS], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["{}", "pass", str(cache / "hub/models--org--model/snapshots" / COMMIT)]
    assert len(site.asked) == asked


@pytest.mark.parametrize("told", [b"<html>", b"[]", b"{}", b'{"sha": "../../x"}', b'{"sha": 7}'])
def test_a_model_without_a_commit_is_an_error(told: bytes, site: Site, machine: Machine) -> None:
    site.files["/api/models/org/model/revision/main"] = told
    code, log = machine.finish(download("launchers.download.models={org/model}"), {"HF_ENDPOINT": site.address})
    assert (code, "org/model: the answer of the server names no commit" in log) == (1, True)
    assert files(machine.folder / "data") == []


def test_a_model_of_which_a_file_is_missing_is_not_in_the_cache(site: Site, machine: Machine) -> None:
    hub(site, "", "org/model", COMMIT, {"config.json": b"{}", "tokenizer.json": b"{}"})
    site.files["/api/models/org/model/revision/main"] = json.dumps({"sha": COMMIT}).encode()
    del site.files[f"/org/model/resolve/{COMMIT}/config.json"]
    code, _ = machine.finish(download("launchers.download.models={org/model}"), {"HF_ENDPOINT": site.address})
    assert code == 1
    assert not list(machine.folder.rglob("refs"))


def test_data_set_of_a_revision_comes_with_the_benchmarks_preset(site: Site, machine: Machine) -> None:
    from rendered import VALUES

    revision = "21ff1233ee3e87bc780ab719c755170148aba1cb"
    parquet = {f"data/{split}-00000-of-00001.parquet": split.encode() for split in ("train", "validation")}
    hub(site, "datasets/", "regisss/scrolls_gov_report_preprocessed_mlperf_2", revision, parquet)
    hub(site, "", "michal1270/llama2_70b_nemo_zarr", "main", {"context/io.json": b"{}"})
    found = run("launcher=download", LORA_IMAGE, files=(VALUES / "llama2-70b-lora.yaml",))
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address})
    assert code == 0, log
    assert files(machine.folder / "data") == [
        *(f"gov_report/{path}" for path in sorted(parquet)),
        "model/context/io.json",
    ]


def test_token_opens_a_gated_repository_and_reaches_no_other_host(site: Site, machine: Machine) -> None:
    hub(site, "", "org/gated", "main", {"a/file.jsonl": b"gated", "b": b""})
    site.token = TOKEN
    path = "/org/gated/resolve/main/a/file.jsonl"
    with serving(Site(files={"/store": b"gated"})) as store:
        moved = [lambda handler: answer(handler, 302, Location="/cache/file")]
        site.instead[path] = moved
        site.instead["/cache/file"] = [lambda handler: answer(handler, 302, Location=f"{store.address}/store")]
        found = download("data.source=hf://org/gated/a/file.jsonl")
        code, log = machine.finish(found, {"HF_ENDPOINT": site.address, "HF_TOKEN": TOKEN})
        assert code == 0, log
        assert "Authorization" not in store.asked[0][1]
    assert [headers.get("Authorization") for _, headers in site.asked] == [f"Bearer {TOKEN}"] * 2
    assert TOKEN not in log
    assert (machine.folder / "data/file.jsonl").read_bytes() == b"gated"


@pytest.mark.parametrize("token", ["", "hf_wrong"])
def test_a_wrong_token_is_told_and_not_shown(token: str, site: Site, machine: Machine) -> None:
    hub(site, "", "org/gated", "main", {"a": b"gated", "b": b""})
    site.token = TOKEN
    found = download("checkpoint.source=hf://org/gated,checkpoint.from=/data/model")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address, "HF_TOKEN": token})
    assert code == 1
    assert "401 Unauthorized; set secretEnv.HF_TOKEN, or renew the token" in log
    assert "hf_wrong" not in log


def test_bucket_is_fetched_with_the_pods_account(site: Site, machine: Machine) -> None:
    held = {"wiki/data.bin": b"bin", "wiki/data.idx": b"idx", "wiki/": b"", "wikis": b"no"}
    for name, body in held.items():
        site.files[f"/storage/v1/b/bucket/o/{name.replace('/', '%2F')}?alt=media"] = body
    account = "/computeMetadata/v1/instance/service-accounts/default/token"
    site.files[account] = b'{"access_token": "cloud"}'

    def listing(handler: BaseHTTPRequestHandler) -> None:
        query = parse_qs(urlsplit(handler.path).query)
        names = [name for name in held if name.startswith(query["prefix"][0])]
        later = "pageToken" in query
        items = [{"name": name, "size": str(len(held[name]))} for name in (names[1:] if later else names[:1])]
        answer(handler, 200, json.dumps({"items": items} | ({} if later else {"nextPageToken": "a b"})).encode())

    site.instead["/storage/v1/b/bucket/o"] = [listing] * 2
    found = download("data.source=gs://bucket/wiki/,data.directory=/data/wikipedia")
    host = site.address.removeprefix("http://")
    code, log = machine.finish(found, {"STORAGE_EMULATOR_HOST": host, "GCE_METADATA_HOST": host})
    assert code == 0, log
    assert files(machine.folder / "data") == ["wikipedia/data.bin", "wikipedia/data.idx"]
    asked = dict(site.asked)
    assert asked[account]["Metadata-Flavor"].lower() == "google"
    assert all(headers.get("Authorization") == "Bearer cloud" for path, headers in site.asked if path != account)


def test_public_bucket_needs_no_account(site: Site, machine: Machine) -> None:
    site.files["/storage/v1/b/bucket/o/a%2Fb.jsonl?alt=media"] = b"text"
    code, log = machine.finish(download("data.source=gs://bucket/a/b.jsonl"), {"STORAGE_EMULATOR_HOST": site.address})
    assert code == 0, log
    assert (machine.folder / "data/b.jsonl").read_bytes() == b"text"
    assert "Authorization" not in site.asked[-1][1]


def test_tokenizer_of_a_folder_has_its_standard_files(site: Site, machine: Machine) -> None:
    site.files = {f"/bert/{name}": name.encode() for name in ("gpt2-vocab.json", "gpt2-merges.txt")}
    found = download(f"tokenizer.kind=gpt2,tokenizer.path=/data/gpt2,tokenizer.source={site.address}/bert/")
    code, log = machine.finish(found)
    assert code == 0, log
    assert files(machine.folder / "data") == ["gpt2/gpt2-merges.txt", "gpt2/gpt2-vocab.json"]


def test_a_folder_without_a_needed_file_fails(site: Site, machine: Machine) -> None:
    site.files = {"/bert/gpt2-vocab.json": b"{}"}
    found = download(f"tokenizer.kind=gpt2,tokenizer.path=/data/gpt2,tokenizer.source={site.address}/bert/")
    code, log = machine.finish(found)
    assert code == 1
    assert "gpt2-merges.txt: 404" in log


def test_optional_files_of_a_folder_may_be_missing(site: Site, machine: Machine) -> None:
    site.files = {f"/t/{name}": b"{}" for name in ("tokenizer.json", "tokenizer_config.json")}
    found = download(f"tokenizer.kind=huggingface,tokenizer.path=/data/t,tokenizer.source={site.address}/t/")
    code, log = machine.finish(found)
    assert code == 0, log
    assert files(machine.folder / "data") == ["t/tokenizer.json", "t/tokenizer_config.json"]


def test_tokenizer_of_a_repository_comes_without_its_weights(site: Site, machine: Machine) -> None:
    held = {"vocab.json": b"v", "merges.txt": b"m", "model.safetensors": b"140 GB"}
    hub(site, "", "openai-community/gpt2", "main", held)
    found = download("tokenizer.kind=gpt2,tokenizer.path=/data/gpt2,tokenizer.source=hf://openai-community/gpt2")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address})
    assert code == 0, log
    assert files(machine.folder / "data") == ["gpt2/gpt2-merges.txt", "gpt2/gpt2-vocab.json"]
    assert not any("safetensors" in path for path in site.paths())


def test_a_repository_of_another_kind_of_tokenizer_is_told(site: Site, machine: Machine) -> None:
    hub(site, "", "o/n", "main", {"tokenizer.json": b"{}", "config.json": b"{}"})
    found = download("tokenizer.kind=sentencepiece,tokenizer.path=/data/t,tokenizer.source=hf://o/n")
    code, log = machine.finish(found, {"HF_ENDPOINT": site.address})
    assert code == 1
    assert "hf://o/n: has no tokenizer.model; is tokenizer.kind right?" in log


def test_all_that_fails_is_told_and_the_rest_is_kept(site: Site, machine: Machine) -> None:
    site.files = {"/good": b"x"}
    found = download(
        f"data.source={site.address}/good,tokenizer.kind=gpt2,tokenizer.path=/data/t,tokenizer.source={site.address}/none/"
    )
    code, log = machine.finish(found)
    assert code == 1
    assert len(re.findall(r": 404 Not Found", log)) == 2
    assert files(machine.folder / "data") == ["good"]


# -- megatron-preprocess

# Stands for the tools: writes what it is asked to write, or less.
TOOL = """
import os, sys
prefix = sys.argv[sys.argv.index("--output-prefix") + 1]
text = open(sys.argv[sys.argv.index("--input") + 1]).read()
if os.environ.get("FAIL_ON", "-") in text: sys.exit(3)
open(prefix + "_text_document.bin", "w").write(text)
if "NO_INDEX" not in os.environ: open(prefix + "_text_document.idx", "w").write("index of " + text)
"""
PREPROCESS = (
    "launcher=megatron-preprocess,data.directory=/data/gpt2,data.name=my-gpt2,tokenizer.kind=gpt2,tokenizer.path=/data/gpt2",
    "data.source=https://example.com/oscar-1GB.jsonl.xz,launchers.megatron-preprocess.workers=64",
)


def preprocess(machine: Machine, **more: str) -> tuple[int, str, list[list[str]]]:
    record = machine.program("opt/megatron-lm/tools/preprocess_data.py", TOOL)
    raw = machine.folder / "data/gpt2/oscar-1GB.jsonl"
    raw.parent.mkdir(parents=True, exist_ok=True)
    raw.write_text("raw")
    code, log = machine.finish(run(*PREPROCESS), more)
    return code, log, [json.loads(line)[0][1:] for line in record.read_text().splitlines()] if record.exists() else []


def test_preprocessing_writes_what_training_reads(machine: Machine) -> None:
    code, log, calls = preprocess(machine)
    assert code == 0, log
    folder = machine.folder / "data/gpt2"
    assert files(folder) == ["my-gpt2_text_document.bin", "my-gpt2_text_document.idx", "oscar-1GB.jsonl"]
    assert calls == [
        [
            "--input", f"{folder}/oscar-1GB.jsonl",
            "--tokenizer-type", "GPT2BPETokenizer",
            "--vocab-file", f"{folder}/gpt2-vocab.json",
            "--merge-file", f"{folder}/gpt2-merges.txt",
            "--append-eod", "--workers", "64",
            "--output-prefix", f"{folder}/my-gpt2.part",
        ]
    ]  # fmt: skip


def test_preprocessing_again_does_nothing(machine: Machine) -> None:
    assert preprocess(machine)[0] == 0
    code, log, calls = preprocess(machine)
    assert (code, len(calls)) == (0, 1)
    assert "my-gpt2_text_document already exists" in log


@pytest.mark.parametrize("fault", ["NO_INDEX", "FAIL_ON"])
def test_preprocessing_that_fails_leaves_no_data_set(fault: str, machine: Machine) -> None:
    code, log, _ = preprocess(machine, **{fault: "raw"})
    assert code == (3 if fault == "FAIL_ON" else 1)
    assert fault != "NO_INDEX" or "wrote no " in log
    assert not list((machine.folder / "data/gpt2").glob("my-gpt2_text_document*"))
    assert preprocess(machine)[0] == 0


# -- mlperf-preprocess

CONVERTER = """
import os, pathlib, shutil
class DatasetProcessor:
    def __init__(self, directory): self.directory = pathlib.Path(directory)
    def convert_split(self, split):
        if os.environ.get("FAIL_ON") == split: raise ValueError("no such column")
        shutil.copy(self.directory / "data" / f"{split}-00000-of-00001.parquet", self.directory / f"{split}.npy")
"""


def gov_report(machine: Machine, **more: str) -> tuple[int, str]:
    converter = machine.folder / "image/scripts/download_dataset.py"
    converter.parent.mkdir(parents=True, exist_ok=True)
    converter.write_text(CONVERTER)
    program = f"launchers.mlperf-llama2-lora.program={machine.folder}/image/train.py"
    return machine.finish(
        run("launcher=mlperf-preprocess", LORA_IMAGE, program, "data.directory=/data/gov_report"), more
    )


def test_benchmarks_data_is_converted_once(machine: Machine) -> None:
    data = machine.folder / "data/gov_report/data"
    data.mkdir(parents=True)
    for split in ("train", "validation"):
        (data / f"{split}-00000-of-00001.parquet").write_text(split)
    assert gov_report(machine, FAIL_ON="validation")[0] != 0
    assert [path.name for path in data.parent.glob("*.npy")] == ["train.npy"]
    code, log = gov_report(machine)
    assert code == 0, log
    assert [(data.parent / f"{split}.npy").read_text() for split in ("train", "validation")] == ["train", "validation"]
    assert not (data.parent / ".preprocess").exists()
    assert "train.npy already exists" in log
    assert sorted(path.name for path in data.iterdir()) == [
        f"{split}-00000-of-00001.parquet" for split in ("train", "validation")
    ]


@pytest.mark.threat(6)
def test_programs_write_through_no_link_that_others_left(machine: Machine, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    data = machine.folder / "data/gov_report/data"
    data.mkdir(parents=True)
    for split in ("train", "validation"):
        (data / f"{split}-00000-of-00001.parquet").write_text(split)
    (data.parent / ".preprocess").symlink_to(outside)
    (machine.folder / "data/gpt2").mkdir()
    (machine.folder / "data/gpt2/my-gpt2.part_text_document.bin").symlink_to(outside / "file")
    (machine.folder / "data/gpt2/my-gpt2_text_document.idx").symlink_to(outside)
    (data.parent / "train.npy").symlink_to(outside)
    assert gov_report(machine)[0] == preprocess(machine)[0] == 0
    assert list(outside.iterdir()) == []


def test_benchmarks_data_must_be_downloaded_first(machine: Machine) -> None:
    (machine.folder / "data/gov_report").mkdir(parents=True)
    code, log = gov_report(machine)
    assert code == 1
    assert "has no train split; run the launcher download first" in log


# -- pile-dataprep

PILE = (
    "launcher=pile-dataprep,data.directory=/data/pile,data.name=my-gpt3,tokenizer.kind=gpt2,tokenizer.path=/data/gpt2"
)
NEMO_TOOL = "opt/NeMo/scripts/nlp_language_modeling/preprocess_data_for_megatron.py"


@dataclass
class Pile:
    """The Pile on a server, and the machine that prepares it."""

    site: Site
    machine: Machine

    def prepare(self, shards: int, *sets: str, rank: int = 0, **more: str) -> tuple[int, str]:
        source = f"data.source={self.site.address}/train/"
        return self.machine.finish(run(PILE, f"data.shards={shards}", source, *sets), more, rank=rank)

    def tokenized(self) -> list[list[str]]:
        record = self.machine.folder / "preprocess_data_for_megatron.py.calls"
        return [json.loads(line)[0][1:] for line in record.read_text().splitlines()] if record.exists() else []


@pytest.fixture
def pile(site: Site, machine: Machine) -> Pile:
    assert shutil.which("zstd"), "the test packs files with it"
    for number in range(5):
        packed = subprocess.run(
            ["zstd", "-c"], input=f"text {number:02}".encode(), capture_output=True, check=True
        ).stdout
        site.files[f"/train/{number:02}.jsonl.zst"] = packed
    machine.program(NEMO_TOOL, TOOL)
    return Pile(site, machine)


def test_one_number_is_how_many_files_are_prepared(pile: Pile) -> None:
    code, log = pile.prepare(3, "launchers.pile-dataprep.workers=2")
    assert code == 0, log
    folder = pile.machine.folder / "data/pile"
    assert files(folder) == [f"my-gpt3_{n:02}_text_document.{kind}" for n in range(3) for kind in ("bin", "idx")]
    assert [(folder / f"my-gpt3_{n:02}_text_document.bin").read_text() for n in range(3)] == [
        f"text {n:02}" for n in range(3)
    ]
    assert sorted(pile.site.paths()) == [f"/train/{n:02}.jsonl.zst" for n in range(3)]
    words = pile.tokenized()[0]
    assert words[: words.index("--input")] == [
        "--merge-file", f"{pile.machine.folder}/data/gpt2/gpt2-merges.txt",
        "--tokenizer-library", "megatron",
        "--tokenizer-type", "GPT2BPETokenizer",
        "--vocab-file", f"{pile.machine.folder}/data/gpt2/gpt2-vocab.json",
        "--dataset-impl", "mmap", "--append-eod",
    ]  # fmt: skip


def test_a_larger_number_prepares_only_what_is_new(pile: Pile) -> None:
    assert pile.prepare(1)[0] == 0
    code, log = pile.prepare(2)
    assert code == 0
    assert "my-gpt3_00 already exists" in log
    assert pile.site.paths() == ["/train/00.jsonl.zst", "/train/01.jsonl.zst"]


def test_pods_share_the_files(pile: Pile) -> None:
    sets = "launchers.pile-dataprep.nodes=2,launchers.pile-dataprep.workers=2"
    assert pile.prepare(5, sets, rank=1)[0] == 0
    assert sorted(pile.site.paths()) == ["/train/02.jsonl.zst", "/train/03.jsonl.zst"]
    assert pile.prepare(5, sets, rank=0)[0] == 0
    assert sorted(pile.site.paths()) == [f"/train/{n:02}.jsonl.zst" for n in range(5)]


def test_one_worker_that_fails_fails_the_pod(pile: Pile) -> None:
    code, _ = pile.prepare(4, "launchers.pile-dataprep.workers=4", FAIL_ON="text 02")
    assert code == 3
    folder = pile.machine.folder / "data/pile"
    assert not list(folder.glob("my-gpt3_02_text_document*"))
    code, log = pile.prepare(4, "launchers.pile-dataprep.workers=4")
    assert code == 0, log
    assert len(files(folder)) == 8
    # what was fetched for the file that failed is used, not fetched again
    assert pile.site.paths().count("/train/02.jsonl.zst") == 1


def test_what_an_attempt_left_behind_is_removed(pile: Pile) -> None:
    """The pod ended after a data set was in its place, and before its text was removed."""
    assert pile.prepare(1)[0] == 0
    folder = pile.machine.folder / "data/pile"
    before = files(folder)
    for suffix in (".jsonl", ".jsonl.zst"):
        (folder / f"my-gpt3_00{suffix}").write_text("left behind")
    assert pile.prepare(1)[0] == 0
    assert files(folder) == before


@pytest.mark.threat(6)
@pytest.mark.parametrize("link", [".jsonl.zst.part", ".jsonl.part", ".part_text_document.bin"])
@pytest.mark.parametrize("kind", ["pipe", "file", "folder"])
def test_what_others_left_where_a_file_is_written_goes(link: str, kind: str, pile: Pile, tmp_path: Path) -> None:
    path = pile.machine.folder / f"data/pile/my-gpt3_00{'_text_document.idx' if kind == 'folder' else link}"
    path.parent.mkdir(parents=True)
    other = tmp_path / "other"
    if kind == "folder":
        other.mkdir()
    else:
        other.touch()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(other)
    code, log = pile.prepare(1)
    assert code == 0, log
    assert not (list(other.iterdir()) if kind == "folder" else other.read_bytes())
    assert (path.parent / "my-gpt3_00_text_document.bin").read_text() == "text 00"


def test_a_tool_that_writes_nothing_fails(pile: Pile) -> None:
    code, log = pile.prepare(1, NO_INDEX="yes")
    assert code == 1
    assert "wrote no " in log


def test_a_file_that_the_pile_does_not_have_fails(pile: Pile) -> None:
    code, log = pile.prepare(6, "launchers.pile-dataprep.workers=1")
    assert code == 22
    assert "404" in log
    assert len(list((pile.machine.folder / "data/pile").glob("*.idx"))) == 5


def test_a_file_of_the_pile_that_breaks_off_goes_on(pile: Pile) -> None:
    body = pile.site.files["/train/00.jsonl.zst"]
    pile.site.instead["/train/00.jsonl.zst"] = [broken_off(body, 5)]
    code, log = pile.prepare(1)
    assert code == 0, log
    assert [headers.get("Range") for _, headers in pile.site.asked] == [None, "bytes=5-"]


@pytest.mark.threat(6)
def test_the_token_is_sent_to_the_hub_alone_and_not_shown(pile: Pile) -> None:
    assert pile.prepare(1, HF_TOKEN=TOKEN)[0] == 0
    assert [headers.get("Authorization") for _, headers in pile.site.asked] == [None], "it is not huggingface.co"
    pile.site.token = TOKEN
    code, log = pile.prepare(2, HF_TOKEN=TOKEN, HF_ENDPOINT=pile.site.address)
    assert code == 0, log
    assert pile.site.asked[-1][1]["Authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in log


def test_a_pod_that_is_ended_ends_its_workers(pile: Pile) -> None:
    waiting = threading.Event()

    def hold(handler: BaseHTTPRequestHandler) -> None:
        waiting.set()
        time.sleep(3)
        answer(handler, 500)

    pile.site.instead["/train/00.jsonl.zst"] = [hold]
    source = f"data.source={pile.site.address}/train/"
    with pile.machine.start(run(PILE, "data.shards=1", source)) as process:
        assert waiting.wait(180)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=180)
        assert process.returncode == 143
