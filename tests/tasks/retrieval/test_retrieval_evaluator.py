"""What the evaluator `retrieval` reads, counts and refuses."""

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import pytest

from pytest_llmeval import Case, Evaluator, EvaluatorError, get_evaluator, score
from pytest_llmeval.core import MetricTable
from pytest_llmeval.tasks.retrieval._source import Fields, Query, Reader

BY_ID = {"gold": {"rule": "gold", "by": "id"}}
LIFE = {"life_imprisonment": True}


def retrieval(**options: Any) -> Evaluator:
    return get_evaluator("retrieval", **{"k": [2], **options})


def by_id(**options: Any) -> Evaluator:
    return retrieval(tasks=BY_ID, **options)


def scores(evaluator: Evaluator, prediction: Any, expected: Any, asked: Any = None) -> dict[str, Any]:
    return evaluator.evaluate(prediction, expected, asked)


def months(number: Any, **flags: bool) -> dict[str, Any]:
    return {"imprisonment": number, **flags}


def test_metrics_are_those_of_each_task_and_k() -> None:
    names = {metric.name for metric in get_evaluator("retrieval").describe()}
    measures = ("precision", "recall", "hit_rate", "macro_f1", "micro_precision", "micro_recall", "micro_f1")
    tasks = ("gold", "accusation", "article", "imprisonment")
    wanted = {f"{task}_{measure}@{k}" for task in tasks for measure in measures for k in (3, 5, 10)}
    assert names == wanted | {f"gold_{name}@{k}" for name in ("ndcg", "map") for k in (3, 5, 10)} | {"gold_mrr"}


@pytest.mark.parametrize(
    "prediction", [["x", "a"], [{"id": "x"}, {"id": "a"}], [{"doc_id": 7}, "a"], [1, {"_id": "a"}]]
)
def test_ids_may_be_bare_or_in_a_field(prediction: Any) -> None:
    found = scores(by_id(), prediction, {"positives": ["a", {"docno": "b"}]})
    assert (found["gold_precision@2"], found["gold_recall@2"], found["gold_mrr"]) == (0.5, 0.5, 0.5)


def test_a_whole_number_and_its_digits_are_the_same_id() -> None:
    assert scores(by_id(), [{"id": 17}, 18], ["17", {"id": "18"}])["gold_recall@2"] == 1


@pytest.mark.parametrize("field", ["fact", "text", "content", "sentence"])
def test_texts_are_compared_without_the_blanks_around_them(field: str) -> None:
    found = scores(retrieval(), [{field: " \n one\t"}], {"positives": ["one ", {"content": "two"}]}, {"text": "q"})
    assert found["gold_recall@2"] == 0.5
    assert found["missing_positives"] == {"gold": ["two"]}


def test_the_first_text_field_that_is_not_empty_counts() -> None:
    assert scores(retrieval(), [{"fact": "", "text": "one"}], ["one"])["gold_hit_rate@2"] == 1
    assert scores(retrieval(), [{"fact": "two", "text": "one"}], ["one"])["gold_hit_rate@2"] == 0
    assert scores(retrieval(text_fields=["body"]), [{"body": "one"}], ["one"])["gold_hit_rate@2"] == 1


def test_the_query_itself_is_left_out_and_the_others_move_up() -> None:
    results = [{"text": " q"}, {"fact": "x"}, {"content": "q"}, {"fact": "one"}]
    found = scores(retrieval(), results, ["one"], {"fact": "q "})
    assert (found["gold_mrr"], found["n_self"], found["n_results"]) == (0.5, 2, 4)
    assert scores(retrieval(exclude_self=False), results, ["one"], {"fact": "q"})["gold_mrr"] == 1 / 3
    assert scores(by_id(), ["7", "a"], ["a"], {"id": 7})["gold_mrr"] == 1


def test_ids_tell_the_query_only_where_a_rule_goes_by_id() -> None:
    ranks_as_ids = [{"id": 1, "fact": "one"}, {"id": 2, "fact": "q"}, {"id": 3, "fact": "two"}]
    query = {"id": 1, "fact": "q"}
    found = scores(retrieval(), ranks_as_ids, ["one", "two"], query)
    assert (found["gold_recall@2"], found["n_self"]) == (1, 1)
    both = retrieval(tasks={**BY_ID, "text": {"rule": "gold", "by": "text"}})
    assert scores(both, ranks_as_ids, [{"id": 3, "text": "two"}], query)["n_self"] == 2


