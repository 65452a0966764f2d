"""The second stage of a run's end: verdicts on collected suites."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import structs

from pytest_llmeval.baselines import SnapshotJudgement
from pytest_llmeval.core import (
    AnyError,
    CaseRecord,
    GateResult,
    LlmevalError,
    Metric,
    SnapshotVerdict,
    counted,
    suggest,
)
from pytest_llmeval.gates import Gate, ScoreGate
from pytest_llmeval.numbers import UsageEvaluator, summarize
from pytest_llmeval.run._stages import (
    Collected,
    CollectedSuite,
    Family,
    Judged,
    JudgedSuite,
    MeasuredSuite,
    RunScope,
    SuiteVerdict,
)
from pytest_llmeval.services import calls_that_fit
from pytest_llmeval.suites import LoadedSuite, SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.gates import ChangeGate, GateEvidence
    from pytest_llmeval.judges import JudgeMode

JUDGES_OFF = "judges are off"


def judge(collected: Collected, scope: RunScope) -> Judged:
    """Judge every suite of a run: its gates and its approved scores.

    A suite that cannot be judged, because its file or one of its evaluators fails, has its own failed verdict and does
    not affect other suites.
    """
    examined: list[JudgedSuite] = []
    failures = dict(collected.faults)
    claims: list[_Claims] = []
    for suite in collected.suites:
        try:
            judged, own = _examine_suite(suite, scope)
        except Exception as error:  # noqa: BLE001 (an evaluator's bug costs its own suite, not the others)
            failures[suite.key] = AnyError(error).message()
        else:
            examined.append(judged)
            claims += own
    claims += [claim for variants in JudgedSuite.by_variant(examined) for claim in _claims_between(variants)]
    if scope.terms.family == "project":
        claims += _gates_left_out(scope, {suite.key.path for suite in examined})
    gates = _judge_claims(claims, scope.terms.family)
    suites = [structs.replace(suite, gates=[*suite.gates, *gates.get(suite.key, ())]) for suite in examined]
    suites = _with_calibration(suites)
    verdicts: list[SuiteVerdict] = [
        (key, GateResult("summary", "failed", None, None, f"not evaluated: {why}")) for key, why in failures.items()
    ]
    verdicts += [verdict for suite in suites for verdict in _verdicts(suite, scope.run.broken)]
    verdicts.sort(key=lambda verdict: (verdict[0].display_path, verdict[0].test, verdict[0].variant))
    notes = [
        f"{key.display_path}: not evaluated: {why}"
        for key, why in sorted(failures.items(), key=lambda failure: failure[0][1:])
    ]
    notes += _family_notes(claims, scope.terms.family)
    return Judged(suites, verdicts, [*notes, *_notes(suites, scope)])


class _Claims(NamedTuple):
    """Gates whose verdicts depend on which gates are judged together: those of a suite, or between its systems.

    Attributes:
        key: The suite, or the first of its systems.
        evidence: On each gate.
        settled: Returns the final verdicts, each with the key of the suite that it is about.
    """

    key: SuiteKey
    evidence: "Sequence[GateEvidence]"
    settled: Callable[[Sequence[GateResult]], Iterable[tuple[SuiteKey, GateResult]]]


def _gates_left_out(scope: RunScope, known: Collection[str]) -> Iterator[_Claims]:
    """Yield the gates of suites that a run left out: they belong to the project's family of gates."""
    for file in sorted({nodeid.partition("::")[0] for nodeid in scope.run.deselected}):
        path = scope.suites.root / file
        if str(path) in known or path.suffix == ".py":  # which suites a test would have run is not known
            continue
        with suppress(Exception):  # of a faulty suite, which the run reports, no gate is known
            suite = scope.suites.read(path)
            variants = [suite.for_variant(name) for name in suite.systems or [""]]
            gates = [*suite.between, *(gate for variant in variants for gate in variant.regressions)]
            evidence = [gate.without_test("not_judged", "not selected") for gate in gates]
            yield _Claims(SuiteKey(str(path), file), evidence, lambda _: ())


