"""Tables that evaluators declare, in text and in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from builders import parse_gate

from pytest_llmeval import Case, Evaluator, Metric, Observation, Sums, get_evaluator
from pytest_llmeval.core import (
    CaseRecord,
    CaseTable,
    ConfusionMatrix,
    Count,
    Detail,
    LabelTable,
    MetricIndex,
    MetricTable,
    ReportTable,
)
from pytest_llmeval.numbers import Repeats, summarize
from pytest_llmeval.numbers._repeats import Reduced, Reducer
from pytest_llmeval.reports import RunReport, RunStart, SuiteReport, render
from pytest_llmeval.reports._form import evaluator_tables
from pytest_llmeval.reports._markdown import to_markdown

RETRIEVAL = get_evaluator("retrieval", k=[1, 10])
CASE = Case("a", {"fact": "q", "meta": {"accusation": ["theft"]}}, ["x", "y"], [{"fact": "x", "accusation": ["fraud"]}])

MATRIX = ConfusionMatrix("Confusion", labels=("joy", "anger"))
BY_LABEL = {"P": "precision[label]", "R": "recall[label]", "n": "support[label]"}


@dataclass(frozen=True)
class Emotion(Evaluator):
    """Whether an emotion was recognised."""

    name = "emotion"

    def describe(self) -> Sequence[Metric]:
        families = [Metric("recall[label]"), Metric("precision[label]"), Metric("support[label]", high=None)]
        return [Metric("accuracy"), *families]

    def measure(self, case: Case) -> Observation:
        counts = {
            MATRIX.count(case.expected, case.prediction): 1,
            "right": case.expected == case.prediction,
            "n": 1,
            f"gold {case.expected}": 1,
            f"hits {case.expected}": case.expected == case.prediction,
            f"said {case.prediction}": 1,
        }
        return Observation(counts, {"said": case.prediction, "parts": [case.input]})

    def summarize(self, sums: Sums) -> Mapping[str, Any]:
        metrics = {"accuracy": sums["right"] / sums["n"]}
        for label in [name.removeprefix("gold ") for name in sums if name.startswith("gold ")]:
            metrics[f"recall[{label}]"] = sums[f"hits {label}"] / sums[f"gold {label}"]
            metrics[f"precision[{label}]"] = sums[f"hits {label}"] / sums[f"said {label}"]
            metrics[f"support[{label}]"] = sums[f"gold {label}"]
        return metrics

    def tables(self) -> Sequence[ReportTable]:
        overall = (("all",), ("accuracy", Count("right"), Count("n")))
        of_cases = {"accuracy": "accuracy", "right": Count("right"), "said": Detail("said"), "of": Detail("parts")}
        return [
            MetricTable("Overall", ("all", "accuracy", "right", "cases"), [overall]),
            LabelTable("By emotion", "emotion", BY_LABEL, counts=["n"]),
            MATRIX,
            CaseTable("Cases", of_cases),
        ]


EMOTIONS = (
    ("a", "joy", "joy"),
    ("b", "joy", "anger"),
    ("c", "fear", None),
    ("d", "anger", "anger"),
    ("e", "joy", "joy"),
)


def report_of(
    evaluators: Mapping[str, Evaluator], records: Sequence[CaseRecord], gates: Iterable[str] = ()
) -> RunReport:
    metrics = MetricIndex.from_evaluators(evaluators)
    result = summarize(metrics, records, confidence=None)
    judged = [gate.judge(result, "") for gate in map(parse_gate, gates)]
    tables = evaluator_tables(metrics, result)
    suite = SuiteReport.of_result("s", "s.eval.yaml", result, judged, len(records), None, tables=tables)
    return RunReport(run=RunStart("2024-06-07T08:09:10+00:00", 1.0, "0.1.0"), suites=[suite])


def report(label: str = "retrieval", gates: Iterable[str] = ()) -> RunReport:
    records = [CaseRecord("a", observations={label: RETRIEVAL.measure(CASE)})]
    return report_of({label: RETRIEVAL}, records, gates)


def emotions(label: str = "emotion", times: int = 1) -> RunReport:
    cases = [Case(f"{name}{each}", "x", gold, said) for each in range(times) for name, gold, said in EMOTIONS]
    return report_of(
        {label: Emotion()}, [CaseRecord(case.id, observations={label: Emotion().measure(case)}) for case in cases]
    )


def lines(made: RunReport, verbosity: int = 1) -> list[str]:
    return [line.text for line in render(made, verbosity=verbosity, width=80)]


def table(shown: Sequence[str], title: str) -> list[str]:
    """Return the lines below a title, up to the next empty one."""
    start = shown.index(title) + 1
    return list(shown[start : shown.index("", start) if "" in shown[start:] else None])


def test_the_tasks_of_retrieval_stand_in_a_table_on_the_terminal() -> None:
    shown = lines(report())
    start = shown.index("task          metric         @1     @10")
    assert shown[start - 1] == ""
    assert shown[start + 1 : start + 7] == [
        "gold          precision  1.0000  0.1000",
        "              recall     0.5000  0.5000",
        "              hit rate   1.0000  1.0000",
        "              macro F1   0.6667  0.1667",
        "              micro F1   0.6667  0.6667",
        "accusation    precision  0.0000  0.0000",
    ]
    assert all(len(line) <= 80 for line in shown if not line.startswith("warning: "))


def test_what_the_table_shows_is_listed_only_if_it_is_judged_or_asked_for() -> None:
    def listed(shown: list[str]) -> set[str]:
        start = next(place for place, line in enumerate(shown) if line.startswith("metric "))
        return {line.split()[0] for line in shown[start:] if line.startswith("gold_")}

    assert listed(lines(report())) >= {"gold_micro_recall@1", "gold_ndcg@1"}
    assert not listed(lines(report())) & {"gold_recall@1", "gold_precision@1"}
    assert "gold_recall@1" in listed(lines(report(gates=["gold_recall@1 >= 0.2"])))
    assert "gold_precision@1" in listed(lines(report(), verbosity=2))
    markdown = to_markdown(report())
    assert "gold\\_mrr" in markdown
    assert "gold\\_precision" not in markdown


def test_the_table_comes_before_the_metrics() -> None:
    for verbosity in (1, 2):
        shown = lines(report(), verbosity)
        starts = [line.partition(" ")[0] for line in shown if line.startswith(("task ", "metric "))]
        assert starts[0] == "task"
        assert set(starts[1:]) == {"metric"}


@pytest.mark.parametrize("verbosity", [0, 1, 2])
def test_the_cells_of_a_confusion_matrix_are_in_no_list(verbosity: int) -> None:
    evaluator = get_evaluator("fact_check", explanation="omit")
    case = Case("a", "c", {"verdict": "Supported"}, {"verdict": "Refuted"})
    made = report_of(
        {"fact_check": evaluator},
        [CaseRecord("a", observations={"fact_check": evaluator.measure(case)})],
        gates=["verdict_accuracy >= 0.5"],
    )
    shown = "\n".join(lines(made, verbosity))
    assert "Supported                    0        1" in shown
    assert "verdict_macro_f1" in shown
    assert "confusion[" not in shown
    assert "confusion" not in to_markdown(made)
    assert "confusion[Supported->Refuted]" in made.suites[0].metrics


def test_a_line_below_the_table_explains_metrics_above_one() -> None:
    said = "above 1: more results are relevant than positives are listed (recall_denominator)"
    assert said not in lines(report())
    query = {"fact": "q", "meta": {"accusation": ["theft"]}}
    case = Case("a", query, ["x"], [{"fact": name, "accusation": ["theft"]} for name in "xy"])
    made = report_of({"retrieval": RETRIEVAL}, [CaseRecord("a", observations={"retrieval": RETRIEVAL.measure(case)})])
    shown = lines(made)
    assert shown[shown.index(said) - 1].startswith("              micro F1")
    assert "\nabove 1: more results are relevant than" in to_markdown(made)


def test_the_table_stands_in_the_markdown_report() -> None:
    written = to_markdown(report())
    assert "\n\n| task         | metric    | `@1`   | `@10`   |" in written
    assert "| gold         | precision | 1.0000 | 0.1000  |\n|              | recall    | 0.5000 | 0.5000  |" in written


def test_metrics_of_a_renamed_evaluator_are_found() -> None:
    assert "gold          precision  1.0000  0.1000" in lines(report("dense"))
    (filled,) = report("dense").suites[0].tables
    assert "dense.gold_precision@1" in filled.metrics


def test_metrics_and_counts_stand_side_by_side() -> None:
    assert table(lines(emotions()), "Overall") == [
        "all  accuracy  right  cases",
        "all    0.6000      3      5",
    ]


def test_families_have_a_row_for_each_label() -> None:
    assert table(lines(emotions()), "By emotion") == [
        "emotion       P       R  n",
        "anger    0.5000  1.0000  1",
        "fear        n/a  0.0000  1",
        "joy      1.0000  0.6667  3",
    ]


def test_a_label_may_have_the_name_that_stands_for_all_labels() -> None:
    cases = [Case(label, "x", label, label) for label in ("label", "joy")]
    records = [CaseRecord(case.id, observations={"emotion": Emotion().measure(case)}) for case in cases]
    result = summarize({"emotion": Emotion()}, records, confidence=None)
    by_label = evaluator_tables(MetricIndex.from_evaluators({"emotion": Emotion()}), result)[1]
    assert [row[0] for row in by_label.rows] == ["joy", "label"]


def test_only_tables_of_all_cases_take_metrics_off_the_list() -> None:
    overall, by_label, matrix, cases = emotions("draft").suites[0].tables
    assert overall.metrics == {"draft.accuracy"}
    assert {"draft.precision[joy]", "draft.support[fear]"} < by_label.metrics
    assert matrix.metrics == cases.metrics == frozenset()


def test_a_confusion_matrix_has_true_rows_and_predicted_columns() -> None:
    assert table(lines(emotions()), "Confusion") == [
        "true / predicted  joy  anger  (none)",
        "joy                 2      1       0",
        "anger               0      1       0",
        "fear                0      0       1",
    ]


def test_a_table_of_cases_shows_their_scores_counts_and_details() -> None:
    filled = emotions().suites[0].tables[3]
    assert filled.headers == ("case", "accuracy", "right", "said", "of")
    assert list(filled.lines())[:3] == [
        ["a0", "1.0000", "1", "joy", '["x"]'],
        ["b0", "0.0000", "0", "anger", '["x"]'],
        ["c0", "0.0000", "0", "null", '["x"]'],
    ]


def test_every_kind_of_table_stands_in_the_markdown_report_under_its_title() -> None:
    written = to_markdown(emotions())
    assert "### Overall\n\n| all   | accuracy   | right   | cases   |\n" in written
    assert "### By emotion\n\n| emotion   | P      | R      | n   |\n" in written
    assert (
        "### Confusion\n\n"
        "| true / predicted   | joy   | anger   | \\(none\\)   |\n"
        "|--------------------|-------|---------|------------|\n"
        "| joy                | 2     | 1       | 0          |\n"
    ) in written
    assert "### Cases\n\n| case   | accuracy   | right   | said   | of      |" in written


def test_the_title_tells_renamed_evaluators_apart() -> None:
    shown = lines(emotions("draft"))
    assert [line for line in shown if line.startswith("draft: ")] == [
        "draft: Overall",
        "draft: By emotion",
        "draft: Confusion",
        "draft: Cases",
    ]
    assert table(shown, "draft: Overall") == table(lines(emotions()), "Overall")
    assert table(shown, "draft: By emotion") == table(lines(emotions()), "By emotion")


def test_a_matrix_of_two_halves_is_the_sum_of_theirs() -> None:
    once, twice = (report.suites[0].tables[2] for report in (emotions(), emotions(times=2)))
    assert twice.headers == once.headers
    doubled = [[row[0], *(2 * cell for cell in row[1:] if isinstance(cell, int))] for row in once.rows]
    assert [list(row) for row in twice.rows] == doubled


def test_labels_that_nobody_declared_are_sorted_behind_those_declared() -> None:
    counts = {MATRIX.count(true, said): 1 for true, said in (("zeal", "anger"), (3, "awe"), (True, "joy"))}
    result = summarize({"emotion": Emotion()}, [CaseRecord("a", observations={"emotion": Observation(counts)})])
    matrix = evaluator_tables(MetricIndex.from_evaluators({"emotion": Emotion()}), result)[1]
    assert [row[0] for row in matrix.rows] == ["joy", "anger", "true", "3", "zeal"]
    assert matrix.headers[1:] == ("joy", "anger", "awe")


def test_nothing_is_drawn_of_what_was_not_measured() -> None:
    made = report_of({"emotion": Emotion()}, [CaseRecord("a", outcome="errored", errors={"emotion": "no"})])
    assert [each.title for each in made.suites[0].tables] == ["Overall", "Cases"]
    assert table(lines(made), "Overall")[1] == "all       n/a      0      0"


def test_rows_beyond_fifty_are_counted() -> None:
    made = emotions(times=11)
    assert "and 5 rows more" in lines(made)
    assert "... and 5 more." in to_markdown(made)
    assert len(made.suites[0].tables[3].rows) == 50


def test_details_are_cut() -> None:
    observation = Observation({"n": 1}, {"said": "x" * 61})
    result = summarize({"emotion": Emotion()}, [CaseRecord("a", observations={"emotion": observation})])
    cases = evaluator_tables(MetricIndex.from_evaluators({"emotion": Emotion()}), result)[-1]
    assert cases.rows[0][3] == "x" * 60 + "..."


@pytest.mark.parametrize(
    ("reduce", "titles"), [("mean", ["Overall", "By emotion", "Confusion", "Cases"]), ("max", ["By emotion"])]
)
def test_counts_of_repeats_are_shown_only_where_they_are_averaged(reduce: Reducer, titles: list[str]) -> None:
    evaluator = Reduced(Emotion(), Repeats(2, reduce))
    said = [Emotion().measure(Case("a", "x", "joy", each)) for each in ("joy", "anger")]
    made = report_of({"emotion": evaluator}, [CaseRecord("a", observations={"emotion": evaluator.reduce(said)})])
    assert [each.title for each in made.suites[0].tables] == titles
    if reduce == "mean":
        assert table(lines(made), "Confusion")[1] == "joy               0.5000  0.5000"


def test_text_of_models_cannot_break_a_table() -> None:
    case = Case("a", "x", "joy|\n<b>", "\x1b[2J")
    made = report_of({"emotion": Emotion()}, [CaseRecord("a", observations={"emotion": Emotion().measure(case)})])
    assert "\x1b" not in "\n".join(lines(made))
    assert "joy\\| \\<b\\>" in to_markdown(made)


def test_the_cells_of_a_matrix_know_the_cases_that_they_count() -> None:
    said = {"a": ("joy", "joy"), "b": ("joy", "anger"), "c": ("joy", "joy"), "d": ("calm", None)}
    evaluator = Emotion()
    records = [
        CaseRecord(name, observations={"emotion": evaluator.measure(Case(name, "", true, predicted))})
        for name, (true, predicted) in said.items()
    ]
    made = report_of({"emotion": evaluator}, records)
    (table,) = (each for each in made.suites[0].tables if each.title == "Confusion")
    found = {(table.rows[row][0], table.headers[column]): ids for row, column, ids in table.cases}
    assert found == {("joy", "joy"): ["a", "c"], ("joy", "anger"): ["b"], ("calm", "(none)"): ["d"]}
    assert all(table.rows[row][column] == len(ids) for row, column, ids in table.cases)
