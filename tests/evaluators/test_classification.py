"""Evaluator ``classification`` against scikit-learn, and its corners."""

import json
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from project import CONFORMANCE
from sklearn import metrics

from pytest_llmeval.core import MISSING, Case, ConfusionMatrix, LabelKey, Observation, Sums, Totals
from pytest_llmeval.evaluators._classification import Classification
from pytest_llmeval.numbers._case_scores import stack

RECORDED = CONFORMANCE / "emotion_cause" / "builtin.jsonl"
EMOTIONS = ("neutral", "anger", "disgust", "fear", "joy", "sadness", "surprise")

labels = st.sampled_from("abcd")
pairs = st.lists(st.tuples(labels, labels), min_size=1, max_size=30)


def measure(gold: Any, predicted: Any, **options: Any) -> Observation:
    return Classification(**options).measure(Case("x", expected=gold, prediction=predicted))


def score(gold: Any, predicted: Any, **options: Any) -> dict[str, float | None]:
    evaluator = Classification(**options)
    return evaluator.scores(measure(gold, predicted, **options))


def reference(gold: list[str], predicted: list[str], averaged: list[str]) -> dict[str, float | None]:
    """What scikit-learn says; None where it warns that recall or an average has nothing to count."""
    out: dict[str, float | None] = {"accuracy": float(metrics.accuracy_score(gold, predicted))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kappa = float(metrics.cohen_kappa_score(gold, predicted))
        out["mcc"] = float(metrics.matthews_corrcoef(gold, predicted))
        for kind in ("micro", "macro", "weighted"):
            values = metrics.precision_recall_fscore_support(
                gold, predicted, labels=averaged or ["nothing"], average=kind, zero_division=0
            )
            out |= {f"{part}_{kind}": float(values[i]) for i, part in enumerate(("precision", "recall", "f1"))}
        occurring = sorted({*gold, *predicted})
        columns = metrics.precision_recall_fscore_support(gold, predicted, labels=occurring, zero_division=0)
    for row, label in enumerate(occurring):
        precision, recall, f1, support = (float(column[row]) for column in columns)
        values_of = {
            "precision": precision,
            "recall": recall if support else None,
            "f1": f1,
            "support": support,
        }
        out |= {f"{part}[{label}]": value for part, value in values_of.items()}
    out["cohen_kappa"] = None if np.isnan(kappa) else kappa
    parts = ("precision", "recall", "f1")
    if not set(gold) & set(averaged):
        out |= {"recall_micro": None} | {f"{part}_weighted": None for part in parts}
        if not set(predicted) & set(averaged):
            out |= {"precision_micro": None, "f1_micro": None} | {f"{part}_macro": None for part in parts}
    return out


def assert_equal(ours: dict[str, float | None], theirs: dict[str, float | None]) -> None:
    assert sorted(ours) == sorted(theirs)
    for name, value in theirs.items():
        assert ours[name] == (None if value is None else pytest.approx(value, abs=1e-12)), name


@settings(deadline=None)
@given(pairs)
def test_sequence_equals_scikit_learn(items: list[tuple[str, str]]) -> None:
    gold, predicted = ([*side] for side in zip(*items, strict=True))
    assert_equal(score(gold, predicted), reference(gold, predicted, sorted({*gold, *predicted})))


@settings(deadline=None)
@given(pairs, st.sets(labels, min_size=1, max_size=3))
def test_ignored_labels_equal_the_labels_argument_of_scikit_learn(
    items: list[tuple[str, str]], ignored: set[str]
) -> None:
    gold, predicted = ([*side] for side in zip(*items, strict=True))
    averaged = sorted({*gold, *predicted} - ignored)
    assert_equal(score(gold, predicted, ignore=tuple(sorted(ignored))), reference(gold, predicted, averaged))


@settings(deadline=None)
@given(pairs, st.data())
def test_sum_over_any_split_into_cases_equals_scikit_learn_on_the_concatenation(
    items: list[tuple[str, str]], data: st.DataObject
) -> None:
    observations, rest = [], items
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        head, rest = rest[:size], rest[size:]
        gold, predicted = ([*side] for side in zip(*head, strict=True))
        alone = size == 1 and data.draw(st.booleans())
        observations.append(measure(gold[0], predicted[0]) if alone else measure(gold, predicted))
    gold, predicted = ([*side] for side in zip(*items, strict=True))
    columns = Classification().summarize(Totals.add_up(observations).sums())
    ours = {name: None if np.isnan(column[0]) else float(column[0]) for name, column in columns.items()}
    assert_equal(ours, reference(gold, predicted, sorted({*gold, *predicted})))


@settings(deadline=None)
@given(pairs, st.randoms(use_true_random=False))
def test_columns_give_what_each_row_gives_alone(items: list[tuple[str, str]], random: Any) -> None:
    observations = [measure(*item) for item in items]
    names, matrix = stack(observations)
    weights = np.array([[random.randrange(3) for _ in items] for _ in range(4)], dtype=float)
    totals = weights @ matrix
    many = Classification().summarize(Sums({name: totals[:, i] for i, name in enumerate(names)}, length=4))
    for row in range(4):
        sums = Sums({name: totals[row : row + 1, i] for i, name in enumerate(names)}, length=1)
        one = Classification().summarize(sums)
        assert {name: repr(column[row]) for name, column in many.items()} == {
            name: repr(column[0]) for name, column in one.items()
        }


EVERY_OPTION = [
    {},
    {"ignore": ("a", "b")},
    {"positive": "a"},
    {"negatives": ("a", "b")},
    {"labels": tuple("abcd")},
]


@settings(deadline=None)
@given(pairs, st.sampled_from(EVERY_OPTION))
def test_metric_without_value_has_a_reason(items: list[tuple[str, str]], options: dict[str, Any]) -> None:
    gold, predicted = ([*side] for side in zip(*items, strict=True))
    observation = measure(gold, predicted, **options)
    scores = Classification(**options).scores(observation)
    absent = {name for name, value in scores.items() if value is None and "[" not in name}
    # Kappa has no value where one label is all there is, but such a case does count in the kappa of a suite.
    assert set(observation.undefined) <= absent <= {*observation.undefined, "cohen_kappa"}


@settings(deadline=None)
@given(pairs, st.sampled_from(EVERY_OPTION))
def test_metrics_are_those_described_and_within_their_range(
    items: list[tuple[str, str]], options: dict[str, Any]
) -> None:
    gold, predicted = ([*side] for side in zip(*items, strict=True))
    described = {metric.family: metric for metric in Classification(**options).describe()}
    scores = score(gold, predicted, **options)
    assert {name.partition("[")[0] for name in scores} == {name.rstrip("[") for name in described}
    for name, value in scores.items():
        metric = described.get(name) or described[name.partition("[")[0] + "["]
        if value is not None:
            assert metric.low is not None
            assert metric.low <= value <= (metric.high if metric.high is not None else value)


def test_single_label_is_counted_in_one_readable_cell() -> None:
    observation = measure("joy", "anger")
    assert observation.counts == {'cell["joy","anger"]': 1}
    assert observation.malformed is None


def test_json_texts_decide_equality() -> None:
    assert score([1, "1", True, 1.0], [1, 1, 1, 1])["accuracy"] == 0.25


def test_label_of_the_right_case_only_is_right() -> None:
    assert score("Supported", "supported")["accuracy"] == 0.0


@pytest.mark.parametrize("expected", [None, [], ()])
def test_absent_gold_leaves_every_metric_undefined(expected: Any) -> None:
    observation = measure(expected, "joy", positive="joy")
    assert observation.counts == {}
    assert set(observation.undefined.values()) == {"no expected label"}
    assert set(observation.undefined) == {
        metric.name for metric in Classification(positive="joy").describe() if "[" not in metric.name
    }


def test_gold_of_the_wrong_form_is_not_counted() -> None:
    observation = measure({"label": "joy"}, "joy")
    assert observation.counts == {}
    assert observation.undefined["accuracy"] == "found an object as expected, expected a label or a list of labels"


@pytest.mark.parametrize(
    ("gold", "predicted", "message"),
    [
        ("joy", None, "found null, expected a label"),
        ("joy", {"label": "joy"}, "found an object, expected a label"),
        ("joy", ["joy"], "found a list, expected a label"),
        ("joy", MISSING, "found nothing, expected a label"),
        ("joy", float("nan"), "found number NaN, expected a label"),
        (["joy"], "joy", "found text 'joy', expected a list of labels"),
        (["joy"], None, "found null, expected a list of labels"),
        (["joy"], [], "found 0 labels, expected 1"),
        (["joy"], [None], "found null at position 1, expected a label"),
    ],
)
def test_unreadable_prediction_is_malformed_and_wrong(gold: Any, predicted: Any, message: str) -> None:
    observation = measure(gold, predicted)
    assert observation.malformed == message
    assert observation.counts == {'cell["joy",null]': 1}
    assert Classification().scores(observation)["accuracy"] == 0.0


def test_short_sequence_counts_missing_positions_as_wrong() -> None:
    observation = measure(["a", "b", "b"], ["a"])
    assert observation.malformed == "found 1 labels, expected 3"
    assert ConfusionMatrix.read_cells(observation.counts) == {('"a"', '"a"'): 1, ('"b"', LabelKey.NONE): 2}
    scores = Classification().scores(observation)
    assert scores["accuracy"] == pytest.approx(1 / 3)
    assert scores["recall[b]"] == 0.0
    assert not any("(none)" in name for name in scores)


def test_missing_answers_lower_recall_and_not_precision() -> None:
    scores = score(["a", "b", "b"], ["a"])
    assert scores["precision_micro"] == 1.0
    assert scores["recall_micro"] == pytest.approx(1 / 3)
    assert scores["recall_macro"] == 0.5


def test_long_sequence_ignores_and_tells_the_surplus() -> None:
    observation = measure(["a"], ["a", "b"])
    assert observation.malformed == "found 2 labels, expected 1"
    assert observation.counts == {'cell["a","a"]': 1}
    assert observation.details == {"surplus_labels": ["b"]}


def test_details_list_positions_that_differ() -> None:
    details = measure(["a", "b", 1], ["a", "c", "1"]).details
    assert details == {
        "differing": 2,
        "differing_positions": [
            {"position": 2, "expected": "b", "predicted": "c"},
            {"position": 3, "expected": "1", "predicted": '"1"'},
        ],
    }


def test_details_stay_short() -> None:
    details = measure(["a"] * 500, ["b"] * 500).details
    assert details["differing"] == 500
    assert len(details["differing_positions"]) == 20


def test_prediction_outside_the_closed_set_is_wrong_and_listed() -> None:
    observation = measure(["a", "b", "b"], ["a", "y", "x"], labels=("a", "b"))
    assert observation.malformed is None
    assert observation.details["invalid_labels"] == ["x", "y"]
    assert ConfusionMatrix.read_cells(observation.counts) == {('"a"', '"a"'): 1, ('"b"', '"x"'): 1, ('"b"', '"y"'): 1}
    scores = Classification(labels=("a", "b")).scores(observation)
    assert scores["accuracy"] == pytest.approx(1 / 3)
    assert scores["f1_macro"] == 0.5
    assert [name for name in scores if name.startswith("f1[")] == ["f1[a]", "f1[b]"]


def test_closed_labels_that_do_not_occur_have_no_value_and_no_part_in_averages() -> None:
    scores = score(["a"], ["a"], labels=("a", "b"))
    assert (scores["f1[b]"], scores["support[b]"], scores["f1_macro"]) == (None, 0.0, 1.0)


def test_ignored_labels_stay_in_accuracy_and_labels_of_their_own() -> None:
    scores = score(["neutral", "neutral", "joy"], ["neutral", "joy", "joy"], ignore=("neutral",))
    assert scores["accuracy"] == pytest.approx(2 / 3)
    assert (scores["precision_micro"], scores["recall_micro"]) == (0.5, 1.0)
    assert scores["f1_macro"] == pytest.approx(2 / 3)
    assert scores["f1_weighted"] == pytest.approx(2 / 3)
    assert scores["recall[neutral]"] == 0.5


def test_positive_label_has_metrics_of_its_own() -> None:
    scores = score(["y", "y", "n"], ["y", "n", "n"], positive="y")
    assert scores["positive_precision"] == scores["precision[y]"] == 1.0
    assert scores["positive_recall"] == scores["recall[y]"] == 0.5
    assert scores["positive_f1"] == scores["f1[y]"] == pytest.approx(2 / 3)


def test_all_labels_but_the_negatives_are_one_positive_class() -> None:
    scores = score(["joy", "anger", "neutral", "joy"], ["anger", "neutral", "joy"], negatives=("neutral",))
    assert scores["positive_precision"] == 0.5
    assert scores["positive_recall"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positive": "a", "negatives": ("b",)}, "found both positive and negatives, expected one of them"),
        (
            {"labels": ("joy", "anger"), "ignore": ("jy",)},
            "ignore: found text 'jy', expected one of the labels \"joy\", \"anger\" (did you mean 'joy'?)",
        ),
        (
            {"labels": (0, 1), "positive": "1"},
            "positive: found text '1', expected one of the labels 0, 1",
        ),
        ({"labels": (None,)}, "labels: found null, expected a label (text, number or boolean)"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        Classification(**options)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("expected", "faults"),
    [
        ("joy", []),
        (None, []),
        ([], []),
        (["joy", "anger"], []),
        ("JOY", ["found text 'JOY', expected one of the labels \"joy\", \"anger\" (did you mean 'joy'?)"]),
        (["x", "x"], ['found text \'x\', expected one of the labels "joy", "anger"']),
        ({"a": 1}, ["found an object, expected a label (text, number or boolean)"]),
        ([None, "joy"], ["found null, expected a label (text, number or boolean)"]),
    ],
)
def test_check_names_faults_of_gold(expected: Any, faults: list[str]) -> None:
    assert list(Classification(labels=("joy", "anger")).check(Case("x", expected=expected))) == faults


def test_any_gold_label_passes_an_open_set() -> None:
    assert list(Classification().check(Case("x", expected=["a", 1, True, 2.5]))) == []


def test_signature_names_the_options() -> None:
    metric = Classification(labels=("a", 1), ignore=("a",), positive=1).describe()[0]
    assert metric.signature == "labels:a,1|ignore:a|positive:1|zero_division:0|v:1"


def test_observation_survives_json() -> None:
    observation = measure(["喜", 1, "z"], ["怒", 1], ignore=("z",))
    assert Observation.from_json(json.loads(json.dumps(observation.to_json()))) == observation


@pytest.mark.skipif(not RECORDED.exists(), reason="the conformance data is not beside the repository")
def test_utterance_labels_of_conversations_give_the_built_in_scores() -> None:
    rows = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["kind"] == "step1"]
    assert rows
    evaluator = Classification(labels=EMOTIONS, negatives=("neutral",))
    for row in rows:
        observations = [
            evaluator.measure(
                Case(
                    "x",
                    expected=[EMOTIONS[label] for label in gold[:length]],
                    prediction=[EMOTIONS[label] for label in predicted[:length]],
                )
            )
            for gold, predicted, length in zip(row["true"], row["pred"], row["doc_len"], strict=True)
        ]
        columns = evaluator.summarize(Totals.add_up(observations).sums())
        expected = {f"positive_{part}": value for part, value in row["expected"]["binary"].items()}
        expected |= {f"f1[{label}]": value for label, value in row["expected"]["emotion_f1"].items()}
        expected["f1_weighted"] = row["expected"]["emotion_weighted_f1"]
        for name, value in expected.items():
            assert np.nan_to_num(columns[name][0]) == pytest.approx(value, abs=1e-6), (row["id"], name)


@pytest.mark.parametrize("labels", [(), ("a", "b", "c", "d", 1, "1")])
def test_metrics_of_some_labels_are_those_among_all(labels: tuple[Any, ...]) -> None:
    evaluator = Classification(labels=labels)
    pairs = [("a", "b"), ("b", "b"), ("c", "a"), (1, "1"), ("1", 1), ("d", "d"), ("a", "a")]
    names, matrix = stack([evaluator.measure(Case(str(n), None, *pair)) for n, pair in enumerate(pairs)])
    columns = {name: matrix[:, place] for place, name in enumerate(names)}
    every = evaluator.summarize(Sums(columns, len(pairs)))
    for wanted in ({"f1[a]", 'recall["1"]'}, {"support[1]"}, {"mcc", "accuracy"}, {"f1_macro", "f1[b]"}):
        some = evaluator.summarize(Sums(columns, len(pairs), frozenset(wanted)))
        assert wanted <= some.keys() <= every.keys()
        for name, column in some.items():
            assert np.array_equal(column, every[name], equal_nan=True)
