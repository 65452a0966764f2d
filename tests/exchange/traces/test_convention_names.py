"""The names of conventions for generative AI that are written and read are those that are published."""

import re
from pathlib import Path

from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes

import pytest_llmeval

NOT_ATTRIBUTES = {
    "gen_ai.evaluation.result": "an event",
    "gen_ai.client.inference.operation.details": "an event",
    "gen_ai.choice": "an event of earlier versions",
    "gen_ai.content.prompt": "an event of earlier versions",
    "gen_ai.content.completion": "an event of earlier versions",
    "gen_ai.thread.id": "written by other libraries",
    "gen_ai.usage.cost": "written by other libraries",
}
MODULES = ("exchange/traces/_conventions.py", "exchange/traces/__init__.py", "exchange/traces/_otel.py")


def published() -> set[str]:
    found = [*vars(gen_ai_attributes).values(), *vars(error_attributes).values()]
    return {each for each in found if isinstance(each, str)}


def test_names_of_attributes_are_those_of_the_published_registry() -> None:
    package = Path(pytest_llmeval.__file__).parent
    written = "\n".join((package / each).read_text(encoding="utf-8") for each in MODULES)
    names = set(re.findall(r"gen_ai\.[a-z_.]*[a-z_]\b(?!\.)", written))
    assert {"gen_ai.evaluation.score.value", "gen_ai.input.messages"} <= names
    prefixes = {each for each in names if any(other.startswith(f"{each}.") for other in published())}
    assert names - published() - prefixes == set(NOT_ATTRIBUTES)


def test_what_is_sent_is_published() -> None:
    telemetry = Path(pytest_llmeval.__file__).parent / "exchange" / "traces" / "_otel.py"
    sent = set(re.findall(r'"((?:gen_ai\.evaluation|error)\.[a-z_.]+)"', telemetry.read_text(encoding="utf-8")))
    assert len(sent) >= 5
    assert sent - {"gen_ai.evaluation.result"} <= published()
