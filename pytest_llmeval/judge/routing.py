"""Which mode judges a question: by its type, as the benchmarks that the types come from do."""

__all__ = ("ADVERSARIAL", "MODE_OF_TYPE", "route")

from typing import Final

from pytest_llmeval.naming import unknown_name

ADVERSARIAL: Final = "adversarial"
"""The mode that is a rule: no judge is asked."""

_ABSTENTION = "abstention"
_ABSTENTION_IDS = "_abs"

MODE_OF_TYPE: Final = {
    "single_hop": "continuous",
    "multi_hop": "continuous",
    "temporal": "continuous",
    "open_domain": "continuous",
    "adversarial": ADVERSARIAL,
    "single_session_user": "default_binary",
    "single_session_assistant": "default_binary",
    "single_session_preference": "preference",
    "multi_session": "default_binary",
    "temporal_reasoning": "temporal_reasoning",
    "knowledge_update": "knowledge_update",
}
"""Question type to mode: the first five are LoCoMo's, the others LongMemEval's."""


def route(question_type: str | None, case_id: str = "") -> str:
    """Return the name of the mode that judges a question.

    Args:
        question_type: One of `MODE_OF_TYPE`.
        case_id: An id that ends in ``_abs`` marks a question of LongMemEval that cannot be answered, whatever its type.

    Raises:
        ValueError: The type is absent or unknown.
    """
    if case_id.endswith(_ABSTENTION_IDS):
        return _ABSTENTION
    if question_type is None:
        raise ValueError(f"found no question type, expected one of {', '.join(sorted(MODE_OF_TYPE))}")
    if question_type not in MODE_OF_TYPE:
        raise ValueError(unknown_name("question type", question_type, MODE_OF_TYPE))
    return MODE_OF_TYPE[question_type]
