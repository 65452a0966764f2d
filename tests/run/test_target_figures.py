"""What an answer took: read from its usage, priced by its model, held against limits, and the same in replays."""

from pathlib import Path
from typing import Any

import pytest
from project import load_text

from pytest_llmeval.core import Case, Parts, SuiteError, TargetUsage
from pytest_llmeval.judges import Price
from pytest_llmeval.run._execute import execute, execute_repeats
from pytest_llmeval.run._job import CaseAnswer, usage_of_target, with_figures
from pytest_llmeval.targets import Recordings

USED = {"answer": "x", "usage": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.25}}


@pytest.mark.parametrize(
    ("prediction", "usage"),
    [
        (USED, TargetUsage(10, 5, 0.25)),
        ({"usage": {"prompt_tokens": 3, "completion_tokens": 4}}, TargetUsage(3, 4)),
        ({"usage": {"request_tokens": 3, "response_tokens": 4}}, TargetUsage(3, 4)),
        ({"usage": {"input_tokens": True, "output_tokens": -1, "cost_usd": "free"}}, TargetUsage()),
        ({"usage": {"input_tokens": 3, "cost_usd": 0}}, TargetUsage(3, None, 0)),
        ({"usage": {"input_tokens": 3, "cost": 0.5}}, TargetUsage(3, None, 0.5)),
        ({"usage": {"cost_usd": 0.25, "cost": 0.5}}, TargetUsage(None, None, 0.25)),
        ({"usage": "10 tokens"}, TargetUsage()),
        ({"answer": "x"}, None),
        ("x", None),
    ],
)
def test_usage_is_read_from_its_part_and_what_is_no_amount_is_unknown(prediction: Any, usage: Any) -> None:
    assert usage_of_target(Parts(), prediction) == usage


def test_usage_is_where_the_suite_says() -> None:
    assert usage_of_target(Parts(usage="meta.usage"), {"meta": USED}) == TargetUsage(10, 5, 0.25)
    assert usage_of_target(Parts(usage="[-1].usage"), [{}, USED]) == TargetUsage(10, 5, 0.25)
    assert usage_of_target(Parts(usage="length(n)"), {"n": 3}) == TargetUsage()


@pytest.mark.parametrize("model", ["openai:gpt-4o", "gpt-4o"])
def test_a_model_with_a_published_price_gives_the_cost(model: str) -> None:
    tokens = {"input_tokens": 1_000_000, "output_tokens": 0, "model": model}
    usage = usage_of_target(Parts(), {"usage": tokens})
    assert usage is not None
    assert usage.cost_usd is not None
    assert usage.cost_usd > 0
    assert usage.cost_usd == Price.of_model("gpt-4o").of_tokens(1_000_000, 0)
    assert usage_of_target(Parts(), {"usage": {**tokens, "cost_usd": 7}}).cost_usd == 7  # type: ignore[union-attr]  # it has usage


def test_a_model_without_a_published_price_has_no_cost() -> None:
    tokens = {"input_tokens": 10, "output_tokens": 5, "model": "nobody:has-this"}
    assert usage_of_target(Parts(), {"usage": tokens}) == TargetUsage(10, 5)


def test_the_cost_that_was_recorded_is_the_cost_of_a_replay() -> None:
    tokens = {"input_tokens": 10, "output_tokens": 5, "model": "gpt-4o"}
    assert usage_of_target(Parts(), {"usage": tokens}, 0.125) == TargetUsage(10, 5, 0.125)


def test_what_an_answer_took_is_among_the_parts_of_its_case() -> None:
    case = with_figures(Case("a", prediction=USED), Parts(), {"latency_s": 0.5})
    assert (case.parts["latency_s"], case.parts["cost_usd"], case.parts["answer"]) == (0.5, 0.25, "x")
    plain = Case("a", prediction="x")
    assert with_figures(plain, Parts()) is plain
    assert "latency_s" not in plain.parts


