"""The report of a run.

A field stands where the JSON has it, and is left out where it has its default, if the class says ``omit_defaults``.
`WrittenField` marks exceptions. Fields whose JSON name is in parentheses serve reports of a run that has just ended:
they are never written, and reading a report fills in those that follow from the others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, field, structs, to_builtins

from pytest_llmeval.core import (
    Abstention,
    AnswerShown,
    AnyNumber,
    CaseOutcome,
    CaseRecord,
    ChangeVerdict,
    Clusters,
    GateResult,
    Metric,
    MetricChange,
    MetricValue,
    SnapshotVerdict,
    WrittenField,
    as_line,
)
from pytest_llmeval.numbers import Money, UsageReport
from pytest_llmeval.reports._survival import Survival
from pytest_llmeval.reports._tables import FilledTable, SystemsReport, Timeline

SCHEMA_VERSION = 1

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


MOST = 10**12
"""Largest count to display: a forged one can have thousands of digits."""

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

    def as_scored(self) -> "SuiteReport":
        """The report of a suite without limits: its cases are scored, as nothing says that they passed."""
        cases = [structs.replace(case, outcome="scored") if case.outcome == "passed" else case for case in self.cases]
        names = {"passed": "scored"}
        counts = {names.get(name, name): count for name, count in self.counts.items() if count or name != "passed"}
        return structs.replace(self, cases=cases, counts=counts, pass_rate=UNKNOWN)

    def case(self, name: str) -> CaseReport:
        """A reported case by its id."""
        return next((case for case in self.cases if case.id == name), CaseReport.not_run())


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

    schema_version: Annotated[int, WrittenField.ALWAYS] = SCHEMA_VERSION
    run: Annotated[RunStart, WrittenField.ALWAYS] = RunStart()
    suites: Annotated[Sequence[SuiteReport], WrittenField.ALWAYS] = ()
    systems: Sequence[SystemsReport] = ()
    mutation: Sequence[Survival] = ()
    faults: Mapping[str, Sequence[str]] = field(default_factory=dict)
    conclusion: Conclusion | None = None
    media: Mapping[str, str] = field(default_factory=dict)

    COMPUTED: ClassVar = {"money": "suites"}

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
        """The number of cases of all suites, at most `MOST`."""
        return self._count("total")

    @property
    def outcome_counts(self) -> list[str]:
        """The number of cases with each outcome, such as ``2 not run``, for the outcomes that occur."""
        return [count_text(count, name) for name in OUTCOMES if (count := self._count(name))]

    def _count(self, outcome: str) -> int:
        return min(MOST, sum(suite.counts.get(outcome, 0) for suite in self.suites))

    @property
    def money(self) -> Money | None:
        """Cost and savings of all suites of the run; ``None`` without calls."""
        return Money.total(suite.money for suite in self.suites)

    def approved_cases(self) -> list[dict[str, CaseReport]]:
        """The approved cases of each suite by id, as far as the report has them."""
        return [{case.id: case for case in suite.changes.cases} if suite.changes else {} for suite in self.suites]

    @property
    def failing_count(self) -> int:
        """The number of failing cases."""
        return sum(case.outcome in CaseRecord.BAD for suite in self.suites for case in suite.cases)
