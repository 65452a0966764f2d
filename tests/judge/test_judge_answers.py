"""Judging answers in Python: one, or the results of a run, with scores kept in a file."""

import asyncio
import json
import logging
import re
import signal
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llm_server import PATIENCE, LlmServer, refusal, reply

from pytest_llmeval import LlmevalError, SuiteError
from pytest_llmeval.core.errors import BudgetError, JudgeError
from pytest_llmeval.judge.clients import connect
from pytest_llmeval.judge.contract import JudgeReply, JudgeRequest
from pytest_llmeval.judge.questions.modes import get_mode
from pytest_llmeval.judge.score_file import ScoreFile
from pytest_llmeval.judge.spec import JudgeSpec
from pytest_llmeval.tasks.memory_qa.qa import EvalResult, QuestionType, batch_judge, is_unanswerable, judge_answer

LOG = "pytest_llmeval.judge.answers"


def result(number: int, kind: str = "single_hop", answer: str = "In Paris", sample: str = "s") -> EvalResult:
    return EvalResult(sample, f"q{number}", QuestionType(kind), f"Where? {number}", "Paris", answer)


RESULTS = [result(number) for number in range(5)]


class Scripted:
    """A judge that answers by the number that ends the question, and counts."""

    def __init__(self, replies: Sequence[str | BaseException]) -> None:
        self.replies = replies
        self.prompts: list[str] = []

    def __call__(self, request: JudgeRequest) -> str:
        prompt = str(request)
        self.prompts.append(prompt)
        reply = self.replies[int(prompt.partition("Where? ")[2][0])]
        if isinstance(reply, BaseException):
            raise reply
        return reply


def scored(*scores: float) -> list[str | BaseException]:
    return [json.dumps({"score": score}) for score in scores]


def kept(path: Path) -> dict[str, float]:
    """Return the scores of a file, without the digests of its keys."""
    return {key.partition("#")[0]: score for key, score in json.loads(path.read_text(encoding="utf-8")).items()}


def plain(request: JudgeRequest) -> str:
    del request
    return "yes"


async def awaited(request: JudgeRequest) -> str:
    await asyncio.sleep(0)
    return plain(request)


class Client:
    def complete(self, request: JudgeRequest) -> JudgeReply:
        return JudgeReply(plain(request))


class AsyncClient:
    async def complete(self, request: JudgeRequest) -> JudgeReply:
        return JudgeReply(await awaited(request))


@pytest.mark.parametrize("llm", [plain, awaited, Client(), AsyncClient()])
def test_a_judge_is_a_client_or_a_function_plain_or_async(llm: Any) -> None:
    assert judge_answer("Where?", "Paris", "In Paris", llm=llm, mode="preference") == 1.0
    assert batch_judge([result(1, "multi_session")], llm=llm) == [1.0]


def test_the_request_is_the_whole_prompt_as_text() -> None:
    seen: list[JudgeRequest] = []

    def llm(request: JudgeRequest) -> str:
        seen.append(request)
        return '{"score": 0.4}'

    assert judge_answer("Where does he live?", "Paris", "In <Paris>", llm=llm) == 0.4
    (request,) = seen
    assert get_mode("continuous").instructions["en"] in str(request)
    assert '"question": "Where does he live?"' in str(request)
    assert '"answer": "In \\u003cParis\\u003e"' in str(request)
    assert request.reply_schema == get_mode("continuous").reply_schema


def test_a_chinese_question_is_judged_in_chinese() -> None:
    judge = Scripted(scored(0, 1))
    assert judge_answer("他住在哪里？Where? 1", "巴黎", "巴黎", llm=judge) == 1.0
    assert "你负责" in judge.prompts[0]


