"""Conversational-memory QA in Python: driving an agent, and aggregating its answers."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval import MissingExtraError, SuiteError, get_evaluator
from pytest_llmeval.tasks.memory_qa import (
    ALL_METRICS,
    EvalResult,
    QAPair,
    QuestionType,
    Sample,
    compute_metrics,
    run_eval,
    token_f1,
)
from pytest_llmeval.tasks.memory_qa import _qa as qa

CHEAP = ["judge_score", "exact_match", "f1"]


def answered(prediction: str, truth: str, kind: str = "temporal", number: int = 0) -> EvalResult:
    return EvalResult("s1", f"q{number}", QuestionType(kind), "When?", truth, prediction)


RESULTS = [
    answered("May 2022", "May 2022"),
    answered("in May", "June", number=1),
    answered("a dog and a cat", "dog, cat", "multi_hop", 2),
]


class Memory:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def reset(self) -> None:
        self.seen.append("reset")


class Agent:
    def __init__(self) -> None:
        self.memory = Memory()

    def ingest_sample(self, sample: Sample) -> None:
        self.memory.seen.append(sample.sample_id)

    def answer(self, question: str) -> str:
        self.memory.seen.append(question)
        return question.upper()


SAMPLES = [
    Sample(
        "s1",
        ["hello"],
        [QAPair("1", "who", "me", QuestionType.SINGLE_HOP), QAPair("2", "when", "now", QuestionType.TEMPORAL)],
    ),
    Sample("s2", [], []),
]


def test_an_agent_forgets_reads_and_answers_sample_by_sample() -> None:
    agent = Agent()
    results = run_eval(SAMPLES, agent, show_progress=False)
    assert agent.memory.seen == ["reset", "s1", "who", "when", "reset", "s2"]
    assert results[0] == EvalResult("s1", "1", QuestionType.SINGLE_HOP, "who", "me", "WHO")
    assert [each.question_id for each in results] == ["1", "2"]


@pytest.mark.parametrize("shown", [True, False])
def test_the_progress_bar_goes_to_standard_error_and_can_be_turned_off(
    shown: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_eval(iter(SAMPLES), Agent(), show_progress=shown)
    out, err = capsys.readouterr()
    assert out == ""
    assert ("samples" in err) is shown


def test_results_survive_json() -> None:
    again = [EvalResult(**row) for row in json.loads(json.dumps([asdict(each) for each in RESULTS]))]
    assert again == RESULTS
    assert compute_metrics(again, [1, 0, 1], metrics=CHEAP) == compute_metrics(RESULTS, [1, 0, 1], metrics=CHEAP)


def test_metrics_are_means_overall_and_by_type_with_counts() -> None:
    assert compute_metrics(RESULTS, [1.0, None, 0.5], metrics=CHEAP) == {
        "overall": {"judge_score": 0.75, "exact_match": 1 / 3, "f1": pytest.approx((1 + 0 + 4 / 7) / 3)},
        "by_type": {
            "temporal": {"judge_score": 1.0, "exact_match": 0.5, "f1": 0.5, "count": 2},
            "multi_hop": {"judge_score": 0.5, "exact_match": 0.0, "f1": pytest.approx(4 / 7), "count": 1},
        },
        "judged": {"overall": 2, "by_type": {"temporal": 1, "multi_hop": 1}},
    }


def test_results_without_a_score_are_counted_and_answers_without_a_token_are_not_among_them() -> None:
    unseen = [answered("Paris", "巴黎"), answered("巴黎", "Paris"), answered("Paris", "Paris")]
    found = compute_metrics(unseen, [1.0] * 3, metrics=["f1", "rouge1"], tokenizer="words")
    assert found["undefined"] == {"rouge1": 1}
    assert found["overall"]["rouge1"] == 1 / 2


def test_types_stand_in_the_order_of_their_first_result() -> None:
    kinds = ["multi_hop", "temporal", "adversarial", "temporal"]
    results = [answered("x", "x", kind) for kind in kinds]
    assert list(compute_metrics(results, [1] * 4, metrics=["f1"])["by_type"]) == [
        "multi_hop",
        "temporal",
        "adversarial",
    ]


def test_a_mean_over_no_judge_score_is_none() -> None:
    assert compute_metrics(RESULTS[:1], [None], metrics=["judge_score"])["overall"] == {"judge_score": None}


def test_without_wordnet_the_other_metrics_are_computed_and_meteor_says_why_not() -> None:
    wanted = [name for name in ALL_METRICS if name not in ("bert_f1", "sbert_similarity")]
    found = compute_metrics(RESULTS, [1, 0, 1], metrics=wanted, wordnet="no-such-folder")
    assert [name for name, value in found["overall"].items() if value is None] == ["meteor"]
    assert found["by_type"]["temporal"]["meteor"] is None
    assert found["by_type"]["temporal"]["bleu1"] is not None
    assert list(found["missing"]) == ["meteor"]
    assert "the WordNet file data.noun of METEOR is missing in 'no-such-folder'" in found["missing"]["meteor"]
    alone = compute_metrics(RESULTS, [1, 0, 1], metrics=["meteor"], wordnet="no-such-folder")
    assert (alone["overall"], list(alone["missing"])) == ({"meteor": None}, ["meteor"])
    assert "missing" not in compute_metrics(RESULTS, [1, 0, 1], metrics=CHEAP)


def test_without_results_all_metrics_are_zero_and_there_is_no_type() -> None:
    assert compute_metrics([], []) == {"overall": dict.fromkeys(ALL_METRICS, 0.0), "by_type": {}}
    assert compute_metrics([], [], metrics=["f1"]) == {"overall": {"f1": 0.0}, "by_type": {}}


def test_there_are_twelve_metrics() -> None:
    assert len(set(ALL_METRICS)) == 12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metrics": ["f1", "rouge9"]}, "unknown metric rouge9, did you mean rougeL"),
        ({"judge_scores": [1.0]}, "found 1 judge scores for 3 results, expected one for each"),
        ({"metrics": ["f1"], "tokeniser": "words"}, "unknown option tokeniser, did you mean tokenizer"),
    ],
)
def test_what_cannot_be_computed_is_told(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compute_metrics(RESULTS, **{"judge_scores": [1.0] * 3, "metrics": CHEAP, **arguments})


def test_an_option_reaches_the_evaluator_that_knows_it() -> None:
    results = [answered("ab", "a b")]
    plain = compute_metrics(results, [1], metrics=["f1"], sbert_model="not used here")
    characters = compute_metrics(results, [1], metrics=["f1"], tokenizer="characters", bert_model="nor this")
    assert (plain["overall"]["f1"], characters["overall"]["f1"]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("metric", "package"), [("bert_f1", "bert_score"), ("sbert_similarity", "sentence_transformers")]
)
def test_a_semantic_metric_without_its_package_is_an_import_error(
    monkeypatch: pytest.MonkeyPatch, metric: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'pytest-llmeval-suite\[semantic\]'") as caught:
        compute_metrics(RESULTS, [1, 1, 1], metrics=["f1", metric])
    assert isinstance(caught.value, MissingExtraError)


@pytest.mark.parametrize(
    ("prediction", "truth", "value"),
    [
        ("Paris, France", "Paris", 2 / 3),
        ("PARIS!", "paris", 1.0),
        ("a a b", "a b b", 2 / 3),
        ("Lyon", "Paris", 0.0),
        ("", "Paris", 0.0),
        ("", "", 0.0),
        (".", ",", 0.0),
    ],
)
def test_token_f1_compares_bags_of_words(prediction: str, truth: str, value: float) -> None:
    assert token_f1(prediction, truth) == pytest.approx(value)


@given(st.text(alphabet="ab .京"), st.text(alphabet="ab .京"))
def test_token_f1_is_symmetric_and_between_0_and_1(left: str, right: str) -> None:
    assert token_f1(left, right) == token_f1(right, left)
    assert 0 <= token_f1(left, right) <= 1


def test_the_metrics_are_those_of_the_evaluators() -> None:
    text = get_evaluator("text", metrics=list(qa._TEXT)).describe()
    semantic = get_evaluator("semantic").describe()
    assert ("judge_score", *(metric.name for metric in (*text, *semantic))) == ALL_METRICS


class Failing(Agent):
    """Fails on what it is told to, and notes what it was asked."""

    def __init__(self, *bad: str) -> None:
        super().__init__()
        self.bad = bad

    def ingest_sample(self, sample: Sample) -> None:
        super().ingest_sample(sample)
        if sample.sample_id in self.bad:
            raise RuntimeError("no memory")

    def answer(self, question: str) -> str:
        if question in self.bad:
            raise ValueError("no idea")
        return super().answer(question)


TWO = [
    SAMPLES[0],
    Sample("s2", [], [QAPair("1", "who", "you", QuestionType.SINGLE_HOP)]),
]


def test_an_exception_of_the_agent_costs_the_questions_that_it_concerns() -> None:
    results = run_eval([*TWO, SAMPLES[0]], Failing("when", "s2"), show_progress=False)
    assert [(each.prediction, each.error) for each in results] == [
        ("WHO", ""),
        ("", "ValueError: no idea"),
        ("", "RuntimeError: no memory"),
        ("WHO", ""),
        ("", "ValueError: no idea"),
    ]


def test_keys_in_the_exceptions_of_an_agent_are_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCH_API_KEY", "no idea")
    results = run_eval(TWO, Failing("when", "s2"), show_progress=False)
    assert [each.error for each in results] == ["", "ValueError: ***", "RuntimeError: no memory"]


def test_what_was_not_answered_has_no_score_and_is_not_judged() -> None:
    results = run_eval(TWO, Failing("when"), show_progress=False)
    prompts: list[str] = []

    def judge(request: object) -> str:
        prompts.append(str(request))
        return '{"score": 0.5}'

    scores = qa.batch_judge(results, llm=judge)
    assert scores == [0.5, None, 0.5]
    assert len(prompts) == 2
    metrics = compute_metrics(results, scores, metrics=CHEAP)
    assert metrics["overall"] == {"judge_score": 0.5, "exact_match": 0.0, "f1": 0.0}
    assert metrics["by_type"]["temporal"] == {"judge_score": None, "exact_match": None, "f1": None, "count": 1}
    assert metrics["errored"] == 1


def test_results_are_saved_as_they_arrive_and_a_run_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"

    class Killed(Agent):
        def answer(self, question: str) -> str:
            if len(self.memory.seen) == 6:
                raise KeyboardInterrupt
            return super().answer(question)

    with pytest.raises(KeyboardInterrupt):
        run_eval(TWO, Killed(), show_progress=False, save=path)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"sample_id": "s')
    agent = Agent()
    results = run_eval(TWO, agent, show_progress=False, resume=path)
    assert agent.memory.seen == ["reset", "s2", "who"]
    assert results == run_eval(TWO, Agent(), show_progress=False)
    again = Agent()
    assert run_eval(TWO, again, show_progress=False, resume=path) == results
    assert again.memory.seen == []


def test_a_question_with_an_error_is_asked_again_on_the_way_on(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    run_eval(TWO, Failing("when"), show_progress=False, resume=path)
    agent = Agent()
    results = run_eval(TWO, agent, show_progress=False, resume=path)
    assert agent.memory.seen == ["reset", "s1", "when"]
    assert not any(each.error for each in results)


def test_saved_results_are_neither_written_over_nor_mistaken(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"sample_id": "s1"}\n', encoding="utf-8")
    with pytest.raises(FileExistsError, match="resume="):
        run_eval(TWO, Agent(), show_progress=False, save=path)
    with pytest.raises(SuiteError, match=r"results.jsonl:1:1  found another line, expected a result of run_eval"):
        run_eval(TWO, Agent(), show_progress=False, resume=path)
    assert path.read_text(encoding="utf-8") == '{"sample_id": "s1"}\n'
