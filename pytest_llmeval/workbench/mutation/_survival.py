"""The mutants that a suite notices."""

import math
import random
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct, structs

from pytest_llmeval.core import AnyError, CaseRecord, Metric, Mutator, counted, grouped
from pytest_llmeval.gates import ScoreGate
from pytest_llmeval.judges import UnaskedError
from pytest_llmeval.numbers import Table, wilson_interval
from pytest_llmeval.reports import GateNotice, KindOutcome, Survival
from pytest_llmeval.run import Execution, JudgedSuite, Reported, RunScope
from pytest_llmeval.suites import LoadedSuite
from pytest_llmeval.targets import Recordings
from pytest_llmeval.workbench.mutation._mutants import (
    Mutant,
    MutantScorer,
    Mutation,
    score_mutants,
    score_unjudged,
)
from pytest_llmeval.workbench.mutation._mutators import labelled

_MIXTURES: Final = 20
_SHARES: Final = (0.05, 0.1, 0.2, 0.5, 1.0)
"""Shares of broken answers at which the power of a gate is reported."""
_GATE_CONFIDENCE: Final = 0.95
_OF_INTERVALS: Final = ("low", "high")


class Broken(Struct, frozen=True):
    """The effect of a mutant on a suite, as gates see it.

    Attributes:
        worse: The metrics that it makes worse.
        fails: Whether its case fails.
    """

    worse: frozenset[str]
    fails: bool


@dataclass(frozen=True)
class GateWatch:
    """Finds the share of broken answers from which a gate fails, by mixing mutants into a run.

    Args:
        suite: With the gates.
        table: The records of the recorded answers, in order, then those of mutants: one for all mixtures, since to lay
            out counts takes ten times as long as to add some of them up.
        names: Ids of the cases, in the order of the table.
        broken: Case id to its mutants by row, for cases that have some.
        seed: Of the mixtures.
        waits: Whether a judge who was not asked decides whether cases pass.
    """

    suite: LoadedSuite
    table: Table
    names: Sequence[str]
    broken: Mapping[str, Mapping[int, Broken]]
    seed: int
    waits: bool

    def notice(self, gate: ScoreGate, unknown: Container[str]) -> GateNotice:
        """Return from which share of broken answers on a gate fails.

        Each case has one mutant, one that the metric of the gate sees if there is any. In each of several random
        orders, the smallest number of broken answers is sought with which the gate fails.

        Args:
            gate: The gate.
            unknown: Metrics that only a judge could compute.
        """
        if why := self._unjudged(gate, unknown):
            return GateNotice(str(gate), None, unjudged=why)
        smallest = sorted(self._smallest(gate, mixture) for mixture in range(_MIXTURES))
        shares = [count / len(self.names) for count in smallest]
        return GateNotice(
            str(gate),
            _reached(shares, 0.5),
            _reached(shares, GateNotice.POWER),
            not (math.isfinite(smallest[0]) or self._fails(gate, self._worst(gate))),
            {f"{share:g}": sum(reached <= share for reached in shares) / _MIXTURES for share in _SHARES},
        )

    def _unjudged(self, gate: ScoreGate, unknown: Container[str]) -> str:
        """The reason why no share of broken answers is sought for a gate; empty if one is."""
        owned = self.suite.metrics.find(gate.metric)
        if gate.metric != Metric.PASS_RATE and owned is None:
            return "its metric is not computed without judges or targets"
        if not self.broken:
            return "no answer could be changed"
        if gate.metric in unknown or (gate.metric == Metric.PASS_RATE and self.waits):
            return "its metric needs a judge"
        return "it fails on the recorded answers that pass" if self._fails(gate, {}) else ""

    def _smallest(self, gate: ScoreGate, mixture: int) -> float:
        """Return with how many broken answers a gate fails in one mixture; infinity if it passes even with all."""
        rng = random.Random(f"{self.seed} {self.suite.name} {mixture}")  # noqa: S311 (no secret)
        order = sorted(self.broken)
        rng.shuffle(order)
        chosen = {name: rng.choice(self._seen(gate, name)) for name in order}
        if not self._fails(gate, chosen):
            return math.inf
        low, high = 0, len(order)  # passes with `low` broken answers, fails with `high`
        while high - low > 1:
            middle = (low + high) // 2
            if self._fails(gate, {name: chosen[name] for name in order[:middle]}):
                high = middle
            else:
                low = middle
        return high

    def _worst(self, gate: ScoreGate) -> dict[str, int]:
        """Return for each case the row of the mutant with the worst score, or of one without any."""
        if gate.metric not in self.table.scores:
            return {name: self._seen(gate, name)[0] for name in self.broken}
        column = self.table.scores[gate.metric]
        sign = -1 if self.suite.metrics.lower_is_better(gate.metric) else 1
        return {
            name: min(rows_of_case, key=lambda row: sign * column[row] if math.isfinite(column[row]) else -math.inf)
            for name, rows_of_case in self.broken.items()
        }

    def _seen(self, gate: ScoreGate, case: str) -> list[int]:
        """Return the rows of a case's mutants that the metric of a gate sees, or of all if it sees none."""
        rows_of_case = self.broken[case]
        of_cases = gate.metric == Metric.PASS_RATE
        seen = [
            row for row, mutant in rows_of_case.items() if (mutant.fails if of_cases else gate.metric in mutant.worse)
        ]
        return seen or list(rows_of_case)

    def _fails(self, gate: ScoreGate, broken: Mapping[str, int]) -> bool:
        """Whether a gate fails where some cases have the rows of mutants."""
        rows = [broken.get(name, row) for row, name in enumerate(self.names)]
        return fails(gate, self.table, rows, self.suite.cluster_by)


