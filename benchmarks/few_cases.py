"""Gates on scores whose difference rests on few cases: tables of ``benchmarks/tables.py``, judged by the package.

A *collapse* takes nearly all of the score of a few cases; all others move by a hair. *Skewed* differences are many
small losses that rare large gains make up for. Whoever sees none of the rare cases sees neither.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from tables import Estimated, Row, mean, rows, share, table

from pytest_llmeval import Case, Evaluator, Metric, Observation
from pytest_llmeval.core import CaseRecord
from pytest_llmeval.evaluators import Judge
from pytest_llmeval.evaluators.judge._human_labels import excess_counts
from pytest_llmeval.gates import ChangeGate, DropGate, GateEvidence
from pytest_llmeval.gates._drop import GainGate, SafeGate
from pytest_llmeval.numbers import CaseStatistics, RunPairing, Table
from pytest_llmeval.numbers._estimation import estimate
from pytest_llmeval.numbers._inference import FEW_CHANGED, Bootstrap, FarChanges, least_tail
from pytest_llmeval.numbers._significance import few_changes_tail, unseen_tail

LEVEL = 0.05
POWER_SIZES, POWER_DROPS = (50, 100, 200), (0.05, 0.1, 0.2)
EARLIER_POWER = {
    "0 and 1": ((0.05, 0.13, 0.45), (0.13, 0.32, 0.84), (0.19, 0.57, 0.98)),
    "continuous": ((0.25, 0.74, 1.00), (0.46, 0.96, 1.00), (0.77, 1.00, 1.00)),
}
"""What `significant_drop` found before luck was graded.

By ``python benchmarks/tables.py power`` in a checkout of 6c11a43d.
"""

Array = np.ndarray
Scores = tuple[Array, Array]


@dataclass(frozen=True)
class Plain(Evaluator):
    """An evaluator whose metric is the mean of the scores of cases."""

    name = "plain"
    version = "1"

    def measure(self, case: Case) -> Observation:
        """Take the prediction for the score."""
        return Observation({"total": float(case.prediction), "n": 1})

    def summarize(self, sums: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the mean."""
        return {"score": sums["total"] / sums["n"]}

    def describe(self) -> list[Metric]:
        """Return the metric."""
        return [Metric("score")]


def recorded(scores: Array, clusters: int = 0) -> CaseStatistics:
    """Return a run with these scores; cases take turns in the clusters."""
    return CaseStatistics.exact(
        CaseRecord(
            f"c{number:04}",
            {"talk": str(number % clusters)} if clusters else {},
            "passed",
            {"plain": Observation({"total": float(each), "n": 1})},
        )
        for number, each in enumerate(scores)
    )


def paired(now: Array, before: Array, clusters: int = 0) -> RunPairing:
    return RunPairing(recorded(now, clusters), recorded(before, clusters), {"plain": Plain()})


def outcome(gate: ChangeGate, now: Array, before: Array, clusters: int = 0) -> str:
    return GateEvidence.judge_together([gate.examine(paired(now, before, clusters))])[0].outcome


def collapse(size: int, share: float, jitter: float) -> Callable[[np.random.Generator], Scores]:
    """A share of the cases falls from 0.8 to nothing; the rest moves by a hair."""

    def draw(rng: np.random.Generator) -> Scores:
        before = np.full(size, 0.8)
        now = np.where(rng.random(size) < share, 0.0, before + jitter * rng.standard_normal(size))
        return now, before

    return draw


def rare_gains(size: int, share: float, jitter: float) -> Callable[[np.random.Generator], Scores]:
    """Most cases lose a little, a share gains what all others lose."""
    loss = 0.95 * share / (1 - share)

    def draw(rng: np.random.Generator) -> Scores:
        before = np.full(size, 0.05)
        lost = before - loss + jitter * rng.standard_normal(size)
        return np.where(rng.random(size) < share, 1.0, np.clip(lost, 0, 1)), before

    return draw


