"""What an evaluator declares to read, and the class attributes by which earlier versions declared it."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from pytest_llmeval import Case, Evaluator, Metric, Neighbours, Observation, Reads
from pytest_llmeval.core.views import Reading


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


def test_each_old_attribute_becomes_a_field_and_the_warning_names_the_new_form() -> None:
    with pytest.warns(DeprecationWarning, match="expected reads") as caught:

        class Own(Length):
            part = "tool_calls"
            second_part = "messages"
            reads_objects = True
            reads_records = True
            reads_lists = True
            reads_expected = True

    assert Own.reads == Reads("tool_calls", "messages", (), objects=True, records=True, lists=True, expected=True)
    (warning,) = caught
    assert str(warning.message).startswith(
        f"{Own.__qualname__}: found part and second_part and reads_objects and reads_records and reads_lists and "
        "reads_expected, expected reads = Reads(part='tool_calls', second_part='messages', objects=True, records=True, "
        "lists=True, expected=True); "
    )
    assert warning.filename == __file__


def test_own_keys_of_earlier_versions_still_find_the_answer_of_other_objects() -> None:
    with pytest.warns(DeprecationWarning, match="own_keys=\\('results',\\)"):

        class Own(Length):
            own_keys = ("results",)

    reading = Reading.for_evaluator(Own())
    assert reading.view(Case("a", prediction={"answer": "abc"})).prediction == "abc"
    assert reading.view(Case("a", prediction={"results": [1], "answer": "abc"})).prediction["results"] == [1]
    assert Own().evaluate({"answer": "abc"}, None)["length"] == 3


def test_a_subclass_adds_to_what_its_parent_reads() -> None:
    @dataclass(frozen=True)
    class Parent(Length):
        reads = Reads("contexts", lists=True)

    with pytest.warns(DeprecationWarning, match="found reads_expected, expected reads = Reads"):

        class Child(Parent):
            reads_expected = True

    assert Child.reads == Reads("contexts", lists=True, expected=True)


def test_attributes_of_a_mixin_count() -> None:
    class Contexts:
        part = "contexts"

    with pytest.warns(DeprecationWarning, match="found part, expected reads"):

        class Own(Contexts, Length):
            pass

    assert Own.reads == Reads("contexts")


def test_an_option_of_the_old_name_decides_for_each_evaluator() -> None:
    with pytest.warns(DeprecationWarning, match="found part, expected reads"):

        @dataclass(frozen=True)
        class Own(Length):
            part: str = "answer"  # type: ignore[misc]

    case = Case("a", prediction={"answer": "abc", "contexts": ["x"]})
    assert Reading.for_evaluator(Own()).view(case).prediction == "abc"
    assert Reading.for_evaluator(Own("contexts")).view(case).prediction == ["x"]


def test_a_class_with_slots_is_converted() -> None:
    with pytest.warns(DeprecationWarning, match="found part, expected reads"):

        @dataclass(frozen=True, slots=True)
        class Own(Length):
            part = "contexts"

    assert Own().reads == Own.reads == Reads("contexts")


def test_the_new_form_takes_precedence_and_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class Both(Length):
            part = "contexts"
            reads = Reads("answer")

    assert Both.reads == Reads("answer")


def test_a_subclass_of_a_converted_class_warns_no_more() -> None:
    with pytest.warns(DeprecationWarning, match="found part, expected reads"):

        class Parent(Length):
            part = "contexts"

    with warnings.catch_warnings():
        warnings.simplefilter("error")

        class Child(Parent):
            pass

    assert Child.reads == Child().reads == Reads("contexts")


def test_an_evaluator_that_asks_nothing_has_defaults_for_everything_about_judges() -> None:
    evaluator, case = Length(), Case("a", prediction="abc")
    assert not evaluator.asks
    assert not evaluator.asks_judge
    assert evaluator.own_model is None
    assert not evaluator.questions(case)
    assert not evaluator.follow_up(case, [])
    assert evaluator.most_follow_ups(case) == 0
    assert evaluator.panel_fault("mean") is None
    assert evaluator.measure_judged(case, []) == evaluator.measure(case)


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
