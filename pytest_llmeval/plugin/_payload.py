"""The data that items hand to their reports."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

import pytest
from msgspec import Struct, field, structs

from pytest_llmeval.cli import left_alone
from pytest_llmeval.core import (
    AnyError,
    BudgetError,
    CaseOutcome,
    CaseRecord,
    LlmevalError,
    PredictionError,
    SuiteError,
    decode,
    encode,
    printable,
)
from pytest_llmeval.data import InputFile, OwnFiles, display_path
from pytest_llmeval.plugin._options import shard_of_run, suite_patterns
from pytest_llmeval.plugin._pytest_private import load_conftests, terminal_columns
from pytest_llmeval.run import CaseRunner, Execution, LoadedCase, RunRecord, SuitePart
from pytest_llmeval.services import FaultSources, Secrets
from pytest_llmeval.suites import (
    ForeignFileError,
    LoadedSuite,
    Registry,
    SuiteKey,
    SuiteMemo,
    load_suite,
)

if TYPE_CHECKING:
    from pytest_llmeval.core import CaseChoice
    from pytest_llmeval.judges import StoredJudgement
    from pytest_llmeval.plugin._extensions import CaseChooser
    from pytest_llmeval.run import Suite

TAG = "a tag of evaluation cases"
"""The description of the mark that is registered for a tag."""


class CollectedItems(Struct):
    """The suites and items that a process of pytest collected, and those that a selection has left out.

    Attributes:
        dropped: Suites and variants of which every item was deselected, if gates must be judged.
        misnamed: Files that look like suites and are not collected, as reports name them.
        foreign: Files with names of suites that other tools seem to own, as reports name them.
        collected: Ids of all items over cases, if they are to be kept, each with the number of tests. The rows of a
            file of which shards read parts have one entry.
        deselected: Of all items over cases, those that a selection has left out.
        unwanted: Of these, those that options of pytest have left out.
        serial: Suites whose calls are made one after the other, each with the fixture that is the reason.
    """

    dropped: set[SuiteKey] = set()
    misnamed: set[str] = set()
    foreign: set[str] = set()
    collected: dict[str, int] = {}
    deselected: set[str] = set()
    unwanted: set[str] = set()
    serial: set[tuple[str, str]] = set()


def register_initially(config: pytest.Config) -> None:
    """Have the conftests that pytest has loaded register what options may name: formats of reports.

    What they cannot register is a fault of the suite files that they are read for.
    """
    try:
        config.hook.pytest_llmeval_register(registry=Registry.installed())
    except Exception:  # noqa: BLE001 (a user's code: its error is told with the first suite)
        return


class SuiteLoader(Struct):
    """Loads and keeps the suites of a pytest process.

    Attributes:
        config: Of the session.
        runner: Of the process.
        ordered: Returns a suite as the run orders its cases.
        chooser: Chooses the cases of a run of affected cases; ``None`` in other runs.
        refused: How many collectors could not be collected because of a suite.
        offered: Suites and variants of which items were made.
        left_out: What was collected and left out.
        hooks: Suite file to the hook that registers its evaluators.
    """

    config: pytest.Config
    runner: CaseRunner
    ordered: Callable[[LoadedSuite], LoadedSuite]
    chooser: "CaseChooser | None" = None
    refused: int = 0
    offered: set[SuiteKey] = set()
    left_out: CollectedItems = field(default_factory=CollectedItems)
    hooks: dict[Path, Any] = {}
    _suites: SuiteMemo = field(default_factory=SuiteMemo)

    def load(self, named: "Path | Suite", session: pytest.Session) -> LoadedSuite:
        """The suite of a file, or one that Python declares, read the first time.

        Raises:
            SuiteError: It has faults.
            EvaluatorError: An evaluator cannot be registered.
        """
        # The main process of xdist collects nothing itself, and knows the suite by its path only.
        if isinstance(named, Path) and OwnFiles(named).is_declared:
            from pytest_llmeval.run import declared_suite

            return self._suites.get(
                named, lambda: self._read(named, declared_suite(named, self.config.rootpath), session)
            )
        path = named if isinstance(named, Path) else named.path
        return self._suites.get(path, lambda: self._read(path, named, session))

    def _read(self, path: Path, named: "Path | Suite", session: pytest.Session) -> LoadedSuite:
        """The suite of a file or of Python, loaded with the conftests of its folder."""
        load_conftests(self.config, path.parent)
        self.hooks[path] = session.gethookproxy(path.parent).pytest_llmeval_register
        registry, root = self.registry(path), self.config.rootpath
        file, shard = self.display_path(path), shard_of_run(self.config)
        share = None if shard is None else shard.share_of(file)
        if isinstance(named, Path):
            suite = load_suite(path, registry, root=root, display_path=file, share=share)
        else:
            suite = named.load(registry, root=root, share=share)
        Secrets.remember(suite.secret_variables)
        if suite.judged:
            # Faults of judge and recordings are faults of the suite.
            self.runner.judges.judge_of(path, suite.judge, file, priced=suite.asks_judge)
        if suite.conversation.user is not None:
            self.runner.judges.user_of(path, suite.conversation.user, file)
        self.check_answers(suite, suite.systems or [""])
        for tag in sorted({tag for case in suite.cases for tag in case.tags}):
            self.config.addinivalue_line("markers", f"{tag}: {TAG}")
        return self.ordered(suite)

    def registry(self, path: Path) -> Registry:
        """The registry of a suite that was loaded, with what conftests register for it.

        Raises:
            EvaluatorError: An evaluator cannot be registered.
        """
        registry = Registry.installed()
        try:
            self.hooks[path](registry=registry)
        except LlmevalError as error:
            raise type(error)(f"{error}{AnyError(error).line}") from error
        return registry

    def check_answers(self, suite: LoadedSuite, variants: Iterable[str]) -> None:
        """Read the approved answers of systems, or of variants of the target, if the suite compares with them.

        Raises:
            SuiteError: A file has faults, which are those of the suite.
        """
        if not suite.against_approved:
            return
        from pytest_llmeval.baselines import ApprovedAnswers

        for name in variants:
            ApprovedAnswers.read(self.key(suite, variant=name))

    def note_misnamed(self, path: Path) -> None:
        """Note a file that is not collected, if it looks like a suite."""
        if InputFile(path).looks_like_suite():
            self.left_out.misnamed.add(self.display_path(path))

    def leaves_alone(self, path: Path, session: pytest.Session) -> bool:
        """Whether pytest leaves a file alone as another tool's, which is noted."""
        try:
            self.load(path, session)
        except ForeignFileError:
            self.left_out.foreign.add(self.display_path(path))
            return True
        except LlmevalError:
            return False  # reported when its cases are collected
        return False

    def hints(self) -> list[str]:
        """Lines about misnamed files, files of other tools, and suites whose calls wait for each other."""
        misnamed = [suite_patterns(self.config).hint(name) for name in sorted(self.left_out.misnamed)]
        foreign = [left_alone(sorted(self.left_out.foreign))] if self.left_out.foreign else []
        remedy = "give it the scope session, or leave out its plugin with -p no:NAME"
        serial = [
            f"{file}: calls are made one after the other, due to the fixture {fixture!r} of scope function: {remedy}"
            for file, fixture in sorted(self.left_out.serial)
        ]
        return misnamed + foreign + serial

    def refuse(self, why: object) -> pytest.Collector.CollectError:
        """The error of a collector that cannot be collected because of a suite."""
        self.refused += 1
        faults, texts = (why.faults, why.texts) if isinstance(why, SuiteError) else ([why], {})
        lines = FaultSources(self.config.rootpath, texts).below(faults)
        return pytest.Collector.CollectError(Secrets.of_variables().presentable("\n".join(lines)))

    def offer(self, key: SuiteKey, suite: LoadedSuite) -> None:
        """Note a suite, or a variant of it, of which items are made."""
        self.offered.add(key)
        if suite.rows is not None:
            self.left_out.collected[f"{key.whole_name} {suite.rows.digest}"] = suite.rows.count

    def drop_all_but(self, selected: Iterable[SuiteKey]) -> None:
        """Note the suites and variants of which a selection leaves nothing."""
        # The variants of a Python test are known only from its items.
        remaining = {key for chosen in selected for key in (chosen, chosen._replace(variant=""))}
        self.left_out.dropped |= self.offered - remaining

    def display_path(self, path: Path) -> str:
        """The name of a file in reports."""
        return display_path(path, self.config.rootpath)

    def key(self, suite: LoadedSuite, *, test: str = "", variant: str = "") -> SuiteKey:
        """The key of a suite's results."""
        return SuiteKey(str(suite.path), self.display_path(suite.path), test, variant)


