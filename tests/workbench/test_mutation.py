"""Mutants of answers: holes of suites are named, sound suites are left in peace, and every number can be counted."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_llmeval.cli import main
from pytest_llmeval.core import Case, Mutator, Neighbours
from pytest_llmeval.numbers import wilson_interval
from pytest_llmeval.reports import Survival
from pytest_llmeval.suites import Registry, get_evaluator, load_suite
from pytest_llmeval.workbench.mutation._mutants import mutation_of
from pytest_llmeval.workbench.mutation._survival import survival_of

MUTATORS = Registry.installed().mutators

FACTS = [
    ("refund", "How long do refunds take?", "Refunds take 30 days after the return."),
    ("shipping", "What does shipping cost?", "Shipping is free above 50 euros in Germany."),
    ("hours", "When is the shop open?", "It is open from 9 to 18 on weekdays, but not on Sunday."),
    ("owner", "Who owns the shop?", "The shop belongs to Anna Meyer of Bremen since 2011."),
    ("phone", "How can I call you?", "You can call 0421 5550199 on weekdays in Bremen."),
    ("return", "Can I return shoes?", "You can return unused shoes within 14 days with Anna."),
]
ANSWERS = [{"id": name, "input": asked, "expected": said, "prediction": said} for name, asked, said in FACTS]
CLASSES = [
    {"id": f"c{at}", "input": f"text {at}", "expected": label, "prediction": label}
    for at, label in enumerate(["spam", "ham", "spam", "ham", "news", "news", "spam", "spam"])
]
FIELDS = [
    {
        "id": f"f{at}",
        "input": f"invoice {at}",
        "expected": {"total": 10.5 + at, "date": f"2024-05-0{at + 1}", "paid": at % 2 == 0},
        "prediction": {"total": 10.5 + at, "date": f"2024-05-0{at + 1}", "paid": at % 2 == 0},
    }
    for at in range(6)
]
CALLS = [
    {
        "id": f"t{at}",
        "input": f"order {at}",
        "expected": {
            "tool_calls": [{"name": "find", "arguments": {"id": at}}, {"name": "refund", "arguments": {"id": at}}]
        },
        "prediction": {
            "tool_calls": [{"name": "find", "arguments": {"id": at}}, {"name": "refund", "arguments": {"id": at}}]
        },
    }
    for at in range(5)
]
RANKED = [
    {"id": f"r{at}", "input": "q", "expected": [f"d{at}"], "prediction": [f"d{at}", "x1", "x2"]} for at in range(5)
]

GOOD: dict[str, dict[str, Any]] = {
    "words": {
        "evaluators": [{"text": {"metrics": ["rougeL"]}}],
        "thresholds": {"rougeL": 0.97},
        "gates": ["rougeL >= 0.95"],
        "cases": ANSWERS,
    },
    "classes": {
        "evaluators": ["classification"],
        "thresholds": {"accuracy": 1},
        "gates": ["f1_macro >= 0.8"],
        "cases": CLASSES,
    },
    "fields": {"evaluators": ["fields"], "thresholds": {"field_f1": 1}, "gates": ["field_f1 >= 0.9"], "cases": FIELDS},
    "calls": {
        "evaluators": [{"tools": {"order": "exact", "arguments": "exact"}}],
        "thresholds": {"trajectory_match": 1, "argument_accuracy": 1},
        "gates": ["trajectory_match >= 0.9"],
        "cases": CALLS,
    },
    "checks": {
        "evaluators": [{"text": {"metrics": ["rougeL"]}}],
        "thresholds": {"rougeL": 0.97},
        "checks": [{"min_chars": 1}, "not_refusal"],
        "gates": ["check_rate >= 0.95"],
        "cases": ANSWERS,
    },
}


def loaded(folder: Path, content: Mapping[str, Any]) -> Any:
    path = folder / "s.eval.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return load_suite(path)


def survived(folder: Path, content: Mapping[str, Any]) -> Survival:
    return survival_of(mutation_of(loaded(folder, content), MUTATORS))


@pytest.mark.parametrize("content", GOOD.values(), ids=GOOD)
def test_a_sound_suite_is_left_in_peace(tmp_path: Path, content: dict[str, Any]) -> None:
    found = survived(tmp_path, content)
    assert found.mutants >= 10
    assert list(found.weaknesses(0.2)) == []


WORDS = ("refunds", "shipping", "open", "shop", "call", "return")
ECHOED = [{**each, "checks": [{"icontains": word}]} for each, word in zip(ANSWERS, WORDS, strict=True)]
SPAM = [{**each, "expected": "spam", "prediction": "spam"} for each in CLASSES[:7]] + CLASSES[7:]
TOOTHLESS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "wrong metric": (
        {"checks": [{"max_words": 100}], "gates": ["check_rate >= 0.5"], "cases": ANSWERS},
        ["empty: 6 of 6 pass although it says nothing", "other_answer: 6 of 6 pass", "gate check_rate >= 0.5: passes"],
    ),
    "loose regex": (
        {"checks": [{"regex": "."}], "cases": ANSWERS},
        ["other_answer: 6 of 6 pass", "refusal: 6 of 6 pass", "number: "],
    ),
    "a word of the question": (
        {"cases": ECHOED},
        ["question: 6 of 6 pass although it repeats the question"],
    ),
    "a threshold of nothing": (
        {"evaluators": [{"text": {"metrics": ["f1"]}}], "thresholds": {"f1": 0}, "cases": ANSWERS},
        ["empty: 6 of 6 pass", "thresholds that no broken answer misses: f1", "cases that pass with every answer"],
    ),
    "constant answers": (
        {"evaluators": ["classification"], "gates": ["accuracy >= 0.1"], "thresholds": {"accuracy": 0}, "cases": SPAM},
        ["thresholds that no broken answer misses: accuracy"],
    ),
}


@pytest.mark.parametrize(("content", "named"), TOOTHLESS.values(), ids=TOOTHLESS)
def test_the_known_hole_of_a_toothless_suite_is_named(
    tmp_path: Path, content: dict[str, Any], named: list[str]
) -> None:
    said = list(survived(tmp_path, content).weaknesses(0.2))
    for each in named:
        assert any(each in line for line in said), (each, said)


def test_a_constant_system_is_a_mutant(tmp_path: Path) -> None:
    content = {"evaluators": ["classification"], "gates": ["accuracy >= 0.1"], "cases": CLASSES}
    found = survived(tmp_path, content)
    (constant,) = [each for each in found.kinds if each.name == "majority_label"]
    assert (constant.mutants, constant.why) == (4, "a system that always says the most frequent class")
    assert [each.share for each in found.gates] == [1.0]


def test_shares_and_intervals_are_those_of_a_count(tmp_path: Path) -> None:
    content = {"checks": [{"min_words": 7}], "cases": ANSWERS}
    found = {each.name: each for each in survived(tmp_path, content).kinds}
    others = found["other_answer"]
    assert (others.mutants, others.survived, others.by_evaluator) == (6, 6, {"checks": 6})
    assert (others.low, others.high) == wilson_interval(6, 6, 0.95)
    assert (found["empty"].survived, found["truncated"].survived) == (0, 0)
    assert found["empty"].by_evaluator == {"checks": 0}


def test_a_gate_fails_from_the_share_that_its_limit_says(tmp_path: Path) -> None:
    content = {
        "evaluators": [{"text": {"metrics": ["exact_match"]}}],
        "gates": ["exact_match >= 0.5"],
        "cases": ANSWERS,
    }
    (gate,) = survived(tmp_path, content).gates
    assert gate.share == pytest.approx(4 / 6), "three of six are still enough"


def test_the_figures_are_those_of_a_direct_computation(tmp_path: Path) -> None:
    content = {
        "evaluators": [{"text": {"metrics": ["rougeL"]}}],
        "thresholds": {"rougeL": 0.6},
        "gates": ["rougeL >= 0.8"],
        "cases": ANSWERS,
    }
    suite = loaded(tmp_path, content)
    mutation = mutation_of(suite, MUTATORS)
    expected = {each["id"]: each["expected"] for each in ANSWERS}
    evaluator = get_evaluator("text", metrics=["rougeL"])

    def score(case: Case) -> float:
        return float(evaluator.evaluate(case.prediction, expected[case.id])["rougeL"])

    made: dict[str, list[float]] = {}
    for each in mutation.mutants:
        made.setdefault(each.mutator.name, []).append(score(each.changed))
    found = survival_of(mutation_of(suite, MUTATORS))
    # Every recorded answer scores 1, so a mutant is noticed if it scores less, by the gate, whatever the threshold.
    assert {each.name: (each.mutants, each.survived) for each in found.kinds} == {
        name: (len(scores), sum(each == 1 for each in scores)) for name, scores in made.items()
    }
    alarms = {each.name: each.survived for each in found.rewrites}
    failing = [each for each in mutation.rewrites if score(each.changed) < 0.6]
    assert alarms == {name: sum(each.mutator.name == name for each in failing) for name in alarms}


def test_the_power_of_a_gate_is_the_share_of_mixtures_in_which_it_fails(tmp_path: Path) -> None:
    content = {"evaluators": [{"text": {"metrics": ["exact_match"]}}], "gates": ["exact_match >= 0.5"]}
    suite = loaded(tmp_path, {**content, "cases": ANSWERS})
    (gate,) = survival_of(mutation_of(suite, MUTATORS)).gates
    # Whichever mutant an answer becomes, it scores 0, so that four of six are too many in every mixture.
    assert (gate.share, gate.sure_share, gate.never) == (pytest.approx(4 / 6), pytest.approx(4 / 6), False)
    assert gate.power == {"0.05": 0, "0.1": 0, "0.2": 0, "0.5": 0, "1": 1}
    (gate,) = survival_of(
        mutation_of(loaded(tmp_path, {**content, "gates": ["exact_match >= 0"], "cases": ANSWERS}), MUTATORS)
    ).gates
    assert (gate.share, gate.sure_share, gate.never) == (None, None, True)


def test_mixtures_differ_where_mutants_do(tmp_path: Path) -> None:
    content = {"evaluators": [{"text": {"metrics": ["f1"]}}], "gates": ["f1 >= 0.8"], "cases": ANSWERS}
    suite = loaded(tmp_path, content)
    (gate,) = survival_of(mutation_of(suite, MUTATORS)).gates
    assert gate.share is not None
    assert gate.sure_share is not None
    assert 0 < gate.share < gate.sure_share <= 1
    assert list(gate.power.values()) == sorted(gate.power.values())
    assert survival_of(mutation_of(suite, MUTATORS)).gates == [gate]


def test_a_class_that_may_be_said_all_the_time_is_named(tmp_path: Path) -> None:
    content = {"evaluators": ["classification"], "cases": CLASSES}
    assert survived(tmp_path, {**content, "gates": ["accuracy >= 0.4"]}).constant == "spam"
    assert survived(tmp_path, {**content, "gates": ["accuracy >= 0.4", "f1_macro >= 0.5"]}).constant is None
    said = list(survived(tmp_path, {**content, "gates": ["accuracy >= 0.4"]}).weaknesses(0.2))
    assert any(each.startswith("no gate fails if every answer is 'spam'") for each in said)


def test_a_metric_of_the_suite_may_fall_where_that_of_the_case_cannot(tmp_path: Path) -> None:
    """Weighted F1 of one conversation leaves out emotions that it does not have; the suite has them elsewhere."""
    talk = [{"utterance_ID": number, "text": "one two three"} for number in (1, 2)]
    gold = {"a": [["1_joy", "2"]], "b": [["2_anger", "1"], ["1_joy", "1"]]}
    cases = [
        {"id": name, "expected": {"conversation": talk, "emotion-cause_pairs": pairs}, "prediction": pairs}
        for name, pairs in gold.items()
    ]
    content = {"evaluators": [{"emotion_cause": {"subtask": 2}}], "gates": ["weighted_f1 >= 0.9"], "cases": cases}
    for seed in range(8):
        suite = loaded(tmp_path, content)
        found = {each.name: each for each in survival_of(mutation_of(suite, MUTATORS, seed=seed)).kinds}
        added = [each for each in mutation_of(suite, MUTATORS, seed=seed).mutants if each.mutator.name == "pair_added"]
        known = {"joy", "anger"}
        unseen = sum(not {pair[0].partition("_")[2] for pair in each.changed.prediction} <= known for each in added)
        assert found["pair_added"].survived == unseen


def test_nothing_is_random_but_by_the_seed(tmp_path: Path) -> None:
    suite = loaded(tmp_path, GOOD["words"])
    assert survival_of(mutation_of(suite, MUTATORS)) == survival_of(mutation_of(suite, MUTATORS))
    assert (
        survival_of(mutation_of(suite, MUTATORS, seed=1)).mutants == survival_of(mutation_of(suite, MUTATORS)).mutants
    )


def test_a_text_in_a_part_has_the_mutants_of_a_text(tmp_path: Path) -> None:
    parted = [{**each, "prediction": {"text": each["prediction"], "sources": []}} for each in ANSWERS]
    found = survived(tmp_path, {**GOOD["words"], "parts": {"answer": "text"}, "cases": parted})
    assert found.mutants == survived(tmp_path, GOOD["words"]).mutants
    assert list(found.weaknesses(0.2)) == []


def test_retrieved_documents_of_an_answer_are_removed(tmp_path: Path) -> None:
    cases = [
        {
            **each,
            "expected": {"answer": each["expected"], "contexts": each["id"]},
            "prediction": {"text": "x", "sources": [{"id": each["id"]}, {"id": "b"}]},
        }
        for each in ANSWERS
    ]
    suite = {
        "parts": {"answer": "text", "contexts": "sources[].content"},
        "evaluators": [{"document_ids": {"k": 2, "metrics": ["recall"]}, "on": "sources[].id"}],
        "gates": ["recall@2 >= 0.5"],
        "cases": cases,
    }
    found = survived(tmp_path, suite)
    assert {each.name: each.survived for each in found.kinds}["relevant_removed"] == 0
    assert not any("recall@2" in each for each in found.weaknesses(0.2))


def test_answers_that_fail_as_they_are_are_no_originals(tmp_path: Path) -> None:
    cases = [*ANSWERS, {"id": "bad", "input": "x", "expected": "y", "prediction": "z"}, {"id": "none", "input": "x"}]
    found = survived(tmp_path, {**GOOD["words"], "cases": cases})
    assert found.left_out == [
        "1 of 8 cases without a recorded answer",
        "1 of 7 answers failed as recorded",
    ]


TEXTS = [
    Case("zh", "多久退款？", "退款需要30天。", "退款需要30天，不是60天 [1]。可以退货。"),
    Case("rich", "How?", "It takes 12000 days.", {"answer": "It takes 12000 days [1]. It is from Anna in Bremen."}),
    Case("two", "Who?", "Anna Meyer told Bert on 3 May 2024", "He said, Anna Meyer told Bert on 3 May 2024"),
    Case("cold", "How cold?", "It was -5 degrees.", "It was -5 degrees."),
    Case("short", "Where?", ["Paris", "the City of Light"], "Paris", labels={"question_type": "single_hop"}),
    Case("unsaid", "Which?", "Not mentioned", "Not mentioned", labels={"question_type": "adversarial"}),
]
RECORDS = [
    Case("json", "Which?", {"a": 1, "b": [1, 2]}, '{"a": 1, "b": [1, 2]}'),
    Case("object", "Which?", {"a": 1, "b": [1, 2]}, {"a": 1, "b": [1, 2]}),
    Case("list", "Which?", ["d1"], [{"id": "d1"}, {"id": "d2"}]),
]
TALK = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hello!"},
    {"role": "user", "content": "Who are you?"},
    {"role": "assistant", "content": "A bot."},
]
TALKS = [Case("talk", "Hello", {"turns": ["Hello!", "A bot."]}, {"answer": "A bot.", "messages": TALK, "turns": 2})]
EVERYTHING = [*(Case(**each) for part in (ANSWERS, CLASSES, FIELDS, CALLS, RANKED) for each in part)]
EVERYTHING += [*TEXTS, *RECORDS, *TALKS]


@pytest.mark.parametrize("mutator", [each for each in MUTATORS if not each.evaluators], ids=lambda each: each.name)
def test_a_mutator_changes_what_it_applies_to_and_never_its_input(mutator: Mutator) -> None:
    options = {"free_order": {"fields": {"b": "list"}}, "free_calls": {"tools": {"order": "any_order"}}}
    evaluators = {name: get_evaluator(name, **each) for name, each in options.get(mutator.name, {}).items()}
    applied = 0
    for case in EVERYTHING:
        before = json.dumps(case.prediction)
        others = [each for each in EVERYTHING if each.id != case.id]
        near = Neighbours(others, ["ham", "news", "spam"], "spam", evaluators, "1")
        changed = mutator.change(case, near)
        assert json.dumps(case.prediction) == before
        applied += changed is not None and json.dumps(changed) != before
    assert applied, "it applies to nothing"


def test_the_command_lists_what_survives_and_can_fail(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded(here, {"suite": "loose", "checks": [{"regex": "."}], "cases": ANSWERS})
    assert main(["mutate", "s.eval.json", "--json", "m.json"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("loose: ")
    assert "- other_answer: 6 of 6 pass although it answers another question: try a metric against `expected`" in said
    (suite,) = json.loads((here / "m.json").read_text(encoding="utf-8"))["suites"]
    assert suite["mutants"] == sum(each["mutants"] for each in suite["kinds"])
    assert main(["mutate", "s.eval.json", "--fail-over", "0.2"]) == 1
    assert main(["mutate", "s.eval.json", "--fail-over", "1"]) == 0
    with pytest.raises(SystemExit):
        main(["mutate", "s.eval.json", "--fail-over", "2"])


def test_a_suite_without_answers_is_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded(here, {"suite": "s", "evaluators": ["text"], "target": "bot:answer", "cases": [{"id": "a", "input": "x"}]})
    assert main(["mutate", "s.eval.json"]) == 1
    assert "s: no case has an answer that passes, so none can be broken" in capsys.readouterr().err


def test_judges_are_not_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged = {
        "evaluators": [{"text": {"metrics": ["f1"]}}, {"judge": {"criteria": "Is kind.", "steps": ["Read."]}}],
        "judge": "openai:none",
        "gates": ["judge_score >= 0.5"],
    }
    loaded(here, {"suite": "s", **judged, "cases": ANSWERS})
    assert main(["mutate", "s.eval.json"]) == 0
    said = capsys.readouterr().out
    assert "s: 58 mutants, only a judge could notice them" in said
    assert "judges were not asked: 58 mutants that only they could notice count neither way" in said
    assert "gate judge_score >= 0.5: its metric needs a judge" in said
