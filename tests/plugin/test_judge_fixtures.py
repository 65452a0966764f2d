"""The fixtures ``judge_client`` and ``judge``, scoring with judges in Python tests, and keys that turn up nowhere."""

import shutil
from typing import TYPE_CHECKING

import pytest
from scripted_judges import KEY, by_answer, case, entries_of
from servers import raw, reply, status

if TYPE_CHECKING:
    from scripted_judges import Judged

CLIENTS = {
    "callable": "return lambda request: 'yes' if request.messages else 'no'",
    "awaited": "async def ask(request):\n        await asyncio.sleep(0)\n        return 'yes'\n    return ask",
    "client": "return Client()",
    "replies": "return lambda request: JudgeReply('yes', Usage(7, 1))",
    "yields": "note('opened')\n    yield lambda request: 'yes'\n    note('closed')",
    "raises": "return lambda request: 1 / 0",
    "numbers": "return lambda request: 1",
    "nothing": "return 5",
    "broken": "raise OSError('no judge today')",
    "skips": "pytest.skip('no judge here')",
}

CONFTEST = """\
import asyncio
import pathlib

import pytest

from pytest_llmeval.judges._protocol import JudgeReply, Usage


class Client:
    def complete(self, request):
        return JudgeReply("yes")


def note(word):
    with pathlib.Path("notes.txt").open("a") as file:
        file.write(word + " ")


@pytest.fixture
def judge_client():
    {body}
"""


def test_a_judge_of_ones_own_has_any_shape_and_its_faults_concern_its_suite_only(judged: "Judged") -> None:
    for name, body in CLIENTS.items():
        judged.project.write(f"{name}/conftest.py", CONFTEST.format(body=body))
        judged.suite(f"{name}/{name}.eval.yaml", [case("a", input=f"For {name}")], judge=None)
    ran = judged.project.run("--llmeval-judge=record", workers=2)
    assert ran.code == 1
    assert "INTERNALERROR" not in ran.text
    cases = {name: suite["cases"][0] for name, suite in ran.suites.items()}
    good = ("callable", "awaited", "client", "replies", "yields")
    assert {name: cases[name]["metrics"]["judge_score"] for name in good} == dict.fromkeys(good, 1.0)
    found = {name: (cases[name]["outcome"], cases[name]["reason"]) for name in cases.keys() - set(good)}
    assert found["raises"] == ("errored", "judge: JudgeError: the judge raised ZeroDivisionError: division by zero")
    assert found["numbers"] == ("errored", "judge: JudgeError: the judge returned int, expected text or a JudgeReply")
    assert found["nothing"][0] == "errored"
    assert "found int as the judge, expected an object with a method 'complete', or a callable" in found["nothing"][1]
    assert found["broken"] == ("errored", "OSError: no judge today")
    assert found["skips"] == ("skipped", "Skipped: no judge here")
    assert ran.suites["replies"]["usage"]["input_tokens"] == 7
    assert (judged.project.path / "notes.txt").read_text(encoding="utf-8") == "opened closed "
    recorded = {path.parent.parent.name for path in judged.project.path.glob("*/__llmeval__/*.jsonl")}
    assert recorded == set(good)
    model = entries_of(judged.project.path / "callable/__llmeval__/callable.judgements.jsonl")[0]["model"]
    assert model == "fixture:judge_client"


def test_the_fixture_is_not_made_for_stored_verdicts(judged: "Judged") -> None:
    judged.project.write("conftest.py", CONFTEST.format(body="return lambda request: 'yes'"))
    judged.suite("s.eval.yaml", ["a", "b"], judge="fixture:mine")
    judged.project.run("--llmeval-judge=record")
    judged.project.write("conftest.py", CONFTEST.format(body="raise OSError('made')"))
    assert judged.project.run("--llmeval-judge=replay").counts == {"passed": 2}
    assert judged.project.run().counts == {"passed": 2}
    assert {each["model"] for each in entries_of(judged.recordings())} == {"fixture:mine"}


