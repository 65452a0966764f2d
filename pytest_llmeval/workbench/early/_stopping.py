"""When the gates of a suite are decided, and what a run that stopped there reports."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from pytest_llmeval.baselines import ApprovedCases, Keeper
from pytest_llmeval.core import CaseLabels, CaseRecord, GateResult, LlmevalError, Metric, SuiteError
from pytest_llmeval.gates import ChangeGate, Gate
from pytest_llmeval.numbers import Table
from pytest_llmeval.run import (
    Collected,
    CollectedSuite,
    RunRecord,
    RunScope,
    Suites,
)
from pytest_llmeval.suites import LoadedSuite, SuiteKey
from pytest_llmeval.workbench.early._evidence import EarlyVerdict, PartScores, decide_gate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pytest_llmeval.judges import SuiteJudges
    from pytest_llmeval.numbers import RunPairing


_SAME = 1e-9


class StopDecision(Struct, frozen=True):
    """The verdicts on all gates of a suite that stops early, with the number of cases that decided them.

    Attributes:
        cases: After how many cases of the order they are known.
        gates: Variant, gate and the verdict on it.
    """

    cases: int
    gates: Sequence[tuple[str, Gate, GateResult]]


def stop_early(collected: Collected, scope: RunScope) -> Collected:
    """Reduce suites that stop early to the cases that decided, and attach the verdicts on their gates.

    Results that arrived early do not count, so that it is the order that decides and not which worker was faster.
    """
    groups: dict[SuiteKey, dict[str, CollectedSuite]] = {}
    for suite in collected.suites:
        if suite.suite.order is not None:
            groups.setdefault(suite.key.stop_group(suite.suite), {})[suite.key.variant] = suite
    stopped: dict[SuiteKey, CollectedSuite] = {}
    for variants in groups.values():
        decision = first_decision(variants, scope.keeper)
        if decision is not None:
            stopped |= {suite.key: suite for suite in _stopped(variants, decision)}
    return structs.replace(collected, suites=[stopped.get(suite.key, suite) for suite in collected.suites])


def _stopped(variants: Mapping[str, CollectedSuite], decision: StopDecision) -> Iterator[CollectedSuite]:
    """Yield the variants of a suite that stops early, with the verdicts on all gates."""
    ended = {name: _counting(variant, decision.cases) for name, variant in variants.items()}
    gates: dict[str, list[GateResult]] = {name: [] for name in ended}
    for name, gate, result in decision.gates:
        verdict = result
        for other in (name, gate.against):
            if other == name or (other and other in ended):
                verdict = ended[other].qualify(verdict, gate.max_skipped)
        gates[name].append(verdict)
    for name, suite in ended.items():
        yield suite.with_stop_verdicts(gates[name])


def first_decision(variants: Mapping[str, CollectedSuite], keeper: Keeper) -> StopDecision | None:
    """The decision of a suite that stops early, after the first block of cases that decides all gates.

    Args:
        variants: With the records of all cases; those that have not run end the search.
        keeper: How snapshots are treated.
    """
    first = next(iter(variants.values()))
    order = first.suite.order
    assert order is not None
    # A variant of which nothing ran cannot be judged, and its systems cannot be compared.
    if not first.key.test and set(first.suite.systems) - variants.keys():
        return None
    for end in order.ends[:-1]:
        names = order.ids[:end]
        if any(_lacks(variant, names) for variant in variants.values()):
            return None
        decision = decided(variants, end, keeper)
        if decision is not None:
            return decision
    return None


def _lacks(collected: CollectedSuite, names: Iterable[str]) -> bool:
    """Whether one of the named cases of a suite has not run."""
    waiting = {record.id for record in collected.records if record.outcome == "not_run"}
    return not waiting.isdisjoint(names)


def _counting(collected: CollectedSuite, cases: int) -> CollectedSuite:
    """A suite reduced to the cases that decided its gates, with what the other cases saved."""
    order = collected.suite.order
    assert order is not None
    counting = frozenset(order.ids[:cases])
    deciding = [record for record in collected.records if record.id in counting]
    others = [record for record in collected.records if record.id not in counting]
    ran_ahead = [other for other in others if other.outcome != "not_run"]
    waiting = len(others) - len(ran_ahead)
    claimed = list(CaseRecord.claim_calls(deciding))
    calls = [call for record in claimed for call in record.calls if call.fresh]
    answers = [
        usage
        for record in deciding
        for usage in record.target_usage
        if usage.origin == "run" and not usage.says_nothing
    ]
    return collected.ended_early(
        deciding,
        ran_ahead,
        confidence=order.confidence,
        judge_calls=_extrapolated(len(calls), len(deciding), waiting),
        answers=_extrapolated(sum(len(record.target_seconds) for record in deciding), len(deciding), waiting),
        cost_usd=_cost(
            [*(call.cost_usd for call in calls), *(answer.cost_usd for answer in answers)], len(deciding), waiting
        ),
    )


def _extrapolated(count: int, cases: int, others: int) -> int:
    """The calls that cases which did not run would have made, at the rate of those that ran."""
    return round(count / cases * others) if cases else 0


def _cost(costs: Sequence[float | None], cases: int, others: int) -> float | None:
    """The cost that cases which did not run would have had; ``None`` if that of a case that ran is unknown."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) / cases * others if cases and len(known) == len(costs) else None