def _judge_claims(claims: Sequence[_Claims], family: Family | None) -> dict[SuiteKey, list[GateResult]]:
    """The verdicts on gates that are judged as one family, by suite."""
    if not claims:
        return {}
    from pytest_llmeval.gates import GateEvidence

    gates: dict[SuiteKey, list[GateResult]] = {}
    families = [claims] if family == "project" else [[claim] for claim in claims]
    for together in families:
        files = [claim.key.display_path for claim in together for _ in claim.evidence]
        try:
            verdicts = iter(
                GateEvidence.judge_together([evidence for own in together for evidence in own.evidence], files)
            )
            settled = [
                pair for claim in together for pair in claim.settled(list(islice(verdicts, len(claim.evidence))))
            ]
        except Exception as error:  # noqa: BLE001 (numbers of one family, which affects no other)
            fault = GateResult("gates on changes", "failed", None, None, f"not evaluated: {AnyError(error).message()}")
            settled = [(claim.key, fault) for claim in together]
        for key, verdict in settled:
            gates.setdefault(key, []).append(verdict)
    return gates


_OFTEN = 0.2
"""With so large a chance that an equally good run fails, families of single suites are mentioned."""


def _family_notes(claims: Sequence[_Claims], family: Family | None) -> Iterator[str]:
    """Yield notes on a run: how many gates are one family, or how often good runs fail since each suite is one."""
    gates = [
        (number, claim.key.display_path, finding.gate)
        for number, claim in enumerate(claims)
        for finding in claim.evidence
        if finding.gate.claims and (finding.examined or finding.outcome == "not_judged")
    ]
    files = len({file for _, file, _ in gates})
    if family == "project" and files > 1:
        yield f"{len(gates)} gates in {files} files are one family (llmeval_family = project)"
    levels: dict[tuple[int, bool], float] = {}
    for number, _, gate in gates:
        if gate.refutes:
            of_family = (number, gate.primary)
            levels[of_family] = max(levels.get(of_family, 0.0), (1 - gate.confidence) / gate.sides)
    chance = 1 - math.prod(1 - level for level in levels.values())
    if family is None and chance > _OFTEN:
        yield (
            f"gates in {counted(files, 'file')} are {len(levels)} families, judged apart: up to {chance:.0%} of "
            "equally good runs fail. llmeval_family = project makes them one family; = suite keeps them, without this "
            "line"
        )


def can_fail(suite: JudgedSuite, scope: RunScope) -> bool:
    """Whether some score of a run would fail a suite: a Python test has assertions, and what failed could."""
    if suite.key.test or suite.suite.can_fail or scope.keeper.settings(suite.suite):
        return True
    return any(record.outcome in CaseRecord.BAD for record in suite.records)


def _notes(suites: Sequence[JudgedSuite], scope: RunScope) -> Iterator[str]:
    """Yield notes on suites that pass with any scores, or that do not run as their files say."""
    toothless = (
        f"{suite.key.display_path}: {suite.suite.cannot_fail}" for suite in suites if not can_fail(suite, scope)
    )
    yield from dict.fromkeys(toothless)
    yield from dict.fromkeys(str(note) for suite in suites for note in suite.suite.notes)
    for notes_on in (_idle_thresholds, partial(_note_lowered_limit, most=scope.terms.concurrency)):
        yield from dict.fromkeys(note for suite in suites for note in notes_on(suite))
    most = scope.terms.concurrency
    calls = any(suite.suite.target is not None or suite.suite.asking for suite in suites)
    if calls and most is not None and (fitting := calls_that_fit(most)) < most:
        yield (
            f"found {counted(most, 'call')} at a time, and the machine's limit of open files (ulimit -n) allows "
            f"{fitting}: raise it, or set --llmeval-concurrency={fitting}"
        )
    yield from dict.fromkeys(
        f"{suite.key.display_path}: runs to its end: {fault}"
        for suite in suites
        if suite.suite.stop is not None and (fault := suite.suite.stop_fault(scope.terms.family))
    )
    for suite in suites:
        for name, moved in suite.snapshot.moved_limits.items():
            about = name.replace(SnapshotVerdict.EVERYTHING, "all metrics")
            yield f"{suite.key.display_path}: limits of {about} changed since the approval: {moved}"


