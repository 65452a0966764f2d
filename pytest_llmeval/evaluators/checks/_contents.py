"""Checks of what an answer holds."""

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

from pytest_llmeval.core import MissingExtraError, counted, is_finite_number, limit, suggest, unknown_name
from pytest_llmeval.evaluators._answers import AnswerValue
from pytest_llmeval.evaluators.checks._check import (
    CheckError,
    CheckKind,
    CheckOutcome,
    CheckTest,
    Subject,
    UnreadableError,
    composed,
    quoted,
)

_DATA = Path(__file__).parent / "data"
_SLACK = 1e-12


@dataclass(frozen=True)
class Number:
    """The options of the check ``number``.

    Attributes:
        equals: What the number must be.
        tolerance: How far it may be from that.
        min: Least.
        max: Most.

    Raises:
        ValueError: They say nothing about the number, or contradict each other.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    equals: float | None = None
    tolerance: float | None = None
    min: float | None = None
    max: float | None = None

    def __post_init__(self) -> None:
        if self.equals is None and self.min is None and self.max is None:
            raise ValueError("equals, min or max is missing")
        if self.tolerance is not None and (self.equals is None or self.tolerance < 0):
            raise ValueError(f"found tolerance {self.tolerance}, expected a number of at least 0 together with equals")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ValueError(f"found min {self.min} above max {self.max}, expected min <= max")

    def holds(self, value: float) -> bool:
        """Whether a number is within the limits, which belong to the range."""
        if not math.isfinite(value):
            return False
        near = self.equals is None or abs(value - self.equals) <= (self.tolerance or 0.0) + _slack(self.equals)
        above = self.min is None or value >= self.min - _slack(self.min)
        return near and above and (self.max is None or value <= self.max + _slack(self.max))


def _slack(limit_of: float) -> float:
    """The rounding error that the check ``number`` allows at a limit; it scales with the limit."""
    return _SLACK * max(1.0, abs(limit_of))


_SUPERSCRIPTS: Final = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_FRACTIONS: Final = "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_SPACES: Final = "\u00a0\u2007\u2009\u202f"
_WORDS: Final = {
    **dict.fromkeys(("k", "thousand", "thousands", "tausend"), 1e3),
    **dict.fromkeys(("million", "millions", "mn", "mln", "mio", "millionen", "millones"), 1e6),
    **dict.fromkeys(("billion", "billions", "bn", "mrd", "milliarde", "milliarden", "milliards"), 1e9),
    **dict.fromkeys(("trillion", "trillions"), 1e12),
    **dict.fromkeys(("hundred", "hundreds"), 1e2),
}
_UNITS: Final = {"十": 10, "百": 100, "千": 1_000} | dict.fromkeys("万萬", 10_000) | dict.fromkeys("亿億", 100_000_000)
_BASE: Final = 10
_LETTERS: Final = {"M": 1e6, "B": 1e9}
_NUMBER = re.compile(
    r"(?P<currency>[$€£¥])?(?<![A-Za-z0-9_.])(?<![A-Za-z_][-+])(?P<sign>[-+]?)(?:(?:"
    r"(?P<points>\d{1,3}(?:\.\d{3})+,\d+(?!\d|[.,]\d))"  # 1.250,50
    rf"|(?P<gaps>\d{{1,3}}(?:[{_SPACES}'’]\d{{3}})+(?!\d)(?:[.,]\d+)?)"  # 12 500, with a space that does not break
    r"|(?P<commas>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+))"
    rf"(?P<exponent>[eE][-+]?\d+)?(?!\d|\.\d)(?:[ {_SPACES}]?(?P<part>[{_FRACTIONS}]))?|(?P<fraction>[{_FRACTIONS}]))"
    rf"(?P<raised>[⁺⁻]?[{_SUPERSCRIPTS}]+)?"
    rf"(?:\s?[×x·*]\s?10(?:\^(?P<caret>[-+]?\d+)|(?P<power>[⁺⁻]?[{_SUPERSCRIPTS}]+)))?"
    r"(?:(?P<units>(?:[十百万萬亿億]|千(?![克米瓦卡帕赫伏字]))+)"
    rf"|(?P<letter>[MB])\b|[\s{_SPACES}-]?(?P<word>(?i:{'|'.join(sorted(_WORDS, key=len, reverse=True))}))\b)?"
)
"""Not: digits of a name, and what has two points, as versions and dates have."""

_MINUS = str.maketrans({"\u2212": "-", "\ufe63": "-"})
_TO_DIGITS = str.maketrans(_SUPERSCRIPTS + "⁺⁻", "0123456789+-")
_AS_THEY_ARE: Final = frozenset(_SUPERSCRIPTS + "⁺⁻" + _FRACTIONS + _SPACES)


def numbers_in(text: str) -> list[tuple[str, float]]:
    """The numbers of an answer as written, each with its value: full-width digits, fractions, words of scale.

    Commas may group thousands, and so may spaces that do not break; ``1.250,50`` has points and a comma. A raised
    number is a power of 10, else the mark of a footnote if it is 1. Digits that belong to a name, as in ``GPT-4`` or
    ``v2``, are no number. A number that no float can hold, such as ``1e400``, is infinite; one that may be a power or
    have a footnote, such as ``5²``, is NaN.

    >>> numbers_in("It costs $1,234.50, or 3.5万 in all; see GPT-4.")
    [('$1,234.50', 1234.5), ('3.5万', 35000.0)]
    >>> numbers_in("2½, 10³ and $1.2 million")
    [('2½', 2.5), ('10³', 1000.0), ('$1.2 million', 1200000.0)]
    """
    # A raised digit and a fraction are digits like others once they are normalized.
    characters = (
        character if character in _AS_THEY_ARE else unicodedata.normalize("NFKC", character) for character in text
    )
    plain = "".join(characters).translate(_MINUS)
    return [(match.group().strip(), _matched_number(match)) for match in _NUMBER.finditer(plain)]


def _matched_number(match: re.Match[str]) -> float:
    """The value of a number in an answer, from the match of its written form; NaN for one that is ambiguous."""
    if written := match["points"]:
        digits = written.replace(".", "").replace(",", ".")
    else:
        digits = re.sub(f"[{_SPACES}'’]", "", match["gaps"] or "").replace(",", ".") or (match["commas"] or "0")
    value = float(digits.replace(",", "") + (match["exponent"] or ""))
    value += sum(unicodedata.numeric(match[name]) for name in ("part", "fraction") if match[name])
    if power := (match["raised"] or "").translate(_TO_DIGITS):
        if value == _BASE:
            value = float(f"1e{power}")
        elif power != "1":
            value = math.nan
    value *= float(f"1e{(match['caret'] or match['power'] or '0').translate(_TO_DIGITS)}")
    for unit in match["units"] or "":
        value *= _UNITS[unit]
    if match["letter"] and match["currency"]:
        value *= _LETTERS[match["letter"]]
    if match["word"]:
        value *= _WORDS[match["word"].lower()]
    return -value if match["sign"] == "-" else value


def _number_check(argument: float | Number) -> CheckTest:
    """Prepare the check ``number``: an answer's only number is within the limits."""
    options = argument if isinstance(argument, Number) else Number(equals=float(argument))

    def test(subject: Subject) -> CheckOutcome:
        if isinstance(subject.value, int | float) and not isinstance(subject.value, bool):
            number = float(subject.value) if is_finite_number(subject.value) else math.inf
            numbers = {number: limit(number)}
        else:
            numbers = {value: _number_text(written, value) for written, value in numbers_in(subject.text)}
        if any(map(math.isinf, numbers)):
            raise UnreadableError(f"{subject.show()}, which has a number that is too large to be compared")
        if unclear := [text for value, text in numbers.items() if math.isnan(value)]:
            raise UnreadableError(f"{unclear[0]} in {subject.show()}, which may be a power or have a footnote")
        if len(numbers) != 1:
            what = f"the numbers {', '.join([*numbers.values()][:5])}" if numbers else "no number"
            return CheckOutcome(False, f"{what} in {subject.show()}")
        ((value, text),) = numbers.items()
        return CheckOutcome(options.holds(value), f"the number {text}")

    return test


