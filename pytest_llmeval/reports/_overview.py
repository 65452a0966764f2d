"""Parts that terminal and Markdown reports share."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple, get_args

from pytest_llmeval.core import (
    AlignedTable,
    ChangeVerdict,
    GateResult,
    Metric,
    MetricValue,
    SnapshotVerdict,
    counted,
    interval,
    listed,
    number,
    printable,
    seconds,
    width_of,
)
from pytest_llmeval.numbers import TOLERANCE, Money, UsageReport
from pytest_llmeval.reports._form import (
    CaseReport,
    Changes,
    StopReport,
    SuiteReport,
    SystemReport,
    SystemsReport,
    SystemValue,
    affected_text,
    past_limits,
)
from pytest_llmeval.reports._tables import Line, TextTable

MOST_LINES = 3
"""Findings listed for each of the worst cases."""
_HEADERS = ("suite", "cases", "gates")
CHANGE_VERDICTS = get_args(ChangeVerdict)
_CHANGES = (
    "declined",
    "fell",
    "vanished",
    "undecided",
    "cannot tell",
    "not significant",
    "improved",
    "rose",
    "new",
    "approved",
)

_MEAN = 3
_FIRST_COUNT = 4
_FEW_CASES = 20
"""Larger suites have no table of cases: reports list the worst, and JSON has all."""
_MOST_SCORES = 8
_NOT_AUDITED = "not audited: what the small judge gets wrong where it is sure is unknown"
_WARNING = re.compile(rf"warning|.*; {_NOT_AUDITED}")


class OverviewRow(NamedTuple):
    """A suite, or one of its systems, as a line of the overview in terminal and Markdown reports.

    Attributes:
        suite: Its report.
        cells: Name, cases and gates; the name of a further system of a suite is that of the system.
        metrics: Metrics with gates, the same for all systems of a suite.
    """

    suite: SuiteReport
    cells: tuple[str, str, str]
    metrics: Sequence[str]


def overview(suites: Sequence[SuiteReport], width: int) -> Iterator[Line]:
    """Yield the terminal's overview, a line per suite: cases, gates, changed scores and metrics with gates.

    Args:
        suites: The suites.
        width: Columns of the terminal; metrics that do not fit are left out.
    """
    rows = rows_of(suites)
    confidences = {suite.interval_name for suite in suites}
    between = confidences.pop() if len(confidences) == 1 else "interval"
    header, *starts = map(" ".join, AlignedTable([_HEADERS, *(row.cells for row in rows)]).padded_rows())
    yield Line(f"{header}  metrics of gates, {between}", "bold")
    for row, start in zip(rows, starts, strict=True):
        text = brief(row, width - width_of(start) - 2)
        colour = "red" if row.suite.failed else "yellow" if _is_doubtful(row.suite) else ""
        yield Line(f"{start}  {text}".rstrip(), colour)


def rows_of(suites: Sequence[SuiteReport]) -> list[OverviewRow]:
    """Overview rows of suites, with the systems of a suite together."""
    groups = groupby(suites, lambda suite: (suite.path, suite.base_name))
    return [row for _, group in groups for row in _rows(list(group))]


def _rows(variants: Sequence[SuiteReport]) -> Iterator[OverviewRow]:
    """Yield the overview rows of one suite: one for each of its systems or variants."""
    # Whether cases passed is in their column.
    judged = sorted(
        dict.fromkeys(name for variant in variants for name in variant.gated), key=lambda name: name == Metric.PASS_RATE
    )
    for place, suite in enumerate(variants):
        name = printable(f"  [{suite.variant}]" if place else suite.suite)
        passed = suite.counts.get("passed", 0) + suite.counts.get("scored", 0)
        cases = str(passed) if passed == suite.total else f"{passed}/{suite.total}"
        holding = sum(gate.outcome == "passed" for gate in suite.gates)
        gates = str(holding or "-") if holding == len(suite.gates) else f"{holding}/{len(suite.gates)}"
        yield OverviewRow(suite, (name, cases, gates), judged or list(suite.metrics)[:1])


def brief(row: OverviewRow, room: int) -> str:
    """A suite's changed scores and gated metrics for its overview row, the first of them that fit.

    Where there is no room for all, intervals lose decimals, or are left out: a value says more than another's interval.
    """
    values = {name: row.suite.find(name) for name in row.metrics}
    changes = "".join(f"{change}; " for change in _changes(row.suite, room))
    room = max(0, room - width_of(changes))
    forms = [[f"{printable(name)} {form}" for form in _forms(value)] for name, value in values.items()]
    for level in range(_LEVELS):
        parts = [form[min(level, len(form) - 1)] for form in forms]
        texts = [", ".join(parts[:count]) for count in range(len(parts), -1, -1)]
        text = next(candidate for candidate in texts if width_of(candidate) <= room)
        if text == texts[0]:
            break
    return changes + text


_LEVELS = 3
"""Forms of a value: with its interval, with a rounded interval, and without."""


def _forms(value: MetricValue | None) -> Iterator[str]:
    """Yield the texts of a metric's value in the overview, the longest first."""
    if value is None:
        yield number(None)
        return
    silent = f" ({value.abstained} abstained)" if value.abstained else ""
    if value.low is not None and value.high is not None:
        yield f"{number(value.value)} {interval(value.low, value.high)}{silent}"
        yield f"{number(value.value)} {value.low:.2f}..{value.high:.2f}{silent}"
    yield f"{number(value.value)}{silent}"


