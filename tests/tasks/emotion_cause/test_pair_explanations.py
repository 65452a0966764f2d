"""What the evaluator says of wrong pairs."""

from pytest_llmeval import Case, get_evaluator


def test_spans_are_shown_with_their_words_where_the_utterance_is_known() -> None:
    evaluator = get_evaluator("emotion_cause", subtask=1)
    given = ["Is that smoke ?", "No ."]
    case = Case("a", given, [["1_fear", "1_smoke"]], [["1_fear", "1_0_4"], ["2_joy", "9_0_1"]])
    lines = evaluator.explain(case, evaluator.measure(case))
    assert lines == [
        '[fear] wrong span: 1_fear/1_0_4 "Is that smoke ?", expected 1_fear/1_2_3 "smoke"',
        "[joy] pair not expected: 2_joy/9_0_1",
    ]
