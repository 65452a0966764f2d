"""Laws of finding and matching evidence, for generated texts."""

import re
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pytest_llmeval import EvidenceMatcher
from pytest_llmeval.tasks.fact_check._mentions import find_citations

BODIES = "University|Institute|Bureau|Department|Bank|Agency|Organization|Commission"
CAPITALISED = r"[A-Z][a-zA-Z\s&{more}]+(?:{endings})"


def capitalised(endings: str, more: str = "") -> str:
    return CAPITALISED.format(more=more, endings=endings)


BY_TRIAL = [
    re.compile(r"[Aa]ccording to ([^,.;]+)"),
    re.compile(
        f"({capitalised(BODIES + '|Board|Post|Times|Journal|News|Guard|Press|Report|Survey|Index', '.')})"
        r"\s+(?:reported|stated|found|showed|indicated|confirmed|says|said)"
    ),
    re.compile(r"[Bb]ased on ([^,.;]+(?:data|report|survey|study|analysis))"),
    re.compile(f"({capitalised(BODIES + '|Board')})'s"),
    re.compile(f"[Tt]he ({capitalised('Report|Survey|Index|Study')})"),
    re.compile(r"(?:(?<=[Aa]ccording to )|(?<=[Aa]ccording to the ))([A-Z]{2,})"),
    re.compile(r"([A-Z]{2,})\s+(?:data|report|survey|found|stated)"),
]
"""The definition as patterns that try every place: right, but slow on hostile text."""

PIECES = [
    *(
        "According to ",
        "according to ",
        "the ",
        "The ",
        "Bank",
        "Report",
        "Board",
        "University",
        "Study",
        "Index",
        "Post",
    ),
    *(" ", "  ", "\n", "'s", " said", "reported", " data", "report", "study", "Based on ", "based on "),
    *("A", "AB", "US", "x", "word", ",", ".", ";", "&", "é", "新"),
    *("1", "12", "123", ",123", "%", ".5", "٣", "http://", "https://", "a/b", ")", "]"),
]

pieces = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
evidence = st.lists(
    st.one_of(
        pieces,
        st.sampled_from(
            ["the harbour log", "harbour log of May", "潮汐站记录", "https://a.example/1", "https://a.example"]
        ),
        st.fixed_dictionaries({"content": pieces, "url": st.sampled_from(["", "https://a.example/1"])}),
    ),
    max_size=6,
)
matchers = st.builds(
    EvidenceMatcher,
    threshold=st.sampled_from([0.1, 0.3, 0.5, 1.0]),
    form=st.sampled_from(["each_side", "original"]),
    tokenizer=st.sampled_from(["auto", "words"]),
    matching=st.sampled_from(["by_kind", "original"]),
)


def by_trial(text: str) -> list[str]:
    found = set(re.findall(r"https?://[^\s),\]]+", text))
    found |= {name.strip() for pattern in BY_TRIAL for name in pattern.findall(text) if len(name.strip()) > 2}
    found |= {*re.findall(r"\d+(?:\.\d+)?%", text), *re.findall(r"\b\d{1,3}(?:,\d{3})+\b", text)}
    return sorted(found)


@given(pieces)
@example("According to the Bank's Based on x data Report")
@example("according to AAccording to the WHO")
def test_citations_are_those_that_trying_every_place_finds(text: str) -> None:
    assert [citation.text for citation in find_citations(text)] == by_trial(text)


@given(evidence, evidence, matchers)
def test_scores_of_the_default_form_are_in_0_to_1(cited: list[Any], gold: list[Any], matcher: EvidenceMatcher) -> None:
    found = matcher.match(cited, gold)
    assert 0.0 <= found.recall <= 1.0
    assert found.precision >= 0.0
    if matcher.form == "each_side":
        assert found.precision <= 1.0
        assert found.f1 <= 1.0


@given(evidence, evidence, matchers)
def test_order_and_repetition_of_evidence_are_irrelevant(
    cited: list[Any], gold: list[Any], matcher: EvidenceMatcher
) -> None:
    assert matcher.match([*reversed(cited), *cited], gold[::-1] * 2) == matcher.match(cited, gold)


@given(evidence, matchers)
def test_evidence_matches_itself(entries: list[Any], matcher: EvidenceMatcher) -> None:
    found = matcher.match(entries, entries)
    assert (found.precision, found.recall, found.missed, found.unmatched) == (1.0, 1.0, (), ())


@given(evidence, evidence, matchers)
def test_every_piece_is_either_in_a_pair_or_missed(cited: list[Any], gold: list[Any], matcher: EvidenceMatcher) -> None:
    found = matcher.match(cited, gold)
    assert sorted({*found.missed, *(pair.gold for pair in found.pairs)}) == list(found.gold)
    assert sorted({*found.unmatched, *(pair.cited for pair in found.pairs)}) == list(found.cited)


@given(evidence, evidence)
def test_a_higher_threshold_never_matches_more(cited: list[Any], gold: list[Any]) -> None:
    loose, strict = (EvidenceMatcher(threshold).match(cited, gold) for threshold in (0.2, 0.6))
    assert {(pair.cited, pair.gold) for pair in strict.pairs} <= {(pair.cited, pair.gold) for pair in loose.pairs}