_WORST = 3


def cause_lines(suite: SuiteReport, gate: GateResult) -> Iterator[str]:
    """Yield errored cases, or a gate metric's worst cases and group, unless the gate itself names cases."""
    errored = [case.id for case in suite.cases if case.outcome == "errored"]
    if errored and "errored" in gate.reason:
        yield f"  errored cases: {listed(errored, _WORST)}"
        return
    for metric in [] if gate.cause or not gate.metric else [gate.metric]:
        sign = -1 if metric in suite.lower_is_better else 1
        scores = _scores(suite.cases, metric)
        yield from _worst(scores, sign, _find_failing_cases(suite, gate))
        groups = [] if " by " in gate.gate else list(_groups(suite, metric, scores))
        if len({value for value, _, _ in groups}) > 1:
            value, cases, name = min(groups, key=lambda group: (sign * group[0], -group[1]))
            yield f"  worst group: {name} {number(value)} ({counted(cases, 'case')})"


def fall_lines(
    suite: SuiteReport, verdict: SnapshotVerdict, before: Mapping[str, CaseReport] | None = None
) -> Iterator[str]:
    """Yield the report line on the cases that fell most in a metric that is worse than approved.

    Args:
        suite: The suite.
        verdict: On the metric.
        before: Cases of an earlier run by id; default: the approved ones, if the report has them.
    """
    if before is None:
        before = {case.id: case for case in suite.changes.cases} if suite.changes is not None else {}
    if verdict.outcome != "failed":
        return
    if fallen := fallen_cases(suite, before, verdict.metric):
        scores = [
            f"{case.id} {number(before[case.id].metrics[verdict.metric])} -> {number(case.metrics[verdict.metric])}"
            for case in fallen[:_WORST]
        ]
        yield f"  worst cases: {', '.join(scores)}"
    elif not before:
        # The report has no earlier scores, but gates name the cases that fell.
        named = {case for gate in suite.gates for case in gate.fallen}
        sign = -1 if verdict.metric in suite.lower_is_better else 1
        among = [case for case in suite.cases if case.id in named]
        yield from _worst(_scores(suite.cases, verdict.metric), sign, among)


def fallen_cases(suite: SuiteReport, before: Mapping[str, CaseReport], metric: str) -> list[CaseReport]:
    """A suite's cases whose score of a metric got worse since an earlier run, the largest fall first."""
    sign = -1 if metric in suite.lower_is_better else 1
    falls = []
    for case in suite.cases:
        now, then = case.metrics.get(metric), before.get(case.id, CaseReport.not_run()).metrics.get(metric)
        if now is not None and then is not None and sign * (then - now) > TOLERANCE:
            falls.append((sign * (then - now), case))
    return [case for _, case in sorted(falls, key=lambda fall: -fall[0])]


