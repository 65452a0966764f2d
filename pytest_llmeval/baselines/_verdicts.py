"""Verdicts on snapshots."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from pytest_llmeval.baselines._comparable import Comparable
from pytest_llmeval.baselines._scores import ApprovedScore, SuiteScores, bridge_of, shifts_between
from pytest_llmeval.core import Metric, MetricIndex, SnapshotVerdict, counted, number
from pytest_llmeval.judges import JudgeSpec, PanelSpec
from pytest_llmeval.numbers import TOLERANCE, CaseMatching, RunPairing, Shift, UsageEvaluator
from pytest_llmeval.suites import SnapshotSettings, Tolerance


class UnchangedPart(NamedTuple):
    """The scores of two runs over the cases that are the same in both.

    Attributes:
        old: The approved ones.
        new: Those of this run.
        matching: The cases, and the others.
    """

    old: SuiteScores
    new: SuiteScores
    matching: CaseMatching


def alike(old: Comparable, new: Comparable, matching: CaseMatching) -> Comparable:
    """The settings that made the approved run comparable, as far as they concern cases that are unchanged since."""
    if not matching.known or not matching.unchanged:
        return old
    thresholds = new.thresholds if matching.same_limits else old.thresholds
    return replace(old, cases=new.cases, data=new.data, thresholds=thresholds)


def unchanged_part(
    old: SuiteScores, new: SuiteScores, pairing: RunPairing, metrics: MetricIndex, settings: SnapshotSettings
) -> UnchangedPart | None:
    """The scores of both runs over the cases that they share, both by the formulas of this run.

    Metrics that nobody has approved are left out of the approved scores, also where the statistics would give them.

    Args:
        old: The approved scores.
        new: Those of this run.
        pairing: What was counted in the cases of both.
        metrics: Of the suite.
        settings: Of the suite.

    Returns:
        The scores; ``None`` where there is no such case, or it is not known what the approved cases were.
    """
    matching = pairing.matching
    if not matching.known or not matching.unchanged:
        return None
    here, there = pairing.everything()
    gone = {
        name: score for name, score in old.metrics.items() if name != Metric.PASS_RATE and metrics.find(name) is None
    }
    signatures = {name: score.signature for name, score in old.metrics.items()}
    before = {
        name: replace(score, signature=signatures[name])
        for name, score in _scores(pairing, list(there), settings).items()
        if name in signatures
    }
    return UnchangedPart(
        replace(old, comparable=alike(old.comparable, new.comparable, matching), metrics={**before, **gone}),
        replace(new, metrics=_scores(pairing, list(here), settings)),
        matching,
    )


def _scores(pairing: RunPairing, rows: Sequence[int], settings: SnapshotSettings) -> dict[str, ApprovedScore]:
    """The metrics that a snapshot keeps over some cases of two paired runs, without usage."""
    table = pairing.table
    return {
        name: ApprovedScore.from_value(metric)
        for name, metric in table.metrics(rows, confidence=None).items()
        if settings.keeps(name) and table.owner[name] != UsageEvaluator.name
    }


def with_falls(scores: SuiteScores, pairing: RunPairing, settings: SnapshotSettings) -> SuiteScores:
    """The scores of a run in which cases that abstain since the approval count as fallen, if any do."""
    if not pairing.fallen:
        return scores
    counted_scores = _scores(pairing, list(pairing.everything().current), settings)
    values = {name: counted_scores[name].value for name in pairing.fallen if name in scores.metrics}
    fallen = {name: replace(scores.metrics[name], value=value) for name, value in values.items()}
    return replace(scores, metrics={**scores.metrics, **fallen})


def describe_falls(
    verdicts: Iterable[SnapshotVerdict], pairing: RunPairing | None, old: SuiteScores, new: SuiteScores
) -> list[SnapshotVerdict]:
    """The snapshot verdicts with the number of cases that abstain since the approval.

    Which cases do is known from their statistics alone; without these, more abstentions than approved fail.
    """
    if pairing is None:
        return [
            _more_abstain(verdict, old.metrics.get(verdict.metric), new.metrics.get(verdict.metric))
            for verdict in verdicts
        ]
    everything = pairing.everything()
    described = ((verdict, pairing.describe_falls(verdict.metric, everything)) for verdict in verdicts)
    return [replace(verdict, reason=f"{verdict.reason}; {falls}") if falls else verdict for verdict, falls in described]


def _more_abstain(
    verdict: SnapshotVerdict, approved: ApprovedScore | None, score: ApprovedScore | None
) -> SnapshotVerdict:
    """The failed snapshot verdict of a metric in which more cases abstain than when it was approved."""
    if approved is None or score is None or score.abstained <= approved.abstained:
        return verdict
    worse = f"{counted(score.abstained, 'case')} abstained, {approved.abstained} when approved; {verdict.reason}"
    return replace(verdict, kind="fell_beyond", outcome="failed", reason=worse)


_UNIT = 1.5 * 10**-Shift.DIGITS
"""Two machines may round to neighbouring last digits."""

_BRIDGED = frozenset({"model", "parameters"})
"""What of a judge may change across a bridge; other instructions are another measure."""


def not_comparable(
    metric: str, why: str, settings: SnapshotSettings, value: float | None = None, approved: float | None = None
) -> SnapshotVerdict:
    """The snapshot verdict on a metric that cannot be compared, as the suite's policy wants it."""
    outcome: Literal["failed", "passed"] = "failed" if settings.not_comparable == "fail" else "passed"
    return SnapshotVerdict(metric, "not_comparable", outcome, value, approved, f"not comparable: {why}")


