"""Verdicts that a unit, a cluster, a label or a repeat could fool: tables of ``tables.py``, judged by the package."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from few_cases import DROP, Plain, Scores, corrected_interval
from tables import Row, rows, share, table

from pytest_llmeval import Case, Metric, Observation, get_evaluator, score
from pytest_llmeval.core import CaseRecord
from pytest_llmeval.data import Document
from pytest_llmeval.exchange.gating import GateOptions, judge_results
from pytest_llmeval.exchange.results import ResultRow
from pytest_llmeval.gates import DropGate, GateEvidence
from pytest_llmeval.numbers import CaseStatistics, RunPairing

Array = np.ndarray


class Unbounded(Plain):
    """A mean of scores without ends."""

    def describe(self) -> list[Metric]:
        """Return the metric."""
        return [Metric("score", low=None, high=None)]


def recorded(scores: Array, clusters: Array | None = None) -> CaseStatistics:
    """Return a run with these scores, whose cases are in these clusters."""
    labels = [{} if clusters is None else {"talk": str(each)} for each in (scores if clusters is None else clusters)]
    return CaseStatistics.exact(
        CaseRecord(f"c{n:04}", own, "passed", {"plain": Observation({"total": float(score), "n": 1})})
        for n, (score, own) in enumerate(zip(scores, labels, strict=True))
    )


def pairing(now: Array, before: Array, clusters: Array | None = None, evaluator: Plain | None = None) -> RunPairing:
    return RunPairing(recorded(now, clusters), recorded(before, clusters), {"plain": evaluator or Plain()})


def is_red(gate: DropGate, runs: RunPairing) -> bool:
    return GateEvidence.judge_together([gate.examine(runs)])[0].outcome == "failed"


def without_ends(size: int, noise: Callable[[np.random.Generator, int], Array], rng: np.random.Generator) -> bool:
    """Judge two equal runs of a score without ends."""
    level = rng.normal(100, 1, size)
    return is_red(DROP, pairing(level + noise(rng, size), level + noise(rng, size), evaluator=Unbounded()))


def in_clusters(sizes: Callable[[np.random.Generator], Array], rng: np.random.Generator) -> bool:
    """Judge two equal runs whose clusters move together, now and then far: by Student's distribution with 2 degrees."""
    clusters = np.repeat(np.arange(12), sizes(rng))
    level = rng.beta(4, 2, 12)
    now, before = (
        np.clip((level + 0.2 * rng.standard_t(2, 12))[clusters] + rng.normal(0, 0.05, len(clusters)), 0, 1)
        for _ in range(2)
    )
    return is_red(replace(DROP, cluster_by="talk"), pairing(now, before, clusters))


def many_suites(rng: np.random.Generator) -> bool:
    """Judge two equal runs of 20 suites with one command."""
    findings = []
    for _ in range(20):
        now, before = answers(rng, 60)
        findings.append(DROP.examine(pairing(now, before)))
    files = [f"{n}.eval.yaml" for n in range(len(findings))]
    return any(each.outcome == "failed" for each in GateEvidence.judge_together(findings, files))


def answers(rng: np.random.Generator, size: int) -> Scores:
    chance = rng.beta(4, 1, size)
    return (rng.random(size) < chance).astype(float), (rng.random(size) < chance).astype(float)


def unwritten(rng: np.random.Generator) -> bool:
    """Return whether a run passes that is worse by 0.15, and of whose failing repeats 70 of 100 are not written."""
    chance = rng.beta(4, 1, 60)
    old, new = (
        [
            ResultRow(f"c{case:03}", "score", float(right), repeat=repeat)
            for repeat in range(1, 6)
            for case, right in enumerate(rng.random(60) < chance - drop)
        ]
        for drop in (0.0, 0.15)
    )
    written = [row for row in new if row.score or rng.random() < 0.3]
    with TemporaryDirectory() as folder:
        return judge_results(written, old, (), GateOptions(Document("", {})), Path(folder)).decision == "passed"


def normal(rng: np.random.Generator, size: int) -> Array:
    return rng.normal(size=size)


def lognormal(rng: np.random.Generator, size: int) -> Array:
    return rng.lognormal(size=size)


