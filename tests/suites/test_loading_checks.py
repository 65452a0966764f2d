"""Checks of a suite file and of data rows: where they stand, what they become, their faults with line and column."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its types are a distribution of their own
import pytest
import yaml
from project import load_text

from pytest_llmeval import Case, EvaluatorError, SuiteError, get_checks
from pytest_llmeval.baselines._comparable import SuiteIdentity
from pytest_llmeval.evaluators import Checks
from pytest_llmeval.evaluators.checks._evaluator import JudgedChecks
from pytest_llmeval.suites import LoadedSuite, Registry
from pytest_llmeval.suites._schema import suite_schema

CASES = "cases: [{id: a, prediction: x}]\n"


def faults(text: str, folder: Path) -> list[str]:
    try:
        return [str(fault) for fault in load_text(text, folder).faults]
    except SuiteError as error:
        return [str(fault) for fault in error.faults]


def rate(suite: LoadedSuite, case: Case) -> float | None:
    evaluator = suite.evaluators["checks"]
    return evaluator.scores(evaluator.measure(case))["check_rate"]


def test_checks_of_the_suite_and_of_a_case_are_made_together(tmp_path: Path) -> None:
    suite = load_text(
        "checks: [{contains: x}]\ncases: [{id: a, prediction: x, checks: [{contains: y}]}, {id: b, prediction: x}]\n",
        tmp_path,
    )
    assert list(suite.evaluators) == ["checks"]
    assert suite.can_fail
    assert [rate(suite, case) for case in suite.cases] == [0.5, 1]


def test_checks_of_cases_alone_are_enough_for_a_suite(tmp_path: Path) -> None:
    suite = load_text("cases: [{id: a, prediction: x, checks: [is_json]}]\n", tmp_path)
    assert rate(suite, suite.cases[0]) == 0


def test_rows_of_a_data_file_have_checks(tmp_path: Path) -> None:
    rows = [{"id": "a", "prediction": "x", "checks": [{"contains": "x"}]}, {"id": "b", "prediction": "x"}]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    suite = load_text("gates: [check_rate >= 1]\nevaluators: []\nsource: {format: jsonl, path: rows.jsonl}\n", tmp_path)
    assert [rate(suite, case) for case in suite.cases] == [1, None]


@pytest.mark.parametrize(
    ("limits", "place"),
    [
        ("gates: ['check[is_jsn] >= 1']\n", "2:9  gates[0]"),
        ("gates: [check_rate >= 1, {metric: 'low(check[is_jsn])', min: 1}]\n", "2:35  gates[1].metric"),
        ("gates: [{metric: 'check[is_jsn]', max_drop: 0.1}]\n", "2:18  gates[0].metric"),
        ("thresholds: {'check[is_jsn]': 1}\n", "2:14  thresholds['check[is_jsn]']"),
        (
            "cases: [{id: a, prediction: x, thresholds: {'check[is_jsn]': 1}}]\n",
            "2:45  cases[0].thresholds['check[is_jsn]']",
        ),
    ],
)
def test_a_limit_on_a_name_that_no_check_has_is_a_fault(tmp_path: Path, limits: str, place: str) -> None:
    cases = "" if "cases" in limits else CASES
    (found,) = faults(f"checks: [is_json, {{contains: x, name: has x}}]\n{limits}{cases}", tmp_path)
    assert found == f"s.eval.yaml:{place}: unknown metric check[is_jsn], did you mean check[is_json]?"


def test_a_gate_may_name_a_check_of_a_single_case_or_of_a_row(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": "b", "prediction": "x", "checks": [{"contains": "x"}]}\n')
    text = "gates: ['check[is_json] >= 1', 'check[contains] >= 1']\nsource: {format: jsonl, path: rows.jsonl}\n"
    cases = "cases: [{id: a, prediction: x, checks: [is_json]}]\n"
    assert faults(text + cases, tmp_path) == []


def test_a_fault_of_a_rows_check_has_the_rows_line_and_the_good_rows_survive(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "checks": ["is_json"]},
        {"id": "b", "checks": [{"regex": "("}]},
        {"id": "c", "checks": "is_json"},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    suite = load_text("evaluators: [text]\nsource: {format: jsonl, path: rows.jsonl}\n", tmp_path)
    assert [case.id for case in suite.cases] == ["a"]
    assert suite.faulty == 2
    found = sorted(str(fault).rpartition("/")[2] for fault in suite.faults)
    assert found[0].startswith("rows.jsonl:2:1  checks[0].regex: found the pattern '(', which does not compile")
    assert found[1] == "rows.jsonl:3:1  checks: found the text 'is_json', expected a list of checks"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("checks: [{contain: x}]\n" + CASES, "s.eval.yaml:1:11  checks[0].contain: unknown check contain"),
        ("checks: is_json\n" + CASES, "s.eval.yaml:1:9  checks: found the text 'is_json', expected a list"),
        (
            "checks:\n  - regex: 'ab('\n" + CASES,
            "s.eval.yaml:2:16  checks[0].regex: found the pattern 'ab(', which does not compile (missing ) at",
        ),
        ("checks: [{contains: x, on: a..b}]\n" + CASES, "s.eval.yaml:1:30  checks[0].on: found 'a..b' with '.' at"),
        ("checks: [{max_words: many}]\n" + CASES, "s.eval.yaml:1:22  checks[0].max_words: found the text 'many'"),
        (
            "checks: [{json_schema: none.json}]\n" + CASES,
            "s.eval.yaml:1:24  checks[0].json_schema: 'none.json': cannot be read",
        ),
        (
            "checks: [{json_schema: ../../up.json}]\n" + CASES,
            "s.eval.yaml:1:24  checks[0].json_schema: found '../../up.json', which is outside the folder",
        ),
        (
            "evaluators: [text: {as: checks}]\nchecks: [is_json]\n" + CASES,
            "s.eval.yaml:2:9  checks: found 'checks' twice, expected distinct names",
        ),
        (CASES, "s.eval.yaml:1:1  evaluators or checks is missing"),
        ("checks: []\n" + CASES, "s.eval.yaml:1:1  evaluators or checks is missing"),
    ],
)
def test_a_fault_of_a_check_has_line_and_column(text: str, fault: str, tmp_path: Path) -> None:
    (found,) = faults(text, tmp_path)
    assert found.startswith(fault)


def test_a_fault_of_a_cases_check_leaves_the_other_cases(tmp_path: Path) -> None:
    suite = load_text(
        "checks: [is_json]\ncases:\n  - {id: a}\n  - {id: b, checks: [{contains: x}, {contian: y}]}\n", tmp_path
    )
    assert [case.id for case in suite.cases] == ["a"]
    (fault,) = map(str, suite.faults)
    assert fault.startswith("s.eval.yaml:4:38  cases[1].checks[1].contian: unknown check contian")


def test_a_schema_is_read_from_a_file_beside_the_suite(tmp_path: Path) -> None:
    (tmp_path / "point.json").write_text('{"required": ["x"]}')
    suite = load_text("checks: [{is_json: point.json}]\n" + CASES, tmp_path)
    case = suite.cases[0]
    assert [rate(suite, case.answered(text)) for text in ('{"x": 1}', "{}")] == [1, 0]


@pytest.mark.parametrize(
    ("checks", "kind"),
    [("[is_json]", Checks), ("[{judge: Is kind.}]", JudgedChecks), ("[any_of: [judge: a]]", JudgedChecks)],
)
@pytest.mark.parametrize("place", ["suite", "case"])
def test_a_suite_is_judged_only_where_a_check_needs_a_judge(
    place: str, checks: str, kind: type[Checks], tmp_path: Path
) -> None:
    top, own = (checks, "[]") if place == "suite" else ("[is_json]", checks)
    suite = load_text(f"checks: {top}\ncases: [{{id: a, prediction: x, checks: {own}}}]\n", tmp_path)
    assert type(suite.evaluators["checks"]) is kind


def test_equal_checks_of_many_cases_are_read_once(tmp_path: Path) -> None:
    cases = ", ".join(f"{{id: c{number}, checks: [{{regex: 'a+'}}]}}" for number in range(3))
    first, *others = load_text(f"cases: [{cases}]\n", tmp_path).cases
    assert all(each.checks[0] is first.checks[0] for each in others)


def test_gates_and_thresholds_know_the_metrics_of_checks(tmp_path: Path) -> None:
    gates = "gates: [check_rate >= 0.9, 'check[is_json] >= 1']\nthresholds: {check_rate: 0.5}\n"
    assert faults(f"checks: [is_json]\n{gates}{CASES}", tmp_path) == []
    (found, *_) = faults(f"evaluators: [text]\n{gates}{CASES}", tmp_path)
    assert "unknown metric check_rate" in found


def test_changed_checks_make_runs_incomparable(tmp_path: Path) -> None:
    def suite(shared: str, own: str) -> LoadedSuite:
        return load_text(
            f"checks: [{{contains: {shared}}}]\ncases: [{{id: a, checks: [{{contains: {own}}}]}}]\n", tmp_path
        )

    one = suite("x", "y")
    assert SuiteIdentity(one).comparable() == SuiteIdentity(suite("x", "y")).comparable()
    assert SuiteIdentity(one).comparable().evaluators != SuiteIdentity(suite("z", "y")).comparable().evaluators
    assert SuiteIdentity(one).comparable().data != SuiteIdentity(suite("x", "z")).comparable().data
    assert SuiteIdentity(one).digests["a"] != SuiteIdentity(suite("x", "z")).digests["a"]


def in_time(answer: str, most: int) -> bool:
    """The answer is short."""
    return len(answer) <= most


@pytest.mark.parametrize(
    "place", ["checks: [{any_of: [is_json, {at_least: {n: 1, of: [{json_schema: p.json}]}}]}]", ""]
)
def test_runs_by_another_schema_of_a_file_are_not_comparable(place: str, tmp_path: Path) -> None:
    own = "" if place else ", checks: [{json_schema: p.json}]"

    def prints(schema: str) -> tuple[Any, str]:
        (tmp_path / "p.json").write_text(schema)
        made = SuiteIdentity(load_text(f"{place}\ncases: [{{id: a, prediction: x{own}}}]\n", tmp_path)).comparable()
        return made.evaluators["checks"], made.data

    first = prints('{"type": "object", "title": "t"}')
    assert prints('{ "title": "t", "type": "object"}') == first
    assert prints('{"type": "string", "title": "t"}') != first


def with_own() -> Registry:
    registry = Registry.installed()
    assert registry.register_check(in_time) is in_time
    registry.register_check(in_time)
    return registry


@cache
def schema() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(suite_schema(with_own()))


def test_a_registered_function_is_a_check_of_suite_files(tmp_path: Path) -> None:
    suite = load_text("checks: [{in_time: 3}]\ncases: [{id: a, prediction: long}]\n", tmp_path, registry=with_own())
    assert rate(suite, suite.cases[0]) == 0
    text = "checks: [{in_time: x}]\n" + CASES
    with pytest.raises(SuiteError, match=r"1:20  checks\[0\].in_time: found the text 'x', expected a whole number"):
        load_text(text, tmp_path, registry=with_own())


@pytest.mark.parametrize("name", ["contains", "in_time"])
def test_the_name_of_a_check_is_taken_once(name: str) -> None:
    with pytest.raises(EvaluatorError, match=f"the check name '{name}' is taken by "):
        with_own().register_check(str.isupper, name)


GOOD: list[Any] = [
    "is_json",
    "not_pii",
    {"contains": "a", "name": "n", "on": "answer", "weight": 2},
    {"not_contains": ["a", "b"]},
    {"is_json": {"type": "object"}},
    {"refusal": None},
    {"pii": ["email"]},
    {"number": {"equals": 3, "tolerance": 0.5}},
    {"number": 3},
    {"levenshtein": {"to": "a", "max": 1}},
    {"any_of": [{"all_of": ["is_json"]}, {"at_least": {"n": 1, "of": [{"regex": "a"}]}}]},
    {"latency_s": {"max": 2}},
    {"json_equals": [1, None]},
    {"judge": "Is kind."},
    {"in_time": 3},
]
BAD: list[Any] = [
    "contains",
    "isjson",
    {"contain": "a"},
    {"contains": "a", "regex": "b"},
    {"name": "n"},
    {"contains": "a", "weight": 0},
    {"max_words": "a"},
    {"any_of": []},
    {"at_least": {"n": 1}},
    {"levenshtein": {"to": "a", "most": 1}},
    {"refusal": "en"},
    3,
]


@pytest.mark.parametrize("place", ["suite", "case"])
@pytest.mark.parametrize("entry", [*GOOD, *BAD])
def test_the_json_schema_agrees_with_the_loader_about_checks(entry: Any, place: str, tmp_path: Path) -> None:
    top: dict[str, Any] = {"cases": [{"id": "a", "prediction": "x"}]}
    (top if place == "suite" else top["cases"][0])["checks"] = [entry]
    assert schema().is_valid(top) is (entry in GOOD)
    try:
        faulty = bool(load_text(yaml.safe_dump(top), tmp_path, registry=with_own()).faults)
    except SuiteError:
        faulty = True
    assert faulty is (entry in BAD)


def test_checks_are_built_in_python_with_all_faults_at_once() -> None:
    assert get_checks({"contains": "a"}).evaluate("ab", None)["check_rate"] == 1
    assert isinstance(get_checks({"judge": "Is kind."}), JudgedChecks)
    with pytest.raises(EvaluatorError, match=r"^checks\[0\]: .*; checks\[1\].regex: "):
        get_checks("contain", {"regex": "("})
