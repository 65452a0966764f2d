"""Score snapshots: the approved scores of a suite."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.baselines._baselines import SnapshotReview
    from pytest_llmeval.baselines._comparable import (
        SharedTexts,
        Stamp,
        digests_of,
        evaluator_prints,
        fingerprint,
        plain,
    )
    from pytest_llmeval.baselines._files import ApprovedAnswers, ScoreFile
    from pytest_llmeval.baselines._history import History
    from pytest_llmeval.baselines._python_scores import AssertedScores
    from pytest_llmeval.baselines._runs import (
        ApprovedCases,
        FailuresFile,
        Keeper,
        RunWatch,
        SnapshotJudgement,
        SnapshotMode,
        SuiteRun,
    )
    from pytest_llmeval.baselines._scores import ApprovedScore, Bridge, SuiteScores, TestScores

_HOMES = {
    "_python_scores": ("AssertedScores",),
    "_comparable": ("SharedTexts", "Stamp", "evaluator_prints", "digests_of", "fingerprint", "plain"),
    "_files": ("ApprovedAnswers", "ScoreFile"),
    "_history": ("History",),
    "_runs": ("ApprovedCases", "FailuresFile", "Keeper", "RunWatch", "SnapshotJudgement", "SnapshotMode", "SuiteRun"),
    "_scores": ("ApprovedScore", "Bridge", "SuiteScores", "TestScores"),
    "_baselines": ("SnapshotReview",),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
