"""What is wrong with a ranking, in lines."""

__all__ = ("ranking_lines",)

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_llmeval.core.explanations import as_line, listed
from pytest_llmeval.core.wording import counted

_TITLE = 60


def ranking_lines(details: Mapping[str, Any], gold: Iterable[str], most: int) -> list[str]:
    """Say for each task at which rank its first relevant result stands, and which positives were not found.

    Args:
        details: Of the observation.
        gold: Tasks with a list of positives.
        most: The largest k.
    """
    lists, lines = set(gold), []
    results = min(details["n_results"], most)
    for task, ranks in details["relevant_ranks"].items():
        missing = details.get("missing_positives", {}).get(task, ())
        wanted = "positive" if task in lists else "relevant result"
        if task in lists and not ranks and not missing:
            continue  # no positive is listed
        if not ranks:
            lines.append(f"{task}: no {wanted} among {_of(results)}")
        elif ranks[0] > 1:
            lines.append(f"{task}: the first {wanted} is at rank {ranks[0]}")
        if missing:
            lines.append(f"{task}: positives not found: {listed(as_line(each, _TITLE) for each in missing)}")
    for task, number in details.get("unjudged", {}).items():
        lines.append(f"{task}: {number} of {counted(results, 'result')} without the attribute: not judged")
    if skipped := details.get("n_skipped"):
        lines.append(f"{counted(skipped, 'item')} of the results cannot be read")
    return lines


def _of(results: int) -> str:
    return f"the first {counted(results, 'result')}" if results else "the results: there are none"
