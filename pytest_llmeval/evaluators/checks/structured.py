"""Checks of JSON: whether the answer is or contains some, of what schema, equal to or including what."""

__all__ = ("JSON_KINDS",)

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from pytest_llmeval.core.errors import MissingExtraError
from pytest_llmeval.core.wording import excerpt
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.evaluators.checks.contract import (
    CheckError,
    CheckKind,
    CheckOutcome,
    CheckTest,
    Subject,
    UnreadableError,
    composed,
    quoted,
)

_MOST_READ = 2_000_000
"""Characters that may be read in search of JSON; text full of opening brackets would else take quadratic time."""

_LINES_PER_READ = 100
"""Times as fast as characters are read, lines are counted."""

_OPENING = re.compile(r'\{(?=\s*+["}])|\[(?=\s*+[]\[{"\-0-9tfn])')
_SCALARS = (str, int, float, bool)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _whole(subject: Subject) -> Any:
    """Return the JSON value that the part is: data as it is, a text read as a whole.

    Raises:
        UnreadableError: The text is not JSON.
    """
    if "json" not in subject.memory:
        subject.memory["json"] = _parsed(subject.value) if isinstance(subject.value, str) else (subject.value, None)
    value, fault = subject.memory["json"]
    if fault is not None:
        raise UnreadableError(f"{subject.show()}, which is not JSON ({fault})")
    return value


def _parsed(text: str) -> tuple[Any, str | None]:
    """Return the value that a text is, and what is wrong with it."""
    stripped = text.strip(" \t\r\n")
    try:
        return _DECODER.decode(stripped), None
    except json.JSONDecodeError as error:
        return None, f"{error.msg} at character {error.pos + len(text) - len(text.lstrip()) + 1}"
    except RecursionError:
        return None, "nested too deeply to be read"
    except ValueError as error:
        return None, str(error)


def _values(subject: Subject) -> Iterator[Any]:
    """Yield the objects and arrays that stand in the part, none of them inside another."""
    if not isinstance(subject.value, str):
        if isinstance(subject.value, Mapping | list | tuple):
            yield subject.value
        return
    text, start, budget = subject.value, 0, _MOST_READ
    while opening := _OPENING.search(text, start):
        try:
            value, start = _DECODER.raw_decode(text, opening.start())
        except json.JSONDecodeError as error:
            start = opening.end()
            budget -= error.pos - opening.start() + error.pos // _LINES_PER_READ  # the error counts the lines before it
        except (RecursionError, ValueError):
            start = opening.end()
            budget -= len(text) - start
        else:
            yield value
        if budget < 0:
            raise CheckError("found too many opening brackets without JSON to look at each of them")


Complaint = Callable[[Any], str | None]


def _schema_test(schema: Any) -> Complaint:
    """Return what says how a value disagrees with a JSON Schema.

    Raises:
        ValueError: It is no schema, or it refers to another document.
    """
    try:
        from jsonschema import SchemaError, ValidationError
        from jsonschema.validators import Draft202012Validator, validator_for
        from referencing import Registry
        from referencing.exceptions import Unresolvable
    except ImportError as error:
        raise MissingExtraError("a check by JSON Schema", "schema", error) from error

    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        place = "".join(f"[{part!r}]" for part in error.absolute_path)
        raise ValueError(f"found a schema that is none ({place or 'top level'}: {error.message})") from None
    # An empty registry of our own: without one, references would be fetched over the network.
    validator = kind(schema, registry=Registry())

    def complaint(value: Any) -> str | None:
        try:
            errors: Sequence[ValidationError] = sorted(validator.iter_errors(value), key=lambda each: each.json_path)
        except Unresolvable as error:
            raise CheckError(f"the schema refers to {error.ref!r}, which is not in it") from None
        except RecursionError:
            raise CheckError("the value or its schema is nested too deeply") from None
        if not errors:
            return None
        first = errors[0]
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        return f"{first.json_path}: {excerpt(first.message, 200)}{more}"

    return complaint


def _json_schema(schema: Any) -> CheckTest:
    complaint = _schema_test(schema)

    def test(subject: Subject) -> CheckOutcome:
        found = complaint(_whole(subject))
        return CheckOutcome(found is None, found or "")

    return test


