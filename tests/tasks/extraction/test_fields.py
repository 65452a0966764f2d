"""The evaluator ``fields``: metrics, comparators, and what a wrong field is told as."""

from typing import Any

import pytest

from pytest_llmeval import Case, EvaluatorError, Totals, get_evaluator, score

RATES = ("field_precision", "field_recall", "field_f1", "fields_exact")


def evaluated(expected: Any, prediction: Any, **paths: Any) -> dict[str, Any]:
    return get_evaluator("fields", **paths).evaluate(prediction, expected)


def rates(expected: Any, prediction: Any, **paths: Any) -> tuple[float | None, ...]:
    result = evaluated(expected, prediction, **paths)
    return tuple(result[name] for name in RATES)


def agrees(comparator: Any, expected: Any, found: Any) -> bool:
    return evaluated({"x": expected}, {"x": found}, x=comparator)["fields_exact"] == 1


def test_missing_and_extra_fields_count_in_recall_and_precision() -> None:
    result = evaluated({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "d": 4, "e": 6})
    assert (result["field_precision"], result["field_recall"]) == (1 / 4, 1 / 3)
    assert result["field_f1"] == 2 / 7
    assert (result["missing_fields"], result["extra_fields"], result["fields_exact"]) == (1, 2, 0)


def test_every_wrong_field_is_listed_with_found_and_expected() -> None:
    result = evaluated({"a": 1, "v": {"n": "x"}}, {"a": "1", "z": [2]})
    assert result["wrong"] == ['a: found "1", expected 1', 'v.n: missing, expected "x"', "z: extra, found [2]"]


def test_the_accuracy_of_a_field_is_over_the_cases_that_expect_it() -> None:
    cases = [
        Case("1", expected={"total": 1, "note": "x"}, prediction={"total": 1}),
        Case("2", expected={"total": 2}, prediction={"total": 3, "note": "y"}),
        Case("3", expected={"note": "z"}, prediction={"note": "z"}),
    ]
    metrics = score(get_evaluator("fields"), cases, confidence=None).metrics
    assert metrics["field[total]"].value == 1 / 2
    assert metrics["field[note]"].value == 1 / 2
    assert metrics["field_f1"].value == 2 * 2 / (4 + 4)
    assert metrics["fields_exact"].value == 1 / 3


def test_null_and_absent_are_the_same() -> None:
    assert rates({"a": 1, "b": None}, {"a": 1, "c": None}) == (1, 1, 1, 1)
    assert evaluated({"a": None}, {"a": 3})["wrong"] == ["a: extra, found 3"]


def test_nothing_expected_and_nothing_found_is_right() -> None:
    assert rates({}, {}) == (1, 1, 1, 1)


def test_recall_is_one_where_nothing_is_expected_whatever_was_found() -> None:
    assert rates({}, {"a": 1}) == (0, 1, 0, 0)


def test_precision_is_zero_where_nothing_was_found() -> None:
    assert rates({"a": 1}, {}) == (0, 0, 0, 0)


def test_a_case_without_expected_is_undefined() -> None:
    assert rates(None, {"a": 1}) == (None,) * 4


