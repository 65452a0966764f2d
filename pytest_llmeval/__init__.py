"""Tests for applications built on language models: suite files whose cases run as pytest tests.

    suite file -> cases -> prediction -> measure -> observations -> summarize -> thresholds, gates, snapshot -> reports

`measure` turns a case into named counts, `summarize` turns sums of counts into metrics. Nothing else aggregates.

    core        the nouns: cases and media, the parts and turns of a case that evaluators read, observations and sums,
                the evaluator contract, results, verdicts, tables as data; typed JSON, errors, wording of messages
    data        readers and writers of files: text, YAML, JSON, CSV with the position of each value, validation; sources
                of cases and their rows, data frames, recorded answers by id; label sets; texts of models
    numbers     arithmetic on counts: sums to metrics, thresholds of cases, intervals, resamples, repeats, usage, cost;
                pairs of runs: comparisons, significance tests of a drop and their evidence, many runs in a row
    services    event loop in the background, HTTP exchanges, programs, git, retries, secrets in text, media for
                providers; the record of files, modules and variables that code uses
    gates       rules on metrics: limits and changes against a baseline or another system; keys, text forms, verdicts
    judges      questions, modes and replies; panels and cascades; clients of providers; the stores of verdicts that
                processes share, recordings, deferred batches; limits on calls, prices, budgets
    targets     predictions from Python functions, HTTP services and commands; worlds; recorded predictions
    reports     one module per format of reports, the form that all of them read, tables, failing cases as text
    evaluators  general evaluators and their arithmetic: text, classification, checks, functions; judges as evaluators,
                with their metrics and human labels; tool calls and JSON in answers
    suites      the suite file: keys, cases, systems with prompts, settings, samples, stopping, schema; the registry of
                all that can be added
    baselines   approved scores and runs: score files, identity of runs, anchors, tolerances, known failures, history
    run         one case from job to record without pytest: the chain that answers, conversations, early calls,
                opponents, measuring; scoring in Python, suites in Python and their entries, streams, partial results;
                calls that a plan counts; shards; the stages of a run's end and its report
    cli         the table of options, and the command ``llmeval``
    plugin      pytest: options, hooks, items, fixtures, progress, the session

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
    "Media",
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

pytest_plugins = ("pytest_llmeval.plugin.hooks",)
"""What ``-p pytest_llmeval`` loads, as the entry point does."""

if TYPE_CHECKING:
    import pytest_llmeval.run._entries as _entries  # noqa: PLR0402 (of this form pyright reads `__all__`)
    from pytest_llmeval.core import (
        MISSING,
        BudgetError,
        Case,
        CaseResult,
        CaseTable,
        ConfusionMatrix,
        Count,
        Detail,
        ErrorBucket,
        Evaluator,
        EvaluatorError,
        FloatArray,
        GroupResult,
        JudgeError,
        LabelTable,
        LlmevalError,
        Media,
        Metric,
        MetricTable,
        MetricValue,
        MissingDataError,
        MissingExtraError,
        Mutator,
        Neighbours,
        Observation,
        Parts,
        PredictionError,
        Reads,
        Result,
        SuiteError,
        Sums,
        Totals,
    )
    from pytest_llmeval.evaluators import Score
    from pytest_llmeval.exchange import GateVerdict, gate
    from pytest_llmeval.judges import JudgedEvaluator, JudgeReply, JudgeRequest, Mode, Panel, Question, Usage, Verdict
    from pytest_llmeval.numbers import Comparison, Difference, compare
    from pytest_llmeval.plugin import Evaluate, TestScored
    from pytest_llmeval.run import PartialResult, Suite, SuiteResult, cases, get_checks, score, score_stream, suite
    from pytest_llmeval.run._entries import *  # noqa: F403 (names as in suite files, with the types of _entries.pyi)
    from pytest_llmeval.suites import Registry, get_evaluator, register_tokenizer
    from pytest_llmeval.tasks.fact_check import EvidenceMatch, EvidenceMatcher, fact_checker
    from pytest_llmeval.tasks.mcp import McpServer

    __all__ += _entries.__all__

_HOMES = {
    "core": (
        "MISSING",
        "BudgetError",
        "Case",
        "CaseResult",
        "CaseTable",
        "ConfusionMatrix",
        "Count",
        "Detail",
        "ErrorBucket",
        "Evaluator",
        "EvaluatorError",
        "FloatArray",
        "GroupResult",
        "JudgeError",
        "LabelTable",
        "LlmevalError",
        "Media",
        "Metric",
        "MetricTable",
        "MetricValue",
        "MissingDataError",
        "MissingExtraError",
        "Mutator",
        "Neighbours",
        "Observation",
        "Parts",
        "PredictionError",
        "Reads",
        "Result",
        "SuiteError",
        "Sums",
        "Totals",
    ),
    "evaluators": ("Score",),
    "exchange": (
        "GateVerdict",
        "gate",
    ),
    "judges": (
        "JudgedEvaluator",
        "JudgeReply",
        "JudgeRequest",
        "Mode",
        "Panel",
        "Question",
        "Usage",
        "Verdict",
    ),
    "numbers": (
        "Comparison",
        "Difference",
        "compare",
    ),
    "plugin": (
        "Evaluate",
        "TestScored",
    ),
    "run": (
        "PartialResult",
        "Suite",
        "SuiteResult",
        "cases",
        "get_checks",
        "score",
        "score_stream",
        "suite",
    ),
    "suites": (
        "Registry",
        "get_evaluator",
        "register_tokenizer",
    ),
    "tasks.fact_check": (
        "EvidenceMatch",
        "EvidenceMatcher",
        "fact_checker",
    ),
    "tasks.mcp": ("McpServer",),
}
"""Package to the public names that it has: a plain pytest run, which loads this one, needs none of them."""


if not TYPE_CHECKING:  # for a type checker every name would exist

    def __getattr__(name: str) -> object:
        """Load a public name when it is first used."""
        if name == "extend":  # not through the names of evaluators, for which plugins are loaded
            return import_module(f"{__name__}.extend")
        home = next((module for module, names in _HOMES.items() if name in names), None)
        if home is None and name.islower() and not name.startswith("_"):  # an evaluator or a check
            home = "run._entries"
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
