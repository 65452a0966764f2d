import pytest

from pytest_llmeval.tasks.narrative._segmentation import end_mark_spans, sentence_index


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", []),
        (" \n", [" \n"]),
        ("no mark", ["no mark"]),
        ("One. Two", ["One.", " Two"]),
        ("One. ", ["One.", " "]),
        ("Wait... what?! Yes", ["Wait...", " what?!", " Yes"]),
        ("甲。乙！丙？丁", ["甲。", "乙！", "丙？", "丁"]),
        ("「甲。」と乙が言った。", ["「甲。", "」と乙が言った。"]),
        ("甲！？.!乙", ["甲！？.!", "乙"]),
        ("。甲", ["。", "甲"]),
        ("3.14 e.g. this", ["3.", "14 e.", "g.", " this"]),
        ("line one\nline two", ["line one\nline two"]),
        ("a，b；c：d…e", ["a，b；c：d…e"]),
        ("😀. 😀", ["😀.", " 😀"]),
    ],
)
def test_a_sentence_ends_after_a_run_of_end_marks(text: str, sentences: list[str]) -> None:
    assert [text[start:end] for start, end in end_mark_spans(text)] == sentences


@pytest.mark.parametrize("unit", [".", "。", "a", "a.", ". ", "。\n"])
def test_a_hundred_thousand_characters_of_any_kind_are_split_without_gap(unit: str) -> None:
    text = unit * 100_000
    spans = end_mark_spans(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert len(spans) == {".": 1, "。": 1, "a": 1}.get(unit, 100_000 + (not unit.endswith(".")))


@pytest.mark.parametrize(
    ("position", "index"),
    [(-(10**30), 0), (-1, 0), (0, 0), (1, 0), (2, 1), (3, 1), (4, 1), (5, 2), (7, 2), (10**30, 2)],
)
def test_a_position_belongs_to_the_sentence_that_contains_it(position: int, index: int) -> None:
    spans = end_mark_spans("A. B. C")
    assert spans == [(0, 2), (2, 5), (5, 7)]
    assert sentence_index(position, spans) == index


@pytest.mark.parametrize("position", [-1, 0, 1])
def test_without_a_sentence_every_position_has_index_minus_one(position: int) -> None:
    assert sentence_index(position, []) == -1
