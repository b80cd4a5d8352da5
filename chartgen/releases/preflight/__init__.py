"""The preflight: whether a cluster has what a release needs, looked up in the cluster, which is never changed."""

from __future__ import annotations

from chartgen.releases.preflight.examination import examine, examine_cluster
from chartgen.releases.preflight.result import Diagnosis, Status

__all__ = ["Diagnosis", "Status", "examine", "examine_cluster"]
