"""Cases from the official LoCoMo file: long conversations and questions about them."""

__all__ = ("LocomoSource",)

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pytest_llmeval.core.case import Case
from pytest_llmeval.data.files.documents import Document, load_json
from pytest_llmeval.data.formats.base import CaseFile, FileSource, check_names
from pytest_llmeval.data.formats.fields import case_id, json_text, kind, wrong_values
from pytest_llmeval.data.labels import load_taxonomy

_ADVERSARIAL = 5


@dataclass(frozen=True)
class LocomoSource(FileSource):
    """A list of ``{sample_id, conversation, qa}``.

    The id of a case is ``sample_id/index``, since each conversation numbers its questions from 0. Labels
    are ``question_type``, ``category`` and ``conversation_id``. A category outside 1 to 5 counts as
    ``single_hop``, as where the question types come from; the label ``category`` keeps the number.

    Attributes:
        history: Whether the input has the ``conversation`` beside ``question`` and ``conversation_id``; all
            questions about it share one object. Not needed where the answers are recorded.
        conversations: The ``sample_id`` of the conversations to read; empty for all.
        question_types: The question types to read; empty for all.
    """

    format: ClassVar[str] = "locomo"
    short_ids: ClassVar[bool] = True

    history: bool = True
    conversations: tuple[str, ...] = ()
    question_types: tuple[str, ...] = ()

    def selects(self, case: Case) -> bool:
        """Return whether conversation and question type are asked for."""
        return (not self.conversations or case.labels["conversation_id"] in self.conversations) and (
            not self.question_types or case.labels["question_type"] in self.question_types
        )

    def read(self, file: CaseFile) -> None:
        """Add the questions of all conversations."""
        document = load_json(file.path, file.shown, depth=4)
        if not isinstance(document.data, list):
            file.faults.add(1, 1, "", f"found {kind(document.data)}, expected a list of conversations")
            return
        names = [self._read_sample(file, document, index) for index in range(len(document.data))]
        check_names(file, "conversations", self.conversations, {name for name in names if name})
        check_names(
            file,
            "question_types",
            self.question_types,
            load_taxonomy("question_types")["locomo"]["categories"].values(),
        )

    def _read_sample(self, file: CaseFile, document: Document, index: int) -> str | None:
        """Add the questions of one conversation and return its id."""
        sample = document.data[index]
        if not isinstance(sample, dict):
            file.faults.extend([document.fault([index], f"found {kind(sample)}, expected an object")])
            return None
        name = case_id(sample.get("sample_id"))
        conversation = sample.get("conversation")
        checks = (
            ("sample_id", name is not None, "text"),
            ("qa", isinstance(sample.get("qa"), list), "a list of questions"),
            (
                "conversation",
                not self.history or isinstance(conversation, dict),
                "an object (or `history: false`)",
            ),
        )
        faults = wrong_values(sample, checks)
        file.faults.extend(document.fault([index, *path], message) for path, message in faults)
        if not faults:
            shared = {"conversation_id": name} | ({"conversation": conversation} if self.history else {})
            for number in range(len(sample["qa"])):
                self._read_question(file, document, (index, "qa", number), shared)
        return name

    def _read_question(
        self, file: CaseFile, document: Document, path: tuple[int, str, int], shared: Mapping[str, Any]
    ) -> None:
        item = document.data[path[0]]["qa"][path[2]]
        if not isinstance(item, dict):
            file.faults.extend([document.fault(path, f"found {kind(item)}, expected an object")])
            return
        checks = (
            ("question", isinstance(item.get("question"), str), "text"),
            ("category", type(item.get("category")) is int, "a whole number"),
        )
        faults = wrong_values(item, checks)
        file.faults.extend(document.fault([*path, *rest], message) for rest, message in faults)
        if faults:
            return
        category = item["category"]
        line, column = document.locate(path)
        case = Case(
            id=f"{shared['conversation_id']}/{path[2]}",
            input={"question": item["question"], **shared},
            expected=_answer(item),
            labels={
                "question_type": _question_type(category),
                "category": str(category),
                "conversation_id": shared["conversation_id"],
            },
            line=line,
        )
        file.add(case, f"[{path[0]}].sample_id", column)


def _question_type(category: int) -> str:
    types = load_taxonomy("question_types")["locomo"]
    name: str = types["categories"].get(str(category), types["other_category"])
    return name


def _answer(item: Mapping[str, Any]) -> str:
    """Return the text of the right answer; an adversarial question prefers the one that it provokes."""
    answer = item.get("answer")
    if item["category"] == _ADVERSARIAL and item.get("adversarial_answer") is not None:
        answer = item["adversarial_answer"]
    return "" if answer is None else json_text(answer)
