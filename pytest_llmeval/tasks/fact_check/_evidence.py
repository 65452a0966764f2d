"""Matching of cited evidence with listed sources."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct

from pytest_llmeval.data import Taxonomy
from pytest_llmeval.evaluators import EvidenceSource, is_east_asian, separate_east_asian
from pytest_llmeval.tasks.fact_check._mentions import (
    Quantity,
    canonical_address,
    find_addresses,
    find_attributions,
    find_citations,
    find_names,
    find_quantities,
    is_unusual_address,
    readings,
    site_name,
)

Tokenizer: TypeAlias = Literal["auto", "words"]


_WORD = re.compile(r"\w+")
_FUNCTION_WORDS = "a an and are as at but by for from in is of on or the to was were with"
_STOP_WORDS = frozenset([*_FUNCTION_WORDS.split(), "according", "based", "reported", "said", "stated"])
_EAST_ASIAN_STOP_WORDS = _STOP_WORDS | frozenset("的了和与及或在是为于由从对等也并而其该此这那有年月日据称说")


def split_words(lower: str, tokenizer: Tokenizer) -> list[str]:
    """The words of a citation's text in lower case; with ``auto`` every East Asian character is one."""
    if tokenizer == "words" or lower.isascii():
        return _WORD.findall(lower)
    return _WORD.findall(separate_east_asian(lower, keep_marks=False))


def content_words(words: Sequence[str], tokenizer: Tokenizer) -> frozenset[str]:
    """The words of a citation's text without stop words."""
    return frozenset(words) - (_STOP_WORDS if tokenizer == "words" else _EAST_ASIAN_STOP_WORDS)


def paired_words(words: Sequence[str], tokenizer: Tokenizer) -> frozenset[str]:
    """The words of a citation's text without stop words, with neighbouring East Asian characters in pairs.

    Single characters are shared by unlike names: 新华社 and 新浪 have a third of theirs in common.
    """
    if tokenizer == "words":
        return content_words(words, tokenizer)
    if "".join(words).isascii():
        return frozenset(words) - _paired_stop_words()
    characters = [not word.isascii() and is_east_asian(word) for word in words]
    if True not in characters:
        return frozenset(words) - _paired_stop_words()
    terms: set[str] = set()
    before = False
    for word, following, is_one, is_next in zip(
        words, [*words[1:], ""], characters, [*characters[1:], False], strict=True
    ):
        if is_one and is_next:
            terms.add(word + following)
        elif not before:
            terms.add(word)
        before = is_one and is_next
    return frozenset(terms) - _paired_stop_words()


@cache
def _paired_stop_words() -> frozenset[str]:
    """The English and Chinese stop words, which identify no cited source."""
    return _EAST_ASIAN_STOP_WORDS | frozenset(Taxonomy("citations").load()["zh"]["stop_words"])


_SCHEME = re.compile(r"https?://(?!/|\Z)")


def original_citations(text: str, listed: Sequence[EvidenceSource]) -> Iterator[str]:
    """Yield the citations of a text that are not among the listed sources."""
    known = {reference for source in listed for reference in (source.text, *source.urls)}
    return (citation.text for citation in find_citations(text) if citation.text not in known)


class OriginalPiece:
    """A cited or listed source with the values that ``original`` matching compares.

    Attributes:
        source: The evidence.
        lower: Its text in lower case.
        host: The host of its text, if that is an address.
        addresses: Those that are listed.
        hosts: The hosts of all addresses.
        words: The words without stop words.
    """

    def __init__(self, source: EvidenceSource, tokenizer: Tokenizer) -> None:
        self.source = source
        self.lower = source.text.lower()
        self.host = _host(source.text)
        # A plain citation has no addresses: that the text of a source is one is the business of `host`.
        self.addresses = frozenset(source.urls)
        self.hosts = frozenset({self.host, *map(_host, self.addresses)})
        self.words = content_words(split_words(self.lower, tokenizer), tokenizer)

    def reason(self, gold: "OriginalPiece") -> str:
        """The reason why this citation matches a source regardless of its words; empty if the words decide."""
        if self.lower in gold.lower or gold.lower in self.lower:
            return "contains"
        if not self.addresses.isdisjoint(gold.addresses):
            return "address"
        listed = gold.source.text in gold.addresses
        return "host" if gold.host is not None and gold.host in (self.hosts if listed else {self.host}) else ""


