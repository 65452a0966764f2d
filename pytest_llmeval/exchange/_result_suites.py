"""Suites of results."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Final

from msgspec import UNSET, structs

from pytest_llmeval.baselines import ApprovedCases, ScoreFile
from pytest_llmeval.core import (
    MISSING,
    Case,
    CaseRecord,
    Fault,
    JsonNumber,
    Parts,
    SuiteError,
    grouped,
    listed,
    unknown_name,
)
from pytest_llmeval.data import CaseFile, Document, FileSource, Source
from pytest_llmeval.evaluators import RecordedScores
from pytest_llmeval.exchange._readers import read_results
from pytest_llmeval.exchange.results import ResultRow, results_schema
from pytest_llmeval.gates import Gate
from pytest_llmeval.numbers import Repeats
from pytest_llmeval.reports import CaseReport, SuiteReport
from pytest_llmeval.run import run_predicted
from pytest_llmeval.suites import LoadedSuite, Registry, SuiteKey, load_suite

_NO_FILE_NAME: Final = re.compile(r"[^\w.-]+")
_DIGITS: Final = 8
_LISTED: Final = 5

SKIPPED: Final = "skipped"
"""The reason of cases that did not run because they were skipped."""


def cases_of(rows: Iterable[ResultRow]) -> dict[str, Case]:
    """The cases of one system in result rows, by id, with scores as predictions; a case holds all its runs.

    Labels are those of the first row that has them. Cost and latency are means over the runs that know them.
    """
    return {name: _case(name, of_case) for name, of_case in grouped((row.case, row) for row in rows).items()}


def _case(name: str, rows: Sequence[ResultRow]) -> Case:
    """The case of a suite of results: the scores of all its runs, and their mean cost and latency."""
    labels = _labels_of(rows)
    if (run := _only_run(rows)) is not None:
        return Case(name, prediction=RecordedScores.prediction_of([run]), labels=labels)
    rows = [row for row in rows if not row.skipped]
    if not rows:
        return Case(name, labels=labels)
    runs: dict[int, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda result: (result.repeat, bool(result.error))):  # an error hides what else is said
        why = RecordedScores.without_score(row.error, row.abstained)
        runs.setdefault(row.repeat, {})[row.metric] = why if row.score is None else row.score
    usage = {}
    for figure, key in (("cost", "cost_usd"), ("latency", "latency_s")):
        known = {row.repeat: value for row in rows if (value := getattr(row, figure)) is not None}
        if known:
            usage[key] = math.fsum(known.values()) / len(known)
    prediction = {**RecordedScores.prediction_of([*runs.values()]), **({"usage": usage} if usage else {})}
    return Case(name, prediction=prediction, labels=labels)


def _labels_of(rows: Sequence[ResultRow]) -> dict[str, str]:
    """The labels of a case of results."""
    if len(rows) == 1:
        return dict(rows[0].labels)
    return {key: value for row in reversed(rows) for key, value in row.labels.items()}


def _only_run(rows: Sequence[ResultRow]) -> dict[str, JsonNumber] | None:
    """The scores of a case that ran once, of which nothing else is known; ``None`` for other cases."""
    repeat, run = rows[0].repeat, dict[str, JsonNumber]()
    for row in rows:
        if row.score is None or row.cost is not None or row.latency is not None or row.repeat != repeat:
            return None
        run[row.metric] = row.score
    return run


def with_own_names(rows: Iterable[ResultRow]) -> list[ResultRow]:
    """Result rows in which a metric named like one of every suite, or like a statistic, is a reported one."""
    rows = list(rows)
    reserved = {
        metric
        for metric in names_of(rows, "metric")
        if metric in LoadedSuite.OWN_METRICS or Gate.split_statistic(metric)[0] != "value"
    }
    if not reserved:
        return rows
    return [structs.replace(row, metric=f"reported.{row.metric}") if row.metric in reserved else row for row in rows]


def names_of(rows: Iterable[ResultRow], field: str) -> list[str]:
    """The distinct values of a field in result rows, in their order."""
    return list(dict.fromkeys(map(attrgetter(field), rows)))


def metrics_of(rows: Iterable[ResultRow]) -> list[str]:
    """The metrics of result rows, in their order."""
    return list(filter(None, names_of(rows, "metric")))


def by_metric(rows: Iterable[ResultRow], metrics: Sequence[str]) -> list[ResultRow]:
    """Result rows with an error of each metric in place of one of all of them."""
    rows = list(rows)
    if all(row.metric for row in rows):
        return rows
    return [
        metric_row
        for row in rows
        for metric_row in ([row] if row.metric else [structs.replace(row, metric=m) for m in metrics])
    ]


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
            known = names_of(rows, name)
            if chosen is None and len(known) > 1 and name == "suite":
                names = ", ".join(map(repr, known))
                file.faults.add(0, 0, name, f"found the suites {names}, expected one: choose it with the key suite")
            elif chosen is not None and chosen not in known:
                file.faults.add(0, 0, name, unknown_name(name, chosen, known))
            if chosen is not None:
                rows = [row for row in rows if getattr(row, name) == chosen]
        several = len(names_of(rows, "system")) > 1
        for case in self.with_missing(cases_of(by_metric(rows, metrics_of(rows)))).values():
            file.add(replace(case, prediction=MISSING) if several else case)

    def rows_of(self, path: Path, display_path: str) -> Sequence[ResultRow]:
        """Return the rows of a file."""
        return read_results(path, display_path, self.reader)

    def with_missing(self, cases: dict[str, Case]) -> dict[str, Case]:
        """Return cases with those that are missing, without a prediction; by default none is known to be."""
        return cases

    # Predictions name a system of the file, and no file of answers.
    load_recorded = FileSource.load
    load_systems = Source.load_systems

    def _add_answers(self, file: CaseFile, folder: Path, faults: list[Fault]) -> list[Case]:
        del folder
        faults.extend(file.faults.listed())
        return list(file.cases.values())


@dataclass(frozen=True)
class GivenResults(ResultsSource):
    """The source of a suite whose result rows are already in memory.

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

    def with_missing(self, cases: dict[str, Case]) -> dict[str, Case]:
        """Return the cases with those that are missing."""
        return {**cases, **{name: Case(name) for name in self.expected if name not in cases}}


