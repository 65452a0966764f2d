"""The judge of this suite: `judge: {model: "fixture:written-grades"}` in the suite file asks this fixture.

The grades are written by hand, so that the suite needs no model. They are recorded in `__llmeval__`, as those of a
model would be; the fixture is asked only for what is not recorded there.
"""

__all__ = ("judge_client",)

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_llmeval import JudgeRequest

GRADES = Path(__file__).with_name("grades.json")


@pytest.fixture(scope="session")
def judge_client() -> Callable[[JudgeRequest], str]:
    """Return a function that looks up the grade of a claim."""
    grades = json.loads(GRADES.read_text(encoding="utf-8"))

    def grade(request: JudgeRequest) -> str:
        block = re.search("<data>(.*)</data>", request.messages[-1].content, re.DOTALL)
        assert block is not None
        return json.dumps(grades[json.loads(block[1])["claim"]], ensure_ascii=False)

    return grade
