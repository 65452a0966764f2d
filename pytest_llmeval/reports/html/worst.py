"""The cases that the overview shows: those that broke, the worst first, or else those that moved most."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from pytest_llmeval.reports.form import NO_CASE, CaseReport, SuiteReport, gated_metrics

_Kind: TypeAlias = Literal["new_failure", "failing", "still_failing", "fell", "rose"]

MOST_SHOWN = 5
_BAD = ("failed", "errored")
_TIE = 1e-9


class _Move(NamedTuple):
    """A case on its way into the list.

    Attributes:
        tier: 0 if it newly fails, 1 if it fell by a gated metric, 2 if it failed before, 3 if it fell, 4 if it rose.
        loss: By how much the metric fell, or rose, as a share of its range.
        shortfall: From the best score of the metric that is shown.
        place: Of the case in the suite.
        kind: What happened.
        metric: What shows it; empty if no score does.
        gated: Whether a gate looks at that metric.
    """

    tier: int
    loss: float
    shortfall: float
    place: int
    kind: _Kind
    metric: str
    gated: bool

    @property
    def rank(self) -> tuple[int, float, float, int]:
        """Sorts the worst first, and equal ones by their order in the suite."""
        return self.tier, -self.loss, -self.shortfall, self.place


def worst_changes(suite: SuiteReport, before: SuiteReport | None) -> dict[str, Any]:
    """Return the cases of a suite that broke, the worst first; if none did, those that moved most.

    New failures come first, then cases that fell by a metric that a gate or an approved score which was not kept looks
    at, then those that failed before as well, then those that fell by other metrics, then those that rose.

    Args:
        suite: The suite.
        before: The same suite in the approved run or baseline.

    Returns:
        ``failing``, ``fell`` and ``rose`` (how many cases), ``compared`` (whether there is another run), and up to five
        ``cases``: ``place`` in the suite, ``kind`` (``new_failure``, ``still_failing``, ``failing`` if nothing is known
        of it before, ``fell``, ``rose``), and ``metric``, ``gated``, ``now`` and ``before`` where a score shows it.
    """
    others = {case.id: case for case in before.cases} if before else {}
    unapproved = [each.metric for each in suite.snapshot if each.outcome == "failed"]
    gated = [*gated_metrics(gate.gate for gate in suite.gates), *unapproved]
    scales = _scales(suite, others)
    found = []
    for place, case in enumerate(suite.cases):
        move = _move(place, case, others.get(case.id), gated, scales, set(suite.lower_is_better))
        if move is not None:
            found.append(move)
    found.sort(key=lambda each: each.rank)
    kinds = [each.kind for each in found]
    rows = [_row(each, suite.cases[each.place], others) for each in found[:MOST_SHOWN]]
    fell, rose = kinds.count("fell"), kinds.count("rose")
    return {"failing": len(kinds) - fell - rose, "fell": fell, "rose": rose, "compared": bool(others), "cases": rows}


def _scales(suite: SuiteReport, others: Mapping[str, CaseReport]) -> dict[str, tuple[float, float]]:
    """Return the range of each metric: the possible one where it is known, else that of the scores."""
    known: dict[str, tuple[float, float]] = {}
    for case in (*suite.cases, *others.values()):
        for name, score in case.metrics.items():
            if score is not None:
                low, high = known.get(name, (score, score))
                known[name] = min(low, score), max(high, score)
    return known | {name: (low, high) for name, (low, high) in suite.ranges.items()}


def _move(
    place: int,
    case: CaseReport,
    other: CaseReport | None,
    gated: Sequence[str],
    scales: Mapping[str, tuple[float, float]],
    lower: set[str],
) -> _Move | None:
    """Return what became of a case; ``None`` if it neither fails nor moved, or is excused."""
    outcome = case.outcome
    if outcome not in (*_BAD, "passed"):
        return None
    losses = dict(_losses(case, other, scales, lower)) if other is not None else {}
    judged = {name: loss for name, loss in losses.items() if name in gated}
    if outcome in _BAD:
        metric = _largest(judged) or _shown(case, gated) or _largest(losses)
        was_bad = other is not None and other.outcome in _BAD
        kind: _Kind = "failing" if other is None else "still_failing" if was_bad else "new_failure"
        tier = 0 if not was_bad else 1 if _largest(judged) else 2
        loss = max(0.0, losses.get(metric, 0.0))
        return _Move(tier, loss, _shortfall(metric, case, scales, lower), place, kind, metric, metric in gated)
    if metric := _largest(judged) or _largest(losses):
        return _Move(1 if metric in judged else 3, losses[metric], 0.0, place, "fell", metric, metric in gated)
    gains = {name: -loss for name, loss in losses.items()}
    metric = _largest({name: gains[name] for name in judged}) or _largest(gains)
    return _Move(4, gains[metric], 0.0, place, "rose", metric, metric in gated) if metric else None


def _largest(moves: Mapping[str, float]) -> str:
    """Return the metric that moved most in this direction; empty if none did."""
    name = max(moves, key=lambda each: moves[each], default="")
    return name if moves.get(name, 0.0) > _TIE else ""


def _losses(
    case: CaseReport, other: CaseReport, scales: Mapping[str, tuple[float, float]], lower: set[str]
) -> Iterator[tuple[str, float]]:
    """Yield by how much a case is worse in each metric, as a share of the metric's range; negative if it is better."""
    for name, now in case.metrics.items():
        then = other.metrics.get(name)
        if now is not None and then is not None:
            low, high = scales[name]
            yield name, (now - then if name in lower else then - now) / ((high - low) or 1.0)


def _shown(case: CaseReport, gated: Sequence[str]) -> str:
    """Return the metric that shows best why a case fails: a missed limit, or what a gate looks at."""
    scores = case.metrics
    missed = [name for name in case.unmet if scores.get(name) is not None]
    judged = [name for name in gated if scores.get(name) is not None]
    both = [name for name in missed if name in judged]
    return next(iter((*both, *missed, *judged)), "")


def _shortfall(name: str, case: CaseReport, scales: Mapping[str, tuple[float, float]], lower: set[str]) -> float:
    score = case.metrics.get(name)
    if score is None:
        return 0.0
    low, high = scales[name]
    return float(score - low if name in lower else high - score) / float((high - low) or 1.0)


def _row(move: _Move, case: CaseReport, others: Mapping[str, CaseReport]) -> dict[str, Any]:
    then = others.get(case.id, NO_CASE).metrics.get(move.metric)
    now = case.metrics.get(move.metric)
    scores = {"now": now, "before": then, "gated": move.gated} if now is not None else {}
    return {"place": move.place, "kind": move.kind, **({"metric": move.metric, **scores} if scores else {})}
