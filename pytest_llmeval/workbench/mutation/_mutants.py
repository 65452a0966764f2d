"""The mutants of a suite: recorded answers that pass, each changed by every mutator that applies."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import structs

from pytest_llmeval.core import (
    MISSING,
    AnyError,
    Case,
    CaseRecord,
    LlmevalError,
    Mutator,
    Neighbours,
    counted,
    grouped,
)
from pytest_llmeval.judges import JudgeOptions
from pytest_llmeval.numbers import Repeats
from pytest_llmeval.run import (
    CaseRunner,
    Execution,
    LoadedCase,
    score_unjudged,
    with_parts,
)
from pytest_llmeval.suites import LoadedSuite, SuiteKey
from pytest_llmeval.workbench.mutation._mutators import normal
from pytest_llmeval.workbench.plan import RunPlan
from pytest_llmeval.workbench.plan._making import plan_cases

_MOST_NEIGHBOURS: Final = 20
"""Cases from which a mutant takes something: all of them would take quadratic time."""

MutantScorer: TypeAlias = Callable[[LoadedSuite, Sequence[Case]], list[Execution]]
"""Scores answered cases of a suite, of which no two have the same id, in order."""


def score_mutants(score: MutantScorer, suite: LoadedSuite, mutants: Sequence["Mutant"]) -> list[Execution]:
    """Score mutants of a suite, one kind at a time, so that no two are of the same case."""
    executions: dict[int, Execution] = {}
    for places in kinds_of(mutants).values():
        scored = score(suite, [mutants[place].changed for place in places])
        executions.update(zip(places, scored, strict=True))
    return [executions[place] for place in range(len(mutants))]


def kinds_of(mutants: Sequence["Mutant"]) -> dict[str, list[int]]:
    """The positions of mutants by the name of the mutator that made them."""
    return grouped((mutant.mutator.name, place) for place, mutant in enumerate(mutants))


def is_wrong(case: Case, prediction: Any) -> bool:
    """Whether a changed answer differs from the recorded one and from everything that the case expects."""
    if prediction == case.prediction:
        return False
    expected = case.expected if isinstance(case.expected, list) else [case.expected]
    if prediction in expected:
        return False
    if not isinstance(prediction, str) or not prediction:
        return True
    answer = normal(prediction)
    same = (case.prediction, *expected)
    return all(not isinstance(known_answer, str) or normal(known_answer) != answer for known_answer in same)


class Mutant(NamedTuple):
    """A recorded answer that a mutator has changed.

    Attributes:
        case: The case as it was recorded.
        mutator: What changed the answer.
        changed: The case with the changed answer.
    """

    case: Case
    mutator: Mutator
    changed: Case


class Mutation:
    """The mutants of a suite or of one of its systems, made from recorded answers that pass.

    Args:
        suite: As the system answers it.
        name: In reports.
        mutators: All that are registered; those that name other evaluators than the suite's are left out.
        answers: Case id to prediction; they come before those of the suite.
        seed: Of everything random.
        path: Of the suite, as reports name it.

    Raises:
        LlmevalError: No case has an answer that passes.
    """

    def __init__(
        self,
        suite: LoadedSuite,
        name: str,
        mutators: Sequence[Mutator],
        answers: Mapping[str, Any],
        seed: int,
        path: str = "",
    ) -> None:
        self.suite = suite = structs.replace(suite, repeats=Repeats())
        self.name = name
        self.path = path
        self.seed = seed
        self.left_out: list[str] = []
        self._faults: dict[str, list[str]] = {}
        self.mutators = _for_suite(mutators, suite)
        cases = [case.answered(answers.get(case.id, case.prediction)) for case in suite.cases]
        answered = [case for case in cases if case.prediction is not MISSING]
        if len(answered) < len(cases):
            self.left_out.append(
                f"{len(cases) - len(answered)} of {counted(len(cases), 'case')} without a recorded answer"
            )
        self.cases = self._sound([with_parts(case, suite.parts_of(case)) for case in answered], score_unjudged)

    def _sound(self, cases: Sequence[Case], score: MutantScorer) -> list[Case]:
        """Score the recorded answers, and return the cases that pass: a wrong answer changed may be right."""
        self.originals = dict(zip((case.id for case in cases), score(self.suite, cases), strict=True))
        sound = [case for case in cases if self.originals[case.id].record.outcome in CaseRecord.UNFAILED]
        if len(sound) < len(cases):
            self.left_out.append(f"{len(cases) - len(sound)} of {counted(len(cases), 'answer')} failed as recorded")
        bad = [case for case in sound if _scores_nothing(self.suite, self.originals[case.id])]
        if bad:
            sound = [case for case in sound if case not in bad]
            self.left_out.append(f"{len(bad)} of {counted(len(cases), 'answer')} score nothing as recorded")
        if not sound:
            raise LlmevalError(f"{self.name}: no case has an answer that passes, so none can be broken")
        return sound

    @cached_property
    def _labels(self) -> Mapping[str, int]:
        """The expected classes with their numbers; empty where cases expect something else."""
        labels = [case.expected for case in self.cases if isinstance(case.expected, str)]
        counts = Counter(labels)
        # Expectations that repeat are classes; texts that are all different are answers.
        return counts if len(labels) == len(self.cases) and 1 < len(counts) <= len(labels) / 2 else {}

    @cached_property
    def most(self) -> str | None:
        """The most frequent expected class; ``None`` where cases expect something else."""
        return min(self._labels, key=lambda each: (-self._labels[each], each)) if self._labels else None

    @cached_property
    def mutants(self) -> list[Mutant]:
        """Every mutant, case by case."""
        mutants = self._mutants([mutator for mutator in self.mutators if not mutator.equivalent])
        return [mutant for mutant in mutants if is_wrong(mutant.case, mutant.changed.prediction)]

    @cached_property
    def rewrites(self) -> list[Mutant]:
        """Every equivalent rewrite; none of classes, which are written in one way."""
        return [] if self._labels else list(self._mutants([mutator for mutator in self.mutators if mutator.equivalent]))

    def _mutants(self, mutators: Sequence[Mutator]) -> Iterator[Mutant]:
        labels = sorted(self._labels)
        for place, case in enumerate(self.cases):
            around = islice(chain(self.cases[place + 1 :], self.cases[:place]), _MOST_NEIGHBOURS)
            others = [neighbour for neighbour in around if _expects_else(neighbour, case)]
            for mutator in mutators:
                seed = f"{self.seed} {self.suite.name} {case.id} {mutator.name}"
                near = Neighbours(others, labels, self.most, self.suite.evaluators, seed)
                try:
                    prediction = mutator.change(case, near)
                except Exception as error:  # noqa: BLE001 (users register mutators: one that fails affects no other)
                    self._faults.setdefault(mutator.name, []).append(f"case {case.id!r}: {AnyError(error).text}")
                    continue
                if prediction is not None and prediction != case.prediction:
                    yield Mutant(case, mutator, replace(case, prediction=prediction, origin=None))

    @property
    def mutator_faults(self) -> list[str]:
        """Mutators that failed, each with its first error, among those of the mutants and rewrites made so far."""
        return [
            f"mutator {name!r} failed on {len(faults)} of {counted(len(self.cases), 'answer')}: {faults[0]}"
            for name, faults in self._faults.items()
        ]

    def keep_sound(self, score: MutantScorer) -> None:
        """Score the recorded answers again, with judges, and keep the mutants of those that pass."""
        sound = {case.id for case in self._sound(self.cases, score)}
        self.cases = [case for case in self.cases if case.id in sound]
        self.mutants = [mutant for mutant in self.mutants if mutant.case.id in sound]
        self.rewrites = [rewrite for rewrite in self.rewrites if rewrite.case.id in sound]


def _scores_nothing(suite: LoadedSuite, original: Execution) -> bool:
    """Whether a recorded answer already has the worst value of every gated metric, so that no mutant is worse."""
    scores, judged = original.scores(suite), []
    for name in suite.judged_metrics:
        owned, score = suite.metrics.find(name), scores.get(name)
        if owned is None or score is None:
            continue
        worst = owned.metric.worst
        judged.append(score == worst)
    return bool(judged) and all(judged)


def _for_suite(mutators: Sequence[Mutator], suite: LoadedSuite) -> list[Mutator]:
    """The mutators that apply to a suite's evaluators, without general ones that give way to specific ones."""
    names = {evaluator.name for evaluator in suite.evaluators.values()}
    fitting = [mutator for mutator in mutators if not mutator.evaluators or names.intersection(mutator.evaluators)]
    owned = any(mutator.evaluators and not mutator.equivalent for mutator in fitting)
    return [mutator for mutator in fitting if not (owned and mutator.gives_way)]


