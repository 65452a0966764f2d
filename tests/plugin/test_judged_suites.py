"""Suites with a judge: what goes wrong with calls and replies, what they cost, and gates over that."""

from typing import TYPE_CHECKING, Any

import pytest
from scripted_judges import KEY, by_answer
from servers import (
    Answer,
    cut_off,
    dropped,
    filtered,
    malformed,
    refusal,
    reply,
    status,
    truncated,
)

if TYPE_CHECKING:
    from scripted_judges import Judged

AT_ONCE = {"retry_after": "0"}
SCORES: dict[str, Any] = {"evaluators": [{"judge": {"mode": "continuous"}}]}


def _reasons(suite: dict[str, Any]) -> dict[str, str]:
    return {each["id"]: each["reason"] for each in suite["cases"]}


def test_calls_that_fail_in_passing_are_tried_again(judged: "Judged") -> None:
    good = reply("yes")
    judged.server.script(
        by_answer(
            {
                "busy": [status(429, **AT_ONCE), status(429, **AT_ONCE), good],
                "ill": [status(500, **AT_ONCE), good],
                "down": [status(503, **AT_ONCE), good],
            }
        )
    )
    judged.suite(
        "s.eval.yaml", ["busy", "ill", "down", "well"], judge=judged.judge(retries=2), gates=["judge_score>=1"]
    )
    ran = judged.project.run()
    assert (ran.code, ran.counts) == (0, {"passed": 5})
    assert judged.asked() == {"busy": 3, "down": 2, "ill": 2, "well": 1}
    usage = ran.suites["s"]["usage"]
    assert (usage["verdicts"], usage["calls"]) == (4, 4)


FAILING: dict[str, tuple[Answer, str]] = {
    "429": (status(429, "too many", **AT_ONCE), "status 429: too many; make fewer concurrent calls"),
    "500": (status(500, **AT_ONCE), "status 500: out of order; try again later"),
    "400": (status(400, f"wrong key {KEY}"), "status 400: wrong key ***"),  # after a 401 nobody would ask the rest
    "malformed": (malformed(), "found a body that is not a JSON object"),
    "truncated": (truncated(), "/chat/completions failed: "),
    "dropped": (dropped(), "/chat/completions failed: "),
    "refusal": (
        refusal("I would rather not."),
        "found a refusal, expected a verdict; the judge replied 'I would",
    ),
    "filtered": (filtered(), "found a refusal, expected a verdict; the judge replied ''"),
    "length": (
        cut_off('{"score": 0.'),
        "expected a complete one: raise max_tokens; the judge replied '{\"score\": 0.'",
    ),
    "prose": (
        reply("Rather good."),
        "found no JSON object, expected the reply to end with a JSON object; the judge",
    ),
    "nan": (
        reply('{"score": NaN}'),
        "found NaN as score, expected a number from 0 to 1; the judge replied '{\"score\": NaN}'",
    ),
    "unscored": (reply('{"reasoning": "ok"}'), "score is missing, expected a number"),
    "empty": (reply(""), "found no JSON object, expected the reply to end with a JSON object; the judge replied ''"),
}


def test_whatever_fails_is_errored_with_what_was_found_and_only_that_is_asked_again(judged: "Judged") -> None:
    good = reply('{"score": 1}')
    judged.server.script(by_answer({word: answer for word, (answer, _) in FAILING.items()}, good))
    gates = ["judge_score >= 0", {"metric": "judge_score", "min": 0.9, "max_errors": len(FAILING)}]
    judged.suite("s.eval.yaml", [*FAILING, "good", "fine"], **SCORES, gates=gates)
    record = "--llmeval-judge=record"
    ran = judged.project.run(record, workers=2)
    suite = ran.suites["s"]
    reasons = _reasons(suite)
    for word, (_, message) in FAILING.items():
        assert message in reasons[word], word
        assert reasons[word].startswith("judge: JudgeError: "), word
    assert suite["counts"] == {"total": 15, "passed": 2, "failed": 0, "errored": 13, "skipped": 0, "not_run": 0}
    metric = suite["metrics"]["judge_score"]
    assert (metric["value"], metric["scored"], metric["errored"]) == (1.0, 2, 13)
    assert [gate["outcome"] for gate in suite["gates"]] == ["failed", "passed"]
    assert ran.code == 1
    assert KEY not in ran.text
    assert judged.kept() == ["fine", "good"]
    assert judged.recordings().read_text(encoding="utf-8").count("\n") == 2
    assert judged.asked() == dict.fromkeys(sorted([*FAILING, "good", "fine"]), 1)
    judged.server.script(good)
    again = judged.project.run(record, workers=2)
    assert (again.code, judged.asked()) == (0, dict.fromkeys(sorted(FAILING), 1))
    assert len(judged.kept()) == 15


