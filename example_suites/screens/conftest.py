"""The judge of the suites in this folder."""

__all__ = ("judge_client",)

import pytest
from pixel_judge import PixelJudge


@pytest.fixture(scope="session")
def judge_client() -> PixelJudge:
    """Return the judge. It is asked only for verdicts that are neither recorded in `__llmeval__` nor cached."""
    return PixelJudge()