def key_of(name: str, system: str, root: Path) -> SuiteKey:
    """The key of a system's results; its path is in the folder of approved scores and history."""
    readable = _NO_FILE_NAME.sub("-", name).strip("-.")
    if readable != name:
        readable = f"{readable}-{sha256(name.encode()).hexdigest()[:_DIGITS]}".lstrip("-")
    owner = f"{readable}{ScoreFile.RESULTS}"
    return SuiteKey(str(root / owner), owner, variant=system)


def suite_of_results(
    rows: Sequence[ResultRow],
    settings: Document,
    root: Path,
    *,
    expected: Sequence[str] = (),
    ranges: Mapping[str, tuple[float, float]] = {},
    lower_is_better: Sequence[str] = (),
    higher_is_better: Sequence[str] = (),
    of_cases: Sequence[ResultRow] | None = None,
) -> LoadedSuite:
    """Build the suite of result rows, with a system for each arm if there are several.

    Args:
        rows: Of one suite.
        settings: Keys of a suite file besides evaluators and cases, with their places.
        root: The folder in which approved scores and history are.
        expected: Ids of cases that must be there.
        ranges: Metric to its smallest and largest value.
        lower_is_better: Metrics for which lower is better, besides those whose rows say so.
        higher_is_better: Metrics for which higher is, against what rows say.
        of_cases: The rows of the cases that the suite has; default: all.

    Raises:
        SuiteError: Gates or other settings do not fit the results; all faults are listed.
    """
    name, metrics, systems = rows[0].suite, metrics_of(rows), names_of(rows, "system")
    falling = {*lower_is_better, *(row.metric for row in rows if row.lower_is_better)} - {*higher_is_better}
    options = {
        "metrics": metrics,
        "lower_is_better": [metric for metric in metrics if metric in falling],
        "ranges": {metric: list(bounds) for metric, bounds in ranges.items() if metric in metrics},
        "signatures": {row.metric: row.signature for row in rows if row.signature},
    }
    data = {"suite": name, **settings.data, "evaluators": [{"recorded": options}]}
    if len(systems) > 1:
        data["systems"] = {system: {"predictions": system} for system in systems}
    source = GivenResults(name, rows=tuple(rows if of_cases is None else of_cases), expected=tuple(expected))
    path, document = Path(key_of(name, "", root).path), replace(settings, data=data)
    suite = load_suite(path, Registry.installed(), root=root, document=document, source=source)
    if suite.all_faults:
        raise SuiteError(suite.all_faults)
    return suite


