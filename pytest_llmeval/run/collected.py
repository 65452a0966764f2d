"""The collected results of a run, before they are judged: plain data."""

__all__ = ("CollectedRun", "CollectedSuite", "SuiteResults", "fault_of", "judges_of")

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from pytest_llmeval.core.errors import LlmevalError, format_error
from pytest_llmeval.core.frames import origin
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.evaluators.judge.panel import PanelAgreement
from pytest_llmeval.judge.judged_evaluator import JudgedEvaluator
from pytest_llmeval.judge.judges import SuiteJudges
from pytest_llmeval.reports.notes import ReportedTexts
from pytest_llmeval.suite.suite import Suite, SuiteKey


class SuiteResults(NamedTuple):
    """What the cases of a suite reported.

    Attributes:
        key: What they are gathered under.
        total: How many cases the suite has; 0 if no case reported.
        records: Case id to result.
        predictions: To be recorded.
    """

    key: SuiteKey
    total: int
    records: Mapping[str, CaseRecord]
    predictions: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class CollectedSuite:
    """The results of a suite together with the suite.

    Attributes:
        results: What its cases reported.
        suite: The suite; ``None`` if it could not be loaded.
        judges: Evaluator label to the parameters that affect its verdicts, from `judges_of`.
        fault: Why it could not be loaded.
    """

    results: SuiteResults
    suite: Suite | None = None
    judges: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fault: str = ""


@dataclass(frozen=True)
class CollectedRun:
    """A run whose last case has ended.

    Attributes:
        started: When it started.
        commit: What was checked out; ``None`` outside a repository.
        suites: Sorted by path, test and variant.
        broken: Why cases may be missing without being deselected: a crashed worker, an early stop.
        judges_off: Whether judges were switched off.
        texts: Of which cases reports have input, expected and prediction.
        compares: Whether a report shows what changed since scores were approved.
        shard: Which part of the cases ran, such as ``2/5``, if others run elsewhere.
        is_part: Whether a plugin has selected the cases, and the results are kept in a shard file.
    """

    started: datetime
    commit: str | None
    suites: Sequence[CollectedSuite]
    broken: str = ""
    judges_off: bool = False
    texts: ReportedTexts = "failing"
    compares: bool = False
    shard: str = ""
    is_part: bool = False

    @property
    def started_at(self) -> str:
        """When the run started, as reports write it."""
        return self.started.isoformat(timespec="seconds")


def fault_of(error: Exception) -> str:
    """Return why a suite cannot be judged: the text of an error of ours, and of another one its type as well."""
    return str(error) if isinstance(error, LlmevalError) else format_error(error) + origin(error)


def judges_of(suite: Suite, judges: SuiteJudges, shown: str) -> dict[str, dict[str, str]]:
    """Return, by evaluator, what decides the verdicts on a suite: the model, its parameters, how it is asked."""
    if not suite.judged:
        return {}
    suite_judge = judges.judge_of(suite.path, suite.judge, shown, priced=suite.asks_judge)
    given = {"model": suite_judge.model, "parameters": json.dumps(suite_judge.parameters, sort_keys=True)}
    asked = {
        label: {
            **(given if evaluator.own_model is None else {"model": str(evaluator.own_model.model), "parameters": "{}"}),
            "prompt": "; ".join(dict.fromkeys(metric.signature for metric in evaluator.describe())),
        }
        for label, evaluator in suite.evaluators.items()
        if isinstance(evaluator, JudgedEvaluator)
    }
    agreements = {label: each for label, each in suite.evaluators.items() if isinstance(each, PanelAgreement)}
    return asked | {label: asked[each.of] for label, each in agreements.items()}