@pytest.mark.parametrize("prediction", ["x", USED])
def test_latency_and_cost_are_recorded_with_an_answer_and_read_back(tmp_path: Path, prediction: Any) -> None:
    case = Case("a", "q")
    answered = with_figures(case.answered(prediction), Parts(), {"latency_s": 0.5})
    file = tmp_path / "p.jsonl"
    Recordings.open(file, "auto").update([Recordings.row("s", "", answered)])
    read = Recordings.open(file, "replay")
    again = with_figures(case.answered(read.get("s", "", case)), Parts(), read.figures("s", "", case))
    assert dict(again.parts) == dict(answered.parts)
    assert Recordings.row("s", "", again) == Recordings.row("s", "", answered)


def test_a_recording_without_figures_is_read(tmp_path: Path) -> None:
    case = Case("a", "q")
    row = Recordings.row("s", "", case.answered("x"))
    assert "figures" not in row
    Recordings.open(tmp_path / "p.jsonl", "auto").update([row])
    assert Recordings.open(tmp_path / "p.jsonl", "replay").figures("s", "", case) == {}


def test_figures_that_are_no_numbers_are_a_fault_of_the_recording(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(
        '{"case": "a", "figures": {"latency_s": "1"}, "input": "0", "prediction": "x", "suite": "s", "variant": ""}\n'
    )
    with pytest.raises(SuiteError, match="expected an object with suite"):
        Recordings.open(file, "auto")


SUITE = """\
evaluators: [text: {metrics: [exact_match]}]
thresholds: {target_latency_s: {max: 8}, target_cost_usd: {max: 0.02}, target_tokens: {max: 100}}
cases: [{id: a, expected: x}]
"""


def answer(suite: Any, prediction: Any, **known: float) -> CaseAnswer:
    return CaseAnswer(with_figures(suite.cases[0].answered(prediction), suite.parts, known))


def test_thresholds_limit_what_the_answer_to_a_case_took(tmp_path: Path) -> None:
    suite = load_text(SUITE, tmp_path)
    done = execute(suite, answer(suite, USED, latency_s=9))
    assert done.record.outcome == "failed"
    assert done.record.reason == "target_latency_s 9.0000, limit <= 8; target_cost_usd 0.2500, limit <= 0.02"
    assert (done.record.target_seconds, done.record.target_usage) == ([9], [TargetUsage(10, 5, 0.25)])


def test_a_limit_on_usage_that_a_prediction_does_not_tell_is_an_error_of_its_case(tmp_path: Path) -> None:
    suite = load_text(SUITE, tmp_path)
    done = execute(suite, answer(suite, "x"))
    assert done.record.outcome == "errored"
    assert done.record.reason is not None
    assert done.record.reason.startswith("target_tokens: the prediction says no input_tokens and output_tokens")
    assert "target_cost_usd: the prediction says neither cost_usd nor tokens of a model" in done.record.reason


def test_a_limit_is_on_the_mean_of_repeats(tmp_path: Path) -> None:
    suite = load_text(f"repeats: 2\n{SUITE}", tmp_path)
    cheap, dear = (
        {"answer": "x", "usage": {"input_tokens": 1, "output_tokens": 1, "cost_usd": cost}} for cost in (0.011, 0.033)
    )
    done = execute_repeats(suite, [answer(suite, cheap, latency_s=1), answer(suite, cheap, latency_s=2)])
    assert done.record.outcome == "passed"
    done = execute_repeats(suite, [answer(suite, cheap, latency_s=1), answer(suite, dear, latency_s=2)])
    assert done.record.reason == "target_cost_usd 0.0220, limit <= 0.02"
    assert done.record.target_seconds == [1, 2]


def test_a_bare_number_is_no_limit_on_what_should_be_small(tmp_path: Path) -> None:
    text = SUITE.replace("{target_latency_s: {max: 8}, target_cost_usd: {max: 0.02}, ", "{target_latency_s: 8, ")
    with pytest.raises(SuiteError, match=r"lower is better here, expected \{max: 8\}"):
        load_text(text, tmp_path)
