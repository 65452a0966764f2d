"""``judges`` of a suite file: jurors with the settings of a judge, the reduction, and what is refused."""

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its types are a distribution of their own
import pytest
import yaml
from project import load_text

from pytest_llmeval import SuiteError
from pytest_llmeval.judges import CascadeRule, JudgeOptions, JudgeSpec, PanelSpec
from pytest_llmeval.judges._spec import Doubt
from pytest_llmeval.suites import Registry
from pytest_llmeval.suites._schema import suite_schema

BODY = "evaluators: [{judge: {mode: preference}}]\ncases: [{id: a, input: x, expected: x, prediction: x}]\n"
THREE = 'judges: ["openai:a", {model: "openai:b", temperature: 0}, "anthropic:c"]\n'


def faults(text: str, folder: Path) -> list[str]:
    with pytest.raises(SuiteError) as error:
        load_text(text, folder)
    return [f"{fault.path}: {fault.message}" for fault in error.value.faults]


@cache
def schema() -> Any:
    return suite_schema(Registry.installed())


def valid(text: str) -> bool:
    return bool(jsonschema.Draft202012Validator(schema()).is_valid(yaml.safe_load(text)))


def test_each_juror_has_the_settings_of_a_judge_and_the_suite_the_metrics_of_their_agreement(tmp_path: Path) -> None:
    text = f"{THREE}reduce: majority\nmin_judges: 2\ngates: [judge_panel_alpha >= 0.5]\n{BODY}"
    suite = load_text(text, tmp_path)
    specs = (JudgeSpec("openai:a"), JudgeSpec("openai:b", temperature=0), JudgeSpec("anthropic:c"))
    assert suite.judge == PanelSpec(specs, "majority", 2)
    assert [name for name in suite.metrics.declared if "panel" in name] == ["judge panel"]
    assert valid(text)


def test_agreement_is_measured_for_every_evaluator_that_asks_under_its_name(tmp_path: Path) -> None:
    evaluators = "[{judge: {mode: preference}}, {judge: {mode: tone}, as: tone}, text]"
    suite = load_text(f"{THREE}{BODY.replace('[{judge: {mode: preference}}]', evaluators)}", tmp_path)
    assert list(suite.evaluators) == ["judge", "tone", "text", "judge panel", "tone panel"]
    assert suite.metrics.find("tone_panel_spread") is not None


def test_checks_have_an_agreement_only_if_a_judge_decides_one(tmp_path: Path) -> None:
    case = "cases: [{id: a, prediction: x, checks: [%s]}]\n"
    judged = load_text(f"{THREE}{case % '{judge: Is short.}'}", tmp_path)
    plain = load_text(f"{THREE}{case % '{contains: x}'}", tmp_path)
    assert (list(judged.evaluators), list(plain.evaluators)) == (["checks", "checks panel"], ["checks"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('judges: ["openai:a"]\n', ["judges: found 1 judge, expected two or more"]),
        ("judges: []\n", ["judges: found 0 judges, expected two or more"]),
        ('judges: ["openai:a", {temperature: 0}]\n', ["judges: found a juror without a model, expected PROVIDER:NAME"]),
        (
            'judges: ["openai:a", {model: "openai:a", base_url: "http://localhost/v1"}]\n',
            ["judges: found 'openai:a' twice with the same parameters, expected distinct judges"],
        ),
        (f"{THREE}min_judges: 4\n", ["min_judges: found 4, expected 1 to 3, the number of judges"]),
        (f"{THREE}min_judges: 0\n", ["min_judges: found 0, expected 1 to 3, the number of judges"]),
        (f'{THREE}judge: "openai:a"\n', ["judges: found both 'judge' and 'judges', expected one of them"]),
        ("reduce: mean\n", ["reduce: found 'reduce' without 'judges', expected a panel of judges"]),
        ("min_judges: 2\n", ["min_judges: found 'min_judges' without 'judges', expected a panel of judges"]),
        (
            f"{THREE}reduce: mean\nchecks: [{{any_of: [{{judge: Is short.}}, {{contains: y}}]}}]\n",
            [
                "reduce: evaluator 'checks': found mean, expected majority or unanimous: a check 'judge' is met or not",
            ],
        ),
    ],
)
def test_what_cannot_be_a_panel_is_refused(text: str, found: list[str], tmp_path: Path) -> None:
    assert faults(text + BODY, tmp_path) == found


