"""Records of measured cases; those of cases that measure alike share their parts."""

__all__ = ("SharedRecords", "not_computed", "record_of")

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import MissingDataError, MissingExtraError, format_error
from pytest_llmeval.core.frames import origin
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.results import CaseOutcome, CaseRecord
from pytest_llmeval.services.secrets import presentable

_MOST_KINDS = 10_000
_PLAIN = frozenset({int, float, bool})


def record_of(case: Case, measured: Mapping[str, Observation | Exception]) -> CaseRecord:
    """Return the record of a case that evaluators measured.

    Args:
        case: The case.
        measured: Evaluator label to the observation, or why there is none.

    Raises:
        MissingExtraError: An optional dependency is not installed.
        MissingDataError: Language data is not installed.
    """
    observed: dict[str, Observation] = {}
    errors: dict[str, str] = {}
    for label, each in measured.items():
        if isinstance(each, MissingDataError | MissingExtraError):
            raise each
        if isinstance(each, Observation):
            observed[label] = each
        else:
            errors[label] = presentable(format_error(each) + origin(each))
    malformed = [each.malformed for each in observed.values() if each.malformed is not None]
    failed = [*errors.values(), *chain(*(not_computed(each.errored) for each in observed.values()))]
    outcome: CaseOutcome = "errored" if failed else "failed" if malformed else "passed"
    reason = next(iter([*failed, *malformed]), None)
    return CaseRecord(case.id, case.labels, outcome, observed, errors=errors, reason=reason)


def not_computed(errored: Mapping[str, str]) -> Iterator[str]:
    """Yield which metrics have no value and why, each reason once."""
    names: dict[str, list[str]] = {}
    for name, why in errored.items():
        names.setdefault(why, []).append(name)
    for why, (first, *others) in names.items():
        yield f"{first}{f' and {len(others)} more' if others else ''}: {why}"


class SharedRecords:
    """Makes records, and remembers what many cases have in common: kept once, it takes a tenth of the memory."""

    def __init__(self) -> None:
        self._known: dict[Any, CaseRecord] = {}

    def of(self, case: Case, measured: Mapping[str, Observation | Exception]) -> CaseRecord:
        """Return what `record_of` does, with the observations of an earlier record that is alike."""
        kinds = tuple(map(_kind, measured.values()))
        if None in kinds:
            return record_of(case, measured)
        alike = self._known.get(kinds)
        if alike is None:
            alike = record_of(case, measured)
            if len(self._known) < _MOST_KINDS:
                self._known[kinds] = alike
            return alike
        parts = alike.outcome, alike.observations, alike.errors, alike.reason
        return CaseRecord(case.id, case.labels, *parts, lines=alike.lines)


def _kind(measured: Observation | Exception) -> tuple[Any, ...] | None:
    """Return what two observations have in common only if they are written alike; ``None`` for rich ones."""
    if isinstance(measured, Exception) or measured.details or measured.errored:
        return None
    numbers = measured.counts.values()
    types = tuple(map(type, numbers))  # 1, 1.0 and True are equal
    if not _PLAIN.issuperset(types):
        return None
    undefined = repr(measured.undefined) if measured.undefined else None
    return (*measured.counts, *numbers, types, undefined, measured.malformed)
