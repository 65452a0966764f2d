"""Observations: the named sums and counts of a case.

Everything else builds on this module. An evaluator turns a case into an `Observation`; a suite, a
group, a resample or a shard is a sum of observations; a formula over sums is a metric. Nothing else aggregates.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from pytest_llmeval.core._codec import JsonNumber, is_json, plain

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray: TypeAlias = npt.NDArray[np.float64]
else:
    FloatArray: TypeAlias = Any


class LazyDetails(Mapping[str, Any]):
    """Details of an observation that are made when they are first read: a score needs none. They are never empty.

    Copies and pickles have the details themselves.
    """

    __slots__ = ("_details", "_make")

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make: Callable[[], Mapping[str, Any]] | None = make
        self._details: Mapping[str, Any] = {}

    def read(self) -> Mapping[str, Any]:
        """The details."""
        make = self._make
        if make is not None:
            self._details, self._make = make(), None
        return self._details

    def make_by(self, make: Callable[[], Mapping[str, Any]]) -> None:
        """Make the details in another way, unless they have been read; what the old one holds is freed."""
        if self._make is not None:
            self._make = make

    def __getitem__(self, name: str) -> Any:
        return self.read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.read())

    def __len__(self) -> int:
        return len(self.read())

    def __repr__(self) -> str:
        return repr(self.read())

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.read(),)


class _StoredObservation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields of an `Observation`, as they were given."""

    counts: Mapping[str, JsonNumber]
    details: Mapping[str, Any] = msgspec.field(default_factory=dict)
    undefined: Mapping[str, str] = msgspec.field(default_factory=dict)
    malformed: str | None = None
    errored: Mapping[str, str] = msgspec.field(default_factory=dict)
    abstained: tuple[str, ...] = ()


_stored_details: Callable[[_StoredObservation], Mapping[str, Any]] = _StoredObservation.details.__get__  # type: ignore[attr-defined]  # (a slot)


class Observation(_StoredObservation, frozen=True, omit_defaults=True):
    """The counts of an evaluator for one case.

    Attributes:
        counts: Named sums and counts; additive over cases, finite, absent names count as 0.
        undefined: Metric name to the reason why this case has no value for it (ground truth absent, no token).
        errored: Metric name to the reason why its value could not be computed (a judge failed); the case then counts
            as errored for that metric.
        malformed: Why the prediction is not what the evaluator can read; the case then fails with this text.
        abstained: Undefined metrics for which the case would have a value if the answer had said something else: the
            answer makes no claim, or names nothing to compare. Other undefined metrics are so for every answer.
    """

    if not TYPE_CHECKING:

        @property
        def details(self) -> Mapping[str, Any]:
            """For people: matched pairs, missing items. JSON-serialisable, never aggregated."""
            details = _stored_details(self)
            return details.read() if type(details) is LazyDetails else details

    @property
    def lazy_details(self) -> LazyDetails | None:
        """The details, if they are made when they are read."""
        details = _stored_details(self)
        return details if type(details) is LazyDetails else None

    @property
    def has_details(self) -> bool:
        """Whether there are any details; reads none."""
        return self.lazy_details is not None or bool(self.details)

    def fault(self) -> str | None:
        """The reason why the observation cannot be added up, or written as JSON; ``None`` if it can."""
        details = self.details if self.lazy_details is None else {}  # only evaluators that ship have lazy ones
        parts = (self.counts, details, self.undefined, self.errored)
        mappings = all(type(part) is dict or isinstance(part, Mapping) for part in parts)  # abstract types ask slowly
        if not (mappings and (self.malformed is None or isinstance(self.malformed, str))):
            return "found counts, details, undefined, errored or malformed of a wrong type, expected mappings and text"
        try:
            finite = all(map(math.isfinite, self.counts.values()))
        except (TypeError, OverflowError):
            finite = False
        if not finite:
            return _count_fault(self.counts)
        if unknown := [name for name in self.abstained if name not in self.undefined]:
            return f"found {unknown[0]!r} in abstained, expected the name of an undefined metric"
        try:
            if details and not is_json(details):
                _FINITE.encode(details)  # tuples and keys that are numbers can be written, too
        except (TypeError, ValueError, RecursionError) as error:
            return f"found details that are not JSON data ({error})"
        return None

    def plain(self) -> "Observation":
        """The observation as every process reads it: its data copied, and of JSON's own types only."""
        # float() unwraps the number types of numpy, which JSON does not know.
        counts = {name: count if type(count) is int else float(count) for name, count in self.counts.items()}
        details = plain(self.details) if self.details else {}
        return Observation(
            counts, details, dict(self.undefined), self.malformed, dict(self.errored), tuple(self.abstained)
        )

    def to_json(self) -> dict[str, Any]:
        """The observation as JSON data; empty parts are left out."""
        data: dict[str, Any] = msgspec.to_builtins(self.plain())
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Observation":
        """Read what `to_json` wrote; the round trip is identity."""
        return msgspec.convert(data, cls)

    @staticmethod
    def abstained_of(undefined: Iterable[str], observations: Sequence["Observation"]) -> tuple[str, ...]:
        """The metrics, undefined in all of several observations, for which one of these abstains."""
        return tuple(name for name in undefined if any(name in observation.abstained for observation in observations))


