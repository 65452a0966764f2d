"""Rubrics of suites, and the modes that grade by them."""

import pytest

from pytest_llmeval.evaluators._rubric import Level, Rubric, rubric_mode
from pytest_llmeval.judges import Mode

LEVELS = (Level(1, "rude"), Level(3, "polite"), Level(2.5, "neutral"))


def rubric(levels: tuple[Level, ...] = LEVELS, criteria: str = "Politeness") -> Mode:
    return rubric_mode(criteria, levels)


def test_a_rubric_tells_the_judge_criteria_and_levels_highest_first() -> None:
    mode = rubric(criteria="  Is it polite? $5 & $levels  ")
    for text in mode.instructions.values():
        assert "\nIs it polite? $5 & $levels\n" in text
        assert "\n3  polite\n2.5  neutral\n1  rude\n" in text
    assert mode.scale == (1.0, 3.0)
    assert mode.read('{"score": 2.5}').score == 2.5
    assert mode.reply_schema is not None
    assert mode.reply_schema["properties"]["score"]["enum"] == [1, 2.5, 3]


def test_the_version_of_a_rubric_tells_rubrics_apart_and_not_the_order_of_their_levels() -> None:
    same, other = rubric(levels=LEVELS[::-1]), rubric(levels=(*LEVELS[:2], Level(2.5, "so so")))
    assert rubric().version == same.version != other.version
    assert rubric(criteria="Brevity").version != rubric().version
    assert rubric().version.startswith("1-")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"criteria": " "}, "blank criteria"),
        ({"levels": (Level(1, ""), Level(2, "x"))}, "without a meaning"),
        ({"levels": LEVELS[:1]}, r"found levels with the scores \[1\], expected two or more different"),
        ({"levels": (Level(1, "a"), Level(1.0, "b"))}, "expected two or more different"),
        ({"levels": (Level(1, "a"), Level(float("inf"), "b"))}, "expected two or more different"),
        (
            {"pass_mark": 1},
            "found pass_mark 1, expected a number above the lowest level, 1, and at most the highest, 3",
        ),
        ({"pass_mark": 3.5}, "found pass_mark 3.5"),
    ],
)
def test_a_rubric_that_cannot_grade_is_told(changes: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"criteria": "Politeness", "levels": LEVELS, "pass_mark": 2.5, **changes}
    with pytest.raises(ValueError, match=message):
        Rubric(**arguments)  # type: ignore[arg-type]  # wrong values are the point