@pytest.mark.parametrize(("answer", "score"), [("Not mentioned", 1.0), ("", 1.0), ("In Paris", 0.0)])
def test_mode_adversarial_needs_no_judge(answer: str, score: float) -> None:
    assert judge_answer("Where?", "Paris", answer, mode="adversarial") == score
    assert float(is_unanswerable(answer)) == score


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "found no judge: mode 'continuous' needs one, pass llm"),
        ({"mode": "continous", "llm": plain}, r"found the unknown mode 'continous'.*did you mean 'continuous'\?"),
        ({"mode": "auto", "llm": plain}, "found the unknown mode 'auto'"),
        ({"mode": "explanation", "llm": plain}, "found the unknown mode 'explanation'"),
        ({"llm": "gpt-5-mini"}, r"expected PROVIDER:NAME \(did you mean 'openai:gpt-5-mini'\?\)"),
    ],
)
def test_what_cannot_be_judged_is_told_before_anything_is_asked(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        judge_answer("Where?", "Paris", "x", **arguments)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("maybe", "the judge replied 'maybe'"),
        (JudgeReply("", stopped="refusal"), "found a refusal"),
        (JudgeReply('{"score": 1', stopped="length"), "truncated"),
        (7, "the judge returned int"),
        (RuntimeError("no route"), "no route"),
    ],
)
def test_a_judge_without_verdict_is_an_error(reply: Any, message: str) -> None:
    def llm(request: JudgeRequest) -> Any:
        del request
        if isinstance(reply, Exception):
            raise reply
        return reply

    with pytest.raises(JudgeError, match=message):
        judge_answer("Where?", "Paris", "x", llm=llm)


@pytest.mark.parametrize("given", [lambda spec: spec, connect])
def test_a_described_model_is_asked_over_http_with_its_parameters(given: Any) -> None:
    with LlmServer(reply('{"score": 0.6}'), refusal("I cannot grade this."), reply('{"score": 1}')) as server:
        llm = given(JudgeSpec("openai:judge-1", base_url=server.base_url, temperature=0.5))
        assert batch_judge(RESULTS[:2], llm=llm, max_workers=1) == [0.6, None]
        assert judge_answer("Where?", "Paris", "Paris", llm=llm) == 1.0
    assert [(call.body["model"], call.body["temperature"]) for call in server.calls] == [("judge-1", 0.5)] * 3
    assert get_mode("continuous").instructions["en"] in server.calls[0].text


def test_each_result_is_judged_by_its_type() -> None:
    kinds = ["single_hop", "adversarial", "knowledge_update", "single_session_preference", "temporal_reasoning"]
    results = [result(number, kind) for number, kind in enumerate(kinds)]
    results.append(replace(results[0], question_id="q9_abs", question="Where? 4"))
    judge = Scripted(['{"score": 0.6}', "never asked", "yes", "no", "yes"])
    assert batch_judge(results, llm=judge) == [0.6, 0.0, 1.0, 0.0, 1.0, 1.0]
    asked = sorted(judge.prompts, key=lambda prompt: prompt.partition("Where? ")[2])
    modes = ["continuous", "knowledge_update", "preference"]
    assert [get_mode(mode).instructions["en"] in prompt for mode, prompt in zip(modes, asked, strict=False)] == [
        True
    ] * 3
    assert sum(get_mode("abstention").instructions["en"] in prompt for prompt in asked) == 1


