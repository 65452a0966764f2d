"""Reports from results of suites."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from msgspec import Struct, structs

from pytest_llmeval.core import (
    Case,
    CaseRecord,
    CaseResult,
    ErrorBucket,
    GateResult,
    MetricIndex,
    Result,
    Strengths,
)
from pytest_llmeval.reports._form import (
    EXCUSED,
    FAILING,
    OUTCOMES,
    AffectedReport,
    BucketReport,
    CaseReport,
    GroupReport,
    JudgingReport,
    StopReport,
    SuiteReport,
    WorstCase,
    WorstCases,
)
from pytest_llmeval.reports._tables import (
    Cell,
    FilledTable,
    SystemReport,
    SystemsReport,
    SystemValue,
)

if TYPE_CHECKING:
    from pytest_llmeval.numbers import SystemTable

ReportedTexts: TypeAlias = Literal["none", "failing", "all"]
"""Cases whose texts are in reports."""

_WORST = 5
_MOST_ROWS = 50
_LONGEST = 60
_OWN_DETAILS = ("repeats", "undefined", "abstained")
"""Details of the run itself, which quote nothing but where repeats part."""

_PARTING = "parts_at"

_NOTHING: tuple[Any, ...] = (None, [], {})
_SLACK = 1e-6
"""Official scorers of pairs stay just below the best score."""


_T = TypeVar("_T", bound=Struct)

_SOURCES: dict[tuple[object, ...], Sequence[tuple[int, Sequence[str], Callable[[object], Sequence[Any]]]]] = {}
"""A part of the form, the classes of its sources and other fields to what each source has, and how it is read."""


def _fill_from(form: type[_T], *sources: object, **more: Any) -> _T:
    """Build a part of the report form, each field from the first source that has an attribute of its name.

    Args:
        form: The class.
        sources: Objects such as records.
        more: Fields that differ from the sources.
    """
    kinds = (form, *map(type, sources), *more)
    if kinds not in _SOURCES:  # the same for every case
        left, parts = [name for name in form.__struct_fields__ if name not in more], []
        for place, source in enumerate(sources):
            own = [name for name in left if hasattr(source, name)]
            left = [name for name in left if name not in own]
            if own:
                parts.append((place, own, attrgetter(own[0], *own)))  # which of one name would give no tuple
        _SOURCES[kinds] = parts
    fields = more
    for place, names, read in _SOURCES[kinds]:
        fields.update(zip(names, read(sources[place])[1:], strict=True))
    return form(**fields)


def suite_report(
    suite: str,
    path: str,
    result: Result,
    gates: Sequence[GateResult],
    total: int,
    confidence: float | None = 0.95,
    *,
    cases: Sequence[CaseReport] | None = None,
    stop: StopReport | None = None,
    affected: AffectedReport | None = None,
    buckets: Sequence[tuple[BucketReport, bool]] = (),
    **more: Any,
) -> SuiteReport:
    """The report of a suite, from its result and the verdicts on its gates.

    Args:
        suite: Name, with the variant in brackets.
        path: The file, relative to pytest's rootdir.
        result: Its metrics.
        gates: Verdicts on gates.
        total: Number of cases in the file.
        confidence: Confidence level of the intervals.
        cases: Its cases; default: those of the result, without texts.
        stop: Its early stop; ``None`` if all cases ran.
        affected: Which cases ran because of a change; ``None`` if all were to run.
        buckets: Cases that went wrong; see `fill_buckets`.
        more: Further fields of the report.
    """
    cases = case_reports(result) if cases is None else cases
    return SuiteReport(
        suite=suite,
        path=path,
        gates=gates,
        counts=counts_of(cases, total, stop),
        metrics=result.metrics,
        clusters=result.clusters,
        stop=stop,
        affected=affected,
        groups={
            key: {name: _fill_from(GroupReport, group, figures=group.usage) for name, group in members.items()}
            for key, members in result.groups.items()
        },
        cases=cases,
        error_buckets=[bucket for bucket, is_general in buckets if not is_general],
        buckets=[bucket for bucket, _ in buckets],
        confidence=confidence,
        pass_rate=result.pass_rate,
        figures=result.usage,
        **more,
    )


def complete_report(
    suite: str,
    path: str,
    result: Result,
    gates: Sequence[GateResult],
    total: int,
    confidence: float | None,
    *,
    metrics: MetricIndex,
    cases: Iterable[Case],
    texts: ReportedTexts,
    files: Mapping[str, str],
    contents: Mapping[str, str],
    gated: Iterable[str],
    **more: Any,
) -> SuiteReport:
    """A suite's report with all that its result and cases give: tables, error buckets, ranges and worst cases.

    Args:
        suite: Name, with the variant in brackets.
        path: The file, relative to pytest's rootdir.
        result: Its metrics.
        gates: Verdicts on gates.
        total: Number of cases in the file.
        confidence: Confidence level of the intervals.
        metrics: Of the suite.
        cases: As reports show them.
        texts: Which cases have their texts.
        files: Case id to data file, for cases outside the suite file.
        contents: Case id to the fingerprint of what the case is.
        gated: Metrics that gates judge.
        more: Further fields of the report.
    """
    return suite_report(
        suite,
        path,
        result,
        gates,
        total,
        confidence,
        cases=case_reports(result, cases, texts, files, contents),
        affected=affected_report(result.records),
        buckets=fill_buckets(metrics, result),
        tables=fill_tables(metrics, result),
        lower_is_better=[name for name in result.metrics if metrics.lower_is_better(name)],
        ranges=metrics.ranges(result.metrics),
        worst=worst_cases(result, metrics, gated),
        **more,
    )


def case_reports(
    result: Result,
    cases: Iterable[Case] = (),
    texts: ReportedTexts = "failing",
    files: Mapping[str, str] = {},
    contents: Mapping[str, str] = {},
) -> list[CaseReport]:
    """The reports of a suite's cases, from its result and, for their texts, the cases.

    Args:
        result: Of the suite.
        cases: Its cases; those with answers have their texts as reports show them.
        texts: Which cases have their texts; ``none`` drops the findings as well, which quote them.
        files: Case id to data file, for cases outside the suite file.
        contents: Case id to the fingerprint of what the case is.
    """
    by_id = {case.id: case for case in cases}
    label = result.clusters.label if result.clusters else ""
    return [
        _case(
            scores,
            record,
            by_id.get(record.id),
            label,
            texts,
            file=files.get(record.id, ""),
            content=contents.get(record.id, ""),
        )
        for scores, record in zip(result.cases, result.records, strict=True)
    ]


def _case(
    scores: CaseResult,
    record: CaseRecord,
    case: Case | None,
    label: str,
    texts: ReportedTexts,
    *,
    file: str,
    content: str,
) -> CaseReport:
    """The report of a case; ``texts`` decides whether it shows, withholds or lacks the case's texts."""
    has_texts = case is not None and texts != "none"
    plain = CaseReport(
        id=scores.id,
        outcome=scores.outcome,
        cluster=record.labels.get(label),
        metrics=scores.metrics,
        details=without_texts(scores.details) if texts == "none" else scores.details,
        reason=scores.reason,
        duration_s=round(scores.duration_s, 6),
        labels=record.labels,
        unmet=scores.unmet,
        line=0 if case is None else case.line,
        file=file,
        content=content,
        carried=record.carried,
        cause="" if record.selection is None else record.selection.cause,
        lines=record.lines if has_texts else {},  # which quote texts
    )
    if case is None or not has_texts:
        return plain
    full = structs.replace(plain, has_texts=True)
    if record.answers or record.judgings or record.outcome == "errored":
        shows_question = record.answers or record.outcome == "errored"
        full = structs.replace(
            full,
            input=case.input if shows_question else None,
            expected=case.expected if shows_question else None,
            **CaseReport.answer_fields(record.answers),
            judgings=[JudgingReport(**judging._asdict()) for judging in record.judgings],
        )
    if texts == "all" or record.outcome in FAILING:
        return full
    return structs.replace(plain, withheld=full)


