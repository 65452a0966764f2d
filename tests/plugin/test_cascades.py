"""Suites that a cascade of judges decides: who is asked what, what is stored, and what the audit makes of it."""

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from scripted_judges import KEY, Judged, case, entries_of, shown_to
from servers import Call, Sent, reply, status

from pytest_llmeval.cli import main

SMALL, LARGE = "openai:small", "openai:large"
WORDS = [f"w{number:03}" for number in range(120)]


def number_of(call: Call) -> int:
    return int(shown_to(call)["answer"][1:4])


def small_score(number: int) -> float:
    """The small judge is unsure of every fourth answer, and mild."""
    return 0.5 if number % 4 == 0 else 1.0


def large_score(number: int) -> float:
    """The large judge finds every third answer wrong."""
    return float(number % 3 != 0)


def says(call: Call) -> Sent:
    score = small_score if call.body["model"] == "small" else large_score
    return reply(json.dumps({"reasoning": "r", "score": score(number_of(call))}))(call)


def cascade(judged: Judged, words: Sequence[str] = WORDS, rule: dict[str, Any] | None = None, **top: Any) -> None:
    first, then = (judged.judge(model=model, price={"input": 100, "output": 1000}) for model in (SMALL, LARGE))
    given = {"when": {"score_between": [0.3, 0.8]}, **(rule or {})}
    judged.project.suite(
        "s.eval.yaml",
        [case(word) for word in words],
        **{
            "evaluators": [{"judge": {"mode": "continuous"}}],
            "judge": {"first": first, "then": then, **given},
            **top,
        },
    )


def by_model(judged: Judged) -> dict[str, int]:
    found = Counter(call.body["model"] for call in judged.server.calls)
    judged.server.calls.clear()
    return dict(sorted(found.items()))


def metric(ran: Any, name: str) -> dict[str, Any]:
    found: dict[str, Any] = ran.suites["s"]["metrics"][name]
    return found


def test_the_large_judge_is_asked_what_the_small_one_is_unsure_of_and_a_random_share(
    judged: Judged, workers: int
) -> None:
    judged.server.script(says)
    cascade(judged, rule={"audit": 0.2})
    ran = judged.project.run("--llmeval-judge=record", workers=workers)
    use = ran.suites["s"]["usage"]["cascades"]["judge"]
    assert (use["verdicts"], use["unsure"]) == (120, 30)
    assert 10 <= use["audited"] <= 30
    assert by_model(judged) == {"large": 30 + use["audited"], "small": 120}
    audited = {number for number in range(120) if number % 4} & {
        int(each["case"][1:]) for each in entries_of(judged.recordings()) if each["model"] == LARGE
    }
    assert len(audited) == use["audited"]
    added = [large_score(number) - 1.0 for number in audited]
    sure = [large_score(number) if number % 4 == 0 else 1.0 for number in range(120)]
    expected = sum(sure) / 120 + 90 / 120 * sum(added) / len(added)
    assert metric(ran, "judge_score")["value"] == pytest.approx(expected)
    assert metric(ran, "judge_cascade_error")["value"] == pytest.approx(-sum(added) / len(added))
    assert metric(ran, "judge_cascade_bias")["value"] == pytest.approx(sum(added) / len(added))
    assert metric(ran, "judge_cascade_unsure")["value"] == 0.25
    shutil.rmtree(judged.cache.parent)
    replayed = judged.project.run("--llmeval-judge=replay", workers=workers).suites["s"]
    assert replayed["metrics"] == ran.suites["s"]["metrics"]
    assert by_model(judged) == {}


def test_stored_verdicts_of_either_judge_alone_are_used(judged: Judged) -> None:
    judged.server.script(says)
    for model in (SMALL, LARGE):
        judged.suite(
            "s.eval.yaml",
            WORDS[:8],
            judge=judged.judge(model=model),
            evaluators=[{"judge": {"mode": "continuous"}}],
        )
        assert judged.project.run("--llmeval-judge=record").code == 0
    assert by_model(judged) == {"large": 8, "small": 8}
    cascade(judged, WORDS[:8])
    assert judged.project.run("--llmeval-judge=replay").outcomes("s") == dict.fromkeys(WORDS[:8], "passed")
    cascade(judged, WORDS[:9], {"audit": 0})
    judged.project.run()
    assert by_model(judged) == {"large": 1, "small": 1}


