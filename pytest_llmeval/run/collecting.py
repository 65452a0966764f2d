"""The first stage of a run's end: from the record of a run to its suites."""

__all__ = ("RunTerms", "Suites", "collect", "collected_records", "fault_of", "judges_of", "rows_of")

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct, structs

from pytest_llmeval.baselines.failures import read_failures
from pytest_llmeval.baselines.runs import SuiteRun
from pytest_llmeval.core.errors import LlmevalError, format_error, origin
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.data.files.places import display_path
from pytest_llmeval.judge.judges import SuiteJudges
from pytest_llmeval.judge.options import JudgeMode
from pytest_llmeval.reports.notes import ReportedTexts
from pytest_llmeval.run.execute import as_approved
from pytest_llmeval.run.run_record import ItemResult, RunRecord
from pytest_llmeval.scoring.usage import claim_calls
from pytest_llmeval.suite.registry import Registry
from pytest_llmeval.suite.suite import Suite, SuiteKey


class RunTerms(Struct, frozen=True):
    """The options that decide what comes of results.

    Attributes:
        judge: What judges were allowed to do.
        texts: Of which cases reports have input, expected and prediction.
        snapshots: Whether suites without the key ``snapshot`` have one.
        require_gates: Whether gates must be judged even if the user selected a part of the cases.
        shard: Which part of all cases ran, such as ``2/5``; empty for a run of all.
        is_kept: Whether the results are written to a shard file.
        compares: Whether a report shows what changed since scores were approved.
        mutate: Seed of mutants of the answers; ``None`` if none are made.
    """

    judge: JudgeMode = "auto"
    texts: ReportedTexts = "failing"
    snapshots: bool = False
    require_gates: bool = False
    shard: str = ""
    is_kept: bool = False
    compares: bool = False
    mutate: int | None = None


class Suites(Protocol):
    """The suites of a run."""

    @property
    def root(self) -> Path:
        """The folder to which reports name files relatively: pytest's rootdir."""

    def read(self, path: Path) -> Suite:
        """Return the suite of a file.

        Raises:
            LlmevalError: The file has faults, or an evaluator cannot be registered.
        """

    def registry(self, path: Path) -> Registry:
        """Return what is known to the suite of a file, with what is registered for it alone.

        Raises:
            LlmevalError: Something cannot be registered.
        """

    def judges(self, key: SuiteKey, suite: Suite) -> Mapping[str, Mapping[str, str]]:
        """Return, by evaluator, what decides the verdicts on a suite."""


def collect(run: RunRecord, suites: Suites, *, approves: bool = False) -> tuple[list[SuiteRun], dict[SuiteKey, str]]:
    """Put the records of a run together with its suites.

    Args:
        run: The record of the run.
        suites: Of the run.
        approves: Whether the run approves failures, where a suite says so.

    Returns:
        The suites, sorted by path, test and variant, so that the order in which workers report does not show; and
        those that cannot be loaded, with the reason.
    """
    records = collected_records(run)
    totals = {each.part.key: each.part.total for each in reversed(run.items.values())}
    reruns = Counter(result.part.key for item, result in run.items.items() if item in run.reruns)
    reported = {key.path for key in totals}
    # Of a suite that reported nothing because the run broke, every case has yet to run.
    silent = [key for path in run.selected for key in _keys(path, suites)] if run.broken else []
    keys = {*totals, *run.dropped, *(key for key in silent if key.variant or key.path not in reported)}
    found: list[SuiteRun] = []
    faults: dict[SuiteKey, str] = {}
    for key in sorted(keys, key=lambda key: (key.shown, key.test, key.variant)):
        try:
            suite = suites.read(Path(key.path))
            suite = suite.gated(key.variant) if key.test else suite.of(key.variant)
            judges = suites.judges(key, suite)
            known = read_failures(key)
        except Exception as error:  # noqa: BLE001 (a file that changed, or a user's hook, costs its own suite only)
            faults[key] = fault_of(error)
        else:
            rows = rows_of(suite, records.get(key, {}), run.broken)
            if suite.order is None:  # otherwise once it is known which cases count
                rows = list(claim_calls(rows))
            if known or (approves and suite.approve.failures):
                every = approves and suite.approve.failures
                rows = [as_approved(each, each.unmet if every else known.get(each.id, ())) for each in rows]
            found.append(SuiteRun(key, suite, rows, totals.get(key) or suite.total, judges, known, reruns[key]))
    return found, faults


def collected_records(run: RunRecord) -> dict[SuiteKey, dict[str, CaseRecord]]:
    """Return suite to case to record; of a case that ran again, the last record counts."""
    records: dict[SuiteKey, dict[str, CaseRecord]] = {}
    for result in run.items.values():
        of_suite = records.setdefault(result.part.key, {})
        single = len(result.part.records) == 1
        for record in result.part.records:
            of_suite[record.id] = _settled(record, result) if single else record
    return records


def _settled(record: CaseRecord, result: ItemResult) -> CaseRecord:
    """Let pytest's verdict on an item decide its case's: marks and other plugins may have changed it."""
    if not record.duration_s:
        record = structs.replace(record, duration_s=result.duration)
    if result.outcome == "xfailed" and record.outcome != "not_run":
        # One that was not scored, as with `pytest.xfail()` in a target, must not leave the denominators.
        errors = record.errors if record.ran else {"": record.reason or "not scored, and expected to fail"}
        return structs.replace(record, outcome="xfailed", errors=errors)
    if result.outcome == "skipped" and record.outcome != "not_run":
        # What was scored on the way counts nowhere; gates limit how many cases are skipped.
        return structs.replace(record, outcome="skipped", observations={}, errors={})
    if result.outcome == "error" and record.outcome == "passed":
        return structs.replace(record, outcome="errored", reason="teardown failed")
    if result.outcome == "failed" and record.outcome == "passed":
        return structs.replace(record, outcome="failed", reason="the test failed after scoring")
    return record


def rows_of(suite: Suite, records: Mapping[str, CaseRecord], broken: str) -> list[CaseRecord]:
    """Return a record for every case of a suite; one that has none did not run.

    Args:
        suite: The suite.
        records: By case.
        broken: Why cases may be missing without being deselected.
    """
    rows = _rows(suite, records, broken)
    return list(rows) if suite.sample is None else suite.sample.weigh(rows)


def _rows(suite: Suite, records: Mapping[str, CaseRecord], broken: str) -> Iterator[CaseRecord]:
    for case in suite.cases:
        record = records.get(case.id)
        if record is None:
            yield CaseRecord(case.id, case.labels, "not_run", reason=broken or "not selected")
        else:
            yield record if record.labels == case.labels else structs.replace(record, labels=case.labels)


def _keys(path: str, suites: Suites) -> list[SuiteKey]:
    """Return what the results of a suite file are gathered under, variants of fixtures aside."""
    try:
        names = list(suites.read(Path(path)).systems) or [""]
    except LlmevalError:
        names = [""]
    return [SuiteKey(path, display_path(Path(path), suites.root), variant=name) for name in names]


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
        if evaluator.asks
    }
    counted = {label: each.counts_verdicts_of for label, each in suite.evaluators.items() if each.counts_verdicts_of}
    return asked | {label: asked[of] for label, of in counted.items()}
