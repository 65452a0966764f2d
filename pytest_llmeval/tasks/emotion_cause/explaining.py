"""What is wrong with predicted pairs: not found, or wrong in emotion, span or utterance."""

__all__ = ("PAIR_BUCKETS", "PairErrors", "pair_errors")

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_llmeval.tasks.emotion_cause.pairs import Pair, SpanPair, format_pair
from pytest_llmeval.tasks.emotion_cause.spans import joined_tokens

_WRONG = ("wrong_span", "wrong_emotion", "wrong_utterance")
"""The nearest first."""

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


def _what_differs(found: Pair, right: Pair) -> str | None:
    """Return what is wrong with a predicted pair if it is meant to be a gold one; ``None`` where it cannot be."""
    same_emotion = found.emotion == right.emotion
    same_cause = found.cause_utterance == right.cause_utterance
    same_utterance = found.emotion_utterance == right.emotion_utterance
    if same_cause and same_utterance:
        return "wrong_span" if same_emotion else "wrong_emotion"
    return "wrong_utterance" if same_emotion and (same_cause or same_utterance) else None


def pair_errors(missing: Sequence[Pair], extra: Sequence[Pair]) -> PairErrors:
    """Sort wrong pairs by what is wrong with them; each gold pair excuses one predicted pair.

    Args:
        missing: Gold pairs that are not predicted.
        extra: Predicted pairs that are not in gold.
    """
    near: dict[str, list[tuple[Pair, Pair]]] = {kind: [] for kind in _WRONG}
    for found in extra:
        for right in missing:
            kind = _what_differs(found, right)
            if kind is not None:
                near[kind].append((found, right))
    not_found, not_expected = dict.fromkeys(missing), dict.fromkeys(extra)
    wrong: dict[str, list[tuple[Pair, Pair]]] = {kind: [] for kind in _WRONG}
    for kind, pairs in near.items():
        for found, right in pairs:
            if found in not_expected and right in not_found:
                wrong[kind].append((found, right))
                del not_expected[found], not_found[right]
    return PairErrors(list(not_found), list(not_expected), wrong)


def _shown(pair: Pair, utterances: Sequence[str]) -> str:
    """Return a pair in the official spelling, such as ``3_joy/2`` or ``3_joy/2_0_4``, with the words of its span."""
    text = "/".join(map(str, format_pair(pair)))
    if not isinstance(pair, SpanPair) or not 1 <= pair.cause_utterance <= len(utterances):
        return text
    words = joined_tokens(utterances[pair.cause_utterance - 1], max(pair.start, 0), max(pair.end, 0))
    return f"{text} {json.dumps(words, ensure_ascii=False)}"
