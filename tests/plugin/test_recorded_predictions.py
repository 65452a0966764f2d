"""``--llmeval-predictions``: every answer is recorded, and replayed without asking the target again."""

import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

FILE = "--llmeval-predictions=answers/recorded.jsonl"
REPLAY = "--llmeval-predictions-mode=replay"

BOT = """\
import pathlib

def answer(word):
    with (pathlib.Path(__file__).parent / "asked.txt").open("a") as file:
        file.write(word + "\\n")
    return {answer}
"""


@pytest.fixture
def asking(project: "Project") -> "Project":
    """A suite of three cases whose target notes what it was asked."""
    project.asking("s.eval.yaml", "bot:answer", "b", "a", "東", gates=["exact_match >= 1"])
    project.write("bot.py", BOT.format(answer="word.upper()"))
    return project


def _asked(project: "Project") -> list[str]:
    path = project.path / "asked.txt"
    words = path.read_text(encoding="utf-8").split() if path.exists() else []
    path.unlink(missing_ok=True)
    return sorted(words)


def _rows(project: "Project") -> list[tuple[str, object]]:
    lines = (project.path / "answers/recorded.jsonl").read_text(encoding="utf-8").splitlines()
    return [(row["case"], row["prediction"]) for row in map(json.loads, lines)]


def test_answers_are_recorded_and_replayed_without_the_target(asking: "Project", workers: int) -> None:
    first = asking.run(FILE, workers=workers)
    assert (first.code, _asked(asking)) == (0, ["a", "b", "東"])
    assert _rows(asking) == [("a", "A"), ("b", "B"), ("東", "東")]
    (asking.path / "bot.py").unlink()
    again = asking.run(FILE, REPLAY, workers=workers)
    assert (again.code, _asked(asking)) == (0, [])
    assert again.suites["s"]["metrics"] == first.suites["s"]["metrics"]


def test_the_file_has_the_same_bytes_however_often_and_wherever_it_is_written(asking: "Project") -> None:
    path = asking.path / "answers/recorded.jsonl"
    asking.run(FILE)
    first = path.read_bytes()
    asking.run(FILE)
    assert path.read_bytes() == first
    path.unlink()
    asking.run(FILE, workers=2)
    measured = rb'"figures": {"latency_s": [0-9.e-]+}'
    assert re.sub(measured, b"", path.read_bytes()) == re.sub(measured, b"", first)
    assert len(re.findall(measured, first)) == 3
    assert b"\\u" not in first


def test_gates_on_latency_tokens_and_cost_hold_in_replays(project: "Project") -> None:
    gates = ["p95(target_latency_s) <= 600", "target_tokens == 45", "target_cost_usd <= 0.3", "exact_match >= 1"]
    project.asking("s.eval.yaml", "bot:answer", "A", "B", "C", gates=gates)
    usage = {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.125}
    project.write("bot.py", BOT.format(answer=f"{{'answer': word, 'usage': {usage}}}"))
    first = project.run(FILE)
    assert list(first.gates("s").values()) == ["passed", "passed", "failed", "passed"]
    again = project.run(FILE, REPLAY)
    assert again.suites["s"]["usage"] == first.suites["s"]["usage"]
    assert again.suites["s"]["usage"]["target_cost_usd"] == 0.375
    assert again.suites["s"]["gates"] == first.suites["s"]["gates"]


def test_auto_asks_for_what_is_new_or_has_another_input(asking: "Project") -> None:
    asking.run(FILE)
    _asked(asking)
    cases = [{"id": "a", "input": "changed", "expected": "CHANGED"}, *({"id": x, "input": x} for x in "bc")]
    asking.suite("s.eval.yaml", cases, target="bot:answer")
    asking.run(FILE)
    assert _asked(asking) == ["c", "changed"]
    assert dict(_rows(asking)) == {"a": "CHANGED", "b": "B", "c": "C", "東": "東"}


def test_replay_tells_a_miss_from_a_changed_input_and_never_asks(asking: "Project") -> None:
    asking.run(FILE)
    _asked(asking)
    cases = [{"id": "a", "input": "changed"}, {"id": "b", "input": "b"}, {"id": "new", "input": "new"}]
    asking.suite("s.eval.yaml", cases, target="bot:answer")
    before = (asking.path / "answers/recorded.jsonl").read_bytes()
    ran = asking.run(FILE, REPLAY, workers=2)
    remedy = "run once with --llmeval-predictions-mode=auto to call the target"
    assert [case["reason"] for case in ran.suites["s"]["cases"]] == [
        f"case 'a' was recorded for another input in recorded.jsonl; {remedy}",
        "no expected answer",
        f"case 'new' is not recorded in recorded.jsonl; {remedy}",
    ]
    assert _asked(asking) == []
    assert (asking.path / "answers/recorded.jsonl").read_bytes() == before


