"""What evaluators say of a case, and its answers, for people."""

__all__ = ("explained", "failing_answers", "shown_value")

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import format_error
from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.core.explanations import as_line, cut
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.results import AnswerShown, CaseRecord
from pytest_llmeval.core.views import Reading
from pytest_llmeval.core.wording import printable
from pytest_llmeval.services.secrets import secret_values, without
from pytest_llmeval.suite.suite import Suite

_MOST_LINES = 20
_LONGEST = 4_000
"""Characters of a value that reports keep."""


def explained(suite: Suite, case: Case, observations: Mapping[str, Observation]) -> dict[str, list[str]]:
    """Return what evaluators say is wrong with an answer, by label; those that say nothing are left out."""
    said = {
        label: list(_lines(suite.evaluators[label], suite.readings[label], case, observation))
        for label, observation in observations.items()
    }
    if not any(said.values()):
        return {}
    secrets = secret_values(suite.secret_variables)
    return {label: _presentable(lines, secrets) for label, lines in said.items() if lines}


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
    shown = [printable(without(as_line(line), secrets)) for line in lines[:_MOST_LINES]]
    return [*shown, f"... and {len(lines) - _MOST_LINES} more"] if len(lines) > _MOST_LINES else shown


def failing_answers(records: Sequence[CaseRecord]) -> tuple[Mapping[str, Sequence[str]], list[AnswerShown]]:
    """Return the lines about the most frequent failing answer of a case's repeats, and all failing answers.

    Where no single repeat fails, all answers take their place.
    """
    failing = [each for each in records if each.outcome in ("failed", "errored")] or records
    often: dict[str, AnswerShown] = {}
    lines: dict[str, Mapping[str, Sequence[str]]] = {}
    for record in failing:
        for value, _ in record.answers:
            key = json.dumps(value, sort_keys=True, default=str)
            often[key] = AnswerShown(value, often[key].times + 1 if key in often else 1)
            lines.setdefault(key, record.lines)
    ordered = sorted(often, key=lambda key: -often[key].times)
    return (lines[ordered[0]] if ordered else {}), [often[key] for key in ordered]


def shown_value(value: Any, secrets: Iterable[str]) -> Any:
    """Return a value as reports show it: without secrets, and a large one as text that is cut.

    Args:
        value: JSON data.
        secrets: As of `secret_values`.
    """
    if value is MISSING:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    clean = without(text, secrets)
    if clean != text or len(text) > _LONGEST:
        return cut(printable(clean, lines=True), _LONGEST)
    return value
