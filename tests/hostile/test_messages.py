"""Messages of a cluster, and last lines of logs, that are written against whoever reads them: reading them ends."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from chartgen.kube.quantities import read_quantity

LENGTH = 1 << 18
# Seconds of processor time: the longest of these takes about one, a search that goes back and forth takes hours.
_TIME = 30
READERS = {
    "refused": "from chartgen.releases.status.messages import why_rejected; why_rejected(text)",
    "unplaced": "from chartgen.releases.status.pending import unplaced; unplaced(text, 3)",
    "queued": "from chartgen.releases.status.queue_reasons import _not_reserved; _not_reserved(text, None, {})",
    "evicted": "from chartgen.releases.status.queue_reasons import _evicted;"
    "_evicted({'reason': 'Preempted', 'message': text})",
    "assigned": "from chartgen.releases.status.pending import _unplaced_on; _unplaced_on('m', text, 3, '')",
    "failed": "from chartgen.releases.status.failure import _root_cause; _root_cause(text)",
    "quoted": "from chartgen.releases.status.failure import telling; telling([text], 3)",
    "an image": "from chartgen.releases.preflight.controllers import _IMAGE; _IMAGE.fullmatch(text)",
    "a quantity": "from chartgen.kube.quantities import read_quantity; read_quantity(text)",
    "a machine's": "from chartgen.checks.machine import quantity; quantity(text)",
}
TEXTS = {
    "quota": ("", "exceeded quota: s, requested: a, used: x, limited: 0\n"),
    "half a quota": ("exceeded quota: s, ", "requested: a, used: x "),
    "a queue": ("", "queue ' '"),
    "flavors": ("", "insufficient quota for r in flavor _,  "),
    "taints": ("", "untolerated taint {"),
    "digits": ("", "9"),
    "machines": ("0/3 nodes are unavailable: 0", "."),
    "digits of machines": ("0/3 nodes are available: ", "7"),
    "preempted": ("Preempted to accommodate a workload", " due to 0;"),
    "torchrun": ("", "Root Cause (first observed failure): rank : 9  "),
    "mpirun": ("Process name: [a],", " "),
    "names of mpirun": ("", "Process name: ["),
    "elastic": ("", "torch/distributed/elastic/"),
    "folders": ("x", "/d:x@x"),
}


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999Ki"])
def test_a_quantity_is_no_power_without_end(text: str) -> None:
    with pytest.raises(ValueError, match="quantity"):
        read_quantity(text)


@pytest.mark.threat(9)
@pytest.mark.parametrize("name", READERS)
def test_reading_takes_time_as_the_length_of_its_text(name: str) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (_TIME, _TIME))

    texts = "\0".join(f"{begin}{part * (LENGTH // len(part))}\n!" for begin, part in TEXTS.values())
    program = f"import sys\nfor text in sys.stdin.read().split('\\0'):\n    try:\n        {READERS[name]}\n"
    program += "    except (ValueError, AttributeError, TypeError):\n        pass\n"
    argv = [sys.executable, "-c", program]
    ran = subprocess.run(argv, input=texts, text=True, capture_output=True, check=False, preexec_fn=limit)
    assert ran.returncode == 0, ran.stderr[-300:]
