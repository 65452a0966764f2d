"""A JSON file of scores, ``{key: score}``, completed from run to run."""

__all__ = ("ScoreFile", "keys_of_ids", "score_key", "scored_ids")

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.data.files.documents import load_json
from pytest_llmeval.data.files.writing import rewrite

_DIGITS = 16
_KEY = re.compile(rf"(.*)/(.*)#[0-9a-f]{{{_DIGITS}}}", re.DOTALL)


def score_key(sample: str, question: str, asked: Sequence[str]) -> str:
    """Return what a score is kept under: another answer, or the same id in another conversation, is another key.

    Args:
        sample: Id of the conversation.
        question: Id of the question in it.
        asked: Everything that the score depends on but the judge.
    """
    digest = sha256(json.dumps(list(map(str, asked))).encode()).hexdigest()[:_DIGITS]
    return f"{sample}/{question}#{digest}"


def scored_ids(key: str) -> list[str]:
    """Return the ids of the case that a key may be about, the fullest first; a plain id is its own.

    >>> scored_ids("conv-1/q7#0123456789abcdef"), scored_ids("q7")
    (['conv-1/q7', 'q7'], ['q7'])
    """
    found = _KEY.fullmatch(key)
    return [f"{found[1]}/{found[2]}", found[2]] if found is not None else [key]


def keys_of_ids(questions: Iterable[tuple[str, str, str]]) -> dict[str, set[str]]:
    """Return what the questions that an id may mean are kept under.

    Args:
        questions: Id of the conversation, id of the question in it, and `score_key` of each.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for sample, question, key in questions:
        for name in (question, f"{sample}/{question}"):
            found[name].add(key)
    return dict(found)


@dataclass
class ScoreFile:
    """The file and its scores.

    Attributes:
        path: The file.
        scores: Key to score, from 0 to 1.
    """

    path: Path
    scores: dict[str, float] = field(default_factory=dict)
    _new: dict[str, float] = field(default_factory=dict)
    _moved: set[str] = field(default_factory=set)

    @classmethod
    def open(cls, path: Path) -> "ScoreFile":
        """Read a file, or begin a new one; its folder is made.

        Raises:
            SuiteError: The file is not what `save` writes; all faults are listed, and it is left unchanged.
            OSError: The folder cannot be made.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        return cls(path, _read(path))

    def add(self, key: str, score: float) -> None:
        """Remember a score until `save`."""
        self.scores[key] = self._new[key] = score

    @property
    def plain_ids(self) -> list[str]:
        """The keys that are ids of questions, as other programs write them."""
        return [key for key in self.scores if _KEY.fullmatch(key) is None]

    def move(self, names: Mapping[str, str]) -> None:
        """Move scores from one key to another, until `save` in memory; a score that is there already stays."""
        for name, key in names.items():
            self._moved.add(name)
            score = self.scores.pop(name)
            if key not in self.scores:
                self.add(key, score)

    @property
    def unsaved(self) -> int:
        """How many scores the file does not have yet."""
        return len(self._new)

    def save(self) -> None:
        """Merge new scores into the file, sorted, and keep those that other processes have added.

        Raises:
            OSError: It cannot be written.
            SuiteError: It has been damaged in the meantime, and is left unchanged.
        """
        if self._new or self._moved:
            rewrite(self.path, lambda: _text(self._merged(_read(self.path))))
            self._new.clear()
            self._moved.clear()

    def _merged(self, there: Mapping[str, float]) -> dict[str, float]:
        return {key: score for key, score in {**there, **self._new}.items() if key not in self._moved}


def _text(scores: Mapping[str, float]) -> str:
    return json.dumps(scores, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _read(path: Path) -> dict[str, float]:
    """Read a file; an absent one is empty."""
    if not path.exists():
        return {}
    document = load_json(path, str(path))
    if not isinstance(document.data, dict):
        found = f"a {type(document.data).__name__}"
        raise SuiteError([document.fault((), f"found {found}, expected an object of question ids and scores")])
    faults = [
        document.fault([key], f"found {json.dumps(value)[:80]}, expected a score from 0 to 1")
        for key, value in document.data.items()
        if type(value) not in (int, float) or not 0 <= value <= 1
    ]
    if faults:
        raise SuiteError(faults)
    return {key: float(value) for key, value in document.data.items()}
