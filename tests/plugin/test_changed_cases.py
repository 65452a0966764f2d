"""Snapshots and gates of suites whose cases were added, edited or removed since they were approved."""

import os
from typing import TYPE_CHECKING, Any

import pytest
from running import run_python

if TYPE_CHECKING:
    from conftest import Project, Ran

WITHOUT = ("asyncio", "hypothesispytest", "rerunfailures")
COMMAND = "approve this run with pytest --llmeval --snapshot-update s.eval.yaml"


def cases(size: int = 5, wrong: int = 0) -> list[dict[str, Any]]:
    return [
        {"id": f"c{n}", "input": f"{n}?", "expected": "red", "prediction": "blue" if n < wrong else "red"}
        for n in range(size)
    ]


def write_suite(project: "Project", listed: list[dict[str, Any]], **top: Any) -> None:
    settings = {"snapshot": {"metrics": ["f1", "pass_rate"]}, "thresholds": {"f1": 0.1}, **top}
    project.suite("s.eval.yaml", listed, **settings)


def approve(project: "Project", listed: list[dict[str, Any]], **top: Any) -> None:
    write_suite(project, listed, **top)
    project.run("--snapshot-update", without=WITHOUT)


def verdicts(ran: "Ran") -> dict[str, tuple[str, str]]:
    return {each["metric"]: (each["outcome"], each["reason"]) for each in ran.suites["s"]["snapshot"]}


def counted(ran: "Ran") -> str:
    lines = ran.text.splitlines()
    return lines[next(n for n, line in enumerate(lines) if "snapshot report summary" in line) + 1]


CHANGES: dict[str, tuple[list[dict[str, Any]], str]] = {
    "new": ([*cases(), {"id": "x", "expected": "red", "prediction": "blue"}], "5 unchanged cases compared; 1 new (x)"),
    "gone": (cases(4), "4 unchanged cases compared; 1 gone (c4)"),
    "edited": ([*cases(4), {**cases()[4], "input": "?"}], "4 unchanged cases compared; 1 edited (c4)"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_unchanged_cases_are_judged_and_the_rest_asks_for_approval(project: "Project", change: str) -> None:
    listed, named = CHANGES[change]
    approve(project, cases())
    write_suite(project, listed)
    ran = project.run(without=WITHOUT)
    found = verdicts(ran)
    assert found["*"] == ("failed", f"not comparable: {named}; {COMMAND}")
    over = f"; over the {named.partition(' compared')[0]}"
    assert found["f1"] == ("passed", f"is 1.0000, as approved{over}")
    assert found["pass_rate"] == ("passed", f"is 1.0000, as approved{over}")
    assert counted(ran) == "1 snapshot failed. 2 snapshots passed."
    project.run("--snapshot-update", without=WITHOUT)
    assert "*" not in verdicts(project.run(without=WITHOUT))


def test_a_drop_among_the_unchanged_cases_is_seen_beside_a_new_one(project: "Project") -> None:
    policy: dict[str, Any] = {"snapshot": {"metrics": ["f1"], "not_comparable": "warn"}}
    approve(project, cases(), **policy)
    policy["snapshot"]["metrics"].append("exact_match")
    write_suite(project, [*cases(wrong=1), {"id": "x", "expected": "red", "prediction": "red"}], **policy)
    ran = project.run(without=WITHOUT)
    later = "is 0.8000: a new metric; once it is approved, its tolerance is 0; over the 5 unchanged cases"
    assert verdicts(ran)["exact_match"] == ("passed", later)
    outcome, reason = verdicts(ran)["f1"]
    assert outcome == "failed"
    assert reason == "fell from 1.0000 to 0.8000, worse by 0.2000; tolerance 0; over the 5 unchanged cases"
    assert counted(ran) == "1 snapshot failed. 1 snapshot passed."


ROWS = [f"{n} ?,red,{'blue' if n % 6 == 0 else 'red'}" for n in range(61)]


def write_rows(project: "Project", rows: list[str]) -> None:
    table = "\n".join(["input,expected,prediction", *rows])
    (project.path / "rows.csv").write_text(f"{table}\n", encoding="utf-8")
    source = {"format": "csv", "path": "rows.csv"}
    project.suite("s.eval.yaml", [], source=source, snapshot={"metrics": ["f1"]}, gates=GATES)


GATES = [{"metric": "f1", "max_drop": 0.1}]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_row_inserted_at_the_top_moves_no_pair(project: "Project", workers: int) -> None:
    write_rows(project, ROWS)
    project.run("--snapshot-update", without=WITHOUT)
    write_rows(project, ["new ?,red,red", *ROWS])
    ran = project.run(workers=workers, without=WITHOUT)
    (gate,) = ran.suites["s"]["gates"]
    assert "61 paired cases" in gate["reason"]
    assert "61 cases matched by content" in gate["reason"]
    assert gate["outcome"] == "passed"
    reason = verdicts(ran)["*"][1]
    assert reason == (f"not comparable: 61 unchanged cases compared; 61 cases matched by content; 1 new (1); {COMMAND}")


def test_reordered_rows_are_no_other_cases(project: "Project") -> None:
    write_rows(project, ROWS)
    project.run("--snapshot-update", without=WITHOUT)
    write_rows(project, ROWS[::-1])
    ran = project.run(without=WITHOUT)
    assert verdicts(ran)["f1"] == (
        "passed",
        f"is {50 / 61:.4f}, as approved; over the 61 unchanged cases, 60 cases matched by content",
    )
    assert "*" not in verdicts(ran)
    assert ran.suites["s"]["gates"][0]["outcome"] == "passed"


@pytest.mark.parametrize(
    "texts", [*(pytest.param(kind, marks=pytest.mark.release) for kind in ("failing", "all")), "none"]
)
def test_reports_are_compared_by_content(project: "Project", texts: str) -> None:
    write_rows(project, ROWS)
    project.run(f"--llmeval-texts={texts}", report="before.json", without=WITHOUT)
    write_rows(project, ["new ?,red,red", *ROWS])
    project.run(f"--llmeval-texts={texts}", report="after.json", without=WITHOUT)
    done = run_python(["-m", "pytest_llmeval", "compare", "after.json", "before.json"], os.environ, project.path)
    heading = "61 cases in both reports, 1 only in after.json, 61 cases matched by content; means of case scores"
    assert heading in done.out
