"""Pieces of texts and of lists: one-to-one pairs, listed evidence, and sentences with the passages that they cite."""

import re
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Edges: TypeAlias = Mapping[tuple[int, int], Sequence[int]]
"""What may be paired, as ``(row, column)``, and how welcome each pair is: whole numbers of at least 0, the weightiest
first, as many for each pair."""

_EXACT = 2**53
"""Whole numbers up to here are exact in double precision, which `linear_sum_assignment` of SciPy computes in."""


def first_pairs(rows: Iterable[Hashable | None], columns: Iterable[Hashable | None]) -> list[tuple[int, int]]:
    """Pair equal keys one-to-one: each row in turn takes the first column with its key that is still free.

    ``None`` is no key. Among equal keys this pairs as many as possible.

    Example:
        >>> first_pairs("abca", "xaca")
        [(0, 1), (2, 2), (3, 3)]
    """
    free: defaultdict[Hashable, deque[int]] = defaultdict(deque)
    for column, key in enumerate(columns):
        if key is not None:
            free[key].append(column)
    return [(row, free[key].popleft()) for row, key in enumerate(rows) if free.get(key)]


def best_pairs(edges: Edges) -> list[tuple[int, int]]:
    """Pair rows with columns one-to-one: a maximum bipartite matching, the best one by preference.

    Among the matchings of most pairs, the sum of the first preference is as large as possible, then that of the
    second, and so on. Exact; but of so many pairs that their value goes beyond 2 ** 53, the last preferences are
    left out (three preferences of 0 or 1 fit for 9,000 pairs).

    Returns:
        The pairs, sorted. Ties between matchings are broken by row and column numbers alone.

    Example:
        >>> best_pairs({(0, 0): [1], (0, 1): [0], (1, 0): [1]})
        [(0, 1), (1, 0)]
    """
    rows, columns = (sorted({edge[side] for edge in edges}) for side in (0, 1))
    if min(len(rows), len(columns)) <= 1:
        return sorted(edges, key=lambda edge: ([-each for each in edges[edge]], edge))[:1]
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    row_place, column_place = ({name: place for place, name in enumerate(side)} for side in (rows, columns))
    values = np.zeros((len(rows), len(columns)))
    for (row, column), value in _values(edges, min(len(rows), len(columns))).items():
        values[row_place[row], column_place[column]] = value
    pairs = zip(*linear_sum_assignment(values, maximize=True), strict=True)
    chosen = ((rows[row], columns[column]) for row, column in pairs)
    return sorted(pair for pair in chosen if pair in edges)


def _values(edges: Edges, most: int) -> dict[tuple[int, int], int]:
    """Turn preferences into one number per pair, so that sums over at most `most` pairs compare like them.

    A pair weighs more than all preferences together, and a preference more than all after it together.
    """
    values = dict.fromkeys(edges, 1)
    for level in range(len(next(iter(edges.values())))):
        base = most * max(each[level] for each in edges.values()) + 1
        if most * base * (max(values.values()) + 1) > _EXACT:
            break
        values = {pair: value * base + edges[pair][level] for pair, value in values.items()}
    return values


@dataclass(frozen=True, slots=True)
class EvidenceSource:
    """A piece of evidence.

    Attributes:
        text: What it is known by: its content, or its address where it has no content.
        urls: The addresses of sources that have a content.
    """

    text: str
    urls: tuple[str, ...] = ()


def as_sources(entries: Iterable[Any]) -> list[EvidenceSource]:
    """Return listed evidence, each text once, sorted.

    Args:
        entries: Texts, sources, or objects with ``content`` and ``url``. Blank ones, and what is none of these, are
            left out.
    """
    urls: dict[str, list[str]] = {}
    for entry in entries:
        source = entry if isinstance(entry, EvidenceSource) else _source(entry)
        if source is not None:
            urls.setdefault(source.text, []).extend(source.urls)
    return [EvidenceSource(text, tuple(sorted(set(addresses)))) for text, addresses in sorted(urls.items())]


