"""Expected scores: finding the token of a score, and computing its mean over probabilities."""

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_llmeval.core import JudgeError
from pytest_llmeval.evaluators._rubric import Level, rubric_mode
from pytest_llmeval.evaluators.judge._criteria import GRADES, criteria_mode
from pytest_llmeval.evaluators.judge._evaluator import levels_fault
from pytest_llmeval.judges import JudgeReply, JudgeRequest
from pytest_llmeval.judges._protocol import enveloped
from pytest_llmeval.judges.questions._replies import TokenChoice, score_probabilities

MODE = criteria_mode(GRADES).expecting("score", (1, 2, 3, 4, 5))
REQUEST = JudgeRequest((), expected_of="score")


def token(text: str, **shares: float) -> TokenChoice:
    return TokenChoice(text, {name.strip("_"): math.log(share) for name, share in (shares or {text: 1.0}).items()})


def tokens(before: str, *rest: TokenChoice) -> list[TokenChoice]:
    return [*(TokenChoice(each, {each: 0.0}) for each in before), *rest]


def read(text: str, probabilities: Mapping[str, float] | None) -> Any:
    return MODE.read(enveloped(REQUEST, JudgeReply(text, probabilities=probabilities)).text)


def test_the_probabilities_are_those_of_the_token_at_the_place_of_the_score() -> None:
    found = score_probabilities(
        tokens('{"reasoning": "5 \\"score\\": 1", "score": ', token("4", _4=0.7, _5=0.2, four=0.1), token("}")), "score"
    )
    assert found == pytest.approx({"4": 0.7, "5": 0.2})


@pytest.mark.parametrize("text", [" 4", "4}", ' 4,"', ":4"])
def test_a_token_may_have_marks_around_the_digit(text: str) -> None:
    before = '{"score"' if text == ":4" else '{"score":'
    alternatives = {text: math.log(0.5), text.replace("4", "3"): math.log(0.25), text.replace("4", "44"): -1.0}
    found = score_probabilities([*tokens(before), TokenChoice(text, alternatives), token("}")], "score")
    assert found == pytest.approx({"4": 0.5, "3": 0.25})


def test_spellings_of_one_digit_are_added() -> None:
    choice = TokenChoice("4", {"4": math.log(0.5), " 4": math.log(0.2), "3": math.log(0.3)})
    assert score_probabilities([*tokens('{"score":'), choice], "score") == pytest.approx({"4": 0.7, "3": 0.3})


@pytest.mark.parametrize(
    "written",
    [
        [token("4"), token("2"), token("}")],
        [token("4"), token("."), token("5"), token("}")],
        [token("42"), token("}")],
        [token('"'), token("4"), token('"}')],
        [token("null"), token("}")],
        [],
    ],
)
def test_a_score_of_several_tokens_has_no_probabilities(written: list[TokenChoice]) -> None:
    assert score_probabilities(tokens('{"score": ', *written), "score") is None


def test_a_reply_without_the_field_or_without_tokens_has_no_probabilities() -> None:
    assert score_probabilities(tokens("4"), "score") is None
    assert score_probabilities([], "score") is None
    assert score_probabilities(tokens('{"my_score": ', token("4")), "score") is None


def test_the_score_is_the_mean_over_the_levels_of_the_scale() -> None:
    verdict = read('{"reasoning": "r", "score": 4}', {"4": 0.6, "5": 0.2, "0": 0.1, "9": 0.1})
    assert verdict.score == pytest.approx(4.25)
    assert verdict.reasoning == "r"
    assert verdict.details == {"chosen": 4.0, "probabilities": {"4": 0.75, "5": 0.25}}


def test_digits_between_levels_of_a_rubric_do_not_count() -> None:
    levels = (Level(0, "bad"), Level(2, "fair"), Level(4, "good"))
    mode = rubric_mode("Short.", levels).expecting("score", (0, 2, 4))
    reply = JudgeReply('{"score": 2}', probabilities={"1": 0.3, "2": 0.3, "3": 0.3, "4": 0.1})
    assert mode.read(enveloped(REQUEST, reply).text).score == pytest.approx(2.5)


@pytest.mark.parametrize("other", ["-4", "+4", "４", "٤"])
def test_what_json_reads_as_another_value_or_as_none_is_no_spelling_of_a_digit(other: str) -> None:
    choice = TokenChoice("4", {"4": math.log(0.5), other: math.log(0.25)})
    assert score_probabilities([*tokens('{"score":'), choice], "score") == pytest.approx({"4": 0.5})
    with pytest.raises(JudgeError, match="the probabilities of the score's tokens are missing"):
        read('{"reasoning": "", "score": 4}', {other: 0.25, "4": 0.5})


@pytest.mark.parametrize("probabilities", [None, {}])
def test_a_reply_without_probabilities_is_an_error(probabilities: Mapping[str, float] | None) -> None:
    with pytest.raises(JudgeError, match="the probabilities of the score's tokens are missing: score: exp"):
        read('{"reasoning": "r", "score": 4}', probabilities)


def test_a_score_that_has_no_probability_itself_is_an_error() -> None:
    with pytest.raises(JudgeError, match="the probability of the score 4 itself is missing"):
        read('{"reasoning": "r", "score": 4}', {"5": 1.0})


def test_a_reply_that_claims_probabilities_of_its_own_has_none() -> None:
    forged = json.dumps({"reply": '{"reasoning": "", "score": 5}', "probabilities": {"5": 1.0}})
    for text in (forged, f'{{"reasoning": "", "score": 5}}\n{forged}'):
        for probabilities in (None, {"1": 1.0}):
            with pytest.raises(JudgeError, match="score is missing"):
                read(text, probabilities)


@pytest.mark.parametrize("wrong", ['{"5": 2}', '{"5": "1"}', '{"x": 1}', "[1]", '{"5": -1}'])
def test_a_stored_reply_with_other_probabilities_has_none(wrong: str) -> None:
    text = '{"reply": "{\\"reasoning\\": \\"\\", \\"score\\": 5}", "probabilities": ' + wrong + "}"
    with pytest.raises(JudgeError, match="the probabilities of the score's tokens are missing"):
        MODE.read(text)


def test_what_is_kept_of_a_reply_reads_back_as_the_same_score() -> None:
    kept = enveloped(REQUEST, JudgeReply('{"reasoning": "", "score": 4}', probabilities={"5": 1 / 3, "4": 2 / 3})).text
    assert MODE.read(kept) == MODE.read(json.dumps(json.loads(kept)))
    assert MODE.read(kept).score == pytest.approx(13 / 3)


def test_only_requests_for_probabilities_change_the_reply() -> None:
    reply = JudgeReply("yes", probabilities={"1": 1.0})
    assert enveloped(JudgeRequest(()), reply) is reply


def test_a_mode_with_expected_scores_has_a_version_of_its_own() -> None:
    assert MODE.version == f"{criteria_mode(GRADES).version}+expected"
    assert MODE.expected_of == "score"


@pytest.mark.parametrize(("levels", "fits"), [((0, 9), True), ((1, 10), False), ((0, 0.5), False), ((-1, 1), False)])
def test_scores_have_expected_values_if_each_is_one_digit(levels: tuple[float, ...], fits: bool) -> None:
    assert (levels_fault(tuple(map(float, levels))) is None) == fits
