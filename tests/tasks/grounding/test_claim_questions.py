"""Questions about numbered claims: what is asked, and which replies are refused."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its types are a distribution of their own
import pytest

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import ModeFile, Question
from pytest_llmeval.judges.questions._modes import render
from pytest_llmeval.tasks.grounding._questions import (
    CLAIM_MODES,
    PROMPTS,
    ask_for_citations,
    ask_for_claim_relevance,
    ask_for_claims,
    ask_for_passage_relevance,
    ask_for_support,
    claim_mode_version,
)

PASSAGES = {1: "Refunds take 30 days.", 3: "Shipping is free."}
SPLIT = ask_for_claims(["It is free.", "Thanks!"], "Is it?", "en")
SUPPORT = ask_for_support(["It is free.", "It is fast."], PASSAGES, "en")
RELEVANCE = ask_for_claim_relevance("Is it?", ["It is free.", "It is fast."], "en")
PASSAGE_RELEVANCE = ask_for_passage_relevance("Is it?", PASSAGES, "zh")
CITATIONS = ask_for_citations(["It is free [1].", "It is fast [1, 3]."], [(1, 1), (2, 1), (2, 3)], PASSAGES, "en")
QUESTIONS = {each.mode.name: each for each in (SPLIT, SUPPORT, RELEVANCE, PASSAGE_RELEVANCE, CITATIONS)}

DIGESTS = {
    "claims": ("1", "55bda1e53938"),
    "claim_support": ("2", "94271757efc7"),
    "claim_relevance": ("1", "b7170a6901a7"),
    "passage_relevance": ("1", "04a3780b3310"),
    "citation_support": ("2", "9bd1edfa4047"),
    "checklist": ("1", "a0b85f735603"),
}
"""Mode to version and digest of what its file says. Whoever changes a file gives it a new version, and notes both."""


def claim(number: Any, *passages: Any, supported: Any = None) -> dict[str, Any]:
    return {"claim": number, "supported": bool(passages) if supported is None else supported, "passages": [*passages]}


def verdicts(*items: Any) -> str:
    return json.dumps({"verdicts": [*items]})


GOOD: Mapping[str, tuple[Question, Any, Any, float]] = {
    "claims": (
        SPLIT,
        {"sentences": [{"sentence": 1, "claims": ["It is free. "]}, {"sentence": 2, "claims": []}]},
        {"claims": [{"claim": "It is free.", "sentence": 1}]},
        1.0,
    ),
    "claim_support": (
        SUPPORT,
        {"verdicts": [{**claim(2), "reason": ""}, {**claim(1, 3, 1), "reason": "Said."}]},
        {
            "verdicts": [
                {"supported": True, "passages": [1, 3], "reason": "Said."},
                {"supported": False, "passages": [], "reason": ""},
            ]
        },
        0.5,
    ),
    "claim_relevance": (
        RELEVANCE,
        {"verdicts": [{"claim": n, "reason": "", "relevant": n == 1} for n in (1, 2)]},
        {"verdicts": [{"relevant": True, "reason": ""}, {"relevant": False, "reason": ""}]},
        0.5,
    ),
    "passage_relevance": (
        PASSAGE_RELEVANCE,
        {"verdicts": [{"passage": n, "reason": "是", "relevant": True} for n in (3, 1)]},
        {"verdicts": [{"relevant": True, "reason": "是"}] * 2},
        1.0,
    ),
    "citation_support": (
        CITATIONS,
        {
            "verdicts": [
                {"sentence": a, "passage": b, "reason": "", "supported": (a, b) == (2, 1)}
                for a, b in ((2, 3), (2, 1), (1, 1))
            ]
        },
        {"verdicts": [{"supported": a, "reason": ""} for a in (False, True, False)]},
        1 / 3,
    ),
}


@pytest.mark.parametrize("name", CLAIM_MODES)
def test_a_reply_that_names_every_item_once_is_read_in_order_and_fits_the_schema(name: str) -> None:
    question, reply, details, score = GOOD[name]
    jsonschema.validate(reply, question.mode.reply_schema)
    verdict = question.mode.read(json.dumps(reply))
    assert (verdict.details, verdict.score) == (details, pytest.approx(score))
    thinking = f'<think>{{"verdicts": 1, "sentences": 2}}</think>\n```json\n{json.dumps(reply)}\n```'
    assert question.mode.read(thinking) == verdict
    assert question.mode.asks_again


@pytest.mark.parametrize("name", CLAIM_MODES)
def test_an_item_that_is_missing_invented_or_doubled_makes_a_reply_unreadable(name: str) -> None:
    question, reply, _, _ = GOOD[name]
    ((key, items),) = reply.items()
    number = next(each for each in ("passage", "claim", "sentence") if each in items[0])
    changes: Mapping[str, Callable[[], list[Any]]] = {
        "missing, expected each": lambda: items[1:],
        "twice": lambda: [*items, items[0]],
        f"{number} 9": lambda: [*items, {**items[0], number: 9}],
        f"{number} 0": lambda: [{**items[0], number: 0}, *items[1:]],
        f"{number} '1'": lambda: [{**items[0], number: "1"}, *items[1:]],
        f"{number} True": lambda: [{**items[0], number: True}, *items[1:]],
        "expected objects": lambda: ["all"],
    }
    for message, changed in changes.items():
        with pytest.raises(JudgeError, match=message):
            question.mode.read(json.dumps({key: changed()}))
    for empty in ("{}", f'{{"{key}": null}}', f'{{"{key}": []}}', "All of them.", "[]"):
        with pytest.raises(JudgeError, match=r"found|missing"):
            question.mode.read(empty)


@pytest.mark.parametrize(
    ("question", "reply", "message"),
    [
        (SUPPORT, verdicts(claim(1, supported=True), claim(2)), "claim 1 supported without a passage"),
        (SUPPORT, verdicts(claim(1), claim(2, 3, supported=False)), "claim 2 not supported, but with passage 3"),
        (SUPPORT, verdicts(claim(1, 2), claim(2)), "found passage 2 for claim 1, expected one of 1, 3"),
        (SUPPORT, verdicts(claim(1, 3, 3), claim(2)), "found a passage twice for claim 1"),
        (SUPPORT, verdicts(claim(1, "3"), claim(2)), "expected a list of numbers as passages of claim 1"),
        (SUPPORT, verdicts(claim(1, supported="yes"), claim(2)), "found 'yes' as 'supported' of claim 1"),
        (SUPPORT, verdicts({"claim": 1, "passages": []}, claim(2)), "'supported' of claim 1 is missing"),
        (SUPPORT, f"{verdicts(claim(1), claim(2))} or {verdicts(claim(1, 3), claim(2))}", "two contradicting verdicts"),
        (SUPPORT, f"'verdicts': [] or {verdicts(claim(1, 3), claim(2))}", "two contradicting verdicts"),
        (SUPPORT, f"{verdicts()} {verdicts({**claim(1, 3), 'reason': '</think>'}, claim(2))}", "two contradicting ver"),
        (SUPPORT, f"supported: false. {verdicts(claim(1, 3), claim(2, 1))}", "'supported: false' and"),
        (SUPPORT, verdicts(claim(1, 3), claim(2))[:-1] + ', "final": []}', "found 'final' beside 'verdicts'"),
        (SUPPORT, f"{verdicts(claim(1, 3), claim(2))} No, I take that back.", "text after a JSON object"),
        (
            SPLIT,
            '{"sentences": [{"sentence": 1, "claims": "x"}, {"sentence": 2, "claims": []}]}',
            "expected a list of texts",
        ),
        (
            SPLIT,
            '{"sentences": [{"sentence": 1, "claims": [" "]}, {"sentence": 2, "claims": []}]}',
            "expected a list of texts",
        ),
        (RELEVANCE, verdicts({"claim": 1, "relevant": 1}, {"claim": 2, "relevant": True}), "found 1 as 'relevant'"),
    ],
)
def test_a_reply_that_contradicts_itself_is_unreadable(question: Question, reply: str, message: str) -> None:
    with pytest.raises(JudgeError, match=message) as error:
        question.mode.read(reply)
    assert error.value.reply == reply


def test_what_is_claimed_twice_in_the_same_words_is_one_claim() -> None:
    said = [{"sentence": 1, "claims": ["It is free.", "it  IS free."]}, {"sentence": 2, "claims": ["It is free."]}]
    verdict = SPLIT.mode.read(json.dumps({"sentences": said}))
    assert (verdict.details, verdict.score) == ({"claims": [{"claim": "It is free.", "sentence": 1}]}, 1.0)


def test_every_file_of_instructions_is_noted() -> None:
    assert {each.stem for each in PROMPTS.iterdir()} == {*CLAIM_MODES, "checklist"} == set(DIGESTS)


def test_what_other_questions_of_the_case_show_too_stands_first() -> None:
    pairs = (
        (SUPPORT, ask_for_support(["It costs 3 dollars."], PASSAGES, "en")),
        (CITATIONS, ask_for_citations(["It costs 3 dollars [1]."], [(1, 1)], PASSAGES, "en")),
    )
    for question, other in pairs:
        beginnings = {user.content[: user.shared] for _, user in (render(question), render(other))}
        assert len(beginnings) == 1
        assert beginnings.pop().endswith('"passage_1": "Refunds take 30 days.",\n"passage_3": "Shipping is free."')
    assert [render(question)[1].shared for question in (SPLIT, RELEVANCE, PASSAGE_RELEVANCE)] == [0, 0, 0]


@pytest.mark.parametrize("name", DIGESTS)
def test_whoever_changes_instructions_gives_them_a_new_version(name: str) -> None:
    content = {key: value for key, value in ModeFile(name, PROMPTS).content.items() if key != "version"}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
    assert (ModeFile(name, PROMPTS).content["version"], digest) == DIGESTS[name]


@pytest.mark.parametrize("name", CLAIM_MODES)
def test_instructions_are_in_english_and_chinese_and_name_the_items(name: str) -> None:
    file = ModeFile(name, PROMPTS).content
    assert claim_mode_version(name) == file["version"]
    assert file["instructions"]["en"].isascii()
    assert any("\u4e00" <= each <= "\u9fff" for each in file["instructions"]["zh"])
    shown = {each.rpartition("_")[0] or each for each in QUESTIONS[name].mode.fields}
    keys = {key for item in _items(QUESTIONS[name]) for key in item}
    for text in file["instructions"].values():
        assert all(f"`{each}_1`" in text for each in shown - {"question", "citations"})
        assert all(f"`{each}`" in text for each in shown & {"question", "citations"})
        assert all(f'"{key}"' in text for key in keys)


def _items(question: Question) -> list[Mapping[str, Any]]:
    schema: Any = question.mode.reply_schema
    ((_, lists),) = schema["properties"].items()
    return [lists["items"]["properties"]]


def test_passages_keep_their_numbers_and_each_text_is_a_field_of_its_own() -> None:
    prompt = render(SUPPORT)[1].content
    assert (
        '"passage_1": "Refunds take 30 days.",\n"passage_3": "Shipping is free.",\n"claim_1": "It is free."' in prompt
    )
    assert '"citations": "sentence 1 cites passage 1\\nsentence 2 cites passage 1\\nsentence 2 cites passage 3"' in (
        render(CITATIONS)[1].content
    )
