"""An explanation as lines for people."""

from __future__ import annotations

from collections.abc import Iterator

from chartgen.releases.why.explanation import Explanation

_TRIES = {
    "same": "another try may succeed",
    "elsewhere": "another try may succeed, on other machines",
    "none": "another try ends in the same way",
}
_MOST = 20  # files that are listed when the cause is unknown


def describe_explanation(found: Explanation) -> Iterator[str]:
    """Yield an explanation as lines."""
    yield f"{found.cause}: {found.what}"
    where = [
        f"rank {found.rank}" if found.rank is not None else "",
        f"machine {found.machine}" if found.machine else "",
    ]
    if any(where):
        yield f"  where       {' on '.join(filter(None, where))}"
    if found.collective:
        yield f"  collective  {found.collective}"
    for each in found.evidence:
        yield f"  {each.place}: {each.text}"
    if found.cause == "unknown":
        for name in found.examined[:_MOST]:
            yield f"  examined    {name}"
        if len(found.examined) > _MOST:
            yield f"  examined    {len(found.examined) - _MOST} more"
    else:
        yield f"  then        {_TRIES[found.restart]}"
    yield f"  what to do: {found.hint}"
