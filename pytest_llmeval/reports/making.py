"""Reports made from the results of suites: cases with their texts, buckets of errors, the worst cases."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from msgspec import UNSET, structs

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.evaluator import ErrorBucket
from pytest_llmeval.core.results import AnswerShown, CaseRecord, CaseResult, GroupResult, MetricIndex, Result
from pytest_llmeval.gates.contract import GateResult
from pytest_llmeval.reports.form import (
    FAILING,
    AnswerReport,
    BucketReport,
    CaseReport,
    GroupReport,
    JudgingReport,
    RunReport,
    RunStart,
    StopReport,
    SuiteReport,
    SystemsReport,
    WorstCase,
    WorstCases,
    counts_of,
)
from pytest_llmeval.reports.mutation import Survival

ReportedTexts: TypeAlias = Literal["none", "failing", "all"]
"""Cases whose texts are in reports."""

TEXTS: tuple[ReportedTexts, ...] = get_args(ReportedTexts)

_WORST = 5
_OWN_DETAILS = ("repeats", "undefined")
"""Details of the run itself, which quote nothing but where repeats part."""

_PARTING = "parts_at"

_NOTHING: tuple[Any, ...] = (None, [], {})
_SLACK = 1e-6
"""Official scorers of pairs stay just below the best score."""


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
    buckets: Sequence[tuple[BucketReport, bool]] = (),
    **more: Any,
) -> SuiteReport:
    """Return the report of a suite.

    Args:
        suite: Name, with the variant in brackets.
        path: The file, relative to pytest's rootdir.
        result: Its metrics.
        gates: Verdicts on gates.
        total: Number of cases in the file.
        confidence: Confidence level of the intervals.
        cases: Its cases; default: those of the result, without texts.
        stop: What it left out because its gates were decided; ``None`` if it did not stop.
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
        groups={
            key: {name: _group(group) for name, group in members.items()} for key, members in result.groups.items()
        },
        cases=cases,
        error_buckets=[bucket for bucket, is_general in buckets if not is_general],
        buckets=[bucket for bucket, _ in buckets],
        confidence=confidence,
        pass_rate=result.pass_rate,
        figures=result.usage,
        **more,
    )


def run_report(
    started_at: str,
    duration_s: float,
    version: str,
    commit: str | None,
    suites: Sequence[SuiteReport] = (),
    faults: Mapping[str, Sequence[str]] | None = None,
    systems: Sequence[SystemsReport] = (),
    mutation: Sequence[Survival] = (),
) -> RunReport:
    """Return the report of a run; see `RunStart` and `RunReport`."""
    start = RunStart(started_at, duration_s, version, commit)
    return RunReport(run=start, suites=suites, systems=systems, mutation=mutation, faults=faults or {})


def _group(group: GroupResult) -> GroupReport:
    return GroupReport(group.cases, group.metrics, group.pass_rate, group.usage)


def case_reports(
    result: Result, cases: Iterable[Case] = (), texts: ReportedTexts = "failing", files: Mapping[str, str] | None = None
) -> list[CaseReport]:
    """Return the cases of a suite.

    Args:
        result: Of the suite.
        cases: Its cases; those with answers have their texts as reports show them.
        texts: Which cases have their texts; ``none`` drops the findings as well, which quote them.
        files: Case id to data file, for cases outside the suite file.
    """
    by_id = {each.id: each for each in cases}
    label = result.clusters.label if result.clusters else ""
    return [
        _case(scores, record, by_id.get(record.id), label, texts, (files or {}).get(record.id, ""))
        for scores, record in zip(result.cases, result.records, strict=True)
    ]


