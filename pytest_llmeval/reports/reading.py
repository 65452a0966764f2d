"""JSON reports read back as the `RunReport` that they were written from.

A JSON report lacks some things that a run knows: counts of cases (so nothing can be resampled), the confidence of
intervals, which metrics the tables of evaluators show, tables with a column per system, and usage as metrics.
"""

__all__ = ("read_report",)

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import Field

from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.core.parts import MISSING
from pytest_llmeval.core.results import (
    PASS_RATE,
    AnswerShown,
    CaseOutcome,
    CaseRecord,
    CaseResult,
    Clusters,
    GroupResult,
    JudgingShown,
    MetricValue,
    Result,
)
from pytest_llmeval.data.files.documents import Document, load_json
from pytest_llmeval.data.files.validation import check, describe
from pytest_llmeval.gates.limits import ChangeKind, GateOutcome, GateResult, SnapshotVerdict
from pytest_llmeval.gates.statistics.compare import Against, Difference, SystemRow, SystemTable
from pytest_llmeval.gates.statistics.strengths import Strength, Strengths
from pytest_llmeval.reports.form import FilledBucket, RunReport, SampleReport, StopReport, SuiteReport
from pytest_llmeval.reports.json import SCHEMA_VERSION
from pytest_llmeval.reports.mutation import GateNotice, KindOutcome, Survival
from pytest_llmeval.reports.notes import CaseNote, WorstCases
from pytest_llmeval.reports.systems import SystemsReport
from pytest_llmeval.reports.tables import FilledTable
from pytest_llmeval.scoring.summary import summarize
from pytest_llmeval.scoring.usage import CascadeUse, JudgeUsage, Money, UsageReport

_AnyNumber: TypeAlias = float | int
_Score: TypeAlias = Annotated[float | int, Field(ge=-1e100, le=1e100)]
"""The sums and squares of larger numbers would be infinite."""

_NOT_RUN = ("skipped", "not_run")
_FAILING = ("failed", "errored", "xfailed", "known_failure")

# The form of the file, declared apart from the classes of a run, whose fields may be renamed without changing it.
# Keys with a default are absent where there is nothing to say, or in reports of earlier versions.


@dataclass(frozen=True)
class _MetricForm:
    value: _AnyNumber | None
    mean: _AnyNumber | None
    low: _AnyNumber | None
    high: _AnyNumber | None
    scored: int
    undefined: int
    errored: int
    missing: int
    signature: str = ""
    reason: str = ""


@dataclass(frozen=True)
class _GroupForm:
    cases: int
    metrics: dict[str, _MetricForm]


@dataclass(frozen=True)
class _ClustersForm:
    label: str
    count: int = 0
    design_effects: dict[str, _AnyNumber] = field(default_factory=dict)


@dataclass(frozen=True)
class _GateForm:
    gate: str
    outcome: GateOutcome
    value: _AnyNumber | None = None
    limit: _AnyNumber | None = None
    reason: str = ""
    line: int = 0
    low: _AnyNumber | None = None
    high: _AnyNumber | None = None
    undecided: bool = False


@dataclass(frozen=True)
class _VerdictForm:
    metric: str
    outcome: Literal["passed", "failed", "not_judged"]
    kind: str = ""
    value: _AnyNumber | None = None
    approved: _AnyNumber | None = None
    reason: str = ""


@dataclass(frozen=True)
class _JurorForm:
    verdicts: int = 0
    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: _AnyNumber | None = None


@dataclass(frozen=True)
class _CascadeForm:
    audit: _AnyNumber
    verdicts: int
    unsure: int
    audited: int
    differing: int


@dataclass(frozen=True)
class _UsageForm(_JurorForm):
    latency_s: dict[str, _AnyNumber] | None = None
    target_latency_s: dict[str, _AnyNumber] | None = None
    target_tokens: _AnyNumber | None = None
    target_cost_usd: _AnyNumber | None = None
    jurors: dict[str, _JurorForm] = field(default_factory=dict)
    cascades: dict[str, _CascadeForm] = field(default_factory=dict)


@dataclass(frozen=True)
class _MoneyForm:
    spent: dict[str, _AnyNumber | None]
    saved: dict[str, _AnyNumber | None]


@dataclass(frozen=True)
class _TableForm:
    headers: list[str]
    rows: list[list[str | float | int | None]]
    title: str = ""
    cases: list[tuple[int, int, list[str]]] = field(default_factory=list)
    left_out: int = 0
    note: str = ""


