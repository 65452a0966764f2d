"""Sentences, and segment boundaries: exact and near matches, boundary similarity, Pk and WindowDiff.

Boundary i lies after sentence i, counted from 0. Lists of boundaries are sets: order and repetition do not matter.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from pytest_llmeval.core.observation import FloatArray

_SMALLEST_WINDOW = 2


@dataclass(frozen=True, slots=True)
class BoundaryMatch:
    """How the boundaries of a hypothesis correspond to those of a reference.

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
    return _disagreements(n_sentences, reference, hypothesis, lambda right, found: bool(right) != bool(found))


def window_diff(n_sentences: int, reference: Iterable[int], hypothesis: Iterable[int]) -> WindowErrors:
    """Count the windows of WindowDiff (Pevzner and Hearst 2002): wrong if the numbers of boundaries in it differ.

    Arguments, windows and result are as in `pk`.
    """
    return _disagreements(n_sentences, reference, hypothesis, int.__ne__)


def _disagreements(
    n_sentences: int, reference: Iterable[int], hypothesis: Iterable[int], differ: Callable[[int, int], bool]
) -> WindowErrors:
    right, found = (
        [each for each in sorted(set(side)) if 0 <= each < n_sentences - 1] for side in (reference, hypothesis)
    )
    size = max(round(n_sentences / (2 * (len(right) + 1))), _SMALLEST_WINDOW)
    windows = max(n_sentences - size, 0)
    # What a window holds changes only where a boundary enters or leaves it.
    changes = {0, windows} | {min(max(each + step, 0), windows) for each in (*right, *found) for step in (1 - size, 1)}
    errors = 0
    for start, end in pairwise(sorted(changes)):
        if differ(_count(right, start, start + size), _count(found, start, start + size)):
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
