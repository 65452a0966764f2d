"""The tables of a suite's metrics, of all cases and by group, for the terminal and for Markdown."""

__all__ = ("case_table", "group_table", "listed_metrics", "metric_table")

from collections.abc import Mapping

from pytest_llmeval.core.results import MetricValue
from pytest_llmeval.core.wording import interval, number
from pytest_llmeval.reports.data import SuiteReport
from pytest_llmeval.reports.layout import TextTable

_COUNTS = ("scored", "undefined", "errored", "missing")
_MEAN = 3
_FIRST_COUNT = 4
_FEW_CASES = 20
"""Suites of more cases have no table of them: reports list the worst, and the JSON report has all."""
_MOST_SCORES = 8


def listed_metrics(suite: SuiteReport, *, most: int | None = None, in_tables: bool = True) -> Mapping[str, MetricValue]:
    """Return the metrics to list, in the order of the suite.

    The cells of a confusion matrix are never listed: the matrix says all of them.

    Args:
        suite: The suite.
        most: How many there may be; those that gates judge are always among them.
        in_tables: Whether metrics that a table of an evaluator shows are listed once more, for their intervals. Those
            that gates judge always are.
    """
    metrics, gated = suite.result.metrics, suite.gated
    shown = {name for table in suite.tables if table.is_matrix or not in_tables for name in table.metrics}
    unshown = (name for name in metrics if name not in shown)
    chosen = list(dict.fromkeys([*(name for name in gated if name in metrics), *unshown]))
    kept = set(chosen if most is None else chosen[: max(most, len(gated))])
    return {name: value for name, value in metrics.items() if name in kept}


def metric_table(suite: SuiteReport, metrics: Mapping[str, MetricValue]) -> TextTable:
    """Return the metrics with intervals, means and numbers of cases.

    Where there is no room, counts that are all zero are left out first, then the mean.
    """
    rows = [
        (
            name,
            number(each.value),
            interval(each.low, each.high),
            number(each.mean),
            *(str(getattr(each, count)) for count in _COUNTS),
        )
        for name, each in metrics.items()
    ]
    headers = ("metric", "value", suite.interval_name, "mean", "scored", "undef", "err", "miss")
    counts = range(len(headers) - 1, _FIRST_COUNT - 1, -1)
    empty = [place for place in counts if all(row[place] == "0" for row in rows)]
    return TextTable("", headers, rows, spare=[*empty, _MEAN, *(place for place in counts if place not in empty), 2])


def group_table(key: str, suite: SuiteReport) -> TextTable:
    """Return the groups of a label, with the metrics of gates first."""
    names = list(dict.fromkeys([*suite.gated, *suite.result.metrics]))
    rows = [
        (name, str(group.cases), *(number(found.value if (found := group.find(metric)) else None) for metric in names))
        for name, group in suite.result.groups[key].items()
    ]
    return TextTable("", (key, "cases", *names), rows, spare=range(len(names) + 1, 2, -1))


def case_table(suite: SuiteReport) -> TextTable | None:
    """Return the cases of a small suite with their scores, those of gates first; ``None`` for any other suite."""
    cases = suite.result.cases
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
