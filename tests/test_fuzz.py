"""A few of the random values of `make fuzz`, without a cluster: no crash, and what passes renders to sound objects."""

from __future__ import annotations

import pytest
from fuzz import TARGETS, passes, values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_random_values_pass_or_are_refused_with_a_reason(target: str, data: st.DataObject) -> None:
    passes(target, data.draw(values(target)))
