"""What a case puts into the placeholders of a user's prompt."""

__all__ = ("prompt_texts",)

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pytest_llmeval.core.case import MISSING, Case
from pytest_llmeval.data.formats.fields import ABSENT, json_text, pick
from pytest_llmeval.evaluators.answers import describe_found
from pytest_llmeval.evaluators.judge.texts import CaseTexts, case_texts

_GIVEN: Final = ("input", "labels", "question")
"""What a case must have from the start."""

_TRUTH: Final = ("expected", "reference")


def prompt_texts(case: Case, names: Iterable[str], file: str) -> CaseTexts:
    """Return the texts that a prompt names.

    Args:
        case: The case.
        names: Of placeholders, such as ``input.question``.
        file: The prompt, for messages.
    """
    texts: dict[str, str] = {}
    malformed = absent = fault = None
    for name in names:
        found = _found(case, name)
        root = name.partition(".")[0]
        if found is not ABSENT and found is not None and found is not MISSING:
            texts[name] = json_text(found)
        elif root in _GIVEN:
            fault = fault or f"found no {name}, expected it, as {file} names it"
        elif root in _TRUTH:
            absent = absent or f"no {name}"
        else:
            texts[name] = ""
            what = describe_found(case.prediction) if name == "answer" else f"a prediction without {name}"
            malformed = malformed or f"found {what}, expected {name}, as {file} names it"
    return CaseTexts(texts, malformed, absent, fault)


def _found(case: Case, name: str) -> Any:
    root, _, path = name.partition(".")
    if root in ("question", "reference"):
        return case_texts(case, "rubric", (root,)).by_field.get(root)
    values = {
        "answer": case.prediction,
        "expected": case.expected,
        "input": case.input,
        "labels": case.labels,
        "prediction": case.prediction if case.origin is None else case.origin.prediction,
    }
    value = values[root] if root in values else case.parts.get(root)
    if not path:
        return value
    return pick(value, path) if isinstance(value, Mapping) else pick({"": value}, f".{path}")
