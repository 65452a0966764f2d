"""Baselines made of several runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path

from msgspec import structs

from pytest_llmeval.baselines._comparable import Comparable
from pytest_llmeval.baselines._files import ScoreFile
from pytest_llmeval.baselines._runs import SuiteRun
from pytest_llmeval.baselines._scores import Anchor, SuiteScores
from pytest_llmeval.baselines._verdicts import alike
from pytest_llmeval.core import Abstention, Metric, Statistic, SuiteError, counted, listed, number
from pytest_llmeval.gates import ChangeGate, DriftGate, GateEvidence
from pytest_llmeval.numbers import CaseMatching, CaseStatistics, Chain, Difference, Estimate, RunPairing
from pytest_llmeval.suites import LoadedSuite

_CONFIDENCE = 0.95
_MOST_LISTED = 20


@dataclass(frozen=True)
class Anchored:
    """The anchors of a score file after an approval.

    Attributes:
        anchors: Metric to anchor; metrics whose anchor is the approved run have none.
        texts: File of an anchor to its text.
        discarded: Which anchors are given up, and why.
        chains: Name of a chain to what a metric moved from its anchor to the approved run, if cases are others.
        fault: Why the scores cannot be approved; empty where they can.
    """

    anchors: Mapping[str, Anchor] = field(default_factory=dict)
    texts: Mapping[Path, str] = field(default_factory=dict)
    discarded: Sequence[str] = ()
    chains: Mapping[str, Chain] = field(default_factory=dict)
    fault: str = ""


def next_anchors(
    old: SuiteScores | None, new: SuiteScores, run: SuiteRun, file: ScoreFile, *, keep: bool, anew: bool
) -> Anchored:
    """The anchors of a score file after an approval, below which gate metrics must not drift.

    That of a metric moves to a run that is significantly better in it: the luckiest of many equal runs would be an
    anchor that no run can hold. It begins anew where runs cannot be compared by the metric: no chain of runs shares
    unchanged cases, or its evaluator or judge is not what it was.

    Args:
        old: The approved scores so far.
        new: Those that are being approved.
        run: The suite in the run that is being approved.
        file: The score file.
        keep: Whether anchors stay, however good runs are.
        anew: Whether the run is to be the anchor of all metrics.
    """
    if old is None:
        return Anchored()
    suite = run.suite
    guarded = list(dict.fromkeys(gate.metric for gate in suite.regressions))
    stored = {name: old_anchor for name in (*old.metrics, *guarded) if (old_anchor := old.anchor_of(name)) is not None}
    if anew:
        return Anchored(discarded=_discarded_anchors(stored, "this run takes their place"))
    unguarded = {name: old_anchor for name, old_anchor in stored.items() if name in old.anchors and name not in guarded}
    discarded = _discarded_anchors(unguarded, "no gate guards the metric any more")
    anchors: dict[str, Anchor] = {}
    texts: dict[Path, str] = {}
    chains: dict[str, Chain] = {}
    pairings: dict[str, RunPairing] = {}
    for metric in guarded:
        anchor = _before(old, metric)
        if anchor is None or anchor.statistics == new.cases.statistics:
            continue
        try:
            text = _anchor_statistics(old, anchor, file)
            if anchor.statistics not in pairings:
                approved = CaseStatistics.from_lines(StringIO(text), "anchor")
                pairings[anchor.statistics] = run.pair(approved)
        except (OSError, UnicodeDecodeError, SuiteError) as error:
            return Anchored(fault=_lost_anchor(metric, anchor, error))
        pairing = pairings[anchor.statistics]
        links, last = _next_chains(old, new, run, (anchor, text), metric), run.pairing
        linked = last.matching if links and last is not None else pairing.matching
        if not _comparable(old.comparable, new.comparable, linked, _labels(suite, metric)):
            if metric in stored:
                discarded += _discarded_anchors({metric: anchor}, "runs cannot be compared with it any more")
            continue
        if keep or not _is_run_better(pairing, run, metric):
            anchors[metric] = anchor
            chains |= links if not pairing.matching.whole else {}
            texts[file.anchor(anchor.statistics)] = text
    return Anchored(anchors, texts, discarded, chains)


def _next_chains(
    old: SuiteScores, new: SuiteScores, run: SuiteRun, anchor: tuple[Anchor, str], metric: str
) -> dict[str, Chain]:
    """The chains of a metric from its anchor to the run that is being approved, with the last step.

    Groups have none. Where there was none, the first step is from the anchor to the run approved last.
    """
    gates = [gate for gate in run.suite.regressions if gate.metric == metric and gate.by is None]
    named = {Estimate.chain_name(*subject): subject for subject in map(_gate_subject, gates)}
    if old.cases.statistics == new.cases.statistics:
        return {name: old.chains[name] for name in named if name in old.chains}
    last = None if run.pairing is None else run.approved
    chains: dict[str, Chain] = {}
    first: RunPairing | None = None
    for name, subject in named.items():
        step = None if last is None else Estimate.step_between(last.pairing, *subject)
        if last is None or step is None:
            continue
        chain = old.chains.get(name)
        if chain is None and anchor[0].statistics == old.cases.statistics:
            chain = Chain(0.0, 0, step.units, 0, {})
        elif chain is None:
            approved = CaseStatistics.from_lines(StringIO(anchor[1]), "anchor")
            first = first or RunPairing(last.statistics, approved, run.suite.metrics, abstained=run.suite.abstained)
            chain = Estimate.step_between(first, *subject)
        if chain is not None:
            chains[name] = chain.extended(step, {} if subject[-1] else last.pairing.matching.by_content)
    return chains


def _gate_subject(gate: ChangeGate) -> tuple[str, Statistic, str | None]:
    """The metric, statistic and cluster label by which the chain of a gate on drift is looked up."""
    return gate.metric, "mean" if gate.statistic == "mean" else "value", gate.cluster_by


def _pair_with_last(run: SuiteRun, metric: str, statistic: Statistic, cluster_by: str | None) -> RunPairing | None:
    """The run paired with the last approved one, as the last step of a drift chain; ``None`` without one."""
    last = None if run.pairing is None else run.approved
    scores, name = run.approved_scores, Estimate.chain_name(metric, statistic, cluster_by)
    if last is None or scores is None or name not in scores.chains:
        return None
    if Estimate.step_between(last.pairing, metric, statistic, cluster_by) is None:
        return None
    pairing = run.pair(last.statistics)
    pairing.chains = {name: scores.chains[name]}
    return pairing


def _before(old: SuiteScores, metric: str) -> Anchor | None:
    """A metric's anchor before this approval, with its own value only; ``None`` if no run has the metric."""
    stored, last = old.anchor_of(metric), old.history[-1]
    if stored is not None:
        return replace(stored, values={metric: stored.values.get(metric)})
    if metric not in last.values:
        return None
    return Anchor(last.time, last.commit, old.cases.statistics, {metric: last.values[metric]})


