"""Assumptions about metrics."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct

from pytest_llmeval.core import limit
from pytest_llmeval.exchange.results import ResultRow

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")


def _words(text: str) -> frozenset[str]:
    """The words of a text as a set, for the lists of words in metric names."""
    return frozenset(text.split())


_COSTS: Final = _words(
    """
    cost costs price usd dollar dollars latency time duration second seconds sec secs ms millis
    milliseconds minutes token tokens runtime
    """
)
"""Words of metrics that are paid: less is better, and a change is no change of quality. What is true or false is a test
of a limit instead."""
_FALLING: Final = _words(
    """
    error errors err hallucination hallucinations hallucinated wer cer mer mae mse rmse loss perplexity
    toxicity
    """
)
"""Words of metrics of which less is better."""
_COUNTS: Final = _words(
    """
    len length lengths count counts num number n words chars characters lines sentences size turns steps
    calls
    """
)
"""Words of metrics that count: neither more nor less is better."""
_TURNING: Final = _words(
    """
    no not non without free avoided avoidance accuracy correct correctness recall precision f1 pass
    passed success detection detected handling handled recovery recovered saved saving savings score
    relevance relevancy match efficiency extraction quality budget ok within on
    """
)
"""Words beside which the others say nothing: a token_f1 and an error_handling rise."""
_OUTCOMES: Final = frozenset(("passed", "success", "pass"))

_FACTOR: Final = 10
"""Scores whose largest is so many times that of the baseline are on another scale."""


class Assumptions(Struct, frozen=True):
    """Assumed directions, gates and scales of a suite's metrics, where results do not state them.

    Attributes:
        falling: Metrics of which less is assumed to be better.
        rising: Metrics of which more is.
        ungated: Metric to the reason why it has no gate unless one is asked for.
        rescaled: Metric to a sentence about its scales here and in the baseline.
    """

    falling: Sequence[str] = ()
    rising: Sequence[str] = ()
    ungated: Mapping[str, str] = {}
    rescaled: Mapping[str, str] = {}

    def about(self, metrics: AbstractSet[str]) -> "Assumptions":
        """The assumptions that matter if gates are given, which compare some metrics."""
        return Assumptions(
            [name for name in self.falling if name in metrics],
            [name for name in self.rising if name in metrics],
            rescaled={name: text for name, text in self.rescaled.items() if name in metrics},
        )

    def lines(self) -> Iterator[str]:
        """Yield a line on directions, and one on metrics without a gate."""
        parts = [("higher", self.rising), ("lower", self.falling)]
        directions = [f"{word} is better in {', '.join(names)}" for word, names in parts if names]
        if directions:
            yield f"assumed: {'; '.join(directions)}"
        if self.ungated:
            yield f"reported, not gated: {', '.join(f'{name} ({why})' for name, why in self.ungated.items())}"


def assumptions(
    rows: Sequence[ResultRow], baseline: Sequence[ResultRow], declared: Iterable[str], ranges: Iterable[str]
) -> Assumptions:
    """The assumptions about a runner's metrics that its result rows do not state.

    Args:
        rows: Of one suite.
        baseline: The rows that they are compared with; empty if there are none.
        declared: Metrics whose direction is known, which are asked for by that.
        ranges: Metrics whose range is declared, likewise.
    """
    scores = _scores_of(rows), _scores_of(baseline)
    metrics = list(dict.fromkeys(row.metric for row in rows if row.metric))
    directed, ranged = set(declared), set(ranges)
    verdicts = {
        name for name in metrics if all(score in (0, 1) for side in scores for score in side.get(name, {}).values())
    }
    costs = [name for name in metrics if name not in verdicts and _is_any(name, _COSTS)]
    falls = [name for name in metrics if name not in directed and (name in costs or _is_any(name, _FALLING))]
    rises = [name for name in metrics if name not in directed and name not in falls and name not in _OUTCOMES]
    ungated: dict[str, str] = {}
    first: dict[tuple[object, ...], str] = {}
    for name in metrics:
        if name in directed | ranged:
            continue
        numbers = tuple(frozenset(side.get(name, {}).items()) for side in scores)
        if name in costs:
            ungated[name] = "a cost"
        elif name not in verdicts and _is_any(name, _COUNTS):
            ungated[name] = "a count"
        elif numbers in first:
            ungated[name] = f"equal to {first[numbers]}"
        else:
            first[numbers] = name
    if len(ungated) == len(metrics):  # nothing else says anything
        ungated = {}
    rescaled = {}
    for name in metrics:
        here, there = (side.get(name, {}).values() for side in scores)
        if name not in ranged | ungated.keys() and here and there and _differ(here, there):
            rescaled[name] = f"{name} has another scale: {_extent(here)} here, {_extent(there)} in the baseline"
    return Assumptions(falls, [name for name in rises if name not in ungated], ungated, rescaled)


def _is_any(metric: str, words: frozenset[str]) -> bool:
    """Whether a metric's name has a word of a list, and none that reverses its meaning."""
    parts = {part.lower() for part in _WORD.findall(metric)}
    return bool(parts & words) and not parts & _TURNING


def _scores_of(rows: Iterable[ResultRow]) -> dict[str, dict[tuple[str, str, int], float]]:
    """The scores in result rows by metric, then by system, case and repeat."""
    scores: dict[str, dict[tuple[str, str, int], float]] = {}
    for row in rows:
        if row.score is not None:
            scores.setdefault(row.metric, {})[row.system, row.case, row.repeat] = row.score
    return scores


def _differ(here: Iterable[float], there: Iterable[float]) -> bool:
    """Whether a metric's scores are on another scale than those of the baseline.

    One side lies in 0 to 1 and the other far outside, or one is many times as large.
    """
    least, most = sorted(max(map(abs, side)) for side in (here, there))
    if not most or most <= 1:
        return False
    return most > _FACTOR * max(least, 1)


def _extent(scores: Iterable[float]) -> str:
    """The smallest and largest score of a metric as ``0..1``, for the sentence about its scales."""
    pick: Sequence[Callable[[Iterable[float]], float]] = (min, max)
    return "..".join(limit(extreme(scores)) for extreme in pick)
