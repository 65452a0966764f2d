"""A suite: the checked content of a suite file."""

__all__ = ("CANNOT_FAIL", "CaseEntry", "GateEntry", "LimitEntry", "Only", "Suite", "SuiteEntry", "SuiteKey", "System")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import Fault
from pytest_llmeval.core.evaluator import APPROVED, Evaluator
from pytest_llmeval.core.metrics import MetricIndex
from pytest_llmeval.core.parts import WHOLE, Parts
from pytest_llmeval.core.views import Reading, Turn
from pytest_llmeval.data.files.plain import STRICT
from pytest_llmeval.gates.limits import Gate
from pytest_llmeval.gates.regression import (
    Adjustment,
    Alternative,
    GateRule,
    RegressionGate,
    SignificanceTest,
    Undecided,
)
from pytest_llmeval.judge.judged_evaluator import JudgedEvaluator
from pytest_llmeval.judge.panel import PanelSpec, jurors_of
from pytest_llmeval.judge.spec import JudgeSpec, Reduce
from pytest_llmeval.scoring.case_scores import Limit
from pytest_llmeval.scoring.repeats import RELIABILITY, Reduced, Reliability, Repeats
from pytest_llmeval.suite.conversation import ConversationSpec, MessageEntry
from pytest_llmeval.suite.order import CaseOrder, StopSettings
from pytest_llmeval.suite.sampling import CaseSample
from pytest_llmeval.suite.snapshot import SnapshotSettings

if TYPE_CHECKING:
    from pytest_llmeval.suite.models import ModelSystem
    from pytest_llmeval.targets.spec import TargetSpec

Only: TypeAlias = Literal["predicted"]


class System(Struct, frozen=True):
    """A system with its cases.

    Attributes:
        cases: With its predictions; without, where a target answers.
        target: Answers the cases; ``None`` where predictions are recorded.
        model: Answers the cases in place of a target.
        faults: Of its predictions.
        left_out: How many cases are left out because it has no prediction for them.
    """

    cases: tuple[Case, ...]
    target: "TargetSpec | None" = None
    model: "ModelSystem | None" = None
    faults: tuple[Fault, ...] = ()
    left_out: int = 0

    def only(self, which: Only | None) -> "System":
        """Return the system with the cases that have a prediction, if only they are wanted."""
        if which is None:
            return self
        kept = tuple(case for case in self.cases if case.prediction is not MISSING)
        return replace(self, cases=kept, left_out=self.left_out + len(self.cases) - len(kept))


CANNOT_FAIL = "nothing can fail here: found no thresholds, checks, gates or snapshot, so every score passes"


@dataclass(frozen=True)
class CaseEntry:
    """A case as a suite file writes it."""

    __pydantic_config__: ClassVar = STRICT

    id: str | int | None = None
    input: Any = None
    messages: list[str | MessageEntry] | None = None
    expected: Any = None
    expected_file: str | None = None
    prediction: Any = None
    prediction_file: str | None = None
    labels: dict[str, str | int | float | bool] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    thresholds: dict[str, Any] = field(default_factory=dict)
    checks: list[Any] = field(default_factory=list)
    always: bool = False


@dataclass(frozen=True)
class GateEntry:
    """A gate in its mapping form."""

    __pydantic_config__: ClassVar = STRICT

    metric: str
    min: float | None = None
    max: float | None = None
    by: str | None = None
    min_cases: int = 1
    max_errors: int = 0
    max_skipped: int = 0
    partial: bool = False
    max_drop: float | None = None
    max_drift: float | None = None
    confidence: float | None = None
    rule: GateRule | None = None
    test: SignificanceTest | None = None
    cluster_by: str | None = None
    alternative: Alternative | None = None
    primary: bool | None = None
    adjust: Adjustment | None = None
    min_scored: int | None = None
    max_left_out: int | None = None
    system: str | None = None
    against: str | None = None
    min_gain: float | None = None
    undecided: Undecided | None = None


@dataclass(frozen=True)
class ApproveEntry:
    """What is approved together with scores."""

    __pydantic_config__: ClassVar = STRICT

    failures: bool = False


