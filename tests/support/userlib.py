"""A user's own folder with a target and a fragment, and the command line in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from answers import answers
from click.testing import CliRunner, Result

from chartgen.cli import main
from chartgen.composer.assembly import compose
from chartgen.composer.library import open_library
from chartgen.composer.target import load_target
from chartgen.helm.chart import Chart

TARGET = """\
description: Machines of a test
platform: onprem
workload: jobset
machines:
  box-8:
    gpus: 8
    gpu: h100-80gb
    capacity: {nvidia.com/gpu: "8", cpu: "96", memory: 1Ti}
fragments: [nvidia-gpu, storage, storage-memory, FRAGMENTS]
launchers: [nemo-1]
sources: [the test]
"""
FRAGMENT = "description: A fragment of a test\nsources: [the test]\n"


def write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, each with its folder, and their line ends as they are."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def library(
    folder: Path, files: Mapping[str, str], *fragments: str, more: str = "", gpu_only: tuple[str, ...] = ()
) -> Path:
    """Write the target `box` with these fragments (default `mine`), whose files are named `<fragment>/<slot>`."""
    names = fragments or ("mine",)
    target = TARGET.replace("FRAGMENTS", ", ".join(names)) + more
    definitions = {f"{name}/fragment.yaml": FRAGMENT + "appliesTo: gpu\n" * (name in gpu_only) for name in names}
    below = {f"fragments/{name}": content for name, content in {**definitions, **files}.items()}
    write(folder, {"targets/box.yaml": target, **below})
    return folder


def composed(folder: Path, target: str = "box", workload: str | None = None) -> Chart:
    """Compose a target of a user's folder."""
    return compose(load_target(target, open_library([folder])), workload)


def chartgen(*arguments: str | Path, env: Mapping[str, str | None] | None = None, input: str = "") -> Result:  # noqa: A002
    """Run the command line in this process: no exception ends it, and its JSON answers are as published."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], env=env, input=input)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    if "json" in arguments and result.stdout:
        answers(result.stdout)
    return result
