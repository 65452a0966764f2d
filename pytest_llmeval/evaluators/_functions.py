"""Evaluators whose scores come from elsewhere."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from msgspec import Struct

from pytest_llmeval.core import (
    MISSING,
    Case,
    Evaluator,
    EvaluatorError,
    FloatArray,
    Metric,
    Observation,
    Reads,
    Sums,
    form_of,
    number,
)
from pytest_llmeval.services import UsersLoop

_EXPECTED: Final = "expected a number, true or false, a text, a mapping of numbers, or a Score"


class Score(Struct, frozen=True):
    """The score of a case, as a function returns it.

    Attributes:
        value: A number, or true or false; ``None`` for a case without a score.
        reason: Why, for people.
        label: A word for the case; its share of the cases is a metric of its own.
    """

    value: float | None = None
    reason: str = ""
    label: str = ""


@dataclass(frozen=True)
class FunctionEvaluator(Evaluator):
    """A function of a case as an evaluator; subclasses have the function.

    * ``NAME``: mean of numbers; true counts 1, false 0;
    * ``NAME[KEY]``: mean of the numbers under a key, where the function returns a mapping;
    * ``NAME_is[LABEL]``: share of the cases with a label, among those with any.
    """

    reads = Reads("answer", objects=True, records=True)
    function: ClassVar[Callable[[Any], Any]]
    identity: ClassVar[str]
    """The qualified name of the function, or the name that it was given: scores of the same identity compare."""
    low: ClassVar[float | None] = 0.0
    high: ClassVar[float | None] = 1.0
    higher_is_better: ClassVar[bool] = True
    takes_objects = True

    def describe(self) -> Sequence[Metric]:
        """The mean, the family of means by key, and the family of shares of labels."""
        signature = f"function:{self.identity}"
        mean = Metric(self.name, self.higher_is_better, self.low, self.high, signature)
        shares = Metric(f"{self.name}_is[label]", signature=signature)
        return [mean, Metric(f"{self.name}[key]", self.higher_is_better, self.low, self.high, signature), shares]

    def measure(self, case: Case) -> Observation:
        """Call the user's function, and count what it returns.

        Raises:
            EvaluatorError: It returned something else than a score.
            Exception: Any error of the function.
        """
        values, reason, label = self._read(type(self).function(case))
        details = {name: text for name, text in (("reason", reason), ("label", label)) if text}
        counts: dict[str, float] = {}
        for key, value in values.items():
            if value is not None:
                counts |= {f"sum[{key}]": self._in_range(value), f"n[{key}]": 1}
        if label:
            counts |= {f"label[{label}]": 1, "labelled": 1}
        return Observation(counts, details, {} if counts else {self.name: reason or "no score"})

    def _read(self, returned: Any) -> tuple[Mapping[str, float | None], str, str]:
        """The result of a function: numbers by key, which is empty for one alone, its reason and its label."""
        if inspect.isawaitable(returned):
            returned = UsersLoop.current().wait_for(returned)
        if isinstance(returned, Score):
            return {"": self._number(returned.value)}, self._text(returned.reason), self._text(returned.label)
        value = self._plain(returned)
        if isinstance(value, str) and value:
            return {}, "", value
        if isinstance(value, dict) and value:
            return {key: self._number(figure) for key, figure in value.items()}, "", ""
        if value is None:
            raise EvaluatorError(f"{self.name}: found None, {_EXPECTED}; Score(None, reason=...) leaves a case out")
        return {"": self._number(value)}, "", ""

    def _number(self, returned: Any) -> float | None:
        value = self._plain(returned)
        if not (value is None or isinstance(value, int | float)):
            raise EvaluatorError(f"{self.name}: found {value!r}, {_EXPECTED}")
        return value

    def _text(self, text: Any) -> str:
        if type(text) is not str:
            raise EvaluatorError(f"{self.name}: found {text!r} as reason or label, expected a text")
        return text

    def _plain(self, value: Any) -> Any:
        try:
            return form_of(value, strict=True)
        except (ValueError, RecursionError) as error:
            raise EvaluatorError(f"{self.name}: {error}, {_EXPECTED}") from None

    def _in_range(self, value: float) -> float:
        low, high = self.low, self.high
        if (low is not None and value < low) or (high is not None and value > high):
            limits = " to ".join("any" if bound is None else number(bound) for bound in (low, high))
            raise EvaluatorError(
                f"{self.name}: found {value!r}, expected a number in the range {limits}; "
                f"ev.evaluator({self.name}, low=..., high=...) declares another one, None for no limit"
            )
        return float(value)

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Means and shares of what the function returned for cases."""
        columns = {}
        for name in sums:
            kind, _, key = name.partition("[")
            if kind == "sum":
                columns[self.name if key == "]" else f"{self.name}[{key}"] = sums[name] / sums[f"n[{key}"]
            elif kind == "label":
                columns[f"{self.name}_is[{key}"] = sums[name] / sums["labelled"]
        return columns or {self.name: sums["sum[]"] / sums["n[]"]}  # unknown, where every call failed


