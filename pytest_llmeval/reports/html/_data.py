"""The JSON data of a page."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from pytest_llmeval.core import CaseRecord, GateResult, Metric, MetricChange, MetricValue, excerpt
from pytest_llmeval.gates import RULES, ChangeGate, LimitGate
from pytest_llmeval.reports._form import (
    CaseReport,
    Changes,
    FailureGroups,
    RunReport,
    SuiteReport,
)
from pytest_llmeval.reports._headline import MergeAnswer
from pytest_llmeval.reports._json import published, published_without
from pytest_llmeval.reports._tables import Timeline

_DRAWN = {"incomplete": "not_judged"}
"""Verdict on a suite or a run to how the page draws it, where that differs."""

_BY = " by "
_P_VALUE = re.compile(r" p (?:below )?[0-9.]{1,9}\.(?= |$)")
_CONFIDENT = ("value", "low", "high")

ViewTexts: TypeAlias = Mapping[str, Any]
"""Fields of a case that only its own view shows."""

_SLACK = 1e-9
_DIGITS = 6
_LONGEST_REASON = 160
_IN_TABLE = ("id", "outcome", "cluster", "metrics", "duration_s", "labels", "unmet", "line")
"""Fields of a case that the table of cases has."""

_OVERVIEW = ("reason", "lines", "input", "expected", "prediction")
_PASS_RATE = ("value", "low", "high", "scored", "missing")
_DIFFERENCE = ("baseline", "value", "difference", "low", "high", "p_value", "cases")
_MOST_POINTS = 40
_NOTHING: tuple[Any, ...] = (None, {}, [], 0)


def run_data(report: RunReport) -> dict[str, Any]:
    """The report of a run as JSON data of the HTML report, without its suites."""
    return {
        **(published(report.run) if report.run.started_at else {}),
        "faults": published(report.faults),
        "systems": published(report.systems),
        "mutation": published(report.mutation),
        "verdict": _DRAWN.get(report.verdict, report.verdict),
    }


def entry_of(suite: SuiteReport, run: int) -> dict[str, Any]:
    """A suite as JSON data of the HTML report, without its cases.

    Args:
        suite: The suite.
        run: Number of its run on the page.
    """
    metrics = {**suite.metrics, Metric.PASS_RATE: suite.pass_rate}
    form = published_without(suite, "cases")
    return {
        "run": run,
        **{name: value for name, value in form.items() if value not in _NOTHING},
        "variant": suite.variant,
        "name": suite.base_name if suite.variant else suite.suite,
        "counts": {"total": len(suite.cases), **Counter(case.outcome for case in suite.cases), **suite.counts},
        "pass_rate": {name: getattr(suite.pass_rate, name) for name in _PASS_RATE},
        "gates": [_gate(gate, metrics) for gate in suite.gates],
        "verdict": _DRAWN.get(suite.verdict, suite.verdict),
        "can_fail": suite.can_fail,
        "cases": len(suite.cases),
        **({"changes": changes_json(suite.changes)} if suite.changes else {}),
        **({"history": history} if (history := past_points(suite.past)) else {}),
    }


def number_line(gate: GateResult, metrics: Mapping[str, MetricValue]) -> dict[str, Any]:
    """A gate's operator and the interval of its value, as far as known, for a number line of the HTML report.

    Args:
        gate: The gate.
        metrics: Metrics of the suite and ``pass_rate``.

    Example:
        >>> number_line(GateResult("f1 >= 0.7", "passed"), {"f1": MetricValue(0.7, None, 0.6, 0.8, 9, 0, 0, 0)})
        {'operator': '>=', 'low': 0.6, 'high': 0.8}
    """
    rule = RULES.of_text(gate.gate)
    if rule is not None and rule.form is not None:
        # A gate on a change is judged by its interval, not by the side of the limit that its value is on.
        bounds = {} if GateResult.UNCHANGED in gate.reason else _bounds(gate)  # which no case bears out
        relative = {"relative": True, **bounds} if issubclass(rule, ChangeGate) else {}
        return {"operator": rule.form.operator, **relative}
    whole, _, label = gate.gate.rpartition(_BY)
    # Of two limits, a gate reports the one that its value was compared with.
    parsed = _limit_gate(_nearest(whole or label, gate.limit))
    if parsed is None:
        return {}
    line = {"operator": parsed.bounds[0].operator}
    value = metrics.get(parsed.metric)
    return line if whole or value is None or parsed.statistic not in _CONFIDENT else line | _bounds(value)


def _bounds(value: GateResult | MetricValue) -> dict[str, Any]:
    """The known bounds of a gate's or metric's interval as JSON data of the HTML report."""
    bounds = {"low": value.low, "high": value.high}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _gate(gate: GateResult, metrics: Mapping[str, MetricValue]) -> dict[str, Any]:
    """A gate as JSON data of the HTML report, drawn as ``within_chance`` if it passed beyond its limit."""
    line = number_line(gate, metrics)
    beyond = False
    if line.get("relative") and gate.value is not None and gate.limit is not None:
        over = gate.value - gate.limit
        beyond = (over if line["operator"] == "<=" else -over) > _SLACK
    drawn = "within_chance" if gate.outcome == "passed" and beyond else gate.outcome
    metric = gate.metric or None
    past = {"past": gate.moved} if gate.is_past_limit else {}  # the gate itself has the statistics
    lead = _lead(gate) if line.get("relative") or gate.cause else gate.reason
    return {
        **published_without(gate, "moved"),
        "line": line,
        "look": drawn,
        "metric": metric,
        "lead": lead,
        "statistics": "" if lead == gate.reason else gate.reason.removeprefix(lead).removeprefix("; "),
        **past,
    }


def _lead(gate: GateResult) -> str:
    """The verdict on a change in the HTML report's list of gates, without statistics."""
    if gate.cause:
        return _P_VALUE.sub("", gate.cause)
    first = gate.headline.partition("; ")[0]
    return gate.moved or first if gate.outcome == "passed" and gate.headline != first else first