def test_a_fixture_that_is_missing_is_told_without_our_code(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", ["a"], judge="fixture:mine")
    ran = judged.project.run()
    assert ran.counts == {"failed": 1}
    assert "found the judge 'fixture:mine' without a fixture judge_client" in ran.text
    assert "def connect" not in ran.text


def test_a_fixture_that_is_missing_matters_only_to_the_cases_that_ask_it(judged: "Judged") -> None:
    cases = [{"id": "plain", "prediction": "x"}, {"id": "asks", "prediction": "x", "checks": [{"judge": "Is kind."}]}]
    judged.suite("s.eval.yaml", cases, judge="fixture:mine", evaluators=[], checks=[{"contains": "x"}])
    ran = judged.project.run()
    assert [each["outcome"] for each in ran.suites["s"]["cases"]] == ["passed", "errored"]


def test_a_fixture_with_parameters_is_one_clear_error_of_the_suites_below_it(judged: "Judged") -> None:
    judged.project.write(
        "sub/conftest.py",
        """\
        import pytest

        @pytest.fixture(params=["one", "two"])
        def judge_client(request):
            return lambda _: "yes"
        """,
    )
    judged.suite("sub/s.eval.yaml", ["a"])
    judged.project.suite("sub/plain.eval.yaml", [{"id": "a", "expected": "x", "prediction": "x"}])
    judged.suite("other.eval.yaml", ["b"])
    ran = judged.project.run(workers=2)
    assert ran.code != 0
    assert "sub/s.eval.yaml: found a fixture judge_client with parameters, expected one without" in ran.text
    assert (ran.outcomes("other"), ran.outcomes("plain")) == ({"b": "passed"}, {"a": "passed"})
    assert "Traceback" not in ran.text


TESTS = """\
import pytest
from pytest_llmeval import LlmevalError


def test_right(judge):
    verdict = judge("Say it!", "right", reference="it", mode="default_binary")
    assert (verdict.score, verdict.reasoning) == (1.0, "it is")


def test_wrong(judge):
    assert judge({"question": "Say it!"}, "wrong", reference="it", mode="default_binary").score == 1


def test_by_rule(judge):
    assert judge("Say it!", "That is not mentioned.", mode="adversarial").score == 1


def test_unreadable(judge):
    with pytest.raises(LlmevalError, match="the judge replied 'perhaps'"):
        judge("Say it!", "unclear", reference="it", mode="default_binary")


def test_misspelt(judge):
    with pytest.raises(LlmevalError, match="default_binary"):
        judge("Say it!", "unclear", reference="it", mode="default_binar")


def test_without_reference(judge):
    with pytest.raises(LlmevalError, match="there is nothing to judge: no expected answer"):
        judge("Say it!", "unclear", mode="default_binary")
"""


def test_python_tests_ask_the_same_judge_with_recordings_beside_the_test_file(judged: "Judged", workers: int) -> None:
    judged.server.script(by_answer({"right": reply("Yes, it is"), "wrong": reply("No."), "unclear": reply("perhaps")}))
    judged.project.ini(f"llmeval_judge_model = openai:m\nllmeval_judge_base_url = {judged.server.base_url}")
    judged.project.write("sub/test_it.py", TESTS)
    ran = judged.project.run("--llmeval-judge=record", workers=workers)
    assert (ran.code, ran.counts) == (1, {"passed": 5, "failed": 1})
    assert judged.asked() == {"right": 1, "unclear": 1, "wrong": 1}
    path = judged.project.path / "sub/__llmeval__/test_it.judgements.jsonl"
    assert [(each["case"], each["reply"]) for each in entries_of(path)] == [
        ("test_right", "Yes, it is"),
        ("test_wrong", "No."),
    ]
    shutil.rmtree(judged.cache.parent)
    replayed = judged.project.run("--llmeval-judge=replay", "-k", "right or wrong", workers=workers)
    assert (replayed.counts, judged.asked()) == ({"passed": 1, "failed": 1, **_deselected(workers)}, {})
    off = judged.project.run("--llmeval-judge=off", "-k", "right or rule", "-rs", workers=workers)
    assert off.counts == {"skipped": 1, "passed": 1, **_deselected(workers)}
    assert "judges are off (--llmeval-judge=off)" in off.text
    if not workers:
        without = judged.project.run("-k", "right", llmeval=False)
        assert without.counts == {"errors": 1, "deselected": 5}
        assert "fixture 'judge' not found" in without.text


def _deselected(workers: int) -> dict[str, int]:
    return {} if workers else {"deselected": 4}


OVER = """\
import pytest


@pytest.mark.llmeval("s.eval.yaml")
def test_over(eval_case):
    scores = eval_case.score(eval_case.input.removeprefix("Say ").removesuffix("!").upper())
    assert set(scores) == {"judge_score"}
"""


def test_a_python_test_over_a_suite_is_judged_and_recorded_beside_the_suite(judged: "Judged") -> None:
    judged.server.script(by_answer({"B": reply("no"), "C": reply("hm")}))
    judged.suite("s.eval.yaml", "abc", thresholds={"judge_score": 1}, gates=["judge_score >= 0.5"])
    judged.project.write("test_over.py", OVER)
    ran = judged.project.run("test_over.py", "--llmeval-judge=record", workers=2)
    assert judged.asked() == {"A": 1, "B": 1, "C": 1}
    assert ran.outcomes("s[test_over.py::test_over]") == {"a": "passed", "b": "failed", "c": "errored"}
    assert ran.suites["s[test_over.py::test_over]"]["metrics"]["judge_score"]["value"] == 0.5
    assert [each["case"] for each in entries_of(judged.recordings())] == ["a", "b"]
    assert ran.suites["s[test_over.py::test_over]"]["usage"]["calls"] == 3
    judged.server.script(reply("yes"))
    again = judged.project.run("test_over.py", workers=2)
    assert (again.outcomes("s[test_over.py::test_over]")["c"], judged.asked()) == ("passed", {"C": 1})


def test_the_key_reaches_the_judge_and_nothing_else(judged: "Judged") -> None:
    judged.server.script(
        by_answer(
            {
                "told": status(400, f"Incorrect API key provided: {KEY}"),
                "echo": raw(f"Bearer {KEY} is not JSON"),
                "good": reply("yes"),
            }
        )
    )
    judged.suite("s.eval.yaml", ["told", "echo", "good"], gates=["judge_score >= 1"])
    judged.project.write("conftest.py", "import logging\nlogging.basicConfig(level=0)\n")
    ran = judged.project.run(
        *("--llmeval-judge=record", "--llmeval-report=report.md", "--junitxml=junit.xml"),
        *("-vv", "--tb=long", "--showlocals", "-o", "log_level=DEBUG"),
        workers=2,
    )
    assert {call.headers["authorization"] for call in judged.server.calls} == {f"Bearer {KEY}"}
    assert ran.outcomes("s") == {"told": "errored", "echo": "errored", "good": "passed"}
    assert KEY not in ran.text
    holding = [path for path in judged.project.path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert holding == []


@pytest.mark.parametrize("where", ["parameters", "base_url"])
def test_a_key_in_a_suite_file_is_refused_without_being_shown(judged: "Judged", where: str) -> None:
    secret = "sk-abcdefghijklmnop1234"
    more = {"parameters": {"api_key": secret}, "base_url": f"http://me:{secret}@localhost/v1"}
    judged.suite("s.eval.yaml", ["a"], judge=judged.judge(**{where: more[where]}))
    ran = judged.project.run()
    assert ran.code != 0
    assert f"judge.{where}" in ran.text or f"judge: {where}" in ran.text
    assert "environment" in ran.text
    assert secret not in ran.text