def evaluator_of(
    function: Callable[[Any], Any],
    name: str | None = None,
    *,
    low: float | None = 0.0,
    high: float | None = 1.0,
    higher_is_better: bool = True,
) -> Evaluator:
    """The evaluator that a user's function is.

    Args:
        function: ``case -> score``, plain or async. The score is a number, true or false, a text (a label), a mapping
            of numbers, or a `Score`.
        name: Of the metric; default: the function's.
        low: Smallest possible score; ``None`` for no limit.
        high: Largest possible score; ``None`` for no limit.
        higher_is_better: The direction.

    Raises:
        EvaluatorError: It has no name of its own, and none is given.
    """
    called, identity = name_function(function, name, "evaluators")
    values = {"function": staticmethod(function), "identity": identity, "low": low, "high": high, "name": called}
    values["__module__"] = getattr(function, "__module__", None) or "__main__"
    values["higher_is_better"] = higher_is_better
    evaluator: FunctionEvaluator = type(called, (FunctionEvaluator,), values)()
    return evaluator


def name_function(function: Any, name: str | None, key: str) -> tuple[str, str]:
    """The name and the identity of a user's function that becomes an evaluator or check."""
    if not callable(function) or isinstance(function, type):
        raise EvaluatorError(f"{key}: found {function!r}, expected a function of a case")
    if name is not None:
        return name, name
    own = getattr(function, "__name__", "")
    if not own.isidentifier():
        text = "lambda" if own == "<lambda>" else type(function).__qualname__
        call = "evaluator" if key == "evaluators" else "check"
        raise EvaluatorError(
            f"{key}: found a {text}, which has no name of its own, expected ev.{call}(..., name='polite')"
        )
    return own, f"{function.__module__}.{function.__qualname__}"


RUNS = "runs"
"""The key of a prediction that holds, for each run of the case, metric to score."""
ERROR, ABSTAINED = "error", "abstained"
"""Keys of an object in place of a score, with the reason."""

_SUM = "sum "

_FORM = f"expected the cases of a source with format results, with {RUNS}"