def _anchor_statistics(old: SuiteScores, anchor: Anchor, file: ScoreFile) -> str:
    """The case statistics of an anchor, from the last approved run's own file if that run is the anchor."""
    if anchor.statistics == old.cases.statistics:
        return file.read_statistics(old)
    return file.read_anchor(anchor.statistics)


def _lost_anchor(metric: str, anchor: Anchor, error: Exception) -> str:
    """The fault of an approval that cannot read the anchor of a metric, with the remedy."""
    value = anchor.values.get(metric)
    what = f"the anchor of {metric} of {anchor.time}" + ("" if value is None else f" ({number(value)})")
    why = f"the file of its cases cannot be read ({error})" if isinstance(error, OSError) else str(error)
    remedy = "restore it from version control, or approve with --llmeval-new-anchor, which forgets all drift so far"
    return f"not approved: {what} cannot be used: {why}; {remedy}"


def _discarded_anchors(anchors: Mapping[str, Anchor], why: str) -> list[str]:
    """The note of an approval on the anchors that it discards, with the reason; none without such anchors."""
    if not anchors:
        return []
    named = [
        f"{name} of {anchor.time}" + ("" if anchor.values.get(name) is None else f" ({number(anchor.values[name])})")
        for name, anchor in anchors.items()
    ]
    return [f"discarded the anchor{'s' if len(named) > 1 else ''} of {listed(named, _MOST_LISTED)}: {why}"]


