"""Which mutants of answers a suite notices: by its cases, its evaluators and its gates."""

__all__ = ("GateNotice", "KindOutcome", "Survival", "findings", "mutate_suite")

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, field

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.judge.judged_evaluator import JudgedEvaluator
from pytest_llmeval.judge.service import JudgeOffError
from pytest_llmeval.run.execute import Execution, execute
from pytest_llmeval.run.job import CaseAnswer
from pytest_llmeval.run.mutation.mutators import MUTATORS, REWRITES, Mutator, Neighbours, applicable
from pytest_llmeval.run.target_figures import with_figures
from pytest_llmeval.scoring.gates import Gate
from pytest_llmeval.scoring.intervals import wilson_interval
from pytest_llmeval.scoring.summary import summarize
from pytest_llmeval.suite.suite import Suite

if TYPE_CHECKING:
    from pytest_llmeval.judge.contract import Verdict

_TOLERANCE: Final = 1e-9
_MIXTURES: Final = 5
_MOST_NEIGHBOURS: Final = 20
"""Cases from which a mutant takes something: all of them would take quadratic time."""
_LISTED: Final = 5
_CONFIDENCE: Final = 0.95


class KindOutcome(Struct, frozen=True):
    """What became of the mutants of one kind.

    Attributes:
        name: The mutator.
        why: Why its result is wrong; for rewrites, why it is not.
        advice: What would notice it.
        mutants: How many there are.
        survived: How many the suite does not notice: the case passes, and no metric of a gate gets worse. For rewrites,
            how many it takes for errors: the case fails.
        low: Lower bound of the share, by Wilson at 95 %.
        high: Upper bound.
        by_evaluator: Evaluator to how many mutants make none of its metrics worse.
    """

    name: str
    why: str
    advice: str
    mutants: int
    survived: int
    low: float
    high: float
    by_evaluator: Mapping[str, int] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """The share that survived."""
        return self.survived / self.mutants


class GateNotice(Struct, frozen=True):
    """What a gate notices.

    Attributes:
        gate: The gate.
        share: The smallest share of broken answers at which it fails, over several mixtures the median; ``None`` if it
            passes even if all answers are broken.
        unjudged: Why it cannot be judged on mutants; empty where it can.
    """

    gate: str
    share: float | None
    unjudged: str = ""


class Survival(Struct, frozen=True):
    """What a suite would notice.

    Attributes:
        suite: Its name.
        kinds: Of mutants, those that survive most first.
        rewrites: Equivalent answers, with how many the suite takes for errors.
        gates: What each gate notices.
        blind_cases: Cases of which every mutant survives.
        idle_limits: Thresholds that no mutant misses.
        left_out: Why cases or evaluators are left out.
    """

    suite: str
    kinds: Sequence[KindOutcome]
    rewrites: Sequence[KindOutcome]
    gates: Sequence[GateNotice]
    blind_cases: Sequence[str]
    idle_limits: Sequence[str]
    left_out: Sequence[str]

    @property
    def mutants(self) -> int:
        """How many mutants there are."""
        return sum(each.mutants for each in self.kinds)

    @property
    def rate(self) -> float | None:
        """The share of mutants that survived; ``None`` without mutants."""
        return sum(each.survived for each in self.kinds) / self.mutants if self.mutants else None


def mutate_suite(
    suite: Suite, answers: Mapping[str, Any] | None = None, seed: int = 0, system: str | None = None
) -> Survival:
    """Change the answers of a suite or of one of its systems, and say what the suite does not notice.

    Judges are not asked: what they would say is undefined.

    Args:
        suite: Loaded; its cases have predictions, or `answers` has them.
        system: Whose answers are changed; ``None`` for those of the cases themselves.
        answers: Case id to prediction; they come before those of the suite.
        seed: Of everything random.

    Raises:
        LlmevalError: No case has an answer that passes.
    """
    left_out: list[str] = []
    judged = [label for label, each in suite.evaluators.items() if isinstance(each, JudgedEvaluator)]
    if judged:
        left_out.append(f"judges are not asked: what only they would notice in {', '.join(judged)} counts as survived")
    given = answers or {}
    cases = [
        each.answered(given.get(each.id, each.prediction))
        for each in (suite.cases if system is None else suite.systems[system].cases)
    ]
    answered = [each for each in cases if each.prediction is not MISSING and not each.conversation]
    if len(answered) < len(cases):
        left_out.append(
            f"{len(cases) - len(answered)} of {len(cases)} cases have no recorded answer to a single question"
        )
    originals = {each.id: _scored(suite, each) for each in answered}
    sound = [each for each in answered if originals[each.id].record.outcome == "passed"]
    if len(sound) < len(answered):
        left_out.append(f"{len(answered) - len(sound)} of {len(answered)} answers fail as they are")
    if not sound:
        raise LlmevalError(f"{suite.name}: found no case with an answer that passes, expected some to change")
    name = suite.name if system is None else f"{suite.name}[{system}]"
    return _Mutation(suite, sound, originals, seed).survival(name, left_out)


