"""What the lease of a release needs of the machine: a name for the user, and a clock that nobody sets."""

from __future__ import annotations

import os
import time

import pytest

from chartgen.releases.lock import Pace, identity, now


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become a user without an entry in passwd")
def test_user_without_a_passwd_entry() -> None:
    end, write = os.pipe()
    child = os.fork()
    if child == 0:
        for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
            os.environ.pop(name, None)
        os.setuid(54321)
        try:
            os.write(write, identity("upgrade").encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(end) as said:
        assert said.read().startswith("uid 54321@")
    os.waitpid(child, 0)


def test_time_is_measured_by_a_clock_that_nobody_sets() -> None:
    assert Pace().clock is now
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    before, found, after = time.clock_gettime(clock), now(), time.clock_gettime(clock)
    assert before <= found <= after
