"""Bridges between judges: when they are built, and what is compared across them."""

import json

import pytest
from builders import note_runs, run_line
from scripted_judges import BAD, GATE, GOOD, HALF, NEW, OLD, Suites, graded, milder, shown_to, stricter
from servers import Call, Sent, reply

from pytest_llmeval.baselines import ScoreFile, fingerprint
from pytest_llmeval.judges import Judgements, JudgeOptions, StoredJudgement
from pytest_llmeval.judges.replies._sqlite import SqliteReplies
from pytest_llmeval.suites import SuiteKey


def test_a_drop_that_a_milder_judge_hides_is_found_across_the_bridge(suites: Suites) -> None:
    suites.server.script(graded(milder))
    suites.write(HALF)
    suites.run(update=True)
    worse = [GOOD] * 6 + HALF[20:30] + [BAD] * 24
    suites.write(worse, model=NEW)
    refused = suites.verdicts(suites.run())
    wanted = f"measure what the change does with: llmeval judge migrate s.eval.yaml --to {NEW}"
    assert (refused[GATE][0], refused["judge_score"][0]) == ("failed", "failed")
    assert refused[GATE][1].startswith("not comparable: the judge's model of 'judge' is openai:new")
    assert wanted in refused[GATE][1]
    assert wanted in refused["judge_score"][1]

    suites.write(HALF)
    code, told = suites.migrate("--approve")
    assert code == 0, told
    assert "bridge written to __llmeval__/s.scores.json" in told
    suites.write(worse, model=NEW)
    found = suites.verdicts(suites.run())
    assert found[GATE][0] == "failed"
    assert "0.5000 -> 0.0000, drop 0.5000" in found[GATE][1]
    assert "the new one passes 20 of 20 answers that it passed, and 10 of 20 others" in found[GATE][1]
    assert "a drop beyond 0.05 is significant" in found[GATE][1]
    outcome, reason = found["judge_score"]
    assert outcome == "failed"
    assert reason.startswith("fell from 0.5000 to 0.0000, worse by 0.5000; tolerance ")
    assert reason.endswith("; on the scale of the former judge, 0.4000 by the new one")


def test_a_stricter_judge_makes_no_false_drop_across_the_bridge(suites: Suites) -> None:
    suites.server.script(graded(stricter))
    suites.write(HALF)
    suites.run(update=True)
    assert suites.migrate("--approve")[0] == 0
    suites.write(HALF, model=NEW)
    found = suites.verdicts(suites.run())
    assert (found[GATE][0], found["judge_score"][0]) == ("undecided", "passed")
    assert found[GATE][1].startswith("cannot tell: the interval of the bridge between the judges is ")
    assert "0.7500 -> 0.7500, drop 0.0000" in found[GATE][1]
    assert "the new one passes 20 of 30 answers that it passed, and 0 of 10 others" in found[GATE][1]


def test_a_run_by_the_old_judge_and_one_by_a_third_are_compared_as_before(suites: Suites) -> None:
    suites.server.script(graded(milder))
    suites.write(HALF)
    suites.run(update=True)
    before = suites.verdicts(suites.run())
    assert suites.migrate("--approve")[0] == 0
    assert suites.verdicts(suites.run()) == before
    suites.write(HALF, model="openai:third")
    assert suites.verdicts(suites.run())[GATE][0] == "failed"
    assert "not comparable" in suites.verdicts(suites.run())["judge_score"][1]


def test_approving_a_run_of_the_new_judge_ends_the_use_of_the_bridge_and_keeps_it(suites: Suites) -> None:
    suites.server.script(graded(milder))
    suites.write(HALF)
    suites.run(update=True)
    suites.migrate("--approve")
    suites.write(HALF, model=NEW)
    suites.run(update=True)
    (bridge,) = suites.scores().bridges
    assert (bridge.old["model"], bridge.new["model"]) == (OLD, NEW)
    found = suites.verdicts(suites.run())
    assert found["judge_score"] == ("passed", "is 0.7500, as approved")


