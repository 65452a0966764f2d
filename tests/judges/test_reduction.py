"""How the verdicts of several judges become one: means, votes, ties, jurors who fail."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from builders import question
from msgspec.structs import replace

from pytest_llmeval.core import BudgetError, JudgeError, LlmevalError
from pytest_llmeval.judges import ModeFile, PanelVerdict, Reduce, UnaskedError, Verdict
from pytest_llmeval.judges._reduction import PanelError, decided, reduced
from pytest_llmeval.judges.questions._replies import FLAGS
from pytest_llmeval.tasks.grounding._questions import checklist_mode
from pytest_llmeval.tasks.preference._pairwise import pairwise_mode

YES_NO = ModeFile.mode_named("preference")
SCORE = ModeFile.mode_named("continuous")


def given(*scores: float | LlmevalError) -> dict[str, Verdict | LlmevalError]:
    return {
        name: each if isinstance(each, LlmevalError) else Verdict(each)
        for name, each in zip("abcdefg", scores, strict=False)
    }


def one_of(found: Verdict | LlmevalError) -> PanelVerdict:
    assert isinstance(found, PanelVerdict), found
    return found


def one(*scores: float | LlmevalError, reduce: Reduce | None = None, least: int | None = None, **mode: Any) -> Any:
    return reduced(replace(YES_NO, **mode), given(*scores), reduce, least or len(scores))


@pytest.mark.parametrize(
    ("how", "scores", "expected", "undecided"),
    [
        ("mean", [1, 0, 0.2], 0.4, []),
        ("median", [0.2, 1, 0.4], 0.4, []),
        ("median", [0.2, 1], 0.6, []),
        ("majority", [1, 0, 1], 1, []),
        ("majority", [2, 2, 0, 1], 2, []),
        ("majority", [1, 0], 0, [0, 1]),
        ("majority", [2, 1, 0], 0, [0, 1, 2]),
        ("majority", [2, 2, 1, 1, 0], 1, [1, 2]),
        ("unanimous", [2, 2, 2], 2, []),
        ("unanimous", [2, 2, 1], 1, [1, 2]),
        ("unanimous", [1, 0, 1], 0, [0, 1]),
    ],
)
def test_scores_become_one_and_a_vote_that_does_not_decide_gives_the_lowest(
    how: Reduce, scores: list[float], expected: float, undecided: list[float]
) -> None:
    score, between = decided(scores, how)
    assert (pytest.approx(expected), undecided) == (score, between)
    assert decided(scores[::-1], how) == (score, between)


def test_without_reduce_words_are_voted_on_and_scores_averaged() -> None:
    assert one_of(reduced(YES_NO, given(1, 1, 0), None, 3)).score == 1
    assert one_of(reduced(SCORE, given(1, 1, 0.4), None, 3)).score == pytest.approx(0.8)


def test_each_juror_is_shown_and_one_that_fails_is_named() -> None:
    verdicts: Mapping[str, Verdict | LlmevalError] = {
        "openai:a": Verdict(1, "fine", {"tone": 1.7}),
        "openai:b": Verdict(1),
        "openai:c": JudgeError("down"),
    }
    found = reduced(YES_NO, verdicts, "majority", 2)
    assert isinstance(found, PanelVerdict)
    assert found.details == {
        "jurors": {
            "openai:a": {"score": 1, "reasoning": "fine", "details": {"tone": 1.7}},
            "openai:b": {"score": 1},
            "openai:c": {"missing": "down"},
        }
    }
    assert found.reasoning == "openai:a gives 1: fine; openai:b gives 1; openai:c gives no verdict: down"
    assert found.votes == ({"openai:a": 1.0, "openai:b": 1.0, "openai:c": None},)


def test_too_few_verdicts_are_an_error_that_names_who_failed_and_keeps_the_votes_of_the_others() -> None:
    found = one(1, JudgeError("down"), JudgeError("cut off"), least=2)
    assert isinstance(found, PanelError)
    assert str(found) == "found 1 of 3 verdicts, expected at least 2: b: down; c: cut off"
    assert found.votes == ({"a": 1.0, "b": None, "c": None},)


def test_a_spent_budget_is_no_juror_that_fails_and_judges_that_are_off_are_off_together() -> None:
    spent = BudgetError("spent")
    assert one(1, 1, spent, least=2) is spent
    assert isinstance(one(UnaskedError.off(), UnaskedError.off()), UnaskedError)
    assert isinstance(one(JudgeError("down"), JudgeError("down")), PanelError)


def test_votes_are_shares_of_the_scale() -> None:
    found = one(20, 60, scale=(0.0, 80.0), reduce="mean")
    assert (found.score, found.votes) == (40, ({"a": 0.25, "b": 0.75},))


@pytest.mark.parametrize(
    ("reduce", "flagged", "found"),
    [
        ("mean", (True, False, False), False),
        ("mean", (True, False), True),
        ("majority", (True, True, False), True),
        ("unanimous", (True, False, False), True),
    ],
)
def test_a_defect_counts_unless_the_vote_is_against_it(reduce: Reduce, flagged: tuple[bool, ...], found: bool) -> None:
    verdicts: dict[str, Verdict | LlmevalError] = {
        str(number): Verdict(50, details=dict.fromkeys(FLAGS, each)) for number, each in enumerate(flagged)
    }
    told = reduced(ModeFile.mode_named("explanation"), verdicts, reduce, len(flagged))
    assert isinstance(told, Verdict)
    assert {told.details[flag] for flag in FLAGS} == {found}


def test_grades_beside_the_score_are_reduced_and_remarks_stay_with_their_juror() -> None:
    verdicts: dict[str, Verdict | LlmevalError] = {
        name: Verdict(score, details={"grades": {"tone": grade}, "reply": {"remark": name}})
        for name, score, grade in (("a", 1.0, 0.0), ("b", 0.0, 1.0))
    }
    told = reduced(question("x").mode, verdicts, "mean", 2)
    assert isinstance(told, Verdict)
    assert (told.score, told.details["grades"]) == (0.5, {"tone": 0.5})
    assert "reply" not in told.details
    assert told.details["jurors"]["b"]["details"]["reply"] == {"remark": "b"}


def test_a_panel_split_about_a_pair_names_neither_answer() -> None:
    mode = pairwise_mode()
    assert [one_of(reduced(mode, given(*scores), None, 2)).score for scores in ((1, 0), (1, 1), (0, 0))] == [0.5, 1, 0]


def test_numbered_things_are_voted_on_one_by_one_with_the_reasons_of_the_winning_side() -> None:
    mode = checklist_mode(2)
    replies = {
        "a": [(True, "names it"), (True, "polite")],
        "b": [(True, ""), (False, "curt")],
        "c": [(False, "no"), (False, "rude")],
    }
    verdicts: dict[str, Verdict | LlmevalError] = {
        name: mode.read(
            json.dumps(
                {
                    "verdicts": [
                        {"instruction": number, "reason": reason, "followed": followed}
                        for number, (followed, reason) in enumerate(rows, 1)
                    ]
                }
            )
        )
        for name, rows in replies.items()
    }
    found = one_of(reduced(mode, {**verdicts, "d": JudgeError("down")}, None, 3))
    assert found.details["verdicts"] == [
        {"followed": True, "reason": "names it"},
        {"followed": False, "reason": "curt; rude"},
    ]
    assert found.score == 0.5
    assert found.votes == (
        {"a": 1.0, "b": 1.0, "c": 0.0, "d": None},
        {"a": 1.0, "b": 0.0, "c": 0.0, "d": None},
    )
    tied = one_of(reduced(mode, {name: verdicts[name] for name in "ab"}, None, 2))
    assert [each["followed"] for each in tied.details["verdicts"]] == [True, False]


def test_what_is_no_judgement_is_that_of_the_one_juror_who_was_asked() -> None:
    listed = Verdict(0, details={"claims": ["It rains."]})
    assert reduced(replace(SCORE, asks_one=True), {"a": listed}, None, 3) is listed


def test_another_juror_takes_the_place_of_one_that_fails_where_one_is_enough() -> None:
    mode, listed = replace(SCORE, asks_one=True), Verdict(0, details={"claims": ["It rains."]})
    assert reduced(mode, {"a": JudgeError("down"), "b": listed}, None, 2) is listed
    failed = reduced(mode, {"a": JudgeError("down"), "b": JudgeError("slow")}, None, 2)
    assert isinstance(failed, PanelError)
    assert (str(failed), failed.votes) == ("found 0 of 2 verdicts, expected at least 1: a: down; b: slow", ())
    spent = BudgetError("spent")
    assert reduced(mode, {"a": JudgeError("down"), "b": spent}, None, 2) is spent
