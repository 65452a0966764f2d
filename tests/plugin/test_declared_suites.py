"""Suites declared in Python: typed cases, data frames, async tests; the same report as the suite's file gives."""

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Project

TYPED = """\
import pytest
from pydantic import BaseModel

import pytest_llmeval as ev


class Ask(BaseModel):
    question: str
    language: str = "en"


class Reply(BaseModel):
    answer: str
    days: int | None = None


{data}

support = ev.suite(
    "support", cases=ev.cases(data, id="id", input=Ask, expected=Reply, labels=["topic"]),
    evaluators=[ev.fields(), ev.text(metrics=["f1"])], checks=[ev.max_words(30)],
    thresholds={{"f1": 0.4}}, gates=["field_f1 >= 0.9", {{"metric": "f1", "max_drop": 0.02}}], snapshot=True)

REPLIES = {{
    "How long do refunds take?": Reply(answer="30 days", days=30),
    "Do you ship?": {{"answer": "yes we do"}},
    "How much?": Reply(answer="20 dollars"),
}}


@pytest.fixture
def agent():
    async def answer(ask: Ask):
        assert type(ask) is Ask
        assert ask.language == "en"
        return REPLIES[ask.question]

    return answer


@support.test
@pytest.mark.{mark}
async def test_agent(case, agent):
    assert type(case.expected) is Reply
    reply = await agent(case.input)
    scores = case.score(reply)
    assert scores["fields_exact"] == 1
"""

ROWS = """\
ROWS = {
    "id": ["refund", "ship", "price"],
    "question": ["How long do refunds take?", "Do you ship?", "How much?"],
    "answer": ["30 days", "yes we do", "20 dollars"],
    "days": [30, None, None],
    "topic": ["refunds", "shipping", "prices"],
}
"""

DATA = {
    "pandas": ROWS + "import pandas\ndata = pandas.DataFrame(ROWS)",
    "polars": ROWS + "import polars\ndata = polars.DataFrame(ROWS).lazy()",
    "arrow": ROWS + "import pyarrow\ndata = pyarrow.table(ROWS)",
    "datasets": ROWS + "import datasets\ndata = datasets.Dataset.from_dict(ROWS)",
    "mappings": ROWS + "data = ({name: column[row] for name, column in ROWS.items()} for row in range(3))",
}

ASYNC = {
    "asyncio": ("-p", "pytest_asyncio.plugin", "-o", "asyncio_default_fixture_loop_scope=function"),
    "anyio": ("-p", "anyio.pytest_plugin", "-k", "not trio"),
}


def proven(suite: Any) -> bool:
    """Return whether the cases of a suite passed with their labels and all their fields."""
    outcomes = {case["id"]: case["outcome"] for case in suite["cases"]}
    passed = outcomes == dict.fromkeys(("refund", "ship", "price"), "passed")
    return passed and suite["cases"][0]["labels"] == {"topic": "refunds"} and suite["metrics"]["field_f1"]["value"] == 1


@pytest.mark.parametrize("mark", ASYNC)
def test_typed_cases_run_as_async_tests(project: "Project", mark: str, workers: int) -> None:
    project.write("test_support.py", TYPED.format(data=DATA["mappings"], mark=mark))
    for update in (["--snapshot-update"], []):
        ran = project.run(*ASYNC[mark], *update, workers=workers, without=["rerunfailures"])
        assert ran.code == 0, ran.text
    assert ran.counts["passed"] >= 4
    (suite,) = ran.suites.values()
    assert suite["path"] == "test_support.py::support"
    assert proven(suite)


def test_typed_cases_are_those_of_any_data(project: "Project") -> None:
    for kind, data in DATA.items():
        project.write(f"test_{kind}.py", TYPED.format(data=data, mark="asyncio").replace('"support"', f'"{kind}"'))
    ran = project.run(*ASYNC["asyncio"], "--snapshot-update", without=["rerunfailures"])
    assert ran.code == 0, ran.text
    assert {name.partition("[")[0] for name in ran.suites} == set(DATA)
    assert all(map(proven, ran.suites.values()))


def test_a_test_over_a_suite_is_skipped_without_the_option(project: "Project") -> None:
    project.write("test_support.py", TYPED.format(data=DATA["mappings"], mark="asyncio"))
    ran = project.run(*ASYNC["asyncio"], llmeval=False)
    assert (ran.code, ran.counts) == (0, {"skipped": 1})
    named = project.run("test_support.py::test_agent[refund]", *ASYNC["asyncio"], llmeval=False)
    assert named.code == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: cases of suites have ids with --llmeval, or llmeval = true in pytest's configuration" in named.text


