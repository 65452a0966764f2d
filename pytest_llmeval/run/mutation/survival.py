"""Which mutants of answers a suite notices: by its cases, its evaluators and its gates."""

__all__ = ("mutate_suite", "survival_of")

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.core.views import Mutator
from pytest_llmeval.core.wording import counted
from pytest_llmeval.judge.service import JudgeOffError
from pytest_llmeval.reports.mutation import KindOutcome, Survival
from pytest_llmeval.run.execute import Execution
from pytest_llmeval.run.mutation.making import (
    Mutant,
    MutantScorer,
    Mutation,
    mutation_of,
    score_mutants,
    score_unjudged,
)
from pytest_llmeval.run.mutation.noticing import Broken, GateWatch, fails
from pytest_llmeval.run.mutation.structures import labelled
from pytest_llmeval.scoring.intervals import wilson_interval
from pytest_llmeval.scoring.table import Table
from pytest_llmeval.suite.suite import CANNOT_FAIL, Suite

_TOLERANCE: Final = 1e-9
_CONFIDENCE: Final = 0.95
_PART: Final = 1_000
"""Mutants of which the metrics of the suite are computed at a time."""
_OFF: Final = str(JudgeOffError())


class _ScoredMutant(NamedTuple):
    """A mutant that was scored.

    Attributes:
        mutant: The mutant.
        made: What scoring it gave, under the id of its case.
        row: Of its record in the table.
        worse: The metrics that it makes worse.
        noticed: Whether the suite notices it.
        undecided: Whether only a judge could notice it, who was not asked.
    """

    mutant: Mutant
    made: Execution
    row: int
    worse: frozenset[str]
    noticed: bool
    undecided: bool

    @property
    def is_known(self) -> bool:
        """Whether it did not survive, or may not have."""
        return self.noticed or self.undecided


def survival_of(mutation: Mutation, score: MutantScorer | None = None) -> Survival:
    """Score all mutants, and say what the suite does not notice.

    Args:
        mutation: The mutants.
        score: Scores answers with judges; ``None`` leaves judges out.
    """
    if score is not None:
        mutation.keep_sound(score)
    return _MutationResults(mutation, score or score_unjudged).survival()


def mutate_suite(
    suite: Suite,
    mutators: Sequence[Mutator],
    answers: Mapping[str, Any] | None = None,
    seed: int = 0,
    system: str | None = None,
) -> Survival:
    """Change the answers of a suite or of one of its systems, and say what it does not notice; no judge is asked.

    Args:
        suite: Loaded; its cases have predictions, or `answers` has them.
        mutators: As the registry has them.
        answers: Case id to prediction; they come before those of the suite.
        seed: Of everything random.
        system: Whose answers are changed; ``None`` for those of the cases themselves.

    Raises:
        LlmevalError: No case has an answer that passes.
    """
    return survival_of(mutation_of(suite, mutators, answers, seed, system))


