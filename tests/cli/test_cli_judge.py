"""The subcommand judge: another judge is asked the recorded questions."""

import json
from typing import Any

import pytest
from scripted_judges import BAD, GOOD, HALF, NEW, OLD, Suites, graded, milder, shown_to
from servers import Call, Sent, reply

from pytest_llmeval import Case
from pytest_llmeval.targets import Recordings


def test_a_migration_reports_agreement_flips_gates_and_scores(suites: Suites) -> None:
    suites.server.script(graded(milder))
    suites.write(HALF, gates=["judge_score >= 0.7", "judge_score >= 0.2"], thresholds={"judge_score": 1})
    suites.run(update=True)
    asked = len(suites.server.calls)
    code, told = suites.migrate()
    assert (code, len(suites.server.calls) - asked) == (0, 40)
    for line in (
        "s.eval.yaml: openai:old -> openai:new, 40 cases compared, 0 left out",
        "40 calls of the new judge",
        "default_binary          40       30  0.5000  0.7500  0.2500   0.4733",
        "  w20: case failed -> passed",
        "  w20: judge_score 0 -> 1",
        "gates that change:",
        "  judge_score >= 0.7: failed -> passed",
        "  judge_score: 0.5000 -> 0.7500",
        "  pass_rate: 0.5000 -> 0.7500",
        "left out: none",
        "nothing was changed; --approve lets later runs be compared",
    ):
        assert line in told.splitlines()
    assert "judge_score >= 0.2" not in told
    assert suites.scores().bridges == ()
    ((system,),) = [json.loads(suites.migrate("--json")[1])["result"]["systems"]]
    assert (system["compared"], system["calls"], system["left_out"]) == (40, 0, {})
    assert {"case": "w20", "what": "case", "old": "failed", "new": "passed"} in system["flips"]
    assert system["gates"] == [{"gate": "judge_score >= 0.7", "old": "failed", "new": "passed"}]
    assert len(suites.server.calls) - asked == 40


def test_a_spent_budget_ends_a_migration_that_another_one_completes(suites: Suites) -> None:
    suites.write([GOOD] * 5)
    suites.run(update=True)
    asked = len(suites.server.calls)
    code, told = suites.migrate("--budget", "calls=3", "--concurrency", "1", "--approve")
    assert (code, len(suites.server.calls) - asked) == (1, 3)
    assert "the budget of 3 calls is spent; finished verdicts are stored: run the command again" in told
    assert suites.scores().bridges == ()
    assert suites.migrate("--budget", "calls=2", "--approve")[0] == 0


def test_cases_without_a_recorded_verdict_are_named_and_not_asked(suites: Suites) -> None:
    suites.write([GOOD] * 4)
    suites.run(update=True)
    suites.write([GOOD] * 3 + ["another answer"])
    asked = len(suites.server.calls)
    code, told = suites.migrate()
    assert (code, len(suites.server.calls) - asked) == (0, 3)
    assert "3 cases compared, 1 left out" in told
    assert "w03: JudgeError: case 'w03': no recorded verdict" in told


def test_no_target_is_called_and_recorded_predictions_are_judged(suites: Suites) -> None:
    folder = suites.path.parent
    (folder / "app.py").write_text('raise RuntimeError("the target was imported")\n', encoding="utf-8")
    suites.write([GOOD, BAD, GOOD])
    suites.run(update=True)
    content = json.loads(suites.path.read_text(encoding="utf-8"))
    rows = [Recordings.row("s.eval.yaml", "", Case(**each)) for each in content["cases"]]
    bare = [{name: value for name, value in each.items() if name != "prediction"} for each in content["cases"]]
    suites.path.write_text(json.dumps({**content, "target": "app:answer", "cases": bare}), encoding="utf-8")
    code, told = suites.migrate()
    assert (code, "case 'w00' is not recorded in --predictions FILE" in told) == (1, True)
    (folder / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, told = suites.migrate("--predictions", "p.jsonl")
    assert (code, "3 cases compared, 0 left out" in told) == (0, True)


def test_the_old_judge_has_the_parameters_of_the_approved_run(suites: Suites) -> None:
    judge = {"base_url": suites.server.base_url, "retries": 0}
    suites.write([GOOD] * 4, judge={**judge, "model": OLD, "temperature": 0, "parameters": {"top_p": 0.5}})
    suites.run(update=True)
    suites.write([GOOD] * 4, judge={**judge, "model": NEW, "max_tokens": 9})
    code, told = suites.migrate("--approve")
    assert code == 0, told
    (bridge,) = suites.scores().bridges
    assert json.loads(bridge.old["parameters"]) == {"temperature": 0.0, "top_p": 0.5}
    assert json.loads(bridge.new["parameters"]) == {"max_tokens": 9}
    assert suites.server.calls[-1].body["max_tokens"] == 9


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--to", OLD), 1, "which judges already, expected another judge"),
        (("--to", "fixture:mine"), 2, "expected a model: a fixture judges in pytest only"),
        (("--to", "new"), 2, "--to: found 'new', expected PROVIDER:NAME"),
        (("--to", NEW, "--from", "old"), 2, "--from: found 'old', expected PROVIDER:NAME"),
        (("--to", NEW, "--base-url", "local"), 2, "--base-url: found 'local', expected an address"),
        (("--to", NEW, "--budget", "calls"), 2, "--budget: found 'calls'"),
        (("--to", NEW, "--concurrency", "0"), 2, "--concurrency: found '0'"),
        (("--to", NEW, "--cache", "s.eval.yaml"), 1, "s.eval.yaml is not a judge cache"),
        (("--to", NEW, "--from", "openai:third"), 1, "nothing can be compared: JudgeError: case 'w00'"),
    ],
)
def test_a_migration_that_cannot_be_made_says_why(
    suites: Suites, arguments: tuple[str, ...], code: int, message: str
) -> None:
    suites.write([GOOD] * 2)
    suites.run(update=True)
    found, told = suites.llmeval("judge", "migrate", suites.path.name, *arguments)
    assert found == code
    assert message in told
    assert "--llmeval-cache" not in told


