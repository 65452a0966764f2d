"""The report of a run.

A field stands where the JSON has it, and is left out where it has its default, if the class says ``omit_defaults``.
`WrittenField` marks exceptions. Fields whose JSON name is in parentheses serve reports of a run that has just ended:
they are never written, and reading a report fills in those that follow from the others.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, ValidationError, convert, field, structs, to_builtins

from pytest_llmeval.core import (
    Abstention,
    AnswerShown,
    AnyNumber,
    Case,
    CaseLabels,
    CaseOutcome,
    CaseRecord,
    CaseResult,
    ChangeVerdict,
    Clusters,
    ErrorBucket,
    Fault,
    GateResult,
    MediaRun,
    Metric,
    MetricChange,
    MetricIndex,
    MetricValue,
    Result,
    SnapshotVerdict,
    Strengths,
    SuiteError,
    SystemDifference,
    WrittenField,
    as_line,
    counted,
)
from pytest_llmeval.data import DeclaredType, Document, InputFile, OutputFolder, describe
from pytest_llmeval.numbers import Money, UsageReport, summarize
from pytest_llmeval.reports._survival import Survival
from pytest_llmeval.reports._tables import Cell, FilledTable, Line, Timeline

if TYPE_CHECKING:
    from pytest_llmeval.numbers import SystemTable

ReportedTexts: TypeAlias = Literal["none", "failing", "all"]
"""Cases whose texts are in reports."""

_WORST = 5
_OWN_DETAILS = ("repeats", "undefined", "abstained")
"""Details of the run itself, which quote nothing but where repeats part."""

_PARTING = "parts_at"

_NOTHING: tuple[Any, ...] = (None, [], {})
_SLACK = 1e-6
"""Official scorers of pairs stay just below the best score."""


_LARGEST = 10**18
BoundedScore: TypeAlias = Annotated[float, Meta(ge=-1e100, le=1e100)] | Annotated[int, Meta(ge=-_LARGEST, le=_LARGEST)]
"""The score of a case; the sums and squares of larger numbers would be infinite."""

OUTCOMES = (
    "passed",
    "scored",
    "failed",
    "errored",
    "xfailed",
    "known_failure",
    "not_scored",
    "skipped",
    "not_run",
    "not_needed",
)
EXCUSED = ("xfailed", "known_failure")
"""Outcomes of cases that failed, as was expected or approved: no failure of the run, and no pass either."""

FAILING = (*CaseRecord.BAD, *EXCUSED)
RunVerdict: TypeAlias = Literal["failed", "incomplete", "undecided", "passed"]
"""The verdict on a suite or a run, the worst first: ``incomplete`` if a case did not run, a gate was not evaluated,
or no case has a score."""

STATUSES = ("stable pass", "flaky", "stable fail", "error")


def count_text(count: int, outcome: str) -> str:
    """A count of cases or verdicts with an outcome in a report's words, such as ``2 not run``.

    >>> count_text(2, "not_run"), count_text(2, "known_failure"), count_text(1, "not_judged")
    ('2 not run', '2 known failures', '1 not evaluated')
    """
    word = "not evaluated" if outcome == "not_judged" else outcome.replace("_", " ")
    return f"{count} {word}{'s' if outcome == 'known_failure' and count != 1 else ''}"


UNKNOWN = MetricValue(None, None, None, None, 0, 0, 0, 0)
"""A metric of which nothing is known."""


_TEXT_KEYS = ("answer", "question", "text")


def _said_text(value: Any) -> str:
    """A question or an answer of a reported case as one line; of an object its text, if it has one.

    >>> _said_text({"question": "How long?", "customer": 7})
    'How long?'
    """
    if isinstance(value, Mapping):
        texts = [text for text in value.values() if isinstance(text, str)]
        named = [value[name] for name in _TEXT_KEYS if isinstance(value.get(name), str)]
        value = next(iter(named or (texts if len(texts) == 1 else [])), value)
    return as_line(value, most=10**9)


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


class AnswerReport(Struct, frozen=True, omit_defaults=True):
    """An answer to a case in a report, with the number of repeats that gave it.

    Attributes:
        value: The prediction.
        times: How many repeats gave it.
        passed: How many of these passed; ``None`` if there are no repeats, or that is not known.
    """

    value: Any = field(name="prediction")
    times: Annotated[int, WrittenField.ALWAYS] = 1
    passed: int | None = None

    @property
    def failed(self) -> int:
        """The number of repeats that gave the answer and did not pass, as far as known."""
        return self.times - (self.passed or 0)

    @property
    def text(self) -> str:
        """The answer as one line; of an object its text, if it has one."""
        return _said_text(self.value)


class JudgingReport(Struct, frozen=True, omit_defaults=True):
    """A question that an evaluator asked a judge about a case, with the judge's reply.

    Attributes:
        evaluator: Label of the evaluator that asks.
        mode: How it is judged.
        question: Field name to text, as the judge gets them.
        reply: The judge's reply, or the reason for a missing verdict.
        score: ``None`` without a verdict.
        cost_usd: Of the call, now or when it was made; ``None`` where that is not known.
        judge: The juror, where a panel judges.
    """

    evaluator: str
    mode: Annotated[str, WrittenField.ALWAYS] = ""
    question: Annotated[Mapping[str, str], WrittenField.ALWAYS] = field(default_factory=dict)
    reply: Annotated[str, WrittenField.ALWAYS] = ""
    score: Annotated[AnyNumber | None, WrittenField.ALWAYS] = None
    cost_usd: Annotated[AnyNumber | None, WrittenField.ALWAYS] = None
    judge: str = ""


class CaseReport(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A case in the report of a suite: its outcome, scores and, if shown, texts.

    Attributes:
        id: Its id.
        outcome: Its outcome.
        cluster: Its cluster, if cases are clustered.
        metrics: Metric to score.
        details: Evaluator label to its findings. ``undefined``, ``abstained`` and ``errors``: metric to reason.
            and ``repeats``: ``times``, ``passed``, ``pass_rate``, ``status``, ``flakiness``, ``spread``, and
            ``parts_at``, the first step at which they differ.
        reason: Why it failed, was skipped or did not run.
        duration_s: Seconds that it took.
        labels: Its labels.
        unmet: Limits and checks that it did not meet, by name.
        line: Line in its file; 0 if it has none.
        file: Data file that contains it; empty for the suite file.
        content: Fingerprint of its input, expectation, labels and own checks.
        carried: The commit of the approved run that its scores are from; empty if it ran.
        cause: Why it ran, in a run of affected cases.
        lines: Evaluator label to its findings.
        input: What the target received, cut at 4,000 characters, or 16,000 for messages and tool calls.
        expected: The ground truth, cut likewise.
        prediction: The answer, or the first of several, cut likewise.
        several: Different answers to repeats, those that failed most often first; empty if there is only one.
        judgings: Questions to judges and their replies.
        withheld: The texts of a case whose texts reports do not show, for the error analysis, which does.
        has_texts: Whether reports show its texts, even if all are empty.
    """

    id: str
    outcome: CaseOutcome
    cluster: str | None = None
    metrics: Annotated[Mapping[str, BoundedScore | None], WrittenField.ALWAYS] = field(default_factory=dict)
    details: Annotated[Mapping[str, Any], WrittenField.ALWAYS] = field(default_factory=dict)
    reason: Annotated[str | None, WrittenField.ALWAYS] = None
    duration_s: Annotated[AnyNumber, WrittenField.ALWAYS] = 0.0
    labels: Mapping[str, str] = field(default_factory=dict)
    unmet: Sequence[str] = ()
    line: int = 0
    file: str = ""
    content: str = ""
    carried: str = ""
    cause: str = ""
    lines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    input: Any = None
    expected: Any = None
    prediction: Any | UnsetType = UNSET
    several: Sequence[AnswerReport] = field(name="answers", default=())
    judgings: Sequence[JudgingReport] = ()

    withheld: "CaseReport | None" = field(name="(withheld)", default=None)
    has_texts: bool = field(name="(has texts)", default=False)

    @classmethod
    def of_result(
        cls,
        result: Result,
        cases: Iterable[Case] = (),
        texts: ReportedTexts = "failing",
        files: Mapping[str, str] = {},
        contents: Mapping[str, str] = {},
    ) -> "list[CaseReport]":
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
            _of_record(
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

    @staticmethod
    def answer_fields(answers: Sequence[AnswerShown]) -> dict[str, Any]:
        """The fields that hold the answers of a case."""
        several = len(answers) > 1 or any(answer.times > 1 for answer in answers)
        return {
            "prediction": answers[0].value if answers else UNSET,
            "several": [AnswerReport(*answer) for answer in answers] if several else (),
        }

    @property
    def answers(self) -> Sequence[AnswerReport]:
        """The prediction of the case, or each different one."""
        return self.several or ([] if self.prediction is UNSET else [AnswerReport(self.prediction)])

    @property
    def media_values(self) -> Sequence[Any]:
        """The values that may hold media: input, expected value and predictions."""
        return [self.input, self.expected, self.prediction, *(answer.value for answer in self.several)]

    @property
    def quotes_texts(self) -> bool:
        """Whether the report has texts of the case: input, expected value, prediction or judgings."""
        return not (self.input is None and self.expected is None and self.prediction is UNSET and not self.judgings)

    @property
    def is_excused(self) -> bool:
        """Whether the case failed, as was expected or approved: no failure of the run, and no pass either."""
        return self.outcome in EXCUSED

    @property
    def ran(self) -> bool:
        """Whether the case has scores that can be compared."""
        return self.outcome not in ("skipped", "not_run")

    @property
    def absent(self) -> Mapping[str, str]:
        """Metric to why the case has no value of it; an evaluator's name to why it gave none at all."""
        return {**self.details.get("undefined", {}), **self.details.get("errors", {})}

    @property
    def findings(self) -> list[str]:
        """Findings of all evaluators, each with the label of its evaluator."""
        return [f"{label}: {line}" for label, lines in self.lines.items() for line in lines]

    def to_rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row for each metric and repeat, as `Result.to_dicts` returns them; systems are those of suites."""
        labels = {f"label.{name}": value for name, value in sorted(self.labels.items())}
        spread = self.details.get("repeats", {}).get("spread", {})
        absent = self.absent
        for metric, value in self.metrics.items():
            for repeat, score in enumerate([value, *spread.get(metric, {}).get("scores", ())]):
                row = {"case": self.id, "outcome": self.outcome, "repeat": repeat, "metric": metric, "value": score}
                yield {**row, "reason": None if score is not None else absent.get(metric, self.reason), **labels}

    @property
    def question_text(self) -> str | None:
        """The input as one line; ``None`` if the report does not show it."""
        return None if self.input is None else _said_text(self.input)

    @property
    def expected_text(self) -> str | None:
        """The ground truth as one line; ``None`` if the report does not show it."""
        return None if self.expected is None else _said_text(self.expected)

    @classmethod
    @cache  # asked for once per case
    def not_run(cls) -> "CaseReport":
        """The stand-in for a case that a report does not have."""
        return cls(id="", outcome="not_run")

    def place(self, suite_file: str) -> str:
        """File and line of the case in the form that editors and terminals link."""
        file = self.file or suite_file
        return f"{file}:{self.line}" if self.line else file


def _of_record(
    scores: CaseResult,
    record: CaseRecord,
    case: Case | None,
    label: str,
    texts: ReportedTexts,
    *,
    file: str,
    content: str,
) -> "CaseReport":
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


class GroupReport(Struct, frozen=True):
    """A group of a suite's cases with the same value of a label, in a report.

    Attributes:
        cases: How many cases.
        metrics: Metric to value.
        pass_rate: Share of its cases that passed among those that ran.
        figures: Calls, tokens, cost and latencies by name, as gates judge them.
    """

    cases: int
    metrics: Mapping[str, MetricValue]
    pass_rate: MetricValue = field(name="(pass rate)", default=UNKNOWN)
    figures: Mapping[str, MetricValue] = field(name="(figures)", default_factory=dict)

    def find(self, metric: str) -> MetricValue | None:
        """A metric of the group, its pass rate or a figure of its usage."""
        return self.pass_rate if metric == Metric.PASS_RATE else self.metrics.get(metric) or self.figures.get(metric)


class BucketReport(Struct, frozen=True):
    """An error bucket in a report: the cases of a suite that went wrong in one way.

    Attributes:
        name: Name of the bucket.
        evaluator: Label of the evaluator that defines it.
        metric: Metric that decides, as the suite names it.
        limit: Its condition, such as ``< 0.3``.
        cases: Their ids, in the order of the suite.
    """

    name: str = field(name="bucket")
    evaluator: str = ""
    metric: str = ""
    limit: str = ""
    cases: Sequence[str] = ()

    @classmethod
    def of_result(cls, metrics: MetricIndex, result: Result) -> "list[tuple[BucketReport, bool]]":
        """The cases of a result in the error buckets that evaluators define; a case may be in several.

        Args:
            metrics: Of the suite.
            result: Its numbers.

        Returns:
            Each bucket, and whether it is that of an evaluator that defines none: the cases whose first metric is less
            than perfect. Only the error analysis shows these.
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
                filled.append((_fill_from(cls, named, evaluator=label, cases=cases), not own))
        return filled


def _imperfect(metrics: MetricIndex, label: str) -> Iterator[ErrorBucket]:
    """Yield the error bucket of an evaluator that defines none: its first metric is worse than its best value."""
    for entry in metrics.declared[label]:
        metric = entry.metric
        best = metric.high if metric.higher_is_better else metric.low
        if best is not None and "[" not in metric.name:
            below, above = (best, None) if metric.higher_is_better else (None, best)
            yield ErrorBucket(f"imperfect_{metric.name}", metric.name, below, above)
            return


class WorstCase(Struct, frozen=True):
    """One of a suite's worst cases in a report, with its score.

    Attributes:
        id: Its id.
        score: Its score.
    """

    id: str
    score: AnyNumber


class WorstCases(Struct, frozen=True):
    """The cases of a suite that are farthest from the best value of a metric.

    Attributes:
        metric: The metric of the first gate, else the first metric.
        cases: Up to five, the worst first.
    """

    metric: str
    cases: Sequence[WorstCase]

    @classmethod
    def of_result(cls, result: Result, metrics: MetricIndex, gated: Iterable[str]) -> "WorstCases | None":
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
        return cls(names[0], [WorstCase(*pair) for pair in below[:_WORST]]) if below else None


def _scores_of(result: Result, metric: str) -> list[float | None]:
    """The score of each case of a result by a metric; ``None`` for a case without one."""
    column = result.case_scores.get(metric)
    if column is None:
        return [None] * len(result.records)
    return [score if math.isfinite(score) else None for score in column.tolist()]


class StopReport(Struct, frozen=True):
    """The early stop of a suite whose gates were decided, with the calls that it saved, in a report.

    Attributes:
        cases: How many cases decided; all other numbers of the report are about these.
        not_needed: How many cases were not needed.
        ran_ahead: How many of those had run by then, in other workers or shards; they count nowhere.
        confidence: With which all verdicts on gates are those of a complete run.
        judge_calls: Calls of judges that the cases that did not run would have taken, by the mean of those that
            decided.
        answers: Likewise, answers of the target.
        cost_usd: Likewise, what all of this would have cost; ``None`` where the cost of a call is not known.
    """

    cases: int
    not_needed: int
    ran_ahead: int = 0
    confidence: AnyNumber = 0.99
    judge_calls: int = 0
    answers: int = 0
    cost_usd: AnyNumber | None = None


class AffectedReport(Struct, frozen=True):
    """The number of a suite's cases that ran because something that they depend on has changed.

    Attributes:
        since: What was compared with: the commit of an approved run.
        ran: How many cases ran.
        carried: How many have the scores of the approved run.
        causes: Why cases ran, with how many, the most frequent first.
        saved_usd: What the others would have cost, by the mean of the approved run; ``None`` where that is not known.
    """

    since: str
    ran: int
    carried: int
    causes: Mapping[str, int] = {}
    saved_usd: AnyNumber | None = None

    @classmethod
    def of_records(cls, records: Iterable[CaseRecord]) -> "AffectedReport | None":
        """The counts in a report of a suite's cases that ran because of a change; ``None`` without such a choice."""
        chosen = [record.selection for record in records if record.selection is not None]
        if not chosen:
            return None
        carried = [selection for selection in chosen if selection.carried]
        causes = Counter(selection.cause for selection in chosen if not selection.carried)
        costs = [selection.saved_usd for selection in carried]
        return cls(
            chosen[0].since,
            len(chosen) - len(carried),
            len(carried),
            dict(sorted(causes.items(), key=lambda item: (-item[1], item[0]))),
            None if None in costs else math.fsum(cost for cost in costs if cost is not None),
        )


class SampleReport(Struct, frozen=True):
    """The sample of a suite's cases that a run was limited to.

    Attributes:
        cases: How many cases.
        total: How many cases the sample was drawn from.
        by: The label of the strata; ``None`` without strata.
        weighted: Whether cases represent different numbers of cases.
    """

    cases: int
    total: int = field(name="of")
    by: str | None = None
    weighted: bool = False

    def __str__(self) -> str:
        strata = f" by {self.by}" if self.by else ""
        return f"a sample of {self.cases} of {self.total} cases{strata}{', weighted back' if self.weighted else ''}"


_SAME_VALUE = 1e-6


def past_limits(gates: Iterable[GateResult]) -> list[str]:
    """A sentence of a report for each gate that passed beyond its limit because the drop is not significant."""
    return [f"past its limit, not significant: {gate.known}" for gate in gates if gate.is_past_limit]


CaseEnd: TypeAlias = CaseReport | CaseRecord
_NOT_RUN = ("skipped", "not_run")


class Changes(Struct, frozen=True):
    """The comparison of a suite's results with another run of it, in a report.

    Attributes:
        against: Name of the other run.
        metrics: Metric name to its change, for the metrics that comparisons are about.
        confidence: Of intervals and verdicts.
        notes: Reasons why the runs may not be comparable, and what only one of them has.
        returned: Failure modes whose cases all passed in the other run and of which some fail, each in words.
        cases: Cases of the other run with their scores and answers, if a report shows them.
    """

    against: str
    metrics: Mapping[str, MetricChange]
    confidence: float = 0.95
    notes: Sequence[str] = ()
    returned: Annotated[Sequence[str], WrittenField.IF_KNOWN] = ()
    cases: Sequence[CaseReport] = field(name="(cases)", default=())

    @staticmethod
    def returned_modes(now: Iterable[CaseEnd], before: Iterable[CaseEnd]) -> Iterator[str]:
        """Yield the failure modes that are back, such as ``rude: back in 3 of 11``: they had gone, and some cases fail.

        Args:
            now: Cases of a run.
            before: Cases of an earlier run, with the ids of now; those of a mode all passed.
        """
        earlier = {case.id: case.outcome for case in before if case.outcome not in _NOT_RUN}
        cases: dict[str, list[CaseEnd]] = {}
        for case in now:
            if case.outcome not in _NOT_RUN:
                for mode in CaseLabels(case.labels).modes:
                    cases.setdefault(mode, []).append(case)
        for mode, members in cases.items():
            failing = [case for case in members if case.outcome in CaseRecord.BAD]
            known = {earlier[case.id] for case in members if case.id in earlier}
            if known == {"passed"} and any(case.id in earlier for case in failing):
                yield f"{mode}: back in {len(failing)} of {len(members)}"

    def named(self, *verdicts: ChangeVerdict) -> dict[str, MetricChange]:
        """The metrics with one of these verdicts that differ, by the name of what was compared."""
        return {
            metric.name_of(name): metric
            for name, metric in self.metrics.items()
            if metric.verdict in verdicts and metric.difference
        }

    def is_against(self, other: "SuiteReport") -> bool:
        """Whether another report is that of the run that this one was compared with: all values are equal."""
        pairs = [
            (None if (value := other.find(name)) is None else value.value, metric.baseline)
            for name, metric in self.metrics.items()
        ]
        return bool(pairs) and all(
            now is not None and before is not None and abs(now - before) < _SAME_VALUE for now, before in pairs
        )


class SuiteReport(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The report of one suite, or of one variant of it.

    Attributes:
        suite: Name, with the variant in brackets.
        path: The file, relative to pytest's rootdir.
        variant: System or variant of the target, as in the name of the suite; empty if there is only one.
        description: Text for readers, from the suite file.
        counts: Cases by outcome, and ``total``; ``not_run`` includes faulty ones.
        metrics: Metric to value, interval and numbers of cases.
        lower_is_better: Metrics for which lower is better.
        clusters: Of cases that intervals draw together; ``None`` where every case is drawn alone.
        shared_inputs: Number of cases that repeat the input of an earlier one, if these are many and not clustered.
        uncalibrated: Metrics with limits whose judge no labels of people confirm.
        can_fail: Whether some score would fail a case or the suite.
        left_out: Number of cases without a prediction, skipped by option.
        abstained: What cases count as, in comparisons, that had a score and abstain now: ``fell`` or ``allowed``.
        sample: Of how many cases its cases are a sample; ``None`` if they are all.
        stop: Its early stop; ``None`` if all cases ran.
        affected: Which cases ran because of a change; ``None`` if all were to run.
        usage: Calls of judges and targets; ``None`` if there were none.
        money: What they cost, and what was saved; ``None`` if there were none.
        groups: Label, its value to the group.
        tables: Tables that evaluators declare, filled in.
        gates: Verdicts on gates.
        snapshot: Verdicts on scores compared with the approved ones.
        cases: The cases.
        ranges: Metric to its smallest and largest value, if it has both.
        worst: The worst cases; ``None`` if all are perfect.
        error_buckets: Cases that went wrong, by kind of error, where an evaluator defines kinds.
        compared: Metrics that comparisons are about: those of gates and limits, and those that the suite names; if
            empty, all.
        changes: Changes since its scores were approved; ``None`` without approved scores.
        confidence: Confidence level of the intervals.
        pass_rate: Share of the cases that passed among those that ran.
        figures: Calls, tokens, cost and latencies by name, as gates judge them.
        buckets: All buckets, those of evaluators that define none among them; the error analysis shows these.
        past: Earlier runs and approvals; ``None`` if no report draws them.
    """

    suite: str
    path: str
    variant: str = ""
    description: str = ""
    counts: Mapping[str, int]
    metrics: Mapping[str, MetricValue]
    lower_is_better: Sequence[str] = ()
    clusters: Clusters | None = None
    shared_inputs: int = 0
    uncalibrated: Sequence[str] = ()
    can_fail: bool = True
    left_out: int = 0
    abstained: Abstention = "fell"
    sample: SampleReport | None = None
    stop: StopReport | None = None
    affected: AffectedReport | None = None
    usage: UsageReport | None = None
    money: Money | None = None
    groups: Annotated[Mapping[str, Mapping[str, GroupReport]], WrittenField.ALWAYS] = field(default_factory=dict)
    tables: Sequence[FilledTable] = ()
    gates: Annotated[Sequence[GateResult], WrittenField.ALWAYS] = ()
    snapshot: Sequence[SnapshotVerdict] = ()
    cases: Sequence[CaseReport]
    ranges: Mapping[str, tuple[AnyNumber, AnyNumber]] = field(default_factory=dict)
    worst: WorstCases | None = None
    error_buckets: Annotated[Sequence[BucketReport], WrittenField.ALWAYS] = ()
    compared: Sequence[str] = ()
    changes: Changes | None = None

    confidence: float | None = field(name="(confidence)", default=0.95)
    pass_rate: MetricValue = field(name="(pass rate)", default=UNKNOWN)
    figures: Mapping[str, MetricValue] = field(name="(figures)", default_factory=dict)
    buckets: Sequence[BucketReport] = field(name="(buckets)", default=())
    past: Timeline | None = field(name="(past)", default=None)

    COMPUTED: ClassVar = {"stability": "money"}

    @classmethod
    def of_result(
        cls,
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
    ) -> "SuiteReport":
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
            buckets: Cases that went wrong; see `BucketReport.of_result`.
            more: Further fields of the report.
        """
        cases = CaseReport.of_result(result) if cases is None else cases
        return cls(
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

    @classmethod
    def complete(
        cls,
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
    ) -> "SuiteReport":
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
        return cls.of_result(
            suite,
            path,
            result,
            gates,
            total,
            confidence,
            cases=CaseReport.of_result(result, cases, texts, files, contents),
            affected=AffectedReport.of_records(result.records),
            buckets=BucketReport.of_result(metrics, result),
            tables=evaluator_tables(metrics, result),
            lower_is_better=[name for name in result.metrics if metrics.lower_is_better(name)],
            ranges=metrics.ranges(result.metrics),
            worst=WorstCases.of_result(result, metrics, gated),
            **more,
        )

    @property
    def base_name(self) -> str:
        """The name of the suite without the system or variant."""
        return self.suite.removesuffix(f"[{self.variant}]")

    @property
    def total(self) -> int:
        """Number of cases in the file."""
        return max(self.counts.get("total", 0), len(self.cases))

    @property
    def failed(self) -> bool:
        """Whether a case, a gate or a comparison with approved scores failed."""
        verdicts = (item.outcome for part in (self.cases, self.gates, self.snapshot) for item in part)
        return not {"failed", "errored"}.isdisjoint(verdicts)

    @property
    def verdict(self) -> RunVerdict:
        """The verdict on the suite."""
        outcomes = {item.outcome for part in (self.gates, self.snapshot) for item in part}
        if self.failed or self.counts.get("failed") or self.counts.get("errored"):
            return "failed"
        scored = not self.counts.get("not_scored") or self.counts.get("passed") or self.counts.get("known_failure")
        if "not_judged" in outcomes or self.counts.get("not_run") or not scored:
            return "incomplete"
        return "undecided" if "undecided" in outcomes else "passed"

    @property
    def gated(self) -> list[str]:
        """Metrics that have gates, each once, in the order of the gates."""
        return [name for name in dict.fromkeys(gate.metric for gate in self.gates) if self.find(name) is not None]

    @property
    def past_limits(self) -> list[str]:
        """A sentence for each gate that passed past its limit."""
        return past_limits(self.gates)

    @property
    def broken_scores(self) -> list[SnapshotVerdict]:
        """Approved scores that were not kept, without those that the gate of their metric tells of."""
        lowered = {gate.metric for gate in self.gates if gate.fallen}
        return [score for score in self.snapshot if score.outcome == "failed" and score.metric not in lowered]

    def gate_cause(self, gate: GateResult) -> str:
        """Why a gate has its verdict, with the tolerance of the approved score that fell with it."""
        scores = self.snapshot if gate.fallen else ()
        broken = (score for score in scores if score.outcome == "failed" and score.metric == gate.metric)
        tolerance = next((score.reason.partition("; ")[2] for score in broken), "")
        also = f"; the approved score was not kept either, {tolerance}" if tolerance else ""
        return f"{gate.headline.removesuffix('.')}{also}" if also else gate.headline

    @property
    def interval_name(self) -> str:
        """Header of the column of intervals, such as ``95% interval``."""
        return "interval" if self.confidence is None else f"{self.confidence * 100:g}% interval"

    @property
    def stability(self) -> dict[str, int]:
        """Cases by status of their repeats; empty if every case ran once."""
        repeats = [case.details.get("repeats") for case in self.cases]
        statuses = [repeat.get("status") for repeat in repeats if isinstance(repeat, Mapping)]
        return {status: statuses.count(status) for status in STATUSES if status in statuses}

    @property
    def run(self) -> int:
        """The number of the suite's cases that ran."""
        return self.total - self.counts["not_run"] - self.counts.get("not_needed", 0)

    def find(self, metric: str) -> MetricValue | None:
        """A metric of the reported suite, its pass rate or a figure of its usage."""
        return self.pass_rate if metric == Metric.PASS_RATE else self.metrics.get(metric) or self.figures.get(metric)

    def with_derived(self, *, texts: bool) -> "SuiteReport":
        """The report of a JSON file with the fields that follow from others.

        Args:
            texts: Whether the whole report has the texts of any case; then it has those of all failing ones.
        """
        label = self.clusters.label if self.clusters else None
        every = any(case.quotes_texts and case.outcome not in FAILING for case in self.cases)
        cases = [
            structs.replace(
                case,
                labels={**case.labels, label: case.cluster} if label and case.cluster is not None else case.labels,
                has_texts=case.quotes_texts or every or (texts and case.outcome in FAILING),
            )
            for case in self.cases
        ]
        counts = {**counts_of(cases, max(self.counts.get("total", 0), len(cases)), self.stop), **self.counts}
        rates = structs.replace(self, cases=cases).pass_rates()
        groups: dict[str, dict[str, GroupReport]] = {}
        for key, members in self.groups.items():
            rated = {name: {"pass_rate": group.pass_rate} for name, group in rates.groups[key].items()}
            groups[key] = {name: structs.replace(member, **rated.get(name, {})) for name, member in members.items()}
        return structs.replace(
            self,
            counts=counts,
            cases=cases,
            groups=groups,
            pass_rate=rates.pass_rate,
            tables=[table.with_derived() for table in self.tables],
            buckets=self.error_buckets,
        )

    def pass_rates(self) -> Result:
        """Pass rates of the suite and its groups by the formula of a run; JSON reports leave them to readers."""
        records = [
            CaseRecord(
                case.id,
                case.labels,
                case.outcome,
                errors={"": ""} if case.ran else {},  # counts as tried
                reason=case.reason,
            )
            for case in self.cases
        ]
        label = self.clusters.label if self.clusters else None
        faulty = max(0, self.counts.get("total", 0) - len(records))
        return summarize({}, records, group_by=list(self.groups), cluster_by=label, faulty=faulty)

    def contradictions(self, document: Document, place: tuple[str | int, ...]) -> Iterator[Fault]:
        """Yield faults of a JSON report that its types allow: ids repeated or unknown, rows of wrong length.

        Args:
            document: The JSON report.
            place: Of the suite in it.
        """
        ids: set[str] = set()
        for number, case in enumerate(self.cases):
            if case.id in ids:
                yield document.fault((*place, "cases", number, "id"), f"found {case.id!r} twice, expected it once")
            ids.add(case.id)
        for number, bucket in enumerate(self.error_buckets):
            for row, name in enumerate(bucket.cases):
                if name not in ids:
                    at = (*place, "error_buckets", number, "cases", row)
                    yield document.fault(at, f"found {name!r}, expected the id of a case of the suite")
        for number, table in enumerate(self.tables):
            for row, cells in enumerate(table.rows):
                if len(cells) != len(table.headers):
                    message = f"found {len(cells)} cells, expected {len(table.headers)} as in the headers"
                    yield document.fault((*place, "tables", number, "rows", row), message)

    def as_scored(self) -> "SuiteReport":
        """The report of a suite without limits: its cases are scored, as nothing says that they passed."""
        cases = [structs.replace(case, outcome="scored") if case.outcome == "passed" else case for case in self.cases]
        names = {"passed": "scored"}
        counts = {names.get(name, name): count for name, count in self.counts.items() if count or name != "passed"}
        return structs.replace(self, cases=cases, counts=counts, pass_rate=UNKNOWN)

    def case(self, name: str) -> CaseReport:
        """A reported case by its id."""
        return next((case for case in self.cases if case.id == name), CaseReport.not_run())


def evaluator_tables(metrics: MetricIndex, result: Result) -> list[FilledTable]:
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


class SystemValue(Struct, frozen=True):
    """The value of a metric of one system, with its interval, in a comparison of systems.

    Attributes:
        value: Over its cases; ``None`` if undefined.
        low: Lower bound of the interval of `value`.
        high: Upper bound.
    """

    value: AnyNumber | None
    low: AnyNumber | None = None
    high: AnyNumber | None = None


class SystemReport(Struct, frozen=True, omit_defaults=True):
    """One system in the report that compares the systems of a suite.

    Attributes:
        system: Its name.
        cases: How many cases it answered.
        metrics: Metric to value.
        differences: Metric to difference; empty for the reference itself.
        groups: Label, its value, metric to value.
    """

    system: str
    cases: int
    metrics: Mapping[str, SystemValue]
    differences: Mapping[str, SystemDifference] = field(default_factory=dict)
    groups: Annotated[Mapping[str, Mapping[str, Mapping[str, AnyNumber | None]]], WrittenField.ALWAYS] = field(
        default_factory=dict
    )


class SystemsReport(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The report that compares the systems of a suite side by side.

    Attributes:
        suite: Name of the suite.
        path: The file, relative to pytest's rootdir.
        reference: The system that the others are compared with.
        confidence: Of the intervals of differences.
        compare_by: Metrics that reports list first, and by group.
        strengths: Strengths of the systems, for each evaluator that compared them in pairs.
        systems: The systems.
        joined: Tables of an evaluator with a column for each system.
    """

    suite: str
    path: str
    reference: str
    confidence: AnyNumber
    compare_by: Sequence[str]
    strengths: Sequence[Strengths] = ()
    systems: Sequence[SystemReport]

    joined: Sequence[FilledTable] = field(name="(joined)", default=())

    @classmethod
    def of_table(
        cls,
        suite: str,
        path: str,
        table: "SystemTable",
        compare_by: Sequence[str],
        metrics: Mapping[str, MetricIndex] = {},
        strengths: Sequence[Strengths] = (),
    ) -> "SystemsReport":
        """The report of the systems that answered a suite.

        Args:
            suite: Name of the suite.
            path: The file, relative to pytest's rootdir.
            table: Values and differences.
            compare_by: Metrics that reports list first, and by group.
            metrics: System to its metrics, for the tables of their evaluators.
            strengths: Strengths of the systems, for each evaluator that compared them in pairs.
        """
        tables = {name: evaluator_tables(index, table.results[name]) for name, index in metrics.items()}
        return cls(
            suite=suite,
            path=path,
            reference=table.reference,
            confidence=table.confidence,
            compare_by=compare_by,
            strengths=strengths,
            systems=[_system(name, table, compare_by) for name in table.results],
            joined=_join_tables(tables),
        )

    def has(self, path: str, base_name: str) -> bool:
        """Whether a path and a name without system are those of the reported suite."""
        return (path, base_name) == (self.path, self.suite)

    @property
    def title(self) -> str:
        """The heading of the tables that compare systems."""
        return f"{self.suite}: {counted(len(self.systems), 'system')}, compared with {self.reference}"

    @property
    def metrics(self) -> list[str]:
        """All metrics, those of `compare_by` first, and ``pass_rate`` last unless it is one of these."""
        names = dict.fromkeys(name for system in self.systems for name in system.metrics)
        rate = [Metric.PASS_RATE] if names.pop(Metric.PASS_RATE, Metric.PASS_RATE) is None else []
        return list(dict.fromkeys([*self.compare_by, *names, *rate]))

    def without(self, metric: str) -> "SystemsReport":
        """The reported systems without a metric."""
        systems = [
            structs.replace(
                system,
                metrics={name: value for name, value in system.metrics.items() if name != metric},
                differences={name: value for name, value in system.differences.items() if name != metric},
            )
            for system in self.systems
        ]
        return structs.replace(self, systems=systems)

    @property
    def groups(self) -> dict[str, list[str]]:
        """The values of each label by which the systems are reported."""
        return {
            label: sorted({name for system in self.systems for name in system.groups.get(label, {})})
            for label in dict.fromkeys(label for system in self.systems for label in system.groups)
        }


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
    metrics = {metric: SystemValue(value.value, value.low, value.high) for metric, value in values.items()}
    return SystemReport(name, len(result.records), metrics, table.differences.get(name, {}), groups)


def _join_tables(systems: Mapping[str, Sequence[FilledTable]]) -> list[FilledTable]:
    """A suite's report tables with one column of metrics, joined: a column for each system."""
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


class FailureGroups(Struct, frozen=True):
    """The failing cases of a run as terminal, page and comment group them: alone, or by their reasons.

    Attributes:
        failing: Number of failing cases.
    """

    FEW: ClassVar = 10
    """Failing cases up to which each is shown by itself, unless an error is the cause."""

    failing: int

    @property
    def are_many(self) -> bool:
        """Whether the failing cases are too many to show each by itself."""
        return self.failing > self.FEW

    def shared_reason(self, case: CaseRecord | CaseReport) -> str:
        """The reason by which a case is grouped with others; empty for a case that is shown alone."""
        alike = case.outcome == "errored" or (case.outcome in CaseRecord.BAD and self.are_many)
        return (case.reason or "") if alike else ""


class FailureCause(NamedTuple):
    """The number of failing cases of a run, and the label that most of them share, for its report.

    Attributes:
        failures: How many of the cases fail.
        cases: How many cases there are; of each system, if several have answered the same ones.
        systems: How many systems have answered all of them, else 1.
        shared: How many failures have the label.
        label: Such as ``topic=billing``; empty if no label explains them.
    """

    failures: int
    cases: int
    systems: int = 1
    shared: int = 0
    label: str = ""

    def __str__(self) -> str:
        among = f"in {counted(self.cases, 'case')}{f' x {self.systems} systems' if self.systems > 1 else ''}"
        return f"{among}, {self.shared} of them {self.label}" if self.label else among

    @classmethod
    def of_cases(
        cls, suites: Sequence[SuiteReport], failing: Sequence[tuple[SuiteReport, CaseReport]]
    ) -> "FailureCause":
        """The number of a run's failing cases and the label that they share beyond chance.

        Args:
            suites: Of the run.
            failing: Cases of these suites.
        """
        from pytest_llmeval.numbers import explaining_label

        totals = {suite.total for suite in suites}
        alike = len(totals) == 1 and len({(suite.path, suite.base_name) for suite in suites}) == 1
        systems = len(suites) if alike else 1
        labels = {(suite.path, suite.suite, case.id): case.labels for suite in suites for case in suite.cases}
        chosen = list(dict.fromkeys((suite.path, suite.suite, case.id) for suite, case in failing))
        label, value = explaining_label(labels, chosen)
        shared = sum(labels[key].get(label) == value for key in chosen) if label else 0
        size = min(sum(suite.total for suite in suites) // systems, RunReport.LARGEST_COUNT)
        return cls(len(chosen), size, systems, shared, f"{label}={value}" if label else "")


_CAUSES = 4


def affected_text(suites: Sequence[SuiteReport]) -> str:
    """A line on how many cases ran because of a change, its causes and savings; empty in a run of all cases."""
    chosen = [suite.affected for suite in suites if suite.affected is not None]
    if not chosen:
        return ""
    ran, carried = sum(report.ran for report in chosen), sum(report.carried for report in chosen)
    since = f"since {next((report.since for report in chosen if report.carried), chosen[0].since)}"
    if not ran:
        gates = Counter(gate.outcome for suite in suites for gate in suite.gates)
        gates.update(verdict.outcome for suite in suites for verdict in suite.snapshot)
        verdicts = ", ".join(count_text(count, name) for name, count in gates.items())
        return f"0 of {counted(carried, 'case')} affected {since}; gates carried, {verdicts or 'none'}"
    causes: Counter[str] = Counter()
    for report in chosen:
        causes.update(report.causes)
    listed = [f"{cause} ({count})" for cause, count in sorted(causes.items(), key=lambda item: (-item[1], item[0]))]
    more = [f"{len(listed) - _CAUSES} more"] if len(listed) > _CAUSES else []
    text = f"ran {ran} of {counted(ran + carried, 'case')} {since}: {', '.join([*listed[:_CAUSES], *more])}"
    usd = math.fsum(report.saved_usd or 0 for report in chosen)
    return f"{text}; saved about {usd:.2f} USD" if usd >= _CENT / 2 else text


_CENT = 0.01


class RunStart(Struct, frozen=True):
    """The run of pytest that a report is about: its start, version and commit.

    Attributes:
        started_at: ISO 8601, UTC.
        duration_s: Seconds.
        version: Version of this package.
        commit: Commit of the repository, if any.
        branch: Branch that is checked out, or that the job is about.
        pull_request: Number of the job's pull or merge request.
    """

    started_at: str = ""
    duration_s: AnyNumber = 0.0
    version: str = ""
    commit: str | None = None
    branch: Annotated[str, WrittenField.IF_KNOWN] = ""
    pull_request: Annotated[str, WrittenField.IF_KNOWN] = ""


class Conclusion(Struct, frozen=True):
    """The verdict on the results of another runner, which its cases alone do not say.

    Attributes:
        verdict: Such as ``undecided``.
        why: What decides it, a sentence each.
        next_step: What to do.
    """

    verdict: RunVerdict
    why: Sequence[str] = ()
    next_step: str = ""


_METRIC_KEYS: Final = ("value", "low", "high", "scored", "errored", "missing")
"""The figures of a metric that commands print for programs."""


class RunReport(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The report of a run, from which all report formats are written.

    Attributes:
        schema_version: Changes when a key is removed or changes its meaning.
        run: When and where it ran.
        suites: Sorted by path and variant.
        systems: Comparisons of systems, for suites that several of them answered.
        mutation: Survival of mutants by suite; empty without that option.
        faults: Suite file, relative to pytest's rootdir, to its faults, one line each; sorted by file.
        conclusion: Of results of another runner; ``None`` of other runs.
        media: SHA-256 of each image, sound and document of the cases to its file, relative to pytest's rootdir.
    """

    SCHEMA_VERSION: ClassVar = 1

    LARGEST_COUNT: ClassVar = 10**12
    """Largest count to display: a forged one can have thousands of digits."""

    schema_version: Annotated[int, WrittenField.ALWAYS] = SCHEMA_VERSION
    run: Annotated[RunStart, WrittenField.ALWAYS] = RunStart()
    suites: Annotated[Sequence[SuiteReport], WrittenField.ALWAYS] = ()
    systems: Sequence[SystemsReport] = ()
    mutation: Sequence[Survival] = ()
    faults: Mapping[str, Sequence[str]] = field(default_factory=dict)
    conclusion: Conclusion | None = None
    media: Mapping[str, str] = field(default_factory=dict)

    COMPUTED: ClassVar = {"money": "suites"}

    @classmethod
    def read(cls, path: Path) -> "RunReport":
        """Read a JSON report.

        It lacks some things that a run knows: counts of cases (so nothing can be resampled), the confidence of
        intervals, which metrics the tables of evaluators show, tables with a column per system, and usage as metrics.

        Raises:
            SuiteError: The file cannot be read, or is no report of a version known here.
        """
        from pytest_llmeval.reports._json import checked_type

        if InputFile(path).looks_like_suite():
            message = "found a suite file, expected a JSON report, which --llmeval-report=report.json writes"
            raise SuiteError([Fault(str(path), 1, 1, "", message)])
        document = InputFile(path).read_json()
        data = document.data
        if not isinstance(data, Mapping) or "schema_version" not in data:
            raise SuiteError([document.fault((), f"found {describe(data)}, expected a report of --llmeval-report")])
        version = data["schema_version"]
        if version != cls.SCHEMA_VERSION:
            expected = f"{cls.SCHEMA_VERSION}, the version that this program reads"
            message = f"found {version!r}, expected {expected}: write it anew with --llmeval-report=report.json"
            raise SuiteError([document.fault(("schema_version",), message)])
        try:
            report = convert(data, cls)
        except ValidationError as error:
            _, faults = DeclaredType(checked_type(cls)).check(data, document)
            raise SuiteError(faults or [document.fault((), str(error))]) from None
        for place, suite in enumerate(report.suites):
            for fault in suite.contradictions(document, ("suites", place)):
                raise SuiteError([fault])
        return report.with_derived()

    def with_derived(self) -> "RunReport":
        """The report with the fields that follow from others: counts, pass rates, and which texts it has."""
        texts = any(case.quotes_texts for suite in self.suites for case in suite.cases)
        return structs.replace(self, suites=[suite.with_derived(texts=texts) for suite in self.suites])

    def with_media(self, root: Path) -> "RunReport":
        """The report of a run that has just ended, with the files of the media in its cases.

        Args:
            root: pytest's rootdir; files outside of it have no path.
        """
        if not (MediaRun.has_media() or (root / OutputFolder.MEDIA).is_dir()):
            return self
        from pytest_llmeval.reports._media_paths import media_paths

        values = (value for suite in self.suites for case in suite.cases for value in case.media_values)
        return structs.replace(self, media=media_paths(values, root))

    def begin_media(self, root: Path, *others: "RunReport") -> None:
        """Look up the contents of the media that reports name, from now on.

        Args:
            root: The folder to which their paths are relative.
            others: Further reports.
        """
        from pytest_llmeval.reports._media_paths import begin_media

        begin_media({digest: path for report in (self, *others) for digest, path in report.media.items()}, root)

    def verdict_data(self) -> list[dict[str, Any]]:
        """Metrics and verdicts of each suite as JSON data, which commands print for programs."""
        return [
            {
                "suite": suite.base_name,
                "system": suite.variant,
                "cases": suite.total,
                "metrics": {
                    name: {key: getattr(metric, key) for key in _METRIC_KEYS} for name, metric in suite.metrics.items()
                },
                "gates": to_builtins(suite.gates),
                "snapshot": to_builtins(suite.snapshot),
            }
            for suite in self.suites
        ]

    @property
    def verdict(self) -> RunVerdict:
        """The worst verdict of the suites; ``failed`` if a file has faults, ``incomplete`` without a suite."""
        if self.conclusion is not None:
            return self.conclusion.verdict
        if self.faults:
            return "failed"
        return min((suite.verdict for suite in self.suites), key=get_args(RunVerdict).index, default="incomplete")

    @property
    def verdict_text(self) -> str:
        """The verdict on the run, or that no suite ran."""
        return self.verdict if self.suites or self.faults else "no suite ran"

    @property
    def total(self) -> int:
        """The number of cases of all suites, at most `LARGEST_COUNT`."""
        return self._count("total")

    @property
    def outcome_counts(self) -> list[str]:
        """The number of cases with each outcome, such as ``2 not run``, for the outcomes that occur."""
        return [count_text(count, name) for name in OUTCOMES if (count := self._count(name))]

    def _count(self, outcome: str) -> int:
        return min(self.LARGEST_COUNT, sum(suite.counts.get(outcome, 0) for suite in self.suites))

    @property
    def money(self) -> Money | None:
        """Cost and savings of all suites of the run; ``None`` without calls."""
        return Money.total(suite.money for suite in self.suites)

    def approved_cases(self) -> list[dict[str, CaseReport]]:
        """The approved cases of each suite by id, as far as the report has them."""
        return [{case.id: case for case in suite.changes.cases} if suite.changes else {} for suite in self.suites]

    @property
    def failure_groups(self) -> FailureGroups:
        """The groups of the failing cases of the run."""
        return FailureGroups(self.failing_count)

    @property
    def failing_count(self) -> int:
        """The number of failing cases."""
        return sum(case.outcome in CaseRecord.BAD for suite in self.suites for case in suite.cases)

    @property
    def totals(self) -> Line:
        """A report line with the counts of cases, gates and approved scores by outcome."""
        kinds: dict[str, Counter[str]] = {
            "case": Counter(),
            "gate": Counter(gate.outcome for suite in self.suites for gate in suite.gates),
            "snapshot": Counter(verdict.outcome for suite in self.suites for verdict in suite.snapshot),
        }
        for suite in self.suites:
            kinds["case"].update({outcome: suite.counts.get(outcome, 0) for outcome in OUTCOMES})
        counts_by_kind = {
            kind: {name: seen[name] for name in (*OUTCOMES, "undecided", "not_judged") if seen[name]}
            for kind, seen in kinds.items()
            if seen.total()
        }
        outcomes = {name for counts in counts_by_kind.values() for name in counts}
        if outcomes <= {"passed"}:
            passed = (counted(counts["passed"], kind) for kind, counts in counts_by_kind.items())
            return Line(f"{', '.join(passed)} passed", "green")
        text = "; ".join(
            f"{kind}s: " + ", ".join(count_text(count, name) for name, count in counts.items())
            for kind, counts in counts_by_kind.items()
        )
        good = "green" if outcomes <= {"passed", "scored"} else "yellow"
        return Line(text, "red" if outcomes & {"failed", "errored"} else good)

    @property
    def uncalibrated_text(self) -> str:
        """A warning on judges without human labels, with the command that collects some; empty if none lacks them."""
        named = [f"{', '.join(suite.uncalibrated)} of {suite.suite}" for suite in self.suites if suite.uncalibrated]
        if not named:
            return ""
        command = "llmeval review REPORT.json --pick 40"
        return f"uncalibrated: no human labels confirm the judge of {'; '.join(named)}: label answers with {command}"

    @property
    def notes(self) -> list[str]:
        """Notes on all suites of the run: judges that no human labels confirm, and what ran because of a change."""
        return list(filter(None, [self.uncalibrated_text, affected_text(self.suites)]))

    def cause_of(self, failing: Sequence[tuple[SuiteReport, CaseReport]]) -> FailureCause:
        """The number of some failing cases of the run, and the label that they share beyond chance."""
        return FailureCause.of_cases(self.suites, failing)

    def with_conclusion(self, verdict: RunVerdict, why: Sequence[str], next_step: str) -> "RunReport":
        """The report of results of another runner, with the verdict on them.

        Args:
            verdict: Such as ``undecided``.
            why: What decides it, a sentence each.
            next_step: What to do.
        """
        return structs.replace(self, conclusion=Conclusion(verdict, why, next_step))
