"""Counts of common n-grams and their metrics (BLEU as NLTK, ROUGE as rouge-score); METEOR."""

import io
import math
import warnings
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pytest_llmeval.core import MissingDataError

_SHORT = 32
"""Below this length, counting in a loop is faster than making counters."""


def number_tokens(left: Sequence[str], right: Sequence[str]) -> tuple[list[int], list[int], int]:
    """Replace the tokens of an answer and a reference by small numbers, equal tokens by equal ones.

    Returns:
        Both sides as numbers, and how many different tokens there are.
    """
    numbers: defaultdict[str, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    number = numbers.__getitem__
    return list(map(number, left)), list(map(number, right)), len(numbers)


def shared_count(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """The number of tokens that two texts share: the size of the intersection of two multisets.

    Example:
        >>> shared_count("aab", "aaac")
        2
    """
    left_set = set(left)
    if len(left_set) == len(left):
        return len(left_set.intersection(right))
    right_set = set(right)
    common = left_set & right_set
    if len(right_set) == len(right):
        return len(common)
    if len(right) < _SHORT:
        return _shared_count_of_few(left, right)
    if 2 * len(common) < len(left_set):
        left = list(filter(common.__contains__, left))
        right = list(filter(common.__contains__, right))
    get = Counter(left).get
    return sum(
        [
            mine if mine < other else other  # noqa: FURB136  # calling min takes a third longer
            for item, other in Counter(right).items()
            if (mine := get(item))
        ]
    )


def _shared_count_of_few(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """The number of tokens that two short texts share, counted without the overhead of `Counter`."""
    if left == right:
        return len(left)
    unmatched: dict[Hashable, int] = {}
    for item in right:
        unmatched[item] = unmatched.get(item, 0) + 1
    shared = 0
    for item in left:
        if unmatched.get(item):
            unmatched[item] -= 1
            shared += 1
    return shared


def shared_ngrams(left: Sequence[int], right: Sequence[int], size: int, longest: int) -> list[int]:
    """The numbers of n-grams that two texts share (clipped counts), for n from 1 to `longest`.

    Args:
        left: Token numbers, each below `size`.
        right: As `left`.
        size: How many different tokens there are; an n-gram is numbered in base `size`.
        longest: The highest order.

    Returns:
        The counts; order n is at index n - 1.
    """
    shared = [shared_count(left, right)] + [0] * (longest - 1)
    left_grams, right_grams = left, right
    for order in range(2, longest + 1):
        if not shared[order - 2]:
            # Without a shared n-gram there is no longer one.
            break
        left_grams = [gram * size + token for gram, token in zip(left_grams, left[order - 1 :], strict=False)]
        right_grams = [gram * size + token for gram, token in zip(right_grams, right[order - 1 :], strict=False)]
        shared[order - 1] = shared_count(left_grams, right_grams)
    return shared


def exact_match(prediction: str, reference: str) -> float:
    """The exact match of an answer and a reference: 1.0 if they differ only in case and outer white space, else 0.0."""
    return float(prediction.strip().lower() == reference.strip().lower())


def token_f1(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """The token F1 of an answer against a reference, by their multisets of tokens.

    With *c* tokens in common, P = c / len(prediction), R = c / len(reference), F1 = 2PR / (P + R). In [0, 1]; 0
    where a side has no token. It is SQuAD's answer score (Rajpurkar et al. 2016) without dropping articles.
    """
    common = shared_count(prediction, reference)
    return harmonic_mean(common / len(prediction), common / len(reference)) if common else 0.0


def harmonic_mean(precision: float, recall: float) -> float:
    """The F1 of precision and recall, 2PR / (P + R), and 0 where both are 0."""
    total = precision + recall
    return 2 * precision * recall / total if total > 0 else 0.0


BLEU: Final = {"bleu1": 1, "bleu2": 2, "bleu4": 4}
"""The names that `bleu_scores` knows, with the highest order of n-grams, all weighted equally."""

_EPSILON = 0.1
"""What smoothing method 1 (Chen and Cherry 2014) puts in place of a count of 0."""


def bleu_scores(
    prediction: Sequence[str],
    reference: Sequence[str],
    names: Sequence[str] = tuple(BLEU),
    *,
    effective_order: bool = False,
) -> list[float]:
    """The BLEU scores of one answer against one reference.

    BLEU-N = BP · exp(Σ log(p_n) / N) with clipped n-gram precisions p_n and brevity penalty
    BP = min(1, exp(1 - len(reference) / len(prediction))); a p_n of 0 / k becomes 0.1 / k. In [0, 1]; 0 where no
    token is shared. Definitions: Papineni et al. 2002; NLTK's ``sentence_bleu``, whose order of operations is kept.

    Args:
        prediction: Tokens of the answer.
        reference: Tokens of the expected answer.
        names: Which of `BLEU` to compute.
        effective_order: Whether orders of which the answer is too short to have an n-gram are left out, as in
            sacrebleu; else each of them counts as 0.1.

    Returns:
        One score for each name.
    """
    longest = max(BLEU[name] for name in names)
    left, right, size = number_tokens(prediction, reference)
    shared = shared_ngrams(left, right, size, longest)
    if not shared[0]:
        return [0.0] * len(names)
    penalty = 1.0 if len(left) > len(right) else math.exp(1 - len(right) / len(left))
    logs = [
        math.log((_EPSILON if count == 0 else count) / max(1, len(left) - order)) for order, count in enumerate(shared)
    ]
    orders = len(left) if effective_order else longest
    return [penalty * math.exp(_mean_log(logs, min(BLEU[name], orders))) for name in names]


def _mean_log(logs: Sequence[float], orders: int) -> float:
    """The logarithm of the geometric mean of n-gram precisions in BLEU, up to an order."""
    weight = 1 / orders
    return math.fsum(weight * log for log in logs[:orders])


ROUGE: Final = ("rouge1", "rouge2", "rougeL")
"""The names that `rouge_scores` knows."""


def rouge_scores(prediction: Sequence[str], reference: Sequence[str], names: Sequence[str] = ROUGE) -> list[float]:
    """The ROUGE F-measures of an answer against a reference: n-grams, or the longest common subsequence.

    With *c* shared units, P = c / units of the prediction, R = c / units of the reference, F = 2PR / (P + R).
    In [0, 1]; 0 where nothing is shared. Definitions: Lin 2004, "ROUGE: A Package for Automatic Evaluation of
    Summaries".

    Args:
        prediction: Tokens of the answer.
        reference: Tokens of the expected answer.
        names: Which of `ROUGE` to compute.

    Returns:
        One F-measure for each name.
    """
    left, right, size = number_tokens(prediction, reference)
    ones, twos = shared_ngrams(left, right, size, 2)
    scores = []
    for name in names:
        if name == "rouge1":
            shared, shorter = ones, 0
        elif name == "rouge2":
            shared, shorter = twos, 1
        else:
            shared, shorter = (_longest_common_subsequence(left, right) if ones else 0), 0
        scores.append(_f_measure(shared, len(left) - shorter, len(right) - shorter))
    return scores


def _f_measure(shared: int, left: int, right: int) -> float:
    """The F-measure of ROUGE from the number of shared units and the units of both texts."""
    return harmonic_mean(shared / left, shared / right) if shared else 0.0


def _longest_common_subsequence(left: Sequence[int], right: Sequence[int]) -> int:
    """The length of the longest common subsequence of two texts' tokens, for ROUGE-L."""
    from rapidfuzz.distance import LCSseq

    return LCSseq.similarity(left, right)


_DEBIAN = "/usr/share/wordnet"
_LEXNAMES = 45
"""How many lexicographer files WordNet 3.0 was made from (lexnames(5WN))."""
_INSTALL = "install it with `python -m nltk.downloader wordnet` or `apt install wordnet-base`"


@lru_cache(maxsize=8)
def open_wordnet(folder: str | None = None) -> Any:
    """Open WordNet's database files; nothing is ever downloaded.

    Args:
        folder: Where ``data.noun`` and its sisters are. ``None``: NLTK's data path, else Debian's folder.

    Returns:
        A reader with NLTK's interface; one per folder and process.

    Raises:
        MissingDataError: If there are no such files.
    """
    root = _installed_wordnet() if folder is None else _checked_folder(folder)
    reader_type = _reader_type()
    try:
        with _readable(root), warnings.catch_warnings():
            # METEOR is about English; that other languages are absent is no news.
            warnings.filterwarnings("ignore", message="The multilingual functions are not available")
            return reader_type(root, None)
    except OSError as error:
        raise MissingDataError(f"WordNet in {root} is incomplete ({error}): {_INSTALL}") from error


def _checked_folder(folder: str) -> str:
    """The absolute path of a WordNet folder that the user set for METEOR; one without its files is refused."""
    if not Path(folder, "data.noun").is_file():
        raise MissingDataError(
            f"the WordNet file data.noun of METEOR is missing in {folder!r}: set the right folder, or {_INSTALL}"
        )
    return str(Path(folder).resolve())


def _installed_wordnet() -> Any:
    """The installed WordNet that METEOR reads: NLTK's, or Debian's folder."""
    import nltk.data

    for resource in ("corpora/wordnet", "corpora/wordnet.zip/wordnet/"):
        try:
            return nltk.data.find(resource)
        except LookupError:
            continue
    if Path(_DEBIAN, "data.noun").is_file():
        return _DEBIAN
    raise MissingDataError(f"METEOR needs WordNet, which is not installed: {_INSTALL}")


@contextmanager
def _readable(root: Any) -> Iterator[None]:
    """Let NLTK read WordNet's folder while its files are opened.

    NLTK refuses folders outside ``nltk.data.path``; adding one there marks it as trusted, and
    the files stay open afterwards.
    """
    import nltk.data

    before = list(nltk.data.path)
    nltk.data.path.append(str(root))
    try:
        yield
    finally:
        nltk.data.path[:] = before


@lru_cache(maxsize=1)
def _reader_type() -> Any:
    """The type of WordNet's reader for METEOR, defined late because importing NLTK is slow."""
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    class Reader(WordNetCorpusReader):  # type: ignore[misc]  # NLTK has no type information
        """Does without ``lexnames`` and ``index.sense``, which Debian leaves out and METEOR has no use for."""

        def __init__(self, root: Any, omw_reader: Any) -> None:
            super().__init__(root, omw_reader)
            for part_of_speech in self._FILEMAP:
                self._data_file(part_of_speech)

        def open(self, file: str) -> Any:
            if file == "lexnames":
                return io.StringIO("".join(f"{number:02} unnamed 0\n" for number in range(_LEXNAMES)))
            return super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            """Return no mapping to another version's offsets; it would need ``index.sense``."""
            del version

    return Reader


def meteor_score(prediction: Sequence[str], reference: Sequence[str], wordnet: str | None = None) -> float:
    """The METEOR score of one answer: words are aligned by form, Porter stem, then WordNet synonym.

    F = PR / (0.9 P + 0.1 R), reduced by the share 0.5 (chunks / matches)³. In [0, 1); not symmetric. Definitions:
    Lavie and Agarwal 2007; NLTK's ``meteor_score``, which is called (it compares synonyms with stems, so that "car"
    is a synonym of "auto" but not of "automobile", whose stem is "automobil").

    Args:
        prediction: Words of the answer.
        reference: Words of the expected answer.
        wordnet: Folder of WordNet's database files; see `open_wordnet`.

    Raises:
        MissingDataError: If WordNet is not installed.
    """
    reader = open_wordnet(wordnet)  # without its files, NLTK need not be imported, which takes seconds
    from nltk.translate.meteor_score import single_meteor_score

    return float(single_meteor_score(reference, prediction, wordnet=reader))