def _number_text(written: str, value: float) -> str:
    """A number of an answer for a message of the check ``number``, with its written form if that differs."""
    if math.isnan(value):
        return quoted(written)
    number = limit(value)
    is_plain = all(character in "0123456789.,+-$€£¥" for character in written) and "," not in written.partition(".")[2]
    return number if is_plain else f"{number} ({quoted(written)})"


def _language_check(argument: str | tuple[str, ...]) -> CheckTest:
    """Prepare the check ``language``: an answer is written in one of some languages."""
    with MissingExtraError.unless_installed("the check 'language'", "language"):
        from py3langid.langid import RAW_FLOOR

    identifier = _language_identifier()
    codes = [_primary_language(language) for language in ([argument] if isinstance(argument, str) else argument)]
    for code in codes:
        if code not in identifier.labels:
            hint = suggest(code, identifier.labels)
            raise ValueError(f"found the language {code!r}, expected an ISO 639 code such as en or zh{hint}")
    if not codes:
        raise ValueError("found an empty list, expected at least one language")

    def test(subject: Subject) -> CheckOutcome:
        if "language" not in subject.memory:
            subject.memory["language"] = identifier.classify(subject.text)
        code, score = subject.memory["language"]
        if score <= RAW_FLOOR:
            raise CheckError(f"found {subject.show()}, which is too short to tell its language")
        return CheckOutcome(code in codes, f"language {code}")

    return test