def test_too_few_audited_cases_leave_the_metric_undefined_and_no_audit_is_said_in_every_report(judged: Judged) -> None:
    judged.server.script(says)
    cascade(judged, gates=["judge_score >= 0.1"])
    few = judged.project.run()
    found = metric(few, "judge_score")
    audited = few.suites["s"]["usage"]["cascades"]["judge"]["audited"]
    assert found["value"] is None
    assert found["reason"] == f"{audited} of 90 sure cases audited, expected at least 10"
    assert few.gates("s") == {"judge_score >= 0.1": "failed"}
    cascade(judged, rule={"audit": 0}, gates=["judge_score >= 0.1"])
    none = judged.project.run("--llmeval-report=report.html", "--llmeval-report=report.md", "--llmeval-report=r.json")
    right = sum(large_score(number) if number % 4 == 0 else 1.0 for number in range(120))
    assert metric(none, "judge_score")["value"] == pytest.approx(right / 120)
    assert metric(none, "judge_score")["signature"].endswith("|cascade:not audited")
    assert metric(none, "judge_cascade_error")["reason"] == "not audited (audit: 0)"
    assert none.suites["s"]["usage"]["cascades"]["judge"]["audit"] == 0
    shown = "cascade judge: 30 of 120 verdicts unsure; not audited: what the small judge gets wrong where it is sure"
    assert shown in none.text
    assert "not audited" in (judged.project.path / "report.md").read_text("utf-8")
    assert '"audit":0' in (judged.project.path / "report.html").read_text("utf-8").replace(" ", "")


def test_a_small_judge_that_errs_where_it_is_sure_is_reported_with_its_rate(judged: Judged) -> None:
    judged.server.script(says)
    cascade(judged, rule={"audit": 0.5})
    ran = judged.project.run("-v")
    error, bias = metric(ran, "judge_cascade_error"), metric(ran, "judge_cascade_bias")
    assert bias["high"] < 0
    use = ran.suites["s"]["usage"]["cascades"]["judge"]
    said = f"the large judge disagrees with {use['differing']} of these: error rate {error['value']:.4f} "
    assert f"{said}({error['low']:.4f}..{error['high']:.4f})" in ran.text
    warning = "warning: cascade judge: where it is sure, the small judge is too mild: the large one adds "
    assert f"{warning}{bias['value']:.4f}" in ran.text
    assert warning in judged.project.run().text


def test_a_small_judge_that_disagrees_with_itself_is_unsure(judged: Judged) -> None:
    opinions: Counter[int] = Counter()

    def twice(call: Call) -> Sent:
        number = number_of(call)
        if call.body["model"] == "large":
            return reply("no")(call)
        opinions[number] += 1
        return reply("yes" if number != 1 or opinions[number] == 1 else "no")(call)

    judged.server.script(twice)
    rule = {"when": {"disagree": 2}, "audit": 0}
    cascade(judged, WORDS[:3], rule, evaluators=[{"judge": {"mode": "default_binary"}}], repeats=2)
    ran = judged.project.run("--llmeval-judge=record", "--llmeval-concurrency=1")
    assert by_model(judged) == {"large": 1, "small": 12}
    repeats = [each["repeat"] for each in entries_of(judged.recordings()) if each["model"] == SMALL]
    assert Counter(repeats) == {0: 3, 1: 3, 1000: 3, 1001: 3}
    assert ran.suites["s"]["usage"]["cascades"]["judge"]["unsure"] == 1
    assert f"{SMALL} (opinion 2)" in ran.suites["s"]["usage"]["jurors"]
    assert metric(ran, "judge_score")["value"] == pytest.approx(2 / 3)


def test_another_cascade_is_another_judge_and_is_not_migrated(
    judged: Judged, capsys: pytest.CaptureFixture[str]
) -> None:
    judged.server.script(says)
    cascade(judged, WORDS[:8], {"audit": 0}, snapshot=True)
    assert judged.project.run("--snapshot-update").code == 0
    assert judged.project.run().code == 0
    cascade(judged, WORDS[:8], {"audit": 0, "when": {"score_between": [0.4, 0.8]}}, snapshot=True)
    changed = judged.project.run()
    assert changed.code == 1
    told = "snapshot FAILED  judge_score  (not comparable: the judge's model of 'judge' is cascade (score_between"
    assert told in changed.text
    assert "llmeval judge migrate" not in changed.text
    capsys.readouterr()
    path = str(judged.project.path / "s.eval.yaml")
    assert main(["judge", "migrate", path, "--from", SMALL, "--to", "openai:b"]) != 0
    assert "found a cascade of judges, which this command does not migrate" in capsys.readouterr().err


def test_a_plan_counts_the_small_judge_and_bounds_the_large_one(judged: Judged) -> None:
    judged.server.script(says)
    cascade(judged, rule={"audit": 0.2})
    plan = judged.project.run("--llmeval-plan").report["judge"]
    assert by_model(judged) == {}
    large = judged.project.run("--llmeval-judge=record").suites["s"]["usage"]["jurors"][LARGE]["calls"]
    audited = plan["calls"] - 120
    assert 120 <= plan["calls"] <= 120 + large <= plan["calls"] + plan["more"] == 240
    judged.server.calls.clear()
    more = [f"w{number:03}" for number in range(200)]
    cascade(judged, more, {"audit": 0.2})
    shutil.rmtree(judged.cache.parent)
    grown = judged.project.run("--llmeval-plan").report["judge"]
    new = judged.project.run().suites["s"]["usage"]["calls"]
    assert grown["likely"] == round(0.25 * (80 - (grown["calls"] - 80)))
    assert grown["calls"] <= new <= grown["calls"] + grown["likely"] + grown["more"]
    assert abs(grown["calls"] + grown["likely"] - new) <= 8
    assert audited > 0