def approved_rows(name: str, systems: Sequence[str], root: Path) -> list[ResultRow]:
    """The approved results of a suite as rows; none if they cannot be read, which their comparison reports."""
    rows: list[ResultRow] = []
    for system in systems if len(systems) > 1 else [""]:
        key = key_of(name, system, root)
        try:
            approval = ApprovedCases.read(key)
        except (OSError, UnicodeDecodeError, SuiteError):
            continue
        own = systems[0] if len(systems) == 1 else system
        for record in approval.statistics.records if approval is not None else ():
            for observation in record.observations.values():
                for metric, score in RecordedScores.scores_of(observation).items():
                    rows.append(ResultRow(record.id, metric, score, suite=name, system=own))
    return rows


def with_missing_metrics(rows: Sequence[ResultRow], expected: Iterable[ResultRow]) -> list[ResultRow]:
    """Result rows with an error for each metric that a case should have a score of and has no row of.

    A case without any row is not among them: it did not run. Nor are repeats without any row, which are counted.
    """
    there = {(row.system, row.case, row.metric, row.repeat) for row in rows}
    scored = [row for row in expected if row.score is not None]
    absent = {
        (row.system, row.case, row.metric)
        for row in scored
        if (row.system, row.case, row.metric, row.repeat) not in there
    }
    if not absent:
        return [*rows]
    known: dict[tuple[str, str], dict[int, set[str]]] = {}
    for row in rows:
        known.setdefault((row.system, row.case), {}).setdefault(row.repeat, set()).add(row.metric)
    planned = grouped((key, row) for row in scored if (key := (row.system, row.case, row.metric)) in absent)
    why, lacking = "no result of this metric, expected one", []
    for (system, case, metric), of_metric in planned.items():
        runs = known.get((system, case), {})
        without = [repeat for repeat, metrics in runs.items() if metric not in metrics]
        if len(runs) - len(without) < min(len(runs), len({row.repeat for row in of_metric})):
            suite = of_metric[0].suite
            lacking += [ResultRow(case, metric, error=why, suite=suite, system=system, repeat=n) for n in without]
    return [*rows, *lacking]


def records_of(
    rows: Sequence[ResultRow],
    suite: LoadedSuite,
    root: Path,
    planned: Sequence[ResultRow] = (),
    skipped: AbstractSet[tuple[str, str]] = frozenset(),
) -> dict[str, list[CaseRecord]]:
    """The case records of a suite of results, by system; a case without results did not run.

    Args:
        rows: Of one suite.
        suite: Made of them by `suite_of_results`.
        root: As there.
        planned: Rows of a run whose number of repeats each case must reach.
        skipped: System and id of cases that were skipped.
    """
    records = {}
    # A suite of one system calls it nothing.
    runs = {(row.system if suite.systems else "", row.case, row.repeat) for row in planned}
    least = Counter((system, case) for system, case, _ in runs)
    for name in suite.systems or [""]:
        of_system = suite.for_variant(name)
        scored = _score_cases(of_system, key_of(rows[0].suite, name, root))
        records[name] = [
            _settled(record, case, least[name, case.id], skipped=(name, case.id) in skipped)
            for case, record in zip(of_system.cases, scored, strict=True)
        ]
    return records


def baseline_records(
    rows: Sequence[ResultRow],
    current: LoadedSuite,
    suite_of: Callable[..., LoadedSuite],
    root: Path,
) -> dict[str, list[CaseRecord]]:
    """The case records of a baseline, by system; equal to those of `records_of` for the suite of all its rows.

    Of one system, only the cases that differ in more than scores are loaded and scored as in any run.

    Args:
        rows: Of one suite.
        current: The suite that is compared with them, whose ids have been checked.
        suite_of: `suite_of_results` with its settings.
        root: As of `records_of`.
    """
    if len(names_of(rows, "system")) > 1:
        return records_of(rows, suite_of(rows), root)
    cases, known = grouped((row.case, row) for row in rows), {case.id for case in current.cases}
    runs = {name: _only_run(of_case) for name, of_case in cases.items() if name in known}
    measured = zip(runs, RecordedScores(metrics=tuple(metrics_of(rows))).measure_scored(runs.values()), strict=True)
    alike = {name: observation for name, observation in measured if observation is not None}
    first = next(iter(alike), None)
    loaded = [row for row in rows if row.case == first or row.case not in alike]
    suite = suite_of(rows, of_cases=loaded)
    (label,) = suite.evaluators
    records = {record.id: record for record in records_of(loaded, suite, root)[""]}
    if first is not None:
        model = records[first]
        for name, observation in alike.items():
            if name != first:
                labels = _labels_of(cases[name])
                records[name] = structs.replace(model, id=name, labels=labels, observations={label: observation})
    return {"": [records[name] for name in cases]}


