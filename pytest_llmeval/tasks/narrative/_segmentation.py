"""Evaluator ``segmentation``.

Boundary i lies after sentence i, counted from 0. Lists of boundaries are sets: order and repetition do not matter.
"""

import math
import operator
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from pytest_llmeval.core import (
    Case,
    Evaluator,
    EvaluatorError,
    FloatArray,
    LazyDetails,
    Metric,
    Observation,
    Reads,
    Sums,
    listed,
)
from pytest_llmeval.evaluators import AnswerValue

_END_MARKS = re.compile("[。！？.!?]+")


def end_mark_spans(text: str) -> list[tuple[int, int]]:
    """Split a text at its end marks, as the official scorer of story segmentation counts sentences.

    A sentence ends after a run of ``。 ！ ？ . ! ?``, and the next one begins right there, with the white space
    between them. What follows the last run, even white space alone, is one more sentence. Abbreviations and
    decimals do split; for sentences as people read them, see `evaluators/measures/_sentences.py`.
    Linear in the length of the text.

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
    return max(bisect_right(spans, (position, math.inf)) - 1, 0)


_SMALLEST_WINDOW = 2


class BoundaryMatch(Struct, frozen=True):
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
    """Pair near misses among the segment boundaries of two sorted lists that have none in common.

    Uncrossing two pairs on a line makes neither the larger of their distances nor the sum larger, so that some best
    pairing keeps the order of both lists. `best` is a row of the usual table of prefixes: what the references
    so far make of the first j hypotheses. Only hypotheses in reach of the current reference have a column.
    """
    worth = tolerance * (min(len(reference), len(hypothesis)) + 1)  # one pair more outweighs all distances
    best: list[_Path] = [(0, None, None)]
    first = 0
    for boundary in reference:
        low = bisect_right(hypothesis, boundary - tolerance, first)
        high = bisect_left(hypothesis, boundary + tolerance, low)
        if low == high:  # its row would be that of the reference before it
            continue
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
    """The matched boundaries along a path of the alignment of two text segmentations."""
    pairs = []
    step: _Path | None = path
    while step is not None and step[1] is not None:
        pairs.append(step[1])
        step = step[2]
    return pairs[::-1]


def boundary_score(
    exact: FloatArray, near: FloatArray, insertions: FloatArray, deletions: FloatArray, weight: FloatArray
) -> FloatArray:
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
    """Windows on which two segmentations disagree; over all windows they are error rates.

    Attributes:
        pk: Windows whose two ends lie in one segment by one side and in different segments by the other (Beeferman,
            Berger and Lafferty 1999).
        window_diff: Windows in which the numbers of boundaries differ (Pevzner and Hearst 2002).
        windows: All windows; none if the text is not longer than one.
    """

    pk: int
    window_diff: int
    windows: int


def window_errors(n_sentences: int, reference: Iterable[int], hypothesis: Iterable[int]) -> WindowErrors:
    """Count the windows of Pk and WindowDiff.

    The length of a window is half the mean segment of the reference, rounded half to even, and at least 2, as in
    segeval. Takes the time of a sort of the boundaries, however long the text is.

    Args:
        n_sentences: How many sentences there are.
        reference: The right boundaries; those that are not between two sentences have no effect.
        hypothesis: The boundaries to be judged; likewise.
    """
    right, other = (
        [boundary for boundary in set(side) if 0 <= boundary < n_sentences - 1] for side in (reference, hypothesis)
    )
    size = max(round(n_sentences / (2 * (len(right) + 1))), _SMALLEST_WINDOW)
    windows = max(n_sentences - size, 0)
    # What a window holds changes only where a boundary enters or leaves it. One number says where, and what changes.
    changes = [
        *[(boundary - size) * 4 for boundary in right],
        *[(boundary - size) * 4 + 1 for boundary in other],
        *[boundary * 4 + 2 for boundary in right],
        *[boundary * 4 + 3 for boundary in other],
    ]
    changes.sort()
    last = (windows - 1) * 4
    pk = window_diff = start = in_right = in_other = 0
    for change in (*changes[: bisect_left(changes, last)], last):
        end = (change >> 2) + 1
        if end > start:
            if in_right != in_other:
                window_diff += end - start
                if not (in_right and in_other):
                    pk += end - start
            start = end
        step = -1 if change & 2 else 1
        if change & 1:
            in_other += step
        else:
            in_right += step
    return WindowErrors(pk, window_diff, windows)


_COUNTS = ("exact_matches", "near_misses", "insertions", "deletions")
_WINDOWED = ("pk", "window_diff")
_WORDS = {
    "missing_boundaries": "missing boundaries",
    "extra_boundaries": "extra boundaries",
    "repeated_boundaries": "repeated boundaries",
    "outside_text": "boundaries outside the text",
}
_FORM = "expected a list of whole numbers"
_UNKNOWN_LENGTH = "the number of sentences is unknown: give a text or a list of sentences as input, or n_sentences"
TOO_SHORT = "the text is not longer than one window"


@dataclass(frozen=True)
class Segmentation(Evaluator):
    """Boundary similarity, exact and near matches, insertions and deletions, Pk and WindowDiff.

    Boundary i lies after sentence i, counted from 0. ``expected`` is a list of boundaries, or an object with
    ``boundaries`` and ``n_sentences``; an empty list means a single segment. ``prediction`` is a list
    of boundaries, or an object with ``boundaries``. ``input`` is the list of sentences or their text, and gives the
    number of sentences where ``n_sentences`` does not; Pk and WindowDiff are undefined without it, and where the text
    is not longer than one window.

    Lists are read as sets. A predicted boundary outside the text counts as any other for all metrics but Pk and
    WindowDiff, where it has no effect. A predicted value that is no whole number is malformed and counts nowhere.

    The counts of a suite are sums, its boundary score is that of all boundaries pooled, and its Pk and WindowDiff are
    wrong windows over windows of all cases.

    Attributes:
        tolerance: n_t of Fournier (2013): boundaries less than this apart are near misses; 1 allows none.
    """

    name = "segmentation"
    reads = Reads(own_keys=("boundaries",))

    tolerance: int = 2

    def __post_init__(self) -> None:
        if self.tolerance < 1:
            raise ValueError(f"tolerance: found {self.tolerance!r}, expected at least 1")

    def describe(self) -> Sequence[Metric]:
        """Return the boundary score in [0, 1], four counts, and the error rates Pk and WindowDiff in [0, 1]."""
        return describe_boundaries(self.tolerance, self.version)

    def check(self, case: Case) -> Iterable[str]:
        """Yield what is wrong with the right boundaries, those outside the text included."""
        gold = _Gold.read(case)
        if gold.fault:
            yield gold.fault
            return
        if isinstance(case.input, (list, tuple)) and gold.n_sentences != len(case.input):
            yield f"found n_sentences {gold.n_sentences}, expected {len(case.input)}, as many as the input has"
        for boundary in _outside(gold.boundaries, gold.n_sentences):
            last = "" if gold.n_sentences is None else f" to {gold.n_sentences - 1}"
            yield f"found boundary {boundary}, expected the index of a sentence, 0{last or ' or more'}"

    def measure(self, case: Case) -> Observation:
        """Match the boundaries of one case.

        Raises:
            EvaluatorError: If the expected boundaries are neither absent nor whole numbers.
        """
        gold = _Gold.read(case)
        if gold.fault:
            raise EvaluatorError(gold.fault)
        predicted, malformed = _read_prediction(case.prediction)
        if gold.absent:
            names = [metric.name for metric in self.describe()]
            return Observation({}, undefined=dict.fromkeys(names, "no expected boundaries"), malformed=malformed)
        match = match_boundaries(gold.boundaries, predicted, self.tolerance)
        windows = window_errors(gold.n_sentences or 0, gold.boundaries, predicted)
        counts = boundary_counts(match, windows)
        undefined = {}
        if not windows.windows:
            undefined = dict.fromkeys(_WINDOWED, _UNKNOWN_LENGTH if gold.n_sentences is None else TOO_SHORT)
        details: Mapping[str, Any] = LazyDetails(lambda: _details(match, gold, predicted))
        if gold.n_sentences is None and not details:  # with a number of sentences there are some
            details = {}
        return Observation(counts, details, undefined, malformed)

    def explain(self, case: Case, observation: Observation) -> list[str]:
        """Say which boundaries are missing, extra, misplaced, repeated or outside the text."""
        del case
        details = observation.details
        lines = [
            f"boundary misplaced: found after sentence {answered}, expected after sentence {right}"
            for right, answered in details.get("near_pairs", ())
        ]
        return lines + [
            f"{words}: {listed([f'after sentence {boundary}' for boundary in details[name]])}"
            for name, words in _WORDS.items()
            if details.get(name)
        ]

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        """Return the boundary score of all boundaries pooled, sums of the counts, and pooled error rates."""
        rates = {name: sums[f"{name}.errors"] / sums[f"{name}.windows"] for name in _WINDOWED}
        return summarize_boundaries(sums) | rates


def describe_boundaries(tolerance: int, version: str) -> list[Metric]:
    """The metrics of segment boundaries in `summarize_boundaries`, then Pk and WindowDiff."""
    matching = f"n_t:{tolerance}|matching:optimal|v:{version}"
    windowed = f"window:half-mean-segment|segeval:compatible|v:{version}"
    return [
        Metric("boundary_score", signature=matching),
        *(Metric(name, name == "exact_matches", high=None, signature=matching) for name in _COUNTS),
        *(Metric(name, higher_is_better=False, signature=windowed) for name in _WINDOWED),
    ]


def boundary_counts(match: BoundaryMatch, windows: WindowErrors) -> dict[str, float]:
    """The counts of matched segment boundaries, for `summarize_boundaries`, and of windows, if there are any."""
    counts = {
        "exact_matches": match.exact,
        "near_misses": match.near,
        "insertions": match.insertions,
        "deletions": match.deletions,
        "near_misses.weight": match.weight,
        "boundaries.n": 1,
    }
    if windows.windows:
        counts["pk.errors"], counts["pk.windows"] = windows.pk, windows.windows
        counts["window_diff.errors"], counts["window_diff.windows"] = windows.window_diff, windows.windows
    return counts


def summarize_boundaries(sums: Sums) -> dict[str, FloatArray]:
    """The pooled ``boundary_score`` of segmentations, and summed counts; NaN without any boundary."""
    import numpy as np

    exact, near, insertions, deletions = (sums[name] for name in _COUNTS)
    pooled = boundary_score(exact, near, insertions, deletions, sums["near_misses.weight"])
    columns = {"boundary_score": pooled} | {name: sums[name] for name in _COUNTS}
    return {name: np.where(sums["boundaries.n"] > 0, column, np.nan) for name, column in columns.items()}


class _Gold(Struct, frozen=True):
    """The right segment boundaries of a case.

    Attributes:
        absent: Whether there are none to compare with, which is not the same as an empty list.
        boundaries: As given.
        n_sentences: ``None`` if unknown.
        fault: What is wrong with the form of the expected value.
    """

    absent: bool = False
    boundaries: list[int] = []
    n_sentences: int | None = None
    fault: str | None = None

    @classmethod
    def read(cls, case: Case) -> "_Gold":
        stated = case.expected.get("n_sentences") if isinstance(case.expected, Mapping) else None
        n_sentences = _sentence_count(case.input) if stated is None else _whole(stated)
        if stated is not None and (n_sentences is None or n_sentences < 0):
            return cls(fault=f"found {AnswerValue(stated).kind} as n_sentences, expected a whole number of at least 0")
        values = _listed(case.expected)
        if values is None:
            return cls(absent=True, n_sentences=n_sentences)
        boundaries, fault = _read(values)
        return cls(False, boundaries, n_sentences, fault)


def _sentence_count(value: Any) -> int | None:
    """The number of sentences of a segmented text, or of a list of sentences."""
    if isinstance(value, str):
        return len(end_mark_spans(value))
    return len(value) if isinstance(value, (list, tuple)) else None


def _listed(value: Any) -> Any:
    """The segment boundaries of an object that has some, else the value itself."""
    return value["boundaries"] if isinstance(value, Mapping) and "boundaries" in value else value


def _read_prediction(prediction: Any) -> tuple[list[int], str | None]:
    """The predicted segment boundaries, and the fault of a malformed prediction."""
    return _read(_listed(prediction))


def _read(values: Any) -> tuple[list[int], str | None]:
    """The whole numbers in a list of segment boundaries, and the fault of a list with anything else."""
    if not isinstance(values, (list, tuple)):
        return [], f"found {AnswerValue(values).kind}, {_FORM}"
    if _WHOLE.issuperset(map(type, values)):
        return list(values), None
    numbers = [_whole(value) for value in values]
    wrong = [
        f"{AnswerValue(value).kind} at position {position}"
        for position, (value, number) in enumerate(zip(values, numbers, strict=True), start=1)
        if number is None
    ]
    more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    fault = f"found {wrong[0]}{more}, {_FORM}" if wrong else None
    return [number for number in numbers if number is not None], fault


_WHOLE = frozenset({int})


def _whole(value: Any) -> int | None:
    """A segment boundary as an integer (JSON does not distinguish 3 from 3.0); ``None`` for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    try:
        return operator.index(value)
    except TypeError:
        return None


def _outside(boundaries: Iterable[int], n_sentences: int | None) -> list[int]:
    """The predicted segment boundaries that lie after no sentence of the text."""
    return sorted(
        {boundary for boundary in boundaries if boundary < 0 or (n_sentences is not None and boundary >= n_sentences)}
    )


def _repeated(boundaries: Sequence[int]) -> list[int]:
    """The predicted segment boundaries that are listed more than once."""
    if len(set(boundaries)) == len(boundaries):  # counting takes ten times as long
        return []
    return sorted(boundary for boundary, times in Counter(boundaries).items() if times > 1)


def _details(match: BoundaryMatch, gold: _Gold, predicted: Sequence[int]) -> dict[str, Any]:
    """The details of a segmentation case for the report, without empty ones."""
    details = {
        "n_sentences": gold.n_sentences,
        "missing_boundaries": list(match.deleted),
        "extra_boundaries": list(match.inserted),
        "near_pairs": [list(pair) for pair in match.near_pairs],
        "outside_text": _outside(predicted, gold.n_sentences),
        "repeated_boundaries": _repeated(predicted),
    }
    return {name: value for name, value in details.items() if value not in (None, [])}