@cache
def _language_identifier() -> Any:
    """The model of py3langid that identifies an answer's language for the check ``language``."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE)


def _primary_language(code: str) -> str:
    """The primary language of a code in the check ``language``: ``en`` of ``en-GB``."""
    return re.split("[-_]", code.lower())[0]


_QUOTES_ALIKE = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'"})


def _like_speech(text: str) -> str:
    """An answer in the form in which refusal phrases are searched: one case, one apostrophe, single spaces."""
    return " ".join(composed(text.casefold()).translate(_QUOTES_ALIKE).split())


@cache
def _refusal_phrases() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """The phrases of refusal, each with the pattern that finds it in an answer as whole words."""
    lines = [line for file in sorted(_DATA.glob("refusal.*.txt")) for line in file.read_text("utf-8").splitlines()]
    phrases = [_like_speech(line) for line in lines if line.strip() and not line.startswith("#")]
    return tuple(
        (phrase, re.compile(f"{_word_edge(phrase[0])}{re.escape(phrase)}{_word_edge(phrase[-1])}"))
        for phrase in phrases
    )


def _word_edge(character: str) -> str:
    """The regular expression for the edge of a refusal phrase: a word boundary next to ASCII letters and digits."""
    return r"\b" if character.isascii() and character.isalnum() else ""


def _refusal_check(_: None) -> CheckTest:
    """Prepare the check ``refusal``: an answer is empty or has a phrase of refusal."""
    phrases = _refusal_phrases()

    def test(subject: Subject) -> CheckOutcome:
        if subject.value is None or not subject.text.strip():
            return CheckOutcome(True, "no answer at all")
        text = _like_speech(subject.text)
        matches = [phrase for phrase, whole in phrases if phrase in text and whole.search(text)]
        return CheckOutcome(bool(matches), quoted(matches[0]) if matches else "")

    return test


_CLOSING: Final = {'"': '"', "\u201c": "\u201d", "\u00ab": "\u00bb", "\u300c": "\u300d", "\u300e": "\u300f"}
_OPENING = re.compile(f"[{''.join(_CLOSING)}]")


def _quotations(text: str) -> list[str]:
    """The texts between quotation marks in an answer, each once; an unclosed mark costs no second look."""
    quotations: dict[str, None] = {}
    unclosed: set[str] = set()
    place = 0
    while (mark := _OPENING.search(text, place)) is not None:
        closing, place = _CLOSING[mark[0]], mark.end()
        end = -1 if closing in unclosed else text.find(closing, place)
        if end < 0:
            unclosed.add(closing)
        else:
            quotations[text[place:end]] = None
            place = end + 1
    return [quotation for quotation in quotations if quotation]


_GAP = re.compile(r"\[?(?:\u2026+|\.{3,})\]?")
_ENDS = " \t\n.,;:!?\u3002\uff0c\uff1b\uff1a\uff01\uff1f"


def _quotes_check(_: None) -> CheckTest:
    """Prepare the check ``quotes``: each quotation in an answer stands in one of the contexts."""

    def test(subject: Subject) -> CheckOutcome:
        contexts = [_like_text(context) for context in _contexts(subject)]
        quotations = _quotations(subject.text)
        wrong = next(
            (quotation for quotation in quotations if not any(_stands_in(quotation, text) for text in contexts)), None
        )
        if wrong is not None:
            where = f"not in the {counted(len(contexts), 'context')}"
            return CheckOutcome(False, f"the quotation {quoted(wrong)}, which is {where}")
        return CheckOutcome(True, f"{counted(len(quotations), 'quotation')}, none of them outside the contexts")

    return test


def _like_text(text: str) -> str:
    """A quotation or context with uniform quotation marks and spaces, for the check ``quotes``."""
    return " ".join(composed(text).translate(_QUOTES_ALIKE).split())


def _stands_in(quotation: str, context: str) -> bool:
    """Whether a quotation's pieces, between ellipses, stand in a context in this order, for the check ``quotes``."""
    start = 0
    for piece in _GAP.split(_like_text(quotation)):
        words = piece.strip(_ENDS)
        place = context.find(words, start)
        if place < 0:
            return False
        start = place + len(words)
    return True