def decided(variants: Mapping[str, CollectedSuite], seen: int, keeper: Keeper) -> StopDecision | None:
    """Judge all gates of a suite after so many cases; return the verdicts if all are decided.

    Args:
        variants: What stops together, with the records of all cases.
        seen: How many of them count; their records are there.
        keeper: How snapshots are treated.
    """
    order = next(iter(variants.values())).suite.order
    assert order is not None
    looks = {name: _GatesSoFar(variant, seen, keeper) for name, variant in variants.items()}
    questions = [question for name, state in looks.items() for question in state.questions(name)]
    questions += _between(looks)
    if not questions:
        return None
    level = (1 - order.confidence) / len(questions)
    gates = []
    for name, question in questions:
        verdict = question.verdict(order.numbers, level)
        if verdict is None:
            return None
        gates.append((name, question.gate, verdict.result))
    return StopDecision(seen, gates)


@dataclass(frozen=True)
class _GateQuestion:
    """A gate with the scores that it is judged by, for early stopping; without scores it must wait."""

    gate: Gate
    parts: Sequence[PartScores] | None
    metric: Metric | None

    def verdict(self, units: Sequence[int], level: float) -> EarlyVerdict | None:
        if self.parts is None or self.metric is None:
            return None
        import numpy as np

        return decide_gate(self.gate, self.parts, np.array(units, dtype=np.intp), self.metric, level)


class _GatesSoFar:
    """A suite with the cases that have run so far, as its gates see them."""

    def __init__(self, collected: CollectedSuite, seen: int, keeper: Keeper) -> None:
        order = collected.suite.order
        assert order is not None
        self.run = collected
        self.order = order
        self.keeper = keeper
        by_id = {record.id: record for record in collected.records}
        self.members = _mask([name in by_id for name in order.ids])
        self.labels = {case.id: case.labels for case in collected.suite.cases}
        self.names = order.ids[:seen]
        self.records = [by_id.get(name) or CaseRecord(name, outcome="not_run") for name in self.names]
        self.table = Table(collected.suite.metrics, self.records)

    def questions(self, name: str) -> Iterator[tuple[str, _GateQuestion]]:
        """Yield the gates with a limit, and those against the baseline."""
        for gate in self.run.suite.score_gates:
            known = gate.metric in self.table.owner
            parts = self._parts(gate) if known else None
            yield name, _GateQuestion(gate, parts, self.table.metric(gate.metric) if known else None)
        if self.run.suite.regressions:
            yield from ((name, regression) for regression in self._regressions())

    def _parts(self, gate: Gate) -> Sequence[PartScores] | None:
        import numpy as np

        scores, errored = self.table.scores[gate.metric], self.table.failed[gate.metric]
        nothing = np.zeros(len(scores), dtype=bool)
        parts = []
        for group, members in self.groups(gate.by, gate.min_cases):
            here = members[: len(scores)]
            rows = np.flatnonzero(here)
            if gate.statistic == "value" and not _is_mean(self.table, gate.metric, rows):
                return None
            parts.append(PartScores(group, members, np.where(here, scores, np.nan), errored & here, nothing))
        return parts

    def groups(self, by: str | None, least: int) -> "list[tuple[str, npt.NDArray[np.bool_]]]":
        """Return the parts of the cases that a gate judges on their own, those of too few cases aside."""
        if by is None:
            return [("", self.members)]
        names = [CaseLabels(self.labels.get(name, {})).groups(by) for name in self.order.ids]
        known = sorted({group for groups in names for group in groups})
        groups = {name: self.members & _mask([name in case_groups for case_groups in names]) for name in known}
        return [(name, members) for name, members in groups.items() if members.sum() >= least]

    def _regressions(self) -> Iterator[_GateQuestion]:
        seen = frozenset(self.names)
        so_far = [
            record if record.id in seen else CaseRecord(record.id, record.labels, "not_run")
            for record in self.run.records
        ]
        for gate, pairing in self.run.pairings(so_far, self.keeper):
            yield self.paired(gate, pairing)

    def paired(self, gate: ChangeGate, pairing: "RunPairing | None") -> _GateQuestion:
        """Return a gate on a change with how much worse each case is."""
        import numpy as np

        usable = pairing is not None and pairing.paired and gate.metric in pairing.table.owner
        if pairing is None or not usable or pairing.shifts.get(gate.subject) is not None or pairing.chains:
            return _GateQuestion(gate, None, None)
        rows, table = pairing.everything(), pairing.table
        place = {table.records[row].id: number for number, row in enumerate(rows.current)}
        matched = _mask([name in place for name in self.order.ids])
        seen = len(self.names)
        ran = [place[name] for name in self.names if name in place]
        current, baseline = rows.current[ran], rows.baseline[ran]
        if gate.statistic == "value" and not all(
            _is_mean(table, gate.metric, run_rows) for run_rows in (current, baseline)
        ):
            return _GateQuestion(gate, None, None)
        scores, failed = table.scores[gate.metric], table.failed[gate.metric]
        lost = failed[current] | failed[baseline] | (table.missing[current] != table.missing[baseline])
        single = np.isfinite(scores[current]) != np.isfinite(scores[baseline])
        if (single & ~lost).any():  # then the drop of a value is not the mean of the drops of cases
            return _GateQuestion(gate, None, None)
        drops, errored = np.full(seen, np.nan), np.zeros(seen, dtype=bool)
        left_out = errored.copy()
        metric = table.metric(gate.metric)
        sign = 1 if metric.higher_is_better else -1
        drops[matched[:seen]] = sign * (scores[baseline] - scores[current])
        errored[matched[:seen]] = failed[current]
        left_out[matched[:seen]] = lost
        parts = [
            PartScores(group, members & matched, np.where(here, drops, np.nan), errored & here, left_out & here)
            for group, members in self.groups(gate.by, gate.min_cases)
            for here in [(members & matched)[:seen]]
        ]
        return _GateQuestion(gate, [part for part in parts if part.members.sum() >= gate.min_cases], metric)


