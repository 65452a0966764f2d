"""The lines of suites without a failure: what changed, what has no room, and what people must see."""

from collections.abc import Sequence
from typing import Any

import pytest
from builders import parse_gate

from pytest_llmeval import Case, get_evaluator, score
from pytest_llmeval.core import GateResult, SnapshotVerdict, width_of
from pytest_llmeval.gates import DropGate, LimitGate
from pytest_llmeval.reports import CaseReport, Line, RunReport, RunStart, SuiteReport, TextTable, render
from pytest_llmeval.reports._overview import brief, overview, rows_of

CASES = [Case(str(place), expected="in May", prediction=answer) for place, answer in enumerate(["in May", "May"])]
RESULT = score(get_evaluator("text", metrics=["f1", "exact_match"]), CASES)
WIDE = TextTable("", ("name", "a", "b", "c"), [("東京", "1", "22", "333"), ("x", "1", "2", "3")], spare=(3, 2))


def suite(name: str = "s", gates: Sequence[str] = (), **more: Any) -> SuiteReport:
    judged = [parse_gate(gate).judge(RESULT) for gate in gates]
    return SuiteReport.of_result(name, "s.eval.yaml", RESULT, judged, len(CASES), **more)


def texts(*suites: SuiteReport, width: int = 80) -> list[str]:
    return [line.text for line in overview(suites, width)]


def drawn(width: int, *, everything: bool = False) -> list[str]:
    return [line.text for line in WIDE.draw(width, everything=everything)]


def test_a_suite_takes_one_line_with_the_metrics_of_its_gates() -> None:
    assert texts(suite(gates=["mean(f1) >= 0.5", "f1 >= 0.6", "pass_rate >= 1"]), width=120) == [
        "suite cases gates  metrics of gates, 95% interval",
        "s         2     3  f1 0.8333 0.0000..1.0000, pass_rate 1.0000 0.3424..1.0000",
    ]


def test_without_gates_the_first_metric_is_shown() -> None:
    assert texts(suite())[1] == "s         2     -  f1 0.8333 0.0000..1.0000"


def test_systems_stand_below_each_other_with_the_same_metrics() -> None:
    large = suite("s[large]", ["exact_match >= 0.5"], variant="large")
    assert texts(large, suite("s[small]", variant="small"), suite("t[small]", variant="small"))[1:] == [
        "s[large]      2     1  exact_match 0.5000 0.0945..0.9055",
        "  [small]     2     -  exact_match 0.5000 0.0945..0.9055",
        "t[small]      2     -  f1 0.8333 0.0000..1.0000",
    ]


@pytest.mark.parametrize(
    ("room", "told"),
    [
        (80, "f1 0.8333 0.0000..1.0000, exact_match 0.5000 0.0945..0.9055"),
        (52, "f1 0.8333 0.00..1.00, exact_match 0.5000 0.09..0.91"),
        (40, "f1 0.8333, exact_match 0.5000"),
        (28, "f1 0.8333"),
        (12, "f1 0.8333"),
        (11, "f1 0.8333"),
        (4, ""),
    ],
)
def test_all_metrics_of_gates_are_listed_before_their_intervals_and_the_pass_rate_last(room: int, told: str) -> None:
    (row,) = rows_of([suite(gates=["pass_rate >= 0.5", "f1 >= 0.5", "exact_match >= 0.5"])])
    assert row.metrics[-1] == "pass_rate"
    row = row._replace(metrics=row.metrics[:-1])
    assert brief(row, room) == told


def verdict(metric: str, kind: Any, value: float = 0.5, approved: float = 0.4) -> SnapshotVerdict:
    return SnapshotVerdict(metric, kind, "passed", value, approved, "why")