class _MutationResults:
    """The mutants of a suite, scored."""

    def __init__(self, mutation: Mutation, score: MutantScorer) -> None:
        self.mutation = mutation
        self.suite = suite = mutation.suite
        self.score = score
        self.is_judged = suite.judged and score is score_unjudged
        """Whether there are judges who are not asked."""
        self.originals = [mutation.originals[case.id].record for case in mutation.cases]
        made = score_mutants(score, suite, mutation.mutants)
        self.table = Table(suite.metrics, [*self.originals, *(each.record for each in made)])
        self.names = [name for name in self.table.scores if self.table.owner[name] in suite.evaluators]
        snapshot = suite.snapshot
        kept = [] if snapshot is None or not snapshot.enabled else list(filter(snapshot.keeps, self.names))
        self.deciding = frozenset((*suite.judged_metrics, *kept))
        self.lacking = self._lacking()
        self.unknown = self._unknown()
        rows = range(len(self.originals), len(self.table.records))
        self.mutants = list(map(self._scored, mutation.mutants, made, rows, self._worse(made)))

    def survival(self) -> Survival:
        """Put everything together."""
        mutation, suite = self.mutation, self.suite
        kinds = list(map(self._kind, _by_mutator((each.mutant.mutator, each) for each in self.mutants)))
        by_case: dict[str, list[_ScoredMutant]] = {each.id: [] for each in mutation.cases}
        for each in self.mutants:
            by_case[each.mutant.case.id].append(each)
        broken = {
            name: {each.row: Broken(each.worse, fails=each.made.record.outcome != "passed") for each in found}
            for name, found in by_case.items()
            if found
        }
        watch = GateWatch(
            suite, self.table, list(by_case), broken, mutation.seed, waits=any(each.undecided for each in self.mutants)
        )
        return Survival(
            mutation.name,
            mutation.path,
            sorted(kinds, key=_worst_first),
            sorted(self._rewrites(), key=_worst_first),
            [watch.notice(gate, self.unknown) for gate in suite.limit_gates],
            [
                name
                for name, found in by_case.items()
                if found and not any(each.noticed or each.undecided for each in found)
            ],
            self._idle_limits(),
            list(self._left_out()),
            self._constant(),
            len(mutation.cases),
            mutation.seed,
        )

    def _left_out(self) -> Iterator[str]:
        snapshot = self.suite.snapshot
        if not self.suite.can_fail and (snapshot is None or not snapshot.enabled):
            yield CANNOT_FAIL
        yield from self.mutation.left_out
        if self.is_judged:
            undecided = counted(sum(each.undecided for each in self.mutants), "mutant")
            yield f"judges were not asked: {undecided} that only they could notice count neither way"
        elif failed := sum(each.undecided for each in self.mutants):
            yield f"{counted(failed, 'mutant')} without a verdict, because asking failed, count neither way"

    def _scored(self, mutant: Mutant, made: Execution, row: int, worse: frozenset[str]) -> _ScoredMutant:
        if self._judge_failed(made.record):
            return _ScoredMutant(mutant, made, row, worse, noticed=False, undecided=True)
        noticed = made.record.outcome != "passed" or not worse.isdisjoint(self.deciding)
        undecided = not noticed and self._waits_for_judge(mutant, made.record)
        return _ScoredMutant(mutant, made, row, worse, noticed, undecided)

    def _worse(self, made: Sequence[Execution]) -> list[frozenset[str]]:
        """Return for each mutant the metrics that it makes worse: of its case, or of the suite with it in place."""
        import numpy as np

        found: list[set[str]] = [set() for _ in made]
        if not made:
            return []
        cases = len(self.originals)
        places = {each.id: place for place, each in enumerate(self.originals)}
        before = np.array([places[each.record.id] for each in made], dtype=np.intp)
        moved = self.table.matrix[cases:] - self.table.matrix[before]
        total = self.table.matrix[:cases].sum(axis=0, keepdims=True)
        whole = self.table.summarize(total)
        pooled = [self.table.summarize(total + moved[at : at + _PART]) for at in range(0, len(moved), _PART)]
        for name in self.names:
            sign = -1 if self.suite.metrics.lower_is_better(name) else 1
            column = self.table.scores[name]
            then, now = column[before], column[cases:]
            with_mutant = np.concatenate([each[name] for each in pooled])
            fallen = (sign * (then - now) > _TOLERANCE) | (sign * (whole[name] - with_mutant) > _TOLERANCE)
            for place in np.flatnonzero(fallen).tolist():
                found[place].add(name)
            # A score that is gone says nothing, unless the answer could not be read.
            for place in np.flatnonzero(np.isnan(now) & ~np.isnan(then)).tolist():
                record, label = made[place].record, self.table.owner[name]
                observation = record.observations.get(label)
                if observation is None or observation.malformed is not None:
                    found[place].add(name)
        return list(map(frozenset, found))

    def _off(self, record: CaseRecord) -> "_OffMetrics":
        """Return the metrics that a record lacks because no judge was asked."""
        return _OffMetrics(
            frozenset(
                self.suite.metrics.full_name(label, name)
                for label, observation in record.observations.items()
                if label in self.suite.evaluators
                for name, why in observation.undefined.items()
                if why == _OFF
            )
        )

    def _judge_failed(self, record: CaseRecord) -> bool:
        """Return whether a judge was asked and gave no verdict, so that nothing is known."""
        if record.outcome != "errored" or self.score is score_unjudged:
            return False
        judged = {label for label, each in self.suite.evaluators.items() if each.asks}
        failed = {label for label, each in record.observations.items() if each.errored}
        return not judged.isdisjoint({*record.errors, *failed})

    def _waits_for_judge(self, mutant: Mutant, record: CaseRecord) -> bool:
        """Return whether a judge who was not asked could have noticed a mutant: a metric that decides is missing."""
        off = _OffMetrics(self._off(record).names | self.lacking) if self.is_judged else None
        if not off:
            return False
        checks = {each.name for label, each in self._checks() for each in self.suite.metrics.declared[label]}
        return any(name in off for name in (*self.deciding, *self.suite.limits(mutant.case), *checks))

    def _checks(self) -> Iterator[tuple[str, Any]]:
        """Yield the evaluators of checks: an unmet one fails its case whatever limits there are."""
        return ((label, each) for label, each in self.suite.evaluators.items() if each.asserts)

    def _unknown(self) -> "_OffMetrics":
        """Return the metrics that some recorded answer lacks because no judge was asked."""
        if not self.is_judged:
            return _OffMetrics(frozenset())
        return _OffMetrics(self.lacking.union(*(self._off(each).names for each in self.originals)))

    def _lacking(self) -> frozenset[str]:
        """Return the metrics of judges that no recorded answer has, whatever the reason: nobody was asked."""
        if not self.is_judged:
            return frozenset()
        import numpy as np

        return frozenset(
            name
            for name in self.names
            if self.suite.evaluators[self.table.owner[name]].asks
            and np.isnan(self.table.scores[name][: len(self.originals)]).all()
        )

    def _kind(self, found: Sequence[_ScoredMutant]) -> KindOutcome:
        undecided = sum(each.undecided for each in found)
        survived = sum(not (each.noticed or each.undecided) for each in found)
        return _outcome(found[0].mutant.mutator, len(found), survived, undecided, dict(self._unmoved(found)))

    def _unmoved(self, found: Sequence[_ScoredMutant]) -> Iterator[tuple[str, int]]:
        """Yield each evaluator with how many mutants make none of its metrics worse, although it could judge them."""
        for label in self.suite.evaluators:
            own = frozenset(name for name in self.names if self.table.owner[name] == label)
            seen = (each for each in found if own.isdisjoint(each.worse))
            if self.is_judged:
                seen = (each for each in seen if not any(name in self._off(each.made.record) for name in own))
            yield label, sum(1 for _ in seen)

    def _rewrites(self) -> Iterator[KindOutcome]:
        rewrites = self.mutation.rewrites
        made = score_mutants(self.score, self.suite, rewrites)
        for found in _by_mutator((each.mutator, (each, one)) for each, one in zip(rewrites, made, strict=True)):
            failed = sum(one.record.outcome != "passed" for _, one in found)
            yield _outcome(found[0][0].mutator, len(found), failed, 0, {})

    def _idle_limits(self) -> list[str]:
        """Return the thresholds that no mutant misses, of metrics that could be computed."""
        import numpy as np

        missed = {each.metric for scored in self.mutants for each in scored.made.unmet}
        wanted = {metric for case in self.mutation.cases for metric in self.suite.limits(case)}
        known = {
            name
            for name in (wanted - missed).intersection(self.names)
            if name not in self.unknown and np.isfinite(self.table.scores[name][: len(self.originals)]).any()
        }
        return sorted(known)

    def _constant(self) -> str | None:
        """Return the most frequent class if no gate fails where every answer is it."""
        most, cases, gates = self.mutation.most, self.mutation.cases, self.suite.limit_gates
        if most is None or not gates:
            return None
        made = self.score(self.suite, [case.answered(labelled(case, most)) for case in cases])
        table = Table(self.suite.metrics, [each.record for each in made])
        return None if any(fails(gate, table, range(len(made)), self.suite.cluster_by) for gate in gates) else most


class _OffMetrics(Struct, frozen=True):
    """Metrics without a value because no judge was asked; members of their families are among them."""

    names: frozenset[str]

    def __contains__(self, name: object) -> bool:
        if name in self.names or not isinstance(name, str):
            return name in self.names
        return any("[" in each and name.startswith(f"{each.partition('[')[0]}[") for each in self.names)

    def __bool__(self) -> bool:
        return bool(self.names)


def _worst_first(kind: KindOutcome) -> tuple[float, int, str]:
    return -(kind.rate or 0.0), -kind.mutants, kind.name


def _by_mutator(made: Iterable[tuple[Mutator, Any]]) -> Iterable[list[Any]]:
    found: dict[str, list[Any]] = {}
    for mutator, each in made:
        found.setdefault(mutator.name, []).append(each)
    return found.values()


def _outcome(mutator: Mutator, mutants: int, survived: int, undecided: int, unmoved: Mapping[str, int]) -> KindOutcome:
    decided = mutants - undecided
    low, high = wilson_interval(survived, decided, _CONFIDENCE) if decided else (None, None)
    return KindOutcome(mutator.name, mutator.why, mutator.advice, mutants, survived, undecided, low, high, unmoved)
