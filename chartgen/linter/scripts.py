"""Shell scripts in rendered objects: parse them with bash without running them, and with shellcheck if installed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from chartgen.findings import PartProblem
from chartgen.kube.manifest_walk import Keys, Object, all_containers
from chartgen.programs import find_tool

_SHELL = re.compile(r"(?:.*/)?(?P<shell>bash|sh)")
_FIRST_LINE = re.compile(r"#!\s*(?:\S*/env\s+)?\S*?\b(?P<shell>bash|sh)\b")
_BASH_LINE = re.compile(r"^.*?: line (?P<line>\d+): (?P<text>.*)$", re.MULTILINE)
_SHELLCHECK_LINE = re.compile(r"^-:(?P<line>\d+):\d+: \w+: (?P<text>.*) \[(?P<code>SC\d+)\]$", re.MULTILINE)


_PATIENCE = 20  # seconds; a script of a megabyte takes a tenth of one


class Script(NamedTuple):
    """A script, its shell, and its key path in the object."""

    at: Keys
    shell: str
    text: str

    @property
    def name(self) -> str:
        """Its name in messages: its file, or the first words in its container's command."""
        return str(self.at[-1]) if self.at[0] == "data" else ".".join(map(str, self.at[-4:]))


def scripts(thing: Object) -> Iterator[Script]:
    """Yield the scripts of an object: from containers that run a shell, and from ConfigMaps."""
    for container in all_containers(thing):
        command = [str(word) for word in container.spec.get("command") or ()]
        words = [*command, *(str(word) for word in container.spec.get("args") or ())]
        shell = _SHELL.fullmatch(words[0]) if words else None
        flags = [index for index, word in enumerate(words[:-1]) if "c" in word and re.fullmatch(r"-[a-z]+", word)]
        if shell and flags:
            index = flags[0] + 1
            at = ("command", index) if index < len(command) else ("args", index - len(command))
            yield Script((*container.at, *at), shell["shell"], words[index])
    for name, text in (thing.get("data") or {}).items() if thing.get("kind") == "ConfigMap" else ():
        if found := _FIRST_LINE.match(str(text)):
            yield Script(("data", name), found["shell"], str(text))
        elif str(name).endswith(".sh") and not str(text).startswith(("#!", "@test ")):  # bats, in tests of charts
            yield Script(("data", name), "bash", str(text))


def scripts_parse(thing: Object) -> Iterator[PartProblem]:
    """The shell of every script can parse it; a container that cannot start occupies its GPUs until it gives up."""
    for script in scripts(thing):
        for line, why in _bash(script.text):
            message = f"line {line} of {script.name}: {why}"
            yield PartProblem(message, at=script.at, line=_begin(script.text, line))


_EXTGLOB = re.compile(r"\bshopt -s (?:\w+ ){0,20}extglob\b")
# Lines from the end, and characters, in which to search the start of an unclosed construct; bash reads each prefix.
_SEARCHED, _READ_TWICE = 200, 50_000


def _begin(text: str, line: int) -> int:
    """Return the line where a construct begins that bash cannot parse; before an unclosed one, it can parse all."""
    count = text.rstrip("\n").count("\n") + 1
    if line < count or len(text) > _READ_TWICE:
        return line
    lines = text.split("\n")
    for before in range(count - 1, max(count - _SEARCHED, 0), -1):
        if not _bash("\n".join(lines[:before]) + "\n"):
            return before + 1
    return 1 if count <= _SEARCHED else count


def scripts_are_sound(thing: Object) -> Iterator[PartProblem]:
    """Shellcheck, if installed, finds no warning in a script, such as unquoted words or lost exit codes."""
    program = find_tool("shellcheck")
    readable = [script for script in scripts(thing) if not _bash(script.text)]
    for script in readable if program else ():
        for line, text in _shellcheck(str(program), script.shell, script.text):
            yield PartProblem(f"line {line} of {script.name}: {text}", at=script.at, line=line)


def _read(argv: list[str], text: str) -> subprocess.CompletedProcess[str] | None:
    """Run a program that parses a third-party script; return None when it takes too long.

    Its environment is bare, and its folder is not the script author's: through SHELLCHECK_OPTS or a `.shellcheckrc`
    it would read sourced files.
    """
    variables = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "LC_CTYPE") if name in os.environ}
    try:
        return subprocess.run(
            argv,
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            env=variables,
            check=False,
            cwd=Path("/"),
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return None


@lru_cache(maxsize=256)
def _bash(text: str) -> tuple[tuple[int, str], ...]:
    """Return the first place where bash cannot parse a script; a bash that fails without a message is a finding too."""
    options = ["-O", "extglob"] if _EXTGLOB.search(text) else []  # `bash -n` does not run shopt
    ran = _read(["bash", *options, "-n"], text)
    if ran is None:
        return ((1, f"bash did not read it within {_PATIENCE} s, so it was not checked"),)
    if found := _BASH_LINE.search(ran.stderr):
        return ((int(found["line"]), found["text"]),)
    return ((1, f"bash ended with {ran.returncode}, so it was not checked"),) if ran.returncode else ()


@lru_cache(maxsize=256)
def _shellcheck(program: str, shell: str, text: str) -> tuple[tuple[int, str], ...]:
    argv = [program, f"--shell={shell}", "--severity=warning", "--format=gcc", "--norc", "-"]
    ran = _read(argv, text)
    if ran is None:
        return ((1, f"shellcheck did not read it within {_PATIENCE} s, so it was not checked"),)
    return tuple(
        (int(match["line"]), f"{match['text']} ({match['code']})") for match in _SHELLCHECK_LINE.finditer(ran.stdout)
    )
