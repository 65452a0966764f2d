"""``llmeval evaluator``: a judge or a check for a failure mode, and a test that stays unseen until it is opened."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.core import ShownPrints
from pytest_llmeval.workbench.reviews._evaluator import NotedAnswer, judge_prompt
from pytest_llmeval.workbench.reviews._items import ReviewItem
from pytest_llmeval.workbench.reviews.modes import ModeNote, SplitOpened, mode_line, read_modes

if TYPE_CHECKING:
    from conftest import Project

CONFTEST = """
import json
from pathlib import Path
import pytest

@pytest.fixture(scope="session")
def judge_client():
    def judge(request):
        with Path("prompts.jsonl").open("a") as file:
            file.write(json.dumps([message.content for message in request.messages]) + "\\n")
        return json.dumps({"reason": "x", "failure": "within 90 days" in request.messages[-1].content})
    return judge
"""
COUNT = 40


def reply(number: int) -> str:
    days = 90 if number % 2 else 30
    return f"Order {number * 7919} is refunded within {days} days, {{{{ input }}}} <data>"


def noted(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a suite, and note a wrong window for every second answer."""
    monkeypatch.chdir(project.path)
    project.write("conftest.py", CONFTEST)
    cases: list[dict[str, Any]] = [
        {"id": f"c{number}", "input": f"When, {number}?", "prediction": reply(number)} for number in range(COUNT)
    ]
    project.suite("qa.eval.json", cases, checks=[{"contains": "Order"}])
    assert project.run("qa.eval.json", "--llmeval-texts=all").code == 0
    Path("report.json").rename("run.json")
    prints = [
        (ShownPrints.fingerprint(f"When, {n}?"), ShownPrints.fingerprint(reply(n)), ShownPrints.fingerprint(""))
        for n in range(COUNT)
    ]
    notes = [
        ModeNote("ana", f"2026-11-26T10:00:{n:02}.000Z", *each, *((("window",), "90 days") if n % 2 else ()))
        for n, each in enumerate(prints)
    ]
    Path("modes.jsonl").write_text("".join(map(mode_line, notes)), encoding="utf-8")


def answers_of(suite: str) -> list[str]:
    return [each["prediction"] for each in json.loads(Path(suite).read_text(encoding="utf-8"))["cases"]]


def prompts() -> list[list[str]]:
    file = Path("prompts.jsonl")
    lines = file.read_text(encoding="utf-8").splitlines()
    file.unlink()
    return [json.loads(line) for line in lines]


def test_no_answer_of_the_test_is_in_any_prompt_before_it_is_opened(
    project: "Project", monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    noted(project, monkeypatch)
    command = ["evaluator", "window", "run.json"]
    assert main(command) == 0
    assert "kept for --final" in capsys.readouterr().out
    developed = answers_of("window.eval.json")
    project.run("window.eval.json")
    asked = prompts()
    assert main([*command, "--final", "--annotator", "ana"]) == 0
    tested = answers_of("window.final.eval.json")
    instructions = Path("window.md").read_text(encoding="utf-8")
    shown = [number for number in range(COUNT) if f"Order {number * 7919} " in instructions]
    assert len(asked) == len(developed) > 10
    assert len(tested) > 10
    assert len(shown) == 4  # two with the failure, two without
    assert {number % 2 for number in shown} == {0, 1}
    unseen = [each.partition(" is")[0] + " " for each in tested]
    assert not [order for order in unseen for prompt in asked for text in prompt if order in text]
    assert set(developed).isdisjoint(tested)
    assert "{{ input }}" not in instructions
    assert "<data>" not in instructions

    final = project.run("window.final.eval.json")
    assert final.code == 0
    asked = prompts()
    assert len(asked) == len(tested)
    assert not [order for order in unseen for prompt in asked for text in prompt[:1] if order in text]
    (opened,) = [each for each in read_modes([Path("modes.jsonl")]).lines if isinstance(each, SplitOpened)]
    assert set(opened.answers) == {ShownPrints.fingerprint(each) for each in tested}
    capsys.readouterr()
    assert main([*command, "--final"]) == 0
    assert "it was opened 1 time before, so its answers are no longer unseen" in capsys.readouterr().out

    # A prompt into which somebody copied an answer of the test is not tested.
    Path("window.md").write_text(f"{instructions}\n{tested[0].upper()}", encoding="utf-8")
    assert main([*command, "--final"]) != 0
    assert "expected none of the test split" in capsys.readouterr().err
    capsys.readouterr()
    assert main(["--json", *command]) == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert result == {"written": ["window.eval.json"], "answers": len(developed), "held_out": len(tested)}
    assert tested[0].upper() in Path("window.md").read_text(encoding="utf-8")  # an edited prompt is kept

    assert main([*command, "--check", '{"not_contains": "within 90 days"}']) == 0
    lines = capsys.readouterr().out.splitlines()[-6:]
    assert lines[0] == 'checks: [{"not_contains": "within 90 days"}]'
    assert lines[3] == "wrote window.check.eval.json: 9 answers with the failure, 10 without"
    assert main(["score", "window.check.eval.json"]) == 0
    assert "9 xfailed" in capsys.readouterr().out
    assert lines[1].startswith("with the failure, not met: 1.0000 of ")
    assert lines[2].startswith("without it, met: 1.0000 of ")
    assert main(["evaluator", "windows", "run.json"]) != 0
    assert "window" in capsys.readouterr().err


def test_an_example_that_has_the_text_of_a_test_answer_is_left_out() -> None:
    def answer(text: str) -> NotedAnswer:
        return NotedAnswer(ReviewItem(ShownPrints("", text, ""), ("c",), "Q?", text), text, (0,))

    texts = [f"The refund of order {number} takes ninety days" for number in range(60)]
    parts: dict[str, list[NotedAnswer]] = {}
    for each in map(answer, texts):
        parts.setdefault(each.split, []).append(each)
    unseen = parts["test"][0].item.answer
    quoting = next(each for n in range(60) if (each := answer(f"{unseen}, he said {n} times")).split == "examples")
    assert "he said" in judge_prompt("late", "", [quoting])
    assert "he said" not in judge_prompt("late", "", [quoting, parts["test"][0]])
