"""Requests and replies of targets: templates with placeholders for inputs, and predictions read each by itself."""

__all__ = (
    "WrongCountError",
    "at",
    "fill",
    "has_each",
    "has_id",
    "input_paths",
    "parse_reply",
    "predictions_in",
    "template_faults",
)

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeAlias

from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.core.wording import suggest
from pytest_llmeval.data.files.json import nests_too_deep, unique_keys
from pytest_llmeval.data.files.places import TOO_DEEP
from pytest_llmeval.data.formats.base import ABSENT, pick
from pytest_llmeval.services.secrets import Redactor, kind
from pytest_llmeval.targets.spec import ResponseSpec

TemplatePath: TypeAlias = tuple[str | int, ...]

_EACH: Final = "$each"
_ID: Final = "$id"
_INPUT: Final = "$input"
_KNOWN: Final = (_EACH, _ID, _INPUT)


def at(value: Any, path: str | None) -> Any:
    """Return the value at a dotted path of JSON data, or `ABSENT`; ``None`` is the path of the value itself."""
    if path is None:
        return value
    return pick(value, path) if isinstance(value, Mapping) else pick({"": value}, f".{path}")


def fill(template: Any, inputs: Sequence[Any], number: int = 0) -> Any:
    """Return the request for some inputs.

    Args:
        template: Free of faults.
        inputs: Each with a value at every path of `input_paths`.
        number: The input for placeholders outside ``$each``.
    """
    if isinstance(template, Mapping):
        if _INPUT in template:
            path = template[_INPUT]
            return at(inputs[number], None if path is True else path)
        if _ID in template:
            return number
        if _EACH in template:
            return [fill(template[_EACH], inputs, each) for each in range(len(inputs))]
        return {key: fill(part, inputs, number) for key, part in template.items()}
    if isinstance(template, list | tuple):
        return [fill(part, inputs, number) for part in template]
    return template


def has_each(template: Any) -> bool:
    """Return whether a request lists its inputs."""
    return any(name == _EACH for _, name, _ in _placeholders(template))


def has_id(template: Any) -> bool:
    """Return whether a request numbers its inputs."""
    return any(name == _ID for _, name, _ in _placeholders(template))


def input_paths(template: Any) -> tuple[str, ...]:
    """Return the paths that every input must have, sorted."""
    found = {value for _, name, value in _placeholders(template) if name == _INPUT and isinstance(value, str)}
    return tuple(sorted(found))


def template_faults(template: Any, batch: int) -> Iterator[tuple[TemplatePath, str]]:
    """Yield what is wrong with a template for batches of a size: where in it, and ``found ..., expected ...``."""
    found = list(_placeholders(template))
    for place, name, value in found:
        holder = _holder(template, place)
        if name not in _KNOWN:
            yield (
                place,
                f"found the unknown placeholder {name!r}, expected one of {', '.join(_KNOWN)}{suggest(name, _KNOWN)}",
            )
        elif len(holder) > 1:
            yield place, f"found {name!r} beside other keys, expected it alone in its mapping"
        elif name == _INPUT and value is not True and not (isinstance(value, str) and all(value.split("."))):
            yield place, "found no path, expected true for the whole input, or a path into it such as 'question'"
        elif name == _ID and value is not True:
            yield place, "found a value other than true, expected {$id: true}"
        elif name == _EACH and _EACH in place[:-1]:
            yield place, "found $each inside $each, expected only one of them"
        elif name != _EACH and _EACH not in place and batch > 1:
            yield place, f"found {name!r} outside $each, expected it inside: a request has up to {batch} inputs"
    if not any(name == _INPUT or name not in _KNOWN for _, name, _ in found):
        yield (), "found no {$input: ...}, expected the input of the case somewhere in the request"


