"""The judge that gave the recorded verdicts: a rule, in place of a model."""

__all__ = ("judge_client",)

import json
import re
from collections.abc import Callable

import pytest

from pytest_llmeval import JudgeRequest


def words(text: str) -> set[str]:
    """Return the words of a text without its endings and small words."""
    return {word[:5] for word in re.findall(r"\w{3,}", text.lower())} - {"says", "that", "the"}


def judge(request: JudgeRequest) -> str:
    """Say yes if the answer has most words of the criterion."""
    shown = json.loads(request.messages[-1].content.removeprefix("<data>").removesuffix("</data>"))
    wanted = words(shown["criterion"])
    share = len(wanted & words(shown["answer"])) / len(wanted)
    return f"{'yes' if share > 1 / 2 else 'no'}: the answer has {share:.0%} of the words of the criterion"


@pytest.fixture(scope="session")
def judge_client() -> Callable[[JudgeRequest], str]:
    """Judge of the suites in this folder."""
    return judge
