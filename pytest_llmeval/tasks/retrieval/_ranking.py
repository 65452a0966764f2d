"""Ranked lists."""

import json
import re
import sys
from abc import ABC, abstractmethod
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import compress, count
from math import log2
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, TypeAlias

from pydantic import Discriminator, Field, Tag

from pytest_llmeval.core import MISSING, FloatArray
from pytest_llmeval.data import CaseId
from pytest_llmeval.evaluators import AnswerValue, harmonic_mean

_STRICT = {"extra": "forbid"}


def _value_at(data: Any, path: str) -> Any:
    """The value of a search result or query at a key or dotted path such as ``meta.court``; `MISSING` if none."""
    if not isinstance(data, dict):
        return MISSING
    value = data.get(path, MISSING)
    if value is not MISSING or "." not in path:
        return value
    head, _, tail = path.partition(".")
    return _value_at(data.get(head), tail)


def _value_of(result: Mapping[str, Any], paths: Iterable[str]) -> Any:
    """The value of a search result's field, at the top or under ``meta``; null only if no place has another."""
    first: Any = MISSING
    for data in (result, result.get("meta")):
        for path in paths:
            value = _value_at(data, path)
            if value is not MISSING and value is not None:
                return value
            first = value if first is MISSING else first
    return first


@dataclass(frozen=True)
class GoldList:
    """A retrieval task by which a result is relevant if it is in the list of positives.

    Attributes:
        rule: Names the rule.
        by: What makes two documents the same: their ``id``, or their ``text`` without the blanks around it.
    """

    __pydantic_config__: ClassVar = _STRICT

    rule: Literal["gold"]
    by: Literal["id", "text"] = "text"

    def __str__(self) -> str:
        return f"gold by {self.by}"


class Relevance(NamedTuple):
    """The relevance of a search result by a rule.

    Attributes:
        relevant: Whether it is relevant, an absent attribute being empty.
        unjudged: Whether it lacks the attribute that the query has, so that its relevance is unknown.
        fault: The fault of its attribute, if any; it is not relevant then.
    """

    relevant: bool
    unjudged: bool = False
    fault: str | None = None


class FieldRule(ABC):
    """A retrieval rule that compares a field of a result with the query's ``meta``."""

    field: str
    query_field: str | None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the field in a result: its own name, and the query's."""
        return (self.field,) if self.query_field is None else (self.field, self.query_field)

    @abstractmethod
    def value_fault(self, value: Any) -> str | None:
        """Return the fault of a value, if any."""

    @abstractmethod
    def matcher(self, value: Any) -> Callable[[Any], bool]:
        """Return the function that compares attributes of results with the query's value."""

    def fault(self, meta: Any) -> str | None:
        """Return the fault of the query's field, if any."""
        return self.value_fault(_value_at(meta, self.query_field or self.field))

    def judge(self, meta: Any, results: Iterable[Mapping[str, Any]]) -> list[Relevance]:
        """Return the relevance of each result."""
        value = _value_at(meta, self.query_field or self.field)
        matches, known, name, paths = self.matcher(value), value is not MISSING, self.field, self.paths
        judged = []
        for result in results:
            attribute = result.get(name)
            if attribute is None:
                attribute = _value_of(result, paths)
            judged.append(Relevance(matches(attribute), known and attribute is MISSING, self.value_fault(attribute)))
        return judged


SEPARATORS: Final = ";；、,，"
"""Marks between the values in a text."""


