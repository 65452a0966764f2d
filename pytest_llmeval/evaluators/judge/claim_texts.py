"""What evaluator ``claims`` reads of a case: question, answer, right answer, passages, and what the answer cites."""

__all__ = ("ClaimTexts", "claim_texts")

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.core.errors import PredictionError
from pytest_llmeval.core.parts import PredictionParts
from pytest_llmeval.evaluators.answers import as_references, as_text, describe_found
from pytest_llmeval.evaluators.measures.cited_sentences import cited_by, split_sentences
from pytest_llmeval.judge.questions.rules import instruction_language

Side: TypeAlias = Literal["answer", "reference"]
ClaimSource: TypeAlias = Literal["answer", "reference", "contexts"]

_CONTEXTS = "contexts"


@dataclass(frozen=True)
class ClaimTexts:
    """The texts of one case.

    Attributes:
        question: What was asked; ``None`` where there is nothing.
        answer: The answer; empty where there is none.
        reference: The right answer; ``None`` where there is none.
        contexts: The passages; ``None`` where nothing says what they are.
        no_contexts: Why not.
        malformed: What is wrong with the prediction.
        fault: What is wrong with the expected answer, or with the passages of the input.
        language: Of the instructions.
    """

    question: str | None
    answer: str
    reference: str | None
    contexts: Sequence[str] | None
    no_contexts: str
    malformed: str | None
    fault: str | None
    language: str

    @cached_property
    def sentences(self) -> Mapping[Side, Sequence[str]]:
        """The sentences of the answer and of the reference."""
        return {"answer": _sentences(self.answer), "reference": _sentences(self.reference or "")}

    def passages(self, source: ClaimSource) -> dict[int, str]:
        """Return what claims can rest on, by number. Blank passages are left out, as nothing follows from them."""
        texts = {"answer": [self.answer], "reference": [self.reference or ""], _CONTEXTS: self.contexts or ()}[source]
        return {number: text for number, text in enumerate(texts, 1) if text.strip()}

    @cached_property
    def citations(self) -> Sequence[tuple[int, int]]:
        """Number of a sentence that cites and number of a passage that it cites, for each citation."""
        return _citations(self.answer)

    @cached_property
    def checked_citations(self) -> Sequence[tuple[int, int]]:
        """The citations that a judge must check: of passages that are there and not blank."""
        passages = self.passages("contexts")
        return [each for each in self.citations if each[1] in passages]


@lru_cache(maxsize=128)
def _sentences(text: str) -> Sequence[str]:
    """Split a text; the questions of each round about a case, and its counts, need the same sentences."""
    return tuple(split_sentences(text))


@lru_cache(maxsize=128)
def _citations(answer: str) -> Sequence[tuple[int, int]]:
    cited = enumerate(map(cited_by, _sentences(answer)), 1)
    return tuple((sentence, passage) for sentence, passages in cited for passage in passages)


def claim_texts(case: Case, language: str = "auto") -> ClaimTexts:
    """Return what is read of a case.

    Args:
        case: Its prediction is the answer; the passages are the part ``contexts``, or ``contexts`` of the input.
        language: Of the instructions; ``auto``: by the label ``language``, or by the script of the question.
    """
    question = _question(case.input)
    answer, malformed = _answer(case.prediction)
    reference, fault = _reference(case.expected)
    found, why = _contexts(case)
    if found is not MISSING:
        contexts, wrong = _passages(found)
        malformed = malformed or wrong
    elif isinstance(case.input, Mapping) and _CONTEXTS in case.input:
        contexts, wrong = _passages(case.input[_CONTEXTS], " of the input")
        fault = fault or wrong
    else:
        contexts = None
    if language == "auto":
        language = instruction_language(question or answer, case.labels.get("language"))
    return ClaimTexts(question, answer, reference, contexts, why, malformed, fault, language)


def _question(value: Any) -> str | None:
    """Return the question of an input: a text, the text under ``question``, or what there is besides the passages."""
    if isinstance(value, Mapping) and as_text(value.get("question")) is None:
        value = {name: each for name, each in value.items() if name != _CONTEXTS and each is not None} or None
    elif isinstance(value, Mapping):
        value = value["question"]
    text = "" if value is None else _any_text(value)
    return text if text.strip() else None


def _any_text(value: Any) -> str:
    text = as_text(value)
    return json.dumps(value, ensure_ascii=False) if text is None else text


def _answer(prediction: Any) -> tuple[str, str | None]:
    if prediction is None or prediction is MISSING:
        return "", f"found {describe_found(prediction)}, expected an answer"
    return _any_text(prediction), None


def _reference(expected: Any) -> tuple[str | None, str | None]:
    references = as_references(expected)
    if references is None:
        return None, f"found {describe_found(expected)} as expected, expected text"
    references = [each for each in references if each.strip()]
    if len(references) > 1:
        return None, f"found {len(references)} expected answers, expected one: claims are those of one text"
    return (references[0] if references else None), None


def _contexts(case: Case) -> tuple[Any, str]:
    """Return the passages as they stand in the prediction, or why there are none."""
    origin = case.origin or PredictionParts(prediction=case.prediction)
    try:
        return origin.parts.read(_CONTEXTS, origin.prediction), ""
    except PredictionError as error:
        return MISSING, f"{error}, or give the input contexts"


def _passages(value: Any, of: str = "") -> tuple[list[str], str | None]:
    """Return passages as texts, and what is wrong with them; in the place of null is nothing, which has a number."""
    passages = [value] if isinstance(value, str) else value
    if not isinstance(passages, list | tuple):
        return [], f"found {describe_found(value)} as contexts{of}, expected a list of texts"
    null = next((number for number, each in enumerate(passages) if each is None), None)
    fault = None if null is None else f"found null as contexts[{null}]{of}, expected text"
    return ["" if each is None else _any_text(each) for each in passages], fault
