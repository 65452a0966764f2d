"""Sums of steps between neighbouring approvals, of which each is over the cases that its two runs share."""

import numpy as np
import pytest

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.numbers import CaseDigest, CaseStatistics, Chain, RunPairing
from pytest_llmeval.numbers._estimation import chain_step, estimate
from pytest_llmeval.numbers._pairing import match

EVALUATOR = get_evaluator("classification", metrics=["accuracy", "f1_macro"])


def run(right: dict[str, bool], contents: dict[str, str] | None = None) -> CaseStatistics:
    """Return the statistics of cases, of which some are right, each on a page with one more."""
    cases = [
        Case(name, expected="xy"[n % 2], prediction="xy"[(n + (not good)) % 2], labels={"page": str(n // 2)})
        for n, (name, good) in enumerate(right.items())
    ]
    digests = {case.id: CaseDigest((contents or {}).get(case.id, case.id)) for case in cases}
    return CaseStatistics.from_records(score(EVALUATOR, cases, confidence=None).records, digests=digests)


def step(now: CaseStatistics, before: CaseStatistics, metric: str = "accuracy", by: str | None = None) -> Chain:
    pairing = RunPairing(now, before, {"classification": EVALUATOR})
    rows = pairing.everything()
    chained = chain_step(estimate(pairing, rows, [metric], cluster_by=by)[metric], pairing, rows, by)
    assert chained is not None
    return chained


def answers(seed: int, size: int = 60, first: int = 0) -> dict[str, bool]:
    rng = np.random.default_rng(seed)
    return {f"c{n:03}": bool(each) for n, each in enumerate(rng.random(size) < 0.7, first)}


@pytest.mark.parametrize("metric", ["accuracy", "f1_macro"])
@pytest.mark.parametrize("by", [None, "page"])
def test_steps_over_the_same_cases_add_up_to_the_direct_comparison(metric: str, by: str | None) -> None:
    first, second, third = (run(answers(seed)) for seed in range(3))
    total = step(second, first, metric, by).extended(step(third, second, metric, by))
    direct = step(third, first, metric, by)
    assert total.moved == pytest.approx(direct.moved, abs=1e-8)
    assert total.steps == 2
    # The run between counts in neither; what a case adds to a metric that is no mean depends on the other cases.
    assert total.variance == pytest.approx(direct.variance, rel=1e-6 if metric == "accuracy" else 0.2)


def test_cases_that_are_gone_leave_their_variance() -> None:
    first, second = run(answers(0)), run(answers(1))
    third = run({**answers(2, 40, first=20), **answers(3, 20, first=60)})
    chain, last = step(second, first), step(third, second)
    total = chain.extended(last)
    gone = [each for name, each in chain.errors.items() if name < "c020"]
    assert total.remainder == pytest.approx(sum(each**2 for each in gone), abs=1e-12)
    assert sorted(total.errors) == [f"c{n:03}" for n in range(20, 60)]
    assert total.units == 40


def test_an_edited_case_is_another_one() -> None:
    first, second = run(answers(0)), run(answers(1))
    third = run(answers(2), {"c007": "edited"})
    chain = step(second, first)
    total = chain.extended(step(third, second))
    assert "c007" not in total.errors
    assert total.remainder == pytest.approx(chain.errors["c007"] ** 2, abs=1e-12)


def test_cases_whose_ids_move_keep_what_they_have_added() -> None:
    first, second, third = (run({str(n): good for n, good in enumerate(answers(seed).values())}) for seed in range(3))
    there = step(second, first)
    plain = there.extended(step(third, second))
    inserted = {"0": True, **{str(n + 1): good for n, good in enumerate(answers(2).values())}}
    labels = {"0": "new", **{str(n + 1): str(n) for n in range(60)}}
    shifted = run(inserted, labels)
    moved = there.extended(step(shifted, second), match(shifted, second).by_content)
    assert len(moved.errors) == 60
    assert moved.remainder == 0
    assert set(plain.errors) == {labels[name] for name in moved.errors}


@pytest.mark.parametrize(("replaced", "fall"), [(0.0, 0.0), (0.2, 0.0), (0.3, 0.0), (0.2, 0.02)])
def test_the_variance_of_a_chain_is_that_of_its_sums(replaced: float, fall: float) -> None:
    rng = np.random.default_rng(5)
    sums, variances = [], []
    for _ in range(300):
        chance, names, last = rng.beta(4, 2, 60), np.arange(60), 60
        before, chain = rng.random(60) < chance, Chain(0.0, 0, 60, 0, {})
        for number in range(1, 7):
            new = rng.random(60) < replaced
            chance = np.where(new, rng.beta(4, 2, 60), chance)
            names, last = np.where(new, np.arange(last, last + 60), names), last + 60
            now = rng.random(60) < chance - number * fall
            moves = (now.astype(float) - before)[~new]
            errors = (moves - moves.mean()) / moves.size
            chain = chain.extended(
                Chain(moves.mean(), 1, moves.size, 0, dict(zip(map(str, names[~new]), errors.tolist(), strict=True)))
            )
            before = now
        sums.append(chain.moved)
        variances.append(chain.variance)
    assert np.mean(variances) == pytest.approx(np.var(sums), rel=0.25)


def test_a_sum_beyond_the_range_is_cut_to_it() -> None:
    now, before = run(answers(0)), run(answers(1))
    pairing = RunPairing(now, before, {"classification": EVALUATOR})
    pairing.chains = {"accuracy": Chain(-0.9, 3, 60, 40, {"c000": 0.1})}
    data = estimate(pairing, pairing.everything(), ["accuracy"])["accuracy"]
    assert (data.baseline, data.units) == (1.0, 60)
    assert data.value is not None
    assert data.difference == data.value - 1.0
    assert float(np.mean(data.resampled)) == pytest.approx(data.difference, abs=0.02)
    assert data.chain is not None
    assert float(np.var(data.resampled)) == pytest.approx(data.chain.variance, rel=0.1)
