"""Emotion-cause pairs."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from string import punctuation
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pytest_llmeval.core import excerpt, suggest
from pytest_llmeval.tasks.emotion_cause._scores import EMOTIONS

Subtask: TypeAlias = Literal[1, 2]
"""1: the cause is a span of tokens of an utterance. 2: the cause is an utterance."""

Rule: TypeAlias = Literal[
    "submission form",
    "conversation form",
    "conversation id",
    "conversation repeated",
    "conversation missing",
    "pair list",
    "pair form",
    "emotion",
    "emotion utterance",
    "cause",
    "cause utterance",
    "cause span",
    "span order",
]
"""Rules that pairs and submissions can break."""

_SPELLED = {spelling: emotion for emotion in EMOTIONS for spelling in (emotion, emotion.capitalize())}
_UTTERANCE = 'expected the number of an utterance, such as "1"'
INTERNAL = 4
WITH_SPAN = 6
_LONGEST = 60

ID: Final = "conversation_ID"
PAIRS: Final = "emotion-cause_pairs"
KEEP: Final = "keep"

CANDIDATES: Final = ("candidates", "candidate_pairs")
"""Keys of the pairs of a second step, which also lists which of them it keeps."""

_LAST_TOKEN = 10**12
"""Larger numbers of tokens could not be added up exactly, and no utterance has so many."""


class SpanPair(NamedTuple):
    """An emotion-cause pair of Subtask 1; its cause is the tokens [start, end) of an utterance, counted from 0."""

    emotion_utterance: int
    cause_utterance: int
    start: int
    end: int
    emotion: str


class UtterancePair(NamedTuple):
    """An emotion-cause pair of Subtask 2; its cause is an utterance."""

    emotion_utterance: int
    cause_utterance: int
    emotion: str


Pair: TypeAlias = SpanPair | UtterancePair


class PairFault(ValueError):  # noqa: N818 (a fault of data, as elsewhere in this package)
    """An emotion-cause pair breaks a rule; the message says what was found and what is expected.

    Attributes:
        rule: The broken rule.
    """

    def __init__(self, rule: Rule, message: str) -> None:
        super().__init__(message)
        self.rule = rule


def parse_pair(raw: Any, subtask: Subtask) -> Pair:
    """Read a predicted pair: ``["3_surprise", "1_21_27"]`` in Subtask 1, ``["3_surprise", "1"]`` in Subtask 2.

    Besides the official spelling, numbers of utterances may have a ``U`` before them and emotions may be capitalised:
    ``["U3_Surprise", "U1_21_27"]``. Anything else that stops the official script is a fault. So are two things that it
    misreads: a third item in Subtask 2, which it ignores, and a span in Subtask 2, where
    ``"1_0_4"`` is utterance 104.

    Raises:
        PairFault: The pair breaks a rule; the first one.

    Example:
        >>> parse_pair(["U5_Disgust", "U5_2_8"], 1)
        SpanPair(emotion_utterance=5, cause_utterance=5, start=2, end=8, emotion='disgust')
        >>> parse_pair(["3_surprise", "1"], 2)
        UtterancePair(emotion_utterance=3, cause_utterance=1, emotion='surprise')
    """
    left, right = two_items(raw)
    # 1, 1.0 and true are equal, so only texts can be looked up.
    parse = _parse_texts if isinstance(left, str) and isinstance(right, str) else _parse
    return parse(left, right, subtask)


def _parse(left: Any, right: Any, subtask: Subtask) -> Pair:
    """Parse both halves of an emotion-cause pair in the official spelling: utterance with emotion, and cause."""
    utterance, emotion = parse_emotion(left)
    if subtask == 1:
        return SpanPair(utterance, *_parse_span(right), emotion)
    return UtterancePair(utterance, parse_cause_utterance(right), emotion)


_parse_texts = lru_cache(maxsize=8192)(_parse)
"""Conversations have few utterances, so the same pairs come again and again."""


def parse_internal(raw: Any, subtask: Subtask = 2) -> tuple[int, Pair]:
    """Read an emotion-cause pair of an internal (numeric) list.

    It is ``[conversation, emotion utterance, cause utterance, emotion]``, with first token and the token after the last
    before the emotion in Subtask 1. Subtask 2 ignores a span. The emotion is a number, or a name; numbers may be
    written ``2``, ``2.0`` or ``"2"``.

    Returns:
        The conversation, and the pair.

    Raises:
        PairFault: It is not a list of so many whole numbers, or there is no emotion of that number.
    """
    sizes = (WITH_SPAN,) if subtask == 1 else (INTERNAL, WITH_SPAN)
    numbers = _internal_numbers(raw)
    if numbers is None or len(numbers) not in sizes:
        count, span = ("six", "first token, the token after the last, ") if subtask == 1 else ("four", "")
        raise PairFault(
            "pair form",
            f"found {quoted(raw)}, expected a list of {count} whole numbers: conversation, emotion utterance, "
            f"cause utterance, {span}number of the emotion",
        )
    conversation, utterance, cause, *_, number = numbers
    if not 0 <= number < len(EMOTIONS):
        raise PairFault("emotion", f"found emotion number {number}, expected 0 to {len(EMOTIONS) - 1}")
    if subtask == 1:
        return conversation, SpanPair(utterance, cause, numbers[3], numbers[4], EMOTIONS[number])
    return conversation, UtterancePair(utterance, cause, EMOTIONS[number])


def internal_number(raw: Any) -> int | None:
    """The conversation of an internal emotion-cause pair of four or six numbers; ``None`` for anything else."""
    numbers = _internal_numbers(raw)
    return None if numbers is None else numbers[0]


def _internal_numbers(raw: Any) -> list[int] | None:
    """The numbers of an internal emotion-cause pair, the last of which may be the name of an emotion."""
    if not isinstance(raw, (list, tuple)) or len(raw) not in (INTERNAL, WITH_SPAN):
        return None
    named = _SPELLED.get(raw[-1]) if isinstance(raw[-1], str) else None
    last = raw[-1] if named is None else EMOTIONS.index(named)
    numbers = [number for value in (*raw[:-1], last) if (number := whole_number(value)) is not None]
    return numbers if len(numbers) == len(raw) else None


def format_pair(pair: Pair) -> list[str]:
    """Write an emotion-cause pair as official files do; `parse_pair` reads it back.

    Example:
        >>> format_pair(SpanPair(3, 1, 21, 27, "surprise"))
        ['3_surprise', '1_21_27']
    """
    cause = f"{pair.cause_utterance}"
    if isinstance(pair, SpanPair):
        cause += f"_{pair.start}_{pair.end}"
    return [f"{pair.emotion_utterance}_{pair.emotion}", cause]


def two_items(raw: Any) -> tuple[Any, Any]:
    """The emotion and the cause of an emotion-cause pair, unparsed.

    Raises:
        PairFault: It is not a list of two items.
    """
    if isinstance(raw, (list, tuple)) and len(raw) == 2:  # noqa: PLR2004 (a pair is two)
        left, right = raw
        return left, right
    excerpt = f"{len(raw)} item{'' if len(raw) == 1 else 's'}" if isinstance(raw, (list, tuple)) else quoted(raw)
    raise PairFault("pair form", f"found {excerpt}, expected a list of two items: emotion and cause")


def parse_emotion(text: Any) -> tuple[int, str]:
    """Read ``"3_surprise"`` or ``"U3_Surprise"``: the number of an utterance, and an emotion.

    Raises:
        PairFault: It is neither.
    """
    parts = text.split("_") if isinstance(text, str) else ()
    if len(parts) != 2:  # noqa: PLR2004 (a number and an emotion)
        raise PairFault("emotion", f'found {quoted(text)}, expected utterance and emotion, such as "3_joy"')
    emotion = _SPELLED.get(parts[1])
    if emotion is None:
        hint = suggest(parts[1], EMOTIONS)
        raise PairFault("emotion", f"found emotion {quoted(parts[1])}, expected one of {', '.join(EMOTIONS)}{hint}")
    return _utterance(parts[0], "emotion utterance", "expected the number of an utterance before the emotion"), emotion


def parse_cause_utterance(value: Any) -> int:
    """Read the cause of Subtask 2: ``"1"``, ``"U1"`` or ``1``.

    Raises:
        PairFault: It is anything else, a span among them.
    """
    if isinstance(value, str):
        if "_" in value:
            message = f"found {quoted(value)}, {_UTTERANCE}: in Subtask 2 the cause has neither span nor text"
            raise PairFault("cause", message)
        return _utterance(value, "cause utterance", _UTTERANCE)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        raise PairFault("cause", f"found {quoted(value)}, {_UTTERANCE}")
    return int(value)


def _parse_span(text: Any) -> tuple[int, int, int]:
    """Read the cause of Subtask 1, ``"1_21_27"``: utterance, first token, and the token after the last."""
    parts = text.split("_") if isinstance(text, str) else ()
    if len(parts) != 3:  # noqa: PLR2004 (utterance, start, end)
        expected = 'utterance, first token and the token after the last, such as "1_21_27"'
        worded = isinstance(text, str) and any(map(str.isalpha, text.removeprefix("U")))
        also = ": positions of the span, not its text" if worded else ""
        raise PairFault("cause", f"found {quoted(text)}, expected {expected}{also}")
    utterance = _utterance(parts[0], "cause utterance", "expected the number of an utterance before the span")
    start = _token(parts[1], "expected a whole number as first token")
    end = _token(parts[2], "expected a whole number as the token after the last")
    return utterance, start, end


def order_fault(pair: Pair) -> str:
    """The fault of an emotion-cause pair whose span ends before it starts; empty for other pairs.

    The official script subtracts the length of such a span, so that its scores exceed 1.
    """
    if not isinstance(pair, SpanPair) or pair.start <= pair.end:
        return ""
    return f"found end {pair.end} before start {pair.start}, expected the token after the last"


def _token(text: str, expected: str) -> int:
    """The token index of a cause span; an index beyond the allowed range is a fault of the pair."""
    number = _number(text, "cause span", expected)
    if abs(number) > _LAST_TOKEN:
        raise PairFault("cause span", f"found {quoted(text)}, {expected}, no larger than {_LAST_TOKEN}")
    return number


def _utterance(text: str, rule: Rule, expected: str) -> int:
    """The utterance number in an emotion-cause pair, with or without ``U`` in front."""
    return _number(text.removeprefix("U"), rule, expected)


def _number(text: str, rule: Rule, expected: str) -> int:
    """The whole number of an emotion-cause pair's text; any other text breaks a rule of the submission."""
    try:
        return int(text)
    except ValueError:
        raise PairFault(rule, f"found {quoted(text)}, {expected}") from None


