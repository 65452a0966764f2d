"""The report of a run as data, independent of its format."""

__all__ = (
    "OUTCOMES",
    "Changes",
    "FilledBucket",
    "RunReport",
    "SampleReport",
    "StopReport",
    "SuiteReport",
    "gated_metrics",
)

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from pytest_llmeval.core.results import AnswerShown, CaseResult, Result
from pytest_llmeval.gates.limits import GateResult, SnapshotVerdict
from pytest_llmeval.reports.notes import CaseNote, WorstCases
from pytest_llmeval.reports.tables import FilledTable
from pytest_llmeval.scoring.usage import Money, UsageReport

if TYPE_CHECKING:
    from pytest_llmeval.gates.statistics.compare import Difference
    from pytest_llmeval.reports.mutation import Survival
    from pytest_llmeval.reports.systems import SystemsReport
    from pytest_llmeval.reports.timeline import Timeline

_COMPARED = re.compile(r" (?:>=|<=|==|>|<) ")
_SUBJECT = re.compile(r"(?:\w+\()*(?P<metric>.+?)\)*")
"""The metric of a gate, perhaps inside a statistic or drop such as ``drop(mean(f1))``."""

OUTCOMES = ("passed", "failed", "errored", "xfailed", "known_failure", "skipped", "not_run", "not_needed")
EXCUSED = ("xfailed", "known_failure")
"""Outcomes of cases that failed, as was expected or approved: no failure of the run, and no pass either."""

STATUSES = ("stable pass", "flaky", "stable fail", "error")


def count_text(count: int, outcome: str) -> str:
    """Return how many cases or verdicts have an outcome, such as ``2 not run``.

    >>> count_text(2, "not_run"), count_text(2, "known_failure")
    ('2 not run', '2 known failures')
    """
    return f"{count} {outcome.replace('_', ' ')}{'s' if outcome == 'known_failure' and count != 1 else ''}"


def gated_metrics(gates: Iterable[str]) -> list[str]:
    """Return the metrics that gates look at, each once.

    >>> gated_metrics(["f1 >= 0.8", "drop(mean(f1)) <= 0.02", "em >= 0.5 by language"])
    ['f1', 'em']
    """
    judged = (_SUBJECT.fullmatch(_COMPARED.split(each, maxsplit=1)[0]) for each in gates)
    return list(dict.fromkeys(found["metric"] for found in judged if found is not None))


class FilledBucket(Struct, frozen=True):
    """The cases of a suite that went wrong in one way.

    Attributes:
        name: Name of the bucket.
        metric: Metric that decides, as the suite names it.
        limit: Its condition, such as ``< 0.3``.
        evaluator: Label of the evaluator that defines it.
        cases: In the order of the suite.
        general: Whether this is the default bucket of an evaluator that defines none; only the error analysis shows it.
    """

    name: str
    metric: str
    limit: str
    evaluator: str
    cases: Sequence[CaseResult]
    general: bool = False


class Changes(Struct, frozen=True):
    """A suite against another run of it.

    Attributes:
        against: Name of the other run.
        metrics: Metric name to difference.
        notes: Why the runs may not be comparable, and what only one of them has.
        cases: Cases of the other run, if a report shows their scores.
        answers: Case id to the answers of the other run, as reports show them, as far as they were kept.
    """

    against: str
    metrics: "Mapping[str, Difference]"
    notes: Sequence[str] = ()
    cases: Sequence[CaseResult] = ()
    answers: Mapping[str, Sequence[AnswerShown]] = field(default_factory=dict)


