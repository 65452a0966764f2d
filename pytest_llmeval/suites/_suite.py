"""A suite."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace as case_replace
from functools import cache, cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from pytest_llmeval.core import (
    MISSING,
    Case,
    ComparingEvaluator,
    Evaluator,
    Fault,
    LlmevalError,
    MediaForm,
    Metric,
    MetricIndex,
    Parts,
    Reading,
    RecordedCounts,
    Turn,
    are_equal,
    is_typed,
)
from pytest_llmeval.data import DeclaredType, SharedRows
from pytest_llmeval.gates import Gate
from pytest_llmeval.judges import PanelSpec
from pytest_llmeval.numbers import Abstained, Threshold, Unmet
from pytest_llmeval.suites._keys import SuiteKeys
from pytest_llmeval.suites._reading import SUITE_METRICS
from pytest_llmeval.suites._registry import Decided
from pytest_llmeval.suites._settings import CaseOrder, SampleSettings, StopSettings, draw
from pytest_llmeval.suites._systems import ModelSystem, System

if TYPE_CHECKING:
    from pytest_llmeval.core import WrittenObject
    from pytest_llmeval.gates import ChangeGate, ScoreGate
    from pytest_llmeval.judges import JudgedEvaluator, SuiteJudges

_CANNOT_FAIL = "nothing can fail here: without thresholds, checks, gates or a snapshot, every score passes"


class ExtraKey(Struct, frozen=True):
    """The value of a suite file's key that a plugin adds.

    Attributes:
        value: As its reader returns it.
        written: As the file has it, or the default.
        decides: What it decides.
    """

    value: Any
    written: Any
    decides: Decided


class LoadedSuite(SuiteKeys, frozen=True, dict=True):
    """A suite that can run: the keys of its file, and what loading and choosing a system add.

    Evaluators are by label: the evaluator's name, unless the file renames it. Cases are those without fault, in file
    order.

    Attributes:
        name: Of the suite, in reports.
        path: The file.
        types: Part of a case to the type that Python tests get it in.
        objects: Names of targets, worlds and models to what Python passes by value.
        checked: Whether some of its cases have checks.
        faults: Faults that do not concern every case; the good cases run, but gates are not evaluated.
        notes: Oddities of its data for which nothing fails.
        faulty: How many cases cannot run because of them.
        on: Label of an evaluator to the part or JMESPath that it reads in place of its own part.
        turns: Label of an evaluator to the turns of conversations that it reads.
        system: The system that answers, once one is chosen.
        model: Answers in place of a target, if that system is a model.
        left_out: How many cases are left out because they have no prediction.
        gated_as: The system, or the variant of the target, whose gates hold besides those of all.
        files: Case id to the data file whose line the case has; other cases stand in the suite file.
        rows: Of the data file of which its cases are one shard's; ``None`` where all cases were read for all shards.
        extra_keys: The keys that plugins add.
        order: In which its cases run if it stops when its gates are decided; ``None`` where all of them run.
    """

    OWN_METRICS: ClassVar = SUITE_METRICS
    """The metrics of every suite, besides those of its evaluators."""

    name: str
    path: Path
    types: Mapping[str, Any] = {}
    objects: Mapping[str, Any] = {}
    checked: bool = False
    faults: tuple[Fault, ...] = ()
    notes: tuple[Fault, ...] = ()
    faulty: int = 0
    on: Mapping[str, str] = {}
    turns: Mapping[str, Turn] = {}
    system: str = ""
    model: ModelSystem | None = None
    left_out: int = 0
    gated_as: str = ""
    files: Mapping[str, str] = {}
    rows: SharedRows | None = None
    extra_keys: Mapping[str, ExtraKey] = {}
    order: CaseOrder | None = None

    @property
    def extra(self) -> Mapping[str, Any]:
        """The values of the keys that plugins add, by name."""
        return {name: key.value for name, key in self.extra_keys.items()}

    def written(self, *decided: Decided) -> Mapping[str, Any]:
        """The keys that plugins add and that decide something, as the suite file has them."""
        return {name: key.written for name, key in self.extra_keys.items() if key.decides in decided}

    @cached_property
    def _by_variant(self) -> "dict[str, LoadedSuite]":
        """The suite as each of its variants has it, made when it is asked for."""
        return {}

    def for_variant(self, variant: str) -> "LoadedSuite":
        """The suite as one of its systems, or a variant of its target, answers it: with its cases and gates."""
        if variant not in self._by_variant:
            suite, system = self.gated(variant), self.systems.get(variant)
            self._by_variant[variant] = suite if system is None else _choose_system(suite, variant, system)
        return self._by_variant[variant]

    def gated(self, variant: str) -> "LoadedSuite":
        """The suite with the gates of one system or variant besides those of all."""
        own = any(gate.system == variant and not gate.against for gate in self.gates)
        return replace(self, gated_as=variant) if own else self

    def _gates_on(self, source: str) -> tuple[Gate, ...]:
        """The gates on one source that hold for every system, then those of this one."""
        gates = [gate for gate in self.gates if gate.source == source]
        own = (gate for gate in gates if gate.system and gate.system == self.gated_as)
        return (*(gate for gate in gates if not gate.system), *own)

    @property
    def score_gates(self) -> "tuple[ScoreGate, ...]":
        """The gates on scores, for every system and for this one."""
        return cast("tuple[ScoreGate, ...]", self._gates_on("scores"))

    @property
    def regressions(self) -> "tuple[ChangeGate, ...]":
        """The gates against a baseline, for every system and for this one."""
        return cast("tuple[ChangeGate, ...]", self._gates_on("baseline"))

    def gate_clusters(self, metric: str) -> str | None:
        """The label by which the gates on a metric cluster cases, or else the suite."""
        own = (gate.cluster_by for gate in self.regressions if gate.metric == metric and gate.cluster_by)
        return next(own, self.cluster_by)

    @property
    def between(self) -> "tuple[ChangeGate, ...]":
        """The gates between two systems."""
        return cast("tuple[ChangeGate, ...]", tuple(gate for gate in self.gates if gate.source == "systems"))

    @property
    def named_gates(self) -> tuple[Gate, ...]:
        """The gates of one system, and between two."""
        return tuple(gate for gate in self.gates if gate.names_system)

    @property
    def ordered_gates(self) -> tuple[Gate, ...]:
        """All gates: those with limits first, then those of drops, then those of single systems, each once."""
        return tuple({id(gate): gate for gate in (*self.score_gates, *self.regressions, *self.named_gates)}.values())

    @property
    def judged_metrics(self) -> list[str]:
        """The metrics of the gates, each once: those with limits first, then those of drops and of single systems."""
        return list(dict.fromkeys(gate.metric for gate in self.ordered_gates))

    @property
    def limited_usage(self) -> Sequence[str]:
        """The limited metrics of what calls took, such as ``target_cost_usd``, sorted."""
        limits = {*self.judged_metrics, *self.thresholds, *(name for case in self.cases for name in case.thresholds)}
        return sorted(limits.intersection(self.OWN_METRICS) - {Metric.PASS_RATE})

    @property
    def compared_by(self) -> Sequence[str]:
        """The main metrics of a comparison: those that the suite names, or those of its gates."""
        return self.compare_by or self.judged_metrics

    @property
    def all_faults(self) -> tuple[Fault, ...]:
        """The faults of the suite and of its systems."""
        return (*self.faults, *(fault for system in self.systems.values() for fault in system.faults))

    def called(self, name: str, role: str = "target") -> Callable[..., Any]:
        """The callable that a name in the suite file means.

        Args:
            name: ``module:name``, or the name of an object that Python passes by value.
            role: What the callable is, for messages.

        Raises:
            PredictionError: As of `pytest_llmeval.targets._python.PythonTarget.load`.
        """
        if name in self.objects:
            return cast("Callable[..., Any]", self.objects[name])
        from pytest_llmeval.targets import PythonTarget

        return PythonTarget.load(name, self.path.parent, role).function

    @property
    def bulk(self) -> bool:
        """Whether all cases run in one test item."""
        return self.mode == "bulk"

    @property
    def place(self) -> tuple[Path, str]:
        """The file and the system, which name the cases and the target together."""
        return self.path, self.system

    @cached_property
    def secret_variables(self) -> tuple[str, ...]:
        """The environment variables that the suite names as secrets."""
        http = self.target.http if self.target is not None else None
        headers = http.headers_from_env.values() if http is not None else ()
        specs = [evaluator.own_model for evaluator in self.asking.values()]
        specs += [*self.judge.jurors, self.model.spec if self.model is not None else None, self.conversation.user]
        keys = [spec.api_key_env for spec in specs if spec is not None]
        return (*headers, *filter(None, keys))

    @cached_property
    def asking(self) -> "Mapping[str, JudgedEvaluator]":
        """Label to each evaluator that asks models."""
        asking = {label: evaluator for label, evaluator in self.evaluators.items() if evaluator.asks}
        if not asking:
            return {}
        from pytest_llmeval.judges import JudgedEvaluator

        return {label: evaluator for label, evaluator in asking.items() if isinstance(evaluator, JudgedEvaluator)}

    @property
    def judged(self) -> bool:
        """Whether a judge may be asked about its cases."""
        return bool(self.asking)

    @property
    def asks_models(self) -> bool:
        """Whether a judge may be asked about its cases, or a model that plays the user."""
        return self.judged or self.conversation.user is not None

    @cached_property
    def asks_judge(self) -> bool:
        """Whether its own judge may be asked, not only embedding models named by evaluators."""
        return any(evaluator.asks_judge for evaluator in self.asking.values())

    def judge_identities(self, judges: "SuiteJudges", display_path: str) -> dict[str, dict[str, str]]:
        """The identity of each evaluator's judge in a run: the model, its parameters, how it is asked.

        Args:
            judges: Of the run.
            display_path: The suite file in messages.
        """
        if not self.judged:
            return {}
        suite_judge = judges.judge_of(self.path, self.judge, display_path, priced=self.asks_judge)
        shared = {"model": suite_judge.model, "parameters": json.dumps(suite_judge.parameters, sort_keys=True)}
        identities = {}
        for label, evaluator in self.asking.items():
            own = evaluator.own_model
            model = shared if own is None else {"model": str(own.model), "parameters": "{}"}
            signatures = dict.fromkeys(metric.signature for metric in evaluator.describe())
            identities[label] = {**model, "prompt": "; ".join(signatures)}
        recorded = {
            label: evaluator for label, evaluator in self.evaluators.items() if isinstance(evaluator, RecordedCounts)
        }
        if not recorded:
            return identities
        from pytest_llmeval.evaluators import VerdictStatistics

        counts = {label: evaluator for label, evaluator in recorded.items() if isinstance(evaluator, VerdictStatistics)}
        return identities | {label: identities[count.of] for label, count in counts.items()}

    @property
    def _comparing(self) -> "dict[str, ComparingEvaluator]":
        """The evaluators that compare systems, by label."""
        return {
            label: evaluator
            for label, evaluator in self.evaluators.items()
            if isinstance(evaluator, ComparingEvaluator)
        }

    @cached_property
    def opponents(self) -> Sequence[str]:
        """The systems with whose answers its evaluators compare."""
        return tuple(dict.fromkeys(name for evaluator in self._comparing.values() for name in evaluator.opponents))

    @cached_property
    def against_approved(self) -> tuple[str, ...]:
        """The names of the metrics that compare with approved answers; an approval changes what they compare with."""
        labels = [label for label, evaluator in self._comparing.items() if evaluator.APPROVED in evaluator.opponents]
        return tuple(entry.name for label in labels for entry in self.metrics.declared[label])

    @cached_property
    def readings(self) -> Mapping[str, Reading]:
        """Label to what the evaluator reads of a case."""
        readings = {
            label: Reading.for_evaluator(evaluator, self._read_by(label, evaluator), self.parts, self.turns.get(label))
            for label, evaluator in self.evaluators.items()
        }
        for label, evaluator in self.evaluators.items():
            if evaluator.takes_objects:
                readings[label] = replace(readings[label], converted=self.typed)
            elif evaluator.name == "checks":
                readings[label] = replace(readings[label], converted=self._for_checks)
        return readings

    def _for_checks(self, case: Case) -> Case:
        """The case for checks: those that are functions of users convert it, all others read JSON data."""
        if not self.types and not case.objects:
            return case
        return case_replace(case, origin=case_replace(case.whole, typed=self.typed))

    def _read_by(self, label: str, evaluator: Evaluator) -> str | None:
        """The part that an evaluator reads in place of its own: of a model, its text without the usage."""
        whole = self.model is not None and evaluator.reads.part == Parts.WHOLE
        return self.on.get(label, "answer" if whole else None)

    def typed(self, case: Case) -> Case:
        """The case as users' code gets it: with the objects that were given, or built by the declared types.

        A prediction is of the type that is declared for it, or else for the expectation. What does not fit stays as
        it is.
        """
        users_case = case.as_given()
        if not isinstance(users_case.prediction, Mapping):
            return users_case
        held = case.objects.get("prediction")
        was_written = held is not None and held.written is not None
        kind = self._declared_type(users_case) if was_written else self._declared_type()
        if kind is None:
            return users_case
        return case_replace(users_case, prediction=_typed_part(kind, users_case.prediction))

    def reread(self, case: Case, form: Any, written: "WrittenObject | None") -> Case:
        """The case with a prediction that was written, and the object that it was, as far as its type is known.

        Args:
            case: The case.
            form: The prediction as it was written.
            written: What was written beside it; ``None`` for JSON data.
        """
        if written is None:
            return case.answered(form)
        value, kind = written.restored(form), self._declared_type(case.as_given())
        if kind is not None and written.typed:
            value = _typed_part(kind, value)
        return case.with_object("prediction", form, value, written)

    def _declared_type(self, users_case: Case | None = None) -> Any:
        """The type of predictions, or else of expectations: as declared, or of the one of a case."""
        expected = None if users_case is None else users_case.expected
        of_case = type(expected) if is_typed(expected) else None
        return self.types.get("prediction", self.types.get("expected", of_case))

    def can_rebuild(self, case: Case) -> bool:
        """Whether a prediction is data, or can be made of its form again.

        The type that is declared makes objects, and pictures of other libraries are media if no evaluator gets them.
        """
        value = case.object_of("prediction")
        again = self.reread(case, case.prediction, case.written_object()).object_of("prediction")
        if are_equal(again, value):
            return True
        if not any(MediaForm.find_all(case.prediction)) or not _are_same_but_for_media(again, value):
            return False
        from pytest_llmeval.evaluators import Checks

        return not any(
            evaluator.takes_objects_of(case) if isinstance(evaluator, Checks) else evaluator.takes_objects
            for evaluator in self.evaluators.values()
        )

    def parts_of(self, case: Case) -> Parts:
        """The paths to the parts of a case's prediction: a transcript has them under their names."""
        return Parts() if case.conversation else self.parts

    @cached_property
    def _corrected(self) -> Mapping[str, Evaluator]:
        """The evaluators by label, those of a cascade with corrected metrics."""
        if not isinstance(self.judge, PanelSpec) or self.judge.cascade is None:
            return self.evaluators
        from pytest_llmeval.evaluators import Cascaded

        audit = self.judge.cascade.audit
        asking = {label: Cascaded(evaluator, audit) for label, evaluator in self.asking.items() if evaluator.asks_judge}
        return {label: asking.get(label, evaluator) for label, evaluator in self.evaluators.items()}

    @cached_property
    def reported(self) -> Mapping[str, Evaluator]:
        """Label to what turns counts into metrics: the evaluators, or what corrects them and reduces their repeats."""
        evaluators = self._corrected
        if self.repeats.times == 1:
            return evaluators
        return self.repeats.over(evaluators, counts_abstained=self.abstained == "fell")

    def find_abstained(self, names: Iterable[str], reasons: Mapping[str, str]) -> Mapping[str, Abstained]:
        """The metrics to which a case's answer gives nothing to score; none if the suite allows that.

        Args:
            names: Their names.
            reasons: Metric to the reason.
        """
        return {} if self.abstained == "allowed" else Abstained.by_metric(self.metrics, names, reasons)

    def find_unmet(
        self,
        limits: Mapping[str, Threshold],
        scores: Mapping[str, float | None],
        abstained: Iterable[str],
        reasons: Mapping[str, str],
    ) -> list[Unmet]:
        """The thresholds of a case that its recorded scores do not meet.

        Args:
            limits: Metric to limit.
            scores: Metric to score.
            abstained: The metrics to which its answer gives nothing to score.
            reasons: Metric to why it has no score.
        """
        return Unmet.of_case(limits, scores, self.find_abstained(abstained, reasons))

    @cached_property
    def metrics(self) -> MetricIndex:
        """The metrics that the suite reports, by name."""
        return MetricIndex.from_evaluators(self.reported)

    def deciding_labels(self, metric: str) -> set[str]:
        """The labels of the evaluators that decide a metric of a snapshot; limits and checks decide the pass rate."""
        if metric != Metric.PASS_RATE:
            return {owner.label for owner in [self.metrics.find(metric)] if owner is not None}
        limited = {limit for case in self.cases for limit in self.limits(case)}
        labels = {owner.label for owner in map(self.metrics.find, limited) if owner is not None}
        if self.checked:
            labels |= {label for label, evaluator in self.evaluators.items() if evaluator.asserts}
        return labels

    @property
    def can_fail(self) -> bool:
        """Whether some score would fail a case or the suite; approved scores aside, which a run may compare with."""
        if self.thresholds or self.gates or any(evaluator.has_rules for evaluator in self.evaluators.values()):
            return True
        return self.checked or any(case.thresholds for case in self.cases)

    @property
    def cannot_fail(self) -> str:
        """The line about a suite in which nothing can fail, with the next step."""
        name = next((entry.name for declared in self.metrics.declared.values() for entry in declared), "")
        limit = f"{name} {'<= 0.2' if self.metrics.lower_is_better(name) else '>= 0.8'}"
        return f"{_CANNOT_FAIL}: add gates: ['{limit}'], or snapshot: true and approve the scores of a run"

    @property
    def total(self) -> int:
        """The number of cases in the file, faulty ones and those of other shards included."""
        return len(self.cases) + self.faulty + (0 if self.rows is None else self.rows.unread)

    @property
    def lacks_predictions(self) -> bool:
        """Whether a case, of any shard, has no prediction."""
        elsewhere = self.rows is not None and self.rows.unanswered
        return elsewhere or any(case.prediction is MISSING for case in self.cases)

    @property
    def stretches(self) -> Sequence[Sequence[Case]]:
        """The cases as they run: all of them, or what runs between two looks at gates."""
        if self.order is None:
            return [self.cases]
        by_id = {case.id: case for case in self.cases}
        starts = (0, *self.order.ends)
        return [[by_id[name] for name in self.order.ids[start:end] if name in by_id] for start, end in pairwise(starts)]

    def limits(self, case: Case) -> Mapping[str, Threshold]:
        """The limits of a case: the suite's, replaced by its own."""
        return {**self.thresholds, **case.thresholds} if case.thresholds else self.thresholds

    def in_order(self, seed: str | None, family: str | None = None) -> "LoadedSuite":
        """The suite with its cases in order, if it stops when its gates are decided and they can be.

        Cases are sorted by the digests of their ids, or of the names of their clusters, with the seed, so that a case
        that is added or removed changes the order of no other.

        Args:
            seed: Such as the commit that is checked out; ``None``: a fingerprint of the suite's cases.
            family: Whose gates are judged together.
        """
        if self.stop is None or self.stop_fault(family):
            return self
        if seed is None:
            seed = _digest("\n".join(case.id for case in _every_case(self)))
        return replace(self, order=_order(_every_case(self), self, self.stop, seed))

    def stop_fault(self, family: str | None = None) -> str:
        """The reason why a suite that is to stop when its gates are decided runs to its end; empty if it stops.

        Args:
            family: Whose gates are judged together.
        """
        gates = self.ordered_gates
        if not gates:
            return "it has no gates"
        if self.bulk:
            return "mode bulk runs all cases in one item"
        if family == "project" and any(gate.claims for gate in gates):
            return "its gates are judged together with those of other suites"
        if self.all_faults:
            return "its files have faults"
        if self.sample is not None and self.sample.weights:
            return "cases of its sample have different weights"
        return "; ".join(f"{gate}: {fault}" for gate in gates if (fault := _gate_fault(self, gate)))

    def stopping(self, option: str | None) -> "LoadedSuite":
        """A copy that stops by ``--llmeval-stop``, ``decided`` or ``never``; without the option, the suite itself."""
        if option is None:
            return self
        return replace(self, stop=(self.stop or StopSettings()) if option == "decided" else None)


