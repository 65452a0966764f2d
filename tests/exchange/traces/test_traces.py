"""Traces as cases: what a reader finds in the spans, whoever wrote them, and whatever is broken."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from project import AGENT, RAG, SHARED, export, span

from pytest_llmeval.core import Case, Fault
from pytest_llmeval.exchange._agent_libraries import items_of
from pytest_llmeval.exchange.traces import TracesSource

REAL = SHARED / "data" / "importers" / "traces"
CHAT = {"gen_ai.operation.name": "chat"}


TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}


def load(path: Path, **options: Any) -> tuple[list[Case], list[Fault]]:
    faults: list[Fault] = []
    return TracesSource(path.name, **options).load(path.parent, faults), faults


def cases(tmp_path: Path, *documents: Any, **options: Any) -> list[Case]:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in documents), encoding="utf-8")
    found, faults = load(path, **options)
    assert faults == []
    return found


def only(tmp_path: Path, *documents: Any, **options: Any) -> dict[str, Any]:
    (case,) = cases(tmp_path, *documents, **options)
    return {"input": case.input, **case.prediction}


@pytest.mark.skipif(not REAL.exists(), reason="needs real traces")
def test_real_spans_of_two_libraries_say_what_a_reader_finds_in_them() -> None:
    (chat,), faults = load(next(REAL.glob("*genai*")))
    assert faults == []
    assert chat.input == "Weather in Paris?"
    assert chat.prediction["answer"] == "The weather in Paris is currently rainy with a temperature of 57°F."
    assert chat.prediction["tool_calls"] == [
        {"id": "1234", "name": "get_weather", "arguments": {"location": "Paris"}, "result": "rainy, 57°F"}
    ]
    assert [each["role"] for each in chat.prediction["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert chat.prediction["usage"] == {"input_tokens": 97, "output_tokens": 52, "model": "gpt-4-0613"}
    (haiku, sums), faults = load(next(REAL.glob("*vercel*")))
    assert faults == []
    assert haiku.input == "Write a haiku about programming."
    assert haiku.prediction["answer"].startswith("Lines of code align,")
    assert haiku.prediction["usage"] == {
        "input_tokens": 14,
        "output_tokens": 20,
        "model": "gpt-4o-mini",
        "latency_s": 1.781541,
    }
    assert (sums.input, sums.prediction["answer"]) == ("What is 2 + 2?", "3 + 3 equals 6.")
    roles = [each["role"] for each in sums.prediction["messages"]]
    assert roles == ["system", "user", "assistant", "user", "assistant"]
    assert (sums.prediction["usage"]["input_tokens"], sums.prediction["usage"]["output_tokens"]) == (50, 9)


def test_an_agent_is_read_with_its_calls_of_tools_and_what_it_took(tmp_path: Path) -> None:
    (case,) = cases(
        tmp_path, export(*AGENT), by="conversation", labels={"who": "gen_ai.agent.name", "at": "service.name"}
    )
    assert (case.id, case.input, case.labels) == ("conv-1", "Refund order 7", {"who": "bot", "at": "shop"})
    spans = case.prediction["trace"].pop("spans")
    assert [each["name"] for each in spans] == ["agent", "first chat", "execute_tool refund", "second chat"]
    assert [each.get("failed") for each in spans] == [None, None, True, None]
    assert case.prediction == {
        "answer": "I could not find order 7.",
        "messages": [
            {"role": "user", "content": "Refund order 7"},
            {"role": "assistant", "tool_calls": [{"id": "c1", "name": "refund", "arguments": {"order": 7}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "no such order"},
            {"role": "assistant", "content": "I could not find order 7."},
        ],
        "tool_calls": [
            {"id": "c1", "name": "refund", "arguments": {"order": 7}, "result": "no such order", "status": "error"}
        ],
        "usage": {"input_tokens": 30, "output_tokens": 12, "model": "gpt-5", "latency_s": 8.0},
        "trace": {"ids": ["a" * 32], "root": "agent"},
    }


def test_openinference_is_read_with_its_passages(tmp_path: Path) -> None:
    found = only(tmp_path, export(*RAG))
    assert (found["input"], found["answer"]) == ("How long?", "30 days.")
    assert found["contexts"] == ["Refunds take 30 days.", "Shipping is free."]
    assert found["tool_calls"] == [{"id": "t1", "name": "log", "arguments": {"x": 1}}]
    assert found["messages"][0] == {"role": "system", "content": "Be kind"}
    assert found["usage"] == {
        "input_tokens": 50,
        "output_tokens": 4,
        "cost_usd": 0.002,
        "model": "gpt-4o",
        "latency_s": 4.0,
    }


def _log(name: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"traceId": "t", "spanId": "s", "eventName": name, "body": {"kvlistValue": {"values": body}}}


OLDER: dict[str, list[Any]] = {
    "numbered": [
        export(
            span(
                "t",
                "s",
                "",
                1,
                2,
                {
                    "gen_ai.system": "openai",
                    "gen_ai.prompt.0.role": "user",
                    "gen_ai.prompt.0.content": "Hi",
                    "gen_ai.completion.0.role": "assistant",
                    "gen_ai.completion.0.content": "Hello",
                    "gen_ai.usage.prompt_tokens": 3,
                    "gen_ai.usage.completion_tokens": 4,
                },
            )
        )
    ],
    "events": [
        export(
            span(
                "t",
                "s",
                "",
                1,
                2,
                {**CHAT, "gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 4},
                events=[
                    {"name": "gen_ai.user.message", "attributes": [{"key": "content", "value": {"stringValue": "Hi"}}]},
                    {
                        "name": "gen_ai.choice",
                        "attributes": [
                            {"key": "message", "value": {"stringValue": '{"role": "assistant", "content": "Hello"}'}}
                        ],
                    },
                ],
            )
        )
    ],
    "logs": [
        export(span("t", "s", "", 1, 2, {**CHAT, "gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 4})),
        {
            "resourceLogs": [
                {
                    "scopeLogs": [
                        {
                            "logRecords": [
                                _log("gen_ai.user.message", [{"key": "content", "value": {"stringValue": "Hi"}}]),  # type: ignore[arg-type]
                                _log("gen_ai.choice", [{"key": "content", "value": {"stringValue": "Hello"}}]),  # type: ignore[arg-type]
                            ]
                        }
                    ]
                }
            ]
        },
    ],
    "whole prompt": [
        export(
            span(
                "t",
                "s",
                "",
                1,
                2,
                {
                    **CHAT,
                    "gen_ai.prompt": '[{"role": "user", "content": "Hi"}]',
                    "gen_ai.completion": '[{"role": "assistant", "content": "Hello"}]',
                    "gen_ai.usage.input_tokens": 3,
                    "gen_ai.usage.output_tokens": 4,
                },
            )
        )
    ],
    "Python's SDK": [
        {
            "name": "chat",
            "context": {"trace_id": "0xt", "span_id": "0x5"},
            "parent_id": None,
            "start_time": "1970-01-01T00:00:01.000000Z",
            "end_time": "1970-01-01T00:00:02.000000Z",
            "status": {"status_code": "UNSET"},
            "attributes": {
                **CHAT,
                "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}]',
                "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "Hello"}]}]',
                "gen_ai.usage.input_tokens": 3,
                "gen_ai.usage.output_tokens": 4,
            },
        }
    ],
}


@pytest.mark.parametrize("documents", OLDER.values(), ids=OLDER)
def test_earlier_conventions_say_the_same(tmp_path: Path, documents: list[Any]) -> None:
    found = only(tmp_path, *documents)
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    assert (found["input"], found["answer"], found["messages"]) == ("Hi", "Hello", said)
    usage = {name: value for name, value in found["usage"].items() if name != "latency_s"}
    assert usage == {"input_tokens": 3, "output_tokens": 4}
    assert found["usage"]["latency_s"] == 1.0


def test_what_spans_leave_out_is_left_out(tmp_path: Path) -> None:
    redacted = [
        span("t", "chat", "", 1, 2, {**CHAT, "gen_ai.usage.input_tokens": 3}),
        span("t", "tool", "", 2, 3, TOOL),
    ]
    found = only(tmp_path, export(*redacted))
    assert found == {
        "input": None,
        "tool_calls": [{"name": "look"}],
        "usage": {"input_tokens": 3, "latency_s": 2.0},
        "trace": {
            "ids": ["t"],
            "root": "chat",
            "spans": [
                {"name": "chat", "duration_s": 1.0, "attributes": {**CHAT, "gen_ai.usage.input_tokens": 3}},
                {"name": "tool", "duration_s": 1.0, "attributes": TOOL},
            ],
        },
    }


def test_what_other_agents_do_is_theirs(tmp_path: Path) -> None:
    """The answer and the calls are those of the agent that the user asked; tokens are those of all."""
    helper = [
        span("a" * 32, "helper", "execute_tool refund", 3, 4, {"gen_ai.operation.name": "invoke_agent"}),
        span(
            "a" * 32,
            "its chat",
            "helper",
            3,
            4,
            {
                **CHAT,
                "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "Search 7"}]}]',
                "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": "none"}]}]',
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 100,
            },
        ),
        span(
            "a" * 32, "its tool", "helper", 3, 4, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "sql"}
        ),
    ]
    alone, together = only(tmp_path, export(*AGENT)), only(tmp_path, export(*helper, *AGENT))
    for part in ("input", "answer", "messages", "tool_calls"):
        assert together[part] == alone[part]
    assert together["usage"]["output_tokens"] == alone["usage"]["output_tokens"] + 100


def test_two_instrumentations_of_one_call_count_once(tmp_path: Path) -> None:
    usage = {"gen_ai.usage.input_tokens": 3, "gen_ai.usage.output_tokens": 4}
    inner = span("t", "inner", "outer", 1, 2, {**CHAT, **usage})
    found = only(tmp_path, export(span("t", "outer", "", 1, 2, {**CHAT, **usage}), inner))
    assert found["usage"]["input_tokens"] == 3


def test_the_order_of_spans_and_of_files_changes_nothing(tmp_path: Path) -> None:
    expected = only(tmp_path, export(*AGENT))
    for seed in range(10):
        spans = [*AGENT]
        random.Random(seed).shuffle(spans)
        assert only(tmp_path, *(export(each) for each in spans)) == expected
        assert only(tmp_path, [export(*spans[:2]), export(*spans[2:])]) == expected


def test_odd_spans_are_counted(tmp_path: Path) -> None:
    early = span("a" * 32, "early", "agent", 0, 1, {}) | {"startTimeUnixNano": "1"}
    orphan = span("a" * 32, "orphan", "nowhere", 1, 2, {})
    found = only(tmp_path, export(*AGENT, *AGENT, early, orphan))
    assert found["trace"]["notes"] == [
        "4 spans twice in the file",
        "1 span whose parent is not in the file",
        "1 span that began before the parent, by the clocks",
    ]
    assert found["answer"] == "I could not find order 7."


def test_of_two_copies_the_one_that_has_ended_counts(tmp_path: Path) -> None:
    begun = span("t", "s", "", 1, 0, CHAT)
    ended = span("t", "s", "", 1, 2, {**CHAT, "gen_ai.usage.output_tokens": 4})
    for copies in ([begun, ended], [ended, begun]):
        assert only(tmp_path, export(*copies))["usage"] == {"output_tokens": 4, "latency_s": 1.0}


def test_a_circle_of_spans_ends(tmp_path: Path) -> None:
    found = only(tmp_path, export(span("t", "a", "b", 1, 2, CHAT), span("t", "b", "a", 1, 2, CHAT)))
    assert [each["name"] for each in found["trace"]["spans"]] == ["a", "b"]


def test_conversations_join_their_traces_by_time(tmp_path: Path) -> None:
    def turn(trace: str, start: int, said: str, answer: str) -> dict[str, Any]:
        given = {
            **CHAT,
            "gen_ai.conversation.id": "c/1",
            "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": said}]}]),
            "gen_ai.output.messages": json.dumps(
                [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
            ),
        }
        return export(span(trace, "s" + trace, "", start, start + 1, given))

    turns = [turn("y", 5, "And 3 + 3?", "6"), turn("x", 1, "2 + 2?", "4")]
    (case,) = cases(tmp_path, *turns, by="conversation")
    assert (case.id, case.input, case.prediction["answer"]) == ("c-1", "2 + 2?", "6")
    assert [each["content"] for each in case.prediction["messages"]] == ["2 + 2?", "4", "And 3 + 3?", "6"]
    assert {case.id for case in cases(tmp_path, *turns)} == {"x", "y"}


@pytest.mark.parametrize("first", [True, False])
def test_a_cut_line_costs_no_other(tmp_path: Path, first: bool) -> None:
    whole = [json.dumps(export(*AGENT)), json.dumps(export(*RAG))]
    lines = ['{"resourceSpans": [{"res', *whole] if first else [*whole, '{"resourceSpans": [{"res', "7", "[1]"]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    found, faults = load(path)
    assert {case.id for case in found} == {"a" * 32, "b" * 32}
    assert [each.line for each in faults] == ([1] if first else [3, 4, 5])
    assert "found a document that is cut or no JSON" in str(faults[0])


def test_a_file_without_models_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(export(span("t", "GET /", "", 1, 2, {"http.route": "/"})), indent=1), encoding="utf-8")
    found, faults = load(path)
    assert found == []
    assert "found 1 trace, none with a span of a model, an agent, a tool or a retrieval" in str(faults[0])


def test_other_services_can_be_left_out(tmp_path: Path) -> None:
    documents = [export(*AGENT), export(span("a" * 32, "x", "agent", 5, 6, CHAT), service="other")]
    assert len(only(tmp_path, *documents, service="shop")["trace"]["spans"]) == 4
    assert len(only(tmp_path, *documents)["trace"]["spans"]) == 5


HOSTILE: list[Any] = [
    None,
    True,
    -1,
    10**400,
    0.5,
    "",
    "{",
    "[",
    "\ud800",
    [],
    {},
    [[]],
    {"values": 3},
    "0x",
    "9" * 5_000,
]


def test_broken_spans_give_faults_or_cases_and_never_a_traceback(tmp_path: Path) -> None:
    def mutate(value: Any, rng: random.Random) -> Any:
        if isinstance(value, dict | list) and value and rng.random() < 0.9:
            key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
            changed = dict(value) if isinstance(value, dict) else list(value)
            changed[key] = mutate(value[key], rng)
            return changed
        return rng.choice(HOSTILE)

    rng = random.Random(32)
    path = tmp_path / "t.json"
    for _ in range(600):
        path.write_text(json.dumps(mutate(export(*AGENT, *RAG), rng)), encoding="utf-8")
        found, faults = load(path)
        assert found or faults
        json.dumps([case.prediction for case in found], allow_nan=False).encode("utf-8")


def test_documents_are_read_in_pieces_whatever_their_layout(tmp_path: Path) -> None:
    document = export(*AGENT, *RAG)
    rich = export(span("c" * 32, "c", "", 1, 2, {**CHAT, "gen_ai.input.messages": "é" * 70_000, "x": "😀"}))
    last = {"resourceSpans": [dict(reversed(each.items())) for each in document["resourceSpans"]]}
    wanted: list[Any] = []
    for text in (
        json.dumps(document) + json.dumps(rich),
        json.dumps(document, indent=2) + "\n" + json.dumps(rich, indent=1, ensure_ascii=False),
        json.dumps([last, rich], indent=4),
        "".join(json.dumps(each, indent=1) for each in (rich, last)),
    ):
        path = tmp_path / "t.json"
        path.write_bytes(text.encode("utf-8"))
        found, faults = load(path, labels={"at": "service.name"})
        assert faults == []
        rows = sorted((case.id, case.labels, case.prediction) for case in found)
        wanted = wanted or rows
        assert rows == wanted
        assert [labels for _, labels, _ in rows] == [{"at": "shop"}] * 3


def test_a_fault_inside_a_large_document_has_its_line_and_costs_nothing_before_it(tmp_path: Path) -> None:
    whole = json.dumps(export(*AGENT, *([RAG[0]] * 600), *RAG), indent=1)
    assert len(whole) > 300_000
    at = whole.rindex('"spanId"')
    path = tmp_path / "t.json"
    path.write_text(whole[:at] + "spanId" + whole[at + 8 :], encoding="utf-8")
    found, (fault,) = load(path)
    assert {case.id for case in found} == {"a" * 32, "b" * 32}
    line = whole[:at].count("\n") + 1
    assert (fault.line, fault.column) == (line, at - whole.rindex("\n", 0, at))
    assert "found a document that is cut or no JSON" in str(fault)
    path.write_bytes(whole.encode()[:at] + b"\xff" + whole.encode()[at:])
    assert "found bytes that are no UTF-8" in str(load(path)[1][0])


def test_spans_are_a_part_of_the_prediction_without_what_is_long(tmp_path: Path) -> None:
    given = {**CHAT, "db.system": "sqlite", "gen_ai.prompt": "x" * 501, "log": "y" * 501, "codes": [1, 2]}
    (found,) = only(tmp_path, export(span("t", "chat", "", 1, 3, given, status={"code": 2})))["trace"]["spans"]
    assert found == {
        "name": "chat",
        "duration_s": 2.0,
        "failed": True,
        "attributes": {**CHAT, "db.system": "sqlite", "codes": [1, 2]},
        "left_out": ["gen_ai.prompt", "log"],
    }


@pytest.mark.parametrize(
    ("value", "items"),
    [
        ({"1": "b", "0": "a", "10": "c"}, ["a", "b", "c"]),
        ({"0": "a", "²": "b"}, []),
        ({"9" * 5000: "a"}, []),
        ({"0": "a", "name": "b"}, []),
        ({}, []),
    ],
)
def test_a_mapping_by_number_is_a_list_if_each_name_is_a_position(value: dict[str, str], items: list[str]) -> None:
    assert list(items_of(value)) == items
