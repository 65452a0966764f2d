"""Records of cases."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import structs

from pytest_llmeval.core import (
    BAD,
    MISSING,
    AnswerShown,
    Case,
    CaseOutcome,
    CaseRecord,
    Evaluator,
    MissingDataError,
    MissingExtraError,
    Observation,
    Reading,
    as_line,
    excerpt,
    format_error,
    grouped,
    origin,
    printable,
)
from pytest_llmeval.services import masked, presentable, secret_values, without
from pytest_llmeval.suites import LoadedSuite

_MOST_KINDS = 10_000
_PLAIN = frozenset({int, float, bool})
_MOST_LINES = 20
_LONGEST = 4_000
"""Characters of a value that reports keep."""
_LONGEST_CONVERSATION = 16_000
_SHORTER = (_LONGEST, 1_000, 300, 100)
"""Characters of a text within a value that is too long, tried one after the other."""
_OWN_TEXT = 1_000
_EXCERPTS = json.JSONEncoder(ensure_ascii=False, default=str)


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
    for why, (first, *others) in grouped((why, name) for name, why in errored.items()).items():
        yield f"{first}{f' and {len(others)} more' if others else ''}: {why}"


class SharedRecords:
    """Makes records, and remembers what many cases have in common: kept once, it takes a tenth of the memory."""

    def __init__(self) -> None:
        self._known: dict[Any, CaseRecord] = {}

    def record(self, case: Case, measured: Mapping[str, Observation | Exception]) -> CaseRecord:
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
    undefined = repr((measured.undefined, measured.abstained)) if measured.undefined else None
    return (*measured.counts, *numbers, types, undefined, measured.malformed)


def explained(suite: LoadedSuite, case: Case, observations: Mapping[str, Observation]) -> dict[str, list[str]]:
    """Return what evaluators say is wrong with an answer, by label; those that say nothing are left out."""
    reasons = {
        label: list(_lines(suite.evaluators[label], suite.readings[label], case, observation))
        for label, observation in observations.items()
    }
    if not any(reasons.values()):
        return {}
    secrets = secret_values(suite.secret_variables)
    return {label: _presentable(lines, secrets) for label, lines in reasons.items() if lines}


def _lines(evaluator: Evaluator, reading: Reading, case: Case, observation: Observation) -> Iterator[str]:
    """Yield the lines of an evaluator; an exception in it is a line, since the case has been scored."""
    try:
        views = reading.views(case)
        if len(views) == 1:
            yield from evaluator.explain(views[0], observation)
            return
        for number, (view, details) in enumerate(zip(views, observation.details["turns"], strict=True), 1):
            for line in evaluator.explain(view, Observation({}, details)):
                yield f"turn {number}: {line}"
    except Exception as error:  # noqa: BLE001 (evaluators are users' code)
        yield f"explain() failed: {format_error(error)}"


def _presentable(lines: Sequence[str], secrets: Iterable[str]) -> list[str]:
    printed = [printable(without(as_line(line), secrets)) for line in lines[:_MOST_LINES]]
    return [*printed, f"... and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else printed


def repeated_answers(records: Sequence[CaseRecord]) -> tuple[Mapping[str, Sequence[str]], list[AnswerShown]]:
    """Return the lines about the answer of a case's repeats that failed most often, and each different answer.

    Answers that failed come first, the most frequent of them before the others.
    """
    seen: dict[str, AnswerShown] = {}
    lines: dict[str, Mapping[str, Sequence[str]]] = {}
    for record in sorted(records, key=lambda each: each.outcome not in BAD):
        passed = record.outcome not in BAD
        for value, *_ in record.answers:
            key = _key(value)
            known = seen.get(key, AnswerShown(value, 0, 0))
            seen[key] = AnswerShown(known.value, known.times + 1, (known.passed or 0) + passed)
            lines.setdefault(key, record.lines)
    ordered = sorted(seen, key=lambda key: (-seen[key].failed, -seen[key].times))
    return (lines[ordered[0]] if ordered else {}), [seen[key] for key in ordered]


def different_answers(values: Iterable[Any]) -> list[AnswerShown]:
    """Return each different answer and how often it came, the most frequent first."""
    seen: dict[str, AnswerShown] = {}
    for value in values:
        known = seen.get(key := _key(value))
        seen[key] = AnswerShown(value, known.times + 1 if known else 1)
    return sorted(seen.values(), key=lambda each: -each.times)


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def shown_value(value: Any, secrets: Collection[str]) -> Any:
    """Return a value as reports show it: without secrets, and with long texts cut.

    Data keep their form if their texts can be cut so far that they fit; the room of messages and calls is larger.

    Args:
        value: JSON data.
        secrets: As of `secret_values`.
    """
    if value is MISSING:
        return None
    if isinstance(value, str):
        clean = without(value, secrets)
        return value if clean == value and len(value) <= _LONGEST else excerpt(clean, _LONGEST, lines=True, count=True)
    text = _EXCERPTS.encode(value)
    steps = isinstance(value, Mapping) and not value.keys().isdisjoint(("messages", "tool_calls"))
    room = _LONGEST_CONVERSATION if steps else _LONGEST
    clean = without(text, secrets)
    if clean == text and len(text) <= room:
        return value
    redacted = masked(value, secrets) if secrets else value
    shortest = _shortened(redacted, _SHORTER[-1])
    # The mark of a cut is shorter than what is left: if this is twice too long, no form fits.
    if len(_EXCERPTS.encode(shortest)) > 2 * room:
        return excerpt(clean, _LONGEST, lines=True, count=True)
    longest = _longest_text(redacted)
    for most, shorter in zip(_SHORTER, (*_SHORTER[1:], -1), strict=True):
        if shorter >= longest:
            continue  # which leaves as much of every text
        shortened = shortest if shorter < 0 else _shortened(redacted, most)
        written = _EXCERPTS.encode(shortened)
        if len(written) <= room and without(written, secrets) == written:
            return shortened
    return excerpt(clean, _LONGEST, lines=True, count=True)


def _longest_text(value: Any) -> int:
    """Return the length of the longest text in data, as `excerpt` writes it."""
    if isinstance(value, str):
        return len(excerpt(value, _LONGEST, lines=True))
    if isinstance(value, Mapping):
        return max(map(_longest_text, value.values()), default=0)
    return max(map(_longest_text, value), default=0) if isinstance(value, list | tuple) else 0


def _shortened(value: Any, most: int, own: int = _OWN_TEXT) -> Any:
    """Return data with shorter texts.

    Args:
        value: JSON data.
        most: Characters of a text.
        own: As of the fields of the outermost object, which has the answer itself besides what it rests on.
    """
    if isinstance(value, str):
        return excerpt(value, max(most, own), lines=True, count=True)
    if isinstance(value, Mapping):
        return {name: _shortened(each, most, own if isinstance(each, str) else 0) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(each, most, 0) for each in value]
    return value


def as_reported(record: CaseRecord, hidden: Collection[str] | None) -> CaseRecord:
    """Return a record as the main process gets it, equal whether or not it has crossed processes.

    Args:
        record: The record of a scored case.
        hidden: Texts that no answer shows, from `secret_values`; ``None`` to leave out what explains a failure.
    """
    observations = {label: each.plain() for label, each in record.observations.items()}
    if hidden is None:
        return structs.replace(record, observations=observations, lines={}, answers=(), judgings=())
    return structs.replace(
        record,
        observations=observations,
        answers=tuple(each._replace(value=shown_value(each.value, hidden)) for each in record.answers),
        judgings=tuple(
            each._replace(
                question={name: shown_value(text, hidden) for name, text in each.question.items()},
                reply=shown_value(each.reply, hidden),
            )
            for each in record.judgings
        ),
    )
