"""The plan of a run."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any, NamedTuple

from pytest_llmeval.core import counted
from pytest_llmeval.reports import Line, TextTable

_MEDIAN, _HIGH = 50, 95


class CallSample(NamedTuple):
    """Tokens, cost and seconds of one past call of a judge or target, by which a run plan estimates others."""

    tokens: float | None = None
    usd: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """The estimated tokens or cost of the planned calls of a run.

    Attributes:
        median: If every call takes what the median call took; ``None`` where nothing is known.
        high: If every call, and each that may follow, takes the 95th percentile; ``None`` where that is unknown.
        known: Where the median is unknown, that of the calls of which it is known.
    """

    median: float | None = 0.0
    high: float | None = 0.0
    known: float = 0.0

    @property
    def least(self) -> float:
        """The median of as many calls as it is known of."""
        return self.known if self.median is None else self.median

    def up_to(self, more: float | None) -> "CostEstimate":
        """Return the estimate with a higher upper end; ``None`` for one without."""
        return replace(self, high=_sum(self.high, more))

    def __add__(self, other: "CostEstimate") -> "CostEstimate":
        median = _sum(self.median, other.median)
        return CostEstimate(median, _sum(self.high, other.high), self.least + other.least if median is None else 0.0)


@dataclass(frozen=True, slots=True)
class PlannedCalls:
    """The planned calls of a target or a judge in a run.

    Attributes:
        calls: That will be made.
        likely: That will be made if the answers that do not exist yet are like others.
        more: That may follow at most, depending on replies; ``None`` where that is unknown.
        stored: What needs no call, because it is stored.
        tokens: Of requests and replies.
        usd: US dollars.
        seconds: At the concurrency of the run; ``None`` where nothing is known.
    """

    calls: int = 0
    likely: int = 0
    more: int | None = 0
    stored: int = 0
    tokens: CostEstimate = CostEstimate()
    usd: CostEstimate = CostEstimate()
    seconds: float | None = 0.0

    def __add__(self, other: "PlannedCalls") -> "PlannedCalls":
        return PlannedCalls(
            self.calls + other.calls,
            self.likely + other.likely,
            None if self.more is None or other.more is None else self.more + other.more,
            self.stored + other.stored,
            self.tokens + other.tokens,
            self.usd + other.usd,
            _sum(self.seconds, other.seconds),
        )

    def with_later(self, count: int, largest: CallSample) -> "PlannedCalls":
        """Return the calls with the amounts of further ones in the upper bounds.

        Args:
            count: How many may follow; `more` has them.
            largest: What one of them takes at most; ``None`` where that is unknown.
        """
        tokens, usd = (None if amount is None else count * amount for amount in (largest.tokens, largest.usd))
        return replace(self, tokens=self.tokens.up_to(tokens), usd=self.usd.up_to(usd))

    def without_bound(self) -> "PlannedCalls":
        """Return the calls without upper bounds: how many may follow is unknown."""
        return replace(self, tokens=self.tokens.up_to(None), usd=self.usd.up_to(None))

    @property
    def expected(self) -> int:
        """The number of expected calls."""
        return self.calls + self.likely


NOTHING = PlannedCalls()


def planned(calls: int, samples: Sequence[CallSample], *, concurrency: int, likely: int = 0) -> PlannedCalls:
    """Estimate the tokens, cost and time of planned calls from past calls.

    Args:
        calls: That will be made.
        samples: Calls of the same kind that were made.
        concurrency: How many are in flight at a time.
        likely: That will probably be made as well.

    Example:
        >>> found = planned(10, [CallSample(100, None, 2), CallSample(300, None, 4)], concurrency=4)
        >>> found.tokens, found.usd, found.seconds
        (CostEstimate(median=2000.0, high=2900.0, known=0.0), CostEstimate(median=None, high=None, known=0.0), 9.0)
    """
    every = calls + likely
    if not every:
        return NOTHING
    seconds = _percentiles([sample.seconds for sample in samples]).median
    return PlannedCalls(
        calls,
        likely,
        tokens=_times(every, _percentiles([sample.tokens for sample in samples])),
        usd=_times(every, _percentiles([sample.usd for sample in samples])),
        seconds=None if seconds is None else math.ceil(every / concurrency) * seconds,
    )


def _percentiles(amounts: Sequence[float | None]) -> CostEstimate:
    """The cost estimate of one call, from the amounts of past calls."""
    known = [amount for amount in amounts if amount is not None]
    if not known:
        return CostEstimate(None, None)
    import numpy as np

    return CostEstimate(*(float(np.percentile(known, percent)) for percent in (_MEDIAN, _HIGH)))


def _times(count: int, spread: CostEstimate) -> CostEstimate:
    """The cost estimate of several calls, from that of one call."""
    if spread.median is None or spread.high is None:
        return spread
    return CostEstimate(count * spread.median, count * spread.high)


def _sum(first: float | None, other: float | None) -> float | None:
    """The sum of two amounts of a run plan; ``None`` if one is unknown."""
    return None if first is None or other is None else first + other


SCHEMA_VERSION = 1
UNKNOWN = "unknown"

_HOUR_S, _MINUTE_S = 3600, 60
_HEADERS = ("suite", "system", "asked", "calls", "tokens", "p95", "USD", "p95", "time")
_SYSTEM = 1
_SPARE = (7, 5, 8)
"""Columns to drop first: percentiles of money and tokens, and the time."""


@dataclass(frozen=True, slots=True)
class PlannedSuite:
    """The planned calls of one suite, or of one of its systems.

    Attributes:
        suite: Its name.
        path: Its file.
        system: The system or variant; empty if there is only one.
        target: Calls of the target.
        judge: Calls of the judge.
    """

    suite: str
    path: str
    system: str
    target: PlannedCalls = NOTHING
    judge: PlannedCalls = NOTHING


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """The expected use of one budget limit by the planned calls of a run.

    Attributes:
        unit: ``calls``, ``tokens`` or ``usd``.
        limit: The limit.
        expected: Expected use; ``None`` if unknown.
        high: The 95th percentile.
        is_lower_bound: Whether uncounted calls may follow.
        known: The known part, if the expected use is unknown.
    """

    unit: str
    limit: float
    expected: float | None
    high: float | None
    is_lower_bound: bool = False
    known: float = 0.0

    @property
    def exceeded(self) -> bool:
        """Whether the plan, or what is known of it, exceeds the limit."""
        return (self.known if self.expected is None else self.expected) > self.limit


@dataclass(frozen=True, slots=True)
class PlannedStop:
    """The expected early stop of a suite, by the scores of the last approved run.

    Attributes:
        suite: Its name.
        path: Its file.
        system: The system or variant; empty if there is only one.
        cases: After how many cases; ``None`` where no run is approved.
        of: How many it has.
    """

    suite: str
    path: str
    system: str
    cases: int | None
    of: int

    def __str__(self) -> str:
        name = f"{self.suite}[{self.system}]" if self.system else self.suite
        if self.cases is None:
            return f"stop: {name}: unknown until a run of all cases is approved"
        if self.cases == self.of:
            return f"stop: {name}: not before its end, if cases score as approved"
        return f"stop: {name}: after {self.cases} of {counted(self.of, 'case')}, if they score as approved"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The plan of a run: the judge and target calls that it would make.

    Attributes:
        suites: In the order of the run.
        budget: Use of each limit.
        concurrency: Calls in flight.
        notes: What is unknown.
        stops: When suites are expected to stop.
        stopping: The calls then; ``None`` where no suite stops.
    """

    suites: Sequence[PlannedSuite]
    budget: Sequence[BudgetUse] = ()
    concurrency: int = 1
    notes: Sequence[str] = ()
    stops: Sequence[PlannedStop] = ()
    stopping: "RunPlan | None" = None

    @property
    def target(self) -> PlannedCalls:
        """The calls of all targets."""
        return sum((suite.target for suite in self.suites), NOTHING)

    @property
    def judge(self) -> PlannedCalls:
        """The calls of all judges."""
        return sum((suite.judge for suite in self.suites), NOTHING)

    @property
    def exceeds_budget(self) -> bool:
        """Whether a limit is known to be exceeded."""
        return any(use.exceeded for use in self.budget)

    def lines(self, width: int, *, everything: bool = False) -> Iterator[Line]:
        """Yield the plan as text.

        Args:
            width: Of the terminal, in columns.
            everything: Whether columns without room follow in tables below.
        """
        rows = list(chain.from_iterable(map(_rows, self.suites)))
        if rows:
            yield from _table(rows).draw(width, everything=everything)
            yield Line("")
        yield from map(Line, _summary(self))
        yield from (Line(str(stop)) for stop in self.stops)
        if self.stopping is not None:
            yield from (Line(f"then {line}") for line in _summary(self.stopping))
        for use in self.budget:
            yield Line(f"budget: {_used(use)}", "red" if use.exceeded else "yellow" if use.expected is None else "")
        yield from (Line(note, "yellow") for note in self.notes)

    def data(self) -> dict[str, Any]:
        """Return the plan as JSON data; what is unknown is ``null``."""
        return {
            "schema_version": SCHEMA_VERSION,
            "plan": [asdict(suite) for suite in self.suites],
            "judge": asdict(self.judge),
            "target": asdict(self.target),
            "budget": [{**asdict(use), "exceeded": use.exceeded} for use in self.budget],
            "concurrency": self.concurrency,
            "notes": list(self.notes),
            **({"stop": _stops_data(self)} if self.stops else {}),
        }