_FINITE = json.JSONEncoder(allow_nan=False)


def _count_fault(counts: Mapping[str, Any]) -> str | None:
    """The fault of the first count of an observation that is no finite number."""
    for name, count in counts.items():
        try:
            finite = math.isfinite(count)
        except (TypeError, OverflowError):
            finite = False
        if not finite:
            return f"found {count!r} as count {name!r}, expected a finite number"
    return None


def _expansion(parts: Iterable[float]) -> tuple[float, ...]:
    """The exact sum of counts of cases as floats, largest first, each the rounded value of what is left.

    `math.fsum` rounds an exact sum once, so the expansion depends on the sum alone, not on order or grouping.
    """
    remaining = [part for part in parts if part]
    out: list[float] = []
    while remaining and (head := math.fsum(remaining)):
        out.append(head)
        remaining.append(-head)
    return tuple(out)


class Totals(Mapping[str, float]):
    """An exact sum of observations: a commutative monoid whose zero is ``Totals()``.

    Sums are exact, so any order and any split over processes give the same totals to the
    last bit. Reading a name gives the correctly rounded sum; an absent name is 0.0.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[str, Sequence[float]] | None = None) -> None:
        self._parts = {name: _expansion(numbers) for name, numbers in sorted((parts or {}).items())}

    @classmethod
    def add_up(cls, observations: Iterable[Observation]) -> "Totals":
        """The exact sum of observations."""
        parts: defaultdict[str, list[float]] = defaultdict(list)
        for observation in observations:
            for name, count in observation.counts.items():
                parts[name].append(count)
        return cls(parts)

    def __add__(self, other: "Totals") -> "Totals":
        left, right = self.to_json(), other.to_json()
        return Totals({name: [*left.get(name, ()), *right.get(name, ())] for name in {**left, **right}})

    def __eq__(self, other: object) -> bool:
        return self._parts == other._parts if isinstance(other, Totals) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # compared by content

    def __getitem__(self, name: str) -> float:
        parts = self._parts.get(name, ())
        return parts[0] if parts else 0.0

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"Totals({dict(self)!r})"

    def to_json(self) -> dict[str, list[float]]:
        """The exact sums as JSON data."""
        return {name: list(parts) for name, parts in self._parts.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Sequence[float]]) -> "Totals":
        """Read what `to_json` wrote; the round trip is identity."""
        return cls(data)

    def sums(self) -> "Sums":
        """The totals as columns of length one, ready for `Evaluator.summarize`."""
        import numpy as np

        return Sums({name: np.array([value]) for name, value in self.items()}, length=1)


class Sums(dict[str, FloatArray]):
    """Named columns of sums that `Evaluator.summarize` reads: one row per total, case or resample.

    A name that no case has counted reads as a column of zeros, so that formulas need no special case.

    Attributes:
        length: Of the columns.
        metrics: The metrics that are read, ``None``: all. A formula with many may leave out the others.
    """

    __slots__ = ("length", "metrics")

    def __init__(self, columns: Mapping[str, FloatArray], length: int, metrics: frozenset[str] | None = None) -> None:
        super().__init__(columns)
        self.length = length
        self.metrics = metrics

    def __missing__(self, name: str) -> FloatArray:
        import numpy as np

        return np.zeros(self.length)


def mean_of_repeats(observations: Sequence[Observation]) -> Observation:
    """The mean of the counts of all repeats of a case, with the details of the first.

    A metric is undefined if it is undefined in all of them, and then abstained if one abstains; it is errored if it is
    errored in one.
    """
    undefined = {
        name: why
        for name, why in _reasons_by_metric(observations, "undefined").items()
        if all(name in observation.undefined for observation in observations)
    }
    counts = {name: total / len(observations) for name, total in Totals.add_up(observations).items()}
    errored = _reasons_by_metric(observations, "errored")
    abstained = Observation.abstained_of(undefined, observations)
    return Observation(counts, observations[0].details, undefined, _first_malformed(observations), errored, abstained)


def _reasons_by_metric(observations: Sequence[Observation], kind: Literal["undefined", "errored"]) -> dict[str, str]:
    """The first reason why a metric is undefined, or errored, in the repeats of a case, by metric."""
    reasons: dict[str, str] = {}
    for number, observation in enumerate(observations, 1):
        for name, why in getattr(observation, kind).items():
            reasons.setdefault(name, why if kind == "undefined" else f"repeat {number}: {why}")
    return reasons


def _first_malformed(observations: Sequence[Observation]) -> str | None:
    """The reason of the first repeat of a case whose prediction the evaluator cannot read, with its number."""
    malformed = (
        (number, observation.malformed)
        for number, observation in enumerate(observations, 1)
        if observation.malformed is not None
    )
    return next((f"repeat {number}: {why}" for number, why in malformed), None)