@dataclass(frozen=True)
class _BucketForm:
    bucket: str
    evaluator: str = ""
    metric: str = ""
    limit: str = ""
    cases: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _ScoreForm:
    id: str
    score: _AnyNumber


@dataclass(frozen=True)
class _WorstForm:
    metric: str
    cases: list[_ScoreForm]


@dataclass(frozen=True)
class _AnswerForm:
    prediction: Any
    times: int = 1
    passed: int | None = None


@dataclass(frozen=True)
class _JudgingForm:
    evaluator: str
    mode: str = ""
    question: dict[str, str] = field(default_factory=dict)
    reply: str = ""
    score: _AnyNumber | None = None
    cost_usd: _AnyNumber | None = None
    judge: str = ""


@dataclass(frozen=True)
class _CaseForm:
    id: str
    outcome: CaseOutcome
    metrics: dict[str, _Score | None] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None
    unmet: list[str] = field(default_factory=list)
    duration_s: _AnyNumber = 0.0
    cluster: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    line: int = 0
    file: str = ""
    lines: dict[str, list[str]] = field(default_factory=dict)
    input: Any = None
    expected: Any = None
    prediction: Any = MISSING
    answers: list[_AnswerForm] = field(default_factory=list)
    judgings: list[_JudgingForm] = field(default_factory=list)

    @property
    def has_texts(self) -> bool:
        return not (self.input is None and self.expected is None and self.prediction is MISSING and not self.judgings)


@dataclass(frozen=True)
class _StopForm:
    cases: int
    not_needed: int
    ran_ahead: int = 0
    confidence: _AnyNumber = 0.99
    judge_calls: int = 0
    answers: int = 0
    cost_usd: _AnyNumber | None = None


@dataclass(frozen=True)
class _SampleForm:
    cases: int
    of: int
    by: str | None = None
    weighted: bool = False


@dataclass(frozen=True)
class _SuiteForm:
    suite: str
    path: str
    counts: dict[str, int]
    metrics: dict[str, _MetricForm]
    cases: list[_CaseForm]
    variant: str = ""
    lower_is_better: list[str] = field(default_factory=list)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    clusters: _ClustersForm | None = None
    shared_inputs: int = 0
    left_out: int = 0
    sample: _SampleForm | None = None
    stop: _StopForm | None = None
    usage: _UsageForm | None = None
    money: _MoneyForm | None = None
    groups: dict[str, dict[str, _GroupForm]] = field(default_factory=dict)
    tables: list[_TableForm] = field(default_factory=list)
    gates: list[_GateForm] = field(default_factory=list)
    snapshot: list[_VerdictForm] = field(default_factory=list)
    worst: _WorstForm | None = None
    error_buckets: list[_BucketForm] = field(default_factory=list)


@dataclass(frozen=True)
class _ValueForm:
    value: _AnyNumber | None
    low: _AnyNumber | None = None
    high: _AnyNumber | None = None


@dataclass(frozen=True)
class _AgainstForm:
    value: _AnyNumber | None
    baseline: _AnyNumber | None
    difference: _AnyNumber | None
    low: _AnyNumber | None
    high: _AnyNumber | None
    cases: int
    p_value: _AnyNumber | None
    wins: int
    ties: int
    losses: int
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _SystemForm:
    system: str
    cases: int
    metrics: dict[str, _ValueForm]
    differences: dict[str, _AgainstForm] = field(default_factory=dict)
    groups: dict[str, dict[str, dict[str, _AnyNumber | None]]] = field(default_factory=dict)


@dataclass(frozen=True)
class _StrengthForm:
    system: str
    value: _AnyNumber
    low: _AnyNumber | None = None
    high: _AnyNumber | None = None


@dataclass(frozen=True)
class _StrengthsForm:
    label: str
    systems: list[_StrengthForm]
    ties: _AnyNumber
    pairs: int
    cases: int


@dataclass(frozen=True)
class _SystemsForm:
    suite: str
    path: str
    reference: str
    confidence: float
    compare_by: list[str]
    systems: list[_SystemForm]
    strengths: list[_StrengthsForm] = field(default_factory=list)


@dataclass(frozen=True)
class _StartForm:
    started_at: str = ""
    duration_s: _AnyNumber = 0.0
    version: str = ""
    commit: str | None = None


@dataclass(frozen=True)
class _KindForm:
    name: str
    mutants: int
    survived: int
    why: str = ""
    advice: str = ""
    undecided: int = 0
    low: _AnyNumber | None = None
    high: _AnyNumber | None = None
    by_evaluator: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _NoticeForm:
    gate: str
    share: _AnyNumber | None = None
    sure_share: _AnyNumber | None = None
    never: bool = False
    power: dict[str, _AnyNumber] = field(default_factory=dict)
    unjudged: str = ""