def _expects_else(other: Case, case: Case) -> bool:
    """Whether another case expects another answer than a case, so that its answer would be wrong there."""
    if other.expected is None and case.expected is None:
        return bool(other.input != case.input)
    return bool(other.expected != case.expected)


def mutation_of(
    suite: LoadedSuite,
    mutators: Sequence[Mutator],
    answers: Mapping[str, Any] | None = None,
    seed: int = 0,
    system: str | None = None,
) -> Mutation:
    """Make the mutants of a suite or of one of its systems.

    Args:
        suite: Loaded; its cases have predictions, or `answers` has them.
        mutators: As the registry has them.
        answers: Case id to prediction; they come before those of the suite.
        seed: Of everything random.
        system: Whose answers are changed; ``None`` for those of the cases themselves.

    Raises:
        LlmevalError: No case has an answer that passes.
    """
    name = suite.name if system is None else f"{suite.name}[{system}]"
    return Mutation(suite if system is None else suite.for_variant(system), name, mutators, answers or {}, seed)


@dataclass(frozen=True)
class JudgedScorer:
    """Scores mutants with the suite's judges; recorded verdicts are read, and only the cache is written.

    Attributes:
        key: Of the suite.
        options: How judges are asked; the cache should be one of mutants alone.
    """

    key: SuiteKey
    options: JudgeOptions

    def refuse(self, suite: LoadedSuite) -> None:
        """Refuse judges that exist in pytest only.

        Raises:
            LlmevalError: One of them does.
        """
        for spec in suite.judge.jurors if suite.asks_judge else ():
            if spec.provider in (None, "fixture"):
                raise LlmevalError(f"--judges: found {spec.model!r}, expected a model: a fixture judges in pytest only")

    def plan(self, mutations: Sequence[Mutation]) -> RunPlan:
        """The calls that judging recorded answers, mutants and rewrites would take; none is made.

        Raises:
            LlmevalError: The cache or recordings cannot be read.
        """
        runner = CaseRunner(self.options)
        try:
            return plan_cases(runner, ((case, False) for mutation in mutations for case in self._loaded(mutation)))
        finally:
            runner.close(whole_run=False)

    def _loaded(self, mutation: Mutation) -> Iterator[LoadedCase]:
        for suite, cases in _kinds(mutation):
            for case in cases:
                yield LoadedCase(structs.replace(suite, cases=tuple(cases)), case, self._key(suite))

    def _key(self, suite: LoadedSuite) -> SuiteKey:
        return self.key._replace(variant=suite.system)

    def __call__(self, suite: LoadedSuite, cases: Sequence[Case]) -> list[Execution]:
        """Score answered cases, of which no two have the same id.

        Raises:
            LlmevalError: The budget is spent.
        """
        scored = structs.replace(suite, cases=tuple(cases))
        runner = CaseRunner(self.options, explains_all=False)
        try:
            return list(runner.run_answered(scored, self._key(suite)))
        finally:
            runner.close(whole_run=False)


def _kinds(mutation: Mutation) -> Iterator[tuple[LoadedSuite, list[Case]]]:
    """Yield the recorded and the changed answers that judges score, in groups without two answers to one case."""
    yield mutation.suite, mutation.cases
    for mutants in (mutation.mutants, mutation.rewrites):
        for places in kinds_of(mutants).values():
            yield mutation.suite, [mutants[place].changed for place in places]