def affected_report(records: Iterable[CaseRecord]) -> AffectedReport | None:
    """The counts in a report of a suite's cases that ran because of a change; ``None`` without such a choice."""
    chosen = [record.selection for record in records if record.selection is not None]
    if not chosen:
        return None
    carried = [selection for selection in chosen if selection.carried]
    causes = Counter(selection.cause for selection in chosen if not selection.carried)
    costs = [selection.saved_usd for selection in carried]
    return AffectedReport(
        chosen[0].since,
        len(chosen) - len(carried),
        len(carried),
        dict(sorted(causes.items(), key=lambda item: (-item[1], item[0]))),
        None if None in costs else math.fsum(cost for cost in costs if cost is not None),
    )


def fill_buckets(metrics: MetricIndex, result: Result) -> list[tuple[BucketReport, bool]]:
    """The cases of a result in the error buckets that evaluators define; a case may be in several.

    Args:
        metrics: Of the suite.
        result: Its numbers.

    Returns:
        Each bucket, and whether it is that of an evaluator that defines none: the cases whose first metric is less than
        perfect. Only the error analysis shows these.
    """
    filled = []
    for label, evaluator in metrics.evaluators.items():
        own = evaluator.error_buckets()
        for bucket in own or _imperfect(metrics, label):
            named = structs.replace(bucket, metric=metrics.full_name(label, bucket.metric))
            cases = [
                record.id
                for record, score in zip(result.records, _scores_of(result, named.metric), strict=True)
                if named.holds(score, seen.details if (seen := record.observations.get(label)) else {})
            ]
            filled.append((_fill_from(BucketReport, named, evaluator=label, cases=cases), not own))
    return filled


