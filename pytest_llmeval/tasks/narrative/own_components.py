"""Components of a user's own evaluators, beside those of JSON v3."""

__all__ = ("OwnComponents",)

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import format_error
from pytest_llmeval.core.evaluator import Evaluator, Metric
from pytest_llmeval.core.observation import Observation, Sums
from pytest_llmeval.suite.registry import get_evaluator

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray


@dataclass(frozen=True)
class OwnComponents:
    """Evaluators by the name of their component; the first metric of each is its score.

    Attributes:
        given: Name to an evaluator, the name of a registered one (a conftest's too), or ``package.module:Class``.
        taken: Names that are in use.

    Raises:
        ValueError: A name is taken or no name, or its value is of another type.
        EvaluatorError: There is no such evaluator.
    """

    given: Mapping[str, Any]
    taken: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, value in self.given.items():
            if name in self.taken or not name.isidentifier():
                raise ValueError(f"components: found the name {name!r}, expected a new one of letters and digits")
            if not isinstance(value, str | Evaluator):
                message = f"components.{name}: found {value!r}, expected an evaluator or its name"
                raise ValueError(message)  # noqa: TRY004 (options raise ValueError)
        self.evaluators  # noqa: B018 (raises for unknown evaluators)

    @cached_property
    def evaluators(self) -> dict[str, Evaluator]:
        """The evaluators by the name of their component."""
        return {name: _evaluator(value, name) for name, value in self.given.items()}

    def describe(self) -> list[Metric]:
        """Return the scores of the components."""
        return [
            Metric(f"narrative_{name}", signature=self._score(evaluator).signature)
            for name, evaluator in self.evaluators.items()
        ]

    def measure(self, name: str, case: Case) -> Observation:
        """Return what a component counts in a case; its details have its metrics."""
        evaluator = self.evaluators[name]
        found = evaluator.measure(case)
        scores = evaluator.scores(found)
        reason = found.undefined.get(first := self._score(evaluator).name)
        undefined = {} if scores.get(first) is not None else {f"narrative_{name}": reason or "nothing to judge"}
        counts = {f"{name}:{count}": value for count, value in found.counts.items()}
        judged = {} if undefined else {f"{name}:judged stories": 1}
        return Observation(counts | judged, {name: {**found.details, **scores}}, undefined, found.malformed)

    def summarize(self, sums: Sums) -> "dict[str, FloatArray]":
        """Return the scores of the components; NaN where no story could be judged."""
        import numpy as np

        scores = {}
        for name, evaluator in self.evaluators.items():
            start = f"{name}:"
            columns = {each.removeprefix(start): column for each, column in sums.items() if each.startswith(start)}
            with np.errstate(all="ignore"):
                column = evaluator.summarize(Sums(columns, sums.length))[self._score(evaluator).name]
            scores[name] = np.where(sums[f"{name}:judged stories"] > 0, column, np.nan)
        return scores

    @staticmethod
    def _score(evaluator: Evaluator) -> Metric:
        return evaluator.describe()[0]


def _evaluator(given: str | Evaluator, name: str) -> Evaluator:
    if isinstance(given, Evaluator):
        return given
    if ":" not in given:
        return get_evaluator(given)
    module, _, attribute = given.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:
        raise ValueError(f"components.{name}: {given!r}: {format_error(error)}") from error
    if not isinstance(found, type) or not issubclass(found, Evaluator):
        message = f"components.{name}: found {given!r}, expected a subclass of Evaluator"
        raise ValueError(message)  # noqa: TRY004 (options raise ValueError)
    return found()
