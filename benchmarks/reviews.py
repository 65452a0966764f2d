"""Reviews by people: do corrected scores of picked answers keep what they promise? Tables of ``tables.py``.

A panel of three jurors scores 200 answers, and two people label 40 of them, each with errors of their own. The truth is
what the two would say on average of all answers there could be.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from tables import SEED, Row, mean, rows, share, table

from pytest_llmeval import Observation
from pytest_llmeval.core import CaseRecord, MetricValue, ShownPrints
from pytest_llmeval.evaluators import Judge
from pytest_llmeval.evaluators.judge._human_labels import excess_counts, missing_counts, weight_counts
from pytest_llmeval.numbers import Table
from pytest_llmeval.workbench.reviews._items import ReviewItem
from pytest_llmeval.workbench.reviews.draws import drawn

ANSWERS, PICKED = 200, 40
LIMIT, NEAR, FAR = 0.7, 0.25, 0.25
NAME = "corrected(judge_score)"

Array = np.ndarray


@dataclass(frozen=True)
class History:
    """One run that people review.

    Attributes:
        jurors: Scores of shape ``(answers, jurors)``.
        people: What people say, from 0 to 1, of shape ``(answers, people)``.
    """

    jurors: Array
    people: Array


def continuous(rng: np.random.Generator, answers: int) -> History:
    """Jurors are too mild, and err more about answers that are neither good nor bad; people grade from 1 to 5."""
    quality = rng.beta(4, 2, answers)[:, np.newaxis]
    scatter = 0.05 + 0.3 * quality * (1 - quality)
    shared = scatter * rng.standard_normal((answers, 1))  # errors that all jurors make
    jurors = np.clip(quality + 0.1 + shared + scatter * rng.standard_normal((answers, 3)), 0, 1)
    grades = np.clip(np.rint(4 * quality + 0.5 * rng.standard_normal((answers, 2))), 0, 4)
    return History(jurors, grades / 4)


def yes_or_no(rng: np.random.Generator, answers: int) -> History:
    """Three of ten answers are hard: jurors take many of those that are wrong for right; people err there too."""
    right = (rng.random((answers, 1)) < 0.7).astype(float)
    hard = rng.random((answers, 1)) < 0.3
    mistaken = rng.random((answers, 3)) < np.where(hard, np.where(right > 0, 0.1, 0.6), 0.03)
    doubted = rng.random((answers, 2)) < np.where(hard, 0.1, 0.01)
    return History(np.where(mistaken, 1 - right, right), np.where(doubted, 1 - right, right))


KINDS = {"continuous": continuous, "yes or no": yes_or_no}


@cache
def truth(kind: str) -> float:
    """Return what people would say on average."""
    return float(KINDS[kind](np.random.default_rng(SEED), 2_000_000).people.mean())


def verdicts(kind: str, history: History) -> Array:
    """Return what the panel says: the mean, or the majority."""
    mean = history.jurors.mean(axis=1)
    return mean if kind == "continuous" else (mean > 0.5).astype(float)


def worth(kind: str, history: History) -> list[float]:
    """Return what labels would teach, as ``llmeval review`` has it."""
    near = 1 - np.abs(verdicts(kind, history) - LIMIT) / NEAR if kind == "continuous" else np.zeros(len(history.jurors))
    rows = zip(history.jurors, np.maximum(near, 0), strict=True)
    nothing = ShownPrints("", "", "")
    return [ReviewItem(nothing, (), "", "", scores=tuple(jurors), near=float(each)).worth for jurors, each in rows]


class Reviewed(NamedTuple):
    """Value and bounds of the corrected score of one history, and in how many labels the judge is far off."""

    value: float
    low: float
    high: float
    mistakes: int


def reviewed(
    kind: str, seed: tuple[int, int], *, even: bool = False, weighted: bool = True, labels: int = PICKED
) -> Reviewed:
    """Simulate a history, and return what comes of its review.

    Args:
        kind: Of the judges.
        seed: Of the history and the picks; several numbers are one seed.
        even: Whether all answers are picked with the same probability.
        weighted: Whether the labels have weights.
        labels: How many answers people label.
    """
    history = KINDS[kind](np.random.default_rng(seed), ANSWERS)
    said = verdicts(kind, history)
    names = [f"c{number}" for number in range(ANSWERS)]
    of = worth(kind, history)
    places, probabilities = drawn(
        "random" if even else "uncertain", labels, names, seed[1], failed=(), worth=of, texts=()
    )
    chosen = set(places)
    records, mistakes = [], 0
    for number, judge in enumerate(said):
        counts: Mapping[str, float] = {"score": float(judge), "n": 1.0}
        if number in chosen:
            weight = 1 / probabilities[number] if weighted else 1.0
            people = float(history.people[number].mean())
            mistakes += abs(people - judge) >= FAR
            labelled = {"labelled": 1.0, "bound": 1.0, **weight_counts(weight)}
            counts = {**counts, **labelled, **excess_counts("excess", float(judge), people, weight)}
        records.append(CaseRecord(f"c{number:03}", {}, "passed", {"judge": Observation(counts)}))
    table = Table({"judge": Judge(mode="continuous", corrected=True)}, records)
    found = table.metrics(range(ANSWERS), 0.95)[NAME]
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    return Reviewed(found.value, found.low, found.high, mistakes)


WAYS: Mapping[str, Mapping[str, bool]] = {
    "40 that teach most, with weights": {},
    "the same 40, without weights": {"weighted": False},
    "40 picked evenly": {"even": True},
}


@table(
    "review",
    "../benchmarks/calibration.md",
    ("judge", "labels", "coverage", "mean error", "width", "mistakes seen"),
    simulations=1_000,
)
def reviews(simulations: int, seed: int) -> Iterator[Row]:
    """Coverage, error and width of the intervals of corrected scores; 0.95 is promised."""
    for kind, (name, options) in rows(product(KINDS, WAYS.items())):
        done = [reviewed(kind, (seed, number), **options) for number in range(simulations)]
        covered = share(each.low <= truth(kind) <= each.high for each in done)
        width = mean(each.high - each.low for each in done)
        mistakes = mean((each.mistakes for each in done), 1)
        yield (kind, name, covered, mean(each.value - truth(kind) for each in done), width, mistakes)


@table(
    "few_labels",
    "../benchmarks/calibration.md",
    ("judge", "labels", "coverage", "mean error", "width"),
    simulations=500,
)
def few_labels(simulations: int, seed: int) -> Iterator[Row]:
    """Coverage, error and width of the intervals of corrected scores with other numbers of random labels."""
    for kind, labels in rows(product(KINDS, (20, 100))):
        done = [reviewed(kind, (seed, number), even=True, labels=labels) for number in range(simulations)]
        covered = share(each.low <= truth(kind) <= each.high for each in done)
        errors = mean(each.value - truth(kind) for each in done)
        yield (kind, labels, covered, errors, mean(each.high - each.low for each in done))


BETTER, WORSE = 0.8, 0.3
"""How many of the answers are right, and of those that have changed."""

MISTAKES = {"good": (0.03, 0.1), "bad": (0.5, 0.5), "likes changes": (0.03, 0.1), "none": (1.0, 0.0)}
"""How often judges take a right answer for wrong, and a wrong one for right; none says always the same."""


def changed(judge: str, parts: tuple[float, float], labels: int, rng: np.random.Generator) -> tuple[MetricValue, float]:
    """Simulate labels of which some are of answers that have changed; return the corrected score, and the truth.

    Args:
        judge: Of `MISTAKES`; one that likes changes takes each changed answer for right.
        parts: The share of the answers that change, and the share of these labels that people renew.
        labels: How many of the answers were labelled, before any changed.
        rng: Random numbers.
    """
    share_changed, renewed = parts
    moved = rng.random(ANSWERS) < share_changed
    right = rng.random(ANSWERS) < np.where(moved, WORSE, BETTER)
    missed, passed = MISTAKES[judge]
    said = np.where(right, rng.random(ANSWERS) >= missed, rng.random(ANSWERS) < passed)
    if judge == "likes changes":
        said |= moved
    again = rng.random(ANSWERS) < renewed
    records = []
    for number in range(ANSWERS):
        score = float(said[number])
        counts: Mapping[str, float] = {"score": score, "n": 1.0}
        if number < labels and (again[number] or not moved[number]):
            own = excess_counts("excess", score, float(right[number]))
            counts = {**counts, "labelled": 1.0, "bound": 1.0, **own}
        elif number < labels:
            counts = {**counts, **missing_counts({"excess": score}, 1.0)}
        records.append(CaseRecord(f"c{number:03}", {}, "passed", {"judge": Observation(counts)}))
    found = Table({"judge": Judge(mode="default_binary", corrected=True)}, records).metrics(range(ANSWERS), 0.95)[NAME]
    return found, BETTER + share_changed * (WORSE - BETTER)


def covers(found: MetricValue, true: float) -> bool:
    """Return whether an interval holds the truth; a metric without a value promises nothing."""
    return found.value is None or (found.low is not None and found.high is not None and found.low <= true <= found.high)


@table(
    "changed_answers",
    "../benchmarks/calibration.md",
    ("judge", "answers changed", "labels renewed", "coverage", "width", "width of labels alone"),
    simulations=1_000,
)
def changed_answers(simulations: int, seed: int) -> Iterator[Row]:
    """Coverage and width of the intervals of corrected scores when answers have changed since people labelled 40."""
    for judge, parts in rows(
        product(("good", "bad", "likes changes"), ((0.0, 0.0), (0.2, 0.0), (0.5, 0.0), (0.5, 1.0)))
    ):
        rng = np.random.default_rng([seed, len(judge), *(round(10 * part) for part in parts)])
        done, alone = ([changed(each, parts, PICKED, rng) for _ in range(simulations)] for each in (judge, "none"))
        covered = share(covers(*each) for each in done)
        renewed = "all" if parts[1] else "none"
        yield (judge, f"{parts[0]:.0%}", renewed, covered, mean(widths(done)), mean(widths(alone)))


def widths(done: Iterable[tuple[MetricValue, float]]) -> list[float]:
    """Return the widths of the intervals."""
    return [each.high - each.low for each, _ in done if each.low is not None and each.high is not None]