def test_however_often_the_query_stands_first_the_ranks_are_filled_from_behind() -> None:
    results = [{"fact": "q"}] * 9 + [{"fact": "x"}, {"fact": "one"}]
    assert scores(retrieval(), results, ["one"], "q")["gold_precision@2"] == 0.5


@pytest.mark.parametrize("others", [["a"], [{"id": "a"}]])
def test_an_empty_id_is_no_result_whatever_stands_beside_it(others: list[Any]) -> None:
    found = scores(by_id(), ["", *others], ["a"])
    assert (found["gold_mrr"], found["n_skipped"], found["gold_micro_precision@2"]) == (1, 1, 1)


def test_an_object_of_another_class_is_an_object() -> None:
    prediction = [OrderedDict(fact="one"), "junk"]
    observation = retrieval().measure(Case("a", expected=["one"], prediction=prediction))
    assert (observation.malformed, retrieval().scores(observation)["gold_mrr"]) == (None, 1)


def test_bare_texts_are_skipped_where_no_rule_goes_by_id() -> None:
    found = scores(retrieval(), ["junk", {"fact": "one"}, 3], ["one"])
    assert (found["gold_mrr"], found["n_skipped"], found["gold_micro_precision@2"]) == (1, 2, 1)
    nothing = retrieval().measure(Case("a", expected=["one"], prediction=["junk"]))
    assert nothing.malformed == "found a list of which no item is a result, such as text 'junk', expected objects"


@pytest.mark.parametrize(
    ("prediction", "fault"),
    [
        (None, "found null, expected a list of results"),
        ({"hits": []}, "found an object, expected a list of results"),
        ("a, b", "found text 'a, b', expected a list of results"),
        ([{"score": 1}], "found results with score, expected one of the fields id, doc_id, docno, _id"),
        (["a", None], "result 2: found null, expected an object or an id"),
        ([{"id": "a"}, ["b"], 1.5], "result 2: found a list, expected an object or an id"),
        ([True], "result 1: found true, expected an object or an id"),
    ],
)
def test_what_is_no_result_makes_the_case_fail_and_scores_as_what_is_left(prediction: Any, fault: str) -> None:
    observation = by_id().measure(Case("a", expected=["a", "b"], prediction=prediction))
    assert observation.malformed == fault
    assert by_id().scores(observation)["gold_precision@2"] == (0.5 if "result 2" in fault else 0)


def test_a_document_that_is_listed_twice_counts_once_by_its_id_and_twice_by_its_text_but_not_in_ranked_scores() -> None:
    found = scores(by_id(k=[3]), ["a", "a", "b"], ["a", "b"])
    assert (found["gold_precision@3"], found["gold_recall@3"]) == (pytest.approx(2 / 3), 1)
    assert (found["gold_ndcg@3"], found["gold_map@3"]) == (1, 1)
    found = scores(retrieval(k=[3]), [{"fact": each} for each in "aab"], ["a", "b"], "q")
    assert (found["gold_precision@3"], found["gold_recall@3"]) == (1, 1.5)
    assert (found["gold_ndcg@3"], found["gold_map@3"]) == (1, 1)


@pytest.mark.parametrize("tail", [[], ["z"] * 40])
def test_documents_move_up_over_repetitions_however_many(tail: list[str]) -> None:
    found = scores(by_id(k=[3]), ["a", *["x"] * 30, "b", *tail], ["a", "b"])
    assert found["gold_recall@3"] == 1 / 2
    assert found["gold_map@3"] == pytest.approx((1 + 2 / 3) / 2)


def test_results_that_rules_cannot_recognise_are_misses_and_counted() -> None:
    found = scores(retrieval(k=[3]), [{"facts": "one"}, {"fact": " "}, {"fact": "one"}], ["one"], "q")
    assert (found["gold_precision@3"], found["n_without_text"]) == (pytest.approx(1 / 3), 2)
    assert "n_without_text" not in scores(retrieval(), [{"fact": "one"}], ["one"], "q")


def test_only_the_first_positives_count() -> None:
    assert scores(by_id(max_positives=2), ["c", "a"], ["a", "b", "c"])["gold_recall@2"] == 0.5
    assert scores(by_id(max_positives=None), ["c", "a"], ["a", "b", "c"])["gold_recall@2"] == pytest.approx(2 / 3)


