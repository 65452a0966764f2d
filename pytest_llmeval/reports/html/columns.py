"""The cases of a suite in columns, for a table that filters and sorts without the texts, and their texts in chunks."""

__all__ = ("ViewTexts", "case_texts", "index_of")

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

ViewTexts: TypeAlias = Mapping[str, Any]
"""What a case's view shows besides its row in the table."""

_DIGITS = 6
_LONGEST_REASON = 160
_SHOWN = ("reason", "file", "lines", "input", "expected", "prediction", "answers", "details", "judgings")


def index_of(cases: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the rows of the table of cases, column by column.

    Args:
        cases: As the JSON report has them.

    Returns:
        ``ids``, ``reasons`` (their beginnings), ``lines`` (of the file), ``seconds``; ``outcomes``, ``statuses`` (of
        repeats) and each of the ``labels`` as a list of values and the number of the value for each case, with -1 for
        none; ``metrics``, name to scores.
    """
    names = dict.fromkeys(name for case in cases for name in case.get("metrics", ()))
    labels = dict.fromkeys(name for case in cases for name in case.get("labels", ()))
    return {
        "ids": [case["id"] for case in cases],
        "outcomes": _coded(case.get("outcome") for case in cases),
        "reasons": [_beginning(case.get("reason")) for case in cases],
        "lines": [case.get("line", 0) for case in cases],
        "seconds": [round(case.get("duration_s") or 0.0, 3) for case in cases],
        "statuses": _coded(_status(case) for case in cases),
        "labels": {name: _coded(case.get("labels", {}).get(name) for case in cases) for name in labels},
        "metrics": {name: [_rounded(case.get("metrics", {}).get(name)) for case in cases] for name in names},
    }


def case_texts(case: Mapping[str, Any]) -> ViewTexts:
    """Return what the view of a case shows; what there is none of is left out."""
    return {name: case[name] for name in _SHOWN if case.get(name) not in (None, {}, [])}


def _status(case: Mapping[str, Any]) -> Any:
    repeats = case.get("details", {}).get("repeats")
    return repeats.get("status") if isinstance(repeats, Mapping) else None


def _coded(values: Iterable[Any]) -> dict[str, Any]:
    """Write a column of few different texts as these texts and their numbers."""
    places: dict[str, int] = {}
    codes = [-1 if each is None else places.setdefault(str(each), len(places)) for each in values]
    return {"values": list(places), "codes": codes}


def _beginning(reason: Any) -> str:
    text = str(reason or "")
    return text if len(text) <= _LONGEST_REASON else text[:_LONGEST_REASON] + "\N{HORIZONTAL ELLIPSIS}"


def _rounded(score: Any) -> float | None:
    return None if score is None else round(float(score), _DIGITS) + 0.0