@dataclass(frozen=True)
class SameSet(FieldRule):
    """A retrieval rule: a result is relevant if a field holds the same set of values as the query's.

    Numbers and their digits are the same. Two lists are compared by their whole values. A text may be one value,
    several with `separators` between them, perhaps in square brackets, or a JSON list; it is the same set as another
    value if both are the same once all values are split. Null and the query's missing field are the empty set.

    Attributes:
        rule: Names the rule.
        field: Field of the result; dots lead into objects.
        query_field: Field of the query's ``meta``, if it has another name.
        separators: The marks between the values in a text; empty for none.
    """

    __pydantic_config__: ClassVar = _STRICT

    rule: Literal["same_set"]
    field: str
    query_field: str | None = None
    separators: str = SEPARATORS

    def __str__(self) -> str:
        return f"same {self.field}{'' if self.separators == SEPARATORS else f' by {self.separators!r}'}"

    def value_fault(self, value: Any) -> str | None:
        """Return the fault of a value, if any."""
        right = value is MISSING or self._values(value) is not None
        return None if right else f"found {AnswerValue(value).kind}, expected a list of values"

    def matcher(self, value: Any) -> Callable[[Any], bool]:
        """Whether an attribute has the query's values and no others."""
        value = parsed_list(value)
        own = _value_sets(value, self.separators)
        expected, whole = own.parts or frozenset(), own.listed or frozenset()

        def matches(attribute: Any) -> bool:
            attribute = parsed_list(attribute)
            if isinstance(value, list) and isinstance(attribute, list):
                return (_value_sets(attribute, self.separators).listed or frozenset()) == whole
            return attribute == value or self._values(attribute) == expected

        return matches

    def is_apart(self, meta: Any, results: Iterable[Mapping[str, Any]]) -> bool:
        """Whether both sides have values and no result has any of the query's."""
        own = self._values(_value_at(meta, self.query_field or self.field)) or frozenset()
        others = [each for result in results if (each := self._values(_value_of(result, self.paths)))]
        return bool(own and others) and not any(own & other for other in others)

    def _values(self, value: Any) -> frozenset[str] | None:
        return split_values(value, self.separators)


class _ValueSets(NamedTuple):
    """The values of a set-valued attribute; ``None`` for an attribute that has no such values.

    Attributes:
        listed: The items of a list whole.
        parts: All split at separators.
    """

    listed: frozenset[str] | None
    parts: frozenset[str] | None


def split_values(value: Any, separators: str = SEPARATORS) -> frozenset[str] | None:
    """The values of a set-valued attribute, all split at separators; ``None`` for anything else."""
    return _value_sets(value, separators).parts


def _value_sets(value: Any, separators: str) -> _ValueSets:
    """The values of a set-valued attribute in both forms; short ones are remembered, since most occur often."""
    kind = type(value)
    if kind is str and len(value) <= _LONGEST_KNOWN:
        return _known_sets(value, separators)
    if kind is list and _TEXTS.issuperset(map(type, value)) and sum(map(len, value)) <= _LONGEST_KNOWN:
        return _known_sets(tuple(value), separators)
    return _read_sets(value, separators)


@lru_cache(maxsize=4096)
def _known_sets(value: str | tuple[str, ...], separators: str) -> _ValueSets:
    """The values of a short text or list of texts in both forms."""
    return _read_sets(list(value) if isinstance(value, tuple) else value, separators)


def _read_sets(value: Any, separators: str) -> _ValueSets:
    """The values of a set-valued attribute in both forms, read anew."""
    listed = listed_values(value, separators)
    if listed is None:
        return _ValueSets(None, None)
    return _ValueSets(frozenset(listed), frozenset(part for text in listed for part in _split(text, separators)))


_LONGEST_KNOWN: Final = 200
"""Characters of an attribute whose values are remembered."""

_TEXTS: Final = frozenset({str})


def parsed_list(value: Any) -> Any:
    """The list that an attribute's text is in JSON or Python; any other value unchanged."""
    if not isinstance(value, str) or not (text := value.strip()).startswith("["):
        return value
    for read in (json.loads, literal_eval):
        try:
            parsed = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(parsed, list) and all(isinstance(item, str | int | float) for item in parsed):
            return parsed
    return value


def listed_values(value: Any, separators: str = SEPARATORS) -> list[str] | None:
    """The values of a set-valued attribute in their order, as texts; ``None`` for anything else."""
    if value is None or value is MISSING:
        return []
    value = parsed_list(value)
    if isinstance(value, str):
        return list(_split(value, separators))
    if isinstance(value, list):
        right = all(isinstance(item, str | int | float) for item in value)
        return (
            [CaseId(_bare(item) if isinstance(item, str) else str(item)).canonical() for item in value]
            if right
            else None
        )
    name = CaseId.read(value)
    return None if name is None else [name]