class StopReport(Struct, frozen=True):
    """What a suite that stopped when its gates were decided left out.

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
    ran_ahead: int
    confidence: float
    judge_calls: int = 0
    answers: int = 0
    cost_usd: float | None = None


class SampleReport(Struct, frozen=True):
    """The sample that the cases of a suite are.

    Attributes:
        cases: How many cases.
        of: Of how many.
        by: The label of the strata; ``None`` without strata.
        weighted: Whether cases stand for different numbers of cases.
    """

    cases: int
    of: int
    by: str | None = None
    weighted: bool = False

    def __str__(self) -> str:
        strata = f" by {self.by}" if self.by else ""
        return f"a sample of {self.cases} of {self.of} cases{strata}{', weighted back' if self.weighted else ''}"


class SuiteReport(Struct, frozen=True):
    """One suite, or one variant of it.

    Attributes:
        suite: Name, with the variant in brackets.
        path: The file, relative to pytest's rootdir.
        result: Metrics and cases.
        gates: Verdicts on gates.
        total: Number of cases in the file.
        confidence: Confidence level of the intervals.
        usage: Calls of judges and targets; ``None`` if there were none.
        money: What they cost, and what was saved; ``None`` if there were none.
        snapshot: Verdicts on scores compared with the approved ones.
        buckets: Cases that went wrong, by kind of error.
        tables: Tables that evaluators declare, filled in.
        lower_is_better: Metrics for which lower is better.
        ranges: Metric to its smallest and largest value, if it has both.
        shared_inputs: Number of cases that repeat the input of an earlier one, if these are many and not clustered.
        notes: Case id to location, texts and findings.
        worst: The worst cases; ``None`` if all are perfect.
        left_out: Number of cases skipped because only predicted ones are wanted.
        variant: System or variant of the target, as in the name of the suite; empty if there is only one.
        changes: Changes since its scores were approved; ``None`` if no report shows them.
        past: Earlier runs and approvals; ``None`` if no report draws them.
        recorded_counts: Cases by outcome according to the file that the report was read from, if it was.
        stop: What it left out because its gates were decided; ``None`` if it did not stop.
        sample: Of how many cases its cases are a sample; ``None`` if they are all.
    """

    suite: str
    path: str
    result: Result
    gates: Sequence[GateResult]
    total: int
    confidence: float | None = 0.95
    usage: UsageReport | None = None
    snapshot: Sequence[SnapshotVerdict] = ()
    buckets: Sequence[FilledBucket] = ()
    tables: Sequence[FilledTable] = ()
    lower_is_better: Sequence[str] = ()
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    shared_inputs: int = 0
    notes: Mapping[str, CaseNote] = field(default_factory=dict)
    worst: WorstCases | None = None
    left_out: int = 0
    variant: str = ""
    changes: Changes | None = None
    past: "Timeline | None" = None
    recorded_counts: Mapping[str, int] = field(default_factory=dict)
    stop: StopReport | None = None
    sample: SampleReport | None = None
    money: Money | None = None

    @property
    def base_name(self) -> str:
        """The name without the system or variant."""
        return self.suite.removesuffix(f"[{self.variant}]")

    @property
    def failed(self) -> bool:
        """Whether a case, a gate or a comparison with approved scores failed."""
        outcomes = {
            *(each.outcome for each in self.result.cases),
            *(each.outcome for each in self.gates),
            *(each.outcome for each in self.snapshot),
        }
        return bool(outcomes & {"failed", "errored"})

    @property
    def gated(self) -> list[str]:
        """Metrics that have gates, each once, in the order of the gates."""
        return [name for name in gated_metrics(each.gate for each in self.gates) if self.result.find(name) is not None]

    @property
    def named_buckets(self) -> list[FilledBucket]:
        """The buckets that evaluators define themselves."""
        return [each for each in self.buckets if not each.general]

    def note(self, case: str) -> CaseNote:
        """Return location, texts and findings of a case."""
        return self.notes.get(case) or CaseNote()

    @property
    def interval_name(self) -> str:
        """Header of the column of intervals, such as ``95% interval``."""
        return "interval" if self.confidence is None else f"{self.confidence * 100:g}% interval"

    @property
    def counts(self) -> dict[str, int]:
        """Cases by outcome; ``not_run`` includes faulty ones."""
        seen: Counter[str] = Counter(case.outcome for case in self.result.cases)
        outcomes = (each for each in OUTCOMES if seen[each] or each not in (*EXCUSED, "not_needed"))
        counts = {"total": self.total, **{outcome: seen[outcome] for outcome in outcomes}}
        counts["not_run"] += self.total - len(self.result.cases)
        if self.stop is not None:
            counts["not_run"] -= self.stop.not_needed
            counts["not_needed"] = self.stop.not_needed
        return {**counts, **self.recorded_counts}

    @property
    def stability(self) -> dict[str, int]:
        """Cases by status of their repeats; empty if every case ran once."""
        repeats = [each.details.get("repeats") for each in self.result.cases]
        found = [each.get("status") for each in repeats if isinstance(each, Mapping)]
        return {status: found.count(status) for status in STATUSES if status in found}

    @property
    def run(self) -> int:
        """How many cases ran."""
        return self.total - self.counts["not_run"] - self.counts.get("not_needed", 0)


class RunReport(Struct, frozen=True):
    """One run of pytest.

    Attributes:
        started_at: ISO 8601, UTC.
        duration_s: Seconds.
        version: Version of this package.
        commit: Commit of the repository, if there is one.
        suites: Sorted by path and variant.
        faults: Suite file, relative to pytest's rootdir, to its faults, one line each; sorted by file.
        systems: Comparisons of systems, for suites that several of them answered.
        mutation: What suites notice of wrong answers; empty if that was not asked for.
    """

    started_at: str
    duration_s: float
    version: str
    commit: str | None
    suites: Sequence[SuiteReport] = field(default_factory=tuple)
    faults: Mapping[str, Sequence[str]] = field(default_factory=dict)
    systems: "Sequence[SystemsReport]" = ()
    mutation: "Sequence[Survival]" = ()