def _is_json(schema: Any) -> CheckTest:
    complaint = None if schema is None else _schema_test(schema)

    def test(subject: Subject) -> CheckOutcome:
        try:
            value = _whole(subject)
        except UnreadableError as error:
            return CheckOutcome(False, str(error))
        found = complaint(value) if complaint is not None else None
        return CheckOutcome(found is None, found or "")

    return test


def _contains_json(schema: Any) -> CheckTest:
    complaint = None if schema is None else _schema_test(schema)

    def test(subject: Subject) -> CheckOutcome:
        first = None
        for value in _values(subject):
            found = complaint(value) if complaint is not None else None
            if found is None:
                return CheckOutcome(True, quoted(json.dumps(value, ensure_ascii=False)))
            first = first or found
        return CheckOutcome(False, first or f"no JSON in {subject.show()}")

    return test


def _json_equals(wanted: Any) -> CheckTest:
    def test(subject: Subject) -> CheckOutcome:
        found = _difference(wanted, _whole(subject), "$", subset=False)
        return CheckOutcome(found is None, found or "")

    return test


def _json_subset(wanted: Any) -> CheckTest:
    def test(subject: Subject) -> CheckOutcome:
        found = _difference(wanted, _whole(subject), "$", subset=True)
        return CheckOutcome(found is None, found or "")

    return test


def _difference(wanted: Any, found: Any, place: str, *, subset: bool) -> str | None:
    """Return where a value first differs from what is wanted, or lacks it; ``None`` where it does not.

    Numbers are equal by value, texts in composed form; true is not 1.
    """
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return _mapping_difference(wanted, found, place, subset=subset)
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple):
        if subset:
            return _missing_item(wanted, found, place)
        if len(wanted) != len(found):
            return f"{place} with {len(found)} items, not {len(wanted)}"
        pairs = enumerate(zip(wanted, found, strict=True))
        return next((why for n, (a, b) in pairs if (why := _difference(a, b, f"{place}[{n}]", subset=False))), None)
    if isinstance(wanted, str) and isinstance(found, str):
        same = composed(wanted) == composed(found)
    else:
        same = isinstance(wanted, bool) is isinstance(found, bool) and wanted == found
    return None if same else f"{place}: {_shown(found)}"


def _mapping_difference(wanted: Mapping[str, Any], found: Mapping[str, Any], place: str, *, subset: bool) -> str | None:
    named = {composed(key): value for key, value in found.items()}
    keys = [composed(key) for key in wanted]
    for key, value in zip(keys, wanted.values(), strict=True):
        if key not in named:
            return f"{place} without {key!r}"
        if why := _difference(value, named[key], f"{place}.{key}", subset=subset):
            return why
    surplus = None if subset else next((key for key in named if key not in keys), None)
    return None if surplus is None else f"{place} with {surplus!r} too"


def _missing_item(wanted: Sequence[Any], found: Sequence[Any], place: str) -> str | None:
    """Return which wanted item has no item of its own among those found, under the pairing with most pairs."""
    fits = [[n for n, each in enumerate(found) if not _difference(item, each, "", subset=True)] for item in wanted]
    owner: dict[int, int] = {}

    def pair(item: int, tried: set[int]) -> bool:
        for n in fits[item]:
            if n not in tried:
                tried.add(n)
                if n not in owner or pair(owner[n], tried):
                    owner[n] = item
                    return True
        return False

    missing = next((item for item in range(len(wanted)) if not pair(item, set())), None)
    return None if missing is None else f"{place} without an item for {_shown(wanted[missing])}"


def _shown(value: Any) -> str:
    return quoted(json.dumps(value, ensure_ascii=False)) if isinstance(value, _SCALARS) else describe_found(value)


JSON_KINDS: Final = (
    CheckKind(
        "contains_json", "an object or array stands in the answer", Any, _contains_json, schema=True, optional=True
    ),
    CheckKind(
        "is_json", "the whole answer is JSON, of the schema if there is one", Any, _is_json, schema=True, optional=True
    ),
    CheckKind("json_equals", "the answer is this JSON value", Any, _json_equals),
    CheckKind("json_schema", "the answer is JSON of this schema", Any, _json_schema, schema=True),
    CheckKind("json_subset", "the answer is JSON that has all of this value", Any, _json_subset),
)
"""The kinds, in alphabetical order."""
