"""Texts that are written against the search for secrets: it ends, whatever a value or a log holds."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

MEGA = 1 << 20
# Seconds of processor time: the longest of these takes about six, a search that goes back and forth takes hours.
_TIME = 60
PROGRAM = """
import sys
from chartgen.checks.secrets import looks_secret
from chartgen.masking import masked

text = sys.stdin.read()
masked(text)
looks_secret("A", text)
"""
TEXTS = {
    "a word": "a" * 3 * MEGA,
    "names": "a.b-" * MEGA,
    "addresses": "://a:" * MEGA,
    "addresses with users": "x://a:" * (MEGA // 2),
    "escapes in a map": 'secretEnv={"a": "' + "\\x" * MEGA + "}",
    "assignments": "NAME=a " * MEGA,
    "maps": "secretEnv={" * (MEGA // 4),
    "texts": '"a": "' * (MEGA // 2),
    "tokens": "hf_" * MEGA,
    "escapes": "a=\\" * MEGA,
    "lines below": "_" * MEGA + "=x",
    "keys": "-----BEGIN PRIVATE KEY-----" * (MEGA // 8),
    "signatures": "&sig=" * MEGA,
    "headers": "authorization: bearer " * (MEGA // 8),
    "tokens of the web": "eyJa" * MEGA,
    "passwords": "password: a" * (MEGA // 4),
    "one password": "password: " + "a1" * MEGA,
    "variables": "name: a\n" + " " * MEGA + "name: a-" * (MEGA // 4),
    "bearers": "bearer a" * (MEGA // 4),
    "names of secrets": "TOKEN_" * (MEGA // 2) + "=ab1",
}


@pytest.mark.threat(9)
@pytest.mark.parametrize("name", TEXTS)
def test_masking_takes_time_as_the_length_of_its_text(name: str) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (_TIME, _TIME))

    argv = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(argv, input=TEXTS[name], text=True, capture_output=True, check=False, preexec_fn=limit)
    assert ran.returncode == 0, ran.stderr