def _typed_part(kind: Any, value: Any) -> Any:
    """A prediction in the type that a suite declares; unchanged if it has another form."""
    try:
        return DeclaredType(kind).convert(value)
    except LlmevalError:
        return value


def _choose_system(suite: LoadedSuite, name: str, system: System) -> LoadedSuite:
    """A suite with one of its systems chosen: its cases, and its target or model."""
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


class SuiteKey(NamedTuple):
    """The key of a suite's results in a run: the suite with its test and variant.

    Attributes:
        path: The suite file.
        display_path: The file as reports name it: relative to pytest's rootdir, with forward slashes.
        test: Name of the Python test that ran the suite's cases; empty for the suite's own items.
        variant: The system, or the id of the parameters of ``llmeval_target``; empty if there is neither.
    """

    path: str
    display_path: str
    test: str = ""
    variant: str = ""

    def display_beside(self, path: Path) -> str:
        """The name that messages give a file in the folder of approved scores beside the suite file."""
        return (Path(self.display_path).parent / path.parent.name / path.name).as_posix()

    @property
    def runs(self) -> str:
        """The argument with which pytest runs for these results: the suite, or the test over it."""
        return self.test or self.display_path

    @property
    def user(self) -> str:
        """The name under which the suite's code uses things, in the record of uses."""
        return f"suite {self.whole_name}"

    @property
    def whole_name(self) -> str:
        """The name of the results in files: the same on every machine."""
        return _as_json(self[1:])

    def stop_group(self, suite: LoadedSuite) -> "SuiteKey":
        """The key of what stops early together: all systems of a suite, a variant of its target, or a Python test."""
        return self._replace(variant="") if suite.systems and not self.test else self


