"""The preflight: read-only checks whether a cluster meets the requirements of a release."""

from __future__ import annotations

from chartgen.releases.preflight.examination import examine, examine_cluster
from chartgen.releases.preflight.result import Diagnosis, Status

__all__ = ["Diagnosis", "Status", "examine", "examine_cluster"]
