"""Results of an agent in a JSONL file: added as they arrive, and read back by the run that goes on."""

__all__ = ("SavedResults",)

import errno
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_llmeval.core.errors import Fault, SuiteError
from pytest_llmeval.data.files.writing import append_text

_FIELDS = ("sample_id", "question_id", "question_type", "question", "ground_truth", "prediction")
_END = b"\n"


@dataclass
class SavedResults:
    """What an earlier run was answered, and where this one adds its results.

    Attributes:
        path: The file; ``None`` if nothing is saved.
    """

    path: Path | None
    _answered: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, save: str | Path | None, resume: str | Path | None) -> "SavedResults":
        """Read the file to resume, and make sure that the one to save to holds nothing else.

        Raises:
            FileExistsError: The file to save to exists.
            SuiteError: A line of the file to resume is no result.
        """
        earlier = Path(resume) if resume is not None else None
        path = Path(save) if save is not None else earlier
        if path is not None and path != earlier and path.exists():
            raise FileExistsError(errno.EEXIST, f"{os.strerror(errno.EEXIST)}; resume= goes on with it", str(path))
        saved = cls(path)
        if earlier is not None and earlier.exists():
            data = earlier.read_bytes()
            whole = data[: data.rfind(_END) + 1]  # a kill may have cut off the last line
            for row in _rows(earlier, whole):
                if not row.get("error"):
                    saved._answered[row["sample_id"], row["question_id"], row["question"]] = row
            if path == earlier and whole != data:
                os.truncate(earlier, len(whole))
        return saved

    def known(self, sample: str, question_id: str, question: str) -> Mapping[str, Any] | None:
        """Return the result of the earlier run for a question, if it was answered."""
        return self._answered.get((sample, question_id, question))

    def add(self, result: Mapping[str, Any]) -> None:
        """Add a result to the file.

        Raises:
            OSError: It cannot be written.
        """
        if self.path is not None:
            append_text(self.path, json.dumps(result) + "\n")


def _rows(path: Path, data: bytes) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(data.split(_END), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or any(not isinstance(row.get(name), str) for name in _FIELDS):
            expected = f"an object with text under {', '.join(_FIELDS)}"
            raise SuiteError([Fault(str(path), number, 1, "", f"found no result of run_eval, expected {expected}")])
        yield row
