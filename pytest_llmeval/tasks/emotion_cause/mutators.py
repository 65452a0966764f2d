"""Mutators of emotion-cause pairs: a right pair is left out, or has another emotion, cause or span."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pytest_llmeval.core.case import Case, own_or_answer
from pytest_llmeval.core.views import AnswerChange, Mutator, Neighbours
from pytest_llmeval.tasks.emotion_cause.conversation import read_gold, read_prediction, utterances_of
from pytest_llmeval.tasks.emotion_cause.evaluator import EmotionCause
from pytest_llmeval.tasks.emotion_cause.pairs import Pair, SpanPair, format_pair
from pytest_llmeval.tasks.emotion_cause.scores import EMOTIONS

_EMOTIONS: Final = EMOTIONS[1:]
"""The scored emotions: all but neutral."""


def _of_pairs(
    change: Callable[[list[Pair], list[Pair], Sequence[Pair], Neighbours], list[Pair] | None],
) -> AnswerChange:
    """Return a change of the pairs of a prediction, which is then a list of pairs in the official spelling."""

    def changed(case: Case, near: Neighbours) -> Any:
        evaluator = near.evaluator("emotion_cause")
        assert isinstance(evaluator, EmotionCause)
        answer = own_or_answer(case.prediction, evaluator.reads.own_keys)
        texts = utterances_of(case.expected, case.input) if evaluator.quoted_spans else None
        predicted = read_prediction(answer, evaluator.subtask, case.id, texts)
        gold = read_gold(case.expected, case.input, evaluator.subtask, case.id).pairs
        if gold is None or predicted.faults:
            return None
        pairs = list(dict.fromkeys(predicted.pairs()))
        right = [each for each in pairs if each.emotion in _EMOTIONS and any(_meet(each, other) for other in gold)]
        new = change(pairs, right, gold, near)
        return None if new is None else [format_pair(each) for each in new]

    return changed


def _meet(pair: Pair, other: Pair) -> bool:
    """Return whether two pairs are the same, but for a few words of their spans."""
    if isinstance(pair, SpanPair) and isinstance(other, SpanPair):
        overlap = min(pair.end, other.end) > max(pair.start, other.start)
        return overlap and pair._replace(start=0, end=0) == other._replace(start=0, end=0)
    return pair == other


def _exchanged(
    pairs: list[Pair], right: list[Pair], gold: Sequence[Pair], near: Neighbours, others: Callable[[Pair], list[Pair]]
) -> list[Pair] | None:
    """Put a wrong pair in the place of a right one."""
    known = {*gold, *pairs}
    choices = [(each, free) for each in right if (free := [other for other in others(each) if other not in known])]
    if not choices:
        return None
    chosen, free = near.rng.choice(choices)
    other = near.rng.choice(free)
    return [other if each == chosen else each for each in pairs]


def _dropped(pairs: list[Pair], right: list[Pair], _gold: Sequence[Pair], near: Neighbours) -> list[Pair] | None:
    if not right:
        return None
    chosen = near.rng.choice(right)
    return [each for each in pairs if each != chosen]


def _added(pairs: list[Pair], _right: list[Pair], gold: Sequence[Pair], near: Neighbours) -> list[Pair] | None:
    """Add a pair with an emotion that its utterance does not have."""
    known = [*gold, *pairs]
    template = near.rng.choice(known) if known else None
    if template is None:
        return None
    emotions = {each.emotion for each in known if each.emotion_utterance == template.emotion_utterance}
    free = [each for each in _EMOTIONS if each not in emotions]
    return [*pairs, template._replace(emotion=near.rng.choice(free))] if free else None


def _emotion(pairs: list[Pair], right: list[Pair], gold: Sequence[Pair], near: Neighbours) -> list[Pair] | None:
    return _exchanged(
        pairs,
        right,
        gold,
        near,
        lambda pair: [pair._replace(emotion=each) for each in _EMOTIONS if each != pair.emotion],
    )


def _cause(pairs: list[Pair], right: list[Pair], gold: Sequence[Pair], near: Neighbours) -> list[Pair] | None:
    """Move a cause to an utterance that causes nothing of this emotion."""

    def others(pair: Pair) -> list[Pair]:
        causes = {
            each.cause_utterance
            for each in (*gold, *pairs)
            if (each.emotion_utterance, each.emotion) == (pair.emotion_utterance, pair.emotion)
        }
        numbers = (pair.cause_utterance - 1, pair.cause_utterance + 1)
        return [pair._replace(cause_utterance=each) for each in numbers if each > 0 and each not in causes]

    return _exchanged(pairs, right, gold, near, others)


def _span(pairs: list[Pair], right: list[Pair], gold: Sequence[Pair], near: Neighbours) -> list[Pair] | None:
    """Move a span behind all that is right in its utterance, so that it shares no word with it."""
    ends: dict[int, int] = {}
    for each in gold:
        if isinstance(each, SpanPair):
            ends[each.cause_utterance] = max(each.end, ends.get(each.cause_utterance, 0))

    def others(pair: Pair) -> list[Pair]:
        if not isinstance(pair, SpanPair) or pair.start >= pair.end:
            return []
        start = ends[pair.cause_utterance]
        return [pair._replace(start=start, end=start + pair.end - pair.start)]

    return _exchanged(pairs, right, gold, near, others)


def _mutator(name: str, why: str, advice: str, change: Any) -> Mutator:
    return Mutator(name, why, _of_pairs(change), advice, ("emotion_cause",))


MUTATORS: Final = (
    _mutator("pair_dropped", "a right pair is missing", "a gate on recall or F1", _dropped),
    _mutator(
        "pair_added", "a pair names an emotion that the utterance does not have", "a gate on precision or F1", _added
    ),
    _mutator("emotion_changed", "a pair has another emotion", "a gate on F1, or on each emotion", _emotion),
    _mutator("cause_moved", "a pair names an utterance that is no cause", "a gate on F1", _cause),
    _mutator("span_moved", "a pair names words that are no cause", "a gate on strict or proportional F1", _span),
)
"""Mutators of emotion-cause pairs."""
