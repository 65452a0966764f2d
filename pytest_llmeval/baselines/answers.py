"""The approved answers of a suite, for evaluators that compare with them."""

__all__ = ("ApprovedAnswers", "answers_text")

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.baselines.files import answers_file, score_file
from pytest_llmeval.baselines.runs import shown_beside
from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import format_error
from pytest_llmeval.core.parts import NoAnswer
from pytest_llmeval.data.files.documents import decode, read_bytes
from pytest_llmeval.data.files.places import FaultLog
from pytest_llmeval.suite.suite import SuiteKey
from pytest_llmeval.targets.recordings import input_digest

_NONE = "no answer is approved: set 'snapshot: true' in the suite, and run pytest --llmeval --snapshot-update"
_REPAIR = "restore the file from version control, or delete it and approve again"


def answers_text(cases: Iterable[Case], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of a file of answers: a line for each, sorted.

    Args:
        cases: Of the suite.
        rows: Recordings of the answers to them.
    """
    inputs = {case.id: input_digest(case.input) for case in cases}
    lines = {}
    for row in rows:
        if row["case"] in inputs and not row.get("withheld"):
            place = row["case"], row.get("repeat", 0)
            kept = {"case": place[0], "input": inputs[place[0]], "prediction": row["prediction"], "repeat": place[1]}
            lines[place] = _line(kept)
    return "".join(f"{lines[place]}\n" for place in sorted(lines))


def _line(row: Mapping[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False, sort_keys=True)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # half of a surrogate pair, which models do emit
        return json.dumps(row, sort_keys=True)
    return text


@dataclass(frozen=True)
class ApprovedAnswers:
    """The approved answers of one suite, or of one of its systems.

    Attributes:
        rows: Case and repeat to its line; ``None`` where none were approved.
    """

    rows: Mapping[tuple[str, int], Mapping[str, Any]] | None

    @classmethod
    def read(cls, key: SuiteKey) -> "ApprovedAnswers":
        """Read the answers that were approved with the scores of a suite.

        Raises:
            SuiteError: The file cannot be read, or lines are no answers; all of them are listed.
        """
        path = answers_file(score_file(key))
        if not path.exists():
            return cls(None)
        shown = shown_beside(key, path)
        faults = FaultLog(shown)
        lines: dict[tuple[str, int], int] = {}
        rows = {}
        # Texts may hold other line separators.
        for number, line in enumerate(decode(read_bytes(path, shown), shown).split("\n"), 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                place = str(row["case"]), int(row["repeat"])
                rows[place] = {"input": row["input"], "prediction": row["prediction"]}
            except (KeyError, RecursionError, TypeError, ValueError) as error:
                faults.add(number, 1, "", f"found no approved answer ({format_error(error)}), expected one: {_REPAIR}")
                continue
            if (first := lines.setdefault(place, number)) != number:
                faults.add(number, 1, "case", f"found the answer of line {first} again, expected one: {_REPAIR}")
        faults.check()
        return cls(rows)

    def find(self, case: Case, repeat: int) -> Any:
        """Return the approved answer to a case, or why there is none."""
        if self.rows is None:
            return NoAnswer(_NONE)
        row = self.rows.get((case.id, repeat))
        if row is None:
            return NoAnswer("no answer to this case is approved")
        if row["input"] != input_digest(case.input):
            return NoAnswer("the approved answer is one to another input")
        return row["prediction"]

    def by_case(self, cases: Iterable[Case]) -> dict[str, list[Any]]:
        """Return the approved answers to cases by id, those of repeats in order; none where the input has changed."""
        inputs = {case.id: input_digest(case.input) for case in cases}
        found: dict[str, list[Any]] = {}
        for (case, _), row in sorted((self.rows or {}).items(), key=lambda each: each[0]):
            if inputs.get(case) == row["input"]:
                found.setdefault(case, []).append(row["prediction"])
        return found
