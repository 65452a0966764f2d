"""A corpus of judgements, row by row."""

__all__ = ("TERM", "Charge", "Judgement", "read_judgement")

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pytest_llmeval.evaluators.retrieval_rules import Near
from pytest_llmeval.sources.values import case_id, id_fault

TERM = Near("near", "term_of_imprisonment", number="imprisonment", flags=("death_penalty", "life_imprisonment"))
"""How terms are compared; how far they may be apart is not said."""

Charge: TypeAlias = tuple[frozenset[str], frozenset[str]]

_TEXT_FIELDS = ("fact", "text", "content", "sentence")
_ID_FIELDS = ("id", "doc_id", "docno", "_id")


@dataclass(frozen=True, slots=True)
class Judgement:
    """One case of a corpus.

    Attributes:
        line: Where it stands.
        id: ``None`` where it has none.
        fact: Its text, without the blanks around it.
        accusation: What the accused are guilty of.
        relevant_articles: The articles applied.
        term: ``term_of_imprisonment``: months under ``imprisonment``, and the flags ``death_penalty`` and
            ``life_imprisonment``.
    """

    line: int
    id: str | None
    fact: str
    accusation: tuple[str, ...]
    relevant_articles: tuple[str, ...]
    term: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What a query is called: its id, or its line where it has none that can name a case."""
        return f"line-{self.line}" if self.id is None or id_fault(self.id) else self.id

    @property
    def charge(self) -> Charge:
        """What a positive must have in common with its query, whatever the order."""
        return frozenset(self.accusation), frozenset(self.relevant_articles)

    def to_json(self) -> dict[str, Any]:
        """Return the case as a query or a positive of an evaluation set."""
        meta = {
            "accusation": list(self.accusation),
            "relevant_articles": list(self.relevant_articles),
            "term_of_imprisonment": dict(self.term),
        }
        known = {} if self.id is None else {"id": self.id}
        return {**known, "fact": self.fact, "meta": meta}


def read_judgement(line: int, row: Any) -> Judgement | str:
    """Read a row of a corpus: attributes under ``meta``, or beside the text.

    Returns:
        The case, or the reason why it cannot be used.
    """
    if not isinstance(row, dict):
        return "no object"
    meta = row["meta"] if isinstance(row.get("meta"), dict) else row
    fact = next((row[name] for name in _TEXT_FIELDS if isinstance(row.get(name), str) and row[name].strip()), None)
    accusation, articles = _values(meta.get("accusation")), _values(meta.get("relevant_articles"))
    term: Any = meta.get("term_of_imprisonment", meta.get("imprisonment"))
    if isinstance(term, int | float) and not isinstance(term, bool):
        term = {"imprisonment": term}
    has_term: Any = isinstance(term, dict) and term and not TERM.fault({TERM.field: term})
    needed = {"text": fact, "accusation": accusation, "article": articles, "term of imprisonment": has_term}
    lacking = next((name for name, value in needed.items() if not value), None)
    if lacking or not isinstance(fact, str):
        return f"no {lacking}"
    known = next((found for name in _ID_FIELDS if (found := case_id(row.get(name))) is not None), None)
    return Judgement(line, known, fact.strip(), accusation, articles, term)


def _values(value: Any) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(str(each) for each in values if isinstance(each, str | int) and str(each).strip())
