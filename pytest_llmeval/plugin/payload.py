"""Data that items hand to their test reports: the results of their cases, and the judgements that these used."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from pytest_llmeval.core.codec import decode, encode
from pytest_llmeval.core.errors import BudgetError, PredictionError, format_error, users_only
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.core.wording import printable
from pytest_llmeval.plugin.pytest_private import terminal_columns
from pytest_llmeval.plugin.suite_loader import RUNNER
from pytest_llmeval.reports.failures import CasePlace, explain
from pytest_llmeval.run.execute import Execution
from pytest_llmeval.run.job import LoadedCase
from pytest_llmeval.run.run_record import RunRecord, SuitePart
from pytest_llmeval.services.secrets import presentable
from pytest_llmeval.suite.run_settings import NOT_NEEDED
from pytest_llmeval.suite.suite import SuiteKey

if TYPE_CHECKING:
    from pytest_llmeval.judge.stored_judgement import StoredJudgement


JUDGED = pytest.StashKey[list[tuple[Path, "StoredJudgement"]]]()
"""Judgements that a test used, each with the file that asked for it."""

RESULT = pytest.StashKey["SuitePart"]()
"""The results of an item's cases, until its report has them."""

_ATTRIBUTE, _JUDGED_ATTRIBUTE = "llmeval", "llmeval_judged"
"""Attributes of a report in which an item's results and judgements reach the main process."""


CATEGORY = "llmeval_category"
"""Attribute of a report: what pytest's last line counts it as, in place of passed, failed and skipped."""

UNNEEDED = pytest.StashKey[bool]()
"""Whether an item was skipped because the gates of its suite are decided."""

UNNEEDED_CATEGORY = "not needed"
"""The category of such items."""

CASE_FIXTURES = ("case", "eval_case")
"""Names of the fixture by which a Python test gets a case."""

KNOWN = "failed as known"
"""The category of cases whose failure was approved."""


def keep_judgements(item: pytest.Item, asking: Path, entries: "Iterable[StoredJudgement]") -> None:
    """Hand the judgements that a test used to its report, if they are to be recorded."""
    if item.config.stash[RUNNER].options.records:
        item.stash.setdefault(JUDGED, []).extend((asking, entry) for entry in entries)


def conclude(item: pytest.Item, loaded: LoadedCase, execution: Execution) -> None:
    """Hand an execution to the item's report, and fail the item where the case failed.

    Raises:
        pytest.fail.Exception: A limit was not met, the prediction is malformed, or the case could not be measured.
        BaseException: What the target raised.
    """
    __tracebackhide__ = True
    execution = item.config.stash[RUNNER].excused(loaded, execution)
    record, error = execution.record, execution.error
    # What a Python test scores need not come from the target, so it is no recording of the target's answers.
    record_answers = item.config.stash[RUNNER].hands_over_answers(loaded)
    item.stash[RESULT] = SuitePart.from_executions(
        loaded.key,
        loaded.suite.total,
        [execution],
        predictions=record_answers,
        secrets=loaded.suite.secret_variables,
        all_answers=item.config.getoption("llmeval_texts") == "all",
    )
    if item.config.getoption("xmlpath", None):
        scores = execution.scores(loaded.suite).items()
        item.user_properties += [
            (f"llmeval.{printable(name)}", "" if score is None else repr(score)) for name, score in scores
        ]
    keep_judgements(item, loaded.suite.path, execution.entries)
    if isinstance(error, BudgetError):
        item.session.shouldstop = str(error)
        pytest.skip(str(error))
    if error is not None and not isinstance(error, PredictionError):
        if not item.config.getoption("fulltrace", False):
            users_only(error)
        raise error
    if record.reason is not None and record.outcome != "known_failure":
        raise pytest.fail.Exception(failure_text(item.config, loaded, execution), pytrace=False)


def failure_text(config: pytest.Config, loaded: LoadedCase, execution: Execution) -> str:
    """Return what the terminal shows of a failing case."""
    case = execution.case
    place = CasePlace(loaded.suite.files.get(case.id, loaded.key.display_path), case.line, loaded.key.variant)
    return explain(case, execution.record, execution.unmet, place, terminal_columns(config))


def hand_over(item: pytest.Item, call: "pytest.CallInfo[None]", report: pytest.TestReport, *, encoded: bool) -> None:
    """Put an item's results and judgements on its report.

    Args:
        item: The item.
        call: Its phase.
        report: Of the phase.
        encoded: Whether the report leaves this process, and so can only carry text.
    """
    part = _result(item, call, report) if call.when != "teardown" else None
    if part is not None:
        if UNNEEDED in item.stash:
            setattr(report, CATEGORY, UNNEEDED_CATEGORY)
            part = structs.replace(part, records=[_unneeded(each) for each in part.records])
        if report.passed and any(each.outcome == "known_failure" for each in part.records):
            setattr(report, CATEGORY, KNOWN)
        setattr(report, _ATTRIBUTE, encode(part).decode() if encoded else part)
    judged = item.stash.get(JUDGED, None)
    if judged:
        del item.stash[JUDGED]
        from pytest_llmeval.judge.recordings import encode_judgements

        setattr(report, _JUDGED_ATTRIBUTE, encode_judgements(judged) if encoded else judged)


