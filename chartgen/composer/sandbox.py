"""The sandbox in which tags of other people's texts are filled in: only plain data goes in and comes out."""

from __future__ import annotations

from typing import Any

from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

_DATA: tuple[type, ...] = (str, int, float, bool, type(None), list, tuple, dict, range)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
# Beside data: a loop, for loop.first and its like, and an unknown name, which fails where it is used.
_KNOWN = frozenset((*_DATA, *_VIEWS, LoopContext, StrictUndefined))


def checked(found: Any) -> Any:
    """Return plain data.

    Raises:
        SecurityError: It is anything else: a function, a file, an object of Python.
    """
    if type(found) not in _KNOWN:
        raise SecurityError(f"{type(found).__name__} is not text, a number, a list or a map")
    return found


class Sandbox(ImmutableSandboxedEnvironment):
    """Returns plain data alone from attributes, items and calls, and prints nothing else.

    The methods of plain data can be called.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=checked, **options)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an attribute of plain data."""
        found = super().getattr(checked(obj), attribute)
        return found if callable(found) else checked(found)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item of plain data."""
        return checked(super().getitem(checked(obj), argument))

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return the plain data that a function returns."""
        return checked(super().call(context, function, *args, **kwargs))
