"""Judging a suite by two judges, and the approval of the bridge between them in its score file."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

from msgspec import structs

from pytest_llmeval.baselines import (
    ApprovedCases,
    ScoreFile,
    Stamp,
    SuiteIdentity,
)
from pytest_llmeval.core import (
    CaseRecord,
    FloatArray,
    GateResult,
    LlmevalError,
    Metric,
    MetricValue,
    Result,
    counted,
    grouped,
)
from pytest_llmeval.data import OutputFile
from pytest_llmeval.evaluators import JudgeAgreement, VerdictStatistics
from pytest_llmeval.judges import JudgeOptions, JudgeSpec, PanelSpec
from pytest_llmeval.numbers import CaseStatistics, Difference, RunPairing, Shift, summarize
from pytest_llmeval.run import CaseRunner
from pytest_llmeval.suites import LoadedSuite, SuiteKey
from pytest_llmeval.targets import Recordings

_UNIT = 1e-5
"""More than what rounded shifts may differ by."""

_LEVEL = 0.01
_LEAST_CASES = 8
_ROUNDING = 1e-9


@dataclass(frozen=True)
class JudgedSide:
    """The cases of a suite with the scores of one of two judges.

    Attributes:
        judges: Evaluator label to what is known of the judge.
        records: One per case, in the order of the suite.
        result: Their metrics.
    """

    judges: Mapping[str, Mapping[str, str]]
    records: Sequence[CaseRecord]
    result: Result


@dataclass(frozen=True, slots=True)
class ModeAgreement:
    """The agreement of two judges on the questions of one judge mode.

    Attributes:
        mode: The mode.
        verdicts: Questions to which both gave a verdict.
        equal: On how many they gave the same.
        old: Mean score by the old judge, on the scale of the mode.
        new: Mean score by the new one.
        alpha: Krippendorff's; ``None`` where all scores are the same.
    """

    mode: str
    verdicts: int
    equal: int
    old: float
    new: float
    alpha: float | None


@dataclass(frozen=True, slots=True)
class Flip:
    """A case on which two judges differ: in its outcome, or by scores on both sides of the middle."""

    case: str
    what: str
    old: str
    new: str


@dataclass(frozen=True)
class Migration:
    """The effect of a change of judge on a suite, or on one of its systems.

    Attributes:
        key: Of the suite.
        suite: The suite.
        old: By the judge so far.
        new: By the judge to come.
        left_out: Case id to the reason why it is not compared.
        calls: How often the new judge was called, about these cases.
        shifts: Evaluator label to metric, or statistic of it, to how far it moves.
    """

    key: SuiteKey
    suite: LoadedSuite
    old: JudgedSide
    new: JudgedSide
    left_out: Mapping[str, str]
    calls: int
    shifts: Mapping[str, Mapping[str, Shift]] = field(default_factory=dict)

    def agreement(self) -> list[ModeAgreement]:
        """Return the agreement by mode; questions that only one of the judges was asked are left out."""
        pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for before, after in zip(self.old.records, self.new.records, strict=True):
            for mode, old, new in _matched(before, after):
                pairs[mode].append((old, new))
        return [_agreement(mode, agreements) for mode, agreements in pairs.items()]

    def flips(self) -> Iterator[Flip]:
        """Yield the cases that the judges see differently."""
        for before, after in zip(self.old.result.cases, self.new.result.cases, strict=True):
            if before.outcome != after.outcome:
                yield Flip(before.id, "case", before.outcome, after.outcome)
            for name, old in before.metrics.items():
                new, owned = after.metrics.get(name), self.suite.metrics.find(name)
                if owned is None or owned.label not in self.shifts or old is None or new is None:
                    continue
                low, high = owned.metric.low, owned.metric.high
                if low is not None and high is not None and (old >= (low + high) / 2) != (new >= (low + high) / 2):
                    yield Flip(before.id, name, f"{old:g}", f"{new:g}")

    def gates(self) -> Iterator[tuple[GateResult, GateResult]]:
        """Yield the verdicts on gates by both judges, where they differ; gates on what asking took are left out."""
        for gate in self.suite.score_gates:
            if gate.metric != Metric.PASS_RATE and self.suite.metrics.find(gate.metric) is None:
                continue
            old, new = (gate.judge(side.result, "", "") for side in (self.old, self.new))
            if old.outcome != new.outcome:
                yield old, new


def migrate(
    suite: LoadedSuite,
    key: SuiteKey,
    judges: tuple[JudgeSpec | PanelSpec, JudgeSpec | PanelSpec],
    options: JudgeOptions,
    recordings: Recordings,
) -> Migration:
    """Put the recorded questions of a suite to another judge.

    Args:
        suite: As one system answers it; its predictions are known or recorded.
        key: Of the suite.
        judges: The judge whose verdicts are recorded, and the one that is to take its place; or panels.
        options: How the new one is asked.
        recordings: Predictions, to be replayed only: no target is called.

    Raises:
        LlmevalError: The budget is spent, or there is nothing to compare.
    """
    # How far jurors agree is about these jurors; another panel has to be approved for it.
    own = {
        label: evaluator
        for label, evaluator in suite.evaluators.items()
        if not isinstance(evaluator, VerdictStatistics)
    }
    suite = structs.replace(suite, evaluators=own)
    old, new = (structs.replace(suite, judge=spec) for spec in judges)
    replay = structs.replace(options, mode="replay", model=None, base_url=None)
    before, known = _run(old, key, replay, recordings)
    left_out = {record.id: _why(record) for record in before if _lacks(record)}
    comparable_suite = structs.replace(new, cases=tuple(case for case in new.cases if case.id not in left_out))
    if not comparable_suite.cases:
        raise LlmevalError(_nothing(key, left_out))
    after, now_known = _run(comparable_suite, key, structs.replace(replay, mode="auto"), recordings)
    left_out |= {record.id: _why(record) for record in after if _lacks(record)}
    calls = len({call.id for record in after for call in record.calls if call.fresh})
    sides = [
        JudgedSide(judges_of_side, rows, _summary(suite, rows))
        for judges_of_side, rows in (
            (known, _comparable_records(before, left_out)),
            (now_known, _comparable_records(after, left_out)),
        )
    ]
    if not sides[0].records:
        raise LlmevalError(_nothing(key, left_out))
    return Migration(key, new, sides[0], sides[1], left_out, calls, measured_shifts(suite, *sides))


def judged_labels(suite: LoadedSuite) -> list[str]:
    """The labels of the evaluators that ask the suite's judge; evaluators with a model of their own keep it."""
    return [label for label, evaluator in suite.asking.items() if evaluator.asks_judge]


