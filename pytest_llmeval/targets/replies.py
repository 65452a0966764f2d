"""Reading predictions from a reply, each independently of the others."""

__all__ = ("WrongCountError", "parse_reply", "predictions_in")

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NoReturn

from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.data.files.json import nests_too_deep, unique_keys
from pytest_llmeval.data.files.places import TOO_DEEP
from pytest_llmeval.data.formats.fields import ABSENT
from pytest_llmeval.services.secrets import Redactor, kind
from pytest_llmeval.targets.spec import ResponseSpec
from pytest_llmeval.targets.template import at


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