def _nearest(text: str, limit: Any) -> str:
    """The part of a gate with two limits whose limit the gate's value was compared with."""
    gates = {part: _limit_gate(part) for part in text.split(" and ")}
    if None in gates.values():
        return text
    return next((part for part, gate in gates.items() if gate and gate.bounds[0].limit == limit), next(iter(gates)))


def _limit_gate(text: str) -> LimitGate | None:
    """The gate that a gate's text in a report describes; ``None`` if the text is no gate on a limit."""
    try:
        return LimitGate.from_text(text)
    except ValueError:  # a limit that is no finite number, in a report that something else wrote
        return None


def changes_json(changes: Changes) -> dict[str, Any]:
    """The changes of a suite against another run as JSON data of the HTML report, without the cases."""
    metrics = [
        {
            "metric": name,
            "name": change.name_of(name),
            "kind": _kind(change),
            **{field: getattr(change, field) for field in _DIFFERENCE},
        }
        for name, change in changes.metrics.items()
    ]
    return {"against": changes.against, "notes": list(changes.notes), "metrics": metrics}


_KINDS = {"declined": "fell", "improved": "rose", "not_significant": "unclear", "undecided": "untold"}


def _kind(change: MetricChange) -> str:
    """How the HTML report draws a metric's change, such as ``fell`` for a decline."""
    if change.difference is None:
        return "vanished" if change.value is None else "new"
    return "same" if change.difference == 0 else _KINDS[change.verdict]


def past_points(timeline: Timeline | None) -> list[dict[str, Any]]:
    """A suite's last runs and approvals as JSON data, each with changes of data, evaluator or judge before it."""
    if timeline is None:
        return []
    changes = timeline.changes()
    return [
        {
            "time": point.when,
            "approved": point.approved,
            "commit": point.commit[:12],
            "values": dict(point.values),
            "changed": list(changed),
        }
        for point, changed in list(zip(timeline.points, changes, strict=True))[-_MOST_POINTS:]
    ]


def index_of(cases: Sequence[CaseReport], failing: int) -> dict[str, Any]:
    """The HTML report's table of cases as JSON data, column by column.

    Args:
        cases: The cases.
        failing: The number of failing cases of their run.

    Returns:
        ``ids``, ``reasons`` (their beginnings), ``lines`` (of the file), ``seconds``; ``outcomes``, ``statuses`` (of
        repeats) and each of the ``labels`` as a list of values and an index for each case, -1 for none; ``metrics``,
        name to scores; ``alike``, the number of the failure that a case shares with others, -1 for none.
    """
    names = dict.fromkeys(name for case in cases for name in case.metrics)
    labels = dict.fromkeys(name for case in cases for name in case.labels)
    return {
        "ids": [case.id for case in cases],
        "outcomes": _code_column(case.outcome for case in cases),
        "reasons": [_shorten_reason(case.reason) for case in cases],
        "lines": [case.line for case in cases],
        "seconds": [round(case.duration_s, 3) for case in cases],
        "statuses": _code_column(_status(case) for case in cases),
        "labels": {name: _code_column(case.labels.get(name) for case in cases) for name in labels},
        "metrics": {name: [_round_score(case.metrics.get(name)) for case in cases] for name in names},
        "alike": _equal_failures(cases, failing),
    }


