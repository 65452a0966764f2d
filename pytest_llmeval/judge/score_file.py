"""A JSON file of scores, ``{question_id: score}``, completed from run to run."""

__all__ = ("ScoreFile",)

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path

from pytest_llmeval.core.errors import SuiteError
from pytest_llmeval.data.files.documents import load_json


@dataclass
class ScoreFile:
    """The file and what it holds.

    Attributes:
        path: The file.
        scores: Key to score, from 0 to 1.
    """

    path: Path
    scores: dict[str, float] = field(default_factory=dict)
    _saved: int = 0

    @classmethod
    def open(cls, path: Path) -> "ScoreFile":
        """Read a file, or begin a new one; its folder is made.

        Raises:
            SuiteError: The file is not what `save` writes; all faults are listed, and it stays as it is.
            OSError: The folder cannot be made.
        """
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            return cls(path)
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
        scores = {key: float(value) for key, value in document.data.items()}
        return cls(path, scores, len(scores))

    def add(self, key: str, score: float) -> None:
        """Remember a score until `save`."""
        self.scores[key] = score

    @property
    def unsaved(self) -> int:
        """How many scores the file does not have yet."""
        return len(self.scores) - self._saved

    def save(self) -> None:
        """Write the file if there is something new, sorted, in one step: nobody ever sees a part of it.

        Raises:
            OSError: It cannot be written.
        """
        if not self.unsaved:
            return
        text = json.dumps(self.scores, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        scratch = self.path.with_name(f".{self.path.name}.{uuid.uuid4().hex}.tmp")
        try:
            scratch.write_text(text, encoding="utf-8", newline="\n")
            scratch.replace(self.path)
        finally:
            scratch.unlink(missing_ok=True)
        self._saved = len(self.scores)