LOADER = pytest.StashKey[SuiteLoader]()
"""Key of the suites of a process, in pytest's configuration."""

RUNNER = pytest.StashKey[CaseRunner]()
"""Key of the runner of their cases, in pytest's configuration."""


JUDGED = pytest.StashKey[list[tuple[Path, "StoredJudgement"]]]()
"""Judgements that a test used, each with the file that asked for it."""

RESULT = pytest.StashKey["SuitePart"]()
"""The results of an item's cases, until its last report has them."""

_UNSCORED = pytest.StashKey["SuitePart"]()
"""What became of an item's cases, if they are not scored."""

_ATTEMPTS = pytest.StashKey[int]()
"""How often an item was set up: plugins may run it again."""

_ATTRIBUTE, _JUDGED_ATTRIBUTE = "llmeval", "llmeval_judged"
"""Attributes of a report in which an item's results and judgements reach the main process."""


CATEGORY = "llmeval_category"
"""Attribute of a report: what pytest's last line counts it as, in place of passed, failed and skipped."""

UNNEEDED = pytest.StashKey[bool]()
"""Whether an item was skipped because the gates of its suite are decided."""

SUSPECT = pytest.StashKey[bool]()
"""Whether an item runs with nothing beside it, as calls under way have ended the worker that ran it."""

