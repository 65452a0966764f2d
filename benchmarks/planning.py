"""Do plans, corrected means, watching and bridges keep what they promise? Simulated tables of ``tables.py``."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from tables import Row, mean, rows, share, table

from pytest_llmeval import Case, Evaluator, Metric, Observation, Sums
from pytest_llmeval.core import CaseRecord
from pytest_llmeval.evaluators.judge._human_labels import corrected_mean, excess_counts
from pytest_llmeval.gates import DropGate, GateEvidence
from pytest_llmeval.gates._drop import SafeGate
from pytest_llmeval.numbers import CaseStatistics, Difference, RunPairing, Shift, WatchedRun
from pytest_llmeval.numbers._anytime import Watch
from pytest_llmeval.numbers._resample import resampled_totals
from pytest_llmeval.workbench._migration import measured_on
from pytest_llmeval.workbench.plan._spread import Plan, ScoreSpread, measured_spread

RESAMPLES, CHUNK = 1_000, 50

Array = np.ndarray


@table(
    "plans",
    "../benchmarks/calibration.md",
    ("drop", "repeats", "true variances: cases", "found", "pilots: cases on average", "found"),
    simulations=100,
)
def plans(simulations: int, seed: int) -> Iterator[Row]:
    """Plan from a pilot of two runs, then run what it says, and see how many of the drops are found."""
    for drop, repeats in rows(product((0.05, 0.1), (1, 4))):
        rng = np.random.default_rng([seed, round(drop * 100), repeats])
        known = Plan(ScoreSpread(between=0.005, within=_WITHIN)).cases(drop, repeats) or 0
        pilots = [_pilot(rng, drop, repeats) for _ in range(simulations)]
        found = mean((_found(rng, known, drop, repeats) for _ in pilots), 2)
        by_pilots = mean((_found(rng, each, drop, repeats) for each in pilots), 2)
        yield (f"{drop:g}", repeats, known, found, mean(pilots, 0), by_pilots)


def _chances(rng: np.random.Generator, shape: tuple[int, int], drop: float) -> tuple[Array, Array]:
    """Return the chances of both runs: the change moves every case by the drop, more or less."""
    before = 0.3 + 0.55 * rng.beta(4, 2, shape)
    return before, before - drop + np.sqrt(0.015) * (rng.random(shape) - 0.5) * 2


_SAMPLE = 0.3 + 0.55 * np.random.default_rng(12).beta(4, 2, 200_000)
_WITHIN = float(np.mean(_SAMPLE * (1 - _SAMPLE)))


def _runs(rng: np.random.Generator, shape: tuple[int, int], drop: float, repeats: int) -> tuple[Array, Array]:
    before, after = _chances(rng, shape, drop)
    return rng.binomial(repeats, before) / repeats, rng.binomial(repeats, np.clip(after, 0, 1)) / repeats


def _pilot(rng: np.random.Generator, drop: float, repeats: int) -> int:
    """Return how many cases a pilot of two equally good runs of 100 cases with 4 repeats asks for."""
    before, _ = _chances(rng, (100, 1), 0.0)
    answers = rng.random((2, 4, 100)) < before[:, 0]
    within = float(answers.var(axis=1, ddof=1).mean())
    here, there = answers.mean(axis=1)
    spread = measured_spread(here, there, np.arange(100), within=within, repeats=(4, 4))
    return Plan(spread).cases(drop, repeats) or 0


def _found(rng: np.random.Generator, cases: int, drop: float, repeats: int) -> float:
    """Return the share of simulated pairs of runs whose paired interval establishes the drop."""
    before, after = _runs(rng, (cases, CHUNK), drop, repeats)
    resampled = resampled_totals(before - after, RESAMPLES, seed=int(rng.integers(2**32))) / cases
    return float(np.mean(np.quantile(resampled, 0.025, axis=0) > 0))


@table(
    "corrected",
    "../benchmarks/calibration.md",
    (
        "cases",
        "labelled",
        "covered by the judge alone",
        "labels alone",
        "corrected",
        "width: labels alone",
        "corrected",
    ),
    simulations=1_000,
)
def corrected(simulations: int, seed: int) -> Iterator[Row]:
    """A judge that is too mild, people on some cases: how often do intervals hold the mean of the people?"""
    for size, labelled in rows(((200, 20), (200, 50), (200, 100), (1000, 50), (1000, 200))):
        rng = np.random.default_rng([seed, size, labelled])
        bounds = np.concatenate([_judged(rng, size, labelled) for _ in range(simulations // CHUNK)], axis=2)
        covered = (bounds[:, 0] <= _PEOPLE) & (bounds[:, 1] >= _PEOPLE)
        widths = bounds[1:, 1] - bounds[1:, 0]
        yield (size, labelled, *map(share, covered), *map(mean, widths))


_PEOPLE = 2 / 3


def _judged(rng: np.random.Generator, size: int, labelled: int) -> Array:
    """Return bounds of intervals of the judge's mean, of the mean of the labels, and of the corrected mean."""
    shape = (size, CHUNK)
    people = rng.beta(2, 1, shape)
    judge = np.clip(people + 0.12 + rng.normal(0, 0.12, shape), 0, 1)
    chosen = rng.permuted(np.broadcast_to((np.arange(size) < labelled)[:, None], shape), axis=0)
    columns = {"score": judge, "n": np.ones(shape), "labelled": chosen.astype(float), "people": chosen * people}
    columns |= {name: np.where(chosen, column, 0.0) for name, column in excess_counts("excess", judge, people).items()}
    resampled = resampled_totals(np.hstack(list(columns.values())), RESAMPLES, seed=int(rng.integers(2**32)))
    parts = [each.ravel() for each in np.split(resampled, len(columns), axis=1)]
    sums = Sums(dict(zip(columns, parts, strict=True)), length=RESAMPLES * CHUNK)
    values = (sums["score"] / sums["n"], sums["people"] / sums["labelled"], corrected_mean(sums, "score", "excess"))
    return np.array([np.quantile(each.reshape(RESAMPLES, CHUNK), (0.025, 0.975), axis=0) for each in values])


