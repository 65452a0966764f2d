"""What is wrong with predicted pairs: not found, or wrong in emotion, span or utterance."""

__all__ = ("PAIR_BUCKETS", "PairErrors", "pair_errors")

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from pytest_llmeval.tasks.emotion_cause.pairs import Pair, SpanPair, format_pair

PAIR_BUCKETS = ("not_found", "wrong_emotion", "wrong_span", "wrong_utterance", "not_expected")
"""Kinds of wrong pairs, as details name them."""


class PairErrors(NamedTuple):
    """Pairs by what is wrong with them.

    Attributes:
        not_found: Gold pairs to which no predicted pair comes near.
        not_expected: Predicted pairs that come near no gold pair.
        wrong: Kind to the predicted pairs, each with the gold pair that it comes near.
    """

    not_found: Sequence[Pair]
    not_expected: Sequence[Pair]
    wrong: Mapping[str, Sequence[tuple[Pair, Pair]]]

    def details(self) -> dict[str, Any]:
        """Return the pairs by kind, without empty kinds."""
        kinds: dict[str, list[Any]] = {
            "not_found": list(map(format_pair, self.not_found)),
            **{
                kind: [{"predicted": format_pair(found), "expected": format_pair(right)} for found, right in pairs]
                for kind, pairs in self.wrong.items()
            },
            "not_expected": list(map(format_pair, self.not_expected)),
        }
        return {kind: pairs for kind, pairs in kinds.items() if pairs}

    def lines(self, utterances: Sequence[str] = ()) -> list[str]:
        """Say what is wrong, a line for each pair.

        Args:
            utterances: The texts of the conversation, for the words of spans.
        """

        def shown(pair: Pair) -> str:
            return _shown(pair, utterances)

        lines = [f"[{pair.emotion}] pair not found: {shown(pair)}" for pair in self.not_found]
        for kind, pairs in self.wrong.items():
            words = kind.replace("_", " ")
            lines += [f"[{right.emotion}] {words}: {shown(found)}, expected {shown(right)}" for found, right in pairs]
        return lines + [f"[{pair.emotion}] pair not expected: {shown(pair)}" for pair in self.not_expected]


_Alike: TypeAlias = Callable[[Pair, Pair], bool]


def _utterances(pair: Pair) -> tuple[int, int]:
    return pair.emotion_utterance, pair.cause_utterance


_NEAR: Mapping[str, _Alike] = {
    "wrong_span": lambda left, right: (_utterances(left), left.emotion) == (_utterances(right), right.emotion),
    "wrong_emotion": lambda left, right: _utterances(left) == _utterances(right),
    "wrong_utterance": lambda left, right: (
        left.emotion == right.emotion
        and (left.emotion_utterance == right.emotion_utterance or left.cause_utterance == right.cause_utterance)
    ),
}
"""Kind to whether a predicted pair is a gold one but for that; the nearest first."""


def pair_errors(missing: Sequence[Pair], extra: Sequence[Pair]) -> PairErrors:
    """Sort wrong pairs by what is wrong with them; each gold pair excuses one predicted pair.

    Args:
        missing: Gold pairs that are not predicted.
        extra: Predicted pairs that are not in gold.
    """
    left, right = list(extra), list(missing)
    wrong: dict[str, list[tuple[Pair, Pair]]] = {kind: [] for kind in _NEAR}
    for kind, alike in _NEAR.items():
        for found in list(left):
            near = next((each for each in right if alike(found, each)), None)
            if near is not None:
                wrong[kind].append((found, near))
                left.remove(found)
                right.remove(near)
    return PairErrors(right, left, wrong)


def _shown(pair: Pair, utterances: Sequence[str]) -> str:
    """Return a pair in the official spelling, such as ``3_joy/2`` or ``3_joy/2_0_4``, with the words of its span."""
    text = "/".join(map(str, format_pair(pair)))
    if not isinstance(pair, SpanPair) or not 1 <= pair.cause_utterance <= len(utterances):
        return text
    words = utterances[pair.cause_utterance - 1].split()[pair.start : pair.end]
    return f"{text} {json.dumps(' '.join(words), ensure_ascii=False)}"
