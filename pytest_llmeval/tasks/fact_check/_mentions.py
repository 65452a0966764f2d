"""What a text cites."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from pytest_llmeval.data import Taxonomy

_CLOSING = (
    r"\s<>\[\]{}\"`|\\^\u00b7\u2018-\u201f\u2026\u2013\u2014"
    r"\u3000-\u3003\u3008-\u3011\u3014-\u301f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_BODY = rf"(?:(?![,;](?:[^\x00-\x7f]|https?://|www\.))[^{_CLOSING}])"
_WITH_SCHEME = re.compile(rf"(?:https?://|(?<![\w@./-])www\.(?=\w)){_BODY}++", re.IGNORECASE)
_BARE = re.compile(rf"(?<![\w@.:/-])[a-z\d-]++(?:\.[a-z\d-]++)++(?::\d++)?(?:/{_BODY}*+)?", re.IGNORECASE)
_MAY_BE_ADDRESS = re.compile(r"\.[a-z]|www\.", re.IGNORECASE)
"""Every host has a label that begins with a letter, behind a full stop."""
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_PLAIN_ADDRESS = re.compile(
    r"(?:https?://)?+(?P<host>(?:[a-z\d-]++\.)++[a-z][a-z\d-]*+)(?P<path>(?:/[\w~-][\w.~-]*+)*+)/?", re.ASCII
)
"""An address that is its own canonical form, but for scheme, ``www.`` and a slash at the end."""
_HOST_END = re.compile(r"[:/]")
_TRAILING = ".,;:!?'*"
_READ_ON = re.compile(r"[,;]|[^\x00-\x7f]")
_ROUTES = ("/", "!")


def find_addresses(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each web address in a text in order, without the punctuation behind it.

    An address begins with ``http://``, ``https://`` or ``www.``, or is a host such as ``example.org`` with a path or a
    well-known ending. It ends at white space, quotes, square brackets and Chinese punctuation; a round bracket belongs
    to it if it was opened in it.
    """
    if "://" not in text and ("." not in text or not _MAY_BE_ADDRESS.search(text)):  # as most names of sources
        return
    spans = [match.span() for match in _WITH_SCHEME.finditer(text)]
    spans += [match.span() for match in _BARE.finditer(text) if _is_host(text, match)]
    end = 0
    for first, last in sorted(spans):
        if first < end:
            continue
        end = last
        stop = first + len(_trimmed(text[first:last]))
        if canonical_address(text[first:stop]) is not None:
            yield first, stop


def _is_host(text: str, match: re.Match[str]) -> bool:
    """Whether a match in a cited text is a web host by its ending or path, and not part of an email address."""
    host, _, path = match[0].partition("/")
    ending = host.partition(":")[0].rpartition(".")[2]
    if text[match.end() : match.end() + 1] == "@":
        return False
    return ending in _data()["endings"] or ("/" in match[0] and bool(path) and ending.isalpha() and len(ending) > 1)


def _trimmed(address: str) -> str:
    """A cited web address without punctuation or an unopened closing bracket at its end."""
    depth = 0
    for place, char in enumerate(address):
        depth += (char == "(") - (char == ")")
        if depth < 0:
            address = address[:place]
            break
    return address.rstrip(_TRAILING)


def is_unusual_address(text: str) -> bool:
    """Whether a cited text is an address of any scheme: scheme, host, and no white space in them."""
    return _SCHEME.match(text) is not None and not re.search(r"\s", text) and canonical_address(text) is not None


def readings(address: str) -> Iterator[str]:
    """Yield a cited web address as written, and a shorter reading without what may be the following text.

    Commas, semicolons and letters beyond ASCII may belong to an address or to the sentence round it.
    """
    yield address
    scheme = _SCHEME.match(address)
    doubtful = _READ_ON.search(address, scheme.end() if scheme else 0)
    if doubtful:
        yield _trimmed(address[: doubtful.start()])


