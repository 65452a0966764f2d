"""Runs that defer their judges: batch files, the provider's result files, and runs until nothing is pending."""

import json
import os
import re
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from running import Finished, run_python
from scripted_judges import ClaimJudge, Judged, case, shown_to
from servers import Call, Sent, data, reply, status
from test_cascades import LARGE, SMALL, says

if TYPE_CHECKING:
    from conftest import Ran

DEFER = "--llmeval-judge=defer"
WORDS = ("ant", "bee", "cat", "dog")


def requests_of(judged: Judged, provider: str = "openai") -> Path:
    return judged.project.path / ".llmeval" / "requests" / f"{provider}.jsonl"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def post(address: str, body: Any) -> tuple[int, Any]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def openai_result(judged: Judged, line: dict[str, Any]) -> dict[str, Any]:
    code, body = post(judged.server.url + line["url"], line["body"])
    response = {"status_code": code, "request_id": "r", "body": body}
    return {"id": "batch_req", "custom_id": line["custom_id"], "response": response, "error": None}


def anthropic_result(judged: Judged, line: dict[str, Any]) -> dict[str, Any]:
    code, body = post(f"{judged.server.url}/v1/messages", line["params"])
    failed = {"type": "errored", "error": {"type": "error", "error": body}}
    return {"custom_id": line["custom_id"], "result": {"type": "succeeded", "message": body} if code == 200 else failed}


def gemini_result(judged: Judged, line: dict[str, Any]) -> dict[str, Any]:
    code, body = post(f"{judged.server.url}/models/x:generateContent", line["request"])
    return {"key": line["key"], "response": body} if code == 200 else {"key": line["key"], **body}


RESULTS: dict[str, Callable[[Judged, dict[str, Any]], dict[str, Any]]] = {
    "openai": openai_result,
    "anthropic": anthropic_result,
    "gemini": gemini_result,
}


def work_off(judged: Judged, provider: str = "openai", keep: slice = slice(None)) -> Path:
    """Send a batch file to the server as a provider does, and return the result file: in another order."""
    results = [RESULTS[provider](judged, line) for line in reversed(lines_of(requests_of(judged, provider)))]
    path = Path("results.jsonl")
    path.write_text("".join(f"{json.dumps(each)}\n" for each in results[keep]), encoding="utf-8")
    return path


def llmeval(judged: Judged, *args: object) -> Finished:
    return run_python(["-m", "pytest_llmeval", *map(str, args)], os.environ, judged.project.path)


def deferred(judged: Judged, provider: str = "openai", workers: int = 0, rounds: int = 9) -> "tuple[Ran, int]":
    """Run, send and read until nothing is pending; return the last run, and how often something was sent."""
    for sent in range(rounds):
        ran = judged.project.run(DEFER, workers=workers)
        if not requests_of(judged, provider).exists():
            return ran, sent
        read = llmeval(judged, "judge", "replies", work_off(judged, provider))
        assert read.code == 0, read.err
    raise AssertionError(f"still pending after {rounds} rounds: {ran.text}")


def test_questions_are_written_answered_later_and_decide_the_gate(judged: Judged, workers: int) -> None:
    judged.server.script(lambda call: reply("no" if shown_to(call)["answer"] == "cat" else "yes")(call))
    judged.suite("s.eval.yaml", WORDS, gates=["judge_score >= 0.7"])
    first = judged.project.run(DEFER, workers=workers)
    assert first.code == 2, first.text
    assert (
        "exit code 2: 4 verdicts pending: send .llmeval/requests/openai.jsonl, then llmeval judge replies FILE"
        in first.text
    )
    assert judged.asked() == {}
    assert first.gates("s") == {"judge_score >= 0.7": "undecided"}
    assert set(first.outcomes("s").values()) == {"not_scored"}
    assert first.suites["s"]["metrics"]["judge_score"]["value"] is None
    asked = lines_of(requests_of(judged))
    assert [(line["method"], line["url"]) for line in asked] == [("POST", "/v1/chat/completions")] * 4
    assert len({line["custom_id"] for line in asked}) == 4

    read = llmeval(judged, "judge", "replies", work_off(judged))
    assert (read.code, read.out.splitlines()[0]) == (0, "results.jsonl: 4 verdicts stored")
    calls = len(judged.server.calls)
    assert not requests_of(judged).exists()
    last = judged.project.run(DEFER, workers=workers)
    assert last.code == 0, last.text
    assert last.gates("s") == {"judge_score >= 0.7": "passed"}
    assert last.suites["s"]["metrics"]["judge_score"]["value"] == 0.75
    assert judged.project.run("--llmeval-judge=record").code == 0  # all verdicts are stored
    assert len(judged.server.calls) == calls


