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
_MARKS = " \t\u200b\u3000\"'*\u2018\u2019\u201c\u201d\u300a\u300b\u300c\u300d"
_TITLE = re.compile("[\u3000 ]?\u300a([^\u300a\u300b]{2,30})\u300b")
_PART = re.compile("[^\u53ca\u548c\u4e0e]+")
_HAN = re.compile("[\u4e00-\u9fff]")
_LONGEST = 30
_SHORTEST = 2
_NEAR = 6
"""Characters that may stand between a title and the verb."""


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
            yield from words.introduced(text, opening.end(), end)
            continue
        for saying, by_body in ((words.body_says, True), (words.speaker_says, False)):
            found = saying.search(text, start, end)
            names = words.speakers(text, start, found.start(), by_body=by_body) if found else []
            yield from names
            if names:
                break


class _English(NamedTuple):
    introduction: re.Pattern[str]
    saying: re.Pattern[str]
    no_names: frozenset[str]


class _Chinese(NamedTuple):
    opening: re.Pattern[str]
    name_end: re.Pattern[str]
    body_says: re.Pattern[str]
    speaker_says: re.Pattern[str]
    body: re.Pattern[str]
    adverb: re.Pattern[str]
    conjunction: re.Pattern[str]
    no_name: re.Pattern[str]
    no_names: frozenset[str]

    def introduced(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the name that begins here: a title in its marks, or up to the first word that ends names."""
        title = _TITLE.search(text, start, end)
        for pattern, first in ((self.name_end, start), (self.adverb, start + _SHORTEST)):
            ending = pattern.search(text, first, end)
            end = ending.start() if ending else end
        if title and title.start() <= end:
            yield title.span(1)
        elif name := self.name(text, start, end):
            yield name

    def speakers(self, text: str, start: int, end: int, *, by_body: bool) -> list[tuple[int, int]]:
        """Return the names in what stands before a verb: all of it from the beginning of the clause, or its parts."""
        first = self.conjunction.match(text, start, end)
        start = first.end() if first else start
        titles = list(_TITLE.finditer(text, start, end))
        if titles and end - titles[-1].end() <= _NEAR:
            return [titles[-1].span(1)]
        adverb = self.adverb.search(text, start + _SHORTEST, end)
        end = adverb.start() if adverb else end
        whole = self.name(text, start, end)
        if not by_body:
            return [whole] if whole else []
        parts = (self.name(text, *part.span()) for part in _PART.finditer(text, start, end))
        bodies = [name for name in (whole, *parts) if name and self.body.fullmatch(text, *name)]
        return bodies[:1] if whole in bodies else bodies

    def name(self, text: str, start: int, end: int) -> tuple[int, int] | None:
        """Return a stretch without the marks round it, if it can be a name."""
        while start < end and text[start] in _MARKS:
            start += 1
        while start < end and text[end - 1] in _MARKS:
            end -= 1
        name = text[start:end]
        long_enough = _SHORTEST <= len(name) <= _LONGEST
        return (start, end) if long_enough and name not in self.no_names and not self.no_name.search(name) else None


@cache
def _english_words() -> _English:
    data: Any = load_taxonomy("citations")["en"]
    introduction = re.compile(rf"(?<!\w)(?i:{_any_of(data['before_name'])})\s(?:the\s)?\Z")
    return _English(
        introduction,
        re.compile(rf"{_YEAR}\s(?:(?:{_any_of(data['adverbs'])})\s)?(?:{_any_of(data['after_name'])})(?!\w)"),
        frozenset(data["no_names"]),
    )


@cache
def _chinese_words() -> _Chinese:
    data: Any = load_taxonomy("citations")["zh"]
    before = _any_of(name for name in data["before_name"] if name != "据")
    bodies, titles = _any_of(data["bodies"]), _any_of(data["titles"])
    return _Chinese(
        opening=re.compile(rf"{before}|(?<![{data['not_before']}])据"),
        name_end=re.compile(rf"{_any_of(data['name_ends'])}|[\d\u2018-\u201d]"),
        body_says=re.compile(rf"{_any_of(data['after_body'])}|(?<![{data['not_before_says']}])称"),
        speaker_says=re.compile(rf"(?:{_any_of(data['after_speaker'])})(?=\Z|[\u201c\"])"),
        body=re.compile(rf".*(?:{bodies})|.*(?:{titles})[\u4e00-\u9fff]{{0,4}}|[A-Z][A-Za-z .&-]*"),
        adverb=re.compile(rf"{_any_of(data['adverbs'])}|\d"),
        conjunction=re.compile(_any_of(data["conjunctions"])),
        no_name=re.compile(rf"[{data['not_in_names']}\d]|\A(?:{_any_of(data['no_beginnings'])})"),
        no_names=frozenset(data["no_names"]),
    )


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