@lru_cache(maxsize=4096)
def canonical_address(text: str) -> str | None:
    """Host, path and query of a cited web address, the same for all its spellings; ``None`` for other texts.

    Scheme, ``www.``, default port, user, fragment, a slash at the end, the order of parameters and those that only
    track readers do not matter; a host in any script equals its form in ASCII. A fragment that a page routes by
    (``#/`` or ``#!``) belongs to the address.

    >>> canonical_address("HTTPS://www.Example.org:443/news/?b=2&a=1&utm_source=x#top")
    'example.org/news?a=1&b=2'
    """
    text = text.strip()
    plain = _PLAIN_ADDRESS.fullmatch(text)
    if plain and "." in (host := plain["host"].removeprefix("www.")):  # yarl takes ten times as long
        return host + plain["path"]
    from yarl import URL

    try:
        url = URL(text if _SCHEME.match(text) else f"https://{text}")
        port = url.explicit_port
        host = (url.raw_host or "").lower().rstrip(".").removeprefix("www.")
    except (ValueError, IndexError):  # the latter comes from yarl for brackets that hold no address
        return None
    if not host or not ("." in host or _SCHEME.match(text)):
        return None
    usual = {"http": 80, "https": 443}[url.scheme]
    query = sorted(part for part in url.raw_query_string.split("&") if part and not _tracks(part.partition("=")[0]))
    route = url.raw_fragment if url.raw_fragment.startswith(_ROUTES) else ""
    return "".join(
        (
            host,
            "" if port in (None, usual) else f":{port}",
            url.raw_path.rstrip("/"),
            f"?{'&'.join(query)}" if query else "",
            f"#{route.rstrip('/')}" if route else "",
        )
    )


def site_name(canonical: str) -> str:
    """The site's name in a canonical web address, without its ending, by which citations name a source.

    >>> site_name("news.bbc.co.uk/world")
    'bbc'
    """
    labels = _HOST_END.split(canonical, maxsplit=1)[0].split(".")
    labels = labels[:-1] or labels
    if len(labels) > 1 and labels[-1] in _data()["second_level"]:
        labels.pop()
    return labels[-1]


def _tracks(name: str) -> bool:
    """Whether a parameter of a cited address only tracks visitors, so that it does not identify the page."""
    name = name.lower()
    return name in _data()["tracking"] or name.startswith(_prefixes())


@cache
def _data() -> Mapping[str, frozenset[str]]:
    """The word lists for reading addresses in citations (host endings, tracking parameters)."""
    data: Mapping[str, Any] = Taxonomy("citations").load()["addresses"]
    return {key: frozenset(values) for key, values in data.items()}


@cache
def _prefixes() -> tuple[str, ...]:
    """The prefixes by which tracking parameters of cited addresses are recognized."""
    return tuple(sorted(name.removesuffix("*") for name in _data()["tracking"] if name.endswith("*")))


_PLAIN = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_DIGIT = re.compile(r"\d")
_PLUS_MINUS = "\u2212+-"
_SHORT = 4
_NARROW = {code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), 0xFF0E, 0xFF05, 0xFF0B, 0xFF0D)}
"""Full-width digits, point, percent and signs to their usual forms; no place moves."""
_WIDE = re.compile(f"[{''.join(map(chr, _NARROW))}]")
_DIGITS = 40
"""Longer numbers are compared as written."""


class Quantity(NamedTuple):
    """A number, share or amount that a text cites.

    Attributes:
        key: The same for all spellings of the same number with the same unit: ``5.2%`` for ``5.20 percent``.
        start: Where it begins, sign and currency included.
        end: Where it ends, unit included.
        citable: Whether it is a percentage, or has separators of thousands or a word such as million.
    """

    key: str
    start: int
    end: int
    citable: bool