WATCHED_DROPS = {50: 0.2, 100: 0.15, 200: 0.1, 1000: 0.05}
"""By the number of cases, a drop that a single run often misses."""


@table(
    "anytime",
    "../benchmarks/calibration.md",
    ("cases", "true drop", "begins with run", "single test", "anytime: 1 run", "3 runs", "10 runs"),
    simulations=400,
)
def anytime(simulations: int, seed: int) -> Iterator[Row]:
    """Drops that begin with some run: found by the single test of the first bad run, and by rule anytime."""
    for (size, drop), begins in rows(product(WATCHED_DROPS.items(), (1, 10))):
        looks = _history(size, drop, begins, begins + 9, simulations, seed)
        found = _weighed(looks, begins)
        first = share(_single(looks)[begins - 1], 2)
        yield (size, f"{drop:g}", begins, first, *(share(found[runs - 1], 2) for runs in (1, 3, 10)))


@table("watched", "../benchmarks/calibration.md", ("cases", "single tests", "anytime"), simulations=400)
def watched(simulations: int, seed: int) -> Iterator[Row]:
    """Histories of fifty equally good runs that alarm."""
    for size in rows((50, 100, 200, 1000)):
        looks = _history(size, 0.0, 1, 50, simulations, seed)
        yield (size, share(_single(looks).any(axis=0), 2), share(_weighed(looks, 1)[-1], 2))


COMMITTED_SIZES = (50, 100, 200)


@table(
    "commits",
    "../benchmarks/calibration.md",
    (
        "answers that a commit changes",
        "single tests, 200 cases",
        *(f"anytime, {size} cases" for size in COMMITTED_SIZES),
    ),
    simulations=400,
)
def commits(simulations: int, seed: int) -> Iterator[Row]:
    """Histories of fifty equally good runs that alarm, where most answers stay what they were in the run before."""
    for changed in rows((1.0, 0.3, 0.1, 0.05, 0.02)):
        looks = {size: _history(size, 0.0, 1, 50, simulations, seed, changed) for size in COMMITTED_SIZES}
        single = share(_single(looks[200]).any(axis=0), 2)
        yield (f"{changed:.0%}", single, *(share(_weighed(each, 1)[-1]) for each in looks.values()))


def _history(
    size: int, drop: float, begins: int, runs: int, simulations: int, seed: int, changed: float = 1.0
) -> list[list[WatchedRun]]:
    """Return histories of runs that are worse from one run on, each of which changes a share of the answers."""
    rng = np.random.default_rng([seed, size, round(drop * 100), begins, round(100 * changed)])
    histories = []
    for _ in range(simulations):
        chance = 0.2 + 0.7 * rng.beta(4, 2, size)
        worse = drop * (np.arange(1, runs + 1) >= begins)[:, None]
        first = (rng.random(size) < chance).astype(float)
        right = (rng.random((runs, size)) < chance - worse).astype(float)
        # What stays in a run is the answer of the last run that changed it.
        answers = np.where(rng.random((runs, size)) < changed, np.arange(1, runs + 1)[:, None], 0)
        answers = np.maximum.accumulate(answers, axis=0)
        lost = first - np.take_along_axis(np.vstack([first, right]), answers, axis=0)
        looks: list[WatchedRun] = []
        for each in lost:
            run = WatchedRun(each.mean(), each.std() / np.sqrt(size), size, shares=each)
            looks.append(run.after(looks))
        histories.append([run._replace(shares=()) for run in looks])
    return histories


def _single(histories: list[list[WatchedRun]]) -> Array:
    """Return which runs alarm on their own, runs by histories."""
    return np.array([[look.drop > 1.96 * look.deviation for look in looks] for looks in histories]).T


def _weighed(histories: list[list[WatchedRun]], begins: int) -> Array:
    """Return which histories have alarmed, by the number of runs from the one with which a drop begins."""
    ends = range(begins, len(histories[0]) + 1)
    alarms = [[_alarms(WatchedRun.weigh(looks[:end], 0.0)) for end in ends] for looks in histories]
    return np.logical_or.accumulate(alarms, axis=1).T