def _labels(suite: LoadedSuite, metric: str) -> set[str] | None:
    """The label of the evaluator that an anchored metric depends on; ``None`` if it depends on all."""
    owned = None if metric == Metric.PASS_RATE else suite.metrics.find(metric)
    return None if owned is None else {owned.label}


def _comparable(old: Comparable, new: Comparable, matching: CaseMatching, labels: set[str] | None) -> bool:
    """Whether a run can be compared with an anchor; thresholds decide the pass rate only, and evaluators may join."""
    old = alike(old, new, matching)
    measured = all(
        new.evaluators.get(label) == evaluator
        for label, evaluator in old.evaluators.items()
        if labels is None or label in labels
    )
    judged = all(
        new.judges.get(label) == judge for label, judge in old.judges.items() if labels is None or label in labels
    )
    return measured and judged and (old.cases, old.data, old.repeats) == (new.cases, new.data, new.repeats)


def _is_run_better(pairing: RunPairing, run: SuiteRun, metric: str) -> bool:
    """Whether a run is significantly better in a metric than its anchor, and so becomes the new anchor."""
    label = run.suite.gate_clusters(metric)
    if not pairing.matching.whole:
        pairing = _pair_with_last(run, metric, "value", label) or pairing
    if metric not in pairing.table.owner or not pairing.paired:
        return False
    clusters = pairing.clusters_by(label)
    difference = Difference.between(
        pairing, pairing.everything(), [metric], confidence=_CONFIDENCE, cluster_by=clusters
    )[metric]
    return bool(difference.drop and difference.drop < 0 and (difference.p_value or 0.0) <= 1 - _CONFIDENCE)


def drift_findings(
    gates: Sequence[ChangeGate],
    run: SuiteRun,
    approved: SuiteScores,
    file: ScoreFile,
    texts: Mapping[Path, str] | None = None,
) -> Iterator[GateEvidence]:
    """Yield the evidence for gates on drift: how far a run fell below the anchors of the approved scores.

    Nothing is said where the approved run is the anchor, or where the anchor has no case or no evaluator of the run.

    Args:
        gates: Those of the suite, on drops since the last approval.
        run: The suite in the run.
        approved: The approved scores.
        file: Their file.
        texts: Files of anchors that are about to be written.
    """
    for gate, pairing in anchored_gates(gates, run, approved, file, texts):
        anchor = approved.anchor_of(gate.metric)
        if isinstance(pairing, str):
            yield GateEvidence(gate, reason=pairing)
        elif anchor is not None:
            yield structs.replace(gate.examine(pairing), doubt=_since(gate, approved, anchor))


def anchored_gates(
    gates: Sequence[ChangeGate],
    run: SuiteRun,
    approved: SuiteScores,
    file: ScoreFile,
    texts: Mapping[Path, str] | None = None,
) -> Iterator[tuple[ChangeGate, RunPairing | str]]:
    """Yield the gates on drift with the runs that they compare, or the reason why an anchor cannot be used."""
    known: dict[str, RunPairing | str] = {}
    for gate in (DriftGate.from_gate(gate) for gate in gates if gate.noun == DriftGate.noun):
        anchor = approved.anchor_of(gate.metric)
        if anchor is None:
            continue
        digest = anchor.statistics
        if digest not in known:
            known[digest] = _pair_with_anchor(run, approved, file, digest, texts or {})
        pairing = known[digest]
        if not isinstance(pairing, str) and not pairing.matching.whole and gate.by is None:
            pairing = _pair_with_last(run, *_gate_subject(gate)) or pairing
        owned = run.suite.metrics.find(gate.metric)
        if isinstance(pairing, str) or (
            pairing.matching.unchanged and (owned is None or _has_measured(pairing, owned.label))
        ):
            yield gate, pairing


