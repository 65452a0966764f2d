"""What the cases of two runs or two arms show: which of them discriminate, and how many would find a difference."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist, stdev
from typing import Final, TypeAlias

from pytest_llmeval.core import CaseRecord, counted, limit, number
from pytest_llmeval.gates import ChangeGate, DropGate, LiftGate
from pytest_llmeval.numbers import TOLERANCE, CaseStatistics, Evidence, RunPairing
from pytest_llmeval.run import JudgedSuite
from pytest_llmeval.suites import LoadedSuite

PROOFS: Final = {
    "discriminates": "the arms differ",
    "no_difference": "the arms are alike",
    "always_passes": "both arms always pass: proves nothing",
    "never_passes": "neither arm ever passes",
    "incomplete": "an arm has no score",
}
"""What a case shows about two arms."""

UNLIMITED: Final = 10**9
"""A number of errors that every gate tolerates."""

_MOST_REPEATS: Final = 1000
_WITHOUT: Final = "without"
_DEVIATIONS: Final = NormalDist().inv_cdf(0.95) + NormalDist().inv_cdf(0.8)
"""How many standard deviations a drop has that a one-sided test at 5% finds in 80 of 100 runs."""
_LISTED: Final = 5


ProofCases: TypeAlias = dict[str, list[str]]
"""A key of `PROOFS` to ids of cases."""


def shown_by_arms(
    judged: Sequence[JudgedSuite], reference: str, min_cases: int, power: float | None
) -> tuple[dict[str, ProofCases], list[str], list[str]]:
    """The evidence of cases about arms, lines about it and its power, and where cases were too few.

    Args:
        judged: The suites.
        reference: Of `reference_among`.
        min_cases: How many cases must be able to tell two arms apart.
        power: Of `power_lines`, the size; ``None`` for no such lines.
    """
    metrics = list(dict.fromkeys(name for suite in judged for name in suite.result.metrics))
    gated = [name for name in metrics if any(name in suite.suite.judged_metrics for suite in judged)] or metrics
    by_proof, notes, few = {}, [], []
    for arm, base in arms_of(judged, reference):
        for metric in gated:
            name = f"{arm.key.variant} against {base.key.variant}"
            cases = by_proof[f"{arm.suite.name}: {metric}, {name}"] = proofs(arm, base, metric)
            notes.append(proof_line(metric, name, cases))
            if (able := could_discriminate(cases)) < min_cases:
                few.append(f"{metric}: {counted(able, 'case')} could tell {name}, expected {min_cases}")
    if power is not None:
        notes += power_lines(judged, gated, power, reference)
    return by_proof, notes, few


def arms_of(judged: Sequence[JudgedSuite], reference: str) -> Iterator[tuple[JudgedSuite, JudgedSuite]]:
    """Yield each arm of an evaluation with the arm that it is compared with.

    Systems are arms only if they are called so: models or prompts side by side are compared with none of them.

    Args:
        judged: The suites.
        reference: Of `reference_among`.
    """
    for variants in JudgedSuite.by_variant(judged):
        base = reference_among(list(variants), reference)
        if base is not None:
            yield from ((variant, variants[base]) for name, variant in variants.items() if name != base)


def reference_among(systems: Sequence[str], declared: str) -> str | None:
    """The system that the other arms are compared with; ``None`` if the systems are no arms.

    Args:
        systems: Their names.
        declared: The name of the reference; without such a system, it is ``without_x`` beside ``with_x``.
    """
    if declared in systems:
        return declared
    pairs = (name for name in systems if name.startswith(_WITHOUT) and f"with{name[len(_WITHOUT) :]}" in systems)
    return next(pairs, None)


def shown_alone(judged: Sequence[JudgedSuite]) -> Iterator[str]:
    """Yield a line for each metric of a run that is compared with nothing: its value, and which drop would be found.

    Another run is taken to scatter as this one does, and to be independent of it; pairs of cases can only find more.
    """
    for suite in judged:
        whose = f"[{suite.key.variant}]" if suite.key.variant else ""
        columns: set[bytes] = set()
        for name, scores in suite.result.case_scores.items():
            value = suite.result.metrics.get(name)
            if value is None or value.value is None or name in LoadedSuite.OWN_METRICS or scores.tobytes() in columns:
                continue
            columns.add(scores.tobytes())  # a copy of a metric says nothing more
            interval = "" if value.low is None or value.high is None else f" ({value.low:.4f}..{value.high:.4f})"
            line = f"{name}{whose} {value.value:.4f}{interval}, {counted(value.scored, 'case')}"
            known = [score for score in scores.tolist() if not math.isnan(score)]
            spread = stdev(known) if len(known) > 1 else 0.0
            if not spread:
                yield f"{line}: they are all alike, so that which drop would be found is not known"
                continue
            drop = _DEVIATIONS * spread * math.sqrt(2 / len(known))
            low, high = suite.suite.metrics.ranges([name]).get(name, (-math.inf, math.inf))
            room = high - value.value if suite.suite.metrics.lower_is_better(name) else value.value - low
            yield f"{line}; " + (
                f"a drop of {number(drop)} would be found in 80 of 100 runs"
                if drop <= room
                else "too few to find any drop in 80 of 100 runs"
            )


def proofs(arm: JudgedSuite, base: JudgedSuite, metric: str) -> ProofCases:
    """The evidence of the cases of two arms by a metric: a key of `PROOFS` to ids.

    A case passes if all its repeats have the best score. Metrics without bounds have no best one.
    """
    low, high = arm.suite.metrics.ranges([metric]).get(metric, (math.nan, math.nan))
    best, worst = (low, high) if arm.suite.metrics.lower_is_better(metric) else (high, low)
    scores = [
        dict(zip((case.id for case in suite.result.cases), suite.result.case_scores[metric], strict=True))
        for suite in (arm, base)
    ]
    by_proof: ProofCases = {name: [] for name in PROOFS}
    for case, score in scores[0].items():
        other = scores[1].get(case, math.nan)
        if math.isnan(score) or math.isnan(other):
            proof = "incomplete"
        elif abs(score - other) > TOLERANCE:
            proof = "discriminates"
        else:
            proof = "always_passes" if score == best else "never_passes" if score == worst else "no_difference"
        by_proof[proof].append(case)
    return by_proof


def proof_line(metric: str, name: str, by_proof: Mapping[str, Sequence[str]]) -> str:
    """The line about an arm of an evaluation: how many of its cases discriminate, and why others do not."""
    total = sum(map(len, by_proof.values()))
    parts = [f"{len(by_proof['discriminates'])} of {counted(total, 'case')} discriminate"]
    for proof, ids in by_proof.items():
        if ids and proof != "discriminates":
            more = ", ..." if len(ids) > _LISTED else ""
            parts.append(f"{len(ids)}: {PROOFS[proof]} ({', '.join(map(repr, ids[:_LISTED]))}{more})")
    return f"{metric}, {name}: {'; '.join(parts)}"


def could_discriminate(by_proof: Mapping[str, Sequence[str]]) -> int:
    """The number of cases that could tell the arms apart: those that neither always nor never pass."""
    return len(by_proof["discriminates"]) + len(by_proof["no_difference"])


def power_lines(judged: Sequence[JudgedSuite], metrics: Sequence[str], size: float, reference: str) -> Iterator[str]:
    """Yield how many more cases or repeats would find a difference, from the spread that the results have.

    Args:
        judged: The suites.
        metrics: The metrics.
        size: Of the difference.
        reference: Of `reference_among`.
    """
    pairs: list[tuple[RunPairing, ChangeGate, JudgedSuite, str, Sequence[CaseRecord]]] = [
        (suite.measured.run.pairing, DropGate("", 0.0), suite, "", suite.collected.baseline or ())
        for suite in judged
        if suite.measured.run.pairing is not None
    ]
    for arm, base in arms_of(judged, reference):
        run, other = (CaseStatistics.exact(suite.records) for suite in (arm, base))
        pairing = RunPairing(run, other, arm.suite.metrics, abstained=arm.suite.abstained)
        lift = LiftGate("", 0.0, against=base.key.variant)
        pairs.append((pairing, lift, arm, f" of {arm.key.variant}", base.records))
    for pairing, default, run_suite, whose, others in pairs:
        for metric in metrics:
            gate = _deciding_gate(run_suite.suite, replace(default, metric=metric))
            what = f"power: a difference of {limit(size)} in {metric}{whose}"
            tolerant = replace(gate, max_errors=UNLIMITED)
            yield f"{what} {_power(pairing, tolerant, size, (run_suite.records, others))}"


def _deciding_gate(suite: LoadedSuite, default: ChangeGate) -> ChangeGate:
    """The gate of a suite with the metric and reference of the default gate; the default one if there is none."""
    for gate in suite.gates:
        if isinstance(gate, type(default)) and (gate.metric, gate.against) == (default.metric, default.against):
            return gate
    return default.clustered(suite.cluster_by)


def _power(pairing: RunPairing, gate: ChangeGate, size: float, records: Sequence[Sequence[CaseRecord]]) -> str:
    """The size of the runs that would find a difference of two arms in the metric of a gate."""
    metric = gate.metric
    examined = gate.examine(pairing).examined
    evidence = examined[0].evidence if examined and not examined[0].fault else None
    owned = pairing.table.metric(metric) if metric in pairing.table.owner else None
    if evidence is None or owned is None or not evidence.estimate.units:
        return "needs an unknown number of cases: none has a score in both runs"
    units = evidence.estimate.units
    noun = "cluster" if units < evidence.estimate.cases else "case"
    drops = isinstance(gate, DropGate)
    needed = (
        evidence.units_to_find(size, gate, owned, collapses=False)
        if drops
        else evidence.units_to_gain(size, gate, owned)
    )
    if needed is None:
        return "is not found in 80 of 100 runs by any number of cases that is feasible"
    if needed <= units:
        return f"is found in 80 of 100 runs by the {counted(units, noun)} that there are"
    times = _repeats_to_find(size, evidence, gate, records, metric, pairing) if drops else None
    repeats = f", or each case {times} times as often" if times else ""
    return f"needs {needed - units} more {noun}s ({needed} in all){repeats}, to be found in 80 of 100 runs"


def _repeats_to_find(
    size: float,
    evidence: Evidence,
    gate: ChangeGate,
    records: Sequence[Sequence[CaseRecord]],
    metric: str,
    pairing: RunPairing,
) -> int | None:
    """The factor of repeats that finds a difference of arms; ``None`` if none does, or spread is unknown."""
    noises = [_noise(record, metric) for record in records]
    variance = evidence.deviation**2 * evidence.estimate.units
    if None in noises or not variance:
        return None
    noise = min(math.fsum(side_noise for side_noise in noises if side_noise is not None), variance)
    for times in range(2, _MOST_REPEATS):
        share = (variance - noise + noise / times) / variance
        scaled = replace(evidence, deviation=evidence.deviation * math.sqrt(share))
        smallest = scaled.found_drop(gate, pairing.table.metric(metric), collapses=False)
        if smallest is not None and smallest <= size:
            return times
    return None


def _noise(records: Sequence[CaseRecord], metric: str) -> float | None:
    """The variance that repeats leave in the score of a case; ``None`` if cases have no repeats."""
    variances = []
    for record in records:
        spread = (record.repeats or {}).get("spread", {}).get(metric)
        scores = [score for score in spread["scores"] if score is not None] if spread else []
        if len(scores) > 1:
            variances.append(spread["sd"] ** 2 / (len(scores) - 1))
    return math.fsum(variances) / len(variances) if variances else None
