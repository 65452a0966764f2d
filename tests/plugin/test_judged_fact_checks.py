"""Fact checks whose explanations a real judge grades, over HTTP, well or badly."""

import json
from typing import Any

import pytest
from scripted_judges import KEY, Judged, shown_to
from servers import Answer, Call, Sent, cut_off, dropped, malformed, refusal, reply, status

from pytest_llmeval.judges.questions._replies import FLAGS

VERDICTS = ("Supported", "Refuted", "Not Enough Evidence")


def graded(score: float, **flags: bool) -> Answer:
    return reply(json.dumps({"reasoning": "r", **dict.fromkeys(FLAGS, False), **flags, "score": score}))


FAILURES = {
    "unavailable": status(500),
    "garbled": malformed(),
    "gone": dropped(),
    "no grade": reply("80, I think"),
    "refused": refusal("I would rather not"),
    "cut off": cut_off('{"score": 8'),
    "flag unreadable": reply('{"score": 80, "fabrication": "no"}'),
}
GRADES = {"good": graded(90), "made up": graded(30, fabrication=True)}


def claim_of(word: str, number: int) -> dict[str, Any]:
    """A claim whose answer is found by its word; all but the first one get the right verdict."""
    gold = {
        "verdict": VERDICTS[number % 3],
        "justification": "The log says so.",
        "evidence_sources": [{"content": "Harbour log", "url": "https://harbour.example/log"}],
    }
    said = VERDICTS[number % 3] if number else "Refuted"
    answer = {"verdict": said, "justification": f"According to the Harbour log ({word})."}
    return {
        "id": word,
        "input": f"Claim {number}",
        "expected": gold,
        "prediction": json.dumps(answer),
        "labels": {"verdict": gold["verdict"]},
    }


def by_word(call: Call) -> Sent:
    text = shown_to(call)["justification"]
    return next((answer for word, answer in {**GRADES, **FAILURES}.items() if f"({word})" in text), graded(0))(call)


CLAIMS = [claim_of(word, number) for number, word in enumerate([*GRADES, *FAILURES])]


@pytest.fixture
def claims(judged: Judged) -> Judged:
    judged.server.script(by_word)
    return judged


def write_suite(judged: Judged, claims: list[dict[str, Any]] = CLAIMS, **top: Any) -> None:
    judged.suite("s.eval.yaml", claims, **{"evaluators": ["fact_check"], "group_by": ["verdict"], **top})


def counts(metric: dict[str, Any]) -> tuple[int, int, int]:
    return metric["scored"], metric["undefined"], metric["errored"]


def test_a_judge_that_fails_takes_the_explanation_and_nothing_else(claims: Judged) -> None:
    write_suite(claims, gates=["evidence_f1 >= 1", "explanation_score >= 0.1", "overall_score >= 0.1"])
    ran = claims.project.run()
    expected = dict.fromkeys(GRADES, "passed") | dict.fromkeys(FAILURES, "errored")
    assert ran.outcomes("s") == expected
    metrics = ran.suites["s"]["metrics"]
    assert counts(metrics["verdict_accuracy"]) == counts(metrics["evidence_f1"]) == (9, 0, 0)
    assert metrics["verdict_accuracy"]["value"] == pytest.approx(8 / 9)
    lost = ["explanation_score", "overall_score", *(f"defect[{flag}]" for flag in FLAGS)]
    assert {name: counts(metrics[name]) for name in lost} == dict.fromkeys(lost, (2, 0, 7))
    assert metrics["explanation_score"]["value"] == pytest.approx(0.6)
    assert metrics["overall_score"]["value"] == pytest.approx((0.3 + 0.27 + 0.7 + 0.09) / 2)
    assert [*ran.gates("s").values()] == ["passed", "failed", "failed"]
    assert "Traceback" not in ran.text
    assert KEY not in ran.text


def test_a_rate_of_defects_is_not_taken_from_the_explanations_that_happened_to_be_graded(claims: Judged) -> None:
    gate = "defect[fabrication] <= 0.6"
    write_suite(claims, gates=[gate, {"metric": "defect[fabrication]", "max": 0.7, "max_errors": 7}])
    ran = claims.project.run()
    assert ran.suites["s"]["metrics"]["defect[fabrication]"]["value"] == 0.5
    assert ran.gates("s")[gate] == "failed"
    assert [*ran.gates("s").values()] == ["failed", "passed"]