def _host(text: str) -> str | None:
    """The part of a cited address between its scheme and path; ``None`` without a scheme."""
    scheme = _SCHEME.search(text)
    return text[scheme.end() :].partition("/")[0] if scheme else None


_BLANK = ";"
"""Stands for an address: no pattern of a name or a number reads on behind it."""

_BRACKET = re.compile(r"[()\uff08\uff09]")

_TITLES = "Bros|Co|Corp|Dept|Dr|Ft|Gov|Inc|Jr|Ltd|Mr|Mrs|Ms|Mt|Prof|Sen|Sr|St"
_ABBREVIATION = re.compile(rf"(?<![\w.])(?:(?:[A-Z]\.){{2,}}|(?:{_TITLES}|[A-Z])\.(?=\s[A-Z]))")

_LETTER = "x"
"""Stands for the full stop of an abbreviation, which ends no name."""

_NAMED = re.compile(r"[A-Z][\w&\u2019-]*+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")

_ADDRESS_STARTS = ("http://", "https://", "www.")


def citations_by_kind(text: str, listed: Sequence[EvidenceSource]) -> Iterator[str]:
    """Yield the addresses, names and numbers that a text cites, each once, without the addresses of listed sources."""
    known: set[str] = set()
    for source in listed:
        known |= _addresses_of(source, list(find_addresses(source.text)), cited=False)[1]
    spans = list(find_addresses(text))
    for start, end in spans:
        address = text[start:end]
        canonical = _canonical(readings(address))
        # A host alone, without "www.", is what companies are called.
        if ("/" in address or address.lower().startswith(_ADDRESS_STARTS)) and known.isdisjoint(canonical):
            known |= canonical
            yield address
    prose = _blanked(text, spans)
    yield from (prose[start:end] for start, end in _name_spans(prose))
    numbers: dict[str, str] = {}
    for quantity in find_quantities(prose):
        if quantity.citable:
            numbers.setdefault(quantity.key, prose[quantity.start : quantity.end])
    yield from numbers.values()


def claim_words(claim: str, tokenizer: Tokenizer) -> frozenset[str]:
    """The capitalised and East Asian words of a claim, which identify no cited source.

    The names of those to whom the claim is attributed are not among them.
    """
    prose = _blanked(claim, find_addresses(claim))
    named = _NAMED.findall(_blanked(prose, _name_spans(prose)))
    return Piece(EvidenceSource(f" {_BLANK} ".join(named)), tokenizer, cited=False).words