def _scores(cases: Sequence[CaseReport], metric: str) -> dict[str, float]:
    """Scores of reported cases in a metric by case id, without cases that have none."""
    return {case.id: score for case in cases if (score := case.metrics.get(metric)) is not None}


def _worst(scores: Mapping[str, float], sign: int, among: Sequence[CaseReport]) -> Iterator[str]:
    """Yield the report line on the cases with the worst scores; cases with the best score are left out."""
    best = max(scores.values(), key=lambda score: sign * score, default=None)
    below = (case.id for case in among if scores.get(case.id, best) != best)
    worst = sorted(below, key=lambda case: sign * scores[case])
    if worst:
        yield f"  worst cases: {', '.join(f'{case} {number(scores[case])}' for case in worst[:_WORST])}"


def _find_failing_cases(suite: SuiteReport, gate: GateResult) -> Sequence[CaseReport]:
    """The cases of the groups in which a gate by label failed; all cases of the suite for other gates."""
    _, _, label = gate.gate.rpartition(" by ")
    names = {name for name in suite.groups.get(label, {}) if f" {name}: " in gate.reason}
    return [case for case in suite.cases if case.labels.get(label) in names] or suite.cases


def _groups(suite: SuiteReport, metric: str, scores: Mapping[str, float]) -> Iterator[tuple[float, int, str]]:
    """Yield value, size and name of a suite's groups; without ``group_by``, the mean scores by label."""
    for label, values in suite.groups.items():
        for name, group in values.items():
            if (value := group.find(metric)) is not None and value.value is not None:
                yield value.value, group.cases, f"{label}={name}"
    members: dict[tuple[str, str], list[float]] = {}
    for case in suite.cases if not suite.groups else ():
        for pair in case.labels.items() if case.id in scores else ():
            members.setdefault(pair, []).append(scores[case.id])
    for (label, name), own in members.items():
        if len(own) > 1:
            yield math.fsum(own) / len(own), len(own), f"{label}={name}, mean"


def change_lines(suite: SuiteReport) -> Iterator[str]:
    """Yield a suite's changes since its approval, a line per verdict, with the interval of each difference."""
    for verdict in CHANGE_VERDICTS if suite.changes is not None else ():
        metrics = suite.changes.named(verdict).items() if suite.changes is not None else ()
        listed = [
            f"{name} {number(change.baseline)} -> {number(change.value)} ({interval(change.low, change.high)})"
            for name, change in metrics
        ]
        if listed:
            yield f"{verdict.replace('_', ' ')}: {', '.join(listed)}"


def _changes(suite: SuiteReport, room: int) -> list[str]:
    """A suite's scores that differ from the approved ones, or their number if the names do not fit."""
    moved: dict[str, list[str]] = {}
    for verdict in suite.snapshot:
        if verdict.metric != SnapshotVerdict.EVERYTHING and (word := _word(verdict, suite.changes)):
            moved.setdefault(word, []).append(printable(verdict.metric))
    listed = {word: moved[word] for word in _CHANGES if word in moved}
    named = [f"{word}: {', '.join(names)}" for word, names in listed.items()]
    if width_of(", ".join(named)) <= room // 2:
        return named
    return [f"{word}: {counted(len(names), 'metric')}" for word, names in listed.items()]


def _word(verdict: SnapshotVerdict, changes: Changes | None) -> str:
    """A word for the change of a score since its approval, such as ``rose`` or ``new``."""
    change = None if changes is None else changes.metrics.get(verdict.metric)
    if change is not None and change.difference:
        return change.verdict.replace("_", " ")
    if verdict.kind in ("improved", "fell_within"):  # for some metrics lower is better
        return "rose" if (verdict.value or 0.0) > (verdict.approved or 0.0) else "fell"
    return "cannot tell" if verdict.kind in ("rose_within", "not_comparable") else verdict.kind