def lognormal(size: int) -> Callable[[np.random.Generator], Scores]:
    """Differences are lognormal around their mean: many small losses, some large gains."""

    def draw(rng: np.random.Generator) -> Scores:
        gains = 0.05 * (rng.lognormal(0, 1, size) - np.exp(0.5))
        return np.clip(0.4 + gains, 0, 1), np.full(size, 0.4)

    return draw


def clustered(size: int, clusters: int, drop: float) -> Callable[[np.random.Generator], Scores]:
    """The cases of a cluster rise and fall together."""

    def draw(rng: np.random.Generator) -> Scores:
        moved = rng.normal(-drop, 0.1, clusters)[np.arange(size) % clusters] + rng.normal(0, 0.05, size)
        return np.clip(0.7 + moved, 0, 1), np.full(size, 0.7)

    return draw


SAFE = SafeGate("score", 0.02)
DROP = DropGate("score", 0.0)
CELLS = (
    (
        "60 cases, jitter of 0.01, 3 % fall to 0",
        "`non_inferiority` 0.02 passes",
        SAFE,
        collapse(60, 0.03, 0.01),
        0,
    ),
    ("200 such cases", "`non_inferiority` 0.02 passes", SAFE, collapse(200, 0.03, 0.01), 0),
    ("400 such cases", "`non_inferiority` 0.02 passes", SAFE, collapse(400, 0.03, 0.01), 0),
    ("60 cases, no jitter, 3 % collapse", "`non_inferiority` 0.02 passes", SAFE, collapse(60, 0.03, 0.0), 0),
    (
        "20 cases, rare gains of 0.95, true drop 0",
        "`max_drop: 0` fails",
        DROP,
        rare_gains(20, 0.05, 0.005),
        0,
    ),
    ("60 such cases", "`max_drop: 0` fails", DROP, rare_gains(60, 0.05, 0.005), 0),
    ("20 cases, lognormal differences, true drop 0", "`max_drop: 0` fails", DROP, lognormal(20), 0),
    ("50 such cases", "`max_drop: 0` fails", DROP, lognormal(50), 0),
    ("60 cases in 5 clusters, true drop 0", "`max_drop: 0` fails", DROP, clustered(60, 5, 0.0), 5),
    ("60 cases in 12 clusters, true drop 0", "`max_drop: 0` fails", DROP, clustered(60, 12, 0.0), 12),
)


def errs(gate: ChangeGate, now: Array, before: Array, clusters: int) -> bool:
    """Return whether a gate errs: it passes by ``non_inferiority``, or fails by ``significant_drop``."""
    if clusters:
        gate = replace(gate, cluster_by="talk")
    return outcome(gate, now, before, clusters) == ("passed" if gate.rule == "non_inferiority" else "failed")


def by_resamples(gate: ChangeGate, now: Array, before: Array, clusters: int) -> bool:
    """Return whether a gate would err by resamples and the number of changed cases alone."""
    pairing, metric = paired(now, before, clusters), Metric("score")
    label = "talk" if clusters else None
    found = estimate(pairing, pairing.everything(), ["score"], cluster_by=label)["score"]
    bootstrap = Bootstrap.from_estimate(found, "percentile", metric)
    if bootstrap is None:
        return False
    tails = bootstrap.tails(-gate.max_drop)
    if gate.rule == "significant_drop":
        return 2 * max(least_tail(found), tails.below) <= LEVEL
    few = found.changed is not None and found.changed < FEW_CHANGED
    least = few_changes_tail(found.changed or 0, found.units, gate.max_drop) if few else 0.0
    return 2 * max(least, tails.above) <= LEVEL


@table("skew", "../benchmarks/calibration.md", ("runs", "error", "resamples alone", "gate"), simulations=400)
def skew(simulations: int, seed: int) -> Iterator[Row]:
    """How often gates err where few cases decide, and would by resamples alone; 0.025 is promised."""
    for number, (name, what, gate, draw, clusters) in rows(enumerate(CELLS)):
        rng = np.random.default_rng([seed, number])
        runs = [draw(rng) for _ in range(simulations)]
        alone = share(by_resamples(gate, *each, clusters) for each in runs)
        yield (name, what, alone, share(errs(gate, *each, clusters) for each in runs))