def test_relevance_is_the_gain_of_a_document() -> None:
    expected = [{"id": "a", "relevance": 1}, {"id": "b", "relevance": 3}]
    assert scores(by_id(), ["b", "a"], expected)["gold_ndcg@2"] == 1
    assert scores(by_id(), ["a", "b"], expected)["gold_ndcg@2"] < 0.8


@pytest.mark.parametrize(
    ("asked", "found", "same"),
    [
        (["theft", "fraud"], ["fraud", "theft", "fraud"], True),
        (["theft", "fraud"], ["theft"], False),
        (["264"], [264], True),
        (["264", "266"], [264.0, "266.0"], True),
        ("264.0", ["264"], True),
        (264.0, "264", True),
        (["264"], [264.5], False),
        ("theft", ["theft"], True),
        (None, [], True),
        (None, None, True),
        ([], {"a": 1}, False),
        (["盗窃"], "[盗窃]", True),
        (["盗窃"], ["[盗窃]"], True),
        (["抢劫", "盗窃"], "抢劫;盗窃", True),
        ("抢劫；盗窃", ["盗窃", "抢劫"], True),
        (["抢劫", "盗窃"], "['抢劫', '盗窃']", True),
        (["抢劫"], "抢劫;盗窃", False),
        (["非法[持有、私藏][枪支、弹药]"], "非法[持有、私藏][枪支、弹药]", True),
        (["264", "266"], "264、266", True),
        (["盗窃", "诈骗"], "诈骗，盗窃", True),
        (["盗窃", "诈骗"], "盗窃, 诈骗", True),
        ("非法[持有，私藏][枪支、弹药]", "非法[持有，私藏][枪支、弹药]", True),
        (["theft"], None, False),
    ],
)
def test_sets_are_compared_whatever_their_order(asked: Any, found: Any, same: bool) -> None:
    evaluator = retrieval(tasks={"charge": {"rule": "same_set", "field": "accusation"}})
    result = scores(evaluator, [{"accusation": found}], [], {"meta": {"accusation": asked}})
    assert result["charge_hit_rate@2"] == same


@pytest.mark.parametrize(
    ("asked", "found", "near"),
    [
        (months(10), months(16), True),
        (months(10), months(16.5), False),
        (months(100), months(80), True),
        (months(100), months(79), False),
        (months(100), months(120), True),
        (months(0, **LIFE), months(240, **LIFE), True),
        (months(12), months(12, **LIFE), False),
        (months(12, death_penalty=True), months(12, **LIFE), False),
        (None, months(6), True),
        (months(6), None, True),
        (months(7), {}, False),
        (months(12), 12, True),
        (months(12), "12", True),
        (months(12), months(" 12.0 "), True),
        (months(12), "a year", False),
        (months(12), months(True), False),
        (months(12.5), months(10**400), False),
    ],
)
def test_terms_are_near_within_a_share_or_a_number_of_months(asked: Any, found: Any, near: bool) -> None:
    query = {"meta": {"term_of_imprisonment": asked}}
    assert scores(retrieval(), [{"imprisonment": found}], [], query)["imprisonment_hit_rate@2"] == near


def test_fields_may_lead_into_objects() -> None:
    rule = {"rule": "near", "field": "shop.price", "query_field": "price", "relative": 0.1}
    evaluator = retrieval(tasks={"price": rule})
    results = [{"shop": {"price": 95}}, {"shop": 3}, {"shop.price": 101}, {}]
    assert scores(evaluator, results, [], {"meta": {"price": 100}})["relevant_ranks"] == {"price": [1]}
    assert scores(retrieval(k=[4], tasks={"price": rule}), results, [], {"meta": {"price": 100}})["relevant_ranks"] == {
        "price": [1, 3]
    }


def test_a_query_without_ground_truth_has_attribute_precision_only() -> None:
    query = {"fact": "q", "meta": {"accusation": ["theft"]}}
    observation = retrieval().measure(Case("a", query, None, [{"accusation": ["theft"]}]))
    found = retrieval().scores(observation)
    assert found["accusation_precision@2"] == 0.5
    assert found["accusation_recall@2"] is None
    assert found["gold_precision@2"] is None
    assert observation.undefined["gold_mrr"] == observation.undefined["article_micro_f1@2"] == "no expected positives"


