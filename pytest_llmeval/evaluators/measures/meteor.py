"""WordNet for METEOR: locating its files, and reading them."""

__all__ = ("meteor_score", "open_wordnet")

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from pytest_llmeval.core.errors import MissingDataError

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
    root = _installed() if folder is None else _given(folder)
    reader_type = _reader_type()
    try:
        with _readable(root), warnings.catch_warnings():
            # METEOR is about English; that other languages are absent is no news.
            warnings.filterwarnings("ignore", message="The multilingual functions are not available")
            return reader_type(root, None)
    except OSError as error:
        raise MissingDataError(f"WordNet in {root} is incomplete ({error}): {_INSTALL}") from error


def _given(folder: str) -> str:
    if not Path(folder, "data.noun").is_file():
        raise MissingDataError(
            f"METEOR found no WordNet file data.noun in {folder!r}: set the right folder, or {_INSTALL}"
        )
    return str(Path(folder).resolve())


def _installed() -> Any:
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
    """Let NLTK read one folder while its files are opened.

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
    """Return METEOR of one answer: words are aligned by form, Porter stem, then WordNet synonym.

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
    from nltk.translate.meteor_score import single_meteor_score

    return float(single_meteor_score(reference, prediction, wordnet=open_wordnet(wordnet)))
