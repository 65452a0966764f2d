from typing import Any

import pytest

from pytest_llmeval import EvidenceMatcher
from pytest_llmeval.evaluators import EvidenceSource

WORDS = EvidenceMatcher(tokenizer="words", matching="original")


def why(cited: Any, gold: Any, matcher: EvidenceMatcher = WORDS) -> str | None:
    found = matcher.match([cited], [gold]).pairs
    return found[0].why if found else None


@pytest.mark.parametrize(
    ("cited", "gold", "reason"),
    [
        ("the harbour log", "THE HARBOUR LOG of May", "contains"),
        ("THE HARBOUR LOG of May", "the harbour log", "contains"),
        ("45%", "about 45% of ships", "contains"),
        ("1,234", "1,234 ships", "contains"),
        ("https://a.example/x", "http://a.example/y", "host"),
        ("https://a.example/x", "see http://a.example/y", "host"),
        ("https://a.example/x", "https://A.example/x y", "contains"),
        ("https://a.example", "https://b.example", "words"),
        ("https://a.example/one/two/three", "http://b.test/four", None),
        ("old harbour log", "harbour survey of May", "words"),
        ("harbour one two three", "harbour four five six", None),
        ("the of", "by from", None),
        ("according to reported", "said based", None),
        ("snake_case", "snake case", None),
        ("潮汐站记录", "潮汐站的记录", None),
    ],
)
def test_a_citation_matches_a_source_for_a_reason(cited: str, gold: str, reason: str | None) -> None:
    assert why(cited, gold) == reason


def test_a_word_match_tells_the_share_of_words() -> None:
    (pair,) = WORDS.match(["old harbour log"], ["harbour survey of May"]).pairs
    assert pair.overlap == pytest.approx(1 / 3)
    assert str(pair) == "old harbour log = harbour survey of May (words 0.33)"
    assert str(WORDS.explain("a", "a")) == "a = a (contains)"
    assert WORDS.explain("x", "y") is None


@pytest.mark.parametrize(("threshold", "matches"), [(0.1, True), (0.25, True), (0.3, False), (1.0, False)])
def test_the_threshold_is_the_least_share_of_the_shorter_side(threshold: float, matches: bool) -> None:
    matcher = EvidenceMatcher(threshold, tokenizer="words")
    assert (matcher.explain("alpha beta gamma delta", "alpha one two three four") is not None) == matches


@pytest.mark.parametrize(
    ("cited", "gold", "auto", "words"),
    [
        ("潮汐站记录", "本港潮汐站的观测记录", True, False),
        ("Harbour log, May", "log of May", True, True),
        ("潮汐站", "灯塔", False, False),
        ("该站的记录", "该年的报道", False, False),
        ("ﬁle archive", "file drawer", True, False),
    ],
)
def test_auto_takes_east_asian_characters_for_words(cited: str, gold: str, auto: bool, words: bool) -> None:
    assert (EvidenceMatcher().explain(cited, gold) is not None) == auto
    assert (WORDS.explain(cited, gold) is not None) == words


def test_listed_sources_are_known_by_content_or_else_by_address() -> None:
    entries = [
        {"content": "B", "url": "https://b.example"},
        {"content": "", "url": "https://c.example"},
        {"content": None, "url": "https://d.example"},
        {"url": "https://b.example"},
        {"content": "B", "url": "https://b2.example"},
        {"content": " ", "url": " "},
        {},
        "A",
        "",
        3,
        None,
    ]
    assert EvidenceSource.read_all(entries) == [
        EvidenceSource("A"),
        EvidenceSource("B", ("https://b.example", "https://b2.example")),
        EvidenceSource("https://b.example", ("https://b.example",)),
        EvidenceSource("https://c.example", ("https://c.example",)),
        EvidenceSource("https://d.example", ("https://d.example",)),
    ]


def test_listed_sources_count_beside_those_found_in_the_text() -> None:
    listed = [{"content": "Tide tables", "url": "https://a.example/t"}]
    found = WORDS.extract("According to the port, 5% (https://a.example/t) (https://b.example).", listed)
    assert found == ["5%", "Tide tables", "https://b.example", "the port"]