def first_approved(metric: str, value: float | None) -> SnapshotVerdict:
    """The snapshot verdict on a metric that is approved for the first time."""
    reason = "has no value" if value is None else f"is {number(value)}"
    return SnapshotVerdict(metric, "approved", "passed", value, reason=f"approved: {reason}")


def compare_scores(
    metric: str,
    value: float | None,
    approved: float | None,
    tolerance: Tolerance,
    *,
    higher_is_better: bool = True,
) -> SnapshotVerdict:
    """The snapshot verdict on a metric's value, by the approved one and its tolerance.

    A difference of one unit in the sixth decimal is none.
    """
    value, approved = Shift.rounded(value), Shift.rounded(approved)
    if value is None and approved is None:
        return SnapshotVerdict(metric, "unchanged", "passed", reason="has no value, as approved")
    if value is None:
        return SnapshotVerdict(
            metric, "fell_beyond", "failed", None, approved, f"has no value; approved: {number(approved)}"
        )
    if approved is None:
        return SnapshotVerdict(metric, "new", "passed", value, None, f"is {number(value)}; approved: no value")
    change = value - approved
    if abs(change) < _UNIT:
        return SnapshotVerdict(metric, "unchanged", "passed", value, approved, f"is {number(value)}, as approved")
    moved = f"{'rose' if change > 0 else 'fell'} from {number(approved, value)} to {number(value, approved)}"
    if (change > 0) == higher_is_better:
        return SnapshotVerdict(metric, "improved", "passed", value, approved, f"{moved}: improved")
    allowed = tolerance.at(approved)
    worse = f"{moved}, worse by {number(abs(change), 0.0)}; tolerance {tolerance}"
    within = abs(change) <= allowed + TOLERANCE
    return SnapshotVerdict(
        metric, "fell_within" if within else "fell_beyond", "passed" if within else "failed", value, approved, worse
    )


def judge_scores(
    old: SuiteScores,
    new: SuiteScores,
    settings: SnapshotSettings,
    metrics: MetricIndex,
    *,
    deciding: Callable[[str], Collection[str]],
    gated: Callable[[str], bool] = lambda _: False,
    warn_unused: bool = False,
    display_path: str = "SUITE",
) -> list[SnapshotVerdict]:
    """The snapshot verdicts on the scores of a whole suite, by its approved ones.

    Args:
        old: The approved scores.
        new: Those of this run.
        settings: Of the suite.
        metrics: Of the suite; they know which direction is better.
        deciding: Gives the labels of the evaluators that decide a metric.
        gated: Whether a gate decides on the drop of a metric, unless the settings have a tolerance for it.
        warn_unused: Whether a vanished metric is only reported.
        display_path: The suite file, in commands.

    Returns:
        One verdict per metric, those of this run first; a single one on everything if the cases are not the same.
    """
    if changed := changed_cases(old, new.comparable, new.cases.count):
        return [not_comparable(SnapshotVerdict.EVERYTHING, changed, settings)]
    verdicts = []
    shifts = shifts_between(old.bridges, old.comparable, new.comparable)
    for metric, score in new.metrics.items():
        approved = old.metrics.get(metric)
        if approved is None:
            later = f"a new metric; once it is approved, its tolerance is {settings.tolerance_of(metric)}"
            verdicts.append(
                SnapshotVerdict(metric, "new", "passed", score.value, None, f"is {number(score.value)}: {later}")
            )
            continue
        why = changed_measure(metric, deciding(metric), old, new.comparable, display_path)
        why = why or _changed_score(approved, score, shifts.get(metric))
        if why:
            verdicts.append(not_comparable(metric, why, settings, score.value, approved.value))
            continue
        better = not metrics.lower_is_better(metric)
        verdict = _verdict_on_score(metric, approved, score, settings, better=better, shift=shifts.get(metric))
        if verdict.outcome == "failed" and settings.leaves(metric) and gated(metric):
            verdict = replace(verdict, outcome="passed", reason=f"left to the gate with max_drop: {verdict.reason}")
        verdicts.append(verdict)
    gone = [name for name in old.metrics if name not in new.metrics]
    verdicts += [vanished(name, old.metrics[name].value, warn=warn_unused) for name in gone]
    return verdicts


