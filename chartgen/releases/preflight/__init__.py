"""The preflight: read-only checks whether a cluster meets the requirements of a release."""

from __future__ import annotations

from chartgen.releases.preflight.context import Diagnosis, Status
from chartgen.releases.preflight.examination import examine, examine_cluster

__all__ = ["Diagnosis", "Status", "examine", "examine_cluster"]
