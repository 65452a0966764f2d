"""A JSON file of scores, ``{question_id: score}``, completed from run to run."""

__all__ = ("ScoreFile",)

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.data.files.documents import load_json
from pytest_llmeval.data.files.writing import rewrite


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
    def unsaved(self) -> int:
        """How many scores the file does not have yet."""
        return len(self._new)

    def save(self) -> None:
        """Merge new scores into the file, sorted, and keep those that other processes have added.

        Raises:
            OSError: It cannot be written.
            SuiteError: It has been damaged in the meantime, and is left unchanged.
        """
        if self._new:
            rewrite(self.path, lambda: _text({**_read(self.path), **self._new}))
            self._new.clear()


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
