"""Training data from a release's logs and values: the whole log, or the current progress."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from chartgen.errors import ChartgenError, MissingToolError, Problem
from chartgen.helm.values import Values
from chartgen.kube import Cluster, ClusterError
from chartgen.metrics.figures.facts import join_facts
from chartgen.metrics.figures.jobs import facts_of_release
from chartgen.metrics.figures.peak import Peak, find_peak
from chartgen.metrics.read.log import Log, read_streams
from chartgen.metrics.read.readers.own import patterns_of
from chartgen.metrics.show.live import live_progress
from chartgen.programs import Progress
from chartgen.releases.history import RevisionRecord, read_records, restore_chart
from chartgen.releases.status.members import Member, pod_log

if TYPE_CHECKING:  # with all checks, which only a log with steps of a release with values needs
    from chartgen.checks.job import Job
    from chartgen.checks.line_patterns import LinePatterns


def read_release(
    cluster: Cluster, release: str, namespace: str, *, progress: Progress
) -> tuple[Log, Mapping[str, Any], Job | None]:
    """Read the logs of a release's first and last rank, the facts in its values, and its job.

    Args:
        progress: Receives a line for each unreadable log.

    Raises:
        ChartgenError: The release does not exist, has no pods, or they have not logged a step.
        MissingToolError: A log stops before its end.
    """
    from chartgen.metrics.read.pauses import name_causes
    from chartgen.releases.status.logs import find_sources
    from chartgen.releases.why.explanation import explain_lines

    records = read_records(cluster, release, namespace)
    if not records:
        problem = f"neither a file nor a release {release} in namespace {namespace}"
        raise ChartgenError(Problem(problem, hint="name a log, or another namespace with -n"))
    facts, job = _facts_of(records[-1])
    members = [source.member for source in find_sources(cluster, release, namespace)]

    def streams(tell: Progress) -> Iterator[tuple[str, Iterator[bytes]]]:
        return ((member.name, _text(cluster, member, namespace, tell)) for member in members)

    log = read_streams(streams(progress), patterns_of(records[-1].values))
    name_causes(log, streams(lambda _: None), explain_lines)
    return log, facts, job


def _text(cluster: Cluster, member: Member, namespace: str, progress: Progress) -> Iterator[bytes]:
    """Yield the log of a pod, after that of its container before a restart; skip an unreadable log."""
    times = member.program_restarts
    if times > 1:
        progress(f"{member.name} was restarted {times} times: of the earlier starts, only the last has a log")
    for previous in ("true", "false") if times else ("false",):
        cut = False
        try:
            for line in pod_log(cluster, member, namespace, timestamps="true", previous=previous):
                cut = True
                yield f"{line}\n".encode()
        except (ClusterError, MissingToolError) as error:
            if cut:  # a part of a log gives wrong figures
                raise
            progress(f"the log of pod {member.name} cannot be read: {error}")


class RunProgress(NamedTuple):
    """The progress of a run."""

    text: str = ""  # step, step time, speed, MFU and time left; empty when the log shows no step
    slow: Problem | None = None  # that it is far slower than estimated; None where nothing shows that


def progress_of(lines: Sequence[str], record: RevisionRecord | None) -> RunProgress:
    """Return the progress that the end of a log shows.

    Args:
        lines: The end of the log.
        record: Helm's record of the release; None without a record.
    """
    own = _patterns(record)
    plain = live_progress(lines, 0, own=own).text
    if not plain or record is None or not record.target:
        return RunProgress(plain)
    try:
        return _progress_by_values(lines, record, own)
    # values that this chartgen no longer knows, or of any form: the record has its own schema
    except Exception:  # noqa: BLE001
        return RunProgress(plain)


def _progress_by_values(lines: Sequence[str], record: RevisionRecord, own: LinePatterns | None) -> RunProgress:
    known, job = _facts_of(record)
    facts = join_facts([("the values", known)])
    peak = find_peak("", facts)
    found = live_progress(lines, facts.get("steps") or 0, facts, peak.tflops if isinstance(peak, Peak) else None, own)
    if not job or not found.seconds:
        return RunProgress(found.text)
    from chartgen.checks.speed import why_slow

    return RunProgress(found.text, why_slow(job, found.seconds))


def _patterns(record: RevisionRecord | None) -> LinePatterns | None:
    try:
        return patterns_of(record.values) if record else None
    except ChartgenError:
        return None  # `check` and `metrics` report it


def _facts_of(record: RevisionRecord) -> tuple[Mapping[str, Any], Job | None]:
    """Return the facts in a revision's values, and its job; raise ChartgenError if they are not its chart's."""
    try:
        return facts_of_release(restore_chart(record), Values(record.values))
    except ChartgenError:
        raise
    # chart and schema are the record's own: anybody may have written a chart that only bears a target's name
    except Exception as error:  # noqa: BLE001
        text = f"the values of release {record.name} are not those of its target ({type(error).__name__})"
        raise ChartgenError(text) from None