UNREPORTED = pytest.StashKey[bool]()
"""Whether an item began before its turn and may still fail, so that its results are not those of its test."""

UNNEEDED_CATEGORY = "not needed"
"""The category of such items."""

RERUN = "rerun"
"""The category, and the outcome, of items that a worker did not end and another one runs."""

CARRIED_CATEGORY = "carried"
"""The category of items whose cases have the results of the approved run."""

CASE_FIXTURES = ("case", "eval_case")
"""Names of the fixture by which a Python test gets a case."""

KNOWN = "failed as known"
"""The category of cases whose failure was approved."""

NOT_SCORED = "not scored"
"""The category of cases that no evaluator scored."""


def keep_judgements(item: pytest.Item, asking: Path, entries: "Iterable[StoredJudgement]") -> None:
    """Hand the judgements that a test used to its report, if they are to be recorded."""
    if item.config.stash[RUNNER].options.records:
        item.stash.setdefault(JUDGED, []).extend((asking, entry) for entry in entries)


def conclude(item: pytest.Item, loaded: LoadedCase, execution: Execution) -> None:
    """Hand a case's execution to its item's report, and fail the item where the case failed.

    Raises:
        pytest.fail.Exception: A limit was not met, the prediction is malformed, or the case could not be measured.
        BaseException: What the target raised.
    """
    __tracebackhide__ = True
    runner = item.config.stash[RUNNER]
    execution = runner.excused(loaded, execution)
    record, error = execution.record, execution.error
    # What a Python test scores need not come from the target, so it is no recording of the target's answers.
    record_answers = runner.hands_over_answers(loaded)
    item.stash[RESULT] = SuitePart.from_executions(
        loaded.key,
        loaded.suite.total,
        [execution],
        predictions=record_answers,
        secrets=loaded.suite.secret_variables,
        all_answers=runner.all_answers,
    )
    if item.config.getoption("xmlpath", None):
        note_scores(item, execution.scores(loaded.suite).items())
    keep_judgements(item, loaded.suite.path, execution.entries)
    if isinstance(error, BudgetError):
        stop_spent(item.session, error)
    if error is not None and not isinstance(error, PredictionError):
        if not item.config.getoption("fulltrace", False):
            AnyError(error).cut_traceback()
        raise error
    if record.reason is not None and record.outcome not in ("known_failure", "not_scored"):
        raise pytest.fail.Exception(failure_text(item.config, loaded, execution), pytrace=False)


_PROPERTY: Final = "llmeval."


def note_scores(item: pytest.Item, scores: Iterable[tuple[str, float | None]]) -> None:
    """Add the scores of a test, such as those of a case, to JUnit files."""
    item.user_properties += [
        (f"{_PROPERTY}{printable(name)}", "" if value is None else repr(value)) for name, value in scores
    ]


def stop_spent(session: pytest.Session, error: BudgetError) -> NoReturn:
    """Skip a test for which the judges' and targets' budget does not suffice, and end the run.

    Raises:
        pytest.skip.Exception: Always.
    """
    session.shouldstop = str(error)
    pytest.skip(str(error))


def failure_text(config: pytest.Config, loaded: LoadedCase, execution: Execution) -> str:
    """The text about a failing case in the terminal, for its pytest report."""
    from pytest_llmeval.reports import explain

    case = execution.case
    path = loaded.suite.files.get(case.id, loaded.key.display_path)
    return explain(case, execution.record, path, loaded.key.variant, width=terminal_columns(config))


