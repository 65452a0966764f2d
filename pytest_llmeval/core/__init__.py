"""The vocabulary of the package: cases, observations, evaluators, results, errors, wording."""

__all__ = ("WINDOWS", "grouped", "resolve", "with_value")

import os
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, Final, TypeVar

WINDOWS: Final[bool] = os.name == "nt"
"""True if open files cannot be removed or replaced, and signals end other processes or reach all of a console."""


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, in the order of the pairs.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


@contextmanager
def with_value(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Give a context variable a value within a block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def resolve(target: Any) -> Any:
    """Return what an import string ``package.module:name`` names, and any other object unchanged.

    Raises:
        ImportError: There is no such module.
        AttributeError: The module has no such name.
    """
    if not isinstance(target, str):
        return target
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