@dataclass(frozen=True)
class LimitEntry:
    """A threshold in its mapping form."""

    __pydantic_config__: ClassVar = STRICT

    min: float | None = None
    max: float | None = None


@dataclass(frozen=True)
class SuiteEntry:
    """The top level of a suite file; parts with a grammar of their own are validated one by one."""

    __pydantic_config__: ClassVar = STRICT

    evaluators: list[Any] = field(default_factory=list)
    suite: str | None = None
    description: str | None = None
    target: Any = None
    systems: Any = None
    reference: str | None = None
    compare_by: tuple[str, ...] = ()
    only: Only | None = None
    parts: Any = None
    conversation: Any = None
    group_by: tuple[str, ...] = ()
    cluster_by: str | None = None
    mode: Literal["items", "bulk", "test"] = "items"
    repeats: Any = 1
    judge: Any = None
    judges: list[Any] | None = None
    reduce: Reduce | None = None
    min_judges: int | None = None
    confidence: float | None = 0.95
    checks: list[Any] = field(default_factory=list)
    thresholds: dict[str, Any] = field(default_factory=dict)
    gates: list[Any] = field(default_factory=list)
    snapshot: Any = None
    approve: ApproveEntry = field(default_factory=ApproveEntry)
    stop: Any = None
    sample: Any = None
    cases: list[Any] = field(default_factory=list)
    source: Any = None


