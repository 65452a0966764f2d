"""Words and citations of a text, in linear time, and the original comparison of evidence by them."""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from pytest_llmeval.data.labels import load_taxonomy
from pytest_llmeval.evaluators.measures.spans import EvidenceSource
from pytest_llmeval.evaluators.measures.tokens import is_east_asian, separate_east_asian

Tokenizer: TypeAlias = Literal["auto", "words"]

_WORD = re.compile(r"\w+")
_FUNCTION_WORDS = "a an and are as at but by for from in is of on or the to was were with"
_STOP_WORDS = frozenset([*_FUNCTION_WORDS.split(), "according", "based", "reported", "said", "stated"])
_EAST_ASIAN_STOP_WORDS = _STOP_WORDS | frozenset("的了和与及或在是为于由从对等也并而其该此这那有年月日据称说")


def split_words(lower: str, tokenizer: Tokenizer) -> list[str]:
    """Return the words of a text in small letters; with ``auto`` every East Asian character is one."""
    if tokenizer == "words" or lower.isascii():
        return _WORD.findall(lower)
    return _WORD.findall(separate_east_asian(lower, keep_marks=False))


def content_words(words: Sequence[str], tokenizer: Tokenizer) -> frozenset[str]:
    """Return the words without stop words."""
    return frozenset(words) - (_STOP_WORDS if tokenizer == "words" else _EAST_ASIAN_STOP_WORDS)


def paired_words(words: Sequence[str], tokenizer: Tokenizer) -> frozenset[str]:
    """Return the words without stop words, with each two neighbouring East Asian characters as one.

    Single characters are shared by unlike names: 新华社 and 新浪 have a third of theirs in common.
    """
    if tokenizer == "words":
        return content_words(words, tokenizer)
    terms: set[str] = set()
    before = after = False
    for place, word in enumerate(words):
        before, alone = after, not is_east_asian(word)
        after = place + 1 < len(words) and not alone and is_east_asian(words[place + 1])
        if after:
            terms.add(word + words[place + 1])
        elif not before:
            terms.add(word)
    return frozenset(terms) - _EAST_ASIAN_STOP_WORDS - frozenset(load_taxonomy("citations")["zh"]["stop_words"])


Kind: TypeAlias = Literal["url", "name", "number"]

_SHORTEST_NAME = 3

_BODIES = "Agency|Bank|Board|Bureau|Commission|Department|Institute|Organization|University"
_MEDIA = "Guard|Index|Journal|News|Post|Press|Report|Survey|Times"
_SAYS = "confirmed|found|indicated|reported|said|says|showed|stated"
_LONGEST_BODY = max(map(len, _BODIES.split("|")))

# Addresses and numbers
_ADDRESS_END = re.compile(r"[],)\s]")
_ADDRESS = re.compile(r"https?://.+")
_PERCENTAGE = re.compile(r"(?<!\d)\d++(?:\.\d++)?%")
_LARGE_NUMBER = re.compile(r"(?<!\w)\d{1,3}(?:,\d{3}(?!\w))+")

# Stretches of text within which a name is looked for
_CLAUSE = re.compile(r"[^.,;]+")
_PLAIN = r"&\sA-Za-z"
_PHRASE = re.compile(f"[{_PLAIN}]+")
_DOTTED_PHRASE = re.compile(f"[{_PLAIN}.]+")
_CAPITALS = re.compile(r"[A-Z]{2,}")

# Where a name begins and ends in one
_CAPITAL = re.compile(r"(?=[A-Z])")
_ACCORDING_TO = re.compile(r"[Aa]ccording to ")
_INTRODUCTIONS = tuple(f"{first}ccording to {article}" for first in "Aa" for article in ("", "the "))
_BASED_ON = re.compile(r"[Bb]ased on ")
_BASIS = re.compile(r"analysis|data|report|study|survey")
_THE = re.compile(r"[Tt]he (?=[A-Z])")
_STUDY = re.compile(r"Index|Report|Study|Survey")
_PUBLISHER_SAYS = re.compile(rf"(?:{_BODIES}|{_MEDIA})(?=\s++(?:{_SAYS}))")
_BODY_AT_END = re.compile(rf"(?:{_BODIES})\Z")
_FINDINGS = re.compile(r"\s++(?:data|found|report|stated|survey)")


class Citation(NamedTuple):
    """Something that a text cites, and of what kind it is."""

    text: str
    kind: Kind