def test_a_query_without_attributes_has_the_scores_of_gold_only() -> None:
    observation = retrieval().measure(Case("a", "q", ["one"], [{"fact": "one"}]))
    found = retrieval().scores(observation)
    assert found["gold_recall@2"] == 1
    assert found["accusation_hit_rate@2"] is None
    assert observation.undefined["accusation_hit_rate@2"] == "the query has no meta"


def test_a_query_with_neither_has_no_score_and_changes_nothing() -> None:
    cases = [Case("a", "q", ["one"], [{"fact": "one"}]), Case("b", "q", None, [{"fact": "one"}])]
    result = score(retrieval(), cases, confidence=None)
    assert result.metrics["gold_precision@2"].value == 0.5
    assert (result.metrics["gold_precision@2"].scored, result.metrics["gold_precision@2"].undefined) == (1, 1)


def test_an_empty_list_of_positives_counts_as_zero() -> None:
    cases = [Case("a", expected=["a"], prediction=["a", "b"]), Case("b", expected=[], prediction=["a", "b"])]
    metrics = score(by_id(), cases, confidence=None).metrics
    assert (metrics["gold_precision@2"].value, metrics["gold_recall@2"].value) == (0.25, 0.5)
    assert (metrics["gold_mrr"].value, metrics["gold_mrr"].undefined) == (0.5, 0)


def test_a_k_that_is_not_filled_is_missed_or_skipped() -> None:
    cases = [Case("a", expected=["a"], prediction=["a"]), Case("b", expected=["a"], prediction=["b", "a"])]
    missed = score(by_id(k=[1, 2]), cases, confidence=None).metrics
    skipped = score(by_id(k=[1, 2], unfilled_ranks="skip"), cases, confidence=None)
    assert missed["gold_hit_rate@2"].value == 1
    assert (missed["gold_precision@2"].value, missed["gold_micro_precision@2"].value) == (0.5, 2 / 3)
    assert (skipped.metrics["gold_precision@2"].scored, skipped.metrics["gold_precision@2"].abstained) == (1, 1)
    assert skipped.metrics["gold_precision@1"].value == 0.5
    assert skipped.metrics["gold_mrr"].value == 0.75
    assert skipped.cases[0].details["undefined"]["gold_recall@2"] == "1 results, fewer than 2"


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        (Case("a", "q", "one"), "expected.positives: found text 'one', expected a list"),
        (Case("a", "q", {"positive": []}), "expected.positives: found null, expected a list"),
        (
            Case("a", "q", [{"id": "a"}]),
            ("expected.positives[0]: text is missing: a task compares documents by it (fact, text, content, sentence)"),
        ),
        (
            Case("a", "q", ["a", {"id": "b"}, {"id": "c"}, {"id": "d"}]),
            (
                "expected.positives[1] (and 2 more): text is missing: a task compares documents by it "
                "(fact, text, content, sentence)"
            ),
        ),
        (
            Case("a", "q", ["a", {"text": "b", "relevance": 0}]),
            "expected.positives[1].relevance: found number 0, expected a number above 0",
        ),
        (
            Case("a", "q", ["a", {"text": "b", "relevance": float("inf")}]),
            "expected.positives[1].relevance: found number Infinity, expected a number above 0",
        ),
        (
            Case("a", {"meta": {"term_of_imprisonment": {"imprisonment": 10**400}}}, []),
            (
                "input.meta: task 'imprisonment': found an object, expected a number, "
                "or an object with it as 'imprisonment'"
            ),
        ),
        (Case("a", {"meta": []}, []), "input.meta: found a list, expected an object"),
        (
            Case("a", {"meta": {"accusation": {}}}, []),
            "input.meta: task 'accusation': found an object, expected a list of values",
        ),
        (
            Case("a", {"meta": {"term_of_imprisonment": {"imprisonment": "long"}}}, []),
            (
                "input.meta: task 'imprisonment': found an object, expected a number, "
                "or an object with it as 'imprisonment'"
            ),
        ),
    ],
)
def test_faults_of_the_ground_truth_are_told(case: Case, fault: str) -> None:
    assert list(retrieval().check(case)) == [fault]