def _note_lowered_limit(judged: JudgedSuite, most: int | None) -> Iterator[str]:
    """Yield a note if a run's option allows a target fewer calls at a time than its suite does."""
    own = judged.suite.target.own_concurrency if judged.suite.target is not None else None
    if most is not None and own is not None and own > most:
        yield (
            f"{judged.key.display_path}: found target.concurrency {own}, and the run makes {counted(most, 'call')} at "
            f"a time: --llmeval-concurrency={own} makes as many"
        )


def _idle_thresholds(judged: JudgedSuite) -> Iterator[str]:
    """Yield the thresholds of a whole run that no case can miss, since none has a value: a label may be misspelt."""
    suite, result = judged.suite, judged.result
    if judged.incomplete or judged.off or judged.waiting or not any(record.observations for record in judged.records):
        return
    for name in sorted({*suite.thresholds, *(name for case in suite.cases for name in case.thresholds)}):
        metric = result.find(name)
        missable = metric is not None and (
            metric.scored or metric.errored or (metric.abstained and judged.suite.abstained == "fell")
        )
        if name not in UsageEvaluator.TARGET_FIGURES and not missable:
            near = suggest(name, (known for known, value in result.metrics.items() if value.scored))
            yield f"{judged.key.display_path}: no case has a value of {name}, so none can miss its threshold{near}"


def _verdicts(judged: JudgedSuite, broken: str) -> Iterator[SuiteVerdict]:
    """The verdicts on a suite's gates and approved scores that pytest reports.

    A skipped report would take a failed gate off pytest's list for --lf, so gates of a run that leaves cases out on
    purpose are not reported at all.
    """
    on_purpose = not (broken or judged.suite.faults)
    verdicts: list[GateResult | SnapshotVerdict] = [*judged.gates, *judged.snapshot.verdicts]
    return ((judged.key, verdict) for verdict in verdicts if verdict.outcome != "not_judged" or not on_purpose)


def measure(collected: CollectedSuite) -> MeasuredSuite:
    """The metrics of a finished suite and its groups, added up from its case records."""
    suite = collected.suite
    result = summarize(
        suite.metrics,
        collected.records,
        group_by=suite.group_by,
        confidence=suite.confidence,
        faulty=suite.faulty,
        cluster_by=suite.cluster_by,
        sampled=suite.sample.share if suite.sample is not None else 0.0,
    )
    return MeasuredSuite(collected, result)


def _examine_suite(collected: CollectedSuite, scope: RunScope) -> tuple[JudgedSuite, list[_Claims]]:
    """A suite with its verdicts, and the evidence on its gates against a baseline, which are judged together."""
    measured = measure(collected)
    suite, terms = collected.suite, scope.terms
    off, waiting = _find_unasked(collected, terms.judge)
    judged = JudgedSuite(
        measured,
        _incomplete(measured, scope, is_part=terms.is_kept and left_to_others(scope) > 0),
        off,
        waiting,
    )
    if collected.stop is not None:  # scores of some cases are no scores of the suite
        return structs.replace(judged, gates=collected.stop.gates), []
    unjudged = JUDGES_OFF if off else ""
    pending = Gate.waiting_cases(max(waiting.values())) if waiting else ""
    snapshot = _snapshot(measured, scope, judged.incomplete or unjudged or pending)

    def judge_gate(gate: ScoreGate) -> GateResult:
        name = _declared_name(gate.metric, suite)
        if name in waiting and not judged.incomplete:
            owned = suite.metrics.find(gate.metric)
            return gate.judge_pending(measured.result, waiting[name], None if owned is None else owned.metric)
        why = unjudged if name in off else ""
        return gate.judge(measured.result, judged.incomplete, why, _metric_of_silence(gate.metric, suite))

    gates = [collected.qualify(judge_gate(gate), gate.max_skipped) for gate in suite.score_gates]
    judged = structs.replace(judged, snapshot=snapshot, gates=gates)
    if not suite.regressions:
        return judged, []
    from pytest_llmeval.baselines import SnapshotReview

    review = SnapshotReview(measured.run, scope.keeper)
    evidence, snapshot = review.examine(snapshot, judged.incomplete, unjudged)
    evidence = [
        _await_verdicts(gate_evidence, waiting.get(_declared_name(gate_evidence.gate.metric, suite), 0))
        for gate_evidence in evidence
    ]

    def settled(verdicts: Sequence[GateResult]) -> Iterator[tuple[SuiteKey, GateResult]]:
        for examined, verdict in zip(evidence, verdicts, strict=True):
            moved = snapshot.moved_limits.get(examined.gate.metric)
            change = f"; limits changed since the approval: {moved}" if moved else ""
            marked = replace(verdict, reason=f"{verdict.reason}{change}")
            yield collected.key, collected.qualify(marked, examined.gate.max_skipped)

    return structs.replace(judged, snapshot=snapshot), [_Claims(collected.key, evidence, settled)]


