"""Rule, routing and replies of judges against what the original code did, and where it is improved upon."""

import json
import re
from functools import cache
from typing import Any

import pytest
from project import CONFORMANCE

from pytest_llmeval.core import JudgeError
from pytest_llmeval.judges import JudgeRequest, ModeFile, TypedQuestion
from pytest_llmeval.qa import is_unanswerable
from pytest_llmeval.tasks.memory_qa import EvalResult, QuestionType, batch_judge

FOLDER = CONFORMANCE / "qa"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the conformance data are not here")

_NUMBER = re.compile(r'"question": "#(\d+)# ')


def rows(name: str) -> list[dict[str, Any]]:
    if not FOLDER.is_dir():
        return []
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


@cache
def document(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8")) if FOLDER.is_dir() else {"runs": []}


@cache
def pairs() -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in rows("pairs.jsonl")}


def score_of(mode: str, reply: str) -> float | None:
    try:
        return ModeFile.mode_named(mode).read(reply).score
    except JudgeError:
        return None


def improved(mode: str, reply: str, original: float | None) -> float | None:
    """What a reply means here: as in the original, but unreadable replies and scores of another scale have none.

    Quoted and Chinese words count, and two words that contradict each other do not.
    """
    text = reply.strip()
    if mode != "continuous":
        word = re.match(r'(?:\*\*|"|the answer is )?(yes|no|是|否)\b', text.lower())
        both = len({"yes", "no"} & set(re.findall(r"\b(?:yes|no)\b", text.lower()))) > 1
        return None if word is None or both else float(word.group(1) in ("yes", "是"))
    if text.startswith("```json\n") and text.endswith("\n```"):
        text = text.removeprefix("```json\n").removesuffix("\n```")
    try:
        value = json.loads(text)
        score = float(value["score"])
    except (ValueError, TypeError, KeyError):
        return None
    if isinstance(value["score"], bool) or not 0 <= score <= 1:
        return None
    return score if original is None or "```" in reply else original


@pytest.mark.parametrize("row", rows("judge_replies.jsonl"), ids=lambda row: repr(row["reply"])[:30])
def test_replies_give_the_score_of_the_original_or_none(row: dict[str, Any]) -> None:
    assert score_of(row["mode"], row["reply"]) == improved(row["mode"], row["reply"], row["expected"])


def test_most_replies_are_read_as_by_the_original() -> None:
    recorded = rows("judge_replies.jsonl")
    same = [row for row in recorded if score_of(row["mode"], row["reply"]) == row["expected"]]
    other = [row for row in recorded if score_of(row["mode"], row["reply"]) not in (None, row["expected"])]
    assert len(same) > len(recorded) / 3
    assert all(
        "```" in row["reply"] or row["reply"] in ("**yes**", "the answer is yes", '"yes"', "是") for row in other
    )


@pytest.mark.parametrize("row", rows("unanswerable.jsonl"), ids=lambda row: repr(row["text"])[:30])
def test_the_original_rule_for_unanswerable_questions_is_kept(row: dict[str, Any]) -> None:
    assert is_unanswerable(row["text"], original=True) is row["expected"]


def test_the_rule_for_unanswerable_questions_differs_from_the_original_in_the_writing_alone() -> None:
    found = [row["text"] for row in rows("unanswerable.jsonl") if is_unanswerable(row["text"]) is not row["expected"]]
    assert found == ["None.", "Unanswerable.", "I can\u2019t answer", "I don't know", "I do not know"]


def test_question_types_are_routed_as_by_the_original() -> None:
    table = document("routing.json")
    assert {name: TypedQuestion(name).mode() for name in table} == table
    assert set(table) == {each.value for each in QuestionType}


@pytest.mark.parametrize("run", document("aggregates.json")["runs"], ids=lambda run: run["id"])
def test_recorded_replies_give_the_recorded_scores(run: dict[str, Any]) -> None:
    results = []
    for number, (name, kind) in enumerate(zip(run["pair_ids"], run["question_types"], strict=True)):
        row = pairs()[name]
        question = f"#{number}# {row.get('question') or ''}"
        results.append(EvalResult("s", name, QuestionType(kind), question, row["ground_truth"], row["prediction"]))
    asked = set()

    def llm(request: JudgeRequest) -> str:
        match = _NUMBER.search(str(request))
        assert match is not None
        number = int(match.group(1))
        asked.add(number)
        reply: str = run["judge_replies"][number]
        return reply

    scores = batch_judge(results, llm=llm)
    assert asked == {number for number, reply in enumerate(run["judge_replies"]) if reply is not None}
    for score, reply, kind, recorded in zip(
        scores, run["judge_replies"], run["question_types"], run["judge_scores"], strict=True
    ):
        assert score == (recorded if reply is None else improved(TypedQuestion(kind).mode(), reply, recorded))