def equal_sizes(_rng: np.random.Generator) -> Array:
    return np.full(12, 10)


def pareto_sizes(rng: np.random.Generator) -> Array:
    return np.minimum(60, np.ceil(2 * (rng.pareto(1.2, 12) + 1))).astype(int)


HARD: Mapping[str, tuple[str, Callable[[np.random.Generator], bool]]] = {
    "12 scores without ends, normal": ("red", partial(without_ends, 12, normal)),
    "20 scores without ends, normal": ("red", partial(without_ends, 20, normal)),
    "20 latencies without ends, lognormal": ("red", partial(without_ends, 20, lognormal)),
    "120 cases in 12 clusters that are heavy-tailed": ("red", partial(in_clusters, equal_sizes)),
    "12 such clusters of 3 to 60 cases": ("red", partial(in_clusters, pareto_sizes)),
    "20 suites of 60 cases, one command": ("red", many_suites),
    "60 cases worse by 0.15, failing repeats not written": ("passed", unwritten),
}


@table("hard_runs", "../benchmarks/calibration.md", ("runs", "verdict", "share"), simulations=1_000)
def hard_runs(simulations: int, seed: int) -> Iterator[Row]:
    """How often equally good runs are red; 0.025 is promised. A fall passes never by what is missing."""
    for number, (name, (verdict, errs)) in rows(enumerate(HARD.items())):
        rng = np.random.default_rng([seed, number])
        yield (name, verdict, share(errs(rng) for _ in range(simulations)))


@dataclass(frozen=True)
class Labelled:
    """An interval from few labels, and whether it holds the truth; without one, nothing is claimed."""

    covered: bool
    exists: bool


def contaminated(labels: int, rng: np.random.Generator) -> Labelled:
    """Correct a graded judge that misses one gross error in twenty answers."""
    quality = rng.beta(4, 2, 200)
    people = np.where(rng.random(200) < 0.05, 0.0, quality)
    judge = np.clip(quality + rng.normal(0, 0.05, 200), 0, 1)
    low, high = corrected_interval(judge, people, labels)
    return Labelled(not low > 0.95 * 4 / 6 and not high < 0.95 * 4 / 6, not np.isnan(low))


RARE = 0.95
AGREEMENT = get_evaluator("judge_agreement", mode="continuous", levels=[0, 1])


def rare_answers(labels: int, rng: np.random.Generator) -> Labelled:
    """Agree with a judge that is right in nine of ten answers, of which one in twenty is no."""
    people = rng.random(labels) < RARE
    said = people ^ (rng.random(labels) < 0.1)
    cases = [
        Case(str(n), input="q", expected={"reference": "r", "human": float(own)}, prediction=f"answer {verdict:d}")
        for n, (own, verdict) in enumerate(zip(people, said, strict=True))
    ]
    found = score(AGREEMENT, cases, judge=lambda asked: json.dumps({"score": int("answer 1" in str(asked))}))
    kappa = found.metrics["cohen_kappa"]
    if kappa.low is None or kappa.high is None:
        return Labelled(True, False)
    return Labelled(kappa.low <= _true_kappa() <= kappa.high, True)


def _true_kappa() -> float:
    said = RARE * 0.9 + (1 - RARE) * 0.1
    chance = RARE * said + (1 - RARE) * (1 - said)
    return (0.9 - chance) / (1 - chance)


@table("hard_labels", "../benchmarks/calibration.md", ("interval", "labels", "coverage", "exists"), simulations=200)
def hard_labels(simulations: int, seed: int) -> Iterator[Row]:
    """How often intervals from few labels hold the truth; 0.95 is promised of those that exist."""
    kinds = {"corrected, 5 % gross errors": contaminated, "kappa, 5 % no": rare_answers}
    for (name, draw), labels in rows(product(kinds.items(), (10, 20, 40))):
        rng = np.random.default_rng([seed, labels])
        found = [draw(labels, rng) for _ in range(simulations)]
        known = [each.covered for each in found if each.exists]
        yield (
            name,
            labels,
            share(known, 2) if len(known) > simulations / 10 else "n/a",
            share(each.exists for each in found),
        )