def test_what_was_asked_is_in_every_report_and_gates_can_read_it(judged: "Judged") -> None:
    judged.project.write("bot.py", "def answer(word):\n    return word\n")
    gates = [
        "judge_calls <= 3",
        "judge_tokens <= 44",
        "judge_cost_usd <= 0.50",
        "judge_cost_usd <= 0.0001",
        "p95(latency_s) <= 60",
        "p95(latency_s) <= 0",
        "target_latency_s <= 60",
    ]
    cases = [{"id": word, "input": word, "expected": "x"} for word in "abc"]
    judge = judged.judge(price={"input": 100, "output": 1000})
    judged.suite("s.eval.yaml", cases, target="bot:answer", gates=gates, judge=judge)
    ran = judged.project.run("--llmeval-report=report.md", "--llmeval-judge=record", workers=2)
    usage = ran.suites["s"]["usage"]
    latency = usage.pop("latency_s")
    assert 0 < latency["p50"] <= latency["p95"] < 60
    assert usage.pop("target_latency_s").keys() == {"p50", "p95"}
    assert usage.pop("judge_cost_usd") == pytest.approx(0.018)
    assert usage == {"verdicts": 3, "calls": 3, "input_tokens": 30, "output_tokens": 15}
    assert {gate["gate"]: gate["value"] for gate in ran.suites["s"]["gates"]}["judge_tokens <= 44"] == 45
    unmet = ["judge_tokens <= 44", "judge_cost_usd <= 0.0001", "p95(latency_s) <= 0"]
    assert [name for name, outcome in ran.gates("s").items() if outcome == "failed"] == unmet
    sentence = "judge: 3 verdicts, 3 requested in this run; 30 + 15 tokens, 0.0180 USD"
    assert sentence in ran.text
    page = (judged.project.path / "report.md").read_text(encoding="utf-8").replace("\\", "")
    assert sentence in page
    again = judged.project.run(workers=2)
    usage = again.suites["s"]["usage"]
    assert (usage["calls"], usage["judge_cost_usd"], usage["latency_s"]) == (0, 0.0, latency)
    assert (again.gates("s")["judge_tokens <= 44"], again.gates("s")["judge_cost_usd <= 0.0001"]) == (
        "passed",
        "passed",
    )


def test_what_a_provider_or_a_price_list_does_not_say_is_unknown_rather_than_nothing(judged: "Judged") -> None:
    judged.server.script(reply("yes", tokens=None))
    judged.suite("s.eval.yaml", ["a", "b"], gates=["judge_cost_usd <= 1", "judge_tokens <= 1000", "judge_calls <= 2"])
    ran = judged.project.run()
    usage = ran.suites["s"]["usage"]
    assert (usage["calls"], usage["input_tokens"], usage["judge_cost_usd"]) == (2, None, None)
    assert "judge: 2 verdicts, 2 requested in this run" in ran.text
    assert ran.gates("s") == {
        "judge_cost_usd <= 1": "failed",
        "judge_tokens <= 1000": "failed",
        "judge_calls <= 2": "passed",
    }


def test_a_call_that_several_cases_share_counts_once_wherever_they_run(judged: "Judged", workers: int) -> None:
    same = [{"id": f"c{number}", "input": "Say it!", "expected": "x", "prediction": "x"} for number in range(6)]
    judged.suite("s.eval.yaml", same)
    ran = judged.project.run(workers=workers)
    usage = ran.suites["s"]["usage"]
    assert (usage["verdicts"], usage["calls"], usage["input_tokens"]) == (6, 1, 10)
    assert judged.asked() == {"x": 1}


def test_judge_and_formulas_stand_side_by_side_and_an_error_of_one_costs_the_other_nothing(judged: "Judged") -> None:
    judged.server.script(by_answer({"a": reply("perhaps")}))
    evaluators = [
        {"text": {"metrics": ["exact_match"]}},
        {"judge": {"mode": "default_binary"}},
        {"judge": {"mode": "adversarial", "as": "rule"}},
    ]
    judged.suite("s.eval.yaml", ["a", "b"], evaluators=evaluators, thresholds={"judge_score": 0.5})
    ran = judged.project.run()
    metrics = ran.suites["s"]["metrics"]
    told = {name: (metrics[name]["value"], metrics[name]["scored"], metrics[name]["errored"]) for name in metrics}
    assert told == {"exact_match": (1.0, 2, 0), "judge_score": (1.0, 1, 1), "rule.judge_score": (0.0, 2, 0)}
    assert ran.outcomes("s") == {"a": "errored", "b": "passed"}
    assert "the judge replied 'perhaps'" in ran.section("FAILURES")


def test_a_suite_in_bulk_is_judged_like_one_of_items(judged: "Judged") -> None:
    judged.server.script(by_answer({"a": reply("no"), "b": reply("?")}))
    for name in ("items", "bulk"):
        judged.suite(f"{name}.eval.yaml", "abcde", mode=name, thresholds={"judge_score": 1})
    ran = judged.project.run("--llmeval-judge=record")
    parts = [(suite["counts"], suite["metrics"], _reasons(suite)) for suite in ran.suites.values()]
    assert parts[0] == parts[1]
    assert parts[0][0]["passed"] == 3
    recorded = [judged.recordings(name).read_text(encoding="utf-8") for name in ("items", "bulk")]
    assert recorded[0] == recorded[1]
    assert judged.asked() == dict.fromkeys("abcde", 1)


def test_without_a_judge_every_case_says_how_to_name_one(judged: "Judged") -> None:
    judged.suite("s.eval.yaml", ["a"], judge=None)
    ran = judged.project.run()
    assert ran.code == 1
    assert _reasons(ran.suites["s"])["a"].endswith(
        "no judge is configured: add 'judge: {model: PROVIDER:NAME}' to the suite, "
        "use --llmeval-judge-model, or define the fixture judge_client"
    )
