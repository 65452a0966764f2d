"""An installation without extras: what needs one says which, with its place, and all else works."""

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

PLUGIN = """\
import sys

LACKING = ("genai_prices", "jsonschema", "py3langid", "referencing")


class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, *rest):
        return None if name.partition(".")[0] in LACKING else self.finder.find_spec(name, *rest)


assert not [name for name in LACKING if name in sys.modules]
sys.meta_path[:] = map(Without, sys.meta_path)
"""
CASE = {"id": "a", "input": "a", "expected": "a", "prediction": "a"}
SCHEMA = {"type": "object"}


@pytest.fixture
def light(project: "Project", monkeypatch: pytest.MonkeyPatch) -> "Project":
    project.write("without.py", PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(project.path))
    return project


def test_what_needs_an_extra_is_a_fault_that_names_it_and_nothing_else_is_lost(light: "Project") -> None:
    light.suite("fine.eval.yaml", [CASE])
    light.suite("language.eval.yaml", [CASE], checks=[{"language": "en"}])
    light.suite("schema.eval.yaml", [CASE], checks=[{"json_schema": SCHEMA}])
    light.suite("json.eval.yaml", [CASE], checks=[{"is_json": SCHEMA}])
    tools = {"tools": {"order": "in_order", "schemas": {"find": SCHEMA}}}
    light.suite("tools.eval.yaml", [CASE], evaluators=[tools], gates=["tools_valid >= 1"])
    ran = light.run("-p", "without", cold=True)
    assert ran.code == 1
    assert ran.outcomes("fine") == {"a": "passed"}
    for place, what, extra in (
        (r"language.eval.yaml:\d+:\d+  checks\[0\].language", "the check 'language'", "language"),
        (r"schema.eval.yaml:\d+:\d+  checks\[0\].json_schema", "a check by JSON Schema", "schema"),
        (r"json.eval.yaml:\d+:\d+  checks\[0\].is_json", "a check by JSON Schema", "schema"),
        (r"tools.eval.yaml:\d+:\d+  evaluators\[0\].tools", "the evaluator 'tools' with schemas", "schema"),
    ):
        needs = rf"{what} needs the extra '{extra}'.*: pip install 'pytest-llmeval-suite\[{extra}\]'"
        assert len(re.findall(f"{place}: {needs}", ran.text)) == 1, (place, ran.text)
    assert "unknown metric" not in ran.text


@pytest.mark.release
def test_an_unknown_price_says_what_brings_published_ones(light: "Project") -> None:
    top = {"target": "bot:answer", "parts": {"answer": "answer", "usage": "usage"}}
    light.write(
        "bot.py",
        """\
        def answer(text):
            usage = {"input_tokens": 1000, "output_tokens": 1000, "model": "openai:gpt-4o-mini"}
            return {"answer": text, "usage": usage}
        """,
    )
    case = {"id": "a", "input": "a", "expected": "a"}
    light.suite("s.eval.yaml", [case], gates=["target_cost_usd <= 1"], **top)
    light.suite("c.eval.yaml", [case], checks=[{"cost_usd": 1}], **top)
    light.suite(
        "j.eval.yaml",
        [case],
        judge={"model": "openai:gpt-4o-mini"},
        evaluators=[{"judge": {"mode": "continuous"}}],
        **top,
    )
    install = "published prices need the extra 'prices': pip install 'pytest-llmeval-suite[prices]'"
    ran = light.run("-p", "without", "--llmeval-budget=usd=1", cold=True)
    assert install in ran.suites["s"]["gates"][0]["reason"]
    assert install in ran.suites["c"]["cases"][0]["reason"]
    assert f"under 'judge'; {install}" in ran.text
    known = light.run("s.eval.yaml", cold=True)
    assert (known.code, known.gates("s")) == (0, {"target_cost_usd <= 1": "passed"})
    assert "extra" not in known.text
