"""Print traces of the agent (clerk.py) at a hundred requests: ``python hundred.py > tickets.otlp.jsonl``."""

import json
import random
import sqlite3
import sys
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import clerk

STOPS, DAYS = ("Bruges", "Antwerp"), ("friday", "saturday")
REQUESTS = {  # each as often as the number says
    "I want to go to {stop} on {day}.": 13,
    "Can I get from Ghent to {stop} on {day}?": 14,
    "Please refund ticket {ticket}.": 10,
    "Is there a train from {stop} to Ghent on {day}?": 10,
    "I am in {stop}, and have to be in Ghent on {day}. When is the train?": 9,
    "How long does a refund of {few} tickets take?": 12,
    "{few} tickets to {lower} on {day} please": 8,
    "I want my money back for ticket {ticket}.": 6,
    "Do not refund ticket {ticket}, I will travel after all.": 6,
    "How much are {few} tickets to {stop}?": 6,
    "Which trains go to {stop} in week {ticket}?": 4,
    "Do I need a seat reservation?": 1,
    "May I take my dog along?": 1,
}
START = 1_790_000_000


def requests(rng: random.Random) -> Iterator[str]:
    """Yield the requests, in an order of chance, about stops, days and tickets in turn."""
    turns = zip(cycle(STOPS), cycle((*DAYS, *reversed(DAYS))), strict=False)
    tickets = iter(rng.sample(range(100, 1000), 100))
    texts = [
        form.format(stop=stop, lower=stop.lower(), day=day, ticket=next(tickets), few=2 + number)
        for form, times in REQUESTS.items()
        for number, (stop, day) in zip(range(times), turns, strict=False)
    ]
    yield from rng.sample(texts, len(texts))


def timetable(rng: random.Random, db: sqlite3.Connection) -> None:
    """Let a train go from Ghent to each stop on each day, at a time and a price of its own."""
    trains = [
        (rng.randint(100, 999), "Ghent", stop, day, f"{rng.randint(6, 21):02}:{rng.randint(0, 59):02}", price)
        for stop, price in zip(STOPS, (7.5, 11.0), strict=True)
        for day in DAYS
    ]
    db.execute("DELETE FROM trains")
    db.executemany("INSERT INTO trains VALUES (?, ?, ?, ?, ?, ?)", trains)


def attribute(key: str, value: Any) -> dict[str, Any]:
    """Return an attribute of a span."""
    return {"key": key, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}


def message(role: str, text: str) -> list[dict[str, Any]]:
    """Return a list of one message."""
    return [{"role": role, "parts": [{"type": "text", "content": text}]}]


def trace(number: int, asked: str, done: dict[str, Any]) -> dict[str, Any]:
    """Return the trace of one request: the agent, and the tools that it called."""
    begin = (START + 60 * number) * 10**9
    ids = {"traceId": f"{1000 + number}", "startTimeUnixNano": str(begin), "endTimeUnixNano": str(begin + 10**9)}
    agent = [
        attribute("gen_ai.operation.name", "invoke_agent"),
        attribute("gen_ai.agent.name", "clerk"),
        attribute("gen_ai.input.messages", message("user", asked)),
        attribute("gen_ai.output.messages", message("assistant", done["answer"])),
    ]
    spans = [{**ids, "spanId": "a", "name": "invoke_agent clerk", "attributes": agent}]
    for place, each in enumerate(done["tool_calls"]):
        call = [
            attribute("gen_ai.operation.name", "execute_tool"),
            attribute("gen_ai.tool.name", each["name"]),
            attribute("gen_ai.tool.call.arguments", each["arguments"]),
            attribute("gen_ai.tool.call.result", each["result"]),
        ]
        spans.append({**ids, "spanId": f"t{place}", "parentSpanId": "a", "name": each["name"], "attributes": call})
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def main() -> None:
    """Ask the agent, each time with another timetable, and print the traces."""
    rng = random.Random(52)  # noqa: S311 (the same requests each time, and no secret)
    for number, asked in enumerate(requests(rng), 1):
        with clerk.station(None) as db:
            timetable(rng, db)
            answered = clerk.agent([{"role": "user", "content": asked}], db)
        sys.stdout.write(json.dumps(trace(number, asked, answered)) + "\n")


if __name__ == "__main__":
    main()