def _verdict_on_score(
    metric: str,
    approved: ApprovedScore,
    score: ApprovedScore,
    settings: SnapshotSettings,
    *,
    better: bool,
    shift: Shift | None,
) -> SnapshotVerdict:
    """The snapshot verdict on a metric's score, allowing for a change of judge with a measured shift."""
    value, tolerance, own_value = approved.value, settings.tolerance_of(metric), Shift.rounded(score.value)
    unsure = 0.0
    if shift is not None and value is not None:
        if shift.rates and score.value is not None:
            score = replace(score, value=shift.former_value(score.value))
            shift = replace(shift, value=0.0, low=shift.low - shift.value, high=shift.high - shift.value)
        # How much less the new judge may give to the approved answers is no fall.
        unsure = max(0.0, shift.value - shift.low if better else shift.high - shift.value)
        value += shift.value
    verdict = compare_scores(metric, score.value, value, tolerance, higher_is_better=better)
    if unsure and value is not None and verdict.outcome == "failed":
        allowed = tolerance.at(value)
        wider = compare_scores(metric, score.value, value, Tolerance(allowed + unsure), higher_is_better=better)
        if wider.outcome == "passed" and unsure > allowed + TOLERANCE:
            wide = f"cannot tell: the bridge between the judges leaves {number(Shift.rounded(unsure))} open"
            wider = replace(verdict, reason=f"{wide}, more than is tolerated; {verdict.reason}")
        verdict = wider
    if shift is not None:
        verdict = replace(verdict, value=own_value, approved=Shift.rounded(approved.value))
    if score.errored > approved.errored:
        # What could not be scored is no longer in the value, so the value alone would hide it.
        worse = f"{counted(score.errored, 'case')} errored, {approved.errored} when approved; {verdict.reason}"
        return replace(verdict, kind="fell_beyond", outcome="failed", reason=worse)
    return verdict


def told_shifts(verdicts: Iterable[SnapshotVerdict], shifts: Mapping[str, Shift]) -> list[SnapshotVerdict]:
    """The snapshot verdicts whose reasons say how far a change of judge moves the metric."""
    return [
        verdict
        if verdict.metric not in shifts or verdict.kind == "not_comparable"
        else replace(verdict, reason=f"{verdict.reason}; {_moved_scale(verdict, shifts[verdict.metric])}")
        for verdict in verdicts
    ]


def _moved_scale(verdict: SnapshotVerdict, shift: Shift) -> str:
    """The words in a snapshot verdict's reason on how a change of judge moves the approved value or the new one."""
    if shift.rates:
        return f"on the scale of the former judge, {number(verdict.value)} by the new one"
    return f"{number(verdict.approved)} when approved, which a change of judge moves by {shift}"


def vanished(metric: str, approved: float | None, *, warn: bool = False) -> SnapshotVerdict:
    """The snapshot verdict on a metric that was approved and is not measured any more."""
    reason = f"no longer exists; approved: {number(approved)}"
    return SnapshotVerdict(metric, "vanished", "passed" if warn else "failed", None, approved, reason)


def changed_cases(old: SuiteScores, new: Comparable, count: int) -> str:
    """The reason why a run is one of other cases than those of the approved scores; empty if it is not."""
    if old.comparable.cases != new.cases:
        return f"different cases ({count}, {old.cases.count} when approved)"
    if old.comparable.data != new.data:
        return "the data changed (input, expected or labels of the cases)"
    return ""


