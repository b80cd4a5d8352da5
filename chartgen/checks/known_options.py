"""Unknown options of a program, by the release of its image."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from chartgen.checks.job import Job
from chartgen.data.program_options import Options, options_of
from chartgen.findings import KeyProblem, rule, rules_in
from chartgen.helm.yaml import Keys

# Below these, NeMo's configuration contains names of other libraries.
_FREE = re.compile(r".*(kwargs|_params|_cfg|_config|data_prefix)$")
_UPPER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


_SOURCE = "chartgen/data/options.yaml: the programs' repositories, by release of the image"


class Given(NamedTuple):
    """An option that the values pass to the program: its last name, its key in the values, and that key's path."""

    name: str
    key: str
    at: Keys


# Programs whose options are steps of paths.
_HYDRA = ("nemo-1", "megatron-bridge")


@rule(_SOURCE, "warning", remedy="did you mean …? or remove it, or use an image whose program has it")
def options_of_the_program(job: Job) -> Iterator[KeyProblem]:
    """A program stops at the start at an option that it does not know, or ignores the option and trains without it."""
    known, options = options_of(job.launcher.name), list(_given(job))
    if known is None or _is_another(job) or not options:
        return
    release = job.release("nvidia/nemo")
    taken, where = _taken(job.launcher.name, release), job.image
    if not taken:
        taken, where = known.ever, "any image that is known"
    for option in options:
        if not _has(job, taken, option.name):
            message = f"{PurePosixPath(job.launcher.program).name} has no option {option.name} in {where}"
            yield KeyProblem(option.key, message, _hint(job, taken, option.name), at=option.at)


@rule(
    _SOURCE,
    "unchecked",
    remedy="`….config`: `….program`: compare them with the program; nvcr.io/nvidia/nemo has it from … to … or ",
)
def options_of_an_unknown_image(job: Job) -> Iterator[KeyProblem]:
    """The options of an unknown image's program are not known, where they differ between known releases."""
    if not job.launcher.program:  # a program of the user's, whose options nobody else can know
        return
    known, options = options_of(job.launcher.name), list(_given(job))
    if options and (known is None or _is_another(job)):
        message = f"options were not checked: what {_program(job)} takes is not known"
        key = job.key("config" if known is None else "program")
        yield KeyProblem(key, message, "compare them with the program")
    if known is None or _is_another(job) or job.release("nvidia/nemo") in known.releases:
        return
    for option in options:
        if _has(job, known.ever, option.name) and not _has(job, known.always, option.name):
            message = f"not checked: {option.name} is in some releases, and the one of {job.image} is not known"
            yield KeyProblem(option.key, message, _since(known, option.name), (job.key("image"),), option.at)


@lru_cache(maxsize=64)
def _taken(launcher: str, release: str) -> frozenset[str]:
    known = options_of(launcher)
    return known.for_release(release) if known else frozenset()


def _since(known: Options, name: str) -> str:
    having = [release for release in known.releases if name in known.for_release(release)]
    return f"nvcr.io/nvidia/nemo has it from {having[0]} to {having[-1]}" if having else ""


def _program(job: Job) -> str:
    return str(job.own.get("program") or job.launcher.program)


def _is_another(job: Job) -> bool:
    """Report whether the user runs another program; the launcher's own may have another path in an image."""
    return PurePosixPath(_program(job)).name != PurePosixPath(job.launcher.program).name


def _has(job: Job, taken: frozenset[str], name: str) -> bool:
    """Report whether a program has an option; Megatron-LM also accepts the beginning of a name."""
    begun = job.launcher.name == "megatron-lm" and any(each.startswith(name) for each in taken)
    return (
        name in taken
        or begun
        or any(name in (each, each.rpartition(".")[2]) for natives in job.launcher.owns.values() for each in natives)
    )


def _given(job: Job) -> Iterator[Given]:
    start: Keys = ("launchers", job.launcher.name)
    yield from _leaves(job.own.get("config") or {}, job.key("config"), (*start, "config"))
    hydra = job.launcher.name in _HYDRA
    for text in map(str, job.own.get("args") or ()):
        name = text.lstrip("+~-").partition("=")[0]
        if hydra and "=" in text and not any(map(_FREE.fullmatch, name.split(".")[:-1])):
            yield Given(name.rpartition(".")[2], job.key("args"), (*start, "args"))
        elif not hydra and re.fullmatch(r"--[a-z].*", text):
            yield Given(name, job.key("args"), (*start, "args"))


def _leaves(tree: dict[str, Any], key: str, at: Keys) -> Iterator[Given]:
    """Yield all names of a tree; each may contain several steps of a path."""
    for name, value in tree.items():
        steps = str(name).split(".")
        yield from (Given(step, f"{key}.{name}", (*at, name)) for step in steps)
        if isinstance(value, dict) and not any(map(_FREE.fullmatch, steps)):
            yield from _leaves(value, f"{key}.{name}", (*at, name))


def _hint(job: Job, taken: frozenset[str], name: str) -> str:
    """Return the nearest options, or the portable keys that set them."""
    from difflib import get_close_matches

    mark = "_" if job.launcher.name in _HYDRA else "-"
    portable: dict[str, str] = {}
    for key, natives in job.launcher.owns.items():
        portable |= {_UPPER.sub(mark, key.rpartition(".")[2]).lower(): key}
        portable |= {native.rpartition(".")[2]: key for native in natives}
    plain = name.lower().replace("_" if mark == "-" else "-", mark)
    near = get_close_matches(plain, sorted({*taken, *portable}), n=3, cutoff=0.6)
    words = dict.fromkeys(portable.get(each, each) for each in near)
    return f"did you mean {' or '.join(words)}?" if words else "remove it, or use an image whose program has it"


KNOWN = rules_in(globals())
