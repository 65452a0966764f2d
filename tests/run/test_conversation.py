"""Conversations: once per turn of the user, with the history; when they end; what evaluators read of them."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pictures import PDF, in_memory, png
from project import load_text
from servers import LlmServer, reply

import pytest_llmeval as ev
from pytest_llmeval import Media
from pytest_llmeval.core import Case, Parts, PredictionError, Reading, Reads, SuiteError
from pytest_llmeval.evaluators._text import TextEvaluator
from pytest_llmeval.run._conversation import Dialogue
from pytest_llmeval.run._measuring import measure_each
from pytest_llmeval.suites import ConversationSpec
from pytest_llmeval.tasks.agents._conversation import Conversation


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def lead(
    script: list[dict[str, Any]],
    target: Callable[[list[Any]], Any],
    parts: Parts = Parts(),  # noqa: B008 (frozen)
    **settings: Any,
) -> dict[str, Any]:
    dialogue = Dialogue(script, parts, ConversationSpec(**settings))
    while (messages := dialogue.next()) is not None:
        dialogue.add(target(messages))
    return dialogue.transcript()


def test_the_target_is_called_once_per_turn_of_the_user_with_the_history() -> None:
    seen = []

    def target(messages: list[Any]) -> str:
        seen.append(messages)
        return messages[-1]["content"].upper()

    script = [{"role": "system", "content": "be brief"}, user("a"), user("b")]
    told = lead(script, target)
    assert seen == [script[:2], [*script[:2], said("A"), user("b")]]
    assert told == {
        "answer": "B",
        "messages": [*script[:2], said("A"), user("b"), said("B")],
        "stop": "script",
        "turns": 2,
    }


def test_a_message_that_the_script_answers_itself_is_history() -> None:
    script = [user("a"), said("given"), user("b")]
    assert lead(script, lambda messages: str(len(messages)))["messages"] == [*script, said("3")]


def test_replies_have_parts_and_their_usage_adds_up() -> None:
    reply = {
        "out": "x",
        "contexts": ["c"],
        "tool_calls": [{"name": "look"}],
        "usage": {"input_tokens": 2, "output_tokens": 1, "cost_usd": 0.25},
    }
    told = lead([user("a"), user("b")], lambda _: reply, Parts(answer="out"))
    assert told["answer"] == "x"
    assert told["tool_calls"] == [{"name": "look"}, {"name": "look"}]
    assert told["contexts"] == ["c"]
    assert told["usage"] == {"input_tokens": 4, "output_tokens": 2, "cost_usd": 0.5}
    assert told["messages"][1] == said("x", contexts=["c"], tool_calls=[{"name": "look"}])


def test_what_the_last_reply_has_beside_its_answer_is_kept() -> None:
    replies = iter([{"answer": "x", "state": {"a": 1}, "first": 1}, {"answer": "y", "state": {"a": 2}, "turns": "no"}])
    told = lead([user("a"), user("b")], lambda _: next(replies), Parts(outcome="state.a"))
    assert (told["answer"], told["state"], told["outcome"], told["turns"]) == ("y", {"a": 2}, 2, 2)
    assert "first" not in told
    assert told["messages"][1] == said("x")


def test_the_state_of_an_earlier_turn_is_not_the_outcome() -> None:
    replies = iter([{"answer": "x", "outcome": {"a": 1}}, "y"])
    assert "outcome" not in lead([user("a"), user("b")], lambda _: next(replies))


def test_usage_that_one_reply_does_not_say_is_unknown_in_sum() -> None:
    replies = iter([{"answer": "x", "usage": {"input_tokens": 2, "output_tokens": 1}}, {"answer": "y"}])
    assert lead([user("a"), user("b")], lambda _: next(replies))["usage"] == {}


def test_a_reply_may_add_several_messages() -> None:
    added = [said("", tool_calls=[{"name": "look"}]), {"role": "tool", "content": "1"}, said("one")]
    told = lead([user("a")], lambda _: {"messages": added})
    assert told["messages"] == [user("a"), *added]
    assert (told["answer"], told["turns"]) == ("one", 1)


@pytest.mark.parametrize("reply", [{"text": "x"}, {"messages": "x"}, {"messages": []}])
def test_a_reply_without_an_answer_is_an_error(reply: Any) -> None:
    with pytest.raises(PredictionError):
        lead([user("a")], lambda _: reply)


@pytest.mark.parametrize(
    ("stops_at", "stop", "turns"), [(1, "target", 1), (2, "target", 2), (3, "target", 3), (9, "max_turns", 4)]
)
def test_a_target_that_decides_is_called_until_it_stops_or_the_limit_is_reached(
    stops_at: int, stop: str, turns: int
) -> None:
    calls: list[Any] = []

    def target(messages: list[Any]) -> Any:
        calls.append(messages)
        return {"answer": "x", "stop": "done" if len(calls) == stops_at else None}

    told = lead([user("a"), user("b")], target, stop="target", max_turns=4)
    assert (told["stop"], told["turns"], len(calls)) == (stop, turns, turns)
    assert told.get("stop_reason") == ("done" if stop == "target" else None)


def test_max_turns_cuts_a_script_short() -> None:
    told = lead([user("a"), user("b"), user("c")], lambda _: "x", max_turns=2)
    assert (told["stop"], told["turns"], len(told["messages"])) == ("max_turns", 2, 4)


TALK = {
    "messages": [user("a"), said("A"), user("b"), said("no"), said("B")],
    "answer": "B",
    "turns": 2,
    "stop": "script",
}


def test_turns_have_the_words_of_the_user_and_the_last_answer_to_them() -> None:
    turns = Reading.turns_of(Case("t", prediction=TALK), Parts())
    assert [(each.input, each.parts["answer"]) for each in turns] == [("a", "A"), ("b", "B")]


def exact(turn: Any, expected: Any) -> Any:
    evaluator = TextEvaluator(metrics=("exact_match",))
    reading = Reading.for_evaluator(evaluator, turn=turn)
    (measured,) = measure_each(evaluator, [Case("t", expected=expected, prediction=TALK)], reading)
    return measured


@pytest.mark.parametrize(
    ("turn", "expected", "counts"),
    [
        (None, "B", (1, 1)),
        ("last", "B", (1, 1)),
        (1, "A", (1, 1)),
        (2, "A", (0, 1)),
        ("each", "A", (1, 2)),
        ("each", {"turns": ["A", "B"]}, (2, 2)),
        ("each", {"turns": ["A", None]}, (1, 1)),
        (2, {"turns": ["A", "B"]}, (1, 1)),
    ],
)
def test_evaluators_read_the_last_turn_each_turn_or_one_of_them(turn: Any, expected: Any, counts: Any) -> None:
    measured = exact(turn, expected)
    assert (measured.counts["exact_match"], measured.counts["exact_match.n"]) == counts


def test_a_turn_that_did_not_happen_is_an_error() -> None:
    assert str(exact(3, "x")) == "the conversation has 2 turns, expected turn 3"


def test_a_prediction_that_is_no_conversation_has_no_turns() -> None:
    with pytest.raises(PredictionError, match="the prediction is text; no 'messages'"):
        Reading(Reads("answer"), turn="each").views(Case("t", prediction="x"))


def test_turns_and_reasons_to_stop_are_metrics() -> None:
    assert Conversation().evaluate(TALK, None) == {
        "turns": 2,
        "stop": "script",
        "stop[script]": 1,
        "stop[target]": 0,
        "stop[max_turns]": 0,
    }
    assert Conversation().measure(Case("t", prediction="x")).malformed == (
        "found text 'x', expected a conversation with turns and stop"
    )


def test_a_case_with_messages_is_a_conversation(tmp_path: Path) -> None:
    suite = load_text(
        """\
