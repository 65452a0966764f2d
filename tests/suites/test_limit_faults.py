"""Thresholds and gates that no metric can meet, and texts that are no gates: what the user is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from project import load_text

from pytest_llmeval import Case, Evaluator, Metric, Observation, SuiteError, Sums
from pytest_llmeval.core import Fault, FloatArray
from pytest_llmeval.suites import Registry


@dataclass(frozen=True)
class Many(Evaluator):
    """Declares metrics of all ranges."""

    name = "many"

    def describe(self) -> Sequence[Metric]:
        return [
            Metric("mae", higher_is_better=False, high=None),
            Metric("kappa", low=-1),
            Metric("level", low=1, high=5),
            Metric("bias", low=None, high=None),
            Metric("loss", low=None, high=0),
            Metric("r[label]", higher_is_better=False),
        ]

    def measure(self, case: Case) -> Observation:
        return Observation({}, undefined={"mae": case.id})

    def summarize(self, sums: Sums) -> Mapping[str, FloatArray]:
        return {"mae": sums["mae"]}


def faults(folder: Path, top: str, case: str = "id: a") -> Sequence[Fault]:
    """Return the faults of a suite with some settings."""
    registry = Registry.installed()
    registry.register(Many)
    try:
        text = f"evaluators: [text: {{metrics: [f1, bleu1]}}, many]\n{top}\ncases: [{{{case}}}]\n"
        return load_text(text, folder, registry=registry).faults
    except SuiteError as error:
        return error.faults


@pytest.mark.parametrize(
    "top",
    [
        "thresholds: {{bias: {}}}",
        "thresholds: {{bias: {{max: {}}}}}",
        "gates: [{{metric: bias, max: {}}}]",
        "gates: [{{metric: bias, max_drop: {}}}]",
    ],
)
def test_a_whole_number_that_no_float_holds_is_no_limit_that_is_never_missed(tmp_path: Path, top: str) -> None:
    (found,) = faults(tmp_path, top.format(10**400))
    assert found.message == f"found the number 1{'0' * 59}..., expected a number below 1.8e308"


def fault(folder: Path, gate: str) -> Fault:
    """Return the one fault of a gate."""
    (found,) = faults(folder, f"gates:\n  - {gate}")
    return found


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ("f1: 80", "found 80, expected a number from 0 to 1, the range of f1 (did you mean 0.8?)"),
        ("f1: -0.1", "found -0.1, expected a number from 0 to 1, the range of f1"),
        ("f1: {max: 101}", "found 101, expected a number from 0 to 1, the range of f1"),
        ("kappa: -1.5", "found -1.5, expected a number from -1 to 1, the range of kappa"),
        ("level: 0.5", "found 0.5, expected a number from 1 to 5, the range of level"),
        ("level: 80", "found 80, expected a number from 1 to 5, the range of level"),
        ("mae: {max: -1}", "found -1, expected a number of at least 0, the range of mae"),
        ("loss: 0.5", "found 0.5, expected a number of at most 0, the range of loss"),
        (
            "'r[joy]': {max: 7}",
            "found 7, expected a number from 0 to 1, the range of r[joy] (did you mean 0.07?)",
        ),
        ("f1: 80%", "found the text '80%', expected a number or {min, max} (did you mean 0.8?)"),
        ("f1: '>= 0.5'", "found the text '>= 0.5', expected a number or {min, max} (did you mean {min: 0.5}?)"),
        ("mae: at most 3", "found the text 'at most 3', expected a number or {min, max} (did you mean {max: 3}?)"),
        ("f1: high", "found the text 'high', expected a number or {min, max}"),
    ],
)
def test_a_threshold_outside_the_range_of_its_metric_is_a_fault(tmp_path: Path, limit: str, message: str) -> None:
    (of_suite,) = faults(tmp_path, f"thresholds: {{{limit}}}")
    assert of_suite.message == message
    assert (of_suite.line, of_suite.column > len("thresholds: {")) == (2, True)
    (of_case,) = faults(tmp_path, "", f"id: a, thresholds: {{{limit}}}")
    assert (of_case.message, of_case.path[:19]) == (message, "cases[0].thresholds")


@pytest.mark.parametrize(
    "top",
    [
        "thresholds: {f1: 1, kappa: -1, level: 5, mae: {max: 1000}, bias: -7, loss: -7}",
        "gates: [f1 >= 0, mean(f1) <= 1, p10(level) >= 5, mae <= 80, bias >= -80, low(kappa) > -1, pass_rate >= 1]",
        "gates: [target_latency_s <= 80, {metric: f1, min: 0, max: 1}, {metric: kappa, max_drop: 2}]",
        "gates: [{metric: mae, max_drop: 80, max_drift: 100}]",
    ],
)
def test_limits_within_the_range_ends_included_are_none(tmp_path: Path, top: str) -> None:
    assert faults(tmp_path, top) == ()


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("f1 <= 80", "found 'f1 <= 80', expected a number from 0 to 1, the range of f1 (did you mean 'f1 <= 0.8'?)"),
        ("p10(f1) > -1", "found 'p10(f1) > -1', expected a number from 0 to 1, the range of f1"),
        ("median(level) == 6", "found 'median(level) == 6', expected a number from 1 to 5, the range of level"),
        (
            "mean(f1)>95",
            "found 'mean(f1)>95', expected a number from 0 to 1, the range of f1 (did you mean 'mean(f1)>0.95'?)",
        ),
        (
            "target_latency_s < -1",
            "found 'target_latency_s < -1', expected a number of at least 0, the range of target_latency_s",
        ),
    ],
)
def test_a_gate_outside_the_range_of_its_metric_is_a_fault(tmp_path: Path, gate: str, message: str) -> None:
    found = fault(tmp_path, gate)
    assert (found.message, found.path, found.line, found.column) == (message, "gates[0]", 3, 5)


@pytest.mark.parametrize(
    ("gate", "path", "column", "message"),
    [
        ("{metric: f1, min: 80}", "min", 23, "found 80, expected a number from 0 to 1, the range of f1"),
        ("{metric: mean(mae), max: -2}", "max", 30, "found -2, expected a number of at least 0, the range of mae"),
        ("{metric: f1, max_drop: 5}", "max_drop", 28, "found max_drop 5, expected at most 1: f1 lies from 0 to 1"),
        (
            "{metric: f1, max_drop: 0.1, max_drift: 3}",
            "max_drift",
            44,
            "found max_drift 3, expected at most 1: f1 lies from 0 to 1",
        ),
    ],
)
def test_limits_of_the_mapping_form_have_their_own_place(
    tmp_path: Path, gate: str, path: str, column: int, message: str
) -> None:
    found = fault(tmp_path, gate)
    assert found.message.startswith(message)
    assert (found.path, found.line, found.column) == (f"gates[0].{path}", 3, column)


@pytest.mark.parametrize(
    ("gate", "nearest"),
    [
        ("f1 => 0.5", "'f1 >= 0.5'"),
        ("f1 =< 0.5", "'f1 <= 0.5'"),
        ("f1 > = 0.5", "'f1 >= 0.5'"),
        ("f1 >== 0.5", "'f1 >= 0.5'"),
        ("f1 = 0.5", "'f1 == 0.5'"),
        ("f1 ≥ 0.5", "'f1 >= 0.5'"),
        ("f1 at least 0.5", "'f1 >= 0.5'"),
        ("f1 0.5", "'f1 >= 0.5'"),
        ("mae 3", "'mae <= 3'"),
        ("'f1: 0.5'", "'f1 >= 0.5'"),
        ("f1: 0.5", "'f1 >= 0.5'"),
        ("mae: 3", "'mae <= 3'"),
        ("f1: '> 50%'", "'f1 > 0.5'"),
        ("f1: {min: 0.5}", "{metric: f1, min: 0.5}"),
        ("f1>=.5,", "'f1 >= 0.5'"),
        ("f1 > 50%", "'f1 > 0.5'"),
        ("avg(f1) > 50", "'mean(f1) > 0.5'"),
        ("0.5 <= f1", "'f1 >= 0.5'"),
        ("avg(f1) >= 0.5", "'mean(f1) >= 0.5'"),
        ("mean f1 >= 0.5", "'mean(f1) >= 0.5'"),
        ("MEAN(f1) >= 0.5", "'mean(f1) >= 0.5'"),
        ("mean(f1 >= 0.5)", "'mean(f1) >= 0.5'"),
        ("p90 f1 >= 0.5", "'p90(f1) >= 0.5'"),
        ("mean(r[very happy]) =< 0.5", "'mean(r[very happy]) <= 0.5'"),
    ],
)
def test_a_wrong_form_is_answered_with_what_exists_and_the_nearest_right_form(
    tmp_path: Path, gate: str, nearest: str
) -> None:
    message = fault(tmp_path, gate).message
    assert "expected METRIC OPERATOR NUMBER" in message
    assert "(operators >= > <= < ==; statistics mean, median, min, max, low, high, p0 to p100)" in message
    assert message.endswith(f" (did you mean {nearest}?)")
    assert faults(tmp_path, f"gates: [{nearest}]") == ()


@pytest.mark.parametrize(
    "gate",
    [
        *("std(f1) >= 0.5", "f1 != 0.5", "f1 >= bleu1", "f1 >= 0.5 or mae <= 1", "f1", "x y z", "p101(f1) >= 0.5"),
        *("f1 >= 0.5 and bleu1 >= 0.1", "0.3 < f1 < 0.8", "f1 >= 0,5", "f1 >= 0.5 by kind"),
    ],
)
def test_what_is_near_to_nothing_or_to_several_gates_gets_no_suggestion(tmp_path: Path, gate: str) -> None:
    message = fault(tmp_path, gate).message
    assert "statistics mean, median" in message
    assert "did you mean" not in message


def test_a_wrong_statistic_in_the_mapping_form_is_answered_likewise(tmp_path: Path) -> None:
    found = fault(tmp_path, "{metric: avg(f1), min: 0.5}")
    assert found.path == "gates[0].metric"
    assert "(mean, median, min, max, low, high, p0 to p100)" in found.message
    assert found.message.endswith("(did you mean 'mean(f1)'?)")


def test_an_unknown_metric_in_a_right_form_is_still_called_unknown(tmp_path: Path) -> None:
    assert fault(tmp_path, "mean(f2) >= 0.5").message.startswith("unknown metric f2, did you mean f1?")
