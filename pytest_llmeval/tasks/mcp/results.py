"""Results of tools by tool and arguments: a committed file from which calls are answered without the server."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

from pytest_llmeval.core.errors import Fault, PredictionError, SuiteError
from pytest_llmeval.core.wording import excerpt
from pytest_llmeval.data.files.documents import read_jsonl
from pytest_llmeval.data.files.writing import rewrite
from pytest_llmeval.services.secrets import secret_values, without

RECORD: Final = "LLMEVAL_MCP=record"
"""Setting with which results are recorded."""

WITHHELD: Final = "withheld"
_ResultPlace: TypeAlias = tuple[str, str, str, int]
"""Tool, arguments, case, and how many equal calls the case made before."""


@dataclass
class RecordedResults:
    """The calls of one case, and the file of recorded results.

    Attributes:
        path: The file (JSONL).
        case: Id of the case.
        tools: The definitions of the tools.
        rows: By tool, arguments, case and number of the call.
    """

    path: Path
    case: str
    tools: Sequence[Mapping[str, Any]] = ()
    rows: dict[_ResultPlace, dict[str, Any]] = field(default_factory=dict)
    _numbers: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def read(cls, path: Path, case: str) -> Self:
        """Read a file.

        Raises:
            PredictionError: It is absent, or not one of recorded results.
        """
        if not path.exists():
            raise PredictionError(f"{path} does not exist; run once with {RECORD} to call the server")
        recorded, faults = cls(path, case), list[Fault]()
        for line, row in read_jsonl(path, str(path), faults):
            if isinstance(row, dict) and isinstance(row.get("tools"), list):
                recorded.tools = row["tools"]
            elif _is_row(row):
                recorded.rows[row["tool"], _line(row["arguments"]), row["case"], row.get("nth", 0)] = row
            else:
                expected = "expected an object with tools, or with tool, arguments, case and result"
                faults.append(Fault(str(path), line, 1, "", expected))
        if faults:
            raise PredictionError(str(SuiteError(faults)))
        return recorded

    def _next_place(self, tool: str, arguments: Mapping[str, Any]) -> _ResultPlace:
        key = tool, _line(arguments)
        self._numbers[key] += 1
        return *key, self.case, self._numbers[key] - 1

    def replayed(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the recorded result of the next call: that of this case, or else of all others if they agree.

        Raises:
            PredictionError: There is none.
        """
        place = self._next_place(tool, arguments)
        rows = [row for at, row in self.rows.items() if (*at[:2], at[3]) == (*place[:2], place[3])]
        row = self.rows.get(place) or (rows[0] if len({_line(each["result"]) for each in rows}) == 1 else None)
        if row is not None and WITHHELD not in row:
            result: dict[str, Any] = row["result"]
            return result
        why = "is not recorded" if row is None else "is not recorded, since its result has a secret,"
        call = f"{tool}({excerpt(_line(arguments)[1:-1], 120)})"
        raise PredictionError(f"{call} {why} in {self.path.name}; run once with {RECORD} to call the server")

    def add(self, tool: str, arguments: Mapping[str, Any], result: Mapping[str, Any]) -> None:
        """Record a result; one with the value of a secret variable is left out, since the file is committed."""
        place = self._next_place(tool, arguments)
        row: dict[str, Any] = {"tool": tool, "arguments": dict(arguments), "case": self.case, "result": result}
        if without(text := _line(result), secret_values()) != text:
            row |= {"result": None, WITHHELD: True}
        self.rows[place] = row | ({"nth": place[3]} if place[3] else {})

    def keep(self) -> None:
        """Write what this case recorded into the file, which other cases write as well.

        Raises:
            OSError: It cannot be written.
            PredictionError: It has another content.
        """

        def merged() -> str:
            stored = RecordedResults.read(self.path, self.case).rows if self.path.exists() else {}
            rows = {**stored, **self.rows}
            lines = [{"tools": self.tools}, *(rows[place] for place in sorted(rows))]
            return "".join(f"{_line(each)}\n" for each in lines)

        rewrite(self.path, merged)


def _is_row(row: Any) -> bool:
    texts = isinstance(row, dict) and all(isinstance(row.get(key), str) for key in ("tool", "case"))
    return texts and isinstance(row.get("arguments"), dict) and isinstance(row.get("nth", 0), int) and "result" in row


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
