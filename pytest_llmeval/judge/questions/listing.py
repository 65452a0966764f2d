"""How a panel decides about numbered things, each of which a verdict says is so or not."""

__all__ = ("listing",)

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from pytest_llmeval.judge.contract import Listing, Verdict

_VERDICTS: Final = "verdicts"


def listing(truth: str) -> Listing:
    """Return the listing of modes whose details have ``verdicts``: for each thing, in order, an object.

    Args:
        truth: The key of the object that says whether it is so. Its other values are a ``reason`` and lists.
    """
    return Listing(partial(_grades, truth), partial(_joined, truth))


def _grades(truth: str, verdict: Verdict) -> list[float]:
    return [float(each[truth]) for each in verdict.details[_VERDICTS]]


def _joined(truth: str, verdicts: Sequence[Verdict], grades: Sequence[float]) -> Verdict:
    """Return what jurors say, with the reasons, and all that the lists have, of those whose view it is."""
    rows = zip(*(each.details[_VERDICTS] for each in verdicts), strict=True)
    joined = [
        _agreed([each for each in row if each[truth] == grade], {truth: bool(grade)})
        for row, grade in zip(rows, grades, strict=True)
    ]
    return Verdict(sum(grades) / len(grades), details={_VERDICTS: joined})


def _agreed(items: Sequence[Mapping[str, Any]], agreed: dict[str, Any]) -> dict[str, Any]:
    for name, value in items[0].items():
        if isinstance(value, list):
            agreed[name] = sorted({each for item in items for each in item[name]})
        elif name not in agreed:
            agreed[name] = "; ".join(dict.fromkeys(item[name] for item in items if item[name]))
    return agreed