def _await_verdicts(evidence: "GateEvidence", waiting: int) -> "GateEvidence":
    """The evidence on a gate; undecided while cases wait for judge verdicts."""
    if not waiting or evidence.outcome == "not_judged":
        return evidence
    return evidence.gate.without_test("undecided", f"cannot tell: {Gate.waiting_cases(waiting)}")


def _metric_of_silence(metric: str, suite: LoadedSuite) -> Metric | None:
    """The metric whose worst value counts for answers that leave nothing to score; ``None`` if they do not count."""
    owned = suite.metrics.find(metric) if suite.abstained == "fell" else None
    return None if owned is None else owned.metric


_CALIBRATED = "calibrated judges"
_LEAST_LABELS = 10
_BY_LABELS = ("agreement", "corrected(judge_score)")
"""Metrics that exist where people labelled answers."""


_Judges: TypeAlias = "set[tuple[str, str]]"
"""Judges that labels confirm: the model of each, and how it is asked."""


def _with_calibration(suites: Sequence[JudgedSuite]) -> list[JudgedSuite]:
    """The judged suites with their uncalibrated metrics: limited, but by a judge that no labels confirm.

    Labels of the run, and the files of a folder, are looked at once, and only if a suite needs them.
    """
    of_run = cache(lambda: {pair for suite in suites for pair in _find_confirmed(suite)})
    approved = cache(_approved_judges)

    def confirmed(key: SuiteKey) -> _Judges:
        from pytest_llmeval.baselines import ScoreFile

        return of_run() | approved(ScoreFile.of_suite(key).path.parent)

    return [_find_uncalibrated(suite, confirmed) for suite in suites]


def _find_uncalibrated(judged: JudgedSuite, confirmed: Callable[[SuiteKey], _Judges]) -> JudgedSuite:
    """A judged suite with its limited metrics whose judge is not confirmed by human labels."""
    suite, judges = judged.suite, judged.collected.judges
    if suite.uncalibrated == "allow" or judged.incomplete or judged.off or judged.waiting or not judges:
        return judged
    limited = {gate.metric for gate in suite.gates} | suite.thresholds.keys()
    limited.update(name for case in suite.cases for name in case.thresholds)
    declared = {name: suite.metrics.find(name) for name in sorted(limited)}
    owned = {name: metric for name, metric in declared.items() if metric is not None}
    missing = [
        name
        for name, metric in owned.items()
        # An evaluator with labels of its own has a metric by which it is judged.
        if metric.label in judges and metric.label in suite.asking and suite.asking[metric.label].calibrated_by == ""
    ]
    if missing:
        known = confirmed(judged.key)
        missing = [name for name in missing if _identity(judges[owned[name].label]) not in known]
    if not missing or suite.uncalibrated == "report":
        return structs.replace(judged, uncalibrated=missing) if missing else judged
    reason = f"uncalibrated: no human labels confirm the judge of {', '.join(missing)}"
    failed = GateResult(_CALIBRATED, "failed", None, None, reason)
    return structs.replace(judged, uncalibrated=missing, gates=[*judged.gates, failed])


def _identity(judge: Mapping[str, str]) -> tuple[str, str]:
    """The model and prompt that identify a judge of a finished run, without its levels of comparison with people."""
    return judge["model"], re.sub(r"^levels:[^|]*\|", "", judge["prompt"].partition("; ")[0])