def _is_mean(table: Table, metric: str, rows: "npt.NDArray[np.intp]") -> bool:
    """Whether a metric's value over some cases is the mean of their scores, so that it can be decided early."""
    import numpy as np

    totals = table.matrix[rows].sum(axis=0, keepdims=True)
    scores = table.scores[metric][rows]
    known = scores[np.isfinite(scores)]
    value = float(table.summarize(totals, [metric])[metric][0])
    return metric not in table.basis(totals) and (not known.size or abs(value - float(known.mean())) <= _SAME)


def _mask(values: Sequence[bool]) -> "npt.NDArray[np.bool_]":
    """A boolean array that selects cases."""
    import numpy as np

    return np.array(values, dtype=bool)


def _between(looks: Mapping[str, _GatesSoFar]) -> Iterator[tuple[str, _GateQuestion]]:
    """Yield the gates that compare two systems of a suite, for early stopping."""
    suite = next(iter(looks.values())).run.suite
    for gate in suite.between:
        named = [gate.system] if gate.system else [name for name in looks if name != gate.against]
        for name in named:
            if gate.against not in looks or name not in looks:
                yield name, _GateQuestion(gate, None, None)
            else:
                yield name, looks[name].paired(gate, _pair(looks[name], looks[gate.against]))


def _pair(system: _GatesSoFar, other: _GatesSoFar) -> "RunPairing":
    """The pairing of two systems' cases that ran so far; cases still to come count as not run."""
    from pytest_llmeval.numbers import CaseStatistics, RunPairing

    run, baseline = (
        CaseStatistics.exact([*side.records, *(CaseRecord(name, outcome="not_run") for name in sorted(_to_come(side)))])
        for side in (system, other)
    )
    suite = system.run.suite
    return RunPairing(run, baseline, suite.metrics, abstained=suite.abstained)


def _to_come(state: _GatesSoFar) -> set[str]:
    """The ids of the cases of a suite that have not run yet."""
    return {record.id for record in state.run.records} - set(state.names)


