"""Metrics of several systems as one table."""

__all__ = ("to_table",)

from collections.abc import Mapping
from typing import Any

from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.tasks.memory_qa.qa import QuestionType

_ABSENT = "n/a"


def to_table(systems: Mapping[str, Mapping[str, Any]], metric: str = "judge_score", *, digits: int = 3) -> str:
    """Return one metric of several systems by question type, as a Markdown table that reads well in a terminal, too.

    A score that does not exist is ``n/a``. A judge score that rests on fewer verdicts than there are questions says so:
    ``0.500 (1/2)``.

    Args:
        systems: Name to what `compute_metrics` returns.
        metric: The metric.
        digits: Digits behind the decimal point.

    Raises:
        ValueError: A system has no such metric.

    Example:
        >>> from pytest_llmeval.qa import EvalResult, QuestionType, compute_metrics
        >>> kinds = (QuestionType.TEMPORAL, QuestionType.MULTI_HOP)
        >>> results = [EvalResult("s", kind, kind, "When?", "May", "May") for kind in kinds]
        >>> print(to_table({"a": compute_metrics(results, [1, None], metrics=["judge_score"])}))
        | system   |   multi_hop |   temporal |     overall |
        |:---------|------------:|-----------:|------------:|
        | a        |         n/a |      1.000 | 1.000 (1/2) |
    """
    from tabulate import tabulate

    for name, metrics in systems.items():
        if metric not in metrics["overall"]:
            raise ValueError(f"system {name!r}: {unknown_name('metric', metric, metrics['overall'])}")
    there = {kind for metrics in systems.values() for kind in metrics["by_type"]}
    kinds = [kind.value for kind in QuestionType if kind.value in there]
    rows = [
        [
            name,
            *(
                _cell(metrics["by_type"].get(kind, {}), metric, _judged(metrics, metric, kind), digits)
                for kind in kinds
            ),
            _cell(
                {**metrics["overall"], "count": sum(each["count"] for each in metrics["by_type"].values())},
                metric,
                _judged(metrics, metric, None),
                digits,
            ),
        ]
        for name, metrics in systems.items()
    ]
    align = ("left", *["right"] * (len(kinds) + 1))
    return tabulate(rows, ["system", *kinds, "overall"], tablefmt="pipe", disable_numparse=True, colalign=align)


def _judged(metrics: Mapping[str, Any], metric: str, kind: str | None) -> int | None:
    """Return how many verdicts a score rests on; ``None`` where it rests on none of its kind."""
    judged = metrics.get("judged") if metric == "judge_score" else None
    if judged is None:
        return None
    found: int | None = judged["overall"] if kind is None else judged["by_type"].get(kind)
    return found


def _cell(scores: Mapping[str, Any], metric: str, judged: int | None, digits: int) -> str:
    value = scores.get(metric)
    if value is None:
        return _ABSENT
    few = "" if judged is None or judged == scores["count"] else f" ({judged}/{scores['count']})"
    return f"{value:.{digits}f}{few}"
