"""The tables of a suite's metrics, of all cases and by group, for the terminal and for Markdown."""

__all__ = ("group_table", "listed_metrics", "metric_table")

from collections.abc import Mapping

from pytest_llmeval.core.results import MetricValue
from pytest_llmeval.core.wording import interval, number
from pytest_llmeval.reports.data import SuiteReport
from pytest_llmeval.reports.layout import TextTable

_COUNTS = ("scored", "undefined", "errored", "missing")
_MEAN = 3
_FIRST_COUNT = 4


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
