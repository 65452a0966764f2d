"""Edges of promptfoo 0.121.20: cells of tables, thresholds of 0, means of sets."""

from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from examples import met
from hypothesis import given, settings
from hypothesis import strategies as st
from project import run_import, write_source

from pytest_llmeval.exchange import ImportOptions
from pytest_llmeval.exchange._commands import import_source
from pytest_llmeval.exchange._ledger import LeftOutError
from pytest_llmeval.exchange.promptfoo._tests import assertion_of_cell


@pytest.mark.parametrize(
    ("cell", "assertion"),
    [
        ("not-contains: foo", {"type": "not-contains", "value": "foo"}),
        ("  contains:foo \n", {"type": "contains", "value": "foo"}),
        ("equals: foo", {"type": "equals", "value": "foo"}),
        (" Paris ", {"type": "equals", "value": "Paris"}),
        ("regex: ^a ", {"type": "regex", "value": "^a"}),
        ("starts-with:\ufeffa", {"type": "starts-with", "value": "a", "threshold": 0.75}),
        ("contains-json: {} ", {"type": "contains-json", "value": " {}"}),
        ("llm-rubric: is short ", {"type": "llm-rubric", "value": " is short"}),
        ("contains-any:a, b", {"type": "contains-any", "value": ["a", "b"]}),
        ('contains-any: "a, b" , c,,d', {"type": "contains-any", "value": ["a, b", "c", "d"]}),
        (r'icontains-all:"say \"hi\"","a""b"', {"type": "icontains-all", "value": ['say "hi"', 'a"b']}),
        (r'contains-any:"\d\\"', {"type": "contains-any", "value": ["\\d\\"]}),
        ("levenshtein:abc", {"type": "levenshtein", "value": "abc", "threshold": 0.75}),
        ("levenshtein(0):abc", {"type": "levenshtein", "value": "abc", "threshold": 0}),
        ("similar(0):abc", {"type": "similar", "value": "abc", "threshold": 0}),
        ("similar:abc", {"type": "similar", "value": "abc", "threshold": 0.8}),
        ("bleu(0.3):abc", {"type": "bleu", "value": "abc"}),
    ],
)
def test_a_cell_is_trimmed_and_split_as_promptfoo_does_it(cell: str, assertion: dict[str, Any]) -> None:
    assert assertion_of_cell(cell) == assertion


def checks_of(folder: Path, assertions: list[Any], **more: Any) -> tuple[list[Any], str]:
    """Return the checks of an imported test, and the fates with their texts."""
    write_source(folder, "suite.yaml", {"tests": [{"vars": {}, "assert": assertions, "providerOutput": "x", **more}]})
    source = import_source("promptfoo", folder / "suite.yaml", "suite.yaml", ImportOptions())
    assert source is not None
    assert source.suite is not None
    texts = "\n".join(f"{each.fate.value}: {each.kind}: {each.text}" for each in source.constructs)
    return source.suite.cases[0].get("checks", []), texts


@pytest.mark.parametrize(("threshold", "most"), [(0, 0), (0.5, 0), (0.75, 0), (1.9, 1), (None, 5)])
def test_a_limit_of_edits_is_never_the_default_because_it_is_0(tmp_path: Path, threshold: Any, most: int) -> None:
    assertion = {"type": "levenshtein", "value": "abc", **({} if threshold is None else {"threshold": threshold})}
    assert checks_of(tmp_path, [assertion])[0] == [{"levenshtein": {"to": "abc", "max": most}}]


NEVER = {"all_of": [{"empty": True}, {"not_empty": True}]}


@pytest.mark.parametrize("text", ['"a', '"a" b'])
def test_a_list_that_promptfoo_refuses_fails_every_answer(tmp_path: Path, text: str) -> None:
    checks, texts = checks_of(tmp_path, [{"type": "contains-any", "value": text}])
    assert checks == [NEVER]
    assert "same: contains-any: a check that no answer meets, as there: its list" in texts


@pytest.mark.parametrize(("weight", "why"), [("much", "a weight is 'much'"), (0.0071, "more than 200")])
def test_weights_that_no_checks_stand_for_leave_all_checks_required(tmp_path: Path, weight: Any, why: str) -> None:
    inside = [{"type": "equals", "value": "y"}]
    assertions = [{"type": "assert-set", "assert": inside, "weight": weight}, inside[0]]
    checks, texts = checks_of(tmp_path, assertions, threshold=0.5)
    assert checks == [{"all_of": [{"equals": "y"}]}, {"equals": "y"}]
    assert f"not imported: threshold of a test: {why}" in texts.replace("its weights would need ", "")


WEIGHTLESS = {"type": "equals", "value": "y", "weight": 0}


