"""Comparisons of values with JSON Schemas, in limited time."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from pytest_llmeval.core import EvaluatorError
from pytest_llmeval.evaluators._patterns import SEARCH_S, PatternError, TimedPattern, pattern_size_fault

if TYPE_CHECKING:
    import regex
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator


class SlowSchemaError(EvaluatorError):
    """Comparing an answer with a JSON Schema took too long."""


_compared_until: ContextVar[float] = ContextVar("_compared_until")
"""When a value must have been compared with a schema."""


class _LimitedSearch:
    """Replaces the module ``re`` for the keywords of JSON Schema, whose searches would never be interrupted."""

    @staticmethod
    def search(pattern: str, text: str) -> "regex.Match[str] | None":
        return TimedPattern.compile(pattern).search(text, _compared_until.get() - time.monotonic())


_BOOLEANS: Final = (object(), object())


def _comparable(value: Any) -> Any:
    """A hashable key of a JSON value for ``uniqueItems``, equal for equal values only: true is not 1, and 1.0 is."""
    if isinstance(value, Mapping):
        return frozenset((key, _comparable(member)) for key, member in value.items())
    if isinstance(value, list | tuple):
        return tuple(map(_comparable, value))
    return _BOOLEANS[value] if isinstance(value, bool) else value


def _is_unique(items: Sequence[Any]) -> bool:
    """Whether no two items of a JSON array are equal, in linear time, for ``uniqueItems``."""
    return len(set(map(_comparable, items))) == len(items)


@cache
def _limited_kind(kind: type["Validator"]) -> Any:
    """A kind of JSON Schema validator with a time limit, also on patterns, and with linear ``uniqueItems``.

    Its keywords are those of jsonschema, run with other globals: its documented way to replace a keyword
    would leave out what ``unevaluatedProperties``, and schemas that name their dialect again, search for.
    """
    from jsonschema import validators

    namespaces: dict[int, dict[str, Any]] = {}

    def limited(function: Any) -> Any:
        own = FunctionType(
            function.__code__, namespace(function), function.__name__, function.__defaults__, function.__closure__
        )
        own.__kwdefaults__ = function.__kwdefaults__
        return own

    def namespace(function: Any) -> dict[str, Any]:
        original = function.__globals__
        if (own := namespaces.get(id(original))) is None:
            own = namespaces[id(original)] = dict(original)
            for name, value in original.items():
                if isinstance(value, FunctionType) and value.__module__.startswith("jsonschema._"):
                    own[name] = limited(value)
            own |= {name: new for name, new in {"re": _LimitedSearch, "uniq": _is_unique}.items() if name in own}
        return own

    def validator_of(schema: Any, default: Any) -> Any:
        chosen: Any = validators.validator_for(schema, default=default)
        return chosen if chosen is default else _limited_kind(chosen)

    def timed(function: Any) -> Any:
        def keyword(*arguments: Any) -> Any:
            if time.monotonic() > _compared_until.get():
                raise SlowSchemaError(f"comparing the value with its schema took longer than {SEARCH_S:g} s")
            return function(*arguments)

        return keyword

    keywords = {name: timed(limited(function)) for name, function in kind.VALIDATORS.items()}
    types = kind.TYPE_CHECKER.redefine("number", _is_number)
    own: Any = validators.extend(kind, keywords, type_checker=types)  # type: ignore[no-untyped-call] # as its stubs have it
    evolve = own.evolve
    own.evolve = FunctionType(
        evolve.__code__,
        {**evolve.__globals__, "validator_for": validator_of},
        evolve.__name__,
        evolve.__defaults__,
        evolve.__closure__,
    )
    return own


def _is_number(_checker: Any, value: Any) -> bool:
    """Whether a value is a number of JSON: ``1e400`` is infinite, and no number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _patterns_of(schema: Any) -> Iterator[str]:
    """Yield what a JSON Schema may take as regular expressions, which need a limit on their time."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            waiting += part.values()
            if isinstance(pattern := part.get("pattern"), str):
                yield pattern
            if isinstance(part.get("patternProperties"), Mapping):
                yield from map(str, part["patternProperties"])
        elif isinstance(part, list | tuple):
            waiting += part


@dataclass(frozen=True)
class JsonSchema:
    """A JSON Schema whose comparisons are cut off after a second; it fetches nothing that it refers to.

    Attributes:
        validator: Of jsonschema, with the time limit.
    """

    validator: "Validator"

    @classmethod
    def compile(cls, schema: Any) -> "JsonSchema":
        """Check a schema, and prepare comparisons with it.

        Raises:
            SchemaError: Of jsonschema: it is no schema.
            ValueError: It, or a pattern in it, is nested too deeply or repeats too much.
            ImportError: jsonschema is not installed.
        """
        from jsonschema.validators import Draft202012Validator, validator_for
        from referencing import Registry

        kind = validator_for(schema, default=Draft202012Validator)
        if fault := next(filter(None, map(pattern_size_fault, _patterns_of(schema))), ""):
            raise ValueError(fault)
        try:
            kind.check_schema(schema)
        except RecursionError:
            raise ValueError("found a schema that is nested too deeply") from None
        except (OverflowError, ValueError) as error:
            raise ValueError(f"found a schema with a number that is too large ({error})") from None
        # An empty registry of our own: without one, references would be fetched over the network.
        return cls(_limited_kind(kind)(schema, registry=Registry()))

    def errors(self, value: Any) -> "list[ValidationError]":
        """The disagreements of a value with the schema.

        Raises:
            EvaluatorError: The comparison takes longer than a second, or the schema refers to another document. Or one
                of the two is nested too deeply, or a number of the value is too large.
        """
        from referencing.exceptions import Unresolvable

        token = _compared_until.set(time.monotonic() + SEARCH_S)
        try:
            return list(self.validator.iter_errors(value))
        except Unresolvable as error:
            raise EvaluatorError(f"the schema refers to {error.ref!r}, which is not in it") from None
        except RecursionError:
            raise EvaluatorError("the value or its schema is nested too deeply") from None
        except OverflowError:
            raise EvaluatorError("a number of the value is too large to be compared with its schema") from None
        except PatternError as error:
            raise EvaluatorError(str(error)) from None
        finally:
            _compared_until.reset(token)
