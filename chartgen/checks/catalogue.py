"""All checks of a job: those that no rule of rules.yaml can express."""

from __future__ import annotations

from chartgen.checks.charts import POLICY
from chartgen.checks.compatibility import COMPAT
from chartgen.checks.inputs import INPUTS
from chartgen.checks.known_options import KNOWN
from chartgen.checks.kueue import KUEUE
from chartgen.checks.machine import MACHINE
from chartgen.checks.memory_fit import CAPACITY
from chartgen.checks.pod_parts import PODS
from chartgen.checks.program_settings import PARALLELISM, SETTINGS
from chartgen.checks.secrets import SECRETS
from chartgen.checks.training import TRAINING
from chartgen.findings import Rule

# The memory of a GPU, versions of images, quantities, parts of pods.
CHECKS: tuple[Rule, ...] = (
    *(*PARALLELISM, *CAPACITY, *COMPAT, *MACHINE, *SETTINGS, *KNOWN, *TRAINING, *INPUTS),
    *(*SECRETS, *PODS, *KUEUE, *POLICY),
)
