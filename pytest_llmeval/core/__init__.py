"""The vocabulary of the package: cases, observations, evaluators, results, errors, wording."""

__all__ = ("WINDOWS", "CallablePackage", "grouped", "with_value")

import os
import sys
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from inspect import Signature, getdoc, signature
from types import ModuleType
from typing import Any, ClassVar, Final, TypeVar

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


class CallablePackage(ModuleType):
    """A package that can be called: importing a module of it binds the package in place of the public name.

    Attributes:
        public: Package to ``module:name`` of what is called.
    """

    public: ClassVar[dict[str, str]] = {}

    @classmethod
    def make(cls, package: str, public: str) -> None:
        """Make a package callable."""
        cls.public[package] = public
        sys.modules[package].__class__ = cls

    @property
    def called(self) -> Any:
        """What has the name of the package in public."""
        module, _, name = self.public[self.__name__].partition(":")
        return getattr(import_module(module), name)

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]  # read-only here
        """The docstring of what is called."""
        return getdoc(self.called)

    @property
    def __signature__(self) -> Signature:
        """The signature of what is called, for consoles and notebooks."""
        return signature(self.called)

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call what has the name of the package in public."""
        return self.called(*args, **options)