def test_a_case_in_order_has_no_fault() -> None:
    query = {"fact": "q", "meta": {"accusation": ["a"], "relevant_articles": [1], "term_of_imprisonment": months(1)}}
    assert list(retrieval().check(Case("a", query, {"positives": ["one", {"fact": "two", "relevance": 2}]}))) == []
    assert list(retrieval().check(Case("a", query))) == []


@pytest.mark.parametrize("expected", ["one", [{"text": "a", "relevance": "high"}]])
def test_faulty_ground_truth_is_never_scored(expected: Any) -> None:
    with pytest.raises(EvaluatorError, match=r"expected\.positives"):
        retrieval().measure(Case("a", "q", expected, []))


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"k": []}, "k: found [], expected different numbers of at least 1"),
        ({"k": [3, 3]}, "k: found [3, 3], expected different numbers of at least 1"),
        ({"k": [0]}, "k: found [0], expected different numbers of at least 1"),
        ({"max_positives": 0}, "max_positives: found 0, expected at least 1, or null"),
        ({"recall_denominator": 0}, "recall_denominator: found 0, expected 'positives', 'k' or a number of at least 1"),
        ({"id_fields": []}, "text_fields, id_fields: found an empty list, expected at least one field"),
        ({"tasks": {}}, "tasks are missing"),
        ({"tasks": {"a b": BY_ID["gold"]}}, "tasks: found the name 'a b', expected letters, digits and underscores"),
        ({"tasks": "leagl"}, "tasks: found the text 'leagl' (did you mean 'legal'?), expected one of 'legal'"),
        ({"tasks": {"g": {"by": "id"}}}, "tasks.g: found a mapping with 'by', expected a mapping with 'rule'"),
        (
            {"tasks": {"g": {"rule": "golden"}}},
            "tasks.g: found 'golden' as 'rule' (did you mean 'gold'?), expected one of 'gold', 'same_set', 'near'",
        ),
        (
            {"tasks": {"g": {"rule": "same_set", "feild": "x"}}},
            "unknown key feild, did you mean field?",
        ),
        (
            {"tasks": {"g": {"rule": "near", "field": "x", "absolute": -1}}},
            "found tolerances 0 and -1, expected relative and absolute of at least 0",
        ),
        (
            {"tasks": {"g": {"rule": "near", "field": "x", "relative": float("nan")}}},
            "found tolerances nan and 0, expected relative and absolute of at least 0",
        ),
        (
            {"tasks": {"g": {"rule": "near", "field": "x", "flags": ["y"]}}},
            "found flags without number, expected the key of the number as well",
        ),
    ],
)
def test_options_are_checked(options: Mapping[str, Any], fault: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        get_evaluator("retrieval", **options)
    assert fault in str(caught.value)


def test_a_signature_tells_two_ways_of_counting_apart() -> None:
    signatures = {
        next(metric.signature for metric in evaluator.describe())
        for evaluator in (retrieval(), by_id(), retrieval(max_positives=None), retrieval(unfilled_ranks="skip"))
    }
    assert len(signatures) == 4


def test_a_table_shows_the_tasks_side_by_side() -> None:
    (table,) = get_evaluator("retrieval").tables()
    assert isinstance(table, MetricTable)
    assert table.headers == ("task", "metric", "@3", "@5", "@10")
    assert table.rows[3] == (("gold", "macro F1"), ("gold_macro_f1@3", "gold_macro_f1@5", "gold_macro_f1@10"))
    assert len(table.rows) == 4 * 5


def test_texts_are_looked_up_as_they_came_so_that_python_hashes_each_once() -> None:
    texts = [f"result {number}" for number in range(40)]
    reader = Reader(Fields(("id",), ("fact",)), frozenset({"text"}), exclude_self=True)
    entries = reader.entries([{"fact": text} for text in texts])
    query = Query(None, "q", None)
    first = reader.first(entries, query, 5)
    parts = [first, *reader.behind(entries, query, first)]
    found = [key for part in parts for key in part.keys["text"]]
    assert len(first.keys["text"]) < 10
    assert len(parts) == 3
    assert all(key is text for key, text in zip(found, texts, strict=True))


@pytest.mark.parametrize("itself", [0, 1, 6, 20, 39, 40])
def test_results_are_read_on_until_there_are_enough_that_are_not_the_query(itself: int) -> None:
    reader = Reader(Fields(("id",), ("fact",)), frozenset({"text"}), exclude_self=True)
    entries = reader.entries([{"fact": " query " if number < itself else f" {number} "} for number in range(40)])
    query = Query(None, "query", None)
    first = reader.first(entries, query, 5)
    parts = [first, *reader.behind(entries, query, first)]
    assert first.keys["text"][:5] == [str(number) for number in range(itself, 40)][:5]
    assert [key for part in parts for key in part.keys["text"]] == [str(number) for number in range(itself, 40)]
    assert [key for part in parts for key in part.items] == entries.items[itself:]
    assert sum(part.itself for part in parts) == itself


CORPUS_FORM = {
    "fact": "one",
    "meta": {"accusation": ["theft"], "relevant_articles": [264], "term_of_imprisonment": {"imprisonment": 14}},
}
META = {"accusation": ["theft"], "relevant_articles": ["264"], "term_of_imprisonment": months(12)}
QUERY = {"fact": "q", "meta": META}
TASKS = ("gold", "accusation", "article", "imprisonment")


@pytest.mark.parametrize(
    "result",
    [
        CORPUS_FORM,
        {"fact": "one", **CORPUS_FORM["meta"]},
        {"fact": "one", "accusation": "[theft]", "relevant_articles": "264", "imprisonment": "12"},
        {"fact": "one", "accusation": "theft", "relevant_articles": [264], "imprisonment": {"imprisonment": "12"}},
    ],
)
@pytest.mark.parametrize("wrap", [list, lambda found: {"results": found}, json.dumps, lambda found: {"answer": found}])
def test_results_are_read_in_the_forms_of_corpora_and_of_services(result: Any, wrap: Any) -> None:
    found = scores(retrieval(k=[1]), wrap([result]), ["one"], QUERY)
    assert {task: found[f"{task}_precision@1"] for task in TASKS} == dict.fromkeys(TASKS, 1.0)


def test_an_attribute_that_no_result_has_is_unknown() -> None:
    query = {"fact": "q", "meta": {**META, "term_of_imprisonment": months(3)}}
    bare = {"fact": "one", "accusation": ["theft"], "relevant_articles": ["264"]}
    observation = retrieval().measure(Case("a", query, ["one"], [bare, bare]))
    found = retrieval().scores(observation)
    assert (found["imprisonment_precision@2"], found["imprisonment_micro_f1@2"]) == (None, None)
    assert observation.undefined["imprisonment_recall@2"] == "no result has imprisonment or term_of_imprisonment"
    assert observation.details["unjudged"] == {"imprisonment": 2}
    assert "imprisonment: 2 of 2 results without the attribute: not judged" in retrieval().explain(
        Case("a", query, ["one"], [bare, bare]), observation
    )
    others = [Case("b", query, ["one"], [{**bare, "imprisonment": months(3)}] * 2)]
    both = score(retrieval(), [Case("a", query, ["one"], [bare, bare]), *others], confidence=None).metrics
    assert (both["imprisonment_precision@2"].value, both["imprisonment_precision@2"].scored) == (1.0, 1)
    assert both["imprisonment_micro_recall@2"].value == 2.0
    assert both["accusation_precision@2"].scored == 2


def test_an_attribute_that_some_results_lack_is_empty_or_unknown() -> None:
    query = {"fact": "q", "meta": {"term_of_imprisonment": months(3)}}
    results = [{"fact": "one", "imprisonment": months(4)}, {"fact": "two"}]
    assert scores(retrieval(), results, ["one"], query)["imprisonment_precision@2"] == 1.0
    strict = retrieval(absent_attributes="unknown")
    found = scores(strict, results, ["one"], query)
    assert (found["imprisonment_precision@2"], found["unjudged"]) == (0.5, {"imprisonment": 1})
    assert "absent:unknown" in next(m.signature for m in strict.describe() if m.name.startswith("imprisonment"))


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        ({"accusation": {"a": 1}}, "result 1, task 'accusation': found an object, expected a list of values"),
        ({"imprisonment": "a year"}, "result 1, task 'imprisonment': found text 'a year', expected a number"),
        ({"imprisonment": {"imprisonment": True}}, "result 1, task 'imprisonment': found an object, expected a number"),
    ],
)
def test_an_attribute_of_another_kind_is_malformed_and_no_hit(result: Any, fault: str) -> None:
    observation = retrieval().measure(Case("a", QUERY, ["one"], [{"fact": "one", **result}]))
    assert str(observation.malformed).startswith(fault)
