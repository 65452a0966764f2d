"""Suites whose one metric is the length of the prediction, for tests of what happens around an evaluator."""

__all__ = ("Length", "key_of", "length_suite")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_llmeval import Case, Evaluator, Metric, Observation, Sums
from pytest_llmeval.core.observation import FloatArray
from pytest_llmeval.suite.suite import Suite, SuiteKey


@dataclass(frozen=True)
class Length(Evaluator):
    """Counts letters; a prediction that is no text is malformed."""

    name = "length"
    error: Exception | None = None

    def describe(self) -> Sequence[Metric]:
        return [Metric("length", high=None)]

    def measure(self, case: Case) -> Observation:
        if self.error is not None:
            raise self.error
        if case.expected is None:
            return Observation({}, undefined={"length": "no gold"})
        if not isinstance(case.prediction, str):
            return Observation({"letters": 0}, malformed=f"found {case.prediction!r}, expected text")
        return Observation({"letters": len(case.prediction)})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"length": sums["letters"]}


def length_suite(*cases: Case, path: Path = Path("/root/s.eval.yaml"), **more: Any) -> Suite:
    """Return a suite of cases; `more` are its other attributes."""
    return Suite(path.name.partition(".")[0], path, **{"evaluators": {"length": Length()}, "cases": cases, **more})


def key_of(suite: Suite, *, test: str = "", variant: str = "") -> SuiteKey:
    """Return what results of a suite are gathered under, in a run whose root is the folder of the suite."""
    return SuiteKey(str(suite.path), suite.path.name, test, variant)