def part_of(report: pytest.TestReport) -> SuitePart | None:
    """Return the results on a report, if there are any."""
    part = report.__dict__.get(_ATTRIBUTE)
    if isinstance(part, str):
        part = report.__dict__[_ATTRIBUTE] = decode(part, SuitePart)
    return part


def take_results(report: pytest.TestReport) -> SuitePart | None:
    """Take the results off a report, which others keep."""
    part = part_of(report)
    report.__dict__.pop(_ATTRIBUTE, None)
    return part


def take_judgements(report: pytest.TestReport, run: RunRecord) -> None:
    """Take the judgements off a report."""
    judged = report.__dict__.pop(_JUDGED_ATTRIBUTE, None)
    if isinstance(judged, str):
        run.judgements.take(judged)
    elif judged:
        from pytest_llmeval.judge.recordings import judgements_of

        for asking, entry in judged:
            run.judgements.add(judgements_of(asking), entry)


def _result(item: pytest.Item, call: "pytest.CallInfo[None]", report: pytest.TestReport) -> SuitePart | None:
    """Return the results of an item; a case whose fixtures failed or skipped it is counted too."""
    if call.when == "call":
        part = item.stash.get(RESULT, None)
        if part is not None:
            del item.stash[RESULT]  # an item can be run again
            return part
    elif report.outcome == "passed":
        return None
    loaded = case_of(item)
    if loaded is None:
        return None
    cases = getattr(item, "bulk", ()) or (loaded.case,)
    return SuitePart(loaded.key, loaded.suite.total, [_unscored(case.id, report, call) for case in cases])


def require_score(item: pytest.Item) -> None:
    """Fail a Python test over a suite that passed without scoring its case.

    Raises:
        pytest.fail.Exception: It did.
    """
    loaded = case_of(item)
    if loaded is not None and loaded.key.test and RESULT not in item.stash:
        file, line, _ = item.location
        raise pytest.fail.Exception(
            f"{file}:{(line or 0) + 1}  found no score of case {loaded.case.id!r}, expected this line once the "
            f"application has answered: {_fixture_of(item)}.score(prediction)",
            pytrace=False,
        )


def _fixture_of(item: pytest.Item) -> str:
    """Return the name by which a test takes its case."""
    return next((name for name in CASE_FIXTURES if name in getattr(item, "fixturenames", ())), CASE_FIXTURES[0])


def _unscored(name: str, report: pytest.TestReport, call: "pytest.CallInfo[None]") -> CaseRecord:
    """Return the record of a case that its item has not scored."""
    reason = presentable(format_error(call.excinfo.value)) if call.excinfo else report.outcome
    if report.skipped:
        return CaseRecord(name, outcome="skipped", reason=reason)
    return CaseRecord(name, outcome="errored", errors={"": reason}, reason=reason)


def _unneeded(record: CaseRecord) -> CaseRecord:
    """Return the record of a case that was not needed."""
    return CaseRecord(record.id, outcome="not_run", reason=NOT_NEEDED)


def case_of(item: pytest.Item) -> LoadedCase | None:
    """Return the case of an item: of a suite, or of a Python test over one, whose other parameters name a variant."""
    own = getattr(item, "loaded", None)
    if isinstance(own, LoadedCase):
        return own
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    loaded = next((each for name in CASE_FIXTURES if isinstance(each := callspec.params.get(name), LoadedCase)), None)
    if loaded is None:
        return None
    others = sorted((name, value) for name, value in callspec.params.items() if name not in CASE_FIXTURES)
    if not others:
        return loaded
    if all(isinstance(value, str | int | float | bool) for _, value in others):
        variant = ",".join(f"{name}={value}" for name, value in others)
    else:
        variant = _without(callspec.id, loaded.case.id.encode("unicode_escape").decode("ascii"))
    return structs.replace(loaded, key=loaded.key._replace(variant=variant))


def keys_of(items: Iterable[pytest.Item]) -> dict[str, SuiteKey]:
    """Return what the results of items over cases are gathered under, by node id."""
    cases = ((item, case_of(item)) for item in items)
    return {item.nodeid: loaded.key for item, loaded in cases if loaded is not None}


def _without(ids: str, case: str) -> str:
    """Return the ids of a test's parameters, which pytest joins with dashes, without the one that names the case."""
    if ids.startswith(f"{case}-"):
        return ids.removeprefix(f"{case}-")
    return ids.removesuffix(f"-{case}") if ids.endswith(f"-{case}") else ids.replace(f"-{case}-", "-", 1)