def test_judges_that_always_agree_leave_the_difference_at_0_with_an_interval(suites: Suites) -> None:
    suites.server.script(graded(lambda _model, answer: answer == GOOD))
    suites.write([GOOD] * 20 + [BAD] * 20)
    suites.run(update=True)
    suites.migrate("--approve")
    shift = suites.scores().bridges[0].shifts["judge_score"]
    assert (shift.value, shift.low < 0 < shift.high, shift.high < 0.2) == (0.0, True, True)


def test_each_system_has_a_bridge_of_its_own(suites: Suites) -> None:
    suites.write([GOOD, BAD, GOOD])
    content = json.loads(suites.path.read_text(encoding="utf-8"))
    rows = [{"id": each["id"], "prediction": each.pop("prediction")} for each in content["cases"]]
    (suites.path.parent / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    content["systems"] = {"one": {"predictions": "p.jsonl"}, "two": {"predictions": "p.jsonl"}}
    suites.path.write_text(json.dumps(content), encoding="utf-8")
    suites.run(update=True, system="one")
    code, told = suites.migrate("--approve")
    assert code == 1
    assert "s.eval.yaml[one]: openai:old -> openai:new" in told
    assert "no approved scores at __llmeval__/s.two-" in told
    suites.run(update=True, system="two")
    assert suites.migrate("--approve")[0] == 0
    assert [len(suites.scores(name).bridges) for name in ("one", "two")] == [1, 1]


def test_a_bridge_begins_at_approved_scores_and_at_those_of_the_old_judge(suites: Suites) -> None:
    suites.write([GOOD] * 3)
    suites.run(update=True)
    suites.write([GOOD] * 3, snapshot=False)
    path = ScoreFile.of_suite(SuiteKey(str(suites.path), suites.path.name)).path
    approved = path.read_text(encoding="utf-8")
    path.unlink()
    code, told = suites.migrate("--approve")
    assert (code, path.exists()) == (1, False)
    assert "no approved scores at __llmeval__/s.scores.json, where a bridge begins" in told
    path.write_text(approved, encoding="utf-8")
    suites.write([GOOD] * 3, model="openai:other")
    suites.run()
    Judgements(Judgements.path_of(suites.path), _entries()).write()
    code, told = suites.migrate("--from", "openai:other", "--approve")
    assert code == 1
    assert "found scores of 'judge' approved with model openai:old, expected model openai:other" in told


def _entries() -> list[StoredJudgement]:
    with SqliteReplies(JudgeOptions().cache.path) as cache:
        return list(cache.entries())


def test_one_case_is_too_little_for_a_bridge(suites: Suites) -> None:
    suites.write([GOOD])
    suites.run(update=True)
    code, told = suites.migrate("--approve")
    assert code == 1
    assert "found too few cases to measure the difference of 'judge', expected at least 2" in told


def test_a_judge_that_writes_its_own_steps_is_bridged_with_these_and_no_others(suites: Suites) -> None:
    steps = {"old": "Look.", "new": "Think."}

    def answer(call: Call) -> Sent:
        model, shown = call.body["model"], shown_to(call)
        if "grades" in shown:
            return reply(json.dumps({"steps": [steps[model], "Compare."]}))(call)
        return reply(json.dumps({"reasoning": "r", "score": 5 if milder(model, shown["answer"]) else 1}))(call)

    suites.server.script(answer)
    criteria = [{"judge": {"criteria": "Short and right."}}]
    suites.write(HALF, evaluators=criteria)
    suites.run(update=True)
    assert suites.migrate("--approve")[0] == 0
    suites.write(HALF, model=NEW, evaluators=criteria)
    found = suites.verdicts(suites.run())
    assert (found[GATE][0], found["judge_score"][0]) == ("undecided", "passed")
    assert "across a change of judge" in found[GATE][1]
    steps["new"] = "Guess."
    JudgeOptions().cache.path.unlink()
    found = suites.verdicts(suites.run())
    assert (found[GATE][0], found["judge_score"][0]) == ("failed", "failed")
    assert "not comparable: computed as" in found[GATE][1]


def test_the_history_tells_a_bridged_change_of_judge_from_another(suites: Suites) -> None:
    suites.write([GOOD, BAD])
    suites.run(update=True)
    suites.migrate("--approve")
    judge = suites.scores().comparable.judges["judge"]
    prints = [fingerprint({"judge": {**judge, "model": model}}) for model in (OLD, NEW, "openai:third", OLD)]
    lines = [run_line(day, basis={"judge": each}) for day, each in enumerate(prints, 1)]
    note_runs(suites.path.parent, *lines)
    told = suites.llmeval("history", suites.path.name, "--metric", "f1")[1]
    marks = [line for line in told.splitlines() if line.startswith("--")]
    assert marks[:2] == ["-- changed: bridged judge --", "-- changed: judge --"]
    suites.write([GOOD, BAD], model=NEW)
    suites.run(update=True)
    assert "-- changed: bridged judge --" in suites.llmeval("history", suites.path.name, "--metric", "f1")[1]


def test_a_bridge_is_measured_on_the_answers_that_were_approved(suites: Suites) -> None:
    suites.server.script(graded(milder))
    suites.write(HALF)
    suites.run(update=True)
    others = [BAD] * 12 + HALF[12:]
    suites.write(others)
    suites.run()
    Judgements(Judgements.path_of(suites.path), _entries()).write()
    code, told = suites.migrate("--approve")
    assert code == 0, told
    assert "12 cases have another answer than the approved one: not compared" in told
    shift = suites.scores().bridges[0].shifts["judge_score"]
    assert shift.value == pytest.approx(10 / 28, abs=1e-6)


def test_other_answers_of_which_the_old_judge_says_the_same_are_left_out_too(suites: Suites) -> None:
    suites.server.script(graded(milder))
    suites.write(HALF)
    suites.run(update=True)
    suites.write([f"{GOOD} as well"] * 12 + HALF[12:])
    suites.run()
    Judgements(Judgements.path_of(suites.path), _entries()).write()
    code, told = suites.migrate("--approve")
    assert code == 0, told
    assert "12 cases have another answer than the approved one: not compared" in told
    assert suites.scores().bridges[0].shifts["judge_score"].value == pytest.approx(10 / 28, abs=1e-6)


def test_a_bridge_from_other_answers_alone_is_none(suites: Suites) -> None:
    suites.server.script(graded(milder))
    suites.write([GOOD] * 4)
    suites.run(update=True)
    suites.write([BAD] * 4)
    suites.run()
    Judgements(Judgements.path_of(suites.path), _entries()).write()
    code, told = suites.migrate("--approve")
    assert code == 1
    assert "found too few cases with the approved answer" in told


def test_no_drop_is_judged_across_a_bridge_whose_difference_depends_on_the_score(suites: Suites) -> None:
    def answer(call: Call) -> Sent:
        value = float(shown_to(call)["answer"].split()[-1])
        return reply(json.dumps({"reasoning": "r", "score": value**0.5 if call.body["model"] == "new" else value}))(
            call
        )

    suites.server.script(answer)
    answers = [f"value {0.05 + 0.02 * number:.2f}" for number in range(40)]
    evaluators = [{"judge": {"mode": "continuous"}}]
    suites.write(answers, evaluators=evaluators)
    suites.run(update=True)
    code, told = suites.migrate("--approve")
    assert code == 0, told
    assert "judge_score: the difference of the judges depends on the score: +0.2" in told
    suites.write(answers, model=NEW, evaluators=evaluators)
    outcome, reason = suites.verdicts(suites.run())[GATE]
    assert outcome == "failed"
    assert reason.startswith(
        "not comparable across the change of judge: the difference of the judges depends on the score"
    )
    assert suites.scores().bridges[0].shifts["judge_score"].depends