def test_nothing_needs_a_key_and_no_secret_is_written(judged: Judged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    judged.suite("s.eval.yaml", WORDS)
    assert judged.project.run(DEFER).code == 2
    assert "authorization" not in requests_of(judged).read_text(encoding="utf-8").lower()


def test_what_is_asked_again_and_by_several_cases_is_written_once(judged: Judged, workers: int) -> None:
    twins = [{**case("same"), "id": f"twin {number}"} for number in range(6)]
    judged.suite("s.eval.yaml", twins)
    judged.suite("other.eval.yaml", [twins[0], case("bee")])
    for _ in range(2):
        judged.project.run(DEFER, workers=workers)
        assert len(lines_of(requests_of(judged))) == 2
    before = requests_of(judged).read_bytes()
    judged.project.run(DEFER, workers=2 - workers)
    assert requests_of(judged).read_bytes() == before


def test_the_file_holds_what_the_last_run_lacks_and_earlier_requests_can_still_be_answered(judged: Judged) -> None:
    judged.suite("s.eval.yaml", WORDS)
    judged.project.run(DEFER)
    results = work_off(judged)
    judged.project.run(DEFER, "-k", "ant or bee")
    assert len(lines_of(requests_of(judged))) == 2
    assert llmeval(judged, "judge", "replies", results).out.startswith("results.jsonl: 4 verdicts stored\n")
    assert judged.project.run(DEFER).code == 0


def test_verdicts_are_those_of_a_live_run_byte_for_byte(judged: Judged) -> None:
    judged.server.script(lambda call: reply("no" if shown_to(call)["answer"] == "cat" else "yes")(call))
    judged.suite("s.eval.yaml", WORDS, snapshot=True)

    def score_files() -> dict[str, bytes]:
        folder = judged.project.path / "__llmeval__"
        return {path.name: path.read_bytes() for path in folder.iterdir() if "inputs" not in path.name}

    assert judged.project.run("--snapshot-update").code == 0
    live = score_files()
    for path in [*(judged.project.path / "__llmeval__").iterdir(), judged.cache]:
        path.unlink()
    deferred(judged)
    assert judged.project.run(DEFER, "--snapshot-update").code == 0
    assert score_files() == live


def test_a_run_that_waits_approves_nothing(judged: Judged) -> None:
    judged.suite("s.eval.yaml", WORDS, snapshot=True)
    ran = judged.project.run(DEFER, "--snapshot-update")
    assert not list(judged.project.path.glob("__llmeval__/*.scores.json")), ran.text


@pytest.mark.parametrize(
    ("gate", "outcome"),
    [
        ("judge_score >= 0", "passed"),
        ("judge_score >= 0.5", "passed"),  # three of four are known
        ("judge_score >= 0.75", "passed"),
        ("judge_score >= 0.8", "undecided"),
        ("judge_score <= 0.5", "failed"),
        ("judge_score <= 0.8", "undecided"),
        ("median(judge_score) >= 0.1", "undecided"),
    ],
)
def test_limits_that_no_verdict_can_change_are_judged(judged: Judged, gate: str, outcome: str) -> None:
    judged.suite("s.eval.yaml", WORDS, gates=[gate], evaluators=[{"judge": {"mode": "continuous"}}])
    judged.server.script(reply('{"reasoning": "r", "score": 1}'))
    judged.project.run(DEFER)
    llmeval(judged, "judge", "replies", work_off(judged, keep=slice(1, None)))
    ran = judged.project.run(DEFER)
    assert ran.gates("s") == {gate: outcome}, ran.text
    assert ran.code == (1 if outcome == "failed" else 2)


def test_a_gate_that_needs_no_judge_is_judged(judged: Judged) -> None:
    both = [{"judge": {"mode": "default_binary"}}, {"text": {"metrics": ["f1"]}}]
    judged.suite("s.eval.yaml", WORDS, evaluators=both, gates=["f1 >= 0.5", "judge_score >= 0.5"])
    ran = judged.project.run(DEFER)
    assert ran.gates("s")["judge_score >= 0.5"] == "undecided"
    assert ran.gates("s")["f1 >= 0.5"] in ("passed", "failed")


def test_a_reply_that_cannot_be_read_is_asked_for_once_more_and_then_an_error(judged: Judged) -> None:
    judged.server.script(lambda call: reply("who knows" if shown_to(call)["answer"] == "cat" else "yes")(call))
    judged.suite("s.eval.yaml", WORDS)
    ran, sent = deferred(judged)
    assert sent == 2
    assert ran.outcomes("s") == {"ant": "passed", "bee": "passed", "cat": "errored", "dog": "passed"}
    assert "the replies to 2 deferred requests cannot be read" in ran.text
    assert ran.code == 1
    assert {name: count for name, count in judged.asked().items() if count > 1} == {"cat": 2}


def test_failed_lines_have_a_reason_and_stay_pending(judged: Judged) -> None:
    judged.server.script(lambda call: (status(400) if shown_to(call)["answer"] == "cat" else reply("yes"))(call))
    judged.suite("s.eval.yaml", WORDS)
    judged.project.run(DEFER)
    results = work_off(judged)
    with results.open("a", encoding="utf-8") as file:
        file.write("\nnot json\n" + json.dumps({"custom_id": "elsewhere", "response": {}}) + "\n[]\n{}\n")
    read = llmeval(judged, "judge", "replies", results, "absent.jsonl")
    assert read.code == 1
    assert "3 verdicts stored, 1 failed, 1 line about requests that were not made here" in read.out
    assert "1 request failed" in read.out
    assert "status 400" in read.out
    assert re.search(r"results.jsonl:6:1 .*a JSON object is missing", read.err)
    assert re.search(r"results.jsonl:8:1 .*a JSON object is missing", read.err)
    assert re.search(r"results.jsonl:9:1 .*custom_id or key is missing", read.err)
    assert re.search(r"absent.jsonl .*cannot be read: No such file", read.err)
    assert len(lines_of(requests_of(judged))) == 1
    again = llmeval(judged, "judge", "replies", results)
    assert "0 verdicts stored, 3 known before, 1 failed" in again.out
    judged.server.script(reply("yes"))
    ran, _ = deferred(judged)
    assert ran.code == 0


def test_an_expired_request_has_the_reason_of_the_provider(judged: Judged) -> None:
    judged.suite("s.eval.yaml", WORDS[:1])
    judged.project.run(DEFER)
    (line,) = lines_of(requests_of(judged))
    error = {"code": "batch_expired", "message": "This request could not be executed before the completion window."}
    expired = {"id": "b", "custom_id": line["custom_id"], "response": None, "error": error}
    (judged.project.path / "errors.jsonl").write_text(json.dumps(expired), encoding="utf-8")
    assert (
        "batch_expired: This request could not be executed" in llmeval(judged, "judge", "replies", "errors.jsonl").out
    )


def test_the_form_of_anthropic(judged: Judged) -> None:
    judged.server.script(reply("yes"))
    judged.suite(
        "s.eval.yaml", WORDS, judge={**judged.judge(model="anthropic:claude-x"), "base_url": judged.server.url}
    )
    judged.project.run(DEFER)
    lines = lines_of(requests_of(judged, "anthropic"))
    assert [line.keys() for line in lines] == [{"custom_id", "params"}] * 4
    assert {line["params"]["model"] for line in lines} == {"claude-x"}
    ran, sent = deferred(judged, "anthropic")
    assert (ran.code, sent) == (0, 1)


def test_the_form_of_gemini(judged: Judged) -> None:
    judged.server.script(lambda call: (status(400) if shown_to(call)["answer"] == "cat" else reply("yes"))(call))
    judge = {**judged.judge(model="gemini:gemini-x", temperature=0), "base_url": judged.server.url}
    judged.suite("s.eval.yaml", WORDS, judge=judge)
    judged.project.run(DEFER)
    lines = lines_of(requests_of(judged, "gemini"))
    assert [line.keys() for line in lines] == [{"key", "request"}] * 4
    assert [line["request"]["generationConfig"] for line in lines] == [{"temperature": 0}] * 4
    read = llmeval(judged, "judge", "replies", work_off(judged, "gemini"))
    assert "3 verdicts stored, 1 failed" in read.out
    assert "status None: out of order" in read.out
    judged.server.script(reply("yes"))
    ran, sent = deferred(judged, "gemini")
    assert (ran.code, sent) == (0, 1)


def test_claims_take_rounds_until_nothing_is_pending(judged: Judged, workers: int) -> None:
    judge = ClaimJudge()

    def answer(call: Call) -> Sent:
        system, user = (each["content"] for each in call.body["messages"])
        return reply(judge.reply(system, user))(call)

    judged.server.script(answer)
    cases = [
        {
            "id": "refund",
            "input": {"question": "How long do refunds take?"},
            "expected": "Refunds take 30 days. A refund needs a receipt.",
            "prediction": {
                "answer": "Refunds take 30 days [1]. Parking costs 5 euros [2].",
                "contexts": ["Refunds take 30 days at most.", "We are open from nine to five."],
            },
        }
    ]
    metrics = ["faithfulness", "context_recall", "factual_f1"]
    judged.suite("s.eval.yaml", cases, evaluators=[{"claims": {"metrics": metrics}}], gates=["faithfulness >= 0.4"])
    ran, sent = deferred(judged, workers=workers)
    assert ran.code == 0, ran.text
    assert sent == 2  # the claims, then what is asked about them
    later = {name: ran.suites["s"]["metrics"][name]["value"] for name in metrics}
    judged.cache.unlink()
    live = judged.project.run()
    assert later == {name: live.suites["s"]["metrics"][name]["value"] for name in metrics}


def test_the_large_judge_of_a_cascade_is_asked_once_the_small_one_is_unsure(judged: Judged) -> None:
    judged.server.script(says)
    first, then = (judged.judge(model=model) for model in (SMALL, LARGE))
    judge = {"first": first, "then": then, "when": {"score_between": [0.3, 0.8]}, "audit": 0}
    words = [f"w{number:03}" for number in range(8)]
    judged.suite("s.eval.yaml", words, evaluators=[{"judge": {"mode": "continuous"}}], judge=judge)
    judged.project.run(DEFER)
    assert [line["body"]["model"] for line in lines_of(requests_of(judged))] == ["small"] * 8
    llmeval(judged, "judge", "replies", work_off(judged))
    judged.project.run(DEFER)
    assert [line["body"]["model"] for line in lines_of(requests_of(judged))] == ["large"] * 2
    ran, _ = deferred(judged)
    assert ran.code == 0


def test_a_panel_asks_all_its_judges_in_one_round(judged: Judged) -> None:
    judged.server.script(reply('{"reasoning": "r", "score": 1}'))
    judges = [judged.judge(model=f"openai:m{number}") for number in range(3)]
    judged.suite("s.eval.yaml", WORDS, evaluators=[{"judge": {"mode": "continuous"}}], judge=None, judges=judges)
    judged.project.run(DEFER)
    shown = llmeval(judged, "judge", "requests")
    assert [line.split()[:2] for line in shown.out.splitlines() if line.startswith("openai:")] == [
        [f"openai:m{number}", "4"] for number in range(3)
    ]
    one = llmeval(judged, "judge", "requests", "--model", "openai:m1", "-o", "m1.jsonl")
    assert one.code == 0
    assert {line["body"]["model"] for line in lines_of(judged.project.path / "m1.jsonl")} == {"m1"}
    ran, sent = deferred(judged)
    assert (ran.code, sent) == (0, 1)


@pytest.mark.parametrize("price", [{"input": 1, "output": 2}, {"input": 1, "output": 2, "batch": 0.25}])
def test_verdicts_cost_the_batch_rate(judged: Judged, price: dict[str, float]) -> None:
    judged.server.script(reply("yes", tokens=(1_000_000, 500_000)))
    judged.suite("s.eval.yaml", WORDS[:2], judge=judged.judge(price=price))
    ran, _ = deferred(judged)
    share = price.get("batch", 0.5)
    assert ran.suites["s"]["money"]["saved"]["stored"] == pytest.approx(2 * 2 * share)


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        ({"model": "fixture:mine"}, "fixture:mine cannot be asked later"),
        ({"model": "pydantic-ai:openai:m"}, "pydantic-ai:openai:m cannot be asked later"),
    ],
)
def test_a_judge_without_a_batch_interface_is_an_error(judged: Judged, judge: dict[str, Any], why: str) -> None:
    judged.suite("s.eval.yaml", WORDS[:1], judge=judge)
    ran = judged.project.run(DEFER)
    assert ran.code == 1
    assert why in ran.text
    assert "use a judge of anthropic, azure, gemini or openai" in ran.text