def _nothing(key: SuiteKey, left_out: Mapping[str, str]) -> str:
    """The message that two judges cannot be compared on any case of a suite, with the first reason."""
    reason = next(iter(left_out.values()), "it has no case")
    return f"{key.display_path}: nothing can be compared: {reason}"


def _run(
    suite: LoadedSuite, key: SuiteKey, options: JudgeOptions, recordings: Recordings
) -> tuple[list[CaseRecord], Mapping[str, Mapping[str, str]]]:
    """Run the cases of a suite with one judge on recorded predictions; return records and the judge.

    Raises:
        LlmevalError: The budget is spent.
    """
    runner = CaseRunner(options, recordings)
    try:
        records = [execution.record for execution in runner.run_answered(suite, key)]
        return records, suite.judge_identities(runner.judges, key.display_path)
    finally:
        runner.close(whole_run=True)


def _lacks(record: CaseRecord) -> bool:
    """Whether the record of a judged case lacks scores because of errors."""
    return bool(record.errors) or any(observation.errored for observation in record.observations.values())


def _why(record: CaseRecord) -> str:
    """The first error in the record of a judged case; empty if there is none."""
    partly = (why for observation in record.observations.values() for why in observation.errored.values())
    return next(chain(record.errors.values(), partly), "")


def _comparable_records(records: Sequence[CaseRecord], left_out: Mapping[str, str]) -> list[CaseRecord]:
    """The records of the cases that both judges scored."""
    return [record for record in records if record.id not in left_out]


def _summary(suite: LoadedSuite, records: Sequence[CaseRecord]) -> Result:
    """The metrics of a suite over the records of one judge."""
    return summarize(
        suite.metrics, records, group_by=suite.group_by, confidence=suite.confidence, cluster_by=suite.cluster_by
    )


def measured_shifts(suite: LoadedSuite, old: JudgedSide, new: JudgedSide) -> dict[str, dict[str, Shift]]:
    """The shifts of a suite's metrics from the old to the new judge, by evaluator."""
    digests = SuiteIdentity(suite).digests
    here, there = (CaseStatistics.from_records(side.records, digests=digests) for side in (new, old))
    pairing = RunPairing(here, there, suite.metrics)
    flipped = [record.outcome for record in old.records] != [record.outcome for record in new.records]
    judged = judged_labels(suite)

    def moved_by(label: str) -> Callable[[str], bool]:
        def moves(metric: str) -> bool:
            return label in suite.deciding_labels(metric) or (metric == Metric.PASS_RATE and flipped)

        return moves

    changes = {label: _moved(pairing, list(filter(moved_by(label), pairing.table.owner)), suite) for label in judged}
    return {
        label: {name: _computed(shift, old.result.find(name), new.result.find(name)) for name, shift in moved.items()}
        for label, moved in changes.items()
    }


