"""The sandbox in which tags of other people's texts are filled in: only plain data goes in and comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from jinja2 import StrictUndefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment

_DATA: tuple[type, ...] = (str, int, float, bool, type(None), list, tuple, dict, range)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
# Beside data: a loop, for loop.first and its like, and an unknown name, which fails where it is used.
_KNOWN = frozenset((*_DATA, *_VIEWS, LoopContext, StrictUndefined))


def checked(found: Any) -> Any:
    """Return plain data; raise SecurityError for a function, a file, an object of Python."""
    if type(found) not in _KNOWN:
        raise SecurityError(f"{type(found).__name__} is not text, a number, a list or a map")
    return found


def checked_deeply(found: Any) -> Any:
    """Return plain data that contains plain data alone: its text is the same in every build."""
    for each in found.values() if isinstance(found, dict) else found if isinstance(found, list | tuple) else ():
        checked_deeply(each)
    return checked(found)


class TagSandbox(ImmutableSandboxedEnvironment):
    """Returns plain data alone from attributes, items and calls, and makes text of nothing else.

    The methods of plain data can be called.
    """

    intercepted_binops = frozenset(("%", "-"))  # a text with its arguments; maps' keys without others are a set

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=checked_deeply, **options)
        del self.globals["lipsum"], self.filters["random"]  # chance
        self.filters = _Filters((name, _checked_filter(each)) for name, each in self.filters.items())

    def _parse(self, *source: Any) -> nodes.Template:
        template = super()._parse(*source)
        for each in template.find_all(nodes.Concat):
            each.nodes = [nodes.Filter(part, "string", [], [], None, None, environment=self) for part in each.nodes]
        return template

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an attribute of plain data."""
        found = super().getattr(checked(obj), attribute)
        return found if callable(found) else checked(found)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item of plain data."""
        return checked(super().getitem(checked(obj), argument))

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return the plain data that a function returns."""
        checked_deeply([*args, *(value for name, value in kwargs.items() if name != "caller")])
        return checked(super().call(context, function, *args, **kwargs))

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Return the plain data that an operator makes of plain data."""
        return checked(super().call_binop(context, operator, checked_deeply(left), checked_deeply(right)))


class _Filters(dict[str, Any]):
    """Filters, of which those that are added later are checked too."""

    def __setitem__(self, name: str, function: Callable[..., Any]) -> None:
        super().__setitem__(name, _checked_filter(function))


def _checked_filter(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that takes plain data alone, and returns a list where it returned an iterator."""
    own = hasattr(function, "jinja_pass_arg")  # the first argument is jinja's

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        checked_deeply([*args[own:], *kwargs.values()])
        found = function(*args, **kwargs)
        return list(found) if isinstance(found, Iterator) else found

    return called