def test_a_change_of_one_answer_leaves_only_its_verdict_pending(judged: Judged) -> None:
    judged.suite("s.eval.yaml", WORDS)
    deferred(judged)
    judged.suite("s.eval.yaml", [*WORDS[:3], {**case("dog"), "prediction": "doge"}])
    ran = judged.project.run(DEFER)
    assert "1 verdict pending" in ran.text
    assert len(lines_of(requests_of(judged))) == 1


def test_a_python_test_that_needs_a_pending_verdict_is_skipped(judged: Judged) -> None:
    judged.project.write("test_it.py", "def test_it(judge):\n    assert judge('q', 'a', 'a').score == 1\n")
    ran = judged.project.run(
        DEFER, "--llmeval-judge-model=openai:m", f"--llmeval-judge-base-url={judged.server.base_url}"
    )
    assert "1 skipped" in ran.text
    assert ran.code == 2


def test_there_is_nothing_to_read_before_anything_is_deferred(judged: Judged) -> None:
    done = llmeval(judged, "judge", "replies", "x.jsonl")
    assert done.code == 1
    assert "run pytest --llmeval --llmeval-judge=defer first" in done.err


def test_shards_defer_what_a_merge_lists(judged: Judged) -> None:
    judged.suite("s.eval.yaml", WORDS, gates=["judge_score >= 0.5"])
    for shard in ("1/2", "2/2"):
        path = f"--llmeval-report=shards/{shard[0]}.llmeval"
        ran = judged.project.run(DEFER, f"--llmeval-shard={shard}", path)
        assert ran.code == 2, ran.text
    shutil.rmtree(judged.project.path / ".llmeval")
    merged = llmeval(judged, "merge", "shards")
    assert merged.code == 2
    assert "exit code 2: 4 verdicts pending: send .llmeval/requests/openai.jsonl" in merged.err
    assert len(lines_of(requests_of(judged))) == 4
    read = llmeval(judged, "judge", "replies", work_off(judged))
    assert "4 verdicts stored" in read.out
    assert judged.project.run(DEFER).code == 0


