"""The example of an agent with a simulated user: its recording, and agents that do wrong and fail with a reason."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from scripted_judges import Judged, buyer

if TYPE_CHECKING:
    from conftest import Project

EXAMPLE = Path(__file__).parents[2] / "example_suites" / "agent_user"
SUITE = "tickets.eval.yaml"


def test_the_example_needs_no_key_and_no_model(
    project: "Project", monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    shutil.copytree(EXAMPLE, project.path / "example")
    ran = project.run("example", workers=workers)
    assert ran.code == 0, ran.text
    suite = ran.suites["agent_user"]
    assert suite["usage"]["calls"] == 0
    assert suite["metrics"]["pass^3"]["value"] == 1.0


def test_the_recording_is_what_the_user_of_the_tests_says(judged: Judged) -> None:
    """Whoever changes the example records it anew with this user."""
    judged.server.script(buyer)
    text = (EXAMPLE / SUITE).read_text(encoding="utf-8")
    project = judged.project
    project.write("clerk.py", (EXAMPLE / "clerk.py").read_text(encoding="utf-8"))
    project.write(SUITE, text.replace("openai:MODEL", f"openai:MODEL\n    base_url: {judged.server.base_url}"))
    assert project.run("--llmeval-judge=record").code == 0
    name = "__llmeval__/tickets.judgements.jsonl"
    made, kept = ((each / name).read_text(encoding="utf-8").splitlines() for each in (project.path, EXAMPLE))
    timeless = [[line.partition('"seconds"')[0] for line in lines] for lines in (made, kept)]
    assert timeless[0] == timeless[1]


WRONG = {
    "skips the confirmation": (
        (
            'return f"Shall I refund ticket {number[0]}?" if number',
            'return str(call("refund", ticket=int(number[0]))) if number',
        ),
        "refund",
        ["turn 2: found refund", "without"],
    ),
    "books another day": (
        ('call("book", train=int(found[1]))', 'call("book", train=2)'),
        "book",
        ["tools: turn 3: book: train: found 2, expected 1", "found $.tickets without an item"],
    ),
    "lies about a refund": (
        ('made = call("refund", ticket=int(found[1]))', "made = {}"),
        "refund",
        [
            "turn 3: found",
            "has been refunded",
            "refunded: found 'valid' at state.tickets[0].status, expected equals: 'refunded'",
        ],
    ),
    "loops": (
        (
            'found = call("find_train", stop=stop, day=day)',
            'found = [call("find_train", stop=stop, day=day) for _ in "12345"][0]',
        ),
        "book",
        ["loops"],
    ),
    "talks for ever": (
        ("    last, all_of_it", '    return "Let me see."\n    last, all_of_it'),
        "book",
        ["turns 6.0000, limit <= 4", "6 turns, ended by max_turns"],
    ),
    "crashes in turn 3": (
        ('        ticket = call("book"', '        raise RuntimeError("no paper")\n        ticket = call("book"'),
        "book",
        ["turn 3 of the conversation", "RuntimeError: no paper", "clerk.py:"],
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_agent_that_does_wrong_fails_with_turn_and_reason(judged: Judged, name: str) -> None:
    (old, new), case, reasons = WRONG[name]
    judged.server.script(buyer)
    text = (EXAMPLE / SUITE).read_text(encoding="utf-8").replace("unrecorded: fail", "unrecorded: ask")
    agent = (EXAMPLE / "clerk.py").read_text(encoding="utf-8")
    assert old in agent
    judged.project.write("clerk.py", agent.replace(old, new, 1))
    judged.project.write(SUITE, text.replace("openai:MODEL", f"openai:MODEL\n    base_url: {judged.server.base_url}"))
    ran = judged.project.run("-v")
    assert ran.code == 1
    assert ran.outcomes("agent_user")[case] in ("failed", "errored")
    lacking = [each for each in reasons if each not in ran.text]
    assert not lacking, ran.text
