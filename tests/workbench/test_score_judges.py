"""``llmeval score`` of suites whose evaluators ask a judge: live, stored and deferred verdicts."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_judges import KEY, by_answer
from servers import LlmServer, reply

from pytest_llmeval.cli import main

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


def test_deferred_verdicts_are_pending_until_their_replies_are_read(
    server: LlmServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["score", "s.eval.json", "--judge=defer"]) == 2
    assert "exit code 2: 4 verdicts pending: send .llmeval/requests/openai.jsonl" in capsys.readouterr().err
    assert server.calls == []
    rows = []
    for line in map(json.loads, Path(".llmeval/requests/openai.jsonl").read_text(encoding="utf-8").splitlines()):
        body = json.dumps(line["body"]).encode()
        sent = urllib.request.Request(server.url + line["url"], body, {"content-type": "application/json"})
        with urllib.request.urlopen(sent) as answer:
            rows.append({"custom_id": line["custom_id"], "response": {"status_code": 200, "body": json.load(answer)}})
    Path("replies.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
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
