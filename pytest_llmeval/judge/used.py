"""The judgements that a run used: as they travel from tests to the controller, and written beside the files that asked.

They travel as one line of ASCII on a test's report, as results do.
"""

__all__ = ("UsedJudgements", "Written", "encode_judgements")

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_llmeval.errors import LlmevalError
from pytest_llmeval.judge.entry import Entry
from pytest_llmeval.judge.recordings import Judgements, judgements_of, merge_judgements, write_judgements


class Written(NamedTuple):
    """What came of one file of recordings.

    Attributes:
        path: The file.
        judgements: How many judgements the run used, if the file has changed; else 0.
        fault: Why it could not be written, or nothing.
    """

    path: Path
    judgements: int
    fault: str = ""


def encode_judgements(used: Iterable[tuple[Path, Entry]]) -> str:
    """Write judgements, each with the file that asked for it, as one line of ASCII."""
    return json.dumps([(str(asking), entry.to_json()) for asking, entry in used])


class UsedJudgements:
    """Judgements by the file that they are recorded in."""

    def __init__(self) -> None:
        self._used: dict[Path, list[Entry]] = {}

    def take(self, text: str) -> None:
        """Add what `encode_judgements` wrote."""
        for asking, entry in json.loads(text):
            self._used.setdefault(judgements_of(Path(asking)), []).append(Entry.from_json(entry))

    def write(self, renewed: Mapping[Path, Collection[str]]) -> Iterator[Written]:
        """Write recordings, in the order of their files.

        Args:
            renewed: Suites that asked for everything anew, to their cases that lack a score: what the others did not
                use is forgotten.

        Yields:
            What came of each file.
        """
        anew = {judgements_of(asking): lacking for asking, lacking in renewed.items()}
        for path, used in sorted(self._used.items()):
            try:
                old = Judgements.read(path).entries.values()
                forget = {entry.case for entry in old}.difference(anew[path]) if path in anew else ()
                # Of cases that share a verdict the first by name stands for it, whichever was reported first.
                used.sort(key=lambda entry: entry.case, reverse=True)
                changed = write_judgements(path, merge_judgements(old, used, forget))
                yield Written(path, len({entry.key for entry in used}) if changed else 0)
            except LlmevalError as error:
                yield Written(path, 0, str(error))