def ordinary(kind: str, size: int, drop: float, rng: np.random.Generator) -> Scores:
    """Return two runs of ordinary scores, the second of which is worse by `drop`."""
    chance = 0.2 + 0.7 * rng.beta(4, 2, size)
    if kind == "0 and 1":
        new, old = ((rng.random(size) < each).astype(float) for each in (chance - drop, chance))
    else:
        new, old = (rng.beta(5 * each, 5 * (1 - each)) for each in (np.maximum(chance - drop, 0.01), chance))
    return new, old


def power(kind: str, size: int, drop: float, rule: str, simulations: int, seed: int) -> Estimated:
    """Return how often a drop is significant, or an equally good run is proven safe of so large a one."""
    rng = np.random.default_rng([seed, size, round(1000 * drop)])
    drops = rule == "significant_drop"
    gate = DropGate("score", 0.0) if drops else SafeGate("score", drop)
    runs = (ordinary(kind, size, drop if drops else 0.0, rng) for _ in range(simulations))
    return share((outcome(gate, *each) == ("failed" if drops else "passed") for each in runs), 2)


@table(
    "power",
    "../benchmarks/calibration.md",
    ("rule", "scores", "cases", *map(str, POWER_DROPS)),
    simulations=400,
)
def powers(simulations: int, seed: int) -> Iterator[Row]:
    """What gates find: drops, and that an equally good run has none of the size."""
    kinds = product(("significant_drop", "non_inferiority"), ("0 and 1", "continuous"), POWER_SIZES)
    for rule, kind, size in rows(kinds):
        found = [power(kind, size, drop, rule, simulations, seed) for drop in POWER_DROPS]
        earlier = EARLIER_POWER[kind][POWER_SIZES.index(size)] if rule == "significant_drop" else ()
        both = [(now, Estimated(was, 0.0, 2)) for now, was in zip(found, earlier, strict=False)]
        yield (f"`{rule}`", kind, size, *(both or found))


ALIKE_SIZES, ALIKE_GATES = (3, 5, 8, 10, 20, 50, 200), (1, 2, 10, 100)
ALIKE = ("binary 0.67", "binary 0.95", "continuous", "skewed", "clustered")


def alike(kind: str, gates: int, size: int, rng: np.random.Generator) -> Scores:
    """Return two equally good runs: one row per gate, one column per case, or per cluster of five cases."""
    shape = (2, gates, size)
    if kind == "continuous":
        chance = 0.2 + 0.7 * rng.beta(4, 2, (gates, size))
        now, before = rng.beta(5 * chance, 5 * (1 - chance), shape)
    elif kind == "skewed":
        now, before = np.where(rng.random(shape) < 0.05, 1.0, 0.05)
    elif kind == "clustered":
        now, before = rng.binomial(5, rng.beta(2, 1, shape)) / 5
    else:
        now, before = (rng.random(shape) < float(kind.split()[1])).astype(float)
    return now, before


def any_collapse(now: Array, before: Array) -> bool:
    """Return whether any gate fails without proof, as `FarChanges` and `unseen_tail` have it."""
    drops, half = before - now, before.mean(axis=1, keepdims=True) / 2
    worse, better = (((sign * drops >= half - 1e-9) & (half > 0)).sum(axis=1) for sign in (1, -1))
    size = drops.shape[1]
    changes = [FarChanges(size, int(lost), int(won)) for lost, won in zip(worse, better, strict=True)]
    return any(
        2 * each.net >= size
        and unseen_tail(float(drops[place].mean()), 1 - float(now[place].mean()), size) <= LEVEL
        and each.is_collapse(changes[:place] + changes[place + 1 :], LEVEL)
        for place, each in enumerate(changes)
    )


