"""Comparisons of runs that are not quite alike, and histories of approvals: tables of ``benchmarks/tables.py``.

Answers are right or wrong; the cases differ in difficulty, as in ``calibration.py``. The package compares single pairs
of runs; histories, which are many comparisons each, use the normal test of paired differences.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from msgspec import structs
from tables import Row, rows, share, table

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import CaseRecord
from pytest_llmeval.numbers import CaseDigest, CaseStatistics, Chain, Difference, RunPairing

SIZE, DROP, FALL = 200, 0.1, 0.02
RUNS, STEPS = 60, 12
QUANTILE = 1.959964

Array = np.ndarray
Pair = tuple[CaseStatistics, CaseStatistics]

_EVALUATOR = get_evaluator("text", metrics=["exact_match"])


def _chances(rng: np.random.Generator, size: int) -> Array:
    return 0.2 + 0.7 * rng.beta(4, 2, size)


def _run(right: Array, ids: Sequence[str]) -> list[CaseRecord]:
    cases = [
        Case(name, expected="x", prediction="x" if each else "y", labels={"question": name.partition("/")[0]})
        for name, each in zip(ids, right, strict=True)
    ]
    return list(score(_EVALUATOR, cases, confidence=None).records)


def _answers(rng: np.random.Generator, drop: float, size: int = SIZE, copies: int = 1) -> tuple[Array, Array]:
    """Return what two runs answer, the current one first; copies of a case get the answer of the case."""
    chance = _chances(rng, size // copies)
    new, old = (np.repeat(rng.random(chance.size) < each, copies) for each in (chance - drop, chance))
    return new, old


def _ids(numbers: Sequence[int]) -> list[str]:
    return [f"c{number:03}" for number in numbers]


def not_run(rng: np.random.Generator, drop: float) -> Pair:
    """A quarter of the cases did not run in the current run."""
    now, before = _answers(rng, drop)
    names = _ids(range(SIZE))
    lost = set(rng.choice(names, SIZE // 4, replace=False))
    here = [CaseRecord(each.id, each.labels, "not_run") if each.id in lost else each for each in _run(now, names)]
    return CaseStatistics.from_records(here), CaseStatistics.from_records(_run(before, names))


def copied(rng: np.random.Generator, drop: float) -> Pair:
    """Forty cases stand in the suite five times each."""
    names = [f"q{number // 5}/{number % 5}" for number in range(SIZE)]
    now, before = _answers(rng, drop, copies=5)
    return CaseStatistics.from_records(_run(now, names)), CaseStatistics.from_records(_run(before, names))


def added(rng: np.random.Generator, drop: float) -> Pair:
    """One case in ten is new, and hard."""
    now, before = _answers(rng, drop)
    hard = rng.random(SIZE // 10) < 0.1
    here = _run(np.concatenate([now, hard]), _ids(range(SIZE + SIZE // 10)))
    return CaseStatistics.from_records(here), CaseStatistics.from_records(_run(before, _ids(range(SIZE))))


def edited(rng: np.random.Generator, drop: float) -> Pair:
    """One case in ten has been edited, and is hard now."""
    now, before = _answers(rng, drop)
    names = _ids(range(SIZE))
    hard = np.arange(SIZE) % 10 == 0
    now = np.where(hard, rng.random(SIZE) < 0.1, now)
    digests = {name: CaseDigest("as it was") for name in names}
    changed = digests | {name: CaseDigest("edited") for name, each in zip(names, hard, strict=True) if each}
    here, there = CaseStatistics.from_records(_run(now, names)), CaseStatistics.from_records(_run(before, names))
    return structs.replace(here, digests=changed), structs.replace(there, digests=digests)


SITUATIONS: tuple[tuple[str, Callable[[np.random.Generator, float], Pair], str | None], ...] = (
    ("50 of 200 cases did not run in one of the runs", not_run, None),
    ("40 cases five times each, no cluster named", copied, None),
    ("40 cases five times each, `cluster_by`", copied, "question"),
    ("20 new cases, hard ones, beside 200", added, None),
    ("20 of 200 cases edited, now hard", edited, None),
)


@table(
    "situations",
    "../benchmarks/calibration.md",
    ("runs", "false alarms", "drops of 10 points found"),
    simulations=400,
)
def situations(simulations: int, seed: int) -> Iterator[Row]:
    """How comparisons fare where the runs are not alike, or cases are not independent."""
    for number, (name, make, cluster_by) in rows(enumerate(SITUATIONS)):
        rates = []
        for drop in (0.0, DROP):
            rng = np.random.default_rng([seed, number, round(100 * drop)])
            bounds = [_bounds(make(rng, drop), cluster_by) for _ in range(simulations)]
            rates.append([high < 0 or (low > 0 and not drop) for low, high in bounds])
        yield (name, share(rates[0]), share(rates[1], 2))


def _bounds(pair: Pair, cluster_by: str | None) -> tuple[float, float]:
    pairing = RunPairing(*pair, {"text": _EVALUATOR})
    rows, names = pairing.everything(), ["exact_match"]
    found = Difference.between(pairing, rows, names, confidence=0.95, cluster_by=cluster_by)["exact_match"]
    return found.low or 0.0, found.high or 0.0


def _history(rng: np.random.Generator, fall: float, runs: int) -> Array:
    """Return the answers of runs of the same cases, each worse than the one before by `fall`."""
    chance = _chances(rng, SIZE)
    return np.array([rng.random(SIZE) < np.clip(chance - number * fall, 0, 1) for number in range(runs)], dtype=float)


def _excess(before: Array, now: Array, allowed: float) -> float:
    """Return how many standard deviations the drop is beyond what is allowed."""
    lost = before - now
    deviation = float(lost.std()) / np.sqrt(SIZE)
    return float((lost.mean() - allowed) / deviation) if deviation else 0.0


@table(
    "drift",
    "../benchmarks/calibration.md",
    ("fall per step", "after 12 steps", "`max_drop: 0.02` fails", "`max_drift: 0.06` fails"),
    simulations=2_000,
)
def drift(simulations: int, seed: int) -> Iterator[Row]:
    """What gates see of twelve approved steps, against the last approval and against the first one."""
    for fall in rows((0.0, 0.005, 0.0133, 0.02)):
        rng = np.random.default_rng([seed, round(10_000 * fall)])
        steps, ends = [], []
        for _ in range(simulations):
            runs = _history(rng, fall, STEPS + 1)
            steps.append(any(_excess(*pair, 0.02) > QUANTILE for pair in pairwise(runs)))
            ends.append(any(_excess(runs[0], each, 0.06) > QUANTILE for each in runs[1:]))
        yield (f"{fall:g}", f"{STEPS * fall:.2f}", share(steps), share(ends))


@table(
    "churn",
    "../benchmarks/calibration.md",
    ("cases replaced per approval", "equally good", "after a fall of 0.24", "answers that persist, after the fall"),
    simulations=400,
)
def churn(simulations: int, seed: int) -> Iterator[Row]:
    """How often ``max_drift: 0.06`` fails in twelve approved steps of 200 cases, some replaced in each."""
    for replaced in rows((0.0, 0.1, 0.2, 0.3)):
        rates = []
        for fall, changing in ((0.0, 1.0), (FALL, 1.0), (FALL, 0.1)):
            rng = np.random.default_rng([seed, round(100 * replaced), round(100 * fall), round(10 * changing)])
            rates.append([_drifts(rng, replaced, fall, changing) for _ in range(simulations)])
        yield (f"{100 * replaced:.0f} %", share(rates[0]), share(rates[1], 2), share(rates[2], 2))


def _drifts(rng: np.random.Generator, replaced: float, fall: float, changing: float) -> bool:
    """Return whether the sum of the steps is significantly a drop beyond 0.06 after any of them.

    Args:
        rng: Random numbers.
        replaced: The share of the cases that are others after each step.
        fall: By how much the answers get worse in each step.
        changing: The share of the cases whose answers do not depend on those of the run before.
    """
    names, chance, luck = np.arange(SIZE), _chances(rng, SIZE), rng.random(SIZE)
    before, chain = luck < chance, Chain(0.0, 0, SIZE, 0, {})
    for number in range(1, STEPS + 1):
        new = rng.random(SIZE) < replaced
        names, chance = np.where(new, names + SIZE, names), np.where(new, _chances(rng, SIZE), chance)
        luck = np.where(new | (rng.random(SIZE) < changing), rng.random(SIZE), luck)
        now = luck < np.clip(chance - number * fall, 0, 1)
        moves = (now.astype(float) - before)[~new]
        errors = dict(zip(map(str, names[~new]), ((moves - moves.mean()) / moves.size).tolist(), strict=True))
        chain = chain.extended(Chain(float(moves.mean()), 1, moves.size, int((moves != 0).sum()), errors))
        if -chain.moved - 0.06 > QUANTILE * np.sqrt(chain.variance):
            return True
        before = now
    return False


def _baselines(runs: Array, approves: Callable[[Array, Array], bool], pool: int) -> Iterator[Array]:
    """Yield what each run after the first is compared with."""
    approved = [runs[0]]
    for now in runs[1:]:
        baseline = np.mean(approved[-pool:], axis=0)
        yield baseline
        if approves(baseline, now):
            approved.append(now)


POLICIES: tuple[tuple[str, Callable[[Array, Array], bool], int], ...] = (
    ("none but the first", lambda _baseline, _now: False, 1),
    ("each rise", lambda baseline, now: bool(now.mean() > baseline.mean()), 1),
    ("significant rises", lambda baseline, now: _excess(now, baseline, 0.0) > QUANTILE, 1),
    ("each run", lambda _baseline, _now: True, 1),
    ("each rise, `pool: 5`", lambda baseline, now: bool(now.mean() > baseline.mean()), 5),
    ("each run, `pool: 5`", lambda _baseline, _now: True, 5),
)


@table(
    "luck",
    "../benchmarks/calibration.md",
    ("approved", "first run alarms", "60th run alarms", "histories with an alarm"),
    simulations=400,
)
def luck(simulations: int, seed: int) -> Iterator[Row]:
    """How often equally good runs alarm, by which of them are approved."""
    for policy, approves, pool in rows(POLICIES):
        rng = np.random.default_rng(seed)
        alarms = np.zeros((simulations, RUNS), dtype=bool)
        for row in alarms:
            runs = _history(rng, 0.0, RUNS + 1)
            compared = zip(_baselines(runs, approves, pool), runs[1:], strict=True)
            row[:] = [_excess(baseline, now, 0.0) > QUANTILE for baseline, now in compared]
        yield (policy, share(alarms[:, 0]), share(alarms[:, -1]), share(alarms.any(axis=1), 2))
