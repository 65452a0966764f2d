"""Score snapshots: the approved scores of a suite."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.baselines._baselines import (
        deciding_labels,
        early_pairings,
        examine_regressions,
        judge_snapshot,
    )
    from pytest_llmeval.baselines._comparable import (
        SharedTexts,
        Stamp,
        day_of,
        digests_of,
        evaluator_prints,
        fingerprint,
        head_commit,
        moment_of,
        plain,
        shown_beside,
    )
    from pytest_llmeval.baselines._files import (
        RESULTS,
        SCORES,
        ApprovedAnswers,
        inputs_file,
        read_if_there,
        score_file,
        statistics_file,
    )
    from pytest_llmeval.baselines._history import HISTORY, append_runs, noted_paths, read_history
    from pytest_llmeval.baselines._python_scores import AssertedScores, pending_tests
    from pytest_llmeval.baselines._runs import (
        SELECTING,
        ApprovedCases,
        FailuresFile,
        Keeper,
        KnownFailures,
        RunWatch,
        SnapshotJudgement,
        SnapshotMode,
        SuiteRun,
        contents_of,
    )
    from pytest_llmeval.baselines._scores import ApprovedScore, Bridge, SuiteScores, TestScores, parse, render, rounded

_HOMES = {
    "_python_scores": (
        "pending_tests",
        "AssertedScores",
    ),
    "_baselines": (
        "deciding_labels",
        "early_pairings",
        "examine_regressions",
        "judge_snapshot",
    ),
    "_comparable": (
        "SharedTexts",
        "Stamp",
        "evaluator_prints",
        "day_of",
        "digests_of",
        "fingerprint",
        "head_commit",
        "moment_of",
        "plain",
        "shown_beside",
    ),
    "_files": (
        "ApprovedAnswers",
        "RESULTS",
        "SCORES",
        "inputs_file",
        "read_if_there",
        "score_file",
        "statistics_file",
    ),
    "_history": (
        "HISTORY",
        "append_runs",
        "noted_paths",
        "read_history",
    ),
    "_runs": (
        "ApprovedCases",
        "FailuresFile",
        "Keeper",
        "KnownFailures",
        "RunWatch",
        "SELECTING",
        "SnapshotJudgement",
        "SnapshotMode",
        "SuiteRun",
        "contents_of",
    ),
    "_scores": (
        "ApprovedScore",
        "Bridge",
        "SuiteScores",
        "TestScores",
        "parse",
        "render",
        "rounded",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
