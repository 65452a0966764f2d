"""Positives of the evaluator ``retrieval``: what should be found, and how relevant it is."""

__all__ = ("gains_of", "listed_positives", "positive_faults")

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_llmeval.errors import EvaluatorError
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.evaluators.retrieval_items import By, Fields


def listed_positives(expected: Any) -> list[Any] | None:
    """Return the list of positives; ``None`` if there is no ground truth.

    Raises:
        EvaluatorError: There is something else than a list.
    """
    listed = expected.get("positives") if isinstance(expected, dict) else expected
    if expected is None or isinstance(listed, list):
        return listed
    raise EvaluatorError(f"expected.positives: found {describe_found(listed)}, expected a list")


def gains_of(positives: Sequence[Any], by: By, fields: Fields) -> Mapping[str, float]:
    """Return the keys of positives, and their relevance; of a document listed twice the first counts.

    Raises:
        EvaluatorError: A relevance is no number above 0.
    """
    if by == "id" and set(map(type, positives)) == {str} and all(positives):
        return dict.fromkeys(positives, 1.0)
    gains: dict[str, float] = {}
    for place, each in enumerate(positives):
        if fault := _relevance_fault(each):
            raise EvaluatorError(f"expected.positives[{place}].{fault}")
        key = fields.key_of(each, by)
        if key is not None:
            gains.setdefault(key, _relevance(each))
    return gains


def positive_faults(expected: Any, kinds: Iterable[By], fields: Fields) -> Iterator[str]:
    """Yield what is wrong with the positives of a case, and with what they are known by."""
    try:
        positives = listed_positives(expected)
    except EvaluatorError as error:
        yield str(error)
        return
    for by in sorted(kinds):
        lacking = [place for place, each in enumerate(positives or ()) if fields.key_of(each, by) is None]
        if lacking:
            names, more = ", ".join(fields.names(by)), f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
            expected = f"expected one ({names}): a task compares documents by it"
            yield f"expected.positives[{lacking[0]}]{more}: found no {by}, {expected}"
    for place, each in enumerate(positives or ()):
        if fault := _relevance_fault(each):
            yield f"expected.positives[{place}].{fault}"


def _relevance(positive: Any) -> Any:
    return positive.get("relevance", 1) if isinstance(positive, dict) else 1


def _relevance_fault(positive: Any) -> str | None:
    grade = _relevance(positive)
    if isinstance(grade, int | float) and not isinstance(grade, bool) and 0 < grade <= sys.float_info.max:
        return None
    return f"relevance: found {describe_found(grade)}, expected a number above 0"