@table(
    "without-proof",
    "../benchmarks/calibration.md",
    ("scores", "cases", *(f"{gates} gate{'s' * (gates > 1)}" for gates in ALIKE_GATES)),
    simulations=1000,
)
def without_proof(simulations: int, seed: int) -> Iterator[Row]:
    """How often any gate fails without proof although both runs are equally good; 0.05 is promised from 5 cases on."""
    for kind, size in rows(product(ALIKE, ALIKE_SIZES)):
        rng = np.random.default_rng([seed, size, ALIKE.index(kind)])
        shares = (
            share(any_collapse(*alike(kind, gates, size, rng)) for _ in range(simulations)) for gates in ALIKE_GATES
        )
        yield (kind, size, *shares)


LABELS, LABELLED_CASES = (10, 20, 50), 200


def labelled_run(kind: str, labels: int, rng: np.random.Generator) -> tuple[float, bool]:
    """Simulate a judge that people correct on some cases; return the width of the interval, and whether it is right."""
    if kind == "continuous":
        people = rng.beta(4, 2, LABELLED_CASES)
        judge = np.clip(people + 0.1 + rng.normal(0, 0.15, LABELLED_CASES), 0, 1)
        truth = 4 / 6
    else:
        people = (rng.random(LABELLED_CASES) < 0.7).astype(float)
        wrong = rng.random(LABELLED_CASES) < np.where(people > 0, 0.03, 0.15)
        judge = np.where(wrong, 1 - people, people)
        truth = 0.7
    low, high = corrected_interval(judge, people, labels)
    return high - low, low <= truth <= high


def corrected_interval(judge: Array, people: Array, labels: int) -> tuple[float, float]:
    """Return the 95 % interval of ``corrected(judge_score)`` if people scored the first `labels` cases."""
    records = []
    for number, (said, right) in enumerate(zip(judge, people, strict=True)):
        counts = {"score": float(said), "n": 1.0}
        if number < labels:
            counts |= {"labelled": 1.0, "bound": 1.0, **excess_counts("excess", float(said), float(right))}
        records.append(CaseRecord(f"c{number:03}", {}, "passed", {"judge": Observation(counts)}))
    table = Table({"judge": Judge(mode="continuous", corrected=True)}, records)
    found = table.metrics(range(len(records)), 0.95)["corrected(judge_score)"]
    return (float("nan"), float("nan")) if found.low is None or found.high is None else (found.low, found.high)


@table("labels", "../benchmarks/calibration.md", ("judge", "labels", "coverage", "width"), simulations=1_000)
def labelled(simulations: int, seed: int) -> Iterator[Row]:
    """Coverage of the intervals of corrected scores; 0.95 is promised."""
    for kind, labels in rows(product(("continuous", "yes or no"), LABELS)):
        rng = np.random.default_rng([seed, labels])
        widths, covered = zip(*(labelled_run(kind, labels, rng) for _ in range(simulations)), strict=True)
        yield (kind, labels, share(covered), mean(widths))


SYSTEMS, SYSTEM_CASES = 10, 200


@table("systems", "../benchmarks/calibration.md", ("gates", "some gain is significant"), simulations=300)
def systems(simulations: int, seed: int) -> Iterator[Row]:
    """In how many runs some of ten equal systems is significantly better than the first."""
    rng = np.random.default_rng(seed)
    gate = GainGate("score", 0.0, against="first")
    together, alone = [], []
    for _ in range(simulations):
        chance = 0.2 + 0.7 * rng.beta(4, 2, SYSTEM_CASES)
        runs = [rng.beta(5 * chance, 5 * (1 - chance)) for _ in range(SYSTEMS)]
        findings = [gate.examine(paired(each, runs[0])) for each in runs[1:]]
        together.append(any(each.outcome == "passed" for each in GateEvidence.judge_together(findings)))
        alone.append(any(GateEvidence.judge_together([each])[0].outcome == "passed" for each in findings))
    yield ("judged together", share(together))
    yield ("each judged alone", share(alone))
