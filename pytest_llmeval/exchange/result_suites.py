"""Suites of results: rows of any runner as cases with recorded scores, for gates, snapshots, history and reports."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Final

from msgspec import Struct, structs

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.results import PASS_RATE, CaseRecord
from pytest_llmeval.core.wording import unknown_name
from pytest_llmeval.data.files.documents import Document
from pytest_llmeval.data.formats.base import CaseFile, FileSource, Source
from pytest_llmeval.evaluators.functions import ABSTAINED, ERROR, RUNS
from pytest_llmeval.exchange.readers import read_results
from pytest_llmeval.exchange.results import ResultRow, results_schema
from pytest_llmeval.gates.contract import split_statistic
from pytest_llmeval.run.stream import run_predicted
from pytest_llmeval.scoring.repeats import flakiness_of, spread_of, status_of
from pytest_llmeval.suite.loading import load_suite
from pytest_llmeval.suite.registry import Registry, default_registry
from pytest_llmeval.suite.settings import SUITE_METRICS
from pytest_llmeval.suite.suite import Suite, SuiteKey

_NO_FILE_NAME: Final = re.compile(r"[^\w.-]+")
_DIGITS: Final = 8


def cases_of(rows: Iterable[ResultRow], metrics: Sequence[str] = ()) -> dict[str, Case]:
    """Return the cases of one system, by id, with their scores as predictions; a case holds all its runs.

    Labels are those of the first row that has them. Cost and latency are means over the runs that know them.

    Args:
        rows: The rows.
        metrics: Those that an error of the whole case is an error of.
    """
    by_case: dict[str, list[ResultRow]] = {}
    for row in rows:
        by_case.setdefault(row.case, []).append(row)
    return {name: _case(name, of_case, metrics) for name, of_case in by_case.items()}


def _case(name: str, rows: Sequence[ResultRow], metrics: Sequence[str]) -> Case:
    runs: dict[int, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda each: (each.repeat, bool(each.error))):  # an error hides what else is said
        why = {ERROR: row.error} if row.error else {ABSTAINED: row.abstained}
        value = why if row.score is None else row.score
        runs.setdefault(row.repeat, {}).update(dict.fromkeys([row.metric] if row.metric else metrics, value))
    usage = {}
    for figure, key in (("cost", "cost_usd"), ("latency", "latency_s")):
        known = {row.repeat: value for row in rows if (value := getattr(row, figure)) is not None}
        if known:
            usage[key] = math.fsum(known.values()) / len(known)
    labels = {key: value for row in reversed(rows) for key, value in row.labels.items()}
    return Case(name, prediction={RUNS: list(runs.values()), **({"usage": usage} if usage else {})}, labels=labels)


def with_own_names(rows: Iterable[ResultRow]) -> list[ResultRow]:
    """Return rows in which a metric with the name of one that every suite has, or of a statistic, is a reported one."""
    return [
        structs.replace(row, metric=f"reported.{row.metric}")
        if row.metric in (PASS_RATE, *SUITE_METRICS) or split_statistic(row.metric)[0] != "value"
        else row
        for row in rows
    ]


def metrics_of(rows: Iterable[ResultRow]) -> list[str]:
    """Return the metrics of rows, in their order."""
    return [name for name in dict.fromkeys(row.metric for row in rows) if name]


@dataclass(frozen=True)
class ResultsSource(FileSource):
    """The results of another runner, whose scores ``recorded`` reads.

    Attributes:
        predictions: The system of the file whose results are read; default: the only one.
        suite: The suite of the file whose results are read; default: the only one.
        reader: The form of the file, such as that of another tool; default: known by its content.
    """

    format: ClassVar[str] = "results"

    suite: str | None = None
    reader: str = ""

    @classmethod
    def row_schema(cls) -> dict[str, Any]:
        """Return the published form."""
        return results_schema()

    def read(self, file: CaseFile) -> None:
        """Add the cases of the file."""
        rows = self.rows_of(file.path, file.display_path)
        for name, chosen in (("suite", self.suite), ("system", self.predictions)):
            known = list(dict.fromkeys(getattr(row, name) for row in rows))
            if chosen is None and len(known) > 1 and name == "suite":
                listed = ", ".join(map(repr, known))
                file.faults.add(0, 0, name, f"found the suites {listed}, expected one: choose it with the key suite")
            elif chosen is not None and chosen not in known:
                file.faults.add(0, 0, name, unknown_name(name, chosen, known))
            rows = [row for row in rows if chosen in (None, getattr(row, name))]
        several = len({row.system for row in rows}) > 1
        for case in self.expected_cases(cases_of(rows, metrics_of(rows))).values():
            file.add(replace(case, prediction=MISSING) if several else case)

    def rows_of(self, path: Path, display_path: str) -> Sequence[ResultRow]:
        """Return the rows of a file."""
        return read_results(path, display_path, self.reader)

    def expected_cases(self, cases: dict[str, Case]) -> dict[str, Case]:
        """Return cases with those that are missing, without a prediction; by default none is known to be."""
        return cases

    def load_recorded(self, folder: Path, faults: list[Fault]) -> list[Case]:
        """Return the cases with the results of the chosen system."""
        return self.load(folder, faults)

    def load_systems(self, folder: Path, systems: Sequence[Source]) -> list[tuple[list[Case], list[Fault]]]:
        """Return the cases of each system."""
        return Source.load_systems(self, folder, systems)

    def _answered(self, file: CaseFile, folder: Path, faults: list[Fault]) -> list[Case]:
        del folder  # predictions name a system of the file, and no file
        faults.extend(file.faults.listed())
        return list(file.cases.values())


@dataclass(frozen=True)
class GivenResults(ResultsSource):
    """Rows that are there already.

    Attributes:
        rows: Of one suite.
        expected: Ids of cases that must be there.
    """

    format: ClassVar[str] = "given results"

    rows: tuple[ResultRow, ...] = ()
    expected: tuple[str, ...] = ()

    def rows_of(self, path: Path, display_path: str) -> Sequence[ResultRow]:
        """Return the rows."""
        del path, display_path
        return self.rows

    def expected_cases(self, cases: dict[str, Case]) -> dict[str, Case]:
        """Return the cases with those that are missing."""
        return {**cases, **{name: Case(name) for name in self.expected if name not in cases}}


class ResultRun(Struct, frozen=True):
    """The results of one suite, as the suite and the records from which the stages of a run start.

    Attributes:
        suite: The suite, with a system for each arm if there are several.
        records: System to its records; a case without results did not run.
        missing: Sentences about what is missing, counted and named.
    """

    suite: Suite
    records: Mapping[str, Sequence[CaseRecord]]
    missing: Sequence[str] = ()

    def key(self, system: str, root: Path) -> SuiteKey:
        """Return the key of the results of a system."""
        return SuiteKey(str(self.suite.path), self.suite.path.relative_to(root).as_posix(), variant=system)


class ResultSuites(Struct, frozen=True):
    """Implements `pytest_llmeval.run.stages.Suites` for suites of results.

    Attributes:
        root: The folder in which approved scores and history are.
        by_path: The suites.
    """

    root: Path
    by_path: Mapping[Path, Suite]

    def read(self, path: Path) -> Suite:
        """Return the suite of a path."""
        return self.by_path[path]

    def registry(self, path: Path) -> Registry:
        """Return what is known to every suite."""
        del path
        return default_registry()

    def judges(self, key: SuiteKey, suite: Suite) -> Mapping[str, Mapping[str, str]]:
        """Return nothing: who judged is part of signatures."""
        del key, suite
        return {}


def place_of(name: str, root: Path) -> Path:
    """Return the path that names a suite of results, and the files that belong to it."""
    readable = _NO_FILE_NAME.sub("-", name).strip("-.")
    if readable != name:
        readable = f"{readable}-{sha256(name.encode()).hexdigest()[:_DIGITS]}".lstrip("-")
    return root / f"{readable}.results"


def suite_of_results(
    rows: Sequence[ResultRow],
    settings: Document,
    root: Path,
    *,
    expected: Sequence[str] = (),
    ranges: Mapping[str, tuple[float, float]] = {},
    lower_is_better: Sequence[str] = (),
) -> Suite:
    """Return the suite of rows.

    Args:
        rows: Of one suite.
        settings: Keys of a suite file besides evaluators and cases, with their places.
        root: The folder in which approved scores and history are.
        expected: Ids of cases that must be there.
        ranges: Metric to its smallest and largest value.
        lower_is_better: Metrics for which lower is better, besides those whose rows say so.

    Raises:
        SuiteError: Gates or other settings do not fit the results; all faults are listed.
    """
    name = rows[0].suite
    metrics, systems = metrics_of(rows), systems_of(rows)
    signatures = {row.metric: row.signature for row in rows if row.signature}
    falling = {row.metric for row in rows if row.lower_is_better}
    options = {
        "metrics": metrics,
        "lower_is_better": [each for each in metrics if each in {*lower_is_better, *falling}],
        "ranges": {each: list(bounds) for each, bounds in ranges.items() if each in metrics},
        "signatures": signatures,
    }
    data = {"suite": name, **settings.data, "evaluators": [{"recorded": options}]}
    if len(systems) > 1:
        data["systems"] = {system: {"predictions": system} for system in systems}
    source = GivenResults(name, rows=tuple(rows), expected=tuple(expected))
    document = replace(settings, data=data)
    suite = load_suite(place_of(name, root), default_registry(), root=root, document=document, source=source)
    if suite.all_faults:
        raise SuiteError(suite.all_faults)
    return suite


def with_missing_metrics(rows: Sequence[ResultRow], expected: Iterable[ResultRow]) -> list[ResultRow]:
    """Return rows with an error for each metric that a case has no row of, although it is expected to have a score.

    A case without any row is not among them: it did not run.
    """
    known = {(row.system, row.case, row.metric) for row in rows}
    cases = {(row.system, row.case) for row in rows}
    whole = {(row.system, row.case) for row in rows if not row.metric}
    lacking = {
        (row.system, row.case, row.metric): ResultRow(
            row.case, row.metric, error="no result of this metric, expected one", suite=row.suite, system=row.system
        )
        for row in expected
        if row.score is not None and (row.system, row.case) in cases - whole
    }
    return [*rows, *(row for key, row in lacking.items() if key not in known)]


def systems_of(rows: Iterable[ResultRow]) -> list[str]:
    """Return the systems of rows, in their order."""
    return list(dict.fromkeys(row.system for row in rows))


def run_of_results(rows: Sequence[ResultRow], suite: Suite, root: Path, planned: Sequence[ResultRow] = ()) -> ResultRun:
    """Return the records of rows.

    Args:
        rows: Of one suite.
        suite: Made of them by `suite_of_results`.
        root: As there.
        planned: Rows of a run whose number of repeats each case must reach.
    """
    run = ResultRun(suite, {})
    records = {}
    repeats, least = _repeats(rows, suite), _repeats(planned, suite)
    for name in suite.systems or [""]:
        of_system = suite.for_variant(name)
        listed = [each for part in run_predicted(of_system, run.key(name, root), None) for each in part.records]
        cases = {case.id: case for case in of_system.cases}
        records[name] = [
            _settled(each, cases[each.id], repeats.get((name, each.id), 0), least.get((name, each.id), 0))
            for each in listed
        ]
    return structs.replace(run, records=records, missing=list(_missing(records)))


def _repeats(rows: Iterable[ResultRow], suite: Suite) -> dict[tuple[str, str], int]:
    """Return how many repeats each case of each system has; a suite of one system calls it nothing."""
    known: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        known.setdefault((row.system if suite.systems else "", row.case), set()).add(row.repeat)
    return {key: len(each) for key, each in known.items()}


def _settled(record: CaseRecord, case: Case, repeats: int, least: int) -> CaseRecord:
    """Return a record with the spread of its repeats; that of a case which lacks results did not run."""
    if case.prediction is MISSING or repeats < least:
        why = f"found {repeats} of {least} repeats" if repeats else "no result"
        return CaseRecord(record.id, record.labels, "not_run", reason=why)
    runs = case.prediction[RUNS]
    if len(runs) == 1:
        return record
    numbers = [{name: each for name, each in run.items() if not isinstance(each, Mapping)} for run in runs]
    errors = [any(isinstance(each, Mapping) and ERROR in each for each in run.values()) for run in runs]
    passed = [None if each else True for each in errors]  # what was scored passes, as there are no limits
    summary = {
        "times": len(runs),
        "passed": passed.count(True),
        "pass_rate": passed.count(True) / len(runs),
        "status": status_of(passed),
        "flakiness": flakiness_of(passed),
        "spread": spread_of(numbers),
    }
    return structs.replace(record, repeats=summary)


_LISTED: Final = 5


def _missing(records: Mapping[str, Sequence[CaseRecord]]) -> Iterator[str]:
    for system, listed in records.items():
        for why in dict.fromkeys(each.reason for each in listed if each.outcome == "not_run"):
            ids = [each.id for each in listed if each.outcome == "not_run" and each.reason == why]
            named = ", ".join(map(repr, ids[:_LISTED])) + (", ..." if len(ids) > _LISTED else "")
            of_system = f" of {system}" if system else ""
            yield f"{why}{of_system} for {len(ids)} of {len(listed)} cases: {named}"


def settings_of(file: str, data: Mapping[str, Any], document: Document | None = None) -> Document:
    """Return settings of a suite of results, with the places that a file gives them.

    Raises:
        SuiteError: They have keys that results decide.
    """
    own = replace(document, data=dict(data)) if document is not None else Document(file, dict(data))
    faults = [
        own.fault((name,), f"found {name}, expected none: results decide it", key=True)
        for name in ("evaluators", "cases", "source", "systems", "target", "checks", "judge", "judges")
        if name in data
    ]
    if faults:
        raise SuiteError(faults)
    return own
