"""Evaluators and checks as functions, for suites declared in Python: each returns what a suite file would say.

The types of all functions are in ``entries.pyi``, which ``.ci/entries_stub.py`` writes from the JSON Schema.
"""

__all__ = ("at_least", "evaluator", "judge", "not_")

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from pytest_llmeval.suite.registry import default_registry

_GROUPS: Final = ("all_of", "any_of", "at_least")
_NOTHING: Final = object()
_BESIDE: Final = ("as_", "on", "turn")
_MODIFIERS: Final = ("name", "on", "turn", "weight")


def evaluator(name: str, options: Mapping[str, Any] | None = None, **beside: Any) -> dict[str, Any]:
    """Return the entry of any evaluator, such as one of your own.

    Args:
        name: Its name.
        options: Its options.
        beside: ``as_``, ``on`` and ``turn``, which stand next to the options in a suite file.
    """
    settings = {key.rstrip("_"): beside.pop(key) for key in _BESIDE if beside.get(key) is not None}
    return {name: {**(options or {}), **beside}, **settings}


def not_(check: Mapping[str, Any] | str) -> dict[str, Any]:
    """Return a check that holds where another one does not."""
    if isinstance(check, str):
        return {f"not_{check}": True}
    return {key if key in _MODIFIERS else f"not_{key}": value for key, value in check.items()}


def at_least(n: int, *checks: Any) -> dict[str, Any]:
    """Return a check that holds where at least `n` of some checks do."""
    return {"at_least": {"n": n, "of": list(checks)}}


def _group(kind: str, *checks: Any) -> dict[str, Any]:
    return {kind: list(checks)}


def _evaluator(kind: str, options: Mapping[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    return evaluator(kind, options, **keys)


def _check(kind: str, argument: Any = _NOTHING, **keys: Any) -> dict[str, Any]:
    modifiers = {key: keys.pop(key) for key in _MODIFIERS if keys.get(key) is not None}
    if argument is _NOTHING:
        argument = keys or True
    elif keys:
        raise TypeError(f"{kind}: found an argument and {', '.join(keys)}, expected one or the other")
    return {kind: argument, **modifiers}


def judge(criterion: str | None = None, **keys: Any) -> dict[str, Any]:
    """Return the check of a criterion if one is given, and else the evaluator: both have this name."""
    return _evaluator("judge", **keys) if criterion is None else _check("judge", criterion, **keys)


def __getattr__(name: str) -> Callable[..., dict[str, Any]]:
    """Return the function of an evaluator, a check or a group of checks, made when it is first used."""
    registry = default_registry()
    kinds = {kind.replace(".", "_"): kind for kind in registry}
    if name in kinds:
        builder = partial(_evaluator, kinds[name])
    elif name in registry.checks:
        builder = partial(_check, name)
    elif name in _GROUPS:
        builder = partial(_group, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = builder
    return builder
