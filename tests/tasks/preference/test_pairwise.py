"""Evaluator ``pairwise``: both orders, outcomes, and what is asked at all."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_llmeval import Case, EvaluatorError, JudgeRequest, Result, get_evaluator, score
from pytest_llmeval.core import JudgeError, NoAnswer, Parts
from pytest_llmeval.core._case import PredictionParts
from pytest_llmeval.judges import Verdict

NAMES = ("win_rate", "wins", "losses", "ties", "flip_rate")


def texts(request: JudgeRequest) -> dict[str, str]:
    shown: dict[str, str] = json.loads(request.messages[-1].content.removeprefix("<data>").removesuffix("</data>"))
    return shown


class Scripted:
    """A judge that names the longer answer, or always the same place, and notes what it is shown."""

    def __init__(self, always: str = "") -> None:
        self.always = always
        self.shown: list[dict[str, str]] = []

    def __call__(self, request: JudgeRequest) -> str:
        shown = texts(request)
        self.shown.append(shown)
        longer = len(shown["first"]) - len(shown["second"])
        better = self.always or ("first" if longer > 0 else "second" if longer < 0 else "tie")
        return json.dumps({"reasoning": f"{shown['first']} / {shown['second']}", "better": better})


def case(name: str, answer: Any, small: Any, **more: Any) -> Case:
    return Case(name, input="What?", prediction=answer, others={"small": small}, **more)


CASES = [
    case("won", "a long answer", "short"),
    case("lost", "short", "a long answer"),
    case("alike", "this", "that"),
    case("equal", "same", " same\n"),
]


def scored(judge: Any, cases: list[Case], **options: Any) -> Result:
    return score(get_evaluator("pairwise", **{"against": "small", **options}), cases, judge=judge)


def values(result: Result) -> dict[str, float | None]:
    return {name: found.value for name, found in result.metrics.items()}


def test_wins_losses_and_ties_are_counted_and_ties_are_half_wins() -> None:
    found = scored(Scripted(), CASES)
    assert values(found) == {"win_rate": 0.5, "wins": 1, "losses": 1, "ties": 2, "flip_rate": 0}
    assert {each.id: each.metrics["win_rate"] for each in found.cases} == {
        "won": 1.0,
        "lost": 0.0,
        "alike": 0.5,
        "equal": 0.5,
    }


@pytest.mark.parametrize("place", ["first", "second"])
def test_a_judge_that_always_names_the_same_place_gives_ties_only(place: str) -> None:
    found = values(scored(Scripted(place), CASES))
    assert found == {"win_rate": 0.5, "wins": 0, "losses": 0, "ties": 4, "flip_rate": 1}


def test_a_win_in_one_order_and_a_tie_in_the_other_is_a_tie_that_flips() -> None:
    evaluator = get_evaluator("pairwise", against="small")
    found = evaluator.measure_judged(CASES[0], [Verdict(1.0), Verdict(0.5)])  # type: ignore[attr-defined]
    assert (found.counts["ties"], found.counts["flips"]) == (1, 1)


def test_each_pair_is_asked_in_both_orders_and_equal_answers_not_at_all() -> None:
    judge = Scripted()
    scored(judge, CASES)
    assert sorted((each["first"], each["second"]) for each in judge.shown) == [
        ("a long answer", "short"),
        ("a long answer", "short"),
        ("short", "a long answer"),
        ("short", "a long answer"),
        ("that", "this"),
        ("this", "that"),
    ]
    assert all(set(each) == {"question", "first", "second"} for each in judge.shown)


def test_equal_answers_have_no_flip_rate() -> None:
    found = scored(Scripted(), CASES[-1:])
    assert found.cases[0].metrics == {"win_rate": 0.5, "wins": 0, "losses": 0, "ties": 1, "flip_rate": None}
    assert found.cases[0].details["undefined"] == {"flip_rate": "no pair of different answers"}


def test_the_judge_sees_the_expected_answer_unless_it_is_the_opponent() -> None:
    judge = Scripted()
    scored(judge, [case("a", "x", "yy", expected=["right", "just"])])
    assert {each["reference"] for each in judge.shown} == {"- right\n- just"}
    judge.shown.clear()
    found = scored(judge, [case("a", "x", "yy", expected=["right", "just"])], against="reference")
    assert [(each["first"], each["second"]) for each in judge.shown] == [("x", "right"), ("right", "x")]
    assert not any("reference" in each for each in judge.shown)
    assert values(found)["losses"] == 1


def test_an_answer_that_equals_any_of_several_expected_ones_is_a_tie() -> None:
    judge = Scripted()
    assert values(scored(judge, [Case("a", "?", ["right", "just"], "just")], against="reference"))["ties"] == 1
    assert judge.shown == []


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ({}, "small: its answer is not given"),
        ({"small": NoAnswer("the target failed")}, "small: the target failed"),
    ],
)
def test_without_the_other_answer_nothing_is_asked_and_every_metric_says_why(
    others: Mapping[str, Any], why: str
) -> None:
    judge = Scripted()
    found = scored(judge, [*CASES[:1], Case("b", "?", prediction="x", others=others)])
    assert found.cases[1].metrics == dict.fromkeys(NAMES)
    assert set(found.cases[1].details["undefined"].values()) == {why}
    assert (found.metrics["win_rate"].value, found.metrics["win_rate"].undefined, len(judge.shown)) == (1.0, 1, 2)


def test_without_an_expected_answer_there_is_nothing_to_compare_with_the_reference() -> None:
    found = scored(Scripted(), [Case("a", "?", None, "x"), Case("b", "?", " ", "x")], against="reference")
    assert {each.details["undefined"]["win_rate"] for each in found.cases} == {"no expected answer"}


def test_an_unreadable_reply_in_one_order_is_an_error_and_no_tie() -> None:
    def judge(request: JudgeRequest) -> str:
        return '{"better": "first"}' if texts(request)["first"] == "short" else "the longer one"

    found = scored(judge, CASES[:1])
    assert (found.metrics["win_rate"].value, found.metrics["win_rate"].errored) == (None, 1)


SEVERAL = {"small": "short", "large": "a very long answer", "third": "neither"}


def test_several_opponents_count_together_and_one_by_one() -> None:
    cases = [
        Case("a", "?", prediction="of this size", others=SEVERAL),
        Case("b", "?", prediction="x", others={**SEVERAL, "large": NoAnswer.ITSELF}),
    ]
    found = values(scored(Scripted(), cases, against=["small", "large", "third"]))
    assert (found["wins"], found["losses"], found["ties"]) == (2, 3, 0)
    assert {name: found[f"win_rate[{name}]"] for name in SEVERAL} == {"small": 0.5, "large": 0.0, "third": 0.5}
    assert values(scored(Scripted(), cases, against="systems")) == found


def test_a_system_is_a_tie_with_itself_only_where_it_has_no_other_opponent() -> None:
    judge = Scripted()
    assert values(scored(judge, [case("a", "x", NoAnswer.ITSELF)]))["ties"] == 1
    assert judge.shown == []
    both = Case("a", "?", prediction="x", others={"small": NoAnswer.ITSELF, "large": "long"})
    assert values(scored(judge, [both], against=["small", "large"]))["ties"] == 0


def test_one_missing_opponent_of_several_takes_the_totals_and_leaves_the_others_rates() -> None:
    one = Case("a", "?", prediction="of this size", others={**SEVERAL, "large": NoAnswer("is ill")})
    other = Case("b", "?", prediction="of this size", others=SEVERAL)
    found = scored(Scripted(), [one, other], against=list(SEVERAL))
    assert (found.metrics["wins"].value, found.metrics["wins"].undefined) == (2, 1)
    assert found.metrics["win_rate[small]"].scored == 2
    assert found.metrics["win_rate[large]"].scored == 1
    assert found.cases[0].details["undefined"]["win_rate[large]"] == "large: is ill"


def test_one_failed_opponent_of_several_is_an_error_of_the_totals() -> None:
    evaluator = get_evaluator("pairwise", against=["small", "large"])
    one = Case("a", "?", prediction="x", others={"small": "y", "large": "z"})
    told = [Verdict(1.0), Verdict(0.0), JudgeError("no idea"), Verdict(0.0)]
    found = evaluator.measure_judged(one, told)  # type: ignore[attr-defined]
    assert found.errored == dict.fromkeys([*NAMES, "win_rate[large]"], "large: no idea")
    assert found.counts == {"wins[small]": 1, "ties[small]": 0, "losses[small]": 0}


def test_the_parts_of_another_system_may_be_elsewhere() -> None:
    judge = Scripted()
    other = PredictionParts(Parts(answer="out.text"), {"out": {"text": "theirs"}})
    lacking = PredictionParts(Parts(answer="out.text"), {"text": "theirs"})
    found = scored(judge, [case("a", {"answer": "own"}, other), case("b", {"answer": "own"}, lacking)])
    assert {each["second"] for each in judge.shown} == {"own", "theirs"}
    assert "nothing at 'out.text'" in found.cases[1].details["undefined"]["win_rate"]


def test_turns_are_compared_one_by_one() -> None:
    def talk(*answers: str) -> list[dict[str, str]]:
        return [
            each
            for said in answers
            for each in ({"role": "user", "content": "?"}, {"role": "assistant", "content": said})
        ]

    from pytest_llmeval.core import Reading

    evaluator = get_evaluator("pairwise", against="small")
    both = case("a", {"messages": talk("one", "three")}, {"messages": talk("two")})
    first, second = Reading.for_evaluator(evaluator, turn="each").views(both)
    assert (first.prediction, dict(first.others)) == ("one", {"small": "two"})
    assert second.others == {"small": NoAnswer("its conversation has 1 turn")}


@pytest.mark.parametrize(
    ("question", "label", "language"),
    [("Where?", None, "compare"), ("在哪里？", None, "比较"), ("Where?", "zh-CN", "比较")],
)
def test_the_instructions_are_in_the_language_of_the_question(question: str, label: str | None, language: str) -> None:
    asked: list[str] = []

    def judge(request: JudgeRequest) -> str:
        asked.append(request.messages[0].content)
        return '{"better": "tie"}'

    labels = {"language": label} if label else {}
    scored(judge, [Case("a", question, prediction="x", others={"small": "y"}, labels=labels)])
    assert all(language in each for each in asked)


def test_losses_and_flips_are_explained_with_the_reasons_of_the_judge() -> None:
    evaluator = get_evaluator("pairwise", against="small")

    def lines(*told: Verdict) -> list[str]:
        return list(evaluator.explain(CASES[0], evaluator.measure_judged(CASES[0], told)))  # type: ignore[attr-defined]

    assert lines(Verdict(0.0, "Wrong."), Verdict(1.0, "Wrong.")) == ["lost to small in both orders", "Wrong."]
    assert lines(Verdict(1.0, "A."), Verdict(1.0, "B.")) == [
        "small: win when it stands first, loss when it stands second, so a tie",
        "A.",
        "B.",
    ]
    assert lines(Verdict(1.0), Verdict(0.0)) == []
    assert lines(Verdict(0.5), Verdict(0.5)) == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"against": []}, "expected different names of opponents"),
        ({"against": ["a", "a"]}, "expected different names of opponents"),
        ({"against": " "}, "expected different names of opponents"),
        ({"criteria": " "}, "blank criteria"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(EvaluatorError, match=why):
        get_evaluator("pairwise", **options)


def test_the_signature_names_the_instructions_and_the_opponents() -> None:
    def signature(**options: Any) -> str:
        return get_evaluator("pairwise", **options).describe()[0].signature

    assert signature(against="small") == "mode:pairwise@1|against:small|orders:2|lang:auto|v:1"
    assert len({signature(), signature(against="small"), signature(criteria="Is short.")}) == 3
