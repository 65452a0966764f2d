"""Runs whose texts are compared by a model of embeddings."""

from typing import TYPE_CHECKING

from scripted_judges import entries_of
from servers import embedded

if TYPE_CHECKING:
    from conftest import Ran
    from scripted_judges import Judged

CASES = [
    {"id": "one", "expected": "Paris", "prediction": "in Paris"},
    {"id": "two", "expected": ["Paris", "Rome"], "prediction": "Rome"},
]
VECTORS = {"Paris": (1, 0), "Rome": (0, 1), "in Paris": (0.6, 0.8)}


def _suite(judged: "Judged", **options: object) -> None:
    model = {"model": "openai:tiny", "base_url": judged.server.base_url}
    judged.server.script(embedded(VECTORS.__getitem__))
    judged.project.suite("s.eval.yaml", CASES, evaluators=[{"semantic": {**model, **options}}], confidence=None)


def _value(ran: "Ran") -> object:
    return ran.suites["s"]["metrics"]["embedding_similarity"]["value"]


def test_similarities_are_stored_recorded_and_replayed_as_verdicts_are(judged: "Judged", workers: int) -> None:
    _suite(judged)
    ran = judged.project.run(workers=workers)
    assert (ran.code, _value(ran)) == (0, 0.8)
    calls = judged.server.calls[:]
    assert {call.path for call in calls} == {"/v1/embeddings"}
    recorded = judged.project.run("--llmeval-judge=record", workers=workers)
    entries = entries_of(judged.recordings())
    assert [(each["case"], each["score"], each["model"]) for each in entries] == [
        ("one", 0.6, "openai:tiny"),
        ("two", 0.0, "openai:tiny"),
        ("two", 1.0, "openai:tiny"),
    ]
    replayed = judged.project.run("--llmeval-judge=replay", workers=workers)
    assert recorded.suites["s"]["metrics"] == replayed.suites["s"]["metrics"] == ran.suites["s"]["metrics"]
    assert len(judged.server.calls) == len(calls)


def test_another_judge_for_the_run_leaves_the_model_of_embeddings_as_it_is(judged: "Judged") -> None:
    _suite(judged)
    ran = judged.project.run("--llmeval-judge-model=openai:other")
    assert (ran.code, _value(ran)) == (0, 0.8)
    assert {call.body["model"] for call in judged.server.calls} == {"tiny"}


def test_calls_are_counted_budgeted_and_left_out_where_judges_are_off(judged: "Judged") -> None:
    _suite(judged, price={"input": 1, "output": 0})
    off = judged.project.run("--llmeval-judge=off")
    assert (_value(off), judged.server.calls) == (None, [])
    ran = judged.project.run("--llmeval-budget=calls=2", "--llmeval-concurrency=1")
    assert "the budget of 2 calls is spent" in ran.text
    paid = judged.project.run("--llmeval-budget=usd=1,tokens=400")  # as they write none, less than a reply may take
    assert (paid.code, _value(paid)) == (0, 0.8)


def test_a_budget_of_money_needs_a_price(judged: "Judged") -> None:
    _suite(judged)
    ran = judged.project.run("--llmeval-budget=usd=1")
    assert ran.code == 1
    assert "found the model 'openai:tiny' without a known price" in ran.text
    assert judged.server.calls == []


def test_a_changed_model_is_not_comparable_with_the_approved_scores(judged: "Judged") -> None:
    _suite(judged)
    path = judged.project.path / "s.eval.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace('"confidence"', '"snapshot": true, "confidence"'))
    assert judged.project.run("--snapshot-update").code == 0
    path.write_text(path.read_text(encoding="utf-8").replace("openai:tiny", "openai:large"))
    changed = judged.project.run()
    assert changed.code == 1
    assert "openai:large" in changed.text


def test_a_plan_counts_the_similarities_and_asks_nothing(judged: "Judged") -> None:
    _suite(judged)
    ran = judged.project.run("--llmeval-plan")
    assert ran.code == 0
    assert "3 calls" in ran.text
    assert judged.server.calls == []


def test_a_panel_of_judges_has_no_part_in_similarities(judged: "Judged") -> None:
    _suite(judged)
    path = judged.project.path / "s.eval.yaml"
    text = path.read_text(encoding="utf-8").replace('"confidence"', '"judges": ["openai:a", "openai:b"], "confidence"')
    path.write_text(text, encoding="utf-8")
    ran = judged.project.run()
    assert (ran.code, _value(ran), list(ran.suites["s"]["metrics"])) == (0, 0.8, ["embedding_similarity"])