@pytest.mark.parametrize(
    "text", ['judges: "openai:a"\n', "judges: {a: b}\nreduce: mean\n", f"{THREE}min_judges: 4\n", "judges: [3]\n"]
)
def test_a_faulty_panel_leaves_its_metrics_known(text: str, tmp_path: Path) -> None:
    (found,) = faults(f"{text}gates: [judge_panel_alpha >= 0.5]\n{BODY}", tmp_path)
    assert found.partition(":")[0] in ("judges", "judges[0]", "min_judges")


def test_a_juror_with_faults_and_an_unknown_reduction_have_their_places(tmp_path: Path) -> None:
    found = faults(f'judges: ["openai:a", {{model: b, temprature: 0}}]\nreduce: mode\n{BODY}', tmp_path)
    assert [each.partition(":")[0] for each in found] == ["judges[1].temprature", "reduce"]
    assert not valid(f"{THREE}reduce: mode\n{BODY}")
    assert not valid(f'judges: ["openai:a"]\n{BODY}')


def test_two_jurors_of_one_model_are_told_apart_by_number() -> None:
    spec = PanelSpec((JudgeSpec("openai:a"), JudgeSpec("openai:b"), JudgeSpec("openai:a", temperature=1)))
    assert spec.names == ("openai:a #1", "openai:b", "openai:a #2")


def test_a_model_that_the_user_names_judges_alone_with_the_settings_of_the_juror_of_this_name() -> None:
    panel = PanelSpec((JudgeSpec("openai:a"), JudgeSpec("openai:b", temperature=0, base_url="http://b/v1")))
    assert JudgeOptions().chosen(panel) == panel
    assert JudgeOptions(model="openai:b").chosen(panel) == panel.judges[1]
    assert JudgeOptions(model="openai:x").chosen(panel) == JudgeSpec("openai:x")
    moved = JudgeOptions(base_url="http://local/v1").chosen(panel)
    assert isinstance(moved, PanelSpec)
    assert {each.base_url for each in moved.judges} == {"http://local/v1"}


TOP = "at the top level of the suite"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            'judge: {judges: ["openai:a", "openai:b"]}',
            f"judge.judges: found 'judges' inside 'judge', expected it {TOP}",
        ),
        ("judge: {min_judges: 1}", f"judge.min_judges: found 'min_judges' inside 'judge', expected it {TOP}"),
        (
            "judges: ['openai:a', {model: 'openai:b', reduce: mean}]",
            f"judges[1].reduce: found 'reduce' inside 'judges', expected it {TOP}",
        ),
        ("judge: {prompt: p.md}", "judge.prompt: found 'prompt' inside 'judge', expected it in an evaluator"),
        ("judge: ['openai:a']", "judge: found a list of 1, expected PROVIDER:NAME or a mapping; several judges stand"),
        ("judge: 3", "judge: found the number 3, expected PROVIDER:NAME or a mapping"),
        ("judges: ['openai:a', 3]", "judges[1]: found the number 3, expected PROVIDER:NAME or a mapping"),
    ],
)
def test_settings_in_the_place_of_others_are_told_where_they_belong(text: str, found: str, tmp_path: Path) -> None:
    assert faults(f"{text}\n{BODY}", tmp_path)[0].startswith(found)


