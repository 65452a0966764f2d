"""The memory assistant with a weakness that models have: now and then it misses what was said last."""

__all__ = ("answer",)

from collections import Counter
from collections.abc import Mapping
from typing import Any

import assistant

FORGETS_EVERY = 4

asked: Counter[str] = Counter()


def answer(case_input: Mapping[str, Any]) -> str:
    """Answer as `assistant.answer` does; every fourth time a question is asked, without the last turn."""
    question = case_input["question"]
    asked[question] += 1
    kept = case_input["conversation"][: -1 if asked[question] % FORGETS_EVERY == 0 else None]
    return assistant.answer({"conversation": kept, "question": question})