def _split(text: str, separators: str) -> Iterator[str]:
    """Yield the values in an attribute's text; separators inside square brackets may be a part of a name."""
    bare = _bare(text)
    for part in _parts(bare, _separator(separators, outside=bare == text.strip())) if separators else [bare]:
        if value := _bare(part.strip(_QUOTES)):
            yield CaseId(value).canonical()


@cache
def _separator(separators: str, *, outside: bool) -> re.Pattern[str]:
    """The pattern of separators between values in an attribute's text; those inside labels can be skipped."""
    return re.compile(rf"{_LABEL if outside else ''}(?P<separator>[{re.escape(separators)}])")


def _parts(text: str, separator: re.Pattern[str]) -> Iterator[str]:
    """Yield the parts of an attribute's text between separators."""
    start = 0
    for match in separator.finditer(text):
        if match["separator"]:
            yield text[start : match.start()]
            start = match.end()
    yield text[start:]


def _bare(text: str) -> str:
    """An attribute's text without the square brackets around the whole of it."""
    text = text.strip()
    inner = text[1:-1]
    return inner if text[:1] + text[-1:] in ("[]", "【】") and not _INNER.search(inner) else text


_LABEL: Final = r"(?<![^][])[^][]*+\]|"
"""What a bracket ends, as a whole: its separators are none."""

_INNER = re.compile(r"[\[\]【】]")
_QUOTES = " \t\r\n\"'"


@dataclass(frozen=True)
class Near(FieldRule):
    """A retrieval rule: a result is relevant if a number is close to the query's, and flags are the same.

    Null and the query's missing number are 0, a missing flag is not set. Where a flag is set on both sides the numbers
    do not matter. A number may be a text of digits.

    Attributes:
        rule: Names the rule.
        field: Field of the result: a number, or an object that may hold it; dots lead into objects.
        query_field: Field of the query's ``meta``, if it has another name.
        number: Key of the number, where the field is an object.
        flags: Keys of the flags in that object.
        relative: How far the numbers may be apart, as a share of the query's.
        absolute: How far they may be apart in any case.
    """

    __pydantic_config__: ClassVar = _STRICT

    rule: Literal["near"]
    field: str
    query_field: str | None = None
    number: str | None = None
    flags: tuple[str, ...] = ()
    relative: float = 0.0
    absolute: float = 0.0

    def __post_init__(self) -> None:
        if self.flags and self.number is None:
            raise ValueError("found flags without number, expected the key of the number as well")
        if not (self.relative >= 0 and self.absolute >= 0):  # NaN is neither
            tolerances = f"{self.relative:g} and {self.absolute:g}"
            raise ValueError(f"found tolerances {tolerances}, expected relative and absolute of at least 0")

    def __str__(self) -> str:
        return f"near {self.field} {self.relative:g} {self.absolute:g}"

    def value_fault(self, value: Any) -> str | None:
        """Return the fault of a value, if any."""
        where = "" if self.number is None else f", or an object with it as {self.number!r}"
        return None if self.read(value)[0] is not None else f"found {AnswerValue(value).kind}, expected a number{where}"

    def matcher(self, value: Any) -> Callable[[Any], bool]:
        """Whether an attribute is close enough to the query's value."""
        query = self.read(value)
        return lambda attribute: self.distance(query, self.read(attribute)) is not None

    def distance(self, query: "Measured", result: "Measured") -> float | None:
        """The distance of the numbers: 0 where flags make them not matter, ``None`` where it is too far."""
        (number, flags), (other, others) = query, result
        if flags != others:
            return None
        if True in flags:
            return 0.0
        if number is None or other is None:
            return None
        distance = abs(other - number)
        return distance if distance <= max(self.absolute, self.relative * abs(number)) else None

    def read(self, value: Any) -> "Measured":
        """Return number and flags of a field; anything but a number is ``None``."""
        if self.number is None or not isinstance(value, dict):
            return _number(value), (False,) * len(self.flags)
        return _number(value.get(self.number)), tuple([bool(value.get(flag)) for flag in self.flags])


