"""A failing case of every evaluator that ships, and what it shows."""

__all__ = ("CASES", "NOT_RECORDED", "VERDICTS", "WIDTHS", "failure", "recorded", "written")

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from evaluator_examples import EXAMPLES
from paths import ROOT

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.errors import LlmevalError
from pytest_llmeval.evaluators.checks.evaluator import Checks
from pytest_llmeval.judge.contract import Verdict
from pytest_llmeval.reports.failures import CasePlace, explain
from pytest_llmeval.run.execute import execute
from pytest_llmeval.run.job import CaseAnswer
from pytest_llmeval.scoring.case_scores import Limit
from pytest_llmeval.suite.registry import get_evaluator
from pytest_llmeval.suite.suite import Suite
from pytest_llmeval.tasks.retrieval.rules import GoldList

WIDTHS = (80, 140)
"""Of the terminals."""

_FOX = {"name": "The Fox", "archetype": "Sidekick"}
_HEN = {"name": "The Hen", "archetype": "Hero"}


def _story(characters: Sequence[Any], **event: Any) -> dict[str, Any]:
    relationship = {"agent": "The Fox", "target": "The Hen", "relationship_level1": "Adversarial"}
    found = {"id": 1, "relationships": [relationship | event.pop("relationship", {})], "action_layer": event}
    return {"characters": list(characters), "narrative_events": [found]}


def _case(expected: Any, prediction: Any, given: Any = None, **labels: str) -> Case:
    return Case("x", given, expected, prediction, labels, line=7)


_STORIES = _case(
    _story([_FOX, _HEN], category="conflict", type="chase"),
    _story([_HEN, {"name": "A Crow"}], category="conflict", type="talk", relationship={"relationship_level1": "Ally"}),
    "The fox chased the hen. The hen ran.",
)
_QUESTION = "Where did Bela paint the harbour?"
_Failing: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Limit], Case]
_OWN: Mapping[str, _Failing] = {
    "judge": ({"mode": "continuous"}, {"judge_score": Limit(0.8)}, _case("Orrin Bay", "Lumen", _QUESTION)),
    "judge_agreement": (
        {"mode": "continuous"},
        {"mae": Limit(max=0.1)},
        _case({"reference": "Orrin Bay", "human": [1.0, 0.8]}, "The bay of Orrin", _QUESTION),
    ),
    "pairwise": ({}, {"win_rate": Limit(0.5)}, _case("Orrin Bay", "Lumen", _QUESTION)),
    "checklist": (
        {"instructions": ("Greet the customer by name.", "Say when the parcel arrives.")},
        {"all_followed": Limit(1.0)},
        _case(None, "Hello Bela! It is on its way.", "Where is my parcel?"),
    ),
    "claims": (
        {"metrics": ("faithfulness", "factual_recall", "citation_support")},
        {"faithfulness": Limit(1.0), "factual_recall": Limit(0.4)},
        _case(
            "Refunds take 30 days. A receipt is needed.",
            "Refunds take 30 days [1]. They are free [4].",
            {
                "question": "How long do refunds take?",
                "contexts": ["We are open from nine to five.", "Refunds take 30 days."],
            },
        ),
    ),
    "checks": ({"checks": ({"contains": "30 days"}, {"max_words": 3})}, {}, _case(None, "Refunds take two weeks.")),
    "retrieval": (
        {"k": (3,), "tasks": {"docs": GoldList("gold", "id")}},
        {"docs_recall@3": Limit(1.0)},
        _case(["d4", "d9"], ["d1", "d2", "d4"], "harbour paintings"),
    ),
    "fact_check": (
        {"explanation": "omit"},
        {"verdict_accuracy": Limit(1.0)},
        _case(
            {"verdict": "Refuted", "justification": "No.", "evidence_sources": ["Harbour Office, 2023"]},
            {"verdict": "Supported", "justification": "It grew.", "evidence_sources": ["Gazette, 1999"]},
            "The harbour grew.",
        ),
    ),
    "emotion_cause": (
        {"subtask": 2},
        {"pair_f1": Limit(0.9)},
        _case(
            [["1_joy", "1"], ["2_anger", "1"], ["3_fear", "2"]],
            [["1_sadness", "1"], ["2_anger", "2"]],
            ["Hooray!", "Go away.", "Help!"],
        ),
    ),
    "narrative": ({}, {"overall_score": Limit(0.9)}, _STORIES),
    "narrative.characters": ({}, {"character_f1": Limit(0.9)}, _STORIES),
    "narrative.relationships": ({}, {"level1_accuracy": Limit(0.9)}, _STORIES),
    "narrative.action_layer": ({}, {"action_type_accuracy": Limit(0.9)}, _STORIES),
    "conversation": (
        {},
        {"turns": Limit(max=2)},
        _case(None, {"turns": 4, "stop": "max_turns", "messages": []}, {"messages": ["Hello"]}),
    ),
}


