"""Matching of cited evidence with listed sources: pairs with reasons, precision, recall and F1."""

__all__ = ("EvidenceForm", "EvidenceMatch", "EvidenceMatcher", "MatchedPair")

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pytest_llmeval.evaluators.measures.evidence_sources import Source, as_sources
from pytest_llmeval.evaluators.measures.scripts import separate_east_asian
from pytest_llmeval.tasks.fact_check.citations import find_citations

EvidenceForm: TypeAlias = Literal["each_side", "original"]

_WORD = re.compile(r"\w+")
_SCHEME = re.compile(r"https?://(?!/|\Z)")
_FUNCTION_WORDS = "a an and are as at but by for from in is of on or the to was were with"
_STOP_WORDS = frozenset([*_FUNCTION_WORDS.split(), "according", "based", "reported", "said", "stated"])
_EAST_ASIAN_STOP_WORDS = _STOP_WORDS | frozenset("的了和与及或在是为于由从对等也并而其该此这那有年月日据称说")


@dataclass(frozen=True, slots=True)
class MatchedPair:
    """A citation and a source that it matches.

    Attributes:
        cited: The citation.
        gold: The source.
        why: ``contains`` (one text contains the other), ``address`` (the same one is listed on both sides), ``host``
            (both texts have an address on it) or ``words``.
        overlap: The share of words, where that is why.
    """

    cited: str
    gold: str
    why: Literal["contains", "address", "host", "words"]
    overlap: float | None = None

    def __str__(self) -> str:
        share = "" if self.overlap is None else f" {self.overlap:.2f}"
        return f"{self.cited} = {self.gold} ({self.why}{share})"


@dataclass(frozen=True, slots=True)
class EvidenceMatch:
    """What cited evidence and gold evidence have in common.

    Attributes:
        cited: The citations, sorted.
        gold: The sources, sorted.
        pairs: Every citation with every source that it matches.
        form: How precision is counted.
    """

    cited: tuple[str, ...]
    gold: tuple[str, ...]
    pairs: tuple[MatchedPair, ...]
    form: EvidenceForm = "each_side"

    @property
    def missed(self) -> tuple[str, ...]:
        """The sources that no citation matches."""
        found = {pair.gold for pair in self.pairs}
        return tuple(text for text in self.gold if text not in found)

    @property
    def unmatched(self) -> tuple[str, ...]:
        """The citations that match no source."""
        found = {pair.cited for pair in self.pairs}
        return tuple(text for text in self.cited if text not in found)

    @property
    def matched_gold(self) -> int:
        """How many sources some citation matches."""
        return len(self.gold) - len(self.missed)

    @property
    def matched_cited(self) -> int:
        """How many citations precision counts: those that match a source; in the original form, the matched sources."""
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

    A citation matches a source if, in this order,

    1. one text contains the other, whatever the case of letters;
    2. the citation is itself a listed source, and both list the same address;
    3. both texts have an address, the first ones on the same host (the part between ``://`` and the next slash); for
       a source without content, any listed address of the citation will do;
    4. of the words that are no stop words, ``shared / fewer of the two`` is `threshold` or more.

    Recall is the share of sources that are matched. Precision is the share of citations that match, in [0, 1]
    (``each_side``), or the number of *matched sources* by the number of citations (``original``), which is above 1
    where one citation matches several sources.

    Attributes:
        threshold: Least share of words, above 0 and up to 1.
        form: ``each_side`` or ``original``.
        tokenizer: ``auto``: runs of letters, digits and underscores are words, and every Han, Kana and Hangul character
            is a word by itself; ``words``: such characters make one word of each run, as in the original rule.

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
    tokenizer: Literal["auto", "words"] = "auto"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.threshold) and 0 < self.threshold <= 1):
            raise ValueError(f"threshold: found {self.threshold!r}, expected a number above 0 and up to 1")
        choices: tuple[tuple[str, str, tuple[str, ...]], ...] = (
            ("form", self.form, ("each_side", "original")),
            ("tokenizer", self.tokenizer, ("auto", "words")),
        )
        for option, found, known in choices:
            if found not in known:
                raise ValueError(f"{option}: found {found!r}, expected {' or '.join(known)}")

    def extract(self, justification: str, evidence_sources: Iterable[Any] = ()) -> list[str]:
        """Return what a text cites and what a list of sources names, each once, sorted.

        An address in the text that one of the sources has is no citation besides.

        Args:
            justification: The text.
            evidence_sources: Texts, or objects with ``content`` and ``url``.
        """
        return [source.text for source in self.sources(justification, evidence_sources)]

    def sources(self, justification: str, evidence_sources: Iterable[Any] = ()) -> list[Source]:
        """Return what `extract` does, with the addresses that belong to it."""
        listed = as_sources(evidence_sources)
        known = {each for source in listed for each in (source.text, *source.urls)}
        cited = [Source(each.text) for each in find_citations(justification) if each.text not in known]
        return sorted([*listed, *cited], key=lambda source: source.text)

    def match(self, cited: Iterable[Any], gold: Iterable[Any]) -> EvidenceMatch:
        """Match citations with sources; both are texts, objects with ``content`` and ``url``, or from `sources`."""
        left, right = ([_Read(source, self._words) for source in as_sources(side)] for side in (cited, gold))
        pairs = [pair for one in left for other in right if (pair := self._pair(one, other)) is not None]
        return EvidenceMatch(
            tuple(each.source.text for each in left), tuple(each.source.text for each in right), tuple(pairs), self.form
        )

    def explain(self, cited: str, gold: str) -> MatchedPair | None:
        """Return why a citation matches a source; ``None`` if it does not."""
        return self._pair(_Read(Source(cited), self._words), _Read(Source(gold), self._words))

    def _pair(self, cited: "_Read", gold: "_Read") -> MatchedPair | None:
        texts = cited.source.text, gold.source.text
        if cited.lower in gold.lower or gold.lower in cited.lower:
            return MatchedPair(*texts, "contains")
        if cited.addresses and not cited.addresses.isdisjoint(gold.addresses):
            return MatchedPair(*texts, "address")
        if gold.host is not None and gold.host in (cited.hosts if gold.is_address else {cited.host}):
            return MatchedPair(*texts, "host")
        fewer = min(len(cited.words), len(gold.words))
        overlap = len(cited.words & gold.words) / fewer if fewer else 0.0
        return MatchedPair(*texts, "words", overlap) if overlap >= self.threshold else None

    def _words(self, lower: str) -> frozenset[str]:
        if self.tokenizer == "words" or lower.isascii():
            return frozenset(_WORD.findall(lower)) - _STOP_WORDS
        return frozenset(_WORD.findall(separate_east_asian(lower, keep_marks=False))) - _EAST_ASIAN_STOP_WORDS


class _Read:
    """A source with what comparing it needs."""

    def __init__(self, source: Source, words: Callable[[str], frozenset[str]]) -> None:
        self.source = source
        self._split = words
        self.lower = source.text.lower()
        self.host = _host(source.text)
        # A plain citation has no addresses: that the text of a source is one is the business of `host`.
        self.addresses = frozenset(source.urls)
        self.is_address = source.text in self.addresses

    @cached_property
    def hosts(self) -> frozenset[str | None]:
        return frozenset({self.host, *map(_host, self.addresses)})

    @cached_property
    def words(self) -> frozenset[str]:
        return self._split(self.lower)


def _host(text: str) -> str | None:
    scheme = _SCHEME.search(text)
    return text[scheme.end() :].partition("/")[0] if scheme else None
