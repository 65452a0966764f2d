"""The evaluator contract."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from pytest_llmeval.core._case import MISSING, Case, Parts
from pytest_llmeval.core._codec import form_of
from pytest_llmeval.core._errors import EvaluatorError
from pytest_llmeval.core._observation import FloatArray, Observation, Sums, mean_of_repeats
from pytest_llmeval.core.wording import detail_lines, limit

if TYPE_CHECKING:
    from pytest_llmeval.core._tables import ReportTable
    from pytest_llmeval.core._verdicts import Strengths


class Metric(Struct, frozen=True):
    """A number that an evaluator reports.

    Attributes:
        name: As in reports, thresholds and gates. ``name[label]`` is a family with one member per label.
        higher_is_better: The direction.
        low: Smallest possible value; ``None`` where unbounded.
        high: Largest possible value; ``None`` where unbounded.
        signature: How it is computed (tokenizer, smoothing, version), so that two numbers can be compared.
        learned: Name of a detail of observations that is a part of the signature, known only once cases have run; empty
            for none.
        per_case: What one case adds to the value at most, where that is a total over cases, such as a number of wins;
            ``None`` for other values. Intervals of totals keep within what the cases can add.
        averaged: Whether the value over several cases is the mean of their own scores. Gates on such a value can be
            decided before all cases have run.
    """

    PASS_RATE: ClassVar[str] = "pass_rate"  # noqa: S105 (a metric, no password)
    """The name of the metric that every suite has: cases that passed among those that ran."""

    name: str
    higher_is_better: bool = True
    low: float | None = 0.0
    high: float | None = 1.0
    signature: str = ""
    learned: str = ""
    per_case: float | None = None
    averaged: bool = False

    @classmethod
    def of_pass_rate(cls) -> "Metric":
        """The metric that every suite has."""
        return cls(cls.PASS_RATE, averaged=True)

    def describes(self, signature: str) -> bool:
        """Whether a value with this signature may be of this metric."""
        return signature == self.signature or (
            bool(self.learned) and signature.startswith(f"{self.signature}|{self.learned}:")
        )

    def over(self, cases: int) -> "Metric":
        """The metric with the range of its value over so many cases."""
        return self if self.per_case is None else replace(self, high=self.per_case * cases)

    @property
    def worst(self) -> float | None:
        """The worst possible value; ``None`` where unbounded."""
        return self.low if self.higher_is_better else self.high

    @property
    def family(self) -> str:
        """The name up to a bracketed label: ``f1[joy]`` belongs to ``f1[...]``."""
        head, bracket, _ = self.name.partition("[")
        return head + bracket


class Basis(NamedTuple):
    """The cases that a value rests on, if they are only a part, such as those that people labelled.

    Attributes:
        cases: How many: intervals and tests have the degrees of freedom of these.
        floor: Standard deviation of what so few cannot have shown; it adds to what resamples show.
        fault: The reason why there is no value; empty if there is one.
        note: What the value leaves out.
        apart: Why two runs cannot be compared by it; empty where they can.
        unknown: The share of the metric's range by which the value may be larger than it is: it takes what is not known
            to be at its lowest, and its interval reaches as far as that may be at its highest.
        interval: Returns the interval of the value, if it has a closed form. Its arguments are a confidence, and the
            share of the cases that are drawn independently: 1, or less where they are in clusters.
    """

    cases: float
    floor: float = 0.0
    fault: str = ""
    note: str = ""
    apart: str = ""
    unknown: float = 0.0
    interval: Callable[[float, float], tuple[float, float]] | None = None


_NO_PATHS: Final = Parts()


class Reads(Struct, frozen=True):
    """The part of a prediction that an evaluator reads.

    Attributes:
        part: Name of the part that `Evaluator.measure` finds in `Case.prediction`, such as ``answer``; default: the
            whole prediction.
        second_part: The part that is read if a prediction lacks `part`.
        own_keys: Keys of the objects that an evaluator of whole predictions reads; of other objects it gets the part
            ``answer``.
        objects: Whether a prediction that is an object without any part is itself the answer.
        records: Whether the answer is an object of which ``answer`` may be a field.
        lists: Whether a prediction that is a list is itself the part.
        expected: Whether `Case.expected` is the whole of ``expected``, not only the expectation of the part.
    """

    part: str = Parts.WHOLE
    second_part: str | None = None
    own_keys: tuple[str, ...] = ()
    objects: bool = False
    records: bool = False
    lists: bool = False
    expected: bool = False

    def __str__(self) -> str:
        """Return the value as Python code, without defaults."""
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        changed = (f"{name}={value!r}" for name, value in values if value != getattr(_DEFAULT_READS, name))
        return f"Reads({', '.join(changed)})"

    def answer_in(self, prediction: Any, parts: Parts = _NO_PATHS) -> Any:
        """The part of a prediction that an evaluator of whole predictions reads: all of it, or the answer in it.

        Systems wrap what a model wrote: ``{"answer": TEXT, "usage": {...}}``.

        Args:
            prediction: The prediction.
            parts: Where the answer is.

        >>> Reads(own_keys=("pairs",)).answer_in({"answer": "[1]", "usage": {}})
        '[1]'
        >>> Reads(own_keys=("pairs",)).answer_in({"pairs": [1], "answer": "?"})
        {'pairs': [1], 'answer': '?'}
        """
        if not self.own_keys or not isinstance(prediction, Mapping):
            return prediction
        answer = parts.find("answer", prediction)
        holds_keys = isinstance(answer, Mapping) and any(key in answer for key in self.own_keys)
        is_own = answer is MISSING or (not holds_keys and any(key in prediction for key in self.own_keys))
        return prediction if is_own else answer


_DEFAULT_READS: Final = Reads()

_MEASURING: Final = frozenset({"measure", "measure_many", "measure_judged"})
"""The methods that see a case."""


@dataclass(frozen=True)
class Evaluator(ABC):
    """A pair of pure functions: `measure` counts one case, `summarize` computes metrics from sums of counts.

    Subclass as a frozen dataclass whose fields are the options, with a `name`, and write these two functions and
    `describe`, which lists the metrics. Everything else has a default: what it reads (`reads`), faults of cases
    (`check`), texts and tables of reports (`explain`, `tables`, `error_buckets`), models that run on many cases at once
    (`batch`, `measure_many`).

    Example:
        >>> @dataclass(frozen=True)
        ... class Length(Evaluator):
        ...     name = "length"
        ...     reads = Reads("answer")
        ...     unit: str = "words"
        ...     def describe(self):
        ...         return [Metric("length", high=None)]
        ...     def measure(self, case):
        ...         size = len(case.prediction.split() if self.unit == "words" else case.prediction)
        ...         return Observation({"size": size, "n": 1})
        ...     def summarize(self, sums):
        ...         return {"length": sums["size"] / sums["n"]}
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid", "arbitrary_types_allowed": True}

    name: ClassVar[str]
    version: ClassVar[str] = "1"
    reads: ClassVar[Reads] = _DEFAULT_READS
    """The data that `measure` finds in `Case.prediction` and `Case.expected`; default: the whole prediction."""
    pools_undefined: ClassVar[bool] = False
    """Whether a set of undefined cases has a value, as some official scorers require."""
    batch: ClassVar[int] = 1
    """The number of cases that `measure_many` wants at once; above 1 for evaluators that run a model."""
    asserts: ClassVar[bool] = False
    """Whether the members of its metric families are assertions: one below 1 fails its case without any limit."""

    asks: ClassVar[bool] = False
    """Whether it asks models, as a `JudgedEvaluator` does. A property where an option decides it."""
    takes_objects: ClassVar[bool] = False
    """Whether it gets users' objects in place of their JSON forms; true if a class of the user measures."""

    def __init_subclass__(cls) -> None:
        """Hand objects to a class that measures by itself and does not belong to this package."""
        super().__init_subclass__()
        if "takes_objects" not in vars(cls) and cls.is_of_users() and not _MEASURING.isdisjoint(vars(cls)):
            cls.takes_objects = True

    @classmethod
    def is_of_users(cls) -> bool:
        """Whether the evaluator is a user's code."""
        return cls.__module__.partition(".")[0] != __name__.partition(".")[0]

    def required_name(self) -> str:
        """The name that the evaluator's class has for suite files.

        Raises:
            EvaluatorError: It gives itself none.
        """
        name = getattr(self, "name", None)
        if not isinstance(name, str) or not name:
            raise EvaluatorError(
                f"{type(self).__name__}: found name {name!r}, expected a class attribute name = 'text'"
            )
        return name

    @property
    def has_rules(self) -> bool:
        """Whether its options are rules, and a case that breaks one fails without any limit."""
        return False

    @abstractmethod
    def describe(self) -> Sequence[Metric]:
        """The metrics that these options give; a family of metrics as ``Metric("f1[label]")``."""

    @abstractmethod
    def measure(self, case: Case) -> Observation:
        """Count one case. Pure: the same case gives the same observation.

        A prediction of the wrong form is a mistake of the model: report it in `Observation.malformed`, and count an
        empty answer. Absent ground truth is `Observation.undefined`, never a 0.
        """

    def measure_many(self, cases: Sequence[Case]) -> list[Observation]:
        """Count several cases; override where a batch is cheaper. The result equals measuring one by one."""
        return [self.measure(case) for case in cases]

    @abstractmethod
    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Compute metrics from summed counts.

        Args:
            sums: Columns of equal length; each row is the total of some set of cases (one, all, a resample).

        Returns:
            Metric name to a column of that length; a value that is not finite means undefined.
        """

    def absent(self, why: str) -> Observation:
        """The observation of a case that cannot be measured because nobody was asked; default: all undefined."""
        return Observation({}, undefined={metric.name: why for metric in self.describe()})

    def reduce(self, observations: Sequence[Observation]) -> Observation:
        """Make one observation of those of all repeats of a case; default: means of the counts."""
        return mean_of_repeats(observations)

    def resolve(self) -> "Evaluator":
        """The evaluator that these options make; by default this one."""
        return self

    def basis(self, sums: Sums) -> Mapping[str, Basis]:
        """The number of cases on which values rest, for metrics of a part of the cases; default: none.

        Args:
            sums: One row: the totals of the cases.
        """
        del sums
        return {}

    def tables(self) -> "Sequence[ReportTable]":
        """The tables that reports draw of the results, as data."""
        return ()

    def check(self, case: Case) -> Iterable[str]:
        """Yield faults of a case's ground truth (``found ..., expected ...``); they stop the collection of its file."""
        del case
        return ()

    def explain(self, case: Case, observation: Observation) -> Iterable[str]:
        """Say what is wrong with an answer, a line each, for people who fix it; nothing if all is right.

        Default: the lines under ``wrong`` of the details, or else what the details hold.

        Args:
            case: As `measure` saw it.
            observation: What `measure` returned.
        """
        del case
        return detail_lines(observation.details)

    def error_buckets(self) -> "Sequence[ErrorBucket]":
        """The error buckets of the evaluator, for the error analysis."""
        return ()

    def evaluate(self, prediction: Any, ground_truth: Any, text: Any = None) -> dict[str, Any]:
        """Score one pair of answer and expectation.

        Args:
            prediction: What was answered: JSON data, or an object of a dataclass or pydantic model.
            ground_truth: What is right.
            text: The input that both are about, where the evaluator reads it.

        Returns:
            Details, and every metric's value; ``None`` where it is undefined. ``malformed`` says what is wrong with a
            prediction that cannot be read.
        """
        observation = self.measure(self.pair(prediction, ground_truth, text))
        malformed = {} if observation.malformed is None else {"malformed": observation.malformed}
        return {**observation.details, **malformed, **self.scores(observation)}

    def pair(self, prediction: Any, ground_truth: Any, text: Any = None) -> Case:
        """A case of one pair of answer and expectation, as `measure` gets it.

        Raises:
            ValueError: A value is no JSON data, nor anything that has a form of it.
        """
        answer = self.reads.answer_in(form_of(prediction, strict=True))
        return Case("", form_of(text, strict=True), form_of(ground_truth, strict=True), answer)

    def scores(self, observation: Observation) -> dict[str, float | None]:
        """The metrics of one observation; ``None`` where undefined."""
        import numpy as np

        counts = {name: np.array([count], dtype=float) for name, count in observation.counts.items()}
        with np.errstate(all="ignore"):
            columns = self.summarize(Sums(counts, length=1))
        # Many formulas give 0 where nothing was counted, so `undefined` of the observation takes precedence.
        nothing = observation.undefined and not observation.counts
        absent = {**observation.undefined, **observation.errored}
        return {
            name: None if nothing or name in absent or not np.isfinite(column[0]) else float(column[0])
            for name, column in columns.items()
        }