Measured: TypeAlias = tuple[float | None, tuple[bool, ...]]
"""A number, or ``None`` for any other value, and flags."""


_EXACT: Final = 2**53
_DIGITS = re.compile(r"\d{1,9}(?:\.\d{1,9})?")


def _number(value: Any) -> float | None:
    """An attribute's finite number, that of a text of digits, 0 for nothing, ``None`` for anything else."""
    if type(value) is int and -_EXACT < value < _EXACT:
        return value
    if value is None or value is MISSING:
        return 0
    if isinstance(value, str):
        text = value.strip()
        return float(text) if _DIGITS.fullmatch(text) else None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if number and abs(value) <= sys.float_info.max else None  # neither NaN nor more than can be subtracted


Rule: TypeAlias = Annotated[GoldList | SameSet | Near, Field(discriminator="rule")]


def _form(tasks: Any) -> str:
    """Tell the two forms of ``retrieval``'s option ``tasks`` apart, so that faults are those of the intended form."""
    return "str" if isinstance(tasks, str) else "dict[str,Rule]"


Tasks: TypeAlias = Annotated[
    Annotated[Literal["legal"], Tag("str")] | Annotated[Mapping[str, Rule], Tag("dict[str,Rule]")], Discriminator(_form)
]
"""The option ``tasks``: a set of rules by its name, or rules by their names."""

LEGAL: Mapping[str, Rule] = {
    "gold": GoldList("gold", by="text"),
    "accusation": SameSet("same_set", "accusation"),
    "article": SameSet("same_set", "relevant_articles"),
    "imprisonment": Near(
        "near",
        "imprisonment",
        query_field="term_of_imprisonment",
        number="imprisonment",
        flags=("death_penalty", "life_imprisonment"),
        relative=0.2,
        absolute=6,
    ),
}
"""The four tasks of similar-case retrieval in criminal law; terms are in months."""


SET_MEASURES = ("precision", "recall", "hit_rate", "macro_f1", "micro_precision", "micro_recall", "micro_f1")
"""Measures of the first k results that do not depend on their order."""

LISTED_MEASURES = ("recall", "macro_f1", "micro_recall", "micro_f1")
"""Measures among them that need the number of positives."""

RANKED_MEASURES = ("ndcg", "map")
"""Measures of the first k results that depend on their order; ``mrr`` is another one, but has no k."""

UNLISTED = "unlisted_"
"""Prefix of the counts of queries without a list of positives: these have a precision, but no recall."""

PLAIN = "plain_"
"""Prefix of the counts of queries without attributes: these have a list of positives only."""


@lru_cache(maxsize=8192)
def set_counts(
    task: str, ranks: tuple[int, ...], cutoffs: tuple[int, ...], positives: int | None
) -> Mapping[str, float]:
    """A query's counts of relevant results for a task; the result is shared and must not be changed.

    Args:
        task: Name of the relevance rule.
        ranks: Of the relevant results, counted from 1.
        cutoffs: The values of k at which the query counts.
        positives: Number of positives; ``None`` if unknown.

    Returns:
        Per k the hits, whether there is any, and recall and F1 of the query, if above 0. Recall is
        hits / positives, and 0 without positives; it exceeds 1 where more is relevant than was listed.
    """
    counts: dict[str, float] = {}
    prefix = f"{UNLISTED if positives is None else ''}{task}"
    for k in cutoffs:
        hits = sum(rank <= k for rank in ranks)
        if hits:
            counts |= {f"{prefix}_hits@{k}": hits, f"{prefix}_hit@{k}": 1}
        if hits and positives:
            recall = hits / positives
            counts |= {f"{task}_recall@{k}": recall, f"{task}_f1@{k}": harmonic_mean(hits / k, recall)}
    return counts