def test_one_mode_can_be_asked_for_all() -> None:
    assert batch_judge([result(1, "adversarial")], llm=plain, mode="default_binary") == [1.0]
    assert batch_judge(RESULTS, llm=None, mode="adversarial") == [0.0] * 5
    assert batch_judge([], llm=None) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"llm": None}, "found no judge"),
        ({"mode": "rubric"}, "found the unknown mode 'rubric'"),
        ({"max_workers": 0}, "found max_workers 0, expected at least 1"),
        ({"results": [replace(RESULTS[0], question_type="x")]}, "found the unknown question type 'x'"),  # type: ignore[arg-type]  # a wrong value is the point
    ],
)
def test_wrong_arguments_are_told(
    arguments: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        batch_judge(**{"results": RESULTS, "llm": plain, **arguments})
    assert list(tmp_path.iterdir()) == []


def test_results_without_verdict_have_no_score_are_logged_and_are_judged_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "scores.json"
    judge = Scripted([*scored(0.2), "maybe", *scored(0.4), JudgeError("server down"), *scored(1)])
    with caplog.at_level(logging.WARNING, LOG):
        assert batch_judge(RESULTS, llm=judge, cache_path=path) == [0.2, None, 0.4, None, 1.0]
    assert "2 of 5 answers have no verdict; the first: " in caplog.text
    assert "the judge replied 'maybe'" in caplog.text
    assert kept(path) == {"s/q0": 0.2, "s/q2": 0.4, "s/q4": 1.0}
    again = Scripted(scored(0, 0.6, 0, 0.8, 0))
    assert batch_judge(RESULTS, llm=again, cache_path=path) == [0.2, 0.6, 0.4, 0.8, 1.0]
    assert len(again.prompts) == 2


def test_a_complete_file_needs_no_judge_and_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "scores.json"
    (tmp_path / "plain").touch()
    first = batch_judge(RESULTS, llm=Scripted(scored(0, 0.2, 0.4, 0.6, 0.8)), cache_path=path)
    text, changed = path.read_text(), path.stat().st_mtime_ns
    never = Scripted([AssertionError("asked")] * 5)
    assert batch_judge(RESULTS, llm=never, cache_path=str(path)) == first
    assert never.prompts == []
    assert (path.read_text(), path.stat().st_mtime_ns) == (text, changed)
    assert batch_judge(RESULTS, llm=None, cache_path=path) == first
    assert [each.name for each in path.parent.iterdir()] == ["scores.json"]
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode  # as private as any file of the user
    assert re.sub("#[0-9a-f]{16}", "#", text) == (
        '{\n "s/q0#": 0.0,\n "s/q1#": 0.2,\n "s/q2#": 0.4,\n "s/q3#": 0.6,\n "s/q4#": 0.8\n}\n'
    )


def test_other_scores_of_the_file_stay_and_an_id_alone_is_no_key(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    path.write_text('{"other": 1, "q1": 0.5, "问题": 0}')
    assert batch_judge(RESULTS[:2], llm=Scripted(scored(0.2, 0)), cache_path=path) == [0.2, 0.0]
    assert kept(path) == {"other": 1, "q1": 0.5, "s/q0": 0.2, "s/q1": 0.0, "问题": 0}
    assert "问题" in path.read_text(encoding="utf-8")


def test_no_result_gets_the_score_of_another_conversation_answer_or_mode(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    results = [result(0, sample="a"), result(1, sample="b"), result(0, sample="c"), result(1, answer="x", sample="b")]
    for wanted, each in enumerate(results):
        score = wanted / 10
        assert batch_judge([each], llm=Scripted(scored(score, score)), cache_path=path) == [score]
    assert batch_judge([results[0]], llm=plain, mode="preference", cache_path=path) == [1.0]
    never = Scripted([AssertionError("asked")] * 2)
    assert batch_judge(results, llm=never, cache_path=path) == [0.0, 0.1, 0.2, 0.3]


def test_results_that_are_alike_in_everything_are_judged_once(tmp_path: Path) -> None:
    judge = Scripted(scored(0.2, 0.4))
    results = [RESULTS[0], RESULTS[1], RESULTS[0]]
    assert batch_judge(results, llm=judge, cache_path=tmp_path / "scores.json") == [0.2, 0.4, 0.2]
    assert len(judge.prompts) == 2


def test_judging_with_one_file_at_the_same_time_loses_no_score(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    files = [ScoreFile.open(path) for _ in range(4)]
    for number, file in enumerate(files):
        file.add(str(number), 1.0)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ScoreFile.save, files))
    assert json.loads(path.read_text()) == dict.fromkeys("0123", 1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found an empty file"),
        ('{"q0": 0.5', "expected"),
        ('{"q0": 0.5, "q0": 1}', "q0"),
        ('{"q0": NaN}', "NaN"),
        ("[0.5]", "found a list, expected an object of question ids and scores"),
        ('{"q0": 2}', r"scores.json:1:8  q0: found 2, expected a score from 0 to 1"),
        ('{"q0": 0.5, "q1": "1"}', r'q1: found "1", expected a score from 0 to 1'),
        ('{"q0": true}', "q0: found true, expected a score from 0 to 1"),
        ('{"q0": null}', "q0: found null, expected a score from 0 to 1"),
    ],
)
def test_a_damaged_file_is_an_error_and_stays_as_it_is(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "scores.json"
    path.write_text(text)
    judge = Scripted(scored(1, 1, 1, 1, 1))
    with pytest.raises(SuiteError, match=message):
        batch_judge(RESULTS, llm=judge, cache_path=path)
    assert path.read_text() == text
    assert judge.prompts == []


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), BudgetError("spent")])
def test_what_is_judged_when_a_run_is_stopped_is_kept(tmp_path: Path, stop: BaseException) -> None:
    path = tmp_path / "scores.json"
    judge = Scripted([*scored(0, 0.2, 0.4), stop, *scored(1)])
    with pytest.raises(type(stop)):
        batch_judge(RESULTS, llm=judge, cache_path=path, max_workers=1)
    assert kept(path) == {"s/q0": 0.0, "s/q1": 0.2, "s/q2": 0.4}
    assert batch_judge(RESULTS, llm=Scripted(scored(0, 0, 0, 0.6, 1)), cache_path=path) == [0.0, 0.2, 0.4, 0.6, 1.0]