def fails(gate: ScoreGate, table: Table, rows: Sequence[int], cluster_by: str | None = None) -> bool:
    """Whether a gate fails on a run that some rows of a table make up, mutants among them."""
    result = table.summarize_rows(
        rows,
        gate.metric,
        group_by=(gate.by,) if gate.by else (),
        confidence=_GATE_CONFIDENCE if gate.statistic in _OF_INTERVALS else None,
        cluster_by=cluster_by,
    )
    return gate.judge(result).outcome == "failed"


def _reached(shares: Sequence[float], power: float) -> float | None:
    """The share of broken answers from which a gate fails in so many of the sorted mixtures; ``None`` in too few."""
    share = shares[math.ceil(power * len(shares)) - 1]
    return share if math.isfinite(share) else None


_TOLERANCE: Final = 1e-9
_CONFIDENCE: Final = 0.95
_PART: Final = 1_000
"""Mutants of which the metrics of the suite are computed at a time."""
_OFF: Final = str(UnaskedError.off())


class _ScoredMutant(NamedTuple):
    """A mutant with the result of scoring it.

    Attributes:
        mutant: The mutant.
        execution: The result of scoring it, under the id of its case.
        row: Of its record in the table.
        worse: The metrics that it makes worse.
        noticed: Whether the suite notices it.
        undecided: Whether only a judge could notice it, who was not asked.
    """

    mutant: Mutant
    execution: Execution
    row: int
    worse: frozenset[str]
    noticed: bool
    undecided: bool


def survival_of(mutation: Mutation, score: MutantScorer | None = None) -> Survival:
    """Score all mutants of a suite, and report those that the suite does not notice.

    Args:
        mutation: The mutants.
        score: Scores answers with judges; ``None`` leaves judges out.
    """
    if score is not None:
        mutation.keep_sound(score)
    return _MutationResults(mutation, score or score_unjudged).survival()


