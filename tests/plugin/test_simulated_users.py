"""Suites whose conversations a simulated user leads: recorded, replayed, left, killed, planned and paid for."""

import json
import os
import signal
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from running import WITHOUT_UNUSED, Started, wait_for_group
from scripted_judges import Judged, entries_of, shown_to
from servers import PATIENCE, Call, Request, SearchAnswer, Sent, reply, serving

if TYPE_CHECKING:
    pass

if TYPE_CHECKING:
    from conftest import Project

DESK = """\
def answer(messages):
    last = messages[-1]["content"]
    if any(letter.isdigit() for letter in last):
        number = int("".join(filter(str.isdigit, last)))
        calls = [{"name": "refund", "arguments": {"order": number}}]
        return {"answer": f"Order {number} is refunded.", "tool_calls": calls}
    return "Which order?"
"""
CASES: list[dict[str, Any]] = [
    {
        "id": "refund",
        "input": {"goal": "Get order 7 refunded.", "knows": {"order": 7}},
        "expected": {"tool_calls": [{"name": "refund", "arguments": {"order": 7}}]},
    },
    {"id": "lost", "input": "Get an order refunded.", "expected": {"tool_calls": []}},
]
TOP: dict[str, Any] = {
    "target": "desk:answer",
    "evaluators": ["tools"],
    "gates": ["stop_reason[goal_reached] >= 0.5", "turns <= 3", "trajectory_match >= 1"],
}
RECORD, REPLAY = "--llmeval-judge=record", "--llmeval-judge=replay"


def turn(message: str | None = None, stop: str | None = None) -> str:
    return json.dumps({"message": message, "stop": stop, "reason": "so it is"})


def person(call: Call) -> Sent:
    """Play a user who says the number of the order when asked, and ends when the order is refunded."""
    shown = shown_to(call)
    said = json.loads(shown["conversation"])
    knows = json.loads(shown["knows"])
    if not said:
        return reply(turn("I want my money back."))(call)
    if "refunded" in said[-1]["agent"]:
        return reply(turn(stop="goal_reached"))(call)
    return reply(turn(f"Order {knows['order']}." if knows else None, None if knows else "gave_up"))(call)


@pytest.fixture
def desk(judged: Judged) -> Judged:
    judged.server.script(person)
    judged.project.write("desk.py", DESK)
    return judged


def write(judged: Judged, cases: list[dict[str, Any]] = CASES, user: dict[str, Any] | None = None, **top: Any) -> None:
    model = {"model": "openai:person", "base_url": judged.server.base_url, "retries": 0, "max_turns": 6, **(user or {})}
    judged.project.suite("s.eval.yaml", cases, **{**TOP, "conversation": {"user": model}, **top})


def metrics(ran: Any) -> dict[str, Any]:
    return {name: each["value"] for name, each in ran.suites["s"]["metrics"].items()}


def test_a_user_leads_conversations_which_replay_without_a_model(desk: Judged, workers: int) -> None:
    write(desk)
    first = desk.project.run(RECORD, workers=workers)
    assert first.code == 0, first.text
    found = metrics(first)
    assert (found["turns"], found["stop[user]"]) == (1.5, 1.0)
    assert (found["stop_reason[goal_reached]"], found["stop_reason[gave_up]"]) == (0.5, 0.5)
    assert first.suites["s"]["usage"]["calls"] == 5 == len(desk.server.calls)
    recorded = entries_of(desk.project.path / "__llmeval__" / "s.judgements.jsonl")
    assert Counter(each["case"] for each in recorded) == {"refund": 3, "lost": 2}

    again = desk.project.run(REPLAY, workers=workers)
    assert again.code == 0, again.text
    assert len(desk.server.calls) == 5
    same = [name for name in found if "latency" not in name]
    assert {name: metrics(again)[name] for name in same} == {name: found[name] for name in same}


def test_the_transcript_is_a_prediction_with_what_the_user_wanted(desk: Judged) -> None:
    write(desk, CASES[:1])
    assert desk.project.run(RECORD, "--llmeval-predictions=p.jsonl").code == 0
    (row,) = entries_of(desk.project.path / "p.jsonl")
    assert row["prediction"] == {
        "answer": "Order 7 is refunded.",
        "messages": [
            {"role": "user", "content": "I want my money back."},
            {"role": "assistant", "content": "Which order?"},
            {"role": "user", "content": "Order 7."},
            {
                "role": "assistant",
                "content": "Order 7 is refunded.",
                "tool_calls": [{"name": "refund", "arguments": {"order": 7}}],
            },
        ],
        "stop": "user",
        "stop_comment": "so it is",
        "stop_reason": "goal_reached",
        "tool_calls": [{"name": "refund", "arguments": {"order": 7}}],
        "turns": 2,
        "user": {"goal": "Get order 7 refunded.", "knows": {"order": 7}},
    }