@pytest.mark.parametrize(
    ("comparator", "expected", "found", "right"),
    [
        ("exact", "a", "a", True),
        ("exact", "a", "A", False),
        ("exact", 1, 1.0, True),
        ("exact", 1, "1", False),
        ("exact", 1, True, False),
        ("exact", 0, False, False),
        ("exact", [1, 2], [2, 1], False),
        ("exact", [1, {"k": True}], [1, {"k": 1}], False),
        ("text", "Straße  9", " STRASSE 9\n", True),
        ("text", "Cafe\u0301", "CAF\u00c9", True),
        ("text", "a b", "ab", False),
        ("text", 12, "12", True),
        ("text", "x", ["x"], False),
        ("number", 12, "12.0", True),
        ("number", 12, 12.5, False),
        ("number", 1, True, False),
        ("number", 12, "twelve", False),
        ({"number": {"tolerance": 0.1}}, 1.0, 1.1, True),
        ({"number": {"tolerance": 0.1}}, 1.0, 1.11, False),
        ({"number": {"tolerance": 0.01}}, 12, "12.01", True),
        ({"number": {"relative": 0.1}}, -200, -220, True),
        ({"number": {"relative": 0.1}}, -200, -221, False),
        ({"number": {"tolerance": 5, "relative": 0.1}}, 10, 14, True),
        ("date", "2024-03-05", "March 5, 2024", True),
        ("date", "2024-03-05", "5 Mar 2024", True),
        ("date", "2024-03-05", "2024-03-05T23:10:00Z", True),
        ("date", "2024-03-05", "20240305", True),
        ("date", "2024-03-05", "2024年3月5日", True),
        ("date", "2024-03-05", "2024/3/5", True),
        ("date", "2024-03-05", "05/03/2024", False),
        ("date", "2024-03-05", "2024-03-32", False),
        ({"date": {"order": "dmy"}}, "2024-03-05", "05/03/2024", True),
        ({"date": {"order": "mdy"}}, "2024-03-05", "03.05.2024", True),
        ("set", ["a", "b"], ["b", "a", "a"], True),
        ("set", ["a"], "a", True),
        ("set", ["a", "b"], ["a"], False),
        ({"set": {"of": "text"}}, ["A b"], ["a  B"], True),
        ({"set": {"of": "number"}}, [1, 2], ["2.0", 1], True),
    ],
)
def test_comparators(comparator: Any, expected: Any, found: Any, right: bool) -> None:
    assert agrees(comparator, expected, found) is right


