"""Suites with systems: items, gates and snapshots of each, and the table of all."""

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

CASES = [
    {"id": "a", "input": "x", "expected": "yes it is", "labels": {"kind": "plain"}},
    {"id": "b", "input": "y", "expected": "no", "labels": {"kind": "plain"}},
    {"id": "c", "input": "z", "expected": "maybe", "labels": {"kind": "odd"}},
]


@pytest.fixture
def compared(project: "Project") -> "Project":
    project.write("large.json", json.dumps({"a": "yes it is", "b": "no", "c": "maybe"}))
    project.write("small.json", json.dumps({"a": "yes", "b": "no"}))
    project.write("my_app.py", "def answer(value):\n    return 'maybe'\n")
    systems = {
        "small": {"predictions": "small.json"},
        "large": {"predictions": "large.json"},
        "app": {"python": "my_app:answer"},
    }
    project.suite(
        "s.eval.yaml", CASES, systems=systems, reference="large", gates=["f1 >= 0.3"], group_by=["kind"], snapshot=True
    )
    return project


def test_each_system_has_items_metrics_and_gates_of_its_own(compared: "Project") -> None:
    ran = compared.run("-v", "--snapshot-update", workers=2, without=("rerunfailures",))
    assert {key: verdict for key, verdict in ran.verdicts().items() if "snapshot" not in key} == {
        "s.eval.yaml::a[small]": "PASSED",
        "s.eval.yaml::a[large]": "PASSED",
        "s.eval.yaml::a[app]": "PASSED",
        "s.eval.yaml::b[small]": "PASSED",
        "s.eval.yaml::b[large]": "PASSED",
        "s.eval.yaml::b[app]": "PASSED",
        "s.eval.yaml::c[small]": "FAILED",
        "s.eval.yaml::c[large]": "PASSED",
        "s.eval.yaml::c[app]": "PASSED",
        "s.eval.yaml::gate[f1 >= 0.3][small]": "FAILED",
        "s.eval.yaml::gate[f1 >= 0.3][large]": "PASSED",
        "s.eval.yaml::gate[f1 >= 0.3][app]": "PASSED",
    }
    assert ran.outcomes("s[small]") == {"a": "passed", "b": "passed", "c": "errored"}
    folder = compared.path / "__llmeval__"
    assert len(list(folder.glob("*.scores.json"))) == 3
    (table,) = ran.report["systems"]
    assert (table["reference"], [row["system"] for row in table["systems"]]) == ("large", ["small", "large", "app"])
    small, large, app = table["systems"]
    assert "differences" not in large
    assert app["differences"]["f1"]["losses"] == 2
    assert small["differences"]["f1"]["cases"] == 2
    assert large["groups"] == {"kind": {"odd": {"f1": 1.0}, "plain": {"f1": 1.0}}}
    assert "s: 3 systems, compared with large" in ran.text


def test_one_system_or_one_case_can_be_selected_and_failed_ones_run_again(compared: "Project") -> None:
    assert compared.run("-k", "large", "--co", "-q").ids() == [f"s.eval.yaml::{name}[large]" for name in "abc"]
    assert compared.run("s.eval.yaml::b[app]").counts["passed"] == 1
    compared.run()
    again = compared.run("--lf", "--co", "-q")
    assert again.ids() == ["s.eval.yaml::c[small]"]


def test_gates_are_about_one_system_or_between_two(compared: "Project") -> None:
    path = compared.path / "s.eval.yaml"
    gates = [
        {"metric": "f1", "system": "small", "min": 0.9},
        {"metric": "f1", "system": "app", "against": "large", "max_drop": 0.9},
        {"metric": "f1", "system": "small", "against": "large", "max_drop": 0},
    ]
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"gates": gates}), encoding="utf-8")
    ran = compared.run("-v")
    assert {key: verdict for key, verdict in ran.verdicts().items() if "gate[" in key} == {
        "s.eval.yaml::gate[f1 >= 0.9][small]": "FAILED",
        "s.eval.yaml::gate[drop(f1) <= 0.9, against large][app]": "UNDECIDED",
        "s.eval.yaml::gate[drop(f1) <= 0, against large][small]": "FAILED",
    }
    assert ran.gates("s[large]") == {}
    assert ran.suites["s[app]"]["worst"]["metric"] == "f1"
    part = compared.run("-k", "app")
    assert part.gates("s[app]") == {"drop(f1) <= 0.9, against large": "not_judged"}


def test_variants_of_the_fixture_have_the_same_table(project: "Project") -> None:
    project.asking("s.eval.yaml", "unused:unused", "a", "b", reference="gpt")
    project.write(
        "conftest.py",
        """\
        import pytest

        @pytest.fixture(params=["gpt", "echo"], scope="session")
        def llmeval_target(request):
            return {"gpt": str.upper, "echo": str}[request.param]
        """,
    )
    (table,) = project.run().report["systems"]
    assert (table["reference"], [row["system"] for row in table["systems"]]) == ("gpt", ["echo", "gpt"])


def test_a_suite_in_bulk_has_an_item_for_each_system(compared: "Project") -> None:
    path = compared.path / "s.eval.yaml"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"mode": "bulk"}), encoding="utf-8")
    ran = compared.run("-v")
    assert [key for key in ran.verdicts() if "bulk" in key] == [
        f"s.eval.yaml::bulk[{x}]" for x in ("small", "large", "app")
    ]
    assert ran.outcomes("s[app]") == {"a": "passed", "b": "passed", "c": "passed"}


def test_three_models_over_one_folder_of_stories_are_scored_on_what_they_annotated(project: "Project") -> None:
    stories = {name: {"characters": [{"name": name}, {"name": "duke"}]} for name in ("swan", "fox", "owl")}
    for name, story in stories.items():
        project.write(f"gold/{name}_v3.json", json.dumps(story | {"metadata": {"culture": "Norse"}}))
    answered = {"large": ("swan", "fox"), "small": ("swan",), "tuned": ("swan",)}
    for model, names in answered.items():
        for name in names:
            found = {"characters": stories[name]["characters"][: 2 if model == "large" else 1]}
            project.write(f"{model}/{name}_v3.json", json.dumps(found))
    suite = {
        "source": {"format": "json_v3", "gold": "gold", "labels": {"culture": "metadata.culture"}},
        "only": "predicted",
        "systems": {model: {"predictions": model} for model in answered},
        "evaluators": ["narrative"],
        "group_by": ["culture"],
    }
    project.write("s.eval.json", json.dumps(suite))
    ran = project.run("-v", "--llmeval-texts=all")
    assert {name: list(ran.outcomes(f"s[{name}]")) for name in answered} == {
        "large": ["fox", "swan"],
        "small": ["swan"],
        "tuned": ["swan"],
    }
    scored = {row["system"]: row["metrics"]["character_f1"] for row in ran.report["systems"][0]["systems"]}
    assert {name: value["value"] for name, value in scored.items()} == {
        "large": 1,
        "small": pytest.approx(2 / 3),
        "tuned": pytest.approx(2 / 3),
    }
