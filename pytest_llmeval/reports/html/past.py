"""The history of a suite, as a page draws it."""

__all__ = ("past_points",)

from typing import Any

from pytest_llmeval.reports.timeline import Timeline

_MOST = 40


def past_points(timeline: Timeline | None) -> list[dict[str, Any]]:
    """Return the last runs and approvals, the latest last, each with what changed before it besides the answers."""
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
        for point, changed in list(zip(timeline.points, changes, strict=True))[-_MOST:]
    ]