def _find_confirmed(judged: JudgedSuite) -> Iterator[tuple[str, str]]:
    """Yield the judges of a finished suite that enough human labels confirm."""
    for label, judge in judged.collected.judges.items():
        evaluator = judged.suite.asking.get(label)
        name = evaluator.calibrated_by if evaluator is not None else None
        metric = judged.result.find(judged.suite.metrics.full_name(label, name)) if name else None
        if metric is not None and _is_confirmed(metric.value, metric.scored):
            yield _identity(judge)


def _is_confirmed(agreement: float | None, scored: int) -> bool:
    """Whether the agreement of a judge with people is known, in a finished suite, from enough human labels."""
    return agreement is not None and (not scored or scored >= _LEAST_LABELS)


def _approved_judges(folder: Path) -> _Judges:
    """The judges that human labels confirmed when the suites of a folder were approved."""
    from pytest_llmeval.baselines import ScoreFile

    judges = set()
    for file in ScoreFile.in_folder(folder):
        with suppress(LlmevalError):  # its own suite reports a damaged file
            if (scores := file.read_suite()) is None:
                continue
            for label, judge in scores.comparable.judges.items():
                names = (f"{prefix}{name}" for prefix in ("", f"{label}.") for name in _BY_LABELS)
                known = (scores.metrics[name] for name in names if name in scores.metrics)
                if any(_is_confirmed(agreement.value, agreement.scored) for agreement in known):
                    judges.add(_identity(judge))
    return judges


def _snapshot(measured: MeasuredSuite, scope: RunScope, unjudged: str) -> SnapshotJudgement:
    """Judge the scores of a suite against the approved ones.

    Args:
        measured: The suite with its metrics.
        scope: The run.
        unjudged: Why nothing is compared: only a part of the suite ran, or judges are off.
    """
    if scope.keeper.settings(measured.suite) is None:
        return SnapshotJudgement()
    if unjudged:
        return SnapshotJudgement(
            [
                SnapshotVerdict(
                    SnapshotVerdict.EVERYTHING, "not_judged", "not_judged", reason=f"not evaluated: {unjudged}"
                )
            ]
        )
    from pytest_llmeval.baselines import SnapshotReview

    return SnapshotReview(measured.run, scope.keeper).judge(scope.stamp)


def _incomplete(measured: MeasuredSuite, scope: RunScope, *, is_part: bool) -> str:
    """The reason why a suite's results do not cover the whole suite; empty if they do."""
    ran, total = measured.ran, measured.collected.total
    if measured.collected.stop is not None:
        return f"stopped when decided, after {ran} of {total} cases"
    if scope.terms.shard:
        return f"shard {scope.terms.shard} ran {ran} of {total} cases; run llmeval merge"
    reasons = [f"{ran} of {total} cases ran"] if ran < total else []
    if measured.suite.faults:
        reasons.append("the suite's files have faults")
    if reasons and scope.run.broken:
        reasons.append(scope.run.broken)
    elif ran < total and is_part:
        reasons.append("run llmeval merge")
    return "; ".join(reasons)


def left_to_others(scope: RunScope) -> int:
    """The number of tests over cases that a conftest or plugin left out, rather than an option or another shard."""
    return 0 if scope.keeper.mode.selects or scope.terms.shard else len(scope.run.deselected)


def _find_unasked(collected: CollectedSuite, judge: "JudgeMode") -> tuple[frozenset[str], Mapping[str, int]]:
    """The declared metrics of a suite for which a run did not ask judges.

    Returns:
        Those that stay without verdicts, and those that wait for pending ones, with the number of cases that do. What
        judges cost is known only once all of them are asked.
    """
    if judge not in ("off", "defer"):
        return frozenset(), {}
    from pytest_llmeval.judges import UnaskedError

    suite, costs = collected.suite, [metric.name for metric in UsageEvaluator().describe()]
    if judge == "off" and suite.judged:
        return frozenset([*costs, *_find_undefined(collected, str(UnaskedError.off()))]), {}
    if judge == "defer" and (waiting := _find_undefined(collected, str(UnaskedError.pending()))):
        return frozenset(), {**dict.fromkeys(costs, max(waiting.values())), **waiting}
    return frozenset(), {}