@pytest.mark.parametrize("name", ["model", "judges", "reduce", "base_url"])
def test_a_judge_of_one_evaluator_is_told_that_the_suite_has_it(name: str, tmp_path: Path) -> None:
    text = BODY.replace("mode: preference", f"mode: preference, {name}: x")
    (found,) = faults(f"gates: [judge_score >= 0.5]\n{text}", tmp_path)
    assert found.startswith(f"evaluators[0].judge.{name}: found {name!r} inside an evaluator, expected it ")
    assert TOP in found


CASCADE = "judge: {first: 'openai:a', then: {model: 'openai:b', temperature: 0}, when: {score_between: [0.3, 0.8]}}\n"


def test_a_cascade_is_two_judges_with_a_rule_and_has_metrics_of_its_errors(tmp_path: Path) -> None:
    suite = load_text(CASCADE.replace("}}\n", "}, audit: 0.1, seed: 3}\n") + BODY, tmp_path)
    rule = CascadeRule(Doubt([0.3, 0.8]), 0.1, 3)
    assert suite.judge == PanelSpec((JudgeSpec("openai:a"), JudgeSpec("openai:b", temperature=0)), cascade=rule)
    assert list(suite.evaluators) == ["judge", "judge cascade"]
    assert suite.metrics.find("judge_cascade_error") is not None
    assert valid(CASCADE + BODY)
    assert valid(CASCADE.replace("score_between: [0.3, 0.8]", "disagree: 2") + BODY)


@pytest.mark.parametrize(("judges", "key", "kind"), [(CASCADE, "judge", "cascade"), (THREE, "judges", "panel")])
def test_a_name_of_the_metrics_of_several_judges_is_a_fault_at_their_key(
    judges: str, key: str, kind: str, tmp_path: Path
) -> None:
    evaluators = f"[{{judge: {{mode: preference}}}}, {{text: {{}}, as: judge {kind}}}]"
    expected = f"{key}: found 'judge {kind}' twice, expected distinct names: rename one with 'as' (as_= in Python)"
    assert faults(judges + BODY.replace("[{judge: {mode: preference}}]", evaluators), tmp_path) == [expected]


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        ("{first: 'openai:a', when: {disagree: 2}}", "judge: then is missing"),
        ("{first: 'openai:a', then: 'openai:b'}", "judge: when is missing"),
        (
            "{first: 'openai:a', then: 'openai:b', when: {}}",
            "judge.when.score_between: score_between or disagree is missing",
        ),
        ("{first: 'openai:a', then: 'b', when: {disagree: 2}}", "judge.then.model: found 'b', expected PROVIDER:NAME"),
        ("{first: 'openai:a', then: 'openai:a', when: {disagree: 2}}", "judge.then: found 'openai:a' twice"),
        ("{first: 'openai:a', then: 'openai:b', when: {disagree: 1}}", "judge.when.disagree: found 1, expected"),
        ("{first: 'openai:a', then: 'openai:b', when: {disagree: 2}, audit: 2}", "judge.audit: found 2"),
        ("{first: {}, then: 'openai:b', when: {disagree: 2}}", "judge.first: found a judge without a model"),
        (
            "{first: 'openai:a', then: 'openai:b', when: {disagree: 2}, model: 'openai:c'}",
            "judge.model: unknown",
        ),
        ("{first: 'openai:a', then: 'openai:b', when: {disagree: 2}, reduce: mean}", "judge.reduce: found 'reduce'"),
    ],
)
def test_a_faulty_cascade_says_what_is_expected(found: str, fault: str, tmp_path: Path) -> None:
    messages = faults(f"judge: {found}\n{BODY}", tmp_path)
    assert any(each.startswith(fault) for each in messages), messages


def test_repeats_of_an_audited_cascade_are_averaged(tmp_path: Path) -> None:
    repeats = "repeats: {times: 3, reduce: median}\n"
    (fault,) = faults(CASCADE + repeats + BODY, tmp_path)
    assert fault.startswith("repeats.reduce: found median, expected mean with a cascade of judges, whose audit")
    load_text(CASCADE.replace("}}\n", "}, audit: 0}\n") + repeats + BODY, tmp_path)
