"""Suites that several judges decide: each juror stored, recorded, counted and shown, and named if it fails."""

import json
import shutil
from typing import Any

import pytest
from scripted_judges import Judged, case, entries_of, shown_to
from servers import Call, Sent, reply, status

NO = {"openai:a": (), "openai:b": ("half", "bad"), "openai:c": ("half", "bad")}
"""Juror to the answers that it finds wrong."""


def says(call: Call) -> Sent:
    word = shown_to(call)["answer"]
    if word == "silent" and call.body["model"] == "c":
        return status(400, "no such thing")(call)
    return reply("no, wrong" if word in NO[f"openai:{call.body['model']}"] else "yes")(call)


def panel(judged: Judged, *words: str, **top: Any) -> None:
    judged.server.script(says)
    judges = [judged.judge(model=model, price={"input": 100, "output": 1000}) for model in NO]
    cases = [case(word) for word in words]
    judged.project.suite(
        "s.eval.yaml",
        cases,
        **{"evaluators": [{"judge": {"mode": "default_binary"}}], "judges": judges, "confidence": None, **top},
    )


def by_juror(judged: Judged) -> dict[str, int]:
    models = [call.body["model"] for call in judged.server.calls]
    judged.server.calls.clear()
    return {model: models.count(model) for model in sorted(set(models))}


def values(suite: dict[str, Any]) -> dict[str, float]:
    return {name: each["value"] for name, each in suite["metrics"].items() if "kappa" not in name}


def test_recordings_of_one_judge_serve_the_panel_and_each_juror_is_recorded_by_itself(judged: Judged) -> None:
    judged.server.script(says)
    judged.suite("s.eval.yaml", ["good", "half", "bad"], judge=judged.judge(model="openai:a"))
    assert judged.project.run("--llmeval-judge=record").code == 0
    assert by_juror(judged) == {"a": 3}
    shutil.rmtree(judged.cache.parent)
    panel(judged, "good", "half", "bad")
    ran = judged.project.run("--llmeval-judge=record", workers=2)
    assert by_juror(judged) == {"b": 3, "c": 3}
    models = [entry["model"] for entry in entries_of(judged.recordings())]
    assert {model: models.count(model) for model in NO} == dict.fromkeys(NO, 3)
    usage = ran.suites["s"]["usage"]
    assert (usage["verdicts"], usage["calls"], usage["judge_cost_usd"]) == (9, 6, pytest.approx(0.036))
    assert {name: (each["verdicts"], each["calls"]) for name, each in usage["jurors"].items()} == {
        "openai:a": (3, 0),
        "openai:b": (3, 3),
        "openai:c": (3, 3),
    }
    assert usage["jurors"]["openai:b"]["cost_usd"] == pytest.approx(0.018)
    shutil.rmtree(judged.cache.parent)
    replayed = judged.project.run("--llmeval-judge=replay").suites["s"]
    assert values(replayed) == values(ran.suites["s"])
    assert values(replayed)["judge_score"] == pytest.approx(1 / 3)
    assert by_juror(judged) == {}


def test_reports_show_the_verdict_of_each_juror(judged: Judged) -> None:
    panel(judged, "good", "half", thresholds={"judge_score": 1}, reduce="mean")
    ran = judged.project.run("--llmeval-report=report.html", "--llmeval-report=report.md", "-v")
    half = next(each for each in ran.suites["s"]["cases"] if each["id"] == "half")
    assert half["metrics"]["judge_score"] == pytest.approx(1 / 3)
    assert half["metrics"]["judge_panel_spread"] == 1
    assert half["details"]["judge"]["jurors"] == {
        "openai:a": {"score": 1.0},
        "openai:b": {"score": 0.0, "reasoning": "wrong"},
        "openai:c": {"score": 0.0, "reasoning": "wrong"},
    }
    assert [(each["judge"], each["score"]) for each in half["judgings"]] == list(zip(NO, (1, 0, 0), strict=True))
    said = ["openai:a gives 1", "openai:b gives 0: wrong", "openai:c gives 0: wrong"]
    assert half["lines"]["judge"][1:] == said
    assert all(each in ran.text for each in said)
    assert "judge openai:b: 2 verdicts, 2 requested in this run; 20 + 10 tokens, 0.0120 USD" in ran.text
    assert "openai:b" in (judged.project.path / "report.md").read_text("utf-8")
    assert "openai:b" in (judged.project.path / "report.html").read_text("utf-8")