@cache
def _as_json(names: tuple[str, ...]) -> str:
    """The names of a suite's results, which each of its cases asks for, as JSON."""
    return json.dumps(names)


def sampled(suite: LoadedSuite, settings: SampleSettings) -> LoadedSuite:
    """A suite, with its systems, reduced to the cases of its sample."""
    drawn = draw(suite.cases, settings)
    if drawn is None:
        return suite
    chosen, sample = drawn
    cases = tuple(case for case in suite.cases if case.id in chosen)
    systems = {
        name: replace(system, cases=tuple(case for case in system.cases if case.id in chosen))
        for name, system in suite.systems.items()
    }
    return replace(suite, cases=cases, systems=systems, sample=sample)


def _gate_fault(suite: LoadedSuite, gate: Gate) -> str:
    """The reason why a suite's gate cannot be judged before all cases have run; empty if it can."""
    owned, label = suite.metrics.find(gate.metric), _cluster_label(suite)
    metric = Metric.of_pass_rate() if gate.metric == Metric.PASS_RATE else None if owned is None else owned.metric
    if gate.cluster_by not in (None, label):
        return f"cases are ordered by {label}, and not by {gate.cluster_by}"
    if owned is not None and gate.statistic == "value" and owned.label in suite.turns:
        return f"a conversation has several turns; mean({gate.metric}) can be judged early"
    return gate.early_fault(metric)