def _is_doubtful(suite: SuiteReport) -> bool:
    """Whether a verdict of a suite needs attention although it is no failure, such as an undecided gate."""
    doubtful = ("fell_within", "not_comparable", "vanished")
    return any(verdict.kind in doubtful for verdict in suite.snapshot) or any(
        gate.outcome in ("undecided", "not_judged") for gate in suite.gates
    )


def warnings(suite: SuiteReport, reasons: Sequence[str] = ()) -> Iterator[Line]:
    """Yield the terminal's lines on what needs attention in a suite without a failure.

    Args:
        suite: The suite.
        reasons: Of the verdict on the run, which are said elsewhere.
    """
    for verdict in suite.snapshot:
        if verdict.outcome == "not_judged" or verdict.metric == SnapshotVerdict.EVERYTHING:
            yield Line(printable(f"{suite.suite}: snapshot {verdict.reason}"), "yellow")
    yield from not_judged(suite, f"{suite.suite}: ")
    past = past_limits(gate for gate in suite.gates if not any(gate.known in reason for reason in reasons))
    yield from (Line(printable(f"{suite.suite}: {sentence}"), "yellow") for sentence in past)
    undecided = [gate for gate in suite.gates if gate.outcome == "undecided"]
    if undecided:
        why = re.split(r"[.;] ", undecided[0].reason)[0]
        text = f"{suite.suite}: {len(undecided)} of {counted(len(suite.gates), 'gate')} {why}"
        yield Line(printable(text), "yellow")
    if count := suite.counts.get("not_scored"):
        why = next((case.reason for case in suite.cases if case.outcome == "not_scored"), None)
        text = f"{suite.suite}: {counted(count, 'case')} not scored{f': {why}' if why else ''}"
        yield Line(printable(text), "yellow")
    if suite.stability.get("flaky"):
        yield Line(
            printable(f"{suite.suite}: {suite.stability['flaky']} of {counted(suite.total, 'case')} flaky"), "yellow"
        )
    if suite.usage is not None and suite.usage.calls:
        yield from (
            Line(printable(f"{suite.suite}: {line}")) for line in asking_lines(suite) if line.startswith("judge:")
        )
    if suite.usage is not None:
        lines = _cascade_lines(suite, suite.usage)
        yield from (Line(f"{suite.suite}: {line}", "yellow") for line in lines if _WARNING.match(line))
    yield from (Line(printable(f"{suite.suite}: {line}")) for line in _scope_lines(suite))
    for line in (*metric_notes(suite), *cluster_lines(suite)):
        if line.startswith("warning"):
            yield Line(printable(f"{suite.suite}: {line}"), "yellow")


def not_judged(suite: SuiteReport, prefix: str = "") -> Iterator[Line]:
    """Yield one terminal line for all gates of a suite that were not evaluated."""
    waiting = [gate for gate in suite.gates if gate.outcome == "not_judged"]
    if waiting:
        yield Line(printable(f"{prefix}{len(waiting)} of {len(suite.gates)} gates {waiting[0].reason}"), "yellow")


def _scope_lines(suite: SuiteReport) -> Iterator[str]:
    """Yield which cases of the suite file a report's numbers are about, unless all."""
    if suite.left_out:
        yield f"only predicted cases: {suite.left_out} left out"
    if suite.sample is not None:
        yield str(suite.sample)
    if suite.stop is not None:
        yield stop_text(suite.stop)
    if suite.affected is not None:
        yield affected_text([suite])


def rate_text(suite: SuiteReport) -> str:
    """The pass rate as reports append it to a suite's case counts; empty if cases have nothing to pass."""
    return "" if suite.counts.get("scored") else f"; pass rate {number(suite.pass_rate.value)}"


def asking_lines(suite: SuiteReport) -> Iterator[str]:
    """Yield report lines on left-out cases, repeats, and the cost and latency of judges and target."""
    yield from _scope_lines(suite)
    if suite.stability:
        yield "repeats: " + ", ".join(f"{count} {status}" for status, count in suite.stability.items())
    if suite.usage is None:
        return
    if suite.usage.verdicts:
        yield f"judge: {'; '.join(filter(None, (str(suite.usage.judges), _latency(suite.usage.latency_s))))}"
    for name, juror in suite.usage.jurors.items():
        yield f"judge {printable(name)}: {juror}"
    yield from _cascade_lines(suite, suite.usage)
    if target := list(_of_target(suite.usage)):
        yield f"target: {'; '.join(target)}"


