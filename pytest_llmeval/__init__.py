"""Evaluation as tests.

    suite file -> cases -> prediction -> measure -> observations -> summarize -> thresholds, gates -> reports

An evaluator is a pair of pure functions: `measure` turns a case into named counts, `summarize` turns summed counts into
metrics. Nothing else aggregates, so a case, a group, a suite, a resample and a shard are all the same formula.
"""

__all__ = (
    "MISSING",
    "Case",
    "CaseResult",
    "Evaluator",
    "EvaluatorError",
    "GroupResult",
    "LlmevalError",
    "Metric",
    "MetricValue",
    "MissingDataError",
    "MissingExtraError",
    "Observation",
    "PredictionError",
    "Registry",
    "Result",
    "SuiteError",
    "Sums",
    "Totals",
    "get_evaluator",
    "register_tokenizer",
    "score",
)

from pytest_llmeval._version import __version__ as __version__
from pytest_llmeval.case import MISSING
from pytest_llmeval.case import Case
from pytest_llmeval.errors import EvaluatorError
from pytest_llmeval.errors import LlmevalError
from pytest_llmeval.errors import MissingDataError
from pytest_llmeval.errors import MissingExtraError
from pytest_llmeval.errors import PredictionError
from pytest_llmeval.errors import SuiteError
from pytest_llmeval.evaluator import Evaluator
from pytest_llmeval.evaluator import Metric
from pytest_llmeval.observation import Observation
from pytest_llmeval.observation import Sums
from pytest_llmeval.observation import Totals
from pytest_llmeval.registry import Registry
from pytest_llmeval.registry import get_evaluator
from pytest_llmeval.registry import register_tokenizer
from pytest_llmeval.summary import CaseResult
from pytest_llmeval.summary import GroupResult
from pytest_llmeval.summary import MetricValue
from pytest_llmeval.summary import Result
from pytest_llmeval.summary import score
