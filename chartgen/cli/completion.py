"""Completions of arguments; none where the command itself reports a problem."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from chartgen.errors import ChartgenError

if TYPE_CHECKING:
    import click

    from chartgen.composer.library import Library

# Names of files of others are completions too, and a shell runs what it inserts: $(command).
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:+-]*")
_ANY_TARGET = "gke-a3mega"  # of portable keys
_PATIENCE = 2.0  # seconds for a cluster; a shell waits for its completions
Completer: TypeAlias = "Callable[[click.Context, click.Parameter, str], list[str]]"


def _completer(names: Callable[[click.Context], Iterable[str]]) -> Completer:
    """Return a completion by what the names begin with."""

    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
        try:
            return [name for name in names(ctx) if name.startswith(incomplete) and _PLAIN.fullmatch(name)]
        except (ChartgenError, OSError):
            return []

    return complete


def _library(ctx: click.Context) -> Library:
    from chartgen.composer.library import open_library

    return open_library(ctx.params.get("path") or ())


def _presets(ctx: click.Context) -> Iterable[str]:
    from chartgen.composer.presets import presets

    return presets(_library(ctx))


def _definitions(ctx: click.Context) -> Iterable[str]:
    from chartgen.composer.describe import every_name

    return every_name(_library(ctx))


def _sandboxes(_ctx: click.Context) -> Iterable[str]:
    from chartgen.rehearsal.sandbox import list_sandboxes

    return [sandbox.name for sandbox in list_sandboxes()]


def _releases(ctx: click.Context) -> Iterable[str]:
    from chartgen.kube import connect
    from chartgen.releases.history import find_latest

    with connect(context=ctx.params.get("context"), timeout=_PATIENCE) as cluster:
        namespace = ctx.params.get("namespace") or cluster.namespace
        return sorted(item["metadata"]["labels"]["name"] for item in find_latest(cluster, namespace))


def _gpus(_ctx: click.Context) -> Iterable[str]:
    from chartgen.data.gpus import all_gpus

    return all_gpus()


def _models(_ctx: click.Context) -> Iterable[str]:
    from chartgen.checks.published import model_names

    return model_names()


def complete_key(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return completions of the last key of a --set option, by the values of the target's chart."""
    done, comma, begun = incomplete.rpartition(",")
    # click stops reading at the option that is incomplete, and leaves the arguments before it
    target = ctx.params.get("target") or next(iter(ctx.args), "")
    if "=" in begun or not target:
        return []
    try:
        keys = [*_keys_of(target, _library(ctx))]
    except (ChartgenError, OSError):
        return []
    return [f"{done}{comma}{key}=" for key in keys if key.startswith(begun) and _PLAIN.fullmatch(key)]


def key_of_option(option: str) -> str:
    """Return the key of values that an unknown option of a command may mean (--nodes: nodes); empty for none."""
    word = option.lstrip("-").replace("-", "").casefold()
    from chartgen.composer.library import open_library

    known = {key.casefold(): key for key in _keys_of(_ANY_TARGET, open_library())}
    found = [key for lower, key in known.items() if lower.rpartition(".")[2] == word]
    return known.get(word) or (found[0] if len(found) == 1 else "")


def _keys_of(target: str, found: Library) -> Iterator[str]:
    from chartgen.composer.composed import composed_chart
    from chartgen.composer.target import load_target
    from chartgen.helm.yaml import load, require_map

    text = composed_chart("compose_interface", load_target(target, found)).files["values.yaml"]
    return _dotted(require_map(load(text, "values.yaml"), "values.yaml"))


def _dotted(values: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _dotted(value, f"{before}{name}.")
        else:
            yield f"{before}{name}"


complete_target = _completer(lambda ctx: _library(ctx).names("target"))
complete_definition = _completer(_definitions)
complete_preset = _completer(_presets)
complete_workload = _completer(lambda ctx: _library(ctx).names("workload"))
complete_sandbox = _completer(_sandboxes)
complete_gpu = _completer(_gpus)
complete_model = _completer(_models)
complete_release = _completer(_releases)


def complete_release_or_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Return the releases that match, else let the shell complete the name of a file."""
    from click.shell_completion import CompletionItem

    return complete_release(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]