class Suite(Struct, frozen=True, dict=True):
    """A suite that can run.

    Attributes:
        name: Of the suite, in reports.
        path: The file.
        evaluators: Label to evaluator; the label is the evaluator's name unless the file renames it.
        cases: Those without fault, in file order.
        thresholds: Metric name to limit, for cases that do not set their own.
        gates: Limits on the whole suite.
        regressions: Limits on how much a metric may have fallen since the baseline.
        snapshot: Whether and how its scores are compared with approved ones; ``None`` leaves it to the ini option.
        approves_failures: Whether failing cases are approved together with scores, as known failures.
        target: Where predictions come from, for cases that carry none.
        group_by: Labels to report by; those that gates judge by are among them.
        cluster_by: A label whose cases belong together, for every interval and test.
        bulk: Whether all cases run in one test item.
        for_tests: Whether only Python tests run its cases, and the file has no items of its own.
        types: Part of a case to the type that Python tests get it in.
        confidence: Of intervals; ``None`` for none.
        checked: Whether some of its cases have checks.
        faults: Faults that do not concern every case; the good cases run, but gates are not judged.
        faulty: How many cases cannot run because of them.
        repeats: How often each case runs.
        judge: Who judges, or a panel; command line and configuration go before it.
        parts: Where the parts of predictions are.
        on: Label of an evaluator to the part or JMESPath that it reads in place of its own part.
        turns: Label of an evaluator to the turns of conversations that it reads.
        conversation: When conversations end.
        systems: Name to system; empty where the suite has one that needs no name.
        system: The system that answers, once one is chosen.
        model: Answers in place of a target, if that system is a model.
        reference: Whom the other systems are compared with; ``None``: the first.
        compare_by: Metrics by which systems are compared in groups; empty: those of gates, or the first.
        left_out: How many cases are left out because they have no prediction.
        named_gates: Gates of one system, and between two; `gates` and `regressions` hold for every system.
        files: Case id to the data file whose line the case has; other cases stand in the suite file.
        stop: How it stops when its gates are decided; ``None``: all cases run.
        order: In which its cases run then; ``None`` where all of them run.
        sample: Which of the file's cases these are; ``None`` where they are all of them.
    """

    name: str
    path: Path
    evaluators: Mapping[str, Evaluator]
    cases: tuple[Case, ...]
    thresholds: Mapping[str, Limit] = {}
    gates: tuple[Gate, ...] = ()
    regressions: tuple[RegressionGate, ...] = ()
    snapshot: SnapshotSettings | None = None
    approves_failures: bool = False
    target: "TargetSpec | None" = None
    group_by: tuple[str, ...] = ()
    cluster_by: str | None = None
    bulk: bool = False
    for_tests: bool = False
    types: Mapping[str, Any] = {}
    confidence: float | None = 0.95
    description: str = ""
    checked: bool = False
    faults: tuple[Fault, ...] = ()
    faulty: int = 0
    repeats: Repeats = Repeats()
    judge: JudgeSpec | PanelSpec = JudgeSpec()
    parts: Parts = Parts()
    on: Mapping[str, str] = {}
    turns: Mapping[str, Turn] = {}
    conversation: ConversationSpec = ConversationSpec()
    systems: Mapping[str, System] = {}
    system: str = ""
    model: "ModelSystem | None" = None
    reference: str | None = None
    compare_by: tuple[str, ...] = ()
    left_out: int = 0
    named_gates: tuple[Gate | RegressionGate, ...] = ()
    files: Mapping[str, str] = {}
    stop: StopSettings | None = None
    order: CaseOrder | None = None
    sample: CaseSample | None = None

    @cached_property
    def _of(self) -> "dict[str, Suite]":
        return {}

    def of(self, variant: str) -> "Suite":
        """Return the suite as one of its systems, or a variant of its target, answers it: with its cases and gates."""
        if variant not in self._of:
            found, system = self.gated(variant), self.systems.get(variant)
            self._of[variant] = found if system is None else _answered_by(found, variant, system)
        return self._of[variant]

    def gated(self, variant: str) -> "Suite":
        """Return the suite with the gates of one system or variant besides those of all."""
        own = [gate for gate in self.named_gates if gate.system == variant and not _is_between(gate)]
        if not own:
            return self
        gates = (*self.gates, *(gate for gate in own if isinstance(gate, Gate)))
        return replace(
            self, gates=gates, regressions=(*self.regressions, *(each for each in own if not isinstance(each, Gate)))
        )

    @property
    def between(self) -> list[RegressionGate]:
        """The gates between two systems."""
        return [gate for gate in self.named_gates if isinstance(gate, RegressionGate) and gate.against]

    @property
    def judged_metrics(self) -> list[str]:
        """The metrics of the gates, each once: those with limits first, then those of drops and of single systems."""
        judged = [gate.metric for gates in (self.gates, self.regressions, self.named_gates) for gate in gates]
        return list(dict.fromkeys(judged))

    @property
    def compared_by(self) -> Sequence[str]:
        """The main metrics of a comparison: those that the suite names, or those of its gates."""
        return self.compare_by or self.judged_metrics

    @property
    def all_faults(self) -> tuple[Fault, ...]:
        """The faults of the suite and of its systems."""
        return (*self.faults, *(fault for each in self.systems.values() for fault in each.faults))

    @property
    def place(self) -> tuple[Path, str]:
        """The file and the system, which name the cases and the target together."""
        return self.path, self.system

    @cached_property
    def secret_variables(self) -> tuple[str, ...]:
        """The environment variables that the suite names as secrets."""
        http = self.target.http if self.target is not None else None
        headers = http.headers_from_env.values() if http is not None else ()
        specs = [each.own_model for each in self.evaluators.values() if isinstance(each, JudgedEvaluator)]
        specs += [*jurors_of(self.judge), self.model.spec if self.model is not None else None, self.conversation.user]
        keys = [each.api_key_env for each in specs if each is not None]
        return (*headers, *filter(None, keys))

    @cached_property
    def judged(self) -> bool:
        """Whether a judge may be asked about its cases."""
        return any(isinstance(each, JudgedEvaluator) for each in self.evaluators.values())

    @property
    def asks_models(self) -> bool:
        """Whether a judge may be asked about its cases, or a model that plays the user."""
        return self.judged or self.conversation.user is not None

    @cached_property
    def asks_judge(self) -> bool:
        """Whether its own judge may be asked, not only embedding models named by evaluators."""
        judged = [each for each in self.evaluators.values() if isinstance(each, JudgedEvaluator)]
        return any(each.own_model is None for each in judged)

    @cached_property
    def opponents(self) -> Sequence[str]:
        """The systems with whose answers its evaluators compare."""
        return tuple(dict.fromkeys(name for each in self.evaluators.values() for name in each.opponents))

    @cached_property
    def against_approved(self) -> tuple[str, ...]:
        """The metrics that compare with approved answers: an approval changes what they are measured by."""
        labels = [label for label, each in self.evaluators.items() if APPROVED in each.opponents]
        return tuple(each.name for label in labels for each in self.metrics.declared[label])

    @cached_property
    def readings(self) -> Mapping[str, Reading]:
        """Label to what the evaluator reads of a case."""
        return {
            label: Reading.of(each, self._read_by(label, each), self.parts, self.turns.get(label))
            for label, each in self.evaluators.items()
        }

    def _read_by(self, label: str, evaluator: Evaluator) -> str | None:
        """Return what an evaluator reads in place of its own part: of a model, its text instead of text and usage."""
        whole = self.model is not None and evaluator.part == WHOLE
        return self.on.get(label, "answer" if whole else None)

    def parts_of(self, case: Case) -> Parts:
        """Return where the parts of a case's prediction are: a transcript has them under their names."""
        return Parts() if case.conversation else self.parts

    @cached_property
    def _corrected(self) -> Mapping[str, Evaluator]:
        if not isinstance(self.judge, PanelSpec) or self.judge.cascade is None:
            return self.evaluators
        from pytest_llmeval.evaluators.judge.cascade import Cascaded

        audit = self.judge.cascade.audit
        return {
            label: Cascaded(each, audit) if isinstance(each, JudgedEvaluator) and each.own_model is None else each
            for label, each in self.evaluators.items()
        }

    @cached_property
    def reported(self) -> Mapping[str, Evaluator]:
        """Label to what turns counts into metrics: the evaluators, or what corrects them and reduces their repeats."""
        evaluators = self._corrected
        if self.repeats.times == 1:
            return evaluators
        reduced = {label: Reduced(each, self.repeats) for label, each in evaluators.items()}
        return {**reduced, RELIABILITY: Reliability(self.repeats.times)}

    @cached_property
    def metrics(self) -> MetricIndex:
        """The metrics that the suite reports, by name."""
        return MetricIndex.of(self.reported)

    @property
    def can_fail(self) -> bool:
        """Whether some score would fail a case or the suite; approved scores aside, which a run may compare with."""
        if self.thresholds or self.gates or self.regressions or self.named_gates:
            return True
        return self.checked or any(case.thresholds for case in self.cases)

    @property
    def total(self) -> int:
        """The number of cases in the file, faulty ones included."""
        return len(self.cases) + self.faulty

    @property
    def stretches(self) -> Sequence[Sequence[Case]]:
        """The cases as they run: all of them, or what runs between two looks at gates."""
        if self.order is None:
            return [self.cases]
        by_id = {case.id: case for case in self.cases}
        starts = (0, *self.order.ends)
        return [[by_id[name] for name in self.order.ids[start:end] if name in by_id] for start, end in pairwise(starts)]

    def limits(self, case: Case) -> Mapping[str, Limit]:
        """Return the limits of a case: the suite's, replaced by its own."""
        return {**self.thresholds, **case.thresholds} if case.thresholds else self.thresholds


def _answered_by(suite: Suite, name: str, system: System) -> Suite:
    return replace(
        suite,
        cases=system.cases,
        target=system.target,
        model=system.model,
        parts=suite.parts if system.model is None else Parts(),
        faults=(*suite.faults, *system.faults),
        system=name,
        left_out=system.left_out,
    )


def _is_between(gate: Gate | RegressionGate) -> bool:
    return isinstance(gate, RegressionGate) and bool(gate.against)


class SuiteKey(NamedTuple):
    """The key of results: a suite with its test and variant.

    Attributes:
        path: The suite file.
        shown: The file as reports name it: relative to pytest's rootdir, with forward slashes.
        test: Name of the Python test that ran the suite's cases; empty for the suite's own items.
        variant: The system, or the id of the parameters of ``llmeval_target``; empty where there is neither.
    """

    path: str
    shown: str
    test: str = ""
    variant: str = ""

    @property
    def runs(self) -> str:
        """What pytest is told to run for these results: the suite, or the test over it."""
        return self.test or self.shown