def _computed(shift: Shift, old: MetricValue | None, new: MetricValue | None) -> Shift:
    """Mark the shift of a metric that the new judge computes differently, with steps that it writes for itself."""
    if old is None or new is None or old.signature == new.signature:
        return shift
    return replace(shift, before=old.signature, after=new.signature)


def _moved(pairing: RunPairing, names: Sequence[str], suite: LoadedSuite) -> dict[str, Shift]:
    """The shifts of metrics between two judges, from cases that both scored; two cases at least."""
    shifts: dict[str, Shift] = {}
    rows = pairing.everything()
    for statistic in Difference.STATISTICS:
        moved = Difference.between(
            pairing,
            pairing.everything(),
            names,
            confidence=Shift.CONFIDENCE,
            statistic=statistic,
            cluster_by=suite.cluster_by,
        )
        for name, difference in moved.items():
            value, low, high = (
                Shift.rounded(number) for number in (difference.difference, difference.low, difference.high)
            )
            if value is not None and low is not None and high is not None:
                scores = pairing.table.scores[name]
                before, after = scores[rows.baseline], scores[rows.current]
                shift = Shift(value, low, high, depends=dependence(before, after))
                shifts[Shift.subject_of(name, statistic)] = measured_on(shift, before, after)
    return shifts


def measured_on(shift: Shift, old: FloatArray, new: FloatArray) -> Shift:
    """Return a judge's shift of a metric with the rates of 0/1 scores that it moves, or the range of other scores.

    Args:
        shift: How far the mean moves.
        old: Scores of cases by the old judge.
        new: By the new one.
    """
    import numpy as np

    known = np.isfinite(old) & np.isfinite(new)
    old, new = old[known], new[known]
    if not old.size:
        return shift
    if not np.isin([old, new], (0.0, 1.0)).all():
        return replace(shift, measured=(float(new.min()), float(new.max())))
    if abs(float(new.mean() - old.mean()) - shift.value) > _UNIT:
        return shift
    right = old == 1
    rates = (new[right].sum(), right.sum(), new[~right].sum(), (~right).sum())
    return replace(shift, rates=tuple(map(int, rates)))


def dependence(old: FloatArray, new: FloatArray) -> str:
    """A note if the difference of two judges depends on the score; empty if it does not.

    The difference is compared with the mean of both scores (Bland and Altman 1986): with the old one alone, it would
    seem to depend on it wherever verdicts are noisy. That is the test of Pitman (1939) and Morgan (1939).

    Args:
        old: Scores of cases by the old judge.
        new: By the new one. Scores of 0 and 1 are not tested: their differences always depend on them.
    """
    import numpy as np
    from scipy.stats import pearsonr

    known = np.isfinite(old) & np.isfinite(new)
    old, new = old[known], new[known]
    moved, middle = new - old, (old + new) / 2
    if len(old) < _LEAST_CASES or np.isin(old, (0.0, 1.0)).all() or min(np.ptp(moved), np.ptp(middle)) <= _ROUNDING:
        return ""
    correlation = pearsonr(moved, middle)
    if not (math.isfinite(correlation.pvalue) and correlation.pvalue <= _LEVEL):
        return ""
    low = middle <= np.median(middle)
    if low.all():
        low = middle < np.median(middle)
    below, above = (f"{moved[part].mean():+.4f}" for part in (low, ~low))
    return (
        f"the difference of the judges depends on the score: {below} among the lower scores, {above} among the higher"
    )


def _matched(old: CaseRecord, new: CaseRecord) -> Iterator[tuple[str, float, float]]:
    """Yield the scores of the questions that both judges answered, with the judge mode."""
    stayed = {judging.judge for judging in old.judgings} & {judging.judge for judging in new.judgings} - {""}
    waiting = grouped((judging.subject, judging) for judging in new.judgings if judging.judge not in stayed)
    for judging in old.judgings:
        if judging.judge in stayed:
            continue
        others = waiting.get(judging.subject)
        other = others.pop(0) if others else None
        if other is not None and judging.score is not None and other.score is not None:
            yield judging.mode, judging.score, other.score


