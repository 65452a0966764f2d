"""Verdicts of tools in Python, by an interpreter that has them: ``python python_tools.py TOOL INPUT OUTPUT``.

The input holds pairs of a construct and answers, the output a text of T, F and E for each. It imports nothing of ours.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any


def pydantic_evals(construct: Any) -> Callable[[Any], bool]:
    from datetime import timedelta

    from pydantic_evals import evaluators

    ((name, arguments),) = construct.items()
    if name == "EqualsExpected":
        expected, evaluator = arguments["expected_output"], evaluators.EqualsExpected()
    else:
        expected, evaluator = None, getattr(evaluators, name)(**arguments)

    def verdict(answer: Any) -> bool:
        seconds = timedelta(milliseconds=answer).total_seconds() if name == "MaxDuration" else 0
        found = evaluator.evaluate(SimpleNamespace(output=answer, expected_output=expected, duration=seconds))
        return found is True or getattr(found, "value", False) is True

    return verdict


def inspect_ai(construct: Any) -> Callable[[Any], bool]:
    from inspect_ai import scorer

    ((name, target),) = construct.items()
    score = getattr(scorer, name)()

    def verdict(answer: Any) -> bool:
        state = SimpleNamespace(output=SimpleNamespace(completion=answer))
        found = asyncio.run(score(state, scorer.Target(target)))
        return found.value in ("C", 1, 1.0)

    return verdict


def openai_evals(construct: Any) -> Callable[[Any], bool]:
    """Return what the documentation of string checks says."""
    ((name, ideal),) = construct.items()
    checks: dict[str, Callable[[str], bool]] = {
        "eq": lambda answer: answer == ideal,
        "ne": lambda answer: answer != ideal,
        "like": lambda answer: ideal in answer,
        "ilike": lambda answer: ideal.lower() in answer.lower(),
    }
    return checks[name]


def deepeval(construct: Any) -> Callable[[Any], bool]:
    os.environ |= {"DEEPEVAL_TELEMETRY_OPT_OUT": "YES", "OPENAI_API_KEY": "unused"}
    from deepeval import metrics
    from deepeval.test_case import LLMTestCase, ToolCall

    ((name, value),) = construct.items()
    name, _, option = name.rstrip(")").partition("(")
    if name == "ToolCorrectnessMetric":
        metric = metrics.ToolCorrectnessMetric(threshold=1, async_mode=False, **({option: True} if option else {}))
        expected = [ToolCall(name=each["name"]) for each in value["expected"]]
    else:
        metric = getattr(metrics, name)(*([value] if name == "PatternMatchMetric" else []))

    def verdict(answer: Any) -> bool:
        if name == "ToolCorrectnessMetric":
            called = [ToolCall(name=each["name"]) for each in answer]
            case = LLMTestCase(input="x", actual_output="y", tools_called=called, expected_tools=expected)
        else:
            case = LLMTestCase(input="x", actual_output=answer, expected_output=value)
        metric.error = None  # of an earlier answer, which it keeps
        metric.measure(case, _show_indicator=False)
        return bool(metric.is_successful())

    return verdict


def agentevals(construct: Any) -> Callable[[Any], bool]:
    from agentevals.trajectory.match import create_trajectory_match_evaluator

    ((mode, value),) = construct.items()
    evaluator = create_trajectory_match_evaluator(trajectory_match_mode=mode, tool_args_match_mode=value["arguments"])

    def messages(calls: Any) -> Any:
        functions = [{"name": each["name"], "arguments": json.dumps(each["arguments"])} for each in calls]
        return [{"role": "assistant", "content": "", "tool_calls": [{"function": each}]} for each in functions]

    expected = value["expected"]
    return lambda calls: bool(evaluator(outputs=messages(calls), reference_outputs=messages(expected))["score"])


def autoevals(construct: Any) -> Callable[[Any], bool]:
    import autoevals as tool

    ((name, value),) = construct.items()
    if name == "ValidJSON":
        return lambda answer: tool.ValidJSON().eval(answer, value).score == 1
    if name == "Levenshtein":
        return lambda answer: tool.Levenshtein().eval(answer, value["to"]).score >= value["min_similarity"]
    return lambda answer: tool.ExactMatch().eval(answer, value).score == 1


def ragas(construct: Any) -> Callable[[Any], bool]:
    os.environ["RAGAS_DO_NOT_TRACK"] = "true"
    from ragas.metrics import collections

    ((name, value),) = construct.items()
    metric, limit = getattr(collections, name)(), 1.0
    if name == "NonLLMStringSimilarity":
        value, limit = value["to"], value["min_similarity"]
    return lambda answer: asyncio.run(metric.ascore(reference=value, response=answer)).value >= limit


TOOLS = {
    "agentevals": agentevals,
    "autoevals": autoevals,
    "deepeval": deepeval,
    "ragas": ragas,
    "pydantic-evals": pydantic_evals,
    "inspect-ai": inspect_ai,
    "openai-evals": openai_evals,
}


def main(tool: str, source: Path, target: Path) -> None:
    rows = []
    for construct, answers in json.loads(source.read_text(encoding="utf-8")):
        verdict = TOOLS[tool](construct)
        row = ""
        for each in answers:
            try:
                row += "T" if verdict(each) else "F"
            except Exception:  # noqa: BLE001 (whatever a tool raises is its verdict)
                row += "E"
        rows.append(row)
    name = "documentation" if tool == "openai-evals" else version(tool)
    target.write_text(json.dumps({"version": name, "rows": rows}), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