@pytest.mark.parametrize(
    ("cited", "gold", "reason"),
    [
        (("Port page", "https://a.example/1"), ("官方页面", "https://a.example/1"), "address"),
        (("Port page", "https://a.example/2"), ("官方页面", "https://a.example/1"), None),
        (("Port page", "https://a.example/2"), ("", "https://a.example/1"), "host"),
        (("Port page", ""), ("", "https://a.example/1"), None),
        (("Port page", "https://a.example/2"), ("官方 https://a.example/1", ""), None),
        (("", "https://a.example/1"), ("官方页面", "https://a.example/1"), "address"),
        (("", "https://a.example/2"), ("官方页面", "https://a.example/1"), None),
        (("", "https://a.example/2"), ("", "https://a.example/1"), "host"),
    ],
)
def test_addresses_of_listed_sources_are_compared_too(
    cited: tuple[str, str], gold: tuple[str, str], reason: str | None
) -> None:
    left, right = ({"content": content, "url": url} for content, url in (cited, gold))
    assert why(left, right) == reason


def test_an_address_in_the_text_does_not_match_the_address_of_a_source_with_content() -> None:
    assert why("https://a.example/1", {"content": "官方页面", "url": "https://a.example/1"}) is None


@pytest.mark.parametrize(
    ("cited", "gold", "scores"),
    [
        ([], [], (1.0, 1.0, 1.0)),
        (["a"], [], (0.0, 0.0, 0.0)),
        ([], ["a"], (0.0, 0.0, 0.0)),
        (["harbour"], ["harbour log", "harbour survey"], (1.0, 1.0, 1.0)),
        (["harbour", "xyz"], ["harbour log", "quay"], (0.5, 0.5, 0.5)),
        (["harbour", "log"], ["harbour log"], (1.0, 1.0, 1.0)),
        (["xyz"], ["quay"], (0.0, 0.0, 0.0)),
    ],
)
def test_precision_recall_and_f1(cited: list[str], gold: list[str], scores: tuple[float, float, float]) -> None:
    found = WORDS.match(cited, gold)
    assert (found.precision, found.recall, found.f1) == scores


def test_the_original_form_counts_matched_sources_for_precision() -> None:
    found = EvidenceMatcher(form="original").match(["harbour"], ["harbour log", "harbour survey"])
    assert (found.precision, found.recall, found.f1) == (2.0, 1.0, pytest.approx(4 / 3))
    found = EvidenceMatcher(form="original").match(["harbour", "log"], ["harbour log"])
    assert (found.precision, found.recall) == (0.5, 1.0)


def test_a_match_tells_what_was_missed_and_what_matches_nothing() -> None:
    found = WORDS.match(["harbour", "xyz"], ["harbour log", "quay"])
    assert [(pair.cited, pair.gold) for pair in found.pairs] == [("harbour", "harbour log")]
    assert (found.missed, found.unmatched) == (("quay",), ("xyz",))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 0}, "threshold: found 0, expected a number above 0 and up to 1"),
        ({"threshold": 1.5}, "threshold: found 1.5"),
        ({"threshold": float("nan")}, "threshold: found nan"),
        ({"form": "bounded"}, "form: found 'bounded', expected each_side or original"),
        ({"matching": "exact"}, "matching: found 'exact', expected by_kind or original"),
        ({"tokenizer": "characters"}, "tokenizer: found 'characters', expected auto or words"),
    ],
)
def test_impossible_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EvidenceMatcher(**options)


def test_many_citations_are_matched_with_few_sources() -> None:
    text = "".join(f"{letters}{more} data, " for letters in LETTERS for more in LETTERS)
    cited = WORDS.extract(text)
    found = WORDS.match(cited, ["ADAD log", "QQQQ log"])
    assert len(found.cited) == len(LETTERS) ** 2
    assert found.recall == 1.0


LETTERS = [left + right for left in "ABCDEFGHIJKLMNOPQ" for right in "ABCDEFGHIJKLMNOPQ"][::3]