def test_faults_name_the_file_as_it_was_given_and_say_that_conftests_are_not_read(suites: Suites) -> None:
    (suites.path.parent / "conftest.py").touch()
    suites.write([GOOD], evaluators=["mine"])
    told = suites.migrate()[1].splitlines()
    assert told[0].startswith("note: s.eval.yaml: evaluators and sources that a conftest.py registers are unknown")
    assert told[1].startswith("s.eval.yaml:1:17  evaluators[0]: unknown evaluator mine, expected one of ")
    assert suites.llmeval("cache", "explain", "s.eval.yaml")[1].splitlines() == told


def test_an_evaluator_with_a_model_of_its_own_keeps_it(suites: Suites) -> None:
    def answer(call: Call) -> Sent:
        if "messages" in call.body:
            return reply("yes")(call)
        vectors = [{"index": number, "embedding": [1.0, 0.0]} for number, _ in enumerate(call.body["input"])]
        return Sent(json.dumps({"data": vectors, "usage": {"prompt_tokens": 3, "total_tokens": 3}}).encode())

    suites.server.script(answer)
    own = {"semantic": {"model": "openai:embedding", "base_url": suites.server.base_url}}
    suites.write([GOOD, BAD, GOOD], evaluators=[own, {"judge": {"mode": "default_binary"}}])
    suites.run(update=True)
    asked = len(suites.server.calls)
    code, told = suites.migrate("--approve")
    assert (code, len(suites.server.calls) - asked) == (0, 3), told
    assert "s.eval.yaml: openai:old -> openai:new, 3 cases compared" in told
    assert [each.label for each in suites.scores().bridges] == ["judge"]


def test_a_juror_of_a_panel_is_replaced_and_the_others_are_not_asked(suites: Suites) -> None:
    suites.server.script(graded(lambda model, answer: answer == GOOD or model == "new"))
    spec = {"base_url": suites.server.base_url, "retries": 0}
    jurors = [{**spec, "model": f"openai:{name}"} for name in ("old", "b", "c")]
    top: dict[str, Any] = {"judges": jurors, "reduce": "majority", "judge": None}
    suites.write([GOOD] * 6 + [BAD] * 4, **top)
    suites.run(update=True)
    asked = len(suites.server.calls)
    code, told = suites.migrate("--from", OLD, "--approve")
    assert code == 0, told
    assert {each.body["model"] for each in suites.server.calls[asked:]} == {"new"}
    assert len(suites.server.calls) - asked == 10
    assert "default_binary          10        6  0.6000  1.0000  0.4000" in told
    assert "scores that change, with their snapshots: none" in told
    assert told.endswith("how far jurors agree is not, until a run is approved\n")
    jurors[0] = {**spec, "model": NEW}
    suites.write([GOOD] * 4 + [BAD] * 6, **top)
    found = suites.verdicts(suites.run())
    assert "on the scale of the former judge" in found["judge_score"][1]
    agreement = found["judge_panel_alpha"][1]
    assert agreement.endswith("approve a run of the new panel")
    assert "migrate" not in agreement
    jurors[1] = {**spec, "model": "openai:third"}
    suites.write([GOOD] * 4 + [BAD] * 6, **top)
    refused = suites.verdicts(suites.run())["judge_score"][1]
    assert "llmeval judge migrate s.eval.yaml --from JUROR --to PROVIDER:NAME (one juror at a time)" in refused
    code, told = suites.migrate()
    assert code == 1
    assert "expected a juror of the panel: openai:new, openai:third, openai:c" in told


def test_a_panel_that_has_its_new_juror_already_is_compared_with_the_one_of_the_approved_scores(suites: Suites) -> None:
    suites.server.script(graded(milder))
    spec = {"base_url": suites.server.base_url, "retries": 0}
    jurors = [{**spec, "model": OLD, "temperature": 0, "max_tokens": 5}, {**spec, "model": "openai:b"}]
    suites.write(HALF, judges=jurors, judge=None)
    suites.run(update=True)
    jurors[0] = {**spec, "model": NEW, "seed": 1}
    suites.write(HALF, judges=jurors, judge=None)
    command = f'llmeval judge migrate s.eval.yaml --from "{OLD}" --to {NEW}'
    assert suites.verdicts(suites.run())["judge_score"][1].endswith(command)
    code, told = suites.migrate("--from", OLD, "--approve")
    assert (code, "40 cases compared, 0 left out" in told) == (0, True), told
    (bridge,) = suites.scores().bridges
    assert json.loads(bridge.old["parameters"])[0] == {"max_tokens": 5, "temperature": 0.0}
    assert json.loads(bridge.new["parameters"])[0] == {"seed": 1}
    assert "on the scale of the former judge" in suites.verdicts(suites.run())["judge_score"][1]


def test_calls_about_cases_that_are_left_out_are_counted(suites: Suites) -> None:
    suites.write([GOOD] * 3 + [BAD])
    suites.run(update=True)
    suites.server.script(lambda call: reply("perhaps" if shown_to(call)["answer"] == BAD else "yes")(call))
    told = suites.migrate()[1]
    assert "3 cases compared, 1 left out" in told
    assert "4 calls of the new judge" in told