def _placeholders(template: Any, place: TemplatePath = ()) -> Iterator[tuple[TemplatePath, str, Any]]:
    """Yield the keys that begin with a dollar sign: where, which, and what they hold."""
    if isinstance(template, Mapping):
        for key, part in template.items():
            if key.startswith("$"):
                yield (*place, key), key, part
            yield from _placeholders(part, (*place, key))
    elif isinstance(template, list | tuple):
        for number, part in enumerate(template):
            yield from _placeholders(part, (*place, number))


def _holder(template: Any, place: TemplatePath) -> Any:
    for step in place[:-1]:
        template = template[step]
    return template


class WrongCountError(PredictionError):
    """The list of results and the list of inputs have different lengths, so they cannot be matched."""


def parse_reply(body: bytes | str) -> Any:
    """Return the JSON data that was written.

    Raises:
        PredictionError: It is no JSON, or a key occurs twice in an object.
    """
    try:
        reply = json.loads(body, parse_constant=_no_number, parse_float=_finite, object_pairs_hook=unique_keys)
    except RecursionError:
        raise PredictionError(TOO_DEEP) from None
    except ValueError as error:
        raise PredictionError(f"found invalid JSON ({error})") from None
    if nests_too_deep(reply):  # how deep Python itself reads depends on the stack of the caller
        raise PredictionError(TOO_DEEP)
    return reply


def _finite(literal: str) -> float:
    value = float(literal)
    return value if math.isfinite(value) else _no_number(literal)


def _no_number(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not a JSON number")


def predictions_in(
    reply: Any, response: ResponseSpec, count: int, redactor: Redactor, *, listed: bool
) -> list[Any | PredictionError]:
    """Return one entry per input, in order: its prediction, or why there is none.

    Args:
        reply: JSON data.
        response: Where to find the predictions.
        count: How many inputs were sent.
        redactor: Makes parts of the reply fit for reasons.
        listed: Whether they were sent as a list; otherwise there is one, and `response` names its prediction.

    Raises:
        WrongCountError: The results have no ids, and there are more or fewer than inputs.
        PredictionError: There is no list of results.
    """
    if not listed:
        return [_prediction(reply, response.prediction, "the reply", redactor)]
    items = at(reply, response.items)
    where = f"at {response.items!r}" if response.items is not None else "as the reply"
    if not isinstance(items, list):
        found = f"nothing {where}" if items is ABSENT else f"{kind(items)} {where}"
        raise PredictionError(f"found {found}, expected a list of results")
    if response.id is not None:
        return _by_id(items, response, count, redactor)
    if len(items) != count:
        raise WrongCountError(f"found {len(items)} results {where}, expected {count}")
    prefix = response.items or ""
    return [_prediction(item, response.prediction, f"{prefix}[{place}]", redactor) for place, item in enumerate(items)]


def _prediction(item: Any, path: str | None, where: str, redactor: Redactor) -> Any | PredictionError:
    found = at(item, path)
    if found is not ABSENT and found is not None:
        return found
    what = "nothing" if found is ABSENT else "null"
    place = f"at {path!r} of {where}" if path is not None else f"as {where}"
    rest = f": {redactor.excerpt(json.dumps(item, ensure_ascii=False))}" if item is not None else ""
    return PredictionError(f"found {what} {place}, expected a prediction{rest}")


def _by_id(items: Sequence[Any], response: ResponseSpec, count: int, redactor: Redactor) -> list[Any | PredictionError]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        found = at(item, response.id)
        if isinstance(found, int | str) and not isinstance(found, bool):
            places[str(found)].append(place)
    strange = sorted(places.keys() - {str(number) for number in range(count)})
    hint = f", but results with the ids {redactor.excerpt(', '.join(strange))}" if strange else ""
    prefix = response.items or ""
    answers: list[Any | PredictionError] = []
    for number in range(count):
        match places.get(str(number), []):
            case []:
                answers.append(PredictionError(f"found no result whose {response.id!r} is {number}{hint}"))
            case [place]:
                answers.append(_prediction(items[place], response.prediction, f"{prefix}[{place}]", redactor))
            case several:
                answers.append(
                    PredictionError(f"found {len(several)} results whose {response.id!r} is {number}, expected one")
                )
    return answers
