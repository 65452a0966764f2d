"""The judge of the suites in this folder."""

__all__ = ("judge_client",)

from collections.abc import Callable

import pytest
from word_judge import judge

from pytest_llmeval import JudgeRequest


@pytest.fixture(scope="session")
def judge_client() -> Callable[[JudgeRequest], str]:
    """Judge of the suites in this folder."""
    return judge
