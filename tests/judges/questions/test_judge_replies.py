"""From a judge's reply to a verdict, or to an error that shows the reply."""

import json
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from builders import question
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_llmeval.core import JudgeError
from pytest_llmeval.evaluators._rubric import read_rubric
from pytest_llmeval.judges import JudgeReply, ModeFile, ReplyObject, Verdict
from pytest_llmeval.judges.questions._replies import FLAGS, read_explanation, read_reply, read_score, read_yes_no
from pytest_llmeval.tasks.grounding._questions import read_checklist

READERS = [read_score, read_yes_no, read_explanation, lambda reply: read_rubric(reply, (1.0, 2.0))]


@pytest.mark.parametrize("followed", [(True, False, False, False), (True, True, True, False), (False,), (True,)])
def test_the_score_of_a_checklist_is_the_share_of_instructions_that_are_followed(followed: tuple[bool, ...]) -> None:
    reply = {"verdicts": [{"instruction": number, "followed": each} for number, each in enumerate(followed, 1)]}
    verdict = read_checklist(json.dumps(reply), len(followed))
    assert verdict.score == sum(followed) / len(followed)
    assert tuple(each["followed"] for each in verdict.details["verdicts"]) == followed


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('{"score": 0.8, "reasoning": "ok"}', 0.8),
        ('{"score": 1}', 1.0),
        ('{"score": "0.6"}', 0.6),
        ('{"score": " 0.9 "}', 0.9),
        ('{"score": 1.0000001}', 1.0),
        ('{"score": -1e-9}', 0.0),
        ('{"score": 1e-3}', 0.001),
        ('\n {"score": 0.4}\t', 0.4),
        ('```json\n{"score": 0.8}\n```', 0.8),
        ('```\n{"score": 0.8}\n```', 0.8),
        ('```JSON {"score": 0.8} ```', 0.8),
        ('Here is my verdict:\n```json\n{"score": 0.8}\n```\n', 0.8),
        ('```json\n{"score": 0.8}', 0.8),
        ('The answer says {most} of it. So: {"score": 0.8}', 0.8),
        ('He said "yes, it\'s 5\\" wide". {"score": 0.8}', 0.8),
        ('<think>{"score": 0}?</think>{"score": 1}', 1.0),
        ('{"score": 1.0} Again, score: 1. {"score": 1}', 1.0),
        ('{"reasoning": "a \\"}{\\" b", "score": 0.2}', 0.2),
        ('{"reasoning": "opens { alone", "score": 0.2}', 0.2),
        ('{"reasoning": "opens [ alone", "score": 0.2}', 0.2),
        ('{"reasoning": "ends in a backslash \\\\", "score": 0.2}', 0.2),
        ('{"extra": {"score": 1}, "score": 0.2}', 0.2),
    ],
)
def test_a_score_is_read_from_the_object_that_ends_the_reply(reply: str, score: float) -> None:
    assert read_score(reply).score == score