def test_an_agent_that_says_something_new_leaves_the_recording(desk: Judged, workers: int) -> None:
    write(desk)
    assert desk.project.run(RECORD).code == 0
    desk.project.write("desk.py", DESK.replace("Which order?", "Which order, please?"))
    strict = desk.project.run(REPLAY, workers=workers)
    assert strict.outcomes("s") == {"refund": "errored", "lost": "errored"}
    why = "turn 2: the conversation leaves its recording: no reply to 'Which order, please?' is recorded"
    assert why in strict.suites["s"]["cases"][0]["reason"]

    write(desk, user={"unrecorded": "fail"})
    failing = desk.project.run(workers=workers)
    assert why in failing.suites["s"]["cases"][0]["reason"]
    assert len(desk.server.calls) == 5

    write(desk, user={"unrecorded": "stop"})
    stopped = desk.project.run(workers=workers)
    assert metrics(stopped)["stop[recording]"] == 1.0
    assert len(desk.server.calls) == 5

    write(desk)
    asked = desk.project.run("-vv", workers=workers)
    assert asked.code == 0, asked.text
    assert len(desk.server.calls) == 8
    assert "the conversation left its recording in turn 2" in json.dumps(asked.suites["s"])


def test_a_plan_has_bounds_for_the_user_and_the_target(desk: Judged) -> None:
    write(desk)
    plan = desk.project.run("--llmeval-plan").text
    assert "judge: 2 to 12 calls, 0 stored" in plan
    assert "target: 2 to 12 calls, 0 stored" in plan
    assert desk.server.calls == []


def test_a_plan_foresees_what_the_most_turns_would_take(desk: Judged) -> None:
    write(desk, user={"price": {"input": 1000.0, "output": 1000.0}})
    assert desk.project.run(RECORD).code == 0
    plan = desk.project.run("--llmeval-plan").text
    (line,) = (each.split() for each in plan.splitlines() if each.startswith("s ") and " judge " in each)
    assert line[2:7] == ["0-10", "150", "150", "0.1500", "0.1500"]


def test_a_budget_ends_a_conversation_and_keeps_what_was_paid_for(desk: Judged) -> None:
    write(desk, CASES[:1])
    ran = desk.project.run("--llmeval-budget=calls=1")
    assert ran.outcomes("s") == {"refund": "not_run"}
    assert len(desk.server.calls) == 1
    assert desk.project.run().code == 0
    assert len(desk.server.calls) == 3


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("import", "import"), ""),
        (('return "Which order?"', 'raise RuntimeError("gone")'), "turn 1: RuntimeError: gone"),
        (('return {"answer"', 'raise RuntimeError("gone")\n        return {"answer"'), "turn 2: RuntimeError: gone"),
        (('return {"answer"', 'return {"text"'), "turn 2: the prediction has the keys text, tool_calls; no 'answer'"),
    ],
)
def test_a_failure_names_its_turn(desk: Judged, change: tuple[str, str], why: str) -> None:
    write(desk, CASES[:1])
    desk.project.write("desk.py", DESK.replace(*change))
    ran = desk.project.run(RECORD)
    if not why:
        assert ran.code == 0
        return
    (case,) = ran.suites["s"]["cases"]
    assert case["reason"].startswith(why)
    recorded = entries_of(desk.project.path / "__llmeval__" / "s.judgements.jsonl")
    assert len(recorded) == len(desk.server.calls)
    assert ran.suites["s"]["usage"]["calls"] == len(desk.server.calls)


def test_an_agent_that_talks_for_ever_is_stopped(desk: Judged) -> None:
    desk.server.script(reply(turn("And now?")))
    write(desk, CASES[1:])
    found = metrics(desk.project.run())
    assert (found["turns"], found["stop[max_turns]"], found["stop_reason[goal_reached]"]) == (6, 1.0, 0.0)
    assert len(desk.server.calls) == 6


def test_a_reply_that_is_none_is_an_error_after_a_second_try(desk: Judged) -> None:
    desk.server.script(reply("Hello!"))
    write(desk, CASES[:1])
    ran = desk.project.run(RECORD)
    (case,) = ran.suites["s"]["cases"]
    assert case["outcome"] == "errored"
    assert case["reason"].startswith("turn 1: the simulated user has no reply: found no JSON object")
    assert len(desk.server.calls) == 2 == ran.suites["s"]["usage"]["calls"]