def test_a_plan_defers_nothing_and_shows_the_batch_rate(judged: Judged) -> None:
    price = {"input": 1_000_000, "output": 0, "batch": 0.25}
    judged.suite("s.eval.yaml", WORDS[:1], judge=judged.judge(price=price))
    assert judged.project.run().code == 0
    judged.suite("s.eval.yaml", WORDS, judge=judged.judge(price=price))
    plan = judged.project.run("--llmeval-plan", DEFER)
    assert "7.5000 USD" in plan.text  # three calls of ten tokens each, at a quarter of one USD per token
    assert not requests_of(judged).exists()


def test_a_killed_run_loses_nothing(judged: Judged) -> None:
    judged.project.write(
        "bot.py",
        """
        import os, signal

        def answer(word):
            if word == "cat" and os.environ.get("KILL"):
                os.kill(os.getpid(), signal.SIGKILL)
            return word.upper()
        """,
    )
    judged.project.ini("pythonpath = .")
    cases = [{"id": word, "input": word, "expected": word} for word in WORDS]
    judged.suite("s.eval.yaml", cases, target={"python": "bot:answer", "concurrency": 1})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KILL", "1")
        assert judged.project.run(DEFER).code == -signal.SIGKILL
    judged.project.run(DEFER)
    assert len(lines_of(requests_of(judged))) == 4
    ran, sent = deferred(judged)
    assert (ran.code, sent) == (0, 1)