def stop_text(stop: StopReport) -> str:
    """A report line on a suite's early stop: after how many cases, and the calls and cost that it saved."""
    cases = f"stopped after {stop.cases} of {counted(stop.cases + stop.not_needed, 'case')}, all gates decided"
    ahead = f" ({stop.ran_ahead} of the others had run ahead and count nowhere)" if stop.ran_ahead else ""
    amounts = [counted(stop.judge_calls, "judge call")] if stop.judge_calls else []
    amounts += [counted(stop.answers, "answer")] if stop.answers else []
    amounts += [f"{stop.cost_usd:.4f} USD"] if stop.cost_usd else []
    spared = f"; about {', '.join(amounts)} not spent" if amounts else ""
    return f"{cases}{ahead}{spared}"


def _cascade_lines(suite: SuiteReport, usage: UsageReport) -> Iterator[str]:
    """Yield how often the small judge of a cascade is unsure, and how often it errs where it is sure."""
    for label, cascade in usage.cascades.items():
        if not cascade.verdicts:
            continue
        unsure = f"cascade {printable(label)}: {cascade.unsure} of {counted(cascade.verdicts, 'verdict')} unsure"
        if not cascade.audit:
            yield f"{unsure}; {_NOT_AUDITED}"
            continue
        error = suite.find(f"{label}_cascade_error")
        audited = f"{cascade.audited} of {cascade.sure} sure ones audited"
        if error is None or error.value is None:
            yield f"{unsure}, {audited}"
            continue
        bounds = interval(error.low, error.high)
        rate = f"error rate {number(error.value)}{f' ({bounds})' if bounds else ''}"
        yield f"{unsure}, {audited}; the large judge disagrees with {cascade.differing} of these: {rate}"
        bias = suite.find(f"{label}_cascade_bias")
        if bias is not None and bias.low is not None and bias.high is not None and (bias.low > 0 or bias.high < 0):
            yield (
                f"warning: cascade {printable(label)}: where it is sure, the small judge is too "
                f"{'strict' if bias.low > 0 else 'mild'}: the large one adds {number(bias.value)} "
                f"({interval(bias.low, bias.high)}) on average"
            )


def _of_target(usage: UsageReport) -> Iterator[str]:
    """Yield the tokens, cost and latency of a suite's target as parts of a report line."""
    amounts = [f"{usage.target_tokens:.0f} tokens"] if usage.target_tokens is not None else []
    amounts += [f"{usage.target_cost_usd:.4f} USD"] if usage.target_cost_usd is not None else []
    if amounts:
        yield ", ".join(amounts)
    if latency := _latency(usage.target_latency_s):
        yield latency


def _latency(percentiles: Mapping[str, float] | None) -> str:
    """Latency percentiles of a judge or target in words; empty if all are below half a millisecond."""
    known = {name: value for name, value in (percentiles or {}).items() if round(value * 1000)}
    return "latency " + ", ".join(f"{name} {seconds(value)}" for name, value in known.items()) if known else ""


def money_lines(money: Money | None) -> Iterator[str]:
    """Yield the report line on the known cost and savings of a run; nothing if both are 0."""
    if money is None:
        return
    parts = {"judges": money.spent.judges, "simulated users": money.spent.users, "targets": money.spent.targets}
    ways = {"what was stored": money.saved.stored, "stopping": money.saved.stop, "cascades": money.saved.cascade}
    spent, saved = (
        {name: amount for name, amount in amounts.items() if amount is not None and round(amount, 4)}
        for amounts in (parts, ways)
    )
    unknown = [name for name, amount in parts.items() if amount is None]
    texts = [f"cost: {_usd(math.fsum(spent.values()))} USD{_parts(spent)}"] if spent else []
    texts += [f"no known price: {', '.join(unknown)}"] if spent and unknown else []
    texts += [f"saved: {', '.join(f'{_usd(amount)} USD by {name}' for name, amount in saved.items())}"] if saved else []
    if texts:
        yield "; ".join(texts)