def _case(
    scores: CaseResult, record: CaseRecord, case: Case | None, label: str, texts: ReportedTexts, file: str
) -> CaseReport:
    plain = CaseReport(
        id=record.id,
        outcome=scores.outcome,
        cluster=record.labels.get(label),
        metrics=scores.metrics,
        details=without_texts(scores.details) if texts == "none" else scores.details,
        reason=scores.reason,
        duration_s=round(scores.duration_s, 6),
        labels=record.labels,
        unmet=scores.unmet,
        line=case.line if case is not None else 0,
        file=file,
    )
    if case is None or texts == "none":
        return plain
    full = structs.replace(
        plain,
        lines=record.lines,
        input=case.input if record.answers else None,
        expected=case.expected if record.answers else None,
        **answer_fields(record.answers),
        judgings=[JudgingReport(**each._asdict()) for each in record.judgings],
        has_texts=True,
    )
    if texts == "all" or record.outcome in FAILING:
        return full
    return structs.replace(plain, lines=record.lines, withheld=full)


def answer_fields(answers: Sequence[AnswerShown]) -> dict[str, Any]:
    """Return the fields of a `CaseReport` that hold its answers."""
    several = len(answers) > 1 or any(each.times > 1 for each in answers)
    return {
        "prediction": answers[0].value if answers else UNSET,
        "several": [AnswerReport(*each) for each in answers] if several else (),
    }


def fill_buckets(metrics: MetricIndex, cases: Sequence[CaseResult]) -> list[tuple[BucketReport, bool]]:
    """Sort cases into the buckets that evaluators define, in their order; a case may be in several.

    Args:
        metrics: Of the suite.
        cases: The scored cases.

    Returns:
        Each bucket, and whether it is that of an evaluator that defines none: the cases whose first metric is less than
        perfect. Only the error analysis shows these.
    """
    filled = []
    for label, evaluator in metrics.evaluators.items():
        own = evaluator.error_buckets()
        for each in own or _imperfect(metrics, label):
            named = structs.replace(each, metric=metrics.full_name(label, each.metric))
            held = [
                case.id for case in cases if each.holds(case.metrics.get(named.metric), case.details.get(label, {}))
            ]
            filled.append((BucketReport(named.name, label, named.metric, named.limit, held), not own))
    return filled


def _imperfect(metrics: MetricIndex, label: str) -> Iterator[ErrorBucket]:
    """Yield the bucket of an evaluator that defines none: its first metric with a best value is worse."""
    for each in metrics.declared[label]:
        metric = each.metric
        best = metric.high if metric.higher_is_better else metric.low
        if best is not None and "[" not in metric.name:
            below, above = (best, None) if metric.higher_is_better else (None, best)
            yield ErrorBucket(f"imperfect_{metric.name}", metric.name, below, above)
            return


def without_texts(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return only the numbers in the details of a case: any text may quote the user's.

    Example:
        >>> without_texts({"fact_check": {"claim": "It is open.", "n": 2, "cited": [{"why": "words"}]}})
        {'fact_check': {'n': 2}}
    """
    kept = {name: each if name in _OWN_DETAILS else _without_texts(each) for name, each in details.items()}
    if isinstance(repeats := kept.get("repeats"), Mapping) and _PARTING in repeats:
        kept["repeats"] = {**repeats, _PARTING: _without_texts(repeats[_PARTING])}
    return {name: each for name, each in kept.items() if each not in _NOTHING}


def _without_texts(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {name: _without_texts(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in _NOTHING}
    if isinstance(value, list | tuple):
        return [each for each in map(_without_texts, value) if each not in _NOTHING]
    return None if isinstance(value, str) else value


def worst_cases(result: Result, metrics: MetricIndex, gated: Iterable[str]) -> WorstCases | None:
    """Return the worst cases by the first metric that a gate judges, or else by the first metric.

    A case with the best possible score is not among them. ``None`` where there is no such case.
    """
    names = [name for name in (*gated, *result.metrics) if name in result.metrics]
    if not names:
        return None
    found = metrics.find(names[0])
    lower = metrics.lower_is_better(names[0])
    best = None if found is None else found.metric.low if lower else found.metric.high
    scored = [(case.id, score) for case in result.cases if (score := case.metrics.get(names[0])) is not None]
    below = [(name, score) for name, score in scored if best is None or abs(score - best) > _SLACK]
    below.sort(key=lambda each: -each[1] if lower else each[1])
    return WorstCases(names[0], [WorstCase(*each) for each in below[:_WORST]]) if below else None