def test_a_script_can_begin_and_columns_can_say_who_the_user_is(desk: Judged) -> None:
    desk.project.write("people.csv", "id,who,want\nann,An old lady,Get order 7 refunded.\n")
    columns = {"input": {"persona": "who", "goal": "want"}}
    write(desk, [], source={"format": "csv", "path": "people.csv", "fields": columns}, gates=[])
    assert desk.project.run().outcomes("s") == {"ann": "passed"}
    assert shown_to(desk.server.calls[0])["persona"] == "An old lady"
    desk.server.calls.clear()
    begun = [{"id": "begun", "messages": [{"role": "system", "content": "Be brief."}, "Hello"]}]
    write(desk, begun, user={"goal": "Get order 7 refunded.", "knows": {"order": 7}}, gates=[])
    assert desk.project.run().outcomes("s") == {"begun": "passed"}
    said = json.loads(shown_to(desk.server.calls[0])["conversation"])
    assert said == [{"you": "Hello"}, {"agent": "Which order?"}]


def test_a_judge_says_whether_the_user_kept_to_its_role(desk: Judged, workers: int) -> None:
    def both(call: Call) -> Sent:
        if call.body["model"] == "person":
            return person(call)
        left = "7" not in shown_to(call)["goal"]
        return reply(json.dumps({"reasoning": "It knew no order.", "role": "left" if left else "kept"}))(call)

    desk.server.script(both)
    judge = {"model": "openai:judge", "base_url": desk.server.base_url, "retries": 0}
    write(desk, judge=judge)
    ran = desk.project.run(RECORD, workers=workers)
    assert metrics(ran)["user_drift"] == 0.5
    assert "the simulated user did not keep to its role: It knew no order." in json.dumps(ran.suites["s"])
    assert metrics(desk.project.run(REPLAY, workers=workers))["user_drift"] == 0.5
    write(desk, judge=judge, user={"checks_role": False})
    assert "user_drift" not in metrics(desk.project.run(REPLAY))


def test_faults_of_users_have_places(desk: Judged) -> None:
    broken: dict[str, Any] = {"model": "person", "max_turns": 0, "stop": ["Done!"], "instructions": "none.md"}
    write(desk, [{"id": "a"}, {"id": "b", "input": {"gaol": "x"}}, {"id": "c", "input": 3}], user=broken)
    told = desk.project.run().text
    for each in (
        "conversation.user.model: found 'person', expected PROVIDER:NAME",
        "conversation.user.max_turns: found 0, expected a whole number of at least 1",
        "conversation.user.stop: found 'Done!', expected names of lower-case letters",
    ):
        assert each in told
    write(desk, [{"id": "a"}, {"id": "b", "input": {"gaol": "x"}}, {"id": "c", "input": 3}, *CASES[:1]])
    told = desk.project.run().text
    assert "case 'a': the goal of the simulated user is missing" in told
    assert "case 'b': found 'gaol' in the input, expected the user's goal" in told
    assert "case 'c': found 3 as input, expected the user's goal" in told


def test_an_agent_and_a_user_over_http(desk: Judged, workers: int) -> None:
    def serve(request: Request, _: int) -> SearchAnswer:
        last = request.json["messages"][-1]["content"]
        return SearchAnswer({"answer": "Order 7 is refunded." if "7" in last else "Which order?"})

    with serving(serve) as server:
        http = {"url": f"{server.url}/chat", "request": {"messages": {"$input": True}}, "response": ""}
        del http["response"]
        write(desk, target={"http": http}, evaluators=["conversation"], gates=["turns <= 2"])
        ran = desk.project.run(workers=workers)
    assert ran.code == 0, ran.text
    assert metrics(ran)["turns"] == 1.5


SLOW = """\
import pathlib

HERE = pathlib.Path(__file__).parent


def answer(messages):
    turn = sum(each["role"] == "user" for each in messages)
    goal = messages[0]["content"]
    with (HERE / "asked.txt").open("a") as file:
        file.write(f"{goal} {turn}\\n")
    return f"answer {turn} to {goal}"
"""
TURNS = 5
KILLS = 13
"""More than two conversations have turns."""


