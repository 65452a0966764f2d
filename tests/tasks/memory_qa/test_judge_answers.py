"""Judging answers in Python: one, or the results of a run, with scores kept in a file."""

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import RESULTS, Scripted, awaited, plain, result, scored
from servers import PATIENCE, LlmServer, refusal, reply

from pytest_llmeval import LlmevalError
from pytest_llmeval.core import JudgeError, SuiteError
from pytest_llmeval.judges import JudgeConnection, JudgeReply, JudgeRequest, JudgeSpec, ModeFile
from pytest_llmeval.tasks.memory_qa import batch_judge, compute_metrics, is_unanswerable, judge_answer, to_table

LOG = "pytest_llmeval.tasks.memory_qa._answers"


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
    assert ModeFile.mode_named("continuous").instructions["en"] in str(request)
    assert '"question": "Where does he live?"' in str(request)
    assert '"answer": "In \\u003cParis\\u003e"' in str(request)
    assert request.reply_schema == ModeFile.mode_named("continuous").reply_schema


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
        ({}, "llm is missing: mode 'continuous' needs a judge"),
        ({"mode": "continous", "llm": plain}, r"unknown mode continous, did you mean continuous"),
        ({"mode": "auto", "llm": plain}, "unknown mode auto"),
        ({"mode": "explanation", "llm": plain}, "unknown mode explanation"),
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


@pytest.mark.parametrize("given", [lambda spec: spec, lambda spec: JudgeConnection(spec).open()])
def test_a_described_model_is_asked_over_http_with_its_parameters(given: Any) -> None:
    with LlmServer(reply('{"score": 0.6}'), refusal("I cannot grade this."), reply('{"score": 1}')) as server:
        llm = given(JudgeSpec("openai:judge-1", base_url=server.base_url, temperature=0.5))
        assert batch_judge(RESULTS[:2], llm=llm, max_workers=1) == [0.6, None]
        assert judge_answer("Where?", "Paris", "Paris", llm=llm) == 1.0
    assert [(call.body["model"], call.body["temperature"]) for call in server.calls] == [("judge-1", 0.5)] * 3
    assert ModeFile.mode_named("continuous").instructions["en"] in server.calls[0].text


def test_each_result_is_judged_by_its_type() -> None:
    kinds = ["single_hop", "adversarial", "knowledge_update", "single_session_preference", "temporal_reasoning"]
    results = [result(number, kind) for number, kind in enumerate(kinds)]
    results.append(replace(results[0], question_id="q9_abs", question="Where? 4"))
    judge = Scripted(['{"score": 0.6}', "never asked", "yes", "no", "yes"])
    assert batch_judge(results, llm=judge) == [0.6, 0.0, 1.0, 0.0, 1.0, 1.0]
    asked = sorted(judge.prompts, key=lambda prompt: prompt.partition("Where? ")[2])
    modes = ["continuous", "knowledge_update", "preference"]
    for mode, prompt in zip(modes, asked, strict=False):
        assert ModeFile.mode_named(mode).instructions["en"] in prompt
    assert sum(ModeFile.mode_named("abstention").instructions["en"] in prompt for prompt in asked) == 1


def test_one_mode_can_be_asked_for_all() -> None:
    assert batch_judge([result(1, "adversarial")], llm=plain, mode="default_binary") == [1.0]
    assert batch_judge(RESULTS, llm=None, mode="adversarial") == [0.0] * 5
    assert batch_judge([], llm=None) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"llm": None}, "llm is missing"),
        ({"mode": "rubric"}, "unknown mode rubric"),
        ({"max_workers": 0}, "found max_workers 0, expected at least 1"),
        ({"prompts": {"x": "p.txt"}}, "prompts: unknown question type x"),
        ({"prompts": {"adversarial": "p.txt"}}, "prompts: found a prompt for 'adversarial', which a rule decides"),
        ({"prompts": {"temporal": "p.txt"}, "mode": "continuous"}, "prompts: found prompts with one mode for all"),
    ],
)
def test_wrong_arguments_are_told(
    arguments: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message):
        batch_judge(**{"results": RESULTS, "llm": plain, **arguments})
    assert list(tmp_path.iterdir()) == []


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


def test_an_unknown_question_type_costs_one_question(caplog: pytest.LogCaptureFixture) -> None:
    results = [result(1), replace(result(2), question_type="riddle")]
    assert batch_judge(results, llm=Scripted(scored(0, 0.6, 0))) == [0.6, None]
    assert "q2: unknown question type riddle" in caplog.text
    metrics = compute_metrics(results, [0.6, None], metrics=["judge_score", "f1"])
    assert metrics["by_type"]["riddle"]["count"] == 1
    assert "riddle" in to_table({"agent": metrics})


def test_results_can_be_changed_as_those_of_the_document() -> None:
    each = result(1)
    each.prediction = "Paris"
    each.note = "checked"  # type: ignore[attr-defined]
    assert each.prediction == "Paris"


def test_the_rule_of_the_original_judges_batches_and_single_answers(tmp_path: Path) -> None:
    results = [result(1, "adversarial", "I don't know"), result(2, "adversarial", "not mentioned")]
    path = tmp_path / "scores.json"
    assert batch_judge(results, llm=None, cache_path=path) == [1.0, 1.0]
    assert batch_judge(results, llm=None, cache_path=path, unanswerable="original") == [0.0, 1.0]
    path.write_text(json.dumps({each.question_id: 1.0 for each in results}))  # of HiMGA's judge, by another rule
    assert batch_judge(results, llm=None, cache_path=path, unanswerable="original") == [0.0, 1.0]
    assert judge_answer("?", "x", "I don't know", mode="adversarial", unanswerable="original") == 0.0


def test_prompts_by_question_type_replace_the_instructions_and_keep_the_form_of_the_reply(tmp_path: Path) -> None:
    (tmp_path / "knowledge.txt").write_text("Old answers are fine. Compare {{ answer }} with {{ reference }}.")
    (tmp_path / "other.txt").write_text("Compare {{ answer }} with {{ labels.x }}.")
    file = tmp_path / "knowledge.txt"
    llm = Scripted(["", '{"score": 0.2}', "yes"])
    results = [result(1), replace(result(2, "knowledge_update"), prediction="Paris. Where? 2")]
    path = tmp_path / "scores.json"
    assert batch_judge(results, llm=llm, prompts={"knowledge_update": file}, cache_path=path) == [0.2, 1.0]
    (own,) = (prompt for prompt in llm.prompts if "Old answers are fine" in prompt)
    assert ModeFile.mode_named("knowledge_update").instructions["en"] not in own
    assert batch_judge(results, llm=None, prompts={"knowledge_update": file}, cache_path=path) == [0.2, 1.0]
    with pytest.raises(ValueError, match="llm is missing"):
        batch_judge(results, llm=None, cache_path=path)
    assert judge_answer("?", "x", "Where? 2", llm=llm, mode="default_binary", prompt=file) == 1.0
    with pytest.raises(SuiteError, match=r"found the placeholder 'labels.x', expected some of question"):
        judge_answer("?", "x", "x", llm=llm, prompt=tmp_path / "other.txt")
    with pytest.raises(ValueError, match="which a rule decides"):
        judge_answer("?", "x", "x", mode="adversarial", prompt=file)
