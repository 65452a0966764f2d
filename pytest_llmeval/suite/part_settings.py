"""The settings of a suite file about predictions: their parts, who reads which, and conversations."""

__all__ = ("PartReader",)

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_llmeval.core.errors import Fault
from pytest_llmeval.core.parts import PARTS, WHOLE, Parts, expression_fault
from pytest_llmeval.core.turns import WANTED_TURN, Turn, is_turn
from pytest_llmeval.data.files.documents import read_document
from pytest_llmeval.data.files.plain import NotPlainError, plain
from pytest_llmeval.data.files.validation import check, describe
from pytest_llmeval.suite.conversation import ConversationSpec


class PartReader:
    """One reading of one suite file; collects faults.

    Attributes:
        document: Its content.
        faults: The faults found so far.
        on: Label of an evaluator to what it reads, where its entry says so.
        turns: Label of an evaluator to the turns that it reads, where its entry says so.
    """

    def __init__(self, path: Path, shown: str) -> None:
        self.document = read_document(path, shown)
        self.faults: list[Fault] = []
        self.on: dict[str, str] = {}
        self.turns: dict[str, Turn] = {}

    def check(self, kind: Any, data: Any, path: Sequence[str | int]) -> Any:
        """Validate a part of the file; ``None`` where it has faults."""
        try:
            return plain(kind, data)
        except NotPlainError:
            value, faults = check(kind, data, self.document, path)
            self.faults += faults
            return value

    def fault(self, path: Sequence[str | int], message: str, *, key: bool = False) -> None:
        """Add a fault at a place of the file."""
        self.faults.append(self.document.fault(path, message, key=key))

    def fault_inside(self, path: Sequence[str | int], value: str, offset: int, message: str) -> None:
        """Add a fault of one character of a text."""
        self.faults.append(self.document.fault_inside(path, value, offset, message))

    def read_on(self, label: str, entry: Any, place: tuple[str | int, ...]) -> None:
        """Read ``on`` of an evaluator's entry."""
        if not isinstance(entry, str):
            self.fault(place, f"found {describe(entry)}, expected a part ({', '.join(PARTS)}) or a JMESPath")
        elif entry in (WHOLE, *PARTS) or self._is_expression(entry, place):
            self.on[label] = entry

    def read_turn(self, label: str, entry: Any, place: tuple[str | int, ...]) -> None:
        """Read ``turn`` of an evaluator's entry."""
        if is_turn(entry):
            self.turns[label] = entry
        else:
            self.fault(place, f"found {describe(entry)}, expected {WANTED_TURN}")

    def read_conversation(self, entry: Any) -> ConversationSpec:
        """Read ``conversation``: when conversations end."""
        if entry is None:
            return ConversationSpec()
        spec: ConversationSpec | None = self.check(ConversationSpec, entry, ("conversation",))
        if spec is None:
            return ConversationSpec()
        if spec.max_turns is not None and spec.max_turns < 1:
            self.fault(("conversation", "max_turns"), f"found {spec.max_turns}, expected at least 1")
        if spec.stop == "target" and spec.max_turns is None:
            self.fault(
                ("conversation",), "found stop: target without max_turns, expected a limit such as max_turns: 10"
            )
        return spec

    def _is_expression(self, entry: str, place: tuple[str | int, ...]) -> bool:
        fault = expression_fault(entry)
        if fault is not None:
            self.fault_inside(place, entry, *fault)
        return fault is None

    def read_parts(self, entry: Any) -> Parts:
        """Read ``parts``: a JMESPath for each part."""
        if entry is None:
            return Parts()
        parts: Parts | None = self.check(Parts, entry, ("parts",))
        if parts is None:
            return Parts()
        for name, path in vars(parts).items():
            if path is not None:
                self._is_expression(path, ("parts", name))
        return parts
