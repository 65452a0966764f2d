"""Which answers are picked for people: with probabilities that are known, and each above 0."""

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.workbench.reviews.draws import BASE, inclusion_probabilities, picked

WORTHS = st.lists(st.floats(0, 5), min_size=1, max_size=60)


@given(WORTHS, st.integers(1, 80))
def test_probabilities_add_up_to_the_picks_and_none_is_below_the_base(worth: list[float], size: int) -> None:
    found = inclusion_probabilities(worth, size)
    assert math.isclose(sum(found), min(size, len(worth)), rel_tol=1e-9)
    assert all(min(1, BASE * size / len(worth)) - 1e-9 <= each <= 1 for each in found)


@given(WORTHS, st.integers(1, 80), st.integers(0, 5))
def test_as_many_are_picked_as_asked_whatever_the_order(worth: list[float], size: int, seed: int) -> None:
    names = [f"a{place}" for place in range(len(worth))]
    probabilities = inclusion_probabilities(worth, size)
    places = picked(probabilities, names, seed)
    assert len(places) == min(size, len(worth))
    backwards = picked(probabilities[::-1], names[::-1], seed)
    # Sums are rounded alike, since both add in the random order of the names.
    assert [names[place] for place in places] == [names[::-1][place] for place in backwards][::-1]


def test_answers_are_picked_as_often_as_their_probabilities_say() -> None:
    rng = random.Random(5)
    probabilities = inclusion_probabilities([rng.random() ** 3 for _ in range(40)], 10)
    names = [f"a{place}" for place in range(40)]
    counts = Counter(place for seed in range(1500) for place in picked(probabilities, names, seed))
    apart = [
        (counts[place] - 1500 * each) / math.sqrt(1500 * each * (1 - each)) for place, each in enumerate(probabilities)
    ]
    assert max(map(abs, apart)) < 4


def test_what_teaches_more_is_picked_more_often() -> None:
    assert inclusion_probabilities([0, 0, 0, 1], 1) == pytest.approx([0.125, 0.125, 0.125, 0.625])
    assert inclusion_probabilities([0, 0, 0, 0], 1) == [0.25] * 4