class _MutationResults:
    """The scored mutants of a suite, from which its survival report is made."""

    def __init__(self, mutation: Mutation, score: MutantScorer) -> None:
        self.mutation = mutation
        self.suite = suite = mutation.suite
        self.score = score
        self.is_judged = suite.judged and score is score_unjudged
        """Whether there are judges who are not asked."""
        self.originals = [mutation.originals[case.id].record for case in mutation.cases]
        executions = score_mutants(score, suite, mutation.mutants)
        self.table = Table(suite.metrics, [*self.originals, *(execution.record for execution in executions)])
        self.names = [name for name in self.table.scores if self.table.owner[name] in suite.evaluators]
        snapshot = suite.snapshot
        snapshot_metrics = [] if snapshot is None or not snapshot.enabled else list(filter(snapshot.keeps, self.names))
        self.deciding = frozenset((*suite.judged_metrics, *snapshot_metrics))
        self.lacking = self._lacking()
        self.unknown = self._unknown()
        rows = range(len(self.originals), len(self.table.records))
        self.mutants = list(map(self._scored, mutation.mutants, executions, rows, self._worse(executions)))

    def survival(self) -> Survival:
        """Put everything together."""
        mutation, suite = self.mutation, self.suite
        kinds = list(map(self._kind, grouped((mutant.mutant.mutator.name, mutant) for mutant in self.mutants).values()))
        by_case: dict[str, list[_ScoredMutant]] = {case.id: [] for case in mutation.cases}
        for mutant in self.mutants:
            by_case[mutant.mutant.case.id].append(mutant)
        broken = {
            name: {
                mutant.row: Broken(mutant.worse, fails=mutant.execution.record.outcome not in CaseRecord.UNFAILED)
                for mutant in mutants
            }
            for name, mutants in by_case.items()
            if mutants
        }
        watch = GateWatch(
            suite,
            self.table,
            list(by_case),
            broken,
            mutation.seed,
            waits=any(mutant.undecided for mutant in self.mutants),
        )
        return Survival(
            mutation.name,
            mutation.path,
            sorted(kinds, key=_worst_first),
            sorted(self._rewrites(), key=_worst_first),
            [watch.notice(gate, self.unknown) for gate in suite.score_gates],
            [
                name
                for name, mutants in by_case.items()
                if mutants and not any(mutant.noticed or mutant.undecided for mutant in mutants)
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
            yield self.suite.cannot_fail
        yield from (*self.mutation.left_out, *self.mutation.mutator_faults)
        if self.is_judged:
            undecided = counted(sum(mutant.undecided for mutant in self.mutants), "mutant")
            yield f"judges were not asked: {undecided} that only they could notice count neither way"
        elif failed := sum(mutant.undecided for mutant in self.mutants):
            yield f"{counted(failed, 'mutant')} without a verdict, because asking failed, count neither way"

    def _scored(self, mutant: Mutant, execution: Execution, row: int, worse: frozenset[str]) -> _ScoredMutant:
        if self._judge_failed(execution.record):
            return _ScoredMutant(mutant, execution, row, worse, noticed=False, undecided=True)
        noticed = execution.record.outcome not in CaseRecord.UNFAILED or not worse.isdisjoint(self.deciding)
        undecided = not noticed and self._waits_for_judge(mutant, execution.record)
        return _ScoredMutant(mutant, execution, row, worse, noticed, undecided)

    def _worse(self, executions: Sequence[Execution]) -> list[frozenset[str]]:
        """Return for each mutant the metrics that it makes worse: of its case, or of the suite with it in place."""
        import numpy as np

        worse: list[set[str]] = [set() for _ in executions]
        if not executions:
            return []
        cases = len(self.originals)
        places = {original.id: place for place, original in enumerate(self.originals)}
        before = np.array([places[execution.record.id] for execution in executions], dtype=np.intp)
        moved = self.table.matrix[cases:] - self.table.matrix[before]
        total = self.table.matrix[:cases].sum(axis=0, keepdims=True)
        whole = self.table.summarize(total)
        pooled = [self.table.summarize(total + moved[at : at + _PART]) for at in range(0, len(moved), _PART)]
        for name in self.names:
            sign = -1 if self.suite.metrics.lower_is_better(name) else 1
            column = self.table.scores[name]
            then, now = column[before], column[cases:]
            with_mutant = np.concatenate([summary[name] for summary in pooled])
            fallen = (sign * (then - now) > _TOLERANCE) | (sign * (whole[name] - with_mutant) > _TOLERANCE)
            for place in np.flatnonzero(fallen).tolist():
                worse[place].add(name)
            # A score that is gone says nothing, unless the answer could not be read.
            for place in np.flatnonzero(np.isnan(now) & ~np.isnan(then)).tolist():
                record, label = executions[place].record, self.table.owner[name]
                observation = record.observations.get(label)
                if observation is None or observation.malformed is not None:
                    worse[place].add(name)
        return list(map(frozenset, worse))

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
        """Whether a judge was asked and gave no verdict, so that nothing is known."""
        if record.outcome != "errored" or self.score is score_unjudged:
            return False
        judged = self.suite.asking.keys()
        failed = {label for label, observation in record.observations.items() if observation.errored}
        return not judged.isdisjoint({*record.errors, *failed})

    def _waits_for_judge(self, mutant: Mutant, record: CaseRecord) -> bool:
        """Whether a judge who was not asked could have noticed a mutant: a metric that decides is missing."""
        off = _OffMetrics(self._off(record).names | self.lacking) if self.is_judged else None
        if not off:
            return False
        checks = {metric.name for label, _ in self._checks() for metric in self.suite.metrics.declared[label]}
        return any(name in off for name in (*self.deciding, *self.suite.limits(mutant.case), *checks))

    def _checks(self) -> Iterator[tuple[str, Any]]:
        """Yield the evaluators of checks: an unmet one fails its case under any limits."""
        return ((label, evaluator) for label, evaluator in self.suite.evaluators.items() if evaluator.asserts)

    def _unknown(self) -> "_OffMetrics":
        """Return the metrics that some recorded answer lacks because no judge was asked."""
        if not self.is_judged:
            return _OffMetrics(frozenset())
        return _OffMetrics(self.lacking.union(*(self._off(original).names for original in self.originals)))

    def _lacking(self) -> frozenset[str]:
        """Return the metrics of judges that no recorded answer has: nobody was asked."""
        if not self.is_judged:
            return frozenset()
        import numpy as np

        return frozenset(
            name
            for name in self.names
            if self.suite.evaluators[self.table.owner[name]].asks
            and np.isnan(self.table.scores[name][: len(self.originals)]).all()
        )

    def _kind(self, mutants: Sequence[_ScoredMutant]) -> KindOutcome:
        undecided = sum(mutant.undecided for mutant in mutants)
        survived = sum(not (mutant.noticed or mutant.undecided) for mutant in mutants)
        return _outcome(mutants[0].mutant.mutator, len(mutants), survived, undecided, dict(self._unmoved(mutants)))

    def _unmoved(self, mutants: Sequence[_ScoredMutant]) -> Iterator[tuple[str, int]]:
        """Yield each evaluator with how many mutants make none of its metrics worse, although it could judge them."""
        for label in self.suite.evaluators:
            own = frozenset(name for name in self.names if self.table.owner[name] == label)
            seen = (mutant for mutant in mutants if own.isdisjoint(mutant.worse))
            if self.is_judged:
                seen = (
                    mutant for mutant in seen if not any(name in self._off(mutant.execution.record) for name in own)
                )
            yield label, sum(1 for _ in seen)

    def _rewrites(self) -> Iterator[KindOutcome]:
        rewrites = self.mutation.rewrites
        executions = score_mutants(self.score, self.suite, rewrites)
        results = zip(rewrites, executions, strict=True)
        for outcomes in grouped((rewrite.mutator.name, (rewrite, result)) for rewrite, result in results).values():
            failed = sum(result.record.outcome not in CaseRecord.UNFAILED for _, result in outcomes)
            yield _outcome(outcomes[0][0].mutator, len(outcomes), failed, 0, {})

    def _idle_limits(self) -> list[str]:
        """Return the thresholds that no mutant misses, of metrics that could be computed."""
        import numpy as np

        missed = {miss.metric for scored in self.mutants for miss in scored.execution.unmet}
        limited = {metric for case in self.mutation.cases for metric in self.suite.limits(case)}
        known = {
            name
            for name in (limited - missed).intersection(self.names)
            if name not in self.unknown and np.isfinite(self.table.scores[name][: len(self.originals)]).any()
        }
        return sorted(known)

    def _constant(self) -> str | None:
        """Return the most frequent class if no gate fails where every answer is it."""
        most, cases, gates = self.mutation.most, self.mutation.cases, self.suite.score_gates
        if most is None or not gates:
            return None
        executions = self.score(self.suite, [case.answered(labelled(case, most)) for case in cases])
        table = Table(self.suite.metrics, [execution.record for execution in executions])
        return (
            None if any(fails(gate, table, range(len(executions)), self.suite.cluster_by) for gate in gates) else most
        )


class _OffMetrics(Struct, frozen=True):
    """Metrics without a value because no judge scored the mutants; members of their families are included."""

    names: frozenset[str]

    def __contains__(self, name: object) -> bool:
        if name in self.names or not isinstance(name, str):
            return name in self.names
        return any("[" in known and name.startswith(f"{known.partition('[')[0]}[") for known in self.names)

    def __bool__(self) -> bool:
        return bool(self.names)


def _worst_first(kind: KindOutcome) -> tuple[float, int, str]:
    """The sort key that lists the mutators whose mutants survive most often first."""
    return -(kind.rate or 0.0), -kind.mutants, kind.name


def _outcome(mutator: Mutator, mutants: int, survived: int, undecided: int, unmoved: Mapping[str, int]) -> KindOutcome:
    """The counts of one mutator's mutants, with the interval of the share that survives."""
    decided = mutants - undecided
    low, high = wilson_interval(survived, decided, _CONFIDENCE) if decided else (None, None)
    return KindOutcome(mutator.name, mutator.why, mutator.advice, mutants, survived, undecided, low, high, unmoved)


def add_survival(reported: Reported, scope: RunScope) -> Reported:
    """Add the mutants that its suites do not notice to a report, and to its notes why some were not made.

    Neither targets nor judges are asked, and no verdict changes. Suites that Python tests run are left out: their
    assertions are unknown here.
    """
    seed = scope.terms.mutate
    if seed is None:
        return reported
    if scope.terms.shard:
        return _with_notes(reported, ["no mutants were made: 'llmeval merge --mutate' makes those of all shards"])
    survivals, notes = [], []
    for judged, name in zip(reported.judged.suites, (suite.suite for suite in reported.report.suites), strict=True):
        if judged.key.test:
            notes.append(f"{name}: no mutants, since a Python test decides what passes")
            continue
        try:
            mutators = scope.suites.registry(Path(judged.key.path)).mutators
            mutation = Mutation(judged.suite, name, mutators, _answers(judged), seed, judged.key.display_path)
            survivals.append(survival_of(mutation))
        except Exception as error:  # noqa: BLE001 (a user's evaluator or mutator costs its own suite only)
            notes.append(f"{judged.key.display_path}: no mutants: {AnyError(error).message()}")
    return _with_notes(structs.replace(reported, report=structs.replace(reported.report, mutation=survivals)), notes)


def _with_notes(reported: Reported, notes: Sequence[str]) -> Reported:
    """Return a reported run with further notes."""
    return structs.replace(reported, notes=[*reported.notes, *notes])


def _answers(suite: JudgedSuite) -> Mapping[str, Any]:
    """The recorded first answer of each case of a run, from which mutants are made; none that has a secret."""
    rows = [row for record in suite.records for row in record.recordings if not row.get("repeat", 0)]
    return {row["case"]: row["prediction"] for row in rows if not Recordings.is_withheld(row)}