def _equal_failures(cases: Sequence[CaseReport], failing: int) -> list[int]:
    """The number of the failure that each case shares with others by its reason; -1 for none."""
    reasons = [FailureGroups(failing).shared_reason(case) for case in cases]
    times = Counter(reasons)
    codes: dict[str, int] = {}
    return [codes.setdefault(reason, len(codes)) if reason and times[reason] > 1 else -1 for reason in reasons]


def overview_texts(case: CaseReport | None) -> ViewTexts:
    """The texts of a case in the overview of the HTML report."""
    return {} if case is None else {name: value for name, value in case_texts(case).items() if name in _OVERVIEW}


def case_texts(case: CaseReport) -> ViewTexts:
    """The texts of a case's view in the HTML report, without empty ones and those of its row in the table."""
    form = published_without(case, *_IN_TABLE)
    return {name: value for name, value in form.items() if value not in (None, {}, [])}


def _status(case: CaseReport) -> Any:
    """The status of a case's repeats, such as ``flaky``; ``None`` without repeats."""
    repeats = case.details.get("repeats")
    return repeats.get("status") if isinstance(repeats, Mapping) else None


def _code_column(values: Iterable[Any]) -> dict[str, Any]:
    """A column of the HTML report's table of cases: its few distinct texts, and an index for each case."""
    places: dict[str, int] = {}
    codes = [-1 if value is None else places.setdefault(str(value), len(places)) for value in values]
    return {"values": list(places), "codes": codes}


def _shorten_reason(reason: Any) -> str:
    """The beginning of a case's reason, for the HTML report's table of cases."""
    return excerpt(str(reason or ""), _LONGEST_REASON, lines=True)


def _round_score(score: Any) -> float | None:
    """A score with the digits of the HTML report's table of cases."""
    return None if score is None else round(float(score), _DIGITS) + 0.0


_Kind: TypeAlias = Literal["new_failure", "failing", "still_failing", "fell", "rose"]

MOST_SHOWN = 5
_MOST_ALIKE = 20
"""Cases that fail alike that the overview links."""
_TIE = 1e-9


