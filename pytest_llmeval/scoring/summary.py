"""Summaries of case records: metrics of suite, groups and cases, with counts of unscored cases."""

from collections.abc import Mapping, Sequence

from pytest_llmeval.core.evaluator import Evaluator
from pytest_llmeval.core.results import (
    PASS_RATE,
    UNLABELLED,
    CaseRecord,
    Clusters,
    GroupResult,
    MetricIndex,
    MetricValue,
    Result,
)
from pytest_llmeval.scoring.case_scores import CaseResults, ScoreColumns
from pytest_llmeval.scoring.intervals import corrected
from pytest_llmeval.scoring.resample import unit_numbers
from pytest_llmeval.scoring.table import Table
from pytest_llmeval.scoring.usage import USAGE


def summarize(
    evaluators: Mapping[str, Evaluator] | MetricIndex,
    records: Sequence[CaseRecord],
    *,
    group_by: Sequence[str] = (),
    confidence: float | None = 0.95,
    faulty: int = 0,
    cluster_by: str | None = None,
    sampled: float = 0.0,
) -> Result:
    """Summarise recorded cases.

    Args:
        evaluators: Label to evaluator, in the order of the report; or the index of their metrics.
        records: One per case of the suite, those that did not run included.
        group_by: Label names; each gives a partition of the cases, those without the label under ``(none)``.
        confidence: Of the intervals; ``None`` leaves them out.
        faulty: Number of cases that could not be read; they count as missing.
        cluster_by: A label; intervals draw cases with the same value of it together.
        sampled: Share of all cases that these are, where they are a sample: intervals are about all of them, so they
            are narrower by the finite-population correction; 0 where they are about whatever the cases stand for.

    Returns:
        Metrics of suite, groups and cases. Independent of the order in which cases ran.

    Raises:
        EvaluatorError: An evaluator returned a metric that it does not declare.
    """
    index = MetricIndex.from_evaluators(evaluators)
    table = Table(index, records)
    groups = _groups(table, range(len(records)), group_by, confidence, cluster_by, sampled)
    metrics, pass_rate, usage = _split(
        table, table.metrics(range(len(records)), confidence, cluster_by, faulty), sampled
    )
    columns = ScoreColumns(table.scores, table.owner, table.of_family)
    return Result(
        metrics,
        groups,
        CaseResults(records, columns, index),
        pass_rate,
        table.scores,
        usage,
        index.evaluators,
        records,
        None if cluster_by is None else _clusters(table, cluster_by),
    )


def summarize_rows(
    table: Table,
    rows: Sequence[int],
    metric: str,
    *,
    group_by: Sequence[str] = (),
    confidence: float | None = 0.95,
    cluster_by: str | None = None,
) -> Result:
    """Summarise some rows of a table as `summarize` does their records, for what is asked of many mixtures of rows.

    Args:
        table: The rows.
        rows: Which of them, in order.
        metric: Of which scores are wanted.
        group_by: As of `summarize`, like the rest.
        confidence: Of the intervals.
        cluster_by: A label.

    Returns:
        Metrics of these rows and their groups, without cases, and with the scores of one metric.
    """
    metrics, pass_rate, usage = _split(table, table.metrics(rows, confidence, cluster_by))
    groups = _groups(table, rows, group_by, confidence, cluster_by)
    scores = {metric: table.scores[metric][list(rows)]} if metric in table.scores else {}
    return Result(metrics, groups, (), pass_rate, scores, usage, table.evaluators)


def _groups(
    table: Table,
    rows: Sequence[int],
    group_by: Sequence[str],
    confidence: float | None,
    cluster_by: str | None,
    sampled: float = 0.0,
) -> dict[str, dict[str, GroupResult]]:
    """Summarise the groups of some rows; their members are places among these."""
    groups: dict[str, dict[str, GroupResult]] = {}
    for key in group_by:
        members: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            members.setdefault(table.records[row].labels.get(key, UNLABELLED), []).append(place)
        results: dict[str, GroupResult] = {}
        # By size: resamples of one size are drawn once.
        for name, places in sorted(members.items(), key=lambda each: len(each[1])):
            picked = [rows[place] for place in places]
            metrics, pass_rate, usage = _split(table, table.metrics(picked, confidence, cluster_by), sampled)
            results[name] = GroupResult(len(places), metrics, pass_rate, places, usage)
        groups[key] = dict(sorted(results.items()))
    return groups


def _clusters(table: Table, label: str) -> Clusters:
    return Clusters(label, len(set(unit_numbers(table.records, label).tolist())), table.design_effects(label))


def _split(
    table: Table, metrics: Mapping[str, MetricValue], sampled: float = 0.0
) -> tuple[dict[str, MetricValue], MetricValue, dict[str, MetricValue]]:
    """Separate pass rate and usage from the metrics of evaluators."""
    own = {name: corrected(each, sampled) for name, each in metrics.items()} if sampled else dict(metrics)
    pass_rate = own.pop(PASS_RATE)
    usage = {name: own.pop(name) for name in metrics if table.owner[name] == USAGE}
    return own, pass_rate, {name: each for name, each in usage.items() if each.scored}