def test_record_asks_again_and_keeps_the_rest_while_refresh_forgets_it(asking: "Project") -> None:
    asking.run(FILE)
    _asked(asking)
    asking.write("bot.py", BOT.format(answer="word.upper() + '!'"))
    asking.asking("s.eval.yaml", "bot:answer", "b", "a")
    asking.run(FILE, "--llmeval-predictions-mode=record")
    assert _asked(asking) == ["a", "b"]
    assert dict(_rows(asking)) == {"a": "A!", "b": "B!", "東": "東"}
    asking.run(FILE, "--llmeval-predictions-mode=refresh")
    assert dict(_rows(asking)) == {"a": "A!", "b": "B!"}


def test_replay_of_a_file_that_is_not_there_is_a_usage_error(asking: "Project") -> None:
    ran = asking.run(FILE, REPLAY)
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert "recorded.jsonl does not exist; create it with --llmeval-predictions-mode=record" in ran.text
    assert "Traceback" not in ran.text


def test_a_file_with_faults_is_a_usage_error_that_names_the_lines(asking: "Project") -> None:
    asking.write("answers/recorded.jsonl", '{"suite": "s"}\n{\n')
    ran = asking.run(FILE)
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert "recorded.jsonl:1:1  expected an object with suite, variant, case, input and prediction" in ran.text
    assert "recorded.jsonl:2:2  " in ran.text


@pytest.mark.parametrize("answer", ["1 / 0", "__import__('pytest').skip('no key')", "'A\\ud83d'"])
def test_a_run_without_usable_answers_leaves_a_file_that_the_next_run_can_read(project: "Project", answer: str) -> None:
    project.asking("s.eval.yaml", "bot:answer", "a")
    project.write("bot.py", BOT.format(answer=answer))
    first = project.run(FILE)
    assert "INTERNALERROR" not in first.text
    second = project.run(FILE)
    assert (second.code, second.counts) == (first.code, first.counts)


def test_every_variant_of_a_model_matrix_has_its_own_recordings(project: "Project") -> None:
    project.asking("s.eval.yaml", "unused:unused", "a")
    conftest = """\
    import pytest

    @pytest.fixture(params=["loud", "mute"])
    def llmeval_target(request):
        return {answers}[request.param]
    """
    project.write("conftest.py", conftest.format(answers='{"loud": str.upper, "mute": lambda word: ""}'))
    first = project.run(FILE)
    project.write("conftest.py", conftest.format(answers='{"loud": None, "mute": None}'))
    again = project.run(FILE, REPLAY)
    shown = {name: suite["metrics"]["exact_match"]["value"] for name, suite in first.suites.items()}
    assert shown == {"s[loud]": 1.0, "s[mute]": 0.0}
    assert shown == {name: suite["metrics"]["exact_match"]["value"] for name, suite in again.suites.items()}


def test_what_a_python_test_scores_is_not_taken_for_an_answer_of_the_target(asking: "Project") -> None:
    asking.write(
        "test_over.py",
        """\
        import pytest

        @pytest.mark.llmeval("s.eval.yaml")
        def test_over(eval_case):
            eval_case.score("something else")
        """,
    )
    asking.run(FILE)
    assert dict(_rows(asking)) == {"a": "A", "b": "B", "東": "東"}
    assert asking.run(FILE, REPLAY, "s.eval.yaml").code == 0


def test_a_python_test_over_a_suite_forgets_no_recording_of_its_target(project: "Project") -> None:
    project.write("bot.py", "def answer(word):\n    return word\n")
    project.asking("s.eval.yaml", "bot:answer", "a", "b")
    test = """\
    import pytest

    @pytest.mark.llmeval("s.eval.yaml")
    def test_it(eval_case):
        eval_case.score("x")
    """
    project.run("--llmeval-predictions=p.jsonl")
    before = (project.path / "p.jsonl").read_bytes()
    project.write("test_it.py", test)
    ran = project.run("test_it.py", "--llmeval-predictions=p.jsonl", "--llmeval-predictions-mode=refresh")
    assert ran.counts == {"passed": 2}
    assert (project.path / "p.jsonl").read_bytes() == before
