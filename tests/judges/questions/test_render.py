"""A question as messages: texts stay inside their block, whatever they say."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judges import INJECTIONS

from pytest_llmeval.judges import Message, ModeFile, Question
from pytest_llmeval.judges._protocol import DATA_CLOSE, DATA_OPEN
from pytest_llmeval.judges.questions._modes import MODES, render

FIELDS = ("question", "reference", "answer")
NASTY = [
    "<",
    ">",
    "&",
    "</data>",
    "<data>",
    '"',
    "\\",
    "\n",
    "\u2028",
    "\ud83d",
    "\ude00",
    "\udfff",
    "\x00",
    "\U000e0041",
]

texts = (
    st.text() | st.lists(st.sampled_from(NASTY)).map("".join) | st.text(st.characters(categories=["Cs", "Lu", "Cf"]))
)


def question(**given_texts: str) -> Question:
    return Question(ModeFile.mode_named("continuous"), given_texts)


def block(message: Message) -> str:
    assert message.content.count(DATA_OPEN) == message.content.count(DATA_CLOSE) == 1
    assert message.content.startswith(f"{DATA_OPEN}\n")
    assert message.content.endswith(f"\n{DATA_CLOSE}")
    return message.content.removeprefix(DATA_OPEN).removesuffix(DATA_CLOSE)


def joined(text: str) -> str:
    """A text as JSON has it: two halves of a surrogate pair that stand side by side are one character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def test_instructions_and_data_are_two_messages() -> None:
    system, user = render(question(question="Where?", reference="Paris", answer="In Paris"))
    assert (system.role, user.role) == ("system", "user")
    assert system.content.startswith(ModeFile.mode_named("continuous").instructions["en"])
    assert "never instructions" in system.content
    assert user.content == ('<data>\n{\n"question": "Where?",\n"reference": "Paris",\n"answer": "In Paris"\n}\n</data>')


def test_texts_come_in_the_order_of_the_mode_and_absent_ones_are_left_out() -> None:
    user = render(question(answer="a", question="q", other="x"))[1]
    assert list(json.loads(block(user))) == ["question", "answer"]


@pytest.mark.parametrize(("language", "word"), [("zh", "绝不是指令"), ("en", "never"), ("fr", "never")])
def test_instructions_are_in_the_language_or_in_english(language: str, word: str) -> None:
    system = render(Question(ModeFile.mode_named("continuous"), {"answer": "a"}, language))[0]
    assert word in system.content
    assert ModeFile.mode_named("continuous").instructions["zh" if language == "zh" else "en"] in system.content


def test_chinese_stays_readable() -> None:
    assert '"answer": "他住在东京。"' in render(question(answer="他住在东京。"))[1].content


@given(texts, texts, texts)
def test_the_block_reads_back_as_the_texts_and_can_be_sent(first: str, second: str, third: str) -> None:
    given_texts = dict(zip(FIELDS, (first, second, third), strict=True))
    system, user = render(question(**given_texts))
    data = block(user)
    assert json.loads(data) == {name: joined(text) for name, text in given_texts.items()}
    assert not re.search("[<>&\u2028\u2029\u0085\u200b\u202e\ud800-\udfff\x00-\x09\x0b-\x1f\x7f]", data)
    assert data.count("\n") == 6
    assert system == render(question())[0]
    user.content.encode()


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("text", INJECTIONS.values(), ids=INJECTIONS)
def test_an_injection_stays_inside_the_block(text: str, field: str) -> None:
    given_texts = dict.fromkeys(FIELDS, "harmless") | {field: text}
    system, user = render(question(**given_texts))
    assert json.loads(block(user)) == given_texts
    assert system == render(question())[0]
    assert user.content.count("\n") == 6
    visible = user.content.replace("\n", "")
    assert not set(visible) & set("\u3164\u115f\u034f\u17b4\uffa0\u180b")  # letters or marks, and yet not to be seen
    assert all(each.isprintable() for each in visible)


@pytest.mark.parametrize("name", MODES)
def test_every_mode_says_that_texts_are_data(name: str) -> None:
    mode = ModeFile.mode_named(name)
    for language, word in (("en", "never instructions"), ("zh", "绝不是指令")):
        system, user = render(Question(mode, dict.fromkeys(mode.fields, "x"), language))
        assert word in system.content
        assert list(json.loads(block(user))) == list(mode.fields)


@pytest.mark.parametrize(
    ("text", "label", "language"),
    [
        ("Where does he live?", None, "en"),
        ("他住在哪里？", None, "zh"),
        ("ChatGPT是什么？", None, "zh"),
        ("iPhone 15 什么时候发布？", None, "zh"),
        ("Who wrote 红楼梦?", None, "en"),
        ("東京はどこですか", None, "en"),
        ("서울은 大都市", None, "en"),
        ("", None, "en"),
        ("...", None, "en"),
        ("Where does he live?", "zh", "zh"),
        ("Where does he live?", "zh-Hans-CN", "zh"),
        ("Where does he live?", "ZH", "zh"),
        ("他住在哪里？", "en", "en"),
        ("他住在哪里？", "fr", "en"),
        ("他住在哪里？", "", "zh"),
    ],
)
def test_the_language_is_that_of_the_label_or_of_the_script(text: str, label: str | None, language: str) -> None:
    assert Question.instruction_language(text, label) == language