def begin_attempt(item: pytest.Item) -> None:
    """Forget what an earlier attempt at an item gave: each begins with a set-up, and the last one counts."""
    attempts = item.stash.get(_ATTEMPTS, 0) + 1
    item.stash[_ATTEMPTS] = attempts
    if attempts > 1:  # before the first one, an async test may have begun early
        _forget_result(item)
        item.user_properties[:] = [
            user_property for user_property in item.user_properties if not user_property[0].startswith(_PROPERTY)
        ]


def note_error(item: pytest.Item, error: BaseException) -> None:
    """Note why an attempt at an item over cases has no scores; a retrying plugin need not report it."""
    outcome: CaseOutcome = "skipped" if isinstance(error, pytest.skip.Exception) else "errored"
    _note_unscored(item, outcome, Secrets.of_variables().presentable(AnyError(error).text))


def note_phase(item: pytest.Item, call: "pytest.CallInfo[None]", report: pytest.TestReport) -> None:
    """Note the outcome of an item's set-up, call or teardown for its cases; plugins may report a phase twice."""
    if report.outcome != "passed":
        reason = (
            Secrets.of_variables().presentable(AnyError(call.excinfo.value).text) if call.excinfo else report.outcome
        )
        _note_unscored(item, "skipped" if report.skipped else "errored", reason)
        if UNNEEDED in item.stash:
            setattr(report, CATEGORY, UNNEEDED_CATEGORY)
    elif (part := item.stash.get(RESULT, None)) is not None:
        outcomes = {record.outcome for record in part.records}
        if "known_failure" in outcomes:
            setattr(report, CATEGORY, KNOWN)
        elif outcomes == {"not_scored"}:
            setattr(report, CATEGORY, NOT_SCORED)


def hand_over(item: pytest.Item, report: pytest.TestReport, *, encoded: bool) -> bool:
    """Put an item's judge verdicts on its report, and its case results on the last one; return whether there are any.

    Args:
        item: The item.
        report: Of a phase.
        encoded: Whether the report leaves this process, and so can only carry text.
    """
    part = _result(item) if report.when == "teardown" else None
    if part is not None:
        part = structs.replace(_add_choices(item, part), attempts=item.stash.get(_ATTEMPTS, 1))
        if UNNEEDED in item.stash:
            records = [
                CaseRecord(record.id, outcome="not_run", reason=CaseRecord.NOT_NEEDED) for record in part.records
            ]
            part = structs.replace(part, records=records)
        setattr(report, _ATTRIBUTE, encode(part).decode() if encoded else part)
    judged = item.stash.get(JUDGED, None)
    if judged:
        del item.stash[JUDGED]
        setattr(report, _JUDGED_ATTRIBUTE, encode_judgements(judged) if encoded else judged)
    return part is not None


def _add_choices(item: pytest.Item, part: SuitePart) -> SuitePart:
    """The results of a pytest item with the reasons why its cases ran, in a run of affected cases."""
    choices = choices_of(item)
    if not choices:
        return part
    records = [
        structs.replace(record, selection=choices[record.id].selection)
        if record.id in choices and not record.selection
        else record
        for record in part.records
    ]
    return structs.replace(part, records=records)


def choices_of(item: pytest.Item) -> "Mapping[str, CaseChoice]":
    """The fate of each case of an item's suite in a run of affected cases; none in other runs."""
    chooser = item.config.stash[LOADER].chooser
    loaded = None if chooser is None else case_of(item)
    if chooser is None or loaded is None:
        return {}
    try:
        return chooser.choose(loaded.key, loaded.suite)
    except Exception as error:  # of a plugin
        raise pytest.UsageError(
            f"--llmeval-affected: {type(chooser).__qualname__} failed: {AnyError(error).message()}"
        ) from error


def carried_records(item: pytest.Item) -> list[CaseRecord] | None:
    """The records of an item whose cases are all carried over from an earlier run; ``None`` if it runs."""
    choices = choices_of(item)
    if not choices or any(item.get_closest_marker(name) for name in ("skip", "skipif", "xfail")):
        return None
    loaded = case_of(item)
    cases = [] if loaded is None else getattr(item, "bulk", ()) or (loaded.case,)
    records = [choices[case.id].record for case in cases if case.id in choices]
    carried = [record for record in records if record is not None]
    return carried if carried and len(carried) == len(cases) else None