def _agreement(mode: str, pairs: Sequence[tuple[float, float]]) -> ModeAgreement:
    """The agreement of two judges on the questions of one judge mode, from pairs of scores."""
    import numpy as np

    alpha = JudgeAgreement.alpha_of(pairs)
    old, new = (float(np.mean(column)) for column in zip(*pairs, strict=True))
    equal = sum(first == other for first, other in pairs)
    return ModeAgreement(mode, len(pairs), equal, old, new, alpha if np.isfinite(alpha) else None)


def approve_migration(migration: Migration, stamp: Stamp) -> tuple[str, list[str]]:
    """Write the bridge between two judges, as a migration measured it, into the score file of a suite.

    The difference is measured on the approved answers alone: of others, the judges may differ.

    Returns:
        How messages name the file, and what to keep in mind.

    Raises:
        LlmevalError: There are no approved scores, they come from another judge, or too little was measured.
    """
    key = migration.key
    file = ScoreFile.of_suite(key)
    notes: list[str] = []

    def bridged() -> str:
        try:
            approval = ApprovedCases.read(key)
        except (OSError, UnicodeDecodeError) as error:
            name = file.statistics.name
            raise LlmevalError(f"{name}: cannot be read ({error}), expected the cases of the approved run") from None
        if approval is None:
            raise LlmevalError(f"no approved scores at {file.display_path}, where a bridge begins: approve a run first")
        shifts = {label: _approved_shifts(migration, label, approval) for label in migration.shifts}
        notes[:] = _notes(migration, approval.statistics, shifts)
        return approval.scores.with_bridges(migration.old.judges, migration.new.judges, shifts, stamp).text

    try:
        OutputFile(file.path).rewrite(bridged)
    except OSError as error:
        raise LlmevalError(f"{Path(file.display_path)}: not written ({error.strerror})") from error
    return file.display_path, notes


def _same(migration: Migration, label: str, approved: CaseStatistics) -> set[str]:
    """The cases of a judge migration whose answer is the approved one."""
    then = {record.id: record for record in approved.records}
    ids = set()
    for record in CaseStatistics.from_records(migration.old.records, [label]).records:
        known = then.get(record.id)
        if label in record.observations and known is not None and known.answered == record.answered != "":
            ids.add(record.id)
    return ids


def _shifts(migration: Migration, label: str, approved: CaseStatistics) -> Mapping[str, Shift]:
    """The shifts of metrics between two judges, measured on the approved answers alone."""
    same = _same(migration, label, approved)
    if len(same) == len(migration.old.records):
        return migration.shifts[label]
    sides = [
        JudgedSide(side.judges, [record for record in side.records if record.id in same], side.result)
        for side in (migration.old, migration.new)
    ]
    return measured_shifts(migration.suite, *sides)[label] if same else {}


def _notes(migration: Migration, approved: CaseStatistics, shifts: Mapping[str, Mapping[str, Shift]]) -> list[str]:
    """The remarks of an approved judge migration: cases that it could not compare, and gates without a bridge."""
    notes = []
    for label, moved in shifts.items():
        others = len(migration.old.records) - len(_same(migration, label, approved))
        if others:
            have = "has" if others == 1 else "have"
            notes.append(f"{counted(others, 'case')} {have} another answer than the approved one: not compared")
        notes += [
            f"{name}: {shift.depends}; gates with max_drop do not compare across the bridge"
            for name, shift in moved.items()
            if shift.depends
        ]
    return list(dict.fromkeys(notes))


def _approved_shifts(migration: Migration, label: str, approval: ApprovedCases) -> Mapping[str, Shift]:
    """The shifts of metrics between two judges of one evaluator, if the scores were approved with the old one."""
    old, was = migration.old.judges[label], approval.scores.comparable.judges.get(label, {})
    changed = [name for name in sorted({*old, *was}) if old.get(name) != was.get(name)]
    if changed:
        then = ", ".join(f"{name} {was.get(name, 'none')}" for name in changed)
        expected = ", ".join(f"{name} {old.get(name, 'none')}" for name in changed)
        raise LlmevalError(f"found scores of {label!r} approved with {then}, expected {expected}: approve a run first")
    approved = approval.statistics
    shifts = _shifts(migration, label, approved)
    if not shifts.keys() - {Metric.PASS_RATE, Shift.subject_of(Metric.PASS_RATE, "mean")}:
        same = len(_same(migration, label, approved))
        whose = "" if same == len(migration.old.records) else " with the approved answer"
        raise LlmevalError(f"found too few cases{whose} to measure the difference of {label!r}, expected at least 2")
    return shifts
