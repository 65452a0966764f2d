"""Runs of cases whose scores are given, and gates on them."""

__all__ = ("Answers", "binary", "gate", "gate_of", "judge", "noisy", "pairing", "run")

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pytest_llmeval import Case, Evaluator, Metric, Observation, Result, Sums, score
from pytest_llmeval.core.observation import FloatArray
from pytest_llmeval.gates.change import ChangeGate
from pytest_llmeval.gates.contract import GateResult
from pytest_llmeval.gates.drop import judge_together
from pytest_llmeval.gates.rules import RULES, read_gate
from pytest_llmeval.gates.statistics.case_statistics import CaseStatistics
from pytest_llmeval.gates.statistics.pairing import RunPairing


@dataclass(frozen=True)
class Answers(Evaluator):
    """Case scores as given: ``score`` and its opposite ``loss``, of which less is better; an error where asked."""

    name = "answers"
    version = "1"
    signed: str = ""

    def describe(self) -> Sequence[Metric]:
        return [Metric("score", signature=self.signed), Metric("loss", higher_is_better=False)]

    def measure(self, case: Case) -> Observation:
        if case.prediction is None:
            return Observation({}, undefined={"score": "no gold", "loss": "no gold"})
        if case.prediction == "error":
            raise ValueError(case.prediction)
        return Observation({"score": case.prediction, "n": 1})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        share = sums["score"] / sums["n"]
        return {"score": share, "loss": 1 - share}


def run(scores: Sequence[Any], labels: Sequence[str] = (), *, start: int = 0, signed: str = "") -> Result:
    cases = [
        Case(f"c{number + start:03}", prediction=each, labels={"talk": labels[number]} if labels else {})
        for number, each in enumerate(scores)
    ]
    return score(Answers(signed), cases, confidence=None)


def noisy(size: int, seed: int, shift: float = 0.0) -> list[float]:
    rng = np.random.default_rng(seed)
    return [float(each) for each in np.clip(rng.normal(0.6 - shift, 0.2, size), 0, 1)]


def pairing(here: Result, there: Result) -> RunPairing:
    return RunPairing(CaseStatistics.exact(here.records), CaseStatistics.exact(there.records), here.evaluators)


def judge(gate: ChangeGate, here: Result, there: Result, **said: str) -> GateResult:
    return judge_together([gate.examine(pairing(here, there), **said)])[0]


def gate(max_drop: float = 0.0, *, rule: str = "proven_drop", **others: Any) -> ChangeGate:
    rules: list[Any] = [each for each in RULES if each.tags == ("max_drop",) and each.rule == rule]
    made: ChangeGate = rules[0](**{"metric": "score", "max_drop": max_drop, **others})
    return made


def gate_of(entry: Mapping[str, Any]) -> Any:
    """The gate of a mapping form whose types are right."""
    return read_gate(entry, lambda kind, values: kind(**values))


def binary(worse: int, better: int, same: int) -> tuple[Result, Result]:
    """A run and its baseline."""
    return run([0] * worse + [1] * (better + same)), run([1] * worse + [0] * better + [1] * same)