@dataclass(frozen=True)
class _SurvivalForm:
    suite: str
    path: str = ""
    kinds: list[_KindForm] = field(default_factory=list)
    rewrites: list[_KindForm] = field(default_factory=list)
    gates: list[_NoticeForm] = field(default_factory=list)
    blind_cases: list[str] = field(default_factory=list)
    idle_limits: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    constant: str | None = None
    answers: int = 0
    seed: int = 0


@dataclass(frozen=True)
class _RunForm:
    suites: list[_SuiteForm]
    run: _StartForm = _StartForm()
    systems: list[_SystemsForm] = field(default_factory=list)
    faults: dict[str, list[str]] = field(default_factory=dict)
    mutation: list[_SurvivalForm] = field(default_factory=list)


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
    form, faults = check(_RunForm, data, document, ())
    if faults:
        raise SuiteError(faults)
    assert isinstance(form, _RunForm)
    for place, suite in enumerate(form.suites):
        for fault in _contradictions(suite, document, ("suites", place)):
            raise SuiteError([fault])
    start = form.run
    texts = any(case.has_texts for suite in form.suites for case in suite.cases)
    suites = [_suite(each, texts=texts) for each in form.suites]
    systems = [_systems(each, suites) for each in form.systems]
    run = (start.started_at, start.duration_s, start.version, start.commit)
    return RunReport(*run, suites, form.faults, systems, list(map(_survival, form.mutation)))


def _survival(form: _SurvivalForm) -> Survival:
    named = {name: [KindOutcome(**vars(each)) for each in getattr(form, name)] for name in ("kinds", "rewrites")}
    return Survival(**{**vars(form), **named, "gates": [GateNotice(**vars(each)) for each in form.gates]})


def _contradictions(suite: _SuiteForm, document: Document, place: tuple[str | int, ...]) -> Iterator[Fault]:
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


def _suite(form: _SuiteForm, *, texts: bool) -> SuiteReport:
    """Build the report of a suite.

    Args:
        form: As the file has it.
        texts: Whether the report has the texts of any case; then it has those of all failing ones.
    """
    cases = [
        CaseResult(each.id, each.outcome, each.metrics, each.details, each.reason, each.duration_s, each.unmet)
        for each in form.cases
    ]
    by_id = {each.id: each for each in cases}
    every = any(each.has_texts and each.outcome not in _FAILING for each in form.cases)
    gates = [
        GateResult(
            each.gate,
            each.outcome,
            each.value,
            each.limit,
            each.reason,
            None if each.low is None or each.high is None else (each.low, each.high),
            each.line,
            each.undecided,
        )
        for each in form.gates
    ]
    return SuiteReport(
        form.suite,
        form.path,
        _result(form, cases),
        gates,
        max(form.counts.get("total", 0), len(cases)),
        usage=None if form.usage is None else _usage(form.usage),
        money=None if form.money is None else Money.from_parts({**form.money.spent, **form.money.saved}),
        snapshot=[
            SnapshotVerdict(
                each.metric, cast(ChangeKind, each.kind), each.outcome, each.value, each.approved, each.reason
            )
            for each in form.snapshot
        ],
        buckets=[
            FilledBucket(each.bucket, each.metric, each.limit, each.evaluator, [by_id[name] for name in each.cases])
            for each in form.error_buckets
        ],
        tables=[_table(each) for each in form.tables],
        lower_is_better=form.lower_is_better,
        ranges=form.ranges,
        shared_inputs=form.shared_inputs,
        notes={
            each.id: _note(each, has_texts=each.has_texts or every or (texts and each.outcome in _FAILING))
            for each in form.cases
        },
        worst=None
        if form.worst is None
        else WorstCases(form.worst.metric, {each.id: each.score for each in form.worst.cases}),
        left_out=form.left_out,
        variant=form.variant,
        recorded_counts=form.counts,
        sample=None if form.sample is None else SampleReport(**vars(form.sample)),
        stop=None if form.stop is None else StopReport(**vars(form.stop)),
    )