DECLARED = """\
import pytest_llmeval as ev


def answer(question):
    return {"France": "Paris", "Japan": "Tokyo", "Ecuador": "Lima"}[question]


capitals = ev.suite(
    "capitals",
    evaluators=[ev.text(metrics=["exact_match", "f1"])],
    checks=[ev.not_(ev.contains("London")), ev.any_of(ev.max_words(3), "is_json")],
    target=answer,
    thresholds={"f1": 0.5},
    gates=["f1 >= 0.6", {"metric": "f1", "by": "continent", "min": 0.4}],
    group_by=["continent"],
    cases=[
        {"id": "paris", "input": "France", "expected": "Paris", "labels": {"continent": "Europe"}, "tags": ["far"]},
        {"id": "東京", "input": "Japan", "expected": "Tokyo", "labels": {"continent": "Asia"}},
        {"id": "quito[1]", "input": "Ecuador", "expected": "Quito", "labels": {"continent": "America"}},
    ],
)
"""


def same(value: Any) -> Any:
    """Return a report without times, and without names and lines of files."""
    if isinstance(value, dict):
        differing = ("duration_s", "file", "line", "path", "latency_s", "usage")
        return {key: same(each) for key, each in value.items() if key not in differing}
    return [same(each) for each in value] if isinstance(value, list) else value


def test_a_declared_suite_and_its_file_give_one_report(project: "Project", workers: int) -> None:
    project.write("app.py", DECLARED)
    project.write("test_capitals.py", "from app import capitals\n")
    declared = project.run("test_capitals.py", workers=workers)
    assert declared.code == 1
    assert "app.py:8: case quito[1]" in declared.text
    write = "pathlib.Path('capitals.eval.yaml').write_text(app.capitals.to_yaml())"
    project.write("test_export.py", f"import app, pathlib\n\ndef test_export():\n    {write}\n")
    assert project.run("test_export.py", llmeval=False).code == 0
    read = project.run("capitals.eval.yaml", workers=workers)
    assert same(declared.report["suites"]) == same(read.report["suites"])


def test_cases_are_chosen_as_those_of_a_file(project: "Project") -> None:
    project.write("test_capitals.py", DECLARED)
    ran = project.run("test_capitals.py::capitals::paris")
    assert ran.outcomes("capitals") == {"paris": "passed"} | dict.fromkeys(("東京", "quito[1]"), "not_run")
    assert project.run("-m", "far").counts["passed"] >= 1
    assert set(project.run("--collect-only", "-q").ids()) == {
        "test_capitals.py::capitals::paris",
        "test_capitals.py::capitals::東京",
        "test_capitals.py::capitals::quito[1]",
    }


def test_parameters_beside_the_suite_are_variants(project: "Project") -> None:
    over = (
        DECLARED
        + """
import pytest

@capitals.test
@pytest.mark.parametrize("loud", [False, True])
def test_loud(case, loud):
    case.score(answer(case.input).upper() if loud else answer(case.input))
"""
    )
    project.write("test_capitals.py", over)
    ran = project.run()
    assert sorted(suite["variant"] for suite in ran.report["suites"]) == ["loud=False", "loud=True"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("ev.contains(", "ev.containz("), "module 'pytest_llmeval' has no attribute 'containz'"),
        (('"f1 >= 0.6"', '"f2 >= 0.6"'), "test_capitals.py:8:1  gates[0]: unknown metric f2"),
        (
            ('metrics=["exact_match"', 'metrics=["exactmatch"'),
            "test_capitals.py:8:1  evaluators[0].text.metrics[0]: found the text 'exactmatch'",
        ),
        (("target=answer", "target=answer()"), "TypeError"),
        (("target=answer", "target=lambda question: question"), "found a lambda, which has no name of its own"),
        (
            ('"expected": "Quito"', '"thresholds": {1, 2}'),
            "test_capitals.py:8:1  [2].thresholds: found set, expected JSON data",
        ),
        (('"id": "東京"', '"id": "paris"'), "found the id 'paris' twice"),
    ],
)
def test_what_is_wrong_is_named_with_the_users_line(project: "Project", change: tuple[str, str], message: str) -> None:
    assert change[0] in DECLARED
    project.write("test_capitals.py", DECLARED.replace(*change))
    ran = project.run()
    assert ran.code != 0
    assert message in ran.text