def _find_undefined(collected: CollectedSuite, why: str) -> Mapping[str, int]:
    """The declared metrics of a suite that are undefined for a reason, each with the number of cases."""
    suite = collected.suite
    cases: Counter[str] = Counter()
    for record in collected.records:
        cases.update(
            {
                _declared_name(suite.metrics.full_name(label, name), suite)
                for label, observation in record.observations.items()
                for name, reason in observation.undefined.items()
                if reason == why
            }
        )
    return cases


def _declared_name(name: str, suite: LoadedSuite) -> str:
    """The declared name of a finished suite's metric: its family's, if it has one."""
    owned = suite.metrics.find(name)
    return name if owned is None else owned.name


def _claims_between(variants: Mapping[str, JudgedSuite]) -> Iterator[_Claims]:
    """Yield the evidence on the gates between the systems of a suite, which are judged together."""
    first = next(iter(variants.values()))
    if not (first.suite.named_gates or first.suite.between):
        return
    if any(variant.collected.stop is not None for variant in variants.values()):
        return  # they were judged with the others

    try:
        compared = list(_compare_systems(variants))
    except Exception as error:  # noqa: BLE001 (an evaluator's bug costs its own suite, not the others)
        gate = GateResult("between systems", "failed", None, None, f"not evaluated: {AnyError(error).message()}")
        yield _Claims(first.key, [], lambda _: [(first.key, gate)])
        return

    def settled(verdicts: Sequence[GateResult]) -> Iterator[tuple[SuiteKey, GateResult]]:
        for name, gate in _gates_waiting(variants):
            yield variants[name].key, gate
        for (name, text, evidence), result in zip(compared, verdicts, strict=True):
            verdict = replace(result, gate=text)
            for system in (name, evidence.gate.against):
                if system in variants:
                    verdict = variants[system].collected.qualify(verdict, evidence.gate.max_skipped)
            yield variants[name].key, verdict

    yield _Claims(first.key, [evidence for *_, evidence in compared], settled)


def _gates_waiting(variants: Mapping[str, JudgedSuite]) -> Iterator[tuple[str, GateResult]]:
    """Yield the gates between systems that name a system that did not run, each with its reporting system."""
    first = next(iter(variants))
    suite = variants[first].suite
    for gate in suite.named_gates:
        missing = [name for name in (gate.system, gate.against) if name and name not in variants]
        if missing and gate.system not in suite.systems.keys() - variants.keys():
            place = gate.system if gate.system in variants else first
            yield place, gate.result("not_judged", None, f"not evaluated: no system {missing[0]!r} ran")


def _compare_systems(variants: Mapping[str, JudgedSuite]) -> "Iterator[tuple[str, str, GateEvidence]]":
    """Yield each gate between two systems that ran: the system, the gate's text, and the evidence."""
    suite = next(iter(variants.values())).suite
    for gate in suite.between:
        named = [gate.system] if gate.system else [name for name in variants if name != gate.against]
        if gate.against in variants:
            for system in named:
                if system in variants:
                    yield system, str(gate), _evidence_between(gate, variants[system], variants)


def _evidence_between(gate: "ChangeGate", system: JudgedSuite, variants: Mapping[str, JudgedSuite]) -> "GateEvidence":
    """The evidence on a gate between two systems of a suite, from the cases that both answered."""
    from pytest_llmeval.numbers import CaseStatistics, RunPairing

    other = variants[gate.against]
    if any(gate.metric in suite.off for suite in (system, other)):
        return gate.without_test("not_judged", f"not evaluated: {JUDGES_OFF}")
    if waiting := max(suite.waiting.get(gate.metric, 0) for suite in (system, other)):
        return gate.without_test("undecided", f"cannot tell: {Gate.waiting_cases(waiting)}")
    incomplete = "; ".join(
        f"{name}: {suite.incomplete}"
        for name, suite in ((system.key.variant, system), (gate.against, other))
        if suite.incomplete
    )
    run, baseline = (CaseStatistics.exact(suite.records) for suite in (system, other))
    pairing = RunPairing(run, baseline, system.suite.metrics, abstained=system.suite.abstained)
    absent = f"no case is answered by both {system.key.variant!r} and {gate.against!r}"
    return gate.examine(pairing if pairing.paired else None, incomplete, absent)
