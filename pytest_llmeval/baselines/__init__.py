"""Score snapshots: the approved scores of a suite."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.baselines._baselines import SnapshotReview
    from pytest_llmeval.baselines._comparable import (
        Stamp,
        SuiteIdentity,
        fingerprint,
    )
    from pytest_llmeval.baselines._files import ApprovedAnswers, ScoreFile
    from pytest_llmeval.baselines._history import History
    from pytest_llmeval.baselines._python_scores import AssertedScores
    from pytest_llmeval.baselines._runs import (
        ApprovedCases,
        FailuresFile,
        Keeper,
        SnapshotJudgement,
        SnapshotMode,
        SuiteRun,
    )

_HOMES = {
    "_python_scores": ("AssertedScores",),
    "_comparable": ("Stamp", "SuiteIdentity", "fingerprint"),
    "_files": ("ApprovedAnswers", "ScoreFile"),
    "_history": ("History",),
    "_runs": ("ApprovedCases", "FailuresFile", "Keeper", "SnapshotJudgement", "SnapshotMode", "SuiteRun"),
    "_baselines": ("SnapshotReview",),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