def _scored(suite: Suite, case: Case) -> Execution:
    """Score an answer; of a judge, what it would say is undefined."""
    case = with_figures(case, suite.parts_of(case))
    verdicts: dict[str, list[list[Verdict | LlmevalError]]] = {}
    failed: dict[str, Exception] = {}
    for label, evaluator in suite.evaluators.items():
        if isinstance(evaluator, JudgedEvaluator):
            try:
                views = suite.readings[label].views(case)
                verdicts[label] = [[JudgeOffError()] * len(evaluator.questions(view)) for view in views]
            except Exception as error:  # noqa: BLE001 (whatever an evaluator raises concerns this case only)
                failed[label] = error
    return execute(suite, CaseAnswer(case, verdicts=verdicts, failed=failed), explains_all=False)


def _is_wrong(case: Case, prediction: Any) -> bool:
    """Return whether a mutant really differs from everything that the case expects."""
    expected = case.expected if isinstance(case.expected, list) else [case.expected]
    return prediction != case.prediction and prediction not in expected


def _family(metric: str) -> str:
    """Return the name of a metric without the label of one of a family, such as ``f1[joy]``."""
    return metric.partition("[")[0]


class _Mutant(NamedTuple):
    """A mutant that was scored: its record, and the metrics that it makes worse."""

    record: CaseRecord
    worse: frozenset[str]