def changed_measure(
    metric: str, labels: Collection[str], approved: SuiteScores, new: Comparable, display_path: str
) -> str:
    """The settings of a metric that differ from the approved run, such as its evaluators or judges, in words.

    Args:
        metric: The metric.
        labels: Of the evaluators that decide it.
        approved: The approved scores.
        new: Of this run.
        display_path: The suite file, in commands.
    """
    old = approved.comparable
    changes: list[str] = []
    for label in sorted(labels):
        changes += _evaluator_changes(label, old, new)
        bridge = bridge_of(approved.bridges, label, old.judges.get(label, {}), new.judges.get(label, {}))
        if bridge is None or metric not in bridge.shifts:
            changes += _changed_judge(label, old, new, display_path)
    if metric == Metric.PASS_RATE and old.thresholds != new.thresholds:
        changes.insert(0, "the thresholds changed")
    if old.repeats != new.repeats:
        changes.insert(0, f"cases run {new.repeats or 'once'}, {old.repeats or 'once'} when approved")
    return "; ".join(dict.fromkeys(changes))


def _changed_judge(label: str, old: Comparable, new: Comparable, display_path: str) -> Iterator[str]:
    """Yield the changes of an evaluator's judge since the approval, and the command that measures them."""
    judge, was = new.judges.get(label, {}), old.judges.get(label, {})
    changed = [name for name in sorted({*judge, *was}) if judge.get(name) != was.get(name)]
    for name in changed:
        yield f"the judge's {name} of {label!r} is {judge.get(name, 'none')}, {was.get(name, 'none')} when approved"
    if not changed or not was or not judge or not _BRIDGED.issuperset(changed):
        return
    if _is_agreement(label, new):
        yield "how far jurors agree holds for these jurors only: approve a run of the new panel"
    elif way := _way_to_migrate(was.get("model", ""), judge.get("model", "")):
        yield f"measure what the change does with: llmeval judge migrate {display_path} {way}"


def _is_agreement(label: str, comparable: Comparable) -> bool:
    """Whether an evaluator measures the agreement of a panel of judges, which no bridge is about."""
    from pytest_llmeval.evaluators import VerdictStatistics

    printed = comparable.evaluators.get(label)
    return printed is not None and printed.name == VerdictStatistics.of_judges(str(printed.options.get("of")), ()).name


def _way_to_migrate(old: str, new: str) -> str:
    """The arguments of ``llmeval judge migrate`` for a change of judge; empty if it cannot measure it."""
    if PanelSpec.is_cascade(old) or PanelSpec.is_cascade(new):
        return ""
    if PanelSpec.is_panel(old) and PanelSpec.is_panel(new):
        replaced = PanelSpec.replaced_jurors(old, new)
        if len(replaced) > 1:
            return "--from JUROR --to PROVIDER:NAME (one juror at a time)"
        return "".join(f'--from "{juror}" --to {model}' for juror, model in replaced if _can_be_asked(model))
    return f"--to {new}" if _can_be_asked(new) and not PanelSpec.is_panel(old) else ""


def _can_be_asked(model: str) -> bool:
    """Whether a judge is a model that ``llmeval judge migrate`` can ask; fixtures judge in pytest only."""
    return model.partition(":")[0] in JudgeSpec.PROVIDERS and not model.startswith("fixture:")


def _evaluator_changes(label: str, old: Comparable, new: Comparable) -> Iterator[str]:
    """Yield the changes of an evaluator since the approval: another name, version or options."""
    before, after = old.evaluators.get(label), new.evaluators.get(label)
    if before is not None and after is not None:
        if before.name != after.name:
            yield f"{label!r} is the evaluator {after.name!r}, {before.name!r} when approved"
        elif before.version != after.version:
            yield f"the evaluator {label!r} has version {after.version}, {before.version} when approved"
        names = sorted({*before.options, *after.options})
        changed = [name for name in names if before.options.get(name) != after.options.get(name)]
        if changed:
            yield f"options of the evaluator {label!r} changed: {', '.join(changed)}"


def _changed_score(approved: ApprovedScore, score: ApprovedScore, shift: Shift | None) -> str:
    """The reason why a metric is not comparable with its approved score; empty if it is."""
    if score.missing != approved.missing:
        return f"{counted(score.missing, 'case')} did not run, {approved.missing} when approved"
    return changed_signature(approved.signature, score.signature, shift)


def changed_signature(approved: str, now: str, shift: Shift | None = None) -> str:
    """The reason why a metric is computed differently from its approved score; empty if it is not.

    Args:
        approved: How it was computed.
        now: How it is.
        shift: How far a change of judge moves it; measured between two ways, it leads from just one to the other.
    """
    if shift is not None and shift.before != shift.after and (approved, now) == (shift.before, shift.after):
        return ""
    return "" if now == approved else f"computed as {now or 'nothing'!r}, {approved or 'nothing'!r} when approved"
