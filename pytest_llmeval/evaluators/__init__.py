"""General evaluators, one module or package each; they know neither pytest nor suite files."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.evaluators._answers import AnswerText, AnswerValue, References
    from pytest_llmeval.evaluators._calls import MessageStep, MissingTraceError, ToolCall, read_transcript
    from pytest_llmeval.evaluators._changes import ChangeablePart
    from pytest_llmeval.evaluators._classification import Classification
    from pytest_llmeval.evaluators._functions import RecordedScores, Score, evaluator_of
    from pytest_llmeval.evaluators._patterns import TimedPattern
    from pytest_llmeval.evaluators._schemas import JsonSchema
    from pytest_llmeval.evaluators._text import TextEvaluator
    from pytest_llmeval.evaluators.checks._check import Check, CheckKind
    from pytest_llmeval.evaluators.checks._evaluator import Checks
    from pytest_llmeval.evaluators.checks._reading import CheckReader
    from pytest_llmeval.evaluators.judge._agreement import JudgeAgreement
    from pytest_llmeval.evaluators.judge._evaluator import Judge
    from pytest_llmeval.evaluators.judge._human_labels import HumanLabel, HumanLabels, LabelScale
    from pytest_llmeval.evaluators.judge._judged_case import CaseTexts, Defects, EvidenceSource
    from pytest_llmeval.evaluators.judge._verdict_metrics import Cascaded, VerdictStatistics
    from pytest_llmeval.evaluators.measures._confusion import Margins, precision, ratio
    from pytest_llmeval.evaluators.measures._overlap import harmonic_mean
    from pytest_llmeval.evaluators.measures._tokens import Tokenizer, is_east_asian, separate_east_asian

_HOMES = {
    "_answers": (
        "AnswerText",
        "AnswerValue",
        "References",
    ),
    "_calls": (
        "MessageStep",
        "MissingTraceError",
        "ToolCall",
        "read_transcript",
    ),
    "_changes": ("ChangeablePart",),
    "_classification": ("Classification",),
    "_functions": (
        "RecordedScores",
        "Score",
        "evaluator_of",
    ),
    "_patterns": ("TimedPattern",),
    "_schemas": ("JsonSchema",),
    "_text": ("TextEvaluator",),
    "checks._check": (
        "Check",
        "CheckKind",
    ),
    "checks._evaluator": ("Checks",),
    "checks._reading": ("CheckReader",),
    "judge._agreement": ("JudgeAgreement",),
    "judge._evaluator": ("Judge",),
    "judge._human_labels": (
        "HumanLabel",
        "HumanLabels",
        "LabelScale",
    ),
    "judge._judged_case": (
        "CaseTexts",
        "Defects",
        "EvidenceSource",
    ),
    "judge._verdict_metrics": (
        "Cascaded",
        "VerdictStatistics",
    ),
    "measures._confusion": (
        "Margins",
        "precision",
        "ratio",
    ),
    "measures._overlap": ("harmonic_mean",),
    "measures._tokens": (
        "Tokenizer",
        "is_east_asian",
        "separate_east_asian",
    ),
}
"""Module to the names that other packages use of it."""

EVALUATORS: dict[str, str] = {
    "classification": "pytest_llmeval.evaluators:Classification",
    "judge": "pytest_llmeval.evaluators:Judge",
    "judge_agreement": "pytest_llmeval.evaluators:JudgeAgreement",
    "recorded": "pytest_llmeval.evaluators:RecordedScores",
    "text": "pytest_llmeval.evaluators:TextEvaluator",
}
"""Name to ``module:class``."""

__getattr__ = lazy_names(__name__, _HOMES)
