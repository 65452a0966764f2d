"""Citations in a text: addresses, names of sources, percentages and large numbers, in linear time."""

__all__ = ("Citation", "Kind", "find_citations", "find_names")

import re
from collections import deque
from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

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
_CAPITAL = re.compile(r"[A-Z]")
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
    r"""Return what a text cites, each once, sorted.

    * Addresses: ``http://`` or ``https://`` up to white space, ``)``, ``]`` or ``,``.
    * Names of three characters or more: what follows "according to", up to a comma, full stop or semicolon; a
      capitalised phrase that ends in a word such as University, Bank, Times or Report and is followed by a word such as
      reported, found or said, or (for bodies) by ``'s``; what follows "based on", up to the last data, report, survey,
      study or analysis of the clause; a capitalised phrase after "the" that ends in Report, Survey, Index or Study;
      two or more capitals after "according to" or before data, report, survey, found or stated.
    * Percentages (``4.25%``) and numbers with separators of thousands (``1,234``).

    The time that it takes is proportional to the length of the text, whatever the text: where a phrase could begin or
    end in many places, the first and the last are looked up instead of tried out.

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
        yield from _basis(text, *run.span())
    for run in _DOTTED_PHRASE.finditer(text):
        yield from _publisher(text, *run.span())
    for run in _PHRASE.finditer(text):
        yield from _owner(text, *run.span())
        yield from _study(text, *run.span())


def _abbreviation(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield capitals that "according to" introduces, or that are said to have found something."""
    if text.endswith(_INTRODUCTIONS, 0, start) or _FINDINGS.match(text, end):
        yield start, end


def _attribution(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield what follows the first "according to" of a clause."""
    opening = _ACCORDING_TO.search(text, start, end)
    if opening and opening.end() < end:
        yield opening.end(), end


def _basis(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield what follows the first "based on" of a clause, up to its last word such as data."""
    opening = _BASED_ON.search(text, start, end)
    closing = _last(_BASIS, text, opening.end() + 1, end) if opening else None
    if opening and closing:
        yield opening.end(), closing.end()


def _publisher(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the phrase from the first capital to the last publisher with a verb of reporting."""
    capital = _CAPITAL.search(text, start, end)
    closing = _last(_PUBLISHER_SAYS, text, capital.start() + 2, end) if capital else None
    if capital and closing:
        yield capital.start(), closing.end()


def _owner(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the phrase from the first capital to the end, if that is a body and ``'s`` follows."""
    if not text.startswith("'s", end):
        return
    capital = _CAPITAL.search(text, start, end)
    # Only the end of the phrase need be looked at.
    tail = max(end - _LONGEST_BODY, capital.start() + 2) if capital else end
    if capital and _BODY_AT_END.search(text, tail, end):
        yield capital.start(), end


def _study(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the phrase from the first capital after "the" to the last word such as Report."""
    opening = _THE.search(text, start, end)
    closing = _last(_STUDY, text, opening.end() + 2, end) if opening else None
    if opening and closing:
        yield opening.end(), closing.end()


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text, start, end), maxlen=1)), None)
