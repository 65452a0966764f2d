"""``llmeval score`` and streams, whose evaluators ask a judge: live, stored and deferred verdicts."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_judges import KEY, by_answer
from servers import LlmServer, reply

from pytest_llmeval import Case, LlmevalError, get_evaluator, score_stream
from pytest_llmeval.cli import main
from pytest_llmeval.judges import JudgeSpec

WORDS = ("ant", "bee", "cat", "dog")


@pytest.fixture
def server(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[LlmServer]:
    pytester.makeini("[pytest]")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with LlmServer(by_answer({"dog": reply("no")})) as server:
        write_suite(server)
        yield server


def write_suite(server: LlmServer, *more: dict[str, Any]) -> None:
    cases = [{"id": word, "input": f"Say {word}!", "expected": word, "prediction": word} for word in WORDS]
    suite = {
        "evaluators": [{"judge": {"mode": "default_binary"}}, {"text": {"metrics": ["exact_match"]}}],
        "judge": {"model": "openai:m", "base_url": server.base_url, "retries": 0},
        "gates": ["judge_score >= 0.5"],
        "target": "bot:answer",
        "cases": [*cases, *more],
    }
    Path("s.eval.json").write_text(json.dumps(suite), encoding="utf-8")


def suites(path: str) -> Any:
    """Return the suites of a report without their times."""
    times = ("duration_s", "latency", "seconds")
    return json.loads(
        Path(path).read_text(encoding="utf-8"),
        object_hook=lambda each: {name: value for name, value in each.items() if name not in times},
    )["suites"]


def test_a_live_judge_gives_the_report_of_a_pytest_run_and_is_asked_once(
    server: LlmServer, pytester: pytest.Pytester
) -> None:
    assert main(["score", "s.eval.json", "--report=run.json"]) == 0
    assert len(server.calls) == len(WORDS)
    assert main(["score", "s.eval.json", "--report=again.json"]) == 0
    ran = pytester.runpytest_inprocess(
        "-pno:asyncio", "-pno:pytest-retry", "--llmeval", "--llmeval-report=pytest.json", "s.eval.json"
    )
    assert int(ran.ret) == 0
    assert len(server.calls) == len(WORDS)
    assert suites("again.json") == suites("pytest.json")
    (alone,), (stored,) = suites("run.json"), suites("again.json")
    assert (alone["metrics"], alone["gates"]) == (stored["metrics"], stored["gates"])
    assert alone["metrics"]["judge_score"]["value"] == 0.75


def test_recorded_verdicts_are_replayed_without_a_key(server: LlmServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["score", "s.eval.json", "--judge=record"]) == 0
    monkeypatch.delenv("OPENAI_API_KEY")
    (Path(".llmeval") / "cache.sqlite3").unlink()
    assert main(["score", "s.eval.json", "--judge=replay"]) == 0
    assert len(server.calls) == len(WORDS)


def answer_all(server: LlmServer, requests: Path) -> list[str]:
    """Return the lines of the result file of a provider that has answered a file of requests."""
    rows = []
    for line in map(json.loads, requests.read_text(encoding="utf-8").splitlines()):
        body = json.dumps(line["body"]).encode()
        sent = urllib.request.Request(server.url + line["url"], body, {"content-type": "application/json"})
        with urllib.request.urlopen(sent) as answer:
            row = {"custom_id": line["custom_id"], "response": {"status_code": 200, "body": json.load(answer)}}
            rows.append(f"{json.dumps(row)}\n")
    return rows


def test_deferred_verdicts_are_pending_until_their_replies_are_read(
    server: LlmServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "s.eval.json", "--judge=defer"]) == 2
    assert "exit code 2: 4 verdicts pending: send .llmeval/requests/openai.jsonl" in capsys.readouterr().err
    assert server.calls == []
    rows = answer_all(server, Path(".llmeval/requests/openai.jsonl"))
    Path("replies.jsonl").write_text("".join(rows), encoding="utf-8")
    assert main(["judge", "replies", "replies.jsonl"]) == 0
    assert main(["score", "s.eval.json", "--judge=defer", "--report=run.json"]) == 0
    assert suites("run.json")[0]["metrics"]["judge_score"]["scored"] == len(WORDS)


def test_a_case_without_a_prediction_calls_nobody(server: LlmServer) -> None:
    write_suite(server, {"id": "open", "input": "?", "expected": "x"})
    assert main(["score", "s.eval.json", "--report=run.json"]) == 1
    (suite,) = suites("run.json")
    (case,) = [each for each in suite["cases"] if each["id"] == "open"]
    assert case["outcome"] == "errored"
    assert "llmeval score calls no target" in case["reason"]
    assert len(server.calls) == len(WORDS)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--executor=processes:2", "executor: found 'processes:2' for evaluators that ask a judge, expected none"),
        ("--budget=calls=1", "finished verdicts are stored: run it again with a new budget"),
    ],
)
def test_what_judges_rule_out_is_said(
    server: LlmServer, capsys: pytest.CaptureFixture[str], option: str, message: str
) -> None:
    assert main(["score", "s.eval.json", option]) == 1
    assert message in capsys.readouterr().err
    assert len(server.calls) <= 1


def answers() -> Iterator[Case]:
    yield from (Case(word, f"Say {word}!", word, word) for word in WORDS)


def stream(server: LlmServer, mode: Any, **options: Any) -> Any:
    judge = JudgeSpec("openai:m", base_url=server.base_url, retries=0)
    evaluators = [get_evaluator("judge", mode="default_binary"), get_evaluator("text", metrics=["exact_match"])]
    return score_stream(evaluators, answers(), judge=judge, judge_mode=mode, block=2, **options)


def test_a_stream_uses_the_verdicts_that_are_stored(server: LlmServer) -> None:
    live = stream(server, None)
    assert len(server.calls) == 4
    assert stream(server, "auto") == live
    assert len(server.calls) == 8
    assert stream(server, "auto") == live
    assert main(["score", "s.eval.json"]) == 0
    assert len(server.calls) == 8
    assert stream(server, "refresh") == live
    assert len(server.calls) == 12
    assert stream(server, "auto", cache="other/cache.sqlite3") == live
    assert len(server.calls) == 16


def test_a_stream_that_defers_writes_requests_until_all_verdicts_are_there(
    server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = stream(server, None)
    monkeypatch.delenv("OPENAI_API_KEY")
    server.calls.clear()
    results, requests = Path("scores.jsonl"), Path(".llmeval/requests/openai.jsonl")
    with pytest.raises(LlmevalError, match=r"4 verdicts pending: send .*openai.jsonl, then llmeval judge replies"):
        stream(server, "defer", results=results)
    assert not results.exists()
    answered = answer_all(server, requests)
    Path("results.jsonl").write_text("".join(answered[:3]), encoding="utf-8")
    assert main(["judge", "replies", "results.jsonl"]) == 0
    with pytest.raises(LlmevalError, match="1 verdict pending"):
        stream(server, "defer", results=results)
    Path("results.jsonl").write_text("".join(answered), encoding="utf-8")
    assert main(["judge", "replies", "results.jsonl"]) == 0
    server.calls.clear()
    assert stream(server, "defer", results=results) == live
    assert not server.calls
    assert not requests.exists()
    assert len(results.read_text(encoding="utf-8").splitlines()) == 4


def test_a_stream_refuses_modes_that_need_a_suite_and_judges_without_a_name(server: LlmServer) -> None:
    with pytest.raises(LlmevalError, match="found judge_mode='replay', expected one of auto, refresh, defer"):
        stream(server, "replay")
    with pytest.raises(LlmevalError, match="found cache without judge_mode"):
        stream(server, None, cache="c.sqlite3")
    with pytest.raises(LlmevalError, match=r"cache: .*store"):
        stream(server, "auto", cache="nowhere:c")
    with pytest.raises(LlmevalError, match="a judge without a model, expected judge='PROVIDER:NAME'"):
        score_stream(get_evaluator("judge"), [], judge=lambda _: "yes", judge_mode="auto")
