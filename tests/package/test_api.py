"""`import chartgen` gives what the command line uses."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

import chartgen


@pytest.mark.parametrize("name", chartgen.__all__)
def test_public_names_are_never_hidden_by_modules(name: str) -> None:
    for module in pkgutil.walk_packages(chartgen.__path__, "chartgen."):
        if not module.name.endswith(("__main__", "supervisor")):
            importlib.import_module(module.name)
    found = getattr(chartgen, name)
    assert not isinstance(found, ModuleType)
    assert found.__doc__


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'composse'"):
        chartgen.composse  # noqa: B018
