"""Score snapshots and gates on drops of suites whose cases are judged, run several times, or run in one item."""

import json
from typing import TYPE_CHECKING, Any

import pytest
from scripted_judges import Judged, by_answer
from servers import reply

if TYPE_CHECKING:
    from conftest import Project, Ran

WORDS = ("one", "two", "three", "four")
EVALUATORS = [{"judge": {"mode": "default_binary"}}, {"text": {"metrics": ["f1"]}}]
JUDGED_DROP = "drop(judge_score) <= 0.02"
PARTIAL = {"metric": "judge_score", "min": 0.5, "partial": True}


def scores(project: "Project", suite: str = "s") -> dict[str, Any]:
    text = (project.path / "__llmeval__" / f"{suite}.scores.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def verdicts(ran: "Ran", suite: str = "s") -> dict[str, tuple[str, str]]:
    return {each["metric"]: (each["outcome"], each["reason"]) for each in ran.suites[suite]["snapshot"]}


def by_a_larger_model(judged: Judged) -> "Ran":
    address = f"--llmeval-judge-base-url={judged.server.base_url}"
    return judged.project.run("--llmeval-judge-model=openai:large", address)


def approve(judged: Judged, **top: Any) -> None:
    judged.suite("s.eval.yaml", WORDS, **{"evaluators": EVALUATORS, "snapshot": True, **top})
    ran = judged.project.run("--snapshot-update")
    assert ran.code == 0, ran.text


def test_scores_of_another_judge_are_not_compared(judged: Judged) -> None:
    gates = [{"metric": "judge_score", "max_drop": 0.02}]
    approve(judged, gates=gates, thresholds={"judge_score": 0.5})
    assert scores(judged.project)["comparable"]["judges"]["judge"]["model"] == "openai:m"
    ran = by_a_larger_model(judged)
    assert ran.code == 1
    why = (
        "not comparable: the judge's model of 'judge' is openai:large, openai:m when approved; "
        "measure what the change does with: llmeval judge migrate s.eval.yaml --to openai:large"
    )
    found = verdicts(ran)
    assert found["judge_score"] == ("failed", why)
    assert found["pass_rate"] == ("failed", why)
    assert found["f1"][0] == "passed"
    assert ran.gates("s") == {JUDGED_DROP: "failed"}


def test_a_pass_rate_that_no_judge_decides_is_compared_whoever_judges(judged: Judged) -> None:
    approve(judged, thresholds={"f1": 0.5})
    ran = by_a_larger_model(judged)
    assert {name: outcome for name, (outcome, _) in verdicts(ran).items()} == {
        "judge_score": "failed",
        "f1": "passed",
        "pass_rate": "passed",
    }


@pytest.mark.parametrize(("policy", "outcome"), [("fail", "failed"), ("warn", "undecided")])
def test_a_gate_on_a_metric_that_the_snapshot_does_not_keep_knows_of_another_judge(
    judged: Judged, policy: str, outcome: str
) -> None:
    snapshot = {"metrics": ["f1"], "not_comparable": policy}
    approve(judged, gates=[{"metric": "judge_score", "max_drop": 0.02}], snapshot=snapshot)
    ran = by_a_larger_model(judged)
    (gate,) = ran.suites["s"]["gates"]
    assert gate["outcome"] == outcome
    assert "the judge's model of 'judge' is openai:large, openai:m when approved" in gate["reason"]
    assert list(verdicts(ran)) == ["f1"]


def test_without_judges_nothing_is_judged_and_nothing_approved(judged: Judged) -> None:
    approve(judged, gates=[{"metric": "judge_score", "max_drop": 0.02, "partial": True}, PARTIAL])
    before = scores(judged.project)
    for update in ((), ("--snapshot-update",)):
        ran = judged.project.run("--llmeval-judge=off", *update)
        assert ran.code == 0, ran.text
        assert "snapshot not evaluated: judges are off" in ran.text
        assert set(ran.gates("s").values()) == {"not_judged"}
        assert scores(judged.project) == before


def test_what_asking_cost_is_no_score(judged: Judged) -> None:
    approve(judged, repeats=2)
    content = scores(judged.project)
    assert list(content["metrics"]) == ["f1", "judge_score", "pass@1", "pass@2", "pass^1", "pass^2", "pass_rate"]
    lines = (judged.project.path / "__llmeval__" / "s.cases.jsonl").read_text(encoding="utf-8").splitlines()
    assert {frozenset(json.loads(line)["counts"]) for line in lines} == {frozenset({"judge", "repeats", "text"})}
    assert "seconds" not in str(content) + "".join(lines)


def test_repeats_are_approved_alike_by_every_number_of_workers_and_fall_as_one(judged: Judged) -> None:
    gates = [{"metric": "judge_score", "max_drop": 0.02, "rule": "non_inferiority"}]
    approve(judged, repeats=3, gates=gates)
    before = scores(judged.project)
    assert before["comparable"]["repeats"] == "repeats:3|reduce:mean"
    assert before["comparable"]["evaluators"]["text"]["options"] == {}
    ran = judged.project.run("--snapshot-update", "--llmeval-cache=other.sqlite3", workers=2)
    assert ran.code == 0, ran.text
    assert scores(judged.project) == before
    judged.suite("s.eval.yaml", WORDS, evaluators=EVALUATORS, snapshot=True, repeats=2)
    why = "not comparable: cases run repeats:2|reduce:mean, repeats:3|reduce:mean when approved"
    assert set(verdicts(judged.project.run()).values()) == {
        ("failed", why),
        ("failed", "no longer exists; approved: 1.0000"),  # pass^3
    }


def test_a_suite_in_one_item_is_compared_with_what_its_items_scored(judged: Judged) -> None:
    approve(judged)
    judged.suite("s.eval.yaml", WORDS, evaluators=EVALUATORS, snapshot=True, mode="bulk")
    ran = judged.project.run()
    assert ran.code == 0, ran.text
    assert {reason for _, reason in verdicts(ran).values()} == {"is 1.0000, as approved"}


def test_verdicts_that_fell_are_told_of_every_variant_by_itself(judged: Judged) -> None:
    judged.project.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture(params=["small", "large"])
        def llmeval_target(request):
            return lambda question: question.split()[-1].strip("!") + " " + request.param
        """,
    )
    cases = [{"id": word, "input": f"Say {word}!", "expected": word} for word in WORDS]
    judged.suite("s.eval.yaml", cases, evaluators=EVALUATORS, snapshot=True, target=None)
    assert judged.project.run("--snapshot-update", workers=2).code == 0
    judged.server.script(by_answer({f"{word} small": reply("no") for word in WORDS}))
    ran = judged.project.run("--llmeval-cache=other.sqlite3", workers=2)
    assert ran.code == 1
    outcomes = {name: verdicts(ran, name)["judge_score"][0] for name in ran.suites}
    assert outcomes == {"s[large]": "passed", "s[small]": "failed"}