@pytest.mark.parametrize(
    ("assertions", "more", "check"),
    [
        ([WEIGHTLESS], {"threshold": 0.5}, NEVER),
        (
            [{"type": "assert-set", "assert": [{"type": "equals", "value": "y"}], "weight": 0}],
            {"threshold": 0.5},
            NEVER,
        ),
        ([{"type": "assert-set", "assert": [WEIGHTLESS], "threshold": 0.5}], {}, NEVER),
        ([{"type": "equals", "value": "y"}], {"threshold": 1.5}, NEVER),
        ([{"type": "contains", "value": ""}, {"type": "equals", "value": "y"}], {"threshold": 0}, NEVER),
        ([{"type": "assert-set", "assert": [{"type": "starts-with", "value": 5}]}], {}, NEVER),
        ([{"type": "contains-any", "value": ["", "a"]}], {}, {"any_of": NEVER["all_of"]}),
        ([{"type": "contains-all", "value": ["", "a"]}], {}, {"contains_all": ["a"]}),
        ([WEIGHTLESS, {"type": "equals", "value": "z"}], {}, {"equals": "z"}),
    ],
)
def test_what_always_fails_or_passes_there_does_so_here(
    tmp_path: Path, assertions: list[Any], more: dict[str, Any], check: Any
) -> None:
    assert checks_of(tmp_path, assertions, **more)[0] == [check]


def test_a_blank_answer_in_a_test_is_none_and_variables_name_variables(tmp_path: Path) -> None:
    tests = [
        {"vars": {"a": "{{b}}", "b": 1e21}, "assert": [{"type": "equals", "value": "{{a}} {{- b}}"}]},
        {"vars": {"a": "{{absent}}"}},
    ]
    config = {"prompts": ["{{a}}"], "tests": [{**each, "providerOutput": ""} for each in tests]}
    source = import_source("promptfoo", write_source(tmp_path, "suite.yaml", config), "suite.yaml", ImportOptions())
    assert source is not None
    assert source.suite is not None
    inputs = {"a": "1e+21", "b": 1e21}
    assert source.suite.cases == [{"id": "1", "input": inputs, "checks": [{"equals": "1e+211e+21"}]}]
    assert "variable a" in [each.kind for each in source.constructs if each.fate == "not imported"]


@pytest.mark.parametrize("threshold", [0, 0.0, -1])
def test_a_test_with_a_threshold_of_0_cannot_fail(tmp_path: Path, threshold: float) -> None:
    checks, texts = checks_of(tmp_path, [{"type": "equals", "value": "y"}], threshold=threshold)
    assert checks == []
    assert "not imported: equals: the threshold of its test is always reached" in texts
    assert "near: threshold of a test: " in texts


def test_a_threshold_in_a_table_is_a_number_or_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tests.csv").write_text("a,__expected,__threshold\n1,x,0\n2,x,\n3,x,half\n4,x,1.0\n")
    write_source(tmp_path, "suite.yaml", {"prompts": ["{{a}}"], "tests": "file://tests.csv"})
    cases = run_import(capsys, "promptfoo", str(tmp_path / "suite.yaml"), to=tmp_path / "out").suite()["cases"]
    equal = {"equals": "x"}
    assert [case.get("checks") for case in cases] == [None, [equal], [equal], [{"at_least": {"n": 1, "of": [equal]}}]]


LETTERS = "abcd"
weights = st.sampled_from([1, 2, 0.5])
leaves = st.builds(
    lambda letter, weight: {"type": "contains", "value": letter, "weight": weight}, st.sampled_from(LETTERS), weights
)
sets = st.builds(
    lambda inside, weight, threshold: {"type": "assert-set", "assert": inside, "weight": weight, **threshold},
    st.lists(leaves, min_size=1, max_size=2),
    weights,
    st.sampled_from([{}, {"threshold": 0.5}, {"threshold": 0}]),
)


def mean(assertions: list[Any], answer: str) -> Fraction:
    """Return the score of assertions as promptfoo computes it: sets are means of their own."""
    scored = [
        (
            mean(each["assert"], answer) if "assert" in each else Fraction(each["value"] in answer),
            Fraction(each["weight"]),
        )
        for each in assertions
    ]
    return sum((score * weight for score, weight in scored), Fraction()) / sum(weight for _, weight in scored)


@settings(max_examples=30, deadline=None)
@given(st.lists(leaves | sets, min_size=1, max_size=3), st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.6, 0.75, 1]))
def test_a_test_with_a_threshold_passes_by_the_weighted_mean_of_its_scores(
    tmp_path_factory: pytest.TempPathFactory, assertions: list[Any], threshold: float
) -> None:
    (check,), texts = checks_of(tmp_path_factory.mktemp("mean"), assertions, threshold=threshold)
    for letters in product(*((letter, "") for letter in LETTERS)):
        answer = "".join(letters)
        assert met(check, answer) is (float(mean(assertions, answer)) >= threshold), answer
    assert "near: assert-set" not in texts


@pytest.mark.parametrize(
    ("cell", "listed"),
    [
        ('"C:\\\\", b', ["C:\\", "b"]),
        ('"say \\"hi\\"", b', ['say "hi"', "b"]),
        ('"' + "\\\\" * 200 + '"', ["\\" * 200]),
    ],
)
def test_backslashes_in_lists_are_read_in_linear_time(cell: str, listed: list[str]) -> None:
    assert assertion_of_cell(f"contains-any: {cell}")["value"] == listed


def test_a_quotation_of_backslashes_without_an_end_is_refused_in_linear_time() -> None:
    with pytest.raises(LeftOutError, match="has a quotation"):
        assertion_of_cell('contains-any: "' + "\\" * 200 + '"x')
