"""The rule of a cascade: when the small judge is unsure, and what is audited."""

from typing import Any

import pytest
from msgspec.structs import replace

from pytest_llmeval.core import BudgetError, FieldsError, JudgeError
from pytest_llmeval.judges import CascadeRule, CascadeVerdict, Listing, ModeFile, Verdict
from pytest_llmeval.judges._reduction import cascaded, is_unsure, unanswered
from pytest_llmeval.judges._spec import Doubt

BETWEEN = CascadeRule(Doubt([0.3, 0.8]))
TWICE = CascadeRule(Doubt(disagree=2), audit=0)
SCORE = replace(ModeFile.mode_named("continuous"), scale=(0.0, 100.0))
WORD = ModeFile.mode_named("default_binary")
NAMES = ["small", "large"]
PAIR = ["small", "small (opinion 2)", "large"]


def asked(rule: CascadeRule, names: list[str], given: dict[str, Any], *, audited: bool = False) -> list[str]:
    return list(unanswered(rule, SCORE, names, given, audited=audited))


@pytest.mark.parametrize(("score", "unsure"), [(29, False), (30, True), (55, True), (80, True), (81, False)])
def test_a_score_between_the_limits_is_unsure_as_a_share_of_the_scale(score: float, unsure: bool) -> None:
    assert is_unsure(BETWEEN, SCORE, [Verdict(score)]) is unsure


def test_a_verdict_of_a_list_is_unsure_if_one_of_its_grades_is() -> None:
    grades = replace(SCORE, listing=Listing(lambda verdict: verdict.details["grades"], lambda verdicts, _: verdicts[0]))
    verdicts = [Verdict(0, "", {"grades": each}) for each in ([1, 0.5], [1, 0])]
    assert [is_unsure(BETWEEN, grades, [each]) for each in verdicts] == [True, False]


def test_scores_disagree_beyond_a_tenth_of_the_scale_and_words_if_they_differ() -> None:
    pairs = [(50, 60), (50, 61), (1, 0)]
    assert [is_unsure(TWICE, SCORE, [Verdict(one), Verdict(other)]) for one, other in pairs] == [False, True, False]
    assert is_unsure(TWICE, WORD, [Verdict(1), Verdict(0)])
    assert not is_unsure(TWICE, WORD, [Verdict(1), Verdict(1)])


def test_the_large_judge_is_asked_last_and_only_if_need_be() -> None:
    assert asked(BETWEEN, NAMES, {}) == ["small"]
    assert asked(BETWEEN, NAMES, {"small": Verdict(50)}) == ["large"]
    assert asked(BETWEEN, NAMES, {"small": Verdict(90)}) == []
    assert asked(BETWEEN, NAMES, {"small": Verdict(90)}, audited=True) == ["large"]
    assert asked(BETWEEN, NAMES, {"small": JudgeError("no")}) == ["large"]
    assert asked(BETWEEN, NAMES, {"small": BudgetError("spent")}) == []
    assert asked(BETWEEN, NAMES, {"small": Verdict(50), "large": Verdict(1)}) == []
    assert asked(TWICE, PAIR, {}) == PAIR[:2]
    assert asked(TWICE, PAIR, {"small": Verdict(90), "small (opinion 2)": JudgeError("no")}) == ["large"]


def test_the_verdict_is_that_of_the_large_judge_if_it_was_asked() -> None:
    sure = cascaded(BETWEEN, SCORE, NAMES, {"small": Verdict(90, "fine")})
    audited = cascaded(BETWEEN, SCORE, NAMES, {"small": Verdict(90), "large": Verdict(40)})
    unsure = cascaded(BETWEEN, SCORE, NAMES, {"small": Verdict(50), "large": Verdict(40)})
    assert isinstance(sure, CascadeVerdict)
    assert (sure.score, sure.reasoning, sure.first, sure.audited) == (90, "fine", Verdict(90, "fine"), False)
    assert isinstance(audited, CascadeVerdict)
    assert (audited.score, audited.first, audited.audited, audited.differs) == (40, Verdict(90), True, True)
    assert audited.adds == pytest.approx(-0.5)
    assert isinstance(unsure, CascadeVerdict)
    assert (unsure.score, unsure.first, unsure.audited) == (40, None, False)
    assert unsure.details["jurors"] == {"small": {"score": 50}, "large": {"score": 40}}
    error = JudgeError("no")
    assert cascaded(BETWEEN, SCORE, NAMES, {"small": Verdict(90), "large": error}) is error
    spent = BudgetError("spent")
    assert cascaded(BETWEEN, SCORE, NAMES, {"small": spent}) is spent


def test_the_random_share_is_a_matter_of_keys_and_seed_alone() -> None:
    keys = [f"{number:032x}" for number in range(10_000)]
    drawn = {seed: [CascadeRule(BETWEEN.when, 0.05, seed).audits([key]) for key in keys] for seed in (0, 1)}
    assert [sum(each) for each in drawn.values()] == [pytest.approx(500, abs=70)] * 2
    assert drawn[0] != drawn[1]
    assert [key for key, each in zip(keys[:100], drawn[0], strict=False) if each] == [keys[place] for place in FIRST]
    more = [CascadeRule(BETWEEN.when, 0.2, 0).audits([key]) for key in keys]
    assert all(later for once, later in zip(drawn[0], more, strict=True) if once)
    assert not any(CascadeRule(BETWEEN.when, 0).audits([key]) for key in keys)
    assert all(CascadeRule(BETWEEN.when, 1).audits([key]) for key in keys)


FIRST = [38, 64]
"""The audited ones of the first hundred keys, in every process and version: stored verdicts are those of the same."""


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (Doubt, "score_between or disagree is missing"),
        (lambda: Doubt([0.3, 0.8], 2), "found score_between and disagree, expected one of them"),
        (lambda: Doubt([0.8, 0.3]), "expected two numbers from 0 to 1, the smaller one first"),
        (lambda: Doubt([0.3]), "expected two numbers from 0 to 1, the smaller one first"),
        (lambda: Doubt(disagree=1), "found 1, expected a whole number from 2 to 9"),
        (lambda: CascadeRule(BETWEEN.when, audit=1.5), "found 1.5, expected a share from 0 to 1"),
        (lambda: CascadeRule(BETWEEN.when, seed=-1), "found -1, expected a whole number of at least 0"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(make: Any, fault: str) -> None:
    with pytest.raises(FieldsError) as error:
        make()
    assert fault in str(error.value.faults)