def _name_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of the names that a text without addresses cites."""
    read = _ABBREVIATION.sub(lambda match: match[0].replace(".", _LETTER), text)
    covered = bytearray(len(text))
    for start, end in find_names(_BRACKET.sub(_BLANK, read)):
        covered[start:end] = b"\1" * (end - start)
        yield start, end
    yield from ((start, end) for start, end in find_attributions(read) if 1 not in covered[start:end])


class Piece:
    """A cited or listed source with the values by which the matching compares it.

    Args:
        source: The evidence.
        tokenizer: Splits its text into words.
        cited: Whether it is cited, rather than listed.
        claim: What `claim_words` returns for the claim that it is about.

    Attributes:
        is_address: Whether it is an address without anything else.
        addresses: Those that are listed, and those in the text.
        is_quantity: Whether it is a number without anything else.
        quantities: The numbers in the text.
        figures: The numbers with a unit, and large ones, with separators of thousands or a word such as million.
        words: The words without stop words and those of the claim, numbers included.
    """

    def __init__(
        self, source: EvidenceSource, tokenizer: Tokenizer, *, cited: bool, claim: frozenset[str] = frozenset()
    ) -> None:
        self.source = source
        text = source.text
        spans = list(find_addresses(text))
        self.is_address, self.addresses = _addresses_of(source, spans, cited=cited)
        prose = _blanked(text, spans) if spans else text
        numbers = list(find_quantities(prose))
        self.is_quantity = bool(numbers) and not spans and _inside(text) == (numbers[0].start, numbers[0].end)
        self.quantities = frozenset([number.key for number in numbers])
        self.figures = frozenset([number.key for number in numbers if number.citable or not number.key[-1].isdigit()])
        self._sequence = _word_sequence(prose, numbers, tokenizer)
        self._joined = f" {' '.join(self._sequence)} " if self._sequence else ""
        self.words = paired_words(self._sequence, tokenizer) - claim
        # Besides those of the claim, it must have words of its own, unless it is an address or a number.
        self._may_identify = not claim or self.is_address or self.is_quantity or bool(self.words)

    def reason(self, gold: "Piece") -> str | None:
        """The reason why this citation matches a source: empty if its words must tell, ``None`` if they must not."""
        if not self.addresses.isdisjoint(gold.addresses):
            return "address"
        if self.source.text == gold.source.text:
            return "contains"
        if not (self._may_identify and gold._may_identify):  # noqa: SLF001 (the same class)
            return None
        if self.is_address or gold.is_address:
            return "host" if self._names_site_of(gold) or gold._names_site_of(self) else None  # noqa: SLF001 (the same class)
        if self.is_quantity or gold.is_quantity:
            number, other = (self, gold) if self.is_quantity else (gold, self)
            return "contains" if number.quantities <= other.quantities else None
        return self._reason_in_words(gold)

    def _reason_in_words(self, gold: "Piece") -> str | None:
        if self._joined and gold._joined and (self._joined in gold._joined or gold._joined in self._joined):  # noqa: SLF001 (the same class)
            return "contains"
        return None if self.figures and gold.figures and self.figures.isdisjoint(gold.figures) else ""

    def _names_site_of(self, other: "Piece") -> bool:
        """Whether this is the name of the site of an address, such as Reuters, and no address itself."""
        if self.addresses or not other.is_address:
            return False
        names = {"".join(self._sequence), "".join(word for word in self._sequence if word in self.words)}
        return any(site_name(address) in names for address in other.addresses)


def _addresses_of(
    source: EvidenceSource, spans: Sequence[tuple[int, int]], *, cited: bool
) -> tuple[bool, frozenset[str]]:
    """Whether a source is an address without anything else, and its addresses: the listed, and those in its text."""
    text = source.text
    is_address = spans[:1] == [_inside(text)] or is_unusual_address(text.strip())
    within = [text] if is_address else [text[start:end] for start, end in spans]
    if cited:
        within = [reading for address in within for reading in readings(address)]
    return is_address, frozenset(_canonical([*source.urls, *within]))


def _word_sequence(text: str, quantities: Iterable[Quantity], tokenizer: Tokenizer) -> list[str]:
    """The words of a source's text in order, each of its quantities being one."""
    words: list[str] = []
    behind = 0
    for quantity in quantities:
        words += split_words(text[behind : quantity.start].lower(), tokenizer)
        words.append(quantity.key)
        behind = quantity.end
    return words + split_words(text[behind:].lower(), tokenizer)


def _inside(text: str) -> tuple[int, int]:
    """The start and end of a citation's text without surrounding white space."""
    return len(text) - len(text.lstrip()), len(text.rstrip())


def _canonical(addresses: Iterable[str]) -> set[str]:
    """The canonical forms of cited addresses, without those that have none."""
    return {canonical for address in addresses if (canonical := canonical_address(address)) is not None}


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """A citation or claim with spans, such as its addresses, overwritten so that other positions stay the same."""
    parts, behind = [], 0
    for start, end in spans:
        parts += [text[behind:start], _BLANK * (end - start)]
        behind = end
    return "".join([*parts, text[behind:]])


EvidenceForm: TypeAlias = Literal["each_side", "original"]
EvidenceMatching: TypeAlias = Literal["by_kind", "original"]
_Reason: TypeAlias = Literal["contains", "address", "host", "words"]