def foresee(
    suites: Iterable[tuple[SuiteKey, LoadedSuite]], judges: "SuiteJudges", keeper: Keeper
) -> dict[SuiteKey, int | None]:
    """The number of cases after which suites are expected to stop, by suite and system, for the plan of a run.

    Args:
        suites: Those with an order, as each system answers them.
        judges: Of the run.
        keeper: How snapshots are treated.

    Returns:
        The number of cases; ``None`` where no run is approved, or none that has all of the cases.
    """
    groups: dict[SuiteKey, dict[str, CollectedSuite]] = {}
    for key, suite in suites:
        collected = CollectedSuite.from_records(
            key, suite, _approved(key), suite.judge_identities(judges, key.display_path)
        )
        groups.setdefault(key.stop_group(suite), {})[key.variant] = collected
    decisions: dict[SuiteKey, int | None] = {}
    for variants in groups.values():
        decision = first_decision(variants, keeper)
        for variant in variants.values():
            known = all(record.outcome != "not_run" for record in variant.records)
            decisions[variant.key] = decision.cases if decision is not None else len(variant.records) if known else None
    return decisions


def _approved(key: SuiteKey) -> Mapping[str, CaseRecord]:
    """The records of the last approved run by case, to foresee early stops; empty if there is no such run."""
    try:
        approval = ApprovedCases.read(key)
    except (OSError, UnicodeDecodeError, SuiteError):
        return {}  # a run says what is wrong with the files
    return {} if approval is None else {record.id: record for record in approval.statistics.records}


@dataclass
class _Progress:
    """The progress of a suite's variants towards the next check of their gates.

    Attributes:
        keys: Its variants.
        ids: Its cases in their order.
        ends: After how many of them gates are looked at.
        end: After how many cases gates are looked at next; ``None`` once that is over.
        waiting: Variants and cases before it that have not ended.
        done: Those that have ended.
    """

    keys: tuple[SuiteKey, ...]
    ids: Sequence[str]
    ends: Sequence[int]
    end: int | None = None
    waiting: set[tuple[str, str]] = field(default_factory=set)
    done: set[tuple[str, str]] = field(default_factory=set)


@dataclass
class StopWatch:
    """Checks the gates of a suite when the cases of its next block have run, and posts once all are decided.

    Attributes:
        suites: Of the run.
        keeper: How snapshots are treated.
        post: Takes what stops together, and after how many cases.
    """

    suites: Suites
    keeper: Keeper
    post: Callable[[SuiteKey, int], None]
    _groups: dict[SuiteKey, _Progress] = field(default_factory=dict)

    def take(self, run: RunRecord, key: SuiteKey, cases: Iterable[str]) -> None:
        """Note that cases have ended, fixtures included.

        Args:
            run: All that has been reported.
            key: Of the cases' suite.
            cases: Their ids.
        """
        try:
            suite = self.suites.read(Path(key.path))
        except LlmevalError:
            return  # the end of the run says so
        if suite.order is None:
            return
        group = key.stop_group(suite)
        if group not in self._groups:
            self._groups[group] = self._begun(key, suite)
        progress = self._groups[group]
        ended = {(key.variant, case) for case in cases}
        progress.done |= ended
        progress.waiting -= ended
        while progress.end is not None and not progress.waiting:
            self._look_again(run, group, progress)

    def _begun(self, key: SuiteKey, suite: LoadedSuite) -> _Progress:
        assert suite.order is not None
        names = tuple(suite.systems) if suite.systems and not key.test else (key.variant,)
        progress = _Progress(tuple(key._replace(variant=name) for name in names), suite.order.ids, suite.order.ends)
        self._await(progress, suite.order.ends[0])
        return progress

    def _await(self, progress: _Progress, end: int) -> None:
        """Wait for the cases before a look; after the last block there is none, since gates are judged as ever."""
        if end == progress.ends[-1]:
            progress.end = None
            return
        progress.end = end
        names = frozenset(progress.ids[:end])
        progress.waiting = {
            (key.variant, case.id) for key in progress.keys for case in self._suite(key).cases if case.id in names
        } - progress.done

    def _suite(self, key: SuiteKey) -> LoadedSuite:
        suite = self.suites.read(Path(key.path))
        return suite.gated(key.variant) if key.test else suite.for_variant(key.variant)

    def _look_again(self, run: RunRecord, group: SuiteKey, progress: _Progress) -> None:
        assert progress.end is not None
        records = run.case_records()
        variants = {key.variant: self._run(key, records.get(key, {})) for key in progress.keys}
        decision = decided(variants, progress.end, self.keeper)
        if decision is None:
            self._await(progress, next(end for end in progress.ends if end > (progress.end or 0)))
        else:
            self.post(group, decision.cases)
            progress.end = None

    def _run(self, key: SuiteKey, records: Mapping[str, CaseRecord]) -> CollectedSuite:
        suite = self._suite(key)
        return CollectedSuite.from_records(key, suite, records, self.suites.judges(key, suite))