def test_half_of_a_surrogate_pair_is_sent_and_read(judged: Judged, workers: int) -> None:
    judged.server.script(reply('{"reasoning": "\ud800", "score": 1}'))
    judged.project.ini("pythonpath = .")
    judged.project.write("bot.py", "def answer(word):\n    return word + chr(0xD800)\n")
    evaluators = [{"judge": {"mode": "continuous"}}]
    judged.project.asking("s.eval.yaml", "bot:answer", *WORDS, evaluators=evaluators, judge=judged.judge())
    ran, sent = deferred(judged, workers=workers)
    assert (ran.code, sent) == (0, 1), ran.text


def test_secrets_are_in_no_batch_file(judged: Judged, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "tok-1234567890abcdef")
    judged.suite("s.eval.yaml", [{**case("x"), "prediction": "the key is tok-1234567890abcdef"}])
    judged.project.run(DEFER)
    assert "tok-1234567890abcdef" not in requests_of(judged).read_text(encoding="utf-8")
    assert b"tok-1234567890abcdef" not in judged.cache.read_bytes()


def test_a_suite_that_may_stop_early_runs_to_its_end(judged: Judged) -> None:
    words = [f"w{number:03}" for number in range(90)]
    stops = {"gates": ["judge_score >= 0.2"], "stop": "when_decided", "confidence": 0.95}
    judged.suite("s.eval.yaml", words[:80], **stops)
    assert deferred(judged)[0].code == 0
    judged.suite("s.eval.yaml", words, **stops)
    ran = judged.project.run(DEFER)
    assert "10 verdicts pending" in ran.text, ran.text


def test_a_form_that_the_provider_refuses_is_not_asked_for_again(judged: Judged) -> None:
    def answer(call: Call) -> Sent:
        if "response_format" in call.body:
            return data({"error": {"message": "response_format is not supported"}}, 400)(call)
        return reply('{"reasoning": "r", "score": 1}')(call)

    judged.server.script(answer)
    judged.suite("s.eval.yaml", WORDS[:2], evaluators=[{"judge": {"mode": "continuous"}}])
    ran, sent = deferred(judged)
    assert (ran.code, sent) == (0, 2)