class MatchedPair(Struct, frozen=True):
    """A citation and a source that it matches.

    Attributes:
        cited: The citation.
        gold: The source.
        why: ``contains`` (one text contains the other), ``address`` (both have the same one), ``host`` (one names the
            site that the other is on; in the original rules, both are on it) or ``words``.
        overlap: The share of words, where that is why.
    """

    cited: str
    gold: str
    why: _Reason
    overlap: float | None = None

    def __str__(self) -> str:
        share = "" if self.overlap is None else f" {self.overlap:.2f}"
        return f"{self.cited} = {self.gold} ({self.why}{share})"


class EvidenceMatch(Struct, frozen=True, dict=True):
    """The matches between cited evidence and gold evidence.

    Attributes:
        cited: The citations, sorted.
        gold: The sources, sorted.
        pairs: Every citation with every source that it matches.
        form: The form of precision.
    """

    cited: tuple[str, ...]
    gold: tuple[str, ...]
    pairs: tuple[MatchedPair, ...]
    form: EvidenceForm = "each_side"

    @cached_property
    def missed(self) -> tuple[str, ...]:
        """The sources that no citation matches."""
        matches = {pair.gold for pair in self.pairs}
        return tuple(text for text in self.gold if text not in matches)

    @cached_property
    def unmatched(self) -> tuple[str, ...]:
        """The citations that match no source."""
        matches = {pair.cited for pair in self.pairs}
        return tuple(text for text in self.cited if text not in matches)

    @property
    def matched_gold(self) -> int:
        """Number of sources that some citation matches."""
        return len(self.gold) - len(self.missed)

    @property
    def matched_cited(self) -> int:
        """The numerator of precision: the citations that match a source; in the original form, the matched sources."""
        return self.matched_gold if self.form == "original" else len(self.cited) - len(self.unmatched)

    @property
    def precision(self) -> float:
        """Matched citations by citations: 1 if no side has evidence, 0 if one has; see `EvidenceMatcher`."""
        return self._share(self.matched_cited, len(self.cited))

    @property
    def recall(self) -> float:
        """Matched sources by sources, in [0, 1]: 1 if no side has evidence, 0 if one has."""
        return self._share(self.matched_gold, len(self.gold))

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall; 0 if both are."""
        precision, recall = self.precision, self.recall
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    def _share(self, part: int, whole: int) -> float:
        if not self.cited and not self.gold:
            return 1.0
        return part / whole if self.cited and self.gold else 0.0


@dataclass(frozen=True)
class EvidenceMatcher:
    """Finds the evidence that a justification cites, and compares it with listed sources.

    With ``by_kind`` matching,

    1. what has an address matches what has the same address, regardless of other content: host, path and query are
       compared, not how they are written;
    2. an address alone matches nothing else, except the name of its site (Reuters for ``reuters.com/world``);
    3. a number alone matches a text with the same number in the same unit (5.2% is not in 15.2%);
    4. two other texts match if the words of one stand in the other, one after the other, or if of the words that are no
       stop words, ``shared / fewer of the two`` is `threshold` or more. A number with its unit is one word, and so are
       two neighbouring East Asian characters. If both have numbers with units, they must have one of these in common.

    What a claim is about, its capitalised and its East Asian words, identifies no source: in rules 2 and 4 these words
    count for nothing where the claim is known, unless the claim itself cites them.

    With ``original`` matching, any text matches if it contains the other, letter by letter; if both list
    the same address; if the first addresses of both are on the same host (of a source without content, any address);
    or by the share of words, East Asian characters being one each. Addresses and numbers are split into words there.

    Recall is the share of sources that are matched. Precision is the share of citations that match, in [0, 1]
    (``each_side``), or the number of *matched sources* by the number of citations (``original``), which is above 1
    where one citation matches several sources.

    Attributes:
        threshold: Least share of words, above 0 and up to 1.
        form: ``each_side`` or ``original``.
        tokenizer: ``auto``: runs of letters, digits and underscores are words, and Han, Kana and Hangul characters are
            words as above; ``words``: such characters make one word of each run, as in the original rule.
        matching: ``by_kind`` or ``original``; the latter also finds only what the original patterns cite.

    Raises:
        ValueError: An option has an impossible value.

    Example:
        >>> matcher = EvidenceMatcher()
        >>> cited = matcher.extract("According to the World Bank, growth was 4.25%.")
        >>> cited
        ['4.25%', 'the World Bank']
        >>> found = matcher.match(cited, ["World Bank outlook", "Central bank minutes"])
        >>> [str(pair) for pair in found.pairs], found.missed
        (['the World Bank = Central bank minutes (words 0.50)', 'the World Bank = World Bank outlook (words 1.00)'], ())
        >>> found.precision, found.recall
        (0.5, 1.0)
    """

    threshold: float = 0.3
    form: EvidenceForm = "each_side"
    tokenizer: Tokenizer = "auto"
    matching: EvidenceMatching = "by_kind"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.threshold) and 0 < self.threshold <= 1):
            raise ValueError(f"threshold: found {self.threshold!r}, expected a number above 0 and up to 1")
        choices: tuple[tuple[str, str, tuple[str, ...]], ...] = (
            ("form", self.form, ("each_side", "original")),
            ("tokenizer", self.tokenizer, ("auto", "words")),
            ("matching", self.matching, ("by_kind", "original")),
        )
        for option, value, known in choices:
            if value not in known:
                raise ValueError(f"{option}: found {value!r}, expected {' or '.join(known)}")

    def extract(self, justification: str, evidence_sources: Iterable[Any] = ()) -> list[str]:
        """Return the citations of a text and the sources of a list, each once, sorted.

        An address in the text that belongs to one of the sources is not a separate citation.

        Args:
            justification: The text.
            evidence_sources: Texts, or objects with ``content`` and ``url``.
        """
        return [source.text for source in self.sources(justification, evidence_sources)]

    def sources(self, justification: str, evidence_sources: Iterable[Any] = ()) -> list[EvidenceSource]:
        """Return the result of `extract`, with the addresses that belong to it."""
        listed = EvidenceSource.read_all(evidence_sources)
        cite = original_citations if self.matching == "original" else citations_by_kind
        return sorted(
            [*listed, *map(EvidenceSource, sorted(set(cite(justification, listed))))], key=lambda source: source.text
        )

    def match(self, cited: Iterable[Any], gold: Iterable[Any], claim: str = "") -> EvidenceMatch:
        """Match citations with sources; both are texts, objects with ``content`` and ``url``, or from `sources`.

        Args:
            cited: The citations.
            gold: The sources.
            claim: What they are about: its entities identify no source. Not used by ``original`` matching.
        """
        known = self._claim_words(claim)
        left, right = (
            [self._piece(source, known, cited=side is cited) for source in EvidenceSource.read_all(side)]
            for side in (cited, gold)
        )
        pairs = [pair for citation in left for other in right if (pair := self._pair(citation, other)) is not None]
        return EvidenceMatch(
            tuple(piece.source.text for piece in left),
            tuple(piece.source.text for piece in right),
            tuple(pairs),
            self.form,
        )

    def explain(self, cited: str, gold: str, claim: str = "") -> MatchedPair | None:
        """The reason why a citation matches a source of a claim; ``None`` if it does not."""
        known = self._claim_words(claim)
        return self._pair(
            self._piece(EvidenceSource(cited), known, cited=True),
            self._piece(EvidenceSource(gold), known, cited=False),
        )

    def _claim_words(self, claim: str) -> frozenset[str]:
        return claim_words(claim, self.tokenizer) if claim and self.matching != "original" else frozenset()

    def _piece(self, source: EvidenceSource, claim: frozenset[str], *, cited: bool) -> Piece | OriginalPiece:
        if self.matching == "original":
            return OriginalPiece(source, self.tokenizer)
        return Piece(source, self.tokenizer, cited=cited, claim=claim)

    def _pair(self, cited: Any, gold: Any) -> MatchedPair | None:
        texts = cited.source.text, gold.source.text
        reason = cited.reason(gold)
        if reason is None:
            return None
        if reason:
            return MatchedPair(*texts, cast("_Reason", reason))
        fewer = min(len(cited.words), len(gold.words))
        overlap = len(cited.words & gold.words) / fewer if fewer else 0.0
        return MatchedPair(*texts, "words", overlap) if overlap >= self.threshold else None
