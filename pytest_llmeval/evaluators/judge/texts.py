"""The texts of a case that a judge sees: input, expected answer and prediction."""

__all__ = ("CaseTexts", "case_texts")

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.evaluators.answers import as_references, as_text, describe_found
from pytest_llmeval.evaluators.measures.evidence_sources import listed
from pytest_llmeval.judge.questions.modes import optional_fields

_SUBJECTS = ("claim", "goal", "source", "question")
_ABSENT = {"reference": "no expected answer", **{name: f"no {name}" for name in _SUBJECTS}}


@dataclass(frozen=True, slots=True)
class CaseTexts:
    """The texts of one case.

    Attributes:
        by_field: Field name to text; what the case lacks is absent.
        malformed: What is wrong with the prediction.
        absent: Why there is nothing to judge; ``None`` where the mode has all that it needs.
        fault: What is wrong with the ground truth or the input.
    """

    by_field: Mapping[str, str]
    malformed: str | None = None
    absent: str | None = None
    fault: str | None = None

    @property
    def subject(self) -> str:
        """The question, claim, goal or source, or else the answer; it determines the language."""
        names = ("question", "claim", "goal", "source", "answer")
        return next((text for name in names if (text := self.by_field.get(name))), "")


def case_texts(case: Case, mode: str, fields: tuple[str, ...]) -> CaseTexts:
    """Return what a judge is shown of a case.

    Args:
        case: The case.
        mode: Name of the mode.
        fields: Those of the mode; ``claim`` among them makes the case one of fact checking.
    """
    is_claim = "claim" in fields
    expected, fault = _gold(case.expected) if is_claim else _reference(case.expected)
    answer, malformed = _explanation(case.prediction) if is_claim else _answer(case.prediction)
    if "trajectory" in fields:
        answer, malformed = _trajectory(case)
    if not is_claim and "reference" not in fields:
        fault = None
    subject = next((name for name in _SUBJECTS if name in fields), "question")
    given = {subject: _subject(case.input, subject), **expected, **answer}
    texts = {name: text for name in fields if (text := given.get(name)) is not None}
    lacking = [name for name in fields if name not in texts and name not in optional_fields(mode)]
    if subject in lacking and fault is None:
        fault = f"found {describe_found(case.input)} as input, expected the {subject} as text"
    return CaseTexts(texts, malformed, _ABSENT[lacking[0]] if lacking else None, fault)


def _subject(value: Any, key: str) -> str | None:
    """Return the question or claim of an input: a text, the text under `key`, or else the input as JSON."""
    if value is None or value == "":
        return None
    if isinstance(value, Mapping) and (text := as_text(value.get(key))) is not None:
        return text
    return _any_text(value)


def _any_text(value: Any) -> str:
    text = as_text(value)
    return json.dumps(value, ensure_ascii=False) if text is None else text


def _reference(expected: Any) -> tuple[dict[str, str], str | None]:
    """Return the right answer, several as a list; blank ones are none."""
    references = as_references(expected)
    if references is None:
        return {}, f"found {describe_found(expected)} as expected, expected text or a list of texts"
    references = [each for each in references if each.strip()]
    if not references:
        return {}, None
    listed = references[0] if len(references) == 1 else "\n".join(f"- {each}" for each in references)
    return {"reference": listed}, None


def _answer(prediction: Any) -> tuple[dict[str, str], str | None]:
    """Return the answer; lists and objects are shown as JSON, null and nothing as the empty answer."""
    if prediction is None or prediction is MISSING:
        return {"answer": ""}, f"found {describe_found(prediction)}, expected an answer"
    return {"answer": _any_text(prediction)}, None


def _trajectory(case: Case) -> tuple[dict[str, str], str | None]:
    """Return the steps of an agent, numbered, one a line: its messages, or its calls of tools and the answer."""
    steps = case.prediction if isinstance(case.prediction, list) else case.parts.get("messages")
    if not isinstance(steps, list):
        steps = case.parts.get("tool_calls")
        if isinstance(steps, list) and case.prediction not in (None, MISSING):
            steps = [*steps, {"answer": case.prediction}]
    if not isinstance(steps, list):
        found = describe_found(case.prediction)
        return {"trajectory": ""}, f"found {found} without messages and tool_calls, expected a trajectory"
    lines = (f"{number}. {json.dumps(step, ensure_ascii=False)}" for number, step in enumerate(steps, 1))
    return {"trajectory": "\n".join(lines)}, None


def _gold(expected: Any) -> tuple[dict[str, str], str | None]:
    """Return what people wrote: of ``{verdict, justification, evidence_sources}``; a text is the justification."""
    if expected is None:
        return {}, None
    if isinstance(expected, Mapping):
        return {f"gold_{name}": text for name, text in _parts(expected).items()}, None
    text = as_text(expected)
    if text is None:
        return {}, f"found {describe_found(expected)} as expected, expected text or {{verdict, justification}}"
    return {"gold_justification": text}, None


def _explanation(prediction: Any) -> tuple[dict[str, str], str | None]:
    """Return the parts of ``{verdict, justification, evidence_sources}``; a text is the justification."""
    parts = _parts(prediction) if isinstance(prediction, Mapping) else {}
    text = as_text(prediction)
    if text is not None:
        parts = {"justification": text}
    if "justification" in parts:
        return parts, None
    found = "an object without a justification" if isinstance(prediction, Mapping) else describe_found(prediction)
    return {**parts, "justification": ""}, f"found {found}, expected text or {{verdict, justification}}"


def _parts(value: Mapping[str, Any]) -> dict[str, str]:
    given = {name: as_text(value.get(name)) for name in ("verdict", "justification")}
    given["sources"] = listed(value.get("evidence_sources")) or None
    return {name: text for name, text in given.items() if text is not None}
