"""Evaluators and checks as functions, for suites declared in Python: each returns what a suite file would say.

The types of all functions are in ``entries.pyi``, which ``.ci/entries_stub.py`` writes from the JSON Schema.
"""

__all__ = ("at_least", "check", "evaluator", "judge", "not_")

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields as dataclass_fields
from functools import partial
from typing import Any, Final

from msgspec import Struct

from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.evaluators.checks.contract import CheckKind
from pytest_llmeval.evaluators.functions import CaseFunction, check_of, evaluator_of
from pytest_llmeval.suite.registry import default_registry

_GROUPS: Final = ("all_of", "any_of", "at_least")
_NOTHING: Final = object()
_BESIDE: Final = ("as_", "on", "turn")
_MODIFIERS: Final = ("name", "on", "turn", "weight")


class NamedEvaluator(Struct, frozen=True):
    """An evaluator with what stands next to its options in a suite file.

    Attributes:
        evaluator: The evaluator.
        settings: ``as``, ``on`` and ``turn``, those that are set.
    """

    evaluator: Evaluator
    settings: Mapping[str, Any]


def evaluator(
    evaluator: str | Evaluator | CaseFunction, options: Mapping[str, Any] | None = None, /, **beside: Any
) -> dict[str, Any] | NamedEvaluator:
    """Return an evaluator for a suite: of a name, an object of your own, or a function of a case.

    Args:
        evaluator: Its name, an instance of `Evaluator`, or a function ``case -> score``, plain or async.
        options: Its options, where it has a name.
        beside: ``as_`` (or ``name``, of an object or a function), ``on`` and ``turn``, which stand next to the options
            in a suite file. Of a function also ``low`` and ``high``, the range of its scores (default: 0 to 1;
            ``None`` for no limit), and ``higher_is_better``.

    Raises:
        EvaluatorError: A function has no name of its own, and none is given.
    """
    settings = {key.rstrip("_"): beside.pop(key) for key in _BESIDE if beside.get(key) is not None}
    if isinstance(evaluator, str):
        return {evaluator: {**(options or {}), **beside}, **settings}
    if not isinstance(evaluator, Evaluator):
        evaluator = evaluator_of(evaluator, **beside)
    elif beside:
        settings["as"] = beside.pop("name", settings.get("as"))
    return NamedEvaluator(evaluator, settings)


def check(function: CaseFunction, name: str | None = None) -> CheckKind:
    """Return the check that a function of a case is: ``case -> met``, plain or async.

    Args:
        function: Returns true or false, or a `Score` of that with a reason.
        name: Of the check; default: the function's.

    Raises:
        EvaluatorError: It has no name of its own, and none is given.
    """
    return check_of(function, name)


def by_name_in_file(keys: Mapping[str, Any]) -> tuple[dict[str, Any], list[type[Evaluator] | CheckKind]]:
    """Return the keys of a suite with names in place of evaluators and checks that are objects, and what has the names.

    Raises:
        LlmevalError: Something else is among them, or a function has no name.
    """
    own: dict[str, type[Evaluator] | CheckKind] = {}
    named = dict(keys)
    if evaluators := keys.get("evaluators"):
        named["evaluators"] = [_entry_of(each, own) for each in _listed(evaluators)]
    if checks := keys.get("checks"):
        named["checks"] = [_checks_in_file(each, own) for each in _listed(checks)]
    return named, list(own.values())


def _listed(entries: Any) -> Iterable[Any]:
    single = isinstance(entries, str | Mapping | Evaluator | NamedEvaluator | CheckKind) or callable(entries)
    return [entries] if single else entries


def _entry_of(entry: Any, own: dict[str, Any]) -> Any:
    """Return what a suite file would say of an evaluator."""
    if isinstance(entry, str | Mapping):
        return entry
    settings: Mapping[str, Any] = {}
    if isinstance(entry, NamedEvaluator):
        entry, settings = entry.evaluator, entry.settings
    if not isinstance(entry, Evaluator):
        if not callable(entry) or isinstance(entry, type):
            name = entry.__name__ if isinstance(entry, type) else type(entry).__name__
            raise LlmevalError(
                f"evaluators: found {name}, expected an entry such as ev.text(metrics=['f1']), a name, or a function"
            )
        entry = evaluator_of(entry)
    defaults = {each.name: each.default for each in dataclass_fields(entry) if each.init}
    options = {name: getattr(entry, name) for name in defaults}
    _keep(own, entry.name, type(entry), "evaluators")
    return {entry.name: {name: value for name, value in options.items() if value != defaults[name]}, **settings}


def _checks_in_file(entry: Any, own: dict[str, Any]) -> Any:
    """Return a check, or a composition of checks, with names in place of functions."""
    if isinstance(entry, Mapping):
        return {key: _checks_in_file(each, own) for key, each in entry.items()}
    if isinstance(entry, list | tuple):
        return [_checks_in_file(each, own) for each in entry]
    if not isinstance(entry, CheckKind):
        if not callable(entry):
            return entry
        entry = check_of(entry)
    _keep(own, f"check {entry.name}", entry, "checks")
    return entry.name


def _keep(own: dict[str, Any], name: str, each: Any, key: str) -> None:
    if own.setdefault(name, each) != each:
        label = name.rpartition(" ")[2]
        raise LlmevalError(
            f"{key}: found two functions or classes {label!r}, expected distinct names: give one a name="
        )


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