@pytest.mark.parametrize(
    "raw",
    ["1.7", "-0.4", "2", "9", "80", "1.00001", "Infinity", "-Infinity", "1e999", '"7"', '"Infinity"', '"0_1"', "true"],
)
def test_a_score_of_another_scale_is_an_error(raw: str) -> None:
    with pytest.raises(JudgeError, match=r"^found .* as score, expected a number from 0 to 1;"):
        read_score(f'{{"score": {raw}}}')


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "found no JSON object"),
        ("not json", "found no JSON object"),
        ("0.8", "found no JSON object"),
        ('"0.8"', "found no JSON object"),
        ("null", "found no JSON object"),
        ("[0.8]", "found no JSON object"),
        ('[{"score": 0.8}]', "found text after a JSON object"),
        ("{}", "score is missing, expected a number"),
        ('{"Score": 0.8}', "score is missing"),
        ('{"reasoning": "no score"}', "score is missing"),
        ('{"score": null}', "found null as score"),
        ('{"score": "high"}', 'found "high" as score'),
        ('{"score": "1,0"}', 'found "1,0" as score'),
        ('{"score": ""}', 'found "" as score'),
        ('{"score": [1]}', r"found \[1\] as score"),
        ('{"score": {"v": 1}}', 'found {"v": 1} as score'),
        ('{"score": NaN}', "found NaN as score"),
        ('{"score": "nan"}', 'found "nan" as score'),
        ("{'score': 0.8}", "found an invalid JSON object"),
        ('{"score": 0.2} trailing', "found text after a JSON object"),
        ('{"score": 0.2}\n```', "found a closing fence without an opening one"),
        ('{"score": 1} {"verdict": "none"}', "score is missing"),
        ('{"score": 1} {}', "score is missing"),
        ('{"score": 0.2, "quoted": {"score": 1}', "unmatched closing bracket"),
        (
            '{"score": 0} No, wait. {"score": 1}',
            r"""contradicting verdicts, 'score": 0' and '{"score": 1}', expected one""",
        ),
        ('{"score": 0} as it says {"score": 1}', "found two contradicting verdicts"),
        ('Score: 0. It says {"score": 1}', "found two contradicting verdicts, 'Score: 0' and"),
        ('最终score：0分。{"score": 1}', "found two contradicting verdicts, 'score：0' and"),
        ('{"score": null} or {"score": 1}', "found two contradicting verdicts"),
        ('{"score": 0, "reasoning": "} {"score": 1}', "found two contradicting verdicts"),
        ('<think>It says </think>{"score": 1}.</think>{"score": 0}', "found two contradicting verdicts"),
        (
            '{"score": 0, "reasoning": "says {"score": 1}',
            r"""found '{"score": 0, .*' unclosed before '{"score": 1}', exp""",
        ),
        ('I { think: {"score": 1}', "unclosed before"),
        ('[1, [{"score": 1}', "unmatched closing bracket"),
        ('score": 1}', "unmatched closing bracket"),
        ('{"score": 0.2, "score": 1}', "the key 'score' occurs twice"),
        ('{"score": 0.2, "x": {"a": 1, "a": 2}}', "the key 'a' occurs twice"),
        ('{"score": 1,}', "found an invalid JSON object"),
        ('{"score": ' + "9" * 5000 + "}", "found an invalid JSON object"),
        ('{"score": "' + "9" * 5000 + '"}', "as score, expected a number from 0 to 1"),
    ],
)
def test_a_reply_without_a_score_is_an_error_that_keeps_the_reply(reply: str, message: str) -> None:
    with pytest.raises(JudgeError, match=message) as caught:
        read_score(reply)
    assert caught.value.reply == reply
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("reply", "score", "reasoning"),
    [
        ("yes", 1.0, ""),
        ("YES!!!", 1.0, ""),
        ("\nyes\n", 1.0, ""),
        (" yes, it does", 1.0, "it does"),
        ("Yes - because", 1.0, "because"),
        ("Yes, there is no doubt.", 1.0, "there is no doubt."),
        ('No. It says "yes", and later “Yes.”', 0.0, 'It says "yes", and later “Yes.”'),
        ("**yes**", 1.0, ""),
        ("**No.** It is wrong.", 0.0, "It is wrong."),
        ("`yes`: it is", 1.0, "it is"),
        ("The answer is yes.", 1.0, ""),
        ("the answer is **no**, since it is late", 0.0, "since it is late"),
        ("So, my final answer is: yes", 1.0, ""),
        ("**Answer:** yes\nIt is named.", 1.0, "It is named."),
        ("**Verdict: No**", 0.0, ""),
        ("<think>No? It names the town.</think>\n\nYes: it does", 1.0, "it does"),
        ("It names the town, so yes.\n</think>\nno", 0.0, ""),
        ("no.", 0.0, ""),
        ("No. It says\n</think>\nno", 0.0, "It says\n</think>\nno"),
        ("NO: The date is wrong.", 0.0, "The date is wrong."),
    ],
)
def test_yes_or_no_is_the_word_that_begins_the_reply(reply: str, score: float, reasoning: str) -> None:
    assert read_yes_no(reply) == Verdict(score, reasoning)


@pytest.mark.parametrize(
    ("reply", "score"),
    [
        ('"yes"', 1),
        ("'No.'", 0),
        ("\u201cyes\u201d\nIt is Paris.", 1),
        ("\u2018no\u2019", 0),
        ("「是」", 1),
        ("『否』。", 0),
        ("是", 1),
        ("否。答案是伦敦", 0),
        ("**是**，说的是巴黎。", 1),
    ],
)
def test_quoted_and_chinese_words_are_verdicts(reply: str, score: float) -> None:
    assert read_yes_no(reply).score == score