def _parts(amounts: Mapping[str, float]) -> str:
    """The cost of a run by who spent it, in brackets, such as ``(judges 0.0200)``."""
    return f" ({', '.join(f'{name} {_usd(amount)}' for name, amount in amounts.items())})"


def _usd(amount: float | None) -> str:
    """A cost in US dollars with four decimals, or ``unknown``."""
    return "unknown" if amount is None else f"{amount:.4f}"


def metric_notes(suite: SuiteReport) -> Iterator[str]:
    """Yield warnings on metrics that are undefined or leave something out, such as labels of changed answers."""
    for name, metric in suite.metrics.items():
        if metric.reason:
            yield f"warning: {name}{' is undefined' if metric.value is None else ''}: {metric.reason}"


def cluster_lines(suite: SuiteReport) -> Iterator[str]:
    """Yield the design effect of a suite's clusters, and a warning about cases that look clustered."""
    if clusters := suite.clusters:
        text = f"{counted(len(suite.cases), 'case')} in {counted(clusters.count, 'cluster')} by {clusters.label}"
        effects = {name: value for name, value in clusters.design_effects.items() if name in suite.metrics}
        if effects:
            low, high = (pick(effects, key=lambda name: effects[name]) for pick in (min, max))
            span = f"{effects[low]:.2f} ({low})"
            if low != high:
                span += f" to {effects[high]:.2f} ({high})"
            text += f"; design effect {span}"
        yield text
    if suite.shared_inputs:
        yield (
            f"warning: {suite.shared_inputs} of {counted(suite.total, 'case')} have the input of an earlier case: "
            "intervals and tests are too sure of themselves unless cluster_by names a label that such cases share"
        )


def listed_metrics(suite: SuiteReport, *, most: int | None = None, in_tables: bool = True) -> Mapping[str, MetricValue]:
    """The metrics that a report lists, in the order of the suite.

    The cells of a confusion matrix are never listed: the matrix has them all.

    Args:
        suite: The suite.
        most: Upper limit; metrics with gates are always included.
        in_tables: Whether to repeat metrics of evaluators' tables, for their intervals. Metrics with gates always are.
    """
    metrics, gated = suite.metrics, suite.gated
    in_table = {name for table in suite.tables if table.is_matrix or not in_tables for name in table.metrics}
    unshown = (name for name in metrics if name not in in_table)
    chosen = list(dict.fromkeys([*(name for name in gated if name in metrics), *unshown]))
    names = set(chosen if most is None else chosen[: max(most, len(gated))])
    return {name: value for name, value in metrics.items() if name in names}


def metric_table(suite: SuiteReport, metrics: Mapping[str, MetricValue]) -> TextTable:
    """The report table of a suite's metrics with intervals, means and counts.

    To save room, the mean is dropped first, then the counts.
    """
    headers, *rows = MetricValue.list_cells(metrics, suite.interval_name)
    return TextTable("", headers, rows, spare=[_MEAN, *range(len(headers) - 1, _FIRST_COUNT - 1, -1), 2])


_LEGEND = {
    "undefined": "no score: no answer to the case could have one",
    "errored": "errors: could not be measured",
}
"""Counts of cases to what their column says."""


def legend(metrics: Mapping[str, MetricValue]) -> str:
    """The meaning of the columns of a report's metric table that count cases; empty without such a column."""
    columns = (text for name, text in _LEGEND.items() if any(getattr(metric, name) for metric in metrics.values()))
    return "; ".join(columns)


def group_table(key: str, suite: SuiteReport) -> TextTable:
    """The report table of a suite's groups by a label, with the metrics of gates first."""
    names = list(dict.fromkeys([*suite.gated, *suite.metrics]))
    rows = [
        (name, str(group.cases), *(number(value.value if (value := group.find(metric)) else None) for metric in names))
        for name, group in suite.groups[key].items()
    ]
    return TextTable("", (key, "cases", *names), rows, spare=range(len(names) + 1, 2, -1))


