import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize.destructive import NLTKWordTokenizer

from pytest_llmeval.evaluators.measures._tokens import treebank_tokens

PIECES = (
    *"\"'`.,:;-!?()[]{}<>%$#*&@«»„“”‘’–—_sxt7é中ſ\u212a\n\t\r\u00a0\x1c\u2003",
    *("''", "``", "--", "...", "  ", "'tis", "'twas", "gonna", "wanna", "cannot", "d'ye", "more'n", "dogs'"),
    *("'s", "'ll", "n't", "'re", "3,5", "word", "u.s.", "well-known", "gonna-be", "don't", "it's"),
    *(" ",) * 16,
)


@settings(max_examples=10 * settings.default.max_examples)
@given(st.lists(st.sampled_from(PIECES), max_size=16).map("".join))
@example('"" opening twice')
@example("a final. )\n]")
@example("it's'\nnext")
@example("'' x")
@example("wanna\x1cgo")
@example("one,: two")
@example('one\n"two" three')
@example("one\n''two'' three")
@example("x'd' y")
@example("so 'twas, and 't\u0131s")
@example('"``` one')
@example("a. \x1c")
@example("\u0301's 's\u0301")
def test_tokens_equal_nltk_on_adversarial_text(text: str) -> None:
    text = text.lower()
    assert treebank_tokens(text) == NLTKWordTokenizer().tokenize(text)


@given(st.text(max_size=40))
def test_tokens_equal_nltk_on_any_text(text: str) -> None:
    text = text.lower()
    assert treebank_tokens(text) == NLTKWordTokenizer().tokenize(text)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \n ", []),
        ("cannot.", ["can", "not", "."]),
        ("e.g. this one.", ["e.g.", "this", "one", "."]),
        ('she said "no."', ["she", "said", "``", "no", ".", "''"]),
        ("don't, (really)!", ["do", "n't", ",", "(", "really", ")", "!"]),
    ],
)
def test_tokens_of_usual_shapes(text: str, tokens: list[str]) -> None:
    assert treebank_tokens(text) == tokens


def test_a_word_reads_the_same_whether_or_not_it_was_seen_before() -> None:
    text = 'the "dogs" aren\'t here, are they? "dogs"'
    assert treebank_tokens(text) == treebank_tokens(text) == NLTKWordTokenizer().tokenize(text)