@pytest.mark.parametrize(
    ("reply", "quoted"),
    [
        ("是\n否", "'是' and '否'"),
        ('"yes"\nThe answer: no', "'\"yes\"' and 'no'"),
        ('No. The response "</think> yes" does not state it.', "'no.' and 'yes'"),
        ("<think>The text says </think> yes.</think>No", "'yes.' and 'no'"),
        ("No.\n</think>\n\nYes", "'no.' and 'yes'"),
        ("yes\nno", "'yes' and 'no'"),
        ("yes no", "'yes' and 'no'"),
        ("No, yes", "'no,' and 'yes'"),
        ("Yes or no: no", "'yes' and 'no'"),
        ("yes/no", "'yes' and 'no'"),
        ("Yes? No.", "'yes' and 'no'"),
        ("No. Actually, yes.", "'no.' and 'yes'"),
        ("Yes, it does. No, it does not", "'yes,' and 'no'"),
        ("Yes. No it does not", "'yes.' and 'no'"),
        ("是/否", "'是' and '否'"),
        ("是。不对，否", "'是。' and '不对'"),
        ("**yes**\n**no**", r"'\*\*yes\*\*' and '\*\*no\*\*'"),
        ("The answer is yes. The response says no.", "'the answer is yes.' and 'no'"),
        ("Verdict: no. But yes, it is close.", "'verdict: no.' and 'yes'"),
        ("No, as it says:\n**Yes.**\nand no more", "'no,' and "),
    ],
)
def test_a_reply_that_says_yes_and_no_is_an_error_with_both(reply: str, quoted: str) -> None:
    with pytest.raises(JudgeError, match=f"found two contradicting verdicts, {quoted}"):
        read_yes_no(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " ",
        'It says "</think> yes", so no.',
        'It says "\n</think>\nyes"\nso no.',
        "<think>The text says </think> maybe.</think>No",
        "y",
        "yesterday",
        "nobody",
        "yes_man",
        '"yes" is what it says',
        "是否",
        "不是",
        "yes是",
        "the answer is no longer known",
        "the answer is yesterday",
        "the right answer is yes",
        "* yes *",
        "**yes",
        "not yes",
        "yes</think>",
    ],
)
def test_what_does_not_begin_with_yes_or_no_is_an_error(reply: str) -> None:
    with pytest.raises(JudgeError, match="a reply begins with the word yes or no") as caught:
        read_yes_no(reply)
    assert caught.value.reply == reply


def explanation(**changes: Any) -> str:
    return json.dumps({"reasoning": "r", "score": 72.5, **dict.fromkeys(FLAGS, False), **changes})


def test_an_explanation_has_a_grade_and_six_flags() -> None:
    verdict = read_explanation(explanation(fabrication=True))
    assert verdict == Verdict(72.5, "r", {flag: flag == "fabrication" for flag in FLAGS})
    assert len(FLAGS) == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"score": "85"}, 'found "85" as score, expected a number'),
        ({"score": True}, "found true as score"),
        ({"score": None}, "found null as score"),
        ({"fabrication": None}, "found null as fabrication, expected true or false"),
        ({"wrong_citation": 1}, "found 1 as wrong_citation, expected true or false"),
    ],
)
def test_an_explanation_lacking_anything_is_an_error(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(JudgeError, match=message):
        read_explanation(explanation(**changes))


@pytest.mark.parametrize("score", [100.5, -1])
def test_a_grade_of_another_scale_is_an_error(score: float) -> None:
    with pytest.raises(JudgeError, match=f"found {score} as score, expected a number from 0 to 100"):
        read_explanation(explanation(score=score))
    assert read_explanation(explanation(score=100.00001)).score == 100.0


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_that_is_not_named_is_false_and_has_a_longer_name_too(flag: str) -> None:
    data = json.loads(explanation())
    del data[flag]
    assert read_explanation(json.dumps(data)).details[flag] is False
    assert read_explanation(json.dumps({**data, f"has_{flag}": True})).details[flag] is True


@pytest.mark.parametrize(("reply", "score"), [('{"score": 1}', 1.0), ('{"score": "3"}', 3.0), ('{"score": 3.0}', 3.0)])
def test_a_rubric_score_is_one_of_the_levels(reply: str, score: float) -> None:
    assert read_rubric(reply, (1.0, 3.0)).score == score


@pytest.mark.parametrize("reply", ['{"score": 2}', '{"score": 3.1}', '{"score": Infinity}'])
def test_a_score_between_the_levels_of_a_rubric_is_an_error(reply: str) -> None:
    with pytest.raises(JudgeError, match="expected one of the levels 1, 3"):
        read_rubric(reply, (1.0, 3.0))


def test_a_score_close_to_a_level_is_shown_in_full() -> None:
    with pytest.raises(
        JudgeError, match=r"^found 0.3333333 as score, expected one of the levels 0, 0.3333333333333333;"
    ):
        read_rubric('{"score": 0.3333333}', (0.0, 1 / 3))


HOSTILE = {
    "open brackets": "{" * 100_000,
    "closed brackets": "}" * 100_000,
    "deep objects": '{"a":' * 20_000 + "1" + "}" * 20_000,
    "deep lists": '{"score":' + "[" * 50_000 + "]" * 50_000 + "}",
    "unclosed objects": '{"a":' * 20_000 + '"b"}',
    "backslashes": "\\" * 100_000 + "}",
    "quotes": '"' * 100_001 + "}",
    "fences": "```" * 30_000,
    "blanks": " " * 100_000 + "}",
    "many keys": "{" + ",".join(f'"k{number}": 1' for number in range(10_000)) + "}",
    "a long text": "maybe " * 20_000,
    "a lone surrogate": "\ud800",
}


@pytest.mark.parametrize("depth", [100, 101, 50_000])
def test_a_field_that_no_verdict_has_may_be_nested_deeply(depth: int) -> None:
    nested = "[" * (depth - 1) + r'"]}\\\""' + "]" * (depth - 1)
    assert read_score(f'{{"x": {nested}, "score": 1, "y": [{{"a": {nested}}}]}}').score == 1.0


def test_a_score_that_is_nested_deeply_is_none() -> None:
    with pytest.raises(JudgeError, match="score"):
        read_score('{"score": ' + "[" * 500 + "1" + "]" * 500 + "}")
    with pytest.raises(JudgeError, match="score"):
        read_score('{"a": ' * 500 + '{"score": 1}' + "}" * 500)


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE)
def test_hostile_replies_are_errors_with_short_messages(reply: str, read: Any) -> None:
    with pytest.raises(JudgeError) as caught:
        read(reply)
    assert caught.value.reply == reply
    str(caught.value).encode()
    assert len(str(caught.value)) < 500