def quoted(value: Any) -> str:
    """A value of a submission as JSON for a fault message, shortened to 60 characters."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a value of type {type(value).__name__}"
    return excerpt(text, _LONGEST)


_AROUND: Final = punctuation + "".join(filter(str.isspace, map(chr, range(0x3001))))
"""ASCII punctuation and all white space, whose last character is U+3000."""

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Thai, Lao, Burmese, Khmer, Kana and Han: their words have no spaces between them."""

_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")


def tokens(text: str) -> list[str]:
    """The tokens of an utterance between white space, as in the official emotion-cause script.

    Only in a text without white space, of a script without spaces, each of its characters is a token, and each mark.

    >>> tokens("Hi , tushy !"), tokens("我 难过 ， OK ？"), tokens("我难过，OK？")
    (['Hi', ',', 'tushy', '!'], ['我', '难过', '，', 'OK', '？'], ['我', '难', '过', '，', 'OK', '？'])
    """
    return _TOKEN.findall(text) if _is_unspaced(text) else text.split()


def _is_unspaced(text: str) -> bool:
    """Whether a cause text is in a script without spaces, so that spans count characters instead of words."""
    return _HAS_UNSPACED.search(text) is not None and len(text.split()) == 1


def joined_tokens(utterance: str, start: int, end: int) -> str:
    """The words of a cause span in its utterance."""
    return ("" if _is_unspaced(utterance) else " ").join(tokens(utterance)[start:end])