def test_a_case_that_does_not_fit_its_type_is_named_and_nothing_is_called(project: "Project") -> None:
    data = DATA["mappings"].replace('"How much?"]', "None]")
    project.write("test_support.py", TYPED.format(data=data, mark="asyncio"))
    ran = project.run(*ASYNC["asyncio"])
    assert "test_support.py:26:1  cases.price.input: question: Field required, expected Ask" in ran.text
    assert ran.code == 1
    assert "passed" not in ran.counts


def test_shards_of_a_declared_suite_merge(project: "Project") -> None:
    project.write("test_capitals.py", DECLARED)
    for number in (1, 2):
        project.run(f"--llmeval-shard={number}/2", f"--llmeval-report=part{number}.llmeval")
    project.write(
        "test_merge.py",
        "from pytest_llmeval.cli import main\n"
        "def test_merge():\n"
        "    assert main(['merge', 'part1.llmeval', 'part2.llmeval', '--report', 'merged.json']) == 1\n",
    )
    ran = project.run("test_merge.py", llmeval=False)
    assert ran.code == 0, ran.text
    merged = json.loads((project.path / "merged.json").read_text(encoding="utf-8"))
    whole = project.run("test_capitals.py")
    assert merged["suites"][0]["metrics"] == whole.report["suites"][0]["metrics"]


def test_a_file_for_tests_only_has_no_items(project: "Project") -> None:
    project.write(
        "capitals.eval.yaml",
        "mode: test\nevaluators: [text]\nthresholds: {f1: 0.5}\ncases: [{id: a, input: France, expected: Paris}]\n",
    )
    project.write(
        "test_over.py",
        "import pytest\n@pytest.mark.llmeval('capitals.eval.yaml')\ndef test_it(case):\n    case.score('Paris')\n",
    )
    ran = project.run()
    assert (ran.code, ran.counts) == (0, {"passed": 1})


def test_a_marker_that_names_no_suite_says_how_one_is_declared(project: "Project") -> None:
    project.write("test_over.py", "import pytest\n@pytest.mark.llmeval(cases=[1])\ndef test_it(eval_case):\n    pass\n")
    ran = project.run()
    assert ran.code == 1
    assert "support = ev.suite('support', cases=...) and @support.test; found the marker with cases=" in (ran.text)


EVALUATING = """\
def test_wrong(evaluate):
    assert evaluate.text("30 days from receipt", "30 days", metrics=["f1"])["f1"] >= 0.9

def test_right(evaluate):
    assert evaluate.checks("Paris", {"contains": "Paris"})["check_rate"] == 1
    assert evaluate.fields({"a": 1}, {"a": 1})["fields_exact"] == 1

def test_judged(evaluate):
    assert evaluate.judge("Paris", "Paris", input="Capital?", mode="default_binary")["judge_score"] == 1
"""


def test_scores_of_ordinary_tests_are_listed_and_explained(project: "Project", workers: int) -> None:
    project.write("test_plain.py", EVALUATING)
    ran = project.run("--junitxml=junit.xml", workers=workers)
    assert ran.counts == {"passed": 1, "failed": 2}
    assert "text: extra words: from, receipt" in ran.section("FAILURES")
    assert [line.split("  ")[0] for line in ran.section("llmeval: scores of tests").strip().splitlines()[:2]] == [
        "test_plain.py::test_right",
        "test_plain.py::test_wrong",
    ]
    junit = (project.path / "junit.xml").read_text(encoding="utf-8")
    assert '<property name="llmeval.checks.check_rate" value="1.0"' in junit


def test_findings_are_listed_for_failing_tests_only(project: "Project") -> None:
    right = "def test_{name}(evaluate):\n    scores = evaluate.text('30 days', '30 days from receipt')\n    {line}\n"
    texts = [right.format(name="passing", line="print('fine')"), right.format(name="failing", line="assert not scores")]
    project.write("test_plain.py", "\n".join(texts))
    ran = project.run("-rP")
    assert ran.counts == {"passed": 1, "failed": 1}
    assert "text: missing words: from, receipt" in ran.section("FAILURES")
    assert "fine" in ran.section("PASSES")
    assert "missing words" not in ran.section("PASSES")


def test_a_judge_is_asked_in_ordinary_tests(judged: Any) -> None:
    judged.project.write("test_plain.py", EVALUATING)
    judged.project.ini(f"llmeval_judge_model = openai:m\nllmeval_judge_base_url = {judged.server.base_url}")
    ran = judged.project.run("-k", "judged")
    assert ran.counts == {"passed": 1, "deselected": 2}