def carry(item: pytest.Item, records: Sequence[CaseRecord], *, encoded: bool) -> "Iterator[pytest.TestReport]":
    """Yield the reports of an item whose cases are carried over: it is neither set up nor called.

    Args:
        item: The item.
        records: Of its cases.
        encoded: Whether reports leave this process.
    """
    loaded = case_of(item)
    assert loaded is not None
    part = SuitePart(loaded.key, loaded.suite.total, records)
    failed = [f"{record.id}: {record.reason}" for record in records if record.outcome == "failed"]
    for when in ("setup", "call", "teardown"):
        is_bad = bool(failed) and when == "call"
        text = printable("\n".join(failed), lines=True) if is_bad else None
        outcome: Literal["passed", "failed"] = "failed" if is_bad else "passed"
        report = pytest.TestReport(item.nodeid, item.location, {item.name: 1}, outcome, text, when)
        if when == "call" and not failed:
            setattr(report, CATEGORY, CARRIED_CATEGORY)
        if when == "teardown":
            setattr(report, _ATTRIBUTE, encode(part).decode() if encoded else part)
        yield report


def take_results(report: pytest.TestReport) -> SuitePart | None:
    """Take the case results off an item's report, which other plugins keep."""
    part = report.__dict__.pop(_ATTRIBUTE, None)
    return decode(part, SuitePart) if isinstance(part, str) else part


def take_judgements(report: pytest.TestReport, run: RunRecord) -> None:
    """Take the judge verdicts off an item's report, and add them to the run record."""
    judged = report.__dict__.pop(_JUDGED_ATTRIBUTE, None)
    if isinstance(judged, str):
        run.judgements.take(judged)
    elif judged:
        from pytest_llmeval.judges import Judgements

        for asking, entry in judged:
            run.judgements.add(Judgements.path_of(asking), entry)


def _result(item: pytest.Item) -> SuitePart | None:
    """Take the case results of an item, or the outcome of an item without scores."""
    part = item.stash.get(RESULT, None) or item.stash.get(_UNSCORED, None)
    _forget_result(item)
    return part


def _forget_result(item: pytest.Item) -> None:
    """Drop the case results of an item's earlier attempt."""
    for key in (RESULT, _UNSCORED):
        if key in item.stash:
            del item.stash[key]


def _note_unscored(item: pytest.Item, outcome: "CaseOutcome", reason: str) -> None:
    """Note the outcome of an item that ended before its cases were scored, such as in a fixture."""
    loaded = case_of(item)
    if loaded is not None:
        errors = {} if outcome == "skipped" else {"": reason}
        cases = getattr(item, "bulk", ()) or (loaded.case,)
        records = [CaseRecord(case.id, outcome=outcome, errors=errors, reason=reason) for case in cases]
        item.stash[_UNSCORED] = SuitePart(loaded.key, loaded.suite.total, records)


def require_score(item: pytest.Item) -> None:
    """Fail a Python test over a suite that passed without scoring its case.

    Raises:
        pytest.fail.Exception: It did.
    """
    loaded = case_of(item)
    if loaded is not None and loaded.key.test and RESULT not in item.stash:
        file, line, _ = item.location
        raise pytest.fail.Exception(
            f"{file}:{(line or 0) + 1}  the score of case {loaded.case.id!r} is missing: add this line after the "
            f"application has answered: {_fixture_of(item)}.score(prediction)",
            pytrace=False,
        )


def _fixture_of(item: pytest.Item) -> str:
    """The argument by which a test over a suite takes its case."""
    return next((name for name in CASE_FIXTURES if name in getattr(item, "fixturenames", ())), CASE_FIXTURES[0])


def case_of(item: pytest.Item) -> LoadedCase | None:
    """The case of a pytest item: of a suite, or of a Python test over one, whose other parameters name a variant."""
    own = getattr(item, "loaded", None)
    if isinstance(own, LoadedCase):
        return own
    callspec = getattr(item, "callspec", None)
    if callspec is None:
        return None
    loaded = next((value for name in CASE_FIXTURES if isinstance(value := callspec.params.get(name), LoadedCase)), None)
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
    """The keys of the results of items over cases, by node id."""
    cases = ((item, case_of(item)) for item in items)
    return {item.nodeid: loaded.key for item, loaded in cases if loaded is not None}


def _without(ids: str, case: str) -> str:
    """The id of a test's parameters, joined with dashes, without its case: it names the variant."""
    if ids.startswith(f"{case}-"):
        return ids.removeprefix(f"{case}-")
    return ids.removesuffix(f"-{case}") if ids.endswith(f"-{case}") else ids.replace(f"-{case}-", "-", 1)


def encode_judgements(used: "Iterable[tuple[Path, StoredJudgement]]") -> str:
    """Judge verdicts, each with its suite or test file, as one line of ASCII for xdist."""
    return json.dumps([(str(asking), entry.to_json()) for asking, entry in used])
