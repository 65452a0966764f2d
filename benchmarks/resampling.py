"""Intervals, comparisons and gates of 10,000 cases, in seconds of processor time.

Run: ``python benchmarks/resampling.py``. The time is that of all threads of the process, so that it means the same on a
busy machine.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from pytest_llmeval import Case, compare, get_evaluator, score
from pytest_llmeval.core import GateResult, Result
from pytest_llmeval.gates import ChangeGate, DropGate, GateEvidence
from pytest_llmeval.numbers import CaseStatistics, RunPairing
from pytest_llmeval.numbers._intervals import Resampled, resampled_interval
from pytest_llmeval.numbers._resample import resample_count, resampled_totals

CASES, COUNTS, GATES, ROUNDS = 10_000, 12, 100, 5
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon")


def intervals() -> None:
    matrix = np.random.default_rng(7).integers(0, 5, size=(CASES, COUNTS)).astype(float)
    totals = resampled_totals(matrix, resample_count(CASES))
    for column in range(1, COUNTS):
        resampled_interval(Resampled(totals[:, column] / totals[:, 0]), 0.95, CASES)


def run(seed: int) -> Result:
    """Return a run with all metrics of `text`."""
    rng = np.random.default_rng(seed)
    answers = [" ".join(rng.choice(WORDS, 3)) for _ in range(CASES)]
    cases = [
        Case(str(number), expected="alpha beta gamma", prediction=each, labels={"topic": str(number % 10)})
        for number, each in enumerate(answers)
    ]
    return score(get_evaluator("text"), cases, confidence=None)


def judge(here: Result, there: Result, gates: list[ChangeGate]) -> list[GateResult]:
    """Judge gates as a run does, from the records of its cases on."""
    pairing = RunPairing(
        CaseStatistics.from_records(here.records), CaseStatistics.from_records(there.records), here.evaluators
    )
    return GateEvidence.judge_together([gate.examine(pairing) for gate in gates])


def seconds(work: Callable[[], object]) -> str:
    found = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return f"median {statistics.median(found):.2f}  min {min(found):.2f}  max {max(found):.2f}"


def main() -> None:
    here, there = run(1), run(2)
    names = [list(here.metrics)[number % len(here.metrics)] for number in range(GATES)]
    gates = [DropGate(name, 0.001 * number) for number, name in enumerate(names)]
    means = [
        DropGate(name, 0.001 * number, statistic="mean" if number % 2 else "value") for number, name in enumerate(names)
    ]
    grouped = [DropGate(name, 0.001 * number, by="topic") for number, name in enumerate(names)]
    print(f"{CASES} cases, {resample_count(CASES)} resamples; processor seconds of {ROUNDS} rounds")
    for name, work in (
        (f"{COUNTS} counts, {COUNTS - 1} intervals", intervals),
        (f"compare, {len(here.metrics)} metrics, percentile", partial(compare, here, there)),
        (f"compare, {len(here.metrics)} metrics, bca", partial(compare, here, there, method="bca")),
        (f"{GATES} gates", partial(judge, here, there, gates)),
        (f"{GATES} gates, half of them on means", partial(judge, here, there, means)),
        (f"{GATES} gates by a label of 10 values", partial(judge, here, there, grouped)),
    ):
        print(f"{name}: {seconds(work)}")


if __name__ == "__main__":
    main()
