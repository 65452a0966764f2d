"""The judge of these suites: `judge: {model: "fixture:rule-judge"}` in a suite file asks this fixture."""

__all__ = ("judge_client",)

import pytest
from rule_judge import RuleJudge


@pytest.fixture(scope="session")
def judge_client() -> RuleJudge:
    """Return the judge. It is asked only for verdicts that are neither recorded in `__llmeval__` nor cached."""
    return RuleJudge()