def _pair_with_anchor(
    run: SuiteRun, approved: SuiteScores, file: ScoreFile, digest: str, texts: Mapping[Path, str]
) -> RunPairing | str:
    """The run paired with an anchor for gates on drift, or the reason why the anchor cannot be used."""
    path = file.anchor(digest)
    try:
        text = texts[path] if path in texts else file.read_anchor(digest)
        baseline = CaseStatistics.from_lines(StringIO(text), path.name)
    except SuiteError as error:
        return f"the anchor cannot be used: {error.faults[0]}: restore it from version control"
    except (OSError, UnicodeDecodeError) as error:
        return f"the anchor {path.name} cannot be read: {error}"
    return run.pair(baseline, run.shifts(approved))


def _has_measured(pairing: RunPairing, label: str) -> bool:
    """Whether a case of an anchor has an observation or error of a metric's evaluator, or an error of its own."""
    rows = pairing.everything().baseline
    records = [pairing.table.records[row] for row in rows]
    return any({label, ""} & {*record.observations, *record.errors} for record in records)


def _since(gate: ChangeGate, approved: SuiteScores, anchor: Anchor) -> str:
    """The move of a gate metric's approved value since its anchor, and the number of approvals, in words."""
    before = anchor.values.get(gate.metric)
    first = (anchor.time, anchor.commit, before)
    places = [
        place
        for place, approval in enumerate(approved.history)
        if (approval.time, approval.commit, approval.values.get(gate.metric)) == first
    ]
    since = len(approved.history) - 1 - places[0] if places else len(approved.history)
    text = f"{'' if places else 'at least '}{counted(since, 'approval')} since the anchor of {anchor.time}"
    now = approved.history[-1].values.get(gate.metric)
    return text if before is None or now is None else f"{text}: approved values {number(before)} -> {number(now)}"


def next_pool(
    old: SuiteScores | None, new: SuiteScores, file: ScoreFile, size: int
) -> tuple[tuple[str, ...], dict[Path, str]]:
    """The earlier approved runs that stay in the pooled baseline, and their files with their texts.

    Runs of other cases, data, evaluators or judges leave it, and so does one that cannot be read.

    Args:
        old: The approved scores so far.
        new: Those that are being approved.
        file: The score file.
        size: How many runs are pooled, that which is being approved included.
    """
    if old is None or size == 1 or old.comparable != new.comparable:
        return (), {}
    texts = {}
    for digest in (*old.pool, old.cases.statistics):
        try:
            last = digest == old.cases.statistics
            texts[digest] = file.read_statistics(old) if last else file.read_pooled(digest)
        except (OSError, UnicodeDecodeError, SuiteError):
            continue
    digests = [digest for digest in texts if digest != new.cases.statistics][1 - size :]
    return tuple(digests), {file.pooled(digest): texts[digest] for digest in digests}


def pooled_baseline(
    last: CaseStatistics, approved: SuiteScores, file: ScoreFile, size: int, abstained: Abstention
) -> CaseStatistics:
    """The last approved run and those before it, averaged case by case into one baseline.

    Args:
        last: The last approved run.
        approved: Its scores.
        file: The score file.
        size: How many runs are pooled, the last one included.
        abstained: Of the suite.

    Raises:
        OSError: A file of the pool cannot be read.
        UnicodeDecodeError: As above.
        SuiteError: A file of the pool is not what was approved.
    """
    earlier = approved.earlier_runs(size)
    texts = {file.pooled(digest).name: file.read_pooled(digest) for digest in earlier}
    earlier_runs = [CaseStatistics.from_lines(StringIO(text), name) for name, text in texts.items()]
    return CaseStatistics.pooled([last, *earlier_runs], abstained)
