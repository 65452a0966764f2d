import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.evaluators import Tokenizer, separate_east_asian
from pytest_llmeval.evaluators.measures import _tokens as tokens
from pytest_llmeval.evaluators.measures._tokens import porter_stem, unicode_words

RULES = ("f1", "rouge", "bleu", "meteor")
ASCII = st.text(st.characters(max_codepoint=127), max_size=60)


def split(name: str, rule: str, text: str) -> list[str]:
    return list(getattr(Tokenizer.named(name), rule)(text))


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("f1", ["it's", '"7', 'may"', "u", "s"]),
        ("rouge", ["it", "s", "7", "may", "u", "s"]),
        ("bleu", ["it", "'s", "``", "7", "may", "''", ",", "u.s", "."]),
        ("meteor", ["It's", '"7', 'May",', "U.S."]),
    ],
)
def test_words_follows_the_rule_of_each_metric(rule: str, words: list[str]) -> None:
    assert split("words", rule, 'It\'s "7 May", U.S.') == words


@given(ASCII)
def test_auto_is_words_on_ascii_text(text: str) -> None:
    for rule in RULES:
        assert split("auto", rule, text) == split("words", rule, text)


@pytest.mark.parametrize(
    ("text", "rule", "words"),
    [
        ("我住在北京。", "f1", ["我", "住", "在", "北", "京"]),
        ("我住在北京。", "rouge", ["我", "住", "在", "北", "京"]),
        ("我住在北京。", "bleu", ["我", "住", "在", "北", "京", "。"]),
        ("我住在北京。", "meteor", ["我", "住", "在", "北", "京", "。"]),
        ("用Python写", "f1", ["用", "python", "写"]),
        ("“Ada”（1815年）：很好", "f1", ["ada", "1815", "年", "很", "好"]),
        ("他在12：30到", "f1", ["他", "在", "12:30", "到"]),
        ("カタカナ・ひらがな", "rouge", list("カタカナひらがな")),
        ("한국어", "rouge", list("한국어")),
        ("ｶﾞｲﾄﾞ", "rouge", list("ガイド")),
        ("Ｐａｒｉｓ", "rouge", ["pari"]),
        ("Москва и Россия", "rouge", ["москва", "и", "россия"]),
        ("Αθήνα", "rouge", ["αθήνα"]),
        ("naïve cafés running", "rouge", ["naïve", "cafés", "run"]),
        ("हिन्दी भाषा", "rouge", ["हिन्दी", "भाषा"]),
        ("soft\u00adware 😀 ❤\ufe0f", "rouge", ["softwar"]),
        ("1\ufe0f é", "rouge", ["1", "é"]),
        ("snake_case é", "rouge", ["snake", "case", "é"]),
    ],
)
def test_auto_reads_every_script(text: str, rule: str, words: list[str]) -> None:
    assert split("auto", rule, text) == words


@given(st.text("中文日本語한국어ひらカタ", min_size=1, max_size=20))
def test_auto_makes_every_east_asian_character_a_word(text: str) -> None:
    assert split("auto", "f1", text) == list(text)
    assert split("auto", "rouge", text) == list(text)
    assert split("auto", "bleu", text) == list(text)


@given(st.text(max_size=40))
def test_unicode_words_hold_every_letter_and_digit_and_no_space(text: str) -> None:
    words = unicode_words(text)
    assert [c for c in "".join(words) if c.isalnum()] == [c for c in text if c.isalnum()]
    assert all(word == word.strip() and any(map(str.isalnum, word)) for word in words)


@given(st.text(max_size=40))
def test_separating_twice_changes_no_word(text: str) -> None:
    once = separate_east_asian(text, keep_marks=True)
    assert separate_east_asian(once, keep_marks=True).split() == once.split()


@pytest.mark.parametrize(
    ("name", "words"),
    [("characters", list("3fiis好!")), ("whitespace", ["③", "ﬁ", "is", "好!"])],
)
def test_general_tokenizers_give_all_metrics_the_same_words(name: str, words: list[str]) -> None:
    for rule in RULES:
        assert split(name, rule, "③ ﬁ IS\u3000好!") == words


def test_an_unknown_tokenizer_is_named_with_what_was_meant() -> None:
    with pytest.raises(ValueError, match=r"unknown tokenizer word, did you mean words\?"):
        Tokenizer.named("word")


def test_a_registered_tokenizer_serves_all_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_TOKENIZERS", dict(tokens._TOKENIZERS))

    def by_comma(text: str) -> list[str]:
        return text.split(",")

    Tokenizer.add("commas", by_comma)
    Tokenizer.add("commas", by_comma)
    assert [split("commas", rule, "a b,c") for rule in RULES] == [["a b", "c"]] * 4
    with pytest.raises(ValueError, match="'commas' exists already"):
        Tokenizer.add("commas", str.split)


@pytest.mark.parametrize(("word", "stem"), [("running", "run"), ("runs", "run"), ("gas", "gas"), ("2023", "2023")])
def test_porter_stems_words_above_three_characters(word: str, stem: str) -> None:
    assert porter_stem(word) == stem