conversation: {stop: target, max_turns: 3}
evaluators: [conversation, text: {turn: each}]
cases:
  - id: t
    messages: [{role: system, content: s}, Hello]
    expected: {turns: [Hi]}
""",
        tmp_path,
    )
    (case,) = suite.cases
    assert case.conversation
    assert case.input == [{"role": "system", "content": "s"}, user("Hello")]
    assert suite.conversation == ConversationSpec("target", 3)
    assert suite.readings["text"].turn == "each"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("conversation: {stop: target}", "1:1  conversation: found stop: target without max_turns, expected a limit"),
        ("conversation: {max_turns: 0}", "1:1  conversation.max_turns: found 0, expected at least 1"),
    ],
)
def test_a_target_that_decides_needs_a_limit(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(SuiteError) as caught:
        load_text(f"{text}\nevaluators: [text]\ncases: [{{messages: [a]}}]\n", tmp_path)
    line, _, message = str(caught.value).partition("  ")
    assert (line.split(":")[1], message.startswith(fault.partition("  ")[2])) == ("1", True)


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        ("{messages: []}", "found an empty list, expected at least one message"),
        ("{messages: [a, {role: assistant, content: b}]}", "found a last message of the assistant"),
        ("{messages: [a], input: b}", "found both 'input' and 'messages'"),
        ("{messages: [{role: user, content: [a, 3]}]}", "found 3 in message 1, expected a text or {file: PATH}"),
        ("{messages: [a, {role: user, content: {text: b}}]}", "in message 2, expected a text or {file: PATH}"),
        (
            "{messages: [a, {role: user, content: [{file: no.png}]}]}",
            "cases[0].messages[1].content[0].file: 'no.png': cannot be read",
        ),
        ("{messages: [{role: tool, content: b}]}", "found the text 'tool', expected one of"),
    ],
)
def test_faults_of_scripts_are_told(tmp_path: Path, case: str, fault: str) -> None:
    with pytest.raises(SuiteError, match=re.escape(fault)):
        load_text(f"evaluators: [text]\ncases: [{case}]\n", tmp_path)


def test_the_fault_of_a_turn_is_told(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="found the number 0, expected last, each, or the number of a turn"):
        load_text("evaluators: [text: {turn: 0}]\ncases: [{messages: [a]}]\n", tmp_path)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (None, "the reply is null, expected an answer"),
        ([], r"the reply is \[\], expected an answer"),
        ({"answer": None}, "the reply is null"),
        ({"messages": [{"role": "user", "content": "yes"}, {"role": "assistant", "content": "Done."}]}, "of the user"),
        ({"messages": [{"role": "system", "content": "x"}]}, "no message of the assistant"),
    ],
)
def test_a_reply_that_says_nothing_or_speaks_for_the_user_is_none(reply: Any, why: str) -> None:
    dialogue = Dialogue([{"role": "user", "content": "hello"}], Parts(), ConversationSpec())
    dialogue.next()
    with pytest.raises(PredictionError, match=why):
        dialogue.add(reply)


def test_a_target_can_return_the_whole_conversation_and_cannot_change_it() -> None:
    script = [{"role": "user", "content": each} for each in ("hello", "bye")]
    dialogue = Dialogue(script, Parts(), ConversationSpec())
    while (messages := dialogue.next()) is not None:
        given = [dict(each) for each in messages]
        messages[-1]["content"] = "yes"
        dialogue.add({"messages": [*given, {"role": "assistant", "content": f"reply {len(given)}"}]})
    said = [each["content"] for each in dialogue.transcript()["messages"]]
    assert said == ["hello", "reply 1", "bye", "reply 3"]


def test_results_of_tools_may_stand_in_messages_of_the_user() -> None:
    dialogue = Dialogue([{"role": "user", "content": "hello"}], Parts(), ConversationSpec())
    dialogue.next()
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "9"}]}
    dialogue.add({"messages": [{"role": "assistant", "content": "One moment."}, result]})
    assert dialogue.transcript()["answer"] == "One moment."


def spoken(message: str | None = None, stop: str | None = None) -> str:
    return json.dumps({"message": message, "stop": stop, "reason": "so it is"})


def test_a_simulated_user_leads_a_conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    turns = (spoken("I want my money back."), spoken("Order 7."), spoken(stop="goal_reached"))
    histories = []

    def answer(messages: list[Any]) -> str:
        histories.append(list(messages))
        return "Which order?"

    with LlmServer(*map(reply, turns)) as server:
        model = {"model": "openai:person", "base_url": server.base_url, "retries": 0, "max_turns": 6}
        desk = ev.suite(
            "desk",
            cases=[{"id": "refund", "input": {"goal": "Get order 7 refunded.", "knows": {"order": 7}}}],
            evaluators=[ev.evaluator("conversation")],
            conversation={"user": model},
        )
        result = desk.run(answer, progress=False)
    first, second = ([message["content"] for message in messages] for messages in histories)
    assert first == ["I want my money back."]
    assert second == ["I want my money back.", "Which order?", "Order 7."]
    assert (result.metrics["turns"].value, result.metrics["stop_reason[goal_reached]"].value) == (2, 1)


def test_a_simulated_user_that_cannot_be_read_is_an_error_of_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with LlmServer(reply("no JSON")) as server:
        model = {"model": "openai:person", "base_url": server.base_url, "retries": 0, "max_turns": 6}
        desk = ev.suite(
            "desk",
            cases=[{"id": "refund", "input": "Get order 7 refunded."}],
            evaluators=[ev.evaluator("conversation")],
            conversation={"user": model},
        )
        result = desk.run(lambda _: "Which order?", progress=False)
    (record,) = result.records
    assert record.outcome == "errored"
    assert "the simulated user has no reply" in record.reason


@pytest.mark.usefixtures(in_memory.__name__)
def test_messages_of_a_script_have_media(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    shown = {"role": "user", "content": ["Which colour?", {"file": "a.png"}]}
    data = {
        "evaluators": ["conversation"],
        "cases": [{"messages": [shown, "And this?", {**shown, "content": {"file": "a.png"}}]}],
    }
    (case,) = load_text(json.dumps(data), tmp_path, root=tmp_path).cases
    form = Media(data=png()).form
    assert case.input == [{**shown, "content": ["Which colour?", form]}, user("And this?"), {**shown, "content": form}]
    (tmp_path / "rows.jsonl").write_text(json.dumps({"messages": [shown]}))
    source = {"format": "jsonl", "path": "rows.jsonl", "fields": {"messages": "messages"}}
    (row,) = load_text(json.dumps({"evaluators": ["conversation"], "source": source}), tmp_path, root=tmp_path).cases
    assert row.input == [{**shown, "content": ["Which colour?", form]}]


@pytest.mark.usefixtures(in_memory.__name__)
def test_a_model_gets_the_media_of_every_turn() -> None:
    script = [{"role": "user", "content": ["Which?", Media(data=png())]}, {"role": "user", "content": Media(data=PDF)}]
    with LlmServer(reply("Red."), reply("A page.")) as server:
        system = {"model": "openai:m", "base_url": server.base_url}
        suite = ev.suite("seen", cases=[{"messages": script}], evaluators=[ev.conversation()], systems={"m": system})
        suite.run(system="m", progress=False)
    first, second = (call.body["messages"] for call in server.calls)
    kinds = [[part["type"] for part in each["content"]] for each in second if each["role"] == "user"]
    assert [part["type"] for part in first[0]["content"]] == ["text", "text", "image_url"]
    assert kinds == [["text", "text", "image_url"], ["file"]]
    assert second[1] == {"role": "assistant", "content": "Red."}