def clean_span(text: str) -> str:
    """A quoted cause without ASCII punctuation and white space around it; empty if it is nothing else.

    Example:
        >>> clean_span("What ? !")
        'What'
    """
    return text.strip(_AROUND)


def locate_span(span_text: str, utterance_text: str) -> tuple[int, int]:
    """The position of a quoted cause in its utterance, by the rule of the official script.

    The span is cleaned as by `clean_span`; both are split into `tokens`, at white space unless the utterance has none
    and is in a script without spaces. The span is where its tokens first follow one another in the utterance.

    Returns:
        The first token, counted from 0, and the token after the last; ``(0, 0)``, a span without token, if the span
        does not occur.

    Example:
        >>> locate_span("tushy !", "Hi , tushy !")
        (2, 3)
    """
    utterance = tokens(utterance_text)
    if _is_unspaced(utterance_text):
        parts = _TOKEN.findall(span_text)
        inner = [place for place, token in enumerate(parts) if token.isalnum()]
        span = parts[inner[0] : inner[-1] + 1] if inner else []
    else:
        span = clean_span(span_text).split()
    size = len(span)
    for start in range(len(utterance) - size + 1 if size else 0):
        if utterance[start : start + size] == span:
            return start, start + size
    return 0, 0


class SubmissionFault(NamedTuple):
    """One fault of a submission of emotion-cause pairs.

    Attributes:
        conversation: Its number, or the value in its place; ``None`` if the fault is not in one conversation.
        position: Of the pair in its conversation, counted from 1; 0 where the fault is of no one pair.
        pair: The unchanged pair; ``None`` if the fault is not in one pair.
        rule: The broken rule.
        message: ``found ..., expected ...``.
    """

    conversation: Any
    position: int
    pair: Any
    rule: Rule
    message: str

    def __str__(self) -> str:
        place = [] if self.conversation is None else [f"conversation {_conversation_text(self.conversation)}"]
        if self.position:
            place.append(f"pair {self.position} {quoted(self.pair)}")
        return f"{', '.join(place) or 'submission'}: {self.rule}: {self.message}"


