"""Systems of a run side by side."""

__all__ = ("judge_between", "qualified", "side_by_side", "variants_of")

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_llmeval.baselines.runs import SuiteRun
from pytest_llmeval.core.results import Result
from pytest_llmeval.core.wording import counted
from pytest_llmeval.gates.limits import Gate, GateResult
from pytest_llmeval.gates.regression import RegressionGate
from pytest_llmeval.reports.tables import join_tables
from pytest_llmeval.run.execute import is_skipped
from pytest_llmeval.suite.suite import Suite

if TYPE_CHECKING:
    from pytest_llmeval.gates.regression_verdicts import GateEvidence
    from pytest_llmeval.gates.statistics.strengths import Strengths
    from pytest_llmeval.reports.systems import SystemsReport

_CONFIDENCE = 0.95
"""Of differences, where the suite wants no intervals of its own."""


def variants_of(judged: Iterable[SuiteRun]) -> list[dict[str, SuiteRun]]:
    """Return the systems of each suite, or the variants of its target, in the order of the file or of their names."""
    found: dict[tuple[str, str], dict[str, SuiteRun]] = {}
    for each in judged:
        found.setdefault((each.key.shown, each.key.test), {})[each.key.variant] = each
    return [_ordered(variants) for variants in found.values()]


def _ordered(variants: Mapping[str, SuiteRun]) -> dict[str, SuiteRun]:
    declared = [name for name in next(iter(variants.values())).suite.systems if name in variants]
    return {name: variants[name] for name in dict.fromkeys([*declared, *sorted(variants)])}


def side_by_side(variants: Mapping[str, SuiteRun]) -> "SystemsReport | None":
    """Compare the systems of a suite; ``None`` unless several of them ran."""
    ran = {name: each for name, each in variants.items() if each.report.run}
    if len(ran) < 2:  # noqa: PLR2004 (one system is compared with nobody)
        return None
    from pytest_llmeval.gates.statistics.compare import compare_systems
    from pytest_llmeval.reports.systems import SystemsReport

    first = next(iter(ran.values()))
    suite = first.suite
    reference = suite.reference if suite.reference in ran else next(iter(ran))
    results = {name: each.result for name, each in ran.items()}
    table = compare_systems(
        results, reference, suite.metrics, confidence=suite.confidence or _CONFIDENCE, cluster_by=suite.cluster_by
    )
    name = suite.name + (f"[{first.key.test}]" if first.key.test else "")
    joined = join_tables({name: each.report.tables for name, each in ran.items()})
    compared_by = suite.compared_by or table.metrics[:1]
    return SystemsReport(name, first.key.shown, table, compared_by, joined, list(_strengths(suite, results)))


def _strengths(suite: Suite, results: Mapping[str, Result]) -> "Iterator[Strengths]":
    """Yield how strong the systems are by each evaluator that compared them in pairs."""
    for label, evaluator in suite.evaluators.items():
        if evaluator.opponents:
            from pytest_llmeval.evaluators.judge.pairwise import pairs_of_systems
            from pytest_llmeval.gates.statistics.strengths import strengths_of
            from pytest_llmeval.scoring.resample import unit_numbers

            cases = pairs_of_systems(results, label)
            units = unit_numbers([record for record, _ in cases], suite.cluster_by)
            confidence = suite.confidence or _CONFIDENCE
            found = strengths_of(label, [pairs for _, pairs in cases], units, confidence=confidence)
            if found is not None:
                yield found


def judge_between(variants: Mapping[str, SuiteRun]) -> dict[str, list[GateResult]]:
    """Judge the gates between the systems of a suite together.

    Returns:
        System to the verdicts on it. A gate that names a system that did not run is not judged.
    """
    first, found = next(iter(variants)), []
    suite = variants[first].suite
    if not (suite.named_gates or suite.between):
        return {}
    from pytest_llmeval.gates.regression_verdicts import GateEvidence, judge_regressions

    for gate in suite.named_gates:
        against = gate.against if isinstance(gate, RegressionGate) else ""
        missing = [name for name in (gate.system, against) if name and name not in variants]
        if not missing or gate.system in suite.systems.keys() - variants.keys():
            continue
        waiting = RegressionGate(gate.metric, 0.0) if isinstance(gate, Gate) else gate
        reason = f"not judged: no system {missing[0]!r} ran"
        place = gate.system if gate.system in variants else first
        found.append((place, str(gate), GateEvidence(waiting, outcome="not_judged", reason=reason)))
    for gate in suite.between:
        named = [gate.system] if gate.system else [name for name in variants if name != gate.against]
        if gate.against in variants:
            found += [(each, str(gate), _between(gate, variants[each], variants)) for each in named if each in variants]
    results: dict[str, list[GateResult]] = {}
    for (system, name, evidence), result in zip(found, judge_regressions([each for *_, each in found]), strict=True):
        verdict = replace(result, gate=name)
        for each in (system, evidence.gate.against):
            if each in variants:
                verdict = qualified(variants[each], evidence.gate.max_skipped, verdict)
        results.setdefault(system, []).append(verdict)
    return results


def qualified(run: SuiteRun, most_skipped: int, verdict: GateResult) -> GateResult:
    """Return the verdict on a gate with what it rests on: cases that were skipped, or ran until they passed.

    A target that skips what it cannot answer would pass, so the gate fails if more cases than it allows were skipped
    at run time. Cases with the tag ``skip`` are declared, and free.
    """
    if verdict.outcome == "not_judged":
        return verdict
    if run.suite.sample is not None:
        verdict = replace(verdict, reason=f"{verdict.reason}; {run.suite.sample.report}")
    if run.reruns:
        again = f"{counted(run.reruns, 'case')} failed and ran again, and only the last result counts"
        verdict = replace(verdict, reason=f"{verdict.reason}; {again}")
    declared = {case.id for case in run.suite.cases if is_skipped(case)}
    skipped = sum(record.outcome == "skipped" and record.id not in declared for record in run.records)
    if skipped <= most_skipped:
        return verdict
    allowed = f"{most_skipped} allowed" if most_skipped else "none allowed"
    reason = f"{counted(skipped, 'case')} skipped at run time, {allowed} (max_skipped); {verdict.reason}"
    return replace(verdict, outcome="failed", reason=reason, undecided=False)


def _between(gate: RegressionGate, system: SuiteRun, variants: Mapping[str, SuiteRun]) -> "GateEvidence":
    from pytest_llmeval.gates.regression_verdicts import GateEvidence, examine
    from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics
    from pytest_llmeval.gates.statistics.pairing import RunPairing

    other = variants[gate.against]
    if any(gate.metric in each.off for each in (system, other)):
        return GateEvidence(gate, outcome="not_judged", reason="not judged: judges are off")
    incomplete = "; ".join(
        f"{name}: {each.incomplete}"
        for name, each in ((system.key.variant, system), (gate.against, other))
        if each.incomplete
    )
    run, baseline = (CaseStatistics.exact(each.records) for each in (system, other))
    pairing = RunPairing(run, baseline, system.suite.metrics)
    absent = f"no case is answered by both {system.key.variant!r} and {gate.against!r}"
    return examine(gate, pairing if pairing.paired else None, incomplete, absent)
