"""Mutators of texts, in English and Chinese: other answers, and single facts, sentences and citations changed."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.views import Mutator, Neighbours
from pytest_llmeval.evaluators.answers import answer_text, has_cjk, references
from pytest_llmeval.evaluators.measures.tokens import split_sentences
from pytest_llmeval.workbench.mutation.forms import ground, normal, of_text, passages, question_text

_SHORT_TEXT: Final = 6
"""Words, or Chinese characters, from which on half an answer is clearly broken off."""
_SHORT_NAME: Final = (4, 8)
"""Words, and Chinese characters, up to which an expected answer is the name of something."""

_DIGITS: Final = re.compile(r"(?<![\w.,:/-])\d+(?:[.,]\d+)*(?![\w:/]|-\d)|(?<=[\u4e00-\u9fff])\d+(?:[.,]\d+)*")
_ENGLISH_NUMBERS: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WORDED: Final = re.compile(rf"\b(?:{'|'.join(_ENGLISH_NUMBERS)})\b", re.IGNORECASE)
_CHINESE_NUMBERS: Final = "一二三四五六七八九"
_COUNTED: Final = re.compile(
    r"[一二三四五六七八九](?=[十百千万]*[一二三四五六七八九]?[天周个年小分元块公米人次位名岁点号日月层])"
)
_CITATION: Final = re.compile(r"[\[［【](\d{1,3})[\]］】]")

MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_CHINESE_DAYS: Final = "一二三四五六日"
_DATES: Final = (
    (re.compile(r"(?<=\d{4}-)\d{2}(?=-\d{2}(?!\d))"), lambda name: f"{int(name) % 12 + 1:02}"),
    (re.compile(rf"\b(?:{'|'.join(MONTHS)})\b"), lambda name: _next(MONTHS, name)),
    (re.compile(rf"\b(?:{'|'.join(_DAYS)})(?=s?\b)"), lambda name: _next(_DAYS, name)),
    (re.compile(r"(?<=年)\d{1,2}(?=月)|(?<![\d年])\d{1,2}(?=月\d{1,2}[日号])"), lambda name: f"{int(name) % 12 + 1}"),
    (re.compile("(?<=星期|礼拜)[一二三四五六日]|(?<=周)[一二三四五六日]"), lambda name: _next(_CHINESE_DAYS, name)),
)

_UNITS: Final = {
    "days": "weeks",
    "day": "week",
    "weeks": "days",
    "week": "day",
    "hours": "minutes",
    "minutes": "hours",
    "months": "years",
    "years": "months",
    "euros": "dollars",
    "dollars": "euros",
    "EUR": "USD",
    "USD": "EUR",
    "km": "miles",
    "miles": "km",
    "kg": "pounds",
    "grams": "kilograms",
    "metres": "feet",
    "meters": "feet",
    "percent": "percentage points",
    "€": "$",
    "£": "€",
    "天": "周",
    "小时": "分钟",
    "分钟": "小时",
    "个月": "年",
    "元": "美元",
    "公里": "米",
    "公斤": "克",
}
_UNIT: Final = re.compile(
    rf"(?:(?<=\d)|(?<=\b))(?:{'|'.join(each for each in _UNITS if each.isascii())})\b|[€£]"
    rf"|(?<=[\d一二三四五六七八九十百千万两几 ])(?:{'|'.join(each for each in _UNITS if has_cjk(each))})"
)

_OPPOSITES: Final = dict(
    pair
    for word, other in (
        *(("more", "less"), ("above", "below"), ("before", "after"), ("rose", "fell"), ("higher", "lower")),
        *(("increased", "decreased"), ("earlier", "later"), ("at least", "at most"), ("free", "not free")),
        *(("以上", "以下"), ("增加", "减少"), ("上升", "下降"), ("之前", "之后"), ("至少", "至多"), ("高于", "低于")),
    )
    for pair in ((word, other), (other, word))
)
_OPPOSITE: Final = re.compile(
    rf"\b(?:{'|'.join(sorted((each for each in _OPPOSITES if each.isascii()), key=len, reverse=True))})\b"
    rf"|{'|'.join(each for each in _OPPOSITES if has_cjk(each))}"
)
_SIGNED: Final = re.compile(r"(?<![\w.)\]-])[-+\u2212](?=\d)")

_NEGATED: Final = (
    (re.compile(r"\b(is|are|was|were|can|will|does|do|did|may|must|has|have) ?not\b", re.IGNORECASE), r"\1"),
    (re.compile(r"\b(is|are|was|were|does|do|did|has|have)n['\u2019]t\b", re.IGNORECASE), r"\1"),
    (re.compile(r"\b(is|are|was|were|can|will|may|must)\b", re.IGNORECASE), r"\1 not"),
    (re.compile("不(?=是|能|会|可以|需要|要|支持|收|允许|包含|含|营业|开)"), ""),
    (re.compile("没有"), "有"),
    (re.compile("(?<![不但还就于可总])(是(?!否)|可以|需要|能够|支持|允许)"), r"不\1"),
)

_NAME: Final = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}\b")
_NO_NAMES: Final = frozenset((*MONTHS, *_DAYS, "The", "This", "That", "You", "They", "She", "Her", "His", "And", "But"))
_LINKS: Final = re.compile(r"\s*(?:,|;|and|or|und|&|/|\+|、|，|和|与|及|或|[-\u2013]|到|至)?\s*")
"""What stands between two facts whose order does not matter."""


def _next(values: Sequence[str], value: str) -> str:
    return values[(values.index(value) + 1) % len(values)]


def _known(text: str, known: str | None) -> bool:
    """Return whether a fact is among what is known to be right; what else an answer says, may be wrong already."""
    return known is None or text in known


def _substituted(
    text: str, pattern: re.Pattern[str], known: str | None, near: Neighbours, change: Callable[[str], str]
) -> str | None:
    """Change one of the facts that a pattern finds, among those that are known to be right."""
    matches = [each for each in pattern.finditer(text) if _known(each[0], known)]
    if not matches:
        return None
    chosen = matches[0] if len(matches) == 1 else near.rng.choice(matches)
    return f"{text[: chosen.start()]}{change(chosen[0])}{text[chosen.end() :]}"


def _other_answers(text: str, near: Neighbours) -> Iterator[str]:
    """Yield the answers of other cases, from one of them on."""
    start = near.rng.randrange(len(near.others)) if near.others else 0
    for other in (*near.others[start:], *near.others[:start]):
        part = answer_text(other)
        if part is not None and part.value != text:
            yield part.value


def _other_answer(text: str, case: Case, near: Neighbours) -> str | None:
    """Return an answer of another case that does not happen to have what is expected here."""
    expected = [normal(each) for each in references(case)]
    others = _other_answers(text, near)
    return next((other for other in others if not any(each and each in normal(other) for each in expected)), None)


def _question(_text: str, case: Case, _near: Neighbours) -> str | None:
    return question_text(case)


def _refusal(text: str, _case: Case, _near: Neighbours) -> str:
    return "抱歉，我无法回答这个问题。" if has_cjk(text) else "I'm sorry, but I can't help with that."


def _truncated(text: str, _case: Case, _near: Neighbours) -> str | None:
    words = list(text) if has_cjk(text) else text.split()
    if len(words) < _SHORT_TEXT:
        return None
    return ("" if has_cjk(text) else " ").join(words[: len(words) // 2])


def _without_citations(text: str) -> str:
    """Return a text of the same length whose citations have no numbers."""
    return _CITATION.sub(lambda mark: "#" * len(mark[0]), text) if "[" in text or "【" in text or "［" in text else text


def _number(text: str, case: Case, near: Neighbours) -> str | None:
    known, plain = ground(case), _without_citations(text)
    matches = [each for each in _DIGITS.finditer(plain) if _known(each[0], known)]
    if matches:
        chosen = matches[0] if len(matches) == 1 else near.rng.choice(matches)
        start, end = chosen.span()
        leading = re.match(r"\d+", chosen[0])
        assert leading is not None
        changed = str(int(leading[0]) + near.rng.choice((1, 7, 30))).zfill(len(leading[0]))
        return f"{text[:start]}{changed}{text[start + len(leading[0]) : end]}{text[end:]}"
    worded = _substituted(text, _WORDED, known, near, lambda word: _next(_ENGLISH_NUMBERS, word.lower()))
    return worded or _substituted(text, _COUNTED, known, near, lambda digit: _next(_CHINESE_NUMBERS, digit))


def _date(text: str, case: Case, near: Neighbours) -> str | None:
    known = ground(case)
    changed = (_substituted(text, pattern, known, near, change) for pattern, change in _DATES)
    return next((each for each in changed if each is not None), None)


def _unit(text: str, case: Case, near: Neighbours) -> str | None:
    return _substituted(text, _UNIT, ground(case), near, _UNITS.__getitem__)


def _sign(text: str, case: Case, _near: Neighbours) -> str | None:
    known, signed = ground(case), _SIGNED.search(text)
    if signed is None or not _known(text[signed.start() : signed.end() + 1], known):
        return None
    other = "-" if signed[0] == "+" else ""
    return f"{text[: signed.start()]}{other}{text[signed.end() :]}"


def _direction(text: str, case: Case, near: Neighbours) -> str | None:
    return _substituted(text, _OPPOSITE, ground(case), near, _OPPOSITES.__getitem__)


def _negation(text: str, _case: Case, _near: Neighbours) -> str | None:
    for pattern, replacement in _NEGATED:
        if pattern.search(text):
            return pattern.sub(replacement, text, count=1)
    return None


def _names(text: str) -> list[re.Match[str]]:
    return [each for each in _NAME.finditer(text) if each[0] not in _NO_NAMES]


def _is_short(text: str) -> bool:
    words, characters = _SHORT_NAME
    return len(text) <= characters if has_cjk(text) else len(text.split()) <= words


def _name(text: str, case: Case, near: Neighbours) -> str | None:
    """Put the short answer or a name of another case in place of one that is right."""
    expected = next(
        (each for each in references(case) if _is_short(each) and not _has_digit(each) and each in text), None
    )
    if expected is not None:
        others = [each for other in near.others for each in references(other)[:1]]
        others = [each for each in others if _is_short(each) and not _has_digit(each) and each not in text]
        if others and normal(expected):
            return text.replace(expected, near.rng.choice(others), 1)
    known = ground(case)
    candidates = [each for each in _names(text) if _known(each[0], known)]
    if not candidates:
        return None
    names = sorted({each[0] for other in _other_answers(text, near) for each in _names(other)})
    others = [name for name in names if name not in text]
    if not others:
        return None
    chosen = near.rng.choice(candidates)
    return f"{text[: chosen.start()]}{near.rng.choice(others)}{text[chosen.end() :]}"


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


def _swapped_facts(text: str, case: Case, _near: Neighbours) -> str | None:
    """Let two numbers, or two names, change places, unless only a comma or the like stands between them."""
    known, plain = ground(case), _without_citations(text)
    for facts in (list(_DIGITS.finditer(plain)), _names(plain)):
        right = [each for each in facts if _known(each[0], known)]
        for first, other in pairwise(right):
            between = text[first.end() : other.start()]
            if first[0] != other[0] and not _LINKS.fullmatch(between):
                return f"{text[: first.start()]}{other[0]}{between}{first[0]}{text[other.end() :]}"
    return None


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\u3400-\u9fff]|\w+", text.casefold()))


def _sentence_dropped(text: str, case: Case, _near: Neighbours) -> str | None:
    """Leave out the sentence without which most words of the expected answer are missing."""
    sentences = split_sentences(text)
    if len(sentences) < 2:  # noqa: PLR2004 (one of several)
        return None
    expected_words = _words(" ".join(references(case)[:1]))
    lost = [
        len((_words(each) & expected_words) - _words(" ".join([*sentences[:at], *sentences[at + 1 :]])))
        for at, each in enumerate(sentences)
    ]
    if max(lost) == 0:
        return None
    place = lost.index(max(lost))
    joint = "" if has_cjk(text) else " "
    return joint.join(each for at, each in enumerate(sentences) if at != place)


def _unsupported(text: str, case: Case, near: Neighbours) -> str | None:
    """Add a sentence about something else, of which neither the expected answer nor the passages say anything."""
    known = normal(f"{text} {ground(case) or ''}")
    firsts = (first[0] for other in _other_answers(text, near) if (first := split_sentences(other)))
    sentence = next((each for each in firsts if normal(each) not in known), None)
    return None if sentence is None else f"{text}{'' if has_cjk(text) else ' '}{sentence}"


def _citation(text: str, case: Case, _near: Neighbours) -> str | None:
    """Let a citation point to the next passage that its text does not cite anyway."""
    cited = [int(each[1]) for each in _CITATION.finditer(text)]
    if not cited:
        return None
    number = len(passages(case)) or max(cited) + 1
    following = (place % number + 1 for place in range(cited[0], cited[0] + number))
    other = next((each for each in following if each not in cited), number + 1)
    return _CITATION.sub(lambda mark: mark[0].replace(mark[1], str(other)), text, count=1)


_AGAINST_EXPECTED: Final = "a metric against `expected`"
_FACTS: Final = "the check `contains`, or `claims`"


def _mutator(name: str, why: str, advice: str, change: Any, *, prose: bool = True) -> Mutator:
    return Mutator(name, why, of_text(change, prose=prose), advice)


MUTATORS: Final[tuple[Mutator, ...]] = (
    _mutator("other_answer", "it answers another question", _AGAINST_EXPECTED, _other_answer, prose=False),
    _mutator("question", "it repeats the question", _AGAINST_EXPECTED, _question, prose=False),
    _mutator("empty", "it says nothing", "the check `min_chars: 1`", lambda *_: "", prose=False),
    _mutator("refusal", "it refuses", "the check `not_refusal`", _refusal, prose=False),
    _mutator(
        "truncated",
        "it breaks off in the middle",
        "a threshold on recall, or `contains` of how answers end",
        _truncated,
        prose=False,
    ),
    _mutator("number", "a number is another one", "the check `number` or `contains`, or `claims`", _number),
    _mutator("date", "a month or a day of the week is another one", _FACTS, _date),
    _mutator("unit", "a unit is another one", _FACTS, _unit),
    _mutator("name", "a name is another one", _FACTS, _name),
    _mutator("sign", "a sign is the opposite", _FACTS, _sign),
    _mutator("direction", "more is less, or before is after", _FACTS, _direction),
    _mutator("negation", "it says the opposite", "`claims` or a judge; words alone hardly differ", _negation),
    _mutator(
        "facts_swapped",
        "two facts have changed places",
        "`claims` or a judge; words alone are the same",
        _swapped_facts,
    ),
    _mutator(
        "sentence_dropped", "what was asked for is left out", "a threshold on recall, or `contains`", _sentence_dropped
    ),
    _mutator(
        "unsupported",
        "it claims something about another question",
        "`claims` (faithfulness), or `max_words`",
        _unsupported,
    ),
    _mutator("citation", "a citation points to another passage", "`claims` (citation_support)", _citation),
)
"""What makes texts wrong."""
