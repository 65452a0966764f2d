"""The state of modules, which one suite may set and another use."""

import builtins
import gc
import marshal
import sys
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType, FunctionType, GeneratorType, ModuleType
from typing import Any, Final, TypeAlias

IsOwn: TypeAlias = Callable[[str], bool]
"""Whether a module of this name is the project's."""

_MOST: Final = 20_000
"""Objects of a module that are looked at; with more, its state equals no other."""

_CONTAINERS: Final = frozenset({"builtins", "collections", "functools", "types"})
"""Modules of Python whose objects hold what others put into them."""

_CLOSED: Final = (ModuleType, CodeType, FrameType, GeneratorType)
_MOCK: Final = "unittest.mock"


def state_of(module: ModuleType, is_own: IsOwn) -> object:
    """The state of a module of the project, which equals another one if nothing was set in between.

    What is in an object of a library is not seen.
    """
    variables = [(name, value) for name, value in sorted(vars(module).items()) if not name.startswith("__")]
    below = f"{module.__name__}."  # where modules of a package become its variables when they are imported
    waiting: list[Any] = [value for name, value in variables if sys.modules.get(below + name) is not value]
    seen, parts = {id(vars(builtins))}, list[object]()
    while waiting:
        value = waiting.pop()
        try:
            parts.append(marshal.dumps(value, 2))  # plain data, at the speed of C; version 2 has no references
            continue
        except ValueError:
            parts.append(id(value))
        if id(value) not in seen and _holds_state(value, is_own):
            seen |= {id(value), id(value.__globals__) if type(value) is FunctionType else 0}
            waiting += _referents(value)
            if len(seen) > _MOST:
                return object()
    return hash(tuple(parts))


def patches_of(module: ModuleType, is_own: IsOwn) -> object:
    """The functions and objects of the project that were set in a module of a library, as mocks are."""
    makers = [(name, id(value), _maker(value)) for name, value in sorted(vars(module).items())]
    return [patch for patch in makers if patch[2] == _MOCK or is_own(patch[2])]


def _referents(value: Any) -> list[Any]:
    """What a value refers to, with the dictionaries that Python makes only when somebody looks at them."""
    for name in ("__dict__", "__annotations__"):
        with suppress(Exception):  # an annotation may name what is not there
            object.__getattribute__(value, name)
    return gc.get_referents(value)


def _holds_state(value: Any, is_own: IsOwn) -> bool:
    """Whether the state of a project's module includes what a value refers to.

    It does for own objects and code, and for containers.
    """
    is_code = issubclass(type(value), type | FunctionType)
    return is_own(_maker(value)) or (
        not is_code and type(value).__module__ in _CONTAINERS and not issubclass(type(value), _CLOSED)
    )


def _maker(value: Any) -> str:
    """The name of the module that defines a function or class, or the class of another object."""
    return str((value if issubclass(type(value), type | FunctionType) else type(value)).__module__)
