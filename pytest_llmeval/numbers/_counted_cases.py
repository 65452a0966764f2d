"""The statistics of some cases of a suite, by evaluator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core import CaseRecord, Evaluator, GroupResult, Metric
from pytest_llmeval.numbers._mergeable import Statistics
from pytest_llmeval.numbers._table import OUTCOME, OUTCOME_EVALUATOR


@dataclass(frozen=True)
class CountedCases:
    """What evaluators counted in some cases, and their outcomes; those of other cases can be added.

    Attributes:
        cases: How many.
        missing: Those among them that did not run.
        statistics: Evaluator label to what it counted; the outcomes have a label of their own.
    """

    cases: int
    missing: int
    statistics: Mapping[str, Statistics]

    @classmethod
    def from_records(cls, evaluators: Mapping[str, Evaluator], records: Sequence[CaseRecord]) -> "CountedCases":
        """The statistics of recorded cases."""
        statistics = {
            label: Statistics.from_observations(
                label, evaluator, (record.observations.get(label) for record in records)
            )
            for label, evaluator in evaluators.items()
        }
        outcomes = map(OUTCOME_EVALUATOR.observation_of, records)
        statistics[OUTCOME] = Statistics.from_observations(OUTCOME, OUTCOME_EVALUATOR, outcomes)
        return cls(len(records), sum(not record.ran for record in records), statistics)

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """The names of the counts by label."""
        return {label: statistic.names for label, statistic in self.statistics.items()}

    def plus(self, other: "CountedCases", evaluators: Mapping[str, Evaluator]) -> "CountedCases":
        """The statistics of these and other cases."""
        return CountedCases(
            self.cases + other.cases,
            self.missing + other.missing,
            {
                label: self.statistics[label].plus(other.statistics[label], label, evaluator)
                for label, evaluator in _with_outcome(evaluators).items()
            },
        )

    def result(
        self, evaluators: Mapping[str, Evaluator], names: Mapping[str, Sequence[str]], confidence: float | None
    ) -> GroupResult:
        """The metrics and the pass rate of the cases, with how their intervals were computed.

        Args:
            evaluators: Label to evaluator.
            names: Label to the names of counts that other cases have.
            confidence: Of the intervals; ``None`` leaves them out.
        """
        merged = [
            self.statistics[label].values_of(label, evaluator, names[label], confidence, self.missing)
            for label, evaluator in _with_outcome(evaluators).items()
        ]
        metrics = {name: value for values, _ in merged for name, value in values.items()}
        methods = {name: method for _, methods in merged for name, method in methods.items()}
        return GroupResult(self.cases, metrics, metrics.pop(Metric.PASS_RATE), intervals=methods)

    def to_json(self) -> dict[str, Any]:
        """The statistics as JSON data."""
        evaluators = {label: statistic.to_json() for label, statistic in self.statistics.items() if label != OUTCOME}
        outcomes = self.statistics[OUTCOME].to_json()
        return {"cases": self.cases, "missing": self.missing, "outcomes": outcomes, "evaluators": evaluators}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CountedCases":
        """The statistics in JSON data that `to_json` wrote.

        Raises:
            ValueError: The numbers of cases do not agree.
        """
        statistics = {label: Statistics.from_json(counted) for label, counted in data["evaluators"].items()}
        statistics[OUTCOME] = Statistics.from_json(data["outcomes"])
        cases, missing = data["cases"], data["missing"]
        if type(cases) is not int or type(missing) is not int or not 0 <= missing <= cases:
            raise ValueError(f"found {missing!r} of {cases!r} cases missing")
        for label, statistic in statistics.items():
            if statistic.cases != cases:
                raise ValueError(f"found {statistic.cases} cases of {label!r}, expected {cases}")
        return cls(cases, missing, statistics)


def _with_outcome(evaluators: Mapping[str, Evaluator]) -> Mapping[str, Evaluator]:
    """The evaluators by label, with that of the outcomes."""
    return {**evaluators, OUTCOME: OUTCOME_EVALUATOR}
