"""The original comparison of evidence: containment, hosts and words, whatever a text is."""

__all__ = ("OriginalPiece", "original_citations")

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from pytest_llmeval.evaluators.measures.evidence_sources import EvidenceSource
from pytest_llmeval.tasks.fact_check.citations import find_citations
from pytest_llmeval.tasks.fact_check.words import Tokenizer, content_words, split_words

_SCHEME = re.compile(r"https?://(?!/|\Z)")


def original_citations(text: str, listed: Sequence[EvidenceSource]) -> Iterator[str]:
    """Yield what a text cites beside the listed sources."""
    known = {each for source in listed for each in (source.text, *source.urls)}
    return (each.text for each in find_citations(text) if each.text not in known)


class OriginalPiece:
    """A piece of evidence, with what comparing it needs."""

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
        """The words that are no stop words."""
        return content_words(split_words(self.lower, self._tokenizer), self._tokenizer)

    def reason(self, gold: "OriginalPiece") -> str:
        """Return why this citation matches a source, whatever its words; empty if only these can tell."""
        if self.lower in gold.lower or gold.lower in self.lower:
            return "contains"
        if not self.addresses.isdisjoint(gold.addresses):
            return "address"
        listed = gold.source.text in gold.addresses
        return "host" if gold.host is not None and gold.host in (self.hosts if listed else {self.host}) else ""


def _host(text: str) -> str | None:
    scheme = _SCHEME.search(text)
    return text[scheme.end() :].partition("/")[0] if scheme else None
