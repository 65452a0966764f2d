"""Cases from the official LongMemEval files: questions about a user's earlier chat sessions."""

__all__ = ("LongMemEvalSource",)

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_llmeval.core.case import Case
from pytest_llmeval.data.files.documents import Document, load_json
from pytest_llmeval.data.formats.base import CaseFile, FileSource, check_names
from pytest_llmeval.data.formats.fields import case_id, json_text, kind, wrong_values
from pytest_llmeval.data.labels import load_taxonomy

_HISTORY = ("haystack_dates", "haystack_session_ids", "haystack_sessions")
_ABSTENTION = "_abs"
_EVIDENCE_MARK = "has_answer"


@dataclass(frozen=True)
class LongMemEvalSource(FileSource):
    """A list of ``{question_id, question_type, question, answer, question_date, haystack_sessions, ...}``.

    Labels are ``question_type`` (with underscores), and ``abstention: "true"`` where the id ends in ``_abs``:
    there the right answer is that the sessions do not say. A question type that the benchmark does not have yet is
    kept unchanged.

    Attributes:
        history: Whether the input has the ``haystack_*`` lists beside ``question`` and ``question_date``,
            without the marks on turns that hold the answer. Not needed where the answers are recorded.
        question_types: The question types to read, with underscores; empty for all.
    """

    format: ClassVar[str] = "longmemeval"

    history: bool = True
    question_types: tuple[str, ...] = ()

    def selects(self, case: Case) -> bool:
        """Return whether the question type is asked for."""
        return not self.question_types or case.labels["question_type"] in self.question_types

    def read(self, file: CaseFile) -> None:
        """Add the questions."""
        document = load_json(file.path, file.shown, depth=2)
        if not isinstance(document.data, list):
            file.faults.add(1, 1, "", f"found {kind(document.data)}, expected a list of questions")
            return
        for index in range(len(document.data)):
            self._read_question(file, document, index)
        known = {case.labels["question_type"] for case in file.cases.values()}
        known.update(load_taxonomy("question_types")["longmemeval"]["question_types"])
        check_names(file, "question_types", self.question_types, known)

    def _read_question(self, file: CaseFile, document: Document, index: int) -> None:
        item = document.data[index]
        faults = list(self._faults(item))
        file.faults.extend(document.fault([index, *path], message) for path, message in faults)
        if faults:
            return
        name = str(case_id(item["question_id"]))
        question_type = item["question_type"].replace("-", "_")
        labels = {"question_type": question_type}
        if name.endswith(_ABSTENTION):
            labels["abstention"] = "true"
        given = {key: item[key] for key in ("question", "question_date") if key in item}
        if self.history:
            given |= {key: _without_marks(item[key]) for key in _HISTORY if key in item}
        line, column = document.locate([index])
        answer = item.get("answer")
        expected = "" if answer is None else json_text(answer)
        file.add(Case(name, given, expected, labels=labels, line=line), f"[{index}].question_id", column)

    def _faults(self, item: Any) -> Sequence[tuple[Sequence[str], str]]:
        """Return path and message of each fault of a question."""
        if not isinstance(item, dict):
            return [((), f"found {kind(item)}, expected an object")]
        sessions = isinstance(item.get("haystack_sessions"), list)
        checks = (
            ("question_id", case_id(item.get("question_id")) is not None, "text"),
            ("question", isinstance(item.get("question"), str), "text"),
            ("haystack_sessions", sessions or not self.history, "a list (or `history: false`)"),
            ("question_type", isinstance(item.get("question_type"), str), "text"),
        )
        return wrong_values(item, checks)


def _without_marks(history: Any) -> Any:
    """Return sessions without the mark on turns that hold the answer; the rest is shared, not copied."""
    if isinstance(history, list):
        return [_without_marks(each) for each in history]
    if isinstance(history, dict) and _EVIDENCE_MARK in history:
        return {key: value for key, value in history.items() if key != _EVIDENCE_MARK}
    return history
