"""Verdicts on the gates of a suite that are judged together."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pytest_llmeval.core.wording import MOST_LISTED, counted, several
from pytest_llmeval.gates.change import Adjusted, GateEvidence
from pytest_llmeval.gates.contract import GateResult
from pytest_llmeval.gates.statistics.inference import adjusted_gates, benjamini_hochberg, hochberg


def judge_together(findings: Sequence[GateEvidence]) -> list[GateResult]:
    """Judge the gates of a suite on changes together.

    The p-values of claims are adjusted, so that the chance that a run without any drop beyond what is allowed
    fails, through whichever gate, stays at what the confidence says: by Hochberg's method over the groups of a gate,
    which have no case in common, and by Holm's over gates. Primary gates have that level for themselves. So are those
    of gains over another system, each of which is a claim of its own. Those of drops that are to be ruled out are not
    adjusted: such a run passes only if all of them hold, which is no more likely than that one does.

    Args:
        findings: Of one suite.

    Returns:
        One verdict per finding.
    """
    adjusted: dict[int, Adjusted] = {}
    for primary in (True, False):
        tests = [
            [each for each in finding.examined if not each.fault]
            for finding in findings
            if finding.gate.claims and finding.gate.primary is primary
        ]
        tests = [group for group in tests if group]
        within = [
            (benjamini_hochberg if group[0].gate.adjust == "fdr" else hochberg)([each.p_value for each in group])
            for group in tests
        ]
        adjusted |= {
            id(each): Adjusted(p_value, len(group), len(tests))
            for group, p_values in zip(tests, adjusted_gates(within), strict=True)
            for each, p_value in zip(group, p_values, strict=True)
        }
    return [_judged(finding, adjusted) for finding in findings]


def _judged(finding: GateEvidence, adjusted: Mapping[int, Adjusted]) -> GateResult:
    verdict = _verdict(finding, adjusted)
    return replace(verdict, reason=f"{verdict.reason}; {finding.doubt}") if finding.doubt else verdict


def _verdict(finding: GateEvidence, adjusted: Mapping[int, Adjusted]) -> GateResult:
    gate = finding.gate
    if not finding.examined:
        return gate.result(finding.outcome, finding.value, finding.reason)
    among = [adjusted.get(id(each), Adjusted(each.p_value)) for each in finding.examined]
    verdicts = [(each.group, *each.verdict(own)) for each, own in zip(finding.examined, among, strict=True)]
    undecided = any(each.undecided(own) for each, own in zip(finding.examined, among, strict=True))
    if gate.by is None:
        _, outcome, drop, reason = verdicts[0]
        evidence = finding.examined[0].evidence
        low, high = (evidence is not None and gate.change_bounds(evidence.interval)) or (None, None)
        return replace(gate.result(outcome, drop, reason), low=low, high=high, undecided=undecided)
    note = f"; not judged, under {counted(gate.min_cases, 'case')}: {several(finding.small)}" if finding.small else ""
    failed = [each for each in verdicts if each[1] == "failed"]
    worst_first = sorted(failed or verdicts, key=lambda each: math.inf if each[2] is None else -each[2])
    group, outcome, drop, reason = worst_first[0]
    if failed:
        ordered = worst_first if len(failed) > MOST_LISTED else failed
        listed = several([f"{each[0]}: {each[3]}" for each in ordered], "; ")
        text = f"{len(failed)} of {len(verdicts)} groups fail: {listed}{note}"
    else:
        open_ = [each for each in verdicts if each[1] == "undecided"]
        outcome = "undecided" if open_ else outcome
        groups = counted(len(verdicts), "group")
        of_all = f"{len(open_)} of {groups} undecided" if open_ else f"all {groups} pass"
        text = f"{of_all}, {gate.worst} {group}: {reason}{note}"
    return replace(gate.result(outcome, drop, text), undecided=undecided)
