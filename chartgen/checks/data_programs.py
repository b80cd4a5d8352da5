"""What programs that fetch and prepare data must be told: where from, with which tokenizer, under which name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from chartgen.checks.claim import Check, Claim
from chartgen.checks.job import Job

# Training files of the Pile, 00 to 29.
_PILE_FILES = 30
_HTTP_FOLDER = re.compile(r"https?://.*/")
_LAUNCHER = ("launcher",)
_MAKERS = ("pile-dataprep", "megatron-preprocess")


def data_set_to_make(job: Job) -> Iterator[Claim]:
    """A program that makes data sets needs their name, and how many files there are to make them of."""
    program, data = job.launcher.name, job.values["data"]
    if program in _MAKERS and not data["name"]:
        yield Claim("data.name", f"empty, and {program} names the data set by it", "give one", _LAUNCHER)
    if program == "pile-dataprep" and not data["shards"]:
        message = "0, and pile-dataprep needs the number of files to prepare"
        yield Claim("data.shards", message, f"use 1 to {_PILE_FILES}", _LAUNCHER)
    elif program == "pile-dataprep" and not data["source"] and data["shards"] > _PILE_FILES:
        message = f"{data['shards']} is more than the {_PILE_FILES} files of the Pile"
        yield Claim("data.shards", message, f"use {_PILE_FILES} or less, or data.source")
    elif program == "megatron-preprocess" and data["shards"]:
        message = f"{data['shards']}, and megatron-preprocess makes one data set of one file"
        yield Claim("data.shards", message, "use 0, or launcher pile-dataprep", _LAUNCHER)


def source_of_the_data_set(job: Job) -> Iterator[Claim]:
    """The Pile's program counts up the files of a folder, Megatron-LM's tokenizes the one file that it is given."""
    program, source = job.launcher.name, job.values["data"]["source"]
    if program == "pile-dataprep" and source and not _HTTP_FOLDER.fullmatch(source):
        message = f"{source} is not the address of a folder with 00.jsonl.zst and so on"
        yield Claim("data.source", message, "use an https:// address that ends in /, or none for the Pile")
    elif program == "megatron-preprocess" and (not source or source.endswith("/")):
        message = f"{source or 'empty'}, and megatron-preprocess needs the address of one file"
        yield Claim("data.source", message, "use the address that download fetched it from", _LAUNCHER)


def sources_to_fetch(job: Job) -> Iterator[Claim]:
    """The download program needs something to fetch, and a web server does not tell which files a folder has."""
    if job.launcher.name != "download":
        return
    sources = {f"{key}.source": job.values[key]["source"] for key in ("data", "tokenizer", "checkpoint")}
    if not any(sources.values()):
        message = "empty, and download has nothing to fetch"
        yield Claim("data.source", message, "give it, tokenizer.source or checkpoint.source", _LAUNCHER)
    for key in ("data.source", "checkpoint.source"):
        if _HTTP_FOLDER.fullmatch(sources[key]):
            message = f"{sources[key]} is a folder, which https:// cannot list"
            yield Claim(key, message, "use the address of a file, or hf:// or gs:// for a folder")


def fetched_files_have_a_place(job: Job) -> Iterator[Claim]:
    """What is fetched goes where training looks for it: the tokenizer's kind says which files there are."""
    tokenizer, checkpoint = job.values["tokenizer"], job.values["checkpoint"]
    if job.launcher.name != "download":
        return
    if tokenizer["source"] and (tokenizer["kind"] == "none" or not tokenizer["path"]):
        message = f"with kind {tokenizer['kind']} and {'a' if tokenizer['path'] else 'no'} path nothing can be fetched"
        yield Claim("tokenizer.source", message, "give tokenizer.kind and tokenizer.path, or remove it")
    if checkpoint["source"] and not checkpoint["from"]:
        message = "has no directory to put the weights into"
        yield Claim("checkpoint.source", message, "give checkpoint.from, or remove it")


def tokenizer_to_prepare_with(job: Job) -> Iterator[Claim]:
    """A program that makes data sets turns text into the numbers of a tokenizer, which it reads from files."""
    program, tokenizer = job.launcher.name, job.values["tokenizer"]
    if program in _MAKERS and tokenizer["kind"] == "none":
        message = f"none, and {program} needs a tokenizer"
        yield Claim("tokenizer.kind", message, "use gpt2, sentencepiece or huggingface, with tokenizer.path", _LAUNCHER)
    elif program in _MAKERS and not tokenizer["path"]:
        message = f"empty, and {program} reads {tokenizer['kind']} files from it"
        yield Claim("tokenizer.path", message, "give their directory", ("tokenizer.kind",))


_DATA = ("data",)
_PREPROCESS = "NVIDIA/Megatron-LM core_v0.19.0, tools/preprocess_data.py"
_PILE = "NVIDIA/NeMo-Framework-Launcher 24.07, nemo_launcher/collections/dataprep_scripts/pile_dataprep"
PREPARATION = (
    Check(data_set_to_make, f"{_PILE}; {_PREPROCESS}", tasks=_DATA),
    Check(source_of_the_data_set, f"{_PILE}; {_PREPROCESS}", tasks=_DATA),
    Check(sources_to_fetch, "chartgen/library/launchers/download, its sources", tasks=_DATA),
    Check(fetched_files_have_a_place, "chartgen/library/launchers/download, its sources", tasks=_DATA),
    Check(tokenizer_to_prepare_with, _PREPROCESS, tasks=_DATA),
)