def find_quantities(text: str) -> Iterator[Quantity]:
    """Yield the numbers, shares and amounts in a text, by which citations are compared.

    A number is a whole run of digits with its separators, so there is no 5.2 in 15.2 or 5.2.1, and none in a word such
    as G20. Scale and unit belong to it: 1.2 million is 1,200,000 and 5.2% is neither 5.2 nor 5.2 percentage points.

    >>> [each.key for each in find_quantities("It rose 5.2 % to 1.2 million (百分之15.20, not 5.2 percentage points).")]
    ['5.2%', '1200000', '15.2%', '5.2points']
    """
    if not text.isascii():
        if _WIDE.search(text):
            text = text.translate(_NARROW)
        if "百" in text or "成" in text:
            yield from _chinese_shares(text)
    for match in _numbers(text):
        if text.startswith("成", match.end()) and _TENTHS_AHEAD.match(text, match.end()):
            continue  # 3成
        sign, number, scale, unit = match["sign"], match["number"], match["scale"], match["unit"]
        signs, words = _units()
        named = signs.get(_folded(sign.lstrip(_PLUS_MINUS).strip()))
        if named and unit == "m":  # no length has a currency
            scale, unit = "million", None
        named = named or words.get(_folded(unit or ""), "")
        value = _value(number, scale)
        minus = "-" if sign.startswith(("-", "\u2212")) and value != "0" else ""
        is_large = scale is not None or "," in number
        citable = named in ("%", "\u2030") or (is_large and _PLAIN.fullmatch(number) is not None)
        yield Quantity(f"{minus}{value}{named}", match.start(), match.end(), citable)


