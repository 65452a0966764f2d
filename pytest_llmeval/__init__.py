"""Tests for applications built on language models: suite files whose cases run as pytest tests.

    suite file -> cases -> prediction -> measure -> observations -> summarize -> thresholds, gates, snapshot -> reports

`measure` turns a case into named counts, `summarize` turns sums of counts into metrics. Nothing else aggregates.

    core        cases, observations, the evaluator contract, results, errors, wording
    data        files and general case formats
    numbers     sums to metrics, intervals, resampling, repeats, two runs against each other
    services    event loop, HTTP, retries, processes, secrets
    gates       limits, changes against a baseline or another system
    judges      questions to judges, clients, stored verdicts, limits
    targets     predictions from Python functions, HTTP services and commands
    reports     one module per format of reports, and the table of them; explanations of failing cases
    evaluators  general evaluators and their arithmetic
    suites      the suite file, its keys, the registry
    baselines   approved scores, baselines, history
    run         one case from job to result, and the judging of a finished run, without pytest
    cli         options, and the command ``llmeval``
    plugin      pytest: options, hooks, items, fixtures

Beside this kernel, joined by the public registration:

    tasks       one folder per evaluation task
    exchange    files of other tools, in and out
    workbench   planning, early stop, mutation, review, comparison, first steps, JSON Schema of suite files

A package imports only packages above it in this list; ``CONTRIBUTING.md`` has the exact rule.
"""

__all__ = [
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
    "Evaluate",
    "Evaluator",
    "EvaluatorError",
    "EvidenceMatch",
    "EvidenceMatcher",
    "FloatArray",
    "GateVerdict",
    "GroupResult",
    "JudgeError",
    "JudgeReply",
    "JudgeRequest",
    "JudgedEvaluator",
    "LabelTable",
    "LlmevalError",
    "McpServer",
    "Metric",
    "MetricTable",
    "MetricValue",
    "MissingDataError",
    "MissingExtraError",
    "Mode",
    "Mutator",
    "Neighbours",
    "Observation",
    "Panel",
    "PartialResult",
    "Parts",
    "PredictionError",
    "Question",
    "Reads",
    "Registry",
    "Result",
    "Score",
    "Suite",
    "SuiteError",
    "SuiteResult",
    "Sums",
    "TestScored",
    "Totals",
    "Usage",
    "Verdict",
    "cases",
    "compare",
    "fact_checker",
    "gate",
    "get_checks",
    "get_evaluator",
    "register_tokenizer",
    "score",
    "score_stream",
    "suite",
]

from importlib import import_module
from typing import TYPE_CHECKING

from pytest_llmeval._version import __version__ as __version__

if TYPE_CHECKING:
    import pytest_llmeval.suites.entries as _entries
    from pytest_llmeval.core.case import MISSING, Case, Parts
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
    from pytest_llmeval.core.evaluator import ErrorBucket, Evaluator, Metric, Reads
    from pytest_llmeval.core.observation import FloatArray, Observation, Sums, Totals
    from pytest_llmeval.core.results import CaseResult, GroupResult, MetricValue, Result
    from pytest_llmeval.core.tables import CaseTable, ConfusionMatrix, Count, Detail, LabelTable, MetricTable
    from pytest_llmeval.core.views import Mutator, Neighbours
    from pytest_llmeval.evaluators.functions import Score
    from pytest_llmeval.exchange.gating import GateVerdict, gate
    from pytest_llmeval.judges.contract import JudgedEvaluator, JudgeReply, JudgeRequest, Mode, Question, Usage, Verdict
    from pytest_llmeval.judges.direct import Panel
    from pytest_llmeval.numbers.compare import Comparison, Difference, compare
    from pytest_llmeval.plugin.evaluate import Evaluate, TestScored
    from pytest_llmeval.run.declared import DeclaredSuite as Suite
    from pytest_llmeval.run.declared import DeclaredSuite as suite  # noqa: N813 (as it is called)
    from pytest_llmeval.run.declared import cases
    from pytest_llmeval.run.partial import PartialResult
    from pytest_llmeval.run.score import score
    from pytest_llmeval.run.scripts import SuiteResult
    from pytest_llmeval.suites.entries import *  # noqa: F403 (names as in suite files, with the types of entries.pyi)
    from pytest_llmeval.suites.registry import Registry, get_checks, get_evaluator, register_tokenizer
    from pytest_llmeval.tasks.fact_check.evidence import EvidenceMatch, EvidenceMatcher
    from pytest_llmeval.tasks.fact_check.target import fact_checker
    from pytest_llmeval.tasks.mcp.server import McpServer
    from pytest_llmeval.workbench.streams import score_stream

    __all__ += _entries.__all__

_HOMES = {
    "core.case": ("MISSING", "Case", "Parts"),
    "core.errors": (
        "BudgetError",
        "EvaluatorError",
        "JudgeError",
        "LlmevalError",
        "MissingDataError",
        "MissingExtraError",
        "PredictionError",
        "SuiteError",
    ),
    "core.evaluator": ("ErrorBucket", "Evaluator", "Metric", "Reads"),
    "core.observation": ("FloatArray", "Observation", "Sums", "Totals"),
    "core.results": ("CaseResult", "GroupResult", "MetricValue", "Result"),
    "core.tables": ("CaseTable", "ConfusionMatrix", "Count", "Detail", "LabelTable", "MetricTable"),
    "core.views": ("Mutator", "Neighbours"),
    "evaluators.functions": ("Score",),
    "exchange.gating": ("GateVerdict", "gate"),
    "judges.contract": ("JudgedEvaluator", "JudgeReply", "JudgeRequest", "Mode", "Question", "Usage", "Verdict"),
    "judges.direct": ("Panel",),
    "plugin.evaluate": ("Evaluate", "TestScored"),
    "run.declared": ("cases",),
    "run.score": ("score",),
    "run.scripts": ("SuiteResult",),
    "run.partial": ("PartialResult",),
    "numbers.compare": ("Comparison", "Difference", "compare"),
    "suites.registry": ("Registry", "get_checks", "get_evaluator", "register_tokenizer"),
    "tasks.fact_check.evidence": ("EvidenceMatch", "EvidenceMatcher"),
    "tasks.fact_check.target": ("fact_checker",),
    "tasks.mcp.server": ("McpServer",),
    "workbench.streams": ("score_stream",),
}
"""Module to the public names that it holds: a plain pytest run, which loads this package, needs none of them."""


if not TYPE_CHECKING:  # for a type checker every name would exist

    def __getattr__(name: str) -> object:
        """Load a public name when it is first used."""
        if name == "extend":  # not through the names of evaluators, for which plugins are loaded
            return import_module(f"{__name__}.extend")
        if name in ("Suite", "suite"):  # the class, and how it is called
            return import_module(f"{__name__}.run.declared").DeclaredSuite
        home = next((module for module, names in _HOMES.items() if name in names), None)
        if home is None and name.islower() and not name.startswith("_"):  # an evaluator or a check
            home = "suites.entries"
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
        except AttributeError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
        return value

    def __dir__() -> list[str]:
        """Return the public names too that are not loaded yet."""
        return sorted({*globals(), *__all__})