class _Move(NamedTuple):
    """A failing or changed case with what ranks it in the HTML report's list of worst changes.

    Attributes:
        tier: 0 if it newly fails, 1 if it fell by a gated metric, 2 if it failed before, 3 if it fell, 4 if it rose.
        loss: By how much the metric fell, or rose, as a share of its range.
        shortfall: From the best score of the metric that is shown.
        place: Of the case in the suite.
        kind: What happened.
        metric: What shows it; empty if no score does.
        gated: Whether a gate judges that metric.
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
        """The sort key of the move: the worst first, equal ones by their order in the suite."""
        return self.tier, -self.loss, -self.shortfall, self.place


def worst_changes(suite: SuiteReport, before: SuiteReport | None, failing: int, first: str = "") -> dict[str, Any]:
    """A suite's cases that broke, the worst first, for the HTML report; if none did, those that moved most.

    New failures come first, then cases that fell by the metric of a gate or of an approved score that was not kept.
    Those that fell by other metrics follow, then those that rose. Those that failed before are a group of their own.

    Args:
        suite: The suite.
        before: The same suite in the approved run or baseline.
        failing: The number of failing cases of the run.
        first: Id of the case that the head of the page names: it comes first, whatever its rank.

    Returns:
        ``failing``, ``still`` (failed before), ``fell`` and ``rose`` (how many cases), ``compared`` (whether there is
        another run), and ``cases``, up to five and five that failed before: ``place`` in the suite, ``kind``
        (``new_failure``, ``still_failing``, ``failing`` if nothing is known of it before, ``fell``, ``rose``),
        ``alike`` (places of the cases that fail alike, up to twenty) and ``times`` (how many these are), and
        ``metric``, ``gated``, ``now`` and ``before`` where a score shows it.
    """
    others = {case.id: case for case in before.cases} if before else {}
    unapproved = [verdict.metric for verdict in suite.snapshot if verdict.outcome == "failed"]
    gated = [*dict.fromkeys(gate.metric for gate in suite.gates), *unapproved]
    scales = _scales(suite, others)
    moves = []
    for place, case in enumerate(suite.cases):
        move = _move(place, case, others.get(case.id), gated, scales, set(suite.lower_is_better))
        if move is not None:
            moves.append(move)
    moves.sort(key=lambda move: (suite.cases[move.place].id != first, move.rank))
    kinds = Counter(move.kind for move in moves)
    counts = {"still": kinds["still_failing"], "fell": kinds["fell"], "rose": kinds["rose"]}
    alike: dict[tuple[_Kind, str | int], list[_Move]] = {}
    for move in moves:
        key = move.kind, FailureGroups(failing).shared_reason(suite.cases[move.place]) or move.place
        alike.setdefault(key, []).append(move)
    before_as_well = [group for group in alike.values() if group[0].kind == "still_failing"]
    broken = [group for group in alike.values() if group[0].kind != "still_failing"]
    rows = [
        _row(first, suite.cases[first.place], others)
        | ({"alike": [move.place for move in more[:_MOST_ALIKE]], "times": len(more)} if more else {})
        for first, *more in (*broken[:MOST_SHOWN], *before_as_well[:MOST_SHOWN])
    ]
    return {"failing": len(moves) - sum(counts.values()), **counts, "compared": bool(others), "cases": rows}


def reasons_json(run: RunReport, before: Sequence[SuiteReport | None]) -> dict[str, Any]:
    """Whether a run can be merged and how many cases newly fail, as JSON data of the HTML report.

    Args:
        run: The run.
        before: Each suite in the approved run or baseline, if it is there.
    """
    failures = 0
    for suite, other in zip(run.suites, before, strict=True):
        was_bad = {case.id for case in other.cases if case.outcome in CaseRecord.BAD} if other else set()
        failures += sum(case.outcome in CaseRecord.BAD and case.id not in was_bad for case in suite.cases)
    answer = MergeAnswer.of_run(run, [{case.id: case for case in other.cases} if other else {} for other in before])
    headline = answer.headline
    if headline is not None:  # a cause may quote what a judge replied
        headline = headline._replace(cause=excerpt(headline.cause, _LONGEST_REASON))
    return {
        "new_failures": failures,
        "compared": any(before),
        "answer": {**answer._asdict(), "headline": headline and headline._asdict()},
    }


def _scales(suite: SuiteReport, others: Mapping[str, CaseReport]) -> dict[str, tuple[float, float]]:
    """The range of each metric of a suite: the possible range if known, else that of the scores."""
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
    """The change of a case since an earlier run; ``None`` if it neither fails nor moved, or is excused."""
    outcome = case.outcome
    if outcome not in (*CaseRecord.BAD, "passed"):
        return None
    losses = dict(_losses(case, other, scales, lower)) if other is not None else {}
    judged = {name: loss for name, loss in losses.items() if name in gated}
    if outcome in CaseRecord.BAD:
        metric = _largest(judged) or _deciding_metric(case, gated) or _largest(losses)
        was_bad = other is not None and other.outcome in CaseRecord.BAD
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
    """The metric with the largest of a case's losses, or gains; empty if none moved."""
    name = max(moves, key=lambda metric: moves[metric], default="")
    return name if moves.get(name, 0.0) > _TIE else ""


def _losses(
    case: CaseReport, other: CaseReport, scales: Mapping[str, tuple[float, float]], lower: set[str]
) -> Iterator[tuple[str, float]]:
    """Yield a case's loss in each metric since an earlier run, as a share of the range; negative for a gain."""
    for name, now in case.metrics.items():
        then = other.metrics.get(name)
        if now is not None and then is not None:
            low, high = scales[name]
            yield name, (now - then if name in lower else then - now) / (1.0 if high == low else high - low)


def _deciding_metric(case: CaseReport, gated: Sequence[str]) -> str:
    """The metric that best explains why a case fails: one that misses a limit, or one with a gate."""
    scores = case.metrics
    missed = [name for name in case.unmet if scores.get(name) is not None]
    judged = [name for name in gated if scores.get(name) is not None]
    both = [name for name in missed if name in judged]
    return next(iter((*both, *missed, *judged)), "")


def _shortfall(name: str, case: CaseReport, scales: Mapping[str, tuple[float, float]], lower: set[str]) -> float:
    """A case's distance from the best score of a metric, as a share of the metric's range."""
    score = case.metrics.get(name)
    if score is None:
        return 0.0
    low, high = scales[name]
    return float(score - low if name in lower else high - score) / float(1.0 if high == low else high - low)


def _row(move: _Move, case: CaseReport, others: Mapping[str, CaseReport]) -> dict[str, Any]:
    """A case in the HTML report's list of worst changes as JSON data, with its scores now and before."""
    then = others.get(case.id, CaseReport.not_run()).metrics.get(move.metric)
    now = case.metrics.get(move.metric)
    scores = {"now": now, "before": then, "gated": move.gated} if now is not None else {}
    return {"place": move.place, "kind": move.kind, **({"metric": move.metric, **scores} if scores else {})}