def _cluster_label(suite: LoadedSuite) -> str | None:
    """The label whose cases stay together in the order of a suite that may stop early."""
    own = (gate.cluster_by for gate in suite.ordered_gates if gate.cluster_by)
    return suite.cluster_by or next(own, None)


def _every_case(suite: LoadedSuite) -> list[Case]:
    """The cases of a suite and of its systems, each once."""
    of_systems = (case for system in suite.systems.values() for case in system.cases)
    return list({case.id: case for case in (*suite.cases, *of_systems)}.values())


def _order(cases: Sequence[Case], suite: LoadedSuite, stop: StopSettings, seed: str) -> CaseOrder:
    """The order of cases in a suite that may stop early: those that always run, then the others at random."""
    label = _cluster_label(suite)
    always = [case for case in cases if stop.keeps(case)]
    units: dict[tuple[bool, str], list[Case]] = {}
    for case in cases:
        if not stop.keeps(case):
            name = case.labels.get(label) if label else None
            units.setdefault((name is not None, case.id if name is None else name), []).append(case)
    drawn = [units[key] for key in sorted(units, key=lambda key: (_digest(f"{seed}\n{suite.name}\n{key}"), key))]
    ids = [case.id for case in always]
    numbers = [-1] * len(always)
    ends = []
    size = _whole_batches(suite, stop.block_of(len(cases)))
    since = 0
    for number, unit in enumerate(drawn):
        ids += [case.id for case in unit]
        numbers += [number] * len(unit)
        since += len(unit)
        if since >= size:
            ends.append(len(ids))
            since = 0
    if not ends or ends[-1] < len(ids):
        ends.append(len(ids))
    return CaseOrder(tuple(ids), tuple(numbers), tuple(ends), stop.confidence)


def _whole_batches(suite: LoadedSuite, size: int) -> int:
    """A number of cases rounded up to whole batches of the services that answer several cases at once."""
    targets = [suite.target, *(system.target for system in suite.systems.values())]
    batch = max([1, *(target.http.batch for target in targets if target is not None and target.http is not None)])
    return -(-size // batch) * batch


def _digest(text: str) -> str:
    """A digest by which the cases of a suite are put in a random but reproducible order."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _are_same_but_for_media(again: Any, value: Any) -> bool:
    """Whether a case's value, made again from its stored form, equals the original; media count as equal."""
    from pytest_llmeval.core import Media

    if isinstance(again, Media) or are_equal(again, value):
        return True
    if isinstance(again, Mapping) and isinstance(value, Mapping):
        return again.keys() == value.keys() and all(_are_same_but_for_media(again[key], value[key]) for key in again)
    if isinstance(again, list) and isinstance(value, list):
        return len(again) == len(value) and all(map(_are_same_but_for_media, again, value))
    return False