def _score_cases(suite: LoadedSuite, key: SuiteKey) -> Iterator[CaseRecord]:
    """Yield the records of the cases of a suite of results.

    Cases that ran once and have a number for each metric have equal records but for their numbers, unless there are
    limits. So the first of them is scored as in any run, and the others get its record with their own numbers.
    """
    label, evaluator = next(iter(suite.evaluators.items()))
    assert isinstance(evaluator, RecordedScores)  # as `suite_of_results` has made it
    uniform = not suite.thresholds and suite.repeats.times == 1 and suite.parts == Parts()
    runs = [RecordedScores.only_run(case) if uniform else None for case in suite.cases]
    plain = evaluator.measure_scored(runs)
    first = next((place for place, observation in enumerate(plain) if observation is not None), None)
    cases = [
        case
        for place, (case, observation) in enumerate(zip(suite.cases, plain, strict=True))
        if observation is None or place == first
    ]
    scored = (
        record
        for part in run_predicted(structs.replace(suite, cases=tuple(cases)), key, None)
        for record in part.records
    )
    alike: CaseRecord | None = None
    for case, observation in zip(suite.cases, plain, strict=True):
        if observation is None:
            yield next(scored)
        elif alike is None:
            alike = next(scored)
            yield alike
        else:
            yield structs.replace(alike, id=case.id, labels=case.labels, observations={label: observation})


def _settled(record: CaseRecord, case: Case, least: int, *, skipped: bool) -> CaseRecord:
    """The record of a case with the spread of its repeated results; one that lacks results did not run."""
    runs = RecordedScores.runs_of(case)
    if not runs or len(runs) < least:
        why = f"found {len(runs)} of {least} repeats" if runs else SKIPPED if skipped else "no result"
        return CaseRecord(record.id, record.labels, "not_run", reason=why)
    if len(runs) == 1:
        return record
    numbers = [{name: value for name, value in run.items() if not isinstance(value, Mapping)} for run in runs]
    # What was scored passes, as there are no limits.
    passed = [None if RecordedScores.is_errored(run) else True for run in runs]
    return structs.replace(record, repeats=Repeats.summary(passed, numbers))


def with_texts(report: SuiteReport, rows: Sequence[ResultRow], baseline: Sequence[ResultRow]) -> SuiteReport:
    """Add the question, expected answer and answer of result rows to the cases in a suite's report.

    Only cases that a gate names, or that are worse than in the baseline, have them: all else stays short.
    """
    named = {case for gate in report.gates for case in gate.fallen}
    named |= {case.id for case in report.cases if case.outcome not in ("passed", "scored")}
    system = report.variant
    texts, before = (
        {row.case: row for row in reversed(side) if row.case in named and (not system or row.system == system)}
        for side in (rows, baseline)
    )
    changes = report.changes
    if changes is not None:
        changes = structs.replace(changes, cases=[_with_texts(case, before.get(case.id)) for case in changes.cases])
    return structs.replace(
        report, cases=[_with_texts(case, texts.get(case.id)) for case in report.cases], changes=changes
    )


def _with_texts(case: CaseReport, row: ResultRow | None) -> CaseReport:
    """The report of a case with the question, expected answer and answer of its result row, if any."""
    if row is None or (row.input is None and row.expected is None and row.output is None):
        return case
    output = UNSET if row.output is None else row.output
    return structs.replace(case, input=row.input, expected=row.expected, prediction=output, has_texts=True)


def missing_of(records: Mapping[str, Sequence[CaseRecord]]) -> Iterator[str]:
    """Yield sentences about the results that cases of a suite lack, counted and named."""
    for system, of_system in records.items():
        missing = [record for record in of_system if record.outcome == "not_run"]
        for why in dict.fromkeys(record.reason for record in missing):
            ids = [repr(record.id) for record in missing if record.reason == why]
            whose = f" of {system}" if system else ""
            yield f"{why}{whose} for {len(ids)} of {len(of_system)} cases: {listed(ids, _LISTED)}"
