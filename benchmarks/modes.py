"""Failure modes: do intervals of shares and the claim of saturation hold, for every draw? Tables of ``tables.py``.

Of 600 answers, each of three modes occurs with a probability of its own. Answers with a mode fail more often, are about
fewer things, and leave judges more uncertain. Two people note 100 answers that ``llmeval review`` draws; each overlooks
a mode now and then. The truth is what the two would note on average of all answers that there could be.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple, get_args

import numpy as np
from tables import Row, mean, rows, share, table

from pytest_llmeval.workbench.modes import mode_shares, saturation
from pytest_llmeval.workbench.reviews.draws import drawn, picked
from pytest_llmeval.workbench.reviews.modes import Draw, ModeNote

ANSWERS, NOTED = 600, 100
OVERLOOKED = (0.05, 0.15)
SHARES = (0.01, 0.03, 0.1, 0.3)
NAMES = [f"a{number}" for number in range(ANSWERS)]


class Answers(NamedTuple):
    """Answers of one history.

    Attributes:
        has: Whether each has the mode; shape ``(answers,)``.
        noted: Whether each person notes it; shape ``(answers, people)``.
        failed: Whether their cases fail.
        worth: How uncertain judges are.
        texts: What they say.
    """

    has: np.ndarray
    noted: np.ndarray
    failed: np.ndarray
    worth: np.ndarray
    texts: list[str]


def simulated(rng: np.random.Generator, true_share: float) -> Answers:
    """Return the answers of one history."""
    has = rng.random(ANSWERS) < true_share
    noted = has[:, np.newaxis] & (rng.random((ANSWERS, 2)) >= OVERLOOKED)
    failed = rng.random(ANSWERS) < np.where(has, 0.8, 0.15)
    worth = np.clip(rng.beta(1, 4, ANSWERS) + 0.3 * (has & (rng.random(ANSWERS) < 0.5)), 0, 1)
    topics = np.minimum(rng.geometric(0.15, ANSWERS), 30)
    strange = has & (rng.random(ANSWERS) < 0.5)
    words = rng.integers(0, 40, (ANSWERS, 3)).tolist()
    texts = [
        "apology " * bool(odd) + f"topic{topic} w{first} w{second} w{third}"
        for topic, odd, (first, second, third) in zip(topics, strange, words, strict=True)
    ]
    return Answers(has, noted, failed, worth, texts)


def picks(answers: Answers, draw: Draw, seed: int) -> tuple[list[int], list[float]]:
    """Return the places of the answers that are drawn, and the probabilities of all."""
    failed, worth = answers.failed.tolist(), answers.worth.tolist()
    return drawn(draw, NOTED, NAMES, seed, failed=failed, worth=worth, texts=answers.texts)


def notes_of(answers: Answers, places: list[int], probabilities: list[float]) -> list[ModeNote]:
    """Return what both people note of the answers."""
    return [
        ModeNote(
            f"person {person}",
            "2026-01-01T00:00:00.000Z",
            "q",
            NAMES[place],
            modes=("mode",) if answers.noted[place, person] else (),
            probability=probabilities[place],
        )
        for place in places
        for person in range(2)
    ]


@table(
    "mode_shares",
    "../benchmarks/calibration.md",
    ("draw", "true share", "coverage", "mean error"),
    simulations=500,
)
def mode_share_table(simulations: int, seed: int) -> Iterator[Row]:
    """Coverage and error of the intervals of shares; 0.95 is promised."""
    for draw, true_share in rows(product(get_args(Draw)[1:], SHARES)):
        truth = true_share * (1 - float(np.mean(OVERLOOKED)))
        found = []
        for number in range(simulations):
            answers = simulated(np.random.default_rng([seed, number]), true_share)
            places, probabilities = picks(answers, draw, number)
            found += mode_shares(notes_of(answers, places, probabilities), ["mode"])
        covered = share(each.low <= truth <= each.high for each in found)
        yield (draw, f"{true_share:.2f}", covered, mean(each.value - truth for each in found))


@table("mode_saturation", "../benchmarks/calibration.md", ("draw", "claimed", "seen"), simulations=500)
def mode_saturation_table(simulations: int, seed: int) -> Iterator[Row]:
    """How often a mode of 5 % of the answers, which occurs in answers that nothing prefers, is drawn, and the claim."""
    for draw in rows(get_args(Draw)[1:]):
        claims, seen = [], []
        for number in range(simulations):
            answers = simulated(np.random.default_rng([seed, number]), 0.3)
            plain = np.flatnonzero(~answers.has & ~answers.failed)
            hidden = {*np.random.default_rng([seed, number, 1]).choice(plain, ANSWERS // 20, replace=False).tolist()}
            places, probabilities = picks(answers, draw, number)
            part = picked([0.6] * len(places), [NAMES[place] for place in places], number)  # the review is not over
            noted = [places[each] for each in part]
            claims.append(saturation(notes_of(answers, noted, probabilities)).seen(0.05))
            seen.append(not hidden.isdisjoint(noted))
        yield (draw, mean(claims), share(seen))