def _scores_of(result: Result, metric: str) -> list[float | None]:
    """The score of each case of a result by a metric; ``None`` for a case without one."""
    column = result.case_scores.get(metric)
    if column is None:
        return [None] * len(result.records)
    return [score if math.isfinite(score) else None for score in column.tolist()]


def _imperfect(metrics: MetricIndex, label: str) -> Iterator[ErrorBucket]:
    """Yield the error bucket of an evaluator that defines none: its first metric is worse than its best value."""
    for entry in metrics.declared[label]:
        metric = entry.metric
        best = metric.high if metric.higher_is_better else metric.low
        if best is not None and "[" not in metric.name:
            below, above = (best, None) if metric.higher_is_better else (None, best)
            yield ErrorBucket(f"imperfect_{metric.name}", metric.name, below, above)
            return


def without_texts(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """The numbers in a case's details, for reports without texts: any text may quote the user's.

    Example:
        >>> without_texts({"fact_check": {"claim": "It is open.", "n": 2, "cited": [{"why": "words"}]}})
        {'fact_check': {'n': 2}}
    """
    numbers = {name: detail if name in _OWN_DETAILS else _without_texts(detail) for name, detail in details.items()}
    if isinstance(repeats := numbers.get("repeats"), Mapping) and _PARTING in repeats:
        numbers["repeats"] = {**repeats, _PARTING: _without_texts(repeats[_PARTING])}
    return {name: number for name, number in numbers.items() if number not in _NOTHING}


def _without_texts(value: Any) -> Any:
    """The numbers in a detail of a case, at any depth, for reports without texts."""
    if isinstance(value, Mapping):
        numbers = {name: _without_texts(part) for name, part in value.items()}
        return {name: number for name, number in numbers.items() if number not in _NOTHING}
    if isinstance(value, list | tuple):
        return [part for part in map(_without_texts, value) if part not in _NOTHING]
    return None if isinstance(value, str) else value


def worst_cases(result: Result, metrics: MetricIndex, gated: Iterable[str]) -> WorstCases | None:
    """A result's worst cases by the first metric that a gate judges, or else by the first metric.

    Cases with the best possible score are left out; ``None`` if no others are left.
    """
    names = [name for name in (*gated, *result.metrics) if name in result.metrics]
    if not names:
        return None
    owned = metrics.find(names[0])
    lower = metrics.lower_is_better(names[0])
    best = None if owned is None else owned.metric.low if lower else owned.metric.high
    below = [
        (record.id, score)
        for record, score in zip(result.records, _scores_of(result, names[0]), strict=True)
        if score is not None and (best is None or abs(score - best) > _SLACK)
    ]
    below.sort(key=lambda pair: -pair[1] if lower else pair[1])
    return WorstCases(names[0], [WorstCase(*pair) for pair in below[:_WORST]]) if below else None


def fill_tables(metrics: MetricIndex, result: Result) -> list[FilledTable]:
    """The report tables that a suite's evaluators declare, filled, without tables that have no rows.

    Args:
        metrics: Of the suite.
        result: Its numbers.
    """
    declared = {label: tables for label, evaluator in metrics.evaluators.items() if (tables := evaluator.tables())}
    if not declared:
        return []
    from pytest_llmeval.reports._filling import fill_declared

    return fill_declared(declared, metrics, result)


def join_tables(systems: Mapping[str, Sequence[FilledTable]]) -> list[FilledTable]:
    """A suite's report tables with one column of metrics, joined: a column for each system.

    Args:
        systems: System to the tables of its results.
    """
    joined = []
    for table in next(iter(systems.values()), ()):
        if len(table.headers) != table.names + 1 or not table.metrics:
            continue
        columns = {name: _column(table, tables) for name, tables in systems.items()}
        names = [tuple(row[: table.names]) for row in table.rows]
        rows = [(*name, *(column.get(name) for column in columns.values())) for name in names]
        joined.append(structs.replace(table, headers=(*table.headers[: table.names], *columns), rows=rows))
    return joined


def _column(table: FilledTable, among: Iterable[FilledTable]) -> dict[tuple[Cell, ...], Cell]:
    """The numbers of a system by row name, from its report table with the same title and headers."""
    same = (other for other in among if (other.title, other.headers) == (table.title, table.headers))
    return {tuple(row[: table.names]): row[-1] for other in same for row in other.rows}


def systems_report(
    suite: str,
    path: str,
    table: "SystemTable",
    compare_by: Sequence[str],
    tables: Mapping[str, Sequence[FilledTable]] = {},
    strengths: Sequence[Strengths] = (),
) -> SystemsReport:
    """The report that compares the systems of a suite side by side.

    Args:
        suite: Name of the suite.
        path: The file, relative to pytest's rootdir.
        table: Values and differences.
        compare_by: Metrics that reports list first, and by group.
        tables: System to the tables of its results.
        strengths: Strengths of the systems, for each evaluator that compared them in pairs.
    """
    return SystemsReport(
        suite=suite,
        path=path,
        reference=table.reference,
        confidence=table.confidence,
        compare_by=compare_by,
        strengths=strengths,
        systems=[_system(name, table, compare_by) for name in table.results],
        joined=join_tables(tables),
    )


def _system(name: str, table: "SystemTable", compare_by: Sequence[str]) -> SystemReport:
    """The report of one system of a suite: its metrics, differences from the reference, and groups."""
    result = table.results[name]
    values = {metric: value for metric in table.metrics if (value := result.find(metric)) is not None}
    groups = {
        label: {
            name: {metric: None if (value := group.find(metric)) is None else value.value for metric in compare_by}
            for name, group in groups.items()
        }
        for label, groups in result.groups.items()
    }
    metrics = {metric: _fill_from(SystemValue, value) for metric, value in values.items()}
    return SystemReport(name, len(result.records), metrics, table.differences.get(name, {}), groups)


_RARE = (*EXCUSED, "scored", "not_scored", "not_needed")
"""Outcomes that are counted only if a case has them."""


def counts_of(cases: Iterable[CaseReport], total: int, stop: StopReport | None = None) -> dict[str, int]:
    """The number of a suite's cases by outcome, for its report.

    Args:
        cases: Those of which something is known.
        total: Number of cases in the file, faulty ones included.
        stop: What was left out because all gates were decided.
    """
    seen: Counter[str] = Counter(case.outcome for case in cases)
    outcomes = (outcome for outcome in OUTCOMES if seen[outcome] or outcome not in _RARE)
    counts = {"total": total, **{outcome: seen[outcome] for outcome in outcomes}}
    counts["not_run"] += total - seen.total()
    if stop is not None:
        counts["not_run"] -= stop.not_needed
        counts["not_needed"] = stop.not_needed
    return counts