def test_kills_lose_no_turn_that_was_paid_for(desk: Judged) -> None:
    """The user's model replies once in each run, and holds the next call until the run is killed."""
    arrived, gate = threading.Semaphore(0), threading.Semaphore(0)
    calls: Counter[str] = Counter()

    def slow(call: Call) -> Sent:
        shown = shown_to(call)
        said = json.loads(shown["conversation"])
        with lock:
            calls[f"{shown['goal']} {len(said)}"] += 1
        arrived.release()
        assert gate.acquire(timeout=PATIENCE)
        done = len(said) >= 2 * TURNS
        return reply(turn(None if done else shown["goal"], "goal_reached" if done else None))(call)

    lock = threading.Lock()
    desk.server.script(slow)
    desk.project.write("desk.py", SLOW)
    names = [f"g{number}" for number in range(4)]
    cases = [{"id": name, "input": name} for name in names]
    write(desk, cases, evaluators=["conversation"], gates=[], user={"max_turns": TURNS + 3})
    options = ["--llmeval-predictions=p.jsonl", "--llmeval-concurrency=1"]
    line = ["-m", "pytest", *WITHOUT_UNUSED, "--llmeval", "-pno:cacheprovider", "-q", *options]
    nowhere = Path(os.devnull)
    for _ in range(KILLS):
        run = Started(line, os.environ, desk.project.path, nowhere, nowhere, workers=0, group=True)
        try:
            assert arrived.acquire(timeout=PATIENCE)
            gate.release()
            assert arrived.acquire(timeout=PATIENCE)  # its reply has arrived, and the next turn is asked for
        finally:
            with suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
            run.wait()
            wait_for_group(run.pid)
        gate.release()  # nobody hears the reply to the call that was under way
    for _ in range(len(names) * (TURNS + 1)):
        gate.release()
    ran = desk.project.run(*options)
    assert ran.code == 0, ran.text
    assert metrics(ran)["turns"] == TURNS
    # Each run asks again only for the turn that was under way when the one before it was killed.
    assert sum(calls.values()) == len(names) * (TURNS + 1) + KILLS
    asked = Counter((desk.project.path / "asked.txt").read_text(encoding="utf-8").splitlines())
    assert asked == {f"{name} {number}": 1 for name in names for number in range(1, TURNS + 1)}


def test_a_fixture_can_play_the_user(project: "Project", workers: int) -> None:
    project.write("desk.py", DESK)
    project.write(
        "conftest.py",
        """
        import json
        import pytest

        @pytest.fixture(scope="session")
        def judge_client():
            def person(request):
                said = json.loads(json.loads(request.messages[-1].content[7:-8])["conversation"])
                stop = "goal_reached" if said else None
                return json.dumps({"message": None if said else "Order 7, please.", "stop": stop, "reason": ""})

            return person
        """,
    )
    top = {**TOP, "conversation": {"user": {"model": "fixture:person"}}}
    project.suite("s.eval.yaml", CASES[:1], **top)
    ran = project.run(RECORD, workers=workers)
    assert (ran.code, metrics(ran)["turns"]) == (0, 1), ran.text


def test_a_recording_with_faults_is_a_fault_of_the_suite(desk: Judged) -> None:
    write(desk)
    desk.project.write("__llmeval__/s.judgements.jsonl", "{}\n")
    told = desk.project.run()
    assert "s.judgements.jsonl:1" in told.text
    assert told.code == 2 or "error" in told.text


def test_tasks_of_tau_bench_run_with_a_simulated_user(desk: Judged, workers: int) -> None:
    wants = {"known_info": "Order 7", "reason_for_call": "Get your money back.", "domain": "shop"}
    call = {"name": "refund", "arguments": {"order": 7}}
    criteria = {"actions": [call], "communicate_info": ["refunded"], "nl_assertions": None}
    tasks = [
        {"id": "two", "user_scenario": {"persona": None, "instructions": wants}, "evaluation_criteria": criteria},
        {"id": "one", "user_id": "7", "instruction": "Get it back.", "actions": [], "outputs": ["1,000"]},
    ]
    desk.project.write("tasks.json", json.dumps(tasks))
    desk.server.script(tau_person)
    write(desk, [], source={"format": "tau", "path": "tasks.json"}, gates=[])
    ran = desk.project.run(RECORD, workers=workers)
    assert ran.outcomes("s") == {"two": "passed", "one": "failed"}, ran.text
    cases = {each["id"]: each for each in ran.suites["s"]["cases"]}
    assert (cases["two"]["metrics"]["argument_accuracy"], cases["two"]["metrics"]["check[communicated]"]) == (1, 1)
    assert cases["one"]["metrics"]["check[communicated]"] == 0
    assert "communicated: found 'Which order?" in ran.text


def tau_person(call: Call) -> Sent:
    """Play a user who names what it knows."""
    shown = shown_to(call)
    said = json.loads(shown["conversation"])
    known = json.loads(shown["knows"]).get("known_info")
    if not said:
        return reply(turn(shown["goal"]))(call)
    if "refunded" in said[-1]["agent"] or known is None:
        return reply(turn(stop="goal_reached" if known else "gave_up"))(call)
    return reply(turn(known))(call)
