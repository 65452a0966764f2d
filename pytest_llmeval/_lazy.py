"""Names of a package that are loaded when they are first used."""

__all__ = ("lazy_names",)

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package whose names stand in other modules.

    Args:
        package: Its ``__name__``.
        homes: Module, relative to the package, to the names that it defines.
    """
    modules = {name: f"{package}.{home}" for home, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)  # functions import names for every case: Python asks here once
        return value

    return load
