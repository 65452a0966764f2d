"""Arguments of Python targets: the input alone, or the input and the case by name."""

__all__ = ("for_case", "wrong_call")

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.core.frames import defined_at

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def for_case(target: Callable[..., Any], case: Case) -> Callable[[Any], Any]:
    """Return what is called with the input of a case alone.

    Args:
        target: The user's. If it requires two arguments of which one is named ``case``, the other one is the input.
        case: The case, which such a target gets as well.
    """
    required = _required(target)
    if len(required) != 2 or "case" not in required or required["case"].kind not in _BY_NAME:  # noqa: PLR2004 (input and case)
        return target
    first, other = next(iter(required)), next(name for name in required if name != "case")
    if first != "case" and required[other].kind != inspect.Parameter.KEYWORD_ONLY:
        return partial(target, case=case)
    return lambda value: target(**{other: value, "case": case})


def wrong_call(target: Callable[..., Any], value: Any, error: TypeError) -> PredictionError | None:
    """Return the error of a target that does not take the input alone; ``None`` if the target itself raised it."""
    try:
        inspect.signature(target).bind(value)
    except TypeError:
        hint = "a target gets the `input` of a case alone, or with `case` if it requires an argument of that name too"
        return PredictionError(f"TypeError: {error}{defined_at(target)}; {hint}")
    except ValueError:  # a callable written in C has no signature
        return None
    return None


def _required(target: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return {}
    return {
        name: each for name, each in parameters.items() if each.default is each.empty and each.kind not in _VARIADIC
    }
