"""Evaluators and checks that are functions of a case, plain or async."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from msgspec import Struct

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.codec import normalized
from pytest_llmeval.core.errors import EvaluatorError
from pytest_llmeval.core.evaluator import Evaluator, Metric, Reads
from pytest_llmeval.core.observation import Observation
from pytest_llmeval.core.wording import number
from pytest_llmeval.evaluators.checks.contract import CheckKind, CheckOutcome, CheckTest, Subject
from pytest_llmeval.services.background import awaited_anywhere

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray, Sums

CaseFunction: TypeAlias = Callable[[Any], Any]
"""A function of a case, plain or async, that scores it."""

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
    function: ClassVar[CaseFunction]
    identity: ClassVar[str]
    """The qualified name of the function, or the name that it was given: scores of the same identity compare."""
    low: ClassVar[float | None] = 0.0
    high: ClassVar[float | None] = 1.0
    higher_is_better: ClassVar[bool] = True

    def describe(self) -> Sequence[Metric]:
        """Return the mean, the family of means by key, and the family of shares of labels."""
        signature = f"function:{self.identity}"
        mean = Metric(self.name, self.higher_is_better, self.low, self.high, signature)
        shares = Metric(f"{self.name}_is[label]", signature=signature)
        return [mean, Metric(f"{self.name}[key]", self.higher_is_better, self.low, self.high, signature), shares]

    def measure(self, case: Case) -> Observation:
        """Call the function.

        Raises:
            EvaluatorError: It returned something else than a score.
            Exception: Any error of the function.
        """
        score = self._score(type(self).function(case))
        details = {name: text for name, text in (("reason", score.reason), ("label", score.label)) if text}
        values = score.value if isinstance(score.value, Mapping) else {"": score.value}
        counts: dict[str, float] = {}
        for key, value in values.items():
            if value is not None:
                counts |= {f"sum[{key}]": self._in_range(value), f"n[{key}]": 1}
        if score.label:
            counts |= {f"label[{score.label}]": 1, "labelled": 1}
        return Observation(counts, details, {} if counts else {self.name: score.reason or "no score"})

    def _score(self, returned: Any) -> "Score | _Scores":
        if inspect.isawaitable(returned):
            returned = awaited_anywhere(returned)
        if isinstance(returned, Score):
            return self._checked(returned)
        value = self._plain(returned)
        if isinstance(value, str) and value:
            return Score(label=value)
        if isinstance(value, dict) and value:
            return _Scores({key: self._checked(Score(each)).value for key, each in value.items()})
        if value is None:
            raise EvaluatorError(f"{self.name}: found None, {_EXPECTED}; Score(None, reason=...) leaves a case out")
        return self._checked(Score(value))

    def _checked(self, score: Score) -> Score:
        value = self._plain(score.value)
        if not (value is None or isinstance(value, int | float)):
            raise EvaluatorError(f"{self.name}: found {value!r}, {_EXPECTED}")
        for text in (score.reason, score.label):
            if type(text) is not str:
                raise EvaluatorError(f"{self.name}: found {text!r} as reason or label, expected a text")
        return Score(value, score.reason, score.label)

    def _plain(self, value: Any) -> Any:
        try:
            return normalized(value)
        except (ValueError, RecursionError) as error:
            raise EvaluatorError(f"{self.name}: {error}, {_EXPECTED}") from None

    def _in_range(self, value: float) -> float:
        low, high = self.low, self.high
        if (low is not None and value < low) or (high is not None and value > high):
            limits = " to ".join("any" if each is None else number(each) for each in (low, high))
            raise EvaluatorError(
                f"{self.name}: found {value!r}, expected a number in the range {limits}; "
                f"ev.evaluator({self.name}, low=..., high=...) declares another one, None for no limit"
            )
        return float(value)

    def summarize(self, sums: "Sums") -> "Mapping[str, FloatArray]":
        """Return means and shares of what was counted."""
        columns = {}
        for name in sums:
            kind, _, key = name.partition("[")
            if kind == "sum":
                columns[self.name if key == "]" else f"{self.name}[{key}"] = sums[name] / sums[f"n[{key}"]
            elif kind == "label":
                columns[f"{self.name}_is[{key}"] = sums[name] / sums["labelled"]
        return columns


class _Scores(Struct, frozen=True):
    """Scores by key, which have no reason."""

    value: Mapping[str, float | None]
    reason: str = ""
    label: str = ""


def evaluator_of(
    function: CaseFunction,
    name: str | None = None,
    *,
    low: float | None = 0.0,
    high: float | None = 1.0,
    higher_is_better: bool = True,
) -> Evaluator:
    """Return the evaluator that a function is.

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
    called, identity = _named(function, name, "evaluators")
    values = {"function": staticmethod(function), "identity": identity, "low": low, "high": high, "name": called}
    values["__module__"] = getattr(function, "__module__", None) or "__main__"
    return type(called, (FunctionEvaluator,), {**values, "higher_is_better": higher_is_better})()  # type: ignore[no-any-return]


def check_of(function: CaseFunction, name: str | None = None) -> CheckKind:
    """Return the kind of check that a function of a case is.

    Args:
        function: ``case -> met``, plain or async; ``met`` is true or false, or a `Score` of that with a reason.
        name: Of the check; default: the function's.

    Raises:
        EvaluatorError: It has no name of its own, and none is given.
    """
    called, _ = _named(function, name, "checks")
    meaning = (inspect.getdoc(function) or f"{called} returns true").splitlines()[0]
    return CheckKind(called, meaning, None, _Test(function, called))


@dataclass(frozen=True)
class _Test:
    """A function of a case as what prepares tests."""

    function: CaseFunction
    name: str

    def __call__(self, argument: Any) -> CheckTest:
        del argument

        def test(subject: Subject) -> CheckOutcome:
            returned = self.function(replace(subject.case, prediction=subject.value))
            if inspect.isawaitable(returned):
                returned = awaited_anywhere(returned)
            score = returned if isinstance(returned, Score) else Score(returned)
            met = normalized(score.value)
            if not isinstance(met, bool):
                raise EvaluatorError(
                    f"{self.name}: found {returned!r}, expected true or false, or a Score of that; "
                    "functions that return other scores are evaluators"
                )
            return CheckOutcome(met, score.reason)

        return test


def _named(function: Any, name: str | None, key: str) -> tuple[str, str]:
    """Return the name and the identity of a function."""
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