def _numbers(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of numbers in a cited text, which are looked for near digits only."""
    end = 0
    while digit := _DIGIT.search(text, end):
        match = _pattern().search(text, max(digit.start() - _longest_sign(), end))
        if match is None:
            return
        yield match
        end = match.end()


_NUMERALS = {numeral: value for value, numeral in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_PLACES = {"十": 10, "百": 100}
_SHARE = re.compile("百分之(?P<percent>[零〇一二两三四五六七八九十百]+(?:点[零〇一二三四五六七八九]+)?)")
_NO_TENTHS = "(?![立功为员本就果分长熟绩])"
"""成 begins another word before these."""
_TENTHS = re.compile(
    r"(?<![\d.])(?P<tenths>\d{1,2}(?:\.\d+)?|[一二两三四五六七八九十])成(?P<more>[一二三四五六七八九半])?" + _NO_TENTHS
)
_TENTHS_AHEAD = re.compile("成" + _NO_TENTHS)


def _chinese_shares(text: str) -> Iterator[Quantity]:
    """Yield the percentages that are written in Chinese words, such as 百分之五点二, and tenths, such as 三成."""
    for match in _SHARE.finditer(text):
        whole, _, fraction = match["percent"].partition("点")
        value = Decimal(_whole_number(whole)) + Decimal(f"0.{''.join(str(_NUMERALS[digit]) for digit in fraction)}")
        yield Quantity(f"{value.normalize():f}%", match.start(), match.end(), citable=True)
    for match in _TENTHS.finditer(text):
        tenths, more = match["tenths"], match["more"]
        value = Decimal(tenths if tenths[0].isdecimal() else _whole_number(tenths)) * 10
        value += 5 if more == "半" else _NUMERALS.get(more, 0)
        yield Quantity(f"{value.normalize():f}%", match.start(), match.end(), citable=True)


def _whole_number(numerals: str) -> int:
    """A whole number below 1,000 in Chinese words, in a cited quantity."""
    total, digit = 0, None
    for numeral in numerals:
        if numeral in _PLACES:
            total, digit = total + (1 if digit is None else digit) * _PLACES[numeral], None
        else:
            digit = _NUMERALS[numeral] if digit is None else digit * 10 + _NUMERALS[numeral]
    return total + (digit or 0)


def _value(number: str, scale: str | None) -> str:
    """The normal form of a cited quantity, with its scale word (such as million) multiplied out."""
    if not _PLAIN.fullmatch(number) or len(number) > _DIGITS:
        return f"{number}{_folded(scale or '')}"
    value = Decimal(number.replace(",", "")) * _scales().get(_folded(scale or ""), 1)
    return f"{value.normalize():f}"


@cache
def _pattern() -> re.Pattern[str]:
    """The regular expression of a cited quantity with sign, scale and unit; it looks back a few characters only."""
    signs, words = _units()
    sign = rf"(?:(?<![A-Za-z\d_%\uff05)\]])[{_PLUS_MINUS}])?(?:(?:{_any_unit(signs)})[ \u00a0]?)?"
    after = rf"(?:[ \u00a0]?(?P<scale>{_any_unit(_scales())}))?+(?:[ \u00a0]?(?P<unit>{_any_unit(words)}))?+"
    return re.compile(rf"(?<![A-Za-z\d_])(?<!\d[.,])(?P<sign>{sign})(?P<number>\d++(?:[.,]\d++)*+){after}")


def _any_unit(names: Iterable[str]) -> str:
    """A pattern for any name of a unit, longest first; Latin letters match whole words only."""
    patterns = []
    for name in sorted(names, key=len, reverse=True):
        pattern = re.escape(name) if len(name) < _SHORT else f"(?i:{re.escape(name)})"
        patterns.append(rf"{pattern}(?![A-Za-z])" if name[-1].isascii() and name[-1].isalpha() else pattern)
    return "|".join(patterns)


def _folded(name: str) -> str:
    """A unit or scale word of a cited quantity in lower case; short ones keep their case, which tells them apart."""
    return name if len(name) < _SHORT else name.lower()


@cache
def _units() -> tuple[dict[str, str], dict[str, str]]:
    """The unit of each sign and each word that cited quantities use."""
    units = Taxonomy("citations").load()["units"]
    signs = {_folded(name): unit for unit, spellings in units.items() for name in spellings.get("signs", ())}
    words = {_folded(name): unit for unit, spellings in units.items() for name in spellings["words"]}
    return signs, words


@cache
def _longest_sign() -> int:
    """The most characters of a cited quantity in front of its first digit: minus, currency and space."""
    return max(map(len, _units()[0])) + 2


@cache
def _scales() -> dict[str, int]:
    """The factor of each scale word (such as million) of cited quantities."""
    scales = Taxonomy("citations").load()["scales"]
    return {_folded(name): int(factor) for factor, names in scales.items() for name in names}


_CAPITALISED = r"[A-Z][\w&\u2019-]*+"
_INITIALS = r"(?:(?<!\w)(?<!\b[A-Z]\.)(?:[A-Z]\.){2,}+\x20)?"
_NAME = re.compile(rf"{_INITIALS}{_CAPITALISED}(?:\x20(?:(?:and|for|of|the|&)\x20(?:the\x20)?)?{_CAPITALISED})*+")
_YEAR = r"(?:\s?\(\d{4}[a-z]?\))?"
_CITED_YEAR = re.compile(r"(?: et al\.)?(?:,?\s\(?)(?:1[6-9]|20)\d{2}[a-z]?\)")
"""Follows the name of a cited source: the year in brackets, or name and year in brackets."""
_CLAUSE = re.compile(r"[^\u3002\uff01\uff1f\uff1b\uff0c\u3001\uff1a!?;,:\n()\uff08\uff09]+")
_MARKS = " \t\u200b\u3000\"'*\u2018\u2019\u201c\u201d\u300a\u300b\u300c\u300d"
_GLOSS = re.compile(r"[(\uff08](?<=[\u4e00-\u9fff].)[A-Za-z][A-Za-z .&'\u2019-]{0,60}[)\uff09]")
_COLONS = ":\uff1a"
_SENTENCE_ENDS = "\n\u3002\uff01\uff1f\uff1b"
_SHORTEST_HEAD = 3
_TITLE = re.compile("[\u3000 ]?\u300a([^\u300a\u300b]{2,30})\u300b")
_PART = re.compile("[^\u53ca\u548c\u4e0e]+")
_HAN = re.compile("[\u4e00-\u9fff]")
_LONGEST = 30
_SHORTEST = 2
_NEAR = 6
"""Characters that may stand between a title and the verb."""


def find_attributions(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each name that a text cites as a source; ``taxonomies/citations.yaml`` has the words.

    >>> text = "Reuters (2023) says so, as per the BBC. 根据国家统计局的数据，上升。外交部发言人昨日表示，属实。"
    >>> [text[start:end] for start, end in find_attributions(text)]
    ['Reuters', 'BBC', '国家统计局', '外交部发言人']
    """
    yield from _english(text)
    if not text.isascii() and _HAN.search(text):
        stretches = list(_unglossed(text))
        if len(stretches) == 1:
            yield from _chinese(text)
            return
        places = [place for start, end in stretches for place in range(start, end)]
        plain = "".join(text[place] for place in places)
        yield from ((places[start], places[end - 1] + 1) for start, end in _chinese(plain))


def _unglossed(text: str) -> Iterator[tuple[int, int]]:
    """Yield a text's stretches between the bracketed translations that follow Chinese names."""
    start = 0
    for gloss in _GLOSS.finditer(text):
        yield start, gloss.start()
        start = gloss.end()
    yield start, len(text)


def _english(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of names that an English text cites as sources ("according to ...", "... (2020) found")."""
    words = _english_words()
    for match in _NAME.finditer(text):
        start, end = match.start(), match.end()
        if words.introduction.search(text, max(start - _LONGEST, 0), start):
            yield start, end
        elif _is_cited_by_year(text, start, end) or words.saying.match(text, end):
            start = _without_openers(text, start, end, words.no_names)
            if start < end:
                yield start, end


def _is_cited_by_year(text: str, start: int, end: int) -> bool:
    """Whether a year in brackets follows a name, or both are in brackets that do not explain another name."""
    if not _CITED_YEAR.match(text, end):
        return False
    if text[start - 1 : start] != "(":
        return text[end : end + 1] != ","
    before = text[max(start - _LONGEST, 0) : start - 1].split()
    return not (before and before[-1][:1].isupper())


def _without_openers(text: str, start: int, end: int, no_names: frozenset[str]) -> int:
    """The start of a cited name behind words that only begin the sentence."""
    while start < end:
        word = text[start:end].partition(" ")[0]
        if word not in no_names and not word.islower():
            break
        start = min(start + len(word) + 1, end)
    return start


def _chinese(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of names that a Chinese text cites as sources."""
    words = _chinese_words()
    is_source = False
    for clause in _CLAUSE.finditer(text):
        start, end = clause.span()
        before, after = text[max(start - 1, 0) : start], text[end : end + 1]
        is_source = (is_source and before == "\u3001") or (
            before in tuple(_COLONS) and words.sources.search(text, 0, start - 1) is not None
        )
        if is_source:
            yield from words.introduced(text, start, end)
            continue
        if after in tuple(_COLONS) and (not before or before in _SENTENCE_ENDS):
            head = words.name(text, start, end)
            if head and head[1] - head[0] >= _SHORTEST_HEAD and words.body.fullmatch(text, *head):
                yield head
                continue
        opening = words.opening.search(text, start, end)
        if opening:
            yield from words.introduced(text, opening.end(), end)
            continue
        for saying, by_body in ((words.body_says, True), (words.speaker_says, False)):
            verb = saying.search(text, start, end)
            names = words.speakers(text, start, verb.start(), by_body=by_body) if verb else []
            yield from names
            if names:
                break


class _English(NamedTuple):
    """Patterns and words by which English citations of a named source are found."""

    introduction: re.Pattern[str]
    saying: re.Pattern[str]
    no_names: frozenset[str]


class _Chinese(NamedTuple):
    """Patterns and words by which Chinese citations of a named source are found."""

    opening: re.Pattern[str]
    sources: re.Pattern[str]
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
    """Compile the patterns for English citations from the shipped word lists."""
    data: Any = Taxonomy("citations").load()["en"]
    introduction = re.compile(rf"(?<!\w)(?i:{_any_of(data['before_name'])})\s(?:the\s)?\Z")
    return _English(
        introduction,
        re.compile(rf"{_YEAR}\s(?:(?:{_any_of(data['adverbs'])})\s)?(?:{_any_of(data['after_name'])})(?!\w)"),
        frozenset(data["no_names"]),
    )


@cache
def _chinese_words() -> _Chinese:
    """Compile the patterns for Chinese citations from the shipped word lists."""
    data: Any = Taxonomy("citations").load()["zh"]
    before = _any_of(name for name in data["before_name"] if name != "据")
    bodies, titles = _any_of(data["bodies"]), _any_of(data["titles"])
    return _Chinese(
        opening=re.compile(rf"{before}|(?<![{data['not_before']}])据"),
        sources=re.compile(rf"(?:{_any_of(data['source_labels'])})[ \u3000]?\Z"),
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
    """A regular expression for any word of a citation word list, longest first."""
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


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
_STRETCH = re.compile(r"[^.,;]+")
_NAME_CHARACTERS = r"&\sA-Za-z"
_PHRASE = re.compile(f"[{_NAME_CHARACTERS}]+")
_DOTTED_PHRASE = re.compile(f"[{_NAME_CHARACTERS}.]+")
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
    """An address, name or quantity that a text cites, with its kind."""

    text: str
    kind: Kind


def find_citations(text: str) -> list[Citation]:
    r"""Return the addresses, names and quantities that a text cites, each once, sorted.

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
    """Yield the web addresses in a piece of cited text."""
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
    """Yield names that a text cites; patterns run only if their words occur in the text, as most do not."""
    for run in _CAPITALS.finditer(text):
        yield from _abbreviation(text, *run.span())
    yield from _introduced(text, _ACCORDING_TO)
    for start, end in _introduced(text, _BASED_ON):
        if last := _last(_BASIS, text, start + 1, end):
            yield start, last.end()
    for run in _DOTTED_PHRASE.finditer(text) if _PUBLISHER_SAYS.search(text) else ():
        yield from _stretch(text, *run.span(), _CAPITAL, _PUBLISHER_SAYS, 2)
    for run in _PHRASE.finditer(text) if "'s" in text or _STUDY.search(text) else ():
        yield from _owner(text, *run.span())
        yield from _stretch(text, *run.span(), _THE, _STUDY, 2)


def _abbreviation(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield capitals (such as WHO) that "according to" introduces, or that are said to have found something."""
    if text.endswith(_INTRODUCTIONS, 0, start) or _FINDINGS.match(text, end):
        yield start, end


def _introduced(text: str, opening: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield the rest of each clause in which a name is cited, behind the first opening such as "according to"."""
    end = 0
    for match in opening.finditer(text):
        if match.start() < end:
            continue
        clause = _STRETCH.match(text, match.end())
        if clause:
            end = clause.end()
            yield clause.span()


def _stretch(
    text: str, start: int, end: int, opening: re.Pattern[str], closing: re.Pattern[str], least: int
) -> Iterator[tuple[int, int]]:
    """Yield the text behind the first opening, up to the end of the last closing that is so many characters behind."""
    first = opening.search(text, start, end)
    last = _last(closing, text, first.end() + least, end) if first else None
    if first and last:
        yield first.end(), last.end()


def _owner(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the cited body in front of ``'s``, from the first capital of the phrase."""
    if not text.startswith("'s", end):
        return
    capital = _CAPITAL.search(text, start, end)
    # Only the end of the phrase matters.
    tail = max(end - _LONGEST_BODY, capital.start() + 2) if capital else end
    if capital and _BODY_AT_END.search(text, tail, end):
        yield capital.start(), end


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    """The last match of a citation pattern in a part of a text."""
    return next(iter(deque(pattern.finditer(text, start, end), maxlen=1)), None)
