"""Character spans: overlap, the best one-to-one assignment, and sources of evidence."""

import re
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Span: TypeAlias = tuple[int, int]
"""A half-open interval ``[start, end)`` of characters; nothing is assumed of the order of its ends."""


def overlap_ratio(a: Span, b: Span) -> float:
    """Return the length of the intersection of two spans over that of their union (Jaccard 1912).

    Returns:
        In [0, 1]; 1.0 for equal spans. A span that covers no character (empty or reversed) overlaps no other.
    """
    if a == b:
        return 1.0
    shared = min(a[1], b[1]) - max(a[0], b[0])
    if shared <= 0:
        return 0.0
    return shared / (a[1] - a[0] + b[1] - b[0] - shared)


def pair_spans(gold: Sequence[Span], predicted: Sequence[Span]) -> list[tuple[int, int, float]]:
    """Pair spans one-to-one so that the sum of their overlaps is as large as possible.

    Returns:
        ``(index in gold, index in predicted, overlap)`` of the pairs that overlap, by index in gold.
    """
    if not gold or not predicted:
        return []
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    overlaps = np.array([[overlap_ratio(right, answered) for answered in predicted] for right in gold])
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), overlaps[rows, columns].tolist(), strict=True)
    return [pair for pair in pairs if pair[2] > 0]


def assign_spans(gold: Sequence[Span], predicted: Sequence[Span]) -> list[float]:
    """Return for each gold span its overlap with the predicted span that `pair_spans` gives it.

    Returns:
        One number in [0, 1] for each gold span, in order; 0.0 where none is assigned.
    """
    overlaps = [0.0] * len(gold)
    for row, _, overlap in pair_spans(gold, predicted):
        overlaps[row] = overlap
    return overlaps


def span_faults(spans: Sequence[Span], length: int) -> dict[str, list[int]]:
    """Say which spans are not a proper, separate part of a text.

    Args:
        spans: Spans in any order.
        length: Of the text in characters.

    Returns:
        Indices into `spans` by kind; kinds without a span are left out. ``outside``: an end lies before or after
        the text; ``empty``: both ends are the same; ``reversed``: the end comes before the start;
        ``overlapping``: it begins before an earlier one has ended.
    """
    faults: dict[str, list[int]] = {
        "outside": [
            index for index, (start, end) in enumerate(spans) if min(start, end) < 0 or max(start, end) > length
        ],
        "empty": [index for index, (start, end) in enumerate(spans) if start == end],
        "reversed": [index for index, (start, end) in enumerate(spans) if start > end],
        "overlapping": _overlapping(spans),
    }
    return {kind: indices for kind, indices in faults.items() if indices}


def _overlapping(spans: Sequence[Span]) -> list[int]:
    found: list[int] = []
    reached: int | None = None
    for start, end, index in sorted((start, end, index) for index, (start, end) in enumerate(spans) if start < end):
        if reached is not None and start < reached:
            found.append(index)
        reached = end if reached is None else max(reached, end)
    return sorted(found)


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


_END_MARKS = re.compile("[。！？.!?]+")


def end_mark_spans(text: str) -> list[tuple[int, int]]:
    """Split a text at its end marks, as the official scorer of story segmentation counts sentences.

    A sentence ends after a run of ``。 ！ ？ . ! ?``, and the next one begins right there, with the white space
    between them. What follows the last run, even white space alone, is one more sentence. Abbreviations and
    decimals do split; for sentences as people read them, see `cited_sentences.split_sentences`. Linear in the length
    of the text.

    Args:
        text: Any text.

    Returns:
        ``[start, end)`` of each sentence, in order and without gaps; empty for an empty text.

    Example:
        >>> end_mark_spans("One... Two?! Three")
        [(0, 6), (6, 12), (12, 18)]
    """
    ends = [match.end() for match in _END_MARKS.finditer(text)]
    if text and (not ends or ends[-1] < len(text)):
        ends.append(len(text))
    return list(zip([0, *ends], ends, strict=False))


def sentence_index(position: int, spans: Sequence[tuple[int, int]]) -> int:
    """Return the index of the sentence that contains a character position.

    Args:
        position: Character offset; it may lie outside the text.
        spans: What `end_mark_spans` returned.

    Returns:
        The index, counted from 0. A position before the text gives the first sentence, one at or after its end
        the last; -1 if there is no sentence.
    """
    if not spans:
        return -1
    return max(bisect_right(spans, position, key=lambda span: span[0]) - 1, 0)


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
    return [EvidenceSource(text, tuple(sorted(set(found)))) for text, found in sorted(urls.items())]


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
