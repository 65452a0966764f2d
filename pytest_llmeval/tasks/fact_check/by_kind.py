"""Comparison of evidence by kind: addresses as addresses, numbers as numbers, other texts by their words."""

__all__ = ("Piece", "citations_by_kind", "claim_words")

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from pytest_llmeval.evaluators.measures.evidence_sources import EvidenceSource
from pytest_llmeval.tasks.fact_check.addresses import canonical_address, find_addresses, is_address, readings, site_name
from pytest_llmeval.tasks.fact_check.attributions import find_attributions
from pytest_llmeval.tasks.fact_check.citations import find_names
from pytest_llmeval.tasks.fact_check.quantities import find_quantities, is_quantity
from pytest_llmeval.tasks.fact_check.words import Tokenizer, paired_words, split_words

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
    """Yield the addresses, names and numbers that a text cites, each once, beside the addresses of listed sources."""
    known = {address for source in listed for address in Piece(source, "words", cited=False).addresses}
    spans = list(find_addresses(text))
    for start, end in spans:
        address = text[start:end]
        found = _canonical(readings(address))
        # A host alone, without "www.", is what companies are called.
        if ("/" in address or address.lower().startswith(_ADDRESS_STARTS)) and known.isdisjoint(found):
            known |= found
            yield address
    rest = _blanked(text, spans)
    yield from (rest[start:end] for start, end in _name_spans(rest))
    numbers: dict[str, str] = {}
    for each in find_quantities(rest):
        if each.citable:
            numbers.setdefault(each.key, rest[each.start : each.end])
    yield from numbers.values()


def claim_words(claim: str, tokenizer: Tokenizer) -> frozenset[str]:
    """Return the words of what a claim is about, which identify no source: capitalised ones and East Asian ones.

    Those of whom the claim is attributed to are not among them.
    """
    rest = _blanked(claim, find_addresses(claim))
    named = _NAMED.findall(_blanked(rest, _name_spans(rest)))
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
    """A piece of evidence, with what comparing it needs.

    Args:
        source: The evidence.
        tokenizer: Splits its text into words.
        cited: Whether it is cited, rather than listed.
        claim: What `claim_words` returns for the claim that it is about.
    """

    def __init__(
        self, source: EvidenceSource, tokenizer: Tokenizer, *, cited: bool, claim: frozenset[str] = frozenset()
    ) -> None:
        self.source = source
        self._tokenizer = tokenizer
        self._cited = cited
        self._claim = claim

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        return list(find_addresses(self.source.text))

    @cached_property
    def is_address(self) -> bool:
        """Whether it is an address without anything else."""
        return is_address(self.source.text)

    @cached_property
    def is_quantity(self) -> bool:
        """Whether it is a number without anything else."""
        return is_quantity(self.source.text)

    @cached_property
    def addresses(self) -> frozenset[str]:
        """Its addresses: those that are listed, and those in the text."""
        text = self.source.text
        within = [text] if self.is_address else [text[start:end] for start, end in self._spans]
        if self._cited:
            within = [reading for address in within for reading in readings(address)]
        return frozenset(_canonical([*self.source.urls, *within]))

    @cached_property
    def quantities(self) -> frozenset[str]:
        """The numbers in the text."""
        return frozenset(each.key for each in find_quantities(self._rest))

    @cached_property
    def figures(self) -> frozenset[str]:
        """The numbers with a unit, or with separators of thousands."""
        return frozenset(each.key for each in find_quantities(self._rest) if each.citable or not each.key[-1].isdigit())

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that are no stop words, numbers among them, without those of the claim."""
        return paired_words(self._sequence, self._tokenizer) - self._claim

    @cached_property
    def _rest(self) -> str:
        return _blanked(self.source.text, self._spans)

    @cached_property
    def _sequence(self) -> list[str]:
        words: list[str] = []
        behind = 0
        for each in find_quantities(self._rest):
            words += split_words(self._rest[behind : each.start].lower(), self._tokenizer)
            words.append(each.key)
            behind = each.end
        return words + split_words(self._rest[behind:].lower(), self._tokenizer)

    @cached_property
    def _joined(self) -> str:
        return f" {' '.join(self._sequence)} " if self._sequence else ""

    def reason(self, gold: "Piece") -> str | None:
        """Return why this citation matches a source: empty if its words must tell, ``None`` if they must not."""
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

    @property
    def _may_identify(self) -> bool:
        """Whether it is an address or a number, or has words besides those of the claim."""
        return not self._claim or self.is_address or self.is_quantity or bool(self.words)

    def _names_site_of(self, other: "Piece") -> bool:
        """Return whether this is the name of the site of an address, such as Reuters, and no address itself."""
        if self.addresses or not other.is_address:
            return False
        names = {"".join(self._sequence), "".join(word for word in self._sequence if word in self.words)}
        return any(site_name(address) in names for address in other.addresses)


def _canonical(addresses: Iterable[str]) -> set[str]:
    return {found for each in addresses if (found := canonical_address(each)) is not None}


def _blanked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    parts, behind = [], 0
    for start, end in spans:
        parts += [text[behind:start], _BLANK * (end - start)]
        behind = end
    return "".join([*parts, text[behind:]])
