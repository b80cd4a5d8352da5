"""The shell scripts in rendered objects: read by bash without running them, and by shellcheck where it is installed."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from chartgen.findings import Complaint
from chartgen.kube.manifest_walk import Keys, Object, all_containers
from chartgen.programs import find_tool

_SHELL = re.compile(r"(?:.*/)?(?P<shell>bash|sh)")
_FIRST_LINE = re.compile(r"#!\s*(?:\S*/env\s+)?\S*?\b(?P<shell>bash|sh)\b")
_BASH_LINE = re.compile(r"^.*?: line (?P<line>\d+): (?P<text>.*)$", re.MULTILINE)
_SHELLCHECK_LINE = re.compile(r"^-:(?P<line>\d+):\d+: \w+: (?P<text>.*) \[(?P<code>SC\d+)\]$", re.MULTILINE)


_PATIENCE = 20  # seconds; a script of a megabyte takes a tenth of one


class Script(NamedTuple):
    """A script, the shell that reads it, and where it stands in its object."""

    at: Keys
    shell: str
    text: str

    @property
    def name(self) -> str:
        """What it is called in messages: its file, or the words of its container's command."""
        return str(self.at[-1]) if self.at[0] == "data" else ".".join(map(str, self.at[-4:]))


def scripts(thing: Object) -> Iterator[Script]:
    """Find the scripts of an object: what containers give to a shell, and what ConfigMaps hold as one."""
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
        elif str(name).endswith(".sh"):
            yield Script(("data", name), "bash", str(text))


def scripts_parse(thing: Object) -> Iterator[Complaint]:
    """Every script is one that its shell can read; a container that cannot start holds its GPUs until it gives up."""
    for script in scripts(thing):
        if fault := fault_of_script(script.text):
            message = f"line {fault.line} of {script.name}: {fault.text}"
            yield Complaint(message, "mend the script", script.at, line=fault.begins)


UNREADABLE = "scripts-parse"
# Lines from the end, and characters, in which the start of what does not end is looked for; bash reads each prefix.
_SEARCHED, _READ_AGAIN = 200, 50_000


class Fault(NamedTuple):
    """Where bash stops to read a script, why, and the line in which what it cannot read begins."""

    line: int
    text: str
    begins: int


def fault_of_script(text: str) -> Fault | None:
    """Return why bash cannot read a script; None for one that it can."""
    for line, why in _bash(text):
        count = text.rstrip("\n").count("\n") + 1
        return Fault(line, why, line if line < count else _unended(text, count))
    return None


def _unended(text: str, count: int) -> int:
    """Return the line where what does not end begins: bash reads everything up to it."""
    if len(text) > _READ_AGAIN:
        return count
    lines = text.split("\n")
    for before in range(count - 1, max(count - _SEARCHED, 0), -1):
        if not _bash("\n".join(lines[:before]) + "\n"):
            return before + 1
    return 1 if count <= _SEARCHED else count


def scripts_are_sound(thing: Object) -> Iterator[Complaint]:
    """Shellcheck, where it is installed, finds no warning in a script: unquoted words, lost exit codes and the like."""
    program = find_tool("shellcheck")
    readable = [script for script in scripts(thing) if not _bash(script.text)]
    for script in readable if program else ():
        for line, text in _shellcheck(str(program), script.shell, script.text):
            yield Complaint(f"line {line} of {script.name}: {text}", "mend the script", script.at, line=line)


def _read(argv: list[str], text: str) -> subprocess.CompletedProcess[str] | None:
    """Return a program a stranger's script to read; None when it takes too long.

    It gets a bare environment and no folder of the script's writer: by SHELLCHECK_OPTS or a `.shellcheckrc` it would
    read what scripts source.
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
    """Return where bash cannot read a script, first place only; a bash that fails without a word is a finding too."""
    ran = _read(["bash", "-n"], text)
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