def _table(rows: Sequence[Sequence[str]]) -> TextTable:
    """The table of a run plan, without the column of systems if no suite has any."""
    left_out = set() if any(row[_SYSTEM] for row in rows) else {_SYSTEM}
    columns = [place for place in range(len(_HEADERS)) if place not in left_out]
    return TextTable(
        "",
        [_HEADERS[place] for place in columns],
        [[row[place] for place in columns] for row in rows],
        texts=[number for number, place in enumerate(columns) if place <= _SYSTEM + 1],
        spare=[columns.index(place) for place in _SPARE],
    )


def _rows(suite: PlannedSuite) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the plan table for a suite: calls of its target and of its judge."""
    parts = [(name, calls) for name, calls in (("target", suite.target), ("judge", suite.judge)) if calls != NOTHING]
    for name, calls in parts or [("nothing", NOTHING)]:
        amounts = (*_amounts(calls.tokens, 0), *_amounts(calls.usd, 4), _duration(calls.seconds))
        yield suite.suite, suite.system, name, _short_count(calls), *amounts


def _short_count(calls: PlannedCalls) -> str:
    """The number of planned calls in the plan table; ``~`` marks an estimate, ``+`` an unknown rest."""
    more = "+" if calls.more is None else f"-{calls.expected + calls.more}" if calls.more else ""
    return f"{'~' if calls.likely else ''}{calls.expected}{more}"


def _amounts(spread: CostEstimate, digits: int) -> tuple[str, str]:
    """The median and the high amount of planned calls as texts."""
    median, high = (UNKNOWN if figure is None else f"{figure:.{digits}f}" for figure in (spread.median, spread.high))
    return median, high


def _summary(plan: RunPlan) -> Iterator[str]:
    """Yield the total lines of a run plan: judge calls, target calls and time."""
    for name, calls in (("judge", plan.judge), ("target", plan.target)):
        yield f"{name}: {_count(calls)}, {calls.stored} stored{''.join(_cost(calls))}"
    both = plan.judge + plan.target
    if both.expected:
        remark = ", more for what depends on replies" if both.more != 0 else ""
        yield f"time: {_duration(both.seconds)} with {plan.concurrency} in flight{remark}"


def _count(calls: PlannedCalls) -> str:
    """The number of planned calls in words."""
    about = "about " if calls.likely else ""
    if calls.more:
        return f"{about}{calls.expected} to {counted(calls.expected + calls.more, 'call')}"
    if calls.more is None:
        return f"number of calls unknown, at least {about}{calls.expected}"
    return f"{about}{counted(calls.expected, 'call')}"


def _cost(calls: PlannedCalls) -> Iterator[str]:
    """Yield the tokens and the cost of planned calls in words."""
    if not calls.expected and calls.more == 0:
        return
    for spread, digits, unit, name in ((calls.tokens, 0, "tokens", "tokens"), (calls.usd, 4, "USD", "cost")):
        median, high = _amounts(spread, digits)
        if UNKNOWN in (median, high):
            yield f"; {name} unknown{f', about {median} or more' if spread.median else ''}"
        elif calls.more:
            yield f"; about {median} to {high} {unit}"
        else:
            yield f"; about {median} {unit} (95th percentile {high})"


def _duration(seconds: float | None) -> str:
    """The expected duration of planned calls in words."""
    if seconds is None:
        return UNKNOWN
    if seconds >= _HOUR_S:
        return f"{seconds / _HOUR_S:.1f} h"
    return f"{seconds / _MINUTE_S:.1f} min" if seconds >= _MINUTE_S else f"{seconds:.1f} s"


def _used(use: BudgetUse) -> str:
    """The sentence on how much of a budget limit a run plan uses."""
    digits = 4 if use.unit == "usd" else 0
    unit = {"usd": "USD"}.get(use.unit, use.unit)
    allowed = f"{use.limit:.{digits}f} {unit} allowed"
    if use.expected is None and not use.exceeded:
        return f"{allowed}; whether the plan fits is unknown"
    least = "at least " if use.is_lower_bound or use.expected is None else ""
    planned = f"{least}{use.known if use.expected is None else use.expected:.{digits}f} planned, {allowed}"
    if use.exceeded:
        return f"exceeded: {planned}"
    if use.high is not None and use.high > use.limit:
        return f"{planned}; {use.high:.{digits}f} if every call takes the 95th percentile"
    return f"{planned}; replies may lead to more" if use.is_lower_bound else planned


def _stops_data(plan: RunPlan) -> dict[str, Any]:
    """The expected early stops of a run plan as JSON data."""
    then = plan.stopping or plan
    stops = [asdict(stop) for stop in plan.stops]
    return {"suites": stops, "judge": asdict(then.judge), "target": asdict(then.target)}