@dataclass(frozen=True)
class ComparingEvaluator(Evaluator):
    """An evaluator that compares the prediction of a case with those of other systems, which `Case.others` has."""

    APPROVED: ClassVar[str] = "approved"
    """Among the opponents: the answers that were approved with the scores of the suite."""

    @property
    @abstractmethod
    def opponents(self) -> Sequence[str]:
        """The names of the systems with which it compares, or `APPROVED`."""

    @abstractmethod
    def among(self, systems: Sequence[str]) -> "ComparingEvaluator":
        """The evaluator as a suite with these systems has it.

        Raises:
            EvaluatorError: It compares with a system that the suite does not have.
        """

    @abstractmethod
    def strengths(
        self, label: str, results: Mapping[str, Any], cluster_by: str | None, confidence: float
    ) -> "Strengths | None":
        """The strengths of the systems; ``None`` if none were compared with each other.

        Args:
            label: Of the evaluator in the suite.
            results: System to its `Result`.
            cluster_by: Label of cases that are drawn together; ``None``: each is drawn alone.
            confidence: Of the intervals.
        """


class RecordedCounts(Evaluator):
    """An evaluator of counts that a run records: it computes metrics from sums, and measures no case itself."""

    origin: ClassVar[str]
    """Where its counts come from, such as ``calls are recorded``."""

    def measure(self, case: Case) -> Observation:
        """Refuse: there is nothing to measure."""
        raise EvaluatorError(f"case {case.id!r}: {self.origin}, not measured")


