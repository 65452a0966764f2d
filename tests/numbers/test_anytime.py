"""Watching runs against one baseline: when evidence of a drop grows, and how seldom equal runs alarm."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

from pytest_llmeval.numbers import WatchedRun

NEEDED = 20.0
SIZE = 200


def histories(count: int, runs: int, drop: float = 0.0, begins: int = 1, seed: int = 1) -> list[list[WatchedRun]]:
    """Runs of 200 cases that are right or wrong by chance, worse from one run on, against one baseline."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        chance = 0.2 + 0.7 * rng.beta(4, 2, SIZE)
        baseline = rng.random(SIZE) < chance
        looks = []
        for number in range(1, runs + 1):
            lost = baseline - 1.0 * (rng.random(SIZE) < chance - (drop if number >= begins else 0.0))
            looks.append(WatchedRun(lost.mean(), lost.std() / math.sqrt(SIZE), SIZE))
        out.append(looks)
    return out


def alarms(looks: list[WatchedRun], max_drop: float = 0.0) -> bool:
    found = (WatchedRun.weigh(looks[:seen], max_drop) for seen in range(1, len(looks) + 1))
    return any(each.evidence >= NEEDED for each in found)


@pytest.mark.release
def test_fifty_equal_runs_alarm_in_less_than_one_of_twenty_histories_where_single_tests_alarm_in_a_third() -> None:
    equal = histories(120, 50)
    single = [any(look.drop > 1.96 * look.deviation for look in looks) for looks in equal]
    assert np.mean(single) > 0.2
    assert np.mean([alarms(looks) for looks in equal]) <= 0.05


def test_a_drop_is_found_and_the_sooner_the_more_runs_show_it() -> None:
    looks = histories(1, 12, drop=0.2)[0]
    evidence = [WatchedRun.weigh(looks[:seen], 0.0).evidence for seen in (1, 3, 6)]
    assert all(before < after for before, after in pairwise(evidence))
    assert evidence[-1] > NEEDED
    found = WatchedRun.weigh(looks, 0.0)
    assert (found.looks, found.drop) == (12, pytest.approx(np.mean([look.drop for look in looks])))


def test_a_drop_that_begins_late_is_found_in_the_runs_that_have_it() -> None:
    looks = histories(1, 24, drop=0.25, begins=20)[0]
    assert not alarms(looks[:19])
    found = WatchedRun.weigh(looks, 0.0)
    assert found.evidence > NEEDED
    assert 3 <= found.looks <= 6


def test_only_what_goes_beyond_the_allowance_counts() -> None:
    looks = histories(1, 20, drop=0.15)[0]
    assert WatchedRun.weigh(looks, 0.0).evidence > NEEDED
    assert WatchedRun.weigh(looks, 0.15).evidence < 2


def test_a_drop_that_was_mended_is_none_of_the_last_run() -> None:
    dropped, mended = histories(1, 6, drop=0.3)[0], histories(1, 1)[0]
    assert WatchedRun.weigh(dropped, 0.0).alone > 1.96
    assert WatchedRun.weigh([*dropped, *mended], 0.0).alone < 1.96


def test_earlier_runs_tell_how_lucky_the_baseline_was() -> None:
    dropped = WatchedRun(0.1, 0.03, 400)
    equal = [WatchedRun(drop, 0.03, 400) for drop in (0.01, -0.02, 0.0, 0.02, -0.01)]
    lucky = [look._replace(drop=look.drop + 0.08) for look in equal]
    assert WatchedRun.weigh([*equal, dropped], 0.0).evidence > 3 * WatchedRun.weigh([dropped], 0.0).evidence
    assert WatchedRun.weigh([*lucky, dropped], 0.09).evidence < 2


def test_the_evidence_of_one_run_is_the_mixed_likelihood_ratio() -> None:
    look = WatchedRun(0.12, 0.03, 400)
    square = 0.03**2 + 0.12**2 / 400
    drops = np.linspace(0, 30 * 0.03, 200_001)
    prior = 2 * np.exp(-(drops**2) / (2 * 9 * square)) / math.sqrt(2 * math.pi * 9 * square)
    ratio = np.exp((look.drop * drops - drops**2 / 2) / square)
    expected = (integrate.trapezoid(prior * ratio, drops) + 5) / 6
    assert WatchedRun.weigh([look], 0.0).evidence == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("changed", [1, 3, 5])
