"""What changed in a suite against another run of it."""

__all__ = ("Changes", "changes_json")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_llmeval.core.results import CaseResult

if TYPE_CHECKING:
    from pytest_llmeval.scoring.comparison.compare import Difference

_SHOWN = ("baseline", "value", "difference", "low", "high", "p_value", "cases")


@dataclass(frozen=True)
class Changes:
    """A suite against another run of it.

    Attributes:
        against: What the other run is called.
        metrics: Metric name to difference.
        notes: Why the runs may not be comparable, and what only one of them has.
        cases: Those of the other run, where a report shows their scores.
    """

    against: str
    metrics: "Mapping[str, Difference]"
    notes: Sequence[str] = ()
    cases: Sequence[CaseResult] = ()


def changes_json(changes: Changes) -> dict[str, Any]:
    """Return the changes as JSON data, without the cases."""
    metrics = [
        {"metric": name, "kind": _kind(found), **{field: getattr(found, field) for field in _SHOWN}}
        for name, found in changes.metrics.items()
    ]
    return {"against": changes.against, "notes": list(changes.notes), "metrics": metrics}


def _kind(found: "Difference") -> str:
    """Return ``fell`` or ``rose`` for a change for the worse or better whose interval excludes none."""
    if found.difference is None:
        return "vanished" if found.value is None else "new"
    if found.drop_interval is not None and found.drop_interval[0] > 0:
        return "fell"
    if found.drop_interval is not None and found.drop_interval[1] < 0:
        return "rose"
    return "same" if found.difference == 0 else "unclear"
