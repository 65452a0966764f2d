"""A suite declared in Python: typed cases, a test that calls an agent, a gate on a regression."""

from typing import Any

import pytest
from pydantic import BaseModel

import pytest_llmeval as ev


class Ask(BaseModel):
    """What users send."""

    question: str


class Reply(BaseModel):
    """What the agent returns."""

    answer: str
    days: int | None = None


ROWS = [
    {"id": "refund", "question": "How long do refunds take?", "answer": "30 days", "days": 30, "topic": "refunds"},
    {"id": "delivery", "question": "How long does delivery take?", "answer": "3 days", "days": 3, "topic": "delivery"},
    {"id": "abroad", "question": "Do you ship abroad?", "answer": "yes, to Europe", "topic": "delivery"},
]

support = ev.suite(
    "support",
    cases=ev.cases(ROWS, id="id", input=Ask, expected=Reply, labels=["topic"]),
    evaluators=[ev.fields(), ev.text(metrics=["f1"])],
    checks=[ev.max_words(30)],
    thresholds={"f1": 0.4},
    gates=["field_f1 >= 0.9", {"metric": "f1", "max_drop": 0.02}],
    snapshot=True,
)


class Agent:
    """Stands for an application."""

    def ask(self, ask: Ask) -> Reply:
        """Answer a question."""
        known: dict[str, dict[str, Any]] = {row["question"]: row for row in ROWS}
        return Reply.model_validate(known[ask.question])


@pytest.fixture
def agent() -> Agent:
    """The application."""
    return Agent()


@support.test
def test_agent(case: Any, agent: Agent) -> None:
    """Scores a typed reply to a typed question; fixtures work as in any test."""
    reply = agent.ask(case.input)
    scores = case.score(reply)
    assert scores["fields_exact"] == 1