def whole_fault(conversation: Any, rule: Rule, message: str) -> SubmissionFault:
    """A fault of a whole conversation or submission of emotion-cause pairs."""
    return SubmissionFault(conversation, 0, None, rule, message)


def validate_submission(
    data: Any, subtask: Subtask, gold: Sequence[Mapping[str, Any]] | None = None
) -> list[SubmissionFault]:
    """Return all faults of an emotion-cause submission in its order; missing conversations are last.

    The same submissions have faults as the official script stops at, but for the spellings and the two oddities that
    `parse_pair` names, and for spans that end before they start. Conversations that `gold` lacks are not scored, so
    their pairs may be anything.

    Args:
        data: What the JSON file holds: ``[{"conversation_ID": 1, "emotion-cause_pairs": [...]}]``.
        subtask: 1 or 2.
        gold: The official gold file; without it all conversations are checked, and none can be missing.

    Raises:
        ValueError: A conversation of `gold` has no number.
    """
    if isinstance(data, dict) and ID in data:
        data = [data]
    if not isinstance(data, list):
        return [whole_fault(None, "submission form", f"found {quoted(data)}, expected a list")]
    expected = None if gold is None else dict.fromkeys(map(_gold_number, gold))
    faults: list[SubmissionFault] = []
    seen: dict[int, int] = {}
    for place, entry in enumerate(data, start=1):
        number = whole_number(entry.get(ID)) if isinstance(entry, dict) else None
        if number is None:
            faults.append(_unnumbered(entry, place))
        elif number in seen:
            message = f"found it twice, again as entry {place} (first as entry {seen[number]}), expected it once"
            faults.append(whole_fault(number, "conversation repeated", message))
        else:
            seen[number] = place
            if expected is None or number in expected:
                faults += _pair_faults(number, entry, subtask)
    return faults + list(_missing(expected or (), seen))


def whole_number(value: Any) -> int | None:
    """A conversation's or utterance's whole number, ``11``, ``"11"`` or ``11.0``; ``None`` for anything else."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not isinstance(value, (float, str)):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):
        return None
    return number if isinstance(value, str) or number == value else None


def _gold_number(conversation: Mapping[str, Any]) -> int:
    """The ``conversation_ID`` of an official gold conversation."""
    number = whole_number(conversation.get(ID))
    if number is None:
        raise ValueError(f"gold: found {ID} {quoted(conversation.get(ID))}, expected a whole number")
    return number


def _unnumbered(entry: Any, place: int) -> SubmissionFault:
    """The fault of a submission's entry without a usable ``conversation_ID``."""
    expected = f"expected an object with {ID} and {PAIRS}"
    if not isinstance(entry, dict):
        return whole_fault(None, "conversation form", f"found {quoted(entry)} as entry {place}, {expected}")
    if ID not in entry:
        message = f"{ID} is missing in entry {place}"
        return whole_fault(None, "conversation form", message)
    message = f"found {ID} {quoted(entry[ID])} in entry {place}, expected a whole number"
    return whole_fault(entry[ID], "conversation id", message)


def _pair_faults(number: int, entry: Mapping[str, Any], subtask: Subtask) -> Iterator[SubmissionFault]:
    """Yield the faults of the emotion-cause pairs in a submission's entry."""
    pairs = entry.get(PAIRS)
    if not isinstance(pairs, list):
        excerpt = f"{quoted(pairs)} as {PAIRS}" if PAIRS in entry else f"no key {PAIRS}"
        yield whole_fault(number, "pair list", f"found {excerpt}, expected a list of pairs")
        return
    for position, pair in enumerate(pairs, start=1):
        try:
            wrong = order_fault(parse_pair(pair, subtask))
        except PairFault as fault:
            yield SubmissionFault(number, position, pair, fault.rule, str(fault))
        else:
            if wrong:
                yield SubmissionFault(number, position, pair, "span order", wrong)


def _missing(expected: Iterable[int], seen: Mapping[int, int]) -> Iterator[SubmissionFault]:
    """Yield a fault for each gold conversation that a submission lacks."""
    for number in expected:
        if number not in seen:
            message = "the entry is missing: write one with an empty list if there are no pairs"
            yield whole_fault(number, "conversation missing", message)


def _conversation_text(conversation: Any) -> str:
    """The name of a conversation in a message about a submission's fault."""
    return str(conversation) if isinstance(conversation, int) else quoted(conversation)