def find_citations(text: str) -> list[Citation]:
    r"""Return the citations of a text, each once, sorted.

    * Addresses: ``http://`` or ``https://`` up to white space, ``)``, ``]`` or ``,``.
    * Names of three characters or more: what follows "according to", up to a comma, full stop or semicolon; a
      capitalised phrase that ends in a word such as University, Bank, Times or Report and is followed by a word such as
      reported, found or said, or (for bodies) by ``'s``; what follows "based on", up to the last data, report, survey,
      study or analysis of the clause; a capitalised phrase after "the" that ends in Report, Survey, Index or Study;
      two or more capitals after "according to" or before data, report, survey, found or stated.
    * Percentages (``4.25%``) and numbers with separators of thousands (``1,234``).

    It takes time proportional to the length of any text: where a phrase could begin or end in many places, the first
    and the last are looked up instead of tried out.

    >>> [citation.text for citation in find_citations("According to the Harbour Bank, rates rose 4.25%.")]
    ['4.25%', 'the Harbour Bank']
    """
    numbers = {match.group() for pattern in (_PERCENTAGE, _LARGE_NUMBER) for match in pattern.finditer(text)}
    kinds: dict[str, Kind] = dict.fromkeys(numbers, "number")
    kinds |= dict.fromkeys((text[start:end] for start, end in find_names(text)), "name")
    kinds |= dict.fromkeys(_addresses(text), "url")
    return [Citation(*item) for item in sorted(kinds.items())]


def _addresses(text: str) -> Iterator[str]:
    for piece in _ADDRESS_END.split(text):
        if address := _ADDRESS.search(piece):
            yield address.group()


def find_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each name that `find_citations` returns, as often as a pattern finds it."""
    for start, end in _names(text):
        name = text[start:end]
        if len(name.strip()) >= _SHORTEST_NAME:
            yield end - len(name.lstrip()), start + len(name.rstrip())


def _names(text: str) -> Iterator[tuple[int, int]]:
    for run in _CAPITALS.finditer(text):
        yield from _abbreviation(text, *run.span())
    for run in _CLAUSE.finditer(text):
        yield from _attribution(text, *run.span())
        yield from _stretch(text, *run.span(), _BASED_ON, _BASIS, 1)
    for run in _DOTTED_PHRASE.finditer(text):
        yield from _stretch(text, *run.span(), _CAPITAL, _PUBLISHER_SAYS, 2)
    for run in _PHRASE.finditer(text):
        yield from _owner(text, *run.span())
        yield from _stretch(text, *run.span(), _THE, _STUDY, 2)


def _abbreviation(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield capitals that "according to" introduces, or that are said to have found something."""
    if text.endswith(_INTRODUCTIONS, 0, start) or _FINDINGS.match(text, end):
        yield start, end


def _attribution(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield what follows the first "according to" of a clause."""
    opening = _ACCORDING_TO.search(text, start, end)
    if opening and opening.end() < end:
        yield opening.end(), end


def _stretch(
    text: str, start: int, end: int, opening: re.Pattern[str], closing: re.Pattern[str], least: int
) -> Iterator[tuple[int, int]]:
    """Yield the text behind the first opening, up to the end of the last closing that is so many characters behind."""
    first = opening.search(text, start, end)
    last = _last(closing, text, first.end() + least, end) if first else None
    if first and last:
        yield first.end(), last.end()


def _owner(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the phrase from the first capital to the end, if that is a body and ``'s`` follows."""
    if not text.startswith("'s", end):
        return
    capital = _CAPITAL.search(text, start, end)
    # Only the end of the phrase matters.
    tail = max(end - _LONGEST_BODY, capital.start() + 2) if capital else end
    if capital and _BODY_AT_END.search(text, tail, end):
        yield capital.start(), end


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text, start, end), maxlen=1)), None)


_SCHEME = re.compile(r"https?://(?!/|\Z)")


def original_citations(text: str, listed: Sequence[EvidenceSource]) -> Iterator[str]:
    """Yield the citations of a text that are not among the listed sources."""
    known = {each for source in listed for each in (source.text, *source.urls)}
    return (each.text for each in find_citations(text) if each.text not in known)


class OriginalPiece:
    """A piece of evidence, with the values needed to compare it."""

    def __init__(self, source: EvidenceSource, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.source = source
        self.lower = source.text.lower()
        self.host = _host(source.text)
        # A plain citation has no addresses: that the text of a source is one is the business of `host`.
        self.addresses = frozenset(source.urls)

    @cached_property
    def hosts(self) -> frozenset[str | None]:
        """The hosts of all addresses."""
        return frozenset({self.host, *map(_host, self.addresses)})

    @cached_property
    def words(self) -> frozenset[str]:
        """The words without stop words."""
        return content_words(split_words(self.lower, self._tokenizer), self._tokenizer)

    def reason(self, gold: "OriginalPiece") -> str:
        """Return why this citation matches a source regardless of its words; empty if the words decide."""
        if self.lower in gold.lower or gold.lower in self.lower:
            return "contains"
        if not self.addresses.isdisjoint(gold.addresses):
            return "address"
        listed = gold.source.text in gold.addresses
        return "host" if gold.host is not None and gold.host in (self.hosts if listed else {self.host}) else ""


def _host(text: str) -> str | None:
    scheme = _SCHEME.search(text)
    return text[scheme.end() :].partition("/")[0] if scheme else None
