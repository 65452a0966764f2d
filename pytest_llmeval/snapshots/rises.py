"""Which rises are more than chance: approving luck makes the next run, which is as good, look worse."""

__all__ = ("weigh_rises",)

from collections.abc import Sequence
from dataclasses import replace

from pytest_llmeval.core.wording import interval
from pytest_llmeval.scoring.comparison.compare import Difference, differences
from pytest_llmeval.scoring.comparison.pairing import RunPairing
from pytest_llmeval.scoring.gates import SnapshotVerdict
from pytest_llmeval.snapshots.anchors import gate_clusters
from pytest_llmeval.suite.suite import Suite

_CONFIDENCE = 0.95


def weigh_rises(verdicts: Sequence[SnapshotVerdict], pairing: RunPairing | None, suite: Suite) -> list[SnapshotVerdict]:
    """Tell improvements that are established from rises that may be chance.

    Args:
        verdicts: On the scores of a run.
        pairing: The run beside the approved one; without it, nothing is known of chance.
        suite: Of the scores.
    """
    rises = [each.metric for each in verdicts if each.kind == "improved"]
    if not rises or pairing is None:
        return list(verdicts)
    by_label: dict[str | None, list[str]] = {}
    for name in rises:
        if name in pairing.table.owner:
            label = gate_clusters(suite, name)
            by_label.setdefault(label if label and pairing.has_label(label) else None, []).append(name)
    found: dict[str, Difference] = {}
    for clusters, names in by_label.items():
        found |= differences(pairing, pairing.everything(), names, confidence=_CONFIDENCE, cluster_by=clusters)
    return [_weighed(each, found[each.metric]) if each.metric in found else each for each in verdicts]


def _weighed(verdict: SnapshotVerdict, difference: Difference) -> SnapshotVerdict:
    if verdict.kind != "improved":
        return verdict
    if difference.p_value is not None and difference.p_value <= 1 - _CONFIDENCE:
        return verdict
    moved = verdict.reason.removesuffix(": improved")
    change = interval(difference.low, difference.high)
    return replace(verdict, kind="rose_within", reason=f"{moved}: may be chance (95% interval of the change {change})")
