"""Speed of `emotion_cause` in Subtask 2 against matching by membership in lists, and its growth with the data.

Run as ``python benchmarks/emotion_cause.py``. Processor time of one core; caches start empty in each round. Both read
the same raw pairs, and their scores are the same to 1e-9. The lists are of all conversations together, as an evaluation
script keeps them that has no cases.
"""

__all__ = ("main",)

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pytest_llmeval.core import Case, Totals
from pytest_llmeval.tasks.emotion_cause._evaluator import EmotionCause
from pytest_llmeval.tasks.emotion_cause._pairs import _parse_texts
from pytest_llmeval.tasks.emotion_cause._scores import EMOTIONS, SCORED

CONVERSATIONS = 1_374
ROUNDS = 5
EPSILON = 1e-8

T = TypeVar("T")
Scores = dict[str, float]


def conversations(count: int) -> list[Case]:
    """Return conversations of about ten utterances and seven gold pairs; of the predicted pairs half are right."""
    rng = random.Random(20240611)
    return [conversation(rng, number) for number in range(count)]


def conversation(rng: random.Random, number: int) -> Case:
    length = rng.randint(4, 16)

    def pair() -> list[str]:
        utterance = rng.randint(1, length)
        return [f"{utterance}_{rng.choice(SCORED)}", str(rng.randint(max(1, utterance - 3), utterance))]

    gold = [pair() for _ in range(rng.randint(2, 12))]
    predicted = [rng.choice(gold) if rng.random() < 0.6 else pair() for _ in gold]
    return Case(id=str(number), expected=gold, prediction=predicted)


def here(cases: Sequence[Case]) -> Scores:
    evaluator = EmotionCause(subtask=2)
    columns = evaluator.summarize(Totals.add_up(map(evaluator.measure, cases)).sums())
    return {name: float(column[0]) for name, column in columns.items()}


def by_membership_in_lists(cases: Sequence[Case]) -> Scores:
    """Score with lists of lists: what is in a list is found by looking at one item after the other."""
    gold: list[list[Any]] = []
    predicted: list[list[Any]] = []
    for case in cases:
        for target, pairs in ((gold, case.expected), (predicted, case.prediction)):
            for left, cause in pairs:
                utterance, emotion = left.split("_")
                pair = [case.id, int(utterance), int(cause), EMOTIONS.index(emotion)]
                if pair not in target:
                    target.append(pair)
    hits = [pair for pair in predicted if pair in gold]
    missed = [pair for pair in gold if pair not in predicted]
    weighted = 0.0
    for number in range(1, len(EMOTIONS)):
        right, proposed, there = (sum(pair[3] == number for pair in each) for each in (hits, predicted, gold))
        weighted += there / len(gold) * f1(right, proposed, there)
    return {"weighted_f1": weighted, "pair_f1": f1(len(hits), len(predicted), len(hits) + len(missed))}


def f1(hits: int, predicted: int, gold: int) -> float:
    precision, recall = hits / (predicted + EPSILON), hits / (gold + EPSILON)
    return 2 * precision * recall / (precision + recall + EPSILON)


def timed(function: Callable[[Sequence[Case]], T], cases: Sequence[Case], rounds: int) -> tuple[float, T]:
    """Return the fastest of some rounds, and the result."""
    seconds = []
    for _ in range(rounds):
        _parse_texts.cache_clear()
        started = time.process_time()
        result = function(cases)
        seconds.append(time.process_time() - started)
    return min(seconds), result


def main() -> None:
    """Print the times, and what they are to one another."""
    once, four_times = conversations(CONVERSATIONS), conversations(4 * CONVERSATIONS)
    here(once[:10])
    fast, found = timed(here, once, ROUNDS)
    slow, expected = timed(by_membership_in_lists, once, 1)
    longer, _ = timed(here, four_times, ROUNDS)
    for name, value in expected.items():
        assert abs(found[name] - value) < 1e-9, name
    print(f"{'scenario':<44}{'seconds':>10}{'ratio':>8}")
    print(f"{f'here, {len(once)} conversations':<44}{fast:>10.3f}{1:>8}")
    print(f"{f'lists, {len(once)} conversations':<44}{slow:>10.3f}{slow / fast:>8.0f}")
    print(f"{f'here, {len(four_times)} conversations':<44}{longer:>10.3f}{longer / fast:>8.2f}")


if __name__ == "__main__":
    main()
