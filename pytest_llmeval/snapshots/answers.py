"""The approved answers of a suite, for evaluators that compare with them."""

__all__ = ("ApprovedAnswers", "answers_text")

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.missing import NoAnswer
from pytest_llmeval.snapshots.files import answers_file, score_file
from pytest_llmeval.suite.suite import SuiteKey

_NONE = "no answer is approved: set 'snapshot: true' in the suite, and run pytest --llmeval --snapshot-update"


def answers_text(cases: Iterable[Case], rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of a file of answers: a line for each, sorted.

    Args:
        cases: Of the suite.
        rows: Recordings of the answers to them.
    """
    from pytest_llmeval.targets.python import fingerprint

    inputs = {case.id: fingerprint(case.input) for case in cases}
    lines = {}
    for row in rows:
        if row["case"] in inputs:
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
        rows: Case and repeat to its line.
        fault: Why there are none.
    """

    rows: Mapping[tuple[str, int], Mapping[str, Any]]
    fault: str = ""

    @classmethod
    def read(cls, key: SuiteKey) -> "ApprovedAnswers":
        """Read the answers that were approved with the scores of a suite."""
        path = answers_file(score_file(key))
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return cls({}, _NONE)
        except (OSError, UnicodeDecodeError) as error:
            return cls({}, f"{path.name} cannot be read: {error}")
        rows = {}
        for number, line in enumerate(text.rstrip("\n").split("\n"), 1):  # texts may hold other line separators
            try:
                row = json.loads(line)
                rows[row["case"], row["repeat"]] = {"input": row["input"], "prediction": row["prediction"]}
            except (KeyError, RecursionError, TypeError, ValueError):
                expected = "expected an approved answer: restore the file from version control"
                return cls({}, f"{path.name}:{number}: {expected}")
        return cls(rows)

    def find(self, case: Case, repeat: int) -> Any:
        """Return the approved answer to a case, or why there is none."""
        from pytest_llmeval.targets.python import fingerprint

        if self.fault:
            return NoAnswer(self.fault)
        row = self.rows.get((case.id, repeat))
        if row is None:
            return NoAnswer("no answer to this case is approved")
        if row["input"] != fingerprint(case.input):
            return NoAnswer("the approved answer is one to another input")
        return row["prediction"]
