"""Evaluators and sources of a user: registered by a conftest at any level, or by an installed package."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Project

LENGTH = """\
from dataclasses import dataclass

from pytest_llmeval import Evaluator, Metric, Observation


@dataclass(frozen=True)
class Length(Evaluator):
    name = "length"
    unit: str = "words"

    def describe(self):
        return [Metric("length", high=None)]

    def measure(self, case):
        if case.prediction == "crash":
            raise RuntimeError("cannot measure")
        parts = case.prediction.split() if self.unit == "words" else case.prediction
        return Observation({"size": len(parts), "n": 1})

    def summarize(self, sums):
        return {"length": sums["size"] / sums["n"]}


def pytest_llmeval_register(registry):
    registry.register(Length)
"""

WORDS = """\
from dataclasses import dataclass

from pytest_llmeval import Case
from pytest_llmeval.data.formats import FileSource


@dataclass(frozen=True)
class Words(FileSource):
    format = "words"
    shout: bool = False

    def read(self, file):
        lines = file.path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, 1):
            word = line.upper() if self.shout else line
            file.add(Case(line, line, word, word, line=number))


def pytest_llmeval_register(registry):
    registry.register_source(Words)
"""

CASES = [{"id": "a", "prediction": "one two"}, {"id": "b", "prediction": "one"}]


def test_a_conftest_in_a_subfolder_registers_for_the_suites_below_it(project: "Project") -> None:
    project.write("inner/conftest.py", LENGTH)
    for name in ("inner/s.eval.yaml", "inner/deep/t.eval.yaml", "outer.eval.yaml"):
        project.suite(name, CASES, evaluators=[{"length": {"unit": "words"}}], gates=["length >= 1.5"])
    ran = project.run(workers=2)
    assert ran.code == 1
    assert ran.counts == {"passed": 6, "errors": 1}
    assert {name: suite["metrics"]["length"]["value"] for name, suite in ran.suites.items()} == {"s": 1.5, "t": 1.5}
    assert "outer.eval.yaml:" in ran.section("ERRORS")
    assert "unknown evaluator length" in ran.section("ERRORS")


def test_a_source_of_a_conftest_gives_cases_to_the_suites_below_it(project: "Project") -> None:
    project.write("inner/conftest.py", WORDS)
    project.write("inner/words.txt", "one\ntwo\n")
    suite = '{"evaluators": ["text"], "source": {"format": "words", "path": "words.txt", "shout": true}}'
    project.write("inner/s.eval.json", suite)
    project.write("outer.eval.json", suite)
    ran = project.run()
    assert ran.outcomes("s") == {"one": "passed", "two": "passed"}
    assert "outer.eval.json:" in ran.section("ERRORS")
    assert "unknown format words, expected one of " in ran.section("ERRORS")


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ('raise RuntimeError("no ledger")', "format 'words' failed: RuntimeError: no ledger"),
        ('file.path.with_name("absent").read_text()', "format 'words' failed: FileNotFoundError: "),
    ],
)
def test_a_source_that_raises_is_a_fault_of_its_suite_while_others_run(
    project: "Project", broken: str, reason: str
) -> None:
    project.write("conftest.py", WORDS.replace("lines = ", f"{broken}; lines = "))
    project.write("words.txt", "one\n")
    project.suite("bad.eval.json", [], source={"format": "words", "path": "words.txt"})
    project.suite("good.eval.json", [{"id": "a", "expected": "x", "prediction": "x"}])
    ran = project.run()
    assert ran.counts == {"passed": 1, "errors": 1}
    assert reason in ran.section("ERRORS")
    assert "Traceback" not in ran.text


def test_an_installed_package_registers_by_its_entry_point(project: "Project", monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("site/length_evaluator.py", LENGTH.partition("def pytest_llmeval_register")[0])
    project.write(
        "site/length_evaluator-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: length-evaluator\nVersion: 1.0\n"
    )
    project.write(
        "site/length_evaluator-1.0.dist-info/entry_points.txt",
        "[pytest_llmeval.evaluators]\nlength = length_evaluator:Length\n",
    )
    monkeypatch.setenv("PYTHONPATH", str(project.path / "site"))
    project.suite("s.eval.yaml", CASES, evaluators=[{"length": {"unit": "characters"}}], thresholds={"length": 1})
    ran = project.run(workers=2)
    assert (ran.code, ran.counts) == (0, {"passed": 2})
    assert ran.suites["s"]["metrics"]["length"]["value"] == 5.0


def test_the_report_says_of_which_metrics_less_is_better(project: "Project") -> None:
    project.write("conftest.py", LENGTH.replace("high=None", "high=None, higher_is_better=False"))
    project.suite("s.eval.yaml", CASES, evaluators=["text", {"length": {"as": "long"}}])
    project.suite("t.eval.yaml", CASES)
    suites = project.run().suites
    assert suites["s"]["lower_is_better"] == ["long.length"]
    assert "lower_is_better" not in suites["t"]


def test_an_unknown_option_of_an_own_evaluator_is_a_fault_of_the_file(project: "Project") -> None:
    project.write("conftest.py", LENGTH)
    project.suite("s.eval.yaml", CASES, evaluators=[{"length": {"units": "words"}}])
    ran = project.run()
    assert "unknown key units, did you mean unit?" in ran.section("ERRORS")


def test_a_name_that_is_taken_is_told_in_one_line_while_other_suites_run(project: "Project") -> None:
    project.write("inner/conftest.py", LENGTH.replace('name = "length"', 'name = "text"'))
    for name in ("inner/s.eval.yaml", "outer.eval.yaml"):
        project.suite(name, [{"id": "a", "expected": "x", "prediction": "x"}])
    ran = project.run()
    assert ran.counts == {"passed": 1, "errors": 1}
    assert (
        "the evaluator name 'text' is taken by TextEvaluator of pytest_llmeval: choose another (inner/conftest.py:"
        in ran.section("ERRORS")
    )
    assert "pytest_llmeval/" not in ran.section("ERRORS")


def test_an_evaluator_that_raises_makes_its_case_errored_and_no_other(project: "Project") -> None:
    project.write("conftest.py", LENGTH)
    cases = [*CASES, {"id": "c", "prediction": "crash"}]
    project.suite("s.eval.yaml", cases, evaluators=["length"], gates=["length >= 1"])
    ran = project.run()
    assert ran.counts == {"passed": 2, "failed": 2}
    assert ran.suites["s"]["cases"][2]["reason"] == "length: RuntimeError: cannot measure (conftest.py:16 in measure)"
    assert "gate FAILED  length >= 1  (1 case errored)" in ran.text


def test_an_evaluator_with_batches_scores_what_a_python_test_brings_and_not_the_file(project: "Project") -> None:
    project.write("conftest.py", LENGTH.replace('    name = "length"', '    name = "length"\n    batch = 8'))
    project.suite("s.yaml", [*CASES, {"id": "c"}], evaluators=["length"])
    project.write(
        "test_over.py",
        """\
        import pytest

        @pytest.mark.llmeval("s.yaml")
        def test_over(eval_case):
            assert eval_case.score("one two three") == {"length": 3.0}
        """,
    )
    assert project.run().counts == {"passed": 3}


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ('{"size": sums["size"]}', "evaluator 'length' returned metrics that describe() does not list: 'size'"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
    ids=["undeclared", "raises"],
)
def test_a_broken_formula_fails_the_run_and_takes_no_other_suite_along(
    project: "Project", formula: str, reason: str
) -> None:
    broken = LENGTH.replace('{"length": sums["size"] / sums["n"]}', formula)
    project.write("conftest.py", broken)
    project.suite("broken.eval.yaml", CASES, evaluators=["length"], gates=["length >= 1"])
    project.suite("sound.eval.yaml", [{"id": "a", "expected": "x", "prediction": "x"}], gates=["f1 >= 1"])
    ran = project.run()
    assert ran.code == 1
    assert "INTERNALERROR" not in ran.text
    assert reason in ran.text
    assert ran.gates("sound") == {"f1 >= 1": "passed"}