def test_a_field_that_is_ignored_counts_nowhere() -> None:
    assert rates({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": {"d": 4}}, b="ignore", c="ignore") == (1, 1, 1, 1)


def test_other_fields_are_compared_as_the_star_says() -> None:
    expected, found = {"a": "X", "v": {"n": "Y"}, "k": "Z"}, {"a": "x", "v": {"n": "y"}, "k": "z"}
    assert evaluated(expected, found, **{"*": "text", "k": "exact"})["wrong"] == ['k: found "z", expected "Z"']
    assert rates({"a": 1, "b": 2}, {"a": 1, "c": 3}, **{"*": "ignore", "a": "exact"}) == (1, 1, 1, 1)


def test_a_path_leads_into_objects_and_lists() -> None:
    paths = {"vendor.name": "text", "items[].price": {"number": {"tolerance": 0.5}}}
    expected = {"vendor": {"name": "ACME", "id": 1}, "items": [{"sku": "a", "price": 2}, {"sku": "b", "price": 5}]}
    found = {"vendor": {"name": "acme", "id": 1}, "items": [{"sku": "b", "price": 9}, {"sku": "a", "price": 2.5}]}
    result = evaluated(expected, found, **paths)
    assert result["wrong"] == ["items[1].price: found 9, expected 5"]
    assert result["field[items[].price]"] == 1 / 2
    assert result["field[items[].sku]"] == 1
    assert result["field[items]"] == 0
    assert result["field[vendor]"] == 1
    assert result == evaluated(
        expected,
        found,
        vendor={"fields": {"name": "text"}},
        items={"list": {"fields": {"price": {"number": {"tolerance": 0.5}}}}},
    )


def test_a_list_as_the_whole_answer() -> None:
    expected = [{"name": "Ann", "age": 3}, {"name": "Bo", "age": 4}]
    result = evaluated(expected, expected[::-1], **{".": {"list": {"key": "name"}}})
    assert result["fields_exact"] == 1
    assert result["field[[].age]"] == 1


@pytest.mark.parametrize(
    ("prediction", "reason"),
    [
        ('{"total": 12, "it', 'found truncated JSON (the text ends with \'{"total": 12, "it\'), expected all of it'),
        ("The total is 12.", "found text 'The total is 12.', expected JSON (Expecting value at line 1, column 1)"),
        ("[1]", "found a list, expected an object"),
        (3, "found number 3, expected an object"),
        (None, "found null, expected an object"),
    ],
)
def test_an_answer_that_is_no_object_fails_its_case_and_counts_as_empty(prediction: Any, reason: str) -> None:
    observation = get_evaluator("fields").measure(Case("a", expected={"total": 12}, prediction=prediction))
    assert observation.malformed == reason
    assert get_evaluator("fields").scores(observation)["field_recall"] == 0


def test_an_empty_expected_object_does_not_make_a_malformed_answer_right() -> None:
    observation = get_evaluator("fields").measure(Case("a", expected={}, prediction="nothing"))
    assert get_evaluator("fields").scores(observation)["fields_exact"] == 0


def test_an_object_or_list_of_another_form_is_wrong_as_a_whole() -> None:
    assert rates({"v": {"a": 1, "b": 2}, "x": 1}, {"v": "a", "x": 1}) == (1 / 2, 1 / 3, 2 / 5, 0)
    assert rates({"v": [1, 2], "x": 1}, {"v": 1, "x": 1}, v="list") == (1 / 2, 1 / 3, 2 / 5, 0)


@pytest.mark.parametrize(
    ("expected", "paths", "fault"),
    [
        ("text", {}, "found text 'text', expected an object"),
        ({"d": "soon"}, {"d": {"date": {"order": "dmy"}}}, "d: found text 'soon', expected a date such as 2024-03-05"),
        (
            {"i": [{"n": "x"}]},
            {"i": {"list": {"fields": {"n": "number"}}}},
            "i[0].n: found text 'x', expected a number",
        ),
        ({"i": 3}, {"i": "list"}, "i: found number 3, expected a list"),
        ({"i": 3}, {"i.j": "text"}, "i: found number 3, expected an object"),
        ({"s": [[1]]}, {"s": {"set": {"of": "text"}}}, "s: found a list, expected text"),
    ],
)
def test_an_expected_object_that_comparators_cannot_read_is_a_fault(expected: Any, paths: Any, fault: str) -> None:
    assert list(get_evaluator("fields", **paths).check(Case("a", expected=expected))) == [fault]


@pytest.mark.parametrize(
    ("paths", "fault"),
    [
        (
            {"total": "nmber"},
            "found the text 'nmber' (did you mean 'number'?), expected one of 'exact', 'text'",
        ),
        (
            {"total": {"number": {"tolernce": 1}}},
            "unknown key tolernce, did you mean tolerance?",
        ),
        ({"total": {"nmber": {}}}, "unknown key nmber, did you mean number?"),
        ({"total": {"number": {"tolerance": -1}}}, "found tolerance -1.0, expected a number of at least 0"),
        ({"total": {"number": {}, "date": {}}}, "found number and date, expected the options of one comparator"),
        ({"total": {}}, "found no options, expected the options of one comparator"),
        ({"i": {"list": {"of": "text", "fields": {}}}}, "found both of and fields, expected one of them"),
        ({"a": "text", "a.b": "text"}, "found 'a.b' inside 'a', which is compared as one value"),
        ({"a.b": "text", "a": {"fields": {"b": "exact"}}}, "found the field 'b' twice, expected it once"),
        ({"a": "list", "a.b": "text"}, "found 'a.b' inside a list, expected a[] in front of the field"),
        (
            {"a[]": "text", "a": {"list": {"of": "text"}}},
            "found 'a[]' and comparators of elements at 'a', expected one",
        ),
        ({"a..b": "text"}, "found 'a..b', expected a path such as total, vendor.name or items[].price"),
    ],
)
def test_faulty_paths_are_named(paths: Any, fault: str) -> None:
    with pytest.raises(EvaluatorError, match=r"evaluator 'fields'") as raised:
        get_evaluator("fields", **paths)
    assert fault in str(raised.value)


def test_totals_of_cases_do_not_depend_on_their_order() -> None:
    evaluator = get_evaluator("fields", i="list")
    cases = [Case(str(n), expected={"i": [n, 2], "k": n}, prediction={"i": [2, 1], "k": 1}) for n in range(4)]
    observations = [evaluator.measure(case) for case in cases]
    assert Totals.add_up(observations) == Totals.add_up(observations[::-1])


def test_signatures_differ_with_the_comparators_and_not_with_their_order() -> None:
    def signature(**paths: Any) -> str:
        return get_evaluator("fields", **paths).describe()[0].signature

    tolerant: Any = {"number": {"tolerance": 1}}
    assert len({signature(), signature(a="number"), signature(a=tolerant), signature(b="number")}) == 4
    assert signature(a=tolerant, b="text") == signature(b="text", a=tolerant)