def test_few_changed_cases_prove_nothing_even_if_all_are_worse(changed: int) -> None:
    drop = changed / SIZE
    look = WatchedRun(drop, math.sqrt(drop * (1 - drop) / SIZE), SIZE)
    assert WatchedRun.weigh([look], 0.0).evidence < 1 + 2**changed / 6


def test_runs_without_any_change_are_no_evidence() -> None:
    assert WatchedRun.weigh([WatchedRun(0.0, 0.0, 10)] * 4, 0.0).evidence == 0.0


def wandering(changed: float, runs: int = 40, count: int = 60, seed: int = 3) -> list[list[WatchedRun]]:
    """Return histories of equally good runs that each keep most answers of the run before."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        first = right = rng.random(SIZE) < 0.7
        looks: list[WatchedRun] = []
        for _ in range(runs):
            right = np.where(rng.random(SIZE) < changed, rng.random(SIZE) < 0.7, right)
            lost = first.astype(float) - right
            run = WatchedRun(lost.mean(), lost.std() / math.sqrt(SIZE), SIZE, shares=tuple(lost))
            looks.append(run.after(looks))
        out.append(looks)
    return out


@pytest.mark.release
@pytest.mark.parametrize("changed", [0.3, 0.1, 0.05])
def test_runs_that_share_most_answers_alarm_no_more_than_independent_ones(changed: float) -> None:
    every = wandering(changed)
    ignored = [[run._replace(step=None, two_steps=None) for run in looks] for looks in every]
    assert sum(map(alarms, every)) <= 3
    assert sum(map(alarms, ignored)) > 3


def test_a_drop_among_runs_that_share_answers_is_found() -> None:
    first = np.arange(SIZE) % 10 < 7
    looks: list[WatchedRun] = []
    for number in range(16):
        right = (
            first & ~(np.arange(SIZE) % 20 == 10 - number // 4) & (np.arange(SIZE) > (0 if number < 8 else SIZE / 5))
        )
        lost = first.astype(float) - right
        looks.append(WatchedRun(lost.mean(), lost.std() / math.sqrt(SIZE), SIZE, shares=tuple(lost)).after(looks))
    assert not alarms(looks[:8])
    assert alarms(looks)


def test_a_run_knows_its_differences_from_the_two_before_it() -> None:
    runs = [WatchedRun(0.0, 0.0, 4, shares=shares) for shares in ((1.0, 0, 0, 0), (1.0, 1, 0, 0), (1.0, 1, 1, 1))]
    known = [run.after(runs[:place]) for place, run in enumerate(runs)]
    assert [run.step for run in known] == pytest.approx([0.25, 0.25, math.sqrt(2) / 4])
    assert known[0].two_steps is None
    assert [run.two_steps for run in known[1:]] == pytest.approx([math.sqrt(2) / 4, math.sqrt(3) / 4])
    assert WatchedRun(0.0, 0.0, 4).after(runs).step is None


@pytest.mark.parametrize(("size", "drop"), [(50, 0.2), (100, 0.15)])
def test_runs_without_common_answers_find_as_many_drops_as_runs_of_which_no_answers_are_known(
    size: int, drop: float
) -> None:
    rng = np.random.default_rng(5)
    found = np.zeros((2, 300))
    for history in range(300):
        chance = 0.2 + 0.7 * rng.beta(4, 2, size)
        first = (rng.random(size) < chance).astype(float)
        looks: list[WatchedRun] = []
        for number in range(12):
            lost = first - (rng.random(size) < chance - drop * (number >= 9))
            run = WatchedRun(float(lost.mean()), float(lost.std() / np.sqrt(size)), size, shares=tuple(lost))
            looks.append(run.after(looks))
        unknown = [each._replace(step=None, two_steps=None) for each in looks]
        for row, runs in enumerate((looks, unknown)):
            seen = [WatchedRun.weigh(runs[:end], 0.0) for end in (10, 11, 12)]
            found[row, history] = any(each.evidence >= NEEDED and each.alone >= 1.96 for each in seen)
    known, without = found.mean(axis=1)
    assert known >= without - 0.03
