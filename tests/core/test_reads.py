"""What an evaluator declares to read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_llmeval import Case, Evaluator, Metric, Neighbours, Observation, Reads
from pytest_llmeval.core import Reading
from pytest_llmeval.judges import JudgedEvaluator


@dataclass(frozen=True)
class Length(Evaluator):
    """Counts items; its subclasses declare what they read."""

    name = "length"

    def describe(self) -> Sequence[Metric]:
        return [Metric("length", high=None)]

    def measure(self, case: Case) -> Observation:
        return Observation({"length": len(case.prediction), "n": 1})

    def summarize(self, sums: Any) -> Mapping[str, Any]:
        return {"length": sums["length"] / sums["n"]}


def test_own_keys_still_find_the_answer_of_other_objects() -> None:
    class Own(Length):
        reads = Reads(own_keys=("results",))

    reading = Reading.for_evaluator(Own())
    assert reading.view(Case("a", prediction={"answer": "abc"})).prediction == "abc"
    assert reading.view(Case("a", prediction={"results": [1], "answer": "abc"})).prediction["results"] == [1]
    assert Own().evaluate({"answer": "abc"}, None)["length"] == 3


def test_what_is_asked_of_a_judge_is_declared_by_evaluators_that_ask_one() -> None:
    evaluator = Length()
    assert not evaluator.asks
    own = {name for name in vars(JudgedEvaluator) if not name.startswith("_")} - set(dir(Evaluator))
    assert {"questions", "follow_up", "own_model", "measure_judged"} <= own
    assert not [name for name in own if hasattr(evaluator, name)]


def test_repeats_are_reduced_to_the_mean_of_their_counts_by_default() -> None:
    repeats = [Observation({"length": 1, "n": 1}), Observation({"length": 4}, {"second": True}, malformed="no list")]
    assert Length().reduce(repeats) == Observation({"length": 2.5, "n": 0.5}, malformed="repeat 2: no list")


def test_neighbours_know_the_options_of_the_first_evaluator_of_a_name() -> None:
    @dataclass(frozen=True)
    class Sized(Length):
        unit: str = "words"

    near = Neighbours(evaluators={"a": Sized("letters"), "b": Sized()})
    assert near.option("length", "unit", None) == "letters"
    assert near.option("length", "size", 3) == 3
    assert near.option("other", "unit", 3) == 3