def test_reasoning_can_be_written_as_utf_8() -> None:
    assert read_score('{"score": 1, "reasoning": "a\\ud800b"}').reasoning == "a\N{REPLACEMENT CHARACTER}b"
    assert read_yes_no("yes \ud83d\ude00").reasoning == "\U0001f600"
    assert read_score('{"score": 1, "reasoning": ["x"]}').reasoning == ""


@pytest.mark.parametrize(
    ("stopped", "message"),
    [
        ("refusal", "a refusal"),
        ("length", "truncated.*raise max_tokens"),
        ("tool", "called a tool.*raise max_tokens"),
        ("thoughts", "reasoning_content.*raise max_tokens"),
    ],
)
def test_a_reply_that_was_refused_or_cut_off_is_no_verdict(stopped: Any, message: str) -> None:
    with pytest.raises(JudgeError, match=message) as caught:
        read_reply(ModeFile.mode_named("default_binary"), JudgeReply("yes", stopped=stopped))
    assert caught.value.reply == "yes"
    assert read_reply(ModeFile.mode_named("default_binary"), JudgeReply("yes")).score == 1.0


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def is_closed(text: str) -> bool:
    """Return whether pairs of braces can be removed until no opening one is left."""
    braces = "".join(each for each in text if each in "{}")
    while "{}" in braces:
        braces = braces.replace("{}", "")
    return "{" not in braces


@given(st.dictionaries(st.text(), values, max_size=4), st.text(alphabet='ab{}[]"\\ \n'), st.booleans())
def test_an_object_is_found_behind_any_prose_without_an_unclosed_brace(
    data: dict[str, Any], prose: str, fenced: bool
) -> None:
    assume(is_closed(prose))
    text = json.dumps(data, ensure_ascii=False)
    body = f"```json\n{text}\n```" if fenced else text
    assert ReplyObject.closing(f"{prose}.\n{body}") == data


@given(st.text(alphabet='{}[]":,\\ab1 `'))
def test_any_text_gives_an_object_or_an_error(text: str) -> None:
    found: Any = {}
    with suppress(JudgeError):
        found = ReplyObject.closing(text)
    assert isinstance(found, dict)


@pytest.mark.parametrize("score", [True, np.float32(1), 1])
def test_a_score_of_any_kind_of_number_becomes_a_plain_one(score: Any) -> None:
    verdict = question(read=lambda _: Verdict(score)).mode.read_text("yes")
    assert (verdict.score, type(verdict.score)) == (1.0, float)


def test_a_score_beyond_the_scale_of_a_mode_is_an_error() -> None:
    with pytest.raises(JudgeError, match="returned the score 9, expected a score from 0 to 1"):
        question(read=lambda _: Verdict(9)).mode.read_text("yes")


@pytest.mark.parametrize("score", ["1", None, 1j, float("nan")])
def test_what_is_no_number_is_no_score(score: Any) -> None:
    with pytest.raises(JudgeError, match="expected a Verdict with a finite score"):
        question(read=lambda _: Verdict(score)).mode.read_text("yes")