def test_a_juror_that_fails_is_an_error_unless_fewer_are_enough_and_then_it_is_named(judged: Judged) -> None:
    panel(judged, "good", "silent")
    strict = judged.project.run("--llmeval-judge=record")
    assert strict.outcomes("s") == {"good": "passed", "silent": "errored"}
    (reason,) = (each["reason"] for each in strict.suites["s"]["cases"] if each["id"] == "silent")
    assert "found 2 of 3 verdicts, expected at least 3: openai:c: " in reason
    assert by_juror(judged) == {"a": 2, "b": 2, "c": 2}
    panel(judged, "good", "silent", min_judges=2)
    lenient = judged.project.run("--llmeval-judge=replay").suites["s"]
    assert (lenient["metrics"]["judge_score"]["value"], lenient["counts"]["errored"]) == (1.0, 0)
    assert lenient["metrics"]["judge_panel_missing"]["value"] == pytest.approx(1 / 6)
    silent = next(each for each in lenient["cases"] if each["id"] == "silent")
    assert "no recorded verdict" in silent["details"]["judge"]["jurors"]["openai:c"]["missing"]
    assert by_juror(judged) == {}


def test_scores_of_another_panel_are_not_comparable_with_approved_ones(judged: Judged) -> None:
    panel(judged, "good", "half", snapshot=True)
    assert judged.project.run("--snapshot-update").code == 0
    assert judged.project.run().code == 0
    panel(judged, "good", "half", snapshot=True, reduce="unanimous")
    changed = judged.project.run()
    assert changed.code == 1
    for metric in ("judge_score", "judge_panel_spread"):
        assert f"snapshot FAILED  {metric}  (not comparable: the judge's model" in changed.text


def test_a_budget_counts_every_juror_and_off_asks_none(judged: Judged) -> None:
    panel(judged, "good", "half", gates=["judge_panel_alpha >= 0"])
    off = judged.project.run("--llmeval-judge=off").suites["s"]
    assert {each["undefined"] for each in off["metrics"].values()} <= {0, 2}
    assert [gate["outcome"] for gate in off["gates"]] == ["not_judged"]
    assert by_juror(judged) == {}
    ran = judged.project.run("--llmeval-budget=calls=3", "--llmeval-concurrency=1")
    assert by_juror(judged) == {"a": 1, "b": 1, "c": 1}
    assert ran.outcomes("s") == {"good": "passed", "half": "not_run"}


def test_one_model_of_the_command_line_judges_alone(judged: Judged) -> None:
    panel(judged, "good", "half")
    suite = judged.project.run("--llmeval-judge-model=openai:b").suites["s"]
    assert by_juror(judged) == {"b": 2}
    assert suite["metrics"]["judge_score"]["value"] == 0.5
    assert suite["metrics"]["judge_panel_alpha"]["value"] is None
    assert "jurors" not in suite["usage"]


def test_a_fixture_stands_in_for_every_juror_and_sees_whose_turn_it_is(judged: Judged) -> None:
    panel(judged, "half")
    judged.project.write(
        "conftest.py",
        "import pytest\n\n@pytest.fixture(scope='session')\ndef judge_client():\n"
        "    return lambda request: 'yes' if request.model == 'c' else 'no'\n",
    )
    case_ = judged.project.run().suites["s"]["cases"][0]
    scores = {name: each["score"] for name, each in case_["details"]["judge"]["jurors"].items()}
    assert scores == {"openai:a": 0, "openai:b": 0, "openai:c": 1}
    assert json.dumps(by_juror(judged)) == "{}"


def test_a_plan_counts_the_calls_of_every_juror_once(judged: Judged) -> None:
    evaluators = [{"judge": {"mode": "default_binary"}}, {"checklist": {"instructions": ["Be short."]}}]
    panel(judged, "good", "half", evaluators=evaluators, repeats=2)
    plan = judged.project.run("--llmeval-plan")
    assert plan.report["judge"]["calls"] == 24
    assert by_juror(judged) == {}


def test_the_steps_of_criteria_are_those_of_the_next_juror_where_the_first_fails(judged: Judged) -> None:
    def grades(call: Call) -> Sent:
        if call.body["model"] == "a":
            return status(400, "no such thing")(call)
        steps = {"steps": [f"Look as {call.body['model']} does.", "Compare."]}
        return reply(json.dumps(steps if "grades" in shown_to(call) else {"reasoning": "r", "score": 5}))(call)

    panel(judged, "good", evaluators=[{"judge": {"criteria": "Short."}}], min_judges=2)
    judged.server.script(grades)
    assert judged.project.run("--llmeval-plan").report["judge"]["calls"] == 4  # steps by one, grades by three
    ran = judged.project.run("--llmeval-judge=record")
    assert ran.outcomes("s") == {"good": "passed"}, ran.text
    (good,) = ran.suites["s"]["cases"]
    assert good["details"]["judge"]["steps"] == ["Look as b does.", "Compare."]
    assert by_juror(judged) == {"a": 2, "b": 2, "c": 1}
    shutil.rmtree(judged.cache.parent)
    assert judged.project.run("--llmeval-judge=replay").suites["s"]["metrics"] == ran.suites["s"]["metrics"]