@dataclass(frozen=True)
class WrappedEvaluator(RecordedCounts):
    """An evaluator over the counts of another one, whose values it changes.

    Attributes:
        evaluator: The one that measures.
    """

    evaluator: Evaluator

    @property
    def name(self) -> str:  # type: ignore[override]  # a class variable of evaluators that are classes of their own
        """The name of the evaluator that measures."""
        return self.evaluator.name

    @property
    def pools_undefined(self) -> bool:  # type: ignore[override]  # as above
        """Whether undefined cases are pooled, as the evaluator that measures has it."""
        return self.evaluator.pools_undefined

    def describe(self) -> Sequence[Metric]:
        """The metrics of the evaluator that measures."""
        return self.evaluator.describe()

    def error_buckets(self) -> "Sequence[ErrorBucket]":
        """The error buckets of the evaluator that measures."""
        return self.evaluator.error_buckets()

    def tables(self) -> "Sequence[ReportTable]":
        """The tables of the evaluator that measures."""
        return self.evaluator.tables()


_SLACK = 1e-12
_NO_DETAILS: Mapping[str, Any] = {}


class ErrorBucket(Struct, frozen=True):
    """A way in which cases go wrong: a metric of the case lies outside its limits, or its details name something.

    Attributes:
        name: Such as ``low_evidence_f1``.
        metric: The evaluator's name for the metric, whose score is shown.
        below: Cases below this value are in the bucket; ``None`` for no such limit.
        above: Cases above this value are.
        details: Names of details, at any depth; cases in which one of them holds something are in the bucket.
    """

    name: str
    metric: str
    below: float | None = None
    above: float | None = None
    details: tuple[str, ...] = ()

    def holds(self, score: float | None, details: Mapping[str, Any] = _NO_DETAILS) -> bool:
        """Whether a case belongs into the bucket; a score that does not exist belongs into none."""
        if self.details and any(_holds_detail(details, name) for name in self.details):
            return True
        if score is None:
            return False
        return (self.below is not None and score < self.below - _SLACK) or (
            self.above is not None and score > self.above + _SLACK
        )

    @property
    def limit(self) -> str:
        """The limits as people write them, such as ``< 0.3``."""
        sides = (("<", self.below), (">", self.above))
        limits = [f"{sign} {limit(value)}" for sign, value in sides if value is not None]
        return " or ".join([*limits, *([f"with {' or '.join(self.details)}"] if self.details else [])])


def _holds_detail(details: Mapping[str, Any], name: str) -> bool:
    """Whether an observation's details have a value of this name at any depth, as an `ErrorBucket` asks."""
    inner = (detail for detail in details.values() if isinstance(detail, Mapping))
    return bool(details.get(name)) or any(_holds_detail(mapping, name) for mapping in inner)
