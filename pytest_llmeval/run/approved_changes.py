"""What changed in a suite since its scores were approved."""

__all__ = ("approved_changes",)

import math
from collections.abc import Iterator

from pytest_llmeval.baselines.answers import ApprovedAnswers
from pytest_llmeval.baselines.files import approved_scores, score_file
from pytest_llmeval.baselines.runs import SuiteRun, shown_beside
from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.core.results import PASS_RATE, AnswerShown, CaseResult
from pytest_llmeval.core.wording import counted
from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics
from pytest_llmeval.gates.statistics.compare import differences
from pytest_llmeval.gates.statistics.pairing import RunPairing
from pytest_llmeval.reports.form import Changes
from pytest_llmeval.run.records import different_answers, shown_value
from pytest_llmeval.scoring.table import Table
from pytest_llmeval.services.secrets import secret_values
from pytest_llmeval.suite.suite import Suite

_CONFIDENCE = 0.95
"""Of differences, where the suite wants no intervals of its own."""


def approved_changes(suite_run: SuiteRun) -> Changes | None:
    """Return what changed since the approval; ``None`` where nothing is known of the cases that were approved."""
    path = score_file(suite_run.key)
    try:
        scores = approved_scores(path, shown_beside(suite_run.key, path))
        approved = None if scores is None else suite_run.approved(scores)
    except (OSError, UnicodeDecodeError, SuiteError):
        return None  # the verdict on the snapshot says why
    if approved is None or not approved.pairing.common:
        return None
    suite, pairing = suite_run.suite, approved.pairing
    names = [name for name in (*suite_run.result.metrics, PASS_RATE) if name in pairing.table.owner]
    clusters = suite.cluster_by if suite.cluster_by and pairing.has_label(suite.cluster_by) else None
    confidence = suite.confidence or _CONFIDENCE
    found = differences(pairing, pairing.everything(), names, confidence=confidence, cluster_by=clusters)
    cases = list(_cases(approved.statistics, suite))
    return Changes("approved scores", found, list(_notes(pairing)), cases, _answers(suite_run))


def _answers(suite_run: SuiteRun) -> dict[str, list[AnswerShown]]:
    """Return the approved answers as reports show them; none where they were not kept, or their file is damaged."""
    try:
        kept = ApprovedAnswers.read(suite_run.key).by_case(suite_run.suite.cases)
    except (OSError, UnicodeDecodeError, SuiteError):
        return {}  # where answers are compared with these, the file is a fault of the suite
    hidden = secret_values(suite_run.suite.secret_variables)
    return {case: different_answers([shown_value(each, hidden) for each in values]) for case, values in kept.items()}


def _notes(pairing: RunPairing) -> Iterator[str]:
    if pairing.only_current:
        yield f"{counted(pairing.only_current, 'case')} only in this run, or edited"
    if pairing.only_baseline:
        yield f"{counted(pairing.only_baseline, 'case')} only in the approved run, or edited"


def _cases(statistics: CaseStatistics, suite: Suite) -> Iterator[CaseResult]:
    """Yield the cases of the approved run with their scores."""
    scores = Table(suite.metrics, statistics.records).scores
    for row, record in enumerate(statistics.records):
        found = {name: float(column[row]) for name, column in scores.items()}
        metrics = {name: None if math.isnan(score) else score for name, score in found.items() if name != PASS_RATE}
        yield CaseResult(record.id, record.outcome, metrics, {}, None, 0.0)