def case_table(suite: SuiteReport) -> TextTable | None:
    """The report table of a small suite's cases with scores, gated ones first; ``None`` for any other suite."""
    cases = suite.cases
    names = dict.fromkeys([*suite.gated, *listed_metrics(suite)])
    scored = [name for name in names if any(case.metrics.get(name) is not None for case in cases)][:_MOST_SCORES]
    if not scored or not 1 < len(cases) <= _FEW_CASES:
        return None
    rows = []
    for case in cases:
        scores = (number(case.metrics.get(name)) for name in scored)
        rows.append((case.id, case.outcome.replace("_", " "), *scores))
    headers = ("case", "outcome", *scored)
    return TextTable("", headers, rows, texts=(0, 1), spare=range(len(headers) - 1, 2, -1))


def system_tables(report: SystemsReport, *, metrics: Sequence[str], joined: bool = False) -> Iterator[TextTable]:
    """Yield the tables that compare a suite's systems: values, differences, those of evaluators, and groups.

    Args:
        report: The systems.
        metrics: Metrics whose differences have a table.
        joined: Whether differences share one table instead of one for each metric.
    """
    listed = report.metrics
    rows = [
        (system.system, str(system.cases), *(_system_cell(system, metric, report.confidence) for metric in listed))
        for system in report.systems
    ]
    yield TextTable("", ("system", "cases", *listed), rows, spare=_from_the_end(2 + len(listed), 3))
    between = f"{report.confidence * 100:g}% interval"
    for strengths in report.strengths:
        strong = [
            (system.system, number(system.value), interval(system.low, system.high)) for system in strengths.systems
        ]
        title = f"strength by {strengths.label} (Bradley-Terry with ties, {counted(strengths.pairs, 'pair')})"
        yield TextTable(title, ("system", "strength", between), strong)
    headers = ("metric", "system", "value", between, "change", between, "p", "win/tie/loss")
    changes = {metric: [(metric, *_system_change(system, metric)) for system in report.systems] for metric in metrics}
    against = f"against {report.reference}, case by case (p by Holm's method)"
    if joined:
        yield TextTable(f"all {against}", headers, [row for rows in changes.values() for row in rows], (0, 1))
    for metric, changed in () if joined else changes.items():
        # The interval of the value itself is in the table of metrics.
        yield TextTable(f"{metric} {against}", headers[1:], [row[1:] for row in changed], spare=(2, 6, 4))
    yield from (table.as_text() for table in report.joined)
    for label, names in report.groups.items():
        for metric in report.compare_by:
            groups = [
                (system.system, *(number(system.groups.get(label, {}).get(name, {}).get(metric)) for name in names))
                for system in report.systems
            ]
            columns = ("system", *names)
            yield TextTable(f"{metric} by {label}", columns, groups, spare=_from_the_end(len(columns), 2))


def _from_the_end(columns: int, needed: int) -> Sequence[int]:
    """Positions of the columns that a narrow report table may drop, the last first."""
    return range(columns - 1, needed - 1, -1)


def _system_change(system: SystemReport, metric: str) -> tuple[str, ...]:
    """Cells of a system's value and its difference from the reference, which has no difference itself."""
    value, change = system.metrics.get(metric, SystemValue(None)), system.differences.get(metric)
    cells = (system.system, number(value.value), interval(value.low, value.high))
    if change is None:
        return (*cells, "", "", "", "")
    numbers = number(change.difference), interval(change.low, change.high), number(change.p_value)
    return (*cells, *numbers, f"{change.wins}/{change.ties}/{change.losses}")


def _system_cell(system: SystemReport, metric: str, confidence: float) -> str:
    """A system's value in a report table, starred if its difference from the reference is significant."""
    value, change = system.metrics.get(metric, SystemValue(None)), system.differences.get(metric)
    is_sure = change is not None and change.p_value is not None and change.p_value <= 1 - confidence
    return f"{number(value.value)}{'*' if is_sure else ''}"