def _contexts(subject: Subject) -> list[str]:
    """The contexts of a prediction that its answer may quote.

    Raises:
        CheckError: There are none, or they are no texts.
    """
    contexts = subject.part("contexts")
    listed = [contexts] if isinstance(contexts, str) else contexts
    if not isinstance(listed, list | tuple) or not all(isinstance(context, str) for context in listed):
        raise CheckError(f"found {AnswerValue(contexts).kind} as contexts, expected a list of texts")
    return list(listed)


@dataclass(frozen=True)
class _Pattern:
    """The pattern of one sort of personal data, for the check ``pii``.

    Attributes:
        regex: Its form.
        proof: What the check digits of a real one must satisfy.
    """

    regex: re.Pattern[str]
    proof: Callable[[str], bool]


def _is_luhn(text: str) -> bool:
    """Whether the check digit of a card number in an answer is valid (Luhn), for the check ``pii``."""
    digits = [int(character) for character in reversed(text) if character.isdigit()]
    return sum(digit if n % 2 == 0 else sum(divmod(2 * digit, 10)) for n, digit in enumerate(digits)) % 10 == 0


def _is_iban(text: str) -> bool:
    """Whether the check digits of an IBAN in an answer are valid, for the check ``pii``."""
    plain = text.replace(" ", "")
    return int("".join(str(int(character, 36)) for character in plain[4:] + plain[:4])) % 97 == 1


_CN_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def _cn_id(text: str) -> bool:
    """Whether the check digit of a Chinese identity number in an answer is valid, for the check ``pii``."""
    total = sum(weight * int(digit) for weight, digit in zip(_CN_WEIGHTS, text, strict=False))
    return "10X98765432"[total % 11] == text[-1].upper()


_PROOFS: Final[Mapping[str, Callable[[str], bool]]] = {"luhn": _is_luhn, "iban": _is_iban, "cn_id": _cn_id}


@cache
def _pii_patterns() -> Mapping[str, _Pattern]:
    """The patterns of personal data that the check ``pii`` finds in answers, by sort."""
    data = json.loads((_DATA / "pii.json").read_text(encoding="utf-8"))
    return {
        name: _Pattern(re.compile(sort["pattern"], re.ASCII), _PROOFS.get(sort.get("proof"), bool))
        for name, sort in data.items()
    }


def _pii_check(names: str | tuple[str, ...] | None) -> CheckTest:
    """Prepare the check ``pii``: an answer has personal data of some sort."""
    known = _pii_patterns()
    chosen: Iterable[str] = known if names is None else [names] if isinstance(names, str) else names
    for name in chosen:
        if name not in known:
            raise ValueError(unknown_name("sort of personal data", name, known))
    patterns = [(name, known[name]) for name in chosen]
    if not patterns:
        raise ValueError("found an empty list, expected at least one sort of personal data")

    def test(subject: Subject) -> CheckOutcome:
        text = unicodedata.normalize("NFKC", subject.text)
        for name, pattern in patterns:
            for match in pattern.regex.finditer(text):
                if pattern.proof(match[0]):
                    return CheckOutcome(True, f"{name} at character {match.start() + 1}")
        return CheckOutcome(False, f"no {' or '.join(name for name, _ in patterns)}")

    return test


CONTENT_KINDS: Final = (
    CheckKind(
        "language", "the answer is written in this language, or one of these", str | tuple[str, ...], _language_check
    ),
    CheckKind("number", "the one number in the answer is this, or within limits", float | Number, _number_check),
    CheckKind("pii", "the answer holds personal data", str | tuple[str, ...], _pii_check, optional=True),
    CheckKind("quotes", "every quotation of the answer stands in the contexts", None, _quotes_check),
    CheckKind("refusal", "the answer declines to help", None, _refusal_check),
)
"""The kinds, in alphabetical order."""
