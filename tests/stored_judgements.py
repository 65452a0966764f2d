"""Judgements for tests: small, valid, and different where a test wants them to be."""

__all__ = ("MODE", "entry", "key_of", "messages", "question")

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from pytest_llmeval.judge.contract import Message, Mode, Question, Usage, Verdict
from pytest_llmeval.judge.stored_judgement import StoredJudgement, components, judgement_key

MODE = Mode(
    name="strict",
    version="1",
    instructions={"en": "Grade the answer.", "zh": "评分。"},
    fields=("question", "answer"),
    scale=(0.0, 1.0),
    read=lambda text: Verdict(float(text)),
)


def question(answer: str = "Paris", *, language: str = "en", **mode: Any) -> Question:
    return Question(replace(MODE, **mode), {"question": "Capital of France?", "answer": answer}, language)


def messages(asked: Question) -> tuple[Message, ...]:
    return (
        Message("system", asked.mode.instructions[asked.language]),
        Message("user", repr(sorted(asked.texts.items()))),
    )


def key_of(
    asked: Question, *, model: str = "openai:a", parameters: Mapping[str, Any] | None = None, repeat: int = 0
) -> str:
    return judgement_key(asked, messages(asked), model=model, parameters=parameters or {}, repeat=repeat)


def entry(
    answer: str = "Paris",
    *,
    case: str = "paris",
    reply: str = "0.5",
    asked: Question | None = None,
    model: str = "openai:a",
    parameters: Mapping[str, Any] | None = None,
    repeat: int = 0,
) -> StoredJudgement:
    asked = asked or question(answer)
    made_of = components(asked, messages(asked), model=model, parameters=parameters or {}, repeat=repeat)
    key = key_of(asked, model=model, parameters=parameters, repeat=repeat)
    return StoredJudgement(key, case, made_of, reply, 0.5, Usage(30, 4), 0.25, 0.001)
