"""The preflight: whether a cluster has what a release needs, looked up in the cluster, which is never changed."""

from __future__ import annotations

from chartgen.doctor.diagnosis import Diagnosis, Status
from chartgen.doctor.examination import examine, examine_cluster

__all__ = ["Diagnosis", "Status", "examine", "examine_cluster"]