@lru_cache(maxsize=4096)
def size_counts(
    retrieved: int, cutoffs: tuple[int, ...], positives: int | None, *, attributes: bool
) -> Mapping[str, float]:
    """A query's counts of results and positives for all tasks; the result is shared and must not be changed.

    Args:
        retrieved: Length of the list of results.
        cutoffs: The values of k at which the query counts.
        positives: Number of positives; ``None`` if unknown.
        attributes: Whether the query has attributes, which its results can be compared with.
    """
    if positives is None and not attributes:
        return {}
    prefix = UNLISTED if positives is None else "" if attributes else PLAIN
    counts: dict[str, float] = {}
    for k in cutoffs:
        counts |= {f"{prefix}queries@{k}": 1, f"{prefix}retrieved@{k}": min(k, retrieved)}
        if positives:
            counts[f"{prefix}positives@{k}"] = positives
    return counts


def unknown_counts(task: str, retrieved: int, cutoffs: tuple[int, ...], positives: int | None) -> Mapping[str, float]:
    """A query's counts for a retrieval task whose rule cannot judge its results; `set_scores` leaves it out there.

    Args:
        task: Name of the relevance rule.
        retrieved: Length of the list of results.
        cutoffs: The values of k at which the query counts.
        positives: Number of positives; ``None`` if unknown.
    """
    sizes = size_counts(retrieved, cutoffs, positives, attributes=True)
    return {f"{task}_unknown_{name}": number for name, number in sizes.items()}


def relevant_ranks(keys: Sequence[str | None], gains: Mapping[str, float], most: int) -> tuple[int, ...]:
    """The ranks from 1 of the relevant documents among the first `most` search results."""
    return tuple(compress(count(1), map(gains.__contains__, keys[:most])))


def relevant_gains(
    keys: Sequence[str | None], gains: Mapping[str, float], ranks: tuple[int, ...], most: int, *, complete: bool
) -> tuple[tuple[int, float], ...] | None:
    """The rank and gain of relevant documents among search results, each at its first place only.

    Args:
        keys: Keys of the results, best first; ``None`` is a document unlike any other. At least the
            first `most` results, if there are so many.
        gains: Relevant documents and their gains.
        ranks: What `relevant_ranks` returns for these.
        most: The largest k. Of documents behind it only the first relevant one is looked for, where none is before it.
        complete: Whether no result follows.

    Returns:
        In the order of ranks; ``None`` where results behind these may change it: one of them may be the first relevant
        one, or move up to a place within `most` that repetitions left.
    """
    head = keys[:most]
    if len(set(head)) < len(head):
        keys = distinct_keys(keys)
        head, ranks = keys[:most], relevant_ranks(keys, gains, most)
        if len(head) < most and not complete:
            return None
    if ranks:
        return tuple([(rank, gains[head[rank - 1]]) for rank in ranks])  # type: ignore[index]  # None is no gain
    first = next(compress(count(), map(gains.__contains__, keys)), None)
    if first is None:
        return () if complete else None
    before = keys[:first]
    unknown = before.count(None)
    distinct = len(set(before)) - bool(unknown) + unknown
    return ((distinct + 1, gains[keys[first]]),)  # type: ignore[index]  # as above


def distinct_keys(keys: Sequence[str | None]) -> list[str | None]:
    """The keys of search results without repeated ones; each ``None`` is a different document."""
    if None not in keys:
        return list(dict.fromkeys(keys))
    seen: set[str] = set()
    return [key for key in keys if key is None or not (key in seen or seen.add(key))]  # type: ignore[func-returns-value]  # add gives None


@lru_cache(maxsize=8192)
def ranked_counts(
    task: str, gains: tuple[tuple[int, float], ...], ideal: tuple[float, ...], cutoffs: tuple[int, ...]
) -> Mapping[str, float]:
    """One query's scores that depend on the order of results, by the definitions of trec_eval.

    Args:
        task: Name of the relevance rule.
        gains: Rank, counted from 1, and gain of each relevant result, in the order of ranks; each document once.
        ideal: Gains of all relevant documents, largest first.
        cutoffs: The values of k.

    Returns:
        ``TASK_ndcg@k`` (gain / log2(rank + 1), summed, over the largest possible sum), ``TASK_map@k`` (precision at
        each relevant result within k, summed, over the number of relevant documents) and ``TASK_mrr`` (1 / first
        relevant rank); all in [0, 1], if above 0. ``TASK_ranked`` counts the query. The result is
        shared, and must not be changed.
    """
    counts: dict[str, float] = {f"{task}_ranked": 1}
    if gains:
        counts[f"{task}_mrr"] = 1 / gains[0][0]
    for k in cutoffs:
        within = [(rank, gain) for rank, gain in gains if rank <= k]
        if within:
            counts[f"{task}_ndcg@{k}"] = _discounted(within) / _ideal(ideal[:k])
            precisions = sum(number / rank for number, (rank, _) in enumerate(within, 1))
            counts[f"{task}_map@{k}"] = precisions / len(ideal)
    return counts