def _of_example(name: str) -> _Failing:
    """Return an example's case with the wrong answer, which must reach the best value of the first metric."""
    options, given, expected, _, wrong = EXAMPLES[name]
    metric = next(each for each in get_evaluator(name, **options).describe() if "[" not in each.name)
    limit = Limit(min=metric.high) if metric.higher_is_better else Limit(max=metric.low)
    return options, {metric.name: limit}, _case(expected, wrong, given)


CASES: Mapping[str, _Failing] = dict(
    sorted({**{name: _of_example(name) for name in EXAMPLES if name not in _OWN}, **_OWN}.items())
)
"""Evaluator to its options, the limits that its case misses, and the case.

An evaluator without one in `_OWN`, which shows more, fails with the wrong answer of its entry in `EXAMPLES`."""

NOT_RECORDED = {
    "semantic": "it runs a model",
    "narrative.sentiment": "it shows what `narrative.relationships` does",
    "narrative.text_span": "it shows what `narrative` does",
}
"""Evaluators without a recorded failure, with the reason."""


def _said(name: str, *items: Mapping[str, Any]) -> Verdict:
    return Verdict(0.5, details={name: items})


VERDICTS: Mapping[str, list[Verdict | LlmevalError]] = {
    "judge": [Verdict(0.2, "Another town is named.")],
    "judge_agreement": [Verdict(0.2, "The words differ.")],
    "claims": [
        _said("claims", {"claim": "Refunds take 30 days.", "sentence": 1}, {"claim": "They are free.", "sentence": 2}),
        _said("claims", {"claim": "Refunds take 30 days.", "sentence": 1}, {"claim": "A receipt is needed."}),
        _said("verdicts", {"supported": False, "reason": "It is about opening hours."}),
        _said(
            "verdicts",
            {"supported": True, "passages": [2], "reason": ""},
            {"supported": False, "passages": [], "reason": "No passage says what refunds cost."},
        ),
        _said(
            "verdicts",
            {"supported": True, "passages": [1], "reason": ""},
            {"supported": False, "passages": [], "reason": ""},
        ),
    ],
    "user_drift": [Verdict(0.0, "It speaks as the agent.")],
    "pairwise": [Verdict(0.0, "Another town is named."), Verdict(1.0, "Only one is right.")],
    "checklist": [
        Verdict(
            0.5,
            "",
            {"verdicts": [{"followed": True, "reason": ""}, {"followed": False, "reason": "No date is named."}]},
        )
    ],
}


def _evaluator(name: str, options: Mapping[str, Any]) -> Any:
    return Checks(**options) if name == "checks" else get_evaluator(name, **options)


def failure(name: str, width: int) -> str:
    """Return what a failing case of an evaluator shows."""
    options, limits, case = CASES[name]
    suite = Suite(
        "golden",
        Path("golden.eval.yaml"),
        evaluators={name: _evaluator(name, options)},
        cases=(case,),
        thresholds=limits,
    )
    answer = CaseAnswer(suite.cases[0], verdicts={name: [VERDICTS[name]]} if name in VERDICTS else {})
    execution = execute(suite, answer)
    assert execution.record.outcome == "failed", execution.record
    place = CasePlace("golden.eval.yaml", case.line)
    return explain(execution.case, execution.record, execution.unmet, place, width)


def written(width: int) -> str:
    """Return the failures of all evaluators."""
    return "\n".join(f"===== {name} =====\n{failure(name, width)}\n" for name in CASES)


def recorded(width: int) -> Path:
    """Return the file that holds the failures of all evaluators."""
    return ROOT / "tests" / "reports" / "failures" / f"width-{width}.txt"
