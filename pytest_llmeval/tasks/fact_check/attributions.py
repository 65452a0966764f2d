"""Attributions in texts, in English and Chinese: who is said to have said something."""

__all__ = ("find_attributions",)

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from pytest_llmeval.data.labels import load_taxonomy

_CAPITALISED = r"[A-Z][\w&\u2019-]*+"
_NAME = re.compile(rf"{_CAPITALISED}(?:\x20(?:(?:and|for|of|the|&)\x20(?:the\x20)?)?{_CAPITALISED})*+")
_YEAR = r"(?:\s?\(\d{4}[a-z]?\))?"
_CLAUSE = re.compile(r"[^\u3002\uff01\uff1f\uff1b\uff0c\u3001\uff1a!?;,:\n()\uff08\uff09]+")
_QUOTES = " \t\u3000\"'\u2018\u2019\u201c\u201d\u300a\u300b\u300c\u300d"
_HAN = re.compile("[\u4e00-\u9fff]")
_LONGEST = 30
_SHORTEST = 2


def find_attributions(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each name that something is attributed to; ``taxonomies/citations.yaml`` has the words.

    >>> text = "Reuters (2023) says so, as per the BBC. 根据国家统计局的数据，上升。外交部发言人昨日表示，属实。"
    >>> [text[start:end] for start, end in find_attributions(text)]
    ['Reuters', 'BBC', '国家统计局', '外交部发言人']
    """
    yield from _english(text)
    if _HAN.search(text):
        yield from _chinese(text)


def _english(text: str) -> Iterator[tuple[int, int]]:
    words = _english_words()
    for match in _NAME.finditer(text):
        start, end = match.start(), match.end()
        if words.introduction.search(text, max(start - _LONGEST, 0), start):
            yield start, end
        elif words.saying.match(text, end):
            start = _without_openers(text, start, end, words.no_names)
            if start < end:
                yield start, end


def _without_openers(text: str, start: int, end: int, no_names: frozenset[str]) -> int:
    """Return where a name begins behind the words that only begin a sentence."""
    while start < end:
        word = text[start:end].partition(" ")[0]
        if word not in no_names and not word.islower():
            break
        start = min(start + len(word) + 1, end)
    return start


def _chinese(text: str) -> Iterator[tuple[int, int]]:
    words = _chinese_words()
    for clause in _CLAUSE.finditer(text):
        start, end = clause.span()
        opening = words.opening.search(text, start, end)
        if opening:
            ending = words.name_end.search(text, opening.end(), end)
            yield from words.names(text, opening.end(), ending.start() if ending else end)
            continue
        saying = words.saying.search(text, start, end)
        if saying:
            first = words.conjunction.match(text, start, saying.start())
            start = first.end() if first else start
            adverb = words.adverb.search(text, start + _SHORTEST, saying.start())
            yield from words.names(text, start, adverb.start() if adverb else saying.start())


class _English(NamedTuple):
    introduction: re.Pattern[str]
    saying: re.Pattern[str]
    no_names: frozenset[str]


class _Chinese(NamedTuple):
    opening: re.Pattern[str]
    name_end: re.Pattern[str]
    saying: re.Pattern[str]
    adverb: re.Pattern[str]
    conjunction: re.Pattern[str]
    no_names: frozenset[str]

    def names(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield a stretch without the quotes round it, if it can be a name."""
        while start < end and text[start] in _QUOTES:
            start += 1
        while start < end and text[end - 1] in _QUOTES:
            end -= 1
        if _SHORTEST <= end - start <= _LONGEST and text[start:end] not in self.no_names:
            yield start, end


@cache
def _english_words() -> _English:
    data: Any = load_taxonomy("citations")["en"]
    introduction = re.compile(rf"(?<!\w)(?i:{_any_of(data['before_name'])})\s(?:the\s)?\Z")
    return _English(
        introduction, re.compile(rf"{_YEAR}\s(?:{_any_of(data['after_name'])})(?!\w)"), frozenset(data["no_names"])
    )


@cache
def _chinese_words() -> _Chinese:
    data: Any = load_taxonomy("citations")["zh"]
    before = _any_of(name for name in data["before_name"] if name != "据")
    return _Chinese(
        opening=re.compile(rf"{before}|(?<![{data['not_before']}])据"),
        name_end=re.compile(rf"{_any_of(data['name_ends'])}|\d"),
        saying=re.compile(_any_of(data["after_name"])),
        adverb=re.compile(rf"{_any_of(data['adverbs'])}|\d"),
        conjunction=re.compile(_any_of(data["conjunctions"])),
        no_names=frozenset(data["no_names"]),
    )


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