def test_the_reason_of_a_claim_says_once_what_became_of_its_judge(claims: Judged) -> None:
    write_suite(claims, [claim_of("unavailable", 1)])
    (found,) = claims.project.run().suites["s"]["cases"]
    assert found["reason"].count("status 500") == 1
    assert found["reason"].endswith("and 6 more: no explanation_score")
    assert (found["metrics"]["verdict_accuracy"], found["metrics"]["explanation_score"]) == (1.0, None)


def test_a_verdict_that_is_never_given_can_be_forbidden(claims: Judged) -> None:
    gates = ["confusion[Refuted->Supported] <= 0", "confusion[Supported->Refuted] <= 0"]
    write_suite(claims, CLAIMS[:2], gates=gates)
    assert claims.project.run().gates("s") == dict(zip(gates, ("passed", "failed"), strict=True))


def test_with_judges_off_explanations_are_undefined_and_nobody_is_asked(claims: Judged) -> None:
    judged = ["explanation_score >= 0.5", "overall_score >= 0.5", "defect[fabrication] <= 0", "judge_calls <= 1"]
    others = ["verdict_accuracy >= 0.5", "evidence_f1[Refuted] >= 0.5", "verdict_accuracy[Refuted] < 1"]
    write_suite(claims, gates=[*judged, *others])
    ran = claims.project.run("--llmeval-judge=off")
    assert list(ran.gates("s").values()) == [*["not_judged"] * 4, "passed", "passed", "failed"]
    metrics = ran.suites["s"]["metrics"]
    assert set(ran.outcomes("s").values()) == {"passed"}
    assert counts(metrics["explanation_score"]) == counts(metrics["overall_score"]) == (0, 9, 0)
    assert counts(metrics["defect[fabrication]"]) == (0, 9, 0)
    assert metrics["evidence_f1"]["value"] == 1.0
    assert claims.server.calls == []


def test_explanations_that_are_omitted_are_not_paid_for(claims: Judged) -> None:
    write_suite(claims, evaluators=[{"fact_check": {"explanation": "omit"}}])
    metrics = claims.project.run().suites["s"]["metrics"]
    assert metrics["overall_score"]["value"] == pytest.approx((8 * 0.7 + 0.3) / 0.7 / 9)
    assert metrics["explanation_score"]["value"] is None
    assert claims.server.calls == []


def test_each_repeat_is_graded_by_itself(claims: Judged) -> None:
    scores = [50, 80, 95]
    claims.server.script(*map(graded, scores))
    write_suite(claims, [claim_of("good", 1)], repeats=3)
    ran = claims.project.run(workers=2)
    assert len(claims.server.calls) == 3
    assert ran.suites["s"]["metrics"]["explanation_score"]["value"] == pytest.approx(sum(scores) / 300)
    (found,) = ran.suites["s"]["cases"]
    assert sorted(found["details"]["repeats"]["spread"]["explanation_score"]["scores"]) == [0.5, 0.8, 0.95]


def test_the_error_analysis_is_the_same_to_the_byte_with_workers(claims: Judged) -> None:
    """With lone surrogates, control characters, claims that a judge fails for and replies that cannot be read."""
    odd = [
        {**claim_of("good", 2), "id": "雪 [1]", "prediction": "(good) {'verdict': 1} \x00"},
        {**claim_of("good", 2), "id": "y", "prediction": r'{"verdict": "\ud800\u0001", "justification": "(good)"}'},
        {**claim_of("good", 4), "id": "z", "prediction": None},
        {**claim_of("made up", 5), "id": "a"},
    ]
    write_suite(claims, [*CLAIMS, *odd])
    found = []
    for number in (0, 2, 2):
        claims.project.run("--llmeval-report=out/errors.json", workers=number)
        found.append((claims.project.path / "out/errors.json").read_bytes())
    assert found[0] == found[1] == found[2]
    (suite,) = json.loads(found[0])["suites"]
    buckets = {each["bucket"]: [case["id"] for case in each["cases"]] for each in suite["buckets"]}
    assert buckets["verdict_errors"][0] == "good"
    assert buckets["low_explanation_score"] == ["made up", "z", "a"]
    assert [each["id"] for each in suite["errored"]] == list(FAILURES)
    assert KEY.encode() not in found[0]