def listed(entries: Any) -> str:
    r"""Return listed evidence as text: one piece a line, with its addresses; nothing for what is no list.

    >>> listed([{"content": "Bird survey", "url": "https://birds.example"}, "Register of boats"])
    'Bird survey (https://birds.example)\nRegister of boats'
    """
    if not isinstance(entries, list | tuple):
        return ""
    sources = as_sources(entries)
    lines = ((each.text, ", ".join(url for url in each.urls if url != each.text)) for each in sources)
    return "\n".join(f"{' '.join(text.split())} ({urls})" if urls else " ".join(text.split()) for text, urls in lines)


def _source(entry: Any) -> EvidenceSource | None:
    if isinstance(entry, str):
        return EvidenceSource(entry) if entry.strip() else None
    if not isinstance(entry, Mapping):
        return None
    content, url = (_text(entry.get(key)) for key in ("content", "url"))
    if not content:
        return EvidenceSource(url, (url,)) if url else None
    return EvidenceSource(content, (url,) if url else ())


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value.strip() else ""


_NUMBERS = r"\d{1,3}(?:\s*(?:[,，、;；&]|and|和|与|及|[-–—~～至])\s*\d{1,3})*"
_MARK = rf"[\[［【]\s*\^?{_NUMBERS}\s*[\]］】]"
_END = re.compile(rf"(?:(?P<stop>[.!?…。！？]+)[\"'”’」』）)*_`]*(?:[^\S\n]*{_MARK})*|\n+)")
_ENDS_ANYWHERE = re.compile("[。！？]")
_GOES_ON = re.compile(r"\S|[^\S\n]{1,9}[a-z]")
_INITIAL = re.compile(r"(?<!\S)(?:[A-Z]|\d+)$")
_LONGEST_LABEL = 9
_CITATION = re.compile(rf"(?<!^){_MARK}")
_PART = re.compile(r"(?P<first>\d{1,3})(?:\s*[-–—~～至]\s*(?P<last>\d{1,3}))?")
_WORD = re.compile(r"[^\W_]")


def split_sentences(text: str) -> list[str]:
    r"""Split a text into sentences as people read them.

    A sentence ends with its line, after ``。 ！ ？``, and after ``. ! ?`` before white space, with the quotation marks
    and citations that follow; but not before a small letter, nor after an initial or a number, as in lists. What has
    neither letter nor digit is no sentence.

    Example:
        >>> split_sentences("It takes 3.5 days. [1] J. Doe said so!\n1. Ask him.")
        ['It takes 3.5 days. [1]', 'J. Doe said so!', '1. Ask him.']
        >>> split_sentences("三十天内可以退货。[2]运费另计！")
        ['三十天内可以退货。[2]', '运费另计！']
    """
    pieces = (text[start:end].strip() for start, end in _spans(text))
    return [piece for piece in pieces if _WORD.search(piece)]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for end in _END.finditer(text):
        if end["stop"] is None or _is_end(text, start, end):
            yield start, end.end()
            start = end.end()
    yield start, len(text)


def _is_end(text: str, start: int, end: re.Match[str]) -> bool:
    """Return whether marks that may end a sentence do so."""
    if _ENDS_ANYWHERE.search(end["stop"]):
        return True
    if _GOES_ON.match(text, end.end()):
        return False
    return end["stop"] != "." or not _INITIAL.search(text[max(start, end.start() - _LONGEST_LABEL) : end.start()])


def cited_by(sentence: str) -> list[int]:
    """Return the numbers of the passages that a sentence cites, each once, in order.

    Citations are ``[1]``, ``[^1]``, ``[1, 3]``, ``[1 and 3]``, ``[2-4]``, ``【1】`` and ``［1］``. One that begins the
    sentence, and so its line, is the label of an entry in a list of sources, and cites nothing.

    Example:
        >>> cited_by("Refunds take 30 days [2], and shipping is free [1-3]."), cited_by("[1] https://example.org/terms")
        ([2, 1, 3], [])
    """
    numbers: dict[int, None] = {}
    for mark in _CITATION.finditer(sentence):
        for part in _PART.finditer(mark.group()):
            first, last = sorted((int(part["first"]), int(part["last"] or part["first"])))
            numbers |= dict.fromkeys(range(first, last + 1))
    return list(numbers)
