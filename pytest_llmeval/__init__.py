"""Evaluation as tests.

    suite file -> cases -> prediction -> measure -> observations -> summarize -> thresholds, gates -> reports

An evaluator is a pair of pure functions: `measure` turns a case into named counts, `summarize` turns summed counts into
metrics. Nothing else aggregates, so a case, a group, a suite, a resample and a shard are all the same formula.
"""

__all__ = (
    "MISSING",
    "BudgetError",
    "Case",
    "CaseResult",
    "CaseTable",
    "Comparison",
    "ConfusionMatrix",
    "Count",
    "Detail",
    "Difference",
    "ErrorBucket",
    "Evaluator",
    "EvaluatorError",
    "EvidenceMatch",
    "EvidenceMatcher",
    "GroupResult",
    "JudgeError",
    "JudgeReply",
    "JudgeRequest",
    "JudgedEvaluator",
    "LabelTable",
    "LlmevalError",
    "Metric",
    "MetricTable",
    "MetricValue",
    "MissingDataError",
    "MissingExtraError",
    "Mode",
    "Observation",
    "PredictionError",
    "Question",
    "Registry",
    "Result",
    "SuiteError",
    "Sums",
    "Totals",
    "Usage",
    "Verdict",
    "compare",
    "get_evaluator",
    "register_tokenizer",
    "score",
)

from pytest_llmeval._version import __version__ as __version__
from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import (
    BudgetError,
    EvaluatorError,
    JudgeError,
    LlmevalError,
    MissingDataError,
    MissingExtraError,
    PredictionError,
    SuiteError,
)
from pytest_llmeval.core.evaluator import ErrorBucket, Evaluator, Metric
from pytest_llmeval.core.observation import Observation, Sums, Totals
from pytest_llmeval.core.results import CaseResult, GroupResult, MetricValue, Result
from pytest_llmeval.core.tables import CaseTable, ConfusionMatrix, Count, Detail, LabelTable, MetricTable
from pytest_llmeval.judge.contract import JudgedEvaluator, JudgeReply, JudgeRequest, Mode, Question, Usage, Verdict
from pytest_llmeval.run.score import score
from pytest_llmeval.scoring.comparison.compare import Comparison, Difference, compare
from pytest_llmeval.suite.registry import Registry, get_evaluator, register_tokenizer
from pytest_llmeval.tasks.fact_check.evidence import EvidenceMatch, EvidenceMatcher
