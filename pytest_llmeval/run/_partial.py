"""Results of parts of the cases, which merge into the result of all."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import (
    CaseLabels,
    CaseRecord,
    Evaluator,
    EvaluatorError,
    GroupResult,
    LlmevalError,
    Result,
    grouped,
)
from pytest_llmeval.numbers import CountedCases

_VERSION = 1


@dataclass(frozen=True)
class PartialResult:
    """What is known of some of the cases, in memory that does not grow with their number.

    Partial results of different cases add up; in any order and grouping they give the same result. They can be pickled
    and written as JSON. Nothing here can tell that a case is in two of them.

    Attributes:
        evaluators: Label to evaluator.
        group_by: The labels whose groups are kept apart.

    Example:
        >>> from pytest_llmeval import Case, get_evaluator, score
        >>> evaluator = get_evaluator("text", metrics=["f1"])
        >>> first = score(evaluator, [Case("a", expected="Paris", prediction="Paris")], partial=True)
        >>> second = score(evaluator, [Case("b", expected="Rome", prediction="Milan")], partial=True)
        >>> whole = first + PartialResult.from_json(second.to_json())
        >>> whole.cases, whole.result().metrics["f1"].value
        (2, 0.5)
    """

    evaluators: Mapping[str, Evaluator]
    group_by: tuple[str, ...]
    _whole: CountedCases
    _groups: Mapping[str, Mapping[str, CountedCases]]

    @classmethod
    def of(
        cls, evaluators: Mapping[str, Evaluator], records: Sequence[CaseRecord], group_by: Sequence[str] = ()
    ) -> "PartialResult":
        """The partial result of recorded cases."""
        groups: dict[str, dict[str, CountedCases]] = {}
        for key in group_by:
            members = grouped((group, record) for record in records for group in CaseLabels(record.labels).groups(key))
            groups[key] = {name: CountedCases.from_records(evaluators, subset) for name, subset in members.items()}
        return cls(dict(evaluators), tuple(group_by), CountedCases.from_records(evaluators, records), groups)

    @property
    def cases(self) -> int:
        """The number of cases that the partial result counts."""
        return self._whole.cases

    def __add__(self, other: "PartialResult") -> "PartialResult":
        """Add the results of other cases.

        Raises:
            LlmevalError: They were scored by other evaluators or grouped by other labels.
        """
        if not isinstance(other, PartialResult):
            return NotImplemented
        for name, mine, others in (
            ("evaluators", self.evaluators, other.evaluators),
            ("group_by", self.group_by, other.group_by),
        ):
            if mine != others:
                raise LlmevalError(f"partial results cannot be added: {name}: found {others!r}, expected {mine!r}")
        groups = {key: dict(self._groups[key]) for key in self.group_by}
        for key, into in groups.items():
            for name, counted in other._groups[key].items():
                into[name] = into[name].plus(counted, self.evaluators) if name in into else counted
        return PartialResult(self.evaluators, self.group_by, self._whole.plus(other._whole, self.evaluators), groups)

    def result(self, confidence: float | None = 0.95) -> Result:
        """Metrics and groups of the counted cases; results of single cases are not kept.

        Value, mean and counts are those of `score` over all cases. `Result.intervals` names the method of every
        interval.

        Args:
            confidence: Of the intervals; ``None`` leaves them out.
        """
        names = self._whole.names
        groups: dict[str, dict[str, GroupResult]] = {}
        for key in self.group_by:
            groups[key] = {}
            for name, counted in sorted(self._groups[key].items()):
                groups[key][name] = counted.result(self.evaluators, names, confidence)
        whole = self._whole.result(self.evaluators, names, confidence)
        return Result(whole.metrics, groups, (), whole.pass_rate, evaluators=self.evaluators, intervals=whole.intervals)

    def to_json(self) -> dict[str, Any]:
        """The partial result as JSON data; `from_json` reads it."""
        groups = {
            key: {name: counted.to_json() for name, counted in sorted(self._groups[key].items())}
            for key in self._groups
        }
        return {
            "partial_result": _VERSION,
            "evaluators": {label: _describe_evaluator(evaluator) for label, evaluator in self.evaluators.items()},
            "group_by": list(self.group_by),
            "whole": self._whole.to_json(),
            "groups": groups,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], evaluators: Mapping[str, Evaluator] | None = None) -> "PartialResult":
        """Read what `to_json` wrote; the round trip is identity.

        Args:
            data: The data.
            evaluators: Label to evaluator; needed for those that are not registered or have options that JSON cannot
                hold.

        Raises:
            LlmevalError: The data are not such a result, or are of other evaluators.
        """
        try:
            if data.get("partial_result") != _VERSION:
                raise LlmevalError(f"partial_result: found {data.get('partial_result')!r}, expected {_VERSION}")
            own = {
                label: _evaluator(label, described, (evaluators or {}).get(label))
                for label, described in data["evaluators"].items()
            }
            groups = {
                key: {name: CountedCases.from_json(counted) for name, counted in data["groups"][key].items()}
                for key in data["group_by"]
            }
            return cls(own, tuple(data["group_by"]), CountedCases.from_json(data["whole"]), groups)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise LlmevalError(f"partial result: found data that cannot be read ({error!r})") from None


def _describe_evaluator(evaluator: Evaluator) -> dict[str, Any]:
    """The identity of an evaluator in a partial result's JSON, and its JSON form if it can be built from one."""
    options: dict[str, Any] | None = {
        field.name: getattr(evaluator, field.name) for field in dataclasses.fields(evaluator) if field.init
    }
    try:
        options = json.loads(json.dumps(options, allow_nan=False))
    except (TypeError, ValueError):
        options = None
    return {
        "name": evaluator.name,
        "version": evaluator.version,
        "options": options,
        "metrics": {metric.name: metric.signature for metric in evaluator.describe()},
    }


def _evaluator(label: str, data: Mapping[str, Any], evaluator: Evaluator | None) -> Evaluator:
    """The evaluator that a partial result's JSON describes.

    Raises:
        LlmevalError: It cannot be built, or is another one.
    """
    from pytest_llmeval.suites import get_evaluator

    if evaluator is None and data["options"] is None:
        raise EvaluatorError(f"evaluators: {label}: its options are not in the data, expected the evaluator itself")
    built = get_evaluator(data["name"], **data["options"]) if evaluator is None else evaluator
    described = _describe_evaluator(built)
    if faults := [name for name in described if described[name] != data[name]]:
        name = faults[0]
        raise EvaluatorError(f"evaluators: {label}: {name}: found {data[name]!r}, expected {described[name]!r}")
    return built
