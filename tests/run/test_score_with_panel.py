"""`score` with several judges: their reduction, their agreement, who fails, and how many calls are in flight."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from scripted_judges import ClaimJudge

from pytest_llmeval import Case, JudgeError, JudgeRequest, LlmevalError, Panel, get_checks, get_evaluator, score
from pytest_llmeval.tasks.memory_qa import judge_answer

CASES = [
    Case("good", input="Q1", expected="x", prediction="good"),
    Case("half", input="Q2", expected="x", prediction="half"),
    Case("bad", input="Q3", expected="x", prediction="bad"),
]
YES_NO = get_evaluator("judge", mode="preference")


def finds_wrong(*words: str) -> Callable[[JudgeRequest], str]:
    return lambda request: "no" if any(f'"{word}"' in str(request) for word in words) else "yes"


def fails_on(word: str) -> Callable[[JudgeRequest], str]:
    def judge(request: JudgeRequest) -> str:
        if f'"{word}"' in str(request):
            raise JudgeError("down")
        return "yes"

    return judge


MILD, FAIR, HARSH = finds_wrong(), finds_wrong("bad"), finds_wrong("bad", "half")


@pytest.mark.parametrize(
    ("reduce", "expected"),
    [(None, [1, 1, 0]), ("majority", [1, 1, 0]), ("unanimous", [1, 0, 0]), ("mean", [1, 2 / 3, 1 / 3])],
)
def test_verdicts_of_several_judges_become_one_and_their_agreement_is_measured(
    reduce: str | None, expected: list[float]
) -> None:
    panel = Panel({"mild": MILD, "fair": FAIR, "harsh": HARSH}, reduce)
    found = score(YES_NO, CASES, judge=panel)
    assert [each.metrics["judge_score"] for each in found.cases] == pytest.approx(expected)
    assert found.metrics["judge_panel_spread"].value == pytest.approx(2 / 3)
    assert found.metrics["judge_panel_kappa[fair, harsh]"].value == pytest.approx(0.4)
    assert found.cases[1].details["judge"]["jurors"]["harsh"] == {"score": 0.0}


def test_a_judge_that_fails_is_an_error_unless_fewer_are_enough() -> None:
    judges = [MILD, FAIR, fails_on("half")]
    strict = score(YES_NO, CASES, judge=Panel(judges)).metrics["judge_score"]
    assert (strict.scored, strict.errored) == (2, 1)
    lenient = score(YES_NO, CASES, judge=Panel(judges, min_judges=2)).metrics
    assert (lenient["judge_score"].errored, lenient["judge_panel_missing"].value) == (0, pytest.approx(1 / 9))


@pytest.mark.parametrize(
    ("check", "met"),
    [
        ({"judge": "Is nice."}, [True, False, False]),
        ({"not_judge": "Is nice."}, [False, False, True]),
        ({"any_of": [{"judge": "Is nice."}, {"contains": "half"}]}, [True, True, False]),
        ({"not_any_of": [{"judge": "Is nice."}]}, [False, False, True]),
        ({"not_all_of": [{"not_judge": "Is nice."}]}, [True, False, False]),
    ],
)
def test_a_check_about_which_judges_are_split_is_unmet_and_so_is_its_opposite(
    check: dict[str, object], met: list[bool]
) -> None:
    found = score(get_checks(check), CASES, judge=Panel([FAIR, HARSH]))
    assert [each.metrics["check_rate"] == 1 for each in found.cases] == met


def test_a_reduction_without_meaning_for_an_evaluator_is_refused() -> None:
    with pytest.raises(LlmevalError, match="evaluator 'checks': found mean, expected majority or unanimous"):
        score(get_checks({"judge": "Is nice."}), CASES, judge=Panel([FAIR, HARSH], "mean"))


def test_calls_in_flight_are_limited_over_all_judges() -> None:
    both, most = threading.Barrier(2, timeout=300), 0
    running = set()

    def judge(_request: JudgeRequest) -> str:
        nonlocal most
        running.add(threading.get_ident())
        most = max(most, len(running))
        both.wait()
        running.discard(threading.get_ident())
        return "yes"

    score(YES_NO, CASES[:2], judge=Panel([judge, judge, judge]), max_workers=2)
    assert most == 2


def test_answers_are_judged_by_a_panel_too() -> None:
    judges = [lambda _request, text=text: text for text in ('{"score": 1}', '{"score": 0.5}')]
    assert judge_answer("Where?", "Paris", "Paris", llm=Panel(judges)) == 0.75


def test_what_cannot_be_a_panel_is_refused() -> None:
    with pytest.raises(ValueError, match="judges: found 1 judge, expected two or more"):
        Panel([MILD])
    with pytest.raises(ValueError, match="judges: found 'openai:a', expected a list or a mapping of two or more"):
        Panel("openai:a")
    with pytest.raises(ValueError, match="judges: found None, expected a list or a mapping of two or more"):
        Panel(None)  # type: ignore[arg-type]  # what users may pass
    for least in (3, 0, "2", 1.5, True):
        with pytest.raises(ValueError, match=f"min_judges: found {least!r}, expected 1 to 2"):
            Panel([MILD, FAIR], min_judges=least)  # type: ignore[arg-type]  # as above
    with pytest.raises(ValueError, match="reduce: found 'mode', expected one of mean, median, majority, unanimous"):
        Panel([MILD, FAIR], "mode")


RAG = {
    "en": Case(
        "en",
        input={"question": "How long do refunds take?"},
        prediction={"answer": "Refunds take 30 days. Parking costs 5 euros.", "contexts": ["Refunds take 30 days."]},
    ),
    "zh": Case(
        "zh",
        input={"question": "多少天内可以退货？"},
        prediction={"answer": "三十天内可以退货。停车收费五欧元。", "contexts": ["商品三十天内都可以退货。"]},
    ),
}


def all_supported(verdicts: Any) -> Any:
    return {"verdicts": [{**each, "supported": True, "passages": [1]} for each in verdicts["verdicts"]]}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_claims_are_listed_by_one_judge_and_voted_on_one_by_one_by_all(language: str) -> None:
    fair, strict, mild = ClaimJudge(), ClaimJudge(), ClaimJudge({"support": [all_supported] * 2})
    evaluator = get_evaluator("claims", metrics=["faithfulness"])

    def faithfulness(*judges: ClaimJudge, reduce: Any = None) -> float | None:
        return score(evaluator, [RAG[language]], judge=Panel(list(judges), reduce)).metrics["faithfulness"].value

    assert faithfulness(fair, strict, mild) == 0.5
    assert [judge.asked for judge in (fair, strict, mild)] == [["claims", "support"], ["support"], ["support"]]
    assert faithfulness(mild, fair) == 0.5  # a tie about the second claim is no support
    with pytest.raises(LlmevalError, match="evaluator 'claims': found mean, expected majority or unanimous"):
        faithfulness(fair, mild, reduce="mean")


def test_claims_are_listed_by_the_next_juror_where_the_first_fails_and_fewer_are_enough() -> None:
    def down(_: JudgeRequest) -> str:
        raise JudgeError("down")

    case = Case("a", input="Free?", prediction={"answer": "It is free.", "contexts": ["All is free."]})
    judges = {"down": down, "one": ClaimJudge(), "two": ClaimJudge()}
    found = score(get_evaluator("claims"), [case], judge=Panel(judges, min_judges=2)).metrics
    assert (found["faithfulness"].value, found["claims_panel_missing"].value) == (1.0, pytest.approx(1 / 3))
    strict = score(get_evaluator("claims"), [case], judge=Panel(judges))
    assert strict.cases[0].reason == "faithfulness: found 0 of 1 verdicts, expected at least 1: down: down"
