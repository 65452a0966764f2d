"""Character spans: overlap, the best one-to-one assignment, sources of evidence; sentences and segment boundaries.

Boundary i lies after sentence i, counted from 0. Lists of boundaries are sets: order and repetition do not matter.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray


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
    indices: list[int] = []
    reached: int | None = None
    for start, end, index in sorted((start, end, index) for index, (start, end) in enumerate(spans) if start < end):
        if reached is not None and start < reached:
            indices.append(index)
        reached = end if reached is None else max(reached, end)
    return sorted(indices)


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


_SMALLEST_WINDOW = 2


@dataclass(frozen=True, slots=True)
class BoundaryMatch:
    """The correspondence between the boundaries of a hypothesis and those of a reference.

    Attributes:
        matched: Boundaries that both have.
        near_pairs: ``(reference, hypothesis)`` boundaries less than the tolerance apart, paired one-to-one.
        inserted: Boundaries of the hypothesis without a partner.
        deleted: Boundaries of the reference without a partner.
        tolerance: The distance at which two boundaries are no near miss any more.
    """

    matched: tuple[int, ...]
    near_pairs: tuple[tuple[int, int], ...]
    inserted: tuple[int, ...]
    deleted: tuple[int, ...]
    tolerance: int

    @property
    def exact(self) -> int:
        """Number of exact matches."""
        return len(self.matched)

    @property
    def near(self) -> int:
        """Number of near misses."""
        return len(self.near_pairs)

    @property
    def insertions(self) -> int:
        """Number of boundaries that only the hypothesis has."""
        return len(self.inserted)

    @property
    def deletions(self) -> int:
        """Number of boundaries that only the reference has."""
        return len(self.deleted)

    @property
    def weight(self) -> float:
        """Summed distance of the near misses over the tolerance: what they cost, in insertions."""
        return sum(abs(reference - hypothesis) for reference, hypothesis in self.near_pairs) / self.tolerance


def match_boundaries(reference: Iterable[int], hypothesis: Iterable[int], tolerance: int) -> BoundaryMatch:
    """Match boundaries: equal ones first, then as many near misses as possible at the least total distance.

    Exact for any input, after one sort. Takes time proportional to the pairs of boundaries within the tolerance,
    of which there are fewer than 2 * `tolerance` for each boundary of the reference.

    Args:
        reference: The right boundaries.
        hypothesis: The boundaries to be judged.
        tolerance: n_t of Fournier (2013): a near miss is off by at least 1 and less than this; 1 allows none.

    Raises:
        ValueError: If the tolerance is below 1.
    """
    if tolerance < 1:
        raise ValueError(f"found tolerance {tolerance!r}, expected at least 1")
    right, answered = set(reference), set(hypothesis)
    missed, surplus = sorted(right - answered), sorted(answered - right)
    near = _near_pairs(missed, surplus, tolerance)
    near_right, near_answered = ({pair[side] for pair in near} for side in (0, 1))
    return BoundaryMatch(
        matched=tuple(sorted(right & answered)),
        near_pairs=tuple(near),
        inserted=tuple(boundary for boundary in surplus if boundary not in near_answered),
        deleted=tuple(boundary for boundary in missed if boundary not in near_right),
        tolerance=tolerance,
    )


_Path: TypeAlias = "tuple[int, tuple[int, int] | None, _Path | None]"
"""What some pairs are worth, the last pair, and the path before it (``None`` for a path without pairs)."""


def _near_pairs(reference: Sequence[int], hypothesis: Sequence[int], tolerance: int) -> list[tuple[int, int]]:
    """Pair boundaries of two sorted lists that have none in common.

    Uncrossing two pairs on a line makes neither the larger of their distances nor the sum larger, so that some best
    pairing keeps the order of both lists. `best` is a row of the usual table of prefixes: what the references
    so far make of the first j hypotheses. Only hypotheses in reach of the current reference have a column.
    """
    worth = tolerance * (min(len(reference), len(hypothesis)) + 1)  # one pair more outweighs all distances
    best: list[_Path] = [(0, None, None)]
    first = 0
    for boundary in reference:
        low = bisect_right(hypothesis, boundary - tolerance)
        high = bisect_left(hypothesis, boundary + tolerance)
        above = [best[min(column - first, len(best) - 1)] for column in range(low, high + 1)]
        row = above[:1]
        for column in range(low, high):
            other = hypothesis[column]
            before = above[column - low]
            paired = (before[0] + worth - abs(boundary - other), (boundary, other), before)
            row.append(max(above[column - low + 1], row[-1], paired, key=itemgetter(0)))
        best, first = row, low
    return _pairs_of(best[-1])


def _pairs_of(path: _Path) -> list[tuple[int, int]]:
    pairs = []
    step: _Path | None = path
    while step is not None and step[1] is not None:
        pairs.append(step[1])
        step = step[2]
    return pairs[::-1]


def boundary_score(
    exact: "FloatArray", near: "FloatArray", insertions: "FloatArray", deletions: "FloatArray", weight: "FloatArray"
) -> "FloatArray":
    """Return boundary similarity B (Fournier 2013, "Evaluating Text Segmentation using Boundary Edit Distance").

    B = 1 - (A + w) / (A + T + M) with A insertions and deletions, T near misses that weigh w, M exact matches.
    For sums over cases it is the similarity of all boundaries pooled.

    Returns:
        A column in [0, 1]; 1 where there is no boundary at all.
    """
    import numpy as np

    missed = insertions + deletions
    total = exact + near + missed
    return 1.0 - (missed + weight) / np.where(total > 0, total, 1.0)


class WindowErrors(NamedTuple):
    """Windows on which two segmentations disagree, and all windows; their ratio is the error rate."""

    errors: int
    windows: int


def pk(n_sentences: int, reference: Iterable[int], hypothesis: Iterable[int]) -> WindowErrors:
    """Count the windows of Pk (Beeferman, Berger and Lafferty 1999).

    A window is wrong if its two ends lie in one segment by one side and in different segments by the other. Its
    length is half the mean segment of the reference, rounded half to even, and at least 2, as in segeval.

    Args:
        n_sentences: How many sentences there are.
        reference: The right boundaries; those that are not between two sentences have no effect.
        hypothesis: The boundaries to be judged; likewise.

    Returns:
        Wrong windows and all windows; no window if the text is not longer than one.
    """
    return _disagreements(n_sentences, reference, hypothesis, lambda right, answered: bool(right) != bool(answered))


def window_diff(n_sentences: int, reference: Iterable[int], hypothesis: Iterable[int]) -> WindowErrors:
    """Count the windows of WindowDiff (Pevzner and Hearst 2002): wrong if the numbers of boundaries in it differ.

    Arguments, windows and result are as in `pk`.
    """
    return _disagreements(n_sentences, reference, hypothesis, int.__ne__)


def _disagreements(
    n_sentences: int, reference: Iterable[int], hypothesis: Iterable[int], differ: Callable[[int, int], bool]
) -> WindowErrors:
    right, other = (
        [each for each in sorted(set(side)) if 0 <= each < n_sentences - 1] for side in (reference, hypothesis)
    )
    size = max(round(n_sentences / (2 * (len(right) + 1))), _SMALLEST_WINDOW)
    windows = max(n_sentences - size, 0)
    # What a window holds changes only where a boundary enters or leaves it.
    changes = {0, windows} | {min(max(each + step, 0), windows) for each in (*right, *other) for step in (1 - size, 1)}
    errors = 0
    for start, end in pairwise(sorted(changes)):
        if differ(_count(right, start, start + size), _count(other, start, start + size)):
            errors += end - start
    return WindowErrors(errors, windows)


def _count(boundaries: Sequence[int], low: int, high: int) -> int:
    return bisect_left(boundaries, high) - bisect_left(boundaries, low)


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
