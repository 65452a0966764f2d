"""The run of cases, from job to result, and its stages afterwards, without pytest."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.run._call_counts import CallCounter
    from pytest_llmeval.run._case_runner import CaseRunner, FromFixtures
    from pytest_llmeval.run._checkout import Checkout, describe_origin
    from pytest_llmeval.run._declared import Suite, cases, declared_suite, suite
    from pytest_llmeval.run._entries import get_checks
    from pytest_llmeval.run._execute import Execution, json_like, measure_returned, unmet_by_expected
    from pytest_llmeval.run._finishing import finish_run
    from pytest_llmeval.run._job import Answers, EarlyCalls, Job, LoadedCase, Next, begin_run, with_parts
    from pytest_llmeval.run._merging import merge_shards
    from pytest_llmeval.run._partial import PartialResult
    from pytest_llmeval.run._run_record import RunRecord, SuitePart
    from pytest_llmeval.run._score import score
    from pytest_llmeval.run._scripts import SuiteResult, run_predicted, score_unjudged
    from pytest_llmeval.run._shards import ResultOptions, Shard, ShardFile
    from pytest_llmeval.run._stages import (
        ChoiceTerms,
        Collected,
        CollectedSuite,
        JudgedSuite,
        Reported,
        RunScope,
        RunTerms,
        Suites,
    )
    from pytest_llmeval.run._stream import score_stream

_HOMES = {
    "_call_counts": ("CallCounter",),
    "_case_runner": ("CaseRunner", "FromFixtures"),
    "_checkout": ("Checkout", "describe_origin"),
    "_declared": ("Suite", "suite", "cases", "declared_suite"),
    "_entries": ("get_checks",),
    "_execute": ("measure_returned", "Execution", "json_like", "unmet_by_expected"),
    "_finishing": ("finish_run",),
    "_job": ("begin_run", "Answers", "EarlyCalls", "Job", "LoadedCase", "Next", "with_parts"),
    "_merging": ("merge_shards",),
    "_partial": ("PartialResult",),
    "_run_record": ("RunRecord", "SuitePart"),
    "_score": ("score",),
    "_scripts": ("SuiteResult", "run_predicted", "score_unjudged"),
    "_shards": ("Shard", "ShardFile", "ResultOptions"),
    "_stream": ("score_stream",),
    "_stages": (
        "ChoiceTerms",
        "Collected",
        "CollectedSuite",
        "JudgedSuite",
        "Reported",
        "RunScope",
        "RunTerms",
        "Suites",
    ),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
