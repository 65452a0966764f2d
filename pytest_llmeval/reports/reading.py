"""JSON reports read back as the `RunReport` that they were written from.

A JSON report lacks some things that a run knows: counts of cases (so nothing can be resampled), the confidence of
intervals, which metrics the tables of evaluators show, tables with a column per system, and usage as metrics.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, make_dataclass
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET, Meta, UnsetType, structs

from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.results import CaseRecord, Result
from pytest_llmeval.data.files.documents import Document, load_json
from pytest_llmeval.data.files.validation import check, describe
from pytest_llmeval.reports.form import (
    FAILING,
    SCHEMA_VERSION,
    CaseReport,
    GroupReport,
    RunReport,
    SuiteReport,
)
from pytest_llmeval.reports.json import FormField, form_fields, is_form
from pytest_llmeval.reports.making import counts_of
from pytest_llmeval.reports.tables import FilledTable
from pytest_llmeval.scoring.table import summarize


def read_report(path: Path) -> RunReport:
    """Read a JSON report of this version or an earlier one.

    Raises:
        SuiteError: The file cannot be read, or is no report of a version known here.
    """
    document = load_json(path, str(path))
    data = document.data
    if not isinstance(data, Mapping) or "schema_version" not in data:
        raise SuiteError([document.fault((), f"found {describe(data)}, expected a report of --llmeval-report")])
    version = data["schema_version"]
    if version != SCHEMA_VERSION:
        message = f"found {version!r}, expected {SCHEMA_VERSION}, the version that this program reads"
        raise SuiteError([document.fault(("schema_version",), message)])
    try:
        report = msgspec.convert(data, RunReport)
    except msgspec.ValidationError as error:
        _, faults = check(_checked(RunReport), data, document, ())
        raise SuiteError(faults or [document.fault((), str(error))]) from None
    for place, suite in enumerate(report.suites):
        for fault in _contradictions(suite, document, ("suites", place)):
            raise SuiteError([fault])
    return completed(report)


@cache
def _checked(kind: Any) -> Any:
    """Return a type of the form as pydantic reads it, whose faults say what was found, and what is expected."""
    if is_form(kind):
        # Required fields come first, as dataclasses want it.
        known = sorted(form_fields(kind).values(), key=lambda each: each.default is not NODEFAULT)
        return make_dataclass(kind.__name__, [_checked_field(each) for each in known if each.key], frozen=True)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        bounds = [part for part in kind.__metadata__ if isinstance(part, Meta)]
        return reduce(lambda part, meta: Annotated[part, _limits(meta)], bounds, _checked(parts[0]))
    if origin in (Union, UnionType):
        # Of a number that is neither whole nor a float, the message says that a number is expected.
        kinds = sorted((each for each in parts if each is not UnsetType), key=_is_whole)
        return reduce(or_, map(_checked, kinds))
    if origin in (Mapping, Sequence, tuple):
        shape: Any = {Mapping: dict, Sequence: list, tuple: tuple}[origin]
        return shape[tuple(_checked(each) for each in parts)]
    return kind


def _checked_field(each: FormField) -> tuple[str, Any, Any]:
    default: Any = {} if each.default is NODEFAULT else {"default_factory": lambda: each.default}
    return each.key, _checked(each.type), field(**default)


def _is_whole(kind: Any) -> bool:
    return kind is int or get_args(kind)[:1] == (int,)


def _limits(meta: Meta) -> Any:
    from pydantic import Field

    return Field(ge=meta.ge, le=meta.le)


def _contradictions(suite: SuiteReport, document: Document, place: tuple[str | int, ...]) -> Iterator[Fault]:
    """Yield what has the right form and yet makes no sense."""
    ids: set[str] = set()
    for number, case in enumerate(suite.cases):
        if case.id in ids:
            yield document.fault((*place, "cases", number, "id"), f"found {case.id!r} twice, expected it once")
        ids.add(case.id)
    for number, bucket in enumerate(suite.error_buckets):
        for row, name in enumerate(bucket.cases):
            if name not in ids:
                at = (*place, "error_buckets", number, "cases", row)
                yield document.fault(at, f"found {name!r}, expected the id of a case of the suite")
    for number, table in enumerate(suite.tables):
        for row, cells in enumerate(table.rows):
            if len(cells) != len(table.headers):
                message = f"found {len(cells)} cells, expected {len(table.headers)} as in the headers"
                yield document.fault((*place, "tables", number, "rows", row), message)


def completed(report: RunReport) -> RunReport:
    """Return a report with what follows from its other fields: counts, pass rates, and which texts it has."""
    texts = any(_has_texts(case) for suite in report.suites for case in suite.cases)
    suites = [_suite(each, texts=texts) for each in report.suites]
    return structs.replace(report, suites=suites)


def _has_texts(case: CaseReport) -> bool:
    return not (case.input is None and case.expected is None and case.prediction is UNSET and not case.judgings)


def _suite(suite: SuiteReport, *, texts: bool) -> SuiteReport:
    """Complete a suite.

    Args:
        suite: As the file has it.
        texts: Whether the report has the texts of any case; then it has those of all failing ones.
    """
    label = suite.clusters.label if suite.clusters else None
    every = any(_has_texts(each) and each.outcome not in FAILING for each in suite.cases)
    cases = [
        structs.replace(
            each,
            labels={**each.labels, label: each.cluster} if label and each.cluster is not None else each.labels,
            has_texts=_has_texts(each) or every or (texts and each.outcome in FAILING),
        )
        for each in suite.cases
    ]
    counts = {**counts_of(cases, max(suite.counts.get("total", 0), len(cases)), suite.stop), **suite.counts}
    rates = pass_rates(structs.replace(suite, cases=cases))
    groups: dict[str, dict[str, GroupReport]] = {}
    for key, members in suite.groups.items():
        rated = {name: {"pass_rate": group.pass_rate} for name, group in rates.groups[key].items()}
        groups[key] = {name: structs.replace(each, **rated.get(name, {})) for name, each in members.items()}
    return structs.replace(
        suite,
        counts=counts,
        cases=cases,
        groups=groups,
        pass_rate=rates.pass_rate,
        tables=list(map(_table, suite.tables)),
        buckets=suite.error_buckets,
    )


def pass_rates(suite: SuiteReport) -> Result:
    """Return pass rates of a suite and its groups by the formula of a run: a report leaves them to its readers."""
    records = [
        CaseRecord(
            each.id,
            each.labels,
            each.outcome,
            errors={"": ""} if each.ran else {},  # counts as tried
            reason=each.reason,
        )
        for each in suite.cases
    ]
    label = suite.clusters.label if suite.clusters else None
    faulty = max(0, suite.counts.get("total", 0) - len(records))
    return summarize({}, records, group_by=list(suite.groups), cluster_by=label, faulty=faulty)


def _table(table: FilledTable) -> FilledTable:
    """Complete a table; its first columns of text are taken for the names of its rows."""
    columns = [all(isinstance(cell, str) for cell in cells) for cells in zip(*table.rows, strict=True)]
    names = next((place for place, is_text in enumerate(columns) if not is_text), len(columns))
    return structs.replace(table, names=max(1, names), is_matrix=bool(table.cases))