def _discounted(gains: Iterable[tuple[int, float]]) -> float:
    """The discounted cumulative gain (DCG) of relevant results at their ranks."""
    return sum(gain / log2(rank + 1) for rank, gain in gains)


@lru_cache(maxsize=4096)
def _ideal(gains: tuple[float, ...]) -> float:
    """The DCG of a ranking with all relevant results first, by which NDCG divides."""
    return _discounted(enumerate(gains, 1))


def set_scores(sums: Mapping[str, FloatArray], task: str, k: int, *, gold: bool) -> dict[str, FloatArray]:
    """The retrieval measures of `SET_MEASURES` under their names, such as ``gold_recall@5``.

    Args:
        sums: Summed counts.
        task: Name of the relevance rule.
        k: How many results count.
        gold: Whether the rule is the list of positives, so that the queries with such a list count. For other rules
            those with attributes do, and for recall and F1 those with both.

    Returns:
        Columns. ``precision`` is the mean of hits / k over queries, ``hit_rate`` the share of queries with a hit; both
        in [0, 1]. ``recall`` and ``macro_f1`` are means over queries. The micro scores are hits / results retrieved
        within k, in [0, 1], hits / positives, and their F1. Recall and F1 are at least 0 and may exceed 1. A ratio
        whose denominator is 0 is 0; without queries the value is NaN.
    """
    import numpy as np

    def shared(name: str, *groups: str) -> FloatArray:
        return sum((sums[f"{group}{name}@{k}"] for group in groups), start=np.zeros(1))

    def sizes(name: str, *groups: str) -> FloatArray:
        """Return a size of all queries, without those whose results cannot be judged."""
        return shared(name, *groups) - sum((sums[f"{task}_unknown_{group}{name}@{k}"] for group in groups), start=0.0)

    listed = ("", PLAIN) if gold else ("",)
    judged = listed if gold else ("", UNLISTED)
    own = ("",) if gold else ("", UNLISTED)
    hits, hit = shared(f"{task}_hits", *own), shared(f"{task}_hit", *own)
    queries, known = sizes("queries", *judged), sizes("queries", *listed)
    precision, recall = (_ratio(sums[f"{task}_hits@{k}"], sizes(name, *listed)) for name in ("retrieved", "positives"))
    values = (
        hits / (k * queries),
        sums[f"{task}_recall@{k}"] / known,
        hit / queries,
        sums[f"{task}_f1@{k}"] / known,
        np.where(queries > 0, _ratio(hits, sizes("retrieved", *judged)), np.nan),
        np.where(known > 0, recall, np.nan),
        np.where(known > 0, _ratio(2 * precision * recall, precision + recall), np.nan),
    )
    return {f"{task}_{name}@{k}": value for name, value in zip(SET_MEASURES, values, strict=True)}


def ranked_scores(sums: Mapping[str, FloatArray], task: str, cutoffs: Sequence[int]) -> dict[str, FloatArray]:
    """The means of the order-dependent scores of `ranked_counts`; NaN if no query has a positive."""
    names = [f"{task}_{name}@{k}" for name in RANKED_MEASURES for k in cutoffs]
    return {name: sums[name] / sums[f"{task}_ranked"] for name in [*names, f"{task}_mrr"]}


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """The rate of two summed ranking counts; 0 where the whole is 0."""
    import numpy as np

    ratio: FloatArray = np.where(whole > 0, part / np.where(whole > 0, whole, 1), 0)
    return ratio
