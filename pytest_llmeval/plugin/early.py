"""Decide whether fixtures allow early calls of targets and judges."""

import inspect
from collections.abc import Iterable, Mapping, Sequence

import pytest

_FACTORIES = ("llmeval_target", "judge_client")


def may_ask_early(names: Iterable[str], fixtures: "Mapping[str, Sequence[pytest.FixtureDef[object]]]") -> bool:
    """Return whether nothing that lives for one test only can matter to a call of the target.

    Args:
        names: Of the fixtures that a case's test uses, autouse ones included.
        fixtures: Their definitions, the one that holds last.
    """
    for name in names:
        if name == "request":
            # A target that is made from the parameter of a model matrix is the same for all cases.
            if any(_asks_for_its_test(defined) for defined in fixtures.get("llmeval_target", ())[-1:]):
                return False
            continue
        for defined in fixtures.get(name, ())[-1:]:
            if defined.scope != "function" or _is_plain(defined):
                continue
            return False
    return True


def _is_plain(defined: "pytest.FixtureDef[object]") -> bool:
    """Return whether a fixture leaves nothing to undo after its test: it is ours, or it just returns something."""
    if defined.func.__module__.startswith("pytest_llmeval."):
        return defined.argname != "eval_case"
    return defined.argname in _FACTORIES and not inspect.isgeneratorfunction(defined.func)


def outlives_its_test(name: str, fixtures: "Mapping[str, Sequence[pytest.FixtureDef[object]]]") -> bool:
    """Return whether what a fixture returns can be used after its test, as far as pytest knows.

    Args:
        name: Of the fixture.
        fixtures: The definitions of all fixtures that it uses, directly or not.
    """
    for defined in fixtures.get(name, ())[-1:]:
        if defined.scope != "function":
            return True
        used = all(each != "request" and outlives_its_test(each, fixtures) for each in defined.argnames)
        return _is_plain(defined) and used
    return True


def _asks_for_its_test(defined: "pytest.FixtureDef[object]") -> bool:
    return "request" in defined.argnames and not defined.params
