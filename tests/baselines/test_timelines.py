"""The history of a suite, put together from runs and approvals."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from builders import note_runs, run_line, write_approvals
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmeval.baselines import History
from pytest_llmeval.baselines._scores import Approval
from pytest_llmeval.baselines._scores import TestScores as Scores
from pytest_llmeval.reports import Timeline


def only(root: Path) -> Timeline:
    found = History.read(root / "s.eval.yaml", root)
    assert found.faults == []
    (timeline,) = found.timelines
    return timeline


def approval(day: int, value: float, commit: str | None = None) -> dict[str, object]:
    return {"time": f"2026-01-{day:02d}", "commit": commit, "values": {"f1": value}}


def test_a_suite_without_files_has_no_timeline(tmp_path: Path) -> None:
    assert History.read(tmp_path / "s.eval.yaml", tmp_path) == ([], [])


def test_a_run_has_what_its_line_says(tmp_path: Path) -> None:
    more = {"intervals": {"f1": [0.25, 0.75]}, "gates": {"f1 >= 0.7": "failed"}, "cases": 4, "basis": {"data": "a"}}
    note_runs(tmp_path, run_line(2, **more))
    (point,) = only(tmp_path).points
    assert (point.when, point.commit, point.values) == ("2026-01-02 10:00", "02" * 20, {"f1": 0.5})
    assert (point.intervals, point.gates, point.cases) == ({"f1": (0.25, 0.75)}, {"f1 >= 0.7": "failed"}, 4)
    assert (point.failed_gates, point.approved, point.noted) == (["f1 >= 0.7"], False, True)


def test_runs_of_other_suites_are_no_part_and_no_fault(tmp_path: Path) -> None:
    note_runs(tmp_path, run_line(2, path="other.eval.yaml"), run_line(3))
    assert [each.when for each in only(tmp_path).points] == ["2026-01-03 10:00"]


def test_each_variant_has_a_timeline(tmp_path: Path) -> None:
    note_runs(tmp_path, run_line(2, variant="large"), run_line(3, test="test_it", variant="a"), run_line(4))
    found = History.read(tmp_path / "s.eval.yaml", tmp_path).timelines
    assert [each.title for each in found] == ["s.eval.yaml", "s.eval.yaml[large]", "s.eval.yaml[test_it][a]"]


def test_a_module_of_python_tests_has_the_approvals_of_its_score_file(tmp_path: Path) -> None:
    approved = tuple(Approval(f"2026-01-0{day}", "c", {"test_it: f1": day / 4}) for day in (1, 2))
    path = tmp_path / "__llmeval__" / "test_digest.scores.json"
    path.parent.mkdir()
    path.write_text(Scores("test_digest.py", {"test_it": {"f1": 0.5}}, approved).text, encoding="utf-8")
    (timeline,) = History.read(tmp_path / "test_digest.py", tmp_path).timelines
    assert (timeline.title, timeline.metrics) == ("test_digest.py", ["test_it: f1"])
    assert [(each.when, each.values["test_it: f1"], each.approved) for each in timeline.points] == [
        ("2026-01-01", 0.25, True),
        ("2026-01-02", 0.5, True),
    ]
    path.write_text("{", encoding="utf-8")
    found = History.read(tmp_path / "test_digest.py", tmp_path)
    assert found.timelines == []
    assert found.faults[0].file == "__llmeval__/test_digest.scores.json"


def test_an_approved_run_is_marked_and_not_shown_twice(tmp_path: Path) -> None:
    note_runs(tmp_path, run_line(2, 0.5), run_line(3, 0.75), run_line(3, 0.5), run_line(3, 0.75))
    write_approvals(tmp_path, [approval(3, 0.75, "03" * 20)])
    assert [each.approved for each in only(tmp_path).points] == [False, True, False, False]


def test_two_equal_approvals_of_a_day_mark_two_runs(tmp_path: Path) -> None:
    note_runs(tmp_path, run_line(3, commit=None), run_line(3, commit=None), run_line(3, commit=None))
    write_approvals(tmp_path, [approval(3, 0.5), approval(3, 0.5)])
    assert [each.approved for each in only(tmp_path).points] == [True, True, False]


def test_approvals_made_elsewhere_stand_at_their_day(tmp_path: Path) -> None:
    note_runs(tmp_path, run_line(2), run_line(4))
    write_approvals(tmp_path, [approval(1, 0.25), approval(3, 0.5)])
    points = only(tmp_path).points
    assert [each.when for each in points] == ["2026-01-01", "2026-01-02 10:00", "2026-01-03", "2026-01-04 10:00"]
    assert [each.noted for each in points] == [False, True, False, True]
    assert points[0].intervals == {}
    assert points[2].intervals == {"f1": (0.25, 0.75)}


def test_a_change_is_marked_where_it_shows_first(tmp_path: Path) -> None:
    first, second = {"data": "a", "evaluator": "e", "judge": "j"}, {"data": "b", "evaluator": "e", "judge": "k"}
    lines = [run_line(1, basis=first), run_line(2), run_line(3, basis=first), run_line(4, basis=second), run_line(5)]
    note_runs(tmp_path, *lines)
    assert only(tmp_path).changes() == [(), (), (), ("data", "judge"), ()]


def test_metrics_of_gates_come_first_and_the_pass_rate_last(tmp_path: Path) -> None:
    values = {"pass_rate": 1.0, "rougeL": 0.5, "macro_f1": 0.5, "f1": 0.5}
    note_runs(tmp_path, run_line(1, values=values, gates={"drop(f1) <= 0.02": "passed"}))
    assert only(tmp_path).metrics == ["f1", "rougeL", "macro_f1", "pass_rate"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"time": "2026-01-02", "path": "s.ev', "expected a closing quote"),
        ("[1]", "found a list of 1, expected a run of a suite"),
        ('{"kind": "foreign"}', "time is missing"),
        (run_line(2, time="yesterday"), "time: found the text 'yesterday', expected a time in ISO 8601"),
        (run_line(2, time="0001-01-01T00:00:00+23:00"), "expected a time in ISO 8601"),
        (run_line(2, values={"f1": "high"}), "values.f1: found the text 'high', expected a number"),
        (run_line(2).replace("0.5", "NaN"), "NaN"),
        (run_line(2).replace("0.5", "1" * 400), "values.f1: found "),
        (run_line(2, intervals={"f1": [1]}), "intervals.f1"),
        (run_line(2, gates=[]), "gates: found a list of 0, expected a mapping"),
        ("[" * 5000, "levels of nesting"),
        ("\udcff\udcfe", "expected UTF-8"),
        ("\0", "found"),
    ],
    ids=range(13),
)
def test_a_line_that_cannot_be_used_is_a_fault_with_its_number(tmp_path: Path, line: str, said: str) -> None:
    note_runs(tmp_path, run_line(1), line, run_line(3))
    found = History.read(tmp_path / "s.eval.yaml", tmp_path)
    assert [each.when for each in found.timelines[0].points] == ["2026-01-01 10:00", "2026-01-03 10:00"]
    (fault,) = found.faults
    assert (fault.file, fault.line) == (".llmeval/history.jsonl", 2)
    assert said in str(fault)


def test_what_no_file_system_can_name_is_a_run_of_another_suite(tmp_path: Path) -> None:
    note_runs(tmp_path, run_line(1), run_line(2, path="\0"), run_line(3, path="x" * 10_000))
    assert len(only(tmp_path).points) == 1


def test_many_faulty_lines_are_counted(tmp_path: Path) -> None:
    note_runs(tmp_path, *["{}"] * 150, run_line(1))
    found = History.read(tmp_path / "s.eval.yaml", tmp_path)
    assert len(found.timelines[0].points) == 1
    assert [each.message for each in found.faults[100:]] == ["... and 50 more lines that are no runs"]


def test_a_damaged_score_file_is_a_fault_and_runs_are_read_nevertheless(tmp_path: Path) -> None:
    note_runs(tmp_path, run_line(1))
    path = write_approvals(tmp_path, [approval(1, 0.25)])
    path.write_text(path.read_text(encoding="utf-8").replace("0.25", "0.26", 1), encoding="utf-8")
    found = History.read(tmp_path / "s.eval.yaml", tmp_path)
    assert len(found.timelines[0].points) == 1
    assert found.faults[0].file == "__llmeval__/s.scores.json"


def test_a_history_that_is_no_file_is_a_fault(tmp_path: Path) -> None:
    (History.path_in(tmp_path)).mkdir(parents=True)
    found = History.read(tmp_path / "s.eval.yaml", tmp_path)
    assert [str(each) for each in found.faults] == [".llmeval/history.jsonl  found a directory, expected a file"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
KEYS = ("time", "path", "values", "commit", "test", "variant", "cases", "intervals", "gates", "basis", "other")


@given(st.dictionaries(st.sampled_from(KEYS), JSON), st.text())
def test_no_line_breaks_the_history(data: dict[str, object], text: str) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        merged = json.dumps({**json.loads(run_line(1)), **data})
        note_runs(root, json.dumps(data), merged, text, run_line(2))
        timelines = History.read(root / "s.eval.yaml", root).timelines
        (whole,) = (each for each in timelines if each.title == "s.eval.yaml")
        assert "2026-01-02 10:00" in [each.when for each in whole.points]
        assert [len(each.changes()) for each in timelines] == [len(each.points) for each in timelines]