@dataclass(frozen=True)
class RecordedScores(Evaluator):
    """The mean over cases of scores that another program has computed, such as those of a source ``results``.

    A case that ran several times has the mean of its runs, and counts once. An error in one of them is an error of the
    case: it never counts as a score.

    Attributes:
        metrics: Names of the metrics.
        lower_is_better: Metrics for which lower is better.
        ranges: Metric to its smallest and largest value; without it, a metric has no bounds.
        signatures: Metric to how it is computed.
    """

    name = "recorded"

    metrics: tuple[str, ...] = ()
    lower_is_better: frozenset[str] = field(default=frozenset(), compare=False)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict, compare=False)
    signatures: Mapping[str, str] = field(default_factory=dict, compare=False)

    def describe(self) -> Sequence[Metric]:
        """The metrics that another program has computed."""
        return [self._metric(name) for name in self.metrics]

    def _metric(self, name: str) -> Metric:
        low, high = self.ranges.get(name, (None, None))
        return Metric(name, name not in self.lower_is_better, low, high, self.signatures.get(name, ""), averaged=True)

    def check(self, case: Case) -> Iterable[str]:
        """Yield a fault if no metric is named: it would measure nothing."""
        del case
        if not self.metrics:
            yield "metrics are missing: recorded: {metrics: [accuracy]}"

    def measure(self, case: Case) -> Observation:
        """The mean of the runs that have a score; an error in one of them is one of the case."""
        runs = case.prediction.get(RUNS) if isinstance(case.prediction, Mapping) else None
        if not isinstance(runs, list) or not runs or not all(isinstance(run, Mapping) for run in runs):
            return Observation({}, malformed=f"recorded scores are missing, {_FORM}")
        counts: dict[str, float] = {}
        undefined: dict[str, str] = {}
        errored: dict[str, str] = {}
        abstained = []
        for name in self.metrics:
            values = [run[name] for run in runs if run.get(name) is not None]
            scores = [value for value in values if not isinstance(value, Mapping)]
            reasons = {key: str(why) for value in values if isinstance(value, Mapping) for key, why in value.items()}
            if ERROR in reasons:
                errored[name] = reasons[ERROR]
            elif scores:
                counts |= {f"{_SUM}{name}": math.fsum(scores) / len(scores), f"cases {name}": 1}
            else:
                undefined[name] = reasons.get(ABSTAINED, "no result of this metric")
                abstained += [name] if ABSTAINED in reasons else []
        return Observation(counts, undefined=undefined, errored=errored, abstained=tuple(abstained))

    def measure_scored(self, runs: Iterable[Mapping[str, Any] | None]) -> list[Observation | None]:
        """The observations of cases that ran once and have a number for each metric.

        Args:
            runs: The only run of each case, as of `only_run`; `None` is returned for other cases.
        """
        names = [(name, f"{_SUM}{name}", f"cases {name}") for name in self.metrics]
        observations: list[Observation | None] = []
        for run in runs:
            observation = None
            if run is not None:
                counts: dict[str, float] = {}
                for name, total, count in names:
                    score = run.get(name)
                    if type(score) is not float and type(score) is not int:
                        break
                    counts[total], counts[count] = math.fsum((score,)), 1
                else:
                    observation = Observation(counts)
            observations.append(observation)
        return observations

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """The means of the recorded scores."""
        return {name: sums[f"{_SUM}{name}"] / sums[f"cases {name}"] for name in self.metrics}

    @staticmethod
    def prediction_of(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The prediction of a case with these runs, each as metric to score, or to what `without_score` returns."""
        return {RUNS: list(runs)}

    @staticmethod
    def without_score(error: str | None, abstained: str | None) -> dict[str, Any]:
        """The reason in place of a score that a run lacks: an error, or that it abstained."""
        return {ERROR: error} if error else {ABSTAINED: abstained}

    @staticmethod
    def runs_of(case: Case) -> Sequence[Mapping[str, Any]]:
        """The runs of a case, each as metric to score, or to the reason that it has none."""
        return () if case.prediction is MISSING else case.prediction[RUNS]

    @staticmethod
    def only_run(case: Case) -> Mapping[str, Any] | None:
        """The run of a case that ran once, and of which nothing but scores is known; ``None`` for other cases."""
        if case.prediction is MISSING or len(case.prediction) != 1 or len(case.prediction[RUNS]) != 1:
            return None
        run: Mapping[str, Any] = case.prediction[RUNS][0]
        return run

    @staticmethod
    def is_errored(run: Mapping[str, Any]) -> bool:
        """Whether one of a run's scores is an error."""
        return any(isinstance(score, Mapping) and ERROR in score for score in run.values())

    @staticmethod
    def scores_of(observation: Observation) -> dict[str, float]:
        """The scores of a case by metric that `RecordedScores` has counted."""
        return {name.removeprefix(_SUM): value for name, value in observation.counts.items() if name.startswith(_SUM)}