def _alarms(seen: Watch) -> bool:
    return seen.evidence >= 20 and seen.alone >= 1.96


class _Verdicts(Evaluator):
    """Scores as predicted."""

    name = "verdicts"

    def describe(self) -> Sequence[Metric]:
        return [Metric("score")]

    def measure(self, case: Case) -> Observation:
        return Observation({"score": case.prediction, "n": 1})

    def summarize(self, sums: Sums) -> Mapping[str, Array]:
        return {"score": sums["score"] / sums["n"]}


@table(
    "bridged",
    "../benchmarks/calibration.md",
    ("cases", "true drop", "scores mixed", "across the bridge", "one judge for both runs"),
    simulations=60,
)
def bridged(simulations: int, seed: int) -> Iterator[Row]:
    """Change to a milder judge: how often does a gate fail, by mixed scores, across the bridge, with one judge?"""
    for cases, drop in rows(((100, 0.0), (100, 0.25), (300, 0.0), (300, 0.15))):
        rng = np.random.default_rng([seed, cases])
        found = zip(*(_changed_judge(rng, cases, drop) for _ in range(simulations)), strict=True)
        yield (cases, f"{drop:g}", *(share(each, 2) for each in found))


def _changed_judge(rng: np.random.Generator, size: int, drop: float) -> tuple[bool, bool, bool]:
    chances = 0.4 + 0.4 * rng.random(size)
    before, after = (rng.random(size) < np.clip(each, 0, 1) for each in (chances, chances - drop))

    def milder(right: Array) -> Array:
        return np.where(right, rng.random(size) < 0.98, rng.random(size) < 0.3)

    old = np.where(rng.random(size) < 0.05, ~before, before)
    judged, current = milder(before), milder(after)
    (moved,) = Difference.between(both := _pairing(judged, old), both.everything(), ["score"], confidence=0.95).values()
    assert moved.difference is not None
    assert moved.low is not None
    assert moved.high is not None
    shift = {"score": measured_on(Shift(moved.difference, moved.low, moved.high), old, judged)}
    pairs = (_pairing(current, old), _pairing(current, old, shift), _pairing(current, judged))
    mixed, across, alone = (GateEvidence.judge_together([_GATE.examine(each)])[0].outcome == "failed" for each in pairs)
    return mixed, across, alone


_GATE = DropGate("score", 0.0)


@table(
    "bridges",
    "../benchmarks/calibration.md",
    ("compared", "right before", "right now", "`non_inferiority` 0.15 passes", "`max_drop` 0.05 fails", "undecided"),
    simulations=60,
)
def bridges(simulations: int, seed: int) -> Iterator[Row]:
    """A new judge that passes half of what the old one failed: verdicts on 300 answers, by how many are right."""
    for compared, (before, now) in rows(
        product((5, 50, 300), ((0.8, 0.8), (0.8, 0.6), (0.8, 0.5), (0.5, 0.5), (0.5, 0.3)))
    ):
        rng = np.random.default_rng([seed, compared, round(10 * before), round(10 * now)])
        outcomes = [bridged_outcomes(rng, compared, before, now) for _ in range(simulations)]
        safe = share((each[0] == "passed" for each in outcomes), 2)
        fails, open_ = (share((each[1] == word for each in outcomes), 2) for word in ("failed", "undecided"))
        yield (compared, f"{before:g}", f"{now:g}", safe, fails, open_)


BRIDGED = 300


def bridged_outcomes(rng: np.random.Generator, compared: int, before: float, now: float) -> tuple[str, str]:
    """Return the outcomes of a gate that is to prove safety, and of one that is to prove a drop, across a bridge.

    Args:
        rng: Random numbers.
        compared: How many answers both judges scored.
        before: The share of the right answers in the approved run.
        now: The share in this run.
    """
    difficulty = rng.random(BRIDGED)
    old = (difficulty < before).astype(float)
    judged, current = (
        np.where(right, 1.0, (rng.random(BRIDGED) < 0.5).astype(float)) for right in (old, difficulty < now)
    )
    both = _pairing(judged[:compared], old[:compared])
    (moved,) = Difference.between(both, both.everything(), ["score"], confidence=0.95).values()
    value, low, high = (0.0 if each is None else each for each in (moved.difference, moved.low, moved.high))
    shift = measured_on(Shift(value, low, high), old[:compared], judged[:compared])
    pairing = _pairing(current, old, {"score": shift})
    safe, drop = (
        GateEvidence.judge_together([gate.examine(pairing)])[0].outcome
        for gate in (SafeGate("score", 0.15), DropGate("score", 0.05))
    )
    return safe, drop


def _pairing(here: Array, there: Array, shifts: Mapping[str, Shift] | None = None) -> RunPairing:
    runs = [
        CaseStatistics.exact(
            CaseRecord(f"{number}", observations={"verdicts": Observation({"score": float(each), "n": 1})})
            for number, each in enumerate(scores)
        )
        for scores in (here, there)
    ]
    return RunPairing(runs[0], runs[1], {"verdicts": _Verdicts()}, shifts)
