"""Tables of metrics that belong side by side, in text and in Markdown."""

from typing import Any

from pytest_llmeval import Case, get_evaluator
from pytest_llmeval.core.evaluator import Grid
from pytest_llmeval.core.results import CaseRecord
from pytest_llmeval.reports.data import RunReport, SuiteReport, grid_cells, renamed
from pytest_llmeval.reports.markdown import to_markdown
from pytest_llmeval.reports.terminal import render
from pytest_llmeval.scoring.gates import parse_gate
from pytest_llmeval.scoring.summary import summarize

RETRIEVAL = get_evaluator("retrieval", k=[1, 10])
CASE = Case("a", {"fact": "q", "meta": {"accusation": ["theft"]}}, ["x", "y"], [{"fact": "x", "accusation": ["fraud"]}])


def report(label: str = "retrieval", **more: Any) -> RunReport:
    records = [CaseRecord("a", observations={label: RETRIEVAL.measure(CASE)})]
    result = summarize({label: RETRIEVAL}, records, confidence=None)
    suite = SuiteReport("s", "s.eval.yaml", result, (), 1, None, grids=renamed(label, RETRIEVAL))
    gates = [gate.judge(result, "") for gate in map(parse_gate, more.get("gates", ()))]
    suite = SuiteReport("s", "s.eval.yaml", result, gates, 1, None, grids=suite.grids)
    return RunReport("2024-06-07T08:09:10+00:00", 1.0, "0.1.0", None, [suite])


def lines(made: RunReport, verbosity: int = 0) -> list[str]:
    return [line.text for line in render(made, verbosity=verbosity, width=80)]


def test_the_tasks_of_retrieval_stand_in_a_table_on_the_terminal() -> None:
    shown = lines(report())
    start = shown.index("task          metric         @1     @10")
    assert shown[start + 1 : start + 7] == [
        "gold          precision  1.0000  0.1000",
        "              recall     0.5000  0.5000",
        "              hit rate   1.0000  1.0000",
        "              macro F1   0.6667  0.1667",
        "              micro F1   0.6667  0.6667",
        "accusation    precision  0.0000  0.0000",
    ]
    assert all(len(line) <= 80 for line in shown)


def test_what_the_table_shows_is_listed_only_if_it_is_judged_or_asked_for() -> None:
    def listed(shown: list[str]) -> set[str]:
        return {line.split()[0] for line in shown[: shown.index("")] if line.startswith("gold_")}

    assert listed(lines(report())) >= {"gold_micro_recall@1", "gold_mrr"}
    assert not listed(lines(report())) & {"gold_recall@1", "gold_precision@1"}
    assert "gold_recall@1" in listed(lines(report(gates=["gold_recall@1 >= 0.2"])))
    assert "gold_precision@1" in listed(lines(report(), verbosity=1))


def test_the_table_stands_in_the_markdown_report() -> None:
    written = to_markdown(report())
    assert "| task         | metric    | \\@1    | \\@10   |" in written
    assert "| gold         | precision | 1.0000 | 0.1000 |\n|              | recall    | 0.5000 | 0.5000 |" in written


def test_metrics_of_a_renamed_evaluator_are_found() -> None:
    assert renamed("dense", RETRIEVAL)[0].rows[0] == (
        ("gold", "precision"),
        ["dense.gold_precision@1", "dense.gold_precision@10"],
    )
    assert "gold          precision  1.0000  0.1000" in lines(report("dense"))


def test_a_value_that_does_not_exist_is_not_a_number() -> None:
    evaluator = get_evaluator("retrieval", k=[1])
    records = [CaseRecord("a", observations={"retrieval": evaluator.measure(Case("a", "q", None, []))})]
    result = summarize({"retrieval": evaluator}, records, confidence=None)
    grid = Grid(("task", "value"), [(("gold",), ("gold_recall@1",)), (("gold",), ("gold_mrr",))])
    assert grid_cells(grid, result) == [["gold", "n/a"], ["", "n/a"]]
