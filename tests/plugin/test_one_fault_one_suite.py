"""One fault costs one case, or one suite: never the other suites, their reports, or what was already answered."""

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

if TYPE_CHECKING:
    from conftest import Project

BUGGY = """\
from dataclasses import dataclass

from pytest_llmeval import Evaluator, Metric, Observation


@dataclass(frozen=True)
class Buggy(Evaluator):
    name = "buggy"
    how: str = ""

    def describe(self):
        if self.how == "describe":
            raise RuntimeError("no metrics")
        return [Metric("hit")]

    def check(self, case):
        if self.how == "check":
            raise RuntimeError("no check")
        return ()

    def measure(self, case):
        if self.how == "exit":
            raise SystemExit(3)
        if self.how == "undefined":
            return Observation({"n": 1}, undefined={"hit": "nothing to judge"})
        return Observation({"hits": 1e308 if self.how == "huge" else 1, "n": 1}, ["x"] if self.how == "details" else {})

    def summarize(self, sums):
        value = {"bool": sums["hits"] > 0, "number": 0.5, "none": None, "wide": [0.5] * 7}
        return {"hit": value.get(self.how, sums["hits"] / 10)}


def pytest_llmeval_register(registry):
    registry.register(Buggy)
"""


@pytest.fixture
def two(project: "Project") -> "Project":
    """A sound suite with a gate that fails; each test adds one with a buggy evaluator."""
    project.write("conftest.py", BUGGY)
    project.suite("sound.eval.yaml", [{"id": "a", "expected": "x", "prediction": "y"}], gates=["f1 >= 0.9"])
    return project


def buggy(project: "Project", how: str) -> None:
    cases = [{"id": each, "prediction": "x"} for each in "abc"]
    project.suite("buggy.eval.yaml", cases, evaluators=[{"buggy": {"how": how}}], gates=["hit >= 0.1"])


@pytest.mark.parametrize("how", ["number", "none", "wide", "huge"])
def test_a_formula_that_gives_no_column_fails_its_own_suite_only(two: "Project", how: str) -> None:
    buggy(two, how)
    ran = two.run()
    assert ran.code == 1
    assert ran.gates("sound") == {"f1 >= 0.9": "failed"}
    assert "buggy.eval.yaml: not evaluated: " in ran.text
    assert "INTERNALERROR" not in ran.text


def test_a_formula_may_give_truth_values(two: "Project") -> None:
    buggy(two, "bool")
    assert two.run("buggy.eval.yaml").suites["buggy"]["metrics"]["hit"]["value"] == 1.0


@pytest.mark.parametrize(("how", "said"), [("describe", "cannot be built: RuntimeError"), ("check", "no check")])
def test_a_bug_met_while_collecting_is_a_fault_of_the_file(two: "Project", how: str, said: str) -> None:
    buggy(two, how)
    ran = two.run()
    assert said in ran.section("ERRORS")
    assert ran.gates("sound") == {"f1 >= 0.9": "failed"}


@pytest.mark.parametrize("how", ["exit", "details"])
def test_a_bug_met_while_measuring_is_an_error_of_the_case(two: "Project", how: str) -> None:
    buggy(two, how)
    ran = two.run("buggy.eval.yaml")
    assert set(ran.outcomes("buggy").values()) == {"errored"}
    assert ran.gates("buggy") == {"hit >= 0.1": "failed"}


def test_a_metric_that_no_case_has_is_undefined_whatever_its_formula_says(two: "Project") -> None:
    buggy(two, "undefined")
    metric = two.run("buggy.eval.yaml").suites["buggy"]["metrics"]["hit"]
    assert (metric["value"], metric["scored"], metric["undefined"]) == (None, 0, 3)


def test_answers_before_an_interrupt_are_kept_in_bulk(project: "Project") -> None:
    project.write(
        "bot.py", "def answer(word):\n    if word == 'b':\n        raise KeyboardInterrupt\n    return word\n"
    )
    project.asking("s.eval.yaml", "bot:answer", "a", "b", "c", mode="bulk", gates=["f1 >= 0"])
    ran = project.run("--llmeval-predictions=p.jsonl")
    assert ran.code == 2
    assert ran.outcomes("s") == {"a": "passed", "b": "not_run", "c": "not_run"}
    assert '"case": "a"' in (project.path / "p.jsonl").read_text(encoding="utf-8")


def test_an_error_without_text_is_an_error_of_its_case(project: "Project") -> None:
    bot = """\
    class Mute(Exception):
        def __str__(self):
            raise ValueError

    def answer(word):
        if word == "b":
            raise Mute
        return word
    """
    project.write("bot.py", bot)
    project.asking("s.eval.yaml", "bot:answer", "a", "b", gates=["f1 >= 0"])
    ran = project.run()
    assert ran.outcomes("s") == {"a": "passed", "b": "errored"}
    assert ran.gates("s") == {"f1 >= 0": "failed"}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--llmeval-predictions=file/p.jsonl",), "cannot be written"),
        (("--llmeval-predictions-mode=replay",), "needs --llmeval-predictions=PATH"),
    ],
)
def test_recordings_that_cannot_be_are_refused_before_anything_is_asked(
    project: "Project", args: tuple[str, ...], said: str
) -> None:
    project.write("file", "")
    project.write("bot.py", "def answer(word):\n    print('ASKED')\n    return word\n")
    project.asking("s.eval.yaml", "bot:answer", "a")
    ran = project.run("-s", *args)
    assert ran.code == 4
    assert said in ran.text
    assert "ASKED" not in ran.text


def test_a_target_is_code_of_the_project_and_not_of_python(project: "Project") -> None:
    project.asking("s.eval.yaml", "os:system", "true")
    ran = project.run()
    assert ran.code == 1
    assert "'os' belongs to Python itself, expected a module of your project" in ran.text


def test_grouping_by_a_label_that_no_case_has_is_a_fault(capitals: "Project") -> None:
    path = capitals.path / "capitals.eval.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("by: continent", "by: contintent"), encoding="utf-8")
    ran = capitals.run()
    assert "unknown label contintent" in ran.text
    assert "did you mean continent?" in ran.text


def test_a_python_test_that_fails_before_it_scores_is_an_error_of_its_case(capitals: "Project") -> None:
    (capitals.path / "capitals.eval.yaml").rename(capitals.path / "capitals.yaml")
    capitals.write(
        "test_it.py",
        """\
        import pytest

        @pytest.mark.llmeval(path="capitals.yaml")
        @pytest.mark.parametrize("how", [{"t": 0}, {"t": 1}], ids=["cold", "hot"])
        def test_it(eval_case, how):
            assert eval_case.id != "paris"
            eval_case.score(eval_case.expected)
        """,
    )
    ran = capitals.run()
    assert list(ran.suites) == ["capitals[test_it.py::test_it][cold]", "capitals[test_it.py::test_it][hot]"]
    for name in ran.suites:
        assert ran.outcomes(name)["paris"] == "errored"
        assert "not_judged" not in ran.gates(name).values()


def test_labels_with_control_characters_leave_junit_readable(project: "Project") -> None:
    cases = [{"id": "a", "expected": "yes", "prediction": "yes\x1b[0m"}]
    project.suite("s.eval.json", cases, evaluators=["classification"])
    project.run("--junitxml=junit.xml")
    names = {each.get("name") for each in ET.parse(project.path / "junit.xml").iter("property")}
    assert r"llmeval.f1[yes\x1b[0m]" in names