def test_changes_against_the_approved_scores_come_first() -> None:
    changed = [
        verdict("a", "improved"),
        verdict("b", "fell_within", 0.3),
        verdict("latency", "improved", 0.3),
        verdict("c", "rose_within"),
        verdict("d", "new"),
        verdict("e", "unchanged"),
    ]
    (line,) = [line for line in overview([suite(snapshot=changed)], 120) if line.text.startswith("s ")]
    assert line.text.endswith("fell: b, latency; cannot tell: c; rose: a; new: d; f1 0.8333 0.0000..1.0000")
    assert line.colour == "yellow"


def test_many_changes_are_counted() -> None:
    many = [verdict(f"metric_{place}", "improved") for place in range(30)]
    assert texts(suite(snapshot=many))[1].startswith("s         2     -  rose: 30 metrics; f1 0.8333")


@pytest.mark.parametrize(
    "gate",
    [
        "f1 >= 0.7",
        "mean(f1) >= 0.7",
        "low(f1) > 0.1",
        str(DropGate("f1", 0.02)),
        str(LimitGate("f1", parse_gate("f1 >= 0.1").bounds, by="kind")),
    ],
)
def test_the_metric_of_a_gate_is_found(gate: str) -> None:
    judged = SuiteReport.of_result("s", "s", RESULT, [GateResult(gate, "passed", None, None, "")], 2)
    assert judged.gated == ["f1"]


def test_what_people_must_see_stays() -> None:
    waiting = GateResult("f1 >= 0.5", "not_judged", None, None, "not evaluated: 1 of 2 cases ran")
    doubt = SnapshotVerdict("*", "not_comparable", "passed", reason="not comparable: other cases")
    shown = SuiteReport.of_result("s", "s", RESULT, [waiting], 2, snapshot=[doubt], shared_inputs=20, left_out=3)
    lines = list(render(RunReport(run=RunStart("", 0, ""), suites=[shown]), verbosity=0, width=80))
    assert [line.colour for line in lines[1:5]] == ["yellow", "yellow", "yellow", ""]
    assert [line.text[:46] for line in lines[2:-1]] == [
        "s: snapshot not comparable: other cases",
        "s: 1 of 1 gates not evaluated: 1 of 2 cases ra",
        "s: only predicted cases: 3 left out",
        "s: warning: 20 of 2 cases have the input of an",
    ]
    assert lines[-1] == Line("cases: 2 passed; gates: 1 not evaluated; snapshots: 1 passed", "yellow")


def test_cases_gates_and_snapshots_are_counted_apart() -> None:
    assert RunReport(suites=[suite(gates=["f1 >= 0.5"]), suite(snapshot=[verdict("f1", "unchanged")])]).totals == Line(
        "4 cases, 1 gate, 1 snapshot passed", "green"
    )
    cases = [*CaseReport.of_result(RESULT), CaseReport(id="c", outcome="failed")]
    judged = SuiteReport.of_result("s", "s", RESULT, [parse_gate("f1 >= 0.9").judge(RESULT)], 3, cases=cases)
    found = RunReport(suites=[judged]).totals
    assert found == Line("cases: 2 passed, 1 failed; gates: 1 failed", "red")


def test_columns_without_room_are_left_out_and_counted() -> None:
    assert drawn(17) == ["name  a   b    c", "東京  1  22  333", "x     1   2    3"]
    assert drawn(16) == drawn(17)
    assert drawn(15) == ["name  a   b", "東京  1  22", "x     1   2", "1 more column: -vv or a wider terminal"]
    assert drawn(5)[-1] == "2 more columns: -vv or a wider terminal"
    assert drawn(5)[0] == "name  a"


def test_everything_has_tables_below_for_columns_without_room() -> None:
    assert drawn(11, everything=True) == [
        "name  a   b",
        "東京  1  22",
        "x     1   2",
        "",
        "name  a    c",
        "東京  1  333",
        "x     1    3",
    ]
    assert drawn(3, everything=True) == drawn(11, everything=True)


def test_east_asian_characters_take_two_columns() -> None:
    assert [width_of(text) for text in ("abc", "東京", "e\u0301")] == [3, 4, 1]