def test_a_spent_budget_ends_a_cascade_as_any_run_and_the_next_one_goes_on(judged: Judged) -> None:
    judged.server.script(says)
    cascade(judged, WORDS[:12], {"audit": 0})
    ran = judged.project.run("--llmeval-budget=calls=5", "--llmeval-concurrency=1")
    assert by_model(judged) == {"large": 1, "small": 4}
    assert ran.suites["s"]["counts"]["not_run"] > 0
    assert judged.project.run().outcomes("s") == dict.fromkeys(WORDS[:12], "passed")
    assert by_model(judged) == {"large": 2, "small": 8}


def test_a_small_judge_that_fails_leaves_the_verdict_to_the_large_one(judged: Judged) -> None:
    def fails(call: Call) -> Sent:
        return status(400, "no such thing")(call) if call.body["model"] == "small" else says(call)

    judged.server.script(fails)
    cascade(judged, WORDS[:3], {"audit": 0})
    ran = judged.project.run()
    assert ran.outcomes("s") == dict.fromkeys(WORDS[:3], "passed")
    assert metric(ran, "judge_score")["value"] == pytest.approx(2 / 3)
    jurors = ran.suites["s"]["cases"][0]["details"]["judge"]["jurors"]
    assert "no such thing" in jurors[SMALL]["missing"]
    assert jurors[LARGE]["score"] == 0


def test_an_audited_case_is_an_error_if_the_large_judge_fails(judged: Judged) -> None:
    def fails(call: Call) -> Sent:
        return status(400, "no such thing")(call) if call.body["model"] == "large" else says(call)

    judged.server.script(fails)
    cascade(judged, ["w001", "w002"], {"audit": 1})
    assert judged.project.run().outcomes("s") == {"w001": "errored", "w002": "errored"}


def test_lists_come_from_the_large_judge_and_all_questions_about_a_case_are_audited_together(judged: Judged) -> None:
    def splits(call: Call) -> Sent:
        if "sentence_1" in shown_to(call):
            return reply(json.dumps({"sentences": [{"sentence": 1, "claims": ["It rains.", "It pours."]}]}))(call)
        verdicts = [{"claim": number, "reasoning": "r", "passages": [1], "supported": True} for number in (1, 2)]
        return reply(json.dumps({"verdicts": verdicts}))(call)

    judged.server.script(splits)
    first, then = (judged.judge(model=model) for model in (SMALL, LARGE))
    cases = [
        {
            "id": word,
            "input": {"question": "Q?", "contexts": ["It rains and pours."]},
            "prediction": f"It pours {word}.",
        }
        for word in WORDS[:6]
    ]
    rule = {"when": {"score_between": [0.3, 0.8]}, "audit": 0}
    judge = {"first": first, "then": then, **rule}
    judged.project.suite("s.eval.yaml", cases, evaluators=["claims"], judge=judge)
    ran = judged.project.run()
    assert ran.outcomes("s") == dict.fromkeys(WORDS[:6], "passed"), ran.text
    assert by_model(judged) == {"large": 6, "small": 1}  # all lists are the same
    checks = [{"judge": "Is friendly."}, {"judge": "Is short."}, {"judge": "Is true."}]
    judged.server.script(reply("yes"))
    judged.project.suite(
        "s.eval.yaml", [case(word, checks=checks) for word in WORDS[:30]], judge={**judge, "audit": 0.3}
    )
    judged.project.run()
    asked = Counter(shown_to(call)["answer"] for call in judged.server.calls if call.body["model"] == "large")
    assert set(asked.values()) == {3}
    assert 0 < len(asked) < 30


def test_no_key_is_written(judged: Judged) -> None:
    judged.server.script(says)
    cascade(judged, WORDS[:8], {"audit": 0.5})
    judged.project.run("--llmeval-judge=record")
    assert KEY not in judged.recordings().read_text("utf-8")


def test_corrected_scores_are_not_decided_early(judged: Judged) -> None:
    judged.server.script(reply(json.dumps({"reasoning": "r", "score": 1})))
    top = {"stop": "when_decided", "gates": ["judge_score >= 0.2"]}
    cascade(judged, rule={"audit": 0.2}, **top)
    assert judged.project.run().suites["s"]["counts"]["passed"] == len(WORDS)
    cascade(judged, rule={"audit": 0}, **top)
    assert judged.project.run().suites["s"]["stop"]["not_needed"] > 0