def test_ctrl_c_keeps_what_is_judged_and_does_not_wait_for_what_is_not(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    waiting = threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def llm(request: JudgeRequest) -> str:
        if "Where? 3" in str(request):
            signal.pthread_kill(main, signal.SIGINT)
            waiting.wait(PATIENCE)
        return '{"score": 1}'

    with pytest.raises(KeyboardInterrupt):
        batch_judge(RESULTS, llm=llm, cache_path=path, max_workers=1)
    assert not waiting.is_set()
    waiting.set()
    assert kept(path) == {"s/q0": 1.0, "s/q1": 1.0, "s/q2": 1.0}


def test_the_file_is_written_now_and_then_before_the_end(tmp_path: Path) -> None:
    path = tmp_path / "scores.json"
    results = [replace(RESULTS[0], question_id=str(number)) for number in range(40)]
    lengths: list[int] = []

    def llm(request: JudgeRequest) -> str:
        del request
        lengths.append(len(json.loads(path.read_text())) if path.exists() else 0)
        return '{"score": 1}'

    batch_judge(results, llm=llm, cache_path=path, max_workers=1)
    assert sorted(set(lengths)) == [0, 32]


class Gatekeeper:
    """Lets calls through once enough of them are there at the same time, and notes the most."""

    def __init__(self, wanted: int) -> None:
        self.barrier = threading.Barrier(wanted, timeout=PATIENCE)
        self.lock = threading.Lock()
        self.now = self.most = 0

    def __call__(self, request: JudgeRequest) -> str:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        self.barrier.wait()
        with self.lock:
            self.now -= 1
        return plain(request)


def test_plain_functions_run_in_as_many_threads_as_allowed() -> None:
    keeper = Gatekeeper(3)
    results = [result(number, "multi_session") for number in range(9)]
    assert batch_judge(results, llm=keeper, max_workers=3) == [1.0] * 9
    assert keeper.most == 3


def test_async_functions_run_in_one_event_loop_at_most_as_many_as_allowed() -> None:
    loops, now, most = set(), 0, 0

    async def llm(request: JudgeRequest) -> str:
        nonlocal now, most
        loops.add(id(asyncio.get_running_loop()))
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return plain(request)

    results = [result(number, "multi_session") for number in range(9)]
    assert batch_judge(results, llm=llm, max_workers=4) == [1.0] * 9
    assert (len(loops), most) == (1, 4)


def test_judging_works_where_an_event_loop_runs_already() -> None:
    async def notebook() -> list[float | None]:
        return [judge_answer("Where?", "Paris", "x", llm=awaited, mode="preference"), *batch_judge(RESULTS, llm=llm)]

    llm = Scripted(scored(0, 0.2, 0.4, 0.6, 0.8))
    assert asyncio.run(notebook()) == [1.0, 0.0, 0.2, 0.4, 0.6, 0.8]


def test_no_thread_is_left() -> None:
    before = set(threading.enumerate())
    batch_judge(RESULTS, llm=Scripted(scored(0, 0, 0, 0, 0)))
    assert {thread for thread in threading.enumerate() if thread.name == "llmeval"} <= before


def test_what_is_no_judge_is_told() -> None:
    with pytest.raises(LlmevalError, match="found int as the judge"):
        batch_judge(RESULTS, llm=7)  # type: ignore[arg-type]  # a wrong value is the point


def test_a_file_that_cannot_be_written_leaves_no_scratch_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ScoreFile.open(tmp_path / "scores.json")
    file.add("q", 1.0)

    def refuse(path: Path, target: Path) -> Path:
        raise PermissionError(13, "no", f"{path} to {target}")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError):
        file.save()
    assert list(tmp_path.iterdir()) == []


def test_the_functions_are_where_those_of_the_requirement_document_were() -> None:
    from pytest_llmeval import judge
    from pytest_llmeval.tasks.memory_qa import qa

    assert [getattr(judge, name) for name in judge.__all__] == [getattr(qa, name) for name in judge.__all__]
    with pytest.raises(AttributeError, match="has no attribute 'judge_answers'"):
        judge.judge_answers  # noqa: B018 (looking it up is the test)