class _Mutation:
    def __init__(self, suite: Suite, cases: Sequence[Case], originals: Mapping[str, Execution], seed: int) -> None:
        self.suite = suite
        self.cases = cases
        self.originals = originals
        self.seed = seed
        labels = [each.expected for each in cases if isinstance(each.expected, str)]
        counts = Counter(labels)
        # Expectations that repeat are classes; texts that are all different are answers.
        self.has_classes = len(labels) == len(cases) and 1 < len(counts) <= len(cases) / 2
        self.labels = sorted(counts) if self.has_classes else []
        self.most = min(counts, key=lambda each: (-counts[each], each)) if self.has_classes else None
        self.gated = frozenset(suite.judged_metrics)
        self.scores = {name: each.scores(suite) for name, each in originals.items()}
        declared = {label: suite.metrics.declared[label] for label in suite.evaluators}
        self.families = {label: {_family(each.name) for each in metrics} for label, metrics in declared.items()}
        owned = [each for metrics in declared.values() for each in metrics]
        self.higher = {_family(each.name): each.metric.higher_is_better for each in owned}

    def survival(self, name: str, left_out: Sequence[str]) -> Survival:
        """Score all mutants."""
        by_kind: dict[str, list[_Mutant]] = {}
        by_case: dict[str, list[_Mutant]] = {}
        missed: set[str] = set()
        for place, case in enumerate(self.cases):
            for mutator, prediction in applicable(MUTATORS, case, self._near(place)):
                if _is_wrong(case, prediction):
                    made = _scored(self.suite, case.answered(prediction))
                    mutant = _Mutant(made.record, self._worse(case, made))
                    by_kind.setdefault(mutator.name, []).append(mutant)
                    by_case.setdefault(case.id, []).append(mutant)
                    missed.update(each.metric for each in made.unmet)
        kinds = [self._kind(mutator, by_kind[mutator.name]) for mutator in MUTATORS if mutator.name in by_kind]
        rewritten = () if self.has_classes else REWRITES  # a label is written in one way
        rewrites = [each for mutator in rewritten if (each := self._rewritten(mutator)) is not None]
        wanted = {metric for case in self.cases for metric in self.suite.limits(case)}
        return Survival(
            name,
            sorted(kinds, key=lambda each: (-each.rate, -each.mutants, each.name)),
            sorted(rewrites, key=lambda each: (-each.rate, each.name)),
            [self._gate(gate, by_case) for gate in self.suite.gates],
            [case for case, found in by_case.items() if not any(map(self._is_noticed, found))],
            sorted(each for each in wanted - missed if _family(each) in self.higher),
            left_out,
        )

    def _is_noticed(self, mutant: _Mutant) -> bool:
        return mutant.record.outcome != "passed" or bool(mutant.worse & self.gated)

    def _near(self, place: int) -> Callable[[str], Neighbours]:
        """Return what mutators may take from the cases that follow one, the first after the last."""
        case = self.cases[place]
        around = islice(chain(self.cases[place + 1 :], self.cases[:place]), _MOST_NEIGHBOURS)
        others = [each for each in around if each.expected != case.expected]

        def of(kind: str) -> Neighbours:
            return Neighbours(others, self.most, self.labels, f"{self.seed} {self.suite.name} {case.id} {kind}")

        return of

    def _worse(self, case: Case, made: Execution) -> frozenset[str]:
        """Return the metrics that a mutant makes worse."""
        after = made.scores(self.suite)
        worse = set()
        for name, then in self.scores[case.id].items():
            now = after.get(name)
            if then is None:
                continue
            sign = 1 if self.higher.get(_family(name), True) else -1
            if now is None or sign * (then - now) > _TOLERANCE:
                worse.add(name)
        return frozenset(worse)

    def _kind(self, mutator: Mutator, found: Sequence[_Mutant]) -> KindOutcome:
        survived = sum(not self._is_noticed(each) for each in found)
        unmoved = {
            label: sum(not names & set(map(_family, each.worse)) for each in found)
            for label, names in self.families.items()
        }
        low, high = wilson_interval(survived, len(found), _CONFIDENCE)
        return KindOutcome(mutator.name, mutator.why, mutator.advice, len(found), survived, low, high, unmoved)

    def _rewritten(self, mutator: Mutator) -> KindOutcome | None:
        failed = total = 0
        for place, case in enumerate(self.cases):
            for _, prediction in applicable([mutator], case, self._near(place)):
                total += 1
                made = _scored(self.suite, case.answered(prediction))
                failed += made.record.outcome != "passed"
        if not total:
            return None
        low, high = wilson_interval(failed, total, _CONFIDENCE)
        return KindOutcome(mutator.name, mutator.why, mutator.advice, total, failed, low, high)

    def _gate(self, gate: Gate, mutants: Mapping[str, Sequence[_Mutant]]) -> GateNotice:
        """Mix mutants that the gate's metric sees into the run, and look from which share on the gate fails."""
        if _family(gate.metric) not in self.higher and gate.metric != "pass_rate":
            return GateNotice(str(gate), None, "its metric is not computed without judges or targets")
        if not mutants:
            return GateNotice(str(gate), None, "no answer could be changed")
        if gate.metric != "pass_rate" and self._metric(gate) is None:
            return GateNotice(str(gate), None, "its metric needs a judge")
        seen = {
            name: [each.record for each in found if gate.metric in each.worse] or [each.record for each in found]
            for name, found in mutants.items()
        }
        shares: list[float | None] = []
        for mixture in range(_MIXTURES):
            rng = random.Random(f"{self.seed} {self.suite.name} {mixture}")  # noqa: S311 (no secret)
            order = sorted(seen)
            rng.shuffle(order)
            chosen = {name: rng.choice(seen[name]) for name in order}
            if not self._fails(gate, chosen):
                shares.append(None)
                continue
            low, high = 0, len(order)  # passes with `low` broken answers, fails with `high`
            while high - low > 1:
                middle = (low + high) // 2
                if self._fails(gate, {name: chosen[name] for name in order[:middle]}):
                    high = middle
                else:
                    low = middle
            shares.append(high / len(self.cases))
        known = sorted(each for each in shares if each is not None)
        return GateNotice(str(gate), known[len(known) // 2] if len(known) > _MIXTURES // 2 else None)

    def _metric(self, gate: Gate) -> float | None:
        records = [self.originals[case.id].record for case in self.cases]
        found = summarize(self.suite.reported, records, confidence=None).find(gate.metric)
        return None if found is None else found.value

    def _fails(self, gate: Gate, broken: Mapping[str, CaseRecord]) -> bool:
        records = [broken.get(case.id, self.originals[case.id].record) for case in self.cases]
        confidence = _CONFIDENCE if gate.statistic in ("low", "high") else None
        result = summarize(self.suite.reported, records, group_by=self.suite.group_by, confidence=confidence)
        return gate.judge(result).outcome == "failed"


def findings(survival: Survival, limit: float) -> Iterator[str]:
    """Yield what is wrong with a suite, a sentence each, with what would help.

    Args:
        survival: Of its mutants.
        limit: The share of a kind of mutants that may survive.
    """
    for kind in survival.kinds:
        if kind.rate > limit:
            share = f"{kind.survived} of {kind.mutants}"
            yield f"{kind.name}: {share} pass although {kind.why}: try {kind.advice}"
    for gate in survival.gates:
        if gate.share is None and not gate.unjudged:
            yield f"gate {gate.gate}: passes even if all answers are broken: raise it, or judge another metric"
    if survival.blind_cases:
        listed = _named(survival.blind_cases)
        yield f"cases that pass whatever the answer is: {listed}: give them an expectation or checks"
    if survival.idle_limits:
        yield f"thresholds that no broken answer misses: {_named(survival.idle_limits)}: raise them"
    for kind in survival.rewrites:
        if kind.rate > limit:
            yield f"{kind.name}: {kind.survived} of {kind.mutants} fail although {kind.why}: the suite cries wolf"


def _named(names: Iterable[str]) -> str:
    listed = list(names)
    rest = len(listed) - _LISTED
    return ", ".join([*listed[:_LISTED], *([f"and {rest} more"] if rest > 0 else [])])
