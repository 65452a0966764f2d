"""Complete runs of evaluator ``claims`` against a server: recorded, replayed, planned, in parallel."""

import re
import shutil
from collections.abc import Callable
from typing import Any

from scripted_judges import ClaimJudge, Judged, entries_of
from servers import Call, Sent, reply

ALL = ["faithfulness", "context_recall", "context_precision", "context_relevance", "factual_f1", "answer_relevancy"]
ALL += ["hallucination_rate", "factual_precision", "factual_recall", "citation_support"]
CASES: list[dict[str, Any]] = [
    {
        "id": "refund",
        "labels": {"language": "en"},
        "input": {"question": "How long do refunds take?"},
        "expected": "Refunds take 30 days. A refund needs a receipt.",
        "prediction": {
            "answer": "Refunds take 30 days [1]. Parking costs 5 euros [2].",
            "contexts": ["Refunds take 30 days at most.", "We are open from nine to five."],
        },
    },
    {
        "id": "退货",
        "labels": {"language": "zh"},
        "input": {"question": "多少天内可以退货？"},
        "expected": "三十天内可以退货。运费由商店承担。",
        "prediction": {"answer": "三十天内可以退货[1]。", "contexts": ["商品三十天内都可以退货。"]},
    },
]


def serve(judged: Judged, judge: ClaimJudge, **top: Any) -> None:
    def answer(call: Call) -> Sent:
        system, user = (each["content"] for each in call.body["messages"])
        return reply(judge.reply(system, user))(call)

    judged.server.script(answer)
    options: dict[str, Any] = {"evaluators": [{"claims": {"metrics": ALL}}], "group_by": ["language"]}
    judged.suite("s.eval.yaml", CASES, **{**options, **top})


def values(ran: Any) -> dict[str, float | None]:
    return {name: metric["value"] for name, metric in ran.suites["s"]["metrics"].items()}


def without_last(said: Any) -> Any:
    return {key: items[:-1] for key, items in said.items()}


def supported_by_nothing(said: Any) -> Any:
    return {"verdicts": [{**each, "supported": True, "passages": []} for each in said["verdicts"]]}


EXPECTED = {
    "faithfulness": 2 / 3,
    "hallucination_rate": 1 / 3,
    "context_recall": 1 / 2,
    "context_precision": 1.0,
    "context_relevance": 2 / 3,
    "factual_precision": 2 / 3,
    "factual_recall": 1 / 2,
    "factual_f1": 4 / 7,
    "answer_relevancy": 2 / 3,
    "citation_support": 2 / 3,
}


def test_claims_are_judged_recorded_and_replayed_with_the_planned_number_of_calls(judged: Judged) -> None:
    judge = ClaimJudge()
    serve(judged, judge, gates=["faithfulness >= 0.6", {"metric": "faithfulness", "by": "language", "min": 0.5}])
    planned = judged.project.run("--llmeval-plan")
    assert re.search(r"judge: 8 to 18 calls", planned.text)
    assert judge.asked == []
    ran = judged.project.run("--llmeval-judge=record", workers=2)
    assert ran.code == 0
    assert {name: round(value or 0, 6) for name, value in values(ran).items()} == {
        name: round(value, 6) for name, value in EXPECTED.items()
    }
    assert (len(judge.asked), judge.obeyed) == (18, [])
    assert len(entries_of(judged.recordings())) == 18
    kept = ran.suites["s"]
    assert kept["groups"]["language"]["zh"]["metrics"]["faithfulness"]["value"] == 1.0
    shutil.rmtree(judged.cache.parent)
    replayed = judged.project.run("--llmeval-judge=replay")
    assert values(replayed) == values(ran)
    assert judged.project.run("--llmeval-plan").text.count("judge: 0 calls, 18 stored") == 1
    assert len(judge.asked) == 18


def test_a_bad_reply_is_asked_for_once_more_and_a_second_one_is_the_error_of_its_case(judged: Judged) -> None:
    changes: list[Callable[[Any], Any]] = [without_last, lambda said: said, supported_by_nothing, supported_by_nothing]
    judge = ClaimJudge({"support": changes})
    serve(judged, judge, evaluators=["claims"])
    ran = judged.project.run("--llmeval-concurrency=1")
    outcomes = ran.outcomes("s")
    assert outcomes == {"refund": "passed", "退货": "errored"}
    assert judge.asked == ["claims", "support", "support", "claims", "support", "support"]
    suite = ran.suites["s"]
    metric = suite["metrics"]["faithfulness"]
    assert (metric["value"], metric["scored"], metric["errored"]) == (0.5, 1, 1)
    assert "found claim 1 supported without a passage" in ran.text
    assert suite["usage"]["calls"] == 6, "replies that cannot be read were paid for"
    again = judged.project.run()
    assert again.outcomes("s") == {"refund": "passed", "退货": "passed"}
    assert judge.asked[6:] == ["support"], "only replies that can be read are kept"


def test_reports_show_the_questions_the_replies_and_what_does_not_hold(judged: Judged) -> None:
    serve(judged, ClaimJudge(), evaluators=["claims"], thresholds={"faithfulness": 0.6})
    ran = judged.project.run()
    assert "claims: claim 2 is supported by no context: Parking costs 5 euros." in ran.text
    shown = next(each for each in ran.suites["s"]["cases"] if each["id"] == "refund")
    assert [(each["mode"], each["score"]) for each in shown["judgings"]] == [("claims", 2.0), ("claim_support", 0.5)]
    assert shown["judgings"][1]["question"]["passage_2"] == "We are open from nine to five."
    details = shown["details"]["claims"]
    assert details["claims"][1] == {"claim": "Parking costs 5 euros.", "contexts": []}
    assert details["wrong"] == ["claim 2 is supported by no context: Parking costs 5 euros."]
