"""Lets random faults meet runs of 8 machines and a spare, and prints what became of each, and the figures of all.

    faults.py SPARES [COUNT [SEED [MEET]]]

SPARES is a folder of `make spares`; 100 faults by default, by MEET `sockets` or `gloo` (tests/support/faulty_run.py).
"""

from __future__ import annotations

import random
import statistics
import sys
from pathlib import Path

from faulty_run import FAULTS, live

if __name__ == "__main__":
    python = Path(sys.argv[1], "bin/python")
    more = sys.argv[2:]
    count, seed, meet = (*more, *("100", "31", "sockets")[len(more) :])
    source = random.Random(int(seed))
    faults = [fault for fault, (share, _) in FAULTS.items() for _ in range(share)]
    source.shuffle(faults)
    found = live(
        faults[: int(count)],
        python,
        meet,
        source,
        lambda each: print("right" if each.is_right else "WRONG", each, flush=True),
    )
    print(f"{sum(each.is_right for each in found)} of {len(found)} right")
    for fault in ("", *FAULTS):
        times = [each.seconds for each in found if each.seconds is not None and fault in ("", each.fault)]
        if times:
            lost = max(each.lost for each in found if fault in ("", each.fault))
            print(
                f"{fault or 'all'}: {len(times)} went on, median {statistics.median(times):.1f} s, "
                f"longest {max(times):.1f} s; at most {lost} steps done again"
            )
