"""The anchor of a suite: the best approved run, against which many small approved drops add up."""

__all__ = ("drift_findings", "next_anchor")

from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.core.wording import counted, number
from pytest_llmeval.scoring.comparison.case_statistics import CaseStatistics
from pytest_llmeval.scoring.comparison.compare import differences
from pytest_llmeval.scoring.comparison.matching import CaseMatching
from pytest_llmeval.scoring.comparison.pairing import RunPairing
from pytest_llmeval.scoring.regression import RegressionGate
from pytest_llmeval.scoring.regression_verdicts import GateEvidence, examine
from pytest_llmeval.snapshots.comparable import Comparable, fingerprint
from pytest_llmeval.snapshots.files import anchor_file, read_statistics, statistics_file
from pytest_llmeval.snapshots.runs import SuiteRun
from pytest_llmeval.snapshots.scores import Anchor, SuiteScores
from pytest_llmeval.snapshots.unchanged import alike
from pytest_llmeval.suite.suite import Suite

_CONFIDENCE = 0.95


def next_anchor(
    old: SuiteScores | None, new: SuiteScores, statistics: CaseStatistics, suite: Suite, scores: Path, *, keep: bool
) -> tuple[Anchor | None, str]:
    """Return the anchor after an approval, and the text of its file; ``None`` where the approved run is the anchor.

    It moves to a run that is established to be better in a metric that a gate guards and worse in none: the luckiest of
    many equal runs would be an anchor that no run can hold. It begins anew where runs cannot be compared: they share no
    unchanged case, or an evaluator or judge is not what it was.

    Args:
        old: The approved scores so far.
        new: Those that are being approved.
        statistics: Of the run that is being approved.
        suite: Of the scores.
        scores: The score file.
        keep: Whether the anchor stays, however good runs are.
    """
    if old is None or not suite.regressions:
        return None, ""
    last = old.history[-1]
    anchor = old.anchor or Anchor(last.time, last.commit, old.cases.statistics, last.values)
    try:
        path = statistics_file(scores) if old.anchor is None else anchor_file(scores)
        text = read_statistics(path, old) if old.anchor is None else path.read_text(encoding="utf-8")
        approved = CaseStatistics.from_lines(StringIO(text), path.name)
    except (OSError, UnicodeDecodeError, SuiteError):
        return None, ""
    pairing = RunPairing(statistics, approved, suite.metrics)
    if anchor.statistics == new.cases.statistics or not _comparable(old.comparable, new.comparable, pairing.matching):
        return None, ""
    return (None, "") if not keep and _better(pairing, suite) else (anchor, text)


def _comparable(old: Comparable, new: Comparable, matching: CaseMatching) -> bool:
    """Return whether an anchor is one of the same suite; thresholds decide the pass rate only, and evaluators join."""
    old = alike(old, new, matching)
    measured = all(new.evaluators.get(label) == each for label, each in old.evaluators.items())
    judged = all(new.judges.get(label) == each for label, each in old.judges.items())
    return measured and judged and (old.cases, old.data, old.repeats) == (new.cases, new.data, new.repeats)


def _better(pairing: RunPairing, suite: Suite) -> bool:
    names = [name for name in {gate.metric: 0 for gate in suite.regressions} if name in pairing.table.owner]
    found = differences(pairing, pairing.everything(), names, confidence=_CONFIDENCE, cluster_by=suite.cluster_by)
    certain = [each.drop for each in found.values() if each.drop and (each.p_value or 0.0) <= 1 - _CONFIDENCE]
    return bool(certain) and max(certain) < 0


def drift_findings(
    gates: Sequence[RegressionGate], suite_run: SuiteRun, approved: SuiteScores, scores: Path
) -> Iterator[GateEvidence]:
    """Yield what a run says of the fall of gates' metrics below the anchor.

    Nothing is said where the approved run is the anchor, or where the anchor has no case or no evaluator of the run.
    """
    anchor = approved.anchor
    if anchor is None:
        return
    drifts = [gate.drift for gate in gates]
    path = anchor_file(scores)
    try:
        text = path.read_text(encoding="utf-8")
        found = fingerprint(text)
        if found != anchor.statistics:
            fault = f"found content with fingerprint {found}, expected {anchor.statistics}: restore {path.name}"
            yield from (GateEvidence(gate, reason=f"the anchor cannot be used: {fault}") for gate in drifts)
            return
        baseline = CaseStatistics.from_lines(StringIO(text), path.name)
    except (OSError, UnicodeDecodeError, SuiteError) as error:
        yield from (GateEvidence(gate, reason=f"the anchor {path.name} cannot be read: {error}") for gate in drifts)
        return
    suite = suite_run.suite
    pairing = RunPairing(suite_run.statistics, baseline, suite.metrics, suite_run.shifts(approved))
    measured = {label for record in baseline.records for label in (*record.observations, *record.errors)}
    for gate in drifts if pairing.matching.unchanged else ():
        owned = suite.metrics.find(gate.metric)
        if owned is None or measured & {owned.label, ""}:
            yield replace(examine(gate, pairing), doubt=_told(gate, approved, anchor))


def _told(gate: RegressionGate, approved: SuiteScores, anchor: Anchor) -> str:
    """Tell the cumulative change of the approved value since the anchor."""
    first = (anchor.time, anchor.commit, anchor.values)
    places = [n for n, each in enumerate(approved.history) if (each.time, each.commit, each.values) == first]
    since = len(approved.history) - 1 - places[-1] if places else len(approved.history)
    told = f"{'' if places else 'at least '}{counted(since, 'approval')} since the anchor of {anchor.time}"
    before, now = anchor.values.get(gate.metric), approved.history[-1].values.get(gate.metric)
    return told if before is None or now is None else f"{told}: approved values {number(before)} -> {number(now)}"