def _result(form: _SuiteForm, cases: Sequence[CaseResult]) -> Result:
    """Build the result of a suite, with pass rates by the formula of a run: the file leaves them to its readers."""
    label = form.clusters.label if form.clusters else None
    records = [
        CaseRecord(
            each.id,
            each.labels | ({label: each.cluster} if label and each.cluster is not None else {}),
            each.outcome,
            errors={} if each.outcome in _NOT_RUN else {"": ""},  # something was tried, whatever came of it
            reason=each.reason,
            duration_s=each.duration_s,
        )
        for each in form.cases
    ]
    faulty = max(0, form.counts.get("total", 0) - len(cases))
    passed = summarize({}, records, group_by=list(form.groups), cluster_by=label, faulty=faulty)

    def group(key: str, name: str, each: _GroupForm) -> GroupResult:
        known = passed.groups[key].get(name)
        metrics = {metric: MetricValue(**vars(value)) for metric, value in each.metrics.items()}
        return GroupResult(each.cases, metrics, known.pass_rate if known else _value(None))

    return replace(
        passed,
        metrics={name: MetricValue(**vars(each)) for name, each in form.metrics.items()},
        groups={
            key: {name: group(key, name, each) for name, each in members.items()}
            for key, members in form.groups.items()
        },
        cases=cases,
        clusters=None if form.clusters is None else Clusters(**vars(form.clusters)),
    )


def _note(form: _CaseForm, *, has_texts: bool) -> CaseNote:
    answers = [AnswerShown(each.prediction, each.times, each.passed) for each in form.answers]
    if form.prediction is not MISSING and not answers:
        answers = [AnswerShown(form.prediction)]
    judgings = [JudgingShown(**vars(each)) for each in form.judgings]
    return CaseNote(form.line, form.file, form.lines, form.input, form.expected, answers, judgings, has_texts=has_texts)


def _table(form: _TableForm) -> FilledTable:
    """Build a table; its first columns of text are taken for the names of its rows."""
    columns = [all(isinstance(cell, str) for cell in cells) for cells in zip(*form.rows, strict=True)]
    names = next((place for place, is_text in enumerate(columns) if not is_text), len(columns))
    return FilledTable(
        form.title,
        form.headers,
        form.rows,
        frozenset(),
        form.left_out,
        form.note,
        max(1, names),
        is_matrix=bool(form.cases),
        cases={(row, column): ids for row, column, ids in form.cases},
    )


def _usage(form: _UsageForm) -> UsageReport:
    jurors = {name: JudgeUsage(**vars(each)) for name, each in form.jurors.items()}
    cascades = {name: CascadeUse(**vars(each)) for name, each in form.cascades.items()}
    return UsageReport(**{**vars(form), "jurors": jurors, "cascades": cascades})


def _systems(form: _SystemsForm, suites: Sequence[SuiteReport]) -> SystemsReport:
    lower = {name for each in suites if each.path == form.path for name in each.lower_is_better}
    names = dict.fromkeys(name for row in form.systems for name in row.metrics if name != PASS_RATE)
    rows = [SystemRow(each.system, _of_system(each), _against(each, lower)) for each in form.systems]
    table = SystemTable(form.reference, [*names, PASS_RATE], rows, form.confidence)
    strengths = [
        Strengths(**{**vars(each), "systems": [Strength(**vars(one)) for one in each.systems]})
        for each in form.strengths
    ]
    return SystemsReport(form.suite, form.path, table, form.compare_by, (), strengths)


def _of_system(form: _SystemForm) -> Result:
    """Build as much of the result of a system as tables of systems show."""
    metrics = {name: _value(each.value, each.low, each.high) for name, each in form.metrics.items()}
    groups: dict[str, dict[str, GroupResult]] = {}
    for key, members in form.groups.items():
        groups[key] = {}
        for name, values in members.items():
            found = {metric: _value(value) for metric, value in values.items() if value is not None}
            groups[key][name] = GroupResult(0, found, found.get(PASS_RATE, _value(None)))
    return Result(metrics, groups, (), metrics.get(PASS_RATE, _value(None)), records=[CaseRecord("")] * form.cases)


def _value(value: float | None, low: float | None = None, high: float | None = None) -> MetricValue:
    """Return a metric of which no counts are known."""
    return MetricValue(value, None, low, high, 0, 0, 0, 0)


def _against(form: _SystemForm, lower_is_better: set[str]) -> dict[str, Against]:
    found = {}
    for name, each in form.differences.items():
        difference = Difference(
            each.value,
            each.baseline,
            each.difference,
            each.low,
            each.high,
            None,
            each.cases,
            each.cases,
            name not in lower_is_better,
            None,
            tuple(each.notes),
        )
        found[name] = Against(difference, each.p_value, each.wins, each.ties, each.losses)
    return found
